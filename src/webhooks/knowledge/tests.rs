//! What webhooks know, on the simulated API server.

use std::{collections::BTreeMap, future::Future, rc::Rc, time::Duration};

use cluster::{Cluster, ClusterEnv, ClusterOptions, Fence, NoObserver, Side, Watches};
use kit::testing::{Universe, eventually, settle, universe};
use serde_json::{Value, json};
use sim::{ClientOptions, Fault, Process, Seen, Sim, SimOptions, WatchEnd};
use tokio::time::{Instant, sleep};

use super::*;
use crate::{
    api::object::NamespacedName,
    webhooks::{
        mutating::{
            high_availability::{self, NAMESPACES},
            load_balancing::{CONFIG_MAP, CONFIG_MAPS, SERVICE, SERVICES},
            token_mount::{SERVICE_ACCOUNTS, ServiceAccount},
        },
        projection::AnyProjection,
        registry::Reads,
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

/// A cluster with the namespace `ns`; the watches see these namespaces, or all. `before`: what is done before they start.
fn world<F: Future<Output = World>>(
    reads: &'static [Reads],
    namespaces: &[&str],
    before: impl FnOnce(&Sim),
    test: impl FnOnce(World) -> F,
) {
    universe(1, |Universe { env }| async move {
        let options = SimOptions::new(env.clock.clone(), env.random.clone());
        let sim = Sim::new(SimOptions { latency: Duration::from_millis(1), ..options });
        put(&sim, "v1", "Namespace", "", "ns", json!({}));
        put(&sim, "v1", "Namespace", "", "istio", json!({}));
        before(&sim);
        let client = sim.client_of(ClientOptions {
            user: "grm".into(),
            groups: vec!["system:masters".into()],
            user_agent: "test".into(),
            process: Process::new(),
        });
        let options = ClusterOptions {
            side: Side::Target,
            host: "sim:443".into(),
            qps: -1.0,
            burst: 0,
            namespaces: namespaces.iter().map(ToString::to_string).collect(),
        };
        let cluster_env = ClusterEnv { clock: env.clock.clone(), random: env.random.clone(), fence: Fence::open() };
        let cluster = Cluster::new(client, options, cluster_env, Rc::new(NoObserver));
        let selector = BTreeMap::from([("pool".to_owned(), "system".to_owned())]);
        let watches = Watches::new(&cluster, &env);
        let caches = Caches::open(&watches, &watches, reads, selector);
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

// === impl World ===

impl World {
    /// What a view answers, after the live reads it asks for.
    async fn ask<T>(&self, ask: impl Fn(&dyn View) -> Result<T, Failure>) -> Result<T, Failure> {
        self.ask_within(Duration::from_secs(9), ask).await
    }

    async fn ask_within<T>(&self, time: Duration, ask: impl Fn(&dyn View) -> Result<T, Failure>) -> Result<T, Failure> {
        let mut answers = Answers::default();
        let deadline = Instant::now() + time;
        loop {
            let lookup = match ask(&self.knowledge.sight(&answers)) {
                Err(Failure::Look(lookup)) => lookup,
                other => return other,
            };
            let known = self.knowledge.look(lookup.clone(), deadline).await;
            assert!(answers.add(lookup, known), "asked again");
        }
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

    /// `verb resource name` of the requests since the stores were filled, without watches.
    fn requests(&self) -> Vec<String> {
        let infos = self.sim.requests().into_iter().map(|request| request.info).filter(|info| info.verb != "watch");
        infos.map(|info| format!("{} {}", info.verb, info.resource)).collect()
    }
}

fn automount(value: bool) -> Result<Option<Arc<ServiceAccount>>, Failure> {
    Ok(Some(Arc::new(ServiceAccount { automount: Some(value) })))
}

// === stores ===

/// spec 50, "better" 1 and 2
#[test]
fn what_is_in_a_store_is_not_read_again() {
    world(
        &ALL,
        &[],
        |sim| {
            put_account(sim, "a", false);
            let labels = json!({"high-availability-config.resources.gardener.cloud/consider": "true"});
            put(sim, "v1", "Namespace", "", "ha", json!({"metadata": {"labels": labels}}));
            put_autoscaler(sim, "one", 4);
            put_autoscaler(sim, "two", 6);
            put_node(sim, "n1", "system", "x");
            put_node(sim, "n2", "other", "y");
            put(
                sim,
                "v1",
                "ConfigMap",
                "ns",
                "istio-internal-load-balancing",
                json!({"data": {"hosts": "h", "more": "x"}}),
            );
            put(sim, "v1", "ConfigMap", "ns", "another", json!({"data": {"hosts": "h"}}));
            let ports = json!({"spec": {"ports": [{"port": 443}]}});
            put(sim, "v1", "Service", "istio", "istio-ingressgateway-internal", ports);
        },
        async |world| {
            world.synced().await;

            assert_eq!(world.account("a").await, automount(false));
            assert_eq!(world.namespace("ha").await, Ok(Some(Annotations::new())));
            assert_eq!(world.ask(|view| view.autoscaler(&WEB, true)).await, Ok(Some(6)));
            let other = Scaled { name: "other", ..WEB };
            assert_eq!(world.ask(|view| view.autoscaler(&other, false)).await, Ok(None));
            assert_eq!(world.ask(|view| view.has_one_node()).await, Ok(false));
            let tolerations = vec![json!({"key": "x", "operator": "Exists", "effect": "NoSchedule"})];
            assert_eq!(world.ask(|view| view.tolerations_of_nodes()).await, Ok(Arc::new(tolerations)));
            let hosts = Annotations::from([("hosts".to_owned(), "h".to_owned())]);
            assert_eq!(world.load_balancing("ns").await, Ok(Some(Arc::new(hosts))));
            let gateway = world.gateway("istio").await;
            assert_eq!(gateway.map(|addresses| addresses.map(|addresses| addresses.len())), Ok(Some(1)));

            assert!(world.requests().is_empty(), "{:?}", world.requests());
            world
        },
    );
}

/// spec 50, "better" 1: one ConfigMap of each namespace, not all of them
#[test]
fn only_objects_of_one_name_are_watched() {
    world(
        &[Reads::Objects(&CONFIG_MAPS), Reads::Objects(&SERVICES)],
        &[],
        |sim| put(sim, "v1", "ConfigMap", "ns", "another", json!({})),
        async |world| {
            eventually("the stores are filled", LIMIT, || world.watches.synced().check().is_ok()).await;
            let asked: Vec<_> = world.sim.requests().into_iter().map(|request| request.info.resource).collect();

            put(&world.sim, "v1", "ConfigMap", "ns", "third", json!({}));
            put(&world.sim, "v1", "ConfigMap", "ns", "istio-internal-load-balancing", json!({}));
            let store = world.knowledge.stores.objects[&(&CONFIG_MAPS as &dyn AnyProjection)].clone();
            eventually("it is in the store", LIMIT, || !store.is_empty()).await;

            assert_eq!(store.len(), 1);
            assert!(asked.iter().all(|resource| resource == "configmaps" || resource == "services"), "{asked:?}");
            world
        },
    );
}

/// spec 50 §10.1, "better" 5; decision 4
#[test]
fn nodes_are_counted_and_their_taints_followed() {
    world(
        &[Reads::NodeCount, Reads::NodeTaints],
        &[],
        |sim| put_node(sim, "n1", "system", "x"),
        async |world| {
            world.synced().await;
            assert_eq!(world.ask(|view| view.has_one_node()).await, Ok(true));

            put_node(&world.sim, "n2", "system", "a");
            let keys = || {
                let tolerations = world.knowledge.sight(&Answers::default()).tolerations_of_nodes().unwrap();
                tolerations.iter().map(|toleration| toleration["key"].clone()).collect::<Vec<_>>()
            };
            eventually("the new taint is tolerated", LIMIT, || keys() == ["a", "x"]).await;

            assert_eq!(world.ask(|view| view.has_one_node()).await, Ok(false));
            world
        },
    );
}

// === live reads ===

/// spec 50, "better" 3; scenario 17
#[test]
fn a_miss_is_read_live_once_for_all_who_ask() {
    world(
        &[Reads::Objects(&SERVICE_ACCOUNTS)],
        &[],
        |_| (),
        async |world| {
            world.synced().await;
            // Known to the server, not yet to the store.
            world.sim.set_faults(|info| match info.verb.as_str() {
                "watch" => Fault::Hang,
                _ => Fault::None,
            });
            put_account(&world.sim, "late", false);

            let (one, two) = futures::future::join(world.account("late"), world.account("late")).await;
            assert_eq!((one, two), (automount(false), automount(false)));
            // The second may not join a read that was under way when it asked.
            assert!(world.requests().len() <= 2, "{:?}", world.requests());
            assert_eq!(world.account("missing").await, Ok(None));
            world
        },
    );
}

/// A GET takes longer than half of the time that an API server waits.
#[test]
fn who_joins_during_a_slow_read_does_not_wait_for_two() {
    world(
        &[Reads::Objects(&SERVICE_ACCOUNTS)],
        &[],
        |_| (),
        async |world| {
            world.synced().await;
            world.sim.set_faults(|info| match info.verb.as_str() {
                "watch" => Fault::Hang,
                "get" => Fault::Delay(Duration::from_secs(7)),
                _ => Fault::None,
            });
            put_account(&world.sim, "late", false);
            let after = async |seconds, name| {
                sleep(Duration::from_secs(seconds)).await;
                world.account(name).await
            };

            let found = futures::join!(after(0, "late"), after(1, "late"), after(2, "late"), after(6, "late"));
            assert_eq!(found, (automount(false), automount(false), automount(false), automount(false)));
            let begin = Instant::now();
            let missing = futures::join!(after(0, "missing"), after(1, "missing"));
            assert_eq!(missing, (Ok(None), Ok(None)));

            assert!(begin.elapsed() < Duration::from_secs(9), "{:?}", begin.elapsed());
            assert!(world.requests().len() <= 4, "{:?}", world.requests());
            world
        },
    );
}

/// spec 51, "better" 4
#[test]
fn a_namespace_that_cannot_be_meant_is_read_live() {
    world(
        &[Reads::Objects(&NAMESPACES)],
        &[],
        |_| (),
        async |world| {
            world.synced().await;

            assert_eq!(world.namespace("ns").await, Ok(Some(Annotations::new())));
            assert_eq!(world.namespace("none").await, Ok(None));

            assert_eq!(world.requests(), ["get namespaces", "get namespaces"]);
            world
        },
    );
}

/// spec 51, "better" 5
#[test]
fn a_missing_autoscaler_is_made_sure_of() {
    world(
        &[Reads::Autoscalers],
        &[],
        |_| (),
        async |world| {
            world.synced().await;
            assert_eq!(world.ask(|view| view.autoscaler(&WEB, false)).await, Ok(None));
            assert!(world.requests().is_empty());

            assert_eq!(world.ask(|view| view.autoscaler(&WEB, true)).await, Ok(None));
            assert_eq!(world.requests(), ["list horizontalpodautoscalers"]);
            world
        },
    );
}

/// spec 50 §5, §9.1 rules 2 and 5; spec 51 §2.4: the answer is that of a cache, not what a client says of such a name
#[test]
fn what_cannot_have_such_a_name_does_not_exist() {
    world(
        &ALL,
        &[],
        |_| (),
        async |world| {
            world.synced().await;

            for (namespace, name) in [("", "x"), ("ns", ""), ("ns", "a/b"), ("a/b", "x")] {
                let name = NamespacedName::new(namespace, name);
                assert_eq!(world.ask(|view| view.object(&SERVICE_ACCOUNTS, &name)).await, Ok(None), "{name:?}");
            }
            for name in ["", "a/b"] {
                assert_eq!(world.namespace(name).await, Ok(None), "{name}");
                assert_eq!(world.load_balancing(name).await, Ok(None), "{name}");
                assert_eq!(world.gateway(name).await, Ok(None), "{name}");
            }

            assert!(world.requests().is_empty(), "{:?}", world.requests());
            world
        },
    );
}

/// spec 50 §2.7
#[test]
fn a_read_that_fails_is_an_error_and_not_an_absence() {
    world(
        &[Reads::Objects(&SERVICE_ACCOUNTS)],
        &[],
        |_| (),
        async |world| {
            world.synced().await;

            world.sim.set_faults(|info| match info.verb.as_str() {
                "get" => Fault::FailBefore(Seen::forbidden(info)),
                _ => Fault::None,
            });
            let Err(Failure::Status(status)) = world.account("a").await else { panic!("no status") };
            assert_eq!(status.code, 403);

            world.sim.set_faults(|_| Fault::Hang);
            let begin = Instant::now();
            let late = world
                .ask_within(Duration::from_secs(2), |view| {
                    view.object(&SERVICE_ACCOUNTS, &NamespacedName::new("ns", "a"))
                })
                .await;
            let Err(Failure::Status(status)) = late else { panic!("no status") };
            assert_eq!((begin.elapsed().as_secs(), status.code, status.reason.as_str()), (2, 504, "Timeout"));
            assert_eq!(status.message, "Timeout: failed waiting for *v1.ServiceAccount Informer to sync");
            world.sim.set_faults(|_| Fault::None);
            sleep(Duration::from_secs(20)).await;
            world
        },
    );
}

/// spec 50 §2.7, an informer that does not sync; "better" 2
#[test]
fn without_their_first_list_nodes_are_waited_for_and_readiness_is_not_given() {
    let away = |sim: &Sim| sim.set_faults(|_| Fault::FailBefore(Seen::Disconnect));
    world(&[Reads::NodeCount], &[], away, async |world| {
        let late = world.ask_within(Duration::from_secs(2), |view| view.has_one_node()).await;
        let Err(Failure::Status(status)) = late else { panic!("no status") };
        assert_eq!(status.message, "Timeout: failed waiting for *v1.Node Informer to sync");
        assert!(world.watches.synced().check().is_err());

        put_node(&world.sim, "n1", "system", "x");
        world.sim.set_faults(|_| Fault::None);
        assert_eq!(world.ask_within(Duration::from_secs(60), |view| view.has_one_node()).await, Ok(true));
        world.synced().await;
        world
    });
}

#[test]
fn nobody_waits_for_nodes_that_are_not_watched_any_more() {
    let away = |sim: &Sim| sim.set_faults(|_| Fault::FailBefore(Seen::Disconnect));
    world(&[Reads::NodeCount], &[], away, async |world| {
        let begin = Instant::now();
        let stopping = async {
            sleep(Duration::from_secs(1)).await;
            world.caches.stop();
        };

        let (answer, ()) = futures::join!(world.ask(|view| view.has_one_node()), stopping);
        assert!(answer.is_err());
        assert!(world.ask(|view| view.has_one_node()).await.is_err());

        assert_eq!(begin.elapsed().as_secs(), 1);
        world
    });
}

/// spec 50 §2.7, "Cache lags behind the API server": stale data, no error
#[test]
fn mutating_webhooks_go_on_with_a_store_that_is_not_heard_of() {
    world(
        &ALL,
        &[],
        |sim| put_account(sim, "a", false),
        async |world| {
            world.synced().await;
            world.sim.set_faults(|_| Fault::Hang);
            world.sim.break_watches(WatchEnd::Hang);
            sleep(cluster::IDLE_LIMIT).await;
            world.sim.clear_requests();

            assert_eq!(world.account("a").await, automount(false));
            assert!(world.requests().is_empty());
            world
        },
    );
}

/// spec 50 §2.7, restricted namespaces
#[test]
fn what_is_outside_of_the_namespaces_is_not_known() {
    world(
        &ALL,
        &["ns"],
        |_| (),
        async |world| {
            world.synced().await;
            let denied = |text: &str| Failure::Denied(text.to_owned());
            let account = NamespacedName::new("istio", "a");

            let get = world.ask(|view| view.object(&SERVICE_ACCOUNTS, &account)).await;
            let gateway = world.gateway("istio").await;
            let list = world.ask(|view| view.autoscaler(&Scaled { namespace: "istio", ..WEB }, false)).await;

            assert_eq!(get, Err(denied("unable to get: istio/a because of unknown namespace for the cache")));
            let text = "unable to get: istio/istio-ingressgateway-internal because of unknown namespace for the cache";
            assert_eq!(gateway, Err(denied(text)));
            assert_eq!(list, Err(denied("unable to list: istio because of unknown namespace for the cache")));
            assert_eq!(world.namespace("istio").await, Ok(Some(Annotations::new())), "cluster scope is visible");
            world
        },
    );
}

/// spec 50 §2.7: what no enabled webhook reads is not watched
#[test]
fn what_nobody_reads_is_not_known() {
    world(
        &[],
        &[],
        |_| (),
        async |world| {
            sleep(LIMIT).await;

            assert_eq!(
                world.account("a").await,
                Err(Failure::Denied("the cache is not started, can not read objects".to_owned()))
            );
            assert!(world.requests().is_empty());
            world
        },
    );
}
