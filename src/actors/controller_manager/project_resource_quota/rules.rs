//! How many ConfigMaps and Secrets a ResourceQuota must allow (spec 82 B.3). Pure.

use cluster::object;
use serde_json::{Map, Value, json};

use crate::api::meta::quantity::Amount;

/// The limit of Shoots.
const SHOOTS: &str = "count/shoots.core.gardener.cloud";

/// A kind whose objects gardenlet creates for each Shoot (spec 82 B.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CountedKind {
    /// `<shoot>.ca-cluster` and `<shoot>.ca-kubelet`.
    ConfigMaps,
    /// `<shoot>.ca-cluster`, `.ssh-keypair`, `.ssh-keypair.old` and `.monitoring`.
    Secrets,
}

/// What counts of a ResourceQuota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// It limits nothing, or is being deleted.
    is_left_alone: bool,
    /// The limit of Shoots; `None` if there is none.
    shoots: Option<Limit>,
    /// What counts of each of [`CountedKind::ALL`].
    counted: [Counted; 2],
}

/// What a ResourceQuota says about one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counted {
    limit: Option<Limit>,
    annotation: Annotation,
}

/// A limit, rounded up to a whole number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    Number(i64),
    /// It is no quantity. API servers refuse such a value.
    Unreadable,
}

/// For how many objects per Shoot a ResourceQuota was aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Annotation {
    Absent,
    /// It is no integer, which counts as absent (spec 82 B.3.2).
    Invalid,
    Number(i64),
}

/// A change of a ResourceQuota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Change {
    kind: CountedKind,
    reason: Reason,
}

/// Why a ResourceQuota changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Reason {
    /// Nothing is known of its alignment. Its limit is `current`, and must be `required` at least.
    First { current: i64, required: i64, is_invalid: bool },
    /// Gardener creates more per Shoot than at the last alignment.
    More { recorded: i64, limit: i64, raised: i64 },
    /// Gardener creates less per Shoot. The limit is never lowered.
    Less,
    /// It has no limit, so its annotation means nothing (spec 82 B.3.1).
    Unlimited,
}

/// Why a ResourceQuota cannot be aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// It does not limit Shoots: the number of Shoots in its namespace is needed.
    #[error("the number of Shoots is not known")]
    ShootsUnknown,
    /// A limit is no quantity.
    #[error("spec.hard[{0:?}] is no quantity: correct it")]
    Unreadable(&'static str),
}

impl CountedKind {
    /// All kinds, in the order of the changes.
    pub const ALL: [Self; 2] = [Self::ConfigMaps, Self::Secrets];

    /// Returns its name in log records.
    fn name(self) -> &'static str {
        match self {
            Self::ConfigMaps => "configmaps",
            Self::Secrets => "secrets",
        }
    }

    /// Returns its key in `spec.hard`.
    fn key(self) -> &'static str {
        match self {
            Self::ConfigMaps => "count/configmaps",
            Self::Secrets => "count/secrets",
        }
    }

    /// Returns the annotation that records how many objects per Shoot the limit is meant for.
    pub fn annotation(self) -> &'static str {
        match self {
            Self::ConfigMaps => "quota.gardener.cloud/configmaps-per-shoot",
            Self::Secrets => "quota.gardener.cloud/secrets-per-shoot",
        }
    }

    /// Returns how many objects Gardener creates per Shoot.
    fn per_shoot(self) -> i64 {
        match self {
            Self::ConfigMaps => 2,
            Self::Secrets => 4,
        }
    }
}

impl Quota {
    /// Reads a ResourceQuota.
    pub fn of(quota: &Value) -> Self {
        let limit = |key: &str| {
            let text = quota.get("spec")?.get("hard")?.get(key)?.as_str()?;
            Some(Amount::parse(text).map_or(Limit::Unreadable, |amount| Limit::Number(amount.rounded_up())))
        };
        let annotation = |key: &str| match object::annotation(quota, key) {
            None => Annotation::Absent,
            Some(text) => text.parse().map_or(Annotation::Invalid, Annotation::Number),
        };
        let is_limited = quota.pointer("/spec/hard").and_then(Value::as_object).is_some_and(|hard| !hard.is_empty());
        Self {
            is_left_alone: !is_limited || object::deletion_timestamp(quota).is_some(),
            shoots: limit(SHOOTS),
            counted: CountedKind::ALL
                .map(|kind| Counted { limit: limit(kind.key()), annotation: annotation(kind.annotation()) }),
        }
    }
}

/// Returns what must change in a ResourceQuota. `shoots` is the number of Shoots in its namespace; it matters only if the
/// ResourceQuota does not limit them.
pub fn align(quota: &Quota, shoots: Option<i64>) -> Result<Vec<Change>, Obstacle> {
    let mut changes = Vec::new();
    if quota.is_left_alone {
        return Ok(changes);
    }
    let most_shoots = || match quota.shoots {
        Some(Limit::Number(most)) => Ok(most),
        Some(Limit::Unreadable) => Err(Obstacle::Unreadable(SHOOTS)),
        None => shoots.ok_or(Obstacle::ShootsUnknown),
    };
    for (kind, counted) in CountedKind::ALL.into_iter().zip(quota.counted) {
        let expected = kind.per_shoot();
        let reason = match (counted.limit, counted.annotation) {
            (None, Annotation::Absent) => None,
            (None, Annotation::Invalid | Annotation::Number(_)) => Some(Reason::Unlimited),
            (Some(Limit::Unreadable), _) => return Err(Obstacle::Unreadable(kind.key())),
            (Some(Limit::Number(current)), annotation @ (Annotation::Absent | Annotation::Invalid)) => {
                let required = expected.saturating_mul(most_shoots()?);
                Some(Reason::First { current, required, is_invalid: annotation == Annotation::Invalid })
            }
            (Some(Limit::Number(limit)), Annotation::Number(recorded)) if recorded < expected => {
                let more = most_shoots()?.saturating_mul(expected.saturating_sub(recorded));
                Some(Reason::More { recorded, limit, raised: limit.saturating_add(more) })
            }
            (Some(Limit::Number(_)), Annotation::Number(recorded)) => (recorded > expected).then_some(Reason::Less),
        };
        changes.extend(reason.map(|reason| Change { kind, reason }));
    }
    Ok(changes)
}

/// Returns the merge patch for changes; `None` if there are none.
pub fn patch(changes: &[Change]) -> Option<Value> {
    let annotations: Map<_, _> =
        changes.iter().map(|change| (change.kind.annotation().to_owned(), change.annotation())).collect();
    let limits =
        changes.iter().filter_map(|change| Some((change.kind.key().to_owned(), json!(change.limit()?.to_string()))));
    let hard: Map<_, _> = limits.collect();
    let metadata = json!({ "annotations": annotations });
    let patch = if hard.is_empty() {
        json!({ "metadata": metadata })
    } else {
        json!({ "metadata": metadata, "spec": { "hard": hard } })
    };
    (!changes.is_empty()).then_some(patch)
}

impl Change {
    /// Returns the new limit; `None` if it stays.
    fn limit(self) -> Option<i64> {
        match self.reason {
            Reason::First { current, required, .. } => (current < required).then_some(required),
            Reason::More { limit, raised, .. } => (limit != raised).then_some(raised),
            Reason::Less | Reason::Unlimited => None,
        }
    }

    /// Returns the new annotation; null if it goes.
    fn annotation(self) -> Value {
        match self.reason {
            Reason::First { .. } | Reason::More { .. } | Reason::Less => json!(self.kind.per_shoot().to_string()),
            Reason::Unlimited => Value::Null,
        }
    }

    /// Logs why the ResourceQuota changes (spec 82 B.3).
    pub(super) fn log(self) {
        let (kind, to) = (self.kind.name(), self.kind.per_shoot());
        match self.reason {
            Reason::First { current, required, is_invalid } => {
                if is_invalid {
                    let annotation = self.kind.annotation();
                    tracing::warn!(annotation, "An annotation of a ResourceQuota is no integer, and counts as absent");
                }
                let text = match current < required {
                    true => "Current quota is less than required quota, bumping up",
                    false => "Current quota is sufficient for required quota, not changing quota",
                };
                tracing::info!(currentQuota = current, requiredQuota = required, quotaType = kind, "{text}");
            }
            Reason::More { recorded, raised, .. } => {
                tracing::info!(quotaType = kind, from = recorded, to, "Bumping resource quota per shoot");
                tracing::info!(quotaType = kind, value = raised, "Updating resource quota with value");
            }
            Reason::Less | Reason::Unlimited => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shoots, ConfigMaps and Secrets in `spec.hard`.
    type Hard<'a> = [Option<&'a str>; 3];
    /// The annotations for ConfigMaps and Secrets.
    type Notes<'a> = [Option<&'a str>; 2];

    fn quota([shoots, config_maps, secrets]: Hard<'_>, notes: Notes<'_>) -> Value {
        let [config_maps_note, secrets_note] = notes;
        let mut hard =
            json!({ "pods": "5", SHOOTS: shoots, "count/configmaps": config_maps, "count/secrets": secrets });
        let mut annotations = json!({ "own": "x", "quota.gardener.cloud/configmaps-per-shoot": config_maps_note,
            "quota.gardener.cloud/secrets-per-shoot": secrets_note });
        for fields in [&mut hard, &mut annotations] {
            fields.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        }
        json!({ "metadata": { "annotations": annotations }, "spec": { "hard": hard } })
    }

    fn aligned(quota: &Value, shoots: Option<i64>) -> Result<Value, Obstacle> {
        let patch = patch(&align(&Quota::of(quota), shoots)?).unwrap_or(json!({}));
        let mut quota = quota.clone();
        json_patch::merge(&mut quota, &patch);
        Ok(quota)
    }

    /// spec 82 B.3, scenarios 29 to 33 and 35
    #[test]
    fn quota_leaves_room_for_what_gardener_creates() {
        const ALIGNED: Notes<'_> = [Some("2"), Some("4")];
        type Row<'a> = (&'a str, Hard<'a>, Notes<'a>, Hard<'a>, Notes<'a>);
        let table: [Row<'_>; 13] = [
            ("too small", [Some("1"), Some("1"), Some("2")], [None; 2], [Some("1"), Some("2"), Some("4")], ALIGNED),
            ("sufficient", [Some("1"), Some("2"), Some("4")], [None; 2], [Some("1"), Some("2"), Some("4")], ALIGNED),
            ("neither is limited", [Some("3"), None, None], [None; 2], [Some("3"), None, None], [None; 2]),
            (
                "more per Shoot",
                [Some("10"), Some("10"), Some("30")],
                [Some("1"), Some("3")],
                [Some("10"), Some("20"), Some("40")],
                ALIGNED,
            ),
            (
                "less per Shoot",
                [Some("10"), Some("10"), Some("30")],
                [Some("3"), Some("5")],
                [Some("10"), Some("10"), Some("30")],
                ALIGNED,
            ),
            ("Shoots are counted", [None, Some("5"), Some("20")], [None; 2], [None, Some("6"), Some("20")], ALIGNED),
            (
                "one without a limit",
                [Some("3"), Some("6"), None],
                [None, Some("1")],
                [Some("3"), Some("6"), None],
                [Some("2"), None],
            ),
            (
                "no integer",
                [Some("1"), Some("1"), Some("1")],
                [Some("abc"), Some("4.0")],
                [Some("1"), Some("2"), Some("4")],
                ALIGNED,
            ),
            ("aligned before", [Some("9"), Some("1"), Some("1")], ALIGNED, [Some("9"), Some("1"), Some("1")], ALIGNED),
            (
                "other notations",
                [Some("1k"), Some("1500m"), Some("2Ki")],
                [None; 2],
                [Some("1k"), Some("2000"), Some("4000")],
                ALIGNED,
            ),
            (
                "rounded up",
                [Some("1"), Some("1500m"), Some("3001m")],
                [None; 2],
                [Some("1"), Some("1500m"), Some("3001m")],
                ALIGNED,
            ),
            (
                "no Shoots",
                [Some("0"), Some("0"), Some("1500m")],
                [None, Some("1")],
                [Some("0"), Some("0"), Some("1500m")],
                ALIGNED,
            ),
            (
                "beyond all bounds",
                [Some("1E"), Some("1"), Some("9E")],
                [None, Some("-9223372036854775808")],
                [Some("1E"), Some("2000000000000000000"), Some("9223372036854775807")],
                ALIGNED,
            ),
        ];
        for (title, hard, notes, new_hard, new_notes) in table {
            let aligned = aligned(&quota(hard, notes), Some(3)).unwrap();

            assert_eq!(aligned, quota(new_hard, new_notes), "{title}");
            assert_eq!(align(&Quota::of(&aligned), Some(3)), Ok(Vec::new()), "{title}: nothing is left to do");
        }
    }

    /// spec 82 B.3 step 1, spec 80 §10 A12
    #[test]
    fn quota_that_limits_nothing_or_ends_is_left_alone() {
        let mut ending = quota([Some("1"), Some("1"), Some("1")], [Some("1"), None]);
        ending["metadata"]["deletionTimestamp"] = json!("2026-08-21T12:00:00Z");
        let annotations = ending["metadata"]["annotations"].clone();
        for spec in [json!(null), json!({}), json!({ "hard": null }), json!({ "hard": {} }), json!([])] {
            let quota = json!({ "metadata": { "annotations": annotations }, "spec": spec });
            assert_eq!(align(&Quota::of(&quota), None), Ok(Vec::new()), "{spec}");
        }
        assert_eq!(align(&Quota::of(&ending), None), Ok(Vec::new()));
    }

    /// spec 82 B.3 step 2
    #[test]
    fn quota_needs_the_number_of_shoots_only_if_nothing_limits_them() {
        let [unlimited, limited] = [None, Some("3")].map(|shoots| quota([shoots, Some("9"), None], [None; 2]));
        let done = quota([None, Some("9"), None], [Some("2"), None]);

        assert_eq!(align(&Quota::of(&unlimited), None), Err(Obstacle::ShootsUnknown));
        assert!(align(&Quota::of(&limited), None).is_ok());
        assert_eq!(align(&Quota::of(&done), None), Ok(Vec::new()));
        assert_eq!(aligned(&unlimited, Some(0)), Ok(done));
    }

    /// spec 82 B.3 step 8: others may write at the same time.
    #[test]
    fn quota_patch_has_only_what_differs() {
        let changes = align(&Quota::of(&quota([Some("2"), Some("4"), Some("1")], [None; 2])), None).unwrap();

        let annotations =
            json!({ "quota.gardener.cloud/configmaps-per-shoot": "2", "quota.gardener.cloud/secrets-per-shoot": "4" });
        let expected =
            json!({ "metadata": { "annotations": annotations }, "spec": { "hard": { "count/secrets": "8" } } });
        assert_eq!(patch(&changes), Some(expected));
    }

    #[test]
    fn quota_with_a_limit_that_is_no_quantity_is_an_error_that_names_it() {
        for (hard, key) in [([Some("many"), Some("1"), None], SHOOTS), ([None, Some("few"), None], "count/configmaps")]
        {
            let obstacle = align(&Quota::of(&quota(hard, [None; 2])), Some(1)).unwrap_err();

            assert_eq!(obstacle.to_string(), format!("spec.hard[{key:?}] is no quantity: correct it"));
        }
    }
}
