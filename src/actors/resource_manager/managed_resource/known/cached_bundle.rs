//! Cached ManagedResources: compact JSON, parsed for the reconcile that needs it.

use std::sync::Arc;

use cluster::{Cached, object};
use kit::{hash_of, json};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use crate::api::resources::managed_resource::{ManagedResource, ManagedResourceStatus, ReadError};

/// A cached ManagedResource: its JSON without `managedFields`, in one piece.
#[derive(Clone, Debug)]
pub(crate) struct CachedManagedResource {
    uid: Arc<str>,
    version: u64,
    json: Arc<[u8]>,
    summary: Arc<ManagedResourceSummary>,
}

/// The fields by which changes are judged, without the references, which are most of the object.
#[derive(Debug)]
pub(crate) struct ManagedResourceSummary {
    /// With an empty `status.resources`.
    pub(crate) mr: ManagedResource,
    pub(crate) references: u64,
    /// Number of references.
    pub(crate) objects: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct ParsedManagedResource {
    pub(crate) cached: CachedManagedResource,
    pub(crate) mr: ManagedResource,
}

struct Slim<'a>(&'a Value);

struct SlimMetadata<'a>(&'a Value);

impl CachedManagedResource {
    pub(crate) fn of(object: &Value) -> Option<Self> {
        ParsedManagedResource::of(object).ok().map(|parsed| parsed.cached)
    }

    /// Parses the object. Never fails, because `of` has parsed it before.
    pub(crate) fn managed_resource(&self) -> Result<ManagedResource, ReadError> {
        ManagedResource::from_slice(&self.json)
    }

    pub(crate) fn summary(&self) -> &ManagedResourceSummary {
        &self.summary
    }

    pub(crate) fn parsed(&self) -> Result<ParsedManagedResource, ReadError> {
        Ok(ParsedManagedResource { cached: self.clone(), mr: self.managed_resource()? })
    }

    /// Returns the object. Never fails, because this process wrote the JSON.
    pub(crate) fn raw(&self) -> serde_json::Result<Value> {
        json::from_slice(&self.json)
    }
}

impl ManagedResourceSummary {
    fn of(mr: &ManagedResource) -> Self {
        let ManagedResource { metadata, spec, status } = mr;
        let status = ManagedResourceStatus {
            conditions: status.conditions.clone(),
            observed_generation: status.observed_generation,
            resources: Vec::new(),
            secrets_data_checksum: status.secrets_data_checksum.clone(),
        };
        Self {
            mr: ManagedResource { metadata: metadata.clone(), spec: spec.clone(), status },
            references: hash_of(&mr.status.resources),
            objects: u32::try_from(mr.status.resources.len()).unwrap_or(u32::MAX),
        }
    }
}

impl Cached for CachedManagedResource {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn version(&self) -> u64 {
        self.version
    }
}

impl ParsedManagedResource {
    pub(crate) fn of(object: &Value) -> Result<Self, ReadError> {
        let json = serde_json::to_vec(&Slim(object))?;
        let mr = ManagedResource::from_slice(&json)?;
        let version = object::resource_version(object).parse().unwrap_or_default();
        let summary = Arc::new(ManagedResourceSummary::of(&mr));
        Ok(Self {
            cached: CachedManagedResource { uid: object::uid(object).into(), version, json: json.into(), summary },
            mr,
        })
    }
}

impl Serialize for Slim<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(fields) = self.0.as_object() else { return self.0.serialize(serializer) };
        let mut map = serializer.serialize_map(None)?;
        for (field, value) in fields {
            match field.as_str() {
                "metadata" => map.serialize_entry(field, &SlimMetadata(value))?,
                _ => map.serialize_entry(field, value)?,
            }
        }
        map.end()
    }
}

impl Serialize for SlimMetadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_object() {
            Some(fields) => serializer.collect_map(fields.iter().filter(|(field, _)| *field != "managedFields")),
            None => self.0.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cached_managed_resource_lacks_nothing_but_managed_fields() {
        let mut object = json!({
            "metadata": {"namespace": "shoot", "name": "a", "uid": "u", "resourceVersion": "7", "managedFields": [{}]},
            "spec": {"secretRefs": [{"name": "s"}]}, "status": {"x": {"managedFields": 1}}, "more": [1.5, null],
        });

        let cached = CachedManagedResource::of(&object).unwrap();

        object["metadata"].as_object_mut().unwrap().remove("managedFields");
        assert_eq!(cached.raw().unwrap(), object);
        assert_eq!((cached.uid(), cached.version()), ("u", 7));
        assert_eq!(cached.parsed().unwrap().mr.spec.secret_refs[0].name, "s");
        assert!(CachedManagedResource::of(&json!({"spec": 1})).is_none());
    }
}
