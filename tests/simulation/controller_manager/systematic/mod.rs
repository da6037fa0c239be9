//! Systematic faults of gardener-controller-manager: a scenario of each controller. [`crate::systematic`] says what happens,
//! and how a run is repeated. faults rows 4, 6, 7 and 8

mod bastions;
mod bindings;
mod certificates;
mod cloud_profiles;
mod events;
mod gardenlets;
mod guards;
mod installations;
mod managed_seed_sets;
mod projects;
mod projects_quotas;
mod references;
mod seeds;
mod shoots;
mod shoots_moving;
mod start;

use std::{future::Future, rc::Rc};

use cluster::Resource;
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::Sim;

use super::{
    garden::{Garden, garden, object, resource},
    shoots::seconds,
};
use crate::systematic::{Stage, ensure};

/// A scenario in the garden.
type Scenario = crate::systematic::Scenario<Garden>;

impl Stage for Garden {
    const USER: &'static str = "gcm";

    fn enter<F: Future>(play: impl FnOnce(Rc<Self>) -> F) -> F::Output {
        garden(play)
    }

    fn sim(&self) -> &Sim {
        &self.sim
    }

    async fn start_program(&self) {
        self.start().await;
    }
}

/// Returns an object; null if there is none.
fn look(sim: &Sim, kind: &Resource, namespace: &str, name: &str) -> Value {
    sim.object(&resource(kind), namespace, name).unwrap_or_default()
}

fn exists(sim: &Sim, kind: &Resource, namespace: &str, name: &str) -> bool {
    !look(sim, kind, namespace, name).is_null()
}

fn is_going(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// An object must exist, and nobody may delete it.
fn stays(sim: &Sim, kind: &Resource, namespace: &str, name: &str) -> Result<(), String> {
    let object = look(sim, kind, namespace, name);
    ensure(!object.is_null() && !is_going(&object), format!("{kind} {namespace}/{name} is deleted"))
}

/// Changes an object, if it exists.
fn edit(garden: &Garden, kind: &Resource, namespace: &str, name: &str, change: impl FnOnce(&mut Value)) {
    garden.sim.edit(&resource(kind), namespace, name, change);
}

/// Removes the finalizers of other programs from an object, as these do when they are done with it. An object in deletion goes
/// with its last finalizer; a plain edit would leave it.
fn let_go(garden: &Garden, kind: &Resource, namespace: &str, name: &str, others: &[&str]) {
    let is_other = |finalizer: &Value| finalizer.as_str().is_some_and(|finalizer| others.contains(&finalizer));
    edit(garden, kind, namespace, name, |object| {
        if let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut() {
            finalizers.retain(|finalizer| !is_other(finalizer));
        }
    });
    let object = look(&garden.sim, kind, namespace, name);
    let is_free = object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
    if is_going(&object) && is_free {
        garden.sim.remove(&resource(kind), namespace, name);
    }
}

/// Puts a Namespace that belongs to no Project.
fn put_namespace(garden: &Garden, name: &str) {
    garden.put(object(&kinds::NAMESPACE, "", name, json!({})));
}
