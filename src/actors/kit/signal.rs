//! A signal: something that changes now and then, and those who wait for it.

use std::{
    cell::{Cell, RefCell},
    fmt,
    rc::{Rc, Weak},
};

/// A counter of changes with listeners, on one thread. Stores, discovery and the sweep each have one.
#[derive(Clone, Default)]
pub struct Signal {
    inner: Rc<Inner>,
}

#[derive(Default)]
struct Inner {
    version: Cell<u64>,
    listeners: RefCell<Vec<Weak<dyn Fn()>>>,
}

/// A moment in a signal's life. Take it *before* looking at what the signal is about: a change in between is then seen.
#[derive(Clone)]
pub struct Moment {
    signal: Signal,
    version: u64,
}

/// Keeps a listener registered; dropping it ends that.
#[must_use = "the listener is removed when this is dropped"]
pub struct Listening {
    _listener: Rc<dyn Fn()>,
}

// === impl Signal ===

impl Signal {
    /// The present moment.
    pub fn moment(&self) -> Moment {
        Moment { signal: self.clone(), version: self.inner.version.get() }
    }

    /// Says that something changed. Listeners are called before this returns.
    pub fn raise(&self) {
        self.inner.version.set(self.inner.version.get() + 1);
        let listeners: Vec<_> = {
            let mut listeners = self.inner.listeners.borrow_mut();
            listeners.retain(|listener| listener.strong_count() > 0);
            listeners.iter().filter_map(Weak::upgrade).collect()
        };
        for listener in listeners {
            listener();
        }
    }

    /// Calls `listener` at each change, until what is returned is dropped.
    pub fn listen(&self, listener: impl Fn() + 'static) -> Listening {
        let listener: Rc<dyn Fn()> = Rc::new(listener);
        self.inner.listeners.borrow_mut().push(Rc::downgrade(&listener));
        Listening { _listener: listener }
    }

    /// Waits until the signal was raised after `moment`.
    pub async fn raised_after(moment: &Moment) {
        let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
        let _listening = moment.signal.listen(move || {
            // A full channel already holds the news.
            sender.try_send(()).ok();
        });
        if !moment.has_passed() {
            receiver.recv().await;
        }
    }
}

// === impl Moment ===

impl Moment {
    /// Whether the signal was raised since.
    pub fn has_passed(&self) -> bool {
        self.signal.inner.version.get() != self.version
    }

    /// The signal.
    pub fn signal(&self) -> &Signal {
        &self.signal
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Moment").field("version", &self.version).field("passed", &self.has_passed()).finish()
    }
}
