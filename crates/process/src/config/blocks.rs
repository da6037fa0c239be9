//! Blocks that all programs have, and what they share of blocks that differ. Zero equals absence in all of them (spec 70
//! §2 rule 5): `fill` puts the defaults of the program in.

use kit::{duration::GoDuration, quote::quoted};

use super::{FieldError, Period, fill};
use crate::{
    config_blocks,
    http::listen::ListenAddress,
    logging::{Format, Level},
    settings::RateLimit,
};

/// Defaults that differ between programs.
#[derive(Debug, Clone, Copy)]
pub struct BlockDefaults {
    /// Requests to a cluster.
    pub rate_limit: RateLimit,
    /// Namespace of the Lease; empty: it has no default.
    pub lease_namespace: &'static str,
    /// Name of the Lease.
    pub lease_name: &'static str,
    /// Port of the server for probes.
    pub probes_port: u16,
    /// Port of the server for metrics.
    pub metrics_port: u16,
}

config_blocks! {
    /// Leader election (spec 70 §12). Nothing is checked while it is off.
    #[derive(Eq)]
    pub struct LeaderElection {
        /// Without it, controllers start as soon as the caches are filled.
        #[default(true)]
        pub leader_elect: bool,
        /// Other replicas wait this long after the last renewal they saw. Longer than `renew_deadline`.
        pub lease_duration: Period<15>,
        /// The leader gives up after this time without a renewal.
        pub renew_deadline: Period<10>,
        /// Time between attempts.
        pub retry_period: Period<2>,
        /// Lock type; only `leases` works.
        pub resource_lock: String,
        /// Name of the lease.
        pub resource_name: String,
        /// Namespace of the lease, in the first cluster.
        pub resource_namespace: String,
    }

    /// A server without TLS.
    #[derive(Eq)]
    pub struct PlainServer {
        /// Host name or address; empty means every interface, IPv4 and IPv6.
        pub bind_address: String,
        /// TCP port.
        pub port: i64,
    }

    /// Profiling (spec 70 §9.3).
    #[derive(Eq, Copy)]
    pub struct Debugging {
        /// Serve `/debug/pprof`.
        pub enable_profiling: bool,
        /// Accepted, without effect.
        pub enable_contention_profiling: bool,
    }
}

impl LeaderElection {
    /// The block of an empty file.
    pub fn with(defaults: &BlockDefaults) -> Self {
        let mut block = Self::default();
        block.fill(defaults);
        block
    }

    /// Puts the defaults in.
    pub fn fill(&mut self, defaults: &BlockDefaults) {
        fill(&mut self.lease_duration, GoDuration::ZERO.into(), Period::default());
        fill(&mut self.renew_deadline, GoDuration::ZERO.into(), Period::default());
        fill(&mut self.retry_period, GoDuration::ZERO.into(), Period::default());
        fill(&mut self.resource_lock, String::new(), "leases".to_owned());
        fill(&mut self.resource_name, String::new(), defaults.lease_name.to_owned());
        fill(&mut self.resource_namespace, String::new(), defaults.lease_namespace.to_owned());
    }

    /// Checks the rules of spec 70 §4 (4-6).
    pub fn validate(&self, errors: &mut Vec<FieldError>) {
        if !self.leader_elect {
            return;
        }
        let (lease, deadline, retry) =
            (self.lease_duration.written(), self.renew_deadline.written(), self.retry_period.written());
        for (key, duration) in [("leaseDuration", lease), ("renewDeadline", deadline), ("retryPeriod", retry)] {
            if duration <= GoDuration::ZERO {
                let value = quoted(&duration.to_string());
                errors.push(FieldError::invalid(format!("leaderElection.{key}"), value, "must be greater than zero"));
            }
        }
        if lease <= deadline {
            let value = quoted(&deadline.to_string());
            let detail = "must be greater than `RenewDeadline`";
            errors.push(FieldError::invalid("leaderElection.leaseDuration", value, detail));
        }
        FieldError::unless_given(errors, "leaderElection.resourceLock", &self.resource_lock, "");
        FieldError::unless_given(errors, "leaderElection.resourceNamespace", &self.resource_namespace, "");
        FieldError::unless_given(errors, "leaderElection.resourceName", &self.resource_name, "");
    }

    /// Returns the settings if the election is on.
    pub fn on(&self) -> Option<&Self> {
        self.leader_elect.then_some(self)
    }
}

impl PlainServer {
    /// This port of every interface.
    pub fn at(port: u16) -> Self {
        Self { bind_address: String::new(), port: i64::from(port) }
    }

    /// Puts the default port in.
    pub fn fill(&mut self, port: u16) {
        fill(&mut self.port, 0, i64::from(port));
    }

    /// Checks that the port exists (spec 70 §4 rule 7).
    pub fn validate(&self, errors: &mut Vec<FieldError>, path: &str) {
        if self.port < 0 {
            let detail = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(format!("{path}.port"), self.port, detail));
        } else if self.port > i64::from(u16::MAX) {
            errors.push(FieldError::invalid(format!("{path}.port"), self.port, "must be between 0 and 65535"));
        }
    }

    /// The address.
    pub fn address(&self) -> ListenAddress {
        ListenAddress { host: self.bind_address.clone(), port: self.port }
    }
}

/// Puts the defaults of a client connection in.
pub fn fill_rate(qps: &mut f64, burst: &mut i64, defaults: RateLimit) {
    fill(qps, 0.0, defaults.qps);
    fill(burst, 0, i64::from(defaults.burst));
    if *qps < 0.0 && *burst > 0 {
        // Unlimited, whatever the numbers are: equal configurations look equal.
        (*qps, *burst) = (-1.0, i64::from(defaults.burst));
    }
}

/// Checks the burst of the client connection at `path`.
pub fn check_burst(errors: &mut Vec<FieldError>, path: &str, burst: i64) {
    if burst < 0 {
        errors.push(FieldError::invalid(format!("{path}.burst"), burst, "must be non-negative"));
    }
}

/// Returns the limit of a client connection; `None` is unlimited.
pub fn rate_limit(qps: f64, burst: i64) -> Option<RateLimit> {
    (qps > 0.0).then_some(RateLimit { qps, burst: u32::try_from(burst).unwrap_or(u32::MAX) })
}

/// Checks the names of the log's level and format (spec 70 §4 rules 8 and 9).
pub fn check_logging(errors: &mut Vec<FieldError>, level: &str, format: &str) {
    if Level::from_name(level).is_none() {
        errors.push(FieldError::unsupported("logLevel", level, &Level::NAMES));
    }
    if Format::from_name(format).is_none() {
        errors.push(FieldError::unsupported("logFormat", format, &Format::NAMES));
    }
}
