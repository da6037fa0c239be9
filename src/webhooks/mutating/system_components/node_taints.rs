//! The tolerations for the taints of nodes (spec 50 §10.1 rules 3 to 8), updated node by node: an admission request
//! takes a finished list, whatever the number of nodes (spec 50, "better" 5).

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, OnceLock},
};

use serde_json::{Map, Value};

/// Taints that describe a node's state, not its purpose.
const IGNORED_KEY: &str = "ToBeDeletedByClusterAutoscaler";
const IGNORED_PART: &str = "kubernetes.io/";

/// A taint of a node. Its order is the order of the tolerations.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taint {
    /// `key`.
    pub key: String,
    /// `value`; empty if absent.
    pub value: String,
    /// `effect`, e.g. `NoSchedule`.
    pub effect: String,
}

/// The taints of the nodes that match a selector.
#[derive(Debug)]
pub struct TaintSet {
    selector: BTreeMap<String, String>,
    /// The counted taints by node, for nodes that have any.
    nodes: HashMap<String, BTreeSet<Arc<Taint>>>,
    counts: BTreeMap<Arc<Taint>, usize>,
    /// The cached answer; reset when the keys of `counts` change.
    tolerations: OnceLock<Arc<Vec<Value>>>,
}

impl Taint {
    /// Returns the taints of a raw Node, `spec.taints`. A field that is not a string counts as absent.
    pub fn of(node: &Value) -> Vec<Self> {
        let taints = node.pointer("/spec/taints").and_then(Value::as_array).into_iter().flatten();
        let taint = |taint: &Value| {
            let text = |field| taint.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
            Self { key: text("key"), value: text("value"), effect: text("effect") }
        };
        taints.map(taint).collect()
    }

    /// Whether Pods get no toleration for it (spec 50 §10.1 rule 6).
    fn is_ignored(&self) -> bool {
        self.key == IGNORED_KEY || self.key.contains(IGNORED_PART)
    }

    /// Spec 50 §10.1 rule 5.
    fn toleration(&self) -> Value {
        let operator = if self.value.is_empty() { "Exists" } else { "Equal" };
        let fields =
            [("key", self.key.as_str()), ("operator", operator), ("value", &self.value), ("effect", &self.effect)];
        let present = fields.into_iter().filter(|(_, text)| !text.is_empty());
        Value::Object(present.map(|(field, text)| (field.to_owned(), text.into())).collect::<Map<_, _>>())
    }
}

impl TaintSet {
    /// Creates a set without nodes. An empty selector matches every node (spec 50 §10.1 rule 3).
    pub fn new(selector: BTreeMap<String, String>) -> Self {
        Self { selector, nodes: HashMap::new(), counts: BTreeMap::new(), tolerations: OnceLock::new() }
    }

    /// Sets the labels and taints of a node; `None` removes it.
    pub fn replace(&mut self, node: &str, now: Option<(&BTreeMap<String, String>, &[Taint])>) {
        let matching = now.filter(|(labels, _)| self.matches(labels)).map_or(&[][..], |(_, taints)| taints);
        let distinct: BTreeSet<&Taint> = matching.iter().filter(|taint| !taint.is_ignored()).collect();
        // Adds the new taints first, so that the count of an unchanged taint does not reach 0 in between.
        let new: BTreeSet<Arc<Taint>> = distinct.into_iter().map(|taint| self.count(taint)).collect();
        let old = if new.is_empty() { self.nodes.remove(node) } else { self.nodes.insert(node.to_owned(), new) };
        for taint in old.into_iter().flatten() {
            self.discount(&taint);
        }
    }

    /// Returns the tolerations without duplicates, sorted by key, value and effect.
    pub fn tolerations(&self) -> Arc<Vec<Value>> {
        let made = || Arc::new(self.counts.keys().map(|taint| taint.toleration()).collect());
        Arc::clone(self.tolerations.get_or_init(made))
    }

    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.selector.iter().all(|(key, value)| labels.get(key) == Some(value))
    }

    fn count(&mut self, taint: &Taint) -> Arc<Taint> {
        let known = self.counts.get_key_value(taint).map(|(known, _)| Arc::clone(known));
        let taint = known.unwrap_or_else(|| Arc::new(taint.clone()));
        let count = self.counts.entry(Arc::clone(&taint)).or_default();
        *count += 1;
        if *count == 1 {
            self.tolerations.take();
        }
        taint
    }

    fn discount(&mut self, taint: &Taint) {
        if let Some(count) = self.counts.get_mut(taint) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(taint);
                self.tolerations.take();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhooks::testing::object;

    fn labels(pool: &str) -> BTreeMap<String, String> {
        [("pool".to_owned(), pool.to_owned()), ("zone".to_owned(), "a".to_owned())].into()
    }

    fn taints<const N: usize>(texts: [&str; N]) -> Vec<Taint> {
        let taint = |text: &str| {
            let (key_value, effect) = text.split_once(':').unwrap();
            let (key, value) = key_value.split_once('=').unwrap_or((key_value, ""));
            Taint { key: key.into(), value: value.into(), effect: effect.into() }
        };
        texts.map(taint).into()
    }

    fn set() -> TaintSet {
        TaintSet::new([("pool".to_owned(), "sys".to_owned())].into())
    }

    #[track_caller]
    fn assert_tolerations(set: &TaintSet, expected: &str) {
        assert_eq!(Value::from(set.tolerations().to_vec()), object(expected));
    }

    /// spec 50 §10.1 rules 5 to 7, scenario 33
    #[test]
    fn taints_that_count_are_tolerated_once() {
        let mut set = set();

        set.replace(
            "a",
            Some((&labels("sys"), &taints(["x=1:NoSchedule", "node.kubernetes.io/disk-pressure:NoSchedule"]))),
        );
        set.replace(
            "b",
            Some((
                &labels("sys"),
                &taints(["ToBeDeletedByClusterAutoscaler=1:NoSchedule", "x=1:NoSchedule", "x=1:NoSchedule"]),
            )),
        );

        assert_tolerations(&set, "[{key: x, operator: Equal, value: '1', effect: NoSchedule}]");
    }

    /// spec 50 §10.1 rules 5 and 6, §10.2
    #[test]
    fn taint_becomes_a_toleration_or_is_ignored() {
        for (taint, toleration) in [
            ("x=1:NoSchedule", "[{key: x, operator: Equal, value: '1', effect: NoSchedule}]"),
            ("x:NoExecute", "[{key: x, operator: Exists, effect: NoExecute}]"),
            ("x=1:PreferNoSchedule", "[{key: x, operator: Equal, value: '1', effect: PreferNoSchedule}]"),
            (
                "ToBeDeletedByClusterAutoscaler2:NoSchedule",
                "[{key: ToBeDeletedByClusterAutoscaler2, operator: Exists, effect: NoSchedule}]",
            ),
            ("kubernetes.io:NoSchedule", "[{key: kubernetes.io, operator: Exists, effect: NoSchedule}]"),
            ("ToBeDeletedByClusterAutoscaler=1:NoSchedule", "[]"),
            ("node.kubernetes.io/unreachable:NoExecute", "[]"),
            ("node.cloudprovider.kubernetes.io/uninitialized=true:NoSchedule", "[]"),
            ("example.kubernetes.io/x:NoSchedule", "[]"),
        ] {
            let mut set = set();

            set.replace("a", Some((&labels("sys"), &taints([taint]))));

            assert_tolerations(&set, toleration);
        }
    }

    /// spec 50 §10.1 rule 8, scenario 35, "better" 4
    #[test]
    fn tolerations_are_sorted_by_key_value_and_effect() {
        let expected = "
- {key: a, operator: Exists, effect: NoSchedule}
- {key: a, operator: Equal, value: '1', effect: NoExecute}
- {key: a, operator: Equal, value: '1', effect: NoSchedule}
- {key: a, operator: Equal, value: '2', effect: NoExecute}
- {key: b, operator: Exists, effect: NoExecute}
";
        let mut texts = ["a:NoSchedule", "a=1:NoExecute", "a=1:NoSchedule", "a=2:NoExecute", "b:NoExecute"];
        for turn in 0..100 {
            texts.rotate_left(1);
            let mut set = set();

            for (node, text) in texts.iter().enumerate() {
                set.replace(&format!("{}", (node + turn) % 7), Some((&labels("sys"), &taints([text]))));
            }

            assert_tolerations(&set, expected);
        }
    }

    /// spec 50 §10.1 rule 3, scenario 36
    #[test]
    fn taints_count_only_for_nodes_that_match_the_whole_selector() {
        let node = |set: &mut TaintSet, name, pool| {
            set.replace(name, Some((&labels(pool), &taints([&format!("{name}:NoSchedule")]))))
        };
        let all = "[{key: a, operator: Exists, effect: NoSchedule}, {key: b, operator: Exists, effect: NoSchedule}]";
        for (selector, expected) in [
            ("{}", all),
            ("{zone: a}", all),
            ("{zone: a, pool: sys}", "[{key: a, operator: Exists, effect: NoSchedule}]"),
            ("{zone: b, pool: sys}", "[]"),
            ("{rack: ''}", "[]"),
        ] {
            let mut set = TaintSet::new(serde_json::from_value(object(selector)).unwrap());

            node(&mut set, "a", "sys");
            node(&mut set, "b", "web");

            assert_tolerations(&set, expected);
        }
    }

    /// spec 50, "better" 5
    #[test]
    fn tolerations_list_is_shared_until_it_changes() {
        let mut set = set();
        let tainted = taints(["x:NoSchedule"]);
        set.replace("a", Some((&labels("sys"), &tainted)));
        let before = set.tolerations();

        set.replace("a", Some((&labels("sys"), &tainted)));
        set.replace("b", Some((&labels("sys"), &tainted)));
        set.replace("c", Some((&labels("web"), &taints(["y:NoSchedule"]))));
        set.replace("a", None);
        set.replace("a", None);

        assert!(Arc::ptr_eq(&before, &set.tolerations()));
        set.replace("b", Some((&labels("web"), &tainted)));
        assert_tolerations(&set, "[]");
        assert!(set.nodes.is_empty() && set.counts.is_empty());
    }

    #[test]
    fn taints_of_a_changed_node_replace_its_old_taints() {
        let mut set = set();

        set.replace("a", Some((&labels("sys"), &taints(["x:NoSchedule", "y:NoSchedule"]))));
        set.replace("b", Some((&labels("sys"), &taints(["y:NoSchedule"]))));
        set.replace("a", Some((&labels("sys"), &taints(["z:NoSchedule"]))));

        assert_tolerations(
            &set,
            "[{key: y, operator: Exists, effect: NoSchedule}, {key: z, operator: Exists, effect: NoSchedule}]",
        );
    }

    #[test]
    fn taints_are_read_from_a_raw_node() {
        let node =
            object("spec: {taints: [{key: a, value: b, effect: NoSchedule, timeAdded: x}, {key: c, value: 1}, null]}");

        let texts: Vec<String> =
            Taint::of(&node).iter().map(|taint| format!("{}={}:{}", taint.key, taint.value, taint.effect)).collect();

        assert_eq!(texts, ["a=b:NoSchedule", "c=:", "=:"]);
        assert_eq!(Taint::of(&object("spec: {taints: a}")), []);
        assert_eq!(Taint::of(&object("{}")), []);
    }
}
