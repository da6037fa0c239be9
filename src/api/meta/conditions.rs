//! Conditions of a status, and the rules by which they change (spec 10 §2.5, spec 80 §16.2). Time comes in as a value.
//! Timestamps have second precision, so that a condition equals itself after a write and a read.
//! `patch`: conditions in an object of unknown shape; `threshold`: conditions that turn bad after a while.

mod patch;
pub mod threshold;

use jiff::{Timestamp, Unit};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use self::patch::{find_in, status_patch};

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
    let time = text.and_then(|text| text.parse::<Timestamp>().ok()).map(seconds);
    Ok(time.filter(|time| time.as_second() != GO_ZERO))
}

#[cfg(test)]
mod tests;
