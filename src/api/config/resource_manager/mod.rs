//! The configuration of gardener-resource-manager (`resourcemanager.config.gardener.cloud/v1alpha1`, spec 70 §2-§4).
//! [`load`] decodes, defaults and validates a file. The command line works on the [`Draft`] in between: it decodes,
//! applies flags and environment, and finishes. Start reading at [`Config`]; a new key is one field of `blocks.rs`.
//! * `blocks.rs`: the blocks of the file, with defaults
//! * `effective.rs`: what the blocks mean; `validation.rs`, `tolerations.rs`: rules

mod blocks;
mod effective;
mod tolerations;
mod validation;

#[cfg(test)]
mod tests;

pub use process::config::{ConfigError, Enabled, FieldError, Period, Positive, Warning, WarningKind, Workers};
use process::{
    config::{Alias, BlockDefaults, BothSpellings, ConfigSchema, to_log, to_yaml},
    settings::RateLimit,
};

pub use self::blocks::*;

/// Group and version of the configuration.
pub const API_VERSION: &str = "resourcemanager.config.gardener.cloud/v1alpha1";
/// Kind of the configuration.
pub const KIND: &str = "ResourceManagerConfiguration";

/// A lock type of the flags that was replaced by leases long ago.
pub(crate) const LOCK_REPLACED: WarningKind =
    WarningKind::OfProgram("Lock type does not exist any more, leases is used");
/// `--extra-target-namespace` without configured namespaces restricts the target to these (spec 70 trap 1).
pub(crate) const NARROWS_TARGET: WarningKind =
    WarningKind::OfProgram("Extra target namespaces replace all namespaces, only these are watched");

const DEFAULTS: BlockDefaults = BlockDefaults {
    rate_limit: RateLimit { qps: 100.0, burst: 130 },
    lease_namespace: "",
    lease_name: "gardener-resource-manager",
    probes_port: 8081,
    metrics_port: 8080,
};

/// What the file looks like, besides its blocks.
pub(crate) const SCHEMA: ConfigSchema = ConfigSchema {
    api_version: API_VERSION,
    kind: KIND,
    aliases: &[
        // The user documentation has this one, so it gives no warning (spec 10 §3.1).
        Alias {
            accepted: "controllers.managedResources",
            official: "controllers.managedResource",
            both: BothSpellings::MergeFields,
            is_deprecated: false,
        },
        former("controllers.node", "controllers.nodeCriticalComponents"),
        former("controllers.kubeletCSRApprover", CSR_APPROVER),
        former("controllers.tokenValidator", "controllers.tokenInvalidator"),
        former("webhooks.tokenValidator", "webhooks.tokenInvalidator"),
    ],
    without_effect: &["controllers.rootCAPublisher", "controllers.secret", "webhooks.podZoneAffinity"],
    selecting: &["LabelSelector", "LabelSelectorRequirement", "IngressControllerSelector", "Toleration"],
};

const CSR_APPROVER: &str = "controllers.csrApprover";

/// A valid configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Warnings to log as soon as there is a log.
    pub warnings: Vec<Warning>,
}

/// Where the cluster identity comes from (spec 70 §14).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterIdSource {
    /// The configured text; empty means no identity.
    Literal(String),
    /// `<cluster>`: the ConfigMap `kube-system/cluster-identity` of the source cluster, which must exist.
    Required,
    /// `<default>`: the same ConfigMap; without it or its key there is no identity.
    Optional,
}

/// An unfinished configuration: the decoded file, which flags may change.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Draft {
    pub(crate) config: Config,
    /// The settings of the CSR approver come from its former block.
    pub(crate) former_csr_approver: bool,
    pub(crate) warnings: Vec<Warning>,
}

/// Decodes, defaults and validates a file. Fails if it is no such configuration or breaks rules.
pub fn load(bytes: &[u8]) -> Result<Loaded, ConfigError> {
    Draft::decode(bytes)?.finish(&[])
}

/// Returns the meaning of a configured cluster identity.
pub fn cluster_id_source(configured: &str) -> ClusterIdSource {
    match configured {
        "<cluster>" => ClusterIdSource::Required,
        "<default>" => ClusterIdSource::Optional,
        literal => ClusterIdSource::Literal(literal.to_owned()),
    }
}

const fn former(accepted: &'static str, official: &'static str) -> Alias {
    Alias { accepted, official, both: BothSpellings::OfficialWins, is_deprecated: true }
}

impl Config {
    /// An equivalent file with every key and its value. It contains paths of kubeconfigs, not their contents.
    pub fn to_yaml(&self) -> String {
        self.remarks() + &to_yaml(self)
    }

    /// What [`Self::to_yaml`] returns, without what may be a credential.
    pub fn to_log(&self) -> String {
        self.remarks() + &to_log(self)
    }

    /// Comments about what only flags say.
    fn remarks(&self) -> String {
        let only_flags_say = [
            (self.server.health_probes_off, "# no server for probes: --health-bind-address=0\n"),
            (self.server.metrics_off, "# no server for metrics: --metrics-bind-address=0\n"),
            (
                self.controllers.token_requestor.settings.any_class,
                "# flags alone: the token requestor looks at Secrets of any class, and without a kubeconfig that of the \
                 user (~/.kube/config) is taken\n",
            ),
        ];
        only_flags_say.iter().filter_map(|(said, remark)| said.then_some(*remark)).collect()
    }
}

impl Draft {
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, ConfigError> {
        let decoded = SCHEMA.decode(bytes)?;
        let former_csr_approver = decoded.was_moved(CSR_APPROVER);
        Ok(Self { config: decoded.config, former_csr_approver, warnings: decoded.warnings })
    }

    pub(crate) fn finish(self, extra_target_namespaces: &[String]) -> Result<Loaded, ConfigError> {
        let Self { mut config, former_csr_approver, mut warnings } = self;
        config.fill();
        let namespaces = &mut config.target.namespaces;
        if namespaces.is_empty() && !extra_target_namespaces.is_empty() {
            warnings.push(Warning::new("--extra-target-namespace", NARROWS_TARGET));
        }
        namespaces.extend_from_slice(extra_target_namespaces);

        let errors = validation::validate(&config);
        if !errors.is_empty() {
            return Err(ConfigError::Invalid(errors));
        }
        config.settle(former_csr_approver);
        Ok(Loaded { config, warnings })
    }
}
