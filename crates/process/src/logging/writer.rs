//! A thread and a bounded queue before the stream. Log statements never wait for the reader of stderr: when the queue
//! is full, records are dropped and counted, and the next record that finds room also reports the count. The bound is
//! in bytes, because records have any length. What a failing stream refuses counts as dropped.
//!
//! The first record of a burst is written at once, and so are errors. Others gather for [`PAUSE`], because waking a
//! thread for each record costs more than the record itself.

use std::{
    io::{ErrorKind, Write},
    mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

/// Bytes of waiting records. A burst at a start with thousands of objects takes 300 bytes for each, and fits.
const QUEUE: usize = 4 << 20;

/// How long records gather after a write, unless an error is among them. A process that is killed loses the records of
/// this time at most.
const PAUSE: Duration = Duration::from_millis(20);
/// So many bytes end the pause.
const ENOUGH: usize = 256 << 10;

/// How long the end of the process waits for a stream that accepts nothing.
const LAST_FLUSH: Duration = Duration::from_millis(500);

pub(super) struct Sender {
    queue: Arc<LogQueue>,
}

/// Keeps the writer running. Dropping it writes the waiting records, for at most half a second. `std::process::exit`
/// drops nothing: call [`Handle::finish`] before.
#[must_use = "dropping it ends the log"]
pub struct Handle {
    queue: Arc<LogQueue>,
}

#[derive(Default)]
struct LogQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    lines: String,
    /// Bytes that the writer has taken and not yet written.
    taken: usize,
    /// Records that were dropped and not yet reported.
    lost: usize,
    /// The writer waits for the first record of a burst.
    idle: bool,
    /// The lines must be written at once.
    urgent: bool,
    /// No record is accepted any more.
    ended: bool,
    /// The writer has written its last record.
    finished: bool,
}

pub(super) fn start(stream: impl Write + Send + 'static) -> (Sender, Handle) {
    let queue = Arc::new(LogQueue::default());
    let writer = queue.clone();
    // Without a thread nobody reads the queue, and every record is dropped.
    if thread::Builder::new().name("log".to_owned()).spawn(move || writer.write_all(stream)).is_err() {
        let mut state = queue.lock();
        (state.ended, state.finished) = (true, true);
    }
    (Sender { queue: queue.clone() }, Handle { queue })
}

impl LogQueue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes batches of records until the log has ended.
    fn write_all(&self, mut stream: impl Write) {
        let (mut batch, mut is_torn) = (String::new(), false);
        let mut state = self.lock();
        loop {
            state.idle = true;
            let more = |state: &mut QueueState| state.lines.is_empty() && !state.ended;
            state = self.changed.wait_while(state, more).unwrap_or_else(PoisonError::into_inner);
            state.idle = false;
            state.urgent = false;
            mem::swap(&mut state.lines, &mut batch);
            state.taken = batch.len();
            drop(state);

            if is_torn {
                batch.insert(0, '\n'); // the next record begins on its own line
            }
            let rest = write_batch(&mut stream, batch.as_bytes());
            let written = &batch.as_bytes()[..batch.len() - rest.len()];
            is_torn = !rest.is_empty() && written.last().map_or(is_torn, |last| *last != b'\n');
            let lost = rest.iter().filter(|byte| **byte == b'\n').count();
            batch.clear();
            batch.shrink_to(ENOUGH); // the memory of a burst is given back

            state = self.lock();
            state.taken = 0;
            state.lost += lost;
            if state.ended && state.lines.is_empty() {
                state.finished = true;
                self.changed.notify_all();
                return;
            }
            let pause = |state: &mut QueueState| state.lines.len() < ENOUGH && !state.urgent && !state.ended;
            let waited = self.changed.wait_timeout_while(state, PAUSE, pause);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Writes as much as the stream accepts. Returns the rest.
fn write_batch<'a>(stream: &mut impl Write, batch: &'a [u8]) -> &'a [u8] {
    let mut rest = batch;
    while !rest.is_empty() {
        match stream.write(rest) {
            Ok(0) => break,
            Ok(bytes) => rest = &rest[bytes..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    stream.flush().ok();
    rest
}

impl QueueState {
    /// Appends a line. Returns false if it finds no room.
    fn put(&mut self, line: &str) -> bool {
        let room = !self.ended && self.taken + self.lines.len() + line.len() <= QUEUE;
        if room {
            self.lines.push_str(line);
        }
        room
    }
}

impl Sender {
    /// Sends a line. An urgent one does not wait for more. If the line found room, also sends what `report` makes of the
    /// number of earlier lines that did not, or that the stream refused.
    pub(super) fn send(&self, line: &str, is_urgent: bool, report: impl FnOnce(usize) -> String) {
        let mut state = self.queue.lock();
        let before = state.lines.len();
        if !state.put(line) {
            state.lost += 1;
            return;
        }
        if state.lost > 0 {
            let report = report(state.lost);
            if state.put(&report) {
                state.lost = 0;
            }
        }
        let ends_pause = is_urgent && !mem::replace(&mut state.urgent, true);
        let wake = mem::take(&mut state.idle) || ends_pause || (before < ENOUGH && state.lines.len() >= ENOUGH);
        drop(state);
        if wake {
            self.queue.changed.notify_all();
        }
    }
}

impl Handle {
    /// Writes all records so far and ends the log. Waits at most for `limit`; returns whether that was enough, or the
    /// log had ended before.
    pub fn finish(&self, limit: Duration) -> bool {
        let mut state = self.queue.lock();
        if mem::replace(&mut state.ended, true) {
            return true;
        }
        self.queue.changed.notify_all();
        let waited = self.queue.changed.wait_timeout_while(state, limit, |state| !state.finished);
        waited.unwrap_or_else(PoisonError::into_inner).0.finished
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.finish(LAST_FLUSH);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::mpsc::{Receiver, Sender as Opener, channel},
    };

    use super::*;

    const LONG: Duration = Duration::from_secs(10);

    /// Announces each batch, and accepts it after the gate was opened.
    struct Gated {
        batches: Arc<Mutex<Vec<String>>>,
        arrived: Opener<()>,
        gate: Receiver<()>,
    }

    impl Write for Gated {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Batches after the end of the test do not matter: the gate is open, and the receiver is gone.
            let _ = self.arrived.send(());
            let _ = self.gate.recv();
            self.batches.lock().unwrap().push(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Broken;

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }

    /// A log whose writer waits at the gate with its first record.
    struct StalledLog {
        sender: Sender,
        handle: Handle,
        batches: Arc<Mutex<Vec<String>>>,
        arrivals: Receiver<()>,
        open: Opener<()>,
    }

    impl StalledLog {
        fn start() -> Self {
            let batches = Arc::new(Mutex::new(Vec::new()));
            let (arrived, arrivals) = channel();
            let (open, gate) = channel();
            let (sender, handle) = start(Gated { batches: batches.clone(), arrived, gate });
            let log = Self { sender, handle, batches, arrivals, open };
            log.send("at the gate\n");
            log.arrivals.recv().unwrap();
            log
        }

        fn send(&self, line: &str) {
            self.sender.send(line, false, |lost| format!("lost {lost}\n"));
        }

        fn waiting(&self) -> usize {
            let state = self.sender.queue.lock();
            state.taken + state.lines.len()
        }

        /// Lets the first record and all that wait through, in two batches.
        fn drain(&self) {
            self.open.send(()).unwrap();
            self.arrivals.recv().unwrap();
            self.open.send(()).unwrap();
            while self.waiting() > 0 {
                thread::yield_now();
            }
        }

        /// Lets everything through and ends the log. Returns the batches.
        fn finish(self) -> Vec<String> {
            drop(self.open);
            assert!(self.handle.finish(LONG));
            mem::take(&mut *self.batches.lock().unwrap())
        }
    }

    /// spec 70 §10
    #[test]
    fn log_reader_that_stalls_costs_records_but_no_time_or_memory_and_is_reported() {
        let log = StalledLog::start();

        let long = "x".repeat(QUEUE / 8);
        for _ in 0..20 {
            log.send(&long);
        }
        assert_eq!(log.sender.queue.lock().lost, 13);
        assert!(log.waiting() <= QUEUE);
        log.drain();
        log.send("late\n");

        let batches = log.finish();
        assert_eq!(batches[1].len(), 7 * long.len());
        assert_eq!(batches[2..], ["late\nlost 13\n"]);
    }

    /// spec 70 §10
    #[test]
    fn log_record_larger_than_the_queue_is_dropped_and_reported() {
        let log = StalledLog::start();

        log.send(&"x".repeat(QUEUE + 1));
        log.send("after\n");

        assert_eq!(log.finish(), ["at the gate\n", "after\nlost 1\n"]);
    }

    /// spec 70 §10
    #[test]
    fn log_report_of_lost_records_is_no_record_and_repeated_until_it_finds_room() {
        let log = StalledLog::start();

        log.send(&"x".repeat(QUEUE));
        let free = QUEUE - log.waiting();
        log.sender.queue.lock().put(&"x".repeat(free - "fits\n".len()));
        log.send("fits\n");
        assert_eq!(log.waiting(), QUEUE, "the report does not fit");
        log.drain();
        log.send("late\n");

        let batches = log.finish();
        assert!(batches[1].ends_with("xfits\n"));
        assert_eq!(batches[2..], ["late\nlost 1\n"]);
    }

    #[test]
    fn log_records_that_come_during_a_write_are_written_together() {
        let log = StalledLog::start();

        for line in ["a\n", "b\n", "c\n"] {
            log.send(line);
        }

        assert_eq!(log.finish(), ["at the gate\n", "a\nb\nc\n"]);
    }

    /// Accepts a number of bytes, then refuses one write, then accepts everything.
    struct Refusing {
        room: usize,
        accepted: Arc<Mutex<String>>,
    }

    impl Write for Refusing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.room == 0 {
                self.room = usize::MAX;
                return Err(ErrorKind::WouldBlock.into());
            }
            let count = bytes.len().min(self.room);
            self.room -= count;
            self.accepted.lock().unwrap().push_str(std::str::from_utf8(&bytes[..count]).unwrap());
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn log_records_that_the_stream_refuses_are_counted_and_spoil_no_other() {
        let accepted = Arc::new(Mutex::new(String::new()));
        let (sender, handle) = start(Refusing { room: 2, accepted: accepted.clone() });
        let report = |lost| format!("lost {lost}\n");

        sender.send("first\n", false, report);
        while sender.queue.lock().lost == 0 {
            thread::yield_now();
        }
        sender.send("second\n", true, report);

        assert!(handle.finish(LONG));
        assert_eq!(*accepted.lock().unwrap(), "fi\nsecond\nlost 1\n");
    }

    #[test]
    fn log_record_that_is_urgent_ends_the_pause() {
        let log = StalledLog::start();
        log.send("waits\n");
        log.sender.send("urgent\n", true, |_| String::new());
        log.open.send(()).unwrap();

        log.arrivals.recv().unwrap(); // although nobody ends the log
        assert!(!log.sender.queue.lock().urgent);

        assert_eq!(log.finish(), ["at the gate\n", "waits\nurgent\n"]);
    }

    #[test]
    fn log_end_does_not_wait_for_a_stalled_reader() {
        let log = StalledLog::start();

        assert!(!log.handle.finish(Duration::from_millis(1)));
        assert!(log.handle.finish(LONG), "once is enough");
    }

    #[test]
    fn log_survives_a_broken_stream() {
        let (sender, handle) = start(Broken);

        sender.send("a\n", false, |_| String::new());

        assert!(handle.finish(LONG));
    }

    #[test]
    fn log_end_writes_everything_sent_before() {
        let log = StalledLog::start();
        log.send("a\n");
        let StalledLog { handle, batches, open, .. } = log;

        drop(open);
        drop(handle);

        assert_eq!(*batches.lock().unwrap(), ["at the gate\n", "a\n"]);
    }
}
