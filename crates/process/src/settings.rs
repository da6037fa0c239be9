//! The part of a program's configuration that the process itself needs. Everything is decoded, defaulted and valid.

use std::time::Duration;

use serde::Serialize;

pub use crate::config::{Debugging, LeaderElection};
use crate::http::listen::Bind;

/// What the process needs of the effective configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// `None`: controllers start as soon as the caches are filled.
    pub leader_election: Option<LeaderElection>,
    /// Plain HTTP for probes; `None`: no such server.
    pub health_probes: Option<Endpoint>,
    /// Plain HTTP for metrics, profiles and the dashboard; `None`: no such server.
    pub metrics: Option<Endpoint>,
    /// Profiling (spec 70 §9.3).
    pub debugging: Debugging,
    /// Level and format of the log.
    pub logging: Logging,
    /// How long a controller waits for its caches before it counts as failed. Never zero.
    pub cache_sync_timeout: Duration,
    /// Shown as a metric: equivalent configurations have the same hash.
    pub hash: String,
}

/// A token bucket.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RateLimit {
    /// Requests per second. Positive.
    pub qps: f64,
    /// Additional requests at once.
    pub burst: u32,
}

/// A listening address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Endpoint {
    /// Host name or address; empty means every interface, IPv4 and IPv6.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

/// The log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Logging {
    /// Least important level that is written.
    pub level: LogLevel,
    /// Form of a record.
    pub format: LogFormat,
}

/// Log levels of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Everything.
    Debug,
    /// Normal operation and errors.
    Info,
    /// Errors only.
    Error,
}

/// Log formats of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One object per line.
    Json,
    /// Tab-separated.
    Text,
}

impl Endpoint {
    /// The address to bind.
    pub fn bind(&self) -> Bind {
        Bind { address: self.host.clone(), port: self.port }
    }
}

impl std::fmt::Display for Endpoint {
    /// `host:port`, with IPv6 addresses in brackets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.bind().fmt(f)
    }
}

impl Logging {
    /// The log with these names of the configuration; an unknown one counts as `info` or `json`.
    pub fn named(level: &str, format: &str) -> Self {
        Self {
            level: LogLevel::from_name(level).unwrap_or(LogLevel::Info),
            format: LogFormat::from_name(format).unwrap_or(LogFormat::Json),
        }
    }
}

impl LogLevel {
    /// All names, in the order of messages.
    pub const NAMES: [&'static str; 3] = ["debug", "info", "error"];

    /// Parses the name used in the configuration.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "debug" => Some(Self::Debug),
            "info" => Some(Self::Info),
            "error" => Some(Self::Error),
            _ => None,
        }
    }
}

impl LogFormat {
    /// All names, in the order of messages.
    pub const NAMES: [&'static str; 2] = ["json", "text"];

    /// Parses the name used in the configuration.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "json" => Some(Self::Json),
            "text" => Some(Self::Text),
            _ => None,
        }
    }
}
