use std::{
    pin::{Pin, pin},
    sync::atomic::{AtomicU64, Ordering},
};

use futures::{FutureExt, StreamExt};
use kit::{Activity, Role, StatusRegistry};
use serde_json::{Value, json};
use tokio::time::advance;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    dashboard::{
        hub::{FIGURES_INTERVAL, LOOK_INTERVAL, MOST_BYTES, MOST_EVENTS, WHOLE_LOOK_INTERVAL},
        shown::shown,
        streams::Streams,
    },
    figures::{Figures, ServedWebhooks, WebhookFigures},
};

fn feed(status_registry: &StatusRegistry) -> Arc<Feed> {
    Arc::new(Feed::new(shown(status_registry)))
}

fn permit() -> StreamPermit {
    Streams::within(1, CancellationToken::new()).begin(None, Instant::now(), || {}).unwrap()
}

type Events = Pin<Box<dyn Stream<Item = Result<Bytes, Infallible>>>>;

/// A stream after its greeting.
async fn stream(feed: &Arc<Feed>) -> Events {
    let mut stream = Box::pin(events(feed.clone(), permit()));
    assert_eq!(stream.next().await.unwrap().unwrap(), "retry: 2000\n\n");
    stream
}

fn decoded(bytes: &Bytes) -> Vec<(String, Value)> {
    let text = std::str::from_utf8(bytes).unwrap();
    let events = text.split_terminator("\n\n").map(|event| {
        let (name, data) = event.strip_prefix("event: ").and_then(|event| event.split_once("\ndata: ")).expect(text);
        (name.to_owned(), serde_json::from_str(data).unwrap())
    });
    events.collect()
}

/// The next event, in as many pieces as it comes.
async fn next(stream: &mut Events) -> (String, Value) {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\n\n") {
        bytes.extend_from_slice(&stream.next().await.unwrap().unwrap());
    }
    let mut events = decoded(&bytes.into());
    assert_eq!(events.len(), 1, "{events:?}");
    events.remove(0)
}

async fn all(feed: &Feed) -> Value {
    let pieces: Vec<_> = actors(feed, permit()).map(Result::unwrap).collect().await;
    serde_json::from_slice(&pieces.concat()).unwrap()
}

fn paths(document: &Value) -> Vec<&str> {
    document["actors"].as_array().unwrap().iter().map(|row| row["path"].as_str().unwrap()).collect()
}

fn change(cell: &kit::Cell) {
    cell.update(Timestamp::UNIX_EPOCH, |state| state.finished += 1);
}

#[tokio::test]
async fn actors_are_one_document_with_whole_texts() {
    let status_registry = StatusRegistry::default();
    let cell = status_registry.enter("a/b", Role::Object);
    cell.update(Timestamp::UNIX_EPOCH, |state| {
        state.activity = Activity::Failing;
        state.last_error = Some((Timestamp::UNIX_EPOCH, "line\nbreak".to_owned()));
        state.line = "x".repeat(300);
    });

    let document = all(&feed(&status_registry)).await;

    assert_eq!((&document["version"], &document["now"]), (&json!(2), &json!("1970-01-01T00:00:00Z")));
    let process = json!({
        "name": "grm", "version": "v1", "host": "pod-0", "started": "1970-01-01T00:00:00Z", "leadership": "standby",
        "leader": "pod-1_x",
    });
    assert_eq!(document["process"], process);
    let actor = &document["actors"][0];
    assert_eq!((&actor["path"], &actor["activity"]), (&json!("a/b"), &json!("failing")));
    assert_eq!(actor["lastError"][1], "line\nbreak");
    assert_eq!(actor["line"].as_str().unwrap().len(), 300);
}

#[tokio::test(start_paused = true)]
async fn event_stream_begins_with_a_snapshot_and_goes_on_with_changes() {
    let status_registry = StatusRegistry::default();
    let [a, _b] = ["a", "b"].map(|path| status_registry.enter(path, Role::Object));
    let feed = feed(&status_registry);
    let mut stream = stream(&feed).await;

    let (name, snapshot) = next(&mut stream).await;
    assert_eq!((name.as_str(), paths(&snapshot)), ("snapshot", vec!["a", "b"]));
    assert_eq!((&snapshot["version"], &snapshot["config"]), (&json!(2), &json!("kind: Config\n")));
    assert_eq!(snapshot["figures"]["views"], json!(["actors"]));
    assert_eq!(snapshot["process"]["leader"], "pod-1_x");
    assert!(stream.next().now_or_never().is_none(), "nothing changed");

    advance(Duration::from_secs(5)).await;
    change(&a);
    status_registry.leave("b");
    let start = Instant::now();
    let (name, changes) = next(&mut stream).await;

    assert!(start.elapsed() <= TICK, "a change after a rest is reported at once");
    assert_eq!((name.as_str(), paths(&changes), &changes["gone"]), ("changes", vec!["a"], &json!(["b"])));
    assert_eq!((&changes["version"], changes.get("process")), (&json!(4), None));
    assert_eq!(changes["actors"][0]["finished"], 1);
}

#[tokio::test(start_paused = true)]
async fn event_stream_reports_another_leader() {
    let leader = Arc::new(Mutex::new(None::<Arc<str>>));
    let known = leader.clone();
    let shown = Shown { leader: Arc::new(move || known.lock().unwrap().clone()), ..shown(&StatusRegistry::default()) };
    let mut stream = stream(&Arc::new(Feed::new(shown))).await;
    assert_eq!(next(&mut stream).await.1["process"].get("leader"), None);

    *leader.lock().unwrap() = Some("pod-2".into());

    let (name, changes) = next(&mut stream).await;
    assert_eq!((name.as_str(), &changes["process"]["leader"], paths(&changes)), ("changes", &json!("pod-2"), vec![]));
}

#[tokio::test(start_paused = true)]
async fn event_stream_sends_figures_if_they_differ_and_every_two_seconds_at_most() {
    let total = Arc::new(AtomicU64::new(0));
    let counted = total.clone();
    let figures = move |_| {
        let total = counted.load(Ordering::Relaxed);
        let webhook = WebhookFigures { path: "/w".to_owned(), per_second: 0.0, total, errors: 0, p50: None, p99: None };
        Figures { served: ServedWebhooks { webhooks: vec![webhook], certificate: None }, ..Figures::default() }
    };
    let shown = Shown { figures: Arc::new(figures), ..shown(&StatusRegistry::default()) };
    let mut stream = stream(&Arc::new(Feed::new(shown))).await;
    next(&mut stream).await;
    for _ in 0..100 {
        advance(TICK).await;
        assert!(stream.next().now_or_never().is_none(), "the figures are the same");
    }

    let mut events = Vec::new();
    for _ in 0..100 {
        total.fetch_add(1, Ordering::Relaxed);
        advance(TICK).await;
        events.extend(stream.next().now_or_never().map(|bytes| decoded(&bytes.unwrap().unwrap()).remove(0)));
    }

    let most = 5_000 / FIGURES_INTERVAL.as_millis() as usize + 1;
    assert!((2..=most).contains(&events.len()), "{}", events.len());
    assert!(events.iter().all(|(name, _)| name == "figures"));
    let rate = events.last().unwrap().1["figures"]["webhooks"][0]["perSecond"].as_f64().unwrap();
    assert!(rate > 5.0, "{rate}");
}

#[tokio::test(start_paused = true)]
async fn event_stream_sends_changes_at_most_twenty_times_a_second() {
    let status_registry = StatusRegistry::default();
    let cell = status_registry.enter("a", Role::Root);
    let mut stream = stream(&feed(&status_registry)).await;
    next(&mut stream).await;

    let mut events = 0;
    for _ in 0..100 {
        cell.update(Timestamp::UNIX_EPOCH, |state| state.restarts += 1);
        advance(Duration::from_millis(10)).await;
        events += usize::from(stream.next().now_or_never().is_some());
    }

    assert!((15..=20).contains(&events), "{events}");
}

#[tokio::test(start_paused = true)]
async fn event_stream_tells_once_a_second_what_actors_did() {
    let status_registry = StatusRegistry::default();
    let cells: Vec<_> = (0..1000).map(|number| status_registry.enter(format!("a/{number}"), Role::Object)).collect();
    let mut stream = stream(&feed(&status_registry)).await;
    next(&mut stream).await;

    let mut events = 0;
    for cell in &cells {
        change(cell);
        advance(Duration::from_millis(10)).await;
        events += usize::from(stream.next().now_or_never().is_some());
    }

    assert!((8..=10).contains(&events), "{events}");
}

#[tokio::test(start_paused = true)]
async fn event_stream_without_changes_sends_a_comment_each_fifteen_seconds() {
    let mut stream = stream(&feed(&StatusRegistry::default())).await;
    next(&mut stream).await;
    let start = Instant::now();

    let comment = stream.next().await.unwrap().unwrap();

    assert_eq!(comment, Bytes::from_static(b": still here\n\n"));
    assert!(start.elapsed() >= KEEP_ALIVE && start.elapsed() <= KEEP_ALIVE + TICK);
}

#[tokio::test(start_paused = true)]
async fn event_stream_ends_when_the_server_stops() {
    let stop = CancellationToken::new();
    let permit = Streams::within(1, stop.clone()).begin(None, Instant::now(), || {}).unwrap();
    let mut stream = pin!(events(feed(&StatusRegistry::default()), permit));
    stream.next().await;

    stop.cancel();

    assert!(stream.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn event_streams_share_the_rendering_of_changes() {
    let status_registry = StatusRegistry::default();
    let cell = status_registry.enter("a", Role::Root);
    let feed = feed(&status_registry);
    let (mut first, mut second) = (stream(&feed).await, stream(&feed).await);
    next(&mut first).await;
    next(&mut second).await;

    advance(LOOK_INTERVAL).await;
    change(&cell);
    let changes = [first.next().await.unwrap().unwrap(), second.next().await.unwrap().unwrap()];

    assert_eq!(changes[0].as_ptr(), changes[1].as_ptr());
}

#[tokio::test(start_paused = true)]
async fn event_stream_of_a_slow_viewer_has_each_change_or_begins_anew() {
    let status_registry = StatusRegistry::default();
    let cell = status_registry.enter("a", Role::Root);
    let feed = feed(&status_registry);
    let (mut slow, mut fast) = (stream(&feed).await, stream(&feed).await);
    next(&mut slow).await;
    next(&mut fast).await;
    let mut make = async |events: usize| {
        for _ in 0..events {
            advance(LOOK_INTERVAL).await;
            change(&cell);
            next(&mut fast).await;
        }
    };

    make(3).await;
    for expected in 1..=3 {
        let (name, changes) = next(&mut slow).await;
        assert_eq!((name.as_str(), &changes["actors"][0]["finished"]), ("changes", &json!(expected)));
    }
    make(MOST_EVENTS + 1).await;
    let (name, snapshot) = next(&mut slow).await;
    let expected = json!(MOST_EVENTS + 4);
    assert_eq!((name.as_str(), &snapshot["actors"][0]["finished"]), ("snapshot", &expected));
    assert!(slow.next().now_or_never().is_none(), "the snapshot has everything");
}

#[tokio::test(start_paused = true)]
async fn event_streams_keep_a_bounded_number_of_bytes() {
    let status_registry = StatusRegistry::default();
    let cells: Vec<_> = (0..10_000).map(|number| status_registry.enter(format!("a/{number}"), Role::Object)).collect();
    let feed = feed(&status_registry);
    let mut stream = stream(&feed).await;
    next(&mut stream).await;
    let line = "x".repeat(250);

    advance(LOOK_INTERVAL).await;
    for cell in &cells {
        cell.update(Timestamp::UNIX_EPOCH, |state| state.line.clone_from(&line));
    }

    let (name, snapshot) = next(&mut stream).await;
    assert!(snapshot.to_string().len() > MOST_BYTES);
    assert_eq!(name, "snapshot", "so many changes are not kept");
    assert!(stream.next().now_or_never().is_none());
}

/// What is read of a snapshot before a change may be older, and what is read after it newer than the next event.
#[tokio::test(start_paused = true)]
async fn event_stream_loses_no_change_that_comes_while_its_snapshot_is_read() {
    let status_registry = StatusRegistry::default();
    let cells: Vec<_> = (0..1000).map(|number| status_registry.enter(format!("a/{number:04}"), Role::Object)).collect();
    let feed = feed(&status_registry);
    let mut stream = stream(&feed).await;
    let mut bytes = stream.next().await.unwrap().unwrap().to_vec();

    for cell in [&cells[0], &cells[999]] {
        change(cell);
    }
    status_registry.leave("a/0001");
    status_registry.leave("a/0998");
    status_registry.enter("b", Role::Object);
    while !bytes.ends_with(b"\n\n") {
        bytes.extend_from_slice(&stream.next().await.unwrap().unwrap());
    }
    let snapshot = &decoded(&bytes.into())[0].1;
    advance(WHOLE_LOOK_INTERVAL).await;
    let (_, changes) = next(&mut stream).await;

    let finished = |document: &Value, path| {
        let row = document["actors"].as_array().unwrap().iter().find(|row| row["path"] == path).cloned();
        row.map(|row| row["finished"].as_u64().unwrap_or_default())
    };
    assert_eq!((finished(snapshot, "a/0000"), finished(&changes, "a/0000")), (Some(0), Some(1)));
    assert_eq!((finished(snapshot, "a/0999"), finished(&changes, "a/0999")), (Some(1), Some(1)));
    assert_eq!((finished(snapshot, "a/0998"), finished(snapshot, "b")), (None, None));
    assert_eq!(changes["gone"], json!(["a/0001", "a/0998"]));
    assert_eq!(finished(&changes, "b"), Some(0));
}

#[tokio::test(start_paused = true)]
async fn feed_keeps_nothing_without_a_viewer() {
    let status_registry = StatusRegistry::default();
    let feed = feed(&status_registry);
    assert!(!feed.has_hub());
    let (mut first, second) = (stream(&feed).await, stream(&feed).await);
    next(&mut first).await;
    assert!(feed.has_hub());

    drop(second);
    assert!(feed.has_hub());
    drop(first);

    assert!(!feed.has_hub());
    assert_eq!(next(&mut stream(&feed).await).await.0, "snapshot");
}

/// A large program: the first picture, and what a change costs.
#[tokio::test]
async fn feed_renders_ten_thousand_actors_in_less_than_a_second() {
    let status_registry = StatusRegistry::default();
    let cells: Vec<_> = (0..10_000)
        .map(|number| {
            let cell = status_registry.enter(format!("managedresource/shoot--a--b/bundle-{number}"), Role::Object);
            cell.update(Timestamp::UNIX_EPOCH, |state| state.line = "20 objects, applied".to_owned());
            cell
        })
        .collect();
    let feed = feed(&status_registry);
    let mut stream = stream(&feed).await;

    let (start, mut bytes) = (Instant::now(), 0);
    while let Some(piece) = stream.next().now_or_never() {
        bytes += piece.unwrap().unwrap().len();
    }
    let snapshot = start.elapsed();
    let mut hub = feed.viewers();
    let hub = hub.hub.as_mut().unwrap();
    cells.iter().step_by(1000).for_each(change);
    let start = Instant::now();
    hub.look(start + WHOLE_LOOK_INTERVAL);
    let changes = start.elapsed();

    println!("10000 actors: the snapshot has {bytes} bytes and takes {snapshot:?}, 10 changes take {changes:?}");
    assert!(snapshot < Duration::from_secs(1) && changes < Duration::from_millis(100));
}
