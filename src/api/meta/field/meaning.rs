//! Parts of objects that are only compared: whether two of them mean the same (spec 62 §2.6).

use std::borrow::Cow;

use kit::duration::GoDuration;
use serde::{Deserialize, de::Deserializer};
use serde_json::Number;

use super::{Json, json::wrong, time::moment};
use crate::api::meta::quantity::Amount;

/// Content of other owners. It is compared as it is, except for the order of its keys.
#[derive(Debug, Clone, Default)]
pub struct Opaque<'a>(pub Json<'a>);

/// Only changes of this struct matter. Absent, `null` and empty values are the same; so are durations, quantities
/// and times in another notation, under the keys that hold them. A map of empty values is empty too; in Go an empty
/// struct differs from an absent one, but which maps are structs is not known here.
#[derive(Debug, Clone, Default)]
pub struct Loose<'a>(pub Json<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for Opaque<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Json::deserialize(deserializer).map(Self)
    }
}

impl PartialEq for Opaque<'_> {
    fn eq(&self, other: &Self) -> bool {
        same(&self.0, &other.0)
    }
}

fn same(one: &Json<'_>, other: &Json<'_>) -> bool {
    match (one, other) {
        (Json::List(one), Json::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Json::Map(one), Json::Map(other)) => {
            one.len() == other.len()
                && sorted(one).iter().zip(sorted(other)).all(|(one, other)| one.0 == other.0 && same(&one.1, &other.1))
        }
        (Json::Number(one), Json::Number(other)) => same_number(one, other),
        _ => one == other,
    }
}

type MapEntry<'a> = (Cow<'a, str>, Json<'a>);

fn sorted<'b, 'a>(entries: &'b [MapEntry<'a>]) -> Vec<&'b MapEntry<'a>> {
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    entries
}

/// Under these keys, at any depth, texts and numbers are quantities. Thresholds of evictions are not: they are texts
/// and may be percentages.
const QUANTITIES: [&str; 11] = [
    "requests",
    "limits",
    "capacity",
    "virtualCapacity",
    "kubeReserved",
    "systemReserved",
    "evictionMinimumReclaim",
    "quota",
    "storageCapacity",
    "deltaSnapshotMemoryLimit",
    "containerLogMaxSize",
];
/// Under these keys, at any depth, texts are durations: of Etcds, then of pools of Workers.
const DURATIONS: [&str; 20] = [
    "heartbeatDuration",
    "etcdDefragTimeout",
    "garbageCollectionPeriod",
    "deltaSnapshotPeriod",
    "deltaSnapshotRetentionPeriod",
    "etcdSnapshotTimeout",
    "reelectionPeriod",
    "etcdConnectionTimeout",
    "machineDrainTimeout",
    "machineHealthTimeout",
    "machineCreationTimeout",
    "machineInPlaceUpdateTimeout",
    "scaleDownUnneededTime",
    "scaleDownUnreadyTime",
    "maxNodeProvisionTime",
    "evictionPressureTransitionPeriod",
    "evictionSoftGracePeriod",
    "streamingConnectionIdleTimeout",
    "imageMinimumGCAge",
    "imageMaximumGCAge",
];
/// Under this key, at any depth, texts are times: of OperatingSystemConfigs.
const TIMES: [&str; 1] = ["lastInitiationTime"];
/// Values below these keys, or below references, are texts whatever they look like.
const TEXTS: [&str; 6] = ["labels", "annotations", "selector", "matchLabels", "nodeSelector", "matchExpressions"];

#[derive(Debug, Clone, Copy)]
enum Sense {
    /// By the keys further down.
    Open,
    /// As they are, here and further down.
    Text,
    Duration,
    Quantity,
    Time,
}

impl<'de: 'a, 'a> Deserialize<'de> for Loose<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Json::deserialize(deserializer)? {
            found @ (Json::Null | Json::Map(_)) => Ok(Self(found)),
            other => Err(wrong(&other, "a map")),
        }
    }
}

impl PartialEq for Loose<'_> {
    fn eq(&self, other: &Self) -> bool {
        means_the_same(&self.0, &other.0)
    }
}

/// Returns true if two values are equal as [`Loose`] values.
pub fn means_the_same(one: &Json<'_>, other: &Json<'_>) -> bool {
    same_meaning(one, other, Sense::Open)
}

fn is_empty(value: &Json<'_>) -> bool {
    match value {
        Json::Null => true,
        Json::List(items) => items.is_empty(),
        Json::Map(entries) => entries.iter().all(|(_, value)| is_empty(value)),
        Json::Bool(_) | Json::Number(_) | Json::Text(_) => false,
    }
}

fn same_meaning(one: &Json<'_>, other: &Json<'_>, sense: Sense) -> bool {
    match (one, other) {
        (Json::List(one), Json::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same_meaning(one, other, sense))
        }
        (Json::Map(one), Json::Map(other)) => {
            let (one, other) = (filled(one), filled(other));
            one.len() == other.len()
                && one.into_iter().zip(other).all(|((key, one), (other_key, other))| {
                    key == other_key && same_meaning(one, other, sense.below(key))
                })
        }
        _ if one == other || is_empty(one) && is_empty(other) => true,
        (Json::Number(one), Json::Number(other)) => same_number(one, other),
        _ => match sense {
            Sense::Open | Sense::Text => false,
            Sense::Duration => one.as_text().zip(other.as_text()).is_some_and(|(one, other)| as_long(one, other)),
            Sense::Time => one.as_text().zip(other.as_text()).is_some_and(|(one, other)| at_once(one, other)),
            Sense::Quantity => amount(one).zip(amount(other)).is_some_and(|(one, other)| one == other),
        },
    }
}

impl Sense {
    fn below(self, key: &str) -> Self {
        match self {
            Self::Open if TEXTS.contains(&key) || key.ends_with("Ref") || key.ends_with("Refs") => Self::Text,
            Self::Open if DURATIONS.contains(&key) => Self::Duration,
            Self::Open if QUANTITIES.contains(&key) => Self::Quantity,
            Self::Open if TIMES.contains(&key) => Self::Time,
            known => known,
        }
    }
}

fn filled<'b, 'a>(entries: &'b [MapEntry<'a>]) -> Vec<&'b MapEntry<'a>> {
    let mut entries = sorted(entries);
    entries.retain(|(_, value)| !is_empty(value));
    entries
}

fn as_long(one: &str, other: &str) -> bool {
    let duration = |text: &str| text.parse::<GoDuration>().ok();
    duration(one).is_some_and(|one| duration(other) == Some(one))
}

fn at_once(one: &str, other: &str) -> bool {
    moment(one).is_some_and(|one| moment(other) == Some(one))
}

fn amount(value: &Json<'_>) -> Option<Amount> {
    match value {
        Json::Text(text) => Amount::parse(text),
        Json::Number(number) => Amount::parse(&number.to_string()),
        Json::Null | Json::Bool(_) | Json::List(_) | Json::Map(_) => None,
    }
}

/// `1` is `1.0`.
fn same_number(one: &Number, other: &Number) -> bool {
    one == other || Amount::parse(&one.to_string()).is_some_and(|one| Amount::parse(&other.to_string()) == Some(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a, T: Deserialize<'a>>(text: &'a str) -> T {
        serde_json::from_str(text).unwrap()
    }

    /// spec 62 §2.6
    #[test]
    fn meaning_is_equal_in_different_notations() {
        let opaque = |text| read::<Opaque<'_>>(text);
        assert_eq!(opaque(r#"{"a":1,"b":[]}"#), opaque(r#"{"b":[],"a":1}"#));
        assert_ne!(opaque(r#"{"b":[]}"#), opaque("{}"));
        let loose = |text| read::<Loose<'_>>(text);
        let one = r#"{"replicas":1,"limits":{"cpu":"1"},"l":[],"m":{"x":null},"etcdDefragTimeout":"60s","v":"1.30"}"#;
        let other = r#"{"etcdDefragTimeout":"1m0s","limits":{"cpu":"1000m"},"replicas":1,"v":"1.30"}"#;
        assert_eq!(loose(one), loose(other));
        assert_ne!(loose(r#"{"v":"1.30"}"#), loose(r#"{"v":"1.3"}"#));
        assert_ne!(loose(r#"{"replicas":1}"#), loose(r#"{"replicas":3}"#));
        assert_ne!(loose(r#"{"replicas":0}"#), loose("{}"));
        assert_eq!(opaque(r#"{"a":1}"#), opaque(r#"{"a":1.0}"#));
    }

    /// spec 62 §2.6
    #[test]
    fn meaning_of_a_text_depends_on_its_key() {
        let table = [
            (r#"{"store":{"container":"60m"}}"#, r#"{"store":{"container":"1h"}}"#, false),
            (r#"{"labels":{"a":"1m"}}"#, r#"{"labels":{"a":"60s"}}"#, false),
            (r#"{"annotations":{"quota":"1000m"}}"#, r#"{"annotations":{"quota":"1"}}"#, false),
            (r#"{"selector":{"quota":"1000m"}}"#, r#"{"selector":{"quota":"1"}}"#, false),
            (r#"{"secretRef":{"quota":"1000m"}}"#, r#"{"secretRef":{"quota":"1"}}"#, false),
            (r#"{"resources":{"claims":[{"name":"1"}]}}"#, r#"{"resources":{"claims":[{"name":"1000m"}]}}"#, false),
            (r#"{"evictionHard":{"memoryAvailable":"1Ki"}}"#, r#"{"evictionHard":{"memoryAvailable":"1024"}}"#, false),
            (r#"{"quota":"1m"}"#, r#"{"quota":"60s"}"#, false),
            (r#"{"deltaSnapshotPeriod":"1"}"#, r#"{"deltaSnapshotPeriod":"1000m"}"#, false),
            (r#"{"deltaSnapshotPeriod":"60m"}"#, r#"{"deltaSnapshotPeriod":"1h"}"#, true),
            (r#"{"evictionSoftGracePeriod":{"a":"60s"}}"#, r#"{"evictionSoftGracePeriod":{"a":"1m"}}"#, true),
            (r#"{"etcd":{"quota":"1Ki"}}"#, r#"{"etcd":{"quota":1024}}"#, true),
            (r#"{"resources":{"limits":{"cpu":1}}}"#, r#"{"resources":{"limits":{"cpu":"1"}}}"#, true),
            (r#"{"resources":{"limits":{"cpu":0.5}}}"#, r#"{"resources":{"limits":{"cpu":"500m"}}}"#, true),
            (r#"{"replicas":1}"#, r#"{"replicas":"1"}"#, false),
            (r#"{"replicas":[1]}"#, r#"{"replicas":[1.0]}"#, true),
            (r#"{"replicas":1}"#, r#"{"replicas":1.5}"#, false),
            (r#"{"quota":true}"#, r#"{"quota":1}"#, false),
            (
                r#"{"lastInitiationTime":"2026-01-01T00:00:00Z"}"#,
                r#"{"lastInitiationTime":"2026-01-01T01:00:00+01:00"}"#,
                true,
            ),
            (
                r#"{"lastInitiationTime":"2026-01-01T00:00:00Z"}"#,
                r#"{"lastInitiationTime":"2026-01-01T00:00:01Z"}"#,
                false,
            ),
            (r#"{"x":"2026-01-01T00:00:00Z"}"#, r#"{"x":"2026-01-01T01:00:00+01:00"}"#, false),
            (r#"{"lastInitiationTime":"x"}"#, r#"{"lastInitiationTime":"y"}"#, false),
            (r#"{"a":{"b":{},"c":[]}}"#, "{}", true),
        ];
        for (one, other, same) in table {
            assert_eq!(read::<Loose<'_>>(one) == read(other), same, "{one} {other}");
            assert_eq!(read::<Loose<'_>>(other) == read(one), same, "{other} {one}");
        }
    }
}
