//! Load limits. Excess requests are refused at once, so that the API server can retry; slow senders make room first.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio_util::sync::CancellationToken;

/// Bound of requests. API servers send as many as their clients write at once: by default 600.
pub(super) const MOST_REQUESTS: usize = 1024;
/// Bound of bodies that are being received. Beyond it the oldest one is given up.
const MOST_BODIES: usize = 512;
/// Bound of the bytes of all bodies: 9 bodies of the largest size, or 64 Ki per request. A body's buffer may be twice
/// as large, and each worker holds one decoded tree on top.
const MOST_BYTES: usize = 64 << 20;

/// Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Load {
    state: Arc<Mutex<LoadState>>,
    #[cfg(test)]
    grown: Arc<tokio::sync::Notify>,
}

#[derive(Default)]
struct LoadState {
    requests: usize,
    bytes: usize,
    /// Bytes of given-up bodies, which will be freed in a moment.
    leaving: usize,
    /// Bodies that are being received, oldest first.
    receiving: BTreeMap<u64, Part>,
    last: u64,
}

struct Part {
    bytes: usize,
    given_up: CancellationToken,
}

pub(super) struct InFlight {
    load: Load,
    bytes: usize,
    /// The part of `bytes` that counted as leaving.
    leaving: usize,
}

pub(super) struct Receiving<'a> {
    request: &'a mut InFlight,
    place: u64,
    /// Cancelled when the body must make room.
    pub(super) given_up: CancellationToken,
}

pub(super) struct Overloaded;

impl Load {
    pub(super) fn enter(&self) -> Option<InFlight> {
        let mut state = self.state();
        if state.requests >= MOST_REQUESTS {
            return None;
        }
        state.requests += 1;
        Some(InFlight { load: self.clone(), bytes: 0, leaving: 0 })
    }

    /// Waits until all bodies together have that many bytes. For one test at a time.
    #[cfg(test)]
    pub(super) async fn filled(&self, bytes: usize) {
        while self.state().bytes < bytes {
            self.grown.notified().await;
        }
    }

    fn state(&self) -> MutexGuard<'_, LoadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LoadState {
    /// Gives up the body that has been arriving for longest. Returns false if there is none.
    fn give_up_oldest(&mut self) -> bool {
        let Some((_, oldest)) = self.receiving.pop_first() else { return false };
        self.leaving += oldest.bytes;
        oldest.given_up.cancel();
        true
    }
}

impl InFlight {
    pub(super) fn receive(&mut self) -> Receiving<'_> {
        let given_up = CancellationToken::new();
        let mut state = self.load.state();
        state.last += 1;
        let place = state.last;
        state.receiving.insert(place, Part { bytes: 0, given_up: given_up.clone() });
        if state.receiving.len() > MOST_BODIES {
            state.give_up_oldest();
        }
        drop(state);
        Receiving { request: self, place, given_up }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut state = self.load.state();
        state.bytes -= self.bytes;
        state.leaving -= self.leaving;
        state.requests -= 1;
    }
}

impl Receiving<'_> {
    /// Counts more bytes of this body. If all bodies together exceed their bound, the oldest ones are given up, and
    /// perhaps this one. Returns false if this one is given up.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        let load = self.request.load.clone();
        let mut state = load.state();
        let Some(part) = state.receiving.get_mut(&self.place) else { return false };
        part.bytes += bytes;
        self.request.bytes += bytes;
        state.bytes += bytes;
        #[cfg(test)]
        load.grown.notify_one();
        while state.bytes - state.leaving > MOST_BYTES {
            if !state.give_up_oldest() {
                return false;
            }
        }
        !self.given_up.is_cancelled()
    }
}

impl Drop for Receiving<'_> {
    fn drop(&mut self) {
        let mut state = self.request.load.state();
        if state.receiving.remove(&self.place).is_none() {
            // The body was given up with all its bytes.
            self.request.leaving = self.request.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_limit_refuses_excess_requests_and_bytes_and_recovers() {
        let load = Load::default();

        let entered: Vec<_> = (0..MOST_REQUESTS).map_while(|_| load.enter()).collect();
        assert_eq!(entered.len(), MOST_REQUESTS);
        assert!(load.enter().is_none());

        drop(entered);
        let mut request = load.enter().unwrap();
        let mut body = request.receive();
        assert!(body.grow(MOST_BYTES) && !body.grow(1));
        drop(body);
        drop(request);
        assert!(load.enter().unwrap().receive().grow(MOST_BYTES));
    }

    #[test]
    fn load_limit_gives_up_the_oldest_body() {
        let load = Load::default();
        let mut requests: Vec<_> = (0..=MOST_BODIES).map_while(|_| load.enter()).collect();

        let bodies: Vec<_> = requests.iter_mut().map(InFlight::receive).collect();

        assert!(bodies[0].given_up.is_cancelled());
        assert!(bodies[1..].iter().all(|body| !body.given_up.is_cancelled()));
    }

    #[test]
    fn load_limit_gives_up_slow_bodies_but_not_complete_bodies() {
        let load = Load::default();
        let mut requests: Vec<_> = (0..4).map_while(|_| load.enter()).collect();
        let [whole, slow, younger, newest] = requests.as_mut_slice() else { panic!("too few") };
        assert!(whole.receive().grow(MOST_BYTES / 2));
        let (mut slow, mut younger, mut newest) = (slow.receive(), younger.receive(), newest.receive());
        assert!(slow.grow(MOST_BYTES / 4) && younger.grow(MOST_BYTES / 4));

        assert!(newest.grow(MOST_BYTES / 4), "the slow one makes room");
        assert!(slow.given_up.is_cancelled() && !younger.given_up.is_cancelled());
        assert!(!slow.grow(1));
        assert!(newest.grow(MOST_BYTES / 4), "the younger one too");
        assert!(younger.given_up.is_cancelled());
        assert!(!newest.grow(1), "a whole body stays");

        drop((slow, younger, newest));
        drop(requests);
        let state = load.state();
        assert_eq!((state.requests, state.bytes, state.leaving), (0, 0, 0));
    }
}
