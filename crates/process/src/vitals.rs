//! State of the process for probes and the dashboard, readable from any thread (spec 70 §6). The servers run before
//! [`Process::start`](super::Process::start) fills it in.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use cluster::{ApiError, Cluster, DiscoverySummary, Synced};
use futures::FutureExt as _;
use kit::Deadline;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout},
};

use crate::{
    Probes, Program,
    clusters::ClusterView,
    figures::{ClusterFigures, DiscoveryFigures, FailedGroup, Figures, LimiterFigures, Now, WebhookFiguresFn},
    http::probes::{CheckFn, Checks, with_grace},
    leader::Leadership,
    metrics::Metrics,
};

const PROBE: Duration = Duration::from_secs(3);
const VERSION_LIFE: Duration = Duration::from_secs(600); // API servers are updated rarely
const VERSION_AGAIN: Duration = Duration::from_secs(30); // after a failure
const YOUNG: Duration = Duration::from_secs(1); // probes within this time share one request

/// State of the process. Cheap to clone.
#[derive(Clone)]
pub struct Vitals {
    shared: Arc<Shared>,
}

struct Shared {
    probes: Probes,
    /// In the order of the checks.
    synced: OnceLock<Vec<Synced>>,
    /// Name of the cluster whose API server is asked.
    cluster: &'static str,
    leadership: watch::Sender<Leadership>,
    /// Identity of the lease's holder.
    holder: watch::Sender<Option<Arc<str>>>,
    verdict: watch::Sender<Option<WatchdogVerdict>>,
    asked: Notify,
    clusters: OnceLock<Vec<ClusterView>>,
    versions: Versions,
    webhooks: OnceLock<WebhookFiguresFn>,
}

/// The versions of the API servers. They are read while somebody looks, and rarely.
#[derive(Default)]
struct Versions {
    asked: Notify,
    known: Mutex<KnownVersions>,
}

#[derive(Default)]
struct KnownVersions {
    /// By index of the cluster.
    versions: BTreeMap<usize, String>,
    /// When they are read again if somebody looks.
    due: Option<Instant>,
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
    /// A process of the program `P` that is not started yet.
    pub fn new<P: Program>() -> Self {
        let shared = Shared {
            probes: P::PROBES,
            cluster: P::CLUSTERS.first().map_or("", |cluster| cluster.as_str()),
            synced: OnceLock::new(),
            leadership: watch::Sender::new(Leadership::Candidate),
            verdict: watch::Sender::new(None),
            holder: watch::Sender::new(None),
            asked: Notify::new(),
            clusters: OnceLock::new(),
            versions: Versions::default(),
            webhooks: OnceLock::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the checks of `/healthz`.
    pub fn liveness(&self) -> Checks {
        let api_server = self.shared.probes.api_server;
        let checks = api_server.into_iter().fold(Checks::with_ping(), |checks, name| {
            let (checked, refreshed) = (self.clone(), self.clone());
            checks.with(name, Arc::new(move || checked.api_server())).refreshed_by(
                name,
                Arc::new(move || {
                    let vitals = refreshed.clone();
                    async move { vitals.ask_api_server().await }.boxed()
                }),
            )
        });
        self.informers().fold(checks, |checks, (name, synced)| checks.with(name, with_grace(synced)))
    }

    /// Returns the checks of `/readyz`.
    pub fn readiness(&self) -> Checks {
        self.informers().fold(Checks::default(), |checks, (name, synced)| checks.with(name, synced))
    }

    /// Whether this process leads; without an election it stays a candidate.
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.shared.leadership.subscribe()
    }

    pub(super) fn leadership_sender(&self) -> watch::Sender<Leadership> {
        self.shared.leadership.clone()
    }

    /// The identity of the lease's holder, if it is known.
    pub fn holder(&self) -> Option<Arc<str>> {
        self.shared.holder.borrow().clone()
    }

    pub(super) fn holder_sender(&self) -> watch::Sender<Option<Arc<str>>> {
        self.shared.holder.clone()
    }

    /// Sets where figures of webhooks come from. Only the first call counts.
    pub fn show_webhooks(&self, webhooks: WebhookFiguresFn) {
        self.shared.webhooks.get_or_init(|| webhooks);
    }

    /// Returns the figures of the program `P`. Asks for versions of API servers, which later figures have.
    pub(super) fn figures<P: Program>(&self, metrics: &Metrics, now: Now) -> Figures {
        Figures {
            views: P::VIEWS,
            reconcilers: metrics.reconciler_figures(now),
            clusters: self.cluster_figures(metrics),
            served: self.shared.webhooks.get().map(|webhooks| webhooks(now)).unwrap_or_default(),
        }
    }

    fn cluster_figures(&self, metrics: &Metrics) -> Vec<ClusterFigures> {
        let Some(clusters) = self.shared.clusters.get() else { return Vec::new() };
        let known = self.shared.versions.known();
        if known.due.is_none_or(|due| due <= Instant::now()) {
            self.shared.versions.asked.notify_one();
        }
        let figures = clusters.iter().enumerate().map(|(index, cluster)| {
            let same_as = cluster.shares.and_then(|other| clusters.get(other)).map(|other| other.name);
            let (waiting, in_flight) = metrics.scheduler_figures(same_as.unwrap_or(cluster.name));
            let DiscoverySummary { at, kinds, failed } = cluster.discovery.read();
            let failed = failed.into_iter().map(|(group, error)| FailedGroup { group, error }).collect();
            ClusterFigures {
                name: cluster.name,
                same_as,
                server: cluster.host.clone(),
                version: known.versions.get(&cluster.shares.unwrap_or(index)).cloned(),
                requests: metrics.request_figures(&cluster.host),
                limiter: LimiterFigures {
                    qps: cluster.rate.map(|(qps, _)| qps),
                    burst: cluster.rate.map(|(_, burst)| burst),
                    waiting,
                    in_flight,
                },
                discovery: DiscoveryFigures { at, kinds, failed },
            }
        });
        figures.collect()
    }

    /// Sets what other threads may read of the clusters. Only the first call counts.
    pub(super) fn show_clusters(&self, clusters: Vec<ClusterView>) {
        self.shared.clusters.get_or_init(|| clusters);
    }

    /// Reads the versions of the API servers when somebody looks, and none otherwise. Runs forever, on the clusters'
    /// thread.
    pub(super) async fn read_versions(self, clusters: Vec<(usize, Cluster)>) {
        let versions = &self.shared.versions;
        loop {
            versions.asked.notified().await;
            if versions.known().due.is_some_and(|due| due > Instant::now()) {
                continue; // asked while the last requests were under way
            }
            let mut are_known = true;
            for (index, cluster) in &clusters {
                match cluster.git_version(Deadline::after(PROBE)).await {
                    Ok(version) => {
                        versions.known().versions.insert(*index, version);
                    }
                    Err(error) => {
                        are_known = false;
                        let cluster = cluster.options().label.as_str();
                        tracing::debug!(cluster, %error, "the version of the API server is not known");
                    }
                }
            }
            let rest = if are_known { VERSION_LIFE } else { VERSION_AGAIN };
            versions.known().due = Some(Instant::now() + rest);
        }
    }

    /// Sets the sync states of the clusters' caches. Only the first call counts.
    pub(super) fn show(&self, synced: impl Iterator<Item = Synced>) {
        self.shared.synced.get_or_init(|| synced.collect());
    }

    fn informers(&self) -> impl Iterator<Item = (&'static str, CheckFn)> {
        let checks = self.shared.probes.informers.iter().enumerate();
        checks.map(|(index, name)| -> (&'static str, CheckFn) {
            let shared = self.shared.clone();
            (name, Arc::new(move || check(&shared.synced, index)))
        })
    }

    /// Sends a request whenever a probe asks, and none otherwise. Runs forever, on the cluster's thread.
    pub(super) async fn probe(self, cluster: Cluster) {
        loop {
            self.shared.asked.notified().await;
            if self.young().is_some() {
                continue; // asked while the last request was under way
            }
            let result =
                cluster.healthz(Deadline::after(PROBE)).await.map_err(|error| refusal(self.shared.cluster, &error));
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
            None => Err(format!("the {} cluster's kube-apiserver could not be asked in time", self.shared.cluster)),
        }
    }

    fn is_listed(&self) -> bool {
        self.informers().all(|(_, check)| check().is_ok())
    }

    fn young(&self) -> Option<WatchdogVerdict> {
        self.shared.verdict.borrow().clone().filter(|verdict| verdict.at.elapsed() < YOUNG)
    }
}

impl Versions {
    fn known(&self) -> MutexGuard<'_, KnownVersions> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check(synced: &OnceLock<Vec<Synced>>, index: usize) -> Result<(), String> {
    let synced = synced.get().and_then(|synced| synced.get(index));
    synced.map_or_else(|| Err("not started yet".to_owned()), Synced::check)
}

fn refusal(cluster: &str, error: &ApiError) -> Refusal {
    let text = match error {
        ApiError::Status(status) => {
            format!("failed talking to the {cluster} cluster's kube-apiserver (status code: {})", status.code)
        }
        other => other.to_string(),
    };
    Refusal { text, is_unauthorized: error.is_unauthorized() }
}
