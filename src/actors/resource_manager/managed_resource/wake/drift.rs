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

/// Wakes the owners of a drifted object: at once if it is gone, otherwise when the window is over.
pub(crate) fn wake_on_drift(waker: &WeakSupervised<ManagedResources>) -> DriftListener {
    let waker = waker.clone();
    debounced(move |bundle, wake| waker.wake(bundle, wake))
}

fn debounced(wake: impl Fn(&NamespacedName, Wake) + 'static) -> DriftListener {
    let (waker, pending) = (Rc::new(wake), Rc::<RefCell<BTreeMap<NamespacedName, Wake>>>::default());
    Rc::new(move |bundle, object, what| {
        let wake = Wake::high(DRIFT).about(object.clone());
        if what == Drift::Gone {
            return waker(bundle, wake);
        }
        if let Some(pending) = pending.borrow_mut().get_mut(bundle) {
            return pending.merge(wake);
        }
        pending.borrow_mut().insert(bundle.clone(), wake);
        let (waker, pending, bundle) = (waker.clone(), pending.clone(), bundle.clone());
        actix::spawn(async move {
            tokio::time::sleep(WINDOW).await;
            let wake = pending.borrow_mut().remove(&bundle);
            if let Some(wake) = wake {
                waker(&bundle, wake);
            }
        });
    })
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
            let report = debounced(move |bundle, wake| seen.borrow_mut().push((bundle.to_string(), wake)));
            let bundle = NamespacedName::new("shoot", "one");
            let key = |name: &str| ObjectKey { name: name.into(), ..ObjectKey::default() };

            report(&bundle, &key("a"), Drift::Changed);
            tokio::time::sleep(WINDOW / 2).await;
            report(&bundle, &key("b"), Drift::Changed);
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
