//! The connections of one HTTP server, of which the silent ones make room for new ones, and which end when it stops.
//!
//! Whoever opens connections and says nothing, or stops in the middle of a handshake or a request, would else fill the server
//! until the time for that is over, and no probe would be answered meanwhile. So a connection counts from the moment on in
//! which it was accepted. Those in their handshake go first, then those that never sent a request.
//! `unread.rs`: those that do not read their answers.

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

use super::socket::{Grip, Socket};
use unread::Unread;
pub(crate) use unread::{UnreadLimits, Waits};

/// How many connections a server has at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Of each worker.
    pub(crate) connections: usize,
    /// Of these, and of all workers, connections at which no request is being answered.
    pub(crate) silent: usize,
}

/// Of the silent ones, this part may be in their handshake without being the first to go, and this part may never have sent a
/// request: those that are about to.
const NEW_PART: usize = 8;

/// While the server stops: how often each thread looks for connections that can be closed.
const LOOK: Duration = Duration::from_millis(2);
/// While the server stops: a connection that was silent for this time is closed. HTTP/1 has no words for it, so a request that
/// meets the closing is lost: a new connection has this time for its first request, and whoever sends one after the other
/// learns of the end from an answer.
const QUIET: Duration = Duration::from_millis(200);

/// What may be unread, unless the server says otherwise. An API server waits 30 seconds at most for an answer.
pub(crate) const UNREAD: UnreadLimits = UnreadLimits { answers: 1024, bytes: 32 << 20, time: Duration::from_secs(30) };

/// The connections of a server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Connections {
    silent: Arc<Mutex<Silent>>,
    open: Arc<AtomicUsize>,
    most: usize,
    unread: Arc<Unread>,
    stopping: CancellationToken,
}

#[derive(Default)]
struct Silent {
    /// By the order in which they fell silent.
    groups: [BTreeMap<u64, Quiet>; 3],
    last: u64,
}

/// What a silent connection did before; the first ones make room first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Group {
    /// It has not finished its handshake.
    #[default]
    Arriving,
    /// It never sent a request.
    New,
    Used,
}

/// A silent connection.
struct Quiet {
    grip: Grip,
    since: Instant,
    /// It is served there.
    thread: ThreadId,
}

/// One of them, as long as it is open.
pub(crate) struct Connection {
    all: Connections,
    grip: Grip,
    state: Mutex<ConnectionsState>,
}

#[derive(Default)]
struct ConnectionsState {
    /// Requests that are being answered.
    requests: usize,
    group: Group,
    /// Its place among the silent ones, if it is one.
    place: Option<u64>,
    /// It was told to end with its answer.
    ending: bool,
}

/// A request of a connection is being answered.
pub(crate) struct Busy(Arc<Connection>);

impl Connections {
    /// With these limits of silent ones and of what is unread.
    pub(crate) fn within(most_silent: usize, unread: UnreadLimits) -> Self {
        Self {
            silent: Arc::default(),
            open: Arc::default(),
            most: most_silent,
            unread: Arc::new(Unread::within(unread)),
            stopping: CancellationToken::new(),
        }
    }

    /// A connection was accepted, on the thread that serves it. None if all are to end: it must not get so far that its client
    /// sends a request.
    pub(crate) fn arrive(&self, stream: TcpStream) -> Option<(Socket, Arc<Connection>)> {
        // Counted before the look at the end, which counts after its announcement: one of the two sees the other.
        self.open.fetch_add(1, Ordering::AcqRel);
        let (socket, grip) = Socket::new(stream);
        let connection = Connection { all: self.clone(), grip, state: Mutex::default() };
        if self.stopping.is_cancelled() {
            return None;
        }
        connection.fall_silent(&mut connection.state());
        Some((socket, Arc::new(connection)))
    }

    /// Cancelled when all are to end.
    pub(crate) fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    /// From now on all are to end: see [`Self::close_when_stopping`] and [`Busy::is_stopping`].
    pub(crate) fn stop(&self) {
        self.stopping.cancel();
    }

    /// Waits until none is open.
    pub(crate) async fn closed(&self) {
        while self.open.load(Ordering::Acquire) > 0 {
            sleep(LOOK).await;
        }
    }

    /// Waits until no more than these are open.
    #[cfg(test)]
    pub(crate) async fn at_most(&self, most: usize) {
        while self.open.load(Ordering::Acquire) > most {
            sleep(LOOK).await;
        }
    }

    /// Closes those that do not read their answers in time, for ever. Costs nothing while there are none.
    pub(crate) async fn close_unread(self) {
        self.unread.close_overdue().await;
    }

    /// Once they are to end, closes those of this thread that are silent. Handshakes have a time of their own.
    pub(crate) async fn close_when_stopping(self) {
        self.stopping.cancelled().await;
        let mut last = Instant::now();
        loop {
            sleep(LOOK).await;
            let now = Instant::now();
            // Since the last look this thread has done all that was due then: answers of before are written.
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

    /// Closes others than the newest one while there are too many.
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

    /// Closes those that have been silent since then.
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
    /// Its handshake is done.
    pub(crate) fn established(&self) {
        let mut state = self.state();
        self.leave(&mut state);
        state.group = Group::New;
        self.fall_silent(&mut state);
    }

    /// Ends it, whatever is under way.
    pub(crate) fn close(&self) {
        self.grip.close();
    }

    /// A request is being answered, until what is returned is dropped.
    pub(crate) fn busy(self: &Arc<Self>) -> Busy {
        let mut state = self.state();
        state.requests += 1;
        self.leave(&mut state);
        state.group = Group::Used;
        Busy(self.clone())
    }

    /// So many bytes wait until the client reads, until what is returned is dropped. If there are too many, this or another
    /// connection is closed.
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
    /// Whether connections are to end; the answer says so.
    pub(crate) fn is_stopping(&self) -> bool {
        self.0.all.stopping.is_cancelled()
    }

    /// The answer is there: so many bytes wait for the client until what is returned is dropped.
    pub(crate) fn wait(&self, bytes: usize) -> Waits {
        self.0.wait(bytes)
    }

    /// The answer says that the connection ends with it, and who serves it will see to that.
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
    use std::{io::ErrorKind, io::Read as _, net};

    use super::*;

    /// A connection, and its client.
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
