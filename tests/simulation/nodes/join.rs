//! A thousand nodes join within ten seconds, with faults: each loses its taint within a second of its last condition.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde_json::json;
use sim::Fault;
use tokio::time::Instant;

use super::{daemon_set, node, pod, put, set_ready, start, taints};
use crate::world::world_with;

const NODES: usize = 1_000;
const SECOND: Duration = Duration::from_secs(1);

/// spec 41 part A, better 1
#[test]
fn thousand_nodes_lose_their_taints_within_a_second() {
    world_with(1, Duration::from_millis(5), |world| async move {
        start(&world).await;
        put(&world, daemon_set("cni"));
        world.sim.set_recording(false);
        let writes = Arc::new(Mutex::new(BTreeMap::<String, usize>::new()));
        let (counter, mut random) = (writes.clone(), fastrand::Rng::with_seed(41));
        world.sim.set_faults(move |request| {
            if request.verb == "patch" && request.resource == "nodes" {
                *counter.lock().unwrap_or_else(PoisonError::into_inner).entry(request.name.clone()).or_default() += 1;
            }
            match random.u8(0..100) {
                0 if request.verb == "patch" => Fault::FailBefore(sim::Seen::unavailable()),
                1 | 2 => Fault::Delay(Duration::from_millis(random.u64(1..100))),
                _ => Fault::None,
            }
        });
        let mut random = fastrand::Rng::with_seed(7);
        let (mut unready, mut fresh): (BTreeSet<usize>, Vec<(usize, Instant)>) = (BTreeSet::new(), Vec::new());
        for number in 0..NODES {
            put(&world, node(&name(number)));
            put(&world, pod(&world, &name(number), &format!("cni-{number}"), Some("cni")));
            unready.insert(number);
            tokio::time::sleep(Duration::from_millis(10)).await;
            // A random node gets its heartbeat, and its last condition.
            let some = random.usize(0..=number);
            world.sim.edit("nodes", "", &name(some), |live| live["status"]["beat"] = json!(number));
            if unready.remove(&some) {
                set_ready(&world, &format!("cni-{some}"));
                fresh.push((some, Instant::now()));
            }
            for (some, since) in fresh.extract_if(.., |(_, since)| since.elapsed() >= SECOND) {
                assert_eq!(taints(&world, &name(some)), [""; 0], "node {some} after {:?}", since.elapsed());
            }
        }
        unready.iter().for_each(|number| set_ready(&world, &format!("cni-{number}")));
        tokio::time::sleep(SECOND).await;

        let tainted = (0..NODES).filter(|number| !taints(&world, &name(*number)).is_empty()).count();
        assert_eq!(tainted, 0, "a second after the last condition");
        let writes = writes.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = writes.values().sum();
        assert_eq!(writes.len(), NODES);
        assert!(all <= NODES * 11 / 10, "{all} patches: one each, and what faults and conflicts cost");
    });
}

fn name(number: usize) -> String {
    format!("n{number:04}")
}
