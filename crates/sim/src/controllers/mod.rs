//! What the API server and kube-controller-manager do by themselves, on virtual time (facts §6, §7). Each change of an
//! object may add a task to the agenda, whose driver runs it. `definitions.rs` serves CustomResourceDefinitions and
//! deletes their objects, `namespaces.rs` fills and empties namespaces, `garbage.rs` collects dependents. Tests can
//! switch off everything except the definitions.

mod definitions;
mod garbage;
mod namespaces;

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value, json};

use super::{
    agenda::DueTask,
    body,
    delete::{DeleteOptions, FOREGROUND, ORPHAN},
    kinds::ServedKind,
    state::ApiState,
    storage::{Change, Key, Scope},
    update,
};

const REACTION: Duration = Duration::from_millis(30); // delay until the server's own controllers see a change
/// Delay from the deletion of a namespace, or of the last object of a definition, to the next step.
const EMPTYING: Duration = Duration::from_secs(5);

impl ApiState {
    pub(crate) fn observe(&mut self, change: &Change) {
        self.observe_definition(change);
        self.observe_namespace(change);
        if self.behaviour.garbage_collection {
            self.observe_garbage(change);
        }
        if self.behaviour.volume_protection
            && matches!(&*change.key.resource, "persistentvolumeclaims" | "persistentvolumes")
            && change.after.as_ref().is_some_and(|after| is_deleting(&after.value))
        {
            self.agenda.add(REACTION, DueTask::Unprotect { key: change.key.clone() });
        }
    }

    pub(crate) fn perform(&mut self, due_task: DueTask) {
        match due_task {
            DueTask::Establish { name } => self.establish(&name),
            DueTask::EmptyDefinition { name } => self.empty_definition(&name),
            DueTask::RemoveDefinition { name } => self.remove_definition(&name),
            DueTask::EmptyNamespace { name } => self.empty_namespace(&name),
            DueTask::FillNamespace { name } => self.fill_namespace(&name),
            DueTask::CheckOwners { key } => self.check_owners(&key),
            DueTask::HandleDependents { key } => self.handle_dependents(&key),
            DueTask::Unprotect { key } => self.unprotect(&key),
        }
    }

    /// Deletes all objects of a kind, in a namespace or everywhere, unless finalizers hold them.
    fn delete_all(&mut self, kind: &Arc<ServedKind>, namespace: Option<&str>) {
        let keys: Vec<Key> = self.storage.scan(&scope(kind, namespace)).map(|(key, _)| key.clone()).collect();
        for key in keys {
            // This fails only for an object that was deleted twice and is gone.
            let _ = self.remove(kind, &key, &DeleteOptions::background(), false);
        }
    }

    fn unprotect(&mut self, key: &Key) {
        for finalizer in ["kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"] {
            self.drop_finalizer(key, finalizer);
        }
    }

    fn drop_finalizer(&mut self, key: &Key, finalizer: &str) {
        let Some(object) = self.storage.get(key).cloned() else { return };
        if !has_finalizer(&object.value, finalizer) {
            return;
        }
        let mut value = object.value.clone();
        let metadata = body::metadata(&mut value);
        if let Some(list) = metadata.get_mut("finalizers").and_then(Value::as_array_mut) {
            list.retain(|other| other != finalizer);
            if list.is_empty() {
                metadata.remove("finalizers");
            }
        }
        if update::is_finished(&value) {
            self.erase(key);
        } else {
            self.store(key.clone(), value);
        }
    }
}

fn is_deleting(object: &Value) -> bool {
    object["metadata"].get("deletionTimestamp").is_some()
}

fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().any(|other| other == finalizer)
}

fn waits_for_dependents(object: &Value) -> bool {
    is_deleting(object) && (has_finalizer(object, FOREGROUND) || has_finalizer(object, ORPHAN))
}

fn scope(kind: &ServedKind, namespace: Option<&str>) -> Scope {
    let (group, resource) = kind.home();
    Scope::new(group, resource, namespace)
}

/// Sets a condition; its transition time changes only with its status.
fn set_condition(value: &mut Value, now: &str, name: &str, (status, reason, message): (&str, &str, &str)) {
    if !value["status"].is_object() {
        value["status"] = Value::Object(Map::new());
    }
    let list = &mut value["status"]["conditions"];
    if !list.is_array() {
        *list = json!([]);
    }
    let Some(list) = list.as_array_mut() else { return };
    let place = list.iter().position(|condition| condition["type"] == name);
    let since = place.map(|place| &list[place]).filter(|old| old["status"] == status);
    let since = since.map_or_else(|| now.into(), |old| old["lastTransitionTime"].clone());
    let condition =
        json!({"type": name, "status": status, "lastTransitionTime": since, "reason": reason, "message": message});
    match place {
        Some(place) => list[place] = condition,
        None => list.push(condition),
    }
}
