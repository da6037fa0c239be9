//! The cached fields of the objects that decisions need: a few strings each (spec 61, "better").

use cluster::object;
use serde_json::Value;

use super::{KUBE_SYSTEM, OscSecret};
use crate::{
    api::resources::side::Side,
    webhooks::cached_kind::{CachedKind, Objects, Selected, Within},
};

/// Label of Nodes, and of the node templates of Machines: the OSC secret of their pool.
const SECRET_NAME: &str = "worker.gardener.cloud/gardener-node-agent-secret-name";
const POOL: &str = "worker.gardener.cloud/pool";
/// Label of Machines: their Node.
const NODE: &str = "node";
const HOST_NAME: &str = "kubernetes.io/hostname";

const PURPOSE: &str = "node-agents";

/// The Nodes.
pub const NODES: CachedKind<Node> = CachedKind {
    objects: Objects {
        purpose: PURPOSE,
        kind: "Node",
        plural: "nodes",
        namespaced: false,
        metadata_only: true,
        ..Objects::HEARD_OF
    },
    fields: |object| Node {
        secret_name: text(object::label(object, SECRET_NAME)),
        host_name: text(object::label(object, HOST_NAME)),
    },
};

/// The Machines, in the source.
pub const MACHINES: CachedKind<Machine> = CachedKind {
    objects: Objects {
        purpose: PURPOSE,
        side: Side::Source,
        group: "machine.sapcloud.io",
        version: "v1alpha1",
        kind: "Machine",
        plural: "machines",
        optional: true,
        ..Objects::HEARD_OF
    },
    fields: |object| {
        let labels = object.pointer("/spec/nodeTemplate/metadata/labels");
        Machine {
            node: text(object::label(object, NODE)),
            secret_name: text(labels.and_then(|labels| labels.get(SECRET_NAME)).and_then(Value::as_str)),
        }
    },
};

/// The node names of the Pods of all namespaces (spec 61 §11.10).
pub const PODS: CachedKind<Box<str>> = CachedKind {
    objects: Objects { purpose: PURPOSE, kind: "Pod", plural: "pods", within: Within::All, ..Objects::HEARD_OF },
    fields: |object| text(object.pointer("/spec/nodeName").and_then(Value::as_str)),
};

/// The users that requested certificates.
pub const CSRS: CachedKind<Box<str>> = CachedKind {
    objects: Objects {
        purpose: PURPOSE,
        group: "certificates.k8s.io",
        kind: "CertificateSigningRequest",
        plural: "certificatesigningrequests",
        namespaced: false,
        ..Objects::HEARD_OF
    },
    fields: |object| text(object.pointer("/spec/username").and_then(Value::as_str)),
};

/// The Secrets with an OperatingSystemConfig. They are all in one namespace (spec 61 §11.12).
pub const SECRETS: CachedKind<OscSecret> = CachedKind {
    objects: Objects {
        purpose: PURPOSE,
        kind: "Secret",
        plural: "secrets",
        within: Within::One(KUBE_SYSTEM),
        selected: Selected::Labelled(POOL),
        ..Objects::HEARD_OF
    },
    fields: |object| OscSecret::of(object, object::label(object, POOL).is_some()),
};

/// The cached fields of a Node. An absent label is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// Label `worker.gardener.cloud/gardener-node-agent-secret-name`.
    pub secret_name: Box<str>,
    /// Label `kubernetes.io/hostname`.
    pub host_name: Box<str>,
}

/// The cached fields of a Machine. An absent label is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    /// Label `node`.
    pub node: Box<str>,
    /// Label `worker.gardener.cloud/gardener-node-agent-secret-name` of its node template.
    pub secret_name: Box<str>,
}

fn text(text: Option<&str>) -> Box<str> {
    text.unwrap_or_default().into()
}
