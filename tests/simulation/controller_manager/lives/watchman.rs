//! What must hold at each moment. The program releases no object in use. It releases an unused object soon. It deletes
//! nothing foreign.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use cluster::{Resource, object};
use gardener_resource_manager::{actors::controller_manager::seed::secrets::roles::has_shared_role, api::kinds};
use serde_json::Value;
use sim::{Recorded, RequestInfo};
use tokio::time::Instant;

use super::{
    common::{Common, has_finalizer, is_deleting, lock, text},
    ties::{CREDENTIALS, Place, REFERENCED, Tie, finalizers_of, ties},
};
use crate::controller_manager::{
    garden::resource,
    guards::{GUARDED, finalizer_of},
};

/// A request that is delayed is carried out within this time.
const LONGEST_DELAY: Duration = Duration::from_secs(2);

/// In a life without faults of requests a finalizer comes or goes within this time. Another replica leads earlier.
const SOON: Duration = Duration::from_secs(90);

#[derive(Clone)]
pub(super) struct Watchman {
    observed: Arc<Mutex<Observed>>,
    common: Common,
}

#[derive(Default)]
struct Observed {
    /// Since when each tie exists without a break.
    since: BTreeMap<Tie, Instant>,
    /// When a user listed a kind.
    lists: BTreeMap<(String, String), Vec<Instant>>,
    /// Writes that may be releases.
    open: Vec<OpenWrite>,
    /// What is not as it must be, and since when.
    overdue: BTreeMap<String, Instant>,
    /// When the program was last kept from its work.
    disturbed: Option<Instant>,
    /// The revision of the last look.
    revision: u64,
    suspicious: Vec<(u64, String)>,
    violations: Vec<String>,
}

/// A write to an object in use.
struct OpenWrite {
    number: u64,
    uid: String,
    tie: Tie,
    at: Instant,
    age: Duration,
}

impl Watchman {
    pub(super) fn new(common: &Common) -> Self {
        Self { observed: Arc::default(), common: common.clone() }
    }

    /// Sees a request of the program before it is carried out.
    pub(super) fn see(&self, info: &RequestInfo) {
        let mut observed = lock(&self.observed);
        self.settle(&mut observed);
        match info.verb.as_str() {
            "list" => {
                let lists = observed.lists.entry((info.user.clone(), info.resource.clone())).or_default();
                lists.retain(|at| at.elapsed() <= self.common.lag());
                lists.push(Instant::now());
            }
            "patch" | "update" if info.subresource.is_empty() => self.see_write(&mut observed, info),
            "delete" => {
                if let Some(objection) = self.objection(info) {
                    observed.suspicious.push((info.number, objection));
                }
            }
            _ => {}
        }
    }

    fn see_write(&self, observed: &mut Observed, info: &RequestInfo) {
        let dot = if info.group.is_empty() { "" } else { "." };
        let target = Place {
            resource: format!("{}{dot}{}", info.resource, info.group),
            namespace: info.namespace.clone(),
            name: info.name.clone(),
        };
        if !observed.since.keys().any(|tie| tie.target == target) {
            return;
        }
        let Some(live) = self.common.sim.object(&target.resource, &target.namespace, &target.name) else { return };
        for tie in ties(&self.common).into_iter().filter(|tie| tie.target == target) {
            let Some(since) = observed.since.get(&tie).copied() else { continue };
            if has_finalizer(&live, tie.finalizer) && !self.may_be_unknown(observed, info, &tie, since) {
                let (uid, age) = (object::uid(&live).to_owned(), since.elapsed());
                observed.open.push(OpenWrite { number: info.number, uid, tie, at: Instant::now(), age });
            }
        }
    }

    /// Returns true if a tie may be younger than the list that a decision rests on.
    fn may_be_unknown(&self, observed: &Observed, info: &RequestInfo, tie: &Tie, since: Instant) -> bool {
        let mut lists = tie.shown_by.iter().filter_map(|plural| self.first_of(observed, &info.user, plural));
        lists.any(|list| since >= list)
    }

    /// Returns when a user first listed a kind, as far as a decision that is carried out now may rest on it.
    pub(super) fn first_list(&self, user: &str, plural: &str) -> Option<Instant> {
        self.first_of(&lock(&self.observed), user, plural)
    }

    fn first_of(&self, observed: &Observed, user: &str, plural: &str) -> Option<Instant> {
        let lists = observed.lists.get(&(user.to_owned(), plural.to_owned()))?;
        lists.iter().filter(|at| at.elapsed() <= self.common.lag()).min().copied()
    }

    /// Finds out which open writes released their objects.
    fn settle(&self, observed: &mut Observed) {
        for write in std::mem::take(&mut observed.open) {
            let target = &write.tie.target;
            let is_released =
                |live: &Value| object::uid(live) != write.uid || !has_finalizer(live, write.tie.finalizer);
            let live = self.common.sim.look_at(&target.resource, &target.namespace, &target.name, is_released);
            if live.unwrap_or(true) {
                if ties(&self.common).contains(&write.tie) {
                    let (number, age) = (write.number, write.age);
                    observed
                        .violations
                        .push(format!("request {number} released it, in use for {age:?}: {:?}", write.tie));
                }
            } else if write.at.elapsed() < LONGEST_DELAY {
                observed.open.push(write);
            }
        }
    }

    /// Returns why an object must not be deleted by the program.
    fn objection(&self, info: &RequestInfo) -> Option<String> {
        let is_own = match info.resource.as_str() {
            // Their own checks look at the time.
            "bastions" | "events" => true,
            "secrets" => {
                let live = self.common.find(&kinds::SECRET, &info.namespace, &info.name);
                info.namespace.starts_with("seed-") && live.is_none_or(|live| has_shared_role(&live))
            }
            "namespaces" => {
                let live = self.common.find(&kinds::NAMESPACE, "", &info.name).unwrap_or_default();
                info.name.starts_with("garden-") && text(&live, "/metadata/labels/gardener.cloud~1role") == "project"
            }
            "clusterroles" | "rolebindings" => info.name.starts_with("gardener.cloud:extension:project:"),
            _ => false,
        };
        (!is_own).then(|| format!("request {} deletes what is not the program's: {}", info.number, info.path))
    }

    /// Users change finalizers by hand now: what the program did before is settled first.
    pub(super) fn before_hands(&self) {
        self.settle(&mut lock(&self.observed));
        lock(&self.observed).open.clear();
    }

    /// The program is kept from its work for a moment.
    pub(super) fn disturbed(&self) {
        lock(&self.observed).disturbed = Some(Instant::now());
    }

    /// Looks at all ties, after users changed something.
    pub(super) fn look(&self) {
        let mut observed = lock(&self.observed);
        self.settle(&mut observed);
        let revision = self.common.sim.revision();
        if std::mem::replace(&mut observed.revision, revision) != revision {
            let present = ties(&self.common);
            observed.since.retain(|tie, _| present.contains(tie));
            for tie in &present {
                if !observed.since.contains_key(tie) {
                    observed.since.insert(tie.clone(), Instant::now());
                }
            }
            let wrong: BTreeSet<String> = self.wrong_with(&present).into_iter().collect();
            observed.overdue.retain(|text, _| wrong.contains(text));
            for text in wrong {
                observed.overdue.entry(text).or_insert_with(Instant::now);
            }
        }
        if self.common.calm && observed.disturbed.is_none_or(|at| at.elapsed() > SOON) {
            let late = observed.overdue.iter().filter(|(_, since)| since.elapsed() > SOON);
            let late: Vec<_> = late.map(|(text, since)| format!("for {:?}: {text}", since.elapsed())).collect();
            observed.violations.extend(late);
        }
    }

    /// Returns what must not have happened. Requests that were not carried out do not count.
    pub(super) fn violations(&self) -> Vec<String> {
        self.look();
        let mut observed = lock(&self.observed);
        let suspicious = std::mem::take(&mut observed.suspicious);
        observed.violations.extend(done(&self.common, suspicious));
        std::mem::take(&mut observed.violations)
    }

    /// Returns which finalizers are not as the referrers say.
    pub(super) fn wrong(&self) -> Vec<String> {
        self.wrong_with(&ties(&self.common))
    }

    fn wrong_with(&self, ties: &BTreeSet<Tie>) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut judge = |kind: &Resource, live: &Value, finalizer: &str, is_guard: bool| {
            let place = Place::of(kind, live);
            let is_tied = ties.iter().any(|tie| tie.target == place && tie.finalizer == finalizer);
            let is_due = is_tied || (is_guard && !is_deleting(live));
            let is_held = has_finalizer(live, finalizer);
            // Nobody can give an object in deletion a finalizer.
            if is_due && !is_held && !is_deleting(live) {
                wrong.push(format!("{place:?} {} lacks {finalizer}", object::uid(live)));
            }
            if !is_due && is_held {
                wrong.push(format!("{place:?} {} keeps {finalizer}", object::uid(live)));
            }
        };
        for (kind, _) in GUARDED {
            for live in self.common.all(kind) {
                judge(kind, &live, finalizer_of(kind), true);
            }
        }
        let tied: BTreeSet<&Resource> = REFERENCED.into_iter().chain(CREDENTIALS).collect();
        for kind in tied {
            for live in self.common.all(kind) {
                for finalizer in finalizers_of(kind) {
                    judge(kind, &live, finalizer, false);
                }
            }
        }
        wrong
    }
}

/// Returns the texts about requests that were carried out.
pub(super) fn done(common: &Common, suspicious: Vec<(u64, String)>) -> Vec<String> {
    if suspicious.is_empty() {
        return Vec::new();
    }
    let is_done = |request: &Recorded| request.code.is_some_and(|code| (200..300).contains(&code));
    let done: BTreeSet<u64> =
        common.sim.requests().into_iter().filter(is_done).map(|request| request.info.number).collect();
    suspicious.into_iter().filter(|(number, _)| done.contains(number)).map(|(_, text)| text).collect()
}

/// Returns the plural of a kind with its group, as requests name it.
pub(super) fn concerns(info: &RequestInfo, kind: &Resource) -> bool {
    let dot = if info.group.is_empty() { "" } else { "." };
    format!("{}{dot}{}", info.resource, info.group) == resource(kind)
}
