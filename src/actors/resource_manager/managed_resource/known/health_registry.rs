//! Which ManagedResources are judged at present: only those are woken by their objects. Also which objects a reconcile
//! found gone, and which another client keeps changing. An object that another client deletes is created again within
//! milliseconds. The condition must show it all the same (spec 20 §4.3, scenario 23): it is noted until then.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use cluster::object::{NamespacedName, ObjectKey};
use tokio::time::Instant;

#[derive(Default)]
pub(crate) struct HealthRegistry {
    /// ManagedResources that are judged, with the objects that were found gone since the condition was last written.
    judged: RefCell<BTreeMap<NamespacedName, BTreeSet<ObjectKey>>>,
    fights: RefCell<BTreeMap<NamespacedName, BTreeMap<ObjectKey, Fight>>>,
}

/// A repair conflict: an object that is repaired again and again.
#[derive(Debug, Clone, Copy)]
struct Fight {
    /// The next repair, if any, has begun by then.
    until: Instant,
    hold: Duration,
}

/// The shortest time a status must stand: controllers need it to catch up with our write.
const SHORTEST_HOLD: Duration = Duration::from_secs(2);

/// As a rule, the next repair begins at most this long after its pause.
const LATE: Duration = Duration::from_secs(1);

impl HealthRegistry {
    pub(crate) fn set(&self, bundle: &NamespacedName, is_judged: bool) {
        let mut judged = self.judged.borrow_mut();
        if is_judged {
            judged.entry(bundle.clone()).or_default();
        } else {
            judged.remove(bundle);
        }
    }

    pub(crate) fn is_judged(&self, bundle: &NamespacedName) -> bool {
        self.judged.borrow().contains_key(bundle)
    }

    pub(crate) fn note_absence(&self, bundle: &NamespacedName, object: &ObjectKey) {
        if let Some(absent) = self.judged.borrow_mut().get_mut(bundle) {
            absent.insert(object.clone());
        }
    }

    pub(crate) fn take_absent(&self, bundle: &NamespacedName) -> BTreeSet<ObjectKey> {
        self.judged.borrow_mut().get_mut(bundle).map(std::mem::take).unwrap_or_default()
    }

    /// An object of the ManagedResource is repaired once more. A pause of this length follows.
    pub(crate) fn is_contested(&self, bundle: &NamespacedName, object: &ObjectKey, now: Instant, pause: Duration) {
        let mut fights = self.fights.borrow_mut();
        fights.retain(|_, objects| {
            objects.retain(|_, fight| now < fight.until);
            !objects.is_empty()
        });
        let fight = Fight { until: now + pause + LATE, hold: (pause / 2).max(SHORTEST_HOLD) };
        fights.entry(bundle.clone()).or_default().insert(object.clone(), fight);
    }

    /// Returns how long a status must stand if this object, or any (`None`), is in a repair conflict.
    pub(crate) fn hold(&self, bundle: &NamespacedName, object: Option<&ObjectKey>, now: Instant) -> Option<Duration> {
        let fights = self.fights.borrow();
        let objects = fights.get(bundle)?;
        let of_object = objects.iter().filter(|(key, fight)| now < fight.until && object.is_none_or(|it| it == *key));
        of_object.map(|(_, fight)| fight.hold).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absence_is_noted_only_while_a_resource_is_judged() {
        let (registry, bundle) = (HealthRegistry::default(), NamespacedName::new("shoot", "one"));
        let object = ObjectKey { kind: "ConfigMap".into(), name: "a".into(), ..ObjectKey::default() };

        registry.note_absence(&bundle, &object);
        assert!(registry.take_absent(&bundle).is_empty());
        registry.set(&bundle, true);
        registry.note_absence(&bundle, &object);
        registry.set(&bundle, true);
        assert_eq!(registry.take_absent(&bundle), BTreeSet::from([object.clone()]));
        assert!(registry.take_absent(&bundle).is_empty());
        registry.note_absence(&bundle, &object);
        registry.set(&bundle, false);
        registry.set(&bundle, true);

        assert!(registry.take_absent(&bundle).is_empty() && registry.is_judged(&bundle));
    }

    #[tokio::test(start_paused = true)]
    async fn repair_conflict_delays_the_status_until_it_is_over() {
        let (registry, bundle, now) = (HealthRegistry::default(), NamespacedName::new("shoot", "one"), Instant::now());
        let key = |name: &str| ObjectKey { kind: "ConfigMap".into(), name: name.into(), ..ObjectKey::default() };
        let (a, b, seconds) = (key("a"), key("b"), Duration::from_secs);
        registry.is_contested(&bundle, &a, now, seconds(2));
        registry.is_contested(&bundle, &b, now, seconds(16));

        assert_eq!(registry.hold(&bundle, Some(&a), now), Some(seconds(2)));
        assert_eq!(registry.hold(&bundle, Some(&key("c")), now), None);
        assert_eq!(registry.hold(&bundle, None, now), Some(seconds(8)));
        assert_eq!(registry.hold(&NamespacedName::new("shoot", "two"), None, now), None);
        assert_eq!(registry.hold(&bundle, Some(&a), now + seconds(3)), None);
        assert_eq!(registry.hold(&bundle, None, now + seconds(17)), None);
    }
}
