//! Conditions of a status, and the rules by which they change (spec 10 §2.5). Time comes in as a value. Timestamps have
//! second precision, so that a condition equals itself after a write and a read.

use jiff::{Timestamp, Unit};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Condition type: all objects are applied. Written by the managedresource controller.
pub const RESOURCES_APPLIED: &str = "ResourcesApplied";
/// Condition type: all objects are healthy. Written by the health controller.
pub const RESOURCES_HEALTHY: &str = "ResourcesHealthy";
/// Condition type: objects are still being rolled out. Written by the health-progressing controller.
pub const RESOURCES_PROGRESSING: &str = "ResourcesProgressing";

/// Reason: everything is applied.
pub const APPLY_SUCCEEDED: &str = "ApplySucceeded";
/// Reason: an object could not be applied.
pub const APPLY_FAILED: &str = "ApplyFailed";
/// Reason: a document in a Secret is no manifest.
pub const DECODING_FAILED: &str = "DecodingFailed";
/// Reason: a change is being applied.
pub const APPLY_PROGRESSING: &str = "ApplyProgressing";
/// Reason: never written here, but understood where others wrote it (spec 10 §18, trap 14).
pub const DELETION_FAILED: &str = "DeletionFailed";
/// Reason: objects are being deleted.
pub const DELETION_PENDING: &str = "DeletionPending";
/// Reason: an object could not be released.
pub const RELEASE_FAILED: &str = "ReleaseOfOrphanedResourcesFailed";
/// Reason: the ManagedResource carries the ignore annotation.
pub const MANAGED_RESOURCE_IGNORED: &str = "ManagedResourceIgnored";
/// Reason: the health controllers have not checked yet.
pub const CHECKS_PENDING: &str = "ChecksPending";
/// Reason: a Secret could not be read.
pub const CANNOT_READ_SECRET: &str = "CannotReadSecret";
/// Reason of a condition that was not evaluated yet.
pub const CONDITION_INITIALIZED: &str = "ConditionInitialized";
/// Message of a condition that was not evaluated yet.
pub const CONDITION_INITIALIZED_MESSAGE: &str =
    "The condition has been initialized but its semantic check has not been performed yet.";
/// Replaces an empty message.
pub const NO_MESSAGE: &str = "No message given.";
/// Replaces an empty reason.
pub const UNSPECIFIED_REASON: &str = "Unspecified";

/// A condition of a status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The type; unique in its list.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// Its value.
    #[serde(default)]
    pub status: ConditionStatus,
    /// When the status last changed; `None` is Go's zero time.
    #[serde(default, serialize_with = "write_time", deserialize_with = "read_time")]
    pub last_transition_time: Option<Timestamp>,
    /// When reason, message or codes last changed; `None` is Go's zero time.
    #[serde(default, serialize_with = "write_time", deserialize_with = "read_time")]
    pub last_update_time: Option<Timestamp>,
    /// One word in upper camel case.
    #[serde(default)]
    pub reason: String,
    /// For people.
    #[serde(default)]
    pub message: String,
    /// Error codes of Gardener, e.g. `ERR_CONFIGURATION_PROBLEM`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<String>,
}

/// Value of a condition.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It is not known.
    #[default]
    Unknown,
    /// Work is going on; Gardener added this value to those of Kubernetes.
    Progressing,
    /// A text that another program wrote.
    #[serde(untagged)]
    Other(String),
}

impl Condition {
    /// A condition that was not evaluated yet.
    pub fn new(kind: &str, now: Timestamp) -> Self {
        Self {
            kind: kind.to_owned(),
            status: ConditionStatus::Unknown,
            last_transition_time: Some(seconds(now)),
            last_update_time: Some(seconds(now)),
            reason: CONDITION_INITIALIZED.to_owned(),
            message: CONDITION_INITIALIZED_MESSAGE.to_owned(),
            codes: Vec::new(),
        }
    }

    /// Returns the condition after an evaluation without error codes.
    pub fn updated(&self, status: ConditionStatus, reason: &str, message: &str, now: Timestamp) -> Self {
        self.updated_with_codes(status, reason, message, &[], now)
    }

    /// Returns the condition after an evaluation. `codes` replace the old codes. An empty reason or message becomes a
    /// default text.
    pub fn updated_with_codes(
        &self,
        status: ConditionStatus,
        reason: &str,
        message: &str,
        codes: &[String],
        now: Timestamp,
    ) -> Self {
        let now = seconds(now);
        let status = match status {
            ConditionStatus::Other(text) if text.is_empty() => self.status.clone().or_unknown(),
            given => given,
        };
        let reason = if reason.is_empty() { UNSPECIFIED_REASON } else { reason };
        let message = if message.is_empty() { NO_MESSAGE } else { message };
        let transition = status != self.status;
        let update = reason != self.reason || message != self.message || codes != self.codes;

        Self {
            kind: self.kind.clone(),
            status,
            last_transition_time: self.last_transition_time.filter(|_| !transition).or(Some(now)),
            last_update_time: self.last_update_time.filter(|_| !update).or(Some(now)),
            reason: reason.to_owned(),
            message: message.to_owned(),
            codes: codes.to_vec(),
        }
    }
}

impl ConditionStatus {
    /// As written in the status.
    pub fn as_str(&self) -> &str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
            Self::Progressing => "Progressing",
            Self::Other(text) => text,
        }
    }

    fn or_unknown(self) -> Self {
        if self.as_str().is_empty() { Self::Unknown } else { self }
    }
}

impl std::fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Returns the condition of a type.
pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.kind == kind)
}

/// Returns the condition of a type, or a new one. Does not change the list.
pub fn get_or_init(conditions: &[Condition], kind: &str, now: Timestamp) -> Condition {
    find(conditions, kind).cloned().unwrap_or_else(|| Condition::new(kind, now))
}

/// Replaces the condition of the same type, or appends it.
pub fn merge(conditions: &mut Vec<Condition>, condition: Condition) {
    match conditions.iter_mut().find(|known| known.kind == condition.kind) {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

/// [`get_or_init`], [`Condition::updated`] and [`merge`] in one.
pub fn set(
    conditions: &mut Vec<Condition>,
    kind: &str,
    status: ConditionStatus,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    let condition = get_or_init(conditions, kind, now).updated(status, reason, message, now);
    merge(conditions, condition);
}

fn seconds(time: Timestamp) -> Timestamp {
    // Rounding down fails only at the start of jiff's range, thousands of years ago.
    let rounding = jiff::TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Floor);
    time.round(rounding).unwrap_or(time)
}

fn write_time<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serializer.collect_str(&format_args!("{:.0}", seconds(*time))),
        None => serializer.serialize_none(),
    }
}

/// An invalid time counts as none: the next update of the condition sets it.
fn read_time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
    const GO_ZERO: i64 = -62_135_596_800;

    let text = Option::<String>::deserialize(deserializer)?;
    let time = text.and_then(|text| text.parse::<Timestamp>().ok());
    Ok(time.filter(|time| time.as_second() != GO_ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    fn earlier() -> Timestamp {
        time("2026-01-01T10:00:00Z")
    }

    fn now() -> Timestamp {
        time("2026-01-01T11:00:00Z")
    }

    fn applied() -> Condition {
        Condition::new(RESOURCES_APPLIED, earlier()).updated(ConditionStatus::True, "A", "a", earlier())
    }

    #[test]
    fn a_missing_condition_starts_as_unknown() {
        let condition = get_or_init(&[], RESOURCES_HEALTHY, now());

        let expected = serde_json::json!({
            "type": "ResourcesHealthy", "status": "Unknown", "reason": "ConditionInitialized",
            "message": "The condition has been initialized but its semantic check has not been performed yet.",
            "lastTransitionTime": "2026-01-01T11:00:00Z", "lastUpdateTime": "2026-01-01T11:00:00Z"
        });
        assert_eq!(serde_json::to_value(condition).unwrap(), expected);
    }

    #[test]
    fn the_transition_time_follows_the_status_and_the_update_time_the_texts() {
        for (status, reason, message, transition, update) in [
            (ConditionStatus::True, "A", "a", earlier(), earlier()),
            (ConditionStatus::False, "A", "a", now(), earlier()),
            (ConditionStatus::True, "B", "a", earlier(), now()),
            (ConditionStatus::True, "A", "b", earlier(), now()),
            (ConditionStatus::Progressing, "B", "b", now(), now()),
        ] {
            let condition = applied().updated(status, reason, message, now());

            assert_eq!(condition.last_transition_time, Some(transition), "{condition:?}");
            assert_eq!(condition.last_update_time, Some(update), "{condition:?}");
        }
    }

    #[test]
    fn codes_are_replaced_and_count_as_an_update() {
        let with_codes = applied().updated_with_codes(ConditionStatus::True, "A", "a", &["ERR".to_owned()], earlier());

        let condition = with_codes.updated(ConditionStatus::True, "A", "a", now());

        assert!(condition.codes.is_empty());
        assert_eq!(condition.last_update_time, Some(now()));
    }

    #[test]
    fn empty_texts_get_their_stand_ins_and_an_empty_status_keeps_the_old_one() {
        let condition = applied().updated(ConditionStatus::Other(String::new()), "", "", now());

        assert_eq!(condition.status, ConditionStatus::True);
        assert_eq!((condition.reason.as_str(), condition.message.as_str()), (UNSPECIFIED_REASON, NO_MESSAGE));
    }

    #[test]
    fn a_zero_time_is_replaced_at_the_next_update() {
        let raw = serde_json::json!({
            "type": "ResourcesApplied", "status": "True", "reason": "A", "message": "a",
            "lastTransitionTime": "0001-01-01T00:00:00Z", "lastUpdateTime": null
        });
        let condition: Condition = serde_json::from_value(raw).unwrap();

        let condition = condition.updated(ConditionStatus::True, "A", "a", now());

        assert_eq!((condition.last_transition_time, condition.last_update_time), (Some(now()), Some(now())));
    }

    #[test]
    fn conditions_keep_their_order_and_new_types_are_appended() {
        let mut conditions =
            vec![Condition::new(RESOURCES_PROGRESSING, earlier()), Condition::new("Foreign", earlier())];

        merge(&mut conditions, applied());
        set(&mut conditions, RESOURCES_PROGRESSING, ConditionStatus::True, "R", "m", now());

        let kinds: Vec<_> = conditions.iter().map(|condition| condition.kind.as_str()).collect();
        assert_eq!(kinds, [RESOURCES_PROGRESSING, "Foreign", RESOURCES_APPLIED]);
        assert_eq!(conditions[0].reason, "R");
    }

    #[test]
    fn fractions_of_a_second_are_cut_so_that_a_written_condition_equals_itself_when_read() {
        let condition = Condition::new(RESOURCES_APPLIED, time("2026-01-01T11:00:00.987654321Z"));

        let read: Condition = serde_json::from_str(&serde_json::to_string(&condition).unwrap()).unwrap();

        assert_eq!(read, condition);
        assert_eq!(read.last_update_time, Some(now()));
    }

    #[test]
    fn condition_status_texts_of_others_survive() {
        let status: ConditionStatus = serde_json::from_str("\"Sometimes\"").unwrap();

        assert_eq!(status, ConditionStatus::Other("Sometimes".to_owned()));
        assert_eq!(serde_json::to_string(&status).unwrap(), "\"Sometimes\"");
    }
}
