//! Credentials whose rotation is due (spec 84 C.9). Pure.

use jiff::{SignedDuration, Timestamp};
use kit::duration::GoDuration;
use serde_json::Value;

use super::update::UpdateResult;
use crate::actors::controller_manager::fields::{list, text, time};

/// The period of credentials whose object has none (spec 84 §4).
const DEFAULT_PERIOD: SignedDuration = SignedDuration::from_hours(168);

/// The operation that rotates the key of etcd.
pub(super) const ROTATE_ETCD_KEY: &str = "rotate-etcd-encryption-key";

/// Credentials that are rotated, by the names of their fields.
struct RotatedCredentials {
    field: &'static str,
    operation: &'static str,
    description: &'static str,
    reason: &'static str,
    /// What else must hold.
    condition: fn(&Value) -> bool,
    /// Another rotation of them may be under way.
    has_phases: bool,
}

#[rustfmt::skip]
const CREDENTIALS: [RotatedCredentials; 3] = [
    RotatedCredentials { field: "sshKeypair", operation: "rotate-ssh-keypair", description: "SSH keypair rotation started",
        reason: "Automatic rotation of SSH keypair configured", condition: has_ssh_access, has_phases: false },
    RotatedCredentials { field: "observability", operation: "rotate-observability-credentials", description: "Observability passwords rotation started",
        reason: "Automatic rotation of observability passwords configured", condition: |_| true, has_phases: false },
    RotatedCredentials { field: "etcdEncryptionKey", operation: ROTATE_ETCD_KEY, description: "ETCD Encryption key rotation started",
        reason: "Automatic rotation of etcd encryption key configured", condition: is_awake, has_phases: true },
];

/// Returns the rotations of a Shoot that are due, by the operation that starts them, in the order of the table
/// (spec 84 C.9).
pub(super) fn due_rotations(shoot: &Value, now: Timestamp) -> Vec<(&'static str, UpdateResult)> {
    let is_due = |credentials: &&RotatedCredentials| {
        let last = time(shoot, &of_status(credentials, "lastCompletionTime"))
            .or_else(|| time(shoot, "/metadata/creationTimestamp"));
        let ends = period(shoot, credentials).and_then(|period| last?.checked_add(period).ok());
        ends.is_some_and(|end| end < now) && (credentials.condition)(shoot)
    };
    let result = |credentials: &RotatedCredentials| {
        let phase = text(shoot, &of_status(credentials, "phase"));
        let is_successful = !credentials.has_phases || matches!(phase, "" | "Completed");
        let (description, reason) = if is_successful {
            (credentials.description, credentials.reason)
        } else {
            ("Could not start ETCD encryption key rotation", "ETCD encryption key rotation is already in progress")
        };
        (credentials.operation, UpdateResult { description: description.into(), reason: reason.into(), is_successful })
    };
    CREDENTIALS.iter().filter(is_due).map(result).collect()
}

fn of_status(credentials: &RotatedCredentials, field: &str) -> String {
    format!("/status/credentials/rotation/{}/{field}", credentials.field)
}

/// Returns the period; `None`: the rotation is off. A period that cannot be read, or is negative, is none.
fn period(shoot: &Value, credentials: &RotatedCredentials) -> Option<SignedDuration> {
    let path = format!("/spec/maintenance/autoRotation/credentials/{}", credentials.field);
    let settings = shoot.pointer(&path).filter(|settings| settings.is_object())?;
    let period = match settings.get("rotationPeriod") {
        None | Some(Value::Null) => DEFAULT_PERIOD,
        Some(period) => SignedDuration::from_nanos(period.as_str()?.parse::<GoDuration>().ok()?.nanos()),
    };
    (period > SignedDuration::ZERO).then_some(period)
}

fn has_ssh_access(shoot: &Value) -> bool {
    let is_off = shoot.pointer("/spec/provider/workersSettings/sshAccess/enabled") == Some(&Value::Bool(false));
    !is_off && list(shoot, "/spec/provider/workers").next().is_some()
}

fn is_awake(shoot: &Value) -> bool {
    shoot.pointer("/spec/hibernation/enabled") != Some(&Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SSH: &str = "rotate-ssh-keypair";
    const OBSERVABILITY: &str = "rotate-observability-credentials";

    fn now() -> Timestamp {
        "2026-08-21T12:00:00Z".parse().unwrap()
    }

    /// Returns what is due of a Shoot that is two days old.
    fn due(credentials: Value, more: Value, status: Value) -> Vec<(&'static str, bool)> {
        let mut spec = json!({ "provider": { "workers": [{}] }, "maintenance": { "autoRotation": { "credentials": credentials } } });
        for (field, value) in more.as_object().unwrap() {
            spec[field] = value.clone();
        }
        let shoot = json!({ "metadata": { "creationTimestamp": "2026-08-19T12:00:00Z" }, "spec": spec,
            "status": { "credentials": { "rotation": status } } });
        due_rotations(&shoot, now()).into_iter().map(|(key, result)| (key, result.is_successful)).collect()
    }

    fn every(period: &str) -> Value {
        json!({ "rotationPeriod": period })
    }

    /// spec 84 C.9, scenarios 70 and 72
    #[test]
    fn rotation_is_due_after_its_period() {
        let none = || json!({});
        let ssh = |period: Value| json!({ "sshKeypair": period });
        let all =
            json!({ "etcdEncryptionKey": every("24h"), "observability": every("24h"), "sshKeypair": every("24h") });
        let at = |hours: i64| json!({ "lastCompletionTime": (now() - SignedDuration::from_hours(hours)).to_string() });
        for (credentials, more, status, expected) in [
            (ssh(every("24h")), none(), none(), vec![SSH]),
            (
                ssh(every("24h")),
                json!({ "provider": { "workers": [{}], "workersSettings": { "sshAccess": { "enabled": false } } } }),
                none(),
                vec![],
            ),
            (ssh(every("24h")), json!({ "provider": {} }), none(), vec![]),
            (ssh(every("24h")), none(), json!({ "sshKeypair": at(1) }), vec![]),
            (ssh(every("24h")), none(), json!({ "sshKeypair": at(25) }), vec![SSH]),
            (ssh(every("48h")), none(), none(), vec![]),
            (ssh(every("47h59m59s")), none(), none(), vec![SSH]),
            (ssh(every("0s")), none(), none(), vec![]),
            (ssh(every("0")), none(), none(), vec![]),
            (ssh(every("-1h")), none(), none(), vec![]),
            (ssh(every("soon")), none(), none(), vec![]),
            (ssh(json!({ "rotationPeriod": 5 })), none(), none(), vec![]),
            (ssh(json!({})), none(), none(), vec![]),
            (ssh(json!({})), none(), json!({ "sshKeypair": at(169) }), vec![SSH]),
            (ssh(Value::Null), none(), none(), vec![]),
            (all.clone(), none(), none(), vec![SSH, OBSERVABILITY, ROTATE_ETCD_KEY]),
            (all, none(), json!({ "observability": at(23), "sshKeypair": at(24) }), vec![ROTATE_ETCD_KEY]),
        ] {
            let found = due(credentials.clone(), more, status);
            assert_eq!(found, expected.into_iter().map(|key| (key, true)).collect::<Vec<_>>(), "{credentials}");
        }
    }

    /// spec 84 C.9, scenario 71
    #[test]
    fn rotation_of_the_etcd_key_waits_for_the_one_under_way() {
        let etcd = || json!({ "etcdEncryptionKey": every("24h") });
        let phase = |phase: &str| json!({ "etcdEncryptionKey": { "phase": phase } });
        let asleep = json!({ "hibernation": { "enabled": true } });

        assert_eq!(due(etcd(), asleep.clone(), json!({})), []);
        assert_eq!(due(etcd(), asleep, phase("Prepared")), []);
        assert_eq!(due(etcd(), json!({}), phase("Completed")), [(ROTATE_ETCD_KEY, true)]);
        assert_eq!(due(etcd(), json!({}), phase("Prepared")), [(ROTATE_ETCD_KEY, false)]);
    }
}
