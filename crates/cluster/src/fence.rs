//! The fence: whether this process may still write (contract rule 9, fault 16). One fence per process: the leader's
//! renewals keep it open, shutdown shuts it for good. Every request that is not a read passes it right before it is
//! sent. It counts the writes in flight: the lease may only be released when none of them can take effect any more.

use std::{cell::RefCell, rc::Rc, time::Duration};

use tokio::{sync::Notify, time::Instant};

use super::ApiError;

const NOT_LEADER: &str = "this replica does not hold the leader election lease";
const NOT_RENEWED: &str = "the leader election lease was not renewed in time";

/// A write without an answer (time-out, broken connection, dropped reconcile) counts as in flight this much longer: the
/// server gives up a request whose client is gone, and by then what it had sent to its database is decided.
const OUTCOME_UNKNOWN_FOR: Duration = Duration::from_secs(5);

/// The process's fence; cheap to clone.
#[derive(Clone)]
pub struct Fence(Rc<Inner>);

struct Inner {
    state: RefCell<FenceState>,
    changed: Notify,
}

struct FenceState {
    opening: Opening,
    in_flight: usize,
    unconfirmed_until: Option<Instant>, // until when a write of unknown outcome may still take effect
}

enum Opening {
    /// No leader election.
    Open,
    /// Open while the last renewal is younger than `limit`.
    Leased { limit: Duration, renewed_at: Option<Instant> },
    /// For good.
    Shut(&'static str),
}

/// One write in flight. Dropped without [`WriteGuard::confirmed`], its outcome counts as unknown.
pub struct WriteGuard {
    fence: Fence,
    confirmed: bool,
}

impl Fence {
    /// Creates a fence that is open until it is shut, for processes without leader election.
    pub fn open() -> Self {
        Self::new(Opening::Open)
    }

    /// Creates a fence that opens with the first renewal, and is closed while the last one is `renew_deadline` old.
    pub fn leased(renew_deadline: Duration) -> Self {
        Self::new(Opening::Leased { limit: renew_deadline, renewed_at: None })
    }

    fn new(opening: Opening) -> Self {
        let state = RefCell::new(FenceState { opening, in_flight: 0, unconfirmed_until: None });
        Self(Rc::new(Inner { state, changed: Notify::new() }))
    }

    /// Records that the lease was acquired or renewed by a request *sent* at `at`. No effect once shut.
    pub fn renewed(&self, at: Instant) {
        if let Opening::Leased { renewed_at, .. } = &mut self.0.state.borrow_mut().opening {
            *renewed_at = Some(at);
        }
    }

    /// Shuts it for good; `why` is the error text of later writes.
    pub fn shut(&self, why: &'static str) {
        self.0.state.borrow_mut().opening = Opening::Shut(why);
    }

    /// Fails unless a write may be sent now.
    pub fn check(&self) -> Result<(), ApiError> {
        match &self.0.state.borrow().opening {
            Opening::Open => Ok(()),
            Opening::Leased { renewed_at: None, .. } => Err(ApiError::Fenced(NOT_LEADER)),
            Opening::Leased { limit, renewed_at: Some(at) } if at.elapsed() >= *limit => {
                Err(ApiError::Fenced(NOT_RENEWED))
            }
            Opening::Leased { .. } => Ok(()),
            Opening::Shut(why) => Err(ApiError::Fenced(why)),
        }
    }

    /// As `check`, and counts a write that is sent now.
    pub fn enter(&self) -> Result<WriteGuard, ApiError> {
        self.check()?;
        self.0.state.borrow_mut().in_flight += 1;
        Ok(WriteGuard { fence: self.clone(), confirmed: false })
    }

    /// Number of writes without an answer yet.
    pub fn in_flight(&self) -> usize {
        self.0.state.borrow().in_flight
    }

    /// Waits until no write is in flight and none of unknown outcome can take effect any more. Shut the fence first.
    pub async fn quiet(&self) {
        loop {
            let changed = self.0.changed.notified();
            let (in_flight, unconfirmed) = {
                let state = self.0.state.borrow();
                (state.in_flight, state.unconfirmed_until.filter(|until| *until > Instant::now()))
            };
            match (in_flight, unconfirmed) {
                (0, None) => return,
                (0, Some(until)) => tokio::time::sleep_until(until).await,
                _ => changed.await,
            }
        }
    }
}

impl std::fmt::Debug for Fence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fence").field("open", &self.check().is_ok()).field("in_flight", &self.in_flight()).finish()
    }
}

impl WriteGuard {
    /// The outcome is known: the server answered, or the request was not sent.
    pub fn confirmed(mut self) {
        self.confirmed = true;
    }
}

impl Drop for WriteGuard {
    fn drop(&mut self) {
        let mut state = self.fence.0.state.borrow_mut();
        state.in_flight -= 1;
        if !self.confirmed {
            state.unconfirmed_until = Some(Instant::now() + OUTCOME_UNKNOWN_FOR);
        }
        drop(state);
        self.fence.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, timeout};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn fence_is_open_while_the_last_renewal_is_young_enough() {
        let fence = Fence::leased(LIMIT);

        assert_eq!(fence.check(), Err(ApiError::Fenced(NOT_LEADER)));

        fence.renewed(Instant::now());
        advance(LIMIT - Duration::from_millis(1)).await;
        assert_eq!(fence.check(), Ok(()));

        advance(Duration::from_millis(1)).await;
        assert_eq!(fence.check(), Err(ApiError::Fenced(NOT_RENEWED)));

        fence.renewed(Instant::now());
        assert_eq!(fence.check(), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn fence_stays_shut_after_a_renewal() {
        let fence = Fence::leased(LIMIT);
        fence.shut("shutting down");

        fence.renewed(Instant::now());

        assert_eq!(fence.check().unwrap_err().to_string(), "not sent: shutting down");
        assert!(fence.enter().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn fence_is_quiet_when_the_last_write_is_answered() {
        let fence = Fence::open();
        let (first, second) = (fence.enter().unwrap(), fence.enter().unwrap());

        assert!(timeout(LIMIT, fence.quiet()).await.is_err());
        first.confirmed();
        let quiet = async {
            fence.quiet().await;
            Instant::now()
        };
        let answer = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            second.confirmed();
            Instant::now()
        };

        let (quiet_at, answered_at) = tokio::join!(quiet, answer);
        assert_eq!(quiet_at, answered_at);
    }

    #[tokio::test(start_paused = true)]
    async fn fence_is_not_quiet_for_a_while_after_a_write_of_unknown_outcome() {
        let fence = Fence::open();
        drop(fence.enter().unwrap());

        let begin = Instant::now();
        fence.quiet().await;

        assert_eq!(begin.elapsed(), OUTCOME_UNKNOWN_FOR);
    }
}
