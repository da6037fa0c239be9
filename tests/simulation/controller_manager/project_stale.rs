//! Unused Projects become stale, and are deleted.

use std::time::Duration;

use cluster::Resource;
use gardener_resource_manager::api::kinds;
use jiff::Timestamp;
use serde_json::{Value, json};
use tracing::Level;

use super::{
    garden::{Garden, garden, object},
    guards::shoot,
};
use crate::log_capture::logged;

pub(super) const NAMESPACE: &str = "garden-dev";
const DAY: i64 = 24 * 60 * 60;

/// The settings of the scenarios: minimum 5, grace 10, expiration 15 days. The first looks are over after six seconds.
pub(super) fn configure(garden: &Garden) {
    let project = &mut garden.config.borrow_mut().controllers.project;
    project.minimum_lifetime_days = 5;
    project.stale_grace_period_days = 10;
    project.stale_expiration_time_days = 15;
    project.stale_sync_period = Duration::from_secs(60).into();
}

/// Returns the time in so many days, with whole seconds.
fn at(garden: &Garden, days: i64) -> String {
    let time: Timestamp = garden.time(days * DAY).parse().expect("a time");
    Timestamp::from_second(time.as_second()).expect("a time").to_string()
}

/// A Project of this name that is 100 days old. Its status has these times, in days from now.
pub(super) fn project(garden: &Garden, name: &str, since: Option<i64>, auto_delete: Option<i64>) -> Value {
    let at = |days: Option<i64>| days.map(|days| at(garden, days));
    let fields = json!({
        "metadata": { "creationTimestamp": at(Some(-100)) },
        "spec": { "namespace": format!("garden-{name}") },
        "status": { "phase": "Ready", "staleSinceTimestamp": at(since), "staleAutoDeleteTimestamp": at(auto_delete) },
    });
    object(&kinds::PROJECT, "", name, fields)
}

/// Puts the Project `dev` with its Namespace.
pub(super) fn put_project(garden: &Garden, since: Option<i64>, auto_delete: Option<i64>) {
    let labels = json!({ "gardener.cloud/role": "project", "project.gardener.cloud/name": "dev" });
    garden.put(object(&kinds::NAMESPACE, "", NAMESPACE, json!({ "metadata": { "labels": labels } })));
    garden.put(project(garden, "dev", since, auto_delete));
}

/// Returns since when `dev` is stale and when it will be deleted, in days from now.
pub(super) fn stale(garden: &Garden) -> (Option<i64>, Option<i64>) {
    let project = garden.find(&kinds::PROJECT, "", "dev").expect("the Project exists");
    let now: Timestamp = garden.time(0).parse().expect("a time");
    let days = |field: &str| {
        let time: Timestamp = project["status"][field].as_str()?.parse().expect("a time");
        Some((time.duration_since(now).as_secs_f64() / DAY as f64).round() as i64)
    };
    (days("staleSinceTimestamp"), days("staleAutoDeleteTimestamp"))
}

pub(super) fn is_deleted(garden: &Garden) -> bool {
    let project = garden.find(&kinds::PROJECT, "", "dev");
    project.is_none_or(|project| !project["metadata"]["deletionTimestamp"].is_null())
}

/// What of the namespace of `dev` a binding `b` in `garden-x` refers to: kinds of the object and of the binding, and fields
/// of the binding.
fn references() -> Vec<(Resource, Resource, Value)> {
    let credentials = |version: &str, kind: &Resource| {
        let reference = json!({ "apiVersion": version, "kind": &*kind.kind, "name": "o", "namespace": NAMESPACE });
        json!({ "credentialsRef": reference })
    };
    let quotas = || json!({ "quotas": [{ "name": "other" }, { "name": "o", "namespace": NAMESPACE }] });
    let of_secret = || json!({ "secretRef": { "name": "o", "namespace": NAMESPACE } });
    vec![
        (kinds::SECRET, kinds::SECRET_BINDING, of_secret()),
        (kinds::SECRET, kinds::CREDENTIALS_BINDING, credentials("v1", &kinds::SECRET)),
        (
            kinds::INTERNAL_SECRET,
            kinds::CREDENTIALS_BINDING,
            credentials("core.gardener.cloud/v1beta1", &kinds::INTERNAL_SECRET),
        ),
        (
            kinds::WORKLOAD_IDENTITY,
            kinds::CREDENTIALS_BINDING,
            credentials("security.gardener.cloud/v1alpha1", &kinds::WORKLOAD_IDENTITY),
        ),
        (kinds::QUOTA, kinds::SECRET_BINDING, quotas()),
        (kinds::QUOTA, kinds::CREDENTIALS_BINDING, quotas()),
    ]
}

/// A Shoot `garden-x/s` with the binding of this name.
pub(super) fn shoot_with(kind: &Resource, binding: &str) -> Value {
    let field = if *kind == kinds::SECRET_BINDING { "secretBindingName" } else { "credentialsBindingName" };
    shoot("garden-x", "s", json!({ field: binding }))
}

/// spec 82 D.3, D.4, scenarios 40 to 43
#[test]
fn project_is_stale_as_age_activity_and_grace_period_say() {
    type Days = Option<i64>;
    type Times = (Days, Days);
    let table: [(&str, i64, Days, Times, Times); 9] = [
        // age, last activity, times before, times afterwards
        ("young", 4, None, (Some(-1), Some(4)), (None, None)),
        ("used lately", 100, Some(-4), (Some(-1), Some(4)), (None, None)),
        ("used once", 100, Some(-6), (None, None), (Some(0), None)),
        ("never used", 100, None, (None, None), (Some(0), None)),
        ("grace not over", 100, None, (Some(-9), None), (Some(-9), None)),
        ("grace over", 100, None, (Some(-11), None), (Some(-11), Some(4))),
        ("later date", 100, None, (Some(-11), Some(9)), (Some(-11), Some(9))),
        ("earlier date", 100, None, (Some(-11), Some(1)), (Some(-11), Some(4))),
        ("date within grace", 100, None, (Some(-9), Some(6)), (Some(-9), None)),
    ];
    for (title, age, activity, (since, date), after) in table {
        garden(|garden| async move {
            configure(&garden);
            put_project(&garden, since, date);
            let (created, active) = (at(&garden, -age), activity.map(|days| at(&garden, days)));
            garden.edit(&kinds::PROJECT, "", "dev", |project| {
                project["metadata"]["creationTimestamp"] = json!(created);
                project["status"]["lastActivityTimestamp"] = json!(active);
            });
            garden.settled().await;

            assert_eq!(stale(&garden), after, "{title}");
            assert_eq!(garden.find(&kinds::PROJECT, "", "dev").unwrap()["status"]["phase"], "Ready");
            tokio::time::sleep(Duration::from_secs(600)).await;
            assert_eq!(stale(&garden), after, "{title}");
            assert_eq!(garden.asked(), Vec::<String>::new(), "{title}: at rest nothing is asked for");
        });
    }
}

/// spec 82 D.6, scenario 44; spec 80 §16 S-13: in this order
#[test]
fn stale_project_is_deleted_when_its_time_has_come() {
    garden(|garden| async move {
        configure(&garden);
        put_project(&garden, Some(-20), Some(-1));
        garden.edit(&kinds::PROJECT, "", "dev", |project| project["metadata"]["finalizers"] = json!(["example.com/x"]));
        garden.start().await;
        garden.settle().await;

        let project = garden.find(&kinds::PROJECT, "", "dev").unwrap();
        assert!(is_deleted(&garden));
        let annotations = &project["metadata"]["annotations"];
        assert_eq!(annotations["confirmation.gardener.cloud/deletion"], "true");
        let confirmed: Timestamp = annotations["gardener.cloud/timestamp"].as_str().unwrap().parse().unwrap();
        let now: Timestamp = garden.time(0).parse().unwrap();
        assert!(now.duration_since(confirmed).as_secs() < 30);
        let asked = garden.asked();
        let deletion = asked.iter().position(|asked| asked == "delete projects dev").expect("the deletion");
        let before = &asked[..=deletion]; // then the main controller looks after the deletion
        let place = |request: &str| before.iter().rposition(|asked| asked == request).expect(request);
        let order = [
            "get namespaces garden-dev",
            "list shoots",
            "list backupentries",
            "list secretbindings",
            "list credentialsbindings",
            "patch projects dev",
            "delete projects dev",
        ];
        assert!(order.map(place).is_sorted(), "{asked:?}");
    });
}

/// spec 82 D.4: with expiration ≤ grace in the very reconcile in which the grace period ends
#[test]
fn project_without_grace_and_expiration_is_deleted_at_once() {
    garden(|garden| async move {
        configure(&garden);
        {
            let project = &mut garden.config.borrow_mut().controllers.project;
            (project.stale_grace_period_days, project.stale_expiration_time_days) = (0, 0);
        }
        put_project(&garden, None, None);

        garden.start().await;

        garden.settle().await;
        assert_eq!(garden.find(&kinds::PROJECT, "", "dev"), None);
    });
}

/// spec 82 D-3, scenario 45
#[test]
fn stale_project_with_new_activity_is_stale_no_more() {
    garden(|garden| async move {
        configure(&garden);
        garden.config.borrow_mut().controllers.project.stale_sync_period = Duration::from_secs(12 * 3600).into();
        put_project(&garden, Some(-11), Some(4));
        garden.settled().await;
        assert_eq!(stale(&garden), (Some(-11), Some(4)));

        let now = at(&garden, 0);
        garden.edit(&kinds::PROJECT, "", "dev", |project| project["status"]["lastActivityTimestamp"] = json!(now));

        garden.soon("it is not stale", || stale(&garden) == (None, None)).await;
        assert_eq!(garden.asked(), ["get projects dev", "patch projects dev"]);
    });
}

/// spec 82 D.5, D-4, scenarios 46 and 47
#[test]
fn project_is_in_use_by_objects_of_bindings_that_shoots_of_others_use() {
    for (kind, binding, fields) in &references() {
        for (shoots, exists) in [(true, true), (false, true), (true, false)] {
            let fields = fields.clone();
            garden(|garden| async move {
                configure(&garden);
                if exists {
                    garden.put(object(kind, NAMESPACE, "o", json!({})));
                }
                garden.put(object(binding, "garden-x", "b", fields));
                garden.put(shoot_with(binding, if shoots { "b" } else { "other" }));
                garden.settled().await; // the labels of the binding's controller are no activity of a Project that comes now

                put_project(&garden, Some(-1), None);
                garden.settle().await;

                let is_in_use = stale(&garden) == (None, None);
                let why = format!("{kind} by {binding}, shoots: {shoots}, exists: {exists}");
                assert_eq!(is_in_use, shoots && exists, "{why}");
                let project = garden.find(&kinds::PROJECT, "", "dev").unwrap();
                assert!(project["status"]["lastActivityTimestamp"].is_null(), "{why}: it is not for its activity");
            });
        }
    }
}

/// spec 82 D-4, scenario 46: labels are not looked at.
#[test]
fn project_is_in_use_by_a_secret_without_a_label() {
    garden(|garden| async move {
        configure(&garden);
        garden.sim.set_faults(|info| match info.user == "gcm" && info.verb == "patch" && info.resource == "secrets" {
            true => sim::Fault::FailBefore(sim::Seen::status(403, "Forbidden", "no labels")),
            false => sim::Fault::None,
        });
        garden.put(object(&kinds::SECRET, NAMESPACE, "o", json!({})));
        let reference = json!({ "secretRef": { "name": "o", "namespace": NAMESPACE } });
        garden.put(object(&kinds::SECRET_BINDING, "garden-x", "b", reference));
        garden.put(shoot_with(&kinds::SECRET_BINDING, "b"));
        put_project(&garden, Some(-1), None);

        garden.settled().await;

        assert_eq!(stale(&garden), (None, None));
        let secret = garden.find(&kinds::SECRET, NAMESPACE, "o").unwrap();
        assert!(secret["metadata"]["labels"].is_null(), "{secret}");
    });
}

/// spec 82 D.3 step 3, D.5, scenario 48
#[test]
fn project_with_a_shoot_a_backup_entry_or_a_mark_is_not_stale() {
    for (title, is_stale) in [("Shoot", false), ("BackupEntry", false), ("true", false), ("no", true)] {
        garden(|garden| async move {
            configure(&garden);
            put_project(&garden, Some(-1), None);
            match title {
                "Shoot" | "BackupEntry" => {
                    let kind = if title == "Shoot" { &kinds::SHOOT } else { &kinds::BACKUP_ENTRY };
                    let old = json!({ "metadata": { "creationTimestamp": at(&garden, -1) } });
                    garden.put(object(kind, NAMESPACE, "o", old));
                }
                mark => garden.edit(&kinds::NAMESPACE, "", NAMESPACE, |namespace| {
                    namespace["metadata"]["annotations"] = json!({ "project.gardener.cloud/skip-stale-check": mark });
                }),
            }
            garden.settled().await;

            assert_eq!(stale(&garden) == (Some(-1), None), is_stale, "{title}");
            assert_eq!(stale(&garden) == (None, None), !is_stale, "{title}");
        });
    }
}

/// spec 82 D.2: a change of the annotation is noticed at once.
#[test]
fn project_becomes_stale_or_not_when_its_namespace_is_marked() {
    garden(|garden| async move {
        configure(&garden);
        put_project(&garden, Some(-1), None);
        garden.settled().await;
        let mark = |value: Value| json!({ "metadata": { "annotations": { "project.gardener.cloud/skip-stale-check": value } } });

        garden.patch(&kinds::NAMESPACE, "", NAMESPACE, mark(json!("true"))).await;
        garden.soon("it is not stale", || stale(&garden) == (None, None)).await;
        garden.patch(&kinds::NAMESPACE, "", NAMESPACE, mark(Value::Null)).await;
        garden.soon("it is stale", || stale(&garden) == (Some(0), None)).await;
    });
}

/// spec 82 scenario 50
#[test]
fn project_without_a_namespace_is_left_alone() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            configure(&garden);
            garden.sim.set_faults(|info| match (info.resource.as_str(), info.verb.as_str()) {
                ("namespaces", "create") => sim::Fault::FailBefore(sim::Seen::status(403, "Forbidden", "not here")),
                _ => sim::Fault::None,
            });
            garden.put(project(&garden, "dev", Some(-20), Some(-1)));
            for (name, namespace) in [("a", json!("kube-system")), ("b", json!("")), ("c", Value::Null)] {
                let mut other = project(&garden, name, Some(-20), Some(-1));
                other["spec"]["namespace"] = namespace;
                garden.put(other);
            }
            garden.start().await;
            tokio::time::sleep(Duration::from_secs(3600)).await;

            assert_eq!(stale(&garden), (Some(-20), Some(-1)));
            for name in ["a", "b", "c"] {
                assert!(garden.find(&kinds::PROJECT, "", name).is_some(), "{name}");
            }
        });
    });
    let is_error = |line: &&str| line.contains("Reconciler error") && line.contains("project-stale");
    assert_eq!(log.lines().find(is_error), None);
}

/// spec 82 D.3 step 1
#[test]
fn project_in_deletion_is_left_alone() {
    garden(|garden| async move {
        configure(&garden);
        put_project(&garden, None, None);
        garden.edit(&kinds::PROJECT, "", "dev", |project| project["metadata"]["finalizers"] = json!(["example.com/x"]));
        garden.delete(&kinds::PROJECT, "", "dev").await;
        garden.settled().await;
        tokio::time::sleep(Duration::from_secs(600)).await;

        assert_eq!(stale(&garden), (None, None));
        assert_eq!(garden.asked(), Vec::<String>::new());
    });
}

/// spec 82 D.2, "better" 11: what changes the use of a Project is noticed at once.
#[test]
fn project_becomes_stale_or_not_when_its_use_changes() {
    garden(|garden| async move {
        configure(&garden);
        {
            let project = &mut garden.config.borrow_mut().controllers.project;
            project.minimum_lifetime_days = 0; // so that activity protects nothing
            project.stale_sync_period = Duration::from_secs(12 * 3600).into();
        }
        put_project(&garden, None, None);
        for (kind, _, _) in &references() {
            garden.put(object(kind, NAMESPACE, "o", json!({})));
        }
        garden.start().await;
        tokio::time::sleep(Duration::from_secs(2 * 3600)).await;
        assert_ne!(stale(&garden).0, None);
        let becomes = async |what: &str, is_stale: bool| {
            garden.soon(what, || stale(&garden).0.is_some() == is_stale).await;
        };

        for kind in [&kinds::SHOOT, &kinds::BACKUP_ENTRY] {
            garden.put(object(kind, NAMESPACE, "u", json!({})));
            becomes("used", false).await;
            garden.delete(kind, NAMESPACE, "u").await;
            becomes("unused", true).await;
        }
        for (kind, binding, fields) in &references() {
            garden.put(shoot_with(binding, "b"));
            garden.put(object(binding, "garden-x", "b", fields.clone()));
            becomes("a binding comes", false).await;
            garden.sim.remove(&resource(binding), "garden-x", "b");
            becomes("the binding goes", true).await;
            garden.put(object(binding, "garden-x", "b", fields.clone()));
            becomes("it comes again", false).await;
            garden.sim.remove("shoots.core.gardener.cloud", "garden-x", "s");
            becomes("its Shoot goes", true).await;
            garden.put(shoot_with(binding, "b"));
            becomes("a Shoot comes", false).await;
            garden.sim.remove(&resource(kind), NAMESPACE, "o");
            becomes("the object goes", true).await;
            garden.put(object(kind, NAMESPACE, "o", json!({})));
            becomes("the object comes", false).await;
            garden.put(shoot_with(binding, "other"));
            becomes("the Shoot uses another binding", true).await;
            garden.sim.remove(&resource(binding), "garden-x", "b");
        }
    });
}

/// Returns the resource as for kubectl.
pub(super) fn resource(kind: &Resource) -> String {
    if kind.group.is_empty() { kind.plural.to_string() } else { format!("{}.{}", kind.plural, kind.group) }
}

/// spec 82 "better" 14: not up to a period late
#[test]
fn project_is_looked_at_when_a_limit_ends() {
    garden(|garden| async move {
        configure(&garden);
        garden.config.borrow_mut().controllers.project.stale_sync_period = Duration::from_secs(12 * 3600).into();
        put_project(&garden, None, None);
        let after = |garden: &Garden, days: i64, seconds: i64| garden.time(days * DAY + seconds);
        let created = after(&garden, -5, 2 * 3600);
        garden.edit(&kinds::PROJECT, "", "dev", |project| project["metadata"]["creationTimestamp"] = json!(created));
        garden.start().await;
        tokio::time::sleep(Duration::from_secs(2 * 3600 - 10)).await;
        assert_eq!(stale(&garden), (None, None));
        tokio::time::sleep(Duration::from_secs(12)).await;
        assert_eq!(stale(&garden), (Some(0), None), "it is not young any more");

        let since = after(&garden, -10, 600);
        garden.edit(&kinds::PROJECT, "", "dev", |project| project["status"]["staleSinceTimestamp"] = json!(since));
        tokio::time::sleep(Duration::from_secs(598)).await;
        assert_eq!(stale(&garden), (Some(-10), None));
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert_eq!(stale(&garden), (Some(-10), Some(5)), "the grace period is over");

        let since = after(&garden, -15, 600);
        garden.edit(&kinds::PROJECT, "", "dev", |project| {
            project["status"]["staleSinceTimestamp"] = json!(since);
            project["status"]["staleAutoDeleteTimestamp"] = Value::Null;
        });
        tokio::time::sleep(Duration::from_secs(598)).await;
        assert!(!is_deleted(&garden));
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert!(is_deleted(&garden), "its date has come");
    });
}

/// spec 82 "better" 13
#[test]
fn first_looks_at_projects_are_spread_and_live_triggers_are_not() {
    garden(|garden| async move {
        configure(&garden);
        garden.config.borrow_mut().controllers.project.stale_sync_period = Duration::from_secs(10_000).into();
        for number in 0..100 {
            let name = format!("p{number}");
            garden.put(object(&kinds::NAMESPACE, "", &format!("garden-{name}"), json!({})));
            garden.put(project(&garden, &name, None, None));
        }
        let marked = || {
            let is_marked = |project: &Value| !project["status"]["staleSinceTimestamp"].is_null();
            garden.sim.objects("projects.core.gardener.cloud").iter().filter(|project| is_marked(project)).count()
        };
        garden.start().await;

        let mut counts = Vec::new();
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_secs(101)).await;
            counts.push(marked());
        }
        assert!(counts[0] < 30 && (30..70).contains(&counts[4]) && counts[9] == 100, "{counts:?}");

        garden.stop().await;
        for number in 0..100 {
            let name = format!("p{number}");
            garden.edit(&kinds::PROJECT, "", &name, |project| project["status"]["staleSinceTimestamp"] = Value::Null);
        }
        garden.start().await;
        garden.settle().await;
        let before = marked();
        garden.edit(&kinds::PROJECT, "", "p7", |project| project["metadata"]["labels"] = json!({ "a": "b" }));
        garden.settle().await;
        assert!(!garden.find(&kinds::PROJECT, "", "p7").unwrap()["status"]["staleSinceTimestamp"].is_null());
        assert!(before < 10 && marked() < 10, "{before} {}", marked());
    });
}

/// Of a Project with many Shoots nothing is computed for each of them.
#[test]
fn project_in_use_is_not_reconciled_for_each_of_its_shoots() {
    garden(|garden| async move {
        configure(&garden);
        garden.config.borrow_mut().controllers.project.stale_sync_period = Duration::from_secs(3600).into();
        put_project(&garden, None, None);
        let old = |name: &str| {
            object(&kinds::SHOOT, NAMESPACE, name, json!({ "metadata": { "creationTimestamp": at(&garden, -1) } }))
        };
        garden.put(old("s"));
        garden.start().await;
        tokio::time::sleep(Duration::from_secs(600)).await;
        let before = garden.reconciles("project-stale");

        for number in 0..50 {
            garden.put(old(&format!("s{number}")));
            tokio::time::sleep(Duration::from_millis(100)).await;
        }

        assert_eq!(garden.reconciles("project-stale"), before);
    });
}
