use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::{Rc, Weak},
};

/// A counter of changes with listeners, on one thread. Stores, discovery and the initial sync each have one.
#[derive(Clone, Default)]
pub struct Signal {
    inner: Rc<Inner>,
}

#[derive(Default)]
struct Inner {
    version: Cell<u64>,
    /// By registration, which is the order of the calls. The [`Listening`] owns the closure.
    listeners: RefCell<BTreeMap<u64, Weak<dyn Fn()>>>,
    registered: Cell<u64>,
}

/// A version of a signal. Take it *before* reading the state the signal is about, so that no later change is missed.
#[derive(Clone)]
pub struct Moment {
    signal: Signal,
    version: u64,
}

/// Keeps a listener registered until it is dropped.
#[must_use = "the listener is removed when this is dropped"]
pub struct Listening {
    signal: Weak<Inner>,
    number: u64,
    _listener: Rc<dyn Fn()>,
}

impl Signal {
    /// Returns the present moment.
    pub fn moment(&self) -> Moment {
        Moment { signal: self.clone(), version: self.inner.version.get() }
    }

    /// Reports a change. Calls the listeners before it returns, except new ones and those that an earlier listener
    /// removed. A listener may listen, stop listening and raise. Its panic stops neither the others nor the caller.
    pub fn raise(&self) {
        self.inner.version.set(self.inner.version.get() + 1);
        let listeners: Vec<_> = self.inner.listeners.borrow().values().cloned().collect();
        for listener in listeners {
            if let Some(listener) = listener.upgrade()
                && catch_unwind(AssertUnwindSafe(|| listener())).is_err()
            {
                tracing::error!("a listener of a signal panicked");
            }
        }
    }

    /// Calls `listener` at each change, until the returned value is dropped.
    pub fn listen(&self, listener: impl Fn() + 'static) -> Listening {
        let number = self.inner.registered.get();
        self.inner.registered.set(number + 1);
        let listener: Rc<dyn Fn()> = Rc::new(listener);
        self.inner.listeners.borrow_mut().insert(number, Rc::downgrade(&listener));
        Listening { signal: Rc::downgrade(&self.inner), number, _listener: listener }
    }

    /// Waits until the signal is raised after `moment`.
    pub async fn raised_after(moment: &Moment) {
        let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
        let _listening = moment.signal.listen(move || {
            sender.try_send(()).ok(); // a full channel already holds the news
        });
        if !moment.has_passed() {
            receiver.recv().await;
        }
    }
}

impl Moment {
    /// Returns true if the signal was raised since.
    pub fn has_passed(&self) -> bool {
        self.signal.inner.version.get() != self.version
    }

    /// Returns the signal.
    pub fn signal(&self) -> &Signal {
        &self.signal
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(signal) = self.signal.upgrade() {
            signal.listeners.borrow_mut().remove(&self.number);
        }
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Moment").field("version", &self.version).field("passed", &self.has_passed()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{settle, universe};

    type Heard = Rc<RefCell<Vec<&'static str>>>;

    fn listen(signal: &Signal, heard: &Heard, name: &'static str) -> Listening {
        let heard = heard.clone();
        signal.listen(move || heard.borrow_mut().push(name))
    }

    #[test]
    fn listeners_are_called_in_order_of_registration_until_removed() {
        let (signal, heard) = (Signal::default(), Heard::default());
        let first = listen(&signal, &heard, "first");
        let _second = listen(&signal, &heard, "second");
        signal.raise();
        drop(first);
        signal.raise();

        assert_eq!(*heard.borrow(), ["first", "second", "second"]);
    }

    #[test]
    fn listener_removed_by_another_listener_is_not_called() {
        let (signal, heard) = (Signal::default(), Heard::default());
        let entry: Rc<RefCell<Option<Listening>>> = Rc::default();
        let victim = entry.clone();
        let _killer = signal.listen(move || drop(victim.borrow_mut().take()));
        *entry.borrow_mut() = Some(listen(&signal, &heard, "victim"));
        signal.raise();

        assert!(heard.borrow().is_empty());
    }

    #[test]
    fn listener_may_listen_and_raise() {
        let (signal, heard) = (Signal::default(), Heard::default());
        let (itself, log, added) = (signal.clone(), heard.clone(), RefCell::new(None));
        let _listening = signal.listen(move || {
            if added.borrow().is_none() {
                *added.borrow_mut() = Some(listen(&itself, &log, "added"));
                itself.raise();
            }
        });
        signal.raise();

        assert_eq!(*heard.borrow(), ["added"], "the inner change calls it, the outer one does not");
    }

    #[test]
    fn listener_that_panics_does_not_stop_other_listeners() {
        let (signal, heard) = (Signal::default(), Heard::default());
        let _first = listen(&signal, &heard, "first");
        let _defect = signal.listen(|| panic!("a defect of a listener"));
        let _last = listen(&signal, &heard, "last");
        signal.raise();
        signal.raise();

        assert_eq!(*heard.borrow(), ["first", "last", "first", "last"]);
    }

    #[test]
    fn listeners_that_were_removed_leave_nothing_behind() {
        let signal = Signal::default();
        for _ in 0..1000 {
            drop(signal.listen(|| {}));
        }

        assert!(signal.inner.listeners.borrow().is_empty());
    }

    #[test]
    fn signal_wait_sees_a_change_between_moment_and_wait() {
        universe(1, |_| async {
            let signal = Signal::default();
            let moment = signal.moment();
            signal.raise();

            Signal::raised_after(&moment).await;
            assert!(moment.has_passed());
        });
    }

    #[test]
    fn signal_wait_ends_with_the_next_change_and_stops_listening() {
        universe(1, |_| async {
            let signal = Signal::default();
            let moment = signal.moment();
            let mut waiting = Box::pin(Signal::raised_after(&moment));
            assert!(futures::poll!(&mut waiting).is_pending());
            settle().await;
            assert!(futures::poll!(&mut waiting).is_pending());
            signal.raise();
            waiting.await;

            assert!(!signal.moment().has_passed());
            assert!(signal.inner.listeners.borrow().is_empty());
        });
    }
}
