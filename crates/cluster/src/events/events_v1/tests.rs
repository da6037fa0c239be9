//! The recorder of `events.k8s.io/v1`: its requests, and what the simulator keeps of them.

use std::{future::Future, rc::Rc, time::Duration};

use kit::{Clock, Deadline, Random};
use serde_json::{Value, json};
use sim::{Sim, SimOptions};
use tokio::time::sleep;

use crate::{
    AnswerRoom, Cluster, ClusterEnv, ClusterLabel, ClusterOptions, EventType, Fence, NoObserver, Recorder, Reference,
    events::subject::SERIES,
};

const ACTION: &str = "Delete";
const START: &str = "2030-01-01T00:00:00.123456Z";
const SECOND: Duration = Duration::from_secs(1);

struct World {
    sim: Sim,
    recorder: Recorder,
}

impl World {
    fn new() -> Self {
        let clock = || Clock::starting_at(START.parse().unwrap());
        let sim = Sim::new(SimOptions::new(clock(), Random::seeded(1)));
        let options = ClusterOptions {
            label: ClusterLabel::may_be_down("garden"),
            host: "sim".into(),
            qps: -1.0,
            burst: 0,
            namespaces: Vec::new(),
        };
        let env =
            ClusterEnv { clock: clock(), random: Random::seeded(1), fence: Fence::open(), room: AnswerRoom::default() };
        let cluster = Cluster::new(sim.client(), options, env, Rc::new(NoObserver));
        sim.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden-dev"}})).unwrap();
        let recorder = Recorder::new(&cluster, "quota-controller").in_events_v1("host-1");
        Self { sim, recorder }
    }

    async fn run<T>(&self, test: impl Future<Output = T>) -> T {
        tokio::select! {
            biased;
            result = test => result,
            () = self.recorder.clone().run() => unreachable!("it runs for ever"),
        }
    }

    fn warn(&self, regarding: &Reference, note: &str) {
        self.recorder.record(EventType::Warning, regarding, ACTION, "ResourceReferenced", note);
    }

    async fn flush(&self) {
        self.recorder.flush(Deadline::after(10 * SECOND)).await;
    }

    /// The Events in the order of their times.
    fn events(&self) -> Vec<Value> {
        let mut events = self.sim.objects("events");
        events.sort_by_key(|event| event["eventTime"].as_str().unwrap_or_default().to_owned());
        events
    }

    fn paths(&self) -> Vec<String> {
        self.sim.requests().into_iter().map(|request| request.info.path).collect()
    }

    fn requests(&self) -> Vec<String> {
        self.sim.requests().into_iter().map(|request| request.info.verb).collect()
    }
}

fn quota() -> Reference {
    Reference {
        api_version: "core.gardener.cloud/v1beta1".into(),
        kind: "Quota".into(),
        namespace: "garden-dev".into(),
        name: "q".into(),
        uid: "u".into(),
    }
}

/// spec 80 S-11
#[tokio::test(start_paused = true)]
async fn event_has_the_form_of_events_v1() {
    let world = World::new();

    world.warn(&quota(), "100%d in use");
    world.flush().await;

    assert_eq!(world.paths(), ["/apis/events.k8s.io/v1/namespaces/garden-dev/events"]);
    let mut event = world.events().remove(0);
    let metadata = event["metadata"].take();
    assert!(metadata["name"].as_str().unwrap().starts_with("q."));
    assert_eq!(metadata["namespace"], "garden-dev");
    assert_eq!(
        event,
        json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": null,
            "eventTime": START, "reportingController": "quota-controller",
            "reportingInstance": "quota-controller-host-1", "action": "Delete", "reason": "ResourceReferenced",
            "type": "Warning", "note": "100%d in use",
            "regarding": {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Quota", "namespace": "garden-dev",
                "name": "q", "uid": "u"},
        })
    );
}

/// spec 80 S-11
#[tokio::test(start_paused = true)]
async fn event_about_a_cluster_scoped_object_is_in_the_namespace_default() {
    let world = World::new();

    world.warn(&Reference { namespace: String::new(), kind: "ExposureClass".into(), ..quota() }, "in use");
    world.flush().await;

    assert_eq!(world.events()[0]["metadata"]["namespace"], "default");
}

/// spec 80 S-11
#[tokio::test(start_paused = true)]
async fn event_repetitions_within_six_minutes_are_a_series() {
    let world = World::new();

    world
        .run(async {
            for _ in 0..60 {
                world.warn(&quota(), "in use");
                sleep(60 * SECOND).await;
            }
        })
        .await;
    world.flush().await;

    let events = world.events();
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0]["eventTime"], START);
    assert_eq!(events[0]["series"], json!({"count": 60, "lastObservedTime": "2030-01-01T00:59:00.123456Z"}));
    let requests = world.requests();
    assert!((10..=12).contains(&requests.len()), "one request per six minutes: {requests:?}");
}

/// spec 80 S-11
#[tokio::test(start_paused = true)]
async fn event_series_shows_its_first_repetition_soon_and_its_last_one_before_it_ends() {
    let world = World::new();

    world
        .run(async {
            for _ in 0..3 {
                world.warn(&quota(), "in use");
                sleep(20 * SECOND).await;
            }
            assert_eq!(world.events()[0]["series"]["count"], 2);
            sleep(SERIES).await;
        })
        .await;

    let last = json!({"count": 3, "lastObservedTime": "2030-01-01T00:00:40.123456Z"});
    assert_eq!(world.events()[0]["series"], last);
    assert_eq!(world.requests(), ["create", "patch", "patch"]);
}

/// spec 80 S-11
#[tokio::test(start_paused = true)]
async fn event_repeated_after_six_minutes_is_a_new_event() {
    let world = World::new();

    world
        .run(async {
            for _ in 0..2 {
                world.warn(&quota(), "in use");
                sleep(SERIES).await;
            }
            sleep(SECOND).await;
            world.warn(&quota(), "in use");
            sleep(SECOND).await;
        })
        .await;

    let events = world.events();
    let series: Vec<_> = events.iter().map(|event| event["series"]["count"].as_u64()).collect();
    assert_eq!(series, [Some(2), None]);
    assert_eq!(events[1]["eventTime"], "2030-01-01T00:12:01.123456Z");
}

/// spec 80 S-11: a changed note must not be lost in a series.
#[tokio::test(start_paused = true)]
async fn event_with_a_changed_note_or_action_is_an_event_of_its_own() {
    let world = World::new();

    world.warn(&quota(), "in use by a");
    world.warn(&quota(), "in use by b");
    world.recorder.record(EventType::Warning, &quota(), "Reconcile", "ResourceReferenced", "in use by b");
    world.recorder.record(EventType::Normal, &quota(), "Reconcile", "ResourceReferenced", "in use by b");
    world.flush().await;

    let events = world.events();
    let notes: Vec<_> = events.iter().map(|event| &event["note"]).collect();
    assert_eq!(notes, ["in use by a", "in use by b", "in use by b", "in use by b"]);
    assert!(events.iter().all(|event| event["series"].is_null()));
}

/// spec 80 S-11
#[tokio::test(start_paused = true)]
async fn event_note_is_cut_at_a_character_boundary() {
    let world = World::new();

    world.warn(&quota(), &format!("x{}", "é".repeat(600)));
    world.warn(&quota(), &"y".repeat(1024));
    world.flush().await;

    let events = world.events();
    let notes: Vec<_> = events.iter().map(|event| event["note"].as_str().unwrap()).collect();
    assert!(notes.contains(&&*format!("x{}…", "é".repeat(510))) && notes.contains(&&*"y".repeat(1024)), "{notes:?}");
}

/// spec 80 S-11
#[tokio::test(start_paused = true)]
async fn event_instance_of_a_long_host_name_is_accepted() {
    let world = World::new();

    world.recorder.in_events_v1("h".repeat(200)).normal(&quota(), "Reason", "m");
    world.flush().await;

    let instance = world.events()[0]["reportingInstance"].as_str().unwrap().to_owned();
    assert_eq!(instance, format!("quota-controller-{}", "h".repeat(111)));
}

#[tokio::test(start_paused = true)]
async fn event_without_an_action_names_its_reason_as_the_action() {
    let world = World::new();

    world.recorder.normal(&quota(), "Reason", "m");
    world.recorder.with_action("Reconcile").normal(&quota(), "Reason", "m");
    world.flush().await;

    let events = world.events();
    let actions: Vec<_> = events.iter().map(|event| event["action"].as_str().unwrap()).collect();
    assert!(actions.contains(&"Reason") && actions.contains(&"Reconcile"), "{actions:?}");
}

#[tokio::test(start_paused = true)]
async fn event_repeated_before_it_is_written_is_created_with_its_series() {
    let world = World::new();

    for _ in 0..3 {
        world.warn(&quota(), "in use");
    }
    world.flush().await;

    assert_eq!(world.events()[0]["series"], json!({"count": 3, "lastObservedTime": START}));
    assert_eq!(world.requests(), ["create"]);
}

/// spec 81 J: the event controller deletes Events.
#[tokio::test(start_paused = true)]
async fn event_that_was_deleted_is_created_again_with_its_series() {
    let world = World::new();

    world.warn(&quota(), "in use");
    world.flush().await;
    let name = world.events()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    world.sim.remove("events", "garden-dev", &name).unwrap();
    world.warn(&quota(), "in use");
    world.flush().await;

    assert_eq!(world.events()[0]["series"]["count"], 2);
    assert_eq!(world.requests(), ["create", "patch", "create"]);
}

/// spec 80 §18: Events of the leader election are core/v1.
#[tokio::test(start_paused = true)]
async fn event_forms_can_be_mixed() {
    let world = World::new();

    world.warn(&quota(), "in use");
    world.recorder.in_core_v1().for_component("leader").normal(&quota(), "LeaderElection", "m");
    world.flush().await;

    assert_eq!(
        world.paths(),
        ["/apis/events.k8s.io/v1/namespaces/garden-dev/events", "/api/v1/namespaces/garden-dev/events"]
    );
}

/// Repetitions wait for minutes. They must not take the place of new Events.
#[tokio::test(start_paused = true)]
async fn event_series_that_wait_leave_room_for_new_events() {
    let world = World::new();
    let about = |number: usize| Reference { name: format!("q-{number}"), ..quota() };

    for round in 0..3 {
        for number in 0..600 {
            world.warn(&about(number), "in use");
            if round == 0 {
                world.flush().await;
            }
        }
    }
    assert_eq!(world.recorder.waiting(), 600);
    world.warn(&about(1_000), "in use");
    world.run(sleep(SECOND)).await;

    assert_eq!(world.events().len(), 601);
    world.flush().await;
    assert_eq!(world.events().iter().filter(|event| event["series"]["count"] == 3).count(), 600);
}

#[tokio::test(start_paused = true)]
async fn event_memory_of_series_is_bounded() {
    let world = World::new();

    for number in 0..3_000 {
        for _ in 0..2 {
            world.warn(&Reference { name: format!("q-{number}"), ..quota() }, "in use");
            if number % 2 == 0 {
                world.flush().await;
            }
        }
    }

    assert!(world.recorder.waiting() <= crate::events::notebook::REMEMBERED);
    assert!(world.recorder.shared.notebook.borrow().entries.len() <= crate::events::notebook::REMEMBERED);
}
