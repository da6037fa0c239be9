#![expect(clippy::disallowed_types, reason = "the second subscriber is to ask for all records")]

use std::{
    io,
    sync::{Arc, LazyLock, Mutex},
};

use tracing::{Dispatch, Level, subscriber::NoSubscriber};

/// A second subscriber. While there is only one, tracing asks the subscriber of the current thread whether anybody wants
/// a record, and remembers the answer for all threads: tests without a log would turn off the records of tests with one.
static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

pub(crate) fn logged<T>(level: Level, work: impl FnOnce() -> T) -> (T, String) {
    LazyLock::force(&SECOND);
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_ansi(false).with_max_level(level).with_writer(move || writer.clone()).finish();
    let result = tracing::subscriber::with_default(subscriber, work);
    let text = log.0.lock().expect("no thread panics while writing").clone();
    (result, String::from_utf8(text).expect("text"))
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no thread panics while writing").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
