//! An in-memory Kubernetes API as the transport of a [`kube::Client`]: no socket, virtual time, faults on demand.
//!
//! It behaves as the real API server does where that was measured, and refuses loudly (501) what it does not do. The same
//! seed and the same requests give the same bytes.
//!
//! It keeps no rights: 403 comes from the test ([`Seen::forbidden`], [`Sim::set_reviewer`]).
//!
//! Start reading at `state.rs`: [`Sim`] owns one `State` behind a lock, `service.rs` brings requests to it, `route.rs` finds
//! who answers them. Reading: `list.rs`, `watch.rs`, `documents.rs`. Writing: `create.rs`, `update.rs`, `delete.rs`,
//! `subresources.rs`, `tokens.rs`, on top of `storage.rs` (objects, revisions, history). What the server does by itself:
//! `agenda.rs`, `controllers/`. What tests do to it: `fault.rs`, `starting.rs`, `record.rs`, `fixtures.rs`.
//!
//! Pure rules: `kinds.rs` and `registry.rs` (what is served), `body.rs` and `typed.rs` (reading objects), `encode.rs` and
//! `render.rs` (writing them), `defaults.rs`, `validate.rs`, `selector.rs`, `patch/`, `managed_fields.rs`, `discovery.rs`,
//! `convert.rs`, `status.rs` (error bodies).

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

use kit::{Clock, Random};
use serde_json::Value;
use tokio::sync::Notify;

pub use fault::{EventFault, EventInfo, Fault, NONSENSE, Process, Seen, WatchEnd};
pub use fixtures::{EDITOR, PutError};
pub use record::Recorded;
pub use request::RequestInfo;
pub use starting::Start;
pub use state::Reviewed;
pub use status::Failure;

use agenda::Agenda;
use defaults::Allocations;
use fault::{EventFaultFunction, FaultFunction};
use owners::OwnerIndex;
use record::Journal;
use registry::Registry;
use request::Request;
use service::ApiService;
use starting::Starting;
use state::{ApiState, ServerClock};
use storage::Storage;
use watchers::Watches;

/// A simulated API server. Clones are the same server.
#[derive(Clone)]
pub struct Sim {
    shared: Arc<Shared>,
}

/// What a simulator starts with.
#[derive(Debug, Clone)]
pub struct SimOptions {
    /// Gives the server's wall clock its start. From then on the server's clock moves with tokio's time; jumps of this
    /// clock do not move it, as a server's clock is not its clients'.
    pub clock: Clock,
    /// Gives the seed for uids and generated names.
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

/// What the control plane does by itself. Serving and emptying CustomResourceDefinitions is the API server's own work and
/// always on; the rest is kube-controller-manager's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behaviour {
    /// Objects whose owners are gone are deleted; foreground deletion and orphaning come to an end.
    pub garbage_collection: bool,
    /// Namespaces that are being deleted are emptied and removed.
    pub namespace_deletion: bool,
    /// Each namespace gets the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt` with this bundle.
    pub namespace_contents: Option<String>,
    /// The protection of volumes and claims ends when they are deleted.
    pub volume_protection: bool,
    /// Audiences of tokens that ask for none, and the ones the API server accepts.
    pub audiences: Vec<String>,
}

/// Who a client is, and which life of its program it belongs to.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The authenticated user.
    pub user: String,
    /// The groups the user is in.
    pub groups: Vec<String>,
    /// Its `User-Agent`, if the requests do not say: up to `/` it is the manager of the fields it writes.
    pub user_agent: String,
    /// Clients of one process crash together.
    pub process: Process,
}

/// What the simulator, its clients and its watches share.
struct Shared {
    state: Mutex<ApiState>,
    faults: Mutex<Option<FaultFunction>>,
    /// Held while a fault function is asked: it is taken out of its place meanwhile.
    asking: Mutex<()>,
    event_faults: Mutex<Option<EventFaultFunction>>,
    journal: Mutex<Journal>,
    latency: Duration,
    /// Wakes the driver of the agenda.
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
    /// Starts a server with the namespaces each cluster has. Must be called inside a tokio runtime, whose clock it
    /// follows.
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

    /// A client of this user, in a process of its own.
    pub fn client_as(&self, user: &str, user_agent: &str) -> kube::Client {
        let process = Process::new();
        let groups = vec!["system:authenticated".into()];
        self.client_of(ClientOptions { user: user.into(), groups, user_agent: user_agent.into(), process })
    }

    /// A client in a given process, which can crash.
    pub fn client_of(&self, options: ClientOptions) -> kube::Client {
        kube::Client::new(ApiService { shared: self.shared.clone(), seat: Arc::new(options) }, "default")
    }

    /// Asks this function about each request. It may look at the simulator, and change it; to end the faults from inside,
    /// return [`Fault::None`].
    pub fn set_faults(&self, faults: impl FnMut(&RequestInfo) -> Fault + Send + 'static) {
        *lock(&self.shared.faults) = Some(Box::new(faults));
    }

    /// No more faults.
    pub fn clear_faults(&self) {
        *lock(&self.shared.faults) = None;
    }

    /// Asks this function about each event on its way to each watch. First events and bookmarks always arrive.
    pub fn set_event_faults(&self, faults: impl FnMut(&EventInfo) -> EventFault + Send + 'static) {
        *lock(&self.shared.event_faults) = Some(Box::new(faults));
    }

    /// No more faults of events.
    pub fn clear_event_faults(&self) {
        *lock(&self.shared.event_faults) = None;
    }

    /// Forgets the history: watches and lists from older versions get 410.
    pub fn compact(&self) {
        self.shared.state().storage.compact();
    }

    /// Ends all watches that are open now.
    pub fn break_watches(&self, end: WatchEnd) {
        self.shared.state().watches.end(None, end);
    }

    /// The server is started anew, with all that is stored: its watches break, and for a while it serves less (facts §7).
    pub fn restart(&self, start: Start) {
        let mut state = self.shared.state();
        state.starting = Some(Starting::now(start));
        state.watches.end(None, WatchEnd::Disconnect);
    }

    /// How many watches are open.
    pub fn watch_count(&self) -> usize {
        self.shared.state().watches.count()
    }

    /// Answers SubjectAccessReviews: from `spec`, whether it is allowed and why; without a reviewer they are refused. It is
    /// also asked for the rights of impersonated users (header `Impersonate-User`).
    pub fn set_reviewer(&self, reviewer: impl FnMut(&Value) -> (bool, String) + Send + 'static) {
        self.shared.state().reviewer = Some(Box::new(reviewer));
    }

    /// Lets this function change each object that a request creates or updates (no subresource), after defaults and before
    /// checks, as mutating webhooks and policies do. What it adds belongs to the manager that wrote. Unlike an API server, it
    /// asks whatever the stored configurations of webhooks say, and knows a change of its mind at once.
    pub fn set_mutation(&self, mutation: impl FnMut(&Reviewed<'_>, &mut Value) + Send + 'static) {
        self.shared.state().mutation = Some(Box::new(mutation));
    }

    /// The requests so far, in the order in which they arrived; empty without recording.
    pub fn requests(&self) -> Vec<Recorded> {
        lock(&self.shared.journal).requests()
    }

    /// Requests so far, by verb.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        lock(&self.shared.journal).verbs.clone()
    }

    /// Forgets requests and counts.
    pub fn clear_requests(&self) {
        lock(&self.shared.journal).clear();
    }

    /// Keeps requests from now on, or does not.
    pub fn set_recording(&self, recording: bool) {
        lock(&self.shared.journal).recording = recording;
    }

    /// The version of the last change of any object.
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

    /// Numbers and records a request.
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

    /// What the fault function says. It is taken out for the call, so that it may use the simulator as it likes.
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

/// A panic under the lock is the test's failure already; others go on with what is there.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
