use super::*;
use crate::api::{
    meta::conditions::{self, Condition},
    resources::{
        keys::{BASE_FINALIZER, IGNORE},
        managed_resource::SecretRef,
    },
};

impl Triggers {
    const NAMES: [(Self, &str); 9] = [
        (Self::CREATED, "created"),
        (Self::DELETED, "deleted"),
        (Self::GENERATION, "generation"),
        (Self::OPERATION, "operation"),
        (Self::UNHEALTHY, "unhealthy"),
        (Self::NOT_IGNORED, "not ignored"),
        (Self::IGNORED, "ignored"),
        (Self::CLEANED_UP, "cleaned up"),
        (Self::DELETION, "deletion"),
    ];

    fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(trigger, _)| self.contains(*trigger)).map(|(_, name)| name)
    }
}

fn own() -> OwnClass {
    OwnClass::new("")
}

fn now() -> jiff::Timestamp {
    "2026-01-01T11:00:00Z".parse().expect("a timestamp")
}

fn healthy_mr() -> ManagedResource {
    with_health(ConditionStatus::True)
}

fn with_health(status: ConditionStatus) -> ManagedResource {
    let mut mr = ManagedResource::default();
    conditions::set(&mut mr.status.conditions, RESOURCES_HEALTHY, status, "R", "m", now());
    mr
}

fn with(change: impl FnOnce(&mut ManagedResource)) -> ManagedResource {
    let mut mr = healthy_mr();
    change(&mut mr);
    mr
}

fn annotated(key: &str, value: &str) -> ManagedResource {
    with(|mr| annotate(mr, key, value))
}

fn annotate(mr: &mut ManagedResource, key: &str, value: &str) {
    mr.metadata.annotations.insert(key.to_owned(), value.to_owned());
}

fn deleting(mr: &mut ManagedResource) {
    mr.metadata.deletion_timestamp = Some("2026-01-01T11:00:00Z".to_owned());
}

fn update(old: &ManagedResource, new: &ManagedResource) -> Triggers {
    triggers(&own(), Some(old), Some(new))
}

/// spec 10 §5.1, table of triggers; scenarios 32, 33 and 34
#[test]
fn triggers_of_updates_follow_the_table() {
    let no_condition = ManagedResource::default();
    let unhealthy = with_health(ConditionStatus::False);
    let other_class_finalizer =
        with(|mr| mr.metadata.finalizers = vec!["resources.gardener.cloud/gardener-resource-manager-a".to_owned()]);
    let none = Triggers::default();
    for (name, old, new, expected) in [
        ("a resync", healthy_mr(), healthy_mr(), none),
        ("B1", healthy_mr(), with(|mr| mr.metadata.generation = 1), Triggers::GENERATION),
        ("B2 reconcile", healthy_mr(), annotated(OPERATION, "reconcile"), Triggers::OPERATION),
        ("B2 on every update", annotated(OPERATION, "migrate"), annotated(OPERATION, "migrate"), Triggers::OPERATION),
        ("B2 restore", healthy_mr(), annotated(OPERATION, "restore"), Triggers::OPERATION),
        ("wait-for-state", healthy_mr(), annotated(OPERATION, "wait-for-state"), none),
        ("another operation", healthy_mr(), annotated(OPERATION, "Reconcile"), none),
        ("B3 True to False", healthy_mr(), unhealthy.clone(), Triggers::UNHEALTHY),
        ("B3 missing to False", no_condition.clone(), unhealthy.clone(), Triggers::UNHEALTHY),
        ("Unknown to False", with_health(ConditionStatus::Unknown), unhealthy.clone(), none),
        ("False to False", unhealthy.clone(), unhealthy.clone(), none),
        ("False to True", unhealthy, healthy_mr(), none),
        ("B4", annotated(IGNORE, "1"), healthy_mr(), Triggers::NOT_IGNORED),
        ("B5", healthy_mr(), annotated(IGNORE, "T"), Triggers::IGNORED),
        ("no truthy value", healthy_mr(), annotated(IGNORE, "yes"), none),
        ("B6", other_class_finalizer, healthy_mr(), Triggers::CLEANED_UP),
        ("deletion", healthy_mr(), with(deleting), Triggers::DELETION),
        ("a label", healthy_mr(), with(|mr| drop(mr.metadata.labels.insert("a".into(), "b".into()))), none),
        ("our status write", healthy_mr(), with(|mr| mr.status.observed_generation = 3), none),
    ] {
        assert_eq!(update(&old, &new), expected, "{name}");
    }
}

#[test]
fn triggers_are_all_named() {
    let new = with(|mr| {
        mr.metadata.generation = 1;
        annotate(mr, OPERATION, "reconcile");
    });

    let triggers = update(&healthy_mr(), &new);

    assert_eq!(triggers.names().collect::<Vec<_>>(), ["generation", "operation"]);
    assert!(triggers.contains(Triggers::OPERATION) && !triggers.contains(Triggers::CREATED));
}

#[test]
fn triggers_are_distinct() {
    for (trigger, name) in [
        (Triggers::CREATED, "created"),
        (Triggers::DELETED, "deleted"),
        (Triggers::GENERATION, "generation"),
        (Triggers::OPERATION, "operation"),
        (Triggers::UNHEALTHY, "unhealthy"),
        (Triggers::NOT_IGNORED, "not ignored"),
        (Triggers::IGNORED, "ignored"),
        (Triggers::CLEANED_UP, "cleaned up"),
        (Triggers::DELETION, "deletion"),
    ] {
        assert!(!trigger.is_empty());
        assert_eq!(trigger.names().collect::<Vec<_>>(), [name]);
        assert_eq!(trigger | trigger, trigger);
    }
    assert_eq!(Triggers::default().names().count(), 0);
}

/// A watch may miss what happened between two lists.
#[test]
fn triggers_of_a_replaced_object_are_deletion_and_creation() {
    let other = with(|mr| mr.metadata.uid = "another".to_owned());
    let other_class = with(|mr| {
        mr.metadata.uid = "another".to_owned();
        mr.spec.class = Some("x".to_owned());
    });

    assert_eq!(update(&healthy_mr(), &other), Triggers::DELETED | Triggers::CREATED);
    assert_eq!(update(&healthy_mr(), &other_class), Triggers::DELETED);
    assert_eq!(update(&other_class, &healthy_mr()), Triggers::CREATED);
}

/// spec 10 §5.1, filter C
#[test]
fn ignored_resource_starts_a_reconcile_only_when_it_becomes_ignored_or_is_deleted() {
    let ignored = |change: fn(&mut ManagedResource)| {
        with(|mr| {
            annotate(mr, IGNORE, "true");
            mr.metadata.generation = 1;
            change(mr);
        })
    };
    let nothing: fn(&mut ManagedResource) = |_| {};

    assert!(update(&annotated(IGNORE, "true"), &ignored(nothing)).is_empty());
    assert!(update(&healthy_mr(), &ignored(nothing)).contains(Triggers::IGNORED | Triggers::GENERATION));
    assert!(update(&annotated(IGNORE, "true"), &ignored(deleting)).contains(Triggers::GENERATION | Triggers::DELETION));
    assert_eq!(triggers(&own(), None, Some(&ignored(nothing))), Triggers::CREATED);
    assert_eq!(triggers(&own(), Some(&ignored(nothing)), None), Triggers::DELETED);
}

/// spec 10 §5.1, filter A; scenario 31
#[test]
fn foreign_class_resource_starts_a_reconcile_only_while_it_has_our_finalizer() {
    let foreign = with(|mr| {
        mr.spec.class = Some("x".to_owned());
        mr.metadata.generation = 1;
    });
    let handed_over = ManagedResource { metadata: foreign.metadata.clone(), ..foreign.clone() };
    let mut handed_over = handed_over;
    handed_over.metadata.finalizers = vec![BASE_FINALIZER.to_owned()];

    assert!(update(&healthy_mr(), &foreign).is_empty());
    assert!(triggers(&own(), None, Some(&foreign)).is_empty());
    assert!(triggers(&own(), Some(&foreign), None).is_empty());
    assert!(triggers(&own(), None, None).is_empty());
    assert_eq!(update(&healthy_mr(), &handed_over), Triggers::GENERATION);
    assert_eq!(triggers(&own(), None, Some(&handed_over)), Triggers::CREATED);
}

/// spec 10 §5.2, §5.5; scenario 33
#[test]
fn operation_annotation_decides_before_the_reconcile() {
    for (value, expected) in [
        ("wait-for-state", Operation::Stop),
        ("reconcile", Operation::RemoveAndContinue),
        ("migrate", Operation::Continue),
        ("restore", Operation::Continue),
        ("x", Operation::Continue),
    ] {
        assert_eq!(operation(&annotated(OPERATION, value)), expected, "{value}");
    }
    assert_eq!(operation(&healthy_mr()), Operation::Continue);

    let deleted = with(|mr| {
        annotate(mr, OPERATION, "wait-for-state");
        deleting(mr);
    });
    assert_eq!(operation(&deleted), Operation::Stop);

    let mut ignored = annotated(IGNORE, "true");
    annotate(&mut ignored, OPERATION, "reconcile");
    assert_eq!(operation(&ignored), Operation::Continue);
    deleting(&mut ignored);
    assert_eq!(operation(&ignored), Operation::RemoveAndContinue);

    assert_eq!(
        remove_operation_patch().to_string(),
        r#"{"metadata":{"annotations":{"gardener.cloud/operation":null}}}"#
    );
}

/// spec 10 §5.3; scenario 3 and "Better than upstream" 6 and 7
#[test]
fn secret_updates_concern_all_and_creations_only_waiting_resources() {
    for (old, new, initial, expected) in [
        (Some("1"), Some("2"), false, SecretWake::All),
        (Some("1"), Some("1"), false, SecretWake::None),
        (None, Some("1"), true, SecretWake::None),
        (None, Some("1"), false, SecretWake::Waiting),
        (Some("1"), None, false, SecretWake::None),
        (None, None, false, SecretWake::None),
    ] {
        assert_eq!(secret_wake(old, new, initial), expected, "{old:?} {new:?} {initial}");
    }
}

/// spec 10 §5.3; scenario 35
#[test]
fn secret_wakes_responsible_resources_that_reference_it_and_are_not_ignored() {
    let referencing =
        with(|mr| mr.spec.secret_refs = vec![SecretRef { name: "a".into() }, SecretRef { name: "s".into() }]);
    let change = |change: fn(&mut ManagedResource)| {
        let mut mr = referencing.clone();
        change(&mut mr);
        mr
    };
    let ignored = change(|mr| annotate(mr, IGNORE, "true"));
    let mut ignored_and_deleted = ignored.clone();
    deleting(&mut ignored_and_deleted);
    let failed = change(|mr| {
        let condition = Condition::new(RESOURCES_APPLIED, now());
        mr.status.conditions.push(condition.updated(ConditionStatus::False, CANNOT_READ_SECRET, "m", now()));
    });
    let failed_otherwise = change(|mr| {
        let condition = Condition::new(RESOURCES_APPLIED, now());
        mr.status.conditions.push(condition.updated(ConditionStatus::False, "ApplyFailed", "m", now()));
    });
    for (name, mr, all, waiting) in [
        ("referencing", referencing.clone(), true, false),
        ("not referencing", healthy_mr(), false, false),
        ("referencing another", change(|mr| drop(mr.spec.secret_refs.pop())), false, false),
        ("foreign class", change(|mr| mr.spec.class = Some("x".into())), false, false),
        ("ignored", ignored, false, false),
        ("ignored and deleted", ignored_and_deleted, true, false),
        ("could not read a Secret", failed, true, true),
        ("failed for another reason", failed_otherwise, true, false),
    ] {
        assert_eq!(is_woken_by_secret(&own(), SecretWake::All, "s", &mr), all, "{name}");
        assert_eq!(is_woken_by_secret(&own(), SecretWake::Waiting, "s", &mr), waiting, "{name}");
        assert!(!is_woken_by_secret(&own(), SecretWake::None, "s", &mr), "{name}");
    }
}

/// spec 10 §7; scenarios 30, 31 and 32
#[test]
fn entry_decision_follows_the_order_of_its_table() {
    let base = || vec![BASE_FINALIZER.to_owned()];
    let other = || vec!["resources.gardener.cloud/gardener-resource-manager-a".to_owned()];
    let foreign = || Some("x".to_owned());
    for (name, mr, expected) in [
        ("ours", healthy_mr(), ReconcilePath::Apply),
        ("ours, with finalizer", with(|mr| mr.metadata.finalizers = base()), ReconcilePath::Apply),
        ("ignored", annotated(IGNORE, "t"), ReconcilePath::Ignored),
        (
            "ignored and transferring",
            with(|mr| {
                annotate(mr, IGNORE, "t");
                mr.spec.class = foreign();
                mr.metadata.finalizers = base();
            }),
            ReconcilePath::Ignored,
        ),
        (
            "ignored and deleted",
            with(|mr| {
                annotate(mr, IGNORE, "t");
                deleting(mr);
            }),
            ReconcilePath::Delete,
        ),
        ("deleted", with(deleting), ReconcilePath::Delete),
        (
            "deleted and waiting",
            with(|mr| {
                mr.metadata.finalizers = other();
                deleting(mr);
            }),
            ReconcilePath::Delete,
        ),
        (
            "transferring",
            with(|mr| {
                mr.spec.class = foreign();
                mr.metadata.finalizers = base();
            }),
            ReconcilePath::Delete,
        ),
        ("waiting", with(|mr| mr.metadata.finalizers = other()), ReconcilePath::WaitingForCleanup),
        ("foreign", with(|mr| mr.spec.class = foreign()), ReconcilePath::NotResponsible),
        (
            "foreign, held by its class",
            with(|mr| {
                mr.spec.class = foreign();
                mr.metadata.finalizers = other();
            }),
            ReconcilePath::NotResponsible,
        ),
    ] {
        assert_eq!(entry(&own(), &mr), expected, "{name}");
    }
}
