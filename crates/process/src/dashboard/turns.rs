//! Networks take turns: one request at a time, one of each network after the other. So a network with many requests makes
//! no other network wait longer.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync;

use super::network::Network;

/// Requests of one network that wait: as many as there can be pages.
pub(super) const MOST_WAITING: usize = super::streams::MAX_STREAMS;

#[derive(Default)]
pub(super) struct Turns {
    /// The requests that are the first of their networks wait here.
    all: sync::Mutex<()>,
    /// Networks with requests that wait, or have the turn.
    lines: Mutex<BTreeMap<Option<Network>, Line>>,
}

#[derive(Default)]
struct Line {
    turn: Arc<sync::Mutex<()>>,
    requests: usize,
}

/// A place in the line of a network, until it is dropped.
struct Place<'a> {
    turns: &'a Turns,
    from: Option<Network>,
}

/// The turn of a request, until it is dropped.
pub(super) struct Turn<'a> {
    _all: sync::MutexGuard<'a, ()>,
    _own: sync::OwnedMutexGuard<()>,
    _place: Place<'a>,
}

impl Turns {
    /// Waits for the turn of a request from this network. Returns `None` at once if too many of the network wait.
    pub(super) async fn turn(&self, from: Option<Network>) -> Option<Turn<'_>> {
        let (place, line) = self.enter(from)?;
        let own = line.lock_owned().await;
        let all = self.all.lock().await;
        Some(Turn { _all: all, _own: own, _place: place })
    }

    fn enter(&self, from: Option<Network>) -> Option<(Place<'_>, Arc<sync::Mutex<()>>)> {
        let mut lines = self.lines();
        let line = lines.entry(from).or_default();
        if line.requests > MOST_WAITING {
            return None; // one has the turn, or is the next of its network
        }
        line.requests += 1;
        Some((Place { turns: self, from }, line.turn.clone()))
    }

    fn lines(&self) -> MutexGuard<'_, BTreeMap<Option<Network>, Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut lines = self.turns.lines();
        let Some(line) = lines.get_mut(&self.from) else { return };
        line.requests -= 1;
        if line.requests == 0 {
            lines.remove(&self.from);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, net::IpAddr};

    use futures::{
        FutureExt as _,
        future::{join, join_all},
    };
    use tokio::task::yield_now;

    use super::*;

    fn from(last: u8) -> Option<Network> {
        Some(IpAddr::from([10, 0, 0, last]).into())
    }

    #[tokio::test]
    async fn turns_go_from_network_to_network_however_many_wait_in_one() {
        let (turns, order) = (&Turns::default(), &RefCell::new(Vec::new()));
        let first = turns.turn(from(1)).await.unwrap();
        let waiting = [1, 1, 1, 2, 2, 3].map(|network| async move {
            let turn = turns.turn(from(network)).await.unwrap();
            order.borrow_mut().push(network);
            yield_now().await;
            drop(turn);
        });

        join(join_all(waiting), async { drop(first) }).await;

        assert_eq!(*order.borrow(), [2, 3, 1, 2, 1, 1]);
        assert!(turns.lines().is_empty());
    }

    #[tokio::test]
    async fn turns_of_one_network_are_refused_if_too_many_wait() {
        let turns = Turns::default();
        let turn = turns.turn(from(1)).await.unwrap();
        let mut waiting: Vec<_> = (0..MOST_WAITING).map(|_| Box::pin(turns.turn(from(1)))).collect();
        assert!(waiting.iter_mut().all(|it| it.now_or_never().is_none()));

        assert!(turns.turn(from(1)).now_or_never().unwrap().is_none());
        assert!(turns.turn(from(2)).now_or_never().is_none(), "the other network waits");
        drop(waiting.pop());
        assert!(turns.turn(from(1)).now_or_never().is_none(), "there is room again");
        drop((waiting, turn));

        assert!(turns.lines().is_empty(), "whoever went away waits no more");
    }
}
