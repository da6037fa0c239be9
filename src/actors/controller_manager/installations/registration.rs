//! What is kept of a ControllerRegistration, and all of them by what they serve. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use cluster::object;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kit::quote::cut;
use serde::Deserialize as _;
use serde_json::Value;

use super::{
    FINALIZER,
    pair::{ExtensionKind, PairId},
    spec_hash::spec_hash,
};
use crate::{
    actors::controller_manager::fields::{list, text},
    api::meta::selector::{Labels, Selector},
};

/// The annotation that a registration passes on to its installations.
pub const POD_SECURITY: &str = "security.gardener.cloud/pod-security-enforce";

/// When an extension is installed although nothing requires it (`spec.deployment.policy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Never. Also of any other value.
    OnDemand,
    /// As long as the cluster lives.
    Always,
    /// As long as the cluster has Shoots.
    AlwaysExceptNoShoots,
}

/// The clusters for which an extension is enabled by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AutoEnabledFor {
    /// Seeds.
    Seeds,
    /// Shoots with workers.
    ShootsWithWorkers,
    /// Shoots with and without workers.
    AllShoots,
}

/// An extension type that is enabled by default.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AutoEnabledType {
    /// Where.
    pub clusters: AutoEnabledFor,
    /// The type of the kind `Extension`.
    pub extension_type: Box<str>,
}

/// What counts of a registration.
#[derive(Debug, Clone, PartialEq)]
pub struct RegistrationFacts {
    /// It is being deleted.
    pub is_deleting: bool,
    /// It has the finalizer of this program.
    pub is_held: bool,
    /// What it serves, each once.
    pub pairs: Box<[PairId]>,
    /// The extension types that it enables by default.
    pub auto_enabled: Box<[AutoEnabledType]>,
    /// When it is installed.
    pub policy: Policy,
    /// The Seeds on which it may be installed; `None` for all. `Err`: the text about an unusable selector.
    pub seed_selector: Option<Result<Selector, Box<str>>>,
    /// The names of its ControllerDeployments. Only the first one is deployed.
    pub deployments: Box<[Box<str>]>,
    /// The annotation [`POD_SECURITY`].
    pub pod_security: Option<Box<str>>,
    /// The hash of its `spec`.
    pub spec_hash: Box<str>,
}

/// A registration at a version.
#[derive(Debug, Clone)]
pub struct KnownRegistration {
    /// Its resourceVersion.
    pub version: u64,
    /// What counts of it.
    pub facts: Arc<RegistrationFacts>,
}

/// All registrations, by name, by what they serve, and by what they enable.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    registrations: BTreeMap<Box<str>, KnownRegistration>,
    by_pair: BTreeMap<PairId, BTreeSet<Box<str>>>,
    by_auto_enabled: BTreeMap<AutoEnabledType, BTreeSet<Box<str>>>,
}

impl Policy {
    fn of(text: &str) -> Self {
        match text {
            "Always" => Self::Always,
            "AlwaysExceptNoShoots" => Self::AlwaysExceptNoShoots,
            _ => Self::OnDemand,
        }
    }
}

impl RegistrationFacts {
    /// Reads a registration of any shape.
    pub fn of(registration: &Value) -> Self {
        let resources = || list(registration, "/spec/resources");
        let names = list(registration, "/spec/deployment/deploymentRefs").map(|reference| text(reference, "/name"));
        Self {
            is_deleting: object::deletion_timestamp(registration).is_some(),
            is_held: object::finalizers(registration).any(|finalizer| finalizer == FINALIZER),
            pairs: sorted(resources().filter_map(PairId::of_resource)),
            auto_enabled: sorted(resources().flat_map(auto_enabled)),
            policy: Policy::of(text(registration, "/spec/deployment/policy")),
            seed_selector: registration
                .pointer("/spec/deployment/seedSelector")
                .filter(|selector| !selector.is_null())
                .map(seed_selector),
            deployments: names.map(Box::from).collect(),
            pod_security: object::annotation(registration, POD_SECURITY).map(Box::from),
            spec_hash: spec_hash(registration),
        }
    }

    /// Returns true if it may be installed on a Seed with these labels (A.4 rule 6). Fails with the text about an
    /// unusable selector.
    pub fn selects(&self, labels: &Labels) -> Result<bool, &str> {
        match &self.seed_selector {
            None => Ok(true),
            Some(Ok(selector)) => Ok(selector.matches(labels)),
            Some(Err(error)) => Err(error),
        }
    }
}

fn sorted<T: Ord>(entries: impl Iterator<Item = T>) -> Box<[T]> {
    entries.collect::<BTreeSet<_>>().into_iter().collect()
}

fn auto_enabled(resource: &Value) -> Vec<AutoEnabledType> {
    let is_extension = text(resource, "/kind") == ExtensionKind::Extension.as_str();
    let is_enabled = |cluster| is_extension && list(resource, "/autoEnable").any(|other| other == cluster);
    let supports_workerless = resource.get("workerlessSupported") == Some(&Value::Bool(true));
    let shoots = if supports_workerless { AutoEnabledFor::AllShoots } else { AutoEnabledFor::ShootsWithWorkers };
    let clusters = [("seed", AutoEnabledFor::Seeds), ("shoot", shoots)];
    let enabled = clusters.into_iter().filter(|(name, _)| is_enabled(*name));
    enabled.map(|(_, clusters)| AutoEnabledType { clusters, extension_type: text(resource, "/type").into() }).collect()
}

fn seed_selector(selector: &Value) -> Result<Selector, Box<str>> {
    let parsed = LabelSelector::deserialize(selector).map_err(|error| error.to_string());
    let parsed = parsed.and_then(|parsed| Selector::new(&parsed).map_err(|error| error.to_string()));
    parsed.map_err(|error| {
        format!("label selector conversion failed: {} for seedSelector: {}", cut(&error), cut(&selector.to_string()))
            .into()
    })
}

impl Catalogue {
    /// Puts a registration in, or takes it out.
    pub fn put(&mut self, name: &str, new: Option<KnownRegistration>) {
        if let Some(old) = self.registrations.remove(name) {
            old.facts.pairs.iter().for_each(|pair| remove(&mut self.by_pair, pair, name));
            old.facts.auto_enabled.iter().for_each(|entry| remove(&mut self.by_auto_enabled, entry, name));
        }
        let Some(new) = new else { return };
        for pair in &new.facts.pairs {
            self.by_pair.entry(pair.clone()).or_default().insert(name.into());
        }
        for entry in &new.facts.auto_enabled {
            self.by_auto_enabled.entry(entry.clone()).or_default().insert(name.into());
        }
        self.registrations.insert(name.into(), new);
    }

    /// Returns a registration.
    pub fn get(&self, name: &str) -> Option<&KnownRegistration> {
        self.registrations.get(name)
    }

    /// Returns all registrations, by name.
    pub fn all(&self) -> impl Iterator<Item = (&str, &KnownRegistration)> {
        self.registrations.iter().map(|(name, registration)| (&**name, registration))
    }

    /// Returns the names of the registrations that serve a pair; those in deletion count.
    pub fn serving(&self, pair: &PairId) -> impl Iterator<Item = &str> {
        self.by_pair.get(pair).into_iter().flatten().map(|name| &**name)
    }

    /// Returns the extension types that any registration enables by default; those in deletion count (A.3.3).
    pub fn auto_enabled(&self) -> impl Iterator<Item = &AutoEnabledType> {
        self.by_auto_enabled.keys()
    }
}

fn remove<K: Ord>(names: &mut BTreeMap<K, BTreeSet<Box<str>>>, key: &K, name: &str) {
    if let Some(of_key) = names.get_mut(key) {
        of_key.remove(name);
        if of_key.is_empty() {
            names.remove(key);
        }
    }
}
