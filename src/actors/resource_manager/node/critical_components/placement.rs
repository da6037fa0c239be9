//! The nodes that the pods of a DaemonSet may run on, as Kubernetes' DaemonSet controller decides it in 1.36
//! (spec 41 §A.4.1). Like there, resources, ports and affinity to pods are ignored.

use serde_json::Value;

use crate::api::meta::{
    field::formats,
    selector::{Labels, labels_in},
};

/// The scheduling constraints of a pod template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placement {
    node_name: Option<Box<str>>,
    node_selector: Labels,
    /// Required node affinity, if any: one term must match. Malformed and empty terms never match and are left out.
    terms: Option<Vec<Term>>,
    tolerations: Vec<Toleration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Term {
    labels: Vec<Requirement>,
    /// Names, and whether the node must have the name or must not.
    names: Vec<(Box<str>, bool)>,
}

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

#[derive(Debug, Clone, PartialEq, Eq)]
struct Toleration {
    key: Box<str>,
    effect: Box<str>,
    /// `None` matches any value.
    value: Option<Box<str>>,
}

/// Tolerations of all DaemonSet pods: key and effect.
const AUTOMATIC: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
const OF_HOST_NETWORK: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

const REQUIRED: &str = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";

impl Placement {
    /// Reads the spec of a pod template.
    pub fn of(spec: &Value) -> Self {
        let terms = spec.pointer(REQUIRED).filter(|required| !required.is_null());
        let terms = terms.map(|required| list(&required["nodeSelectorTerms"]).filter_map(Term::of).collect());
        let host = (spec["hostNetwork"] == true).then_some(OF_HOST_NETWORK);
        let automatic = AUTOMATIC.into_iter().chain(host);
        let automatic =
            automatic.map(|(key, effect)| Toleration { key: key.into(), effect: effect.into(), value: None });
        Self {
            node_name: text(&spec["nodeName"]).map(Into::into),
            node_selector: labels_in(&spec["nodeSelector"]),
            terms,
            tolerations: list(&spec["tolerations"]).filter_map(Toleration::of).chain(automatic).collect(),
        }
    }

    /// Returns true if a pod may run on the node.
    pub fn admits(&self, name: &str, labels: &Labels, taints: &[Value]) -> bool {
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
    fn of(term: &Value) -> Option<Self> {
        let labels: Vec<_> = list(&term["matchExpressions"]).map(Requirement::of).collect::<Option<_>>()?;
        let names: Vec<_> = list(&term["matchFields"]).map(of_name).collect::<Option<_>>()?;
        (!labels.is_empty() || !names.is_empty()).then_some(Self { labels, names })
    }

    fn matches(&self, name: &str, labels: &Labels) -> bool {
        self.labels.iter().all(|requirement| requirement.holds(labels))
            && self.names.iter().all(|(wanted, is_it)| (**wanted == *name) == *is_it)
    }
}

/// Reads a condition on the name with exactly one value; Kubernetes accepts no other field.
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

    fn holds(&self, labels: &Labels) -> bool {
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
    /// `None` for an unknown operator, which tolerates nothing.
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

/// Parses like Go's `strconv.ParseInt` with base 10.
fn integer(text: &str) -> Option<i64> {
    text.parse().ok()
}
