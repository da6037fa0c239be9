//! Reentrancy: a controller's code may wake keys, raise signals and read the controller from everywhere.

use std::{
    cell::{OnceCell, RefCell},
    rc::Rc,
};

use super::support::*;
use crate::{testing::settle, *};

type Itself = Rc<OnceCell<Supervised<Scripted>>>;

fn wake(itself: &Itself, name: &str) {
    if let Some(supervised) = itself.get() {
        supervised.wake(&key(name), Wake::high(EVENT));
    }
}

#[test]
fn reentrancy_of_object_construction_may_wake_keys() {
    let itself = Itself::default();
    let caller = itself.clone();
    let controller = Scripted::new(|_| done()).on_object(move |key| {
        if key == "a" {
            assert_eq!(caller.get().map(|supervised| supervised.controller().name()), Some("scripted"));
            wake(&caller, "a");
            wake(&caller, "b");
        }
    });
    run(controller, |supervised, controller, _| async move {
        itself.set(supervised.clone()).ok();
        supervised.wake(&key("a"), Wake::high(EVENT));
        settle().await;

        assert_eq!(controller.keys(), ["a", "b", "a"]);
    });
}

#[test]
fn reentrancy_of_a_reconcile_may_wake_keys_and_raise_signals() {
    let (itself, store) = (Itself::default(), Signal::default());
    let (caller, raised) = (itself.clone(), store.clone());
    let script = move |reconcile: &ScriptedReconcile| match reconcile.key.as_str() {
        "waiter" if !reconcile.because_of(Causes::STORE) => Step::End(Ok(Outcome::Wait(vec![raised.moment()]))),
        "raiser" => {
            raised.raise();
            wake(&caller, "raiser-2");
            done()
        }
        _ => done(),
    };
    run(Scripted::new(script), |supervised, controller, _| async move {
        itself.set(supervised.clone()).ok();
        supervised.wake(&key("waiter"), Wake::high(EVENT));
        settle().await;
        supervised.wake(&key("raiser"), Wake::high(EVENT));
        settle().await;

        assert_eq!(controller.keys(), ["waiter", "raiser", "waiter", "raiser-2"]);
    });
}

#[test]
fn reentrancy_of_a_listener_may_wake_keys_that_wait_for_its_signal() {
    let (itself, store) = (Itself::default(), Signal::default());
    let waited = store.clone();
    let script = move |reconcile: &ScriptedReconcile| {
        let first = reconcile.key == "waiter" && !reconcile.because_of(Causes::STORE);
        if first { Step::End(Ok(Outcome::Wait(vec![waited.moment(), waited.moment()]))) } else { done() }
    };
    run(Scripted::new(script), |supervised, controller, _| async move {
        itself.set(supervised.clone()).ok();
        let caller = itself.clone();
        let _listening = store.listen(move || {
            wake(&caller, "heard");
            wake(&caller, "waiter");
        });
        supervised.wake(&key("waiter"), Wake::high(EVENT));
        settle().await;
        store.raise();
        reconcile_time(1).await;

        assert_eq!(controller.keys(), ["waiter", "heard", "waiter"], "two listeners of one reconcile wake it once");
    });
}

#[test]
fn reentrancy_of_a_dropped_reconcile_may_wake_keys() {
    struct WakesWhenDropped(Itself, &'static str);
    impl Drop for WakesWhenDropped {
        fn drop(&mut self) {
            wake(&self.0, self.1);
        }
    }
    let itself = Itself::default();
    let caller = RefCell::new(Some(itself.clone()));
    let script = move |reconcile: &ScriptedReconcile| match caller.borrow().clone() {
        Some(caller) if reconcile.key == "hanging" => Step::Run(Box::pin(async move {
            let _guard = WakesWhenDropped(caller, "woken-by-a-drop");
            std::future::pending().await
        })),
        Some(caller) if reconcile.key == "panicking" => Step::Run(Box::pin(async move {
            let _guard = WakesWhenDropped(caller, "woken-by-a-panic");
            panic!("scripted");
        })),
        Some(_) | None => done(),
    };
    run(Scripted::new(script), |supervised, controller, _| async move {
        itself.set(supervised.clone()).ok();
        supervised.wake(&key("hanging"), Wake::high(EVENT));
        supervised.wake(&key("panicking"), Wake::high(EVENT));
        reconcile_time(41).await;
        assert!(controller.keys().contains(&key("woken-by-a-drop")));
        assert!(controller.keys().contains(&key("woken-by-a-panic")));
        supervised.stop(seconds(1)).await;
        settle().await;

        assert_eq!(supervised.running(), 0, "dropped reconciles may try as well");
    });
}

#[test]
fn sync_requirement_that_changes_during_a_reconcile_holds_up_the_next() {
    let controller = Scripted::new(|_| one_second());
    run(controller, |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::high(EVENT));
        settle().await;
        controller.ready.set(false);
        controller.readiness.raise();
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(5).await;
        assert_eq!(controller.reconciles(), 1);
        controller.ready.set(true);
        controller.readiness.raise();
        reconcile_time(5).await;

        assert_eq!(controller.reconciles(), 2);
    });
}
