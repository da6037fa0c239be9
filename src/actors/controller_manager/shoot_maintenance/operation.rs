//! Annotations of a Shoot: operations and tasks that a maintenance starts (spec 84 C-17, C-19). Pure.

use cluster::object::{annotation, field_mut, truthy};
use serde_json::{Value, json};

use super::rotation::ROTATE_ETCD_KEY;
use crate::actors::controller_manager::fields::text;

/// The annotation with operations.
pub const OPERATION: &str = "gardener.cloud/operation";
/// The annotation with operations for the next maintenance.
pub const MAINTENANCE_OPERATION: &str = "maintenance.gardener.cloud/operation";
/// The annotation that asks for a retry in the maintenance.
pub const NEEDS_RETRY: &str = "maintenance.shoot.gardener.cloud/needs-retry-operation";
/// The annotation with tasks.
pub const TASKS: &str = "shoot.gardener.cloud/tasks";

const MAINTAIN: &str = "maintain";
const RECONCILE: &str = "reconcile";
const START_ETCD_KEY: &str = "rotate-etcd-encryption-key-start";

/// New values of annotations; `None` removes one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnnotationChanges(Vec<(&'static str, Option<String>)>);

impl AnnotationChanges {
    fn set(&mut self, name: &'static str, value: Option<String>) {
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, value));
    }

    /// Returns the changes by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Option<&str>)> {
        self.0.iter().map(|(name, value)| (*name, value.as_deref()))
    }

    /// Changes the annotations of an object.
    pub fn apply_to(&self, object: &mut Value) {
        for (name, value) in self.iter() {
            match value {
                Some(value) => *field_mut(object, &["metadata", "annotations", name]) = json!(value),
                None => {
                    let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
                    annotations.map(|annotations| annotations.remove(name));
                }
            }
        }
    }
}

/// Returns the operations of an annotation: separated by `;`, trimmed, without empty ones and repetitions.
fn operations(value: &str) -> Vec<&str> {
    let mut known = std::collections::BTreeSet::new();
    value.split(';').map(str::trim).filter(|part| !part.is_empty() && known.insert(*part)).collect()
}

/// Returns true if somebody asks for a maintenance now (spec 84 C.3).
pub fn asks_for_maintenance(shoot: &Value) -> bool {
    annotation(shoot, OPERATION).is_some_and(|value| value.split(';').any(|part| part.trim() == MAINTAIN))
}

/// Returns true if a maintenance starts operations at all (spec 84 C-17 steps 2 and 3).
pub(super) fn starts_operations(shoot: &Value) -> bool {
    has_last_operation(shoot) && text(shoot, "/status/lastOperation/state") != "Failed"
}

fn has_last_operation(shoot: &Value) -> bool {
    shoot.pointer("/status/lastOperation").is_some_and(|operation| !operation.is_null())
}

/// Returns the changes of annotations with operations, and the text about them if there is one (spec 84 C-17).
/// `rotations` are the operations of rotations that start now.
pub(super) fn operation_changes<'a>(
    shoot: &'a Value,
    rotations: impl Iterator<Item = &'a str>,
) -> (AnnotationChanges, Option<String>) {
    let mut changes = AnnotationChanges::default();
    if asks_for_maintenance(shoot) {
        changes.set(OPERATION, None);
    }
    if starts_operations(shoot) {
        let wanted = annotation(shoot, MAINTENANCE_OPERATION);
        let mut value = operations(wanted.unwrap_or_default());
        if !value.contains(&RECONCILE) {
            value.push(RECONCILE);
        }
        for rotation in rotations {
            let is_started = rotation == ROTATE_ETCD_KEY && value.contains(&START_ETCD_KEY);
            if !is_started && !value.contains(&rotation) {
                value.push(rotation);
            }
        }
        let value = value.join(";");
        let text = (value != RECONCILE).then(|| format!("Added \"{value}\" operation annotation"));
        changes.set(OPERATION, Some(value));
        if wanted.is_some() {
            changes.set(MAINTENANCE_OPERATION, None);
        }
        return (changes, text);
    }
    if has_last_operation(shoot) && truthy(annotation(shoot, NEEDS_RETRY)) {
        changes.set(OPERATION, Some("retry".to_owned()));
        changes.set(NEEDS_RETRY, None);
    }
    (changes, None)
}

/// Which components are restarted in each maintenance (spec 84 §1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartSettings {
    /// Components of the control plane.
    pub control_plane: bool,
    /// Core addons.
    pub core_addons: bool,
}

/// Returns the change that adds the tasks of a maintenance to those of a Shoot (spec 84 C-19). Tasks are not trimmed.
pub fn task_changes(shoot: &Value, restarts: RestartSettings) -> AnnotationChanges {
    let deploy =
        ["deployInfrastructure", "deployDNSRecordInternal", "deployDNSRecordExternal", "deployDNSRecordIngress"];
    let restart = restarts.control_plane.then_some("restartControlPlanePods");
    let wanted = deploy.into_iter().chain(restart).chain(restarts.core_addons.then_some("restartCoreAddons"));

    let known = annotation(shoot, TASKS).unwrap_or_default();
    let missing = wanted.filter(|task| !known.split(',').any(|known| known == *task));
    let before = Some(known).filter(|known| !known.is_empty());
    let value = before.into_iter().chain(missing).collect::<Vec<_>>().join(",");
    let mut changes = AnnotationChanges::default();
    if value != known {
        changes.set(TASKS, Some(value));
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    const SSH: &str = "rotate-ssh-keypair";

    fn shoot(state: Option<&str>, annotations: Value) -> Value {
        let operation = state.map(|state| json!({ "state": state }));
        json!({ "metadata": { "annotations": annotations }, "status": { "lastOperation": operation } })
    }

    /// Returns the annotations of a Shoot after the changes, and the text.
    fn changed(shoot: &Value, rotations: &[&str]) -> (Value, Option<String>) {
        let (changes, text) = operation_changes(shoot, rotations.iter().copied());
        let mut changed = shoot.clone();
        changes.apply_to(&mut changed);
        (changed.pointer("/metadata/annotations").cloned().unwrap_or_default(), text)
    }

    /// spec 84 C-17, scenarios 28 to 31 and 39
    #[test]
    fn operation_depends_on_the_last_one_and_on_what_users_ask_for() {
        let op = |value: &str| json!({ OPERATION: value });
        let with = |value: &str| json!({ MAINTENANCE_OPERATION: value });
        let text = |value: &str| Some(format!("Added \"{value}\" operation annotation"));
        for (state, annotations, expected, expected_text) in [
            (None, op("maintain"), json!({}), None),
            (None, json!({ OPERATION: "maintain", MAINTENANCE_OPERATION: SSH }), with(SSH), None),
            (None, op("other"), op("other"), None),
            (Some("Succeeded"), op("maintain"), op("reconcile"), None),
            (Some("Succeeded"), op("maintain;foo"), op("reconcile"), None),
            (Some("Succeeded"), op("foo"), op("reconcile"), None),
            (Some(""), json!({}), op("reconcile"), None),
            (Some("Succeeded"), with(SSH), op("rotate-ssh-keypair;reconcile"), text("rotate-ssh-keypair;reconcile")),
            (Some("Succeeded"), with(" a ; reconcile;;b;a "), op("a;reconcile;b"), text("a;reconcile;b")),
            (Some("Succeeded"), with("reconcile"), op("reconcile"), None),
            (Some("Failed"), op(" maintain "), json!({}), None),
            (Some("Failed"), op("foo"), op("foo"), None),
            (Some("Failed"), json!({ NEEDS_RETRY: "true" }), op("retry"), None),
            (Some("Failed"), json!({ NEEDS_RETRY: "yes" }), json!({ NEEDS_RETRY: "yes" }), None),
            (
                Some("Succeeded"),
                json!({ NEEDS_RETRY: "true" }),
                json!({ NEEDS_RETRY: "true", OPERATION: "reconcile" }),
                None,
            ),
            (None, json!({ NEEDS_RETRY: "true" }), json!({ NEEDS_RETRY: "true" }), None),
        ] {
            assert_eq!(
                changed(&shoot(state, annotations.clone()), &[]),
                (expected, expected_text),
                "{state:?} {annotations}"
            );
        }
    }

    /// spec 84 C-17 step 4, scenarios 71 and 72
    #[test]
    fn operation_of_a_rotation_is_added_once() {
        let value = |asked: &str, rotations: &[&str]| {
            let (annotations, _) =
                changed(&shoot(Some("Succeeded"), json!({ MAINTENANCE_OPERATION: asked })), rotations);
            annotations[OPERATION].as_str().unwrap_or_default().to_owned()
        };
        assert_eq!(value("", &[SSH, ROTATE_ETCD_KEY]), "reconcile;rotate-ssh-keypair;rotate-etcd-encryption-key");
        assert_eq!(value(START_ETCD_KEY, &[ROTATE_ETCD_KEY]), "rotate-etcd-encryption-key-start;reconcile");
        assert_eq!(value(SSH, &[SSH]), "rotate-ssh-keypair;reconcile");
    }

    /// spec 84 C-19, scenarios 26, 27 and 36
    #[test]
    fn tasks_are_added_behind_those_that_stand_there() {
        let deploy = "deployInfrastructure,deployDNSRecordInternal,deployDNSRecordExternal,deployDNSRecordIngress";
        let tasks = |before: Value, control_plane, core_addons| {
            let mut shoot = json!({ "metadata": { "annotations": { TASKS: before } } });
            task_changes(&shoot, RestartSettings { control_plane, core_addons }).apply_to(&mut shoot);
            annotation(&shoot, TASKS).unwrap_or_default().to_owned()
        };
        assert_eq!(tasks(Value::Null, true, false), format!("{deploy},restartControlPlanePods"));
        assert_eq!(tasks(json!(""), false, true), format!("{deploy},restartCoreAddons"));
        assert_eq!(
            tasks(json!("foo,deployInfrastructure"), false, false),
            "foo,deployInfrastructure,deployDNSRecordInternal,deployDNSRecordExternal,deployDNSRecordIngress"
        );
        assert_eq!(tasks(json!(deploy), false, false), deploy);
        assert_eq!(tasks(json!(" deployInfrastructure"), false, false), format!(" deployInfrastructure,{deploy}"));

        let mut bare = json!({});
        let restarts = RestartSettings { control_plane: true, core_addons: false };
        task_changes(&bare, restarts).apply_to(&mut bare);
        assert_eq!(annotation(&bare, TASKS), Some(&*format!("{deploy},restartControlPlanePods")));
        assert_eq!(task_changes(&bare, restarts), AnnotationChanges::default());
    }
}
