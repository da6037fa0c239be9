//! The configuration of gardener-controller-manager (`controllermanager.config.gardener.cloud/v1alpha1`, spec 80 §2-§7).
//! [`load`] decodes, defaults and validates a file. Start reading at [`Config`]; a new key is one field of `blocks.rs`.
//! * `blocks.rs`: the blocks of the file, with defaults; `quota.rs`: ResourceQuotas for Projects
//! * `feature_gates.rs`: switches of parts that are not settled; `validation.rs`: rules

mod blocks;
mod feature_gates;
mod quota;
mod validation;

#[cfg(test)]
mod tests;

pub use process::config::{ConfigError, FieldError, Period, Positive, Warning, WarningKind, Workers};
use process::{
    config::{
        Alias, BlockDefaults, BothSpellings, ConfigSchema, Decoded, fill, fill_rate, hash, rate_limit, to_log, to_yaml,
    },
    logging::Logging,
    settings::RateLimit,
};

pub use self::{
    blocks::*,
    feature_gates::{DISABLE_NGINX_INGRESS_IN_SHOOT, FeatureGate, FeatureGates},
    quota::{HardLimit, ProjectQuota, QuotaSpec, QuotaTemplate},
};

/// Group and version of the configuration.
pub const API_VERSION: &str = "controllermanager.config.gardener.cloud/v1alpha1";
/// Kind of the configuration.
pub const KIND: &str = "ControllerManagerConfiguration";

const DEFAULTS: BlockDefaults = BlockDefaults {
    rate_limit: RateLimit { qps: 50.0, burst: 100 },
    lease_namespace: "garden",
    lease_name: "gardener-controller-manager-leader-election",
    probes_port: 2718,
    metrics_port: 2719,
};

/// What the file looks like, besides its blocks.
pub(crate) const SCHEMA: ConfigSchema = ConfigSchema {
    api_version: API_VERSION,
    kind: KIND,
    aliases: &[
        former("leaderElection.lockObjectName", "leaderElection.resourceName"),
        former("leaderElection.lockObjectNamespace", "leaderElection.resourceNamespace"),
        former("controllers.shootRetry.retryDuration", "controllers.shootRetry.retryPeriod"),
    ],
    without_effect: &[
        "server.http",
        "server.https",
        "controllers.plant",
        "controllers.secretBindingProvider",
        "kubernetesLogLevel",
    ],
    selecting: &["LabelSelector", "LabelSelectorRequirement"],
};

/// A valid configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Warnings to log as soon as there is a log.
    pub warnings: Vec<Warning>,
}

/// Decodes, defaults and validates a file. A `kubeconfig` of the environment beats that of the file. Fails if the file
/// is no such configuration, names a feature gate that does not exist, or breaks rules.
pub fn load(bytes: &[u8], kubeconfig: Option<&str>) -> Result<Loaded, ConfigError> {
    let Decoded::<Config> { mut config, mut warnings, .. } = SCHEMA.decode(bytes)?;
    if let Some(path) = kubeconfig.filter(|path| !path.is_empty()) {
        path.clone_into(&mut config.garden_client_connection.kubeconfig);
    }
    config.settle(&mut warnings);
    config.feature_gates.check(&mut warnings)?;
    let errors = validation::validate(&config);
    if errors.is_empty() { Ok(Loaded { config, warnings }) } else { Err(ConfigError::Invalid(errors)) }
}

const fn former(accepted: &'static str, official: &'static str) -> Alias {
    Alias { accepted, official, both: BothSpellings::OfficialWins, is_deprecated: true }
}

impl Config {
    /// An equivalent file with every key and its value. It contains paths of kubeconfigs, not their contents.
    pub fn to_yaml(&self) -> String {
        to_yaml(self)
    }

    /// What [`Self::to_yaml`] returns, without what may be a credential.
    pub fn to_log(&self) -> String {
        to_log(self)
    }

    /// The log.
    pub fn logging(&self) -> Logging {
        Logging::named(&self.log_level, &self.log_format)
    }

    /// SHA-256 of the effective configuration in hex. Equivalent configurations have the same hash.
    pub fn hash(&self) -> String {
        let mut config = self.clone();
        config.feature_gates.forget_defaults();
        hash(&config)
    }

    /// Replaces zeros that count as absent, values that count as their default, and values that follow from others.
    fn settle(&mut self, warnings: &mut Vec<Warning>) {
        (self.api_version, self.kind) = (API_VERSION.to_owned(), KIND.to_owned());
        let connection = &mut self.garden_client_connection;
        fill_rate(&mut connection.qps, &mut connection.burst, DEFAULTS.rate_limit);
        self.leader_election.fill(&DEFAULTS);
        self.server.health_probes.fill(DEFAULTS.probes_port);
        self.server.metrics.fill(DEFAULTS.metrics_port);
        fill(&mut self.log_level, String::new(), "info".to_owned());
        fill(&mut self.log_format, String::new(), "json".to_owned());
        self.controllers.settle(warnings);
    }
}

impl ClientConnection {
    /// The limit of requests; `None` is unlimited.
    pub fn rate_limit(&self) -> Option<RateLimit> {
        rate_limit(self.qps, self.burst)
    }
}
