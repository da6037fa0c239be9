//! Which ManagedResources list the same objects in their status. The last writer of such an object wins.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use cluster::object::{NamespacedName, ObjectKey};

use crate::{
    actors::resource_manager::bundle::identity,
    api::resources::{keys::DEFAULT_CLASS, managed_resource::ResourceRef},
};

/// References that are compared, of all ManagedResources together: about 100 MB.
const MOST: usize = 2_000_000;
/// Owners of one object that are looked at.
const OWNERS: usize = 8;
/// ManagedResources that one text names.
const NAMED: usize = 3;

/// An object of a target cluster, as two hashes of its key and of what is known of its target.
type Object = [u64; 2];

/// The objects of all ManagedResources that were read.
#[derive(Default)]
pub(super) struct Shares {
    numbers: BTreeMap<NamespacedName, u32>,
    names: Vec<NamespacedName>,
    objects: BTreeMap<u32, Vec<Object>>,
    owners: BTreeSet<(Object, u32)>,
    /// Whether some references were left out.
    pub(super) is_incomplete: bool,
}

impl Shares {
    /// Replaces what is known of a ManagedResource.
    pub(super) fn enter<'a>(
        &mut self,
        key: &NamespacedName,
        class: &str,
        references: impl Iterator<Item = &'a ResourceRef>,
    ) {
        self.leave(key);
        let number = match self.numbers.get(key) {
            Some(number) => *number,
            None => {
                let Ok(number) = u32::try_from(self.names.len()) else { return };
                self.numbers.insert(key.clone(), number);
                self.names.push(key.clone());
                number
            }
        };
        // In a landscape of Gardener, each namespace has a target of the class `resources`, and the other classes one.
        let place = if class == DEFAULT_CLASS { key.namespace.as_str() } else { "" };
        let mut objects = Vec::new();
        for reference in references {
            if self.owners.len() >= MOST {
                self.is_incomplete = true;
                break;
            }
            let object = object(class, place, &identity::canonical(reference.key()));
            if self.owners.insert((object, number)) {
                objects.push(object);
            }
        }
        self.objects.insert(number, objects);
    }

    /// Forgets a ManagedResource.
    pub(super) fn leave(&mut self, key: &NamespacedName) {
        let Some(number) = self.numbers.get(key) else { return };
        for object in self.objects.remove(number).unwrap_or_default() {
            self.owners.remove(&(object, *number));
        }
    }

    /// Says how many objects a ManagedResource has in common with others, and with which; `None` if none.
    pub(super) fn text(&self, key: &NamespacedName) -> Option<String> {
        let number = *self.numbers.get(key)?;
        let (mut shared, mut others, mut has_more) = (0_usize, BTreeSet::new(), false);
        for object in self.objects.get(&number)? {
            let owners = self.owners.range((*object, 0)..=(*object, u32::MAX)).map(|(_, owner)| *owner);
            let mut owners = owners.filter(|owner| *owner != number);
            let before = others.len();
            let known: Vec<u32> = owners.by_ref().take(OWNERS).collect();
            shared += usize::from(!known.is_empty());
            has_more |= owners.next().is_some();
            if before <= NAMED {
                others.extend(known);
            } else {
                has_more = true;
            }
        }
        if shared == 0 {
            return None;
        }
        let mut names: Vec<String> = others
            .iter()
            .filter_map(|owner| self.names.get(usize::try_from(*owner).ok()?))
            .map(|it| it.to_string())
            .collect();
        names.sort();
        if names.len() > NAMED || has_more && names.len() == NAMED {
            names.truncate(NAMED);
            names.push("others".to_owned());
        }
        let last = names.pop().unwrap_or_default();
        let names = if names.is_empty() { last } else { format!("{} and {last}", names.join(", ")) };
        let objects = if shared == 1 { "object" } else { "objects" };
        Some(format!("shares {shared} {objects} with {names}"))
    }
}

/// Two hashes: a collision of 128 bits would show an object that is not shared.
fn object(class: &str, place: &str, key: &ObjectKey) -> Object {
    [0_u8, 1].map(|salt| {
        let mut hasher = DefaultHasher::new();
        (salt, class, place, key).hash(&mut hasher);
        hasher.finish()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(shares: &mut Shares, key: &str, class: &str, objects: &[&str]) {
        let references: Vec<ResourceRef> = objects
            .iter()
            .map(|text| {
                let (api_version, kind) = text.rsplit_once('/').unwrap();
                ResourceRef::new(api_version, kind, "ns", "x")
            })
            .collect();
        let (namespace, name) = key.split_once('/').unwrap();
        shares.enter(&NamespacedName::new(namespace, name), class, references.iter());
    }

    fn text(shares: &Shares, key: &str) -> Option<String> {
        let (namespace, name) = key.split_once('/').unwrap();
        shares.text(&NamespacedName::new(namespace, name))
    }

    #[test]
    fn shared_objects_are_counted_with_the_names_of_their_owners() {
        let mut shares = Shares::default();
        enter(&mut shares, "a/one", "resources", &["v1/ConfigMap", "v1/Secret", "extensions/v1beta1/Ingress"]);
        enter(&mut shares, "a/two", "resources", &["v1/ConfigMap", "networking.k8s.io/v1/Ingress", "apps/v1/Ingress"]);
        enter(&mut shares, "a/other-class", "seed", &["v1/ConfigMap"]);
        enter(&mut shares, "b/other-namespace", "resources", &["v1/ConfigMap"]);
        enter(&mut shares, "b/same-seed", "seed", &["v1/ConfigMap"]);

        assert_eq!(text(&shares, "a/one").as_deref(), Some("shares 2 objects with a/two"));
        assert_eq!(text(&shares, "a/two").as_deref(), Some("shares 2 objects with a/one"));
        assert_eq!(text(&shares, "a/other-class").as_deref(), Some("shares 1 object with b/same-seed"));
        assert_eq!(text(&shares, "b/other-namespace"), None);
        enter(&mut shares, "a/two", "resources", &["v1/ConfigMap"]);
        assert_eq!(text(&shares, "a/one").as_deref(), Some("shares 1 object with a/two"));
        shares.leave(&NamespacedName::new("a", "two"));
        assert_eq!((text(&shares, "a/one"), text(&shares, "a/two"), text(&shares, "a/nowhere")), (None, None, None));
    }

    #[test]
    fn shared_objects_of_many_owners_name_three() {
        let mut shares = Shares::default();
        for number in 0..4 {
            enter(&mut shares, &format!("a/m{number}"), "resources", &["v1/ConfigMap"]);
        }
        let four = text(&shares, "a/m0");
        for number in 4..100 {
            enter(&mut shares, &format!("a/m{number}"), "resources", &["v1/ConfigMap", "v1/Secret"]);
        }

        assert_eq!(four.as_deref(), Some("shares 1 object with a/m1, a/m2 and a/m3"));
        assert_eq!(text(&shares, "a/m0").as_deref(), Some("shares 1 object with a/m1, a/m2, a/m3 and others"));
        assert_eq!(text(&shares, "a/m99").as_deref(), Some("shares 2 objects with a/m0, a/m1, a/m2 and others"));
    }
}
