//! State of the process for probes and the dashboard, readable from any thread (spec 70 §6). The servers run before
//! [`Process::start`](super::Process::start) fills it in.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use cluster::{ApiError, Cluster, Synced};
use futures::FutureExt as _;
use kit::Deadline;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout},
};

use crate::{
    actors::leader::Leadership,
    http::probes::{CheckFn, Checks, with_grace},
};

const API_SERVER: &str = "apiserver-healthz";
const SOURCE_SYNC: &str = "source-informer-sync";
const TARGET_SYNC: &str = "target-informer-sync";

const PROBE: Duration = Duration::from_secs(3);
const YOUNG: Duration = Duration::from_secs(1); // probes within this time share one request

/// State of the process. Cheap to clone.
#[derive(Clone, Default)]
pub struct Vitals {
    shared: Arc<Shared>,
}

struct Shared {
    source: OnceLock<Synced>,
    target: OnceLock<Synced>,
    leadership: watch::Sender<Leadership>,
    verdict: watch::Sender<Option<WatchdogVerdict>>,
    asked: Notify,
}

#[derive(Debug, Clone)]
struct WatchdogVerdict {
    at: Instant,
    result: Result<(), Refusal>,
}

#[derive(Debug, Clone)]
struct Refusal {
    text: String,
    is_unauthorized: bool,
}

impl Vitals {
    /// Returns the checks of `/healthz`.
    pub fn liveness(&self) -> Checks {
        let now = Arc::new(Instant::now);
        let (checked, refreshed) = (self.clone(), self.clone());
        Checks::with_ping()
            .with(API_SERVER, Arc::new(move || checked.api_server()))
            .refreshed_by(
                API_SERVER,
                Arc::new(move || {
                    let vitals = refreshed.clone();
                    async move { vitals.ask_api_server().await }.boxed()
                }),
            )
            .with(SOURCE_SYNC, with_grace(self.source_synced(), now.clone()))
            .with(TARGET_SYNC, with_grace(self.target_synced(), now))
    }

    /// Returns the checks of `/readyz`.
    pub fn readiness(&self) -> Checks {
        Checks::default().with(SOURCE_SYNC, self.source_synced()).with(TARGET_SYNC, self.target_synced())
    }

    /// Whether this process leads; without an election it stays a candidate.
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.shared.leadership.subscribe()
    }

    pub(super) fn leadership_sender(&self) -> watch::Sender<Leadership> {
        self.shared.leadership.clone()
    }

    /// Sets the sync states of the stores. Only the first call counts.
    pub(super) fn show(&self, source: Synced, target: Synced) {
        self.shared.source.get_or_init(|| source);
        self.shared.target.get_or_init(|| target);
    }

    fn source_synced(&self) -> CheckFn {
        let shared = self.shared.clone();
        Arc::new(move || check(&shared.source))
    }

    fn target_synced(&self) -> CheckFn {
        let shared = self.shared.clone();
        Arc::new(move || check(&shared.target))
    }

    /// Sends a request whenever a probe asks, and none otherwise. Runs forever, on the cluster's thread.
    pub(super) async fn probe(self, cluster: Cluster) {
        loop {
            self.shared.asked.notified().await;
            if self.young().is_some() {
                continue; // asked while the last request was under way
            }
            let result = cluster.healthz(Deadline::after(PROBE)).await.map_err(|error| refusal(&error));
            self.shared.verdict.send_replace(Some(WatchdogVerdict { at: Instant::now(), result }));
        }
    }

    async fn ask_api_server(&self) {
        // Subscribe before checking: a verdict that comes in between ends the wait at once.
        let mut verdicts = self.shared.verdict.subscribe();
        if self.young().is_none() {
            self.shared.asked.notify_one();
            timeout(PROBE + YOUNG, verdicts.changed()).await.ok();
        }
    }

    /// Rejected credentials do not fail liveness after the first lists: a restarted process could not list at all.
    fn api_server(&self) -> Result<(), String> {
        let verdict = self.shared.verdict.borrow().clone();
        match verdict.filter(|verdict| verdict.at.elapsed() < PROBE).map(|verdict| verdict.result) {
            Some(Ok(())) => Ok(()),
            Some(Err(refusal)) if refusal.is_unauthorized && self.is_listed() => Ok(()),
            Some(Err(refusal)) => Err(refusal.text),
            None => Err("the source cluster's kube-apiserver could not be asked in time".to_owned()),
        }
    }

    fn is_listed(&self) -> bool {
        check(&self.shared.source).and_then(|()| check(&self.shared.target)).is_ok()
    }

    fn young(&self) -> Option<WatchdogVerdict> {
        self.shared.verdict.borrow().clone().filter(|verdict| verdict.at.elapsed() < YOUNG)
    }
}

impl std::fmt::Debug for Vitals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vitals").field("leadership", &*self.shared.leadership.borrow()).finish_non_exhaustive()
    }
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            source: OnceLock::new(),
            target: OnceLock::new(),
            leadership: watch::Sender::new(Leadership::Candidate),
            verdict: watch::Sender::new(None),
            asked: Notify::new(),
        }
    }
}

fn check(synced: &OnceLock<Synced>) -> Result<(), String> {
    synced.get().map_or_else(|| Err("not started yet".to_owned()), Synced::check)
}

fn refusal(error: &ApiError) -> Refusal {
    let text = match error {
        ApiError::Status(status) => {
            format!("failed talking to the source cluster's kube-apiserver (status code: {})", status.code)
        }
        other => other.to_string(),
    };
    Refusal { text, is_unauthorized: error.is_unauthorized() }
}
