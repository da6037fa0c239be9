//! The recorder of Events. Recording never waits: it stores the Event in memory, and one background task writes it.
//! Failures are logged only. Events that do not fit into the bounded memory are dropped, counted and logged once a minute:
//! Events are hints for people, never state. The room is shared fairly: an object with many Events loses its own oldest.
//!
//! Events have one of two forms. Both have the same store in the API server:
//! * core/v1 (`core_v1`): a repeated Event only increases a count, which is written at most every [`COALESCE`].
//! * `events.k8s.io/v1` (`events_v1`): repetitions within 6 minutes are a series. Its first repetition is written after
//!   [`COALESCE`], later ones at most every 6 minutes. A later repetition is a new Event.
//!
//! An Event with another text is another Event. A PATCH writes repetitions. Gardener's roles grant only the creation of
//! Events in the source (spec 71 §5.1). If the server refuses the PATCH, repetitions are left out while the Event
//! exists ([`EXPIRES`]); [`REFUSED`] later it is tried again.

mod core_v1;
mod events_v1;
mod notebook;
mod subject;

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    rc::Rc,
    time::Duration,
};

use jiff::Timestamp;
use kit::{Deadline, Priority};
use serde_json::Value;
use tokio::{
    sync::{Mutex, Notify},
    time::{Instant, timeout_at},
};

pub use self::subject::{EventType, Reference};
use self::{
    notebook::{Attempt, EventEntry, Notebook, PAUSE},
    subject::{EventForm, SERIES, Subject, event_name},
};
use super::{ApiError, Cluster, Context, Resource};

const COALESCE: Duration = Duration::from_secs(10); // a repeated Event is written at most this often
/// Roles change rarely: for this long, one refused PATCH stands for all.
const REFUSED: Duration = Duration::from_secs(3600);
const EXPIRES: Duration = Duration::from_secs(3600); // API servers delete an Event after this time by default
const REQUEST: Duration = Duration::from_secs(10);
const DROPS_EVERY: Duration = Duration::from_secs(60); // interval of the records about dropped Events

/// An Event that was recorded, with its repetitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedEvent {
    /// Its type.
    pub event_type: EventType,
    /// Its reason.
    pub reason: String,
    /// Its message.
    pub message: String,
    /// How often it was recorded.
    pub count: u32,
    /// When it was recorded last.
    pub last: Timestamp,
}

/// Records the Events of one component (their source) in one cluster; clones share memory and queue.
#[derive(Clone)]
pub struct Recorder {
    shared: Rc<Shared>,
    component: Rc<str>,
    /// What the component does when it records; may be empty.
    action: Rc<str>,
    form: EventForm,
}

struct Shared {
    cluster: Cluster,
    core_v1: EventResource,
    events_v1: EventResource,
    notebook: RefCell<Notebook>,
    noted: Notify,
    /// Events that were dropped since the last record about that.
    dropped: Cell<usize>,
    /// Held while an Event is written, so that background task and flush do not write the same one.
    writing: Mutex<()>,
    /// The Event that is being written.
    in_flight: RefCell<Option<Rc<Subject>>>,
    /// Wakes who waits for an Event to be written.
    progressed: Notify,
}

struct EventResource {
    resource: Resource,
    /// Until then no Event is patched, because the server refused it.
    refused_until: Cell<Option<Instant>>,
}

impl Recorder {
    /// Creates a recorder of core/v1 Events that writes to `cluster` without request scheduler and fence, because the
    /// last Events follow the fence's end. Its Events have no action. Spawn [`Self::run`] once, and call
    /// [`Self::flush`] at the end.
    pub fn new(cluster: &Cluster, component: impl Into<Rc<str>>) -> Self {
        let shared = Shared {
            cluster: cluster.beside(),
            core_v1: EventResource::of_group(""),
            events_v1: EventResource::of_group("events.k8s.io"),
            notebook: RefCell::default(),
            noted: Notify::new(),
            dropped: Cell::default(),
            writing: Mutex::new(()),
            in_flight: RefCell::default(),
            progressed: Notify::new(),
        };
        Self { shared: Rc::new(shared), component: component.into(), action: "".into(), form: EventForm::CoreV1 }
    }

    /// Returns the same recorder for Events of `events.k8s.io/v1`. Their reporting controller is the component, their
    /// reporting instance `<component>-<host>`.
    pub fn in_events_v1(&self, host: impl Into<Rc<str>>) -> Self {
        Self { form: EventForm::EventsV1 { host: host.into() }, ..self.clone() }
    }

    /// Returns the same recorder for core/v1 Events.
    pub fn in_core_v1(&self) -> Self {
        Self { form: EventForm::CoreV1, ..self.clone() }
    }

    /// Returns the same recorder for another source of Events.
    pub fn for_component(&self, component: impl Into<Rc<str>>) -> Self {
        Self { component: component.into(), ..self.clone() }
    }

    /// Returns the same recorder with this `action` in its Events, e.g. `Reconcile` (spec 40 §2.4, spec 41 §A.1).
    pub fn with_action(&self, action: impl Into<Rc<str>>) -> Self {
        Self { action: action.into(), ..self.clone() }
    }

    /// Records a normal Event with the recorder's action.
    pub fn normal(&self, regarding: &Reference, reason: &str, message: &str) {
        self.record(EventType::Normal, regarding, &self.action, reason, message);
    }

    /// Records a warning with the recorder's action.
    pub fn warning(&self, regarding: &Reference, reason: &str, message: &str) {
        self.record(EventType::Warning, regarding, &self.action, reason, message);
    }

    /// Records an Event with an action of its own.
    pub fn record(&self, event_type: EventType, regarding: &Reference, action: &str, reason: &str, message: &str) {
        let subject = Subject {
            form: self.form.clone(),
            component: self.component.clone(),
            action: action.into(),
            regarding: regarding.clone(),
            event_type,
            reason: reason.into(),
            message: match self.form {
                EventForm::CoreV1 => core_v1::cut(message),
                EventForm::EventsV1 { .. } => events_v1::cut(message),
            },
        };
        let now = self.shared.cluster.clock().wall();
        let dropped = self.shared.notebook.borrow_mut().note(subject, now, Instant::now());
        (0..dropped).for_each(|_| self.shared.cluster.observer().event_dropped());
        self.shared.dropped.set(self.shared.dropped.get() + dropped);
        self.shared.noted.notify_one();
    }

    /// Writes recorded Events, for ever.
    pub async fn run(self) {
        let mut reported: Option<Instant> = None;
        loop {
            let report_at = reported.map_or_else(Instant::now, |reported| reported + DROPS_EVERY);
            let report_at = (self.shared.dropped.get() > 0).then_some(report_at);
            if report_at.is_some_and(|due| due <= Instant::now()) {
                let (events, cluster) = (self.shared.dropped.take(), self.shared.cluster.options().label.as_str());
                tracing::warn!(events, cluster, "Dropped Events because too many wait to be written");
                reported = Some(Instant::now());
                continue;
            }
            let noted = self.shared.noted.notified();
            let next = self.shared.notebook.borrow().next_due().into_iter().chain(report_at).min();
            match next {
                None => noted.await,
                Some(due) if due > Instant::now() => {
                    timeout_at(due, noted).await.unwrap_or_default();
                }
                Some(_) => {
                    let deadline = Deadline::after(REQUEST);
                    self.write_one(deadline, Instant::now()).await;
                }
            }
        }
    }

    /// Writes the remaining Events, including counts of repeated ones, until the deadline.
    pub async fn flush(&self, deadline: Deadline) {
        let far = deadline.0 + SERIES + PAUSE; // everything is due now
        let all = async { while self.write_one(deadline, far).await {} };
        if timeout_at(deadline.0, all).await.is_err() {
            tracing::warn!(left = self.waiting(), "events are lost because they were not written before the deadline");
        }
    }

    /// Returns the Events about an object that this recorder and its clones still remember, the latest first. Sends no
    /// request. An Event is forgotten if the server refused it, or after about a thousand later ones about any object.
    pub fn about(&self, regarding: &Reference) -> Vec<RecordedEvent> {
        let notebook = self.shared.notebook.borrow();
        let own = notebook.entries.iter().filter(|(subject, _)| subject.regarding == *regarding);
        let mut events: Vec<_> = own.map(|(subject, entry)| RecordedEvent::of(subject, entry)).collect();
        events.sort_by_key(|event| std::cmp::Reverse(event.last));
        events
    }

    /// Waits until the server has got, or refused, the first form of each Event about an object, at most until the deadline.
    /// So a client that sees a status finds the Event that explains it. Repetitions and retries that wait for their time are not
    /// waited for.
    pub async fn written(&self, regarding: &Reference, deadline: Deadline) {
        let written = async {
            loop {
                let progressed = self.shared.progressed.notified();
                if !self.shared.is_due_about(regarding) {
                    return;
                }
                progressed.await;
            }
        };
        timeout_at(deadline.0, written).await.unwrap_or_default();
    }

    /// Number of Events that are not written yet.
    pub fn waiting(&self) -> usize {
        self.shared.notebook.borrow().waiting()
    }

    /// Writes the first Event that is due at `now`. Returns false if there was none.
    async fn write_one(&self, deadline: Deadline, now: Instant) -> bool {
        let _writing = self.shared.writing.lock().await;
        let Some(subject) = self.shared.notebook.borrow_mut().take_due(now) else { return false };
        let _in_flight = InFlight::start(&self.shared, &subject);
        let write =
            self.shared.notebook.borrow_mut().entries.get_mut(&subject).map(|entry| self.shared.plan(&subject, entry));
        let attempt = match write {
            None => return true, // forgotten meanwhile
            Some(None) => Attempt::Done(COALESCE),
            Some(Some(write)) => match self.shared.send(deadline, &subject, &write).await {
                Ok(()) if write.is_patch => Attempt::Done(subject.form.longest_gap().unwrap_or(COALESCE)),
                Ok(()) => Attempt::Done(COALESCE),
                Err(error) if write.is_patch && error.is_forbidden() => {
                    self.shared.of(&subject.form).refused_until.set(Some(Instant::now() + REFUSED));
                    tracing::debug!(%error, "the server refuses to patch events; repetitions are left out");
                    self.shared.notebook.borrow_mut().enqueue(&subject, VecDeque::push_front);
                    return true; // plan it again, now without a PATCH
                }
                Err(error) => {
                    let (reason, object) = (&subject.reason, &subject.regarding.name);
                    tracing::warn!(%error, reason, object, "cannot write an event");
                    if is_retriable(&error) { Attempt::Retriable } else { Attempt::Refused }
                }
            },
        };
        if self.shared.notebook.borrow_mut().written(&subject, &attempt, Instant::now()) {
            self.shared.noted.notify_one();
        }
        true
    }
}

impl Shared {
    fn of(&self, form: &EventForm) -> &EventResource {
        match form {
            EventForm::CoreV1 => &self.core_v1,
            EventForm::EventsV1 { .. } => &self.events_v1,
        }
    }

    /// Returns true if an Event about an object is being written, or is new and due.
    fn is_due_about(&self, regarding: &Reference) -> bool {
        let is_in_flight = self.in_flight.borrow().as_ref().is_some_and(|subject| subject.regarding == *regarding);
        is_in_flight || self.notebook.borrow().is_new_and_due(regarding, Instant::now())
    }

    /// Plans the request that brings an Event up to date, or `None` for a repetition that can be left out.
    fn plan(&self, subject: &Subject, entry: &mut EventEntry) -> Option<EventWrite> {
        let now = Instant::now();
        if let Some(created) = entry.created
            && self.of(&subject.form).refused_until.get().is_some_and(|until| now < until)
        {
            if now < created + EXPIRES {
                return None;
            }
            entry.forget_object();
        }
        let name = entry.name.get_or_insert_with(|| {
            let suffix = format!("{:016x}", self.cluster.random().bits() & u128::from(u64::MAX));
            event_name(&subject.regarding.name, &suffix)
        });
        let name = name.clone();
        let is_patch = entry.created.is_some();
        let body = match &subject.form {
            EventForm::CoreV1 if is_patch => core_v1::repeated(entry),
            EventForm::CoreV1 => core_v1::event(subject, &name, entry),
            EventForm::EventsV1 { .. } if is_patch => events_v1::repeated(entry),
            EventForm::EventsV1 { host } => events_v1::event(subject, host, &name, entry),
        };
        Some(EventWrite { name, body, is_patch })
    }

    async fn send(&self, deadline: Deadline, subject: &Subject, write: &EventWrite) -> Result<(), ApiError> {
        let ctx = Context::new(Priority::Low, deadline, "events");
        let at = self.of(&subject.form).resource.at(subject.regarding.event_namespace(), write.name.as_str());
        let result = match write.is_patch {
            true => self.cluster.merge_patch(&ctx, &at, None, &write.body).await,
            false => self.cluster.create(&ctx, &at, &write.body).await,
        };
        match result {
            // an earlier attempt of unknown outcome created it
            Err(error) if error.is_already_exists() => Ok(()),
            result => result.map(drop),
        }
    }
}

impl RecordedEvent {
    fn of(subject: &Subject, entry: &EventEntry) -> Self {
        let Subject { event_type, reason, message, .. } = subject;
        let (event_type, reason, message) = (*event_type, reason.clone(), message.clone());
        Self { event_type, reason, message, count: entry.count, last: entry.last }
    }
}

impl EventResource {
    fn of_group(group: &'static str) -> Self {
        Self { resource: Resource::new(group, "v1", "Event", "events", true), refused_until: Cell::new(None) }
    }
}

/// Marks an Event as being written, until this value is dropped.
struct InFlight<'a>(&'a Shared);

impl<'a> InFlight<'a> {
    fn start(shared: &'a Shared, subject: &Rc<Subject>) -> Self {
        shared.in_flight.replace(Some(subject.clone()));
        Self(shared)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.take();
        self.0.progressed.notify_waiters();
    }
}

/// A request that creates an Event or patches its repetitions.
struct EventWrite {
    name: String,
    body: Value,
    is_patch: bool,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("component", &self.component).field("waiting", &self.waiting()).finish()
    }
}

fn is_retriable(error: &ApiError) -> bool {
    error.outcome_unknown()
        || error.is_too_many_requests()
        || matches!(error, ApiError::Transport { .. } | ApiError::NotSent)
}

#[cfg(test)]
mod tests;
