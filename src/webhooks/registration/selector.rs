use serde_json::{Map, Value, json};

#[derive(Debug, Clone, Default)]
pub(super) struct Selector {
    labels: Vec<(&'static str, &'static str)>,
    expressions: Vec<Value>,
}

impl Selector {
    pub(super) fn all() -> Self {
        Self::default()
    }

    pub(super) fn label(mut self, key: &'static str, value: &'static str) -> Self {
        self.labels.push((key, value));
        self
    }

    pub(super) fn exists(mut self, key: &str) -> Self {
        self.expressions.push(json!({ "key": key, "operator": "Exists" }));
        self
    }

    pub(super) fn absent(mut self, key: &str) -> Self {
        self.expressions.push(json!({ "key": key, "operator": "DoesNotExist" }));
        self
    }

    pub(super) fn one_of(mut self, key: &str, values: &[&str]) -> Self {
        self.expressions.push(json!({ "key": key, "operator": "In", "values": values }));
        self
    }

    pub(super) fn not_in(mut self, key: &str, values: &[&str]) -> Self {
        self.expressions.push(json!({ "key": key, "operator": "NotIn", "values": values }));
        self
    }

    pub(super) fn label_if(self, condition: bool, key: &'static str, value: &'static str) -> Self {
        if condition { self.label(key, value) } else { self }
    }

    pub(super) fn to_json(&self) -> Value {
        let mut json = Map::new();
        if !self.labels.is_empty() {
            let labels: Map<_, _> =
                self.labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
            json.insert("matchLabels".to_owned(), labels.into());
        }
        if !self.expressions.is_empty() {
            json.insert("matchExpressions".to_owned(), self.expressions.clone().into());
        }
        Value::Object(json)
    }
}
