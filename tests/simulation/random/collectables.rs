//! Collectable ConfigMaps, and Pods that refer to them, come and go. No object is deleted that is young, or that was
//! referred to for longer than a run takes. Finally all old unused objects are gone.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gardener_resource_manager::api::config::resource_manager::GarbageCollector;
use serde_json::{Value, json};
use sim::{RequestInfo, Sim};
use tokio::time::Instant;

use crate::world::{NAMESPACE, World};

/// ConfigMaps `g0` to `g3`, Pods `h0` to `h2`.
const NUMBERS: u8 = 4;
const PERIOD: Duration = Duration::from_secs(60);
/// A run may take as long as its period, and the kit waits 10 s more; a delayed request is executed 1.5 s later.
const RUN: Duration = Duration::from_secs(75);
const SHORT_RUN: Duration = Duration::from_secs(2);
/// Younger objects are kept: ten minutes, by a creation time without fractions of seconds.
const YOUNG: f64 = 599.0;

#[derive(Clone)]
pub(super) struct Collectables {
    observed: Arc<Mutex<Observed>>,
    random: Arc<Mutex<fastrand::Rng>>,
    sim: Sim,
    calm: bool,
}

#[derive(Default)]
struct Observed {
    holders: BTreeMap<String, String>,
    since: BTreeMap<String, Instant>,
    made: BTreeMap<String, Instant>,
    asked: BTreeMap<String, f64>,
    ahead: i64,
    violations: Vec<String>,
}

impl Collectables {
    pub(super) fn new(world: &World, seed: u64, calm: bool) -> Self {
        world.config.borrow_mut().controllers.garbage_collector =
            GarbageCollector { sync_period: PERIOD.into() }.into();
        let random = Arc::new(Mutex::new(fastrand::Rng::with_seed(seed ^ 0x5eed_0005)));
        Self { observed: Arc::default(), random, sim: world.sim.clone(), calm }
    }

    fn observed(&self) -> MutexGuard<'_, Observed> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_collected(info: &RequestInfo) -> bool {
        info.verb == "delete" && info.resource == "configmaps" && info.name.starts_with('g')
    }

    pub(super) fn see(&self, info: &RequestInfo) {
        if !Self::is_collected(info) {
            return;
        }
        let mut observed = self.observed();
        let run = if self.calm { SHORT_RUN } else { RUN };
        let is_used = observed.since.get(&info.name).is_some_and(|since| since.elapsed() > run);
        if is_used {
            observed.violations.push(format!("{} is deleted although it is in use", info.name));
        }
        // Whether the deletion is executed shows later: the name may belong to another object by now.
        if let Some(made) = observed.made.get(&info.name) {
            let age = observed.age(*made);
            observed.asked.insert(info.name.clone(), age);
        }
    }

    pub(super) fn jump(&self, seconds: i64) {
        self.observed().ahead += seconds;
    }

    /// Seconds by which the program's clock is ahead of the server's.
    pub(super) fn ahead(&self) -> i64 {
        self.observed().ahead
    }

    pub(super) fn act(&self) -> String {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let mut texts = Vec::new();
        for _ in 0..random.u8(1..4) {
            let number = random.u8(0..NUMBERS);
            texts.push(match random.bool() {
                true => self.change_map(&format!("g{number}"), &mut random),
                false => self.change_pod(&format!("h{}", number % 3), &mut random),
            });
        }
        texts.join("; ")
    }

    fn put(&self, kind: &str, name: &str, mut object: Value) {
        (object["apiVersion"], object["kind"]) = (json!("v1"), json!(kind));
        (object["metadata"]["namespace"], object["metadata"]["name"]) = (json!(NAMESPACE), json!(name));
        self.sim.put(object).expect("it is valid");
    }

    fn change_map(&self, name: &str, random: &mut fastrand::Rng) -> String {
        if self.sim.object("configmaps", NAMESPACE, name).is_some() {
            if random.bool() {
                self.sim.edit("configmaps", NAMESPACE, name, |live| {
                    live["data"] = json!({ "a": random.u32(..).to_string() })
                });
                return format!("ConfigMap {name} changes");
            }
            self.sim.remove("configmaps", NAMESPACE, name);
            self.observed().forget(name);
            return format!("ConfigMap {name} goes");
        }
        let mut metadata = json!({ "labels": { "resources.gardener.cloud/garbage-collectable-reference": "true" } });
        let is_new = random.u8(0..3) == 0;
        self.observed().forget(name);
        if is_new {
            self.observed().made.insert(name.to_owned(), Instant::now());
        } else {
            metadata["creationTimestamp"] = json!("2029-01-01T00:00:00Z");
        }
        self.put("ConfigMap", name, json!({ "metadata": metadata }));
        format!("ConfigMap {name} comes, new: {is_new}")
    }

    fn change_pod(&self, name: &str, random: &mut fastrand::Rng) -> String {
        if self.sim.object("pods", NAMESPACE, name).is_some() {
            self.sim.remove("pods", NAMESPACE, name);
            let mut observed = self.observed();
            let released = observed.holders.remove(name);
            let still: BTreeSet<String> = observed.holders.values().cloned().collect();
            observed.since.retain(|map, _| still.contains(map));
            return format!("Pod {name} releases {released:?}");
        }
        let map = format!("g{}", random.u8(0..NUMBERS));
        let annotations = json!({ "reference.resources.gardener.cloud/configmap-x": map });
        let spec = json!({ "containers": [{ "name": "c", "image": "i" }] });
        self.put("Pod", name, json!({ "metadata": { "annotations": annotations }, "spec": spec }));
        let mut observed = self.observed();
        observed.since.entry(map.clone()).or_insert_with(Instant::now);
        observed.holders.insert(name.to_owned(), map.clone());
        format!("Pod {name} refers to ConfigMap {map}")
    }

    pub(super) fn violations(&self) -> Vec<String> {
        let mut observed = self.observed();
        let is_gone = |name: &&String| self.sim.object("configmaps", NAMESPACE, name).is_none();
        let gone: Vec<String> = observed.made.keys().filter(is_gone).cloned().collect();
        for name in gone {
            observed.made.remove(&name);
            if observed.asked.remove(&name).is_some_and(|age| age < YOUNG) {
                observed.violations.push(format!("{name} is deleted although it is young"));
            }
        }
        std::mem::take(&mut observed.violations)
    }

    pub(super) fn wrong(&self) -> Vec<String> {
        let observed = self.observed();
        let names = (0..NUMBERS).map(|number| format!("g{number}"));
        let is_left = |name: &String| {
            let may_be_young =
                observed.made.get(name).is_some_and(|made| observed.age(*made) < YOUNG + 3.0 * PERIOD.as_secs_f64());
            let is_there = self.sim.object("configmaps", NAMESPACE, name).is_some();
            is_there && !may_be_young && !observed.since.contains_key(name)
        };
        names.filter(is_left).collect()
    }
}

impl Observed {
    fn forget(&mut self, name: &str) {
        self.made.remove(name);
        self.asked.remove(name);
    }

    fn age(&self, made: Instant) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "some hours")]
        let ahead = self.ahead as f64;
        made.elapsed().as_secs_f64() + ahead
    }
}
