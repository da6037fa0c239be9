//! The connections of one HTTP server, of which the silent ones make room for new ones.
//!
//! Whoever opens connections and says nothing, or stops in the middle of a request, would else fill the server until the
//! header time is over, and no probe would be answered meanwhile.

use std::{
    collections::BTreeMap,
    io,
    net::{Shutdown, TcpStream},
    os::fd::AsFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Connections at which no request is being answered, at most; the one that has been silent for longest is closed. A
/// kubelet and a Prometheus server keep one or two.
pub(crate) const MOST_SILENT: usize = 128;

/// The connections of a server. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Connections {
    silent: Arc<Mutex<Silent>>,
}

#[derive(Default)]
struct Silent {
    /// By the order in which they fell silent.
    sockets: BTreeMap<u64, Arc<TcpStream>>,
    last: u64,
}

/// One of them, as long as it is open.
pub(crate) struct Connection {
    all: Connections,
    /// The same socket under a descriptor of its own: only to shut it down.
    socket: Arc<TcpStream>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Requests that are being answered; HTTP/2 has several at once.
    requests: usize,
    /// Its place among the silent ones, if it is one.
    place: Option<u64>,
}

/// A request of a connection is being answered.
pub(crate) struct Busy(Arc<Connection>);

// === impl Connections ===

impl Connections {
    /// A new connection, over which nothing was sent yet.
    pub(crate) fn enter(&self, socket: &impl AsFd) -> io::Result<Arc<Connection>> {
        let socket = Arc::new(socket.as_fd().try_clone_to_owned()?.into());
        let connection = Connection { all: self.clone(), socket, state: Mutex::default() };
        connection.fall_silent(&mut connection.state());
        Ok(Arc::new(connection))
    }

    fn lock(&self) -> MutexGuard<'_, Silent> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Connection ===

impl Connection {
    /// A request is being answered, until what is returned is dropped.
    pub(crate) fn busy(self: &Arc<Self>) -> Busy {
        let mut state = self.state();
        state.requests += 1;
        self.leave(&mut state);
        Busy(self.clone())
    }

    fn leave(&self, state: &mut State) {
        if let Some(place) = state.place.take() {
            self.all.lock().sockets.remove(&place);
        }
    }

    fn fall_silent(&self, state: &mut State) {
        let mut silent = self.all.lock();
        silent.last += 1;
        let place = silent.last;
        silent.sockets.insert(place, self.socket.clone());
        state.place = Some(place);
        while silent.sockets.len() > MOST_SILENT {
            let Some((_, oldest)) = silent.sockets.pop_first() else { return };
            // It may be closed already.
            oldest.shutdown(Shutdown::Both).ok();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.leave(&mut self.state());
    }
}

// === impl Busy ===

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.requests -= 1;
        if state.requests == 0 {
            self.0.fall_silent(&mut state);
        }
    }
}
