//! Access to the objects without requests, for tests.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Sim, body, defaults, kinds, managed_fields,
    state::ApiState,
    storage::{Key, Object, Scope},
};

/// Field manager of changes by [`Sim::edit`].
pub const EDITOR: &str = "editor";

/// Why [`Sim::put`] refuses an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    /// The kind is not served.
    #[error("the simulator serves no {kind} in {api_version}")]
    UnknownKind {
        /// `apiVersion` of the object.
        api_version: String,
        /// `kind` of the object.
        kind: String,
    },
    /// `metadata.name` is missing.
    #[error("the object has no name")]
    Unnamed,
    /// The object breaks a rule of its kind.
    #[error("the object is refused: {0}")]
    Refused(String),
}

impl Sim {
    /// Returns a stored object. `resource` is written as for kubectl (`deployments.apps`).
    pub fn object(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        self.look_at(resource, namespace, name, Value::clone)
    }

    /// Returns what `look` finds in an object, without copying the object.
    pub fn look_at<T>(&self, resource: &str, namespace: &str, name: &str, look: impl FnOnce(&Value) -> T) -> Option<T> {
        let object = {
            let state = self.shared.state();
            let (group, resource) = state.home(resource);
            state.storage.get(&Key::new(&group, &resource, namespace, name)).cloned()
        };
        object.map(|object| look(&object.value))
    }

    /// All objects of a resource, by namespace and name.
    pub fn objects(&self, resource: &str) -> Vec<Value> {
        let state = self.shared.state();
        let (group, resource) = state.home(resource);
        let scope = Scope::new(&group, &resource, None);
        let values = state.storage.scan(&scope).map(|(_, object)| object.value.clone());
        values.collect()
    }

    /// Returns what `look` finds in each object of a resource, by namespace and name, without copying.
    pub fn look_at_all<T>(&self, resource: &str, look: impl FnMut(&Value) -> T) -> Vec<T> {
        let objects: Vec<_> = {
            let state = self.shared.state();
            let (group, resource) = state.home(resource);
            let scope = Scope::new(&group, &resource, None);
            state.storage.scan(&scope).map(|(_, object)| object.clone()).collect()
        };
        objects.iter().map(|object| &object.value).map(look).collect()
    }

    /// Every object of the server, by group, resource, namespace and name.
    pub fn all_objects(&self) -> Vec<Value> {
        self.shared.state().storage.all().map(|(_, object)| object.value.clone()).collect()
    }

    /// Stores or replaces an object with its status, after few checks. Creates its namespace, serves definitions.
    pub fn put(&self, object: Value) -> Result<Value, PutError> {
        let mut state = self.shared.state();
        let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        let (api_version, kind_name) = (text("apiVersion"), text("kind"));
        let Some(kind) = state.registry.find_kind(&api_version, &kind_name) else {
            return Err(PutError::UnknownKind { api_version, kind: kind_name });
        };
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if name.is_empty() {
            return Err(PutError::Unnamed);
        }
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        if kind.namespaced {
            state.put_namespace(&namespace);
        }
        let key = state.key(&kind, &namespace, &name);
        let stored = state.put_fixture(&kind, key, object)?;
        if kind_name == "CustomResourceDefinition" {
            state.establish(&name);
        }
        Ok(stored)
    }

    /// Changes a stored object past all rules; returns `false` if it is missing. [`EDITOR`] owns the change.
    pub fn edit(&self, resource: &str, namespace: &str, name: &str, change: impl FnOnce(&mut Value)) -> bool {
        let mut state = self.shared.state();
        let (group, resource) = state.home(resource);
        let key = Key::new(&group, &resource, namespace, name);
        let Some(object) = state.storage.get(&key).cloned() else { return false };
        let mut value = object.value.clone();
        change(&mut value);
        state.note_edit(&object.value, &mut value);
        state.store(key, value);
        true
    }

    /// Removes an object at once, whatever its finalizers. Returns its last state.
    pub fn remove(&self, resource: &str, namespace: &str, name: &str) -> Option<Value> {
        let mut state = self.shared.state();
        let (group, resource) = state.home(resource);
        let erased = state.erase(&Key::new(&group, &resource, namespace, name));
        erased.map(|object| object.value.clone())
    }
}

impl ApiState {
    fn home(&self, resource: &str) -> (String, String) {
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        match self.registry.find_resource(group, resource) {
            Some(kind) => (kind.home().0.to_owned(), kind.home().1.to_owned()),
            None => (group.to_owned(), resource.to_owned()),
        }
    }

    pub(super) fn put_namespace(&mut self, name: &str) {
        let key = Key::new("", "namespaces", "", name);
        if self.storage.get(&key).is_none() {
            let namespace = json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
                "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
            });
            self.put_object(key, namespace);
        }
    }

    /// Enters the owner of an edit, unless the edit did. The status has an entry of its own.
    fn note_edit(&self, old: &Value, new: &mut Value) {
        if old["metadata"]["managedFields"] != new["metadata"]["managedFields"] {
            return;
        }
        let text = |field: &str| new[field].as_str().unwrap_or_default();
        let kind = self.registry.find_kind(text("apiVersion"), text("kind"));
        let now = self.clock.text();
        let Some(status) = kind.filter(|kind| kind.has_status).map(|_| new["status"].take()) else {
            managed_fields::record(Some(old), new, EDITOR, "", &now);
            return;
        };
        let put = |object: &mut Value, status: &Value| match (status, object.as_object_mut()) {
            (_, None) => {}
            (Value::Null, Some(fields)) => drop(fields.remove("status")),
            (status, Some(fields)) => drop(fields.insert("status".into(), status.clone())),
        };
        put(new, &old["status"]);
        managed_fields::record(Some(old), new, EDITOR, "", &now);
        let main = new.clone();
        put(new, &status);
        managed_fields::record(Some(&main), new, EDITOR, "status", &now);
    }

    fn put_fixture(&mut self, kind: &kinds::ServedKind, key: Key, mut object: Value) -> Result<Value, PutError> {
        body::check_shape(kind, &object).map_err(PutError::Refused)?;
        body::tidy(&mut object);
        let old = self.storage.get(&key).map(|old| old.value.clone());
        let defaults = defaults::apply(kind, &mut object, old.as_ref(), &mut self.allocations);
        defaults.map_err(|failure| PutError::Refused(String::from_utf8_lossy(&failure.body).trim().to_owned()))?;
        if kind.generation != kinds::Generation::None && object["metadata"].get("generation").is_none() {
            let generation = match &old {
                None => 1,
                Some(old) => {
                    let generation = old["metadata"]["generation"].as_i64().unwrap_or_default();
                    generation + i64::from(kinds::bumps_generation(kind, old, &object))
                }
            };
            body::metadata(&mut object).insert("generation".into(), generation.into());
        }
        Ok(self.put_object(key, object).value.clone())
    }

    /// Stores an object under a new version. A missing uid and creation time are kept from before or new.
    pub(super) fn put_object(&mut self, key: Key, mut object: Value) -> Arc<Object> {
        let old = self.storage.get(&key).cloned();
        let uid = self.new_uid();
        let now = self.clock.text();
        let metadata = body::metadata(&mut object);
        for (field, new) in [("uid", uid), ("creationTimestamp", now)] {
            if !metadata.contains_key(field) {
                let kept = old.as_ref().map(|old| old.value["metadata"][field].clone());
                metadata.insert(field.into(), kept.unwrap_or_else(|| new.into()));
            }
        }
        self.store(key, object)
    }
}
