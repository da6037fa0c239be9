//! Bastions and Events: each is deleted when its time has come, or its Shoot is gone, and not before.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use cluster::object;
use gardener_resource_manager::api::{config::controller_manager, kinds};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sim::RequestInfo;
use tokio::time::Instant;

use super::{
    common::{Common, is_deleting, lock, one_of, parse, text},
    users::Step,
    watchman::{concerns, done},
};
use crate::controller_manager::garden::Garden;

/// The default of `maxLifetime` of Bastions, and the configured time of Events.
const LIFETIME: SignedDuration = SignedDuration::from_hours(24);
const TTL: SignedDuration = SignedDuration::from_hours(1);
/// What is due for so long has been deleted.
const LATE: SignedDuration = SignedDuration::from_secs(60);

#[derive(Clone)]
pub(super) struct Small {
    common: Common,
    observed: Arc<Mutex<Observed>>,
}

#[derive(Default)]
struct Observed {
    /// When there was last a reason to delete a Bastion, by uid.
    justified: BTreeMap<String, Instant>,
    suspicious: Vec<(u64, String)>,
}

impl Small {
    pub(super) fn new(garden: &Garden, common: &Common) -> Self {
        garden.config.borrow_mut().controllers.event = Some(controller_manager::Event::default());
        Self { common: common.clone(), observed: Arc::default() }
    }

    pub(super) fn act(&self, random: &mut fastrand::Rng) -> Step {
        let (common, name) = (&self.common, one_of(random, &["o0", "o1", "o2"]));
        let namespace = one_of(random, &["a", "b"]);
        match random.u8(0..8) {
            0..=2 => {
                let spec = json!({
                    "shootRef": { "name": one_of(random, &["x", "y"]) }, "seedName": one_of(random, &["s0", "s1"]),
                });
                let created = common.time(-random.i64(0..90_000));
                let expires = if random.bool() { json!(common.time(random.i64(-10..20_000))) } else { Value::Null };
                let text = format!("Bastion {namespace}/{name}: {spec}, since {created}, until {expires}");
                let metadata = json!({ "creationTimestamp": created });
                let fields =
                    json!({ "metadata": metadata, "spec": spec, "status": { "expirationTimestamp": expires } });
                common.create(&kinds::BASTION, namespace, name, fields);
                Step::new(text)
            }
            3 => {
                let expires = common.time(3600);
                common.sim.edit("bastions.operations.gardener.cloud", namespace, name, |live| {
                    live["status"]["expirationTimestamp"] = json!(expires);
                });
                Step::new(format!("Bastion {namespace}/{name} is kept alive"))
            }
            4..=6 => {
                let regarding = match random.u8(0..4) {
                    0 => json!({ "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "name": "x" }),
                    _ => json!({ "apiVersion": "v1", "kind": "Secret", "name": "x" }),
                };
                let seen = common.time(random.i64(-7_200..0));
                let text = format!("Event {namespace}/{name} about {regarding}, seen {seen}");
                let fields = json!({ "regarding": regarding, "eventTime": seen });
                common.create(&kinds::EVENT, namespace, name, fields);
                Step::new(text)
            }
            _ => {
                let series = json!({ "count": 2, "lastObservedTime": common.time(0) });
                common.sim.edit("events.events.k8s.io", namespace, name, |live| live["series"] = series);
                Step::new(format!("Event {namespace}/{name} goes on"))
            }
        }
    }

    /// Looks for reasons to delete Bastions, after something changed.
    pub(super) fn look(&self) {
        let mut observed = lock(&self.observed);
        for bastion in self.common.all(&kinds::BASTION) {
            if self.reason(&bastion, self.common.wall()).is_some() {
                observed.justified.insert(object::uid(&bastion).to_owned(), Instant::now());
            }
        }
    }

    pub(super) fn see(&self, info: &RequestInfo) {
        if info.verb != "delete" {
            return;
        }
        if concerns(info, &kinds::BASTION)
            && let Some(live) = self.common.find(&kinds::BASTION, &info.namespace, &info.name)
            && self.reason(&live, self.common.latest_wall()).is_none()
        {
            let mut observed = lock(&self.observed);
            let justified = observed.justified.get(object::uid(&live));
            if justified.is_none_or(|at| at.elapsed() > self.common.lag()) {
                observed.suspicious.push((info.number, format!("a Bastion is deleted without a reason: {live}")));
            }
        }
        if info.resource == "events"
            && let Some(live) = self.common.find(&kinds::EVENT, &info.namespace, &info.name)
            && (is_of_shoot(&live) || last(&live) + TTL > self.common.latest_wall())
        {
            let text = format!("an Event is deleted before its time: {live}");
            lock(&self.observed).suspicious.push((info.number, text));
        }
    }

    /// Returns why a Bastion is to go (spec 81 A.3).
    fn reason(&self, bastion: &Value, now: Timestamp) -> Option<&'static str> {
        let shoot = self.common.find(&kinds::SHOOT, object::namespace(bastion), text(bastion, "/spec/shootRef/name"));
        let Some(shoot) = shoot else { return Some("its Shoot is gone") };
        if is_deleting(&shoot) {
            return Some("its Shoot is in deletion");
        }
        if text(&shoot, "/spec/seedName") != text(bastion, "/spec/seedName") {
            return Some("its Shoot was migrated");
        }
        if parse(text(bastion, "/status/expirationTimestamp")).is_some_and(|expires| expires <= now) {
            return Some("it is expired");
        }
        let created = parse(text(bastion, "/metadata/creationTimestamp"));
        created.is_some_and(|created| created + LIFETIME <= now).then_some("it is too old")
    }

    pub(super) fn violations(&self) -> Vec<String> {
        let suspicious = std::mem::take(&mut lock(&self.observed).suspicious);
        done(&self.common, suspicious)
    }

    pub(super) fn wrong(&self) -> Vec<String> {
        let now = self.common.wall() - LATE;
        let bastions = self.common.all(&kinds::BASTION).into_iter();
        let left = bastions.filter_map(|bastion| Some(format!("{}: {bastion}", self.reason(&bastion, now)?)));
        let events = self.common.all(&kinds::EVENT).into_iter();
        let old = events.filter(|event| !is_of_shoot(event) && last(event) + TTL <= now);
        left.chain(old.map(|event| format!("an Event is left: {event}"))).collect()
    }
}

/// Events are stored as they were written: in the form of `events.k8s.io`, or in that of core/v1.
fn is_of_shoot(event: &Value) -> bool {
    ["/regarding", "/involvedObject"].into_iter().any(|object| {
        let is_gardener = text(event, &format!("{object}/apiVersion")).starts_with("core.gardener.cloud/");
        is_gardener && text(event, &format!("{object}/kind")) == "Shoot"
    })
}

/// When an Event was last seen (spec 81 J rule 3).
fn last(event: &Value) -> Timestamp {
    let fields = [
        "/series/lastObservedTime",
        "/eventTime",
        "/deprecatedLastTimestamp",
        "/lastTimestamp",
        "/deprecatedFirstTimestamp",
        "/firstTimestamp",
        "/metadata/creationTimestamp",
    ];
    fields.into_iter().find_map(|field| parse(text(event, field))).expect("each object has a creation time")
}
