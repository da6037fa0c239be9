//! Random lives of Shoots, Seeds, backups and registrations, with watches that repeat events. At the end, the
//! installations are those that the end state demands; on the way nothing is deleted that is wanted all the time.
//! `SEED=17` replays a life, `LIVES=500` tries more of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use cluster::{Resource, object as fields};
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::{EventFault, Fault, Sim};

use super::{
    garden::{Garden, garden_of, object, resource},
    installations::{pairs, seed},
    shoots::seconds,
};

const LIVES: u64 = 24;
const STEPS: usize = 40;
const SEEDS: [&str; 2] = ["s1", "s2"];
const TYPES: [&str; 3] = ["x", "y", "z"];

/// The registrations that each Seed wants.
type WantedBySeed = BTreeMap<&'static str, BTreeSet<String>>;

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn entries<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// The rules of spec 85 A.3 and A.4 once more, as plainly as possible. Returns the wanted registrations of a Seed that are
/// not in deletion, and whether all its needs are served.
fn wanted(sim: &Sim, seed: &Value) -> (BTreeSet<String>, bool) {
    let all = |kind: &Resource| sim.objects(&resource(kind));
    let name = fields::name(seed);
    let is_on = |object: &&Value| text(object, "/spec/seedName") == name;
    let registrations = all(&kinds::CONTROLLER_REGISTRATION);
    let is_living = fields::deletion_timestamp(seed).is_none();
    let mut needed = BTreeSet::new();
    if is_living {
        needed.extend(["ControlPlane/p", "Infrastructure/p", "Worker/p"].map(str::to_owned));
    }
    let buckets = all(&kinds::BACKUP_BUCKET);
    needed.extend(buckets.iter().filter(is_on).map(|it| format!("BackupBucket/{}", text(it, "/spec/provider/type"))));
    for entry in all(&kinds::BACKUP_ENTRY).iter().filter(is_on) {
        let bucket = buckets.iter().find(|bucket| fields::name(bucket) == text(entry, "/spec/bucketName"));
        needed.extend(bucket.map(|it| format!("BackupEntry/{}", text(it, "/spec/provider/type"))));
    }
    let is_of_seed = |shoot: &&Value| text(shoot, "/spec/seedName") == name || text(shoot, "/status/seedName") == name;
    let shoots = all(&kinds::SHOOT);
    let shoots: Vec<_> = shoots.iter().filter(is_of_seed).collect();
    let auto = |cluster: &str| {
        let resources = registrations.iter().flat_map(|it| entries(it, "/spec/resources"));
        let is_auto = |it: &&Value| entries(it, "/autoEnable").any(|other| other == cluster);
        resources.filter(is_auto).map(|it| (text(it, "/type").to_owned(), it["workerlessSupported"] == true)).collect()
    };
    let for_seeds: Vec<(String, bool)> = auto("seed");
    let for_shoots: Vec<(String, bool)> = auto("shoot");
    if is_living {
        needed.extend(for_seeds.iter().map(|(of_type, _)| format!("Extension/{of_type}")));
    }
    for shoot in &shoots {
        needed.insert("ControlPlane/p".to_owned());
        let has_workers = entries(shoot, "/spec/provider/workers").next().is_some();
        if has_workers {
            let provider = text(shoot, "/spec/provider/type");
            needed.extend(["ControlPlane", "Infrastructure", "Worker"].map(|kind| format!("{kind}/{provider}")));
        }
        let (disabled, enabled): (Vec<_>, Vec<_>) =
            entries(shoot, "/spec/extensions").partition(|extension| extension["disabled"] == true);
        needed.extend(enabled.iter().map(|it| format!("Extension/{}", text(it, "/type"))));
        for (of_type, supports_workerless) in &for_shoots {
            let is_disabled = disabled.iter().any(|it| text(it, "/type") == of_type);
            if (has_workers || *supports_workerless) && !is_disabled {
                needed.insert(format!("Extension/{of_type}"));
            }
        }
    }
    let (mut names, mut served) = (BTreeSet::new(), BTreeSet::new());
    for registration in &registrations {
        let serves: BTreeSet<String> = entries(registration, "/spec/resources")
            .map(|it| format!("{}/{}", text(it, "/kind"), text(it, "/type")))
            .collect();
        let is_needed = !serves.is_disjoint(&needed);
        served.extend(serves);
        let is_by_policy = match text(registration, "/spec/deployment/policy") {
            "Always" => is_living,
            "AlwaysExceptNoShoots" => !shoots.is_empty(),
            _ => false,
        };
        let env = registration.pointer("/spec/deployment/seedSelector/matchLabels/env").filter(|env| !env.is_null());
        let is_selected = env.is_none_or(|env| seed["metadata"]["labels"]["env"] == *env);
        if fields::deletion_timestamp(registration).is_none() && is_selected && (is_needed || is_by_policy) {
            names.insert(fields::name(registration).to_owned());
        }
    }
    (names, needed.is_subset(&served))
}

fn wanted_by_seed(sim: &Sim) -> WantedBySeed {
    let of_seed = |name| {
        let seed = sim.object(&resource(&kinds::SEED), "", name);
        (name, seed.map(|seed| wanted(sim, &seed).0).unwrap_or_default())
    };
    SEEDS.into_iter().map(of_seed).collect()
}

/// Keeps only the registrations that are still wanted.
fn narrow(protected: &mut WantedBySeed, sim: &Sim) {
    let now = wanted_by_seed(sim);
    for (seed, names) in protected {
        names.retain(|name| now.get(seed).is_some_and(|now| now.contains(name)));
    }
}

/// Lets a user do something.
fn act(garden: &Garden, random: &mut fastrand::Rng) {
    let one = |random: &mut fastrand::Rng, all: &[&'static str]| all[random.usize(0..all.len())];
    let (of_type, on) = (one(random, &TYPES), one(random, &["s1", "s2", "s1", "none"]));
    let number = random.usize(0..4);
    let replace = |kind: &Resource, namespace: &str, name: &str, parts: Value| {
        let change = |live: &mut Value| {
            for (field, value) in parts.as_object().into_iter().flatten() {
                live[field] = value.clone();
            }
        };
        if !garden.sim.edit(&resource(kind), namespace, name, change) {
            garden.put(object(kind, namespace, name, parts.clone()));
        }
    };
    match random.u8(0..14) {
        0..=3 => {
            let extensions = json!([{ "type": one(random, &TYPES), "disabled": random.bool() }]);
            let workers = if random.bool() { json!([{}]) } else { json!([]) };
            let provider = json!({ "type": if random.bool() { "p" } else { of_type }, "workers": workers });
            let spec = json!({ "seedName": on, "extensions": extensions, "provider": provider });
            let status = json!({ "seedName": if random.bool() { on } else { "s1" } });
            replace(&kinds::SHOOT, "a", &format!("sh{number}"), json!({ "spec": spec, "status": status }));
        }
        4..=6 => {
            let clusters = [json!([]), json!(["shoot"]), json!(["seed"])][random.usize(0..3)].clone();
            let more = json!({ "autoEnable": clusters, "workerlessSupported": random.bool() });
            let mut resources = pairs(&[&format!("Extension/{of_type}")], &more);
            let others = [
                format!("Worker/{of_type}"),
                format!("BackupBucket/{of_type}"),
                format!("BackupEntry/{of_type}"),
                format!("ControlPlane/{of_type}"),
                format!("Infrastructure/{of_type}"),
            ];
            let others: Vec<_> = others.iter().map(String::as_str).filter(|_| random.u8(0..4) > 0).collect();
            let others = pairs(&others, &json!({}));
            resources.as_array_mut().expect("a list").extend(others.as_array().cloned().unwrap_or_default());
            let policy = one(random, &["OnDemand", "OnDemand", "Always", "AlwaysExceptNoShoots"]);
            let env = [Value::Null, json!("a"), json!("b")][random.usize(0..3)].clone();
            let selector = if env.is_null() { Value::Null } else { json!({ "matchLabels": { "env": env } }) };
            let spec = json!({ "resources": resources, "deployment": { "policy": policy, "seedSelector": selector } });
            replace(&kinds::CONTROLLER_REGISTRATION, "", &format!("r{number}"), json!({ "spec": spec }));
        }
        7 => {
            let spec = json!({ "provider": { "type": of_type }, "seedName": on });
            replace(&kinds::BACKUP_BUCKET, "", &format!("b{}", number % 2), json!({ "spec": spec }));
        }
        8 => {
            let spec = json!({ "bucketName": format!("b{}", number % 2), "seedName": on });
            replace(&kinds::BACKUP_ENTRY, "a", &format!("e{}", number % 2), json!({ "spec": spec }));
        }
        9 => {
            let name = one(random, &SEEDS);
            let env = one(random, &["a", "b"]);
            let label = |live: &mut Value| live["metadata"]["labels"] = json!({ "env": env });
            if !garden.sim.edit(&resource(&kinds::SEED), "", name, label) {
                garden.put(seed(name, json!({})));
            }
        }
        _ => {}
    }
}

/// Deletes something, perhaps.
async fn delete(garden: &Garden, random: &mut fastrand::Rng) {
    let number = random.usize(0..4);
    match random.u8(0..12) {
        0 | 1 => garden.delete_if_found(&kinds::SHOOT, "a", &format!("sh{number}")).await,
        2 => garden.delete_if_found(&kinds::CONTROLLER_REGISTRATION, "", &format!("r{number}")).await,
        3 => garden.delete_if_found(&kinds::BACKUP_BUCKET, "", &format!("b{}", number % 2)).await,
        4 => garden.delete_if_found(&kinds::BACKUP_ENTRY, "a", &format!("e{}", number % 2)).await,
        5 if random.bool() => garden.delete_if_found(&kinds::SEED, "", SEEDS[number % 2]).await,
        _ => {}
    }
}

/// Reports deletions of installations that are wanted all the time.
fn watch_deletions(garden: &Garden, protected: &Arc<Mutex<WantedBySeed>>, wrong: &Arc<Mutex<Vec<String>>>) {
    let (sim, protected, wrong) = (garden.sim.clone(), protected.clone(), wrong.clone());
    garden.sim.set_faults(move |info| {
        if info.verb == "delete" && info.resource == "controllerinstallations" && info.user == "gcm" {
            let live = sim.object("controllerinstallations.core.gardener.cloud", "", &info.name).unwrap_or_default();
            let (seed, registration) = (text(&live, "/spec/seedRef/name"), text(&live, "/spec/registrationRef/name"));
            let mut protected = protected.lock().unwrap_or_else(PoisonError::into_inner);
            // A Shoot in deletion counts until the program releases it. That is no act of the user.
            narrow(&mut protected, &sim);
            if protected.get(seed).is_some_and(|names| names.contains(registration)) {
                wrong.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{registration} of {seed}"));
            }
        }
        Fault::None
    });
}

fn live(number: u64) {
    garden_of(number, |garden| async move {
        let mut random = fastrand::Rng::with_seed(number);
        for name in SEEDS {
            garden.put(seed(name, json!({})));
        }
        let provider = json!({ "spec": { "resources": pairs(&super::installations::PROVIDER, &json!({})) } });
        garden.put(object(&kinds::CONTROLLER_REGISTRATION, "", "rp", provider));
        let (protected, wrong) = (Arc::new(Mutex::new(wanted_by_seed(&garden.sim))), Arc::default());
        watch_deletions(&garden, &protected, &wrong);
        garden.start().await;
        let mut faults = fastrand::Rng::with_seed(number + 1);
        garden.sim.set_event_faults(move |_| match faults.u8(0..10) {
            0 => EventFault::Duplicate,
            _ => EventFault::Deliver,
        });
        for _ in 0..STEPS {
            for _ in 0..random.usize(1..4) {
                act(&garden, &mut random);
                delete(&garden, &mut random).await;
                narrow(&mut protected.lock().unwrap_or_else(PoisonError::into_inner), &garden.sim);
            }
            if random.bool() {
                seconds(5).await;
                *protected.lock().unwrap_or_else(PoisonError::into_inner) = wanted_by_seed(&garden.sim);
            }
        }
        garden.sim.clear_event_faults();
        seconds(600).await;

        let wrong: Vec<String> = std::mem::take(&mut wrong.lock().unwrap_or_else(PoisonError::into_inner));
        assert_eq!(wrong, Vec::<String>::new(), "wanted and deleted in life {number}");
        for name in SEEDS {
            check(&garden, name, number);
        }
    });
}

/// Checks the installations of a Seed at the end.
fn check(garden: &Garden, name: &str, number: u64) {
    let Some(seed) = garden.find(&kinds::SEED, "", name) else {
        assert_eq!(super::installations::installed(garden, name), [""; 0], "{name} is gone in life {number}");
        return;
    };
    let (wanted, is_complete) = wanted(&garden.sim, &seed);
    let is_deleting = |registration: &String| {
        let live = garden.find(&kinds::CONTROLLER_REGISTRATION, "", registration);
        live.is_none_or(|live| fields::deletion_timestamp(&live).is_some())
    };
    let all = super::installations::installed(garden, name);
    let installed: BTreeSet<String> = all.iter().filter(|it| !is_deleting(it)).cloned().collect();
    assert_eq!(all.len(), all.iter().collect::<BTreeSet<_>>().len(), "duplicates on {name} in life {number}: {all:?}");
    if is_complete {
        assert_eq!(installed, wanted, "{name} in life {number}");
    } else {
        assert!(installed.is_superset(&wanted), "{name} in life {number}: {installed:?} lacks some of {wanted:?}");
    }
}

/// spec 85 A.3 to A.7
#[test]
fn installations_of_random_lives_are_those_of_the_end_state() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("SEED") {
        Some(seed) => live(seed),
        None => (1..=number("LIVES").unwrap_or(LIVES)).for_each(live),
    }
}
