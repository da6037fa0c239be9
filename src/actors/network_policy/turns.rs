//! Work in pieces, so that what is proportional to what people make never holds the thread for long.

use std::future::Future;

/// Pieces between two pauses. One takes some 20 µs.
const AT_ONCE: usize = 64;

/// Counts pieces of work, and pauses after so many.
#[derive(Debug)]
pub struct Turns<P> {
    pause: P,
    done: usize,
}

impl<F: Future<Output = ()>, P: Fn() -> F> Turns<P> {
    /// Nothing is done yet.
    pub fn new(pause: P) -> Self {
        Self { pause, done: 0 }
    }

    /// A piece is done.
    pub async fn piece(&mut self) {
        self.done += 1;
        if self.done.is_multiple_of(AT_ONCE) {
            (self.pause)().await;
        }
    }
}
