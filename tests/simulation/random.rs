//! Random lives of several bundles: whatever happened, the end is what the last manifests say.
//!
//! `SEEDS=1000 cargo test --test simulation random` tries more seeds, `SEED=17` plays one again.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use gardener_resource_manager::sim::{EventFault, Fault, Seen, WatchEnd};
use serde_json::json;

use crate::world::{NAMESPACE, World, config_map, world};

const BUNDLES: [&str; 4] = ["b0", "b1", "b2", "b3"];
const OBJECTS: [&str; 6] = ["o0", "o1", "o2", "o3", "o4", "o5"];
const STEPS: usize = 12;

/// Names and values of the objects that a bundle wants.
type Wanted = BTreeMap<&'static str, String>;

#[test]
fn random_lives_end_as_the_last_manifests_say() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seed) = number("SEED") {
        return life(seed);
    }
    for seed in 0..number("SEEDS").unwrap_or(100) {
        if let Err(panic) = std::panic::catch_unwind(|| life(seed)) {
            eprintln!("play it again: SEED={seed} cargo test --test simulation random");
            std::panic::resume_unwind(panic);
        }
    }
}

fn life(seed: u64) {
    world(seed, |world| async move {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut wanted: BTreeMap<&'static str, Wanted> = BTreeMap::new();
        disturb(&world, seed);
        world.start().await;
        for step in 0..STEPS {
            change(&world, &mut random, &mut wanted, step).await;
            world.revive().await;
            tokio::time::sleep(Duration::from_millis(random.u64(0..8000))).await;
            world.revive().await;
        }
        world.sim.clear_faults();
        world.sim.clear_event_faults();
        expire(&world);
        world.revive().await;
        tokio::time::sleep(Duration::from_secs(400)).await;
        check(&world, &wanted);
    });
}

/// Lost events are made good by a list, as after any watch that expired.
fn expire(world: &World) {
    world.sim.compact();
    world.sim.break_watches(WatchEnd::Expired);
}

fn disturb(world: &World, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed ^ 1);
    world.sim.set_faults(move |info| {
        if info.user != "grm" {
            return Fault::None;
        }
        match random.u16(0..300) {
            0..=5 => Fault::FailBefore(Seen::unavailable()),
            6..=8 => Fault::FailBefore(Seen::Disconnect),
            9..=12 => Fault::FailAfterCommit(Seen::Disconnect),
            13..=14 => Fault::FailAfterCommit(Seen::timeout()),
            15..=17 => Fault::FailBefore(Seen::conflict(info)),
            18 => Fault::FailBefore(Seen::forbidden(info)),
            19 => Fault::FailBefore(Seen::too_many_requests()),
            20..=21 => Fault::CrashClient,
            22..=23 => Fault::CrashClientAfterCommit,
            24..=26 => Fault::Delay(Duration::from_millis(700)),
            27..=29 => Fault::DelayAnswer(Duration::from_millis(700)),
            30..=40 => Fault::BreakWatch { after_events: 2, end: WatchEnd::Disconnect },
            _ => Fault::None,
        }
    });
    let mut random = fastrand::Rng::with_seed(seed ^ 2);
    world.sim.set_event_faults(move |_| match random.u8(0..60) {
        0 => EventFault::Drop,
        1 => EventFault::Duplicate,
        2 => EventFault::Swap,
        _ => EventFault::Deliver,
    });
}

async fn change(world: &World, random: &mut fastrand::Rng, wanted: &mut BTreeMap<&'static str, Wanted>, step: usize) {
    let bundle = BUNDLES[random.usize(0..BUNDLES.len())];
    let object = OBJECTS[random.usize(0..OBJECTS.len())];
    match random.u8(0..12) {
        0..=5 => {
            let names = OBJECTS.into_iter().filter(|_| random.bool()).collect::<Vec<_>>();
            let set: Wanted = names.into_iter().map(|name| (name, format!("{bundle}-{step}"))).collect();
            let manifests: Vec<_> = set.iter().map(|(name, value)| config_map(name, value)).collect();
            if wanted.insert(bundle, set).is_some() {
                world.secret(bundle, &manifests);
            } else {
                // One of the same name may still be on its way out, and the event that says so may be lost.
                for second in 0..1000 {
                    if world.mr(bundle).is_none() {
                        break;
                    }
                    if second % 60 == 30 {
                        expire(world);
                    }
                    world.revive().await;
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                assert_eq!(world.mr(bundle), None, "a deleted bundle goes");
                world.bundle(bundle, &manifests);
            }
        }
        6 if wanted.remove(bundle).is_some() => world.delete_bundle(bundle).await,
        7 => drop(world.sim.remove("configmaps", NAMESPACE, object)),
        8 => drop(world.sim.edit("configmaps", NAMESPACE, object, |live| live["data"]["k"] = json!("edited"))),
        9 => {
            world.stop().await;
            world.start().await;
        }
        10 => {
            let seconds = random.i64(-4000..4000);
            world.universe.env.clock.jump(jiff::SignedDuration::from_secs(seconds));
        }
        _ => world.sim.break_watches(WatchEnd::Close),
    }
}

fn check(world: &World, wanted: &BTreeMap<&'static str, Wanted>) {
    let trace = || world.asked().into_iter().rev().take(60).collect::<Vec<_>>();
    let mut all = BTreeSet::new();
    for (bundle, objects) in wanted {
        assert!(world.is_applied(bundle), "{bundle}: {:#?}\n{:#?}", world.mr(bundle), trace());
        assert_eq!(world.refs(bundle), objects.keys().copied().collect::<Vec<_>>(), "{bundle}");
        all.extend(objects.keys().copied());
    }
    for bundle in BUNDLES.into_iter().filter(|bundle| !wanted.contains_key(bundle)) {
        assert_eq!(world.mr(bundle), None, "{bundle} is gone");
    }
    let live = world.sim.objects("configmaps");
    let name = |object: &serde_json::Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let names: BTreeSet<String> = live.iter().map(name).collect();
    let expected: BTreeSet<String> = all.into_iter().map(str::to_owned).collect();
    assert_eq!(names, expected, "nothing is lost and nothing leaks: {wanted:#?}\n{live:#?}\n{:#?}", trace());
    for object in live {
        let (name, value) = (name(&object), object["data"]["k"].as_str().unwrap_or_default().to_owned());
        let values: Vec<_> = wanted.values().filter_map(|set| set.get(name.as_str())).collect();
        assert!(
            values.iter().any(|wanted| **wanted == value),
            "{name} is {value}, not one of {values:?}\n{:#?}",
            trace()
        );
    }
}
