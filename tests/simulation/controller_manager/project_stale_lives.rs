//! Random lives of Projects amid faults, with two leaders. A Project in use is never deleted, and an unused one goes at
//! last. The simulator's objects tell the truth. `SEED=17` replays a life, `SEEDS=5000` tries more of them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use cluster::Resource;
use gardener_resource_manager::api::kinds;
use jiff::Timestamp;
use serde_json::{Value, json};
use sim::{EventFault, Fault, Recorded, Seen, Sim, WatchEnd};
use tokio::time::Instant;

use super::{
    garden::{Garden, garden, object},
    guards::shoot,
    project_stale::resource,
};

const LIVES: u64 = 60;
const STEPS: usize = 60;

const PROJECTS: [&str; 3] = ["p0", "p1", "p2"];
/// Namespaces of bindings and their Shoots, besides those of the Projects.
const OTHERS: [&str; 2] = ["garden-x", "other"];

/// A use that began less than this before a DELETE may be newer than the live reads of the decision.
const IN_FLIGHT: Duration = Duration::from_secs(5);

/// Kinds whose events a watch may miss.
const UNSEEN: [&str; 6] = ["shoots", "secretbindings", "credentialsbindings", "secrets", "quotas", "backupentries"];

/// What was seen of each Project.
#[derive(Default)]
struct Watchman {
    /// Since when a Project is in use without a break.
    in_use: BTreeMap<&'static str, Instant>,
    /// DELETEs of Projects that must not be deleted, by number of the request.
    suspicious: Vec<(u64, String)>,
    /// The kind whose events are lost.
    unseen: Option<&'static str>,
    /// Of so many requests one fails or is late; 0: none.
    one_in: usize,
    /// For so many seconds activity protects a Project.
    lifetime: i64,
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % limit
    }

    fn one_of<T: Copy, const N: usize>(&mut self, of: [T; N]) -> T {
        of[self.below(N)]
    }
}

fn namespace_of(project: &str) -> String {
    format!("garden-{project}")
}

/// Returns true if a Shoot, a BackupEntry, or an object of a binding in use is in a namespace, or if the Namespace is
/// marked. It says the same as spec 82 D.5, in another way: from the Shoots to what they use.
fn is_in_use(sim: &Sim, namespace: &str) -> bool {
    let text = |object: &Value, pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("").to_owned();
    let mark = "/metadata/annotations/project.gardener.cloud~1skip-stale-check";
    let is_marked = sim.object("namespaces", "", namespace).is_some_and(|namespace| text(&namespace, mark) == "true");
    let shoots = sim.objects(&resource(&kinds::SHOOT));
    let entries = sim.objects(&resource(&kinds::BACKUP_ENTRY));
    if is_marked || shoots.iter().chain(&entries).any(|object| text(object, "/metadata/namespace") == namespace) {
        return true;
    }
    let exists = |kind: &Resource, at: &Value, own: &str| {
        let of = Some(text(at, "/namespace")).filter(|of| !of.is_empty()).unwrap_or(own.to_owned());
        of == namespace && sim.object(&resource(kind), &of, &text(at, "/name")).is_some()
    };
    shoots.iter().any(|shoot| {
        let own = text(shoot, "/metadata/namespace");
        let binding = |kind: &Resource, field: &str| sim.object(&resource(kind), &own, &text(shoot, field));
        let of_secret = binding(&kinds::SECRET_BINDING, "/spec/secretBindingName");
        let of_credentials = binding(&kinds::CREDENTIALS_BINDING, "/spec/credentialsBindingName");
        let has_secret = of_secret.iter().any(|binding| exists(&kinds::SECRET, &binding["secretRef"], &own));
        let has_credentials = of_credentials.iter().any(|binding| {
            let kind = match text(binding, "/credentialsRef/kind").as_str() {
                "InternalSecret" => kinds::INTERNAL_SECRET,
                "WorkloadIdentity" => kinds::WORKLOAD_IDENTITY,
                _ => kinds::SECRET,
            };
            exists(&kind, &binding["credentialsRef"], &own)
        });
        let bindings = of_secret.iter().chain(&of_credentials);
        let has_quota = |binding: &Value| {
            binding["quotas"].as_array().into_iter().flatten().any(|quota| exists(&kinds::QUOTA, quota, &own))
        };
        has_secret || has_credentials || bindings.into_iter().any(has_quota)
    })
}

impl Watchman {
    fn look(&mut self, sim: &Sim) {
        for project in PROJECTS {
            if is_in_use(sim, &namespace_of(project)) {
                self.in_use.entry(project).or_insert_with(Instant::now);
            } else {
                self.in_use.remove(project);
            }
        }
    }

    /// Returns why a Project must not be deleted now.
    fn objection(&self, sim: &Sim, name: &str, now: Timestamp) -> Option<String> {
        let (project, since) =
            self.in_use.get_key_value(name).map_or((name, None), |(name, since)| (*name, Some(since)));
        let in_use = since.filter(|since| since.elapsed() > IN_FLIGHT);
        if let Some(since) = in_use {
            return Some(format!("{project} is in use for {:?}", since.elapsed()));
        }
        let live = sim.object(&resource(&kinds::PROJECT), "", name)?;
        let active: Timestamp = live["status"]["lastActivityTimestamp"].as_str()?.parse().ok()?;
        let is_active = now.duration_since(active).as_secs() < self.lifetime;
        is_active.then(|| format!("{project} was active at {active}"))
    }
}

/// One life.
struct Life<'a> {
    garden: &'a Garden,
    random: Random,
    watchman: Arc<Mutex<Watchman>>,
    steps: Vec<String>,
}

impl Life<'_> {
    fn put_project(&mut self, name: &str) {
        let garden = self.garden;
        if garden.find(&kinds::PROJECT, "", name).is_some() {
            return;
        }
        let project = json!({
            "metadata": { "creationTimestamp": garden.time(-100 * 24 * 3600) }, "spec": { "namespace": namespace_of(name) },
        });
        garden.put(object(&kinds::PROJECT, "", name, project));
    }

    fn any_namespace(&mut self) -> String {
        match self.random.below(5) {
            number @ 0..3 => namespace_of(PROJECTS[number]),
            number => OTHERS[number - 3].to_owned(),
        }
    }

    fn toggle(&mut self, kind: &Resource, namespace: &str, name: &str, fields: Value) {
        let garden = self.garden;
        if garden.sim.remove(&resource(kind), namespace, name).is_none() {
            garden.put(object(kind, namespace, name, fields));
        }
    }

    fn change_shoot(&mut self) -> String {
        let namespace = self.any_namespace();
        let field = self.random.one_of(["secretBindingName", "credentialsBindingName"]);
        let binding = self.random.one_of(["b0", "b1"]);
        let shoot = shoot(&namespace, "s", json!({ field: binding }));
        match self.random.below(2) {
            0 => self.toggle(&kinds::SHOOT, &namespace, "s", shoot),
            _ => self.garden.put(shoot),
        }
        format!("Shoot {namespace} {field} {binding}")
    }

    fn change_binding(&mut self) -> String {
        let (namespace, to) = (self.any_namespace(), self.any_namespace());
        let name = self.random.one_of(["b0", "b1"]);
        let quota = json!([{ "name": "o", "namespace": self.any_namespace() }]);
        let (kind, mut fields) = match self.random.below(2) {
            0 => (kinds::SECRET_BINDING, json!({ "secretRef": { "name": "o", "namespace": to } })),
            _ => {
                let (version, kind) = self.random.one_of([
                    ("v1", "Secret"),
                    ("core.gardener.cloud/v1beta1", "InternalSecret"),
                    ("security.gardener.cloud/v1alpha1", "WorkloadIdentity"),
                ]);
                let reference = json!({ "apiVersion": version, "kind": kind, "name": "o", "namespace": to });
                (kinds::CREDENTIALS_BINDING, json!({ "credentialsRef": reference }))
            }
        };
        if self.random.below(2) == 0 {
            fields["quotas"] = quota;
        }
        let text = format!("{kind} {namespace}/{name} {fields}");
        match self.random.below(3) {
            0 => self.toggle(&kind, &namespace, name, fields),
            _ => self.garden.put(object(&kind, &namespace, name, fields)),
        }
        text
    }

    fn change_object(&mut self) -> String {
        let kinds = [&kinds::SECRET, &kinds::INTERNAL_SECRET, &kinds::WORKLOAD_IDENTITY, &kinds::QUOTA];
        let (kind, namespace) = (self.random.one_of(kinds), self.any_namespace());
        self.toggle(kind, &namespace, "o", json!({}));
        format!("{kind} {namespace}/o")
    }

    async fn act(&mut self) {
        let garden = self.garden;
        let name = self.random.one_of(PROJECTS);
        let step = match self.random.below(24) {
            0..=5 => self.change_shoot(),
            6..=9 => self.change_binding(),
            10..=13 => self.change_object(),
            14 => {
                self.toggle(&kinds::BACKUP_ENTRY, &namespace_of(name), "e", json!({}));
                format!("BackupEntry of {name}")
            }
            15 => {
                let mark = self.random.one_of([Some("true"), None]);
                garden.edit(&kinds::NAMESPACE, "", &namespace_of(name), |namespace| {
                    namespace["metadata"]["annotations"] = json!({ "project.gardener.cloud/skip-stale-check": mark });
                });
                format!("mark of {name}: {mark:?}")
            }
            16 | 17 => {
                let number = self.random.below(1000).to_string();
                let touch = |project: &mut Value| project["metadata"]["labels"] = json!({ "touched": number });
                let is_touched = garden.sim.edit(&resource(&kinds::PROJECT), "", name, touch);
                format!("touch {name}: {is_touched}")
            }
            18 => {
                let time = garden.time(0);
                let activity = |project: &mut Value| project["status"]["lastActivityTimestamp"] = json!(time);
                let is_active = garden.sim.edit(&resource(&kinds::PROJECT), "", name, activity);
                format!("activity of {name}: {is_active}")
            }
            19 | 20 => {
                let unseen = if self.random.below(3) == 0 { None } else { Some(self.random.one_of(UNSEEN)) };
                self.watchman.lock().expect("no panic").unseen = unseen;
                format!("unseen: {unseen:?}")
            }
            21 => {
                let end =
                    self.random.one_of([WatchEnd::Disconnect, WatchEnd::Close, WatchEnd::Hang, WatchEnd::Expired]);
                garden.sim.break_watches(end);
                format!("watches end: {end:?}")
            }
            22 => {
                garden.stop_second().await;
                garden.start_second().await;
                "the second leader starts again".to_owned()
            }
            _ => {
                garden.stop().await;
                garden.start().await;
                garden.start_second().await;
                "both leaders start again".to_owned()
            }
        };
        self.watchman.lock().expect("no panic").look(&garden.sim);
        self.steps.push(step);
        if self.random.below(2) == 0 {
            self.put_project(name);
            self.steps.push(format!("Project {name}"));
        }
    }
}

/// Fails some requests of the program, and checks each DELETE of a Project.
fn disturb(garden: &Garden, watchman: &Arc<Mutex<Watchman>>, seed: u64) {
    let (sim, seen, mut random) = (garden.sim.clone(), watchman.clone(), Random(seed ^ 0x5eed));
    let (begin, start): (Timestamp, Instant) = (garden.time(0).parse().expect("a time"), Instant::now());
    garden.sim.set_faults(move |info| {
        let mut watchman = seen.lock().expect("no panic");
        watchman.look(&sim);
        if info.user != "gcm" {
            return Fault::None;
        }
        if info.verb == "delete" && info.resource == "projects" {
            let now = begin + jiff::SignedDuration::try_from(start.elapsed()).expect("a short life");
            if let Some(objection) = watchman.objection(&sim, &info.name, now) {
                watchman.suspicious.push((info.number, objection));
            }
        }
        if watchman.one_in == 0 || random.below(watchman.one_in) != 0 {
            return Fault::None;
        }
        match random.below(6) {
            0 => Fault::FailBefore(Seen::internal_error("fault")),
            1 => Fault::FailAfterCommit(Seen::Disconnect),
            2 => Fault::Delay(Duration::from_millis(100)),
            3 => Fault::DelayAnswer(Duration::from_millis(100)),
            4 => Fault::FailBefore(Seen::unavailable()),
            _ => Fault::FailBefore(Seen::conflict(info)),
        }
    });
    let seen = watchman.clone();
    garden.sim.set_event_faults(move |event| match seen.lock().expect("no panic").unseen {
        Some(unseen) if event.resource == unseen => EventFault::Drop,
        Some(_) | None => EventFault::Deliver,
    });
}

/// Lives a life, and returns how many Projects were deleted.
fn live(seed: u64) -> usize {
    garden(|garden| async move {
        // In half of the lives a Project that is not in use is deleted at once; in the others activity protects it for a day.
        let lifetime = if seed.is_multiple_of(2) { 0 } else { 24 * 3600 };
        {
            let mut config = garden.config.borrow_mut();
            let project = &mut config.controllers.project;
            project.minimum_lifetime_days = lifetime / (24 * 3600);
            (project.stale_grace_period_days, project.stale_expiration_time_days) = (0, 0);
            project.stale_sync_period = Duration::from_secs(30).into();
        }
        for project in PROJECTS {
            garden.put(object(&kinds::NAMESPACE, "", &namespace_of(project), json!({})));
        }
        let watchman =
            Arc::new(Mutex::new(Watchman { one_in: [0, 30, 8][seed as usize % 3], lifetime, ..Watchman::default() }));
        disturb(&garden, &watchman, seed);
        let mut life = Life { garden: &garden, random: Random(seed), watchman: watchman.clone(), steps: Vec::new() };
        garden.start().await;
        garden.start_second().await;
        for _ in 0..STEPS {
            life.act().await;
            let pause = life.random.one_of([1, 20, 500, 3_000, 12_000, 40_000]);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        let steps = life.steps;

        // All is seen again: what is unused goes, what is in use stays.
        {
            let mut watchman = watchman.lock().expect("no panic");
            (watchman.unseen, watchman.one_in, watchman.lifetime) = (None, 0, 0);
        }
        garden.sim.break_watches(WatchEnd::Expired);
        tokio::time::sleep(Duration::from_secs(300)).await; // what was unseen is activity
        garden.jump(lifetime);
        tokio::time::sleep(Duration::from_secs(1500)).await;
        for project in PROJECTS {
            let live = garden.find(&kinds::PROJECT, "", project);
            let is_used = is_in_use(&garden.sim, &namespace_of(project));
            assert!(live.is_none() || is_used, "seed {seed}: {project} is unused and stays: {live:?} {steps:#?}");
            let is_stale = live.is_some_and(|live| !live["status"]["staleSinceTimestamp"].is_null());
            assert!(!is_stale, "seed {seed}: {project} is in use and stale: {steps:#?}");
        }
        let watchman = watchman.lock().expect("no panic");
        let requests = garden.requests();
        for (number, objection) in &watchman.suspicious {
            let code = requests.iter().find(|request| request.info.number == *number).and_then(|request| request.code);
            let is_refused = code.is_some_and(|code| code >= 400);
            assert!(is_refused, "seed {seed}: {objection}, and its deletion was answered with {code:?}: {steps:#?}");
        }
        let is_deletion = |request: &&Recorded| request.info.verb == "delete" && request.info.resource == "projects";
        requests.iter().filter(is_deletion).filter(|request| request.code == Some(200)).count()
    })
}

/// spec 82 D.5, D.6, traps D-T5; spec 80 §16 S-13
#[test]
fn random_lives_delete_no_project_in_use_and_no_active_one() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (first, end) = match number("SEED") {
        Some(seed) => (seed, seed + 1),
        None => (0, number("SEEDS").unwrap_or(LIVES)),
    };
    let deleted: usize = (first..end).map(live).sum();
    assert!(end - first == 1 || deleted as u64 > end, "only {deleted} Projects were deleted in {end} lives");
}
