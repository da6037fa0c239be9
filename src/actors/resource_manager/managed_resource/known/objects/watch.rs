//! The watch of one kind: what it caches of an object, what a change means for the owners, and whom it notifies.

use std::rc::Rc;

use cluster::{
    Change, How, Resource, Watch, WatchOptions,
    object::{GroupKind, NamespacedName, ObjectKey},
};
use kit::Listening;
use serde_json::Value;

use super::{super::cached_object::CachedObject, ManagedObjects, WatchedKind};
use crate::actors::resource_manager::{
    bundle::identity,
    health::{Judgement, judge},
};

/// Called on drift, with the ManagedResource, the object, and what happened to the object.
pub(crate) type DriftListener = Rc<dyn Fn(&NamespacedName, &ObjectKey, Drift)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drift {
    Changed,
    Gone,
}

/// Called when the health of a ManagedResource may change. Without an object: none in particular.
pub(crate) type HealthListener = Rc<dyn Fn(&NamespacedName, Option<&ObjectKey>, News)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    /// The judgement changed, or the watch of the kind began or ended.
    Judged {
        /// Its health, or whether it exists.
        health: bool,
        rollout: bool,
    },
    Gone,
}

impl ManagedObjects {
    /// Starts to watch a kind. Reports drift and health, and health also whenever the watch begins or ends. Where
    /// watching all namespaces is forbidden, it watches the namespaces that have owned objects.
    pub(super) fn start(&self, resource: &Resource) -> WatchedKind {
        let group_kind = resource.group_kind();
        let watch = self.open(resource, &group_kind);
        self.report(&watch);
        let listening = self.listen(&watch, &group_kind);
        WatchedKind { watch, idle_since: None, _listening: listening }
    }

    fn open(&self, resource: &Resource, group_kind: &GroupKind) -> Watch<CachedObject> {
        let covered = self.is_covered(resource).unwrap_or_default();
        let judged = Some(resource.group_version_kind()).filter(judge::is_checked);
        let metadata_only = covered && judged.is_none();
        tracing::info!(kind = %resource, metadata_only, "watching a kind");
        let origins = self.origins.clone();
        let (names, key_of) = (self.owners.clone(), keys_of(group_kind.clone()));
        let cached = move |object: &Value| {
            let named = names.borrow().named(&key_of(&NamespacedName::of(object)));
            let of = if covered { CachedObject::of_metadata } else { CachedObject::of_object };
            let mut cached = of(object, named.as_deref());
            let judgement = judged.as_ref().and_then(|kind| Judgement::of(kind, object));
            cached.origin = cached.origin.map(|origin| origins.shared(&origin));
            Some(CachedObject { judgement, ..cached })
        };
        let (owners, key_of) = (self.owners.clone(), keys_of(group_kind.clone()));
        let (places, kind) = (self.owners.clone(), group_kind.clone());
        let options = WatchOptions::new(resource.clone(), cached)
            .labelled(self.selector.clone())
            .from_now()
            .keeping(move |name| owners.borrow().is_held(&key_of(name)))
            .narrowing(move || places.borrow().namespaces(&kind));
        self.watches.open(if metadata_only { options.metadata() } else { options })
    }

    fn report(&self, watch: &Watch<CachedObject>) {
        let key_of = keys_of(watch.resource().group_kind());
        let (owners, drift, health) = (self.owners.clone(), self.drift.clone(), self.health.clone());
        watch.subscribe(move |change| {
            if !is_news(change) {
                return;
            }
            let (drifted, judged) = (drifted(change), judged_differently(change));
            let key = key_of(change.name);
            let what = if change.new.is_some() { Drift::Changed } else { Drift::Gone };
            let holders = owners.borrow_mut().news_of(&key);
            for holder in &holders {
                if drifted.is_some_and(|writer| writer != Some(holder.to_string().as_str())) {
                    drift(holder, &key, what);
                }
                if let Some(news) = judged {
                    health(holder, Some(&key), news);
                }
            }
        });
    }

    fn listen(&self, watch: &Watch<CachedObject>, kind: &GroupKind) -> Listening {
        let (owners, health, kind) = (self.owners.clone(), self.health.clone(), kind.clone());
        watch.signal().listen(move || {
            let holders = owners.borrow_mut().news_of_kind(&kind);
            holders.iter().for_each(|holder| health(holder, None, News::Judged { health: true, rollout: true }));
        })
    }
}

fn keys_of(kind: GroupKind) -> impl Fn(&NamespacedName) -> ObjectKey {
    move |name| identity::index_key(&kind.group, &kind.kind, &name.namespace, &name.name)
}

/// Returns true if anything is known now that was not known before, apart from the version.
pub(super) fn is_news(change: &Change<'_, CachedObject>) -> bool {
    match (change.old, change.new) {
        (Some(old), Some(new)) => !old.same_content(new) || old.judgement != new.judgement,
        (Some(_), None) | (None, Some(_)) | (None, None) => true,
    }
}

/// Returns `None` if a change is no drift for the object's owners, otherwise the writer if it was this process. A
/// change that leaves the content as it was (a status, say) is no drift.
fn drifted<'a>(change: &Change<'a, CachedObject>) -> Option<Option<&'a str>> {
    let writer = match change.how {
        How::First | How::Lost => return None,
        How::Event | How::Relist => None,
        How::Own { writer } => Some(writer),
    };
    match (change.old, change.new) {
        (Some(old), Some(new)) if old.same_content(new) => None,
        // An object that a read or write of this process brought for the first time is no drift.
        (None, Some(_)) if writer.is_some() => None,
        _ => Some(writer),
    }
}

pub(super) fn judged_differently(change: &Change<'_, CachedObject>) -> Option<News> {
    if change.how == How::First {
        return None;
    }
    let fine = Judgement::default();
    let old = change.old.and_then(|cached| cached.judgement.as_deref()).unwrap_or(&fine);
    let new = change.new.and_then(|cached| cached.judgement.as_deref()).unwrap_or(&fine);
    let health = change.old.is_some() != change.new.is_some() || old.health != new.health;
    let rollout = old.rollout != new.rollout || old.pods != new.pods;
    (health || rollout).then_some(News::Judged { health, rollout })
}
