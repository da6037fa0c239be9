//! Builds a wanted NetworkPolicy and compares it with an existing one (spec 40 §7.7, §8.1).

use cluster::object::{self, NamespacedName};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::{direction::Direction, label::TO, port::Port};
use crate::api::meta::selector::Selector;

/// Label: name of the Service.
pub const SERVICE_NAME: &str = "networking.resources.gardener.cloud/service-name";
/// Label: namespace of the Service.
pub const SERVICE_NAMESPACE: &str = "networking.resources.gardener.cloud/service-namespace";
const DESCRIPTION: &str = "gardener.cloud/description";
const NAMESPACE_LABEL: &str = "kubernetes.io/metadata.name";

/// A wanted policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Its namespace and name.
    pub name: NamespacedName,
    /// The Service.
    pub service: NamespacedName,
    /// The direction of the traffic.
    pub direction: Direction,
    /// The pods it selects.
    pub subject: Selector,
    /// The allowed peers and ports; not empty, sorted.
    pub openings: Vec<Opening>,
}

/// Allowed peers and their ports, in the order of spec 40 §7.11.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Opening {
    /// Sort key: the peers' selector as `key=value`, sorted, joined with commas.
    pub order: String,
    /// The other side.
    pub peers: Peers,
    /// The allowed ports; empty means all.
    pub ports: Vec<Port>,
    /// The other side is the ingress controller.
    pub is_for_ingress_controller: bool,
}

/// The other side of a policy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peers {
    /// Pods of a namespace; `None` means the policy's own.
    Pods {
        /// The namespace.
        namespace: Option<String>,
        /// The selected pods.
        pods: Selector,
    },
    /// Everyone; `explicit` lists the peers (decision 3).
    Everyone {
        /// Lists the peers instead of leaving them out.
        explicit: bool,
    },
}

/// A hash over normalised content: equal hashes mean the same policy to an API server.
pub type Digest128 = [u8; 16];

/// The cached fields of an existing policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The Service named by its labels.
    pub owner: NamespacedName,
    spec: Digest128,
    text: Digest128,
    /// Hashes of the client labels of the other side.
    pub clients: Box<[Digest128]>,
    /// The other side has pods without a client label.
    pub has_others: bool,
    /// It has a deletion timestamp.
    pub is_terminating: bool,
}

impl Policy {
    /// Writes labels, description and spec into an object; all other fields stay.
    pub fn write_to(&self, object: &mut Value) {
        let text = self.text(Wording::Present);
        for (map, key, value) in [
            ("labels", SERVICE_NAME, &self.service.name),
            ("labels", SERVICE_NAMESPACE, &self.service.namespace),
            ("annotations", DESCRIPTION, &text),
        ] {
            *object::field_mut(object, &["metadata", map, key]) = json!(value);
        }
        *object::field_mut(object, &["spec"]) = self.spec();
    }

    /// Builds the object to create.
    pub fn created(&self) -> Value {
        let mut object = json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": { "namespace": self.name.namespace, "name": self.name.name },
        });
        self.write_to(&mut object);
        object
    }

    /// Returns true if no write is needed (spec 40 §8.1).
    pub fn is(&self, found: &Found) -> bool {
        let is_text = |wording| digest_of_text(&self.text(wording)) == found.text;
        found.owner == self.service
            && found.spec == digest_of_spec(self.spec())
            && Wording::ALL.into_iter().any(is_text)
    }

    /// Returns the description.
    pub fn text(&self, wording: Wording) -> String {
        let sentences: Vec<String> = self.openings.iter().map(|opening| opening.sentence(self, wording)).collect();
        sentences.join(" ")
    }

    /// Returns the spec.
    pub fn spec(&self) -> Value {
        let (kind, rules, peers) = match self.direction {
            Direction::Ingress => ("Ingress", "ingress", "from"),
            Direction::Egress => ("Egress", "egress", "to"),
        };
        let mut by_ports: Vec<(&[Port], Vec<Value>)> = Vec::new();
        for opening in &self.openings {
            let mut more = opening.peers.to_json();
            match by_ports.iter_mut().find(|(ports, _)| *ports == opening.ports) {
                Some((_, known)) => {
                    more.retain(|peer| !known.contains(peer));
                    known.append(&mut more);
                }
                None => by_ports.push((&opening.ports, more)),
            }
        }
        let rule = |(ports, all): (&[Port], Vec<Value>)| {
            let mut rule = Map::new();
            if !all.is_empty() {
                rule.insert(peers.into(), all.into());
            }
            if !ports.is_empty() {
                rule.insert("ports".into(), ports.iter().map(Port::to_json).collect());
            }
            Value::Object(rule)
        };
        let all: Value = by_ports.into_iter().map(rule).collect();
        json!({ "podSelector": self.subject.to_json(), "policyTypes": [kind], rules: all })
    }
}

impl Opening {
    /// Opens a port to pods of a namespace; `home` is the policy's namespace.
    pub fn pods(pods: Selector, namespace: &str, home: &str, port: Port, is_for_ingress_controller: bool) -> Self {
        let mut order: Vec<String> = pods.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        order.extend(pods.expressions.iter().map(|expression| format!("{expression:?}")));
        let namespace = (namespace != home).then(|| namespace.to_owned());
        let peers = Peers::Pods { namespace, pods };
        Self { order: order.join(","), peers, ports: vec![port], is_for_ingress_controller }
    }
}

/// Present and former wordings of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wording {
    /// The wording of new policies.
    Present,
    /// Selectors look like a printed Go struct.
    Structure,
    /// The ingress controller is worded like other clients.
    Ordinary,
    /// Both [`Self::Structure`] and [`Self::Ordinary`].
    OrdinaryStructure,
}

impl Wording {
    /// All accepted wordings, the present one first.
    pub const ALL: [Self; 4] = [Self::Present, Self::Structure, Self::Ordinary, Self::OrdinaryStructure];
}

impl Peers {
    fn to_json(&self) -> Vec<Value> {
        match self {
            Self::Pods { namespace: None, pods } => vec![json!({ "podSelector": pods.to_json() })],
            Self::Pods { namespace: Some(namespace), pods } => vec![json!({
                "podSelector": pods.to_json(),
                "namespaceSelector": { "matchLabels": { NAMESPACE_LABEL: namespace } },
            })],
            Self::Everyone { explicit: false } => Vec::new(),
            Self::Everyone { explicit: true } => vec![
                json!({ "namespaceSelector": {}, "podSelector": {} }),
                json!({ "ipBlock": { "cidr": "0.0.0.0/0" } }),
                json!({ "ipBlock": { "cidr": "::/0" } }),
            ],
        }
    }
}

impl Found {
    /// Reads a policy; `None` without both labels.
    pub fn of(policy: &Value) -> Option<Self> {
        let label = |key| object::label(policy, key);
        let (clients, has_others) = other_side(&policy["spec"]);
        Some(Self {
            clients,
            has_others,
            owner: NamespacedName::new(label(SERVICE_NAMESPACE)?, label(SERVICE_NAME)?),
            spec: digest_of_spec(policy["spec"].clone()),
            text: digest_of_text(object::annotation(policy, DESCRIPTION).unwrap_or_default()),
            is_terminating: object::deletion_timestamp(policy).is_some(),
        })
    }
}

/// Returns true if a policy that was created means what was sent. Nearly always its fields are equal, which costs less to find
/// out than their hashes.
pub(super) fn says_the_same(created: &Value, sent: &Value) -> bool {
    let is_equal = |field| created.pointer(field) == sent.pointer(field);
    ["/spec", "/metadata/labels", "/metadata/annotations"].into_iter().all(is_equal)
        || Found::of(created) == Found::of(sent)
}

/// Returns the client labels of the other side, and whether it has pods without one.
fn other_side(spec: &Value) -> (Box<[Digest128]>, bool) {
    let of_rules = spec["ingress"].as_array().into_iter().flatten();
    let peers = of_rules.flat_map(|rule| rule["from"].as_array().into_iter().flatten());
    let subject = Some(spec).filter(|spec| spec["egress"].as_array().is_some_and(|rules| !rules.is_empty()));
    let selectors = peers.chain(subject).map(|side| &side["podSelector"]).filter(|selector| selector.is_object());
    let (mut clients, mut has_others) = (Vec::new(), false);
    for selector in selectors {
        let before = clients.len();
        clients.extend(client_labels(selector).map(digest_of_text));
        has_others |= clients.len() == before;
    }
    (clients.into(), has_others)
}

pub(super) fn is_client_peer(peer: &Value) -> bool {
    client_labels(&peer["podSelector"]).next().is_some()
}

fn client_labels(selector: &Value) -> impl Iterator<Item = &str> {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    labels.map(|(key, _)| key.as_str()).filter(|key| key.starts_with(TO))
}

pub(super) fn digest_of_text(text: &str) -> Digest128 {
    let mut digest = Digest128::default();
    digest.iter_mut().zip(Sha256::digest(text)).for_each(|(to, from)| *to = from);
    digest
}

/// Specs that an API server treats as equal have equal hashes: absent fields equal empty lists and maps, except for
/// selectors of peers, and a port without protocol is TCP (spec 40 §8.1 rule 5).
fn digest_of_spec(mut spec: Value) -> Digest128 {
    normalise(&mut spec);
    spec.sort_all_objects();
    digest_of_text(&spec.to_string())
}

fn normalise(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let ports = map.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten();
            for port in ports.filter_map(Value::as_object_mut) {
                let protocol = port.entry("protocol").or_insert(Value::Null);
                if protocol.is_null() {
                    *protocol = json!("TCP");
                }
            }
            map.retain(|key, value| !is_void(key, value));
            map.values_mut().for_each(normalise);
        }
        Value::Array(list) => list.iter_mut().for_each(normalise),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns true if the field means the same as its absence. An empty selector of a peer does not.
fn is_void(key: &str, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty() && !matches!(key, "podSelector" | "namespaceSelector"),
        _ => false,
    }
}
