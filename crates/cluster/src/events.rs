//! The recorder of core/v1 Events. Recording never waits: it stores the Event in memory, and one background task writes
//! it. A repeated Event only increases a count, which is written at most every [`COALESCE`]. Events that do not fit
//! into the bounded memory are dropped and counted: Events are hints for people, never state.
//!
//! A PATCH updates the count. Gardener's roles grant only the creation of Events in the source (spec 71 §5.1). If the
//! server refuses the PATCH, repetitions are left out while the Event exists ([`EXPIRES`]); [`REFUSED`] later it is
//! tried again.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, VecDeque},
    rc::Rc,
    time::Duration,
};

use jiff::Timestamp;
use kit::{Deadline, Priority};
use serde_json::{Value, json};
use tokio::{
    sync::{Mutex, Notify},
    time::{Instant, timeout_at},
};

use super::{ApiError, Cluster, Context, Resource, object::field_mut};

/// Events kept to count repetitions, one per object, reason and text; 1,024 are some hundred KiB.
const REMEMBERED: usize = 1024;
const QUEUED: usize = 256; // Events that wait to be written: at a millisecond each, a quarter of a second's work
const COALESCE: Duration = Duration::from_secs(10); // a repeated Event is written at most this often
const ATTEMPTS: u8 = 3; // an Event that cannot be written is tried this often, …
const PAUSE: Duration = Duration::from_secs(10); // … with this pause
/// Roles change rarely: for this long, one refused PATCH stands for all.
const REFUSED: Duration = Duration::from_secs(3600);
const EXPIRES: Duration = Duration::from_secs(3600); // API servers delete an Event after this time by default
const REQUEST: Duration = Duration::from_secs(10);
const LONGEST_MESSAGE: usize = 1024;

/// Records the Events of one component (their source) in one cluster; clones share memory and queue.
#[derive(Clone)]
pub struct Recorder {
    shared: Rc<Shared>,
    component: Rc<str>,
    /// What the component does when it records; may be empty.
    action: Rc<str>,
}

/// The object an Event is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Reference {
    /// `group/version`, or `version`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects, whose Events are in `default`.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// uid; may be empty.
    pub uid: String,
}

struct Shared {
    cluster: Cluster,
    events: Resource,
    notebook: RefCell<Notebook>,
    noted: Notify,
    /// Until then no Event is patched, because the server refused it.
    refused_until: Cell<Option<Instant>>,
    /// Held while an Event is written, so that background task and flush do not write the same one.
    writing: Mutex<()>,
}

#[derive(Default)]
struct Notebook {
    entries: BTreeMap<Rc<Subject>, EventEntry>,
    /// Entries by age of their last use, oldest first; may hold outdated pairs.
    uses: VecDeque<(u64, Rc<Subject>)>,
    next_use: u64,
    queue: VecDeque<Rc<Subject>>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Subject {
    component: Rc<str>,
    action: Rc<str>,
    regarding: Reference,
    warning: bool,
    reason: String,
    message: String,
}

struct EventEntry {
    /// Name of the Event object; kept over attempts, so that a write of unknown outcome is recognised.
    name: Option<String>,
    created: Option<Instant>,
    count: u32,
    first: Timestamp,
    last: Timestamp,
    used: u64,
    queued: bool,
    failed: u8,
    not_before: Instant,
}

impl Reference {
    /// Returns a reference to an object as the server sent it (with `apiVersion` and `kind`).
    pub fn of(object: &Value) -> Self {
        use crate::object;

        let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        Self {
            api_version: text("apiVersion"),
            kind: text("kind"),
            namespace: object::namespace(object).into(),
            name: object::name(object).into(),
            uid: object::uid(object).into(),
        }
    }

    fn event_namespace(&self) -> &str {
        if self.namespace.is_empty() { "default" } else { &self.namespace }
    }
}

impl Recorder {
    /// Creates a recorder that writes to `cluster` without request scheduler and fence, because the last Events follow
    /// the fence's end. Its Events have no action. Spawn [`Self::run`] once, and call [`Self::flush`] at the end.
    pub fn new(cluster: &Cluster, component: impl Into<Rc<str>>) -> Self {
        let shared = Shared {
            cluster: cluster.beside(),
            events: Resource::new("", "v1", "Event", "events", true),
            notebook: RefCell::default(),
            noted: Notify::new(),
            refused_until: Cell::new(None),
            writing: Mutex::new(()),
        };
        Self { shared: Rc::new(shared), component: component.into(), action: "".into() }
    }

    /// Returns the same recorder for another source of Events.
    pub fn for_component(&self, component: impl Into<Rc<str>>) -> Self {
        Self { component: component.into(), ..self.clone() }
    }

    /// Returns the same recorder with this `action` in its Events, e.g. `Reconcile` (spec 40 §2.4, spec 41 §A.1).
    pub fn with_action(&self, action: impl Into<Rc<str>>) -> Self {
        Self { action: action.into(), ..self.clone() }
    }

    /// Records a normal Event.
    pub fn normal(&self, regarding: &Reference, reason: &str, message: &str) {
        self.record(false, regarding, reason, message);
    }

    /// Records a warning.
    pub fn warning(&self, regarding: &Reference, reason: &str, message: &str) {
        self.record(true, regarding, reason, message);
    }

    fn record(&self, warning: bool, regarding: &Reference, reason: &str, message: &str) {
        let subject = Subject {
            component: self.component.clone(),
            action: self.action.clone(),
            regarding: regarding.clone(),
            warning,
            reason: reason.into(),
            message: message.chars().take(LONGEST_MESSAGE).collect(),
        };
        let now = self.shared.cluster.clock().wall();
        if self.shared.notebook.borrow_mut().note(subject, now, Instant::now()) {
            self.shared.noted.notify_one();
        } else {
            self.shared.cluster.observer().event_dropped();
        }
    }

    /// Writes recorded Events, for ever.
    pub async fn run(self) {
        loop {
            let noted = self.shared.noted.notified();
            let next = self.shared.notebook.borrow().next_due();
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
        let far = deadline.0 + COALESCE + PAUSE; // everything is due now
        let all = async { while self.write_one(deadline, far).await {} };
        if timeout_at(deadline.0, all).await.is_err() {
            tracing::warn!(left = self.waiting(), "events are lost because they were not written before the deadline");
        }
    }

    /// Number of Events that are not written yet.
    pub fn waiting(&self) -> usize {
        self.shared.notebook.borrow().queue.len()
    }

    /// Writes the first Event that is due at `now`. Returns false if there was none.
    async fn write_one(&self, deadline: Deadline, now: Instant) -> bool {
        let _writing = self.shared.writing.lock().await;
        let Some(subject) = self.shared.notebook.borrow_mut().take_due(now) else { return false };
        let plan = self.shared.notebook.borrow_mut().entries.get_mut(&subject).map(|entry| self.plan(&subject, entry));
        let result = match plan {
            None => return true, // forgotten meanwhile
            Some(None) => Ok(()),
            Some(Some(plan)) => match self.send(deadline, &subject, &plan).await {
                Err(error) if plan.is_patch() && error.is_forbidden() => {
                    self.shared.refused_until.set(Some(Instant::now() + REFUSED));
                    tracing::debug!(%error, "the server refuses to patch events; repetitions are left out");
                    self.shared.notebook.borrow_mut().put_back(subject);
                    return true; // plan it again, now without a PATCH
                }
                result => result,
            },
        };
        if let Err(error) = &result {
            tracing::warn!(%error, reason = subject.reason, object = subject.regarding.name, "cannot write an event");
        }
        let retriable = result.as_ref().is_err_and(is_retriable);
        let mut notebook = self.shared.notebook.borrow_mut();
        if notebook.written(&subject, result.is_ok(), retriable, Instant::now()) {
            drop(notebook);
            self.shared.noted.notify_one();
        }
        true
    }

    /// Plans the request that brings an Event up to date, or `None` for a repetition that can be left out.
    fn plan(&self, subject: &Subject, entry: &mut EventEntry) -> Option<Plan> {
        let now = Instant::now();
        if let Some(created) = entry.created
            && self.shared.refused_until.get().is_some_and(|until| now < until)
        {
            if now < created + EXPIRES {
                return None;
            }
            entry.forget_object();
        }
        let name = entry.name.get_or_insert_with(|| {
            let suffix = format!("{:016x}", self.shared.cluster.random().bits() & u128::from(u64::MAX));
            event_name(&subject.regarding.name, &suffix)
        });
        let name = name.clone();
        let request = if entry.created.is_some() {
            Request::Patch(json!({"count": entry.count, "lastTimestamp": seconds(entry.last)}))
        } else {
            Request::Create(subject.event(&name, entry))
        };
        Some(Plan { name, request })
    }

    async fn send(&self, deadline: Deadline, subject: &Subject, plan: &Plan) -> Result<(), ApiError> {
        let ctx = Context::new(Priority::Low, deadline, "events");
        let at = self.shared.events.at(subject.regarding.event_namespace(), plan.name.as_str());
        let result = match &plan.request {
            Request::Create(event) => self.shared.cluster.create(&ctx, &at, event).await,
            Request::Patch(patch) => self.shared.cluster.merge_patch(&ctx, &at, None, patch).await,
        };
        match result {
            // an earlier attempt of unknown outcome created it
            Err(error) if error.is_already_exists() => Ok(()),
            result => result.map(drop),
        }
    }
}

struct Plan {
    name: String,
    request: Request,
}

enum Request {
    Create(Value),
    Patch(Value),
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("component", &self.component).field("waiting", &self.waiting()).finish()
    }
}

impl Plan {
    fn is_patch(&self) -> bool {
        match self.request {
            Request::Patch(_) => true,
            Request::Create(_) => false,
        }
    }
}

impl EventEntry {
    /// The next Event gets another name, and the count so far. A creation of unknown outcome keeps its name.
    fn forget_object(&mut self) {
        if self.created.take().is_some() {
            self.name = None;
        }
    }
}

impl Subject {
    fn event(&self, name: &str, entry: &EventEntry) -> Value {
        let about = &self.regarding;
        let mut event = json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": about.event_namespace()},
            "involvedObject": {"apiVersion": about.api_version, "kind": about.kind, "namespace": about.namespace,
                "name": about.name, "uid": about.uid},
            "type": if self.warning { "Warning" } else { "Normal" },
            "reason": self.reason,
            "message": self.message,
            "source": {"component": &*self.component},
            "reportingComponent": &*self.component,
            "reportingInstance": "",
            "count": entry.count,
            "firstTimestamp": seconds(entry.first),
            "lastTimestamp": seconds(entry.last),
        });
        if !self.action.is_empty() {
            *field_mut(&mut event, &["action"]) = (*self.action).into();
        }
        event
    }
}

impl Notebook {
    /// Stores an Event. Returns false if it is dropped because too many wait.
    fn note(&mut self, subject: Subject, wall: Timestamp, now: Instant) -> bool {
        let used = self.next_use;
        self.next_use += 1;
        let full = self.queue.len() >= QUEUED;
        let known = self.entries.get_key_value(&subject).map(|(subject, _)| subject.clone());
        if known.is_none() && full {
            return false;
        }
        let subject = known.unwrap_or_else(|| Rc::new(subject));
        let entry = self.entries.entry(subject.clone()).or_insert_with(|| EventEntry {
            name: None,
            created: None,
            count: 0,
            first: wall,
            last: wall,
            used,
            queued: false,
            failed: 0,
            not_before: now,
        });
        entry.count = entry.count.saturating_add(1);
        (entry.last, entry.used) = (wall, used);
        let kept = entry.queued || !full; // not queued: the next repetition writes the count
        if !entry.queued && !full {
            entry.queued = true;
            self.queue.push_back(subject.clone());
        }
        self.uses.push_back((used, subject));
        self.forget();
        kept
    }

    /// Drops the least recently used entries above the limit, except the (fewer) queued ones.
    fn forget(&mut self) {
        if self.uses.len() > 2 * REMEMBERED {
            let entries = &self.entries;
            self.uses.retain(|(used, subject)| entries.get(subject).is_some_and(|entry| entry.used == *used));
        }
        while self.entries.len() > REMEMBERED {
            let Some((used, subject)) = self.uses.pop_front() else { return };
            match self.entries.get(&subject) {
                Some(entry) if entry.used == used && entry.queued => self.uses.push_back((used, subject)),
                Some(entry) if entry.used == used => drop(self.entries.remove(&subject)),
                Some(_) | None => {} // used again later, or gone
            }
        }
    }

    fn next_due(&self) -> Option<Instant> {
        self.queue.iter().filter_map(|subject| self.entries.get(subject)).map(|entry| entry.not_before).min()
    }

    fn take_due(&mut self, now: Instant) -> Option<Rc<Subject>> {
        let due = |subject: &Rc<Subject>| self.entries.get(subject).is_none_or(|entry| entry.not_before <= now);
        let position = self.queue.iter().position(due)?;
        let subject = self.queue.remove(position)?;
        if let Some(entry) = self.entries.get_mut(&subject) {
            entry.queued = false;
        }
        Some(subject)
    }

    fn put_back(&mut self, subject: Rc<Subject>) {
        let Some(entry) = self.entries.get_mut(&subject) else { return };
        if !std::mem::replace(&mut entry.queued, true) {
            self.queue.push_front(subject);
        }
    }

    /// Records the end of an attempt. Returns true if the Event waits for another one.
    fn written(&mut self, subject: &Rc<Subject>, done: bool, retriable: bool, now: Instant) -> bool {
        let Some(entry) = self.entries.get_mut(subject) else { return false };
        if done {
            entry.created.get_or_insert(now);
            (entry.failed, entry.not_before) = (0, now + COALESCE);
            return entry.queued;
        }
        entry.failed += 1;
        let gone = entry.created.is_some() && !retriable; // the Event has expired: create it again
        if gone {
            entry.forget_object();
        }
        if entry.failed >= ATTEMPTS || !(retriable || gone) {
            self.entries.remove(subject);
            self.queue.retain(|queued| queued != subject);
            return false;
        }
        entry.not_before = if gone { now } else { now + PAUSE };
        if !entry.queued {
            entry.queued = true;
            self.queue.push_back(subject.clone());
        }
        true
    }
}

/// Returns `<name>.<suffix>`, or the suffix alone if the object's name is invalid for an Event (RBAC names are free).
fn event_name(object: &str, suffix: &str) -> String {
    let fits = object.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte));
    if fits && !object.is_empty() && object.len() + suffix.len() < 253 {
        format!("{object}.{suffix}")
    } else {
        format!("event.{suffix}")
    }
}

fn is_retriable(error: &ApiError) -> bool {
    error.outcome_unknown()
        || error.is_too_many_requests()
        || matches!(error, ApiError::Transport { .. } | ApiError::NotSent)
}

/// RFC 3339 in whole seconds.
fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests;
