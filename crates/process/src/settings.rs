//! The part of a program's configuration that the process itself needs. Everything is decoded, defaulted and valid.

use std::time::Duration;

pub use crate::config::{Debugging, LeaderElection};
use crate::{http::listen::ListenAddress, logging::Logging};

/// What the process needs of the effective configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// `None`: controllers start as soon as the caches are filled.
    pub leader_election: Option<LeaderElection>,
    /// Plain HTTP for probes; `None`: no such server.
    pub health_probes: Option<ListenAddress>,
    /// Plain HTTP for metrics, profiles and the dashboard; `None`: no such server.
    pub metrics: Option<ListenAddress>,
    /// Profiling (spec 70 §9.3).
    pub debugging: Debugging,
    /// Level and format of the log.
    pub logging: Logging,
    /// How long a controller waits for its caches before it counts as failed. Never zero.
    pub cache_sync_timeout: Duration,
    /// Shown as a metric: equivalent configurations have the same hash.
    pub hash: String,
    /// Every key with its effective value, as `--print-config` prints it. It contains no credentials.
    pub effective: String,
}

/// A token bucket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimit {
    /// Requests per second. Positive.
    pub qps: f64,
    /// Additional requests at once.
    pub burst: u32,
}
