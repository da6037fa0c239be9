//! The component configuration (`resourcemanager.config.gardener.cloud/v1alpha1`, spec 70 §2-§4).
//! ```text
//! bytes ─ document.rs ─► JSON, official keys ─ decode.rs ─► file.rs ─ defaults.rs, validation.rs ─ resolve.rs ─► types.rs
//!         kind, aliases                        unknown keys   defaults   zeros                                  Config
//! ```
//! [`load`] does all of it. The command line works on the `Draft` in between: it decodes, applies flags and
//! environment, and finishes. Start reading at [`Config`]. A new key is one field in `file.rs` with its default, one in
//! `types.rs` and a line in `resolve.rs`. Everything here is pure.

mod decode;
mod defaults;
mod document;
pub(crate) mod file;
mod finding;
mod resolve;
mod tolerations;
mod types;
mod validation;

#[cfg(test)]
mod tests;

pub use decode::DecodeError;
pub use document::{API_VERSION, KIND};
pub use finding::{FieldError, Warning, WarningKind};
pub use types::*;

use self::{document::ConfigDocument, file::ConfigFile};

/// A valid configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// Warnings to log as soon as there is a log.
    pub warnings: Vec<Warning>,
    draft: Draft,
}

/// Why a configuration cannot be used. The texts are those of spec 70 §1.1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The bytes are no component configuration.
    #[error("error decoding config: {0}")]
    Decode(#[from] DecodeError),
    /// Broken rules, at least one, in the order of spec 70 §4.
    #[error("{}", finding::aggregate(.0))]
    Invalid(Vec<FieldError>),
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

/// An unfinished configuration: the decoded file, and what only flags can set.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Draft {
    pub(crate) file: ConfigFile,
    /// No server for probes (legacy flag).
    pub(crate) health_probes_off: bool,
    /// No server for metrics (legacy flag).
    pub(crate) metrics_off: bool,
    /// The settings of the CSR approver come from its former block.
    pub(crate) former_csr_approver: bool,
    pub(crate) warnings: Vec<Warning>,
}

/// Decodes, defaults and validates a file. Fails if it is no component configuration or breaks rules.
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

impl Loaded {
    /// An equivalent file with every key and its value. It contains paths of kubeconfigs, not their contents.
    pub fn to_yaml(&self) -> String {
        let mut file = self.draft.file.clone();
        let csr_approver = self.config.controllers.csr_approver.as_ref();
        file.controllers.csr_approver.machine_namespace =
            csr_approver.map_or(file.controllers.csr_approver.machine_namespace, |it| it.machine_namespace.clone());
        let only_flags_say = [
            (self.draft.health_probes_off, "# no server for probes: --health-bind-address=0\n"),
            (self.draft.metrics_off, "# no server for metrics: --metrics-bind-address=0\n"),
            (
                file.controllers.token_requestor.any_class,
                "# flags alone: the token requestor looks at Secrets of any class, and without a kubeconfig that of the user \
                 (~/.kube/config) is taken\n",
            ),
        ];
        let remarks: String = only_flags_say.iter().filter_map(|(said, remark)| said.then_some(*remark)).collect();
        remarks + &serde_saphyr::to_string(&file).expect("keys are texts, and all values have a form in YAML")
    }
}

impl Draft {
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let ConfigDocument { value, mut warnings, moved } = ConfigDocument::read(bytes)?;
        let (file, unknown) = decode::decode(value).map_err(|error| match error {
            DecodeError::Value { path, cause } => DecodeError::Value { path: moved.as_written(&path), cause },
            DecodeError::Syntax(_) | DecodeError::Kind { .. } => error,
        })?;
        warnings.extend(unknown.iter().map(|path| Warning::new(moved.as_written(path), WarningKind::UnknownKey)));
        let former_csr_approver = moved.has("controllers.csrApprover");
        Ok(Self { file, former_csr_approver, warnings, ..Self::default() })
    }

    pub(crate) fn finish(mut self, extra_target_namespaces: &[String]) -> Result<Loaded, ConfigError> {
        defaults::apply(&mut self.file);
        (self.file.api_version, self.file.kind) = (API_VERSION.to_owned(), KIND.to_owned());
        let namespaces = &mut self.file.target.namespaces;
        if namespaces.is_empty() && !extra_target_namespaces.is_empty() {
            self.warnings.push(Warning::new("--extra-target-namespace", WarningKind::NarrowsTarget));
        }
        namespaces.extend_from_slice(extra_target_namespaces);

        let errors = validation::validate(&self.file);
        if !errors.is_empty() {
            return Err(ConfigError::Invalid(errors));
        }
        Ok(Loaded { config: resolve::config(&self), warnings: std::mem::take(&mut self.warnings), draft: self })
    }
}

impl Default for Config {
    fn default() -> Self {
        let mut draft = Draft::default();
        draft.file.leader_election.leader_elect = false;
        defaults::apply(&mut draft.file);
        resolve::config(&draft)
    }
}
