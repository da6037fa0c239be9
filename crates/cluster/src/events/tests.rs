use std::{cell::Cell, future::Future};

use serde_json::json;
use tokio::time::sleep;

use super::{
    notebook::{QUEUED, QUEUED_OF_ONE, REMEMBERED},
    *,
};
use crate::{
    ClusterLabel, Fence, RequestObserver,
    testing::{Reply, Seen, Server, json as reply, status},
};

fn regarding(name: &str) -> Reference {
    Reference {
        api_version: "v1".into(),
        kind: "Service".into(),
        namespace: "ns".into(),
        name: name.into(),
        uid: "u".into(),
    }
}

async fn with_task<T>(recorder: &Recorder, test: impl Future<Output = T>) -> T {
    tokio::select! {
        biased;
        result = test => result,
        () = recorder.clone().run() => unreachable!("it runs for ever"),
    }
}

fn accepted(seen: &Seen) -> Reply {
    let changed: Value = seen.line.rsplit('/').next().unwrap().into();
    let sent = &seen.body["metadata"]["name"];
    reply(201, &json!({"metadata": {"name": if sent.is_string() { sent } else { &changed }}}))
}

fn accepting() -> Server {
    Server::new(accepted)
}

#[tokio::test(start_paused = true)]
async fn event_has_the_form_of_core_v1() {
    let server = accepting();
    let recorder = Recorder::new(&server.cluster(), "me-controller");

    with_task(&recorder, async {
        recorder.warning(&regarding("a"), "Bad", "it is bad");
        sleep(Duration::from_secs(1)).await;
    })
    .await;

    let seen = server.requests().remove(0);
    assert_eq!(seen.line, "POST /api/v1/namespaces/ns/events");
    let mut event = seen.body;
    assert!(event["metadata"]["name"].take().as_str().unwrap().starts_with("a."));
    assert_eq!(
        event,
        json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": null, "namespace": "ns"},
            "involvedObject": {"apiVersion": "v1", "kind": "Service", "namespace": "ns", "name": "a", "uid": "u"},
            "type": "Warning", "reason": "Bad", "message": "it is bad", "source": {"component": "me-controller"},
            "reportingComponent": "me-controller", "reportingInstance": "", "count": 1,
            "firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:04:05Z",
        })
    );
}

#[tokio::test(start_paused = true)]
async fn event_has_an_action_that_is_part_of_its_identity() {
    let server = accepting();
    let recorder = Recorder::new(&server.cluster(), "me");
    let reconciling = recorder.for_component("other").with_action("Reconcile");

    for recorder in [&recorder, &reconciling, &reconciling.for_component("me")] {
        recorder.normal(&regarding("a"), "R", "m");
    }
    recorder.flush(Deadline::after(REQUEST)).await;

    let said: Vec<_> = server.requests().into_iter().map(|seen| seen.body).collect();
    let said: Vec<_> = said.iter().map(|event| (&event["source"]["component"], event.get("action"))).collect();
    let action = json!("Reconcile");
    assert_eq!(said, [(&json!("me"), None), (&json!("other"), Some(&action)), (&json!("me"), Some(&action))]);
}

#[tokio::test(start_paused = true)]
async fn event_repetitions_are_counted_and_written_seldom() {
    let server = accepting();
    let recorder = Recorder::new(&server.cluster(), "me");

    with_task(&recorder, async {
        for _ in 0..100 {
            recorder.normal(&regarding("a"), "Same", "same");
            sleep(Duration::from_millis(100)).await;
        }
        sleep(COALESCE).await;
    })
    .await;

    let requests = server.requests();
    assert_eq!(requests.len(), 2, "{:?}", server.lines());
    assert!(requests[1].line.starts_with("PATCH /api/v1/namespaces/ns/events/a."));
    assert_eq!(requests[1].body, json!({"count": 100, "lastTimestamp": "2026-01-02T03:04:14Z"}));
}

#[tokio::test(start_paused = true)]
async fn event_that_expired_is_created_again_with_its_count() {
    let server =
        Server::new(
            |seen| {
                if seen.line.starts_with("PATCH") { status(404, "NotFound", "gone") } else { accepted(seen) }
            },
        );
    let recorder = Recorder::new(&server.cluster(), "me");

    with_task(&recorder, async {
        for _ in 0..2 {
            recorder.normal(&regarding("a"), "Same", "same");
            sleep(2 * COALESCE).await;
        }
    })
    .await;

    let requests = server.requests();
    assert_eq!(requests.len(), 3, "{:?}", server.lines());
    assert_eq!(requests[2].body["count"], 2);
}

/// spec 71 §5.1: Gardener's roles grant only the creation of Events in the source; a refused PATCH is not repeated.
#[tokio::test(start_paused = true)]
async fn event_repetitions_are_left_out_where_patching_is_refused() {
    let server =
        Server::new(
            |seen| {
                if seen.line.starts_with("PATCH") { status(403, "Forbidden", "no") } else { accepted(seen) }
            },
        );
    let recorder = Recorder::new(&server.cluster(), "me");
    let sent = || {
        let requests = server.requests().into_iter();
        let reported = |seen: Seen| {
            let about = seen.body["involvedObject"]["name"].as_str().unwrap_or_default().to_owned();
            (seen.line.split(' ').next().unwrap().to_owned(), about, seen.body["count"].as_u64().unwrap())
        };
        requests.map(reported).collect::<Vec<_>>()
    };
    let request = |verb: &str, about: &str, count: u64| (verb.to_owned(), about.to_owned(), count);
    let repeat = async |times: usize| {
        for _ in 0..times {
            for name in ["a", "b"] {
                recorder.normal(&regarding(name), "Same", "same");
            }
            sleep(2 * COALESCE).await;
        }
    };

    with_task(&recorder, repeat(6)).await;
    let first_hour = [request("POST", "a", 1), request("POST", "b", 1), request("PATCH", "", 2)];
    assert_eq!(sent(), first_hour);

    with_task(&recorder, async {
        sleep(EXPIRES).await;
        repeat(3).await;
    })
    .await;
    let second_hour = [request("PATCH", "", 7), request("POST", "a", 7), request("POST", "b", 7)];
    assert_eq!(
        sent()[first_hour.len()..],
        second_hour,
        "roles may have been extended; if not, the Events have expired"
    );
}

#[tokio::test(start_paused = true)]
async fn event_is_tried_three_times_while_the_server_is_down_and_once_when_it_refuses() {
    for (answer, expected) in [(None, 3), (Some(403), 1)] {
        let server = Server::new(move |_| answer.map_or(Reply::Broken, |code| status(code, "Forbidden", "no")));
        let recorder = Recorder::new(&server.cluster(), "me");

        with_task(&recorder, async {
            recorder.normal(&regarding("a"), "R", "m");
            sleep(Duration::from_secs(600)).await;
        })
        .await;

        assert_eq!(server.lines().len(), expected);
        assert_eq!(recorder.waiting(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn event_of_unknown_outcome_is_not_created_twice() {
    let mut first = true;
    let server =
        Server::new(
            move |_| {
                if std::mem::take(&mut first) { Reply::Broken } else { status(409, "AlreadyExists", "there") }
            },
        );
    let recorder = Recorder::new(&server.cluster(), "me");

    with_task(&recorder, async {
        recorder.normal(&regarding("a"), "R", "m");
        sleep(Duration::from_secs(600)).await;
    })
    .await;

    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].body["metadata"]["name"], requests[1].body["metadata"]["name"]);
}

#[tokio::test(start_paused = true)]
async fn flush_writes_remaining_events_behind_a_shut_fence() {
    let server = accepting();
    let fence = Fence::open();
    let recorder = Recorder::new(&server.cluster_with(fence.clone(), Rc::new(crate::NoObserver)), "me");
    recorder.normal(&regarding("a"), "R", "m");
    recorder.normal(&regarding("b"), "R", "m");
    recorder.flush(Deadline::after(REQUEST)).await;
    recorder.normal(&regarding("b"), "R", "m");
    fence.shut("shutting down");

    recorder.flush(Deadline::after(REQUEST)).await;

    let lines = server.lines();
    assert_eq!(lines.len(), 3);
    assert!(lines[2].starts_with("PATCH"), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn event_is_remembered_with_its_repetitions_and_without_a_request() {
    let server = accepting();
    let recorder = Recorder::new(&server.cluster(), "me");
    recorder.for_component("other").warning(&regarding("a"), "Bad", "it is bad");
    recorder.normal(&regarding("b"), "R", "m");
    recorder.normal(&Reference { uid: "earlier".into(), ..regarding("a") }, "R", "m");
    recorder.for_component("other").warning(&regarding("a"), "Bad", "it is bad");
    recorder.normal(&regarding("a"), "Good", "it is good");

    let about: Vec<_> = recorder.about(&regarding("a"));

    let briefly = |event: &RecordedEvent| (event.event_type, event.reason.clone(), event.message.clone(), event.count);
    let mut all: Vec<_> = about.iter().map(briefly).collect();
    all.sort();
    let expected = [
        (EventType::Normal, "Good".to_owned(), "it is good".to_owned(), 1),
        (EventType::Warning, "Bad".to_owned(), "it is bad".to_owned(), 2),
    ];
    assert_eq!(all, expected);
    assert_eq!((recorder.about(&regarding("c")), server.lines().len()), (Vec::new(), 0));
}

#[tokio::test(start_paused = true)]
async fn flush_ends_at_its_deadline() {
    let server = Server::new(|_| Reply::Broken);
    let recorder = Recorder::new(&server.cluster(), "me");
    recorder.normal(&regarding("a"), "R", "m");
    let begin = Instant::now();

    recorder.flush(Deadline::after(REQUEST)).await;

    assert!(begin.elapsed() <= REQUEST);
}

#[derive(Default)]
struct Drops(Cell<usize>);

impl RequestObserver for Drops {
    fn finished(&self, _: &str, _: &str, _: Option<u16>) {}

    fn request_scheduler(&self, _: ClusterLabel, _: usize, _: usize, _: usize) {}

    fn event_dropped(&self) {
        self.0.set(self.0.get() + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn event_queue_and_memory_are_bounded_and_drops_are_counted() {
    let server = accepting();
    let drops = Rc::new(Drops::default());
    let recorder = Recorder::new(&server.cluster_with(Fence::open(), drops.clone()), "me");

    for index in 0..QUEUED + 5 {
        recorder.normal(&regarding(&format!("first-{index}")), "R", "m");
    }
    assert_eq!((recorder.waiting(), drops.0.get()), (QUEUED, 5));

    for round in 0..6 {
        recorder.flush(Deadline::after(REQUEST)).await;
        for index in 0..QUEUED {
            recorder.normal(&regarding(&format!("{round}-{index}")), "R", "m");
            recorder.normal(&regarding("always"), "R", "m");
        }
    }
    let notebook = recorder.shared.notebook.borrow();
    assert!(notebook.entries.len() <= REMEMBERED, "{}", notebook.entries.len());
    assert!(notebook.uses.len() <= 2 * REMEMBERED);
    assert!(notebook.entries.keys().any(|subject| subject.regarding.name == "always"));
}

/// One object cannot take the room of the others: its own oldest Events make room.
#[tokio::test(start_paused = true)]
async fn event_queue_has_room_for_all_objects_while_one_has_many_events() {
    let server = accepting();
    let drops = Rc::new(Drops::default());
    let recorder = Recorder::new(&server.cluster_with(Fence::open(), drops.clone()), "me");

    for index in 0..QUEUED {
        recorder.warning(&regarding("noisy"), "R", &format!("{index}"));
    }
    for index in 0..QUEUED - QUEUED_OF_ONE {
        recorder.normal(&regarding(&format!("quiet-{index}")), "R", "m");
    }

    assert_eq!((recorder.waiting(), drops.0.get()), (QUEUED, QUEUED - QUEUED_OF_ONE));
    recorder.flush(Deadline::after(REQUEST)).await;
    let noisy = server.requests().into_iter().filter(|seen| seen.body["involvedObject"]["name"] == "noisy");
    let texts: Vec<_> = noisy.map(|seen| seen.body["message"].as_str().unwrap().to_owned()).collect();
    let newest: Vec<_> = (QUEUED - QUEUED_OF_ONE..QUEUED).map(|index| index.to_string()).collect();
    assert_eq!(texts, newest);
}

#[tokio::test(start_paused = true)]
async fn event_about_an_object_is_awaited_in_vain_no_longer_than_the_deadline() {
    let server = Server::new(|_| Reply::Late(Duration::from_secs(100), Reply::Broken.into()));
    let recorder = Recorder::new(&server.cluster(), "me");

    with_task(&recorder, async {
        let started = Instant::now();
        recorder.written(&regarding("a"), Deadline::after(Duration::from_secs(1))).await;
        assert_eq!(started.elapsed(), Duration::ZERO);

        recorder.normal(&regarding("b"), "R", "m");
        recorder.written(&regarding("a"), Deadline::after(Duration::from_secs(1))).await;
        assert_eq!(started.elapsed(), Duration::ZERO);

        recorder.written(&regarding("b"), Deadline::after(Duration::from_secs(1))).await;
        assert_eq!(started.elapsed(), Duration::from_secs(1));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn event_about_an_object_is_awaited_until_the_server_has_it() {
    for status_code in [201, 403] {
        let server =
            Server::new(move |seen| if status_code == 201 { accepted(seen) } else { status(403, "Forbidden", "no") });
        let recorder = Recorder::new(&server.cluster(), "me");

        with_task(&recorder, async {
            recorder.normal(&regarding("b"), "R", "m");
            recorder.normal(&regarding("a"), "R", "m");
            recorder.written(&regarding("a"), Deadline::after(REQUEST)).await;
            assert_eq!(server.requests().len(), 2);

            // A repetition waits for its time, and nobody waits for it.
            recorder.normal(&regarding("a"), "R", "m");
            recorder.written(&regarding("a"), Deadline::after(REQUEST)).await;
            let sent_again = if status_code == 201 { 2 } else { 3 };
            assert_eq!(server.requests().len(), sent_again);
        })
        .await;
    }
}
