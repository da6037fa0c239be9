//! Gardenlets that are alive or silent, BackupBuckets and ControllerInstallations, and the conditions that follow.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use cluster::object;
use gardener_resource_manager::api::kinds;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{
    common::{Common, condition, lock, one_of, parse, text},
    seeds::SEEDS,
    users::Step,
};

const LEASES: &str = "gardener-system-seed-lease";
const READY: &str = "GardenletReady";
const SILENT: &str = "Gardenlet stopped posting status updates.";
const NO_HEARTBEAT: &str = "Gardenlet stopped sending heartbeats.";
/// No jump of the clock reaches so far.
const FAR: i64 = 10_000_000;
/// Longer than the thresholds of conditions, and than Shoots wait after their gardenlet.
const LONGEST: SignedDuration = SignedDuration::from_secs(300);
const INSTALLED: [(&str, &str); 4] =
    [("Valid", "True"), ("Installed", "True"), ("Healthy", "True"), ("Progressing", "False")];

#[derive(Clone)]
pub(super) struct SeedConditions {
    common: Common,
    observed: Arc<Mutex<Observed>>,
}

#[derive(Default)]
struct Observed {
    /// uids of Seeds whose gardenlet is alive.
    alive: BTreeSet<String>,
}

impl SeedConditions {
    pub(super) fn new(common: &Common) -> Self {
        Self { common: common.clone(), observed: Arc::default() }
    }

    pub(super) fn act(&self, random: &mut fastrand::Rng) -> Step {
        let (common, seed) = (&self.common, one_of(random, &SEEDS));
        let name = one_of(random, &["o0", "o1"]);
        match random.u8(0..10) {
            0..=2 => self.come_alive(seed),
            3 => self.fall_silent(seed, random),
            4 | 5 => {
                let error = if random.bool() { json!({ "description": "broken" }) } else { Value::Null };
                let fields = json!({ "spec": { "seedName": seed }, "status": { "lastError": error } });
                common.set(&kinds::BACKUP_BUCKET, "", name, fields);
                Step::new(format!("BackupBucket {name} of {seed}: {error}"))
            }
            6 => Step::deleting(&kinds::BACKUP_BUCKET, "", name),
            7 | 8 => {
                let is_broken = random.bool();
                let state = |(kind, good): (&str, &'static str)| {
                    let status = if is_broken && kind == "Healthy" { "False" } else { good };
                    json!({ "type": kind, "status": status, "reason": "R", "message": "m" })
                };
                let conditions: Vec<_> = INSTALLED.into_iter().map(state).collect();
                let fields = json!({ "spec": { "seedRef": { "name": seed } }, "status": { "conditions": conditions } });
                common.set(&kinds::CONTROLLER_INSTALLATION, "", name, fields);
                Step::new(format!("ControllerInstallation {name} of {seed}, broken: {is_broken}"))
            }
            _ => Step::deleting(&kinds::CONTROLLER_INSTALLATION, "", name),
        }
    }

    fn beat(&self, seed: &str, seconds: i64) {
        let renewed = self.common.time(seconds);
        self.common.set(&kinds::LEASE, LEASES, seed, json!({ "spec": { "renewTime": renewed } }));
    }

    /// First the Lease, then the condition.
    fn come_alive(&self, seed: &str) -> Step {
        let Some(live) = self.common.find(&kinds::SEED, "", seed) else { return Step::new("no Seed comes alive") };
        self.beat(seed, FAR);
        let time = self.common.time(0);
        let ready = json!({
            "type": READY, "status": "True", "reason": "GardenletReady", "message": "m",
            "lastTransitionTime": time, "lastUpdateTime": time,
        });
        self.common.sim.edit("seeds.core.gardener.cloud", "", seed, |live| {
            let mut conditions = live["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.retain(|condition| condition["type"] != READY);
            conditions.push(ready);
            live["status"]["conditions"] = json!(conditions);
        });
        lock(&self.observed).alive.insert(object::uid(&live).to_owned());
        Step::new(format!("the gardenlet of {seed} is alive"))
    }

    fn fall_silent(&self, seed: &str, random: &mut fastrand::Rng) -> Step {
        let Some(live) = self.common.find(&kinds::SEED, "", seed) else { return Step::new("no Seed falls silent") };
        lock(&self.observed).alive.remove(object::uid(&live));
        if random.u8(0..4) == 0 {
            self.common.remove(&kinds::LEASE, LEASES, seed);
        } else {
            self.beat(seed, -FAR);
        }
        if random.bool() {
            self.common.create(&kinds::MANAGED_SEED, "garden", seed, json!({}));
            let expired = self.common.time(-FAR);
            self.common.sim.edit("seeds.core.gardener.cloud", "", seed, |live| {
                live["status"]["clientCertificateExpirationTimestamp"] = json!(expired);
            });
        }
        Step::new(format!("the gardenlet of {seed} is silent"))
    }

    /// The word of a gardenlet that is alive stands at each moment.
    pub(super) fn violations(&self) -> Vec<String> {
        let observed = lock(&self.observed);
        let alive = self.common.all(&kinds::SEED).into_iter().filter(|seed| observed.alive.contains(object::uid(seed)));
        let denied =
            alive.filter(|seed| condition(seed, "/status/conditions", READY).is_none_or(|it| it["status"] != "True"));
        denied.map(|seed| format!("the gardenlet of {} is alive: {}", object::name(&seed), seed["status"])).collect()
    }

    pub(super) fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for seed in self.common.all(&kinds::SEED) {
            let name = object::name(&seed).to_owned();
            let status_of = |kind: &str| {
                condition(&seed, "/status/conditions", kind).map(|condition| text(condition, "/status").to_owned())
            };
            let mut expect = |kind: &str, allowed: &[Option<&str>]| {
                let status = status_of(kind);
                let is_progressing = status.as_deref() == Some("Progressing") && self.is_young(&seed, kind);
                if !allowed.contains(&status.as_deref()) && !is_progressing {
                    wrong.push(format!("{kind} of {name} is {status:?} and not {allowed:?}"));
                }
            };
            expect("BackupBucketsReady", &self.buckets_of(&name));
            expect("ExtensionsReady", &self.installations_of(&name));
            self.judge_gardenlet(&seed, &mut wrong);
        }
        wrong
    }

    /// Returns true if the clock shows less than five minutes since the status of a condition changed: it may have jumped.
    fn is_young(&self, seed: &Value, kind: &str) -> bool {
        let changed = condition(seed, "/status/conditions", kind).map(|it| text(it, "/lastTransitionTime"));
        changed.and_then(parse).is_some_and(|changed| changed + LONGEST > self.common.wall())
    }

    fn buckets_of(&self, seed: &str) -> Vec<Option<&'static str>> {
        let buckets = self.common.all(&kinds::BACKUP_BUCKET).into_iter();
        let mut errors = buckets
            .filter(|bucket| text(bucket, "/spec/seedName") == seed)
            .map(|bucket| !bucket["status"]["lastError"].is_null());
        match errors.next() {
            None => vec![None, Some("Unknown")],
            Some(first) => vec![Some(if first || errors.any(|error| error) { "False" } else { "True" })],
        }
    }

    fn installations_of(&self, seed: &str) -> Vec<Option<&'static str>> {
        let installations = self.common.all(&kinds::CONTROLLER_INSTALLATION).into_iter();
        let is_healthy = |installation: &Value| {
            condition(installation, "/status/conditions", "Healthy").is_some_and(|healthy| healthy["status"] == "True")
        };
        let mut healthy = installations
            .filter(|it| text(it, "/spec/seedRef/name") == seed)
            .map(|installation| is_healthy(&installation));
        match healthy.next() {
            None => vec![None, Some("True")],
            Some(first) => vec![Some(if first && healthy.all(|healthy| healthy) { "True" } else { "False" })],
        }
    }

    /// A silent gardenlet is noticed, and so are its Shoots.
    fn judge_gardenlet(&self, seed: &Value, wrong: &mut Vec<String>) {
        let name = object::name(seed);
        let observed = lock(&self.observed);
        let is_silent = !observed.alive.contains(object::uid(seed));
        let has_conditions = !text(seed, "/status/conditions/0/type").is_empty();
        let marked = |object: &Value, kind: &str, message: &str| {
            condition(object, "/status/conditions", kind)
                .is_some_and(|it| it["status"] == "Unknown" && it["message"] == *message)
        };
        // A Lease may be left of an earlier Seed of this name.
        let renewed = self.common.find(&kinds::LEASE, LEASES, name);
        let renewed = renewed.and_then(|lease| parse(text(&lease, "/spec/renewTime")));
        let is_stale = renewed.is_none_or(|renewed| renewed < self.common.wall());
        if is_silent && is_stale && has_conditions {
            if !marked(seed, READY, SILENT) {
                wrong.push(format!("the gardenlet of {name} is silent: {}", seed["status"]));
            }
            let may_wait = self.is_young(seed, READY);
            for shoot in self.shoots_of(name).into_iter().filter(|_| !may_wait) {
                if !marked(&shoot, "SystemComponentsHealthy", NO_HEARTBEAT) {
                    wrong.push(format!("a Shoot of {name} is not marked: {shoot}"));
                }
            }
            let is_expired = !seed["status"]["clientCertificateExpirationTimestamp"].is_null();
            if let Some(managed) = self.common.find(&kinds::MANAGED_SEED, "garden", name).filter(|_| is_expired)
                && text(&managed, "/metadata/annotations/gardener.cloud~1operation") != "reconcile"
            {
                wrong.push(format!("ManagedSeed {name} is not reconciled: {managed}"));
            }
        }
    }

    fn shoots_of(&self, seed: &str) -> Vec<Value> {
        let shoots = self.common.all(&kinds::SHOOT).into_iter();
        shoots.filter(|shoot| text(shoot, "/status/seedName") == seed).collect()
    }
}
