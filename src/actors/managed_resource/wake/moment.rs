//! What happens to an object within a moment belongs together.
//!
//! An edit of a managed object is not repaired at once but a moment later: a burst of edits costs one write, and an edit
//! that comes with a new manifest is seen together with it (spec 10 scenario 10: *changed in the same moment*). An object
//! that is gone is not waited for.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc, time::Duration};

use crate::api::object::{NamespacedName, ObjectKey};

/// How long edits are collected. A repair is due within 250 ms.
const MOMENT: Duration = Duration::from_millis(100);

/// A wake of a bundle; it names objects of it.
type Wake = kit::Wake<ObjectKey>;

/// Wakes a bundle.
type WakeBundle = Rc<dyn Fn(&NamespacedName, Wake)>;

/// Wakes that are put off until the moment is over; one per bundle. Cheap to clone.
#[derive(Clone)]
pub(in super::super) struct Moments {
    pending: Rc<RefCell<BTreeMap<NamespacedName, Wake>>>,
    wake: WakeBundle,
}

impl Moments {
    /// Wakes bundles by this function.
    pub(in super::super) fn new(wake: impl Fn(&NamespacedName, Wake) + 'static) -> Self {
        Self { pending: Rc::default(), wake: Rc::new(wake) }
    }

    /// Wakes the bundle now.
    pub(in super::super) fn now(&self, bundle: &NamespacedName, wake: Wake) {
        (self.wake)(bundle, wake);
    }

    /// Wakes the bundle when the moment is over that began with the first such call.
    pub(in super::super) fn soon(&self, bundle: &NamespacedName, object: &ObjectKey, wake: Wake) {
        let wake = wake.about(object.clone());
        if let Some(pending) = self.pending.borrow_mut().get_mut(bundle) {
            return pending.merge(wake);
        }
        self.pending.borrow_mut().insert(bundle.clone(), wake);
        let (moments, bundle) = (self.clone(), bundle.clone());
        actix::spawn(async move {
            tokio::time::sleep(MOMENT).await;
            let wake = moments.pending.borrow_mut().remove(&bundle);
            if let Some(wake) = wake {
                (moments.wake)(&bundle, wake);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use kit::{Causes, Refs, testing::universe};

    use super::*;
    use crate::actors::managed_resource::shared::DRIFT;

    #[test]
    fn edits_of_a_moment_make_one_wake_about_all_of_their_objects() {
        universe(1, |_| async {
            let woken: Rc<RefCell<Vec<(String, Wake)>>> = Rc::default();
            let seen = woken.clone();
            let moments = Moments::new(move |bundle, wake| seen.borrow_mut().push((bundle.to_string(), wake)));
            let (bundle, wake) = (NamespacedName::new("shoot", "one"), Wake::live(DRIFT));
            let key = |name: &str| ObjectKey { name: name.into(), ..ObjectKey::default() };

            moments.soon(&bundle, &key("a"), wake.clone());
            tokio::time::sleep(MOMENT / 2).await;
            moments.soon(&bundle, &key("b"), wake.clone());
            assert!(woken.borrow().is_empty());
            tokio::time::sleep(MOMENT).await;

            let woken = woken.take();
            assert_eq!(woken.len(), 1);
            assert_eq!(woken[0].0, "shoot/one");
            assert!(woken[0].1.causes.meets(DRIFT) && !woken[0].1.causes.meets(Causes::TIMER));
            assert_eq!(woken[0].1.refs, Refs::Named([key("a"), key("b")].into()));
        });
    }
}
