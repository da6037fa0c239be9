//! Builds the wanted EnvoyFilters and compares them with existing ones (spec 42 §5.5).

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use cluster::object::{self, NamespacedName};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::rule::{Mode, Rule, Service};

/// Label key of our filters.
pub const MANAGED_BY: &str = "resources.gardener.cloud/managed-by";
/// Label value of our filters.
pub const MANAGED_BY_US: &str = "istio-cluster-configuration";
const SUFFIX: &str = "-cluster-configuration";
const BUFFER: u32 = 32_768;
const STREAM_WINDOW: u32 = 65_536;
const CONNECTION_WINDOW: u32 = 1_048_576;
const LONGEST_CONNECTION: &str = "86400s";
const OPTIONS: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

/// The patches for a source namespace: per ingress namespace, the clusters in order, with their modes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Patches {
    /// Clusters by ingress namespace; no list is empty.
    pub by_target: BTreeMap<String, Vec<(String, Mode)>>,
    /// Clusters about which two rules disagree; the first rule wins.
    pub contested: BTreeSet<String>,
}

/// The cached fields of an EnvoyFilter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The source namespace, derived from the name; `None` if the name is not ours.
    pub source: Option<Box<str>>,
    digest: [u8; 32],
    /// It has a deletion timestamp.
    pub is_terminating: bool,
}

/// Computes the patches for a source namespace from its rules, sorted by name.
pub fn patches<'a>(
    source: &str,
    rules: impl Iterator<Item = &'a Rule>,
    service_of: impl Fn(&NamespacedName) -> Option<Service>,
    ingress: &BTreeSet<&str>,
) -> Patches {
    let mut patches = Patches::default();
    let mut known: BTreeMap<(&str, String), Mode> = BTreeMap::new();
    for rule in rules.filter(|rule| !rule.is_partial) {
        let Some(name) = &rule.service else { continue };
        let targets = rule.exports.resolve(source, ingress);
        if targets.is_empty() {
            continue;
        }
        let Some(service) = service_of(name) else { continue };
        let targets = service.exports.resolve(&name.namespace, &targets);
        for (port, by_protocol) in &service.ports {
            let cluster = format!("outbound|{port}||{}.{}.svc.cluster.local", name.name, name.namespace);
            let mode = rule.mode(*port, *by_protocol);
            for target in &targets {
                match known.entry((*target, cluster.clone())) {
                    Entry::Occupied(known) if *known.get() != mode => drop(patches.contested.insert(cluster.clone())),
                    Entry::Occupied(_) => {}
                    Entry::Vacant(new) => {
                        new.insert(mode);
                        let clusters = patches.by_target.entry((*target).to_owned()).or_default();
                        clusters.push((cluster.clone(), mode));
                    }
                }
            }
        }
    }
    patches
}

/// Returns the name of the filters of a source namespace.
pub fn name(source: &str) -> String {
    format!("{source}{SUFFIX}")
}

/// Builds the filter of a source namespace with this uid, for an ingress namespace.
pub fn filter(source: &str, uid: &str, target: &str, clusters: &[(String, Mode)]) -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1alpha3", "kind": "EnvoyFilter",
        "metadata": {
            "name": name(source), "namespace": target, "labels": { MANAGED_BY: MANAGED_BY_US },
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Namespace", "name": source, "uid": uid,
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": { "configPatches": clusters.iter().map(|(cluster, mode)| patch(cluster, *mode)).collect::<Vec<_>>() },
    })
}

fn patch(cluster: &str, mode: Mode) -> Value {
    let mut value = json!({ "per_connection_buffer_limit_bytes": BUFFER });
    let speaks = match mode {
        Mode::Default => None,
        Mode::Http2 => Some("explicit_http_config"),
        Mode::Client => Some("use_downstream_protocol_config"),
    };
    if let Some(speaks) = speaks {
        *object::field_mut(&mut value, &["typed_extension_protocol_options"]) = json!({ OPTIONS: {
            "@type": format!("type.googleapis.com/{OPTIONS}"),
            "common_http_protocol_options": { "max_connection_duration": LONGEST_CONNECTION },
            speaks: { "http2_protocol_options": {
                "initial_stream_window_size": STREAM_WINDOW, "initial_connection_window_size": CONNECTION_WINDOW,
            } },
        } });
    }
    json!({
        "applyTo": "CLUSTER",
        "match": { "context": "GATEWAY", "cluster": { "name": cluster } },
        "patch": { "operation": "MERGE", "value": value },
    })
}

/// Returns `live` with the labels, owner references and spec of `wanted`; all other fields stay.
pub fn bring_into(live: &Value, wanted: &Value) -> Value {
    let mut after = live.clone();
    for field in ["labels", "ownerReferences"] {
        *object::field_mut(&mut after, &["metadata", field]) = wanted["metadata"][field].clone();
    }
    *object::field_mut(&mut after, &["spec"]) = wanted["spec"].clone();
    after
}

impl Found {
    /// Reads an EnvoyFilter.
    pub fn of(filter: &Value) -> Self {
        let source = object::name(filter).strip_suffix(SUFFIX).map(Into::into);
        let metadata = &filter["metadata"];
        let mut compared = json!([metadata["labels"], metadata["ownerReferences"], filter["spec"]]);
        compared.sort_all_objects();
        let is_terminating = object::deletion_timestamp(filter).is_some();
        Self { source, digest: Sha256::digest(compared.to_string()).into(), is_terminating }
    }

    /// Returns true if labels, owner references and spec are equal.
    pub fn is_like(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}
