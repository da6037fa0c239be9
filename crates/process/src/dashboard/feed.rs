//! Data for the dashboard's page: the status registry as JSON, once or as a stream of server-sent events.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures::Stream;
use jiff::Timestamp;
use serde::Serialize;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use super::{
    hub::{Hub, LOOK_INTERVAL, Position},
    row::Row,
    shown::{Shown, ShownProcess},
    streams::StreamPermit,
};

/// How often a stream at rest compares the version of the status registry. A change waits at most this long for a look.
const TICK: Duration = Duration::from_millis(50);

/// A stream without events sends a comment after this time, so that a closed connection is noticed.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How long a browser waits before it connects again.
const RECONNECT: &[u8] = b"retry: 2000\n\n";

/// The dashboard's data. Without a viewer it computes and keeps nothing.
pub(super) struct Feed {
    pub(super) shown: Arc<Shown>,
    viewers: Mutex<Viewers>,
    actors: Mutex<Option<Rendered>>,
}

#[derive(Default)]
struct Viewers {
    number: usize,
    /// Exists while there are viewers.
    hub: Option<Hub>,
}

/// The last answer of `dashboard/actors`, for who asks again at once.
struct Rendered {
    version: u64,
    at: Instant,
    json: Bytes,
}

#[derive(Serialize)]
struct ActorsDocument<'a> {
    version: u64,
    now: Timestamp,
    process: &'a ShownProcess,
    actors: Vec<Row<'a>>,
}

/// A stream, as long as its connection lives.
struct Viewer {
    feed: Arc<Feed>,
    is_greeted: bool,
    position: Option<Position>,
    last_write: Instant,
    ticks: Interval,
    permit: StreamPermit,
}

impl Feed {
    pub(super) fn new(shown: Shown) -> Self {
        Self { shown: Arc::new(shown), viewers: Mutex::default(), actors: Mutex::default() }
    }

    /// Returns all actors with whole texts. Answers within [`LOOK_INTERVAL`] share a rendering.
    pub(super) fn actors(&self) -> Bytes {
        let (now, version) = (Instant::now(), self.shown.status_registry.version());
        let mut latest = self.actors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(latest) = latest.as_ref()
            && latest.version == version
            && now.saturating_duration_since(latest.at) < LOOK_INTERVAL
        {
            return latest.json.clone();
        }
        let actors = self.shown.status_registry.snapshot();
        let document = ActorsDocument {
            version,
            now: self.shown.now(),
            process: &self.shown.process(),
            actors: actors.iter().map(Row::whole).collect(),
        };
        let json: Bytes = render(&document).into();
        *latest = Some(Rendered { version, at: now, json: json.clone() });
        json
    }

    fn viewers(&self) -> MutexGuard<'_, Viewers> {
        self.viewers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn has_hub(&self) -> bool {
        self.viewers().hub.is_some()
    }
}

/// Renders a document, an empty one if that fails.
pub(super) fn render(document: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(document).unwrap_or_else(|error| {
        tracing::error!(%error, "Could not render the dashboard");
        b"{}".to_vec()
    })
}

/// Server-sent events: a snapshot now, changes and figures as they come, and comments ([`KEEP_ALIVE`]). The connection
/// takes an event when it has sent the one before. A slow viewer costs no memory: if it is too far behind, it gets
/// another snapshot.
pub(super) fn events(feed: Arc<Feed>, permit: StreamPermit) -> impl Stream<Item = Result<Bytes, Infallible>> {
    futures::stream::unfold(Viewer::new(feed, permit), |mut viewer| async {
        let event = viewer.next().await?;
        Some((Ok(event), viewer))
    })
}

impl Viewer {
    fn new(feed: Arc<Feed>, permit: StreamPermit) -> Self {
        feed.viewers().number += 1;
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { feed, is_greeted: false, position: None, last_write: Instant::now(), ticks, permit }
    }

    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.is_greeted, true) {
            return Some(Bytes::from_static(RECONNECT));
        }
        loop {
            if self.permit.end.is_cancelled() {
                return None;
            }
            let now = Instant::now();
            if let Some(bytes) = self.due(now) {
                self.last_write = now;
                return Some(bytes);
            }
            tokio::select! {
                biased;
                () = self.permit.end.cancelled() => return None,
                _ = self.ticks.tick() => {}
            }
        }
    }

    fn due(&mut self, now: Instant) -> Option<Bytes> {
        let mut viewers = self.feed.viewers();
        let hub = viewers.hub.get_or_insert_with(|| Hub::new(self.feed.shown.clone(), now));
        hub.look(now);
        let event = hub.next(&mut self.position, now);
        let is_quiet = now.saturating_duration_since(self.last_write) >= KEEP_ALIVE;
        event.or_else(|| is_quiet.then(|| Bytes::from_static(b": still here\n\n")))
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let mut viewers = self.feed.viewers();
        viewers.number -= 1;
        if viewers.number == 0 {
            viewers.hub = None;
        }
    }
}

#[cfg(test)]
mod tests;
