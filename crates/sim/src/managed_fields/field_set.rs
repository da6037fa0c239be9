use std::collections::BTreeMap;

use serde_json::{Map, Value};

const ITSELF: &str = "."; // marks that the field itself is in the set, besides fields below it

/// Fields of one object. Steps of a path: `f:<field>`, `k:<keys of a list item>` and `v:<value of a list>`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FieldSet {
    member: bool,
    below: BTreeMap<String, FieldSet>,
}

impl FieldSet {
    /// Reads `fieldsV1`; skips steps of another form.
    pub(super) fn parse(json: &Value) -> Self {
        let mut set = Self::default();
        for (step, below) in json.as_object().into_iter().flatten() {
            if step == ITSELF {
                set.member = true;
                continue;
            }
            let mut child = Self::parse(below);
            child.member |= child.below.is_empty();
            set.below.insert(step.clone(), child);
        }
        set
    }

    pub(super) fn to_json(&self) -> Value {
        let mut json = Map::new();
        if self.member && !self.below.is_empty() {
            json.insert(ITSELF.into(), Value::Object(Map::new()));
        }
        json.extend(self.below.iter().map(|(step, below)| (step.clone(), below.to_json())));
        Value::Object(json)
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }

    pub(super) fn insert(&mut self, path: &[String]) {
        match path.split_first() {
            None => self.member = true,
            Some((step, rest)) => self.below.entry(step.clone()).or_default().insert(rest),
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.member |= other.member;
        for (step, below) in &other.below {
            self.below.entry(step.clone()).or_default().add(below);
        }
    }

    /// Removes exactly the fields of `other`, not those below them.
    pub(super) fn subtract(&mut self, other: &Self) {
        self.member &= !other.member;
        for (step, theirs) in &other.below {
            if let Some(below) = self.below.get_mut(step) {
                below.subtract(theirs);
                if below.is_empty() {
                    self.below.remove(step);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sets_are_read_and_written_as_json() {
        let json = json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}, "f:spec": {"f:x": {}}});

        let mut set = FieldSet::parse(&json);
        assert_eq!(set.to_json(), json);
        set.subtract(&FieldSet::parse(&json!({"f:data": {"f:a": {}}, "f:spec": {"f:x": {}}})));

        assert_eq!(set.to_json(), json!({"f:data": {".": {}, "f:b": {}}}));
    }
}
