use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::{Value, json};

use super::{
    super::{
        agenda::DueTask,
        state::ApiState,
        storage::{Change, Key, Object},
        update,
    },
    EMPTYING, REACTION, is_deleting, scope, set_condition,
};

#[derive(Default)]
struct Left {
    resources: Vec<String>,
    finalizers: BTreeMap<String, usize>,
}

impl ApiState {
    pub(super) fn observe_namespace(&mut self, change: &Change) {
        let is_namespace = change.key.group.is_empty() && &*change.key.resource == "namespaces";
        if is_namespace {
            let name = change.key.name.to_string();
            match (&change.before, &change.after) {
                (None, Some(_)) if self.behaviour.namespace_contents.is_some() => {
                    self.agenda.add(REACTION, DueTask::FillNamespace { name });
                }
                (before, Some(after))
                    if self.behaviour.namespace_deletion
                        && is_deleting(&after.value)
                        && before.as_ref().is_none_or(|before| !is_deleting(&before.value)) =>
                {
                    self.agenda.add(EMPTYING, DueTask::EmptyNamespace { name });
                }
                _ => {}
            }
        } else if change.after.is_none() && !change.key.namespace.is_empty() && self.behaviour.namespace_deletion {
            let key = Key::new("", "namespaces", "", &change.key.namespace);
            let is_held = self.storage.get(&key).is_some_and(|namespace| {
                is_deleting(&namespace.value) && !namespace.value["status"]["conditions"].is_null()
            });
            // The namespace is being deleted and this was its last object.
            if is_held && !self.has_contents(&change.key.namespace) {
                self.agenda.add(EMPTYING, DueTask::EmptyNamespace { name: change.key.namespace.to_string() });
            }
        }
    }

    fn has_contents(&self, namespace: &str) -> bool {
        let kinds: Vec<_> = self.registry.all().filter(|kind| kind.namespaced).cloned().collect();
        kinds.iter().any(|kind| self.storage.scan(&scope(kind, Some(namespace))).next().is_some())
    }

    pub(super) fn empty_namespace(&mut self, name: &str) {
        let key = Key::new("", "namespaces", "", name);
        let Some(namespace) = self.storage.get(&key).cloned() else { return };
        let left = self.delete_contents(name);
        if left.resources.is_empty() {
            self.finish_namespace(&key);
            return;
        }
        let mut value = namespace.value.clone();
        report(&mut value, &left, &self.clock.text());
        if value != namespace.value {
            self.store(key, value);
        }
    }

    fn delete_contents(&mut self, namespace: &str) -> Left {
        let kinds: Vec<_> = self.registry.all().filter(|kind| kind.namespaced).cloned().collect();
        let mut left = Left::default();
        let mut done = BTreeSet::new();
        for kind in kinds {
            // Versions of a resource share their objects.
            if !done.insert((kind.home().0.to_owned(), kind.home().1.to_owned())) {
                continue;
            }
            self.delete_all(&kind, Some(namespace));
            let place = scope(&kind, Some(namespace));
            let objects: Vec<_> = self.storage.scan(&place).map(|(_, object)| object.clone()).collect();
            if !objects.is_empty() {
                left.resources.push(format!("{}.{} has {} resource instances", kind.plural, kind.group, objects.len()));
                left.count_finalizers(&objects);
            }
        }
        left
    }

    fn finish_namespace(&mut self, key: &Key) {
        let Some(namespace) = self.storage.get(key).cloned() else { return };
        let mut value = namespace.value.clone();
        if let Some(spec) = value.get_mut("spec").and_then(Value::as_object_mut) {
            spec.remove("finalizers");
        }
        if update::is_finished(&value) {
            self.erase(key);
        } else {
            self.store(key.clone(), value);
        }
    }

    pub(super) fn fill_namespace(&mut self, name: &str) {
        if self.storage.get(&Key::new("", "namespaces", "", name)).is_none_or(|found| is_deleting(&found.value)) {
            return;
        }
        let Some(authority) = self.behaviour.namespace_contents.clone() else { return };
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name},
        });
        let certificates = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": "kube-root-ca.crt", "namespace": name,
                "annotations": {
                    "kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver."
                },
            },
            "data": {"ca.crt": authority},
        });
        for (resource, object) in [("serviceaccounts", account), ("configmaps", certificates)] {
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
            let key = Key::new("", resource, &namespace, &name);
            if self.storage.get(&key).is_none() {
                self.put_object(key, object);
            }
        }
    }
}

impl Left {
    fn count_finalizers(&mut self, objects: &[Arc<Object>]) {
        for object in objects {
            for finalizer in object.value["metadata"]["finalizers"].as_array().into_iter().flatten() {
                *self.finalizers.entry(finalizer.as_str().unwrap_or_default().to_owned()).or_default() += 1;
            }
        }
    }
}

fn report(namespace: &mut Value, left: &Left, now: &str) {
    let fine = [
        ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
    ];
    for (condition, reason, message) in fine {
        set_condition(namespace, now, condition, ("False", reason, message));
    }
    let text = format!("Some resources are remaining: {}", left.resources.join(", "));
    set_condition(namespace, now, "NamespaceContentRemaining", ("True", "SomeResourcesRemain", &text));
    if !left.finalizers.is_empty() {
        let list = left.finalizers.iter().map(|(name, count)| format!("{name} in {count} resource instances"));
        let list: Vec<_> = list.collect();
        let text = format!("Some content in the namespace has finalizers remaining: {}", list.join(", "));
        set_condition(namespace, now, "NamespaceFinalizersRemaining", ("True", "SomeFinalizersRemain", &text));
    }
}
