//! Users of what is guarded, referenced and bound: Shoots and other referrers, and the objects that they refer to.

use cluster::{Resource, object};
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};

use super::{
    common::{Common, has_finalizer, is_deleting, one_of},
    ties::{CREDENTIALS, REFERENCED},
};
use crate::controller_manager::{bindings, garden::resource, guards::finalizer_of, references::to};

const NAMESPACES: [&str; 3] = ["a", "b", "garden"];
const NAMES: [&str; 2] = ["x", "y"];

/// Guarded kinds that are no referrers of others.
const GUARDED: [&Resource; 4] =
    [&kinds::CLOUD_PROFILE, &kinds::CONTROLLER_DEPLOYMENT, &kinds::QUOTA, &kinds::EXPOSURE_CLASS];

/// Kinds of objects that users create without references.
const CREATED: [&Resource; 4] = [&kinds::QUOTA, &kinds::EXPOSURE_CLASS, &kinds::INTERNAL_SECRET, &kinds::CLOUD_PROFILE];

/// Kinds of referrers. Shoots are deleted most often.
const REFERRERS: [&Resource; 7] = [
    &kinds::SECRET_BINDING,
    &kinds::CREDENTIALS_BINDING,
    &kinds::NAMESPACED_CLOUD_PROFILE,
    &kinds::CONTROLLER_REGISTRATION,
    &kinds::SHOOT,
    &kinds::SHOOT,
    &kinds::SHOOT,
];

/// An object that a user deletes.
pub(super) type Deletion = (Resource, String, String);

/// A step of a user: what happens, and what is deleted by a request.
pub(super) struct Step {
    pub(super) text: String,
    pub(super) deletion: Option<Deletion>,
}

impl Step {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), deletion: None }
    }

    pub(super) fn deleting(kind: &Resource, namespace: &str, name: &str) -> Self {
        Self {
            text: format!("{kind} {namespace}/{name} is deleted"),
            deletion: Some((kind.clone(), namespace.to_owned(), name.to_owned())),
        }
    }
}

/// Lets a user do something.
pub(super) fn act(common: &Common, random: &mut fastrand::Rng) -> Step {
    let namespace = one_of(random, &NAMESPACES);
    let name = one_of(random, &NAMES);
    match random.u8(0..30) {
        0..=7 => change_shoot(common, random, namespace, name),
        8..=11 => change_binding(common, random, namespace, name),
        12 => {
            let parent = json!({ "kind": "CloudProfile", "name": one_of(random, &NAMES) });
            let versions = json!({ "versions": [{ "version": "1.2.3" }, { "version": "9.9.9" }] });
            let kubernetes = if random.bool() { versions } else { Value::Null };
            let fields = json!({ "spec": { "parent": parent, "kubernetes": kubernetes } });
            common.set(&kinds::NAMESPACED_CLOUD_PROFILE, namespace, name, fields);
            Step::new(format!("NamespacedCloudProfile {namespace}/{name} is of {parent}"))
        }
        13 => {
            let references = json!([{ "name": one_of(random, &NAMES) }]);
            let fields = json!({ "spec": { "deployment": { "deploymentRefs": references } } });
            common.set(&kinds::CONTROLLER_REGISTRATION, "", name, fields);
            Step::new(format!("ControllerRegistration {name} refers to {references}"))
        }
        14 | 15 => {
            let references = any_references(random);
            common.set(&kinds::CONTROLLER_DEPLOYMENT, "", name, json!({ "resources": references }));
            Step::new(format!("ControllerDeployment {name} refers to {references}"))
        }
        16..=18 => create(common, random, namespace, name),
        19..=25 => delete(random, namespace, name),
        26 | 27 => finish(common, random),
        _ => by_hand(common, random, namespace, name),
    }
}

/// Returns references to some objects. An object may be absent.
pub(super) fn any_references(random: &mut fastrand::Rng) -> Value {
    let count = random.usize(0..3);
    let one = |_| to(one_of(random, &REFERENCED), one_of(random, &["x", "y", "m0"]));
    Value::Array((0..count).map(one).collect())
}

fn change_shoot(common: &Common, random: &mut fastrand::Rng, namespace: &str, name: &str) -> Step {
    let mut spec = json!({ "resources": any_references(random), "seedName": one_of(random, &["s0", "s1"]) });
    let of = one_of(random, &NAMES);
    match random.u8(0..5) {
        0 => spec["cloudProfileName"] = json!(of),
        1 => spec["cloudProfile"] = json!({ "name": of }),
        2 => spec["cloudProfile"] = json!({ "kind": "CloudProfile", "name": of }),
        3 => spec["cloudProfile"] = json!({ "kind": "NamespacedCloudProfile", "name": of }),
        _ => {}
    }
    for field in ["exposureClassName", "secretBindingName", "credentialsBindingName"] {
        if random.u8(0..3) > 0 {
            spec[field] = json!(one_of(random, &NAMES));
        }
    }
    let text = format!("Shoot {namespace}/{name}: {spec}");
    let status = json!({ "seedName": one_of(random, &["s0", "s1", "s2"]) });
    let finalizers = if random.bool() { json!(["gardener"]) } else { Value::Null };
    let new = json!({ "metadata": { "finalizers": finalizers }, "spec": spec, "status": status });
    common.create(&kinds::SHOOT, namespace, name, new);
    common.set(&kinds::SHOOT, namespace, name, json!({ "spec": spec }));
    Step::new(text)
}

fn change_binding(common: &Common, random: &mut fastrand::Rng, namespace: &str, name: &str) -> Step {
    let (kind, ..) = one_of(random, &bindings::KINDS);
    let own = random.bool();
    let place = if own { Value::Null } else { json!(one_of(random, &NAMESPACES)) };
    let (field, of) = match *kind == kinds::SECRET_BINDING {
        true => ("secretRef", CREDENTIALS[0]),
        false => ("credentialsRef", one_of(random, &CREDENTIALS)),
    };
    let reference = json!({
        "apiVersion": of.api_version(), "kind": &*of.kind, "name": one_of(random, &NAMES), "namespace": place,
    });
    let quotas = match random.u8(0..3) {
        0 => json!([{ "name": one_of(random, &NAMES), "namespace": one_of(random, &NAMESPACES) }]),
        1 => json!([{ "name": one_of(random, &NAMES) }]),
        _ => Value::Null,
    };
    let provider = json!({ "type": one_of(random, &["aws", "gcp"]) });
    let fields = json!({ field: reference, "quotas": quotas, "provider": provider });
    common.set(kind, namespace, name, fields.clone());
    Step::new(format!("{kind} {namespace}/{name}: {fields}"))
}

fn create(common: &Common, random: &mut fastrand::Rng, namespace: &str, name: &str) -> Step {
    let kind = one_of(random, &[&REFERENCED[..], &CREATED].concat());
    let place = if kind.namespaced { namespace } else { "" };
    let fields = match *kind == kinds::CLOUD_PROFILE {
        true => {
            let expired = common.time(random.i64(-30_000..30_000));
            let versions = json!([{ "version": "1.2.3", "expirationDate": expired }, { "version": "1.3.0" }]);
            json!({ "spec": { "kubernetes": { "versions": versions } } })
        }
        false => json!({}),
    };
    common.create(kind, place, name, fields);
    Step::new(format!("{kind} {place}/{name} exists"))
}

fn delete(random: &mut fastrand::Rng, namespace: &str, name: &str) -> Step {
    let kind = one_of(random, &[&GUARDED[..], &REFERENCED, &CREDENTIALS, &REFERRERS].concat());
    Step::deleting(kind, if kind.namespaced { namespace } else { "" }, name)
}

/// gardenlet is done with what is being deleted.
fn finish(common: &Common, random: &mut fastrand::Rng) -> Step {
    let mut deleted = Vec::new();
    for kind in [&kinds::SHOOT, &kinds::SEED] {
        let all = common.all(kind).into_iter();
        let held = all.filter(|object| is_deleting(object) && has_finalizer(object, "gardener"));
        deleted.extend(
            held.map(|object| (kind.clone(), object::namespace(&object).to_owned(), object::name(&object).to_owned())),
        );
    }
    if deleted.is_empty() {
        return Step::new("gardenlet has nothing to finish");
    }
    let (kind, namespace, name) = deleted.swap_remove(random.usize(0..deleted.len()));
    common.unhold(&kind, &namespace, &name, "gardener");
    Step::new(format!("gardenlet is done with {kind} {namespace}/{name}"))
}

/// Somebody changes what the program wrote.
fn by_hand(common: &Common, random: &mut fastrand::Rng, namespace: &str, name: &str) -> Step {
    let kind = one_of(random, &[&GUARDED[..], &REFERENCED, &CREDENTIALS].concat());
    let place = if kind.namespaced { namespace } else { "" };
    let Some(live) = common.find(kind, place, name).filter(|live| !is_deleting(live)) else {
        return Step::new("nothing is changed by hand");
    };
    match object::finalizers(&live).next().map(str::to_owned) {
        Some(finalizer) if random.bool() => {
            common.unhold(kind, place, name, &finalizer);
            Step::new(format!("{kind} {place}/{name} loses {finalizer} by hand"))
        }
        Some(_) if *kind == kinds::CONTROLLER_DEPLOYMENT => {
            common.unhold(kind, place, name, finalizer_of(kind));
            Step::new(format!("{kind} {place}/{name} loses its guard by hand"))
        }
        _ => {
            common.sim.edit(&resource(kind), place, name, |live| {
                live["metadata"]["labels"] = Value::Null;
            });
            Step::new(format!("{kind} {place}/{name} loses its labels by hand"))
        }
    }
}
