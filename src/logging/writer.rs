//! A thread and a bounded queue before the stream.
//!
//! Whoever logs never waits for the reader of stderr: when the queue is full, records are dropped and counted, and the
//! count is logged as soon as there is room. A stream that fails is left alone: there is nobody to tell.

use std::{
    fmt,
    io::Write,
    mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

/// A burst of a start with thousands of objects fits; at some 300 bytes each, 1 MiB.
const QUEUE: usize = 4096;

/// How long the end of the process waits for a stream that takes nothing.
const LAST_FLUSH: Duration = Duration::from_millis(500);

/// Puts lines into the queue. The thread ends when it is dropped and the queue is empty.
pub(super) struct Sender {
    queue: Arc<Queue>,
}

/// Keeps the writer going; dropping it writes what waits, for at most half a second. `std::process::exit` drops nothing:
/// call [`Handle::flush`] before.
#[must_use = "dropping it ends with the last flush"]
pub struct Handle {
    queue: Arc<Queue>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    /// There are lines, or no more will come.
    work: Condvar,
    /// Everything is written.
    idle: Condvar,
}

#[derive(Default)]
struct State {
    lines: Vec<String>,
    /// The thread has lines that are not written yet.
    writing: bool,
    dropped: u64,
    closed: bool,
}

/// Starts the thread.
pub(super) fn start(stream: impl Write + Send + 'static) -> (Sender, Handle) {
    let queue = Arc::<Queue>::default();
    let for_thread = queue.clone();
    // Without a thread there are no logs: the queue fills up and `send` counts what is lost.
    let _ = thread::Builder::new().name("log".to_owned()).spawn(move || for_thread.run(stream));
    (Sender { queue: queue.clone() }, Handle { queue })
}

// === impl Queue ===

impl Queue {
    fn run(&self, mut stream: impl Write) {
        let mut batch = Vec::new();
        while let Some(lost) = self.next(&mut batch) {
            for line in batch.drain(..) {
                let _ = stream.write_all(line.as_bytes());
            }
            let _ = stream.flush();
            if lost > 0 {
                tracing::info!(records = lost, "Dropped log records because their reader is too slow");
            }
        }
    }

    /// Waits for lines and takes them all; answers how many were dropped before. None when no more will come.
    fn next(&self, batch: &mut Vec<String>) -> Option<u64> {
        let mut state = self.state();
        state.writing = false;
        if state.lines.is_empty() {
            self.idle.notify_all();
        }
        let mut state = self
            .work
            .wait_while(state, |state| state.lines.is_empty() && !state.closed)
            .unwrap_or_else(PoisonError::into_inner);
        if state.lines.is_empty() {
            return None;
        }
        mem::swap(batch, &mut state.lines);
        state.writing = true;
        Some(mem::take(&mut state.dropped))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Sender ===

impl Sender {
    pub(super) fn send(&self, line: String) {
        let mut state = self.queue.state();
        if state.lines.len() < QUEUE {
            state.lines.push(line);
            self.queue.work.notify_one();
        } else {
            state.dropped += 1;
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.queue.state().closed = true;
        self.queue.work.notify_one();
    }
}

// === impl Handle ===

impl Handle {
    /// Waits until all records so far are written, at most for `limit`; false when that was not enough.
    pub fn flush(&self, limit: Duration) -> bool {
        let unwritten = |state: &mut State| state.writing || !state.lines.is_empty();
        let waited = self.queue.idle.wait_timeout_while(self.queue.state(), limit, unwritten);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.flush(LAST_FLUSH);
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
        sync::mpsc::{Receiver, Sender as Opener, channel},
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
    fn a_reader_that_stalls_costs_records_and_not_time() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (arrived, arrivals) = channel();
        let (open, gate) = channel();
        let (sender, handle) = start(Gated { lines: lines.clone(), arrived, gate });
        sender.send("at the gate".to_owned());
        arrivals.recv().unwrap();

        for number in 0..QUEUE + 10 {
            sender.send(number.to_string());
        }
        let lost = sender.queue.state().dropped;
        let early = handle.flush(Duration::from_millis(1));
        drop(open);
        let late = handle.flush(LONG);

        assert_eq!(lost, 10);
        assert!(!early);
        assert!(late);
        let lines = lines.lock().unwrap();
        assert_eq!(lines.len(), QUEUE + 1);
        assert_eq!(lines.last(), Some(&(QUEUE - 1).to_string()));
    }

    #[test]
    fn a_broken_stream_is_survived() {
        let (sender, handle) = start(Broken);

        sender.send("a\n".to_owned());

        assert!(handle.flush(LONG));
    }

    #[test]
    fn what_was_sent_is_written_when_the_sender_is_gone() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (arrived, _) = channel();
        let (open, gate) = channel();
        drop(open);
        let (sender, handle) = start(Gated { lines: lines.clone(), arrived, gate });

        sender.send("a".to_owned());
        drop(sender);
        drop(handle);

        assert_eq!(*lines.lock().unwrap(), ["a"]);
    }
}
