//! A thread and a bounded queue before the stream, by `tracing-appender`.
//!
//! Whoever logs never waits for the reader of stderr: when the queue is full, records are dropped and counted, and the
//! count is logged with the next record that finds room. A stream that fails is left alone: there is nobody to tell.

use std::{
    fmt,
    io::Write,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};

/// A burst of a start with thousands of objects fits; at some 300 bytes each, 1 MiB.
const QUEUE: usize = 4096;

/// How long the end of the process waits for a stream that takes nothing.
const LAST_FLUSH: Duration = Duration::from_millis(500);

/// Puts lines into the queue.
pub(super) struct Sender {
    writer: NonBlocking,
    dropped: ErrorCounter,
    /// How many of the dropped ones were told of.
    told: AtomicUsize,
}

/// Keeps the writer going; dropping it writes what waits, for at most half a second. `std::process::exit` drops nothing:
/// call [`Handle::finish`] before.
#[must_use = "dropping it ends the log"]
pub struct Handle {
    guard: Mutex<Option<WorkerGuard>>,
}

/// Starts the thread.
pub(super) fn start(stream: impl Write + Send + 'static) -> (Sender, Handle) {
    let builder = NonBlockingBuilder::default().buffered_lines_limit(QUEUE).lossy(true).thread_name("log");
    let (writer, guard) = builder.finish(stream);
    let sender = Sender { dropped: writer.error_counter(), writer, told: AtomicUsize::new(0) };
    (sender, Handle { guard: Mutex::new(Some(guard)) })
}

// === impl Sender ===

impl Sender {
    /// Sends a line, and, if it found room, what `tell` makes of the number of those before it that did not.
    pub(super) fn send(&self, line: &str, tell: impl FnOnce(usize) -> String) {
        let before = self.dropped.dropped_lines();
        self.put(line);
        let dropped = self.dropped.dropped_lines();
        if dropped != before || dropped == self.told.load(Ordering::Relaxed) {
            return;
        }
        let lost = dropped.saturating_sub(self.told.swap(dropped, Ordering::Relaxed));
        self.put(&tell(lost));
        if self.dropped.dropped_lines() != dropped {
            self.told.fetch_sub(lost, Ordering::Relaxed); // to be told again
        }
    }

    fn put(&self, line: &str) {
        // It cannot fail: a full queue is counted, and a queue that nobody reads has nobody to tell.
        let _ = self.writer.clone().write(line.as_bytes());
    }
}

// === impl Handle ===

impl Handle {
    /// Writes all records so far and ends the log; waits at most for `limit`, and answers whether that was enough.
    pub fn finish(&self, limit: Duration) -> bool {
        let Some(guard) = self.guard.lock().unwrap_or_else(PoisonError::into_inner).take() else { return true };
        let (done, finished) = mpsc::channel();
        // Of its own, because the guard writes to the standard output when its thread takes nothing any more.
        let ending = thread::Builder::new().name("log-end".to_owned()).spawn(move || {
            drop(guard);
            done.send(()).ok();
        });
        ending.is_ok() && finished.recv_timeout(limit).is_ok()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.finish(LAST_FLUSH);
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handle")
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{
            Arc,
            mpsc::{Receiver, Sender as Opener, channel},
        },
    };

    use super::*;

    const LONG: Duration = Duration::from_secs(10);

    /// Tells when a line comes, and takes it after the gate was opened.
    struct Gated {
        lines: Arc<Mutex<Vec<String>>>,
        arrived: Opener<()>,
        gate: Receiver<()>,
    }

    impl Write for Gated {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Lines that come after the test has ended are nobody's business: nobody listens, and the gate is open.
            let _ = self.arrived.send(());
            let _ = self.gate.recv();
            self.lines.lock().unwrap().push(String::from_utf8_lossy(bytes).into_owned());
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

    #[test]
    fn a_reader_that_stalls_costs_records_and_not_time_and_is_told() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (arrived, arrivals) = channel();
        let (open, gate) = channel();
        let (sender, handle) = start(Gated { lines: lines.clone(), arrived, gate });
        let send = |line: &str| sender.send(line, |lost| format!("lost {lost}"));
        send("at the gate");
        arrivals.recv().unwrap();

        for number in 0..QUEUE + 10 {
            send(&number.to_string());
        }
        assert_eq!(sender.dropped.dropped_lines(), 10);
        drop(open);
        arrivals.iter().take(QUEUE).for_each(drop);
        send("late");

        assert!(handle.finish(LONG));
        let lines = lines.lock().unwrap();
        assert_eq!(lines.len(), QUEUE + 3);
        assert_eq!(lines[QUEUE..], [(QUEUE - 1).to_string(), "late".to_owned(), "lost 10".to_owned()]);
    }

    #[test]
    fn the_end_does_not_wait_for_a_reader_that_takes_nothing() {
        let (arrived, arrivals) = channel();
        let (_closed, gate) = channel();
        let (sender, handle) = start(Gated { lines: Arc::default(), arrived, gate });
        sender.send("at the gate", |_| String::new());
        arrivals.recv().unwrap();

        assert!(!handle.finish(Duration::from_millis(1)));
        assert!(handle.finish(LONG), "once is enough");
    }

    #[test]
    fn a_broken_stream_is_survived() {
        let (sender, handle) = start(Broken);

        sender.send("a\n", |_| String::new());

        assert!(handle.finish(LONG));
    }

    #[test]
    fn what_was_sent_is_written_at_the_end() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (arrived, _) = channel();
        let (open, gate) = channel();
        drop(open);
        let (sender, handle) = start(Gated { lines: lines.clone(), arrived, gate });

        sender.send("a", |_| String::new());
        drop(sender);
        drop(handle);

        assert_eq!(*lines.lock().unwrap(), ["a"]);
    }
}
