//! stand-in
use super::{kinds::Kind, status::Failure};
use serde_json::Value;
#[derive(Debug, Clone)]
pub(super) struct LabelSelector(Vec<(String, Option<String>)>);
impl LabelSelector {
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        Ok(Self(
            text.split(',')
                .map(|p| match p.split_once('=') {
                    Some((a, b)) => (a.trim().into(), Some(b.trim_start_matches('=').trim().into())),
                    None => (p.trim().into(), None),
                })
                .collect(),
        ))
    }
    pub(super) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|(k, v)| match v {
            Some(v) => object["metadata"]["labels"][k] == v.as_str(),
            None => object["metadata"]["labels"].get(k).is_some(),
        })
    }
}
#[derive(Debug, Clone)]
pub(super) struct FieldSelector(Vec<(String, String)>);
impl FieldSelector {
    pub(super) fn parse(_: &Kind, text: &str) -> Result<Self, Failure> {
        Ok(Self(
            text.split(',')
                .filter_map(|p| p.split_once('='))
                .map(|(a, b)| (a.replace('.', "/"), b.to_owned()))
                .collect(),
        ))
    }
    pub(super) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|(k, v)| object.pointer(&format!("/{k}")).and_then(Value::as_str).unwrap_or_default() == v)
    }
}
