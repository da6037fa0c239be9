//! The record of most readers: a few fields of an object.

use serde_json::Value;

use super::{Record, object};

/// A few fields of an object, at a version.
#[derive(Debug, Clone)]
pub struct Projected<T> {
    version: u64,
    /// What is kept.
    pub fields: T,
}

impl<T> Projected<T> {
    /// What is kept of this object; `None` if it does not say its version.
    pub fn of(object: &Value, fields: T) -> Option<Self> {
        Some(Self { version: object::resource_version(object).parse().ok()?, fields })
    }
}

impl<T: Clone + Send + Sync + 'static> Record for Projected<T> {
    /// Not kept: who deletes what it knows has a record of its own.
    fn uid(&self) -> &'static str {
        ""
    }

    fn version(&self) -> u64 {
        self.version
    }
}
