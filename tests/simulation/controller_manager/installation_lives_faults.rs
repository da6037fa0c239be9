//! Random lives of a self-hosted Shoot that is a Seed, with Shoots on it: needs and policies change, gardenlet requires
//! installations, writes meet conflicts and get lost, watches end, processes restart, and two of them believe to lead. What
//! gardenlet requires is never deleted. At the end, the installations are those that the end state demands, each with its
//! owner. `SEED=17` replays a life, `LIVES=500` tries more of them.

use std::{collections::BTreeSet, time::Duration};

use cluster::object as fields;
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::{Fault, Seen, WatchEnd};

use super::{
    garden::{Garden, garden_of, object},
    installations::{installations, register, require},
    shoots::seconds,
};

const LIVES: u64 = 10;
const STEPS: usize = 30;
const TYPES: [&str; 3] = ["x", "y", "z"];
const INSTALLATIONS: &str = "controllerinstallations.core.gardener.cloud";

type Names = BTreeSet<String>;

fn names(all: impl IntoIterator<Item = impl ToString>) -> Names {
    all.into_iter().map(|name| name.to_string()).collect()
}

/// Returns the registrations of the extensions of a Seed or Shoot.
fn extensions_of(garden: &Garden, kind: &cluster::Resource, namespace: &str, name: &str) -> Names {
    let object = garden.find(kind, namespace, name).unwrap_or_default();
    let extensions = object["spec"]["extensions"].as_array().cloned().unwrap_or_default();
    names(extensions.iter().map(|it| format!("r{}", it["type"].as_str().unwrap_or_default())))
}

/// Returns the registrations that the Shoot wants, and those that its Seed wants (spec 85 A.8, B.1).
fn wanted(garden: &Garden) -> (Names, Names) {
    let mut of_shoot = extensions_of(garden, &kinds::SHOOT, "garden", "h");
    of_shoot.insert("rh".to_owned());
    for name in TYPES.map(|it| format!("r{it}")) {
        let registration = garden.find(&kinds::CONTROLLER_REGISTRATION, "", &name).unwrap_or_default();
        if registration["spec"]["deployment"]["policy"] == "Always" {
            of_shoot.insert(name);
        }
    }
    let mut of_seed = extensions_of(garden, &kinds::SEED, "", "h");
    of_seed.insert("rs".to_owned());
    for shoot in ["s0", "s1"] {
        of_seed.extend(extensions_of(garden, &kinds::SHOOT, "a", shoot));
    }
    (of_shoot, of_seed)
}

fn registration_of(installation: &Value) -> String {
    installation["spec"]["registrationRef"]["name"].as_str().unwrap_or_default().to_owned()
}

fn put_all(garden: &Garden) {
    register(garden, "rh", &["ControlPlane/h", "Infrastructure/h", "Worker/h"], Value::Null);
    register(garden, "rs", &["ControlPlane/s", "Infrastructure/s", "Worker/s"], Value::Null);
    for of_type in TYPES {
        register(garden, &format!("r{of_type}"), &[&format!("Extension/{of_type}")], Value::Null);
    }
    let provider = json!({ "type": "h", "workers": [{ "controlPlane": {} }] });
    garden.put(object(&kinds::SHOOT, "garden", "h", json!({ "spec": { "provider": provider } })));
    let mut seed = object(&kinds::SEED, "", "h", json!({ "spec": { "provider": { "type": "s" } } }));
    seed["metadata"]["labels"] = json!({ "seed.gardener.cloud/self-hosted-shoot-cluster": "true" });
    garden.put(seed);
    for name in ["s0", "s1"] {
        garden.put(object(&kinds::SHOOT, "a", name, json!({ "spec": { "seedName": "h" } })));
    }
}

/// Some writes fail, get no answer, come late, or meet a conflict.
fn disturb(garden: &Garden, number: u64) {
    let (sim, mut random) = (garden.sim.clone(), fastrand::Rng::with_seed(number + 1));
    garden.sim.set_faults(move |info| {
        let is_write = ["create", "patch", "delete"].contains(&info.verb.as_str());
        if info.user != "gcm" || info.resource != "controllerinstallations" || !is_write {
            return Fault::None;
        }
        match random.u8(0..20) {
            0 => Fault::FailBefore(Seen::unavailable()),
            1 => Fault::FailAfterCommit(Seen::Disconnect),
            2 => Fault::Delay(Duration::from_millis(random.u64(1..2000))),
            3 | 4 => {
                let value = random.u64(..).to_string();
                sim.edit(INSTALLATIONS, "", &info.name, |it| it["metadata"]["annotations"] = json!({ "a": value }));
                Fault::None
            }
            _ => Fault::None,
        }
    });
}

/// Lets a user or gardenlet do something. `required`: the installations that gardenlet requires.
fn act(garden: &Garden, random: &mut fastrand::Rng, required: &mut Names) {
    let some: Vec<_> = TYPES.iter().filter(|_| random.u8(0..3) == 0).map(|it| json!({ "type": it })).collect();
    let change = |object: &mut Value| object["spec"]["extensions"] = some.clone().into();
    match random.u8(0..10) {
        0 | 1 => garden.edit(&kinds::SHOOT, "garden", "h", change),
        2 | 3 => garden.edit(&kinds::SEED, "", "h", change),
        4 | 5 => garden.edit(&kinds::SHOOT, "a", if random.bool() { "s0" } else { "s1" }, change),
        6 => {
            let policy = if random.bool() { "Always" } else { "OnDemand" };
            let name = format!("r{}", TYPES[random.usize(0..TYPES.len())]);
            garden.edit(&kinds::CONTROLLER_REGISTRATION, "", &name, |it| {
                it["spec"]["deployment"] = json!({ "policy": policy });
            });
        }
        _ => {
            let mut all = installations(garden);
            all.retain(|it| fields::deletion_timestamp(it).is_none());
            let Some(chosen) = (!all.is_empty()).then(|| &all[random.usize(0..all.len())]) else { return };
            let name = fields::name(chosen).to_owned();
            if required.remove(&name) {
                require(garden, chosen, json!("False"));
            } else {
                require(garden, chosen, json!("True"));
                required.insert(name);
            }
        }
    }
}

/// Lets something happen to the program. Returns true if two processes believed to lead.
async fn upset(garden: &Garden, random: &mut fastrand::Rng, has_second: &mut bool) -> bool {
    match random.u8(0..10) {
        0 => {
            garden.stop().await;
            *has_second = false;
            garden.start().await;
        }
        1 if *has_second => {
            garden.stop_second().await;
            *has_second = false;
        }
        1 => {
            garden.start_second().await;
            *has_second = true;
            return true;
        }
        2 => garden.sim.break_watches(WatchEnd::Disconnect),
        3 => {
            garden.sim.compact();
            garden.sim.break_watches(WatchEnd::Expired);
        }
        _ => {}
    }
    false
}

fn check_required(garden: &Garden, required: &Names, number: u64) {
    for name in required {
        let live = garden.find(&kinds::CONTROLLER_INSTALLATION, "", name).unwrap_or_default();
        let is_alive = !live.is_null() && fields::deletion_timestamp(&live).is_none();
        assert!(is_alive, "{name} is required and deleted in life {number}");
    }
}

/// Checks the installations at the end. Two processes that believe to lead may create an installation each.
fn check_end(garden: &Garden, had_second: bool, number: u64) {
    let (of_shoot, of_seed) = wanted(garden);
    let all = installations(garden);
    let installed: Vec<String> = all.iter().map(registration_of).collect();
    assert_eq!(names(&installed), &of_shoot | &of_seed, "life {number}");
    assert!(had_second || installed.len() == names(&installed).len(), "duplicates in life {number}: {installed:?}");
    if had_second {
        return;
    }
    for installation in &all {
        let name = registration_of(installation);
        let is_marked = installation["metadata"]["labels"]["seed-ref-name"] == "h";
        assert_eq!(is_marked, !of_shoot.contains(&name), "mark of {name} in life {number}");
        assert_eq!(installation["spec"]["shootRef"]["name"], "h", "{name} in life {number}");
        let has_seed = installation["spec"]["seedRef"]["name"] == "h";
        assert_eq!(has_seed, of_seed.contains(&name), "Seed of {name} in life {number}");
    }
}

fn live(number: u64) {
    garden_of(number, |garden| async move {
        let mut random = fastrand::Rng::with_seed(number);
        let (mut required, mut has_second, mut had_second) = (Names::new(), false, false);
        put_all(&garden);
        garden.start().await;
        disturb(&garden, number);
        for _ in 0..STEPS {
            for _ in 0..random.usize(1..4) {
                act(&garden, &mut random, &mut required);
            }
            had_second |= upset(&garden, &mut random, &mut has_second).await;
            seconds(random.u64(0..8)).await;
            check_required(&garden, &required, number);
        }
        garden.sim.clear_faults();
        garden.stop_second().await;
        seconds(600).await;
        check_required(&garden, &required, number);
        for installation in installations(&garden) {
            require(&garden, &installation, json!("False"));
        }
        seconds(1200).await;

        check_end(&garden, had_second, number);
    });
}

/// spec 85 A.8, B.1, D-7, DEV-18, DEV-19, trap T-12
#[test]
fn installations_of_random_self_hosted_lives_are_those_of_the_end_state() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("SEED") {
        Some(seed) => live(seed),
        None => (1..=number("LIVES").unwrap_or(LIVES)).for_each(live),
    }
}
