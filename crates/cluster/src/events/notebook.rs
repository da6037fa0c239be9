//! The memory of the recorder: which Events wait to be written, and which are remembered to recognise repetitions.

use std::{
    collections::{BTreeMap, VecDeque},
    rc::Rc,
    time::Duration,
};

use jiff::Timestamp;
use tokio::time::Instant;

use super::subject::{Reference, Subject};

/// Events kept to recognise repetitions: at some hundred bytes each, less than a MiB.
pub(super) const REMEMBERED: usize = 2048;
/// New Events that wait to be written: at a millisecond each, a second's work. A cluster that goes down makes a new Event
/// for each object that depends on it, all at once. Updates of written Events do not count: at most [`REMEMBERED`] wait.
pub(super) const QUEUED: usize = 1024;
/// New Events about one object that wait to be written, so that none takes the room of the others. Newer ones replace
/// the oldest.
pub(super) const QUEUED_OF_ONE: usize = 8;
const ATTEMPTS: u8 = 3; // an Event that cannot be written is tried this often, …
pub(super) const PAUSE: Duration = Duration::from_secs(10); // … with this pause

#[derive(Default)]
pub(super) struct Notebook {
    pub(super) entries: BTreeMap<Rc<Subject>, EventEntry>,
    /// Entries by age of their last use, oldest first; may hold outdated pairs.
    pub(super) uses: VecDeque<(u64, Rc<Subject>)>,
    next_use: u64,
    /// Events that the server does not have.
    new: VecDeque<Rc<Subject>>,
    /// Events with changes that the server has not received yet.
    changed: VecDeque<Rc<Subject>>,
}

pub(super) struct EventEntry {
    /// Name of the Event object; kept over attempts, so that a write of unknown outcome is recognised.
    pub(super) name: Option<String>,
    pub(super) created: Option<Instant>,
    pub(super) count: u32,
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
    noted: Instant,
    used: u64,
    queued: bool,
    failed: u8,
    not_before: Instant,
}

/// How an attempt to write an Event ended.
pub(super) enum Attempt {
    /// The server has the Event's state. The next state is written after this time.
    Done(Duration),
    /// A later attempt may succeed.
    Retriable,
    /// The server refuses the request.
    Refused,
}

impl EventEntry {
    fn new(wall: Timestamp, now: Instant) -> Self {
        Self {
            name: None,
            created: None,
            count: 0,
            first: wall,
            last: wall,
            noted: now,
            used: 0,
            queued: false,
            failed: 0,
            not_before: now,
        }
    }

    /// The next Event gets another name, and the count so far. A creation of unknown outcome keeps its name.
    pub(super) fn forget_object(&mut self) {
        if self.created.take().is_some() {
            self.name = None;
        }
    }

    /// Returns true if no repetition belongs to this Event any more.
    fn has_ended(&self, longest_gap: Option<Duration>, now: Instant) -> bool {
        !self.queued && longest_gap.is_some_and(|gap| now > self.noted + gap)
    }
}

impl Notebook {
    /// Number of Events that wait to be written.
    pub(super) fn waiting(&self) -> usize {
        self.new.len() + self.changed.len()
    }

    /// Stores an Event. Returns how many Events are dropped, because too many wait: this one, or the oldest one about the
    /// same object.
    pub(super) fn note(&mut self, subject: Subject, wall: Timestamp, now: Instant) -> usize {
        let known = self.entries.get_key_value(&subject).map(|(subject, _)| subject.clone());
        let replaced = if known.is_none() { self.make_room_beside(&subject) } else { 0 };
        let full = self.new.len() >= QUEUED;
        if known.is_none() && full {
            return 1;
        }
        let subject = known.unwrap_or_else(|| Rc::new(subject));
        let entry = self.entries.entry(subject.clone()).or_insert_with(|| EventEntry::new(wall, now));
        if entry.has_ended(subject.form.longest_gap(), now) {
            *entry = EventEntry::new(wall, now);
        }
        let used = self.next_use;
        self.next_use += 1;
        entry.count = entry.count.saturating_add(1);
        (entry.last, entry.noted, entry.used) = (wall, now, used);
        let kept = entry.queued || entry.created.is_some() || !full; // not kept: the next repetition writes the count
        if kept {
            self.enqueue(&subject, VecDeque::push_back);
        }
        self.uses.push_back((used, subject));
        self.forget();
        replaced + usize::from(!kept)
    }

    /// Drops the oldest waiting Event about the same object if there are too many. Returns how many are dropped.
    fn make_room_beside(&mut self, subject: &Subject) -> usize {
        let of_one = |queued: &&Rc<Subject>| queued.regarding == subject.regarding;
        if self.new.iter().filter(of_one).count() < QUEUED_OF_ONE {
            return 0;
        }
        let Some(oldest) = self.new.iter().find(of_one).cloned() else { return 0 };
        self.remove(&oldest);
        1
    }

    /// Puts an Event into its queue, unless it is in one or forgotten. `put`: an Event that was taken but not written
    /// goes to the front.
    pub(super) fn enqueue(&mut self, subject: &Rc<Subject>, put: fn(&mut VecDeque<Rc<Subject>>, Rc<Subject>)) {
        let Some(entry) = self.entries.get_mut(subject) else { return };
        let queue = if entry.created.is_none() { &mut self.new } else { &mut self.changed };
        if !std::mem::replace(&mut entry.queued, true) {
            put(queue, subject.clone());
        }
    }

    /// Drops the least recently used entries above the limit, except the (fewer) ones that the server never got.
    fn forget(&mut self) {
        if self.uses.len() > 2 * REMEMBERED {
            let entries = &self.entries;
            self.uses.retain(|(used, subject)| entries.get(subject).is_some_and(|entry| entry.used == *used));
        }
        while self.entries.len() > REMEMBERED {
            let Some((used, subject)) = self.uses.pop_front() else { return };
            match self.entries.get(&subject) {
                Some(entry) if entry.used != used => {} // used again later
                Some(entry) if entry.queued && entry.created.is_none() => self.uses.push_back((used, subject)),
                Some(_) => self.remove(&subject),
                None => {}
            }
        }
    }

    fn remove(&mut self, subject: &Rc<Subject>) {
        if self.entries.remove(subject).is_some_and(|entry| entry.queued) {
            self.new.retain(|queued| queued != subject);
            self.changed.retain(|queued| queued != subject);
        }
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        let waiting = self.new.iter().chain(&self.changed);
        waiting.filter_map(|subject| self.entries.get(subject)).map(|entry| entry.not_before).min()
    }

    /// Returns true if the server does not have an Event about an object, whose first attempt or retry is due.
    pub(super) fn is_new_and_due(&self, regarding: &Reference, now: Instant) -> bool {
        let mut own = self.new.iter().filter(|subject| subject.regarding == *regarding);
        own.any(|subject| self.entries.get(subject).is_some_and(|entry| entry.not_before <= now))
    }

    /// Takes the first Event that is due at `now`, new ones before changed ones.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Rc<Subject>> {
        let due = |subject: &Rc<Subject>| self.entries.get(subject).is_none_or(|entry| entry.not_before <= now);
        let subject = match self.new.iter().position(due) {
            Some(position) => self.new.remove(position)?,
            None => {
                let position = self.changed.iter().position(due)?;
                self.changed.remove(position)?
            }
        };
        if let Some(entry) = self.entries.get_mut(&subject) {
            entry.queued = false;
        }
        Some(subject)
    }

    /// Records the end of an attempt. Returns true if the Event waits for another one.
    pub(super) fn written(&mut self, subject: &Rc<Subject>, attempt: &Attempt, now: Instant) -> bool {
        let Some(entry) = self.entries.get_mut(subject) else { return false };
        let retriable = match attempt {
            Attempt::Done(pause) => {
                entry.created.get_or_insert(now);
                (entry.failed, entry.not_before) = (0, now + *pause);
                return entry.queued;
            }
            Attempt::Retriable => true,
            Attempt::Refused => false,
        };
        entry.failed += 1;
        let gone = entry.created.is_some() && !retriable; // the Event has expired: create it again
        if gone {
            entry.forget_object();
        }
        if entry.failed >= ATTEMPTS || !(retriable || gone) {
            self.remove(subject);
            return false;
        }
        entry.not_before = if gone { now } else { now + PAUSE };
        self.enqueue(subject, VecDeque::push_back);
        true
    }
}
