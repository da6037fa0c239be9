//! The objects of a ManagedResource, one row each.

use std::collections::{BTreeMap, BTreeSet};

use cluster::object::{GroupVersionKind, NamespacedName, ObjectKey};
use jiff::Timestamp;
use kit::quote::{cut, cut_after};
use serde::Serialize;

use super::super::{
    health::Seen,
    known::{Glance, Standing},
    record::{BundleRecord, PendingDeletion, WriteKind, WriteNote},
    remove::clean,
    shared::{CAUSES, ManagedResources},
};
use crate::{
    actors::resource_manager::{
        bundle::identity::Equivalences,
        health::{HealthVerdict, Judgement, judge, pods::OLD_PODS},
    },
    api::resources::{
        managed_resource::{ManagedResource, ResourceRef},
        origin::Origin,
    },
};

/// Most objects that a page shows.
const MOST: usize = 2000;
/// Longest text about an object, in characters.
const LONGEST: usize = 1024;
/// Most other ManagedResources that are named for an object.
const MOST_CLAIMS: usize = 10;
/// How many Pods are looked at for one page. Each costs some ten nanoseconds.
const MOST_PODS: usize = 20_000;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ObjectRow {
    api_version: String,
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    name: String,
    health: Health,
    #[serde(skip_serializing_if = "Option::is_none")]
    health_text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<LastRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pending_deletion: Option<DeletionRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<PlaceRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    claimed_by: Vec<String>,
    /// The object left the ManagedResource.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    gone: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Health {
    Healthy,
    Unhealthy,
    Unknown,
    /// It exists, and its kind has no rules.
    Unchecked,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LastRow {
    what: &'static str,
    at: Timestamp,
    why: Vec<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    paths: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeletionRow {
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct PlaceRow {
    secret: String,
    key: String,
    index: u32,
}

/// What is known of the health of an object.
#[derive(Debug, PartialEq, Eq)]
struct State {
    health: Health,
    text: Option<String>,
    progress: Option<String>,
}

pub(super) struct ObjectRows<'a> {
    controller: &'a ManagedResources,
    record: &'a BundleRecord,
    bundle: &'a NamespacedName,
    origin: Origin,
    equivalences: Equivalences,
    places: BTreeMap<ObjectKey, PlaceRow>,
    /// How many Pods may still be looked at.
    pods: usize,
}

/// `Kind ns/name`, or `Kind name` for an object without a namespace.
pub(super) fn shown(controller: &ManagedResources, key: &ObjectKey) -> String {
    let place = match namespace_of(controller, key) {
        "" => key.name.clone(),
        namespace => format!("{namespace}/{}", key.name),
    };
    format!("{} {}", cut(&key.kind), cut(&place))
}

/// Returns the namespace of an object. Keys of cluster-scoped objects have the namespace `default`.
fn namespace_of<'a>(controller: &ManagedResources, key: &'a ObjectKey) -> &'a str {
    let served = controller.target.discovery().known_preferred(&key.group_kind());
    if served.is_some_and(|served| !served.namespaced) { "" } else { &key.namespace }
}

impl<'a> ObjectRows<'a> {
    pub(super) fn new(controller: &'a ManagedResources, record: &'a BundleRecord, bundle: &'a NamespacedName) -> Self {
        let documents = record.documents.borrow();
        let place = |(object, secret, key, index): (&ObjectKey, &str, &str, u32)| {
            (object.clone(), PlaceRow { secret: secret.to_owned(), key: key.to_owned(), index })
        };
        Self {
            controller,
            record,
            bundle,
            origin: Origin::new(controller.settings.cluster_id.clone(), bundle.clone()),
            equivalences: Equivalences::predefined(),
            places: documents.iter().map(place).collect(),
            pods: MOST_PODS,
        }
    }

    /// Returns the objects in the order of the status, then those that left lately, and how many were left out.
    pub(super) fn of(mut self, mr: &ManagedResource) -> (Vec<ObjectRow>, usize) {
        let references = &mr.status.resources;
        let mut rows: Vec<_> = references.iter().take(MOST).map(|reference| self.row(reference)).collect();
        let truncated = references.len() - rows.len();
        let listed: BTreeSet<ObjectKey> = references.iter().map(ResourceRef::key).collect();
        let writes = self.record.writes.borrow();
        let left = writes.left().filter(|(object, _)| !listed.contains(object));
        rows.extend(left.map(|(object, note)| self.row_of_left(object, note)));
        (rows, truncated)
    }

    fn row(&mut self, reference: &ResourceRef) -> ObjectRow {
        let key = reference.key();
        let glance = self.controller.objects.glance(&key);
        let State { health, text, progress } = self.state(reference, &key, &glance.standing);
        ObjectRow {
            health,
            health_text: text.map(bounded),
            progress: progress.map(bounded),
            last: self.record.writes.borrow().of(&key).map(LastRow::of),
            pending_deletion: self.deletion(&key, &glance),
            document: self.places.get(&key).cloned(),
            claimed_by: self.claims(&key, &glance),
            ..ObjectRow::named(&reference.api_version, &reference.kind, &reference.namespace, &reference.name)
        }
    }

    fn row_of_left(&self, object: &ObjectKey, note: &WriteNote) -> ObjectRow {
        let ObjectKey { group, kind, name, .. } = object;
        let namespace = namespace_of(self.controller, object);
        let served = self.controller.target.discovery().known_preferred(&object.group_kind());
        let api_version = served.map_or_else(|| group.clone(), |served| served.api_version());
        ObjectRow { last: Some(LastRow::of(note)), gone: true, ..ObjectRow::named(&api_version, kind, namespace, name) }
    }

    fn state(&mut self, reference: &ResourceRef, key: &ObjectKey, standing: &Standing) -> State {
        let kind = reference.group_version_kind();
        if !self.controller.objects.is_held_by(key, self.bundle) {
            return State::unknown("the controller does not look after it at present");
        }
        match standing {
            Standing::Known(judgement) => self.judged(key, &kind, judgement.as_deref()),
            Standing::Starting if self.controller.target.discovery().known(&kind).is_none() => {
                State::unknown("the target is not known to serve its kind")
            }
            Standing::Starting => State::unknown("not known yet: the watch of its kind begins"),
            Standing::Failing(error) => State::unknown(format!("cannot watch {kind}: {error}")),
            Standing::Unknown => match self.record.live_reads.borrow().upgrade().and_then(|reads| reads.last(key)) {
                Some(Seen::There(judgement)) => self.judged(key, &kind, judgement.as_deref()),
                Some(Seen::Missing) => State::bad("missing"),
                None => State::unknown("no watch delivers it, and no health check has read it yet"),
            },
        }
    }

    fn judged(&mut self, key: &ObjectKey, kind: &GroupVersionKind, judgement: Option<&Judgement>) -> State {
        let state = State::of(kind, judgement);
        let quota = judgement.and_then(|judgement| judgement.pods.as_ref()).filter(|_| state.progress.is_none());
        let known = quota.and_then(|quota| self.controller.pods.known(&key.namespace, quota, &mut self.pods));
        if known == Some(false) { State { progress: Some(OLD_PODS.to_owned()), ..state } } else { state }
    }

    fn deletion(&self, key: &ObjectKey, glance: &Glance) -> Option<DeletionRow> {
        // The note is old if a watch shows the object without a deletion timestamp.
        let is_over = matches!(glance.standing, Standing::Known(_)) && !glance.deleting;
        let noted = self.record.deletions.borrow().of(key).cloned().filter(|_| !is_over);
        let seen = || glance.deleting.then(|| PendingDeletion::because("somebody else deleted it"));
        noted
            .or_else(seen)
            .map(|PendingDeletion { since, why }| DeletionRow { since, why: why.map(|why| why.to_string()) })
    }

    /// Returns the other ManagedResources that list the object, or that its origin names.
    fn claims(&self, key: &ObjectKey, glance: &Glance) -> Vec<String> {
        let objects = &self.controller.objects;
        let mut claims = objects.holders(key);
        for equivalent in self.equivalences.of_key(key) {
            claims.extend(objects.holders(&equivalent));
        }
        let origin = clean::other_owner(glance.origin.as_deref(), &self.origin);
        claims.extend(origin.filter(|other| self.controller.bundles.store().with(other, |_| ()).is_some()));
        let others = claims.iter().filter(|claim| *claim != self.bundle);
        others.take(MOST_CLAIMS).map(|claim| cut(&claim.to_string()).into_owned()).collect()
    }
}

impl ObjectRow {
    fn named(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        let [api_version, kind, namespace, name] =
            [api_version, kind, namespace, name].map(|text| cut(text).into_owned());
        Self {
            api_version,
            kind,
            namespace,
            name,
            health: Health::Unknown,
            health_text: None,
            progress: None,
            last: None,
            pending_deletion: None,
            document: None,
            claimed_by: Vec::new(),
            gone: false,
        }
    }
}

impl State {
    fn unknown(text: impl Into<String>) -> Self {
        Self { health: Health::Unknown, text: Some(text.into()), progress: None }
    }

    fn bad(text: impl Into<String>) -> Self {
        Self { health: Health::Unhealthy, text: Some(text.into()), progress: None }
    }

    /// What the verdicts of an object say. Versions without rules only need to exist (spec 20 §11). Whether an object is
    /// in a roll-out does not depend on the version (spec 20 §13).
    fn of(kind: &GroupVersionKind, judgement: Option<&Judgement>) -> Self {
        let fine = Judgement::default();
        let Judgement { health, rollout, .. } = judgement.unwrap_or(&fine);
        let cannot = |text: &str| format!("cannot be checked: {text}");
        let state = match health {
            _ if !judge::is_checked(kind) => Self { health: Health::Unchecked, text: None, progress: None },
            HealthVerdict::Fine => Self { health: Health::Healthy, text: None, progress: None },
            HealthVerdict::Bad(text) => Self::bad(&**text),
            HealthVerdict::Unreadable(text) => Self::bad(cannot(text)),
        };
        let progress = match rollout {
            HealthVerdict::Fine => None,
            HealthVerdict::Bad(text) => Some(text.to_string()),
            HealthVerdict::Unreadable(text) => Some(cannot(text)),
        };
        Self { progress, ..state }
    }
}

impl LastRow {
    fn of(note: &WriteNote) -> Self {
        let (at, why) = (note.at(), note.causes.names(&CAUSES).collect());
        let row = |what| Self { what, at, why, paths: Vec::new(), error: None };
        match &note.kind {
            WriteKind::Created => row("created"),
            WriteKind::Updated(paths) => {
                Self { paths: paths.iter().map(|path| path.to_string()).collect(), ..row("updated") }
            }
            WriteKind::Deleted => row("deleted"),
            WriteKind::Released => row("released"),
            WriteKind::Failed(error) => Self { error: Some(error.to_string()), ..row("failed") },
        }
    }
}

fn bounded(text: String) -> String {
    cut_after(LONGEST, &text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judgement(health: HealthVerdict, rollout: HealthVerdict) -> Judgement {
        Judgement { health, rollout, pods: None }
    }

    #[test]
    fn state_of_an_object_says_what_its_verdicts_say() {
        let (bad, unreadable) = (HealthVerdict::Bad("b".into()), HealthVerdict::Unreadable("u".into()));
        let set = GroupVersionKind::new("apps", "v1", "StatefulSet");
        for (kind, judgement, health, text, progress) in [
            (&set, None, Health::Healthy, None, None),
            (&set, Some(judgement(bad.clone(), HealthVerdict::Fine)), Health::Unhealthy, Some("b"), None),
            (&set, Some(judgement(HealthVerdict::Fine, bad.clone())), Health::Healthy, None, Some("b")),
            (
                &set,
                Some(judgement(unreadable.clone(), unreadable)),
                Health::Unhealthy,
                Some("cannot be checked: u"),
                Some("cannot be checked: u"),
            ),
            (&GroupVersionKind::new("", "v1", "ConfigMap"), None, Health::Unchecked, None, None),
            // The watch judges apps/v1. Another version only needs to exist.
            (
                &GroupVersionKind::new("apps", "v1beta1", "StatefulSet"),
                Some(judgement(bad.clone(), bad)),
                Health::Unchecked,
                None,
                Some("b"),
            ),
        ] {
            let State { health: is, text: says, progress: goes } = State::of(kind, judgement.as_ref());

            assert_eq!((is, says.as_deref(), goes.as_deref()), (health, text, progress), "{kind} {judgement:?}");
        }
    }
}
