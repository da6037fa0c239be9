//! What an installation must contain (spec 85 A.6.1, A.8, B.1), and the difference from what it contains. Pure.

use cluster::{difference, object::NamespacedName};
use kit::hash_of;
use serde_json::{Map, Value, json};

use super::{
    installation::{DEPLOYMENT_HASH, InstallationFacts, MARK, REGISTRATION_HASH, SEED_HASH, SHOOT_HASH},
    registration::{KnownRegistration, POD_SECURITY},
};
use crate::api::kinds;

/// A cluster to which an installation refers.
#[derive(Debug, Clone)]
pub struct ClusterReference {
    /// The Seed, or the self-hosted Shoot.
    pub name: NamespacedName,
    /// Its resourceVersion.
    pub version: u64,
    /// The version at which its content changed last, as far as this process saw it. References to this and later
    /// versions are left alone: each change makes gardenlet install the extension again ("better" 4).
    pub content_version: Option<u64>,
    /// The hash of its spec.
    pub spec_hash: Box<str>,
}

/// Whose installation it is.
#[derive(Debug, Clone)]
pub enum Owner {
    /// A Seed.
    Seed(ClusterReference),
    /// A self-hosted Shoot.
    Shoot(ClusterReference),
    /// A Seed that is a self-hosted Shoot, which does not need the extension itself.
    SelfHostedSeed {
        /// The Seed.
        seed: ClusterReference,
        /// The Shoot.
        shoot: ClusterReference,
    },
}

/// The deployment of a registration, as it was read.
#[derive(Debug, Clone)]
pub struct Deployed {
    /// Its name.
    pub name: Box<str>,
    /// Its resourceVersion.
    pub version: u64,
    /// Its hash.
    pub hash: Box<str>,
    /// The objects to which it refers: kind, name, resourceVersion.
    pub resources: Vec<(Box<str>, Box<str>, Box<str>)>,
    /// It and these objects have all finalizers that this program sets (DEV-26).
    pub is_settled: bool,
}

/// What an installation must contain.
#[derive(Debug, Clone)]
pub struct Content<'a> {
    /// Name of the registration.
    pub name: &'a str,
    /// The registration.
    pub registration: &'a KnownRegistration,
    /// Whose installation it is.
    pub owner: &'a Owner,
    /// The deployment; `None` if the registration has none.
    pub deployed: Option<&'a Deployed>,
}

impl ClusterReference {
    fn json(&self, version: u64) -> Map<String, Value> {
        let namespace = Some(&self.name.namespace).filter(|namespace| !namespace.is_empty());
        let namespace = namespace.map(|namespace| ("namespace".to_owned(), json!(namespace)));
        let fields =
            [("name".to_owned(), json!(self.name.name)), ("resourceVersion".to_owned(), version.to_string().into())];
        fields.into_iter().chain(namespace).collect()
    }

    /// Returns the version that a known reference may keep.
    fn tolerated(&self, known: Option<&Value>) -> u64 {
        let known = known.and_then(|known| known.get("resourceVersion")?.as_str()?.parse().ok());
        let is_current =
            |known: &u64| self.content_version.is_none_or(|content| *known >= content) && *known <= self.version;
        known.filter(is_current).unwrap_or(self.version)
    }
}

impl Content<'_> {
    /// Returns the installation to be created.
    pub fn object(&self) -> Value {
        let labels: Map<String, Value> =
            self.labels().into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(value?)))).collect();
        let resource = kinds::CONTROLLER_INSTALLATION;
        let mut metadata = Map::new();
        metadata.insert("generateName".to_owned(), format!("{}-", self.name).into());
        metadata.insert("labels".to_owned(), labels.into());
        if let Some(pod_security) = &self.registration.facts.pod_security {
            metadata.insert("annotations".to_owned(), json!({ POD_SECURITY: pod_security }));
        }
        json!({
            "apiVersion": resource.api_version(), "kind": &*resource.kind, "metadata": metadata,
            "spec": self.spec(&Value::Null, false),
        })
    }

    /// Returns the merge patch for an installation; `None` if nothing differs. References to its cluster are compared
    /// exactly only if something else differs.
    pub fn patch(&self, known: &InstallationFacts) -> Option<Value> {
        let spec = known.spec();
        let metadata = self.metadata_patch(known);
        difference(&spec, &self.spec(&spec, true)).or_else(|| metadata.as_ref().map(|_| Value::Null))?;
        let spec = difference(&spec, &self.spec(&spec, false)).map(|spec| ("spec".to_owned(), spec));
        let metadata = metadata.map(|metadata| ("metadata".to_owned(), metadata));
        Some(Value::Object(metadata.into_iter().chain(spec).collect()))
    }

    /// Returns a hash of what is wanted. Versions of its cluster that change nothing do not count.
    pub fn intent(&self) -> u64 {
        let cluster = |cluster: &ClusterReference| cluster.content_version;
        let clusters = match self.owner {
            Owner::Seed(seed) => (cluster(seed), None),
            Owner::Shoot(shoot) => (None, cluster(shoot)),
            Owner::SelfHostedSeed { seed, shoot } => (cluster(seed), cluster(shoot)),
        };
        let deployed = self.deployed.map(|it| (&it.name, it.version, &it.resources));
        hash_of(&(self.registration.version, clusters, self.labels(), &self.registration.facts.pod_security, deployed))
    }

    fn metadata_patch(&self, known: &InstallationFacts) -> Option<Value> {
        let mut metadata = Map::new();
        let labels = self.labels().into_iter().filter(|(key, value)| known.label(key) != value.as_deref());
        let labels: Map<String, Value> = labels.map(|(key, value)| (key.to_owned(), json!(value))).collect();
        if !labels.is_empty() {
            metadata.insert("labels".to_owned(), labels.into());
        }
        let pod_security = &self.registration.facts.pod_security;
        if known.pod_security != *pod_security {
            metadata.insert("annotations".to_owned(), json!({ POD_SECURITY: pod_security }));
        }
        (!metadata.is_empty()).then(|| metadata.into())
    }

    /// Returns the labels with their values; `None` for a label that must not be there. Others stay.
    fn labels(&self) -> Vec<(&'static str, Option<Box<str>>)> {
        let mut labels = vec![(REGISTRATION_HASH, Some(self.registration.facts.spec_hash.clone()))];
        labels.extend(self.deployed.map(|deployed| (DEPLOYMENT_HASH, Some(deployed.hash.clone()))));
        match self.owner {
            Owner::Seed(seed) => labels.push((SEED_HASH, Some(seed.spec_hash.clone()))),
            Owner::Shoot(shoot) => labels.extend([(SHOOT_HASH, Some(shoot.spec_hash.clone())), (MARK, None)]),
            Owner::SelfHostedSeed { seed, shoot } => labels
                .extend([(SHOOT_HASH, Some(shoot.spec_hash.clone())), (MARK, Some(seed.name.name.as_str().into()))]),
        }
        labels
    }

    /// Returns `spec` for an installation that has this one. A reference that belongs to another controller, or that
    /// cannot be changed, stays. With `is_tolerant`, references to the own cluster keep a version that is good enough.
    fn spec(&self, known: &Value, is_tolerant: bool) -> Value {
        let reference = |field: &str, to: &ClusterReference| {
            let version = if is_tolerant { to.tolerated(known.get(field)) } else { to.version };
            (field.to_owned(), to.json(version).into())
        };
        let kept = |field: &str| {
            let value = known.get(field).filter(|value| !value.is_null());
            value.map(|value| (field.to_owned(), value.clone()))
        };
        let registration = json!({ "name": self.name, "resourceVersion": self.registration.version.to_string() });
        let mut spec: Map<String, Value> = [("registrationRef".to_owned(), registration)].into_iter().collect();
        match self.owner {
            Owner::Seed(seed) => {
                spec.extend([Some(reference("seedRef", seed)), kept("shootRef")].into_iter().flatten())
            }
            Owner::Shoot(shoot) => {
                spec.extend([Some(reference("shootRef", shoot)), kept("seedRef")].into_iter().flatten())
            }
            Owner::SelfHostedSeed { seed, shoot } => {
                spec.extend([reference("seedRef", seed), reference("shootRef", shoot)]);
            }
        }
        if let Some(deployed) = self.deployed {
            let reference = json!({ "name": deployed.name, "resourceVersion": deployed.version.to_string() });
            spec.insert("deploymentRef".to_owned(), reference);
            let resources = deployed.resources.iter().map(|(kind, name, version)| {
                json!({ "kind": kind, "namespace": "garden", "name": name, "resourceVersion": version })
            });
            let resources: Vec<Value> = resources.collect();
            if !resources.is_empty() {
                spec.insert("resourceRefs".to_owned(), resources.into());
            }
        }
        spec.into()
    }
}
