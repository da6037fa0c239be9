//! A thread and a bounded queue before the stream. Log statements never wait for the reader of stderr: when the queue
//! is full, records are dropped and counted, and the next record that finds room also reports the count. The bound is
//! in bytes, because records have any length. A failing stream is ignored: there is nowhere to report it.

use std::{
    io::Write,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

/// Bytes of waiting records. A burst at a start with thousands of objects takes 300 bytes for each, and fits.
const QUEUE: usize = 4 << 20;

const BESIDES: usize = 64;

/// How long the end of the process waits for a stream that accepts nothing.
const LAST_FLUSH: Duration = Duration::from_millis(500);

pub(super) struct Sender {
    queue: mpsc::Sender<LogEntry>,
    waiting: Arc<AtomicUsize>, // bytes that wait, including the record that is being written
    dropped: AtomicUsize,
    reported: AtomicUsize,
}

enum LogEntry {
    Line(Box<str>),
    End(mpsc::Sender<()>),
}

/// Keeps the writer running. Dropping it writes the waiting records, for at most half a second. `std::process::exit`
/// drops nothing: call [`Handle::finish`] before.
#[must_use = "dropping it ends the log"]
pub struct Handle {
    queue: Mutex<Option<mpsc::Sender<LogEntry>>>,
}

pub(super) fn start(stream: impl Write + Send + 'static) -> (Sender, Handle) {
    let (queue, entries) = mpsc::channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    let written = waiting.clone();
    // Without a thread the queue has no reader, and every record is dropped.
    thread::Builder::new().name("log".to_owned()).spawn(move || write(stream, &entries, &written)).ok();
    let handle = Handle { queue: Mutex::new(Some(queue.clone())) };
    (Sender { queue, waiting, dropped: AtomicUsize::new(0), reported: AtomicUsize::new(0) }, handle)
}

fn write(mut stream: impl Write, entries: &mpsc::Receiver<LogEntry>, waiting: &AtomicUsize) {
    while let Ok(entry) = entries.recv() {
        match entry {
            LogEntry::Line(line) => {
                stream.write_all(line.as_bytes()).and_then(|()| stream.flush()).ok();
                waiting.fetch_sub(cost(&line), Ordering::Relaxed);
            }
            LogEntry::End(done) => {
                done.send(()).ok();
                return;
            }
        }
    }
}

fn cost(line: &str) -> usize {
    line.len() + BESIDES
}

impl Sender {
    /// Sends a line. If it found room, also sends what `report` makes of the number of earlier lines that did not.
    pub(super) fn send(&self, line: &str, report: impl FnOnce(usize) -> String) {
        if !self.put(line) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let dropped = self.dropped.load(Ordering::Relaxed);
        let lost = dropped.saturating_sub(self.reported.swap(dropped, Ordering::Relaxed));
        if lost > 0 && !self.put(&report(lost)) {
            self.reported.fetch_sub(lost, Ordering::Relaxed); // report them again
        }
    }

    fn put(&self, line: &str) -> bool {
        let cost = cost(line);
        let room = |waiting: usize| waiting.checked_add(cost).filter(|all| *all <= QUEUE);
        let found = self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_ok();
        if found && self.queue.send(LogEntry::Line(line.into())).is_ok() {
            return true;
        }
        if found {
            self.waiting.fetch_sub(cost, Ordering::Relaxed); // the log has ended
        }
        false
    }
}

impl Handle {
    /// Writes all records so far and ends the log. Waits at most for `limit`; returns whether that was enough.
    pub fn finish(&self, limit: Duration) -> bool {
        let Some(queue) = self.queue.lock().unwrap_or_else(PoisonError::into_inner).take() else { return true };
        let (done, finished) = mpsc::channel();
        queue.send(LogEntry::End(done)).is_ok() && finished.recv_timeout(limit).is_ok()
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

    /// Announces each line, and accepts it after the gate was opened.
    struct Gated {
        lines: Arc<Mutex<Vec<String>>>,
        arrived: Opener<()>,
        gate: Receiver<()>,
    }

    impl Write for Gated {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // Lines after the end of the test do not matter: the gate is open, and the receiver is gone.
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

    /// spec 70 §10
    #[test]
    fn stalled_log_reader_costs_records_but_no_time_or_memory_and_is_reported() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (arrived, arrivals) = channel();
        let (open, gate) = channel();
        let (sender, handle) = start(Gated { lines: lines.clone(), arrived, gate });
        let send = |line: &str| sender.send(line, |lost| format!("lost {lost}"));
        send("at the gate");
        arrivals.recv().unwrap();

        let long = "x".repeat(QUEUE / 8);
        for _ in 0..20 {
            send(&long);
        }
        assert_eq!(sender.dropped.load(Ordering::Relaxed), 13);
        assert!(sender.waiting.load(Ordering::Relaxed) <= QUEUE);
        drop(open);
        arrivals.iter().take(7).for_each(drop);
        while sender.waiting.load(Ordering::Relaxed) > 0 {
            thread::yield_now();
        }
        send("late");

        assert!(handle.finish(LONG));
        let lines = lines.lock().unwrap();
        assert_eq!(lines.len(), 10);
        assert_eq!(lines[8..], ["late".to_owned(), "lost 13".to_owned()]);
    }

    /// spec 70 §10
    #[test]
    fn log_record_larger_than_the_queue_is_dropped_and_reported() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (arrived, _arrivals) = channel();
        let (open, gate) = channel();
        drop(open);
        let (sender, handle) = start(Gated { lines: lines.clone(), arrived, gate });

        sender.send(&"x".repeat(QUEUE), |_| String::new());
        sender.send("after", |lost| format!("lost {lost}"));

        assert!(handle.finish(LONG));
        assert_eq!(*lines.lock().unwrap(), ["after", "lost 1"]);
    }

    /// spec 70 §10
    #[test]
    fn log_report_of_lost_records_is_no_record_and_repeated_until_it_finds_room() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let (arrived, arrivals) = channel();
        let (open, gate) = channel();
        let (sender, handle) = start(Gated { lines: lines.clone(), arrived, gate });
        let send = |line: &str| sender.send(line, |lost| format!("lost {lost}"));
        send("at the gate");
        arrivals.recv().unwrap();

        send(&"x".repeat(QUEUE));
        let free = QUEUE - sender.waiting.load(Ordering::Relaxed);
        sender.put(&"x".repeat(free - BESIDES - cost("fits")));
        send("fits");
        assert_eq!(sender.waiting.load(Ordering::Relaxed), QUEUE, "the report does not fit");
        drop(open);
        arrivals.iter().take(2).for_each(drop);
        while sender.waiting.load(Ordering::Relaxed) > 0 {
            thread::yield_now();
        }
        send("late");

        assert!(handle.finish(LONG));
        let lines = lines.lock().unwrap();
        assert_eq!(lines[2..], ["fits".to_owned(), "late".to_owned(), "lost 1".to_owned()]);
    }

    #[test]
    fn log_end_does_not_wait_for_a_stalled_reader() {
        let (arrived, arrivals) = channel();
        let (_closed, gate) = channel();
        let (sender, handle) = start(Gated { lines: Arc::default(), arrived, gate });
        sender.send("at the gate", |_| String::new());
        arrivals.recv().unwrap();

        assert!(!handle.finish(Duration::from_millis(1)));
        assert!(handle.finish(LONG), "once is enough");
    }

    #[test]
    fn log_survives_a_broken_stream() {
        let (sender, handle) = start(Broken);

        sender.send("a\n", |_| String::new());

        assert!(handle.finish(LONG));
    }

    #[test]
    fn log_end_writes_everything_sent_before() {
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
