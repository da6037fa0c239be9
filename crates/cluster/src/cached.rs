use kit::hash_of;
use serde_json::{Value, json};

use super::{Cached, object};

/// A few fields of an object, at a version.
#[derive(Debug, Clone)]
pub struct CachedFields<T> {
    version: u64,
    incarnation: u64,
    finalizers: Option<Box<KnownFinalizers>>,
    /// The fields.
    pub fields: T,
}

/// What a patch of finalizers is made of.
#[derive(Debug, Clone)]
struct KnownFinalizers {
    /// In their order.
    names: Box<[Box<str>]>,
    /// The uid and the time of deletion of an object in deletion.
    deletion: Option<[Box<str>; 2]>,
}

impl<T> CachedFields<T> {
    /// Returns the cached form of the object, or `None` if it has no valid version.
    pub fn of(object: &Value, fields: T) -> Option<Self> {
        let incarnation = hash_of(object::uid(object));
        Some(Self { version: object::resource_version(object).parse().ok()?, incarnation, finalizers: None, fields })
    }

    /// As [`Self::of`], for an object whose finalizers are written: it keeps them, so that the write needs no read.
    pub fn with_finalizers(object: &Value, fields: T) -> Option<Self> {
        let names = object::finalizers(object).map(Box::from).collect();
        let deletion = object::deletion_timestamp(object).map(|time| [object::uid(object), time].map(Box::from));
        Some(Self { finalizers: Some(Box::new(KnownFinalizers { names, deletion })), ..Self::of(object, fields)? })
    }
}

impl<T: Clone + Send + Sync + 'static> Cached for CachedFields<T> {
    /// Not kept: code that deletes objects caches its own type.
    fn uid(&self) -> &'static str {
        ""
    }

    fn incarnation(&self) -> u64 {
        self.incarnation
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn finalizers(&self) -> Option<Value> {
        let KnownFinalizers { names, deletion } = &**self.finalizers.as_ref()?;
        let mut metadata = json!({ "resourceVersion": self.version.to_string(), "finalizers": names });
        if let (Some([uid, time]), Some(metadata)) = (deletion, metadata.as_object_mut()) {
            metadata.insert("uid".into(), (**uid).into());
            metadata.insert("deletionTimestamp".into(), (**time).into());
        }
        Some(json!({ "metadata": metadata }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_fields_of_an_object_created_anew_are_of_another_incarnation() {
        let of = |uid: &str, version: &str| {
            let object = json!({ "metadata": { "uid": uid, "resourceVersion": version } });
            CachedFields::of(&object, ()).unwrap().incarnation()
        };

        assert_eq!(of("a", "1"), of("a", "2"));
        assert_ne!(of("a", "1"), of("b", "1"));
    }

    #[test]
    fn cached_finalizers_are_those_of_the_object() {
        let alive = json!({ "metadata": { "uid": "u", "resourceVersion": "7", "finalizers": ["b", "a"] } });
        let mut deleted = alive.clone();
        deleted["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z".into();

        let of = |object: &Value| CachedFields::with_finalizers(object, ()).unwrap().finalizers().unwrap();

        assert_eq!(of(&alive), json!({ "metadata": { "resourceVersion": "7", "finalizers": ["b", "a"] } }));
        assert_eq!(of(&deleted), deleted);
        assert_eq!(CachedFields::of(&alive, ()).unwrap().finalizers(), None);
    }
}
