//! The tree: opens the watches in every replica, and the controllers in the leader; stops them in order.
//!
//! Adding a controller: its folder, and a line in [`Root::lead`] and [`Root::stop`].

use std::{cell::RefCell, pin::pin, rc::Rc, sync::Arc, time::Duration};

use futures::future::select;
use serde_json::Value;
use tokio::task::JoinHandle;

use super::managed_resource::{
    controller::{self, Inputs, Running, Settings},
    secrets::SecretRecord,
    snapshot::BundleRecord,
};
use crate::{
    actors::kit::{Activity, Deadline, Env, Lane, Role, Signal},
    api::{
        config::ClusterIdSource,
        object::{self, NamespacedName},
    },
    cluster::{ApiError, Cluster, Context, How, Index, Record, Recorder, Resource, Synced, Want, Watch, Watches},
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
    of_source: Watches,
    of_target: Watches,
    bundles: Watch<BundleRecord>,
    secrets: Watch<SecretRecord>,
    definitions: Watch<Definition>,
    /// Which ManagedResources reference which Secret.
    index: Index<NamespacedName>,
    recorder: Recorder,
    running: RefCell<Option<Rc<Running>>>,
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

// === impl Root ===

impl Root {
    /// Opens the watches and starts them.
    pub fn start(parts: Parts, env: &Env) -> Self {
        let root = Self::open(parts, env);
        root.watch();
        root
    }

    /// Opens the watches. Nothing is asked of a cluster before [`Self::watch`]: others may open theirs, and share streams.
    pub fn open(parts: Parts, env: &Env) -> Self {
        let mut tasks = vec![actix::spawn(parts.source.discovery().clone().run())];
        if !parts.same {
            tasks.push(actix::spawn(parts.target.discovery().clone().run()));
        }
        let of_source = Watches::new(&parts.source, env);
        let of_target =
            if parts.same { of_source.as_side(&parts.target) } else { Watches::new(&parts.target, env) };
        let bundles = of_source.open(Want::new(managed_resources(), BundleRecord::of));
        let index = bundles.index(|name, bundle| secrets_of(&name.namespace, bundle));
        let secrets = watch_secrets(&of_source, &index);
        // `plural.group`
        let definitions = watch_names(&of_target, Want::new(definitions(), Definition::of));
        // `version.group`; a server without aggregation has none, and is as good.
        watch_names(&of_target, Want::new(api_services(), Definition::of).unawaited());
        let recorder = Recorder::new(&parts.source, controller::NAME);
        tasks.push(actix::spawn(recorder.clone().run()));
        let root = env.census.enter("root", Role::Root);
        root.update(env.clock.wall(), |cell| {
            cell.activity = Activity::Idle;
            cell.line = "watches run; controllers wait for leadership".to_owned();
        });
        Self {
            env: env.clone(),
            parts,
            of_source,
            of_target,
            bundles,
            secrets,
            definitions,
            index,
            recorder,
            running: RefCell::default(),
            tasks,
        }
    }

    /// Starts the watches.
    pub fn watch(&self) {
        self.of_source.start();
        self.of_target.start();
    }

    /// The watches of the source cluster.
    pub fn watches_of_source(&self) -> &Watches {
        &self.of_source
    }

    /// The watches of the target cluster.
    pub fn watches_of_target(&self) -> &Watches {
        &self.of_target
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

    /// Stops controllers, then watches (contract rule 10); passes get `patience` to end by themselves. True if all did.
    pub async fn stop(&self, patience: Duration) -> bool {
        let running = self.running.borrow_mut().take();
        let finished = match running {
            Some(running) => running.stop(patience).await,
            None => true,
        };
        self.of_source.stop();
        self.of_target.stop();
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
        self.of_source.synced()
    }

    /// How far the stores of the target cluster have come. Stores that come and go with bundles do not count.
    pub fn target_synced(&self) -> Synced {
        self.of_target.synced()
    }

    /// Waits until the stores of the source cluster have had their first list.
    pub async fn source_listed(&self) {
        loop {
            let moments = [self.bundles.signal().moment(), self.secrets.signal().moment()];
            if self.of_source.synced().check().is_ok() {
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

// === watches ===

fn managed_resources() -> Resource {
    Resource::new("resources.gardener.cloud", "v1alpha1", "ManagedResource", "managedresources", true)
}

fn definitions() -> Resource {
    Resource::new("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false)
}

fn api_services() -> Resource {
    Resource::new("apiregistration.k8s.io", "v1", "APIService", "apiservices", false)
}

/// The Secrets that a ManagedResource references.
fn secrets_of(namespace: &str, bundle: &BundleRecord) -> Vec<NamespacedName> {
    let references = &bundle.head().mr.spec.secret_refs;
    references.iter().map(|reference| NamespacedName::new(namespace, &reference.name)).collect()
}

/// Watches the versions of those Secrets that somebody references.
fn watch_secrets(watches: &Watches, index: &Index<NamespacedName>) -> Watch<SecretRecord> {
    let (resource, index) = (Resource::new("", "v1", "Secret", "secrets", true), index.clone());
    let want = Want::new(resource, SecretRecord::of).metadata().from_now();
    watches.open(want.keeping(move |secret| index.contains(secret)))
}

/// Watches objects whose names end in an API group, and has discovery look at that group when one changes.
fn watch_names(watches: &Watches, want: Want<Definition>) -> Watch<Definition> {
    let watch = watches.open(want.metadata().everywhere());
    let cluster = watches.cluster().clone();
    watch.subscribe(move |change| {
        if change.how == How::First {
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
    watch
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
