//! Feature gates (spec 80 §7).

use std::collections::BTreeMap;

use process::config::{ConfigError, Warning, WarningKind};
use serde::{Deserialize, Serialize};

/// A gate that can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeatureGate {
    name: &'static str,
    stage: &'static str,
}

/// Shoots cannot have the Ingress controller nginx any more. Off by default.
pub const DISABLE_NGINX_INGRESS_IN_SHOOT: FeatureGate =
    FeatureGate { name: "DisableNginxIngressInShoot", stage: ALL_ALPHA };

const ALL_ALPHA: &str = "AllAlpha";
const ALL_BETA: &str = "AllBeta";
const GATES: [FeatureGate; 1] = [DISABLE_NGINX_INGRESS_IN_SHOOT];
/// Gates of earlier releases, which cannot be set any more.
const SETTLED: [&str; 3] = ["CachedRuntimeClients", "UseDNSRecords", "RotateSSHKeypairOnMaintenance"];

/// The gates that the file sets, without those that have no effect.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, Option<bool>>")]
pub struct FeatureGates(BTreeMap<String, bool>);

impl From<BTreeMap<String, Option<bool>>> for FeatureGates {
    fn from(written: BTreeMap<String, Option<bool>>) -> Self {
        Self(written.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
    }
}

impl FeatureGates {
    /// Returns true if the gate is on: it is set, or it is not mentioned and its stage is set.
    pub fn is_enabled(&self, gate: FeatureGate) -> bool {
        self.0.get(gate.name).or_else(|| self.0.get(gate.stage)).copied().unwrap_or(false)
    }

    /// Sets a gate.
    pub fn set(&mut self, gate: FeatureGate, value: bool) {
        self.0.insert(gate.name.to_owned(), value);
    }

    /// The gates that the file sets, by name.
    pub fn explicit(&self) -> &BTreeMap<String, bool> {
        &self.0
    }

    /// Removes gates of earlier releases, with a warning for each. Fails at the first unknown name.
    pub(super) fn check(&mut self, warnings: &mut Vec<Warning>) -> Result<(), ConfigError> {
        let known = |name: &str| [ALL_ALPHA, ALL_BETA].contains(&name) || GATES.iter().any(|gate| gate.name == name);
        let unknown = self.0.keys().find(|name| !known(name) && !SETTLED.contains(&name.as_str()));
        if let Some(name) = unknown {
            return Err(ConfigError::UnknownFeatureGate(name.clone()));
        }
        let settled = self.0.extract_if(.., |name, _| !known(name));
        warnings.extend(settled.map(|(name, _)| Warning::new(format!("featureGates.{name}"), WarningKind::NoEffect)));
        Ok(())
    }

    /// Keeps only what is on, under the names of single gates.
    pub(super) fn forget_defaults(&mut self) {
        let enabled = GATES.into_iter().filter(|gate| self.is_enabled(*gate));
        self.0 = enabled.map(|gate| (gate.name.to_owned(), true)).collect();
    }
}
