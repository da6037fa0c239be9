//! What must hold at the end of a life, when all disturbances are over.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use kit::{Activity, Role};
use serde_json::Value;
use sim::Recorded;

use super::{
    items::{Form, ITEMS, Item, ObjectPath, VALUE, Want},
    life::{BUNDLES, Bundle, Life, trace},
};
use crate::world::NAMESPACE;

/// For this many sync periods nothing is written.
const PERIODS: u32 = 3;

pub(super) async fn end(life: &Life) {
    bundles_are_applied(life);
    objects_are_as_described(life);
    assert_eq!(life.registrar.undecided(), [""; 0], "each request is decided: {:#?}", trace(&life.world));
    assert_eq!(life.beside.wrong(), [""; 0], "all besides the ManagedResources is right: {:#?}", trace(&life.world));
    no_actor_is_left_over(life);
    nothing_is_written_at_rest(life).await;
}

fn bundles_are_applied(life: &Life) {
    let world = &life.world;
    for name in BUNDLES {
        let Some(bundle) = life.bundles.get(name) else {
            assert_eq!(world.mr(name), None, "{name} is gone\n{:#?}", trace(world));
            continue;
        };
        let mr = world.mr(name).unwrap_or_else(|| panic!("{name} exists"));
        if bundle.away {
            let finalizers = mr["metadata"]["finalizers"].as_array().map_or(0, Vec::len);
            assert_eq!(finalizers, 0, "{name} is handed over: {mr:#}\n{:#?}", trace(world));
            continue;
        }
        assert!(world.is_applied(name), "{name} is applied: {:#?}\n{:#?}", mr["status"], trace(world));
        let finalizer = "resources.gardener.cloud/gardener-resource-manager";
        assert_eq!(mr["metadata"]["finalizers"], serde_json::json!([finalizer]), "{name}");
        assert_eq!(references(&mr), expected_references(bundle), "{name}: {:#?}", trace(world));
    }
}

/// Kind, namespace and name of the references; `default` for an unknown scope makes the same key (spec 10 §9.3, §10.1).
fn references(mr: &Value) -> BTreeSet<[String; 3]> {
    let references = mr["status"]["resources"].as_array().into_iter().flatten();
    references.map(|reference| key(&reference["kind"], reference)).collect()
}

fn key(kind: &Value, named: &Value) -> [String; 3] {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let namespace = named["namespace"].as_str().unwrap_or("default").to_owned();
    [text(kind), namespace, text(&named["name"])]
}

fn expected_references(bundle: &Bundle) -> BTreeSet<[String; 3]> {
    let wanted = bundle.wants.iter().filter(|(_, want)| want.form != Form::Released);
    let manifests = wanted.flat_map(|(item, want)| item.manifests(want));
    manifests.map(|manifest| key(&manifest["kind"], &manifest["metadata"])).collect()
}

/// What existing ManagedResources of our class say about an item, except for those that released it.
fn wants(life: &Life, item: Item) -> BTreeMap<&'static str, &Want> {
    let ours = life.bundles.iter().filter(|(_, bundle)| !bundle.away);
    let wants = ours.filter_map(|(name, bundle)| Some((*name, bundle.wants.get(&item)?)));
    wants.filter(|(_, want)| want.form != Form::Released).collect()
}

fn objects_are_as_described(life: &Life) {
    let world = &life.world;
    for item in ITEMS {
        let wants = wants(life, item);
        for (resource, namespace, name) in item.places() {
            let live = world.sim.object(resource, namespace, name);
            let context = || format!("{resource} {namespace}/{name}: {wants:#?}\n{:#?}", trace(world));
            let Some(live) = live else {
                assert!(wants.is_empty(), "it exists: {}", context());
                continue;
            };
            if wants.is_empty() {
                assert!(life.watchman.may_stay(item), "no ManagedResource wants it: {live:#}\n{}", context());
                continue;
            }
            assert!(live["metadata"]["deletionTimestamp"].is_null(), "it is not being deleted: {}", context());
            let enforced: Vec<_> = wants.values().filter(|want| want.form != Form::CreatedOnce).collect();
            let value = &live["metadata"]["annotations"][VALUE];
            let is_wanted = enforced.iter().any(|want| *value == want.value);
            assert!(enforced.is_empty() || is_wanted, "{value} is wanted by one of them: {}", context());
            let origin = live["metadata"]["annotations"]["resources.gardener.cloud/origin"].as_str();
            let owner = origin.and_then(|origin| origin.strip_prefix("shoot/"));
            let is_owned = owner.is_some_and(|owner| wants.contains_key(owner));
            assert!(enforced.is_empty() || is_owned, "{origin:?} is one of them: {}", context());
        }
    }
    let known = |object: &Value| {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (text("namespace"), text("name"));
        let mut places = ITEMS.into_iter().flat_map(|item| item.places().iter());
        places.any(|place| place.1 == namespace && place.2 == name)
    };
    let managed = |object: &Value| object["metadata"]["labels"]["resources.gardener.cloud/managed-by"] == "gardener";
    let stray: Vec<_> =
        world.sim.all_objects().into_iter().filter(|object| managed(object) && !known(object)).collect();
    assert!(stray.is_empty(), "no other object is managed: {stray:#?}");
}

fn no_actor_is_left_over(life: &Life) {
    let actors = life.world.actors_of(&life.leader).into_iter();
    let objects = actors.filter(|actor| actor.role == Role::Object && actor.activity != Activity::Stopped);
    for path in objects.map(|actor| actor.path) {
        let name = path.rsplit('/').next().unwrap_or_default();
        if path.starts_with("csr-approver/") {
            let is_open = life.registrar.is_open(name);
            assert!(is_open, "{path} belongs to no request that is open");
            continue;
        }
        if let Some(is_known) = life.beside.knows(&path) {
            assert!(is_known, "{path} has no object");
            continue;
        }
        assert!(life.bundles.contains_key(name), "{path} belongs to no ManagedResource");
    }
}

/// Only items that several ManagedResources describe differently are written, once a period by each (decision 11).
async fn nothing_is_written_at_rest(life: &Life) {
    let world = &life.world;
    let contested: BTreeSet<Item> = ITEMS.into_iter().filter(|item| wants(life, *item).len() > 1).collect();
    let versions = versions(life, &contested);
    world.sim.clear_requests();
    let period = world.config.borrow().controllers.managed_resource.sync_period.get();
    tokio::time::sleep(period * PERIODS + Duration::from_secs(5)).await;
    let is_write = |request: &Recorded| {
        !matches!(request.info.verb.as_str(), "get" | "list" | "watch") && !life.beside.may_come(&request.info)
    };
    let is_contested = |request: &Recorded| {
        let info = &request.info;
        let item = Item::at(&info.resource, &info.group, &info.namespace, &info.name);
        // Each such write begins or ends a roll-out, which conditions and Events report.
        let reports = info.resource == "events" || info.subresource == "status";
        item.is_some_and(|item| contested.contains(&item)) || (!contested.is_empty() && reports)
    };
    let ours = |request: &Recorded| request.info.user.starts_with("grm");
    let requests = world.sim.requests();
    let writes: Vec<_> = requests.iter().filter(|request| ours(request) && is_write(request)).collect();
    assert_eq!(versions, self::versions(life, &contested), "nothing changes while idle: {:#?}", trace(world));
    // Then each period sends all objects, and the server changes nothing.
    let always = world.config.borrow().controllers.managed_resource.always_update;
    let is_repeated = |request: &Recorded| {
        let info = &request.info;
        always
            && info.verb != "create"
            && info.verb != "delete"
            && Item::at(&info.resource, &info.group, &info.namespace, &info.name).is_some()
    };
    let writes: Vec<_> = writes.into_iter().filter(|request| !is_repeated(request)).collect();
    let wrong: Vec<_> = writes.iter().filter(|request| !is_contested(request)).map(|request| &request.info).collect();
    assert!(wrong.is_empty(), "nothing is written while idle: {:#?}\n{:#?}", wrong, trace(world));
    // A pair is two objects, and an update after a conflict is sent again.
    let most = contested.len() * 2 * BUNDLES.len() * 2 * (PERIODS as usize + 1);
    let writes: Vec<_> = writes.iter().filter(|request| request.info.subresource != "status").collect();
    assert!(writes.len() <= most, "{} writes for {contested:?}: {:#?}", writes.len(), trace(world));
    assert!(world.sim.object("namespaces", "", NAMESPACE).is_some());
}

fn versions(life: &Life, contested: &BTreeSet<Item>) -> BTreeMap<ObjectPath, Value> {
    let version = |live: &Value| live["metadata"]["resourceVersion"].clone();
    let places = ITEMS.into_iter().filter(|item| !contested.contains(item)).flat_map(|item| item.places());
    let known = places.filter_map(|place| Some((*place, life.world.sim.look_at(place.0, place.1, place.2, version)?)));
    known.collect()
}
