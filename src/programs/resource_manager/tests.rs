//! Processes on the simulated API server, on virtual time.

mod election;
mod probes;
mod shutdown;
mod start;
mod webhooks;

use std::{
    future::Future,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use cluster::NoObserver;
use kit::{
    Env, Fatal, StatusRegistry,
    testing::{self, Universe, universe},
};
use process::{
    GRACE_PERIOD, PATIENCE, Process, ProcessParts, Stopped, Vitals, http::probes::ProbeQuery, settings::LeaderElection,
};
use serde_json::{Value, json};
use sim::{ClientOptions, Fault, Seen, Sim, SimOptions};
use tokio::time::{Instant, sleep};

use super::{Link, Links, ResourceManager};
use crate::api::{config::resource_manager::Config, resources::crd};

const NAMESPACE: &str = "shoot";
const MANAGED_RESOURCES: &str = "managedresources.resources.gardener.cloud";
const LEASES: &str = "leases.coordination.k8s.io";
const LEASE_DURATION: Duration = Duration::from_secs(15);
const LIMIT: Duration = Duration::from_secs(60);

struct World {
    sim: Sim,
    env: Env,
}

struct Replica {
    process: Process<ResourceManager>,
    vitals: Vitals,
    life: sim::Process,
}

fn world<F: Future<Output = ()>>(test: impl FnOnce(World) -> F) {
    universe(1, |Universe { env }| async move {
        let options = SimOptions::new(env.clock.clone(), env.random.clone());
        let sim = Sim::new(SimOptions { latency: Duration::from_millis(1), ..options });
        sim.set_reviewer(|_| (true, String::new()));
        let definition: Value = serde_saphyr::from_str(crd::MANAGED_RESOURCES).unwrap();
        sim.put(definition).unwrap();
        sim.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})).unwrap();
        sleep(Duration::from_secs(1)).await;
        sim.clear_requests();
        test(World { sim, env }).await;
        testing::settle().await;
    });
}

fn elected() -> Config {
    let election = LeaderElection {
        leader_elect: true,
        lease_duration: LEASE_DURATION.into(),
        renew_deadline: Duration::from_secs(10).into(),
        retry_period: Duration::from_secs(2).into(),
        resource_lock: "leases".into(),
        resource_namespace: NAMESPACE.into(),
        resource_name: "grm".into(),
    };
    Config { leader_election: election, ..Config::default() }
}

impl World {
    fn start(&self, user: &str, config: Config) -> Replica {
        self.start_in(user, config, self.env.clone())
    }

    fn start_beside(&self, user: &str, config: Config) -> Replica {
        self.start_in(
            user,
            config,
            Env { status_registry: StatusRegistry::default(), fatal: Fatal::default(), ..self.env.clone() },
        )
    }

    fn start_in(&self, user: &str, config: Config, env: Env) -> Replica {
        let life = sim::Process::new();
        let client = self.sim.client_of(ClientOptions {
            user: user.into(),
            groups: vec!["system:masters".into()],
            user_agent: "gardener-resource-manager/test".into(),
            process: life.clone(),
        });
        let vitals = Vitals::new::<ResourceManager>();
        let parts = ProcessParts {
            links: Links {
                source: Link { client, host: "simulator:443".into(), context: None, ca: Rc::default() },
                target: None,
            },
            election: None,
            host: user.to_owned(),
            config: Rc::new(config),
            env,
            requests: Rc::new(NoObserver),
            vitals: vitals.clone(),
        };
        Replica { process: Process::start(parts).unwrap(), vitals, life }
    }

    fn bundle(&self, name: &str, value: &str) {
        let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": value},
            "metadata": {"name": name, "namespace": NAMESPACE}});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE},
            "data": {"object.yaml": BASE64_STANDARD.encode(manifest.to_string())}});
        let mr = json!({"apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
            "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"secretRefs": [{"name": name}]}});
        self.sim.put(secret).unwrap();
        self.sim.put(mr).unwrap();
    }

    fn is_applied(&self, name: &str) -> bool {
        let mr = self.sim.object(MANAGED_RESOURCES, NAMESPACE, name).unwrap_or_default();
        let mut conditions = mr["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|condition| condition["type"] == "ResourcesApplied" && condition["status"] == "True")
    }

    async fn applied(&self, name: &str) {
        testing::eventually(&format!("{name} is applied"), LIMIT, || self.is_applied(name)).await;
    }

    fn origin(&self, name: &str) -> Option<String> {
        let object = self.sim.object("configmaps", NAMESPACE, name)?;
        Some(object["metadata"]["annotations"]["resources.gardener.cloud/origin"].as_str()?.to_owned())
    }

    fn holder(&self) -> Option<String> {
        let lease = self.sim.object(LEASES, NAMESPACE, "grm")?;
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
        Some(holder.split('_').next().unwrap_or_default().to_owned())
    }

    async fn held_by(&self, user: &str) {
        testing::eventually(&format!("{user} leads"), LIMIT, || self.holder().as_deref() == Some(user)).await;
    }

    fn writes(&self, user: &str) -> usize {
        let requests = self.sim.requests().into_iter().map(|request| request.info);
        let work = requests.filter(|info| {
            info.user == user
                && !matches!(info.verb.as_str(), "get" | "list" | "watch")
                && !matches!(info.resource.as_str(), "leases" | "events" | "selfsubjectaccessreviews")
        });
        work.count()
    }

    fn probes(&self) -> usize {
        self.sim.requests().iter().filter(|request| request.info.path == "/healthz").count()
    }

    fn put_cluster_identity(&self, data: Value) {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": {"name": "cluster-identity", "namespace": "kube-system"}});
        self.sim.put(object).unwrap();
    }

    fn delay_creations(&self, delay: Duration) {
        self.sim.set_faults(move |info| match (info.verb.as_str(), info.resource.as_str()) {
            ("create", "configmaps") => Fault::Delay(delay),
            _ => Fault::None,
        });
    }
}
