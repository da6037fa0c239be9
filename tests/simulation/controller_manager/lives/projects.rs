//! Projects with members and Shoots. The Namespace of a Project is never deleted while Shoots are in it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use cluster::object::{self, generation};
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::RequestInfo;
use tokio::time::Instant;

use super::{
    common::{Common, is_deleting, list, lock, one_of, text},
    users::Step,
    watchman::{Watchman, done},
};

const PROJECTS: [&str; 2] = ["p0", "p1"];
const USERS: [&str; 3] = ["u0", "u1", "u2"];
const ROLES: [&str; 4] = ["admin", "viewer", "uam", "extension:foo"];

#[derive(Clone)]
pub(super) struct Projects {
    common: Common,
    observed: Arc<Mutex<Observed>>,
}

#[derive(Default)]
struct Observed {
    /// Since when a Shoot is in a Namespace, by Namespace.
    with_shoot: BTreeMap<String, Instant>,
    suspicious: Vec<(u64, String)>,
}

fn namespace_of(project: &str) -> String {
    format!("garden-{project}")
}

impl Projects {
    pub(super) fn new(common: &Common) -> Self {
        Self { common: common.clone(), observed: Arc::default() }
    }

    pub(super) fn act(&self, random: &mut fastrand::Rng) -> Step {
        let (common, project) = (&self.common, one_of(random, &PROJECTS));
        let namespace = namespace_of(project);
        match random.u8(0..14) {
            0..=3 => {
                let member = |random: &mut fastrand::Rng| json!({ "kind": "User", "name": one_of(random, &USERS), "roles": [one_of(random, &ROLES)] });
                let members: Vec<_> = (0..random.usize(0..4)).map(|_| member(random)).collect();
                let spec = json!({ "namespace": namespace, "members": members });
                common.create(&kinds::PROJECT, "", project, json!({ "spec": spec }));
                // The server raises the generation.
                common.sim.edit("projects.core.gardener.cloud", "", project, |live| {
                    if live["spec"] != spec {
                        live["spec"] = spec.clone();
                        let next = generation(live) + 1;
                        live["metadata"]["generation"] = json!(next);
                    }
                });
                Step::new(format!("Project {project}: {spec}"))
            }
            4 | 5 => Step::deleting(&kinds::PROJECT, "", project),
            6..=8 => {
                let is_there = |live: Value| !is_deleting(&live);
                if common.find(&kinds::NAMESPACE, "", &namespace).is_some_and(is_there) {
                    common.create(&kinds::SHOOT, &namespace, "z", json!({ "spec": {} }));
                }
                Step::new(format!("Shoot {namespace}/z comes if it can"))
            }
            9 | 10 => Step::deleting(&kinds::SHOOT, &namespace, "z"),
            11 => {
                if common.find(&kinds::SHOOT, &namespace, "z").is_some() {
                    return Step::new("a Namespace with a Shoot stays");
                }
                Step::deleting(&kinds::NAMESPACE, "", &namespace)
            }
            12 => {
                common.sim.edit(
                    "rolebindings.rbac.authorization.k8s.io",
                    &namespace,
                    "gardener.cloud:system:project-viewer",
                    |live| live["subjects"] = Value::Null,
                );
                Step::new(format!("the RoleBinding of viewers of {project} is edited"))
            }
            _ => Step::deleting(&kinds::ROLE_BINDING, &namespace, "gardener.cloud:system:project-member"),
        }
    }

    pub(super) fn look(&self) {
        let shoots = self.common.all(&kinds::SHOOT);
        let namespaces: BTreeSet<_> = shoots.iter().map(|shoot| object::namespace(shoot).to_owned()).collect();
        let mut observed = lock(&self.observed);
        observed.with_shoot.retain(|namespace, _| namespaces.contains(namespace));
        for namespace in namespaces {
            observed.with_shoot.entry(namespace).or_insert_with(Instant::now);
        }
    }

    pub(super) fn see(&self, info: &RequestInfo, watchman: &Watchman) {
        if info.verb != "delete" || info.resource != "namespaces" {
            return;
        }
        let is_empty = || !self.common.all(&kinds::SHOOT).iter().any(|shoot| object::namespace(shoot) == info.name);
        let mut observed = lock(&self.observed);
        let Some(since) = observed.with_shoot.get(&info.name).copied() else { return };
        if !is_empty() && watchman.first_list(&info.user, "shoots").is_none_or(|list| since < list) {
            let text = format!("{} is deleted, with a Shoot since {:?}", info.name, since.elapsed());
            observed.suspicious.push((info.number, text));
        }
    }

    pub(super) fn violations(&self) -> Vec<String> {
        let suspicious = std::mem::take(&mut lock(&self.observed).suspicious);
        done(&self.common, suspicious)
    }

    pub(super) fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for name in PROJECTS {
            let namespace = namespace_of(name);
            let live_namespace = self.common.find(&kinds::NAMESPACE, "", &namespace);
            let Some(project) = self.common.find(&kinds::PROJECT, "", name) else {
                if let Some(left) = live_namespace {
                    wrong.push(format!("{namespace} outlives its Project: {left}"));
                }
                continue;
            };
            if is_deleting(&project) {
                if self.common.find(&kinds::SHOOT, &namespace, "z").is_none() {
                    wrong.push(format!("{name} is deleted, has no Shoot, and stays: {project}"));
                }
                continue;
            }
            let is_observed = project["status"]["observedGeneration"] == generation(&project);
            if project["status"]["phase"] != "Ready" || !is_observed {
                wrong.push(format!("{name} is not ready: {project}"));
            }
            let owner = live_namespace.unwrap_or_default();
            let owner = text(&owner, "/metadata/annotations/namespace.gardener.cloud~1project");
            if owner != object::uid(&project) {
                wrong.push(format!("{namespace} is of {owner}"));
            }
            for (role, binding) in [("viewer", "project-viewer"), ("admin", "project-member")] {
                let expected = users_with(&project, role);
                let bound =
                    self.common.find(&kinds::ROLE_BINDING, &namespace, &format!("gardener.cloud:system:{binding}"));
                let bound = bound.map(|bound| names(list(&bound, "/subjects")));
                if bound.as_ref() != Some(&expected) {
                    wrong.push(format!("{binding} of {name} has {bound:?} and not {expected:?}"));
                }
            }
            let extension = format!("gardener.cloud:extension:project:{name}:foo");
            let has_extension = self.common.find(&kinds::CLUSTER_ROLE, "", &extension).is_some();
            if has_extension == users_with(&project, "extension:foo").is_empty() {
                wrong.push(format!("{extension} exists: {has_extension}"));
            }
        }
        wrong
    }
}

fn users_with(project: &Value, role: &str) -> BTreeSet<String> {
    names(list(project, "/spec/members").filter(|member| list(member, "/roles").any(|other| *other == *role)))
}

fn names<'a>(entries: impl Iterator<Item = &'a Value>) -> BTreeSet<String> {
    entries.map(|entry| text(entry, "/name").to_owned()).collect()
}
