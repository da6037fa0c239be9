//! Decisions with watches and live reads, on the simulated API server, which is source and target.

use std::{collections::BTreeMap, future::Future, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use cluster::{IDLE_LIMIT, Watches};
use kit::testing::{Universe, eventually, settle, universe};
use serde_json::{Value, json};
use sim::{Fault, Seen, Sim, WatchEnd};

use super::{MACHINE_NAMESPACE, attributes, hosted, review, without_machines};
use crate::{
    api::resources::side::Side,
    webhooks::{
        authorizing::node_agent::{Host, NodeAgents, OscSecret, SECRETS},
        endpoint::{
            Endpoint as _,
            testing::{authorizing, json, received, reported},
        },
        knowledge::{
            Answers, Caches, Knowledge,
            testing::{cluster_of, requests, simulator},
        },
        view::View,
    },
};

const LIMIT: Duration = Duration::from_secs(60);
const SECRET_NAME: &str = "worker.gardener.cloud/gardener-node-agent-secret-name";

struct World {
    sim: Sim,
    watches: [Watches; 2],
    caches: Caches,
    knowledge: Knowledge,
    settings: NodeAgents,
}

fn world<F: Future<Output = World>>(
    settings: NodeAgents,
    of_source: &'static str,
    before: impl FnOnce(&Sim),
    test: impl FnOnce(World) -> F,
) {
    universe(1, |Universe { env }| async move {
        let sim = simulator(&env);
        for name in [MACHINE_NAMESPACE, "kube-system", "default", "other"] {
            let known = sim.object("namespaces", "", name).is_some();
            if !known {
                sim.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).unwrap();
            }
        }
        before(&sim);
        let source = cluster_of(&sim, &env, Side::Source, &[of_source]);
        let target = source.labelled(Side::Target.label(), vec!["kube-system".to_owned()]);
        let of_source = Watches::new(&source, &env);
        let of_target = of_source.labelled(&target);
        let caches = Caches::open(&of_source, &of_target, &settings.reads(), BTreeMap::new(), &env.fatal);
        of_source.start();
        let knowledge = caches.knowledge();
        let world = test(World { sim, watches: [of_source, of_target], caches, knowledge, settings }).await;
        world.caches.stop();
        drop(world);
        settle().await;
    });
}

fn serve_machines(sim: &Sim) {
    sim.put(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "machines.machine.sapcloud.io"},
        "spec": {
            "group": "machine.sapcloud.io", "scope": "Namespaced",
            "names": {"plural": "machines", "singular": "machine", "kind": "Machine", "listKind": "MachineList"},
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    }))
    .unwrap();
}

fn put_machine(sim: &Sim, name: &str, node: Option<&str>) {
    let labels = node.map(|node| json!({"node": node}));
    sim.put(json!({
        "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine",
        "metadata": {"namespace": MACHINE_NAMESPACE, "name": name, "labels": labels},
        "spec": {"nodeTemplate": {"metadata": {"labels": {SECRET_NAME: "gna"}}}},
    }))
    .unwrap();
}

fn put_node(sim: &Sim, name: &str) {
    let labels = json!({"kubernetes.io/hostname": name, SECRET_NAME: "gna"});
    sim.put(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}})).unwrap();
}

fn put_pod(sim: &Sim, name: &str, node: &str) {
    let spec = json!({"nodeName": node, "containers": [{"name": "c", "image": "i"}]});
    sim.put(
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "default", "name": name}, "spec": spec}),
    )
    .unwrap();
}

fn put_osc(sim: &Sim, namespace: &str, name: &str, labelled: bool, names: &str) {
    let osc = format!("{{spec: {{files: [{{content: {{secretRef: {{name: {names}}}}}}}]}}}}");
    let labels = if labelled { json!({"worker.gardener.cloud/pool": "p"}) } else { Value::Null };
    sim.put(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": namespace, "name": name, "labels": labels},
        "data": {"osc.yaml": BASE64_STANDARD.encode(osc)},
    }))
    .unwrap();
}

fn all(sim: &Sim) {
    serve_machines(sim);
    put_machine(sim, "m1", Some("n1"));
    put_node(sim, "n1");
    put_pod(sim, "p", "n1");
    put_osc(sim, "kube-system", "gna", true, "first");
}

impl World {
    async fn ask(&self, machine: &str, request: &str) -> String {
        let user = format!("{}{machine}", super::PREFIX);
        let review = review(&user, &[super::GROUP], &json!({"resourceAttributes": attributes(request)}));
        let (authorizing, received) = (authorizing(self.settings.clone()), received(review.to_string()));
        let time = Duration::from_secs(9);
        reported(&json(&self.knowledge.attempt(time, |view| authorizing.answer(&received, view)).await))
    }

    fn configs(&self) -> Vec<(String, Vec<String>)> {
        let answers = Answers::default();
        let view: &dyn View = &self.knowledge.sight(&answers);
        let all = view.objects(&SECRETS).expect("they are listed");
        let names = |secret: &OscSecret| secret.references(Host::Any).expect("decoded").map(str::to_owned).collect();
        all.iter().map(|(name, secret)| (name.name.clone(), names(secret))).collect()
    }

    async fn synced(&self) {
        eventually("the stores are filled", LIMIT, || {
            self.watches.iter().all(|watches| watches.synced().check().is_ok())
        })
        .await;
        settle().await;
        self.sim.clear_requests();
    }

    fn requests(&self) -> Vec<String> {
        requests(&self.sim)
    }
}

/// spec 61 §5.5, §7, §11.10
#[test]
fn decisions_are_made_from_memory_wherever_pods_are() {
    world(hosted(), MACHINE_NAMESPACE, all, async |world| {
        world.synced().await;

        assert_eq!(world.ask("m1", "get pods default/p").await, "allow");
        assert_eq!(world.ask("m1", "get nodes n1").await, "allow");
        assert_eq!(world.ask("m1", "update leases kube-system/gna").await, "allow");
        assert_eq!(world.ask("m1", "get secrets kube-system/first").await, "allow");
        assert!(world.ask("m1", "get secrets kube-system/second").await.starts_with("deny: "));

        assert_eq!(world.requests(), Vec::<String>::new());
        world
    });
}

/// spec 61, "better": one live GET before anything is refused
#[test]
fn missing_objects_are_read_live() {
    world(hosted(), MACHINE_NAMESPACE, all, async |world| {
        world.synced().await;
        world.sim.set_faults(|info| if info.verb == "watch" { Fault::Hang } else { Fault::None });
        world.sim.break_watches(WatchEnd::Hang);
        put_machine(&world.sim, "m2", Some("n2"));
        put_node(&world.sim, "n2");
        put_pod(&world.sim, "late", "n2");

        assert_eq!(world.ask("m2", "delete pods default/late").await, "allow");
        assert_eq!(world.ask("m2", "delete pods default/none").await, "deny: pod \"default/none\" not found");
        assert_eq!(world.ask("m3", "get nodes n2").await, "deny: machine \"m3\" not found");

        let of_one = ["get machines", "get nodes", "get pods"];
        let expected = of_one.into_iter().chain(of_one).chain(["get machines"]).collect::<Vec<_>>();
        assert_eq!(world.requests(), expected);
        world
    });
}

/// spec 61 §5.3, decision 33: a stolen credential relabels its Node; only the name of a pool's Secret grants a Lease
#[test]
fn relabelled_node_gets_only_the_lease_of_a_pool() {
    let more = |sim: &Sim| {
        all(sim);
        put_osc(sim, "kube-system", "kube-controller-manager", false, "x");
        put_osc(sim, "other", "kube-scheduler", true, "x");
    };
    world(hosted(), MACHINE_NAMESPACE, more, async |world| {
        world.synced().await;
        let relabelled = async |name: &str| {
            world.sim.edit("nodes", "", "n1", |live| live["metadata"]["labels"][SECRET_NAME] = json!(name));
            settle().await;
        };
        let own = "deny: this gardener-node-agent can only access leases [gardener-node-agent-n1] in \"kube-system\" namespace";

        for name in ["kube-controller-manager", "kube-scheduler", "missing"] {
            relabelled(name).await;
            world.sim.clear_requests();
            assert_eq!(world.ask("m1", &format!("update leases kube-system/{name}")).await, own, "{name}");
            assert_eq!(world.requests(), ["get secrets"], "one read before it is refused: {name}");
            let of_node = world.ask("m1", "update leases kube-system/gardener-node-agent-n1").await;
            assert_eq!(of_node, "allow", "{name}");
            assert_eq!(world.requests(), ["get secrets"], "its own Lease needs no read: {name}");
        }

        relabelled("gna").await;
        assert_eq!(world.ask("m1", "update leases kube-system/gna").await, "allow");
        world.sim.remove("secrets", "kube-system", "gna");
        settle().await;
        assert_eq!(world.ask("m1", "update leases kube-system/gna").await, own, "the Secret of the pool is gone");
        put_osc(&world.sim, "kube-system", "gna", false, "first");
        settle().await;
        assert_eq!(world.ask("m1", "update leases kube-system/gna").await, own, "it is no longer a pool's Secret");
        world
    });
}

/// spec 61 §5.6, "better": decoded once, and again after a change
#[test]
fn configs_are_watched_and_cached_only_with_the_label() {
    let more = |sim: &Sim| {
        all(sim);
        put_osc(sim, "other", "elsewhere", true, "x");
        put_osc(sim, "kube-system", "unlabelled", false, "y");
    };
    world(without_machines(), "shoot", more, async |world| {
        world.synced().await;
        assert_eq!(world.configs(), [("gna".to_owned(), vec!["first".to_owned()])]);
        assert_eq!(world.ask("newcomer", "get secrets kube-system/first").await, "allow");
        assert!(world.ask("newcomer", "get secrets kube-system/unlabelled").await.starts_with("deny: "));

        put_osc(&world.sim, "kube-system", "gna", true, "second");
        settle().await;
        let changed = [("gna".to_owned(), vec!["second".to_owned()])];
        eventually("the change is heard of", LIMIT, || world.configs() == changed).await;

        assert_eq!(world.ask("n1", "get secrets kube-system/second").await, "allow");
        assert!(world.ask("n1", "get secrets kube-system/first").await.starts_with("deny: "));
        world
    });
}

/// spec 61 §7
#[test]
fn machines_outside_of_the_namespaces_of_the_source_are_an_error() {
    world(hosted(), "elsewhere", all, async |world| {
        world.synced().await;

        let reported = world.ask("m1", "get nodes n1").await;

        let cause = "unable to get: shoot--a--b/m1 because of unknown namespace for the cache";
        assert_eq!(reported, format!("error: 500 error getting machine \"m1\": {cause}"));
        world
    });
}

/// spec 61 §4: a failure is an error, never a denial
#[test]
fn machines_that_are_not_served_do_not_delay_readiness() {
    world(
        hosted(),
        MACHINE_NAMESPACE,
        |sim| put_node(sim, "n1"),
        async |world| {
            world.synced().await;
            let reported = world.ask("m1", "get nodes n1").await;
            assert!(reported.starts_with("error: 500 error getting machine \"m1\": "), "{reported}");
            assert_eq!(world.ask("m1", "list nodes").await, "allow");

            serve_machines(&world.sim);
            settle().await;
            put_machine(&world.sim, "m1", Some("n1"));

            assert_eq!(world.ask("m1", "get nodes n1").await, "allow");
            world
        },
    );
}

/// spec 61 §6
#[test]
fn api_failure_is_an_error() {
    world(hosted(), MACHINE_NAMESPACE, all, async |world| {
        world.synced().await;
        world.sim.set_faults(|info| match (info.verb.as_str(), info.resource.as_str()) {
            ("get", "pods") => Fault::FailBefore(Seen::forbidden(info)),
            ("watch", _) => Fault::Hang,
            _ => Fault::None,
        });

        let reported = world.ask("m1", "get pods default/none").await;

        assert!(reported.starts_with("error: 500 error getting pod \"default/none\": "), "{reported}");
        world
    });
}

fn fall_silent(sim: &Sim) {
    sim.set_faults(|info| if info.verb == "watch" { Fault::Hang } else { Fault::None });
    sim.break_watches(WatchEnd::Hang);
}

/// spec 61 §7: lag is accepted, but content that may be minutes old is read live, once
#[test]
fn stale_cache_is_read_live_while_its_watch_is_out_of_contact() {
    world(hosted(), MACHINE_NAMESPACE, all, async |world| {
        world.synced().await;
        put_node(&world.sim, "n2");
        settle().await;
        fall_silent(&world.sim);
        world.sim.edit("machines.machine.sapcloud.io", MACHINE_NAMESPACE, "m1", |live| {
            live["metadata"]["labels"]["node"] = json!("n2");
        });
        assert_eq!(world.ask("m1", "update nodes n1").await, "allow", "the store lags");
        assert_eq!(world.requests(), Vec::<String>::new());

        tokio::time::sleep(IDLE_LIMIT).await;

        let reported = world.ask("m1", "update nodes n1").await;
        assert_eq!(reported, "deny: this gardener-node-agent can only access node \"n2\"");
        assert_eq!(world.requests(), ["get machines", "get nodes"]);
        world
    });
}

/// spec 61 §5.6, §7
#[test]
fn stale_cache_of_configs_is_listed_anew_while_their_watch_is_out_of_contact() {
    world(without_machines(), "shoot", all, async |world| {
        world.synced().await;
        fall_silent(&world.sim);
        put_osc(&world.sim, "kube-system", "gna", true, "second");
        put_osc(&world.sim, "kube-system", "unlabelled", false, "third");
        tokio::time::sleep(IDLE_LIMIT).await;

        assert!(world.ask("newcomer", "get secrets kube-system/first").await.starts_with("deny: "));
        assert_eq!(world.requests(), ["get nodes", "list secrets", "get secrets"]);
        assert_eq!(world.ask("newcomer", "get secrets kube-system/second").await, "allow");
        assert!(world.ask("newcomer", "get secrets kube-system/third").await.starts_with("deny: "));
        assert!(world.ask("n1", "get secrets kube-system/first").await.starts_with("deny: "));
        world
    });
}

/// spec 61 §6: a failure is an error, whatever was known before
#[test]
fn stale_cache_and_a_failed_read_lead_to_an_error() {
    for (settings, request, text) in [
        (hosted(), "update nodes n1", "error getting machine \"m1\": "),
        (without_machines(), "get secrets kube-system/first", "error getting node \"m1\": "),
    ] {
        world(settings, MACHINE_NAMESPACE, all, async |world| {
            world.synced().await;
            fall_silent(&world.sim);
            tokio::time::sleep(IDLE_LIMIT).await;
            world.sim.set_faults(|_| Fault::FailBefore(Seen::Disconnect));

            let reported = world.ask("m1", request).await;

            assert!(reported.starts_with(&format!("error: 500 {text}")), "{reported}");
            world
        });
    }
}
