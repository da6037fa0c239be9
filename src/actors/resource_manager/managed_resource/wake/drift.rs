//! Drift wakes the owners of an object. Several edits within a moment wake them once. An edit is not repaired at once
//! but a moment later: a burst of edits costs one write, and an edit that comes with a new manifest is seen together
//! with it (spec 10 scenario 10: *changed in the same moment*). A deleted object is repaired at once.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc, time::Duration};

use cluster::object::{NamespacedName, ObjectKey};
use kit::WeakSupervised;

use super::super::{
    known::{Drift, DriftListener},
    shared::{DRIFT, ManagedResources},
};

/// How long edits are collected, from the first one on. A repair is due within 250 ms.
const WINDOW: Duration = Duration::from_millis(100);

type Wake = kit::Wake<ObjectKey>;

type WakeBundle = Rc<dyn Fn(&NamespacedName, Wake)>;

/// Wakes that are postponed until the window is over; one per ManagedResource. Cheap to clone.
#[derive(Clone)]
struct Debounce {
    pending: Rc<RefCell<BTreeMap<NamespacedName, Wake>>>,
    wake: WakeBundle,
}

/// Wakes the owners of a drifted object: at once if it is gone, otherwise when the window is over.
pub(crate) fn wake_on_drift(waker: &WeakSupervised<ManagedResources>) -> DriftListener {
    let waker = waker.clone();
    let debounce = Debounce::new(move |bundle, due| waker.wake(bundle, due));
    Rc::new(move |bundle: &NamespacedName, object: &ObjectKey, what: Drift| match what {
        Drift::Changed => debounce.soon(bundle, object, Wake::high(DRIFT)),
        Drift::Gone => debounce.now(bundle, Wake::high(DRIFT).about(object.clone())),
    })
}

impl Debounce {
    fn new(wake: impl Fn(&NamespacedName, Wake) + 'static) -> Self {
        Self { pending: Rc::default(), wake: Rc::new(wake) }
    }

    fn now(&self, bundle: &NamespacedName, wake: Wake) {
        (self.wake)(bundle, wake);
    }

    /// Wakes the ManagedResource when the window is over. The first such call begins the window.
    fn soon(&self, bundle: &NamespacedName, object: &ObjectKey, wake: Wake) {
        let wake = wake.about(object.clone());
        if let Some(pending) = self.pending.borrow_mut().get_mut(bundle) {
            return pending.merge(wake);
        }
        self.pending.borrow_mut().insert(bundle.clone(), wake);
        let (debounce, bundle) = (self.clone(), bundle.clone());
        actix::spawn(async move {
            tokio::time::sleep(WINDOW).await;
            let wake = debounce.pending.borrow_mut().remove(&bundle);
            if let Some(wake) = wake {
                (debounce.wake)(&bundle, wake);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use kit::{Causes, Refs, testing::universe};

    use super::*;

    #[test]
    fn drift_edits_within_the_window_make_one_wake_about_all_objects() {
        universe(1, |_| async {
            let woken: Rc<RefCell<Vec<(String, Wake)>>> = Rc::default();
            let seen = woken.clone();
            let debounce = Debounce::new(move |bundle, wake| seen.borrow_mut().push((bundle.to_string(), wake)));
            let (bundle, wake) = (NamespacedName::new("shoot", "one"), Wake::high(DRIFT));
            let key = |name: &str| ObjectKey { name: name.into(), ..ObjectKey::default() };

            debounce.soon(&bundle, &key("a"), wake.clone());
            tokio::time::sleep(WINDOW / 2).await;
            debounce.soon(&bundle, &key("b"), wake.clone());
            assert!(woken.borrow().is_empty());
            tokio::time::sleep(WINDOW).await;

            let woken = woken.take();
            assert_eq!(woken.len(), 1);
            assert_eq!(woken[0].0, "shoot/one");
            assert!(woken[0].1.causes.meets(DRIFT) && !woken[0].1.causes.meets(Causes::TIMER));
            assert_eq!(woken[0].1.refs, Refs::Named([key("a"), key("b")].into()));
        });
    }
}
