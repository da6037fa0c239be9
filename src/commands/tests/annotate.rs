use std::{ffi::OsString, time::Duration};

use serde_json::{Value, json};
use sim::{Fault, Seen};
use tokio::time::sleep;

use super::*;
use crate::{
    api::resources::side::Side,
    cli::{Cli, Command, ReportFormat, SelectionOptions, Tool},
    commands::{
        DIFFERENT, OK,
        annotate::{AnnotateError, Request, Steps, annotate},
        connect::{read_only, writable},
        selection::Selection,
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
        Ok(Command::Tool(Tool::Suspend(options))) => (options, Some(Request::Suspend)),
        Ok(Command::Tool(Tool::Resume(options))) => (options, Some(Request::Resume)),
        Ok(Command::Tool(Tool::Reconcile(options))) => (options, Some(Request::Reconcile)),
        other => panic!("{line}: {other:?}"),
    };
    let wait = request.filter(|_| options.wait).map(|request| (request.goal(), Duration::from_secs(60)));
    let cluster = writable(sim.client(), Side::Source, clock.clone(), Random::seeded(1));
    printed(&cluster, &options.selection, Steps { request, wait }, options.report.output.as_ref()).await
}

async fn printed(
    cluster: &cluster::Cluster,
    selection: &SelectionOptions,
    steps: Steps,
    format: Option<&ReportFormat>,
) -> Result<Said, AnnotateError> {
    let selection = Selection::new(selection, "ns");
    let work = async |screen: &mut Screen<'_>| annotate(cluster, selection, steps, format, screen).await;
    let (said, out, mut remarks) = on_screen(work).await;
    let mut said = said?;
    remarks.append(&mut said.remarks);
    Ok(Said { out, remarks, ..said })
}

async fn wait_for(cluster: &(Sim, Clock), line: &str) -> Said {
    try_wait_for(cluster, line).await.unwrap()
}

async fn try_wait_for((sim, clock): &(Sim, Clock), line: &str) -> Result<Said, AnnotateError> {
    let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    let Ok(Command::Tool(Tool::Wait(options))) = Cli::parse_from(&arguments, &|_| None) else { panic!("{line}") };
    let cluster = read_only(sim.client(), Side::Source, clock.clone(), Random::seeded(1));
    let wait = Some((options.goal.into(), options.timeout.unwrap_or(Duration::from_secs(60))));
    printed(&cluster, &options.selection, Steps { request: None, wait }, options.report.output.as_ref()).await
}

/// The remarks without those that show progress.
fn failures(said: &Said) -> Vec<&str> {
    said.remarks.iter().map(String::as_str).filter(|remark| !remark.contains(": waiting: ")).collect()
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
    let progress = [
        "ManagedResource ns/a: waiting: no controller with the class \"resources\" has begun yet",
        "ManagedResource ns/a: waiting: ResourcesApplied is Progressing, R: m",
    ];
    assert_eq!(said.remarks, progress);
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

    let text = "error: ManagedResource ns/a: not applied within 60s: no controller with the class \"resources\" has begun yet \
                — does one run?";
    assert_eq!((not_begun.code, failures(&not_begun)), (DIFFERENT, vec![text]));
    let text = "error: ManagedResource ns/a: not applied within 60s: ResourcesApplied is False, R: m";
    assert_eq!((not_applied.code, failures(&not_applied)), (DIFFERENT, vec![text]));
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

/// A suspension is no application: the controller reports True for what it ignores (spec 10 §16).
#[tokio::test(start_paused = true)]
async fn reconcile_does_not_take_a_suspension_for_an_application() {
    let cluster = cluster();
    let sim = cluster.0.clone();
    let other = async {
        sleep(Duration::from_secs(5)).await;
        apply(&sim, "a", "True");
        sim.edit(MANAGED_RESOURCE, "ns", "a", |object| object["metadata"]["annotations"][IGNORE] = "true".into());
    };

    let (said, ()) = tokio::join!(run(&cluster, "reconcile a --wait"), other);

    assert_eq!((said.out.as_str(), said.code), ("ManagedResource ns/a: reconcile requested\n", DIFFERENT));
    assert_eq!(failures(&said), ["error: ManagedResource ns/a: it is suspended — use resume first"]);
}

/// spec 10 §7, §16
#[tokio::test(start_paused = true)]
async fn suspend_and_resume_wait_for_the_report_of_the_controller() {
    let cluster = cluster();
    let sim = cluster.0.clone();
    let reason = |reason: &str| {
        sim.edit(MANAGED_RESOURCE, "ns", "a", |object| object["status"]["conditions"][0]["reason"] = reason.into());
    };
    apply(&sim, "a", "True");
    let suspends = async {
        sleep(Duration::from_secs(5)).await;
        reason("ManagedResourceIgnored");
    };
    let resumes = async {
        sleep(Duration::from_secs(5)).await;
        reason("ApplySucceeded");
    };

    let (suspended, ()) = tokio::join!(run(&cluster, "suspend a --wait"), suspends);
    let (resumed, ()) = tokio::join!(run(&cluster, "resume a --wait"), resumes);

    assert_eq!(suspended.out, "ManagedResource ns/a: suspended\nManagedResource ns/a: ignored\n");
    assert_eq!(resumed.out, "ManagedResource ns/a: resumed\nManagedResource ns/a: applied\n");
    assert_eq!((suspended.code, resumed.code), (OK, OK));
    let text =
        "ManagedResource ns/a: waiting: no controller with the class \"resources\" has noticed that it is resumed yet";
    assert_eq!(resumed.remarks, [text]);
}

#[tokio::test(start_paused = true)]
async fn suspend_and_resume_that_no_controller_notices_ask_for_one_of_the_class() {
    let cluster = cluster();
    cluster.0.edit(MANAGED_RESOURCE, "ns", "a", |object| object["spec"]["class"] = "other".into());

    let suspended = run(&cluster, "suspend a --wait").await;
    apply(&cluster.0, "a", "True");
    cluster.0.edit(MANAGED_RESOURCE, "ns", "a", |object| {
        object["status"]["conditions"][0]["reason"] = "ManagedResourceIgnored".into();
    });
    let resumed = run(&cluster, "resume a --wait").await;

    for (said, goal, done) in [
        (suspended, "reported as ignored", "has noticed the suspension"),
        (resumed, "applied", "has noticed that it is resumed"),
    ] {
        let text = format!(
            "error: ManagedResource ns/a: not {goal} within 60s: no controller with the class \"other\" {done} yet — does one run?"
        );
        assert_eq!((said.code, failures(&said)), (DIFFERENT, vec![text.as_str()]));
    }
}

#[tokio::test(start_paused = true)]
async fn reconcile_never_overwrites_an_operation_that_others_set_meanwhile() {
    let cluster = cluster();
    let sim = cluster.0.clone();
    sim.set_faults(|info| match info.verb.as_str() {
        "patch" => Fault::Delay(Duration::from_secs(5)),
        _ => Fault::None,
    });
    let other = async {
        sleep(Duration::from_secs(2)).await;
        sim.edit(MANAGED_RESOURCE, "ns", "a", |object| object["metadata"]["annotations"][OPERATION] = "migrate".into());
    };

    let (said, ()) = tokio::join!(run(&cluster, "reconcile a"), other);

    assert_eq!(said.remarks, ["error: ManagedResource ns/a: it has the operation \"migrate\" already"]);
    assert_eq!(annotations(&sim, "a")[OPERATION], "migrate");
}

#[tokio::test(start_paused = true)]
async fn suspend_gives_up_if_others_always_change_it_meanwhile() {
    let cluster = cluster();
    cluster.0.set_faults(|info| match info.verb.as_str() {
        "patch" => Fault::FailBefore(Seen::status(409, "Conflict", "the object has been modified")),
        _ => Fault::None,
    });
    cluster.0.clear_requests();

    let said = run(&cluster, "suspend a").await;

    assert_eq!(said.remarks, ["error: ManagedResource ns/a: others changed it 5 times meanwhile — try again"]);
    assert_eq!(cluster.0.requests().len(), 10);
}

#[tokio::test(start_paused = true)]
async fn suspend_selects_in_all_namespaces_and_prints_json() {
    let cluster = cluster();
    cluster.0.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})).unwrap();
    cluster
        .0
        .put(json!({
            "apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
            "metadata": {"namespace": "other", "name": "a", "labels": {"name": "a"}}, "spec": {"secretRefs": []},
        }))
        .unwrap();

    let said = run(&cluster, "suspend -A -l name=a -o json").await;

    let json: Value = serde_json::from_str(&said.out).unwrap();
    let expected = |namespace: &str| json!({"namespace": namespace, "name": "a", "result": "suspended", "error": null});
    assert_eq!(json, json!([expected("ns"), expected("other")]));
    assert_eq!(said.code, OK);
}

#[tokio::test(start_paused = true)]
async fn wait_ends_when_the_state_is_reached() {
    let cluster = cluster();
    let sim = cluster.0.clone();
    apply(&sim, "a", "False");
    let controller = async {
        sleep(Duration::from_secs(5)).await;
        apply(&sim, "a", "True");
        sleep(Duration::from_secs(5)).await;
        sim.remove(MANAGED_RESOURCE, "ns", "a");
    };
    let waits = async {
        let applied = wait_for(&cluster, "wait a --for=applied").await;
        (applied, wait_for(&cluster, "wait a --for deleted -o json").await)
    };

    let ((applied, deleted), ()) = tokio::join!(waits, controller);

    assert_eq!((applied.out.as_str(), applied.code), ("ManagedResource ns/a: applied\n", OK));
    assert_eq!(applied.remarks, ["ManagedResource ns/a: waiting: ResourcesApplied is False, R: m"]);
    let json: Value = serde_json::from_str(&deleted.out).unwrap();
    assert_eq!((deleted.code, &json[0]["result"]), (OK, &json!("deleted")));
}

#[tokio::test(start_paused = true)]
async fn wait_fails_at_once_for_what_cannot_get_there() {
    let cluster = cluster();
    run(&cluster, "suspend b").await;
    let start = tokio::time::Instant::now();

    let said = wait_for(&cluster, "wait b nowhere --for=healthy").await;
    let deleted = wait_for(&cluster, "wait nowhere --for=deleted").await;
    let none = wait_for(&cluster, "wait -l name=c --for=deleted").await;
    let looked = wait_for(&cluster, "wait a --for=applied --timeout 0").await;

    assert_eq!((said.out.as_str(), said.code), ("", DIFFERENT));
    assert_eq!(
        said.remarks,
        [
            "error: ManagedResource ns/b: it is suspended — use resume first",
            "error: ManagedResource ns/nowhere: managedresources.resources.gardener.cloud \"nowhere\" not found"
        ]
    );
    assert_eq!((deleted.out.as_str(), deleted.code), ("ManagedResource ns/nowhere: does not exist\n", OK));
    let text =
        "warning: ManagedResource ns/nowhere does not exist: it was deleted before, or name or namespace is wrong";
    assert_eq!(deleted.remarks, [text]);
    assert_eq!((none.out.as_str(), none.code, none.remarks.len()), ("", OK, 0));
    let text = "error: ManagedResource ns/a: not applied within 0ns: no controller with the class \"resources\" has reported \
                ResourcesApplied yet — does one run?";
    assert_eq!((looked.code, failures(&looked)), (DIFFERENT, vec![text]));
    assert_eq!(start.elapsed().as_secs(), 0);
}

/// One deadline bounds all requests together: those to a server that hangs, and the list before them.
#[tokio::test(start_paused = true)]
async fn wait_takes_no_longer_than_its_timeout() {
    for slow in ["get", "list"] {
        let cluster = cluster();
        cluster.0.set_faults(move |info| match info.verb == slow && info.resource == "managedresources" {
            true => Fault::Delay(Duration::from_secs(20)),
            false => Fault::None,
        });
        let start = tokio::time::Instant::now();

        let result = try_wait_for(&cluster, "wait -A -l name --for=healthy --timeout 30s").await;

        assert!(result.is_err() || result.is_ok_and(|said| said.code == DIFFERENT));
        assert!((29..=30).contains(&start.elapsed().as_secs()), "{slow}: {:?}", start.elapsed());
    }
}

/// The first is not there yet when the second has got there.
#[tokio::test(start_paused = true)]
async fn wait_finds_each_although_another_is_not_there_yet() {
    let cluster = cluster();
    let sim = cluster.0.clone();
    let controller = async {
        sleep(Duration::from_secs(5)).await;
        apply(&sim, "b", "True");
    };

    let (said, ()) = tokio::join!(wait_for(&cluster, "wait a b --for=applied --timeout 10s"), controller);

    assert_eq!((said.out.as_str(), said.code), ("ManagedResource ns/b: applied\n", DIFFERENT));
    let text = "error: ManagedResource ns/a: not applied within 10s: no controller with the class \"resources\" has reported \
                ResourcesApplied yet — does one run?";
    assert_eq!(failures(&said), [text]);
}
