//! How much the server takes on at once. What is too much is refused at once, so that the API server can ask another replica
//! or again; whoever sends slowly makes room first.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio_util::sync::CancellationToken;

/// Requests at once. API servers send as many as there are writes of their clients: by default 600 in flight.
const MOST_REQUESTS: usize = 1024;
/// Of these, bodies that are being received. The one that began first is given up: it had its time.
const MOST_BODIES: usize = 512;
/// Bytes of all bodies at once; 18 of the largest size, or 64 Ki of the usual one.
const MOST_BYTES: usize = 128 << 20;

/// Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Load {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    requests: AtomicUsize,
    /// How many there were since the beginning.
    begun: AtomicUsize,
    bytes: AtomicUsize,
    bodies: Mutex<Bodies>,
}

#[derive(Default)]
struct Bodies {
    /// By the order in which they began.
    running: BTreeMap<u64, CancellationToken>,
    last: u64,
}

/// A request, until it is answered.
pub(super) struct InFlight {
    load: Load,
    bytes: usize,
}

/// A body, while it is being received.
pub(super) struct Receiving {
    load: Load,
    place: u64,
    /// It must make room.
    pub(super) given_up: CancellationToken,
}

// === impl Load ===

impl Load {
    /// A request comes; `None` if there are too many.
    pub(super) fn enter(&self) -> Option<InFlight> {
        self.shared.begun.fetch_add(1, Ordering::AcqRel);
        let before = self.shared.requests.fetch_add(1, Ordering::AcqRel);
        let entered = InFlight { load: self.clone(), bytes: 0 };
        (before < MOST_REQUESTS).then_some(entered)
    }

    /// Waits until there was no request for a while.
    pub(super) async fn quiet(&self, time: Duration) {
        let state = || (self.shared.requests.load(Ordering::Acquire), self.shared.begun.load(Ordering::Acquire));
        loop {
            let before = state();
            tokio::time::sleep(time).await;
            if before.0 == 0 && state() == before {
                return;
            }
        }
    }

    fn bodies(&self) -> MutexGuard<'_, Bodies> {
        self.shared.bodies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl InFlight ===

impl InFlight {
    /// A body begins to arrive.
    pub(super) fn receive(&self) -> Receiving {
        let given_up = CancellationToken::new();
        let mut bodies = self.load.bodies();
        bodies.last += 1;
        let place = bodies.last;
        bodies.running.insert(place, given_up.clone());
        while bodies.running.len() > MOST_BODIES
            && let Some((_, oldest)) = bodies.running.pop_first()
        {
            oldest.cancel();
        }
        Receiving { load: self.load.clone(), place, given_up }
    }

    /// Room for more of its body; false if there is none.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        let before = self.load.shared.bytes.fetch_add(bytes, Ordering::AcqRel);
        self.bytes += bytes;
        before + bytes <= MOST_BYTES
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.load.shared.bytes.fetch_sub(self.bytes, Ordering::AcqRel);
        self.load.shared.requests.fetch_sub(1, Ordering::AcqRel);
    }
}

// === impl Receiving ===

impl Drop for Receiving {
    fn drop(&mut self) {
        self.load.bodies().running.remove(&self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_is_refused_and_leaves_no_trace() {
        let load = Load::default();

        let entered: Vec<_> = (0..MOST_REQUESTS).map_while(|_| load.enter()).collect();
        assert_eq!(entered.len(), MOST_REQUESTS);
        assert!(load.enter().is_none());

        drop(entered);
        let mut request = load.enter().unwrap();
        assert!(request.grow(MOST_BYTES) && !request.grow(1));
        drop(request);
        assert!(load.enter().unwrap().grow(MOST_BYTES));
    }

    #[test]
    fn the_slowest_body_makes_room() {
        let load = Load::default();
        let requests: Vec<_> = (0..=MOST_BODIES).map_while(|_| load.enter()).collect();

        let bodies: Vec<_> = requests.iter().map(InFlight::receive).collect();

        assert!(bodies[0].given_up.is_cancelled());
        assert!(bodies[1..].iter().all(|body| !body.given_up.is_cancelled()));
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_quiet_when_no_request_came_for_a_while() {
        let load = Load::default();
        let request = load.enter();
        let begin = tokio::time::Instant::now();
        let quiet = load.quiet(Duration::from_millis(50));

        let ending = async {
            tokio::time::sleep(Duration::from_millis(120)).await;
            drop(request);
        };
        tokio::join!(quiet, ending);

        assert_eq!(begin.elapsed(), Duration::from_millis(200));
    }
}
