//! The connections of one HTTP server, of which the silent ones make room for new ones, and which end when it stops.
//!
//! Whoever opens connections and says nothing, or stops in the middle of a request, would else fill the server until the
//! header time is over, and no probe would be answered meanwhile. Those that never sent a request go first.
//! `unread.rs`: those that do not read their answers.

mod unread;

use std::{
    collections::BTreeMap,
    io,
    net::{Shutdown, TcpStream},
    os::fd::AsFd,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, ThreadId},
    time::Duration,
};

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use unread::Unread;
pub(crate) use unread::{UnreadLimits, Waits};

/// Connections at which no request is being answered, at most, unless the server says otherwise. A kubelet and a Prometheus
/// server keep one or two.
pub(crate) const MOST_SILENT: usize = 128;
/// Of the silent ones, this part may never have sent a request without being the first to go: those that are about to.
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
    /// Those that never sent a request, by the order in which they came.
    new: BTreeMap<u64, Socket>,
    /// The others, by the order in which they fell silent.
    used: BTreeMap<u64, Socket>,
    last: u64,
}

/// A silent connection.
struct Socket {
    /// The same socket under a descriptor of its own: only to shut it down.
    socket: Arc<TcpStream>,
    since: Instant,
    /// It is served there.
    thread: ThreadId,
    /// Who serves it ends it when all are to end.
    ends_itself: bool,
}

/// One of them, as long as it is open.
pub(crate) struct Connection {
    all: Connections,
    socket: Arc<TcpStream>,
    ends_itself: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Requests that are being answered; HTTP/2 has several at once.
    requests: usize,
    /// Its place among the silent ones, if it is one.
    place: Option<u64>,
    used: bool,
    /// It was told to end with its answer.
    ending: bool,
}

/// A connection that is being made.
pub(crate) struct Arriving(Connections);

/// A request of a connection is being answered.
pub(crate) struct Busy(Arc<Connection>);

// === impl Connections ===

impl Default for Connections {
    fn default() -> Self {
        Self::within(MOST_SILENT, UNREAD)
    }
}

impl Connections {
    /// With a limit of silent ones of its own, and limits of what is unread.
    pub(crate) fn within(most: usize, unread: UnreadLimits) -> Self {
        Self {
            silent: Arc::default(),
            open: Arc::default(),
            most,
            unread: Arc::new(Unread::within(unread)),
            stopping: CancellationToken::new(),
        }
    }

    /// A connection comes. None if all are to end: it must not get so far that its client sends a request.
    pub(crate) fn arrive(&self) -> Option<Arriving> {
        // Counted before the look at the end, which counts after its announcement: one of the two sees the other.
        self.open.fetch_add(1, Ordering::AcqRel);
        let arriving = Arriving(self.clone());
        (!self.stopping.is_cancelled()).then_some(arriving)
    }

    /// A new connection, over which nothing was sent yet. On the thread that serves it.
    pub(crate) fn enter(&self, socket: &impl AsFd) -> io::Result<Arc<Connection>> {
        self.enter_as(socket, false)
    }

    /// One of HTTP/2, which has words for its end: whoever serves it says them, and ends it, when [`Self::stopping`] tells so.
    pub(crate) fn enter_http2(&self, socket: &impl AsFd) -> io::Result<Arc<Connection>> {
        self.enter_as(socket, true)
    }

    fn enter_as(&self, socket: &impl AsFd, ends_itself: bool) -> io::Result<Arc<Connection>> {
        let socket = Arc::new(socket.as_fd().try_clone_to_owned()?.into());
        self.open.fetch_add(1, Ordering::AcqRel);
        let connection = Connection { all: self.clone(), socket, ends_itself, state: Mutex::default() };
        connection.fall_silent(&mut connection.state());
        Ok(Arc::new(connection))
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

    /// Closes those that do not read their answers in time, for ever. Costs nothing while there are none.
    pub(crate) async fn close_unread(self) {
        self.unread.close_overdue().await;
    }

    /// Once they are to end, closes those of this thread that are silent, unless they end themselves.
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

// === impl Silent ===

impl Silent {
    fn make_room(&mut self, most: usize) {
        while self.new.len() + self.used.len() > most {
            let new_first = self.new.len() > most / NEW_PART || self.used.is_empty();
            let oldest = if new_first { self.new.pop_first() } else { self.used.pop_first() };
            let Some((_, oldest)) = oldest else { return };
            // It may be closed already.
            oldest.socket.shutdown(Shutdown::Both).ok();
        }
    }

    /// Closes those that have been silent since then.
    fn close(&mut self, since: Instant) {
        let here = thread::current().id();
        let close = |socket: &Socket| {
            let is_due = !socket.ends_itself && socket.thread == here && socket.since <= since && socket.is_read();
            if is_due {
                // Only this side: what is being written goes out.
                socket.socket.shutdown(Shutdown::Read).ok();
            }
            is_due
        };
        self.used.retain(|_, socket| !close(socket));
        self.new.retain(|_, socket| !close(socket));
    }
}

// === impl Socket ===

impl Socket {
    /// Nothing came that was not read yet, as the beginning of a request.
    fn is_read(&self) -> bool {
        !matches!(self.socket.peek(&mut [0]), Ok(1))
    }
}

// === impl Connection ===

impl Connection {
    /// A request is being answered, until what is returned is dropped.
    pub(crate) fn busy(self: &Arc<Self>) -> Busy {
        let mut state = self.state();
        state.requests += 1;
        state.used = true;
        self.leave(&mut state);
        Busy(self.clone())
    }

    /// So many bytes wait until the client reads, until what is returned is dropped. If there are too many, this or another
    /// connection is closed.
    pub(crate) fn wait(&self, bytes: usize) -> Waits {
        self.all.unread.wait(&self.socket, bytes)
    }

    fn leave(&self, state: &mut State) {
        if let Some(place) = state.place.take() {
            let mut silent = self.all.lock();
            silent.new.remove(&place);
            silent.used.remove(&place);
        }
    }

    fn fall_silent(&self, state: &mut State) {
        let mut silent = self.all.lock();
        silent.last += 1;
        let place = silent.last;
        let socket = Socket {
            socket: self.socket.clone(),
            since: Instant::now(),
            thread: thread::current().id(),
            ends_itself: self.ends_itself,
        };
        let group = if state.used { &mut silent.used } else { &mut silent.new };
        group.insert(place, socket);
        state.place = Some(place);
        silent.make_room(self.all.most);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.leave(&mut self.state());
        self.all.open.fetch_sub(1, Ordering::AcqRel);
    }
}

// === impl Arriving ===

impl Drop for Arriving {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

// === impl Busy ===

impl Busy {
    /// Whether connections are to end. HTTP/1 can say so in the answer.
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
