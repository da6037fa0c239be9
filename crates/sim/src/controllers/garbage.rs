use std::{sync::Arc, time::Duration};

use serde_json::Value;

use super::{
    super::{
        agenda::DueTask,
        body,
        delete::{DeleteOptions, FOREGROUND, ORPHAN},
        owners::owners,
        state::ApiState,
        storage::{Change, Key, Object},
    },
    REACTION, has_finalizer, is_deleting, waits_for_dependents,
};

impl ApiState {
    pub(super) fn observe_garbage(&mut self, change: &Change) {
        match (&change.before, &change.after) {
            (before, Some(after)) => {
                let references = &after.value["metadata"]["ownerReferences"];
                let changed =
                    before.as_ref().is_none_or(|before| before.value["metadata"]["ownerReferences"] != *references);
                if changed && !references.is_null() {
                    self.agenda.add(REACTION, DueTask::CheckOwners { key: change.key.clone() });
                }
                if waits_for_dependents(&after.value) {
                    self.agenda.add(REACTION, DueTask::HandleDependents { key: change.key.clone() });
                }
            }
            (Some(before), None) => {
                let uid = before.value["metadata"]["uid"].as_str().unwrap_or_default();
                for key in self.owners.dependents(uid) {
                    self.agenda.add(REACTION, DueTask::CheckOwners { key });
                }
                // An owner in foreground deletion may have waited for this object.
                for owner in owners(&before.value).cloned().collect::<Vec<_>>() {
                    if let Some(key) = self.owner_key(&owner, &change.key.namespace) {
                        self.agenda.add(REACTION, DueTask::HandleDependents { key });
                    }
                }
            }
            (None, None) => {}
        }
    }

    /// Returns the key of an owner, or `None` if its kind is not served.
    fn owner_key(&self, owner: &Value, namespace: &str) -> Option<Key> {
        let text = |field: &str| owner[field].as_str().unwrap_or_default();
        let kind = self.registry.find_kind(text("apiVersion"), text("kind"))?;
        Some(self.key(&kind, namespace, text("name")))
    }

    fn find_owner(&self, owner: &Value, namespace: &str) -> Option<Arc<Object>> {
        let key = self.owner_key(owner, namespace)?;
        self.storage.get(&key).filter(|object| object.value["metadata"]["uid"] == owner["uid"]).cloned()
    }

    /// Deletes an object whose owners are all gone; otherwise removes the references to absent owners.
    pub(super) fn check_owners(&mut self, key: &Key) {
        let Some(object) = self.storage.get(key).cloned() else { return };
        if is_deleting(&object.value) && !waits_for_dependents(&object.value) {
            return;
        }
        let (mut solid, mut waiting, mut absent) = (Vec::new(), Vec::new(), Vec::new());
        for owner in owners(&object.value) {
            if self.owner_key(owner, &key.namespace).is_none() {
                return; // the kind is unknown, so the owner may exist
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

    pub(super) fn handle_dependents(&mut self, key: &Key) {
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
                    self.agenda.add(Duration::ZERO, DueTask::CheckOwners { key: dependent });
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
}
