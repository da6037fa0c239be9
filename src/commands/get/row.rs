use cluster::object::{self, NamespacedName};
use jiff::Timestamp;
use serde_json::Value;

use crate::api::{
    meta::{
        age::age,
        conditions::{Condition, ConditionStatus},
    },
    resources::{
        condition_names::{RESOURCES_APPLIED, RESOURCES_HEALTHY, RESOURCES_PROGRESSING},
        keys::DEFAULT_CLASS,
        managed_resource::{ManagedResource, ResourceRef},
    },
};

/// The conditions in the order of the columns, with the status that each should have (spec 10 §19.8).
const WANTED: [(&str, ConditionStatus); 3] = [
    (RESOURCES_APPLIED, ConditionStatus::True),
    (RESOURCES_HEALTHY, ConditionStatus::True),
    (RESOURCES_PROGRESSING, ConditionStatus::False),
];
const ABSENT: &str = "-";
const STALE: char = '*';
const DELETED: &str = "is being deleted";

/// One ManagedResource. Two rows are equal if they show the same, at whatever time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) key: NamespacedName,
    pub(super) class: String,
    pub(super) conditions: [Mark; 3],
    pub(super) objects: usize,
    pub(super) created: Option<Timestamp>,
    /// Why it is not applied, healthy and rolled out; `None` if it is.
    pub(super) problem: Option<String>,
    /// Whether the controller ignores it. Then its conditions say nothing of its objects.
    pub(super) ignored: bool,
    /// Which others have the same objects.
    pub(super) shares: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    /// The status, with an asterisk if it is about an older generation.
    pub(super) text: String,
    pub(super) verdict: RowVerdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowVerdict {
    Good,
    Open,
    Bad,
}

impl Row {
    pub(super) fn of(object: &Value) -> Self {
        Self::with_references(object).0
    }

    /// Returns the row, and the objects of its status.
    pub(super) fn with_references(object: &Value) -> (Self, Vec<ResourceRef>) {
        let (mr, unreadable) = match ManagedResource::from_value(object) {
            Ok(mr) => (mr, None),
            Err(error) => (ManagedResource::default(), Some(error.to_string())),
        };
        let created = object.pointer("/metadata/creationTimestamp").and_then(Value::as_str);
        let class = mr.spec.class.as_deref().filter(|class| !class.is_empty()).unwrap_or(DEFAULT_CLASS);
        let row = Self {
            key: NamespacedName::of(object),
            class: if unreadable.is_some() { ABSENT } else { class }.to_owned(),
            conditions: WANTED.each_ref().map(|(kind, wanted)| Mark::of(&mr, kind, wanted)),
            objects: mr.status.resources.len(),
            created: created.and_then(|text| text.parse().ok()),
            problem: unreadable.or_else(|| problem(&mr, object)),
            ignored: mr.is_ignored() && !mr.is_deleting(),
            shares: None,
        };
        (row, mr.status.resources)
    }

    pub(super) fn deleted(self) -> Self {
        Self { problem: Some("deleted".to_owned()), ignored: false, shares: None, ..self }
    }

    /// Returns the text of the column PROBLEM.
    pub(super) fn remark(&self) -> String {
        let parts = [self.ignored.then_some("ignored"), self.problem.as_deref(), self.shares.as_deref()];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    pub(super) fn age(&self, now: Timestamp) -> String {
        age(self.created, now)
    }
}

impl Mark {
    fn of(mr: &ManagedResource, kind: &str, wanted: &ConditionStatus) -> Self {
        let Some(condition) = mr.condition(kind) else {
            return Self { text: ABSENT.to_owned(), verdict: RowVerdict::Open };
        };
        let stale = is_stale(mr);
        let verdict = match &condition.status {
            status if status == wanted && !stale && !mr.is_ignored() => RowVerdict::Good,
            ConditionStatus::False if kind != RESOURCES_PROGRESSING => RowVerdict::Bad,
            ConditionStatus::True
            | ConditionStatus::False
            | ConditionStatus::Unknown
            | ConditionStatus::Progressing
            | ConditionStatus::Other(_) => RowVerdict::Open,
        };
        let mut text = condition.status.to_string();
        text.extend(stale.then_some(STALE));
        Self { text, verdict }
    }
}

/// Whether the controller has not seen the current spec yet (spec 10 §19.8).
fn is_stale(mr: &ManagedResource) -> bool {
    mr.status.observed_generation != mr.metadata.generation
}

fn problem(mr: &ManagedResource, object: &Value) -> Option<String> {
    let reported = WANTED.iter().find_map(|(kind, wanted)| mr.condition(kind).filter(|it| it.status != *wanted));
    let reported = reported.map(explained);
    if object::deletion_timestamp(object).is_some() {
        // The reason alone may be about objects that left the bundle.
        return Some(reported.map_or_else(|| DELETED.to_owned(), |text| format!("{DELETED}; {text}")));
    }
    if reported.is_some() {
        return reported;
    }
    if let Some((kind, _)) = WANTED.iter().find(|(kind, _)| mr.condition(kind).is_none()) {
        return Some(format!("{kind} has not been reported yet"));
    }
    let (observed, generation) = (mr.status.observed_generation, mr.metadata.generation);
    is_stale(mr).then(|| format!("generation {generation} is not applied yet, this is of generation {observed}"))
}

fn explained(condition: &Condition) -> String {
    let Condition { kind, status, reason, message, .. } = condition;
    match (reason.as_str(), message.as_str()) {
        ("", "") => format!("{kind} is {status}"),
        (reason, "") => reason.to_owned(),
        ("", message) => message.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(conditions: [&str; 3], observed: i64) -> Value {
        let conditions: Vec<_> = WANTED
            .iter()
            .zip(conditions)
            .filter(|(_, text)| !text.is_empty())
            .map(|((kind, _), text)| {
                let mut words = text.splitn(3, ' ').map(str::to_owned);
                let mut word = || words.next().unwrap_or_default();
                json!({"type": kind, "status": word(), "reason": word(), "message": word()})
            })
            .collect();
        json!({
            "metadata": {"namespace": "ns", "name": "mr", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"secretRefs": []},
            "status": {"observedGeneration": observed, "conditions": conditions, "resources": [{}, {}]},
        })
    }

    /// spec 10 §19.8
    #[test]
    fn row_shows_each_condition_and_the_first_problem() {
        use RowVerdict::{Bad, Good, Open};
        type Case = ([&'static str; 3], i64, [&'static str; 3], [RowVerdict; 3], Option<&'static str>);
        let table: [Case; 11] = [
            (["True", "True", "False"], 2, ["True", "True", "False"], [Good; 3], None),
            (
                ["False ApplyFailed no kind", "Unknown ChecksPending p", "False"],
                2,
                ["False", "Unknown", "False"],
                [Bad, Open, Good],
                Some("ApplyFailed: no kind"),
            ),
            (["True", "False R m", "True P m"], 2, ["True", "False", "True"], [Good, Bad, Open], Some("R: m")),
            (["True", "True", "True P m"], 2, ["True", "True", "True"], [Good, Good, Open], Some("P: m")),
            (["Progressing R", "True", "False"], 2, ["Progressing", "True", "False"], [Open, Good, Good], Some("R")),
            (
                ["True", "Odd", "False"],
                2,
                ["True", "Odd", "False"],
                [Good, Open, Good],
                Some("ResourcesHealthy is Odd"),
            ),
            (["", "", ""], 0, ["-", "-", "-"], [Open; 3], Some("ResourcesApplied has not been reported yet")),
            (
                ["True", "", "False"],
                2,
                ["True", "-", "False"],
                [Good, Open, Good],
                Some("ResourcesHealthy has not been reported yet"),
            ),
            (["", "False R m", ""], 2, ["-", "False", "-"], [Open, Bad, Open], Some("R: m")),
            (
                ["True", "True", "False"],
                1,
                ["True*", "True*", "False*"],
                [Open; 3],
                Some("generation 2 is not applied yet, this is of generation 1"),
            ),
            (["True", "False R m", "False"], 1, ["True*", "False*", "False*"], [Open, Bad, Open], Some("R: m")),
        ];

        for (conditions, observed, texts, verdicts, problem) in table {
            let row = Row::of(&object(conditions, observed));

            assert_eq!(row.conditions.each_ref().map(|mark| mark.text.as_str()), texts, "{conditions:?}");
            assert_eq!(row.conditions.each_ref().map(|mark| mark.verdict), verdicts, "{conditions:?}");
            assert_eq!(row.problem.as_deref(), problem, "{conditions:?}");
        }
    }

    #[test]
    fn row_has_name_class_objects_and_age() {
        let mut seed = object(["", "", ""], 0);
        seed["spec"]["class"] = "seed".into();
        let row = Row::of(&object(["", "", ""], 0));
        let now = "2026-01-03T04:00:00Z".parse().unwrap();

        assert_eq!((row.key.to_string().as_str(), row.class.as_str(), row.objects), ("ns/mr", "resources", 2));
        assert_eq!(row.age(now), "2d4h");
        assert_eq!(Row::of(&seed).class, "seed");
    }

    #[test]
    fn row_of_an_ignored_managed_resource_says_so_and_shows_no_green() {
        let mut ignored = object(["True", "True", "False"], 2);
        ignored["metadata"]["annotations"] = json!({"resources.gardener.cloud/ignore": "true"});
        let row = Row::of(&ignored);

        assert_eq!((row.problem.as_deref(), row.remark().as_str()), (None, "ignored"));
        assert_eq!(row.conditions.each_ref().map(|mark| mark.verdict), [RowVerdict::Open; 3]);
        ignored["status"]["conditions"][1]["status"] = "False".into();
        let row = Row { shares: Some("shares 1 object with ns/b".to_owned()), ..Row::of(&ignored) };
        assert_eq!(row.remark(), "ignored; ResourcesHealthy is False; shares 1 object with ns/b");
    }

    #[test]
    fn row_of_a_deleted_managed_resource_has_a_problem() {
        let mut deleting = object(["True", "True", "False"], 1);
        deleting["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z".into();

        assert_eq!(Row::of(&deleting).problem.as_deref(), Some("is being deleted"));
        deleting["status"]["conditions"][0]["status"] = "Progressing".into();
        let problem = Row::of(&deleting).problem;
        assert_eq!(problem.as_deref(), Some("is being deleted; ResourcesApplied is Progressing"));
    }

    #[test]
    fn row_of_an_unreadable_managed_resource_has_a_problem() {
        let row = Row::of(&json!({"metadata": {"namespace": "ns", "name": "mr"}, "spec": {"secretRefs": 1}}));

        assert_eq!((row.key.name.as_str(), row.class.as_str(), row.objects), ("mr", "-", 0));
        assert_eq!(row.problem.as_deref(), Some("cannot read ManagedResource"));
        assert_eq!(row.age("2026-01-03T04:00:00Z".parse().unwrap()), "<unknown>");
    }
}
