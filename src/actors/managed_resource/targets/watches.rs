//! The watch of one kind: what it keeps of an object, and whom it tells.

use std::rc::Rc;

use cluster::{ReadRecord, Resource, Router, RouterOptions, Start};
use kit::Listening;

use super::{
    super::{
        fingerprint::{self, Record},
        widening::Widening,
    },
    Drift, Inner, Kind, News,
    news::{drifted, is_news, judged_differently},
};
use crate::{
    actors::health::{Judgement, judge},
    api::object::{GroupKind, NamespacedName, ObjectKey},
    bundle::identity,
};

impl Inner {
    /// Watches a kind. One that is narrowed is tried everywhere now and then; `widening` does so already.
    pub(super) fn start(
        self: &Rc<Self>,
        resource: &Resource,
        scopes: Vec<Option<String>>,
        widening: Option<Widening<Record>>,
    ) -> Kind {
        let is_narrowed = self.is_narrowed(&scopes);
        let router = self.router(resource, scopes, Start::Now);
        let widening = is_narrowed.then(|| widening.unwrap_or_else(|| self.widening(&resource.group_kind())));
        self.kind(router, widening)
    }

    /// A watch that tells of drift and health, and of health whenever it comes or goes.
    pub(super) fn kind(&self, router: Router<Record>, widening: Option<Widening<Record>>) -> Kind {
        self.tell(&router);
        let listening = self.listen(&router, &router.resource().group_kind());
        Kind { router, idle_since: None, _listening: listening, widening }
    }

    /// A watch nobody is told of.
    pub(super) fn router(&self, resource: &Resource, scopes: Vec<Option<String>>, start: Start) -> Router<Record> {
        let group_kind = resource.group_kind();
        let covered =
            fingerprint::generation_covers_body(&group_kind.group, &group_kind.kind) || (self.is_custom)(resource);
        let judged = Some(resource.group_version_kind()).filter(judge::is_checked);
        let metadata_only = covered && judged.is_none();
        tracing::info!(kind = %resource, metadata_only, "watching a kind");
        let keep = {
            let (interest, key_of) = (self.interest.clone(), keys_of(group_kind));
            Box::new(move |name: &NamespacedName| interest.borrow().is_held(&key_of(name)))
        };
        let origins = self.origins.clone();
        let record: ReadRecord<Record> = Box::new(move |object| {
            let mut record = if covered { Record::of_metadata(object) } else { Record::of_object(object) };
            let judgement = judged.as_ref().and_then(|kind| Judgement::of(kind, object));
            record.origin = record.origin.map(|origin| origins.shared(origin));
            Some(Record { judgement, ..record })
        });
        let options = RouterOptions {
            name: format!("target/{resource}{}", if self.is_narrowed(&scopes) { "/by-namespace" } else { "" }),
            resource: resource.clone(),
            scopes,
            label_selector: Some(self.selector.clone()),
            metadata_only,
            start,
            record,
            keep,
        };
        Router::start(&self.cluster, options, &self.env)
    }

    fn tell(&self, router: &Router<Record>) {
        let key_of = keys_of(router.resource().group_kind());
        let (interest, drift, health) = (self.interest.clone(), self.drift.clone(), self.health.clone());
        router.subscribe(move |change| {
            if !is_news(change) {
                return;
            }
            let (drifted, judged) = (drifted(change), judged_differently(change));
            let key = key_of(change.name);
            let what = if change.new.is_some() { Drift::Changed } else { Drift::Gone };
            let holders = interest.borrow_mut().news_of(&key);
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

    fn listen(&self, router: &Router<Record>, kind: &GroupKind) -> Listening {
        let (interest, health, kind) = (self.interest.clone(), self.health.clone(), kind.clone());
        router.signal().listen(move || {
            let holders = interest.borrow_mut().news_of_kind(&kind);
            holders.iter().for_each(|holder| health(holder, None, News::Judged { health: true, rollout: true }));
        })
    }
}

/// Makes the keys of a kind's objects.
pub(super) fn keys_of(kind: GroupKind) -> impl Fn(&NamespacedName) -> ObjectKey {
    move |name| identity::index_key(&kind.group, &kind.kind, &name.namespace, &name.name)
}
