//! The Secret, data key and index of each object's manifest, as last decoded.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    rc::Rc,
    sync::Arc,
};

use cluster::object::ObjectKey;

/// Most manifests whose place is remembered.
const MOST: usize = 2000;

/// The place of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DocumentPlace {
    /// Namespace and name of the Secret, `ns/name`.
    pub(crate) secret: Arc<str>,
    pub(crate) data_key: Arc<str>,
    /// Zero-based position of the document in the data key.
    pub(crate) index: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Documents {
    data_keys: Box<[DataKey]>,
    /// In processing order.
    manifests: Box<[ManifestPlace]>,
}

#[derive(Debug, PartialEq, Eq)]
struct DataKey {
    secret: Box<str>,
    name: Box<str>,
}

#[derive(Debug)]
struct ManifestPlace {
    object: Rc<ObjectKey>,
    data_key: u32,
    index: u32,
}

impl Documents {
    pub(crate) fn of(manifests: impl Iterator<Item = (Rc<ObjectKey>, DocumentPlace)>) -> Self {
        let (mut data_keys, mut known) = (Vec::new(), BTreeMap::new());
        let mut place = |(object, DocumentPlace { secret, data_key, index }): (_, DocumentPlace)| {
            let data_key = match known.entry((secret, data_key)) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    let (secret, name) = new.key();
                    let secret = secret.split_once('/').map_or(&**secret, |(_, name)| name);
                    data_keys.push(DataKey { secret: secret.into(), name: (&**name).into() });
                    *new.insert(u32::try_from(data_keys.len() - 1).unwrap_or(u32::MAX))
                }
            };
            ManifestPlace { object, data_key, index: u32::try_from(index).unwrap_or(u32::MAX) }
        };
        let manifests = manifests.take(MOST).map(&mut place).collect();
        Self { data_keys: data_keys.into(), manifests }
    }

    /// Returns object, Secret, data key and position of each manifest, in processing order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &str, &str, u32)> {
        self.manifests.iter().filter_map(|ManifestPlace { object, data_key, index }| {
            let DataKey { secret, name } = self.data_keys.get(usize::try_from(*data_key).ok()?)?;
            Some((&**object, &**secret, &**name, *index))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Rc<ObjectKey> {
        Rc::new(ObjectKey { kind: "ConfigMap".into(), name: name.into(), ..ObjectKey::default() })
    }

    fn place(secret: &str, data_key: &str, index: usize) -> DocumentPlace {
        DocumentPlace { secret: secret.into(), data_key: data_key.into(), index }
    }

    #[test]
    fn documents_have_secret_data_key_and_position() {
        let places = [
            (key("a"), place("ns/s", "k1", 0)),
            (key("b"), place("ns/s", "k1", 1)),
            (key("c"), place("ns/t", "k1", 0)),
            (key("d"), place("ns/s", "k1", 7)),
        ];

        let documents = Documents::of(places.into_iter());

        let all: Vec<_> =
            documents.iter().map(|(object, secret, key, index)| (&*object.name, secret, key, index)).collect();
        assert_eq!(all, [("a", "s", "k1", 0), ("b", "s", "k1", 1), ("c", "t", "k1", 0), ("d", "s", "k1", 7)]);
        assert_eq!(documents.data_keys.len(), 2);
    }

    #[test]
    fn documents_are_bounded_and_small() {
        let documents = Documents::of((0..3000).map(|index| (key("a"), place("ns/s", "k", index))));

        assert_eq!(documents.iter().count(), MOST);
        assert_eq!((size_of::<ManifestPlace>(), size_of::<DataKey>()), (16, 32));
    }
}
