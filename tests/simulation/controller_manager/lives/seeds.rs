//! Seeds, shared Secrets and their copies. The server sees each write into the Namespace of a Seed: none may hold what
//! decision 25 keeps from Seeds.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use cluster::object;
use gardener_resource_manager::{
    actors::controller_manager::seed::secrets::roles::{PRIVATE_ROLES, has_shared_role},
    api::kinds,
};
use serde_json::{Value, json};

use super::{
    common::{Common, is_deleting, lock, one_of, text},
    users::{Step, any_references},
};
use crate::controller_manager::{
    garden::Garden,
    seed_secrets::{ROLE, secret},
};

pub(super) const SEEDS: [&str; 3] = ["s0", "s1", "s2"];
const SHARED: [&str; 4] = ["m0", "m1", "m2", "m3"];
/// Secrets of other users in the Namespaces of Seeds. Some have the name of a shared one.
const FOREIGN: [&str; 3] = ["own", "other", "m1"];

#[derive(Clone)]
pub(super) struct Seeds {
    common: Common,
    leaks: Arc<Mutex<Vec<String>>>,
}

impl Seeds {
    pub(super) fn new(garden: &Garden, common: &Common) -> Self {
        let leaks = Arc::<Mutex<Vec<String>>>::default();
        let seen = leaks.clone();
        garden.sim.set_mutation(move |reviewed, written| {
            let is_of_seed = object::namespace(written).starts_with("seed-");
            // Each Secret has its role as a key of its data.
            let is_private =
                |role: &str| !written["data"][role].is_null() || written["metadata"]["labels"][ROLE] == *role;
            if reviewed.resource == "secrets" && is_of_seed && PRIVATE_ROLES.iter().any(|role| is_private(role)) {
                lock(&seen).push(format!("a Seed gets what it must not see: {written}"));
            }
        });
        Self { common: common.clone(), leaks }
    }

    pub(super) fn act(&self, random: &mut fastrand::Rng) -> Step {
        let (common, seed) = (&self.common, one_of(random, &SEEDS));
        let namespace = format!("seed-{seed}");
        match random.u8(0..16) {
            0..=2 => {
                let references = any_references(random);
                let finalizers = if random.bool() { json!(["gardener"]) } else { Value::Null };
                let new = json!({ "metadata": { "finalizers": finalizers }, "spec": { "resources": references } });
                common.create(&kinds::SEED, "", seed, new);
                common.set(&kinds::SEED, "", seed, json!({ "spec": { "resources": references } }));
                Step::new(format!("Seed {seed} refers to {references}"))
            }
            3 => Step::deleting(&kinds::SEED, "", seed),
            4..=9 => self.change_shared(random),
            10 => {
                let name = one_of(random, &SHARED);
                Step::deleting(&kinds::SECRET, &namespace, name)
            }
            11 | 12 => {
                let name = one_of(random, &SHARED);
                let how = random.u8(0..3);
                common.sim.edit("secrets", &namespace, name, |copy| match how {
                    0 => copy["data"] = json!({ "edited": "eA==" }),
                    1 => copy["metadata"]["labels"] = json!({ ROLE: "foo", "more": "x" }),
                    // Under a Secret that is no copy, another type blocks the copy for good.
                    _ if has_shared_role(copy) => copy["type"] = json!("example.com/other"),
                    _ => {}
                });
                Step::new(format!("the copy of {name} for {seed} is edited, kind {how}"))
            }
            13 | 14 => {
                let name = one_of(random, &FOREIGN);
                let role = one_of(random, &[None, Some("monitoring"), Some("kubeconfig")]);
                if common.find(&kinds::NAMESPACE, "", &namespace).is_some_and(|live| !is_deleting(&live))
                    && common.find(&kinds::SECRET, &namespace, name).is_none()
                {
                    let mut foreign = secret(&namespace, name, role, "eA==");
                    foreign["data"] = json!({ "foreign": "eA==" });
                    drop(common.sim.put(foreign));
                }
                Step::new(format!("a foreign Secret {namespace}/{name} with role {role:?}"))
            }
            _ => Step::deleting(&kinds::NAMESPACE, "", &namespace),
        }
    }

    fn change_shared(&self, random: &mut fastrand::Rng) -> Step {
        let name = one_of(random, &SHARED);
        if random.u8(0..5) == 0 {
            return Step::deleting(&kinds::SECRET, "garden", name);
        }
        let private = one_of(random, &PRIVATE_ROLES);
        let role = one_of(random, &[Some("foo"), Some("bar"), Some(""), None, Some(private)]);
        let key = role.filter(|role| !role.is_empty()).unwrap_or("none");
        let value = one_of(random, &["eA==", "eQ==", "eg=="]);
        let mut content = secret("garden", name, role, value);
        content["data"] = json!({ key: value });
        let (data, labels) = (content["data"].clone(), content["metadata"]["labels"].clone());
        let is_changed = self.common.sim.edit("secrets", "garden", name, |live| {
            live["data"] = data;
            // The labels of bindings go, too. Their controllers put them back.
            live["metadata"]["labels"] = labels;
        });
        if !is_changed {
            drop(self.common.sim.put(content));
        }
        Step::new(format!("Secret garden/{name} has role {role:?}"))
    }

    pub(super) fn violations(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.leaks))
    }

    /// Returns which Seeds do not have exactly the copies that are due.
    pub(super) fn wrong(&self) -> Vec<String> {
        let common = &self.common;
        let due = self.shared_in("garden");
        let mut wrong = Vec::new();
        for seed in common.all(&kinds::SEED) {
            let name = format!("seed-{}", object::name(&seed));
            let Some(namespace) = common.find(&kinds::NAMESPACE, "", &name) else {
                wrong.push(format!("{name} does not exist"));
                continue;
            };
            if namespace["metadata"]["ownerReferences"][0]["uid"] != *object::uid(&seed) {
                wrong.push(format!("{name} is not that of its Seed: {namespace}"));
            }
            if text(&namespace, "/metadata/labels/gardener.cloud~1role") != "seed" {
                wrong.push(format!("{name} lacks its label"));
            }
            let copies = self.shared_in(&name);
            if copies != due {
                wrong.push(format!("{name} has {copies:?} and not {due:?}"));
            }
        }
        wrong
    }

    /// Returns the content of all Secrets of a namespace with a role that is shared.
    fn shared_in(&self, namespace: &str) -> BTreeMap<String, Value> {
        let is_in = |secret: &Value| object::namespace(secret) == namespace;
        let is_shared = |secret: &Value| object::label(secret, ROLE).is_some_and(|role| !PRIVATE_ROLES.contains(&role));
        let content = |secret: Value| {
            let metadata = &secret["metadata"];
            let content = json!([secret["type"], secret["data"], metadata["labels"], metadata["annotations"]]);
            (object::name(&secret).to_owned(), content)
        };
        let secrets = self.common.all(&kinds::SECRET).into_iter();
        secrets.filter(|secret| is_in(secret) && is_shared(secret)).map(content).collect()
    }
}
