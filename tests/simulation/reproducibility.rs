//! The same seed causes the same requests: a failing run can be replayed.

use std::time::Duration;

use serde_json::json;
use sim::{Fault, Seen};

use crate::world::{NAMESPACE, config_map, world};

#[test]
fn seed_determines_the_requests() {
    for seed in [1, 7] {
        let (first, second) = (trace(seed), trace(seed));

        assert!(first.len() > 100, "a busy world: {} requests", first.len());
        for (number, (first, second)) in first.iter().zip(&second).enumerate() {
            assert_eq!(first, second, "request {number}");
        }
        assert_eq!(first.len(), second.len());
    }
}

fn trace(seed: u64) -> Vec<String> {
    world(seed, |world| async move {
        let mut random = fastrand::Rng::with_seed(seed);
        world.sim.set_faults(move |info| match random.u8(0..40) {
            0 => Fault::FailBefore(Seen::unavailable()),
            1 => Fault::FailAfterCommit(Seen::Disconnect),
            2 => Fault::FailBefore(Seen::conflict(info)),
            _ => Fault::None,
        });
        world.start().await;
        for index in 0..8 {
            let name = format!("b{index}");
            let objects: Vec<_> = (0..6).map(|object| config_map(&format!("{name}-{object}"), "v")).collect();
            world.bundle(&name, &objects);
        }
        for round in 0..6 {
            tokio::time::sleep(Duration::from_secs(7)).await;
            let name = format!("b{round}-1");
            world.sim.edit("configmaps", NAMESPACE, &name, |live| live["data"]["k"] = json!("edited"));
            world.sim.remove("configmaps", NAMESPACE, &format!("b{round}-2"));
            world.secret(&format!("b{round}"), &[config_map(&name, "w")]);
            if round == 3 {
                world.stop().await;
                world.start().await;
            }
        }
        tokio::time::sleep(Duration::from_secs(120)).await;
        let line = |request: &sim::Recorded| {
            let info = &request.info;
            format!("{} {}?{} {} {:?}", info.verb, info.path, info.query, info.user, request.code)
        };
        world.sim.requests().iter().map(line).collect()
    })
}
