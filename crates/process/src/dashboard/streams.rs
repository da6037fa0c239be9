//! Limits the open event streams. The oldest stream ends when a new one needs room, so a client that opens streams
//! without reading cannot block others. A browser whose stream ends reconnects by itself.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;

/// While a stream sends its first event, it may cost a status registry as JSON (about 400 bytes per actor).
pub(super) const MAX_STREAMS: usize = 16;

#[derive(Clone)]
pub(super) struct Streams {
    most: usize,
    open: Arc<Mutex<Open>>,
    stop: CancellationToken,
}

#[derive(Default)]
struct Open {
    streams: BTreeMap<u64, Box<dyn Fn() + Send>>,
    last: u64,
}

pub(super) struct StreamPermit {
    streams: Streams,
    number: u64,
    pub(super) end: CancellationToken,
}

impl Streams {
    pub(super) fn within(most: usize, stop: CancellationToken) -> Self {
        Self { most, open: Arc::default(), stop }
    }

    /// Begins a stream. `close` ends its connection: a client that reads nothing does not notice that its stream ends.
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
