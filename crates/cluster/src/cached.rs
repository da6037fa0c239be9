use serde_json::Value;

use super::{Cached, object};

/// A few fields of an object, at a version.
#[derive(Debug, Clone)]
pub struct CachedFields<T> {
    version: u64,
    /// The fields.
    pub fields: T,
}

impl<T> CachedFields<T> {
    /// Returns the cached form of the object, or `None` if it has no valid version.
    pub fn of(object: &Value, fields: T) -> Option<Self> {
        Some(Self { version: object::resource_version(object).parse().ok()?, fields })
    }
}

impl<T: Clone + Send + Sync + 'static> Cached for CachedFields<T> {
    /// Not kept: code that deletes objects caches its own type.
    fn uid(&self) -> &'static str {
        ""
    }

    fn version(&self) -> u64 {
        self.version
    }
}
