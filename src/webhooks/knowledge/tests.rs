mod collections;
mod live;
mod stores;

use std::{collections::BTreeMap, future::Future, time::Duration};

use cluster::{Watches, object::NamespacedName};
use kit::testing::{Universe, eventually, settle, universe};
use serde_json::{Value, json};
use sim::{Fault, Seen, Sim};
use tokio::time::{Instant, sleep};

use super::{
    testing::{cluster_of, requests, simulator},
    *,
};
use crate::{
    api::resources::side::Side,
    webhooks::{
        cached_kind::{AnyCachedKind, Reads},
        mutating::{
            high_availability::{self, NAMESPACES},
            load_balancing::{CONFIG_MAP, CONFIG_MAPS, SERVICE, SERVICES},
            token_mount::{SERVICE_ACCOUNTS, ServiceAccount},
        },
        view::{Annotations, Scaled, View},
    },
};

const ALL: [Reads; 7] = [
    Reads::Objects(&SERVICE_ACCOUNTS),
    Reads::Objects(&NAMESPACES),
    Reads::Autoscalers,
    Reads::NodeCount,
    Reads::NodeTaints,
    Reads::Objects(&CONFIG_MAPS),
    Reads::Objects(&SERVICES),
];
const LIMIT: Duration = Duration::from_secs(10);
const WEB: Scaled<'_> = Scaled { namespace: "ns", api_version: "apps/v1", kind: "Deployment", name: "web" };

struct World {
    sim: Sim,
    watches: Watches,
    caches: Caches,
    knowledge: Knowledge,
}

/// Starts a cluster with the namespace `ns`, runs `before`, then opens the watches of these namespaces (empty: all).
fn world<F: Future<Output = World>>(
    reads: &'static [Reads],
    namespaces: &[&str],
    before: impl FnOnce(&Sim),
    test: impl FnOnce(World) -> F,
) {
    universe(1, |Universe { env }| async move {
        let sim = simulator(&env);
        put(&sim, "v1", "Namespace", "", "ns", json!({}));
        put(&sim, "v1", "Namespace", "", "istio", json!({}));
        before(&sim);
        let cluster = cluster_of(&sim, &env, Side::Target, namespaces);
        let selector = BTreeMap::from([("pool".to_owned(), "system".to_owned())]);
        let watches = Watches::new(&cluster, &env);
        let caches = Caches::open(&watches, &watches, reads, selector, &env.fatal);
        watches.start();
        let knowledge = caches.knowledge();
        let world = test(World { sim, watches, caches, knowledge }).await;
        world.caches.stop();
        drop(world);
        settle().await;
    });
}

fn put(sim: &Sim, api_version: &str, kind: &str, namespace: &str, name: &str, fields: Value) {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    for (field, value) in fields.as_object().expect("fields are a map") {
        if field == "metadata" {
            value
                .as_object()
                .expect("metadata is a map")
                .iter()
                .for_each(|(field, value)| object["metadata"][field] = value.clone());
        } else {
            object[field] = value.clone();
        }
    }
    sim.put(object).expect("the object is valid");
}

fn put_account(sim: &Sim, name: &str, automount: bool) {
    put(sim, "v1", "ServiceAccount", "ns", name, json!({"automountServiceAccountToken": automount}));
}

fn put_autoscaler(sim: &Sim, name: &str, max: i64) {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let spec = json!({"spec": {"scaleTargetRef": target, "maxReplicas": max}});
    put(sim, "autoscaling/v2", "HorizontalPodAutoscaler", "ns", name, spec);
}

fn put_node(sim: &Sim, name: &str, pool: &str, taint: &str) {
    let fields =
        json!({"metadata": {"labels": {"pool": pool}}, "spec": {"taints": [{"key": taint, "effect": "NoSchedule"}]}});
    put(sim, "v1", "Node", "", name, fields);
}

impl World {
    async fn ask<T>(&self, ask: impl Fn(&dyn View) -> Result<T, Failure>) -> Result<T, Failure> {
        self.ask_within(Duration::from_secs(9), ask).await
    }

    async fn ask_within<T>(&self, time: Duration, ask: impl Fn(&dyn View) -> Result<T, Failure>) -> Result<T, Failure> {
        let attempt = |view: &dyn View| match ask(view) {
            Err(Failure::ReadLive(lookup)) => Err(lookup),
            other => Ok(other),
        };
        self.knowledge.attempt(time, attempt).await
    }

    async fn account(&self, name: &str) -> Result<Option<Arc<ServiceAccount>>, Failure> {
        self.ask(|view| view.object(&SERVICE_ACCOUNTS, &NamespacedName::new("ns", name))).await
    }

    async fn namespace(&self, name: &str) -> Result<Option<Annotations>, Failure> {
        let found = self.ask(|view| high_availability::space(name, view)).await?;
        Ok(found.map(|space| space.annotations.clone()))
    }

    async fn load_balancing(&self, namespace: &str) -> Result<Option<Arc<Annotations>>, Failure> {
        self.ask(|view| view.object(&CONFIG_MAPS, &NamespacedName::new(namespace, CONFIG_MAP))).await
    }

    async fn gateway(&self, namespace: &str) -> Result<Option<Arc<Vec<String>>>, Failure> {
        self.ask(|view| view.object(&SERVICES, &NamespacedName::new(namespace, SERVICE))).await
    }

    async fn synced(&self) {
        eventually("the stores are filled", LIMIT, || self.watches.synced().check().is_ok()).await;
        self.sim.clear_requests();
    }

    fn requests(&self) -> Vec<String> {
        requests(&self.sim)
    }
}

fn automount(value: bool) -> Result<Option<Arc<ServiceAccount>>, Failure> {
    Ok(Some(Arc::new(ServiceAccount { automount: Some(value) })))
}
