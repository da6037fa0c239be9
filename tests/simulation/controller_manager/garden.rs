//! The world of a test: a simulated garden cluster with custom resources, and all controllers in it.

use std::{cell::RefCell, future::Future, rc::Rc, time::Duration};

use cluster::{AnswerRoom, ClusterEnv, Fence, NoObserver, Resource, object};
use gardener_resource_manager::{
    api::{config::controller_manager::Config, kinds},
    programs::controller_manager::{ControllerManager, GardenLink},
};
use jiff::SignedDuration;
use kit::{
    ActorState, Env, StatusRegistry,
    testing::{self, Universe, eventually},
};
use process::{Clusters, Program as _, Root, metrics::Metrics};
use serde_json::{Value, json};
use sim::{ClientOptions, Process, Recorded, Sim, SimOptions};

/// The user of the program.
const PROGRAM: &str = "gcm";

/// The kinds of Gardener in the garden cluster, and whether they have a status subresource.
const KINDS: [(Resource, bool); 20] = [
    (kinds::SHOOT, true),
    (kinds::SEED, true),
    (kinds::CLOUD_PROFILE, true),
    (kinds::NAMESPACED_CLOUD_PROFILE, true),
    (kinds::SECRET_BINDING, false),
    (kinds::CREDENTIALS_BINDING, false),
    (kinds::QUOTA, false),
    (kinds::EXPOSURE_CLASS, false),
    (kinds::CONTROLLER_REGISTRATION, false),
    (kinds::CONTROLLER_INSTALLATION, true),
    (kinds::CONTROLLER_DEPLOYMENT, false),
    (kinds::PROJECT, true),
    (kinds::BACKUP_BUCKET, true),
    (kinds::BACKUP_ENTRY, true),
    (kinds::WORKLOAD_IDENTITY, false),
    (kinds::INTERNAL_SECRET, false),
    (kinds::BASTION, true),
    (kinds::MANAGED_SEED, true),
    (kinds::MANAGED_SEED_SET, true),
    (kinds::SHOOT_STATE, false),
];

pub(super) struct Garden {
    pub(super) sim: Sim,
    pub(super) config: RefCell<Config>,
    pub(super) metrics: Metrics,
    universe: Universe,
    program: RefCell<Option<Root<ControllerManager>>>,
    /// A second replica, which believes to lead, too.
    second: RefCell<Option<Root<ControllerManager>>>,
}

/// Runs a test in its own garden, in which the controllers are not yet started.
pub(super) fn garden<F: Future>(test: impl FnOnce(Rc<Garden>) -> F) -> F::Output {
    garden_of(1, test)
}

/// As [`garden`], with a seed of all that is random.
pub(super) fn garden_of<F: Future>(seed: u64, test: impl FnOnce(Rc<Garden>) -> F) -> F::Output {
    let paused = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a paused runtime")
    };
    testing::universe_on(paused, seed, |universe| async move {
        let options = SimOptions::new(universe.env.clock.clone(), universe.env.random.clone());
        let sim = Sim::new(SimOptions { latency: Duration::from_millis(1), ..options });
        for (kind, has_status) in &KINDS {
            sim.put(definition(kind, *has_status)).expect("the definition");
        }
        for namespace in ["default", "garden", "a", "b", "kube-system", "gardener-system-seed-lease"] {
            sim.put(object(&kinds::NAMESPACE, "", namespace, json!({}))).expect("the namespace");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        sim.clear_requests();
        let metrics =
            Metrics::new(ControllerManager::METRICS, ControllerManager::CLUSTERS, "v1", StatusRegistry::default());
        let (config, program, second) = (RefCell::default(), RefCell::default(), RefCell::default());
        let garden = Rc::new(Garden { sim, config, metrics, universe, program, second });
        let result = test(garden.clone()).await;
        garden.sim.clear_faults();
        garden.sim.clear_event_faults();
        garden.stop().await;
        garden.check_requests();
        result
    })
}

impl Garden {
    pub(super) async fn start(&self) {
        let env = Env { observers: Rc::new(self.metrics.clone()), ..self.universe.env.clone() };
        let program = self.open(&env).await;
        self.program.replace(Some(program));
    }

    /// Starts a second replica, which believes to lead, too.
    pub(super) async fn start_second(&self) {
        // It has its own status registry, because the paths of the actors are equal.
        let env = Env { status_registry: StatusRegistry::default(), ..self.universe.env.clone() };
        let program = self.open(&env).await;
        self.second.replace(Some(program));
    }

    async fn open(&self, env: &Env) -> Root<ControllerManager> {
        let client = self.sim.client_of(ClientOptions {
            user: PROGRAM.into(),
            groups: vec!["system:masters".into()],
            user_agent: "gardener-controller-manager/test".into(),
            process: Process::new(),
        });
        let cluster_env = ClusterEnv {
            clock: env.clock.clone(),
            random: env.random.clone(),
            fence: Fence::open(),
            room: AnswerRoom::default(),
        };
        let clusters = Clusters::new(env, cluster_env, ControllerManager::NAME, Rc::new(NoObserver))
            .with_events(ControllerManager::EVENTS, "host");
        let mut config = self.config.borrow().clone();
        config.garden_client_connection.qps = -1.0; // no bucket delays requests
        let link = GardenLink { client, host: "simulator".into(), context: None };
        let root = Root::open(Rc::new(config), link, env, clusters);
        root.watch();
        root.start_controllers().await.expect("the version is new enough");
        root
    }

    /// Returns the environment of its programs.
    pub(super) fn env(&self) -> &Env {
        &self.universe.env
    }

    /// Stops all replicas.
    pub(super) async fn stop(&self) {
        let programs = [self.program.take(), self.second.take()];
        for program in programs.into_iter().flatten() {
            program.stop(Duration::from_secs(4)).await;
            testing::settle().await;
        }
    }

    /// Stops the second replica.
    pub(super) async fn stop_second(&self) {
        let program = self.second.take();
        if let Some(program) = program {
            program.stop(Duration::from_secs(4)).await;
            testing::settle().await;
        }
    }

    /// Starts the controllers and lets them do all that is to do. Requests are counted from then on.
    pub(super) async fn settled(&self) {
        self.start().await;
        self.settle().await;
        self.sim.clear_requests();
    }

    /// Lets the controllers do all that they do within ten seconds.
    pub(super) async fn settle(&self) {
        tokio::time::sleep(Duration::from_secs(10)).await;
    }

    /// Lets another client act every few milliseconds for a minute.
    pub(super) async fn minute_beside(&self, mut act: impl FnMut()) {
        let end = tokio::time::Instant::now() + Duration::from_secs(60);
        while tokio::time::Instant::now() < end {
            act();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Returns the time in so many seconds, as texts of the API write it.
    pub(super) fn time(&self, seconds: i64) -> String {
        (self.universe.env.clock.wall() + SignedDuration::from_secs(seconds)).to_string()
    }

    /// Makes the wall clock jump by so many seconds.
    pub(super) fn jump(&self, seconds: i64) {
        self.universe.env.clock.jump(SignedDuration::from_secs(seconds));
    }

    /// Changes a stored object, as another program would.
    pub(super) fn edit(&self, kind: &Resource, namespace: &str, name: &str, change: impl FnOnce(&mut Value)) {
        assert!(self.sim.edit(&resource(kind), namespace, name, change), "{kind} {name} exists");
    }

    pub(super) fn put(&self, object: Value) {
        self.sim.put(object).expect("it is valid");
    }

    pub(super) fn find(&self, kind: &Resource, namespace: &str, name: &str) -> Option<Value> {
        self.sim.object(&resource(kind), namespace, name)
    }

    pub(super) fn finalizers(&self, kind: &Resource, namespace: &str, name: &str) -> Vec<String> {
        let object = self.find(kind, namespace, name).unwrap_or_default();
        object::finalizers(&object).map(str::to_owned).collect()
    }

    pub(super) async fn delete(&self, kind: &Resource, namespace: &str, name: &str) {
        self.ask("DELETE", kind, namespace, name, None).await.expect("it is deleted");
    }

    /// Deletes an object that may be gone by then.
    pub(super) async fn delete_if_found(&self, kind: &Resource, namespace: &str, name: &str) {
        drop(self.ask("DELETE", kind, namespace, name, None).await);
    }

    pub(super) async fn patch(&self, kind: &Resource, namespace: &str, name: &str, patch: Value) {
        self.ask("PATCH", kind, namespace, name, Some(patch)).await.expect("it is patched");
    }

    async fn ask(
        &self,
        method: &str,
        kind: &Resource,
        namespace: &str,
        name: &str,
        body: Option<Value>,
    ) -> Result<Value, String> {
        let path = kind.at(namespace, name).path(None).expect("a valid name");
        self.request(method, &path, body).await
    }

    /// Serves a kind of Gardener.
    pub(super) fn serve(&self, kind: &Resource) {
        let has_status = KINDS.iter().any(|(it, has_status)| it == kind && *has_status);
        self.put(definition(kind, has_status));
    }

    /// Serves a kind of Gardener without its status subresource.
    pub(super) fn serve_without_status(&self, kind: &Resource) {
        self.put(definition(kind, false));
    }

    /// Serves a kind of Gardener no longer, from now on.
    pub(super) fn withdraw(&self, kind: &Resource) {
        let definition = self.sim.remove("customresourcedefinitions.apiextensions.k8s.io", "", &resource(kind));
        assert!(definition.is_some(), "{kind} is served");
    }

    async fn request(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value, String> {
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder().method(method).uri(path).header("content-type", media).body(body);
        let client = self.sim.client_as("user", "kubectl/v1");
        client.request(request.expect("a well-formed request")).await.map_err(|error| error.to_string())
    }

    /// Waits up to five seconds of virtual time.
    pub(super) async fn soon(&self, what: &str, condition: impl FnMut() -> bool) {
        eventually(what, Duration::from_secs(5), condition).await;
    }

    pub(super) async fn gone(&self, kind: &Resource, namespace: &str, name: &str) {
        self.soon(&format!("{kind} {name} is gone"), || self.find(kind, namespace, name).is_none()).await;
    }

    /// Returns type, action and note of the Events with this reason about an object, oldest first.
    pub(super) fn events(&self, kind: &Resource, name: &str, reason: &str) -> Vec<(String, String, String)> {
        let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let is_meant = |event: &&Value| {
            let regarding = &event["regarding"];
            event["reason"] == reason && regarding["kind"] == *kind.kind && regarding["name"] == name
        };
        let events = self.sim.objects("events.events.k8s.io");
        let told = |event: &Value| (text(event, "type"), text(event, "action"), text(event, "note"));
        events.iter().filter(is_meant).map(told).collect()
    }

    /// Returns the row of an actor on the dashboard; `None` if there is no such actor.
    pub(super) fn row(&self, path: &str) -> Option<ActorState> {
        self.universe.env.status_registry.actor(path)
    }

    /// Returns the value of a series of the program's own metrics, named without their prefix; `None` if it does not exist.
    pub(super) fn metric(&self, series: &str) -> Option<f64> {
        let series = format!("gardener_controller_manager_{series} ");
        self.metrics.render().lines().find_map(|line| line.strip_prefix(&series)?.parse().ok())
    }

    /// Returns the program's requests since the last [`Self::settled`].
    pub(super) fn requests(&self) -> Vec<Recorded> {
        self.sim.requests().into_iter().filter(|request| request.info.user == PROGRAM).collect()
    }

    /// Returns the program's requests except watches, Events and discovery, as `verb resource name`.
    pub(super) fn asked(&self) -> Vec<String> {
        let counts = |request: &&Recorded| {
            let info = &request.info;
            info.verb != "watch" && !info.resource.is_empty() && info.resource != "events"
        };
        let requests = self.requests();
        let brief = |request: &Recorded| {
            let info = &request.info;
            format!("{} {} {}", info.verb, info.resource, info.name).trim_end().to_owned()
        };
        requests.iter().filter(counts).map(brief).collect()
    }

    /// Returns those of [`Self::asked`] that concern this plural: the main controller of Projects asks for others, too.
    pub(super) fn asked_for(&self, plural: &str) -> Vec<String> {
        self.asked().into_iter().filter(|request| request.split(' ').nth(1) == Some(plural)).collect()
    }

    /// Returns the metric of how often a controller has reconciled, by result.
    pub(super) fn reconciles(&self, controller: &str) -> Vec<String> {
        let text = self.metrics.render();
        let label = format!("controller=\"{controller}\"");
        let is_meant = |line: &&str| line.starts_with("controller_runtime_reconcile_total{") && line.contains(&label);
        let reconciles: Vec<_> = text.lines().filter(is_meant).map(str::to_owned).collect();
        assert!(!reconciles.is_empty(), "there is a controller {controller}");
        reconciles
    }

    /// Checks what holds for all requests of all controllers: spec 80 §10 A1 and A2. Only `managedseedset` and the controllers
    /// of installations try a field selector, and do without it (spec 86 §8, spec 85 §5).
    fn check_requests(&self) {
        for request in self.requests() {
            let info = &request.info;
            assert_ne!(info.content_type, "application/strategic-merge-patch+json", "{info:?}");
            let tried = match &*info.resource {
                "shoots" => "fieldSelector=spec.seedName%3D",
                "controllerinstallations" => "fieldSelector=spec.registrationRef.name%3D",
                _ => "none",
            };
            let is_tried = info.query.contains(tried);
            assert!(is_tried || !info.query.contains("fieldSelector"), "{info:?}");
        }
    }
}

/// The finalizer of ControllerInstallations.
pub(super) const INSTALLATIONS: &str = "core.gardener.cloud/controllerregistration";

/// The label with the status of a Shoot.
pub(super) const STATUS_LABEL: &str = "shoot.gardener.cloud/status";

/// Returns an object of a kind with these fields. A Shoot has the label of a healthy one. Shoots, Seeds and
/// ControllerRegistrations have the finalizer of ControllerInstallations. So nobody writes to them.
pub(super) fn object(kind: &Resource, namespace: &str, name: &str, fields: Value) -> Value {
    let mut object = fields;
    if *kind == kinds::SHOOT && object["metadata"]["labels"].is_null() {
        object["metadata"]["labels"] = json!({ STATUS_LABEL: "healthy" });
    }
    if [kinds::SHOOT, kinds::SEED, kinds::CONTROLLER_REGISTRATION].contains(kind) {
        let finalizers = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
        let with_ours = finalizers.into_iter().filter(|other| other != INSTALLATIONS).chain([INSTALLATIONS.into()]);
        object["metadata"]["finalizers"] = with_ours.collect();
    }
    object["apiVersion"] = kind.api_version().into();
    object["kind"] = (*kind.kind).into();
    object["metadata"]["name"] = name.into();
    if kind.namespaced {
        object["metadata"]["namespace"] = namespace.into();
    }
    object
}

/// Returns the resource as for kubectl.
pub(super) fn resource(kind: &Resource) -> String {
    if kind.group.is_empty() { kind.plural.to_string() } else { format!("{}.{}", kind.plural, kind.group) }
}

/// Returns the definition of a kind as in spec 87 §2.
fn definition(kind: &Resource, has_status: bool) -> Value {
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let scope = if kind.namespaced { "Namespaced" } else { "Cluster" };
    let singular = kind.kind.to_lowercase();
    let mut version = json!({
        "name": &*kind.version, "served": true, "storage": true,
        "schema": { "openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": { "spec": any, "status": any },
        } },
    });
    if has_status {
        version["subresources"] = json!({ "status": {} });
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": resource(kind) },
        "spec": {
            "group": &*kind.group, "scope": scope, "versions": [version],
            "names": {
                "kind": &*kind.kind, "listKind": format!("{}List", kind.kind),
                "plural": &*kind.plural, "singular": singular,
            },
        },
    })
}
