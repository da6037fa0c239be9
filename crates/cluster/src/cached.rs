//! The record of most readers: a few fields of an object.

use serde_json::Value;

use super::{Cached, object};

/// A few fields of an object, at a version.
#[derive(Debug, Clone)]
pub struct CachedFields<T> {
    version: u64,
    /// What is kept.
    pub fields: T,
}

impl<T> CachedFields<T> {
    /// What is kept of this object; `None` if it does not say its version.
    pub fn of(object: &Value, fields: T) -> Option<Self> {
        Some(Self { version: object::resource_version(object).parse().ok()?, fields })
    }
}

impl<T: Clone + Send + Sync + 'static> Cached for CachedFields<T> {
    /// Not kept: who deletes what it knows has a record of its own.
    fn uid(&self) -> &'static str {
        ""
    }

    fn version(&self) -> u64 {
        self.version
    }
}
