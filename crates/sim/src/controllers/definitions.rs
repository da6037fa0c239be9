use serde_json::Value;

use super::{
    super::{
        agenda::DueTask,
        delete::DEFINITION_CLEANUP,
        fault::WatchEnd,
        kinds::{self, ServedKind},
        state::ApiState,
        storage::{Change, Key},
    },
    EMPTYING, REACTION, is_deleting, scope, set_condition,
};

const DEFINITIONS: &str = "apiextensions.k8s.io";

impl ApiState {
    pub(super) fn observe_definition(&mut self, change: &Change) {
        if &*change.key.group == DEFINITIONS && &*change.key.resource == "customresourcedefinitions" {
            let name = change.key.name.to_string();
            match (&change.before, &change.after) {
                (None, Some(_)) => self.agenda.add(REACTION, DueTask::Establish { name }),
                (Some(before), Some(after)) => {
                    if is_deleting(&after.value) && !is_deleting(&before.value) {
                        self.agenda.add(REACTION, DueTask::EmptyDefinition { name });
                    } else if before.value["spec"] != after.value["spec"] {
                        self.agenda.add(REACTION, DueTask::Establish { name });
                    }
                }
                (Some(before), None) => self.withdraw(&before.value),
                (None, None) => {}
            }
        } else if change.after.is_none() {
            let Some(kind) = self.registry.find_resource(&change.key.group, &change.key.resource) else { return };
            let name = format!("{}.{}", kind.plural, kind.group);
            if kind.custom && self.is_definition_terminating(&kind) && self.is_empty(&kind) {
                self.agenda.add(EMPTYING, DueTask::RemoveDefinition { name });
            }
        }
    }

    pub(crate) fn establish(&mut self, name: &str) {
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
        self.watches.end(Some((&group, &plural)), WatchEnd::Close);
    }

    pub(crate) fn is_definition_terminating(&self, kind: &ServedKind) -> bool {
        let name = format!("{}.{}", kind.plural, kind.group);
        let key = Key::new(DEFINITIONS, "customresourcedefinitions", "", &name);
        self.storage.get(&key).is_some_and(|definition| is_deleting(&definition.value))
    }

    fn is_empty(&self, kind: &ServedKind) -> bool {
        self.storage.scan(&scope(kind, None)).next().is_none()
    }

    pub(super) fn empty_definition(&mut self, name: &str) {
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
            _ => self.agenda.add(EMPTYING, DueTask::RemoveDefinition { name: name.to_owned() }),
        }
    }

    pub(super) fn remove_definition(&mut self, name: &str) {
        let key = Key::new(DEFINITIONS, "customresourcedefinitions", "", name);
        self.drop_finalizer(&key, DEFINITION_CLEANUP);
    }
}

fn definition_names(definition: &Value) -> (String, String) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&definition["spec"]["group"]), text(&definition["spec"]["names"]["plural"]))
}
