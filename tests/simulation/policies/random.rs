//! Random lives of Services and Namespaces, with faults. The final policies are those of the final state.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};
use sim::{Fault, Seen, WatchEnd};

use super::{P, namespace, pod, put, settings};
use crate::world::{PROGRAM, World, seconds, world};

const LIVES: u64 = 60;
const STEPS: usize = 25;
const NAMESPACES: [&str; 4] = ["a", "b", "c", "d"];
const SERVICES: [(&str, &str); 3] = [("a", "x"), ("a", "y"), ("b", "x")];

/// spec 40 §8.3, §12; faults rows 1 to 8
#[test]
fn random_lives_end_with_the_policies_of_the_final_state() {
    for seed in 0..LIVES {
        world(seed, |world| async move {
            let mut random = fastrand::Rng::with_seed(seed);
            NAMESPACES.iter().for_each(|name| namespace(&world, name, &[("team", "blue")]));
            let only_for_matching_pods = seed.is_multiple_of(2);
            let settings = super::NetworkPolicyController { only_for_matching_pods, ..settings() };
            world.config.borrow_mut().controllers.network_policy = settings.into();
            disturb(&world, seed);
            world.start().await;
            let mut leader = PROGRAM.to_owned();
            for step in 0..STEPS {
                if world.is_crashed_as(&leader) || random.u8(0..12) == 0 {
                    world.crash_as(&leader).await;
                    let config = world.config.borrow().clone();
                    world.start_as(&leader, config).await;
                } else if random.u8(0..12) == 0 {
                    let next = format!("grm-{step}");
                    world.depose(&leader);
                    let config = world.config.borrow().clone();
                    world.start_as(&next, config).await;
                    world.stop_as(&leader).await;
                    leader = next;
                }
                act(&world, &mut random);
                tokio::time::sleep(Duration::from_millis(random.u64(0..8_000))).await;
            }
            world.sim.clear_faults();
            if world.is_crashed_as(&leader) {
                world.crash_as(&leader).await;
                let config = world.config.borrow().clone();
                world.start_as(&leader, config).await;
            }
            // The longest pause between attempts is 1000 s; a watch counts as fresh for 150 s.
            seconds(1_300).await;
            let found = policies(&world);
            world.sim.clear_requests();
            seconds(300).await;
            let is_write = |verb: &str| !matches!(verb, "get" | "list" | "watch");
            let written = world.sim.requests().iter().filter(|request| is_write(&request.info.verb)).count();
            assert_eq!(written, 0, "seed {seed}: nothing is written while idle");
            world.stop_as(&leader).await;

            for policy in world.sim.objects("networkpolicies.networking.k8s.io") {
                let text = |field: &str| policy["metadata"][field].as_str().unwrap_or_default().to_owned();
                world.sim.remove("networkpolicies.networking.k8s.io", &text("namespace"), &text("name"));
            }
            world.start().await;
            seconds(30).await;
            assert_eq!(found, policies(&world), "seed {seed}: the policies of the life, and of its final state alone");
            world.stop().await;
        });
    }
}

fn disturb(world: &World, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed ^ 0x5eed);
    world.sim.set_faults(move |info| {
        if !info.user.starts_with("grm") {
            return Fault::None;
        }
        match random.u8(0..60) {
            0 => Fault::FailBefore(Seen::unavailable()),
            1 => Fault::FailAfterCommit(Seen::unavailable()),
            2 => Fault::Delay(Duration::from_millis(random.u64(1..1_500))),
            3 => Fault::DelayAnswer(Duration::from_millis(random.u64(1..1_500))),
            4 => Fault::CrashClientAfterCommit,
            5 if info.verb == "watch" => Fault::BreakWatch { after_events: random.u64(0..5), end: WatchEnd::Close },
            _ => Fault::None,
        }
    });
}

fn policies(world: &World) -> BTreeMap<String, Value> {
    let all = world.sim.objects("networkpolicies.networking.k8s.io").into_iter();
    all.map(|it| {
        let metadata = &it["metadata"];
        let parts = json!([metadata["labels"], metadata["annotations"], it["spec"]]);
        (format!("{}/{}", metadata["namespace"], metadata["name"]), parts)
    })
    .collect()
}

fn act(world: &World, random: &mut fastrand::Rng) {
    let home = NAMESPACES[random.usize(0..NAMESPACES.len())];
    let (namespace, name) = SERVICES[random.usize(0..SERVICES.len())];
    match random.u8(0..10) {
        0..=3 => put(world, service(namespace, name, random)),
        4 => drop(world.sim.remove("services", namespace, name)),
        5 => {
            let team = if random.bool() { "blue" } else { "red" };
            super::set_label(world, home, "team", json!(team));
        }
        6 | 7 => {
            let name = format!("p{}", random.u8(0..3));
            if world.sim.object("pods", home, &name).is_some() {
                world.sim.remove("pods", home, &name);
            } else {
                let infix = if home == namespace { String::new() } else { format!("{namespace}-") };
                pod(world, home, &name, json!({ format!("{P}to-{infix}x-tcp-8080"): "allowed" }));
            }
        }
        _ => {
            let all = world.sim.objects("networkpolicies.networking.k8s.io");
            if all.is_empty() {
                return;
            }
            let metadata = &all[random.usize(0..all.len())]["metadata"];
            let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
            let (namespace, name) = (text("namespace"), text("name"));
            if random.bool() {
                world.sim.remove("networkpolicies.networking.k8s.io", &namespace, &name);
            } else {
                world.sim.edit("networkpolicies.networking.k8s.io", &namespace, &name, |live| {
                    live["spec"]["policyTypes"] = json!(["Ingress", "Egress"]);
                });
            }
        }
    }
}

fn service(namespace: &str, name: &str, random: &mut fastrand::Rng) -> Value {
    let mut annotations = json!({});
    if random.bool() {
        annotations[format!("{P}namespace-selectors")] = json!(r#"[{"matchLabels":{"team":"blue"}}]"#);
    }
    if random.u8(0..3) == 0 {
        annotations[format!("{P}from-world-to-ports")] = json!("[]");
    }
    if random.u8(0..3) == 0 {
        annotations[format!("{P}from-probes-allowed-ports")] = json!(r#"[{"port":9090}]"#);
    }
    let target = 8080 + u16::from(random.u8(0..2));
    let spec =
        json!({ "selector": { "app": name }, "ports": [{ "port": 80, "protocol": "TCP", "targetPort": target }] });
    let metadata = json!({ "namespace": namespace, "name": name, "annotations": annotations });
    json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec })
}
