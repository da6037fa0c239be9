//! Bounds number, size and age of answers that clients do not read. Beyond these limits, the connection whose client
//! has not read for the longest time is closed. Nothing else ends such connections: a client may stop reading and still
//! show signs of life. Reviews without an answer do not count, because they have a deadline.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use crate::http::socket::Grip;

/// Limits of the answers that clients have not read yet, of all connections of a server.
#[derive(Debug, Clone, Copy)]
pub struct UnreadLimits {
    /// Number of unread answers. Answers to a client that reads wait for less than a millisecond.
    pub answers: usize,
    /// Their size together.
    pub bytes: usize,
    /// How long a client may take no part of one.
    pub time: Duration,
}

pub(super) struct Unread {
    limits: UnreadLimits,
    waiting: Mutex<All>,
    first: Notify,
}

#[derive(Default)]
struct All {
    waiting: BTreeMap<u64, Waiting>,
    bytes: usize,
    last: u64,
}

struct Waiting {
    since: Instant,
    bytes: usize,
    grip: Grip,
}

/// An unread answer, or a part of one; until it is dropped.
pub(crate) struct Waits {
    unread: Arc<Unread>,
    place: u64,
}

impl Unread {
    pub(super) fn within(limits: UnreadLimits) -> Self {
        Self { limits, waiting: Mutex::default(), first: Notify::new() }
    }

    /// Registers unread bytes of a connection. Beyond the limits, closes the oldest connections.
    pub(super) fn wait(self: &Arc<Self>, grip: &Grip, bytes: usize) -> Waits {
        let mut all = self.all();
        all.last += 1;
        let place = all.last;
        all.bytes += bytes;
        all.waiting.insert(place, Waiting { since: Instant::now(), bytes, grip: grip.clone() });
        while all.waiting.len() > self.limits.answers || all.bytes > self.limits.bytes && all.waiting.len() > 1 {
            all.close_oldest();
        }
        if all.waiting.len() == 1 {
            self.first.notify_one();
        }
        drop(all);
        Waits { unread: self.clone(), place }
    }

    /// Closes overdue connections, forever. Sleeps without a timer while nothing is unread.
    pub(super) async fn close_overdue(&self) {
        loop {
            match self.look(Instant::now()) {
                Some(next) => sleep_until(next).await,
                None => self.first.notified().await,
            }
        }
    }

    fn look(&self, now: Instant) -> Option<Instant> {
        let mut all = self.all();
        loop {
            let due = all.waiting.first_key_value()?.1.since + self.limits.time;
            if due > now {
                return Some(due);
            }
            all.close_oldest();
        }
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waits {
    /// The client took a part of the answer; so many bytes are left.
    pub(crate) fn goes_on(&mut self, bytes: usize) {
        let mut all = self.unread.all();
        // Nothing waits if the connection has been closed.
        let Some(waiting) = all.waiting.remove(&self.place) else { return };
        all.bytes = all.bytes + bytes - waiting.bytes;
        all.last += 1;
        self.place = all.last;
        all.waiting.insert(self.place, Waiting { since: Instant::now(), bytes, ..waiting });
    }
}

impl All {
    fn close_oldest(&mut self) {
        let Some((_, oldest)) = self.waiting.pop_first() else { return };
        self.bytes -= oldest.bytes;
        oldest.grip.close();
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        let mut all = self.unread.all();
        if let Some(gone) = all.waiting.remove(&self.place) {
            all.bytes -= gone.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{io::Read as _, net};

    use actix_web::rt::net::TcpStream;

    use super::*;
    use crate::http::socket::Socket;

    const LIMITS: UnreadLimits = UnreadLimits { answers: 3, bytes: 100, time: Duration::from_secs(30) };

    fn connection() -> ((Socket, Grip), net::TcpStream) {
        let listener = net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.set_nonblocking(true).unwrap();
        let accepted = listener.accept().unwrap().0;
        accepted.set_nonblocking(true).unwrap();
        (Socket::new(TcpStream::from_std(accepted).unwrap()), client)
    }

    fn is_open(client: &net::TcpStream) -> bool {
        !matches!((&mut &*client).read(&mut [0]), Ok(0))
    }

    #[tokio::test(start_paused = true)]
    async fn unread_answers_that_waited_longest_make_room() {
        let unread = Arc::new(Unread::within(LIMITS));
        let all: Vec<_> = (0..4).map(|_| connection()).collect();
        let open = || all.iter().map(|(_, client)| is_open(client)).collect::<Vec<_>>();

        let _many = all[..3].iter().map(|((_, grip), _)| unread.wait(grip, 10)).collect::<Vec<_>>();
        assert_eq!(open(), [true; 4]);
        let newest = unread.wait(&all[3].0.1, 10);
        assert_eq!(open(), [false, true, true, true], "too many");
        drop(newest);
        let _large = unread.wait(&all[3].0.1, 90);
        assert_eq!(open(), [false, false, true, true], "too large");
        let _larger = unread.wait(&all[3].0.1, 1000);
        assert_eq!(open(), [false, false, false, false], "all others, and here one of the same connection");
    }

    #[tokio::test(start_paused = true)]
    async fn unread_answer_whose_client_reads_slowly_is_not_closed() {
        let unread = Arc::new(Unread::within(LIMITS));
        let (((_a, slow), first), ((_b, stuck), second)) = (connection(), connection());
        let mut waits = unread.wait(&slow, 60);
        let _stuck = unread.wait(&stuck, 30);

        for left in (0..10).rev() {
            tokio::time::advance(LIMITS.time - Duration::from_secs(1)).await;
            waits.goes_on(left);
            unread.look(Instant::now());
        }

        assert!(is_open(&first) && !is_open(&second));
        assert_eq!(unread.all().bytes, 0);
        waits.goes_on(0);
        drop(waits);
        assert_eq!(unread.all().waiting.len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn unread_answers_that_wait_too_long_are_closed() {
        let unread = Arc::new(Unread::within(LIMITS));
        let closing = tokio::spawn({
            let unread = unread.clone();
            async move { unread.close_overdue().await }
        });
        let (((_a, one), first), ((_b, two), second)) = (connection(), connection());

        drop(unread.wait(&one, 10));
        tokio::time::sleep(Duration::from_secs(100)).await;
        let slow = unread.wait(&one, 10);
        tokio::time::sleep(Duration::from_secs(20)).await;
        let later = unread.wait(&two, 10);
        tokio::time::sleep(Duration::from_secs(9)).await;
        assert!(is_open(&first));
        tokio::time::sleep(Duration::from_secs(2)).await;

        assert!(!is_open(&first) && is_open(&second));
        drop((slow, later));
        let all = unread.all();
        assert_eq!((all.waiting.len(), all.bytes), (0, 0));
        closing.abort();
    }
}
