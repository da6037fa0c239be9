//! Data for the dashboard's page: the status registry as JSON, once or as a stream of server-sent events.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures::{Stream, stream::unfold};
use jiff::Timestamp;
use kit::ActorState;
use serde::Serialize;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use super::{
    document::{Document, render},
    hub::{Hub, News, Position},
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

/// The dashboard's data. Without a reader it computes and keeps nothing.
pub(super) struct Feed {
    pub(super) shown: Arc<Shown>,
    viewers: Mutex<Viewers>,
}

#[derive(Default)]
struct Viewers {
    number: usize,
    /// Exists while there are viewers.
    hub: Option<Hub>,
}

/// The head of the answer of `dashboard/actors`.
#[derive(Serialize)]
struct ActorsHead<'a> {
    version: u64,
    now: Timestamp,
    process: &'a ShownProcess,
}

/// A stream, as long as its connection lives.
struct Viewer {
    feed: Arc<Feed>,
    is_greeted: bool,
    position: Option<Position>,
    /// The rest of a snapshot.
    snapshot: Option<Document>,
    last_write: Instant,
    ticks: Interval,
    permit: StreamPermit,
}

impl Feed {
    pub(super) fn new(shown: Shown) -> Self {
        Self { shown: Arc::new(shown), viewers: Mutex::default() }
    }

    fn viewers(&self) -> MutexGuard<'_, Viewers> {
        self.viewers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn has_hub(&self) -> bool {
        self.viewers().hub.is_some()
    }
}

/// All actors with whole texts.
pub(super) fn actors(feed: &Feed, permit: StreamPermit) -> impl Stream<Item = Result<Bytes, Infallible>> + use<> {
    let registry = &feed.shown.status_registry;
    let head = ActorsHead { version: registry.version(), now: feed.shown.now(), process: &feed.shown.process() };
    let write_row = |actor: &ActorState, piece: &mut Vec<u8>| render(&Row::whole(actor), piece);
    let document = Document::new(registry.clone(), registry.paths(), write_row, ("", &head, "]}"));
    unfold((document, permit), |(mut document, permit)| async {
        permit.note_read(Instant::now());
        let piece = document.next()?;
        Some((Ok(piece), (document, permit)))
    })
}

/// Server-sent events: a snapshot now, changes and figures as they come, and comments ([`KEEP_ALIVE`]). The connection
/// takes an event when it has sent the one before. A slow viewer costs no memory: if it is too far behind, it gets
/// another snapshot.
pub(super) fn events(feed: Arc<Feed>, permit: StreamPermit) -> impl Stream<Item = Result<Bytes, Infallible>> {
    unfold(Viewer::new(feed, permit), |mut viewer| async {
        let event = viewer.next().await?;
        Some((Ok(event), viewer))
    })
}

impl Viewer {
    fn new(feed: Arc<Feed>, permit: StreamPermit) -> Self {
        feed.viewers().number += 1;
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (is_greeted, position, snapshot, last_write) = (false, None, None, Instant::now());
        Self { feed, is_greeted, position, snapshot, last_write, ticks, permit }
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
            self.permit.note_read(now);
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
        if let Some(piece) = self.snapshot.as_mut().and_then(Document::next) {
            return Some(piece);
        }
        self.snapshot = None;
        match self.news(now) {
            Some(News::Event(event)) => Some(event),
            Some(News::Snapshot(document)) => self.snapshot.insert(document).next(),
            None => {
                let is_quiet = now.saturating_duration_since(self.last_write) >= KEEP_ALIVE;
                is_quiet.then(|| Bytes::from_static(b": still here\n\n"))
            }
        }
    }

    fn news(&mut self, now: Instant) -> Option<News> {
        let mut viewers = self.feed.viewers();
        let hub = viewers.hub.get_or_insert_with(|| Hub::new(self.feed.shown.clone(), now));
        hub.look(now);
        hub.next(&mut self.position)
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
