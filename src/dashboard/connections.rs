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
pub(super) const MOST_SILENT: usize = 128;

/// The connections of a server. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Connections {
    silent: Arc<Mutex<Silent>>,
}

#[derive(Default)]
struct Silent {
    /// By the order in which they fell silent.
    sockets: BTreeMap<u64, Arc<TcpStream>>,
    last: u64,
}

/// One of them, as long as it is open.
pub(super) struct Connection {
    all: Connections,
    /// The same socket under a descriptor of its own: only to shut it down.
    socket: Arc<TcpStream>,
    /// Its place among the silent ones, if it is one.
    place: Mutex<Option<u64>>,
}

// === impl Connections ===

impl Connections {
    /// A new connection, over which nothing was sent yet.
    pub(super) fn enter(&self, socket: &impl AsFd) -> io::Result<Arc<Connection>> {
        let socket = Arc::new(socket.as_fd().try_clone_to_owned()?.into());
        let connection = Connection { all: self.clone(), socket, place: Mutex::default() };
        connection.is_silent();
        Ok(Arc::new(connection))
    }

    fn lock(&self) -> MutexGuard<'_, Silent> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Connection ===

impl Connection {
    /// A request is being answered.
    pub(super) fn is_busy(&self) {
        let place = self.place().take();
        if let Some(place) = place {
            self.all.lock().sockets.remove(&place);
        }
    }

    /// No request is being answered (any more).
    pub(super) fn is_silent(&self) {
        self.is_busy();
        let mut silent = self.all.lock();
        silent.last += 1;
        let place = silent.last;
        silent.sockets.insert(place, self.socket.clone());
        *self.place() = Some(place);
        while silent.sockets.len() > MOST_SILENT {
            let Some((_, oldest)) = silent.sockets.pop_first() else { return };
            // It may be closed already.
            oldest.shutdown(Shutdown::Both).ok();
        }
    }

    fn place(&self) -> MutexGuard<'_, Option<u64>> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.is_busy();
    }
}
