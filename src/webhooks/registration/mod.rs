//! Registrations: which requests API servers send to the mutating and validating webhooks (spec 50 §3, spec 60 §4).
//! They are part of a webhook's behaviour: handlers do not check skip labels themselves. The program never writes these
//! objects; its deployer does. [`configuration`] makes the whole object for a [`Deployment`], so that the command
//! `webhook registration`, tests and the examples in `deploy/webhooks/` agree.
//! * `entries.rs`: one row for each mutating webhook: name, path, rules, selectors, policies. `validating.rs`: the
//!   validating webhooks.
//! * `registered_cluster.rs`: the entries of each of Gardener's deployments.

mod entries;
mod registered_cluster;
#[cfg(test)]
mod tests;
mod validating;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

pub use self::{
    entries::RegistrationEntry,
    registered_cluster::{Circumstances, RegisteredCluster},
};

/// An instance of the program and the cluster that calls it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployment {
    /// The role of the cluster in Gardener.
    pub mode: Mode,
    /// How the API server reaches the program.
    pub client: Client,
    /// Prefix of names: empty, or `virtual-garden-`.
    pub prefix: String,
    /// Namespace of the program's Service.
    pub namespace: String,
    /// The entries to register.
    pub enabled: BTreeSet<RegistrationEntry>,
    /// The CAs of the server certificate, PEM in Base64.
    pub ca_bundle: String,
}

/// The role of the managed cluster in Gardener. It decides the selectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It runs control planes: seed, runtime cluster of a garden, `garden` namespace of a self-hosted shoot.
    Runtime,
    /// Gardener creates it: shoot, virtual garden.
    Shoot,
}

/// How an API server reaches the program (spec 50 §3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// By URL: the program runs in another cluster, next to the API server.
    Url,
    /// By Service: it runs in the same cluster.
    Service,
}

/// Returns the complete `ValidatingWebhookConfiguration` of a deployment, or `None` if it has none (spec 60 §4).
/// `is_served` tells whether a path is served.
pub fn validating(deployment: &Deployment, is_served: impl Fn(&str) -> bool) -> Option<Value> {
    let configuration = (deployment.mode == Mode::Runtime).then(|| validating::configuration(deployment, is_served))?;
    configuration["webhooks"].as_array().is_some_and(|webhooks| !webhooks.is_empty()).then_some(configuration)
}

/// Returns the complete `MutatingWebhookConfiguration` of a deployment.
pub fn configuration(deployment: &Deployment) -> Value {
    let entries: Vec<Value> = deployment.enabled.iter().map(|entry| deployment.entry(*entry)).collect();
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": { "name": deployment.object_name(), "labels": deployment.labels() },
        "webhooks": entries,
    })
}

impl Deployment {
    /// Name of the program's Deployment, Service and `app` label.
    fn app(&self) -> String {
        format!("{}gardener-resource-manager", self.prefix)
    }

    fn object_name(&self) -> String {
        match self.mode {
            Mode::Runtime => self.app(),
            Mode::Shoot => format!("{}-shoot", self.app()),
        }
    }

    /// Spec 50 §3.1.
    fn labels(&self) -> Value {
        match self.mode {
            Mode::Runtime => {
                json!({ "app": self.app(), "remediation.webhook.shoot.gardener.cloud/exclude": "true" })
            }
            Mode::Shoot => json!({ "app": self.app() }),
        }
    }

    fn client_config(&self, path: &str) -> Value {
        let app = self.app();
        let (namespace, ca_bundle) = (&self.namespace, &self.ca_bundle);
        match self.client {
            Client::Url => json!({ "url": format!("https://{app}.{namespace}:443{path}"), "caBundle": ca_bundle }),
            Client::Service => json!({
                "service": { "name": app, "namespace": namespace, "path": path },
                "caBundle": ca_bundle,
            }),
        }
    }

    fn entry(&self, entry: RegistrationEntry) -> Value {
        let row = entry.row();
        let mut json = Map::new();
        let mut set = |field: &str, value: Value| json.insert(field.to_owned(), value);
        set("name", row.name.into());
        set("clientConfig", self.client_config(row.path));
        set("rules", row.rules.iter().map(entries::Rule::to_json).collect());
        set("namespaceSelector", entry.namespaces(self.mode).to_json());
        set("objectSelector", entry.objects(self.mode, &self.app()).to_json());
        // In this order: API servers take the first version that they know (spec 50 trap T1).
        set("admissionReviewVersions", json!(["v1beta1", "v1"]));
        set("failurePolicy", row.failure_policy.into());
        set("matchPolicy", row.match_policy.into());
        set("sideEffects", "None".into());
        set("timeoutSeconds", row.timeout_seconds.into());
        if row.never_reinvoked {
            set("reinvocationPolicy", "Never".into());
        }
        Value::Object(json)
    }
}
