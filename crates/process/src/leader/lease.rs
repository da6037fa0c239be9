//! The Lease as JSON. Foreign fields survive, because another candidate may need them.

use std::time::Duration;

use cluster::object;
use jiff::Timestamp;
use serde_json::{Value, json};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Lease(Value);

impl Lease {
    pub(super) fn new(lease: Value) -> Self {
        Self(lease)
    }

    /// Returns true if an answer is a Lease. Any other answer says nothing about who leads.
    pub(super) fn is_one(answer: &Value) -> bool {
        let has_spec = answer.get("spec").is_none_or(|spec| spec.is_object() || spec.is_null());
        answer.is_object() && answer["kind"] == "Lease" && !object::resource_version(answer).is_empty() && has_spec
    }

    pub(super) fn absent(namespace: &str, name: &str) -> Self {
        Self(json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"namespace": namespace, "name": name},
        }))
    }

    pub(super) fn holder(&self) -> &str {
        self.0["spec"]["holderIdentity"].as_str().unwrap_or_default()
    }

    /// Returns how long its holder may be trusted without renewal: 0 if not stated, at most what an API server allows.
    pub(super) fn duration(&self) -> Duration {
        let seconds = self.0["spec"]["leaseDurationSeconds"].as_u64().unwrap_or_default();
        Duration::from_secs(seconds.min(i32::MAX.unsigned_abs().into()))
    }

    pub(super) fn uid(&self) -> &str {
        object::uid(&self.0)
    }

    pub(super) fn version(&self) -> &str {
        object::resource_version(&self.0)
    }

    /// Returns true if the same candidate holds it in the same term without a renewal. Metadata does not count.
    pub(super) fn same_record(&self, other: &Self) -> bool {
        self.0["spec"] == other.0["spec"]
    }

    pub(super) fn renewed(&self, duration: Duration, now: Timestamp) -> Value {
        self.with(&[("leaseDurationSeconds", seconds(duration).into()), ("renewTime", micros(now).into())])
    }

    /// The Lease taken over. A first holder begins at 0 transitions.
    pub(super) fn taken(&self, by: &str, duration: Duration, now: Timestamp) -> Value {
        let before = self.0["spec"]["leaseTransitions"].as_u64().unwrap_or_default();
        let transitions = if self.uid().is_empty() { 0 } else { before + 1 };
        self.with(&[
            ("holderIdentity", by.into()),
            ("leaseDurationSeconds", seconds(duration).into()),
            ("acquireTime", micros(now).into()),
            ("renewTime", micros(now).into()),
            ("leaseTransitions", transitions.into()),
        ])
    }

    /// The released Lease has no holder, and candidates need not wait (spec 70 §12).
    pub(super) fn released(&self, now: Timestamp) -> Value {
        self.with(&[
            ("holderIdentity", "".into()),
            ("leaseDurationSeconds", 1.into()),
            ("acquireTime", micros(now).into()),
            ("renewTime", micros(now).into()),
        ])
    }

    fn with(&self, fields: &[(&str, Value)]) -> Value {
        let mut lease = self.0.clone();
        for (field, value) in fields {
            *object::field_mut(&mut lease, &["spec", field]) = value.clone();
        }
        lease
    }
}

/// Whole seconds, rounded up: others must not take the lease before its holder gives it up.
fn seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// A MicroTime: the server insists on six decimals (api-facts §8).
fn micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// api-facts §8
    #[test]
    fn lease_times_have_six_decimals() {
        assert_eq!(micros("2026-01-02T03:04:05Z".parse().unwrap()), "2026-01-02T03:04:05.000000Z");
        assert_eq!(micros("2026-01-02T03:04:05.123456789Z".parse().unwrap()), "2026-01-02T03:04:05.123456Z");
    }

    #[test]
    fn lease_duration_is_rounded_up() {
        for (duration, written) in [(900, 1), (1000, 1), (10_900, 11), (15_000, 15)] {
            let duration = Duration::from_millis(duration);
            let taken = Lease::absent("n", "l").taken("me", duration, Timestamp::UNIX_EPOCH);
            let renewed = Lease::absent("n", "l").renewed(duration, Timestamp::UNIX_EPOCH);

            let seconds = [&taken, &renewed].map(|lease| lease["spec"]["leaseDurationSeconds"].clone());
            assert_eq!(seconds, [json!(written), json!(written)], "{duration:?}");
        }
    }

    #[test]
    fn lease_duration_is_bounded() {
        let lease = Lease::new(json!({"spec": {"leaseDurationSeconds": u64::MAX}}));

        assert_eq!(lease.duration(), Duration::from_secs(2_147_483_647));
    }

    #[test]
    fn lease_keeps_foreign_fields() {
        let lease = Lease::new(json!({"metadata": {"uid": "u", "resourceVersion": "7"},
            "spec": {"holderIdentity": "other", "leaseTransitions": 3, "strategy": "OldestEmulationVersion"}}));

        let taken = lease.taken("me", Duration::from_secs(15), Timestamp::UNIX_EPOCH);

        assert_eq!(
            taken,
            json!({"metadata": {"uid": "u", "resourceVersion": "7"}, "spec": {"holderIdentity": "me",
                "leaseDurationSeconds": 15, "acquireTime": "1970-01-01T00:00:00.000000Z",
                "renewTime": "1970-01-01T00:00:00.000000Z", "leaseTransitions": 4,
                "strategy": "OldestEmulationVersion"}})
        );
    }
}
