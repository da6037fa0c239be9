//! What the API server and kube-controller-manager do by themselves: serving definitions, emptying namespaces and
//! definitions, collecting garbage (facts §6, §7). Each works on virtual time and can be switched off.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value, json};

use super::{
    agenda::Duty,
    body,
    delete::{DEFINITION_CLEANUP, DeleteOptions, FOREGROUND, ORPHAN},
    kinds::{self, Kind},
    owners::owners,
    state::State,
    storage::{Change, Key, Object, Scope},
    update,
};

/// How long the server's own controllers take to see a change.
const REACTION: Duration = Duration::from_millis(30);
/// How long a namespace is left alone after its deletion, and a definition after its last object.
const EMPTYING: Duration = Duration::from_secs(5);

/// The group of definitions.
const DEFINITIONS: &str = "apiextensions.k8s.io";

// === impl State ===

impl State {
    /// Looks at each change and puts on the agenda what follows from it.
    pub(super) fn observe(&mut self, change: &Change) {
        self.observe_definition(change);
        self.observe_namespace(change);
        if self.behaviour.garbage_collection {
            self.observe_garbage(change);
        }
        if self.behaviour.volume_protection
            && matches!(&*change.key.resource, "persistentvolumeclaims" | "persistentvolumes")
            && change.after.as_ref().is_some_and(|after| is_deleting(&after.value))
        {
            self.agenda.add(REACTION, Duty::Unprotect { key: change.key.clone() });
        }
    }

    /// Does what is due.
    pub(super) fn perform(&mut self, duty: Duty) {
        match duty {
            Duty::Establish { name } => self.establish(&name),
            Duty::EmptyDefinition { name } => self.empty_definition(&name),
            Duty::RemoveDefinition { name } => self.remove_definition(&name),
            Duty::EmptyNamespace { name } => self.empty_namespace(&name),
            Duty::FillNamespace { name } => self.fill_namespace(&name),
            Duty::CheckOwners { key } => self.check_owners(&key),
            Duty::HandleDependents { key } => self.handle_dependents(&key),
            Duty::Unprotect { key } => self.unprotect(&key),
        }
    }

    // === definitions ===

    fn observe_definition(&mut self, change: &Change) {
        if &*change.key.group == DEFINITIONS && &*change.key.resource == "customresourcedefinitions" {
            let name = change.key.name.to_string();
            match (&change.before, &change.after) {
                (None, Some(_)) => self.agenda.add(REACTION, Duty::Establish { name }),
                (Some(before), Some(after)) => {
                    if is_deleting(&after.value) && !is_deleting(&before.value) {
                        self.agenda.add(REACTION, Duty::EmptyDefinition { name });
                    } else if before.value["spec"] != after.value["spec"] {
                        self.agenda.add(REACTION, Duty::Establish { name });
                    }
                }
                (Some(before), None) => self.withdraw(&before.value),
                (None, None) => {}
            }
        } else if change.after.is_none() {
            let Some(kind) = self.registry.find_resource(&change.key.group, &change.key.resource) else { return };
            let name = format!("{}.{}", kind.plural, kind.group);
            if kind.custom && self.is_definition_terminating(&kind) && self.is_empty(&kind) {
                self.agenda.add(EMPTYING, Duty::RemoveDefinition { name });
            }
        }
    }

    /// Accepts a definition's names, unless another one has them, and serves it.
    pub(super) fn establish(&mut self, name: &str) {
        let key = Key::new(DEFINITIONS, "customresourcedefinitions", "", name);
        let Some(definition) = self.storage.get(&key).cloned() else { return };
        let spec = &definition.value["spec"];
        let kinds = kinds::of_definition(&definition.value);
        let conflict = kinds.first().is_some_and(|new| {
            self.registry.all().any(|other| {
                other.group == new.group
                    && other.plural != new.plural
                    && (other.list_kind == new.list_kind || other.kind == new.kind)
            })
        });
        let mut value = definition.value.clone();
        let now = self.clock.text();
        if conflict {
            let reason = ("False", "ListKindConflict", "the kind or its list kind is already in use");
            set_condition(&mut value, &now, "NamesAccepted", reason);
            set_condition(&mut value, &now, "Established", ("False", "NotAccepted", "not all names are accepted"));
        } else {
            let mut names = spec["names"].clone();
            if names.is_object() && names["listKind"].is_null() {
                names["listKind"] = format!("{}List", names["kind"].as_str().unwrap_or_default()).into();
            }
            value["status"]["acceptedNames"] = names;
            set_condition(&mut value, &now, "NamesAccepted", ("True", "NoConflicts", "no conflicts found"));
            let text = "the initial names have been accepted";
            set_condition(&mut value, &now, "Established", ("True", "InitialNamesAccepted", text));
            let (group, plural) = definition_names(&definition.value);
            self.registry.replace_custom(&group, &plural, kinds);
        }
        if value["status"]["storedVersions"].is_null() {
            let versions = spec["versions"].as_array().into_iter().flatten();
            let stored: Vec<Value> =
                versions.filter(|version| version["storage"] == true).map(|version| version["name"].clone()).collect();
            value["status"]["storedVersions"] = stored.into();
        }
        if value != definition.value {
            self.store(key, value);
        }
    }

    fn withdraw(&mut self, definition: &Value) {
        let (group, plural) = definition_names(definition);
        self.registry.replace_custom(&group, &plural, Vec::new());
        self.watches.end(Some((&group, &plural)), super::fault::WatchEnd::Close);
    }

    pub(super) fn is_definition_terminating(&self, kind: &Kind) -> bool {
        let name = format!("{}.{}", kind.plural, kind.group);
        let key = Key::new(DEFINITIONS, "customresourcedefinitions", "", &name);
        self.storage.get(&key).is_some_and(|definition| is_deleting(&definition.value))
    }

    fn is_empty(&self, kind: &Kind) -> bool {
        self.storage.scan(&scope(kind, None)).next().is_none()
    }

    fn empty_definition(&mut self, name: &str) {
        let key = Key::new(DEFINITIONS, "customresourcedefinitions", "", name);
        let Some(definition) = self.storage.get(&key).cloned() else { return };
        let now = self.clock.text();
        let mut value = definition.value.clone();
        let text = "CustomResourceDefinition marked for deletion; its objects will be removed";
        set_condition(&mut value, &now, "Terminating", ("True", "InstanceDeletionInProgress", text));
        self.store(key, value);
        let (group, plural) = definition_names(&definition.value);
        match self.registry.find_resource(&group, &plural) {
            Some(kind) if !self.is_empty(&kind) => {
                self.delete_all(&kind, None);
            }
            _ => self.agenda.add(EMPTYING, Duty::RemoveDefinition { name: name.to_owned() }),
        }
    }

    fn remove_definition(&mut self, name: &str) {
        let key = Key::new(DEFINITIONS, "customresourcedefinitions", "", name);
        self.drop_finalizer(&key, DEFINITION_CLEANUP);
    }

    // === namespaces ===

    fn observe_namespace(&mut self, change: &Change) {
        let is_namespace = change.key.group.is_empty() && &*change.key.resource == "namespaces";
        if is_namespace {
            let name = change.key.name.to_string();
            match (&change.before, &change.after) {
                (None, Some(_)) if self.behaviour.namespace_contents.is_some() => {
                    self.agenda.add(REACTION, Duty::FillNamespace { name });
                }
                (before, Some(after))
                    if self.behaviour.namespace_deletion
                        && is_deleting(&after.value)
                        && before.as_ref().is_none_or(|before| !is_deleting(&before.value)) =>
                {
                    self.agenda.add(EMPTYING, Duty::EmptyNamespace { name });
                }
                _ => {}
            }
        } else if change.after.is_none() && !change.key.namespace.is_empty() && self.behaviour.namespace_deletion {
            let key = Key::new("", "namespaces", "", &change.key.namespace);
            let is_held = self.storage.get(&key).is_some_and(|namespace| {
                is_deleting(&namespace.value) && !namespace.value["status"]["conditions"].is_null()
            });
            // Its deletion has begun and something was left: what is left now?
            if is_held && !self.has_contents(&change.key.namespace) {
                self.agenda.add(EMPTYING, Duty::EmptyNamespace { name: change.key.namespace.to_string() });
            }
        }
    }

    fn has_contents(&self, namespace: &str) -> bool {
        let kinds: Vec<_> = self.registry.all().filter(|kind| kind.namespaced).cloned().collect();
        kinds.iter().any(|kind| self.storage.scan(&scope(kind, Some(namespace))).next().is_some())
    }

    fn empty_namespace(&mut self, name: &str) {
        let key = Key::new("", "namespaces", "", name);
        let Some(namespace) = self.storage.get(&key).cloned() else { return };
        let kinds: Vec<_> = self.registry.all().filter(|kind| kind.namespaced).cloned().collect();
        let mut remaining = Vec::new();
        let mut finalizers: Vec<(String, usize)> = Vec::new();
        let mut done: Vec<(String, String)> = Vec::new();
        for kind in kinds {
            let home = (kind.home().0.to_owned(), kind.home().1.to_owned());
            if done.contains(&home) {
                continue;
            }
            done.push(home);
            self.delete_all(&kind, Some(name));
            let left: Vec<_> = self.storage.scan(&scope(&kind, Some(name))).map(|(_, object)| object.clone()).collect();
            if left.is_empty() {
                continue;
            }
            let resource = if kind.group.is_empty() { format!("{}.", kind.plural) } else { kind.group_resource() };
            remaining.push(format!("{resource} has {} resource instances", left.len()));
            count_finalizers(&left, &mut finalizers);
        }
        if remaining.is_empty() {
            self.finish_namespace(&key);
            return;
        }
        let mut value = namespace.value.clone();
        let now = self.clock.text();
        for (condition, reason, message) in [
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
        ] {
            set_condition(&mut value, &now, condition, ("False", reason, message));
        }
        let text = format!("Some resources are remaining: {}", remaining.join(", "));
        set_condition(&mut value, &now, "NamespaceContentRemaining", ("True", "SomeResourcesRemain", &text));
        if !finalizers.is_empty() {
            let list: Vec<_> =
                finalizers.iter().map(|(name, count)| format!("{name} in {count} resource instances")).collect();
            let text = format!("Some content in the namespace has finalizers remaining: {}", list.join(", "));
            let condition = "NamespaceFinalizersRemaining";
            set_condition(&mut value, &now, condition, ("True", "SomeFinalizersRemain", &text));
        }
        if value != namespace.value {
            self.store(key, value);
        }
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

    /// Deletes all objects of a kind, in a namespace or everywhere, as far as their finalizers let it.
    fn delete_all(&mut self, kind: &Arc<Kind>, namespace: Option<&str>) {
        let keys: Vec<Key> = self.storage.scan(&scope(kind, namespace)).map(|(key, _)| key.clone()).collect();
        for key in keys {
            // Only a deleted-twice object can fail here, and that one is gone.
            let _ = self.remove(kind, &key, &DeleteOptions::background(), false);
        }
    }

    fn fill_namespace(&mut self, name: &str) {
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

    // === garbage ===

    fn observe_garbage(&mut self, change: &Change) {
        match (&change.before, &change.after) {
            (before, Some(after)) => {
                let references = &after.value["metadata"]["ownerReferences"];
                let changed =
                    before.as_ref().is_none_or(|before| before.value["metadata"]["ownerReferences"] != *references);
                if changed && !references.is_null() {
                    self.agenda.add(REACTION, Duty::CheckOwners { key: change.key.clone() });
                }
                if waits_for_dependents(&after.value) {
                    self.agenda.add(REACTION, Duty::HandleDependents { key: change.key.clone() });
                }
            }
            (Some(before), None) => {
                let uid = before.value["metadata"]["uid"].as_str().unwrap_or_default();
                for key in self.owners.dependents(uid) {
                    self.agenda.add(REACTION, Duty::CheckOwners { key });
                }
                // An owner in the foreground may have waited for this one.
                for owner in owners(&before.value).cloned().collect::<Vec<_>>() {
                    if let Some(key) = self.owner_key(&owner, &change.key.namespace) {
                        self.agenda.add(REACTION, Duty::HandleDependents { key });
                    }
                }
            }
            (None, None) => {}
        }
    }

    /// Where an owner would be stored; `None` if its kind is not served.
    fn owner_key(&self, owner: &Value, namespace: &str) -> Option<Key> {
        let text = |field: &str| owner[field].as_str().unwrap_or_default();
        let kind = self.registry.find_kind(text("apiVersion"), text("kind"))?;
        Some(self.key(&kind, namespace, text("name")))
    }

    fn find_owner(&self, owner: &Value, namespace: &str) -> Option<Arc<Object>> {
        let key = self.owner_key(owner, namespace)?;
        self.storage.get(&key).filter(|object| object.value["metadata"]["uid"] == owner["uid"]).cloned()
    }

    /// Deletes an object whose owners are all gone, and takes absent owners off one that has others.
    fn check_owners(&mut self, key: &Key) {
        let Some(object) = self.storage.get(key).cloned() else { return };
        if is_deleting(&object.value) && !waits_for_dependents(&object.value) {
            return;
        }
        let (mut solid, mut waiting, mut absent) = (Vec::new(), Vec::new(), Vec::new());
        for owner in owners(&object.value) {
            if self.owner_key(owner, &key.namespace).is_none() {
                // The kind is unknown: nothing can be said about the owner.
                return;
            }
            match self.find_owner(owner, &key.namespace) {
                Some(found) if has_finalizer(&found.value, FOREGROUND) && is_deleting(&found.value) => {
                    waiting.push(owner.clone());
                }
                Some(_) => solid.push(owner.clone()),
                None => absent.push(owner.clone()),
            }
        }
        let Some(kind) = self.registry.find_resource(&key.group, &key.resource) else { return };
        if !solid.is_empty() {
            if !absent.is_empty() || !waiting.is_empty() {
                let mut value = object.value.clone();
                body::metadata(&mut value).insert("ownerReferences".into(), solid.into());
                self.store(key.clone(), value);
            }
        } else if !waiting.is_empty() {
            let is_owner =
                !self.owners.dependents(object.value["metadata"]["uid"].as_str().unwrap_or_default()).is_empty();
            let options = if is_owner { DeleteOptions::foreground() } else { DeleteOptions::unsaid() };
            let _ = self.remove(&kind, key, &options, false);
        } else if !absent.is_empty() {
            let policy = if has_finalizer(&object.value, ORPHAN) || has_finalizer(&object.value, FOREGROUND) {
                DeleteOptions::unsaid()
            } else {
                DeleteOptions::background()
            };
            let _ = self.remove(&kind, key, &policy, false);
        }
    }

    /// Goes on with an object that is being deleted in the foreground or orphans its dependents.
    fn handle_dependents(&mut self, key: &Key) {
        let Some(object) = self.storage.get(key).cloned().filter(|object| waits_for_dependents(&object.value)) else {
            return;
        };
        let uid = object.value["metadata"]["uid"].as_str().unwrap_or_default();
        let dependents = self.owners.dependents(uid);
        if has_finalizer(&object.value, ORPHAN) {
            for dependent in dependents {
                self.release(&dependent, uid);
            }
            self.drop_finalizer(key, ORPHAN);
            return;
        }
        let mut is_blocked = false;
        for dependent in dependents {
            let Some(found) = self.storage.get(&dependent).cloned() else { continue };
            let blocks = owners(&found.value).any(|owner| owner["uid"] == uid && owner["blockOwnerDeletion"] == true);
            if blocks {
                is_blocked = true;
                if !is_deleting(&found.value) {
                    self.agenda.add(Duration::ZERO, Duty::CheckOwners { key: dependent });
                }
            }
        }
        if !is_blocked {
            self.drop_finalizer(key, FOREGROUND);
        }
    }

    fn release(&mut self, key: &Key, uid: &str) {
        let Some(object) = self.storage.get(key).cloned() else { return };
        let mut value = object.value.clone();
        let rest: Vec<Value> = owners(&object.value).filter(|owner| owner["uid"] != uid).cloned().collect();
        let metadata = body::metadata(&mut value);
        if rest.is_empty() {
            metadata.remove("ownerReferences");
        } else {
            metadata.insert("ownerReferences".into(), rest.into());
        }
        self.store(key.clone(), value);
    }

    fn unprotect(&mut self, key: &Key) {
        for finalizer in ["kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"] {
            self.drop_finalizer(key, finalizer);
        }
    }

    /// Takes a finalizer off an object, which may end it.
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

fn scope(kind: &Kind, namespace: Option<&str>) -> Scope {
    let (group, resource) = kind.home();
    Scope::new(group, resource, namespace)
}

fn definition_names(definition: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&definition["spec"]["group"]), text(&definition["spec"]["names"]["plural"]))
}

fn count_finalizers(objects: &[Arc<Object>], counts: &mut Vec<(String, usize)>) {
    for object in objects {
        for finalizer in object.value["metadata"]["finalizers"].as_array().into_iter().flatten() {
            let name = finalizer.as_str().unwrap_or_default();
            match counts.iter_mut().find(|(known, _)| known == name) {
                Some((_, count)) => *count += 1,
                None => counts.push((name.to_owned(), 1)),
            }
        }
    }
}

/// Sets a condition; its transition time moves only when its status does.
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
