//! Data for the dashboard's page: the status registry as JSON, once or as a stream of server-sent events.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures::Stream;
use jiff::Timestamp;
use kit::{ActorState, StatusRegistry};
use serde::Serialize;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use super::streams::StreamPermit;

/// Shortest time between two events of a stream, so at most 4 per second.
pub(super) const EVENT_INTERVAL: Duration = Duration::from_millis(250);

/// A stream without events sends a comment after this time, so that a closed connection is noticed.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

const RECONNECT: &str = "retry: 2000\n";

/// Whether this process leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Leadership {
    /// It holds the lease and runs its controllers.
    Leading,
    /// Another process holds the lease.
    Standby,
    /// There is no leader election; controllers run.
    Unneeded,
}

/// The process in the dashboard's header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessInfo {
    /// Name of the program.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Host or pod name.
    pub host: String,
    /// Start time.
    pub started: Timestamp,
}

/// Returns the current leadership; must return at once.
pub type LeadershipFn = Arc<dyn Fn() -> Leadership + Send + Sync>;

/// Returns the wall time.
pub type NowFn = Arc<dyn Fn() -> Timestamp + Send + Sync>;

pub(super) struct Snapshots {
    pub(super) status_registry: StatusRegistry,
    pub(super) process: ProcessInfo,
    pub(super) leadership: LeadershipFn,
    pub(super) now: NowFn,
    latest: Mutex<Option<Rendered>>,
}

/// An event is sent when this changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PageState {
    version: u64,
    leadership: Leadership,
}

struct Rendered {
    state: PageState,
    at: Instant,
    json: Bytes,
}

#[derive(Serialize)]
struct StatusDocument<'a> {
    version: u64,
    now: Timestamp,
    process: Process<'a>,
    actors: Vec<ActorState>,
}

#[derive(Serialize)]
struct Process<'a> {
    #[serde(flatten)]
    info: &'a ProcessInfo,
    leadership: Leadership,
}

struct Reader {
    snapshots: Arc<Snapshots>,
    sent: Option<PageState>,
    last_write: Instant,
    ticks: Interval,
    permit: StreamPermit,
}

impl Snapshots {
    pub(super) fn new(
        status_registry: StatusRegistry,
        process: ProcessInfo,
        leadership: LeadershipFn,
        now: NowFn,
    ) -> Self {
        Self { status_registry, process, leadership, now, latest: Mutex::new(None) }
    }

    pub(super) fn json(&self) -> Bytes {
        self.json_of(self.state())
    }

    fn state(&self) -> PageState {
        PageState { version: self.status_registry.version(), leadership: (self.leadership)() }
    }

    /// `state` is read before the snapshot is taken: a change in between causes one more event, never a lost one.
    fn json_of(&self, state: PageState) -> Bytes {
        let now = Instant::now();
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(latest) = latest.as_ref()
            && latest.state == state
            && now.saturating_duration_since(latest.at) < EVENT_INTERVAL
        {
            return latest.json.clone();
        }
        let json = self.render(state);
        *latest = Some(Rendered { state, at: now, json: json.clone() });
        json
    }

    fn render(&self, state: PageState) -> Bytes {
        let document = StatusDocument {
            version: state.version,
            now: (self.now)(),
            process: Process { info: &self.process, leadership: state.leadership },
            actors: self.status_registry.snapshot(),
        };
        match serde_json::to_vec(&document) {
            Ok(json) => json.into(),
            Err(error) => {
                tracing::error!(%error, "Could not render the status registry");
                Bytes::from_static(b"{}")
            }
        }
    }
}

/// Server-sent events: one now, one after each change (at most one per [`EVENT_INTERVAL`]), and comments
/// ([`KEEP_ALIVE`]). An event is made when the connection takes it: a slow reader misses states but costs no memory.
pub(super) fn events(snapshots: Arc<Snapshots>, permit: StreamPermit) -> impl Stream<Item = Result<Bytes, Infallible>> {
    let mut ticks = interval(EVENT_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let reader = Reader { snapshots, sent: None, last_write: Instant::now(), ticks, permit };
    futures::stream::unfold(reader, |mut reader| async {
        let event = reader.next().await?;
        Some((Ok(event), reader))
    })
}

impl Reader {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            tokio::select! {
                biased;
                () = self.permit.end.cancelled() => return None,
                now = self.ticks.tick() => if let Some(bytes) = self.due(now) {
                    self.last_write = now;
                    return Some(bytes);
                }
            }
        }
    }

    fn due(&mut self, now: Instant) -> Option<Bytes> {
        let state = self.snapshots.state();
        if self.sent != Some(state) {
            let first = self.sent.replace(state).is_none();
            return Some(event(&self.snapshots.json_of(state), first));
        }
        let quiet = now.saturating_duration_since(self.last_write);
        (quiet >= KEEP_ALIVE).then(|| Bytes::from_static(b": still here\n\n"))
    }
}

fn event(json: &Bytes, first: bool) -> Bytes {
    let mut event = Vec::with_capacity(json.len() + 64);
    if first {
        event.extend_from_slice(RECONNECT.as_bytes());
    }
    event.extend_from_slice(b"event: actors\ndata: ");
    event.extend_from_slice(json);
    event.extend_from_slice(b"\n\n");
    event.into()
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::{FutureExt, StreamExt};
    use kit::{Activity, Role};
    use tokio::time::advance;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::dashboard::streams::Streams;

    fn snapshots(status_registry: &StatusRegistry) -> Arc<Snapshots> {
        let process = ProcessInfo {
            name: "grm".to_owned(),
            version: "v1".to_owned(),
            host: "pod-0".to_owned(),
            started: Timestamp::UNIX_EPOCH,
        };
        Arc::new(Snapshots::new(
            status_registry.clone(),
            process,
            Arc::new(|| Leadership::Standby),
            Arc::new(|| Timestamp::UNIX_EPOCH),
        ))
    }

    fn permit() -> StreamPermit {
        Streams::within(1, CancellationToken::new()).begin(|| {})
    }

    #[test]
    fn snapshot_is_one_document() {
        let status_registry = StatusRegistry::default();
        let cell = status_registry.enter("a/b", Role::Object);
        cell.update(Timestamp::UNIX_EPOCH, |state| {
            state.activity = Activity::Failing;
            state.last_error = Some((Timestamp::UNIX_EPOCH, "line\nbreak".to_owned()));
        });

        let document: serde_json::Value = serde_json::from_slice(&snapshots(&status_registry).json()).unwrap();

        assert_eq!(document["version"], 2);
        assert_eq!(document["now"], "1970-01-01T00:00:00Z");
        assert_eq!(
            document["process"],
            serde_json::json!({
                "name": "grm", "version": "v1", "host": "pod-0", "started": "1970-01-01T00:00:00Z", "leadership": "standby"
            })
        );
        assert_eq!(document["actors"][0]["path"], "a/b");
        assert_eq!(document["actors"][0]["activity"], "failing");
        assert_eq!(document["actors"][0]["lastError"][1], "line\nbreak");
    }

    #[tokio::test(start_paused = true)]
    async fn event_stream_sends_a_snapshot_at_once_and_after_each_change() {
        let status_registry = StatusRegistry::default();
        let mut stream = pin!(events(snapshots(&status_registry), permit()));

        let first = stream.next().await.unwrap().unwrap();
        let at_rest = stream.next().now_or_never();
        status_registry.enter("a", Role::Root);
        let start = Instant::now();
        let second = stream.next().await.unwrap().unwrap();

        assert!(first.starts_with(b"retry: 2000\nevent: actors\ndata: {\"version\":0,"));
        assert!(at_rest.is_none());
        assert!(second.starts_with(b"event: actors\ndata: {\"version\":1,"));
        assert!(second.ends_with(b"}\n\n"));
        assert!(start.elapsed() <= EVENT_INTERVAL);
    }

    #[tokio::test(start_paused = true)]
    async fn event_stream_sends_at_most_four_events_a_second() {
        let status_registry = StatusRegistry::default();
        let cell = status_registry.enter("a", Role::Root);
        let mut stream = pin!(events(snapshots(&status_registry), permit()));

        let mut events = 0;
        for _ in 0..100 {
            cell.update(Timestamp::UNIX_EPOCH, |state| state.finished += 1);
            advance(Duration::from_millis(10)).await;
            events += usize::from(stream.next().now_or_never().is_some());
        }

        assert!((4..=5).contains(&events), "{events}");
    }

    #[tokio::test(start_paused = true)]
    async fn event_stream_without_changes_sends_a_comment_each_fifteen_seconds() {
        let mut stream = pin!(events(snapshots(&StatusRegistry::default()), permit()));
        stream.next().await;
        let start = Instant::now();

        let comment = stream.next().await.unwrap().unwrap();

        assert_eq!(comment, Bytes::from_static(b": still here\n\n"));
        assert_eq!(start.elapsed(), KEEP_ALIVE);
    }

    #[tokio::test(start_paused = true)]
    async fn event_stream_ends_when_the_server_stops() {
        let stop = CancellationToken::new();
        let permit = Streams::within(1, stop.clone()).begin(|| {});
        let mut stream = pin!(events(snapshots(&StatusRegistry::default()), permit));
        stream.next().await;

        stop.cancel();

        assert!(stream.next().await.is_none());
    }

    #[test]
    fn event_streams_of_the_same_moment_share_one_rendering() {
        let snapshots = snapshots(&StatusRegistry::default());

        let first = snapshots.json();
        let second = snapshots.json();

        assert_eq!(first.as_ptr(), second.as_ptr());
    }
}
