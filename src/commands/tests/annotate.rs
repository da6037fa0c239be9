use std::{ffi::OsString, time::Duration};

use serde_json::{Value, json};
use sim::{Fault, Seen};
use tokio::time::sleep;

use super::*;
use crate::{
    api::resources::side::Side,
    cli::{Cli, Command, Tool},
    commands::{
        DIFFERENT, OK,
        annotate::{AnnotateError, Request, annotate},
        connect::writable,
    },
};

const IGNORE: &str = "resources.gardener.cloud/ignore";
const OPERATION: &str = "gardener.cloud/operation";

async fn run(cluster: &(Sim, Clock), line: &str) -> Said {
    try_run(cluster, line).await.unwrap()
}

async fn try_run((sim, clock): &(Sim, Clock), line: &str) -> Result<Said, AnnotateError> {
    let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    let (options, request) = match Cli::parse_from(&arguments, &|_| None) {
        Ok(Command::Tool(Tool::Suspend(options))) => (options, Request::Suspend),
        Ok(Command::Tool(Tool::Resume(options))) => (options, Request::Resume),
        Ok(Command::Tool(Tool::Reconcile(options))) => {
            let limit = options.wait.then_some(Duration::from_secs(60));
            (options.selection, Request::Reconcile(limit))
        }
        other => panic!("{line}: {other:?}"),
    };
    let cluster = writable(sim.client(), Side::Source, clock.clone(), Random::seeded(1));
    annotate(&cluster, "ns", &options, request).await
}

fn cluster() -> (Sim, Clock) {
    let cluster = cluster_and_clock();
    for name in ["a", "b"] {
        let object = json!({
            "apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
            "metadata": {"namespace": "ns", "name": name, "labels": {"name": name}, "annotations": {"kept": "x"}},
            "spec": {"secretRefs": []},
        });
        cluster.0.put(object).unwrap();
    }
    cluster
}

fn annotations(sim: &Sim, name: &str) -> Value {
    sim.object(MANAGED_RESOURCE, "ns", name).unwrap()["metadata"]["annotations"].clone()
}

/// What the controller does: the annotation goes, then the status is written.
fn apply(sim: &Sim, name: &str, status: &str) {
    let condition = json!({"type": "ResourcesApplied", "status": status, "reason": "R", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"});
    sim.edit(MANAGED_RESOURCE, "ns", name, |object| {
        object["metadata"]["annotations"].as_object_mut().unwrap().remove(OPERATION);
        let generation = object["metadata"]["generation"].clone();
        object["status"] = json!({"conditions": [condition], "observedGeneration": generation});
    });
}

/// spec 10 §7
#[tokio::test(start_paused = true)]
async fn suspend_and_resume_set_and_remove_the_ignore_annotation() {
    let cluster = cluster();

    let suspended = run(&cluster, "suspend a b").await;
    let between = annotations(&cluster.0, "a");
    let again = run(&cluster, "suspend a").await;
    let resumed = run(&cluster, "resume -l name=a").await;
    let twice = run(&cluster, "resume a").await;

    assert_eq!(suspended.out, "ManagedResource ns/a: suspended\nManagedResource ns/b: suspended\n");
    assert_eq!((suspended.code, between), (OK, json!({"kept": "x", IGNORE: "true"})));
    assert_eq!((again.out.as_str(), again.code), ("ManagedResource ns/a: suspended already\n", OK));
    assert_eq!((resumed.out.as_str(), resumed.code), ("ManagedResource ns/a: resumed\n", OK));
    assert_eq!((twice.out.as_str(), twice.code), ("ManagedResource ns/a: not suspended\n", OK));
    assert_eq!(annotations(&cluster.0, "a"), json!({"kept": "x"}));
    assert_eq!(annotations(&cluster.0, "b")[IGNORE], "true");
}

/// spec 10 §5.2, §5.5
#[tokio::test(start_paused = true)]
async fn reconcile_sets_the_operation_annotation_unless_another_is_set() {
    let cluster = cluster();
    cluster
        .0
        .edit(MANAGED_RESOURCE, "ns", "b", |object| object["metadata"]["annotations"][OPERATION] = "migrate".into());

    let said = run(&cluster, "reconcile a b nowhere").await;

    assert_eq!((said.out.as_str(), said.code), ("ManagedResource ns/a: reconcile requested\n", DIFFERENT));
    assert_eq!(annotations(&cluster.0, "a")[OPERATION], "reconcile");
    assert_eq!(annotations(&cluster.0, "b")[OPERATION], "migrate");
    assert_eq!(
        said.remarks,
        [
            "error: ManagedResource ns/b: it has the operation \"migrate\" already",
            "error: ManagedResource ns/nowhere: managedresources.resources.gardener.cloud \"nowhere\" not found"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn reconcile_of_a_suspended_one_is_refused() {
    let cluster = cluster();
    run(&cluster, "suspend a").await;

    let said = run(&cluster, "reconcile a --wait").await;

    assert_eq!((said.out.as_str(), said.code), ("", DIFFERENT));
    assert_eq!(said.remarks, ["error: ManagedResource ns/a: it is suspended — use resume first"]);
}

#[tokio::test(start_paused = true)]
async fn reconcile_waits_until_the_objects_are_applied() {
    let cluster = cluster();
    let sim = cluster.0.clone();
    let controller = async {
        sleep(Duration::from_secs(5)).await;
        apply(&sim, "a", "Progressing");
        sleep(Duration::from_secs(5)).await;
        apply(&sim, "a", "True");
    };

    let (said, ()) = tokio::join!(run(&cluster, "reconcile a --wait"), controller);

    let expected = "ManagedResource ns/a: reconcile requested\nManagedResource ns/a: applied\n";
    assert_eq!((said.out.as_str(), said.code), (expected, OK));
}

#[tokio::test(start_paused = true)]
async fn reconcile_that_takes_too_long_says_what_is_missing() {
    let cluster = cluster();

    let not_begun = run(&cluster, "reconcile a --wait").await;
    apply(&cluster.0, "a", "True");
    let sim = cluster.0.clone();
    let controller = async {
        sleep(Duration::from_secs(5)).await;
        apply(&sim, "a", "False");
    };
    let (not_applied, ()) = tokio::join!(run(&cluster, "reconcile a --wait"), controller);

    let text =
        "error: ManagedResource ns/a: no controller has begun within 60s — does one with the class \"resources\" run?";
    assert_eq!((not_begun.code, not_begun.remarks), (DIFFERENT, vec![text.to_owned()]));
    let text = "error: ManagedResource ns/a: not applied within 60s: ResourcesApplied is False, R: m";
    assert_eq!((not_applied.code, not_applied.remarks), (DIFFERENT, vec![text.to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn suspend_goes_on_after_a_failure() {
    let cluster = cluster();
    cluster.0.set_faults(|info| match (info.verb.as_str(), info.name.as_str()) {
        ("patch", "a") => Fault::FailBefore(Seen::status(403, "Forbidden", "not allowed")),
        _ => Fault::None,
    });

    let said = run(&cluster, "suspend a b").await;
    let none = run(&cluster, "suspend -l name=c").await;

    assert_eq!((said.out.as_str(), said.code), ("ManagedResource ns/b: suspended\n", DIFFERENT));
    assert_eq!(said.remarks, ["error: ManagedResource ns/a: not allowed"]);
    assert_eq!(
        (none.code, none.remarks),
        (DIFFERENT, vec!["error: no ManagedResources found in namespace ns".to_owned()])
    );
}

#[tokio::test(start_paused = true)]
async fn suspend_takes_names_with_namespaces() {
    let cluster = cluster();

    let said = run(&cluster, "suspend ns/a b -n elsewhere").await;

    assert_eq!((said.out.as_str(), said.code), ("ManagedResource ns/a: suspended\n", DIFFERENT));
    assert!(said.remarks[0].starts_with("error: ManagedResource elsewhere/b: "), "{:?}", said.remarks);
}

#[tokio::test(start_paused = true)]
async fn suspend_fails_if_the_cluster_is_not_reached() {
    let cluster = cluster();
    cluster.0.set_faults(|_| Fault::Hang);

    let error = try_run(&cluster, "suspend a b").await.unwrap_err();

    assert_eq!(error.to_string(), "ManagedResource ns/a: the API server did not answer in time");
}

#[tokio::test(start_paused = true)]
async fn reconcile_waits_for_the_end_of_a_deletion() {
    let cluster = cluster();
    cluster.0.edit(MANAGED_RESOURCE, "ns", "a", |object| {
        object["metadata"]["finalizers"] = json!(["example.com/f"]);
        object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    });
    let sim = cluster.0.clone();
    let controller = async {
        sleep(Duration::from_secs(5)).await;
        sim.remove(MANAGED_RESOURCE, "ns", "a");
    };

    let (said, ()) = tokio::join!(run(&cluster, "reconcile a --wait"), controller);

    let expected = "ManagedResource ns/a: reconcile requested\nManagedResource ns/a: deleted\n";
    assert_eq!((said.out.as_str(), said.code), (expected, OK));
}
