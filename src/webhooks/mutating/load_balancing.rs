//! `pod-kube-apiserver-load-balancing`: Pods of a control plane reach their API server through the cluster's internal
//! load balancer (spec 50 §9).

#[cfg(test)]
mod tests;

use std::net::IpAddr;

use cluster::object::NamespacedName;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Mutation, Mutator, Request};
use crate::webhooks::{
    cached_kind::{CachedKind, Objects, Selected},
    fields::{self, Field, Type, WrongType},
    view::{Annotations, Failure, View},
};

/// The path on which it is served, for every API server.
pub const PATH: &str = "/webhooks/pod-kube-apiserver-load-balancing";

/// Name of the ConfigMap that enables the webhook and lists the hosts.
pub const CONFIG_MAP: &str = "istio-internal-load-balancing";
/// Key of the ConfigMap: the hosts, separated by commas.
pub const HOSTS: &str = "hosts";
/// Key of the ConfigMap: the namespace of the Service.
pub const ISTIO_NAMESPACE: &str = "istio-namespace";
/// Name of the Service in front of the load balancer.
pub const SERVICE: &str = "istio-ingressgateway-internal";

/// `data` of the ConfigMaps `istio-internal-load-balancing`, reduced to the two keys.
pub const CONFIG_MAPS: CachedKind<Annotations> = CachedKind {
    objects: Objects {
        kind: "ConfigMap",
        plural: "configmaps",
        selected: Selected::Named(CONFIG_MAP),
        ..Objects::TARGET
    },
    fields: |object| {
        let text = |key: &str| object.get("data")?.get(key)?.as_str();
        let found =
            [HOSTS, ISTIO_NAMESPACE].into_iter().filter_map(|key| Some((key.to_owned(), text(key)?.to_owned())));
        found.collect()
    },
};
/// `spec.clusterIPs` of the Services `istio-ingressgateway-internal`.
pub const SERVICES: CachedKind<Vec<String>> = CachedKind {
    objects: Objects { kind: "Service", plural: "services", selected: Selected::Named(SERVICE), ..Objects::TARGET },
    fields: |object| {
        let addresses = object.pointer("/spec/clusterIPs").and_then(Value::as_array);
        addresses.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    },
};

/// Prefix of the names of Secrets with a generic kubeconfig.
const KUBECONFIG: &str = "generic-token-kubeconfig";

const LABEL_PREFIX: &str = "networking.resources.gardener.cloud/";
/// Longest name part of a label, in bytes.
const LABEL_LENGTH: usize = 63;

const FIELDS: [Field; 6] = [
    ("metadata.namespace", Type::Text),
    ("metadata.labels", Type::Map),
    ("spec.volumes[].secret.secretName", Type::Text),
    ("spec.volumes[].projected.sources[].secret.name", Type::Text),
    ("spec.hostAliases[].ip", Type::Text),
    ("spec.hostAliases[].hostnames[]", Type::Text),
];

/// Gives Pods with a generic kubeconfig host aliases of the load balancer, and the label that lets them reach it.
#[derive(Debug, Clone, Copy)]
pub struct LoadBalancing;

impl Mutator for LoadBalancing {
    fn mutate(&self, pod: &mut Value, request: &Request<'_>, view: &dyn View) -> Result<Mutation, Failure> {
        fields::check(pod, &FIELDS)?;
        if !uses_generic_kubeconfig(pod)? {
            return Ok(Mutation::Done);
        }
        let own = fields::text(pod, &["metadata", "namespace"])?.unwrap_or_default();
        let namespace = if own.is_empty() { request.namespace } else { own };
        let config_map = format!("\"{namespace}/{CONFIG_MAP}\"");
        let config = view
            .object(&CONFIG_MAPS, &NamespacedName::new(namespace, CONFIG_MAP))
            .map_err(|failure| explained(failure, &format!("failed to get {CONFIG_MAP} configmap {config_map}")))?;
        let Some(config) = config else { return Ok(Mutation::Done) };
        let hosts = config.get(HOSTS).filter(|hosts| !hosts.is_empty()).ok_or_else(|| {
            Failure::Denied(format!("\"{HOSTS}\" key in configmap {config_map} provides an empty value"))
        })?;
        let istio = config.get(ISTIO_NAMESPACE).map_or("", String::as_str);
        let addresses = view.object(&SERVICES, &NamespacedName::new(istio, SERVICE)).map_err(|failure| {
            let service = format!("\"{istio}/{SERVICE}\"");
            explained(failure, &format!("failed to get internal istio-ingressgateway service {service}"))
        })?;
        let addresses = addresses.ok_or_else(|| Failure::not_found("Service", SERVICE))?;

        add_host_aliases(pod, &addresses, hosts)?;
        fields::map_mut(pod, &["metadata", "labels"])?.insert(label(istio), "allowed".into());
        Ok(Mutation::Done)
    }
}

/// Spec 50 §9.1 rule 1.
fn uses_generic_kubeconfig(pod: &Value) -> Result<bool, WrongType> {
    let is_generic = |name: Option<&str>| name.is_some_and(|name| name.starts_with(KUBECONFIG));
    for volume in fields::list(pod, &["spec", "volumes"])? {
        if is_generic(fields::text(volume, &["secret", "secretName"])?) {
            return Ok(true);
        }
        for source in fields::list(volume, &["projected", "sources"])? {
            if is_generic(fields::text(source, &["secret", "name"])?) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Adds one alias for each address, with all hosts. Skips invalid addresses, such as the `None` of a headless Service,
/// and existing aliases (spec 50 §9.2, "better" 6 and 15).
fn add_host_aliases(pod: &mut Value, addresses: &[String], hosts: &str) -> Result<(), WrongType> {
    let hosts: Vec<&str> = hosts.split(',').collect();
    for address in addresses.iter().filter(|address| address.parse::<IpAddr>().is_ok()) {
        let aliases = fields::list_mut(pod, &["spec", "hostAliases"])?;
        let is_there = aliases.iter().any(|alias| {
            let names = alias.get("hostnames").and_then(Value::as_array);
            let is_same_names =
                names.is_some_and(|names| names.iter().map(Value::as_str).eq(hosts.iter().map(|host| Some(*host))));
            alias.get("ip").and_then(Value::as_str) == Some(address) && is_same_names
        });
        if !is_there {
            aliases.push(json!({ "ip": address, "hostnames": hosts }));
        }
    }
    Ok(())
}

/// Returns the network policy label for access to the gateway of a namespace. A long name is cut and gets its hash.
fn label(istio_namespace: &str) -> String {
    let mut name = format!("to-{istio_namespace}-{SERVICE}-tcp-9443");
    if name.len() > LABEL_LENGTH {
        let hash = Sha256::digest(&name);
        let kept = String::from_utf8_lossy(&name.as_bytes()[..57]).into_owned();
        name = format!("{kept}-{:02x}{:02x}{:x}", hash[0], hash[1], hash[2] >> 4);
    }
    format!("{LABEL_PREFIX}{name}")
}

/// Adds the context to a denial; an API status stays unchanged (spec 50 §9.1 rules 3 and 5).
fn explained(failure: Failure, what: &str) -> Failure {
    match failure {
        Failure::Denied(text) => Failure::Denied(format!("{what}: {text}")),
        other => other,
    }
}
