//! Whether a gardenlet is alive, and what becomes of `GardenletReady` if it is not (spec 81 K.3). Pure.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    actors::controller_manager::fields::{list, time},
    api::meta::conditions::{Condition, ConditionStatus, find_in, status_patch},
};

/// The condition that a gardenlet sets.
pub const GARDENLET_READY: &str = "GardenletReady";

/// Reason of all conditions that this controller sets.
pub const REASON: &str = "StatusUnknown";

const SILENT: &str = "Gardenlet stopped posting status updates.";

/// Periods of the configuration `controllers.seed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Periods {
    /// Time between two looks at a gardenlet.
    pub sync: SignedDuration,
    /// Age of `renewTime` at which a gardenlet counts as stopped.
    pub monitor: SignedDuration,
    /// How long `GardenletReady` is `Unknown` before Shoots are marked.
    pub shoot_monitor: SignedDuration,
}

/// What counts of the status of a Seed, or of a self-hosted Shoot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    /// It has conditions: its gardenlet has reported once.
    pub has_conditions: bool,
    /// All conditions as JSON: compact, because only the patch of a silent gardenlet needs them.
    conditions: Box<str>,
    /// The condition `GardenletReady`.
    pub ready: Option<Condition>,
    /// When the client certificate of the gardenlet expires; only Seeds have it.
    pub certificate_expiration: Option<Timestamp>,
}

impl Reported {
    /// Reads the status of an object.
    pub fn of(object: &Value) -> Self {
        Self {
            has_conditions: list(object, "/status/conditions").next().is_some(),
            conditions: object.pointer("/status/conditions").unwrap_or(&Value::Null).to_string().into(),
            ready: find_in(object, "conditions", GARDENLET_READY),
            certificate_expiration: time(object, "/status/clientCertificateExpirationTimestamp"),
        }
    }

    /// Returns the condition of a gardenlet that stopped; `None` if it is as it must be.
    pub fn silenced(&self, now: Timestamp) -> Option<Condition> {
        let known = self.ready.clone().unwrap_or_else(|| Condition::new(GARDENLET_READY, now));
        let silenced = known.updated(ConditionStatus::Unknown, REASON, SILENT, now);
        Some(silenced).filter(|silenced| Some(silenced) != self.ready.as_ref())
    }

    /// Returns the merge patch for `/status` that sets a condition; `None` if it is there. It has all conditions, so it must
    /// be bound to the version that was read.
    pub fn patch(&self, condition: &Condition) -> Option<Value> {
        let conditions: Value = serde_json::from_str(&self.conditions).ok()?;
        let object = json!({ "status": { "conditions": conditions } });
        let patch = status_patch(&object, "conditions", std::slice::from_ref(condition))?;
        Some(json!({ "status": patch.get("status")? }))
    }

    /// Returns true if Shoots must be marked: the gardenlet has been `Unknown` for long enough.
    pub fn concerns_shoots(&self, periods: Periods, now: Timestamp) -> bool {
        let since = self.ready.as_ref().and_then(|ready| ready.last_transition_time);
        !since.is_some_and(|since| is_within(since, periods.shoot_monitor, now))
    }

    /// Returns true if the client certificate has expired.
    pub fn has_expired_certificate(&self, now: Timestamp) -> bool {
        self.certificate_expiration.is_some_and(|expiration| expiration < now)
    }
}

/// Returns `spec.renewTime` of a Lease.
pub fn renewed(lease: &Value) -> Option<Timestamp> {
    time(lease, "/spec/renewTime")
}

/// Returns true if a gardenlet that renewed its Lease at this time is alive. Without a time there is no grace.
pub fn is_alive(renewed: Option<Timestamp>, periods: Periods, now: Timestamp) -> bool {
    alive_for(renewed, periods, now).is_some()
}

/// Returns how long a gardenlet that renewed its Lease at this time is alive without another renewal; `None` if it is not
/// alive.
pub fn alive_for(renewed: Option<Timestamp>, periods: Periods, now: Timestamp) -> Option<SignedDuration> {
    let end = renewed?.checked_add(periods.monitor).ok()?;
    (end > now).then(|| end.duration_since(now))
}

fn is_within(since: Timestamp, period: SignedDuration, now: Timestamp) -> bool {
    since.checked_add(period).is_ok_and(|end| end > now)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PERIODS: Periods = Periods {
        sync: SignedDuration::from_secs(10),
        monitor: SignedDuration::from_secs(40),
        shoot_monitor: SignedDuration::from_secs(200),
    };

    fn now() -> Timestamp {
        "2026-08-21T12:00:00.5Z".parse().unwrap()
    }

    fn ago(seconds: i64) -> Timestamp {
        now() - SignedDuration::from_secs(seconds)
    }

    fn seed(status: Value) -> Reported {
        Reported::of(&json!({ "status": status }))
    }

    fn ready(status: &str, reason: &str, message: &str) -> Value {
        json!({ "conditions": [{ "type": "Other", "status": "True" }, { "type": "GardenletReady", "status": status,
            "reason": reason, "message": message, "codes": ["E"],
            "lastTransitionTime": "2026-08-21T11:00:00Z", "lastUpdateTime": "2026-08-21T11:00:00Z" }] })
    }

    /// spec 81 K.3 steps 3 and 4, trap K-T4, scenarios 76 and 77
    #[test]
    fn gardenlet_is_alive_while_its_lease_is_young() {
        assert!(is_alive(Some(ago(0)), PERIODS, now()));
        assert!(is_alive(Some(ago(39)), PERIODS, now()));
        assert!(!is_alive(Some(ago(40)), PERIODS, now()));
        assert!(is_alive(Some(ago(40) + SignedDuration::from_micros(1)), PERIODS, now()));
        assert!(!is_alive(None, PERIODS, now()));
        assert_eq!(renewed(&json!({ "spec": { "renewTime": "2026-08-21T12:00:00.500000Z" } })), Some(now()));
        assert_eq!(renewed(&json!({ "spec": { "renewTime": null } })), None);
    }

    /// spec 81 K.3 step 3
    #[test]
    fn gardenlet_is_alive_for_the_rest_of_the_monitor_period() {
        let microsecond = SignedDuration::from_micros(1);

        assert_eq!(alive_for(Some(ago(38)), PERIODS, now()), Some(SignedDuration::from_secs(2)));
        assert_eq!(alive_for(Some(ago(40) + microsecond), PERIODS, now()), Some(microsecond));
        assert_eq!(alive_for(Some(ago(40)), PERIODS, now()), None);
        assert_eq!(alive_for(Some(Timestamp::MAX), PERIODS, now()), None, "it has no end");
    }

    /// spec 81 K.3 step 5
    #[test]
    fn silent_gardenlet_is_patched_with_all_conditions() {
        let reported = seed(ready("True", "R", "m"));
        let silenced = reported.silenced(now()).unwrap();

        let patch = reported.patch(&silenced).unwrap();
        assert_eq!(
            patch,
            json!({ "status": { "conditions": [{ "type": "Other", "status": "True" }, json!(silenced)] } })
        );
        let written = Reported::of(&patch);
        assert_eq!((written.ready.as_ref(), written.patch(&silenced)), (Some(&silenced), None));
    }

    /// spec 81 K.3 step 1, scenario 75
    #[test]
    fn gardenlet_without_conditions_has_not_reported() {
        for status in [json!(null), json!({}), json!({ "conditions": null }), json!({ "conditions": [] })] {
            assert!(!seed(status.clone()).has_conditions, "{status}");
        }
        assert!(seed(ready("True", "R", "m")).has_conditions);
    }

    /// spec 81 K.3 step 5, scenario 77; spec 80 §16.2
    #[test]
    fn silent_gardenlet_is_unknown_since_now() {
        let silenced = seed(ready("True", "R", "m")).silenced(now()).unwrap();

        assert_eq!(
            json!(silenced),
            json!({ "type": "GardenletReady", "status": "Unknown", "reason": "StatusUnknown",
                "message": "Gardenlet stopped posting status updates.",
                "lastTransitionTime": "2026-08-21T12:00:00Z", "lastUpdateTime": "2026-08-21T12:00:00Z" })
        );
        let known = Reported { ready: Some(silenced), ..seed(Value::Null) };
        assert_eq!(known.silenced(now() + SignedDuration::from_hours(1)), None);
    }

    /// spec 81 K.3 step 5
    #[test]
    fn silent_gardenlet_without_the_condition_gets_it() {
        let silenced = seed(json!({ "conditions": [{ "type": "Other" }] })).silenced(now()).unwrap();

        assert_eq!((silenced.kind.as_str(), silenced.status), (GARDENLET_READY, ConditionStatus::Unknown));
    }

    /// spec 81 K.3 step 5: a gardenlet that is unknown for another reason keeps its time.
    #[test]
    fn silent_gardenlet_that_was_unknown_keeps_its_transition_time() {
        let silenced = seed(ready("Unknown", "R", "m")).silenced(now()).unwrap();

        assert_eq!(silenced.last_transition_time, "2026-08-21T11:00:00Z".parse().ok());
    }

    /// spec 81 K.3 step 7, trap K-T6, scenarios 78 and 83
    #[test]
    fn shoots_are_concerned_after_the_shoot_monitor_period() {
        let since = |seconds| {
            let condition = Condition::new(GARDENLET_READY, ago(seconds));
            Reported { ready: Some(condition), ..seed(Value::Null) }
        };
        let at_once = Periods { shoot_monitor: SignedDuration::ZERO, ..PERIODS };

        assert!(!since(199).concerns_shoots(PERIODS, now()));
        assert!(since(201).concerns_shoots(PERIODS, now()));
        assert!(since(0).concerns_shoots(at_once, now()));
    }

    /// spec 81 K.6, scenario 81
    #[test]
    fn certificate_is_expired_after_its_time() {
        let expires = |text: &str| seed(json!({ "clientCertificateExpirationTimestamp": text }));

        assert!(expires("2026-08-21T11:00:00Z").has_expired_certificate(now()));
        assert!(!expires("2026-08-21T13:00:00Z").has_expired_certificate(now()));
        assert!(!seed(Value::Null).has_expired_certificate(now()));
    }
}
