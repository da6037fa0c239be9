//! Delays of node agents (spec 41, part B), between 5 and 30 seconds.

use std::{rc::Rc, time::Duration};

use gardener_resource_manager::api::config::resource_manager::NodeAgentReconciliationDelay;
use serde_json::{Value, json};
use sim::{Fault, Seen};

use super::{SYSTEM, begin, put};
use crate::world::{World, seconds, world};

const DELAY: &str = "node-agent.gardener.cloud/reconciliation-delay";
const SECRET: &str = "worker.gardener.cloud/gardener-node-agent-secret-name";
const TEN: [&str; 10] = ["5s", "7.5s", "10s", "12.5s", "15s", "17.5s", "20s", "22.5s", "25s", "27.5s"];

async fn start(world: &World) {
    put(world, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}}));
    let (min_delay, max_delay) = (Duration::from_secs(5), Duration::from_secs(30));
    let settings = NodeAgentReconciliationDelay { min_delay: min_delay.into(), max_delay: max_delay.into() };
    world.config.borrow_mut().controllers.node_agent_reconciliation_delay = settings.into();
    begin(world).await;
}

pub(crate) fn join(world: &World, name: &str, secret: Option<&str>) {
    let labels = secret.map_or_else(|| json!({}), |secret| json!({SECRET: secret}));
    put(world, json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}));
}

fn ten(world: &World) {
    (0..10).for_each(|number| join(world, &format!("a{number}"), Some("ordinary")));
}

fn secret(world: &World, name: &str, serial: Option<&str>) {
    let key = "reconciliation.osc.node-agent.gardener.cloud/serial";
    let annotations = serial.map_or_else(|| json!({}), |serial| json!({key: serial}));
    let labels = json!({"gardener.cloud/role": "operating-system-config"});
    let metadata = json!({"namespace": SYSTEM, "name": name, "labels": labels, "annotations": annotations});
    put(world, json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}));
}

fn delays(world: &World) -> Vec<String> {
    let nodes = world.sim.objects("nodes");
    let delay = |node: &Value| node["metadata"]["annotations"][DELAY].as_str().unwrap_or("-").to_owned();
    nodes.iter().map(delay).collect()
}

fn node_writes(world: &Rc<World>) -> usize {
    world.requests().iter().filter(|it| it.info.resource == "nodes" && it.info.verb == "patch").count()
}

/// spec 41 scenarios 21, 23, 26, 27
#[test]
fn delays_follow_the_names_and_are_written_where_they_differ() {
    world(1, |world| async move {
        start(&world).await;
        ten(&world);
        seconds(3).await;
        assert_eq!(delays(&world), TEN);
        assert_eq!(node_writes(&world), 10, "one run for the whole burst");

        world.sim.clear_requests();
        world.sim.edit("nodes", "", "a3", |live| live["metadata"]["labels"]["other"] = json!("x"));
        world.sim.edit("nodes", "", "a4", |live| live["status"]["beat"] = json!(1));
        seconds(60).await;
        assert_eq!(world.asked(), [""; 0]);
        world.restart_as("grm").await;
        seconds(30).await;
        assert_eq!(node_writes(&world), 0, "all is right after a restart");

        world.sim.remove("nodes", "", "a0");
        seconds(3).await;
        assert_eq!(delays(&world)[..2], ["5s", "7.777777777s"]);
        assert_eq!(node_writes(&world), 9);
    });
}

/// spec 41 scenarios 24, 25; spec 41, better 7, 10, B-T2, B-T3
#[test]
fn nodes_with_serial_roll_out_get_no_delay() {
    world(1, |world| async move {
        secret(&world, "serial", Some("true"));
        secret(&world, "odd", Some("yes"));
        start(&world).await;
        (0..5).for_each(|number| join(&world, &format!("b{number}"), Some("serial")));
        (0..10).for_each(|number| join(&world, &format!("a{number}"), (number > 4).then_some("odd")));
        seconds(3).await;
        let mut expected = TEN.map(str::to_owned).to_vec();
        expected.extend(["-"; 5].map(str::to_owned));
        assert_eq!(delays(&world), expected);

        world.sim.edit("secrets", SYSTEM, "odd", |live| {
            live["metadata"]["annotations"] = json!({"reconciliation.osc.node-agent.gardener.cloud/serial": "true"})
        });
        seconds(3).await;
        let mut expected = ["5s", "10s", "15s", "20s", "25s"].map(str::to_owned).to_vec();
        expected.extend(["-"; 10].map(str::to_owned));
        assert_eq!(delays(&world), expected, "the delays of the other nodes are removed");

        world.sim.edit("nodes", "", "a0", |live| live["metadata"]["annotations"][DELAY] = json!("1h"));
        seconds(3).await;
        assert_eq!(delays(&world), expected, "edited by hand");
    });
}

/// spec 41 scenario 28; spec 41 B-T1
#[test]
fn conflict_on_one_node_does_not_affect_the_others() {
    world(1, |world| async move {
        start(&world).await;
        let mut refused = 3;
        world.sim.set_faults(move |request| {
            if request.verb == "patch" && request.name == "a4" && refused > 0 {
                refused -= 1;
                return Fault::FailBefore(Seen::conflict(request));
            }
            Fault::None
        });
        ten(&world);
        seconds(3).await;

        assert_eq!(delays(&world), TEN);
        assert_eq!(node_writes(&world), 13, "better 6: only that node again");
    });
}

/// spec 41, better 8
#[test]
fn nodes_that_keep_joining_cause_a_run_within_ten_seconds() {
    world(1, |world| async move {
        start(&world).await;
        for number in 0..40 {
            join(&world, &format!("c{number:02}"), None);
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        seconds(3).await;

        let all = delays(&world);
        assert_eq!((all.len(), all[1].as_str()), (40, "5.625s"));
        assert!(node_writes(&world) <= 3 * 40, "{}", node_writes(&world));
    });
}

/// spec 41 B-T4
#[test]
fn recreated_node_gets_its_delay() {
    world(1, |world| async move {
        start(&world).await;
        ten(&world);
        seconds(3).await;
        world.sim.remove("nodes", "", "a5");
        join(&world, "a5", None);
        seconds(3).await;

        assert_eq!(delays(&world), TEN);
    });
}
