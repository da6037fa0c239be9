//! On which nodes the pods of a DaemonSet may be: the decision of Kubernetes' DaemonSet controller, as of 1.36 (spec 41
//! §A.4.1). Resources, ports and affinity to pods are not looked at, here as there.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::api::field::formats;

/// What of a pod template says where its pods may be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placement {
    node_name: Option<Box<str>>,
    node_selector: BTreeMap<String, String>,
    /// Required node affinity: one of these. `None`: none is required. Terms that are malformed or empty are left out, as
    /// they match nothing.
    terms: Option<Vec<Term>>,
    tolerations: Vec<Toleration>,
}

/// A term of a node selector: all of it must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    labels: Vec<Requirement>,
    /// Of the node's name: the value, and whether the name must be it.
    names: Vec<(Box<str>, bool)>,
}

/// What a term requires of a label.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: Box<str>,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    In(Vec<Box<str>>),
    NotIn(Vec<Box<str>>),
    Exists,
    DoesNotExist,
    Above(i64),
    Below(i64),
}

/// Empty texts mean *any*.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Toleration {
    key: Box<str>,
    effect: Box<str>,
    /// The value it must have; `None`: any.
    value: Option<Box<str>>,
}

/// What pods of DaemonSets tolerate in any case: key and effect.
const AUTOMATIC: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// What those with the host's network tolerate besides.
const OF_HOST_NETWORK: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

const REQUIRED: &str = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";

impl Placement {
    /// Of the spec of a pod template.
    pub fn of(spec: &Value) -> Self {
        let selector = spec["nodeSelector"].as_object().into_iter().flatten();
        let terms = spec.pointer(REQUIRED).filter(|required| !required.is_null());
        let terms = terms.map(|required| list(&required["nodeSelectorTerms"]).filter_map(Term::of).collect());
        let host = (spec["hostNetwork"] == true).then_some(OF_HOST_NETWORK);
        let automatic = AUTOMATIC.into_iter().chain(host);
        let automatic =
            automatic.map(|(key, effect)| Toleration { key: key.into(), effect: effect.into(), value: None });
        Self {
            node_name: text(&spec["nodeName"]).map(Into::into),
            node_selector: selector
                .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                .collect(),
            terms,
            tolerations: list(&spec["tolerations"]).filter_map(Toleration::of).chain(automatic).collect(),
        }
    }

    /// Whether a pod may be on a node.
    pub fn admits(&self, name: &str, labels: &BTreeMap<String, String>, taints: &[Value]) -> bool {
        self.node_name.as_deref().is_none_or(|wanted| wanted == name)
            && self.node_selector.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.terms.as_ref().is_none_or(|terms| terms.iter().any(|term| term.matches(name, labels)))
            && taints.iter().all(|taint| self.tolerates(taint))
    }

    fn tolerates(&self, taint: &Value) -> bool {
        let is_strict = matches!(taint["effect"].as_str(), Some("NoSchedule" | "NoExecute"));
        !is_strict || self.tolerations.iter().any(|toleration| toleration.tolerates(taint))
    }
}

impl Term {
    /// `None` for one that matches nothing.
    fn of(term: &Value) -> Option<Self> {
        let labels: Vec<_> = list(&term["matchExpressions"]).map(Requirement::of).collect::<Option<_>>()?;
        let names: Vec<_> = list(&term["matchFields"]).map(of_name).collect::<Option<_>>()?;
        (!labels.is_empty() || !names.is_empty()).then_some(Self { labels, names })
    }

    fn matches(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        self.labels.iter().all(|requirement| requirement.holds(labels))
            && self.names.iter().all(|(wanted, is_it)| (**wanted == *name) == *is_it)
    }
}

/// Only the name, with exactly one value.
fn of_name(field: &Value) -> Option<(Box<str>, bool)> {
    let is_it = match field["operator"].as_str()? {
        "In" => true,
        "NotIn" => false,
        _ => return None,
    };
    match values(field)?.as_slice() {
        [name] if field["key"] == "metadata.name" => Some((name.clone(), is_it)),
        _ => None,
    }
}

impl Requirement {
    /// `None` for one that is malformed.
    fn of(expression: &Value) -> Option<Self> {
        let (key, values) = (expression["key"].as_str()?, values(expression)?);
        let is_valid = formats::qualified_name(key).is_empty();
        if !is_valid || values.iter().any(|value| !formats::label_value(value).is_empty()) {
            return None;
        }
        let test = match (expression["operator"].as_str()?, values.as_slice()) {
            ("In", [_, ..]) => Test::In(values),
            ("NotIn", [_, ..]) => Test::NotIn(values),
            ("Exists", []) => Test::Exists,
            ("DoesNotExist", []) => Test::DoesNotExist,
            ("Gt", [bound]) => Test::Above(integer(bound)?),
            ("Lt", [bound]) => Test::Below(integer(bound)?),
            _ => return None,
        };
        Some(Self { key: key.into(), test })
    }

    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&*self.key).map(String::as_str);
        let is_one_of = |values: &[Box<str>]| value.is_some_and(|value| values.iter().any(|known| **known == *value));
        match &self.test {
            Test::In(values) => is_one_of(values),
            Test::NotIn(values) => !is_one_of(values),
            Test::Exists => value.is_some(),
            Test::DoesNotExist => value.is_none(),
            Test::Above(bound) => value.and_then(integer).is_some_and(|value| value > *bound),
            Test::Below(bound) => value.and_then(integer).is_some_and(|value| value < *bound),
        }
    }
}

impl Toleration {
    /// `None` for one with an operator that tolerates nothing.
    fn of(toleration: &Value) -> Option<Self> {
        let of = |field: &str| toleration[field].as_str().unwrap_or_default();
        let value = match of("operator") {
            "Exists" => None,
            "" | "Equal" => Some(of("value").into()),
            _ => return None,
        };
        Some(Self { key: of("key").into(), effect: of("effect").into(), value })
    }

    fn tolerates(&self, taint: &Value) -> bool {
        let of = |field: &str| taint[field].as_str().unwrap_or_default();
        (self.effect.is_empty() || *self.effect == *of("effect"))
            && (self.key.is_empty() || *self.key == *of("key"))
            && self.value.as_deref().is_none_or(|value| value == of("value"))
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

fn values(of: &Value) -> Option<Vec<Box<str>>> {
    list(&of["values"]).map(|value| value.as_str().map(Into::into)).collect()
}

/// As Go's `strconv.ParseInt` with base 10 reads it.
fn integer(text: &str) -> Option<i64> {
    text.parse().ok()
}
