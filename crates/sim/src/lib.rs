//! An in-memory Kubernetes API as the transport of a [`kube::Client`]: no sockets, virtual time, faults on demand. It
//! behaves as the real API server does where that was measured, and answers 501 where it does not. The same seed and
//! the same requests give the same bytes. It checks no rights: 403 comes from the test ([`Seen::forbidden`],
//! [`Sim::set_reviewer`]).
//!
//! Start reading at `state.rs`: [`Sim`] owns one `State` behind a lock, `service.rs` passes requests to it, `route.rs`
//! finds the handler. Reads: `list.rs`, `watch.rs`, `documents.rs`. Writes: `create.rs`, `update.rs`, `delete.rs`,
//! `subresources.rs`, `tokens.rs`, on top of `storage.rs` (objects, revisions, history). The server's own work:
//! `agenda.rs`, `controllers/`. Controls for tests: `fault.rs`, `starting.rs`, `record.rs`, `fixtures.rs`. All other
//! files are pure rules: kinds, defaults, validation, patches, conversions, error bodies.

mod agenda;
mod body;
mod controllers;
mod convert;
mod create;
mod defaults;
mod delete;
mod discovery;
mod documents;
mod encode;
mod fault;
mod fixtures;
mod kinds;
mod list;
mod lists;
mod managed_fields;
mod negotiate;
mod owners;
mod patch;
mod record;
mod registry;
mod render;
mod request;
mod route;
mod schema;
mod selector;
mod service;
mod starting;
mod state;
mod status;
mod storage;
mod subresources;
mod table;
#[cfg(test)]
mod tests;
mod tokens;
mod typed;
mod update;
mod validate;
mod watch;
mod watchers;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use agenda::Agenda;
use defaults::Allocations;
pub use fault::{EventFault, EventInfo, Fault, NONSENSE, Process, Seen, WatchEnd};
use fault::{EventFaultFunction, FaultFunction};
pub use fixtures::{EDITOR, PutError};
use kit::{Clock, Random};
use owners::OwnerIndex;
use record::Journal;
pub use record::Recorded;
use registry::Registry;
use request::Request;
pub use request::RequestInfo;
use serde_json::Value;
use service::ApiService;
pub use starting::Start;
use starting::Starting;
pub use state::Reviewed;
use state::{ApiState, ServerClock};
pub use status::Failure;
use storage::Storage;
use tokio::sync::Notify;
use watchers::Watches;

/// A simulated API server. Clones share the server.
#[derive(Clone)]
pub struct Sim {
    shared: Arc<Shared>,
}

/// Options of a simulator.
#[derive(Debug, Clone)]
pub struct SimOptions {
    /// Start of the server's wall clock, which then follows tokio's time and no jumps of this clock.
    pub clock: Clock,
    /// Seed of uids and generated names.
    pub random: Random,
    /// Whether [`Sim::requests`] keeps requests.
    pub recording: bool,
    /// How many changes can be watched from and listed at; older versions have expired.
    pub history: usize,
    /// How long each request takes.
    pub latency: Duration,
    /// What the server does by itself.
    pub behaviour: Behaviour,
}

/// Work of kube-controller-manager. (The API server itself always serves and empties CustomResourceDefinitions.)
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behaviour {
    /// Delete objects whose owners are gone; complete foreground deletion and orphaning.
    pub garbage_collection: bool,
    /// Empty and remove namespaces that are being deleted.
    pub namespace_deletion: bool,
    /// Give each namespace the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt` with this bundle.
    pub namespace_contents: Option<String>,
    /// Remove the protection of volumes and claims that are being deleted.
    pub volume_protection: bool,
    /// Default audiences of tokens; the API server accepts them.
    pub audiences: Vec<String>,
}

/// A client's user, and the process it belongs to.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The authenticated user.
    pub user: String,
    /// The user's groups.
    pub groups: Vec<String>,
    /// `User-Agent` of requests without one; the part before `/` is the field manager.
    pub user_agent: String,
    /// Clients of one process crash together.
    pub process: Process,
}

struct Shared {
    state: Mutex<ApiState>,
    faults: Mutex<Option<FaultFunction>>,
    /// Held while a fault function runs: it is not in `faults` then.
    asking: Mutex<()>,
    event_faults: Mutex<Option<EventFaultFunction>>,
    journal: Mutex<Journal>,
    latency: Duration,
    changed: Arc<Notify>,
}

impl SimOptions {
    /// Everything on, no latency, a history of 20,000 changes.
    pub fn new(clock: Clock, random: Random) -> Self {
        let behaviour = Behaviour::default();
        Self { clock, random, recording: true, history: 20_000, latency: Duration::ZERO, behaviour }
    }
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            garbage_collection: true,
            namespace_deletion: true,
            namespace_contents: None,
            volume_protection: true,
            audiences: vec!["kubernetes".into(), "gardener".into()],
        }
    }
}

impl Behaviour {
    /// An API server without kube-controller-manager.
    pub fn without_controllers() -> Self {
        Self {
            garbage_collection: false,
            namespace_deletion: false,
            namespace_contents: None,
            volume_protection: false,
            ..Self::default()
        }
    }
}

impl Sim {
    /// Starts a server with the usual namespaces. Must run in a tokio runtime, whose clock it follows.
    pub fn new(options: SimOptions) -> Self {
        let changed = Arc::new(Notify::new());
        let state = ApiState {
            storage: Storage::new(options.history),
            registry: Registry::new(kinds::built_in()),
            watches: Watches::default(),
            agenda: Agenda::new(changed.clone()),
            owners: OwnerIndex::default(),
            allocations: Allocations::default(),
            random: fastrand::Rng::with_seed(options.random.bits() as u64),
            clock: ServerClock::new(options.clock.wall()),
            behaviour: options.behaviour,
            reviewer: None,
            mutation: None,
            starting: None,
            unsettled: BTreeSet::new(),
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            faults: Mutex::new(None),
            asking: Mutex::new(()),
            event_faults: Mutex::new(None),
            journal: Mutex::new(Journal::new(options.recording)),
            latency: options.latency,
            changed: changed.clone(),
        });
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            shared.state().put_namespace(name);
        }
        tokio::spawn(agenda::drive(Arc::downgrade(&shared), changed));
        Self { shared }
    }

    /// A client with all rights.
    pub fn client(&self) -> kube::Client {
        self.client_as("system:admin", "gardener-resource-manager")
    }

    /// A client of this user, in its own process.
    pub fn client_as(&self, user: &str, user_agent: &str) -> kube::Client {
        let process = Process::new();
        let groups = vec!["system:authenticated".into()];
        self.client_of(ClientOptions { user: user.into(), groups, user_agent: user_agent.into(), process })
    }

    /// A client in this process, which can crash.
    pub fn client_of(&self, options: ClientOptions) -> kube::Client {
        kube::Client::new(ApiService { shared: self.shared.clone(), seat: Arc::new(options) }, "default")
    }

    /// Calls this function for each request. It may use the simulator, but ends the faults only by [`Fault::None`].
    pub fn set_faults(&self, faults: impl FnMut(&RequestInfo) -> Fault + Send + 'static) {
        *lock(&self.shared.faults) = Some(Box::new(faults));
    }

    /// Ends the request faults.
    pub fn clear_faults(&self) {
        *lock(&self.shared.faults) = None;
    }

    /// Calls this function for each event of each watch. Initial events and bookmarks always arrive.
    pub fn set_event_faults(&self, faults: impl FnMut(&EventInfo) -> EventFault + Send + 'static) {
        *lock(&self.shared.event_faults) = Some(Box::new(faults));
    }

    /// Ends the event faults.
    pub fn clear_event_faults(&self) {
        *lock(&self.shared.event_faults) = None;
    }

    /// Forgets the history: watches and lists from older versions get 410.
    pub fn compact(&self) {
        self.shared.state().storage.compact();
    }

    /// Ends all open watches.
    pub fn break_watches(&self, end: WatchEnd) {
        self.shared.state().watches.end(None, end);
    }

    /// Restarts the server with its objects: watches break, and for a while it serves less (facts §7).
    pub fn restart(&self, start: Start) {
        let mut state = self.shared.state();
        state.starting = Some(Starting::now(start));
        state.watches.end(None, WatchEnd::Disconnect);
    }

    /// Number of open watches.
    pub fn watch_count(&self) -> usize {
        self.shared.state().watches.count()
    }

    /// Answers SubjectAccessReviews (`spec` → allowed, reason), also for impersonated users. The `spec` of a
    /// SelfSubjectAccessReview gets `user` and `groups` of the client. Without a reviewer they fail.
    pub fn set_reviewer(&self, reviewer: impl FnMut(&Value) -> (bool, String) + Send + 'static) {
        self.shared.state().reviewer = Some(Box::new(reviewer));
    }

    /// Mutating admission: changes each object that a request creates or updates (no subresource), after defaults and
    /// before checks. The writing manager owns what it adds. It ignores the stored configurations of webhooks.
    pub fn set_mutation(&self, mutation: impl FnMut(&Reviewed<'_>, &mut Value) + Send + 'static) {
        self.shared.state().mutation = Some(Box::new(mutation));
    }

    /// The requests in order of arrival; empty without recording.
    pub fn requests(&self) -> Vec<Recorded> {
        lock(&self.shared.journal).requests()
    }

    /// Number of requests by verb.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        lock(&self.shared.journal).verbs.clone()
    }

    /// Forgets requests and counts.
    pub fn clear_requests(&self) {
        lock(&self.shared.journal).clear();
    }

    /// Turns recording on or off.
    pub fn set_recording(&self, recording: bool) {
        lock(&self.shared.journal).recording = recording;
    }

    /// The version of the last change.
    pub fn revision(&self) -> u64 {
        self.shared.state().storage.revision()
    }
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sim").field("revision", &self.revision()).finish_non_exhaustive()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, ApiState> {
        lock(&self.state)
    }

    fn arrive(&self, parts: &http::request::Parts, seat: &ClientOptions) -> Request {
        let mut journal = lock(&self.journal);
        let number = journal.next_number();
        let request = Request::new(number, parts, seat);
        journal.request(&request.info);
        request
    }

    fn record_answer(&self, number: u64, code: u16) {
        lock(&self.journal).answer(number, code);
    }

    /// Calls the fault function. It is taken out for the call, so that it may use the simulator.
    fn fault(&self, info: &RequestInfo) -> Fault {
        let _asking = lock(&self.asking);
        let taken = lock(&self.faults).take();
        let Some(mut faults) = taken else { return Fault::None };
        let fault = faults(info);
        lock(&self.faults).get_or_insert(faults);
        fault
    }

    fn event_fault(&self, info: &EventInfo) -> EventFault {
        let _asking = lock(&self.asking);
        let taken = lock(&self.event_faults).take();
        let Some(mut faults) = taken else { return EventFault::Deliver };
        let fault = faults(info);
        lock(&self.event_faults).get_or_insert(faults);
        fault
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.changed.notify_one();
    }
}

/// A panic under the lock already fails the test; other users of the lock continue.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
