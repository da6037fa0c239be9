//! One fault at every request of a ManagedResource's life, one world each. A run without faults counts the requests and
//! records the state after each step. Then each fault is injected at each request; each step must reach that state.

use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use sim::{Fault, RequestInfo, Seen};

use crate::{
    objects::{definition, object, widget},
    state::{State, differences, state},
    world::{NAMESPACE, World, config_map, world},
};

/// How long a step may take, whatever fails. One silent connection costs a reconcile its whole time.
const PATIENCE: Duration = Duration::from_secs(400);

const STEPS: usize = 6;

type Kind = (&'static str, fn(&RequestInfo) -> Fault);

const KINDS: [Kind; 6] = [
    ("500", |_| Fault::FailBefore(Seen::internal_error("no"))),
    ("disconnect", |_| Fault::FailBefore(Seen::Disconnect)),
    ("disconnect after commit", |_| Fault::FailAfterCommit(Seen::Disconnect)),
    ("timeout after commit", |_| Fault::FailAfterCommit(Seen::timeout())),
    ("crash", |_| Fault::CrashClient),
    ("crash after commit", |_| Fault::CrashClientAfterCommit),
];

const MORE_KINDS: [Kind; 9] = [
    ("no object", |info| Fault::FailAfterCommit(Seen::nonsense(usize::try_from(info.number).unwrap_or_default()))),
    ("a status", |_| Fault::FailAfterCommit(Seen::body(STATUS))),
    ("409", |info| Fault::FailBefore(Seen::conflict(info))),
    ("429", |_| Fault::FailBefore(Seen::too_many_requests())),
    ("503", |_| Fault::FailBefore(Seen::unavailable())),
    ("401", |_| Fault::FailBefore(Seen::unauthorized())),
    ("403", |info| Fault::FailBefore(Seen::forbidden(info))),
    ("late answer", |_| Fault::DelayAnswer(Duration::from_secs(3))),
    ("silence", |_| Fault::Hang),
];

/// faults rows 1, 2 and 8
#[test]
fn single_fault_at_any_request_does_not_change_the_final_state() {
    try_faults(&KINDS, 1);
}

const STATUS: &str = r#"{"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}"#;

/// faults rows 7, 8, 9, 10 and 31
#[test]
fn refusals_and_silence_do_not_change_the_final_state() {
    try_faults(&MORE_KINDS, 3);
}

/// Injects each kind of fault at each `step`-th request. Each run has its own world, so they run in parallel.
fn try_faults(kinds: &[Kind], step: usize) {
    let (requests, expected) = without_faults();
    let faults: Vec<(u64, Kind)> =
        (1..=requests).step_by(step).flat_map(|number| kinds.iter().map(move |kind| (number, *kind))).collect();
    let (next, tried) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|threads| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            threads.spawn(|| {
                while let Some((number, kind)) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
                    with_fault(&expected, *number, *kind);
                    tried.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    // Straight to stderr, because the test harness captures what tests print.
    let tried = tried.into_inner();
    writeln!(std::io::stderr(), "simulation: {tried} faults at {requests} requests").expect("standard error is open");
}

fn without_faults() -> (u64, Vec<State>) {
    world(1, |world| async move {
        let requests = Arc::new(AtomicU64::new(0));
        let counter = requests.clone();
        world.sim.set_faults(move |info| {
            counter.fetch_add(u64::from(info.user == "grm"), Ordering::Relaxed);
            Fault::None
        });
        world.start().await;
        let mut states = Vec::new();
        for step in 0..STEPS {
            begin(&world, step).await;
            tokio::time::sleep(Duration::from_secs(20)).await;
            states.push(state(&world));
        }
        assert_eq!(world.mr("one"), None, "the life ends with the ManagedResource");
        assert!(states[2].keys().any(|name| name.contains("Widget")), "{:#?}", states[2].keys());
        (requests.load(Ordering::Relaxed), states)
    })
}

fn with_fault(expected: &[State], at: u64, (kind, fault): Kind) {
    world(1, |world| async move {
        let mut number = 0;
        let hit = Arc::new(std::sync::Mutex::new(String::new()));
        let noted = hit.clone();
        world.sim.set_faults(move |info| {
            number += u64::from(info.user == "grm");
            if number != at || info.user != "grm" {
                return Fault::None;
            }
            *noted.lock().expect("no thread panics with it") = format!("{} {} {}", info.verb, info.path, info.query);
            number += 1;
            fault(info)
        });
        world.start().await;
        for (step, expected) in expected.iter().enumerate() {
            begin(&world, step).await;
            let end = tokio::time::Instant::now() + PATIENCE;
            let mut revision = 0;
            loop {
                world.revive().await;
                if world.sim.revision() != revision {
                    revision = world.sim.revision();
                    if state(&world) == *expected {
                        break;
                    }
                }
                if tokio::time::Instant::now() >= end {
                    let found = state(&world);
                    let recent: Vec<_> = world.asked().into_iter().rev().take(20).collect();
                    let hit = hit.lock().expect("no thread panics with it");
                    let differences = differences(expected, &found);
                    panic!("{kind} at request {at} ({hit}), step {step}:\n{differences}\n{recent:#?}");
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    });
}

async fn begin(world: &World, step: usize) {
    match step {
        0 => world.bundle("one", &first()),
        1 => world.secret("one", &second()),
        2 => world.secret("one", &third()),
        3 => {
            world.sim.edit("configmaps", NAMESPACE, "changed", |live| live["data"]["k"] = json!("edited"));
            world.sim.edit("services", NAMESPACE, "kept", |live| live["spec"]["ports"][0]["port"] = json!(81));
        }
        4 => {
            world.sim.remove("roles.rbac.authorization.k8s.io", NAMESPACE, "kept");
            world.sim.remove("deployments.apps", NAMESPACE, "kept");
        }
        _ => world.delete_bundle("one").await,
    }
}

pub(crate) fn first() -> Vec<Value> {
    vec![
        config_map("changed", "1"),
        config_map("removed", "1"),
        object("v1", "Secret", "removed", json!({ "stringData": {}, "data": { "k": "djE=" }, "type": "Opaque" })),
        object("v1", "ServiceAccount", "kept", json!({})),
        role("kept"),
        service(80),
        deployment(1),
        definition(),
        widget(1),
    ]
}

fn second() -> Vec<Value> {
    vec![
        config_map("changed", "2"),
        config_map("added", "1"),
        object("v1", "ServiceAccount", "kept", json!({})),
        role("kept"),
        service(80),
        deployment(2),
        definition(),
        widget(2),
    ]
}

fn third() -> Vec<Value> {
    vec![
        config_map("changed", "2"),
        config_map("added", "1"),
        object("v1", "ServiceAccount", "kept", json!({})),
        role("kept"),
        service(80),
        deployment(2),
        definition(),
        widget(2),
        object("v1", "Secret", "added", json!({ "data": { "k": "djE=" }, "type": "Opaque" })),
    ]
}

fn role(name: &str) -> Value {
    let rules = json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }]);
    object("rbac.authorization.k8s.io/v1", "Role", name, json!({ "rules": rules }))
}

fn service(port: u16) -> Value {
    object("v1", "Service", "kept", json!({ "spec": { "selector": { "a": "b" }, "ports": [{ "port": port }] } }))
}

fn deployment(replicas: u32) -> Value {
    let template = json!({
        "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "c", "image": "i" }] }
    });
    let spec = json!({ "replicas": replicas, "selector": { "matchLabels": { "a": "b" } }, "template": template });
    object("apps/v1", "Deployment", "kept", json!({ "spec": spec }))
}
