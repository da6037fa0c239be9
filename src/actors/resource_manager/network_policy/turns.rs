//! Cuts work that grows with user input into pieces, so that it never blocks the thread for long.

/// Pieces between two pauses. A piece takes about 20 µs.
pub(super) const AT_ONCE: usize = 64;

/// Counts pieces of work and pauses in between.
#[derive(Debug)]
pub struct Turns {
    done: usize,
    has_pauses: bool,
}

impl Turns {
    /// Lets other work of the thread run in the pauses.
    pub fn with_pauses() -> Self {
        Self { done: 0, has_pauses: true }
    }

    /// Does all work at once: nothing else waits for the thread.
    pub fn at_once() -> Self {
        Self { done: 0, has_pauses: false }
    }

    /// Records a finished piece; pauses if it is time.
    pub async fn piece(&mut self) {
        self.pieces(1).await;
    }

    /// Records that many finished pieces; pauses if it is time.
    pub async fn pieces(&mut self, finished: usize) {
        let turn = self.done / AT_ONCE;
        self.done += finished;
        if self.has_pauses && self.done / AT_ONCE > turn {
            tokio::task::yield_now().await;
        }
    }
}

/// Runs work to its end and calls `pause` at each pause.
#[cfg(test)]
pub(super) fn run<T>(work: impl Future<Output = T>, mut pause: impl FnMut()) -> T {
    let (mut work, mut context) = (std::pin::pin!(work), std::task::Context::from_waker(std::task::Waker::noop()));
    loop {
        match work.as_mut().poll(&mut context) {
            std::task::Poll::Ready(result) => return result,
            std::task::Poll::Pending => pause(),
        }
    }
}
