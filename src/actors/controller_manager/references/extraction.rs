//! Which objects a referrer refers to. Pure. An empty name is no reference, other kinds and versions are ignored, and an
//! object that is named twice counts once.

use std::collections::BTreeSet;

use serde_json::Value;

use super::object::ReferencedKind;
use crate::actors::controller_manager::fields::{list, text};

/// The names of referenced objects by kind; their namespace follows from the referrer.
pub type References = BTreeSet<(ReferencedKind, Box<str>)>;

/// Which references of Shoots count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShootReferences {
    /// ConfigMaps with audit policies are protected.
    pub audit_policies: bool,
}

/// Returns the references of a ControllerDeployment (spec 81 F).
pub fn of_controller_deployment(deployment: &Value) -> References {
    let mut references = References::new();
    let documented = resources(deployment, "/resources").filter(|(kind, _)| *kind != ReferencedKind::WorkloadIdentity);
    references.extend(documented);
    for field in ["pullSecretRef", "caBundleSecretRef"] {
        add(&mut references, ReferencedKind::Secret, text(deployment, &format!("/helm/ociRepository/{field}/name")));
    }
    references
}

/// Returns the references of a Seed.
pub fn of_seed(seed: &Value) -> References {
    resources(seed, "/spec/resources").collect()
}

/// Returns the references of a Shoot.
pub fn of_shoot(shoot: &Value, counted: ShootReferences) -> References {
    let mut references: References = resources(shoot, "/spec/resources").collect();
    for provider in list(shoot, "/spec/dns/providers") {
        let by_kind = provider.get("credentialsRef").and_then(reference);
        references.extend(by_kind.filter(|(kind, _)| *kind != ReferencedKind::ConfigMap));
        add(&mut references, ReferencedKind::Secret, text(provider, "/secretName"));
    }
    let api_server = shoot.pointer("/spec/kubernetes/kubeAPIServer").unwrap_or(&Value::Null);
    for plugin in list(api_server, "/admissionPlugins") {
        add(&mut references, ReferencedKind::Secret, text(plugin, "/kubeconfigSecretName"));
    }
    for kubeconfig in list(api_server, "/structuredAuthorization/kubeconfigs") {
        add(&mut references, ReferencedKind::Secret, text(kubeconfig, "/secretName"));
    }
    if counted.audit_policies {
        add(&mut references, ReferencedKind::ConfigMap, text(api_server, "/auditConfig/auditPolicy/configMapRef/name"));
    }
    for structure in ["structuredAuthentication", "structuredAuthorization"] {
        let name = text(api_server, &format!("/{structure}/configMapName"));
        add(&mut references, ReferencedKind::ConfigMap, name);
    }
    references
}

/// Returns the references of a list of named resources.
fn resources(object: &Value, pointer: &str) -> impl Iterator<Item = (ReferencedKind, Box<str>)> {
    list(object, pointer).filter_map(|resource| reference(resource.get("resourceRef")?))
}

/// Reads a reference with kind and version.
fn reference(reference: &Value) -> Option<(ReferencedKind, Box<str>)> {
    let kind = ReferencedKind::of(text(reference, "/apiVersion"), text(reference, "/kind"))?;
    let name: Box<str> = text(reference, "/name").into();
    (!name.is_empty()).then_some((kind, name))
}

fn add(references: &mut References, kind: ReferencedKind, name: &str) {
    if !name.is_empty() {
        references.insert((kind, name.into()));
    }
}
