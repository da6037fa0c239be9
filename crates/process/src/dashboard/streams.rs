//! Limits the open streams: pages, and answers with all actors. Networks share the places. If all places are taken, a new
//! stream gets a place of the network that has the most, as long as that network keeps as many as the new stream's. Its
//! client that has not read for the longest time loses its stream, or else the oldest. So no network can keep others out.
//!
//! Networks with as many places take turns: a client that does not read, or whose connection has had its place for [`TURN`],
//! loses it to a newcomer. The age counts because nobody sees whether a client reads as long as everything fits into the buffers of
//! both systems. In a small landscape that takes days. Without a newcomer a stream may last forever.

use std::{
    cmp::Reverse,
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::network::Network;

/// A stream costs a list of all paths (16 bytes per actor) and a piece of a document while it sends one.
pub(super) const MAX_STREAMS: usize = 16;

/// A client that took nothing for so long may lose its place. Clients that read take something twenty times a second.
pub(super) const STALLED: Duration = Duration::from_millis(500);

/// A place that was held for so long may go to somebody who has none.
pub(super) const TURN: Duration = Duration::from_secs(15 * 60);

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
    /// `None` in tests without a connection.
    from: Option<Network>,
    begun: Instant,
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

    /// Begins a stream to a client of this network; `None` if there is no place for it. `close` ends its connection: a
    /// client that reads nothing does not notice that its stream ends.
    pub(super) fn begin(
        &self,
        from: Option<Network>,
        now: Instant,
        close: impl Fn() + Send + 'static,
    ) -> Option<StreamPermit> {
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
        open.streams.insert(number, OpenStream { from, begun: now, read: now, close: Box::new(close) });
        drop(open);
        Some(StreamPermit { streams: self.clone(), number, end })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// The stream that gives its place to a new one of this network.
    fn loser(&self, from: Option<Network>, now: Instant) -> Option<u64> {
        let places = |network| self.streams.values().filter(|stream| stream.from == network).count();
        let with_new = places(from) + 1;
        let may_lose = |stream: &OpenStream| {
            let is_over = stream.is_old(now) || !stream.stalled(now).is_zero();
            let has = places(stream.from);
            has > with_new || is_over && (has == with_new || stream.from == from)
        };
        // A stream of the own network that nobody reads costs nobody anything.
        let is_own = |stream: &OpenStream| stream.from == from && !stream.stalled(now).is_zero();
        let order = |number: u64, stream: &OpenStream| {
            (!is_own(stream), Reverse(places(stream.from)), Reverse(stream.stalled(now)), number)
        };
        let candidates = self.streams.iter().filter(|(_, stream)| may_lose(stream));
        candidates.min_by_key(|(number, stream)| order(**number, stream)).map(|(number, _)| *number)
    }
}

impl OpenStream {
    fn is_old(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.begun) >= TURN
    }

    /// For how long the client has read nothing; zero below [`STALLED`].
    fn stalled(&self, now: Instant) -> Duration {
        let time = now.saturating_duration_since(self.read);
        if time >= STALLED { time } else { Duration::ZERO }
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
    use std::net::IpAddr;

    use super::*;

    const MOST: usize = 4;

    fn streams() -> (Streams, Instant) {
        (Streams::within(MOST, CancellationToken::new()), Instant::now())
    }

    fn from(last: u8) -> Option<Network> {
        Some(IpAddr::from([10, 0, 0, last]).into())
    }

    fn begin(streams: &Streams, from: Option<Network>, now: Instant) -> Option<StreamPermit> {
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
    fn streams_of_the_network_with_the_most_make_room_even_if_others_do_not_read() {
        let (streams, begun) = streams();
        let open: Vec<_> = [2, 1, 1, 1].map(|it| begin(&streams, from(it), begun).unwrap()).into();
        let now = begun + STALLED;
        open[1].note_read(now);

        let _third = begin(&streams, from(3), now).unwrap();

        assert_eq!(ended(&open), [2], "the client of the largest network that has not read for the longest time");
    }

    #[test]
    fn streams_of_the_own_network_that_nobody_reads_go_first() {
        let (streams, begun) = streams();
        let open: Vec<_> = [1, 1, 2, 3].map(|it| begin(&streams, from(it), begun).unwrap()).into();
        let now = begun + TURN;
        [0, 1, 3].into_iter().for_each(|number: usize| open[number].note_read(now));

        let _newest = begin(&streams, from(2), now).unwrap();

        assert_eq!(ended(&open), [2]);
    }

    #[test]
    fn streams_that_do_not_read_lose_no_place_to_a_network_that_has_more() {
        let (streams, begun) = streams();
        let open: Vec<_> = [1, 2, 2, 2].map(|it| begin(&streams, from(it), begun).unwrap()).into();
        let now = begun + TURN;
        open[1..].iter().for_each(|permit| permit.note_read(now));

        let _newest = begin(&streams, from(2), now).unwrap();

        assert_eq!(ended(&open), [1], "the oldest of its own network");
    }

    /// In a small landscape, everything fits into the buffers of a client that does not read.
    #[test]
    fn streams_have_their_places_for_a_turn_while_other_networks_wait() {
        let (streams, begun) = streams();
        let mut open: Vec<_> = (1..=4).map(|it| begin(&streams, from(it), begun).unwrap()).collect();
        let read = |open: &[StreamPermit], now| open.iter().for_each(|permit| permit.note_read(now));
        let early = begun + TURN - Duration::from_millis(1);
        read(&open, early);
        assert!(begin(&streams, from(5), early).is_none());

        let now = begun + TURN;
        read(&open, now);
        open.push(begin(&streams, from(5), now).unwrap());
        open.push(begin(&streams, from(1), now).unwrap());

        assert_eq!(ended(&open), [0, 1], "the oldest");
        assert!(begin(&streams, from(5), now).is_none(), "its network would have more than others");
    }

    #[test]
    fn streams_of_one_ipv6_network_share_places() {
        let (streams, now) = streams();
        let host = |last: u128| Some(IpAddr::from(((0x2001_0db8_u128 << 96) + last).to_be_bytes()).into());
        let open: Vec<_> = (0..4).map(|last| begin(&streams, host(last), now).unwrap()).collect();

        assert!(begin(&streams, host(5), now).is_none());
        let _other = begin(&streams, from(1), now).unwrap();

        assert_eq!(ended(&open), [0]);
    }

    #[test]
    fn streams_of_both_families_of_addresses_count_together() {
        let (streams, now) = streams();
        let mapped = "::ffff:10.0.0.1".parse::<IpAddr>().ok().map(Network::from);
        let _open: Vec<_> = [from(1), mapped, from(1), from(2)].map(|it| begin(&streams, it, now).unwrap()).into();

        assert!(begin(&streams, mapped, now).is_none());
        assert!(begin(&streams, from(2), now).is_some());
    }
}
