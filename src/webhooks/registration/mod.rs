//! Registrations: which requests API servers send to the mutating and validating webhooks (spec 50 §3, spec 60 §4), and
//! to the authorizer (spec 71 §9).
//! They are part of a webhook's behaviour: handlers do not check skip labels themselves. The program never writes these
//! objects; its deployer does. [`configuration`] makes the whole object for a [`Deployment`], so that the command
//! `webhook registration`, tests and the examples in `deploy/webhooks/` agree.
//! * `entries.rs`: one row for each mutating webhook: name, path, rules, selectors, policies. `validating.rs`: the
//!   validating webhooks.
//! * `registered_cluster.rs`: the entries of each of Gardener's deployments. `authorizer.rs`: the authorizer of node agents.

mod authorizer;
mod entries;
mod registered_cluster;
#[cfg(test)]
mod tests;
mod validating;

use std::collections::BTreeSet;

use cluster::object;
use serde_json::{Value, json};

use self::entries::Row;
pub use self::{
    authorizer::authorizer,
    entries::RegistrationEntry,
    registered_cluster::{Circumstances, RegisteredCluster},
};
use crate::api::meta::selector::Selector;

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
    /// It has no role in Gardener, and its namespaces have no labels of Gardener (spec 71 §12.2).
    Plain,
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
    let webhooks = validating::webhooks(deployment, is_served);
    let has_any = deployment.mode != Mode::Shoot && !webhooks.is_empty();
    has_any.then(|| deployment.configuration("ValidatingWebhookConfiguration", webhooks))
}

/// Returns the complete `MutatingWebhookConfiguration` of a deployment.
pub fn configuration(deployment: &Deployment) -> Value {
    let webhooks = deployment.enabled.iter().map(|entry| deployment.entry(*entry));
    deployment.configuration("MutatingWebhookConfiguration", webhooks.collect())
}

impl Deployment {
    /// Name of the program's Deployment, Service and `app` label.
    fn app(&self) -> String {
        format!("{}gardener-resource-manager", self.prefix)
    }

    fn object_name(&self) -> String {
        match self.mode {
            Mode::Runtime | Mode::Plain => self.app(),
            Mode::Shoot => format!("{}-shoot", self.app()),
        }
    }

    /// Spec 50 §3.1.
    fn labels(&self) -> Value {
        match self.mode {
            Mode::Runtime => {
                json!({ "app": self.app(), "remediation.webhook.shoot.gardener.cloud/exclude": "true" })
            }
            Mode::Shoot | Mode::Plain => json!({ "app": self.app() }),
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

    fn configuration(&self, kind: &str, webhooks: Vec<Value>) -> Value {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": { "name": self.object_name(), "labels": self.labels() },
            "webhooks": webhooks,
        })
    }

    fn entry(&self, entry: RegistrationEntry) -> Value {
        self.webhook(&entry.row(), &entry.namespaces(self.mode), &entry.objects(self.mode, &self.app()))
    }

    fn webhook(&self, row: &Row<'_>, namespaces: &Selector, objects: &Selector) -> Value {
        let mut json = json!({
            "name": row.name,
            "clientConfig": self.client_config(row.path),
            "rules": row.rules,
            "namespaceSelector": namespaces,
            "objectSelector": objects,
            // In this order: API servers take the first version that they know (spec 50 trap T1).
            "admissionReviewVersions": ["v1beta1", "v1"],
            "failurePolicy": row.failure_policy,
            "matchPolicy": row.match_policy,
            "sideEffects": "None",
            "timeoutSeconds": row.timeout_seconds,
        });
        if row.never_reinvoked {
            *object::field_mut(&mut json, &["reinvocationPolicy"]) = "Never".into();
        }
        json
    }
}
