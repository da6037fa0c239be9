//! The connections of one HTTP server. Silent connections make room for new ones: otherwise clients that send nothing,
//! or stop in the middle of a handshake or a request, would fill the server, and no probe would be answered. So a
//! connection counts as soon as it is accepted. Connections in their handshake are closed first, then those that never
//! sent a request.

mod unread;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, ThreadId},
    time::Duration,
};

use actix_web::rt::net::TcpStream;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use unread::Unread;
pub use unread::UnreadLimits;
pub(crate) use unread::Waits;

use super::socket::{Grip, Socket};

/// How many connections a server takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Connections of each worker.
    pub connections: usize,
    /// Connections of all workers without a request that is being answered.
    pub silent: usize,
}

/// This part of the silent connections may be in a handshake, or new, without being closed first.
const NEW_PART: usize = 8;

/// While the server stops: interval in which each thread looks for connections to close.
const LOOK: Duration = Duration::from_millis(2);
/// While the server stops: a connection is closed after this time of silence. HTTP/1 cannot announce that, so a request
/// sent at that moment is lost. A new connection has this time for its first request; busy clients learn of the end
/// from an answer.
const QUIET: Duration = Duration::from_millis(200);

/// Default limits of unread answers. An API server waits at most 30 seconds for an answer. A slow client takes at least a
/// piece of its answer in this time.
pub const UNREAD: UnreadLimits = UnreadLimits { answers: 1024, bytes: 32 << 20, time: Duration::from_secs(30) };

/// The connections of all workers of a server. Clones share them.
#[derive(Clone)]
pub struct Connections {
    silent: Arc<Mutex<Silent>>,
    open: Arc<AtomicUsize>,
    most: usize,
    unread: Arc<Unread>,
    stopping: CancellationToken,
}

#[derive(Default)]
struct Silent {
    groups: [BTreeMap<u64, Quiet>; 3],
    last: u64,
}

/// State of a silent connection. The first groups make room first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Group {
    #[default]
    Arriving,
    New,
    Used,
}

struct Quiet {
    grip: Grip,
    since: Instant,
    thread: ThreadId,
}

pub(crate) struct Connection {
    all: Connections,
    grip: Grip,
    state: Mutex<ConnectionsState>,
}

#[derive(Default)]
struct ConnectionsState {
    requests: usize,
    group: Group,
    /// Key among the silent connections; `None` while busy.
    place: Option<u64>,
    ending: bool,
}

/// Keeps a connection busy while one of its requests is being answered.
pub(crate) struct Busy(Arc<Connection>);

impl Connections {
    pub(crate) fn within(most_silent: usize, unread: UnreadLimits) -> Self {
        Self {
            silent: Arc::default(),
            open: Arc::default(),
            most: most_silent,
            unread: Arc::new(Unread::within(unread)),
            stopping: CancellationToken::new(),
        }
    }

    /// Returns `None` if the server is stopping: such a connection must not get so far that its client sends a request.
    pub(crate) fn arrive(&self, stream: TcpStream) -> Option<(Socket, Arc<Connection>)> {
        // Count, then check for the stop; `stop` announces, then counts. One of the two sees the other.
        self.open.fetch_add(1, Ordering::AcqRel);
        let (socket, grip) = Socket::new(stream);
        let connection = Connection { all: self.clone(), grip, state: Mutex::default() };
        if self.stopping.is_cancelled() {
            return None;
        }
        connection.fall_silent(&mut connection.state());
        Some((socket, Arc::new(connection)))
    }

    pub(crate) fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    /// Announces the end to all connections: see [`Self::close_when_stopping`] and [`Busy::is_stopping`].
    pub(crate) fn stop(&self) {
        self.stopping.cancel();
    }

    /// Waits until none is open.
    pub async fn closed(&self) {
        while self.open.load(Ordering::Acquire) > 0 {
            sleep(LOOK).await;
        }
    }

    /// Waits until no more than this many connections are open.
    #[cfg(feature = "testing")]
    pub async fn at_most(&self, most: usize) {
        while self.open.load(Ordering::Acquire) > most {
            sleep(LOOK).await;
        }
    }

    /// Closes connections whose clients do not read in time, forever. Costs nothing while there are none.
    pub(crate) async fn close_unread(self) {
        self.unread.close_overdue().await;
    }

    /// Closes silent connections of this thread once the stop is announced. Handshakes have a time limit of their own.
    pub(crate) async fn close_when_stopping(self) {
        self.stopping.cancelled().await;
        let mut last = Instant::now();
        loop {
            sleep(LOOK).await;
            let now = Instant::now();
            // Since its last turn, this thread has done all work that was due then: earlier answers are written.
            self.lock().close(last.min(now - QUIET));
            last = now;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Silent> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Silent {
    fn group(&mut self, group: Group) -> &mut BTreeMap<u64, Quiet> {
        &mut self.groups[group as usize]
    }

    fn make_room(&mut self, most: usize) {
        let (part, newest) = ((most / NEW_PART).max(1), self.last);
        while self.groups.iter().map(BTreeMap::len).sum::<usize>() > most {
            let full = self.groups.iter().position(|group| group.len() > part);
            let is_older =
                |group: &BTreeMap<u64, Quiet>| group.first_key_value().is_some_and(|(place, _)| *place < newest);
            let first = full.or_else(|| self.groups.iter().position(is_older));
            let Some((_, oldest)) = first.and_then(|first| self.groups[first].pop_first()) else { return };
            oldest.grip.close();
        }
    }

    fn close(&mut self, since: Instant) {
        let here = thread::current().id();
        for group in [Group::New, Group::Used] {
            self.group(group).retain(|_, silent| {
                let is_due = silent.thread == here && silent.since <= since && silent.grip.is_read();
                if is_due {
                    silent.grip.close_input();
                }
                !is_due
            });
        }
    }
}

impl Connection {
    pub(crate) fn established(&self) {
        let mut state = self.state();
        self.leave(&mut state);
        state.group = Group::New;
        self.fall_silent(&mut state);
    }

    pub(crate) fn close(&self) {
        self.grip.close();
    }

    pub(crate) fn bound_send_buffer(&self, bytes: usize) {
        self.grip.bound_send_buffer(bytes);
    }

    pub(crate) fn busy(self: &Arc<Self>) -> Busy {
        let mut state = self.state();
        state.requests += 1;
        self.leave(&mut state);
        state.group = Group::Used;
        Busy(self.clone())
    }

    /// Registers unread bytes until the result is dropped. Beyond the limits, this or another connection is closed.
    pub(crate) fn wait(&self, bytes: usize) -> Waits {
        self.all.unread.wait(&self.grip, bytes)
    }

    fn leave(&self, state: &mut ConnectionsState) {
        if let Some(place) = state.place.take() {
            self.all.lock().group(state.group).remove(&place);
        }
    }

    fn fall_silent(&self, state: &mut ConnectionsState) {
        let mut silent = self.all.lock();
        silent.last += 1;
        let place = silent.last;
        let socketed = Quiet { grip: self.grip.clone(), since: Instant::now(), thread: thread::current().id() };
        silent.group(state.group).insert(place, socketed);
        state.place = Some(place);
        silent.make_room(self.all.most);
    }

    fn state(&self) -> MutexGuard<'_, ConnectionsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.leave(&mut self.state());
        self.all.open.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Busy {
    /// Whether connections must end; the answer then says so.
    pub(crate) fn is_stopping(&self) -> bool {
        self.0.all.stopping.is_cancelled()
    }

    pub(crate) fn wait(&self, bytes: usize) -> Waits {
        self.0.wait(bytes)
    }

    /// The answer announces the end of the connection; the code that serves the connection closes it.
    pub(crate) fn ends_connection(&self) {
        self.0.state().ending = true;
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.requests -= 1;
        if state.requests == 0 && !state.ending {
            self.0.fall_silent(&mut state);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{ErrorKind, Read as _},
        net,
    };

    use super::*;

    fn arrive(connections: &Connections, listener: &net::TcpListener) -> (Arc<Connection>, net::TcpStream) {
        let client = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.set_nonblocking(true).unwrap();
        let accepted = listener.accept().unwrap().0;
        accepted.set_nonblocking(true).unwrap();
        let (_, connection) = connections.arrive(TcpStream::from_std(accepted).unwrap()).unwrap();
        (connection, client)
    }

    fn is_open(client: &net::TcpStream) -> bool {
        let mut client = client;
        client.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }

    /// spec 70 §11.1
    #[actix_web::test]
    async fn connections_that_arrive_do_not_make_room_for_themselves_however_few_there_may_be() {
        for most in 0..10 {
            let connections = Connections::within(most, UNREAD);
            let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
            let used: Vec<_> = (0..most).map(|_| arrive(&connections, &listener)).collect();
            for (connection, _) in &used {
                connection.established();
                drop(connection.busy());
            }

            let (arrived, newest) = arrive(&connections, &listener);
            assert!(is_open(&newest), "{most}");
            arrived.established();
            assert!(is_open(&newest), "{most}");

            let open: Vec<_> = used.iter().map(|(_, client)| is_open(client)).collect();
            let expected: Vec<_> = (0..most).map(|place| place > 0).collect();
            assert_eq!(open, expected, "the connection with the longest silence makes room");
        }
    }
}
