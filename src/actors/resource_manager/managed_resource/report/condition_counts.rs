//! The metrics of conditions: how many ManagedResources of the own class have which condition.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use cluster::object::NamespacedName;
use kit::Observers;

use super::fit::STATUS_TOO_LARGE;
use crate::api::{
    meta::conditions::{self, ConditionStatus},
    resources::{
        class::OwnClass,
        condition_names::{
            APPLY_FAILED, APPLY_PROGRESSING, APPLY_SUCCEEDED, CANNOT_READ_SECRET, CHECKS_PENDING, DECODING_FAILED,
            DELETION_PENDING, MANAGED_RESOURCE_IGNORED, RELEASE_FAILED, RESOURCES_APPLIED, RESOURCES_HEALTHY,
            RESOURCES_PROGRESSING,
        },
        managed_resource::ManagedResource,
    },
};

const STATUS: &str = "managedresource_status";
const CONDITION: &str = "managedresource_condition";

const COUNTED: [&str; 3] = [RESOURCES_APPLIED, RESOURCES_HEALTHY, RESOURCES_PROGRESSING];

/// Reasons that always have their own series: alerts leave some of them out.
const OWN: [&str; 10] = [
    APPLY_FAILED,
    APPLY_PROGRESSING,
    APPLY_SUCCEEDED,
    CANNOT_READ_SECRET,
    CHECKS_PENDING,
    DECODING_FAILED,
    DELETION_PENDING,
    MANAGED_RESOURCE_IGNORED,
    RELEASE_FAILED,
    STATUS_TOO_LARGE,
];
/// Most series. Only those with a reason of [`OWN`] may be more.
const MOST: usize = 100;
/// Longest reason with its own series, in bytes.
const LONGEST: usize = 128;
/// Reason and status of all others.
const OTHER: &str = "other";

pub(crate) struct ConditionCounts {
    observers: Rc<dyn Observers>,
    class: OwnClass,
    per_object: bool,
    counts: RefCell<Counts>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    condition: &'static str,
    status: &'static str,
    reason: String,
}

/// A series is counted by itself, or under [`OTHER`]. This changes only after no object has it any more.
#[derive(Default)]
struct Counts {
    by_series: BTreeMap<Series, Count>,
    others: BTreeMap<(&'static str, &'static str), u32>,
    shown: usize,
}

struct Count {
    objects: u32,
    is_shown: bool,
}

impl ConditionCounts {
    /// Counts no object yet. `per_object`: each ManagedResource has series of its own, too.
    pub(crate) fn new(observers: &Rc<dyn Observers>, class: &OwnClass, per_object: bool) -> Self {
        Self { observers: observers.clone(), class: class.clone(), per_object, counts: RefCell::default() }
    }

    /// Counts a changed ManagedResource.
    pub(crate) fn change(&self, name: &NamespacedName, old: Option<&ManagedResource>, new: Option<&ManagedResource>) {
        let (old, new) = (self.series_of(old), self.series_of(new));
        for series in old.iter().filter(|series| !new.contains(series)) {
            let (series, objects) = self.counts.borrow_mut().remove(series);
            self.show(&series, objects);
        }
        for series in new.iter().filter(|series| !old.contains(series)) {
            let (series, objects) = self.counts.borrow_mut().add(series);
            self.show(&series, objects);
        }
        if self.per_object {
            self.show_object(name, &old, &new);
        }
    }

    fn series_of(&self, mr: Option<&ManagedResource>) -> Vec<Series> {
        let Some(mr) = mr.filter(|mr| self.class.is_responsible(mr)) else { return Vec::new() };
        let conditions =
            COUNTED.iter().filter_map(|kind| Some((*kind, conditions::find(&mr.status.conditions, kind)?)));
        conditions
            .map(|(condition, known)| {
                let reason = if known.reason.len() > LONGEST { OTHER } else { &known.reason };
                Series { condition, status: text_of(&known.status), reason: reason.to_owned() }
            })
            .collect()
    }

    fn show(&self, Series { condition, status, reason }: &Series, objects: u32) {
        let value = (objects > 0).then(|| f64::from(objects));
        self.observers.figure_series(STATUS, &[condition, status, reason], value);
    }

    /// Another reason changes nothing: the series of a single ManagedResource have none. A scrape between the removal and
    /// the return of a series would see a gap.
    fn show_object(&self, name: &NamespacedName, old: &[Series], new: &[Series]) {
        let statuses =
            |all: &[Series]| all.iter().map(|series| (series.condition, series.status)).collect::<BTreeSet<_>>();
        let (old, new) = (statuses(old), statuses(new));
        let show = |(condition, status): &(&'static str, &'static str), value| {
            let labels = [name.namespace.as_str(), name.name.as_str(), condition, status];
            self.observers.figure_series(CONDITION, &labels, value);
        };
        old.difference(&new).for_each(|series| show(series, None));
        new.difference(&old).for_each(|series| show(series, Some(1.0)));
    }
}

impl Counts {
    /// Returns the series under which the object is counted, and how many are.
    fn add(&mut self, series: &Series) -> (Series, u32) {
        let is_own = OWN.contains(&series.reason.as_str());
        let has_room = is_own || self.shown < MOST && series.reason != OTHER;
        let shown = &mut self.shown;
        let count = self.by_series.entry(series.clone()).or_insert_with(|| {
            *shown += usize::from(has_room);
            Count { objects: 0, is_shown: has_room }
        });
        count.objects += 1;
        if count.is_shown {
            return (series.clone(), count.objects);
        }
        let others = self.others.entry((series.condition, series.status)).or_default();
        *others += 1;
        (series.of_others(), *others)
    }

    /// Returns the series under which the object was counted, and how many are left.
    fn remove(&mut self, series: &Series) -> (Series, u32) {
        let Some(count) = self.by_series.get_mut(series) else { return (series.clone(), 0) };
        count.objects -= 1;
        let Count { objects, is_shown } = *count;
        if objects == 0 {
            self.by_series.remove(series);
            self.shown -= usize::from(is_shown);
        }
        if is_shown {
            return (series.clone(), objects);
        }
        let key = (series.condition, series.status);
        let others = self.others.get(&key).map_or(0, |others| others - 1);
        self.others.insert(key, others);
        (series.of_others(), others)
    }
}

impl Series {
    fn of_others(&self) -> Self {
        Self { reason: OTHER.to_owned(), ..*self }
    }
}

fn text_of(status: &ConditionStatus) -> &'static str {
    match status {
        ConditionStatus::True => "True",
        ConditionStatus::False => "False",
        ConditionStatus::Unknown => "Unknown",
        ConditionStatus::Progressing => "Progressing",
        ConditionStatus::Other(_) => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use kit::{ReconcilerObserver, Unobserved};
    use serde_json::json;

    use super::*;
    use crate::api::resources::keys::DEFAULT_CLASS;

    #[derive(Default)]
    struct Recording {
        series: RefCell<BTreeMap<String, f64>>,
        changes: RefCell<Vec<String>>,
    }

    impl Observers for Recording {
        fn reconciler(&self, _: &'static str, _: &'static str, _: usize) -> Rc<dyn ReconcilerObserver> {
            Rc::new(Unobserved)
        }

        fn figure_series(&self, name: &'static str, labels: &[&str], value: Option<f64>) {
            let series = format!("{name} {}", labels.join(" "));
            self.changes.borrow_mut().push(series.clone());
            match value {
                Some(value) => self.series.borrow_mut().insert(series, value),
                None => self.series.borrow_mut().remove(&series),
            };
        }
    }

    fn managed_resource(class: Option<&str>, status: &str, reason: &str) -> ManagedResource {
        let conditions = json!([
            {"type": "ResourcesApplied", "status": status, "reason": reason},
            {"type": "Strange", "status": status, "reason": reason},
        ]);
        let metadata = json!({"namespace": "ns", "name": "mr"});
        let object = json!({"metadata": metadata, "spec": {"class": class}, "status": {"conditions": conditions}});
        ManagedResource::from_value(&object).unwrap()
    }

    fn counts(per_object: bool) -> (Rc<Recording>, ConditionCounts) {
        let recording = Rc::new(Recording::default());
        let observers: Rc<dyn Observers> = recording.clone();
        (recording, ConditionCounts::new(&observers, &OwnClass::new(DEFAULT_CLASS), per_object))
    }

    fn shown(recording: &Recording) -> Vec<String> {
        recording.series.borrow().iter().map(|(series, value)| format!("{series} {value}")).collect()
    }

    fn named(name: &str) -> NamespacedName {
        NamespacedName::new("ns", name)
    }

    #[test]
    fn condition_counts_follow_changes_of_managed_resources_of_the_own_class() {
        let (recording, counts) = counts(false);
        let (bad, good) =
            (managed_resource(None, "False", "ApplyFailed"), managed_resource(None, "True", "ApplySucceeded"));
        counts.change(&named("a"), None, Some(&bad));
        counts.change(&named("b"), None, Some(&bad));
        counts.change(&named("c"), None, Some(&managed_resource(Some("seed"), "False", "ApplyFailed")));
        assert_eq!(shown(&recording), ["managedresource_status ResourcesApplied False ApplyFailed 2"]);

        counts.change(&named("a"), Some(&bad), Some(&good));
        let one_each = [
            "managedresource_status ResourcesApplied False ApplyFailed 1",
            "managedresource_status ResourcesApplied True ApplySucceeded 1",
        ];
        assert_eq!(shown(&recording), one_each);

        counts.change(&named("a"), Some(&good), None);
        counts.change(&named("b"), Some(&bad), Some(&managed_resource(Some("seed"), "False", "ApplyFailed")));
        assert_eq!(shown(&recording), [""; 0]);
    }

    #[test]
    fn condition_counts_of_single_managed_resources_are_ones() {
        let (recording, counts) = counts(true);
        let (first, second) = (managed_resource(None, "False", "A"), managed_resource(None, "False", "B"));
        counts.change(&named("a"), None, Some(&first));
        recording.changes.take();
        counts.change(&named("a"), Some(&first), Some(&second));

        let of_object = |changes: &[String]| changes.iter().any(|series| series.contains("_condition"));
        assert!(!of_object(&recording.changes.take()), "another reason leaves no gap");
        let expected = [
            "managedresource_condition ns a ResourcesApplied False 1",
            "managedresource_status ResourcesApplied False B 1",
        ];
        assert_eq!(shown(&recording), expected);

        let good = managed_resource(None, "True", "B");
        counts.change(&named("a"), Some(&second), Some(&good));
        let expected = [
            "managedresource_condition ns a ResourcesApplied True 1",
            "managedresource_status ResourcesApplied True B 1",
        ];
        assert_eq!(shown(&recording), expected);

        counts.change(&named("a"), Some(&good), None);
        assert_eq!(shown(&recording), [""; 0]);
    }

    #[test]
    fn condition_counts_have_a_bounded_number_of_series() {
        let (recording, counts) = counts(false);
        let of = |number: usize| managed_resource(None, "False", &format!("Reason{number}"));
        let long = managed_resource(None, "False", &"x".repeat(LONGEST + 1));
        for number in 0..MOST + 20 {
            counts.change(&named("a"), None, Some(&of(number)));
        }
        counts.change(&named("a"), None, Some(&long));
        counts.change(&named("a"), None, Some(&managed_resource(None, "Odd", "x")));

        assert_eq!(recording.series.borrow().len(), MOST + 2);
        let others = "managedresource_status ResourcesApplied False other";
        assert_eq!(recording.series.borrow().get(others), Some(&21.0));

        // A series that is counted among the others stays there.
        counts.change(&named("a"), Some(&of(0)), None);
        counts.change(&named("a"), None, Some(&of(MOST)));
        assert_eq!(recording.series.borrow().get(others), Some(&22.0));

        // Alerts leave it out, so it must not be among the others.
        let deleting = managed_resource(None, "False", DELETION_PENDING);
        counts.change(&named("a"), None, Some(&deleting));
        let own = "managedresource_status ResourcesApplied False DeletionPending";
        assert_eq!(recording.series.borrow().get(own), Some(&1.0));
        counts.change(&named("a"), Some(&deleting), None);

        counts.change(&named("a"), Some(&long), None);
        for number in 1..MOST + 20 {
            counts.change(&named("a"), Some(&of(number)), None);
        }
        counts.change(&named("a"), Some(&of(MOST)), None);
        assert_eq!(shown(&recording), ["managedresource_status ResourcesApplied other other 1"]);
    }
}
