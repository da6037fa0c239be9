//! Figures for the dashboard: what counters and caches say of reconcilers, clusters and webhooks. They are computed
//! while somebody looks, from the counters of [`metrics`](crate::metrics) and from cells of other threads, and ask no
//! actor. `minutes` counts by minute, `latency` measures quantiles, `rates` makes totals to rates.

mod latency;
mod minutes;
mod rates;

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

pub use self::{latency::Latency, minutes::Now};
pub(crate) use self::{minutes::Minutes, rates::Rates};

/// Computes the figures. Must return at once.
pub type FiguresFn = Arc<dyn Fn(Now) -> Figures + Send + Sync>;

/// Returns the figures of the webhooks and of their certificate. Must return at once.
pub type WebhookFiguresFn = Arc<dyn Fn(Now) -> ServedWebhooks + Send + Sync>;

/// What a viewer sees beside the actors.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Figures {
    /// The views that the program has, the first page first.
    pub views: &'static [&'static str],
    /// Of the reconcilers that have started, by name.
    pub reconcilers: Vec<ReconcilerFigures>,
    /// Of the clusters, in the order in which they were opened.
    pub clusters: Vec<ClusterFigures>,
    /// Of the webhooks and their certificate.
    #[serde(flatten)]
    pub served: ServedWebhooks,
}

/// Figures of the webhook server.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ServedWebhooks {
    /// Of each webhook.
    pub webhooks: Vec<WebhookFigures>,
    /// The serving certificate, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateFigures>,
}

/// Figures of one reconciler.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReconcilerFigures {
    /// The controller, as in paths of actors.
    pub controller: &'static str,
    /// Its name, as in metrics.
    pub reconciler: &'static str,
    /// How many reconciles may run at the same time.
    pub permits: u64,
    /// How many run.
    pub running: u64,
    /// How many keys wait for a permit.
    pub waiting: u64,
    /// Durations in seconds, since the start.
    pub durations: HistogramFigures,
    /// Seconds that keys waited for a permit, since the start.
    pub waits: HistogramFigures,
    /// Results of the last ten minutes, the oldest first.
    pub minutes: Vec<MinuteFigures>,
}

/// A histogram.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct HistogramFigures {
    /// Upper bounds of the buckets, without the last one, which has none.
    pub bounds: Vec<f64>,
    /// Values per bucket.
    pub counts: Vec<u64>,
}

/// How the reconciles of one minute ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MinuteFigures {
    /// Begin of the minute.
    pub at: Timestamp,
    /// Successes.
    pub success: u32,
    /// Errors, terminal ones included.
    pub error: u32,
    /// Reconciles that run again after a back-off or at once.
    pub requeue: u32,
    /// Reconciles that run again after a time or an event.
    pub requeue_after: u32,
}

/// Figures of one cluster.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterFigures {
    /// Its name, e.g. `source`.
    pub name: &'static str,
    /// The cluster with which it shares connection, limiter and discovery: both are the same one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_as: Option<&'static str>,
    /// `host:port` of the API server.
    pub server: String,
    /// Version of the API server, if it is known by now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Requests to the server by method and status.
    pub requests: Vec<RequestFigures>,
    /// The request scheduler.
    pub limiter: LimiterFigures,
    /// The kinds that the server serves.
    pub discovery: DiscoveryFigures,
}

/// Requests with one method and one status.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestFigures {
    /// HTTP method.
    pub verb: String,
    /// HTTP status, or `<error>` without an answer.
    pub code: String,
    /// Requests per second, over the last ten seconds at most; 0 in the first figures.
    pub per_second: f64,
    /// Requests since the start.
    pub total: u64,
}

/// The request scheduler of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LimiterFigures {
    /// Requests per second and resource type; absent if there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub qps: Option<f64>,
    /// Burst per resource type; absent if there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<f64>,
    /// Requests that wait for their turn.
    pub waiting: u64,
    /// Writes that wait for their answer.
    pub in_flight: u64,
}

/// The discovery of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DiscoveryFigures {
    /// When it last read the kinds, or tried to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// Known kinds; a kind counts once per version.
    pub kinds: usize,
    /// Groups that cannot be read.
    pub failed: Vec<FailedGroup>,
}

/// A group of kinds that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedGroup {
    /// Its name; empty for all groups, or for the core group.
    pub group: String,
    /// Why.
    pub error: String,
}

/// Figures of one webhook.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookFigures {
    /// Its path.
    pub path: String,
    /// Requests per second, over the last ten seconds at most; 0 in the first figures.
    pub per_second: f64,
    /// Requests since the start.
    pub total: u64,
    /// Requests since the start that were not decided: other statuses than 200, and failures except denials.
    pub errors: u64,
    /// Half of the requests of the last ten minutes took at most so many seconds; absent without requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50: Option<f64>,
    /// The same for 99 of 100 requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
}

/// The serving certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateFigures {
    /// When it expires.
    pub not_after: Timestamp,
}
