//! Limits the open streams: pages, and answers with all actors. If all places are taken, a new stream gets the place of
//! the stream whose client has not read for the longest time. If all clients read, it gets the oldest place of the address
//! that has the most, as long as that address still has as many as the new one's. Otherwise it is refused. So neither
//! clients that do not read nor one address can keep others out, and nobody loses a place to somebody who has as many.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A stream costs a list of all paths (16 bytes per actor) and a piece of a document while it sends one.
pub(super) const MAX_STREAMS: usize = 16;

/// A client that took nothing for so long may lose its place. Clients that read take something twenty times a second.
pub(super) const STALLED: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub(super) struct Streams {
    most: usize,
    open: Arc<Mutex<Open>>,
    stop: CancellationToken,
}

#[derive(Default)]
struct Open {
    /// The oldest first.
    streams: BTreeMap<u64, OpenStream>,
    last: u64,
}

struct OpenStream {
    /// The client's address; `None` in tests without a connection.
    from: Option<IpAddr>,
    /// When the connection last had room for more.
    read: Instant,
    close: Box<dyn Fn() + Send>,
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

    /// Begins a stream to a client at this address; `None` if there is no place for it. `close` ends its connection: a
    /// client that reads nothing does not notice that its stream ends.
    pub(super) fn begin(
        &self,
        from: Option<IpAddr>,
        now: Instant,
        close: impl Fn() + Send + 'static,
    ) -> Option<StreamPermit> {
        let from = from.map(|address| address.to_canonical());
        let mut open = self.open();
        if open.streams.len() >= self.most {
            let loser = open.loser(from, now)?;
            if let Some(stream) = open.streams.remove(&loser) {
                (stream.close)();
            }
        }
        let end = self.stop.child_token();
        let ended = end.clone();
        let close = move || {
            ended.cancel();
            close();
        };
        open.last += 1;
        let number = open.last;
        open.streams.insert(number, OpenStream { from, read: now, close: Box::new(close) });
        drop(open);
        Some(StreamPermit { streams: self.clone(), number, end })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// The stream that gives its place to a new one from this address.
    fn loser(&self, from: Option<IpAddr>, now: Instant) -> Option<u64> {
        let (number, stream) = self.streams.iter().min_by_key(|(_, stream)| stream.read)?;
        if now.saturating_duration_since(stream.read) >= STALLED {
            return Some(*number);
        }
        let places = |from| self.streams.values().filter(|stream| stream.from == from).count();
        let (number, most) = self.streams.iter().max_by_key(|(number, it)| (places(it.from), Reverse(**number)))?;
        (places(most.from) > places(from) + 1).then_some(*number)
    }
}

impl StreamPermit {
    /// The connection has room for more: the client has read.
    pub(super) fn note_read(&self, now: Instant) {
        if let Some(stream) = self.streams.open().streams.get_mut(&self.number) {
            stream.read = now;
        }
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.streams.open().streams.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 4;

    fn streams() -> (Streams, Instant) {
        (Streams::within(MOST, CancellationToken::new()), Instant::now())
    }

    fn from(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([10, 0, 0, last]))
    }

    fn begin(streams: &Streams, from: Option<IpAddr>, now: Instant) -> Option<StreamPermit> {
        streams.begin(from, now, || {})
    }

    fn ended(permits: &[StreamPermit]) -> Vec<usize> {
        (0..permits.len()).filter(|place| permits[*place].end.is_cancelled()).collect()
    }

    #[test]
    fn stream_is_refused_if_its_address_has_as_many_as_any_other() {
        let (streams, now) = streams();
        let mut open: Vec<_> = (0..MOST).map(|_| begin(&streams, from(1), now).unwrap()).collect();

        assert!(begin(&streams, from(1), now).is_none());
        assert_eq!(ended(&open), [0; 0]);
        open.pop();
        assert!(begin(&streams, from(1), now).is_some(), "there is room again");
    }

    #[test]
    fn streams_of_the_address_with_the_most_make_room_until_both_have_as_many() {
        let (streams, now) = streams();
        let open: Vec<_> = (0..MOST).map(|_| begin(&streams, from(1), now).unwrap()).collect();

        let others = [(); 2].map(|()| begin(&streams, from(2), now).unwrap());

        assert_eq!(ended(&open), [0, 1], "the oldest");
        assert!(begin(&streams, from(2), now).is_none());
        assert!(begin(&streams, from(1), now).is_none());
        assert!(begin(&streams, from(3), now).is_some());
        assert_eq!((ended(&open), ended(&others)), (vec![0, 1, 2], vec![]));
    }

    #[test]
    fn streams_whose_clients_do_not_read_make_room_first() {
        let (streams, begun) = streams();
        let open: Vec<_> = (0..MOST).map(|_| begin(&streams, from(1), begun).unwrap()).collect();
        let now = begun + STALLED;
        for (place, milliseconds) in [(0, 0), (2, 2), (3, 3)] {
            open[place].note_read(now - Duration::from_millis(milliseconds));
        }

        let newest = begin(&streams, from(1), now).unwrap();

        assert_eq!(ended(&open), [1]);
        assert!(begin(&streams, from(1), now).is_none(), "all others read");
        assert!(begin(&streams, from(1), now + STALLED - Duration::from_millis(3)).is_some());
        assert_eq!(ended(&open), [1, 3], "the client ends that has not read for the longest time");
        assert!(!newest.end.is_cancelled());
    }

    #[test]
    fn streams_of_both_families_of_addresses_count_together() {
        let (streams, now) = streams();
        let mapped = "::ffff:10.0.0.1".parse().ok();
        let _open: Vec<_> = [from(1), mapped, from(1), from(2)].map(|it| begin(&streams, it, now).unwrap()).into();

        assert!(begin(&streams, mapped, now).is_none());
        assert!(begin(&streams, from(2), now).is_some());
    }
}
