//! What all viewers of the dashboard share: the last look at the status registry, and the events of the recent past,
//! each rendered once. There is a hub as long as there is a viewer. It works when a viewer asks. Snapshots are not shared:
//! each viewer reads its own, as fast as it can.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use jiff::Timestamp;
use kit::{ActorState, Follower, RegistryChanges};
use serde::Serialize;
use tokio::time::Instant;

use super::{
    document::{Document, render},
    row::Row,
    shown::{Shown, ShownProcess},
};
use crate::figures::{Figures, Rates};

/// Shortest time between two looks, so that viewers get events at most twenty times a second.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// A look that takes long delays the next one by this many times its duration: looks take at most a tenth of a core.
const REST: u32 = 9;
/// Longest such delay.
const MOST_DELAY: Duration = Duration::from_secs(2);

/// Shortest time between two looks at what does not matter at once: what actors do, and how often they did it. Without
/// this, each health check of a landscape at rest is an event of its own.
pub(super) const WHOLE_LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Shortest time between two events with figures.
pub(super) const FIGURES_INTERVAL: Duration = Duration::from_secs(2);

/// Events that are kept for slow viewers, by number and by bytes. A viewer that is further behind gets a snapshot.
pub(super) const MOST_EVENTS: usize = 600;
pub(super) const MOST_BYTES: usize = 2 * 1024 * 1024;

/// Where a viewer is in the stream: the number of its next event.
pub(super) type Position = u64;

/// What a viewer gets next.
pub(super) enum News {
    Event(Bytes),
    /// The viewer is new or too far behind.
    Snapshot(Document),
}

pub(super) struct Hub {
    shown: Arc<Shown>,
    follower: Follower,
    process: ShownProcess,
    figures: Figures,
    rates: Rates,
    looked: Instant,
    /// When the last look was at everything.
    looked_at_all: Instant,
    /// Shortest time until the next look.
    delay: Duration,
    figured: Instant,
    /// Recent events, the oldest first.
    events: VecDeque<Bytes>,
    bytes: usize,
    /// The number of the first of them.
    first: Position,
}

/// The head of a snapshot.
#[derive(Serialize)]
struct SnapshotHead<'a> {
    version: u64,
    now: Timestamp,
    process: &'a ShownProcess,
    figures: &'a Figures,
    config: &'a str,
}

#[derive(Serialize)]
struct ChangesDocument<'a> {
    version: u64,
    now: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<&'a ShownProcess>,
    actors: Vec<Row<'a>>,
    gone: &'a [Arc<str>],
}

#[derive(Serialize)]
struct FiguresDocument<'a> {
    now: Timestamp,
    figures: &'a Figures,
}

impl Hub {
    /// Looks from the present state of the registry on.
    pub(super) fn new(shown: Arc<Shown>, now: Instant) -> Self {
        let mut hub = Self {
            follower: Follower::new(shown.status_registry.clone()),
            process: shown.process(),
            figures: shown.figures(now),
            rates: Rates::default(),
            looked: now,
            looked_at_all: now,
            delay: LOOK_INTERVAL,
            figured: now,
            events: VecDeque::new(),
            bytes: 0,
            first: 0,
            shown,
        };
        hub.rates.set(&mut hub.figures, now);
        hub
    }

    /// Looks what is new, if the last look is long enough ago.
    pub(super) fn look(&mut self, now: Instant) {
        if now.saturating_duration_since(self.looked) < self.delay {
            return;
        }
        let begin = Instant::now();
        let changes = if now.saturating_duration_since(self.looked_at_all) < WHOLE_LOOK_INTERVAL {
            self.follower.look_for_headlines()
        } else {
            self.looked_at_all = now;
            self.follower.look()
        };
        let process = Some(self.shown.process()).filter(|process| *process != self.process);
        let mut news = Vec::new();
        if changes.is_some() || process.is_some() {
            self.looked = now;
            self.process = process.clone().unwrap_or_else(|| self.process.clone());
            self.render_changes(&changes.unwrap_or_else(|| self.nothing()), process.as_ref(), &mut news);
        }
        if now.saturating_duration_since(self.figured) >= FIGURES_INTERVAL {
            self.figured = now;
            let mut figures = self.shown.figures(now);
            self.rates.set(&mut figures, now);
            if figures != self.figures {
                self.looked = now;
                self.figures = figures;
                write_event("figures", &FiguresDocument { now: self.shown.now(), figures: &self.figures }, &mut news);
            }
        }
        if !news.is_empty() {
            self.keep(news.into());
            self.delay = (begin.elapsed() * REST).clamp(LOOK_INTERVAL, MOST_DELAY);
        }
    }

    /// Returns what a viewer gets next, `None` if it has everything.
    pub(super) fn next(&mut self, position: &mut Option<Position>) -> Option<News> {
        let ahead = position.and_then(|next| next.checked_sub(self.first));
        let Some(ahead) = ahead else { return Some(News::Snapshot(self.snapshot(position))) };
        let event = self.events.get(usize::try_from(ahead).ok()?)?.clone();
        *position = Some(self.first + ahead + 1);
        Some(News::Event(event))
    }

    /// The events after it may repeat what its rows show.
    fn snapshot(&mut self, position: &mut Option<Position>) -> Document {
        *position = Some(self.first + self.events.len() as u64);
        let head = SnapshotHead {
            version: self.shown.status_registry.version(),
            now: self.shown.now(),
            process: &self.process,
            figures: &self.figures,
            config: &self.shown.config,
        };
        let parts = ("event: snapshot\ndata: ", &head, "]}\n\n");
        let write_row = |actor: &ActorState, piece: &mut Vec<u8>| render(&Row::short(actor), piece);
        Document::new(self.shown.status_registry.clone(), self.shown.status_registry.paths(), write_row, parts)
    }

    fn render_changes(&self, changes: &RegistryChanges, process: Option<&ShownProcess>, news: &mut Vec<u8>) {
        let document = ChangesDocument {
            version: changes.version,
            now: self.shown.now(),
            process,
            actors: changes.changed.iter().map(Row::short).collect(),
            gone: &changes.gone,
        };
        write_event("changes", &document, news);
    }

    fn nothing(&self) -> RegistryChanges {
        RegistryChanges { version: self.follower.version(), changed: Vec::new(), gone: Vec::new() }
    }

    fn keep(&mut self, event: Bytes) {
        self.bytes += event.len();
        self.events.push_back(event);
        while self.events.len() > MOST_EVENTS || self.bytes > MOST_BYTES {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes -= oldest.len();
            self.first += 1;
        }
    }
}

fn write_event(name: &str, document: &impl Serialize, events: &mut Vec<u8>) {
    events.extend_from_slice(format!("event: {name}\ndata: ").as_bytes());
    render(document, events);
    events.extend_from_slice(b"\n\n");
}
