use super::*;
use crate::api::{
    meta::conditions,
    resources::{
        keys::{BASE_FINALIZER, IGNORE},
        managed_resource::SecretRef,
    },
};

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

fn is_update(old: &ManagedResource, new: &ManagedResource) -> bool {
    is_triggered(&own(), Some(old), Some(new))
}

/// spec 10 §5.1, table of triggers; scenarios 32, 33 and 34
#[test]
fn triggers_of_updates_follow_the_table() {
    let no_condition = ManagedResource::default();
    let unhealthy = with_health(ConditionStatus::False);
    let other_class_finalizer =
        with(|mr| mr.metadata.finalizers = vec!["resources.gardener.cloud/gardener-resource-manager-a".to_owned()]);
    for (name, old, new, expected) in [
        ("a resync", healthy_mr(), healthy_mr(), false),
        ("B1", healthy_mr(), with(|mr| mr.metadata.generation = 1), true),
        ("B2 reconcile", healthy_mr(), annotated(OPERATION, "reconcile"), true),
        ("B2 on every update", annotated(OPERATION, "migrate"), annotated(OPERATION, "migrate"), true),
        ("B2 restore", healthy_mr(), annotated(OPERATION, "restore"), true),
        ("wait-for-state", healthy_mr(), annotated(OPERATION, "wait-for-state"), false),
        ("another operation", healthy_mr(), annotated(OPERATION, "Reconcile"), false),
        ("B3 True to False", healthy_mr(), unhealthy.clone(), true),
        ("B3 missing to False", no_condition.clone(), unhealthy.clone(), true),
        ("Unknown to False", with_health(ConditionStatus::Unknown), unhealthy.clone(), false),
        ("False to False", unhealthy.clone(), unhealthy.clone(), false),
        ("False to True", unhealthy, healthy_mr(), false),
        ("B4", annotated(IGNORE, "1"), healthy_mr(), true),
        ("B5", healthy_mr(), annotated(IGNORE, "T"), true),
        ("no truthy value", healthy_mr(), annotated(IGNORE, "yes"), false),
        ("B6", other_class_finalizer, healthy_mr(), true),
        ("deletion", healthy_mr(), with(deleting), true),
        ("a label", healthy_mr(), with(|mr| drop(mr.metadata.labels.insert("a".into(), "b".into()))), false),
        ("our status write", healthy_mr(), with(|mr| mr.status.observed_generation = 3), false),
    ] {
        assert_eq!(is_update(&old, &new), expected, "{name}");
    }
}

/// A watch may miss what happened between two lists.
#[test]
fn triggers_of_a_replaced_object_are_deletion_and_creation() {
    let other = with(|mr| mr.metadata.uid = "another".to_owned());
    let other_class = with(|mr| {
        mr.metadata.uid = "another".to_owned();
        mr.spec.class = Some("x".to_owned());
    });

    let other_of_class = with(|mr| mr.spec.class = Some("x".to_owned()));

    assert!(is_update(&healthy_mr(), &other));
    assert!(is_update(&healthy_mr(), &other_class));
    assert!(is_update(&other_class, &healthy_mr()));
    assert!(!is_update(&other_class, &other_of_class));
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

    assert!(!is_update(&annotated(IGNORE, "true"), &ignored(nothing)));
    assert!(is_update(&healthy_mr(), &ignored(nothing)));
    assert!(is_update(&annotated(IGNORE, "true"), &ignored(deleting)));
    assert!(is_triggered(&own(), None, Some(&ignored(nothing))));
    assert!(is_triggered(&own(), Some(&ignored(nothing)), None));
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

    assert!(!is_update(&healthy_mr(), &foreign));
    assert!(!is_triggered(&own(), None, Some(&foreign)));
    assert!(!is_triggered(&own(), Some(&foreign), None));
    assert!(!is_triggered(&own(), None, None));
    assert!(is_update(&healthy_mr(), &handed_over));
    assert!(is_triggered(&own(), None, Some(&handed_over)));
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
fn secret_that_is_new_or_changed_is_news_unless_a_reconcile_read_it() {
    for (old, new, read, expected) in [
        (Some(1), Some(2), false, true),
        (Some(1), Some(2), true, true),
        (Some(1), Some(1), false, false),
        (None, Some(1), true, false),
        (None, Some(1), false, true),
        (Some(1), None, false, false),
        (None, None, false, false),
    ] {
        assert_eq!(is_new_version(old, new, read), expected, "{old:?} {new:?} {read}");
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
    for (name, mr, expected) in [
        ("referencing", referencing.clone(), true),
        ("not referencing", healthy_mr(), false),
        ("referencing another", change(|mr| drop(mr.spec.secret_refs.pop())), false),
        ("foreign class", change(|mr| mr.spec.class = Some("x".into())), false),
        ("ignored", ignored, false),
        ("ignored and deleted", ignored_and_deleted, true),
    ] {
        assert_eq!(is_woken_by_secret(&own(), "s", &mr), expected, "{name}");
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
