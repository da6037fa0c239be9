//! ManagedResources in the store: compact bytes, parsed for the pass that needs them.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    api::{
        managed_resource::{ManagedResource, ReadError},
        object,
    },
    cluster::Record,
};

/// What the store keeps of a ManagedResource: its JSON without `managedFields`, in one piece.
#[derive(Clone, Debug)]
pub struct BundleRecord {
    uid: Arc<str>,
    version: u64,
    json: Arc<[u8]>,
}

/// A ManagedResource at one version, parsed.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// As it came, but for `managedFields`.
    pub raw: Value,
    /// The typed view.
    pub mr: ManagedResource,
}

// === impl BundleRecord ===

impl BundleRecord {
    /// From the object; `None` if it is not shaped like a ManagedResource.
    pub fn of(object: &Value) -> Option<Self> {
        let mut compact = object.clone();
        if let Some(metadata) = compact.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        ManagedResource::from_value(&compact).ok()?;
        let json = serde_json::to_vec(&compact).ok()?;
        let version = object::resource_version(object).parse().unwrap_or_default();
        Some(Self { uid: object::uid(object).into(), version, json: json.into() })
    }

    /// The typed view alone.
    ///
    /// # Errors
    /// Never for a record made by [`BundleRecord::of`], which has read it before.
    pub fn managed_resource(&self) -> Result<ManagedResource, ReadError> {
        ManagedResource::from_slice(&self.json)
    }

    /// Parsed in full.
    ///
    /// # Errors
    /// As [`BundleRecord::managed_resource`].
    pub fn snapshot(&self) -> Result<Snapshot, ReadError> {
        let raw: Value = serde_json::from_slice(&self.json)?;
        let mr = ManagedResource::from_value(&raw)?;
        Ok(Snapshot { raw, mr })
    }
}

impl Record for BundleRecord {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn version(&self) -> u64 {
        self.version
    }
}

// === impl Snapshot ===

impl Snapshot {
    /// From an answer of the API server.
    ///
    /// # Errors
    /// If it is not shaped like a ManagedResource.
    pub fn of(mut raw: Value) -> Result<Self, ReadError> {
        if let Some(metadata) = raw.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let mr = ManagedResource::from_value(&raw)?;
        Ok(Self { raw, mr })
    }
}
