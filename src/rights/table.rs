//! The rights that a configuration needs, from a table of rules: pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::{NeededRight, Right, RightObject};

/// The short name of three verbs.
const READ: (&str, [&str; 3]) = ("r", ["get", "list", "watch"]);

/// Resources without a namespace. A role in a namespace does not grant them.
const CLUSTER_SCOPED: [&str; 12] = [
    "apiservices",
    "certificatesigningrequests",
    "certificatesigningrequests/approval",
    "csinodes",
    "customresourcedefinitions",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "mutatingwebhookconfigurations",
    "namespaces",
    "nodes",
    "signers",
    "tokenreviews",
];

/// The file of a chart, and what its sections mean.
pub(crate) struct RightsTable {
    /// YAML.
    pub(crate) rows: &'static str,
    pub(crate) sections: &'static [Section],
}

/// Where the rules of a section hold.
pub(crate) struct Section {
    pub(crate) name: &'static str,
    /// Name of the cluster.
    pub(crate) cluster: &'static str,
    pub(crate) place: Place,
    /// The value of the chart that grants its rules.
    pub(crate) chart_value: &'static str,
}

/// Namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Those that a setting lists; all if it is empty. Kinds without a namespace are in no namespace.
    Listed(&'static str),
    /// The namespace that a setting names.
    Named(&'static str),
    /// This one.
    Namespace(&'static str),
    /// All.
    Everywhere,
}

/// Rules with a condition.
#[derive(Debug, Deserialize)]
struct Row {
    /// A key of the configuration that is on with `enabled: true`.
    part: Option<String>,
    /// A setting that must have a value.
    when: Option<String>,
    /// The values that count; any if there is none.
    #[serde(default)]
    is: Vec<String>,
    /// A setting that names the namespace, instead of the section.
    #[serde(rename = "in")]
    namespace: Option<String>,
    #[serde(flatten)]
    sections: BTreeMap<String, Vec<Rule>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rule {
    #[serde(default)]
    api_groups: Vec<String>,
    #[serde(default)]
    resources: Vec<String>,
    /// `{a.b}` is the value of a setting.
    #[serde(default)]
    resource_names: Vec<String>,
    #[serde(default, rename = "nonResourceURLs")]
    paths: Vec<String>,
    verbs: Vec<String>,
    /// Verbs that may be missing.
    #[serde(default)]
    optional: Vec<String>,
    /// What is not done without them.
    without: Option<String>,
}

impl RightsTable {
    /// Returns the rights that a configuration needs, sorted. `config`: the effective configuration.
    pub(crate) fn rights(&self, config: &Value) -> Vec<NeededRight> {
        let mut needed = BTreeMap::<Right, NeededRight>::new();
        for row in self.parsed().iter().filter(|row| row.is_on(config)) {
            for section in self.sections {
                for rule in row.sections.get(section.name).into_iter().flatten() {
                    for right in rule.rights(section, row, config) {
                        join(&mut needed, right);
                    }
                }
            }
        }
        needed.into_values().collect()
    }

    fn parsed(&self) -> Vec<Row> {
        serde_saphyr::from_str(self.rows).expect("the table is part of the program, and tests read it")
    }
}

/// A right that one part needs and another can do without is needed.
fn join(needed: &mut BTreeMap<Right, NeededRight>, new: NeededRight) {
    match needed.get_mut(&new.right) {
        None => {
            needed.insert(new.right.clone(), new);
        }
        Some(known) => {
            known.without = known.without.take().and(new.without);
            // What the program always needs, it needs whatever is on.
            let is_always = known.parts.is_empty() || new.parts.is_empty();
            known.parts = if is_always { BTreeSet::new() } else { &known.parts | &new.parts };
        }
    }
}

impl Row {
    fn is_on(&self, config: &Value) -> bool {
        let is_enabled = |part: &String| setting(config, &format!("{part}.enabled")) == Some(&Value::Bool(true));
        let has_value = |path: &String| {
            let value = setting(config, path).filter(|value| is_given(value));
            let is_one = |value: &Value| self.is.is_empty() || self.is.iter().any(|wanted| value == wanted.as_str());
            value.is_some_and(is_one)
        };
        self.part.as_ref().is_none_or(is_enabled) && self.when.as_ref().is_none_or(has_value)
    }
}

impl Rule {
    fn rights<'a>(&'a self, section: &'a Section, row: &'a Row, config: &'a Value) -> Vec<NeededRight> {
        let mut rights = Vec::new();
        for object in self.objects(config) {
            for namespace in section.namespaces(row, &object, config) {
                for verb in self.verbs.iter().flat_map(|verb| verbs(verb)) {
                    let is_optional = self.optional.iter().any(|optional| verbs(optional).contains(&verb));
                    rights.push(NeededRight {
                        right: Right {
                            cluster: section.cluster,
                            namespace: namespace.clone(),
                            object: object.clone(),
                            verb: verb.to_owned(),
                        },
                        parts: row.part.iter().cloned().collect(),
                        without: self.without.clone().filter(|_| is_optional),
                        chart_value: section.chart_value,
                    });
                }
            }
        }
        rights
    }

    fn objects(&self, config: &Value) -> Vec<RightObject> {
        let names: Vec<Option<String>> = match &*self.resource_names {
            [] => vec![None],
            names => names.iter().map(|name| Some(filled_in(name, config))).collect(),
        };
        let mut objects: Vec<RightObject> = Vec::new();
        for group in &self.api_groups {
            for resource in &self.resources {
                objects.extend(names.iter().map(|name| RightObject::Resource {
                    group: group.clone(),
                    resource: resource.clone(),
                    name: name.clone(),
                }));
            }
        }
        // Paths with a wildcard repeat those without.
        objects.extend(self.paths.iter().filter(|path| !path.contains('*')).cloned().map(RightObject::Path));
        objects
    }
}

impl Section {
    fn namespaces(&self, row: &Row, object: &RightObject, config: &Value) -> Vec<Option<String>> {
        let is_cluster_scoped = match object {
            RightObject::Resource { resource, .. } => CLUSTER_SCOPED.contains(&&**resource),
            RightObject::Path(_) => true,
        };
        let named = |path: &str| vec![text(config, path).filter(|namespace| !namespace.is_empty())];
        match (self.place, &row.namespace) {
            _ if is_cluster_scoped => vec![None],
            (_, Some(path)) => named(path),
            (Place::Named(path), None) => named(path),
            (Place::Namespace(namespace), None) => vec![Some(namespace.to_owned())],
            (Place::Everywhere, None) => vec![None],
            (Place::Listed(path), None) => {
                let listed: Vec<_> = setting(config, path).and_then(Value::as_array).into_iter().flatten().collect();
                let listed: Vec<_> =
                    listed.into_iter().filter_map(Value::as_str).map(str::to_owned).map(Some).collect();
                if listed.is_empty() { vec![None] } else { listed }
            }
        }
    }
}

fn verbs(verb: &str) -> Vec<&str> {
    let (short, verbs) = READ;
    if verb == short { verbs.to_vec() } else { vec![verb] }
}

/// Returns the text, or the value of the setting that it names in braces.
fn filled_in(text: &str, config: &Value) -> String {
    let path = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    path.map_or_else(|| text.to_owned(), |path| self::text(config, path).unwrap_or_default())
}

fn text(config: &Value, path: &str) -> Option<String> {
    setting(config, path).and_then(Value::as_str).map(str::to_owned)
}

fn setting<'c>(config: &'c Value, path: &str) -> Option<&'c Value> {
    config.pointer(&format!("/{}", path.replace('.', "/")))
}

/// Whether a setting has a value, as Helm sees it: the chart reads the same table.
fn is_given(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is_set) => *is_set,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rights::needed_by;

    const TABLE: RightsTable = RightsTable {
        rows: r#"
- here:
  - {apiGroups: [""], resources: [pods, nodes], verbs: [list]}
  - {apiGroups: [""], resources: [events], verbs: [create, patch], optional: [patch], without: counts}
- part: a
  here:
  - {apiGroups: [""], resources: [pods], verbs: [r]}
  - {apiGroups: [apps], resources: [deployments/scale], resourceNames: ["{name}", x], verbs: [update]}
- part: b
  when: b.more
  is: [yes please]
  here:
  - {apiGroups: [""], resources: [events], verbs: [patch]}
- part: b
  in: place
  here:
  - {apiGroups: [""], resources: [secrets], verbs: [get]}
- there:
  - {nonResourceURLs: [/version, /api/*], verbs: [get]}
"#,
        sections: &[
            Section { name: "here", cluster: "one", place: Place::Listed("namespaces"), chart_value: "v" },
            Section { name: "there", cluster: "two", place: Place::Everywhere, chart_value: "w" },
        ],
    };

    fn shown(config: &Value) -> Vec<String> {
        let line = |needed: &NeededRight| {
            let Right { cluster, namespace, object, verb } = &needed.right;
            let namespace = namespace.as_deref().unwrap_or("*");
            let without = needed.without.as_deref().map(|text| format!(", else {text}")).unwrap_or_default();
            format!("{cluster}/{namespace}: {verb} {object} for {}{without}", needed_by(&[needed]))
        };
        TABLE.rights(config).iter().map(line).collect()
    }

    #[test]
    fn rights_are_those_of_the_parts_that_are_on() {
        let off = json!({"a": {"enabled": false}, "b": {}, "name": "n"});
        let base = [
            "one/*: create events for the program",
            "one/*: patch events for the program, else counts",
            "one/*: list nodes for the program",
            "one/*: list pods for the program",
            "two/*: get /version for the program",
        ];
        assert_eq!(shown(&off), base);

        let on = json!({"a": {"enabled": true}, "name": "n"});
        let more = [
            "one/*: get pods for a",
            "one/*: watch pods for a",
            "one/*: update deployments/scale.apps \"n\" for a",
            "one/*: update deployments/scale.apps \"x\" for a",
        ];
        let found = shown(&on);
        assert!(base.iter().chain(&more).all(|line| found.iter().any(|found| found == line)), "{found:#?}");
        assert_eq!(found.len(), base.len() + more.len());
    }

    #[test]
    fn rights_are_needed_if_one_part_cannot_do_without_them() {
        let config = json!({"b": {"enabled": true, "more": "yes please"}});

        let found = shown(&config);

        assert!(found.contains(&"one/*: patch events for the program".to_owned()), "{found:#?}");
        let others = shown(&json!({"b": {"enabled": true, "more": "no"}}));
        assert!(others.contains(&"one/*: patch events for the program, else counts".to_owned()), "{others:#?}");
    }

    #[test]
    fn rights_are_needed_in_the_namespaces_of_the_configuration() {
        let config = json!({"namespaces": ["x", "y"], "b": {"enabled": true}, "place": "z"});

        let found = shown(&config);

        let pods: Vec<_> = found.iter().filter(|line| line.contains("pods")).collect();
        assert_eq!(pods, ["one/x: list pods for the program", "one/y: list pods for the program"]);
        assert!(found.contains(&"one/*: list nodes for the program".to_owned()), "a cluster-scoped kind: {found:#?}");
        let secrets: Vec<_> = found.iter().filter(|line| line.contains("secrets")).collect();
        assert_eq!(secrets, ["one/z: get secrets for b"]);
    }
}
