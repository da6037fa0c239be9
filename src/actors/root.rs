//! The tree: starts the routers in every replica, and the controllers in the leader; stops them in order.
//!
//! Adding a controller: its folder, and a line in [`Root::lead`] and [`Root::stop`].

use std::{
    cell::RefCell,
    pin::pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use cluster::{ApiError, Cluster, Context, Record, Recorder, Resource, Router, RouterOptions, Start, StoreState};
use futures::future::select;
use kit::{Activity, Deadline, Env, Lane, Listening, Role, Signal};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::managed_resource::{
    controller::{self, Inputs, Running, Settings},
    known::{
        secrets::{SecretIndex, SecretRecord},
        snapshot::BundleRecord,
    },
};
use crate::api::{
    config::ClusterIdSource,
    object::{self, NamespacedName},
};

/// After an event of a CustomResourceDefinition it takes the server some 30 ms until the kind is served (measured).
const ESTABLISHING: Duration = Duration::from_millis(150);

/// How long passes get to end by themselves at shutdown, before their writes are cut off (contract rule 10).
pub const PATIENCE: Duration = Duration::from_secs(4);

/// Controllers that exist; names as in [`crate::api::config::Config::enabled_controllers`].
pub const CONTROLLERS: [&str; 3] = [controller::NAME, controller::HEALTH_NAME, controller::PROGRESS_NAME];

/// What the tree is built from.
pub struct Parts {
    /// The source cluster.
    pub source: Cluster,
    /// The target cluster; a clone of the source where both are the same.
    pub target: Cluster,
    /// Whether both are the same.
    pub same: bool,
    /// Settings of the ManagedResource controller; the cluster id is filled in by [`Root::lead`].
    pub managed_resource: Settings,
    /// Where the cluster id comes from.
    pub cluster_id: ClusterIdSource,
}

/// The running tree.
pub struct Root {
    env: Env,
    parts: Parts,
    bundles: Router<BundleRecord>,
    secrets: Router<SecretRecord>,
    definitions: Router<Definition>,
    services: Router<Definition>,
    index: SecretIndex,
    recorder: Recorder,
    running: RefCell<Option<Rc<Running>>>,
    source_synced: Synced,
    target_synced: Synced,
    _listening: [Listening; 3],
    /// Discovery of both clusters, and the recorder.
    tasks: Vec<JoinHandle<()>>,
}

/// What is kept of a CustomResourceDefinition or an APIService: its name says which group it is about.
#[derive(Clone, Debug)]
struct Definition {
    uid: Arc<str>,
    version: u64,
}

/// The cluster id cannot be found out (spec 70 §14).
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    /// The ConfigMap cannot be read.
    #[error(
        "failed during bootstrapping: unable to determine cluster id: cannot determine cluster identity from configmap: {0}"
    )]
    ConfigMap(#[source] ApiError),
    /// The ConfigMap has no such key.
    #[error(
        "failed during bootstrapping: unable to determine cluster id: cannot determine cluster identity from configmap: no cluster-identity entry"
    )]
    NoEntry,
}

/// How far the stores of one cluster have come, readable from any thread.
#[derive(Clone, Default)]
pub struct Synced {
    stores: Vec<SyncedStore>,
}

type SyncedStore = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

// === impl Root ===

impl Root {
    /// Starts the routers.
    pub fn start(parts: Parts, env: &Env) -> Self {
        let mut tasks = vec![actix::spawn(parts.source.discovery().clone().run())];
        if !parts.same {
            tasks.push(actix::spawn(parts.target.discovery().clone().run()));
        }
        let index = SecretIndex::default();
        let bundles = watch_bundles(&parts.source, env);
        let secrets = watch_secrets(&parts.source, &index, env);
        let following = index.clone();
        bundles.subscribe(move |change| {
            let references = change.new.map_or(&[][..], |record| &record.head().mr.spec.secret_refs);
            let namespace = &change.name.namespace;
            let secrets = references.iter().map(|reference| NamespacedName::new(namespace, &reference.name));
            following.set(change.name, secrets.collect());
        });
        let definitions = watch_definitions(&parts.target, env);
        let services = watch_services(&parts.target, env);
        let recorder = Recorder::new(&parts.source, controller::NAME);
        tasks.push(actix::spawn(recorder.clone().run()));
        let ((of_bundles, first), (of_secrets, second)) = (synced(&bundles), synced(&secrets));
        let (of_definitions, third) = synced(&definitions);
        let root = env.census.enter("root", Role::Root);
        root.update(env.clock.wall(), |cell| {
            cell.activity = Activity::Idle;
            cell.line = "routers run; controllers wait for leadership".to_owned();
        });
        Self {
            env: env.clone(),
            parts,
            bundles,
            secrets,
            definitions,
            services,
            index,
            recorder,
            running: RefCell::default(),
            source_synced: Synced { stores: vec![of_bundles, of_secrets] },
            target_synced: Synced { stores: vec![of_definitions] },
            _listening: [first, second, third],
            tasks,
        }
    }

    /// Starts the controllers: this process is the leader now.
    ///
    /// # Errors
    /// If the cluster id cannot be found out.
    pub async fn lead(&self) -> Result<(), BootstrapError> {
        let cluster_id = self.cluster_id().await?;
        tracing::info!(cluster_id = %cluster_id, "Using cluster id");
        let settings = Settings { cluster_id, ..self.parts.managed_resource.clone() };
        let definitions = self.definitions.clone();
        let inputs = Inputs {
            source: self.parts.source.clone(),
            target: self.parts.target.clone(),
            bundles: self.bundles.clone(),
            secrets: self.secrets.clone(),
            index: self.index.clone(),
            recorder: self.recorder.clone(),
            is_custom: Rc::new(move |resource| {
                let name = NamespacedName::new("", format!("{}.{}", resource.plural, resource.group));
                definitions.store().with(&name, |_| ()).is_some()
            }),
        };
        self.running.replace(Some(Rc::new(controller::start(settings, inputs, &self.env))));
        self.env.census.enter("root", Role::Root).update(self.env.clock.wall(), |cell| {
            cell.line = "leads".to_owned();
        });
        Ok(())
    }

    /// Stops controllers, then routers (contract rule 10); passes get `patience` to end by themselves. True if all did.
    pub async fn stop(&self, patience: Duration) -> bool {
        let running = self.running.borrow_mut().take();
        let finished = match running {
            Some(running) => running.stop(patience).await,
            None => true,
        };
        self.bundles.stop();
        self.secrets.stop();
        self.definitions.stop();
        self.services.stop();
        self.env.census.leave("root");
        finished
    }

    /// Writes the Events that are still waiting, and ends the tree's last tasks.
    pub async fn flush_events(&self, deadline: Deadline) {
        self.recorder.flush(deadline).await;
        self.tasks.iter().for_each(JoinHandle::abort);
    }

    /// Records Events in the source cluster.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// How far the stores of the source cluster have come.
    pub fn source_synced(&self) -> Synced {
        self.source_synced.clone()
    }

    /// How far the stores of the target cluster have come. Stores that come and go with bundles do not count.
    pub fn target_synced(&self) -> Synced {
        self.target_synced.clone()
    }

    /// Waits until the stores of the source cluster have had their first list.
    pub async fn source_listed(&self) {
        loop {
            let moments = [self.bundles.signal().moment(), self.secrets.signal().moment()];
            if self.source_synced.check().is_ok() {
                return;
            }
            let [bundles, secrets] = moments.each_ref().map(Signal::raised_after);
            select(pin!(bundles), pin!(secrets)).await;
        }
    }

    async fn cluster_id(&self) -> Result<String, BootstrapError> {
        let optional = match &self.parts.cluster_id {
            ClusterIdSource::Literal(id) => return Ok(id.clone()),
            ClusterIdSource::Required => false,
            ClusterIdSource::Optional => true,
        };
        tracing::info!("Trying to get cluster id from cluster");
        let config_maps = Resource::new("", "v1", "ConfigMap", "configmaps", true);
        let deadline = Deadline::after(Duration::from_secs(30));
        let context = Context { lane: Lane::Live, deadline, key: "cluster-identity".into() };
        let read = self.parts.source.get(&context, &config_maps.at("kube-system", "cluster-identity")).await;
        match read {
            Ok(found) => match found.pointer("/data/cluster-identity").and_then(Value::as_str) {
                Some(id) => Ok(id.to_owned()),
                None if optional => Ok(String::new()),
                None => Err(BootstrapError::NoEntry),
            },
            Err(error) if optional && error.is_not_found() => Ok(String::new()),
            Err(error) => Err(BootstrapError::ConfigMap(error)),
        }
    }
}

// === routers ===

fn scopes(cluster: &Cluster) -> Vec<Option<String>> {
    match cluster.options().namespaces.as_slice() {
        [] => vec![None],
        namespaces => namespaces.iter().cloned().map(Some).collect(),
    }
}

fn watch_bundles(source: &Cluster, env: &Env) -> Router<BundleRecord> {
    let resource = Resource::new("resources.gardener.cloud", "v1alpha1", "ManagedResource", "managedresources", true);
    let options = RouterOptions {
        name: "source/managedresources".to_owned(),
        resource,
        scopes: scopes(source),
        label_selector: None,
        metadata_only: false,
        start: Start::List,
        record: Box::new(BundleRecord::of),
        keep: Box::new(|_| true),
    };
    Router::start(source, options, env)
}

fn watch_secrets(source: &Cluster, index: &SecretIndex, env: &Env) -> Router<SecretRecord> {
    let index = index.clone();
    let options = RouterOptions {
        name: "source/secrets".to_owned(),
        resource: Resource::new("", "v1", "Secret", "secrets", true),
        scopes: scopes(source),
        label_selector: None,
        metadata_only: true,
        start: Start::Now,
        record: Box::new(SecretRecord::of),
        keep: Box::new(move |secret| index.contains(secret)),
    };
    Router::start(source, options, env)
}

fn watch_definitions(target: &Cluster, env: &Env) -> Router<Definition> {
    let resource =
        Resource::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false);
    // `plural.group`
    watch_names("target/customresourcedefinitions", target, resource, env)
}

fn watch_services(target: &Cluster, env: &Env) -> Router<Definition> {
    let resource = Resource::new("apiregistration.k8s.io", "v1", "APIService", "apiservices", false);
    // `version.group`
    watch_names("target/apiservices", target, resource, env)
}

/// Watches objects whose names end in an API group, and has discovery look at that group when one changes.
fn watch_names(name: &str, cluster: &Cluster, resource: Resource, env: &Env) -> Router<Definition> {
    let options = RouterOptions {
        name: name.to_owned(),
        resource,
        scopes: vec![None],
        label_selector: None,
        metadata_only: true,
        start: Start::List,
        record: Box::new(Definition::of),
        keep: Box::new(|_| true),
    };
    let router = Router::start(cluster, options, env);
    let cluster = cluster.clone();
    router.subscribe(move |change| {
        if change.how == cluster::How::First {
            return;
        }
        if let Some((_, group)) = change.name.name.split_once('.') {
            let (cluster, group) = (cluster.clone(), group.to_owned());
            actix::spawn(async move {
                tokio::time::sleep(ESTABLISHING).await;
                cluster.discovery().refresh_requested(&group);
            });
        }
    });
    router
}

// === impl Definition ===

impl Definition {
    fn of(object: &Value) -> Option<Self> {
        let version = object::resource_version(object).parse().unwrap_or_default();
        Some(Self { uid: object::uid(object).into(), version })
    }
}

impl Record for Definition {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn version(&self) -> u64 {
        self.version
    }
}

// === impl Synced ===

impl Synced {
    /// Whether all stores have had their first list; else why not.
    ///
    /// # Errors
    /// The reason of the first store that has not.
    pub fn check(&self) -> Result<(), String> {
        self.stores.iter().try_for_each(|store| store())
    }

    /// Adds the store of a router.
    pub(crate) fn add<R: Record>(&mut self, router: &Router<R>) -> Listening {
        let (store, listening) = synced(router);
        self.stores.push(store);
        listening
    }

    /// The stores of both.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.stores.extend(other.stores);
        self
    }
}

/// Whether a router's store has had its first list. A watch that fails later does not count: liveness would restart a
/// process that is as good as the next one, because its cluster is away (spec 70 trap 10).
fn synced<R: Record>(router: &Router<R>) -> (SyncedStore, Listening) {
    let (store, name) = (router.store().clone(), router.resource().to_string());
    let listed = Arc::new(AtomicBool::new(false));
    let listening = router.signal().listen({
        let (listed, store) = (listed.clone(), store.clone());
        move || {
            if store.state() == StoreState::Synced {
                listed.store(true, Ordering::Relaxed);
            }
        }
    });
    let check = move || match store.state() {
        StoreState::Synced => Ok(()),
        StoreState::Off => Err(format!("{name}: not watched any more")),
        _ if listed.load(Ordering::Relaxed) => Ok(()),
        StoreState::Starting => Err(format!("{name}: the first list is under way")),
        StoreState::Failing(error) => Err(format!("{name}: {error}")),
    };
    (Arc::new(check), listening)
}
