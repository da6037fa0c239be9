//! Objects of the target cluster, and how the controller judges them (spec 20 §11, §14).

use std::cell::RefCell;

use cluster::{
    ApiError, Located, Nowhere,
    object::{self, GroupVersionKind},
};
use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Clusters;
use crate::{
    actors::resource_manager::health::{HealthVerdict, Judgement, judge},
    api::{
        meta::age::age,
        resources::{keys::SKIP_HEALTH_CHECK, managed_resource::ResourceRef},
    },
    commands::{connect::is_unreachable, output::foreign},
};

const AT_ONCE: usize = 8;
/// Finalizers of one object that are shown.
const MOST_FINALIZERS: usize = 10;

/// What is known of an object of the target cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ObjectState {
    Healthy,
    /// It exists, and nothing else is checked: its kind has no rules, or the object opts out.
    Present,
    Progressing(String),
    Unhealthy(String),
    /// It is being deleted; says since when, and which finalizers keep it.
    Deleting(String),
    /// It does not exist; says why if its kind is the reason.
    Missing(Option<String>),
    Unknown(String),
}

impl Clusters {
    /// Reads all objects. After the target cluster could not be reached [`AT_ONCE`] times in a row, the remaining objects
    /// are not read. A single object that is not answered, or whose kind is unknown, says nothing of the others.
    pub(super) async fn states(&self, references: &[ResourceRef]) -> Vec<ObjectState> {
        let silence = RefCell::new((0, String::new()));
        let read = stream::iter(references).map(|reference| async {
            let (failures, text) = silence.borrow().clone();
            if failures >= AT_ONCE {
                return ObjectState::Unknown(text);
            }
            match self.state(reference).await {
                Ok(state) => {
                    silence.borrow_mut().0 = 0;
                    state
                }
                Err(error) => {
                    let text = foreign(&error.to_string());
                    let is_silent = is_unreachable(&error) && !matches!(error, ApiError::Discovery(_));
                    let failures = if is_silent { silence.borrow().0 + 1 } else { 0 };
                    silence.replace((failures, text.clone()));
                    ObjectState::Unknown(text)
                }
            }
        });
        read.buffered(AT_ONCE).collect().await
    }

    /// Reads no more than metadata if that is enough, so that data of Secrets stay in the cluster.
    async fn state(&self, reference: &ResourceRef) -> Result<ObjectState, ApiError> {
        let (kind, key) = (reference.group_version_kind(), reference.key());
        let target = if judge::is_checked(&kind) { self.target.clone() } else { self.target.metadata_only() };
        Ok(match target.locate(&self.context(), &kind, (&key.namespace, &key.name), 0).await? {
            Located::At(at, object) => ObjectState::deleting(&object, self.now())
                .unwrap_or_else(|| ObjectState::of(&kind, &at.resource.group_version_kind(), &object)),
            Located::Nowhere(Nowhere::NotFound) => ObjectState::Missing(None),
            Located::Nowhere(Nowhere::Kind(_)) => {
                ObjectState::Missing(Some("the target cluster does not serve its kind".to_owned()))
            }
        })
    }
}

impl ObjectState {
    /// Returns `None` if an object is not being deleted.
    fn deleting(object: &Value, now: Timestamp) -> Option<Self> {
        let since = object::deletion_timestamp(object)?;
        let finalizers: Vec<&str> = object::finalizers(object).take(MOST_FINALIZERS).collect();
        let kept = match finalizers.as_slice() {
            [] => "no finalizer keeps it".to_owned(),
            names => format!("kept by the finalizers {}", names.join(", ")),
        };
        Some(Self::Deleting(format!("for {}, {kept}", age(since.parse().ok(), now))))
    }

    /// Judges an object. `read` is the version in which it was read. Versions without rules only need to exist.
    fn of(kind: &GroupVersionKind, read: &GroupVersionKind, object: &Value) -> Self {
        if !judge::is_checked(kind) || object::annotation(object, SKIP_HEALTH_CHECK) == Some("true") {
            return Self::Present;
        }
        let Some(judgement) = Judgement::of(read, object) else { return Self::Healthy };
        match (judgement.health, judgement.rollout) {
            (HealthVerdict::Bad(text), _) => Self::Unhealthy(text.into()),
            (HealthVerdict::Fine, HealthVerdict::Bad(text)) => Self::Progressing(text.into()),
            (HealthVerdict::Unreadable(text), _) | (HealthVerdict::Fine, HealthVerdict::Unreadable(text)) => {
                Self::Unknown(text.into())
            }
            (HealthVerdict::Fine, HealthVerdict::Fine) => Self::Healthy,
        }
    }

    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::Present => "present",
            Self::Progressing(_) => "progressing",
            Self::Unhealthy(_) => "unhealthy",
            Self::Deleting(_) => "deleting",
            Self::Missing(_) => "missing",
            Self::Unknown(_) => "unknown",
        }
    }

    pub(super) fn message(&self) -> &str {
        match self {
            Self::Healthy | Self::Present | Self::Missing(None) => "",
            Self::Progressing(text)
            | Self::Unhealthy(text)
            | Self::Deleting(text)
            | Self::Missing(Some(text))
            | Self::Unknown(text) => text,
        }
    }

    pub(super) fn json(&self, reference: &ResourceRef) -> Value {
        let exists = match self {
            Self::Healthy | Self::Present | Self::Progressing(_) | Self::Unhealthy(_) | Self::Deleting(_) => Some(true),
            Self::Missing(_) => Some(false),
            Self::Unknown(_) => None,
        };
        json!({
            "apiVersion": reference.api_version, "kind": reference.kind, "namespace": reference.namespace,
            "name": reference.name, "exists": exists, "state": self.word(), "message": self.message(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_in_deletion_names_its_finalizers() {
        let now = "2026-01-01T00:01:00Z".parse().expect("it is a time");
        let of = |finalizers: &[&str]| {
            let metadata = json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers});
            ObjectState::deleting(&json!({"metadata": metadata}), now)
        };
        let deleting = |text: &str| Some(ObjectState::Deleting(text.to_owned()));

        assert_eq!(of(&["a/b", "c/d"]), deleting("for 60s, kept by the finalizers a/b, c/d"));
        assert_eq!(of(&[]), deleting("for 60s, no finalizer keeps it"));
        assert_eq!(ObjectState::deleting(&json!({"metadata": {}}), now), None);
    }

    /// spec 20 §11
    #[test]
    fn object_state_is_the_verdict_of_the_controller() {
        let pod = GroupVersionKind::new("", "v1", "Pod");
        let deployment = GroupVersionKind::new("apps", "v1", "Deployment");
        let config_map = GroupVersionKind::new("", "v1", "ConfigMap");
        let phase = |phase: &str| json!({"status": {"phase": phase}});
        let skipped = json!({"metadata": {"annotations": {SKIP_HEALTH_CHECK: "true"}}, "status": {"phase": "Failed"}});
        let rolling = json!({"status": {"conditions": [
            {"type": "Available", "status": "True"},
            {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated", "message": "one of two"},
        ]}});
        let table = [
            (&pod, phase("Running"), "healthy", ""),
            (&pod, phase("Failed"), "unhealthy", "pod is in invalid phase"),
            (&pod, skipped, "present", ""),
            (&pod, json!({"status": 1}), "unknown", ""),
            (&deployment, rolling, "progressing", "one of two"),
            (&config_map, json!({}), "present", ""),
        ];

        for (kind, object, word, message) in table {
            let state = ObjectState::of(kind, kind, &object);

            assert_eq!(state.word(), word, "{object}");
            assert!(state.message().starts_with(message), "{state:?}");
        }
    }
}
