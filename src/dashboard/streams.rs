//! The event streams that are open. They are few; the oldest makes room for a new one, so that nobody keeps others out by
//! opening streams and reading none. A browser whose stream ends comes back by itself.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;

/// Event streams at the same time; each costs a census as JSON (about 300 bytes per actor) while it is being sent.
pub(super) const MAX_STREAMS: usize = 16;

/// The streams of a server. Cheap to clone.
#[derive(Clone)]
pub(super) struct Streams {
    most: usize,
    open: Arc<Mutex<Open>>,
    /// Cancelled when all are to end.
    stop: CancellationToken,
}

#[derive(Default)]
struct Open {
    /// By the order in which they began: how to end them.
    streams: BTreeMap<u64, Box<dyn Fn() + Send>>,
    last: u64,
}

/// A stream, as long as it is open.
pub(super) struct StreamPermit {
    streams: Streams,
    number: u64,
    /// Cancelled when it is to end.
    pub(super) end: CancellationToken,
}

impl Streams {
    pub(super) fn within(most: usize, stop: CancellationToken) -> Self {
        Self { most, open: Arc::default(), stop }
    }

    /// A stream begins. `close` ends its connection: a client that reads nothing does not notice that its stream ends.
    pub(super) fn begin(&self, close: impl Fn() + Send + 'static) -> StreamPermit {
        let end = self.stop.child_token();
        let (mut open, ended) = (self.open(), end.clone());
        open.last += 1;
        let number = open.last;
        let close = move || {
            ended.cancel();
            close();
        };
        open.streams.insert(number, Box::new(close));
        while open.streams.len() > self.most {
            let Some((_, close)) = open.streams.pop_first() else { break };
            close();
        }
        drop(open);
        StreamPermit { streams: self.clone(), number, end }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.streams.open().streams.remove(&self.number);
    }
}
