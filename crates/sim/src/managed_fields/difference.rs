use serde_json::{Map, Value};

use super::{
    super::lists::{ListType, is_always_there, is_atomic_map, list_type},
    field_set::FieldSet,
};

const UNOWNED: [&str; 10] = [
    "name",
    "namespace",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "uid",
    "generation",
    "managedFields",
    "resourceVersion",
];

#[derive(Debug, Default)]
pub(super) struct Difference {
    pub(super) written: FieldSet,
    pub(super) removed: FieldSet,
}

struct Walk<'v> {
    /// Empty for custom kinds, whose lists have one owner.
    kind: &'v str,
    names: Vec<&'v str>,
    /// The same with list items, as in field sets.
    path: Vec<String>,
    difference: Difference,
}

impl Difference {
    pub(super) fn of(old: Option<&Value>, new: &Value, subresource: &str) -> Self {
        let group =
            new["apiVersion"].as_str().and_then(|version| version.split_once('/')).map_or("", |(group, _)| group);
        let is_built_in = !group.contains('.') || group.ends_with(".k8s.io");
        let kind = if is_built_in { new["kind"].as_str().unwrap_or_default() } else { "" };
        let mut walk = Walk { kind, names: Vec::new(), path: Vec::new(), difference: Self::default() };
        // Writers of the object do not own the status of a built-in kind.
        let has_foreign_status = is_built_in && subresource.is_empty();
        let is_owned =
            |field: &str| !(matches!(field, "apiVersion" | "kind") || (has_foreign_status && field == "status"));
        walk.fields(old, Some(new), is_owned);
        walk.difference
    }
}

impl<'v> Walk<'v> {
    /// Compares the fields of two objects; other values have no fields.
    fn fields(&mut self, old: Option<&'v Value>, new: Option<&'v Value>, is_owned: impl Fn(&str) -> bool) {
        let (old, new) = (old.and_then(Value::as_object), new.and_then(Value::as_object));
        let known = old.into_iter().flat_map(Map::keys);
        let added = new.into_iter().flat_map(Map::keys).filter(|field| old.is_none_or(|old| !old.contains_key(*field)));
        for field in known.chain(added).filter(|field| is_owned(field)) {
            self.names.push(field);
            self.path.push(format!("f:{field}"));
            self.compare(old.and_then(|old| old.get(field)), new.and_then(|new| new.get(field)));
            self.path.pop();
            self.names.pop();
        }
    }

    fn compare(&mut self, old: Option<&'v Value>, new: Option<&'v Value>) {
        if old == new {
            return;
        }
        match (old, new) {
            (None | Some(Value::Object(_)), None | Some(Value::Object(_))) if !self.is_atomic_map() => {
                self.itself(old.is_some(), new.is_some(), is_empty(new));
                let is_metadata = self.names == ["metadata"];
                let is_owned = |field: &str| !is_metadata || !UNOWNED.contains(&field);
                self.fields(old, new, is_owned);
            }
            (None | Some(Value::Array(_)), None | Some(Value::Array(_))) => {
                let list_type = self.list_type();
                match (self.items(list_type, old), self.items(list_type, new)) {
                    (Some(before), Some(after)) => {
                        self.itself(old.is_some(), new.is_some(), is_empty(new));
                        self.list(&before, &after);
                    }
                    _ => self.leaf(new),
                }
            }
            _ => self.leaf(new),
        }
    }

    /// Records that an object or list appeared or vanished, if its existence has an owner.
    fn itself(&mut self, was_there: bool, is_there: bool, is_empty: bool) {
        let owned = match self.kind {
            "" => self.names != ["metadata"],
            kind => !is_always_there(kind, &self.names) || (is_empty && self.names.last() == Some(&"resources")),
        };
        match (was_there, is_there) {
            (false, true) if owned => self.difference.written.insert(&self.path),
            (true, false) if owned => self.difference.removed.insert(&self.path),
            _ => {}
        }
    }

    fn leaf(&mut self, new: Option<&Value>) {
        match new {
            Some(_) => self.difference.written.insert(&self.path),
            None => self.difference.removed.insert(&self.path),
        }
    }

    fn list(&mut self, old: &[(String, &'v Value)], new: &[(String, &'v Value)]) {
        let find = |items: &[(String, &'v Value)], step: &str| {
            items.iter().find(|(other, _)| other == step).map(|(_, value)| *value)
        };
        let added = new.iter().filter(|(step, _)| find(old, step).is_none());
        for (step, _) in old.iter().chain(added) {
            self.path.push(step.clone());
            self.compare_item(find(old, step), find(new, step));
            self.path.pop();
        }
    }

    fn compare_item(&mut self, old: Option<&'v Value>, new: Option<&'v Value>) {
        let is_object = |value: Option<&Value>| value.is_none_or(Value::is_object);
        if old == new {
        } else if !self.is_atomic_map() && is_object(old) && is_object(new) {
            match (old, new) {
                (None, _) => self.difference.written.insert(&self.path),
                (_, None) => self.difference.removed.insert(&self.path),
                (Some(_), Some(_)) => {}
            }
            self.fields(old, new, |_| true);
        } else {
            self.leaf(new);
        }
    }

    fn items(&self, list_type: ListType, list: Option<&'v Value>) -> Option<Vec<(String, &'v Value)>> {
        let items = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        match list_type {
            ListType::Atomic => None,
            ListType::Set => Some(items.iter().map(|item| (format!("v:{item}"), item)).collect()),
            ListType::Map(keys) => items.iter().map(|item| Some((step(keys, item)?, item))).collect(),
        }
    }

    fn list_type(&self) -> ListType {
        if self.kind.is_empty() && self.names.first() != Some(&"metadata") {
            return ListType::Atomic;
        }
        list_type(self.kind, &self.names)
    }

    fn is_atomic_map(&self) -> bool {
        let is_custom = self.kind.is_empty() && self.names.first() != Some(&"metadata");
        !is_custom && is_atomic_map(self.kind, &self.names)
    }
}

fn step(keys: &[&str], item: &Value) -> Option<String> {
    let mut step = Map::new();
    for key in keys {
        match item.get(key) {
            Some(value) => step.insert((*key).into(), value.clone()),
            None if *key == "protocol" => step.insert((*key).into(), "TCP".into()),
            None => return None,
        };
    }
    Some(format!("k:{}", Value::Object(step)))
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        _ => false,
    }
}
