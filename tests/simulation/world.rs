//! The world of a test: one simulated cluster, and the program in it (or two, of different classes).

use std::{
    cell::{Cell, RefCell, RefMut},
    collections::BTreeMap,
    future::Future,
    rc::Rc,
    sync::LazyLock,
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use cluster::{AnswerRoom, ClusterEnv, Fence, NoObserver, kubeconfig::ContextOfFile};
use gardener_resource_manager::{
    api::{
        config::resource_manager::{Config, ManagedResourceController},
        resources::crd,
    },
    programs::resource_manager::{Link, Links, ResourceManager},
};
use kit::{
    ActorState, Env, Observers, StatusRegistry, Unobserved,
    testing::{self, Universe},
};
use process::{Clusters, Program as _, Root};
use serde_json::{Value, json};
use sim::{ClientOptions, Process, Recorded, Sim, SimOptions};

pub(crate) const NAMESPACE: &str = "shoot";

/// Read once: thousands of worlds need it.
static DEFINITION: LazyLock<Value> =
    LazyLock::new(|| serde_saphyr::from_str(crd::MANAGED_RESOURCES).expect("the definition is YAML"));

/// The user of the program, unless a test starts several programs.
pub(crate) const PROGRAM: &str = "grm";

pub(crate) struct World {
    pub(crate) universe: Universe,
    pub(crate) sim: Sim,
    pub(crate) config: RefCell<Config>,
    /// Whether the program is configured with two clusters, as in a shoot; both are the simulated cluster.
    pub(crate) separate: Cell<bool>,
    pub(crate) target: RefCell<Option<Sim>>,
    pub(crate) ca: RefCell<Rc<[u8]>>,
    /// What a program that starts reports its metrics to.
    pub(crate) observers: RefCell<Rc<dyn Observers>>,
    programs: RefCell<BTreeMap<String, Program>>,
}

struct Program {
    root: Root<ResourceManager>,
    fence: Fence,
    process: Process,
    status_registry: StatusRegistry,
}

/// Runs a test in its own world, in which the program is not yet started.
pub(crate) fn world<F: Future>(seed: u64, test: impl FnOnce(Rc<World>) -> F) -> F::Output {
    world_with(seed, Duration::from_millis(1), test)
}

pub(crate) fn world_with<F: Future>(seed: u64, latency: Duration, test: impl FnOnce(Rc<World>) -> F) -> F::Output {
    let paused = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a paused runtime")
    };
    testing::universe_on(paused, seed, |universe| async move {
        let options = SimOptions::new(universe.env.clock.clone(), universe.env.random.clone());
        let sim = Sim::new(SimOptions { latency, ..options });
        sim.put(namespace(NAMESPACE)).expect("the namespace");
        sim.put(DEFINITION.clone()).expect("the definition");
        tokio::time::sleep(Duration::from_secs(1)).await;
        sim.clear_requests();
        let world = Rc::new(World {
            universe,
            sim,
            config: RefCell::new(config()),
            separate: Cell::default(),
            target: RefCell::default(),
            ca: RefCell::default(),
            observers: RefCell::new(Rc::new(Unobserved)),
            programs: RefCell::default(),
        });
        let result = test(world.clone()).await;
        world.sim.clear_faults();
        while let Some(user) = world.running() {
            world.stop_as(&user).await;
        }
        result
    })
}

/// The configuration of most tests: an empty file, without leader election.
pub(crate) fn config() -> Config {
    Config::default()
}

impl World {
    pub(crate) async fn start(&self) {
        let config = self.config.borrow().clone();
        self.start_as(PROGRAM, config).await;
    }

    pub(crate) fn managed_resource(&self) -> RefMut<'_, ManagedResourceController> {
        RefMut::map(self.config.borrow_mut(), |config| &mut config.controllers.managed_resource)
    }

    pub(crate) async fn start_as(&self, user: &str, config: Config) {
        // Each has its own status registry, because the paths of their actors are equal.
        let shared = &self.universe.env;
        let status_registry = if user == PROGRAM { shared.status_registry.clone() } else { StatusRegistry::default() };
        let env = &Env { status_registry, observers: self.observers.borrow().clone(), ..shared.clone() };
        let process = Process::new();
        let client_of = |sim: &Sim| {
            sim.client_of(ClientOptions {
                user: user.into(),
                groups: vec!["system:masters".into()],
                user_agent: "gardener-resource-manager/test".into(),
                process: process.clone(),
            })
        };
        let client = client_of(&self.sim);
        let of_other = self.target.borrow().as_ref().map(client_of);
        let fence = Fence::open();
        let cluster_env = ClusterEnv {
            clock: env.clock.clone(),
            random: env.random.clone(),
            fence: fence.clone(),
            room: AnswerRoom::default(),
        };
        // No bucket delays requests; rates have tests of their own.
        let mut config = config;
        (config.source.qps, config.target.qps) = (-1.0, -1.0);
        let context = ContextOfFile { kubeconfig: "/kubeconfig".into(), context: "test".into() };
        let context = Some(context);
        let link =
            |client| Link { client, host: "simulator".into(), context: context.clone(), ca: self.ca.borrow().clone() };
        let separate = self.separate.get() || of_other.is_some();
        let target = separate.then(|| link(of_other.unwrap_or_else(|| client.clone())));
        let links = Links { source: link(client), target };
        let clusters = Clusters::new(env, cluster_env, ResourceManager::NAME, Rc::new(NoObserver));
        let root = Root::open(Rc::new(config), links, env, clusters);
        root.watch();
        root.start_controllers().await.expect("the cluster id is given");
        self.programs
            .borrow_mut()
            .insert(user.to_owned(), Program { root, fence, process, status_registry: env.status_registry.clone() });
    }

    pub(crate) async fn stop(&self) {
        self.stop_as(PROGRAM).await;
    }

    pub(crate) async fn stop_as(&self, user: &str) {
        let program = self.programs.borrow_mut().remove(user);
        if let Some(program) = program {
            program.root.stop(Duration::from_secs(4)).await;
            testing::settle().await;
        }
    }

    pub(crate) async fn restart_as(&self, user: &str) {
        self.stop_as(user).await;
        let config = self.config.borrow().clone();
        self.start_as(user, config).await;
    }

    /// Kills the program: none of its requests is answered any more, and its state is lost.
    pub(crate) async fn crash(&self) {
        self.crash_as(PROGRAM).await;
    }

    pub(crate) async fn crash_as(&self, user: &str) {
        let program = self.programs.borrow_mut().remove(user);
        if let Some(program) = program {
            program.process.crash();
            program.fence.shut("the program crashed");
            program.root.stop(Duration::ZERO).await;
            testing::settle().await;
        }
    }

    pub(crate) fn is_crashed(&self) -> bool {
        self.is_crashed_as(PROGRAM)
    }

    pub(crate) fn is_crashed_as(&self, user: &str) -> bool {
        self.programs.borrow().get(user).is_some_and(|program| program.process.is_crashed())
    }

    /// Takes the lease from a program, which continues and must not write any more.
    pub(crate) fn depose(&self, user: &str) {
        if let Some(program) = self.programs.borrow().get(user) {
            program.fence.shut("the leader election lease is lost");
        }
    }

    pub(crate) fn synced(&self) -> Result<(), String> {
        let programs = self.programs.borrow();
        let root = &programs.get(PROGRAM).expect("the program runs").root;
        root.synced().check()
    }

    pub(crate) fn actors_of(&self, user: &str) -> Vec<ActorState> {
        self.programs.borrow().get(user).map(|program| program.status_registry.snapshot()).unwrap_or_default()
    }

    pub(crate) async fn revive(&self) {
        if self.is_crashed() {
            self.crash().await;
            self.start().await;
        }
    }

    fn running(&self) -> Option<String> {
        self.programs.borrow().keys().next().cloned()
    }

    /// Adds a cluster that is the target of the program's next start. It serves no ManagedResources.
    pub(crate) fn other_target(&self) -> Sim {
        let env = &self.universe.env;
        let sim = Sim::new(SimOptions::new(env.clock.clone(), env.random.clone()));
        self.target.replace(Some(sim.clone()));
        sim
    }

    pub(crate) fn secret(&self, name: &str, manifests: &[Value]) {
        self.secret_data(name, &[("objects.yaml", stream(manifests).as_bytes())]);
    }

    pub(crate) fn secret_data(&self, name: &str, data: &[(&str, &[u8])]) {
        let data: BTreeMap<_, _> = data.iter().map(|(key, value)| (*key, BASE64_STANDARD.encode(value))).collect();
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": NAMESPACE, "name": name }, "data": data
        });
        if !self.sim.edit("secrets", NAMESPACE, name, |live| live["data"] = secret["data"].clone()) {
            self.sim.put(secret).expect("a Secret");
        }
    }

    pub(crate) fn bundle(&self, name: &str, manifests: &[Value]) {
        self.bundle_with(name, manifests, json!({}));
    }

    pub(crate) fn bundle_with(&self, name: &str, manifests: &[Value], spec: Value) {
        self.secret(name, manifests);
        self.sim.put(managed_resource(name, &[name], spec)).expect("a ManagedResource");
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value, String> {
        let client = self.sim.client_as("user", "kubectl/v1");
        let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = http::Request::builder().method(method).uri(path).header("content-type", media).body(body);
        client.request(request.expect("a well-formed request")).await.map_err(|error| error.to_string())
    }

    pub(crate) async fn delete_bundle(&self, name: &str) {
        self.ask("DELETE", &mr_path(name), None).await.expect("it is deleted");
    }

    pub(crate) async fn patch_bundle(&self, name: &str, patch: Value) {
        self.ask("PATCH", &mr_path(name), Some(patch)).await.expect("it is patched");
    }

    pub(crate) fn mr(&self, name: &str) -> Option<Value> {
        self.sim.object("managedresources.resources.gardener.cloud", NAMESPACE, name)
    }

    pub(crate) fn config_map(&self, name: &str) -> Option<Value> {
        self.sim.object("configmaps", NAMESPACE, name)
    }

    pub(crate) fn value(&self, name: &str) -> Option<String> {
        let value = |object: &Value| object["data"]["k"].as_str().map(str::to_owned);
        self.sim.look_at("configmaps", NAMESPACE, name, value)?
    }

    /// Reads from the ManagedResource, which may be too large to copy each time.
    fn look_at_mr<T>(&self, name: &str, look: impl FnOnce(&Value) -> T) -> Option<T> {
        self.sim.look_at("managedresources.resources.gardener.cloud", NAMESPACE, name, look)
    }

    pub(crate) fn condition(&self, name: &str, kind: &str) -> Option<(String, String, String)> {
        self.look_at_mr(name, |mr| condition(mr, kind))?
    }

    /// Whether the ManagedResource is applied in its present generation, with these Secrets.
    pub(crate) fn is_applied(&self, name: &str) -> bool {
        let applied = self.look_at_mr(name, |mr| {
            let condition = condition(mr, "ResourcesApplied");
            condition.is_some_and(|(status, reason, _)| status == "True" && reason == "ApplySucceeded")
                && mr["status"]["observedGeneration"] == mr["metadata"]["generation"]
        });
        applied.unwrap_or(false)
    }

    pub(crate) async fn applied(&self, name: &str) {
        self.eventually(&format!("{name} is applied"), || self.is_applied(name)).await;
    }

    pub(crate) fn refs(&self, name: &str) -> Vec<String> {
        let refs = self.mr(name).map(|mr| mr["status"]["resources"].clone()).unwrap_or_default();
        refs.as_array().into_iter().flatten().map(|r| r["name"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Waits up to five minutes for a condition. Revives a crashed program. A failure prints the ManagedResources.
    pub(crate) async fn eventually(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let end = tokio::time::Instant::now() + Duration::from_secs(300);
        let mut seen = None;
        loop {
            self.revive().await;
            // Only a change of the cluster can make it true.
            if seen.replace(self.sim.revision()) != Some(self.sim.revision()) && condition() {
                return;
            }
            if tokio::time::Instant::now() >= end {
                let mrs = self.sim.objects("managedresources.resources.gardener.cloud");
                let actors = self.universe.env.status_registry.snapshot();
                let recent: Vec<_> = self.requests().into_iter().rev().take(30).map(|r| brief(&r)).collect();
                panic!("not within five minutes: {what}\n{mrs:#?}\n{actors:#?}\n{recent:#?}");
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.sim.requests().into_iter().filter(|request| request.info.user == PROGRAM).collect()
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.requests().iter().map(brief).collect()
    }

    /// The program's writes so far, as `verb resource[/subresource] name`.
    pub(crate) fn writes(&self) -> Vec<String> {
        let write = |request: &&Recorded| !matches!(request.info.verb.as_str(), "get" | "list" | "watch");
        self.requests().iter().filter(write).map(brief).collect()
    }
}

pub(crate) fn brief(request: &Recorded) -> String {
    let info = &request.info;
    let subresource = if info.subresource.is_empty() { String::new() } else { format!("/{}", info.subresource) };
    format!("{} {}{subresource} {}", info.verb, info.resource, info.name).trim_end().to_owned()
}

fn condition(mr: &Value, kind: &str) -> Option<(String, String, String)> {
    let condition = mr["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)?;
    let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    Some((text("status"), text("reason"), text("message")))
}

pub(crate) async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// Manifests as a JSON stream, which is quicker to read than YAML.
pub(crate) fn stream(manifests: &[Value]) -> String {
    manifests.iter().map(|manifest| format!("{manifest}\n")).collect()
}

pub(crate) fn config_map(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "namespace": NAMESPACE, "name": name }, "data": { "k": value }
    })
}

pub(crate) fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

pub(crate) fn managed_resource(name: &str, secrets: &[&str], mut spec: Value) -> Value {
    spec["secretRefs"] = secrets.iter().map(|secret| json!({ "name": secret })).collect();
    json!({
        "apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
        "metadata": { "namespace": NAMESPACE, "name": name }, "spec": spec
    })
}

pub(crate) fn mr_path(name: &str) -> String {
    format!("/apis/resources.gardener.cloud/v1alpha1/namespaces/{NAMESPACE}/managedresources/{name}")
}
