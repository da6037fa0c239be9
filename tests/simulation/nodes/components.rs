//! The taint is removed when all critical components of a node are ready (spec 41, part A).

use std::time::Duration;

use serde_json::json;
use sim::{Fault, Seen};

use super::{CRITICAL, SYSTEM, TAINT, daemon_set, events, node, pod, put, set_ready, start, taints};
use crate::world::{seconds, world};

const READY: (&str, &str) = ("NodeCriticalComponentsReady", "All node-critical components got ready, removing taint");
const UNSCHEDULED: (&str, &str) = (
    "UnscheduledNodeCriticalDaemonSets",
    "Node-critical DaemonSets found that were not scheduled to Node yet: kube-system/cni",
);
const UNREADY: (&str, &str) =
    ("UnreadyNodeCriticalPods", "Unready node-critical Pods found on Node: kube-system/cni-1");
const DRIVERS: (&str, &str) =
    ("UnreadyRequiredCSIDrivers", "Unready required CSI drivers for Node: [disk.csi.example]");

fn reported(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(reason, text)| ((*reason).to_owned(), (*text).to_owned())).collect()
}

/// spec 41 scenario 1
#[test]
fn node_without_critical_components_loses_its_taint_at_once() {
    world(1, |world| async move {
        start(&world).await;
        put(&world, node("n1"));
        seconds(1).await;

        assert_eq!(taints(&world, "n1"), [""; 0]);
        assert_eq!(events(&world), reported(&[READY]));
        let writes = world.writes();
        assert_eq!(writes.iter().filter(|write| write.contains("nodes")).count(), 1, "{writes:?}");
    });
}

/// spec 41 scenarios 2, 3, 13; spec 41, better 1
#[test]
fn node_waits_for_its_daemon_set_then_its_pod_then_its_driver() {
    world(1, |world| async move {
        start(&world).await;
        put(&world, daemon_set("cni"));
        put(&world, node("n1"));
        seconds(60).await;
        assert_eq!((taints(&world, "n1"), events(&world)), (vec![TAINT.to_owned()], reported(&[UNSCHEDULED])));

        let mut cni = pod(&world, "n1", "cni-1", Some("cni"));
        cni["metadata"]["annotations"] = json!({"node.gardener.cloud/wait-for-csi-node-x": "disk.csi.example"});
        put(&world, cni);
        seconds(2).await;
        assert_eq!(events(&world), reported(&[UNSCHEDULED, UNREADY]));

        set_ready(&world, "cni-1");
        seconds(2).await;
        assert_eq!(events(&world), reported(&[UNSCHEDULED, UNREADY, DRIVERS]));
        world.sim.clear_requests();
        seconds(600).await;
        assert_eq!(world.asked(), [""; 0], "a waiting node sends no request");

        let driver = |name: &str| json!({"name": name, "nodeID": "n1", "topologyKeys": []});
        put(
            &world,
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "n1"}, "spec": {"drivers": [driver("disk.csi.example")]}}),
        );
        seconds(1).await;
        assert_eq!(taints(&world, "n1"), [""; 0]);
        assert_eq!(events(&world), reported(&[UNSCHEDULED, UNREADY, DRIVERS, READY]));
    });
}

/// spec 41 scenarios 11, 12; spec 41 A-T1
#[test]
fn pods_of_other_namespaces_and_of_other_nodes_do_not_count() {
    world(1, |world| async move {
        start(&world).await;
        put(&world, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}));
        let mut elsewhere = pod(&world, "n1", "p", None);
        elsewhere["metadata"]["namespace"] = json!("default");
        put(&world, elsewhere);
        put(&world, pod(&world, "n2", "q", None));
        put(&world, node("n1"));
        put(&world, node("n2"));
        seconds(1).await;

        assert_eq!(taints(&world, "n1"), [""; 0]);
        assert_eq!(taints(&world, "n2"), [TAINT]);
    });
}

/// spec 41 scenario 17; spec 41 A-T2
#[test]
fn taint_that_is_added_again_is_reconciled() {
    world(1, |world| async move {
        start(&world).await;
        put(&world, node("n1"));
        seconds(1).await;
        put(&world, daemon_set("cni"));
        world
            .sim
            .edit("nodes", "", "n1", |live| live["spec"]["taints"] = json!([{"key": TAINT, "effect": "NoExecute"}]));
        seconds(2).await;
        assert_eq!(events(&world), reported(&[READY, UNSCHEDULED]));

        put(&world, pod(&world, "n1", "cni-1", Some("cni")));
        set_ready(&world, "cni-1");
        seconds(1).await;
        assert_eq!(taints(&world, "n1"), [""; 0]);
    });
}

/// spec 41 scenario 18; spec 41 A-T3
#[test]
fn taint_removed_by_another_client_causes_no_write() {
    world(1, |world| async move {
        start(&world).await;
        put(&world, daemon_set("cni"));
        put(&world, node("n1"));
        seconds(5).await;
        world.sim.clear_requests();
        world.sim.edit("nodes", "", "n1", |live| live["spec"]["taints"] = json!([]));
        put(&world, pod(&world, "n1", "cni-1", Some("cni")));
        set_ready(&world, "cni-1");
        seconds(60).await;

        assert_eq!(world.asked(), [""; 0]);
        assert!(
            !world.actors_of("grm").iter().any(|actor| actor.path.ends_with("node-critical-components/n1")),
            "it retired"
        );
    });
}

/// spec 41 scenario 16; spec 41 A-T8
#[test]
fn node_changed_between_read_and_patch_loses_no_other_taint() {
    world(1, |world| async move {
        start(&world).await;
        let sim = world.sim.clone();
        let mut is_first = true;
        world.sim.set_faults(move |request| match (request.verb.as_str(), request.resource.as_str()) {
            ("patch", "nodes") if std::mem::take(&mut is_first) => Fault::Delay(Duration::from_millis(500)),
            _ => Fault::None,
        });
        put(&world, node("n1"));
        tokio::time::sleep(Duration::from_millis(200)).await;
        let other = json!({"key": "other", "effect": "NoSchedule"});
        sim.edit("nodes", "", "n1", |live| live["spec"]["taints"].as_array_mut().expect("a list").push(other));
        seconds(5).await;

        assert_eq!(taints(&world, "n1"), ["other"]);
        let patches =
            world.requests().iter().filter(|it| it.info.verb == "patch" && it.info.resource == "nodes").count();
        assert_eq!(patches, 2, "one was refused");
        assert_eq!(events(&world), reported(&[READY]), "better 5: once");
    });
}

/// spec 41, better 4
#[test]
fn heartbeat_enqueues_nothing() {
    world(1, |world| async move {
        start(&world).await;
        put(&world, daemon_set("cni"));
        put(&world, node("n1"));
        seconds(5).await;
        let reconciles = || {
            let actors = world.actors_of("grm");
            actors.iter().find(|actor| actor.path.ends_with("node-critical-components/n1")).map(|actor| actor.finished)
        };
        let before = reconciles();
        assert!(before.is_some());

        for beat in 0..4 {
            world.sim.edit("nodes", "", "n1", |live| live["status"]["beat"] = json!(beat));
            seconds(1).await;
        }
        assert_eq!(reconciles(), before);
    });
}

/// spec 41 §A.3
#[test]
fn silent_watch_is_no_evidence_of_absence() {
    world(1, |world| async move {
        start(&world).await;
        world.sim.set_faults(|request| match (request.verb.as_str(), request.resource.as_str()) {
            ("list" | "watch", "pods") => Fault::FailBefore(Seen::unavailable()),
            _ => Fault::None,
        });
        world.sim.break_watches(sim::WatchEnd::Close);
        seconds(300).await;
        put(&world, node("n1"));
        seconds(60).await;
        assert_eq!(taints(&world, "n1"), [TAINT], "pods may have come meanwhile");

        world.sim.clear_faults();
        seconds(120).await;
        assert_eq!(taints(&world, "n1"), [""; 0]);
    });
}

/// spec 41 scenario 4
#[test]
fn pods_of_a_daemon_set_without_the_label_must_be_ready_if_they_have_it() {
    world(1, |world| async move {
        start(&world).await;
        let mut set = daemon_set("cni");
        set["metadata"]["labels"] = json!({"other": "x"});
        put(&world, set);
        put(&world, node("n1"));
        seconds(1).await;
        assert_eq!(taints(&world, "n1"), [""; 0], "the node does not wait for scheduling");

        put(&world, pod(&world, "n2", "cni-1", Some("cni")));
        put(&world, node("n2"));
        seconds(1).await;
        assert_eq!(taints(&world, "n2"), [TAINT]);
        world.sim.edit("pods", SYSTEM, "cni-1", |live| live["metadata"]["labels"] = json!({CRITICAL: "false"}));
        seconds(1).await;
        assert_eq!(taints(&world, "n2"), [""; 0]);
    });
}

/// spec 41 §A.6: the pods of a new node come one after the other.
#[test]
fn short_wait_of_a_node_is_not_reported() {
    world(1, |world| async move {
        start(&world).await;
        put(&world, daemon_set("cni"));
        put(&world, node("n1"));
        tokio::time::sleep(Duration::from_millis(300)).await;
        put(&world, pod(&world, "n1", "cni-1", Some("cni")));
        seconds(60).await;

        assert_eq!(events(&world), reported(&[UNREADY]));
    });
}

#[test]
fn recreated_node_is_reported_again() {
    world(1, |world| async move {
        start(&world).await;
        put(&world, daemon_set("cni"));
        put(&world, node("n1"));
        seconds(5).await;
        world.sim.remove("nodes", "", "n1");
        put(&world, node("n1"));
        seconds(5).await;

        assert_eq!(events(&world), reported(&[UNSCHEDULED, UNSCHEDULED]));
    });
}
