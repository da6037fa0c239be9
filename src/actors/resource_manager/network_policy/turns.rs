//! Cuts work that grows with user input into pieces, so that it never blocks the thread for long.

use std::future::Future;

/// Pieces between two pauses. A piece takes about 20 µs.
const AT_ONCE: usize = 64;

/// Counts pieces of work and pauses in between.
#[derive(Debug)]
pub struct Turns<P> {
    pause: P,
    done: usize,
}

impl<F: Future<Output = ()>, P: Fn() -> F> Turns<P> {
    /// Starts with no piece done.
    pub fn new(pause: P) -> Self {
        Self { pause, done: 0 }
    }

    /// Records a finished piece; pauses if it is time.
    pub async fn piece(&mut self) {
        self.done += 1;
        if self.done.is_multiple_of(AT_ONCE) {
            (self.pause)().await;
        }
    }
}
