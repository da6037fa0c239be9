//! Label selectors: parsed once, then matched against labels.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    field::{Json, formats},
    record::{Record, last},
};

/// Labels of an object or of a selector.
pub type Labels = BTreeMap<String, String>;

/// Reads labels, e.g. `metadata.labels` of an object; values that are no text are left out.
pub fn labels_in(map: &Value) -> Labels {
    let pairs = map.as_object().into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// A label selector: all its conditions must hold. Without conditions it matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Selector {
    /// `matchLabels`.
    #[serde(rename = "matchLabels", skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// `matchExpressions`, in their order.
    #[serde(rename = "matchExpressions", skip_serializing_if = "Vec::is_empty")]
    pub expressions: Vec<Requirement>,
}

/// One of the `matchExpressions`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Requirement {
    /// The label's key.
    pub key: String,
    /// What is required of it.
    pub operator: Operator,
    /// For `In` and `NotIn`; else empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// What is required of a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Operator {
    /// It has one of the values.
    In,
    /// It has none of them, or is absent.
    NotIn,
    /// It is present.
    Exists,
    /// It is absent.
    DoesNotExist,
}

/// An invalid selector; the text says what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(String);

impl Selector {
    /// Selects these labels with these values, which the API server has validated.
    pub fn of_labels(labels: Labels) -> Self {
        Self { labels, expressions: Vec::new() }
    }

    /// As [`Self::of_labels`], for labels that the API server has not validated. Fails if no label can be so.
    pub fn checked(labels: Labels) -> Result<Self, SelectorError> {
        for (key, value) in &labels {
            check_key(key)?;
            check_value(key, value)?;
        }
        Ok(Self::of_labels(labels))
    }

    /// Requires that a label has a value.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Requires that a label is present.
    #[must_use]
    pub fn exists(self, key: &str) -> Self {
        self.and(key, Operator::Exists, &[])
    }

    /// Requires that a label is absent.
    #[must_use]
    pub fn absent(self, key: &str) -> Self {
        self.and(key, Operator::DoesNotExist, &[])
    }

    /// Requires that a label has one of the values.
    #[must_use]
    pub fn one_of(self, key: &str, values: &[&str]) -> Self {
        self.and(key, Operator::In, values)
    }

    /// Requires that a label has none of the values, or is absent.
    #[must_use]
    pub fn not_in(self, key: &str, values: &[&str]) -> Self {
        self.and(key, Operator::NotIn, values)
    }

    fn and(mut self, key: &str, operator: Operator, values: &[&str]) -> Self {
        let values = values.iter().copied().map(str::to_owned).collect();
        self.expressions.push(Requirement { key: key.to_owned(), operator, values });
        self
    }

    /// Parses a selector. Fails at unknown operators, missing or surplus values, and impossible keys or values.
    pub fn new(selector: &LabelSelector) -> Result<Self, SelectorError> {
        let Self { labels, .. } = Self::checked(selector.match_labels.clone().unwrap_or_default())?;
        let expressions = selector.match_expressions.iter().flatten().map(|expression| {
            check_key(&expression.key)?;
            let operator = Operator::of(&expression.operator)?;
            let (key, values) = (expression.key.clone(), expression.values.clone().unwrap_or_default());
            if operator.has_values() == values.is_empty() {
                let rule = if values.is_empty() { "needs values" } else { "takes no values" };
                return Err(SelectorError(format!("key {key:?}: operator {:?} {rule}", expression.operator)));
            }
            values.iter().try_for_each(|value| check_value(&key, value))?;
            Ok(Requirement { key, operator, values })
        });
        Ok(Self { expressions: expressions.collect::<Result<_, _>>()?, labels })
    }

    /// Parses a selector in an annotation (spec 40 §11 P9). Fails as [`Self::new`], and at unknown fields and values:
    /// what is not understood never selects more.
    pub fn of_record(record: Record<'_>) -> Result<Self, SelectorError> {
        let [labels, expressions] = record.fields(["matchLabels", "matchExpressions"]).map_err(SelectorError)?;
        let mut selector = LabelSelector::default();
        // As in Go, maps of the same name merge, and `null` starts anew.
        for labels in labels {
            match labels {
                Json::Null => selector.match_labels = None,
                Json::Map(pairs) => {
                    let pairs = pairs.into_iter().map(|(key, value)| match value {
                        Json::Text(value) => Ok((key.into_owned(), value.into_owned())),
                        _ => Err(SelectorError(format!("matchLabels: the value of {key:?} is no text"))),
                    });
                    let pairs: Labels = pairs.collect::<Result<_, _>>()?;
                    selector.match_labels.get_or_insert_default().extend(pairs);
                }
                _ => return Err(SelectorError("matchLabels is no map".to_owned())),
            }
        }
        if let Some(expressions) = last(expressions) {
            let Json::List(expressions) = expressions else {
                return Err(SelectorError("matchExpressions is no list".to_owned()));
            };
            let expressions = expressions.into_iter().map(requirement);
            selector.match_expressions = Some(expressions.collect::<Result<_, _>>()?);
        }
        Self::new(&selector)
    }

    /// The selector as a query of the API, or `None` if it has expressions. Its keys and values are valid in labels, so
    /// they cannot be read as other conditions.
    pub fn to_query(&self) -> Option<String> {
        let pairs = self.labels.iter().map(|(key, value)| format!("{key}={value}"));
        self.expressions.is_empty().then(|| pairs.collect::<Vec<_>>().join(","))
    }

    /// The selector as a query of the API, with its expressions. Keys and values: as in [`Self::to_query`].
    pub fn to_label_selector(&self) -> String {
        let labels = self.labels.iter().map(|(key, value)| format!("{key}={value}"));
        let expressions = self.expressions.iter().map(|Requirement { key, operator, values }| match operator {
            Operator::In => format!("{key} in ({})", values.join(",")),
            Operator::NotIn => format!("{key} notin ({})", values.join(",")),
            Operator::Exists => key.clone(),
            Operator::DoesNotExist => format!("!{key}"),
        });
        labels.chain(expressions).collect::<Vec<_>>().join(",")
    }

    /// Returns true without conditions.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.expressions.is_empty()
    }

    /// Returns true if these labels match.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.expressions.iter().all(|expression| expression.matches(labels))
    }

    /// The selector as in an object, without empty parts.
    pub fn to_json(&self) -> Value {
        json!(self)
    }
}

fn requirement(expression: Json<'_>) -> Result<LabelSelectorRequirement, SelectorError> {
    let record = Record::of(expression).map_err(|text| SelectorError(format!("matchExpressions: {text}")))?;
    let fields = record.fields(["key", "operator", "values"]);
    let [key, operator, values] = fields.map_err(|text| SelectorError(format!("matchExpressions: {text}")))?;
    let text = |name: &str, value: Option<Json<'_>>| match value {
        Some(Json::Text(text)) => Ok(text.into_owned()),
        _ => Err(SelectorError(format!("matchExpressions: {name} is no text"))),
    };
    let values = match last(values) {
        None => None,
        Some(Json::List(values)) => {
            Some(values.into_iter().map(|value| text("values", Some(value))).collect::<Result<_, _>>()?)
        }
        Some(_) => return Err(SelectorError("matchExpressions: values is no list".to_owned())),
    };
    Ok(LabelSelectorRequirement { key: text("key", last(key))?, operator: text("operator", last(operator))?, values })
}

fn check_key(key: &str) -> Result<(), SelectorError> {
    match formats::qualified_name(key).first() {
        Some(text) => Err(SelectorError(format!("key {key:?}: {text}"))),
        None => Ok(()),
    }
}

fn check_value(key: &str, value: &str) -> Result<(), SelectorError> {
    match formats::label_value(value).first() {
        Some(text) => Err(SelectorError(format!("key {key:?}: value {value:?}: {text}"))),
        None => Ok(()),
    }
}

impl Requirement {
    fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        match self.operator {
            Operator::In => value.is_some_and(|value| self.values.contains(value)),
            Operator::NotIn => value.is_none_or(|value| !self.values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

impl Operator {
    fn of(text: &str) -> Result<Self, SelectorError> {
        match text {
            "In" => Ok(Self::In),
            "NotIn" => Ok(Self::NotIn),
            "Exists" => Ok(Self::Exists),
            "DoesNotExist" => Ok(Self::DoesNotExist),
            other => Err(SelectorError(format!("{other:?} is not a valid label selector operator"))),
        }
    }

    fn has_values(self) -> bool {
        matches!(self, Self::In | Self::NotIn)
    }

    /// The name of the operator.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector(json: Value) -> Result<Selector, String> {
        let selector = serde_json::from_value(json).expect("a LabelSelector");
        Selector::new(&selector).map_err(|error| error.to_string())
    }

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_selector_without_conditions_matches_everything() {
        assert!(selector(json!({})).expect("it is valid").matches(&labels(&[])));
    }

    /// spec 40 §11 P9
    #[test]
    fn selector_operators_not_in_and_does_not_exist_match_without_the_key() {
        let cases = [
            ("In", json!(["a", "b"]), [false, true, false]),
            ("NotIn", json!(["a", "b"]), [true, false, true]),
            ("Exists", json!(null), [false, true, true]),
            ("DoesNotExist", json!([]), [true, false, false]),
        ];
        for (operator, values, expected) in cases {
            let json = json!({ "matchExpressions": [{ "key": "tier", "operator": operator, "values": values }] });
            let selector = selector(json).expect("it is valid");
            let found =
                [labels(&[]), labels(&[("tier", "a")]), labels(&[("tier", "c")])].map(|it| selector.matches(&it));
            assert_eq!(found, expected, "{operator}");
        }
    }

    #[test]
    fn selector_with_expressions_is_written_as_a_query_of_the_api() {
        let json = json!({
            "matchLabels": { "b": "2", "a": "1" },
            "matchExpressions": [
                { "key": "c", "operator": "In", "values": ["x", "y"] }, { "key": "d", "operator": "NotIn", "values": ["z"] },
                { "key": "e", "operator": "Exists" }, { "key": "f", "operator": "DoesNotExist" },
            ],
        });

        assert_eq!(selector(json).expect("it is valid").to_label_selector(), "a=1,b=2,c in (x,y),d notin (z),e,!f");
    }

    #[test]
    fn selector_that_no_api_server_accepts_is_refused() {
        let cases = [
            (json!({ "matchExpressions": [{ "key": "a", "operator": "Has" }] }), "\"Has\" is not a valid label"),
            (json!({ "matchExpressions": [{ "key": "a", "operator": "In" }] }), "operator \"In\" needs values"),
            (json!({ "matchExpressions": [{ "key": "a", "operator": "Exists", "values": ["b"] }] }), "takes no values"),
            (json!({ "matchLabels": { "a b": "c" } }), "key \"a b\": name part must consist"),
            (json!({ "matchLabels": { "a": "b c" } }), "value \"b c\": a valid label must"),
        ];
        for (json, expected) in cases {
            let error = selector(json).expect_err("it is refused");
            assert!(error.contains(expected), "{error}");
        }
    }

    fn written(text: &str) -> Result<Value, String> {
        let record = serde_json::from_str(text).map_err(|error| error.to_string())?;
        Selector::of_record(record).map(|selector| selector.to_json()).map_err(|error| error.to_string())
    }

    /// spec 40 §11 P9, decision 39
    #[test]
    fn selector_of_an_annotation_is_read_in_any_case() {
        let cases = [
            (r#"{"MatchLabels":{"team":"blue"}}"#, json!({ "matchLabels": { "team": "blue" } })),
            (
                r#"{"MATCHEXPRESSIONS":[{"KEY":"a","Operator":"In","vALUES":["b"]}]}"#,
                json!({ "matchExpressions": [{ "key": "a", "operator": "In", "values": ["b"] }] }),
            ),
            (r#"{"matchLabels":{"a":"1"},"matchlabels":{"a":"2"}}"#, json!({ "matchLabels": { "a": "2" } })),
            (r#"{"matchLabels":{"a":"1"},"matchLabels":{"b":"2"}}"#, json!({ "matchLabels": { "a": "1", "b": "2" } })),
            (r#"{"matchLabels":null,"matchExpressions":null}"#, json!({})),
            ("{}", json!({})),
        ];
        for (text, expected) in cases {
            assert_eq!(written(text), Ok(expected), "{text}");
        }
    }

    /// spec 40 §11 P9, decision 39: what is not understood never widens the selection
    #[test]
    fn selector_of_an_annotation_with_unknown_parts_is_refused() {
        let cases = [
            (r#"{"match_labels":{"a":"b"}}"#, "unknown field \"match_labels\""),
            (r#"{"matchLabels":{"a":"b"},"x":null}"#, "unknown field \"x\""),
            (r#"{"matchLabels":{"a":null}}"#, "the value of \"a\" is no text"),
            (r#"{"matchLabels":[]}"#, "matchLabels is no map"),
            (r#"{"matchExpressions":{}}"#, "matchExpressions is no list"),
            (r#"{"matchExpressions":[{"key":"a","operator":"Exists","value":"b"}]}"#, "unknown field \"value\""),
            (r#"{"matchExpressions":[{"operator":"Exists"}]}"#, "key is no text"),
            (r#"{"matchExpressions":[{"key":"a","operator":"In","values":[1]}]}"#, "values is no text"),
            (r#"{"matchExpressions":[null]}"#, "it is no object"),
            (r#"{"matchLabels":{"a":"b,c!=d"}}"#, "value \"b,c!=d\""),
            ("null", "invalid type: null"),
        ];
        for (text, expected) in cases {
            let error = written(text).expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_selector_is_written_as_it_was_read() {
        let json = json!({
            "matchLabels": { "app": "x" },
            "matchExpressions": [{ "key": "tier", "operator": "In", "values": ["b", "a"] }, { "key": "c", "operator": "Exists" }],
        });
        assert_eq!(selector(json.clone()).expect("it is valid").to_json(), json);
    }
}
