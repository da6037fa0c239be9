//! Reports a blocked arbiter. Controllers and watches share one thread, so code that blocks it stops all of them.
//! Probes and metrics have threads of their own and would not notice.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    time::Duration,
};

use tokio::time::Instant;

use crate::metrics::Metrics;

/// Interval of the arbiter's beats, and of the checks. Each beat wakes two threads of an idle process.
const BEAT: Duration = Duration::from_secs(1);
/// A block of this length may be reported; a block that is longer by one beat and one check always is.
const LIMIT: Duration = Duration::from_secs(1);

struct Heart {
    beats: u64,
    changed: Instant,
    still: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Nothing,
    Still,
    Again(Duration),
}

/// Starts the beats and the thread that checks them. Both end with the arbiter.
pub(super) fn start(metrics: Metrics) -> std::io::Result<()> {
    let beats = Arc::new(AtomicU64::new(0));
    let (alive, end) = mpsc::channel::<()>();
    let watched = beats.clone();
    std::thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
        let mut heart = Heart::new(Instant::now());
        while end.recv_timeout(BEAT) == Err(RecvTimeoutError::Timeout) {
            match heart.look(watched.load(Ordering::Relaxed), Instant::now()) {
                Seen::Nothing => {}
                Seen::Still => {
                    metrics.arbiter_stalled();
                    tracing::error!("The thread of the controllers is blocked");
                }
                Seen::Again(time) => {
                    tracing::info!(milliseconds = time.as_millis() as u64, "The thread of the controllers runs again");
                }
            }
        }
    })?;
    actix::spawn(async move {
        let _alive = alive;
        loop {
            beats.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(BEAT).await;
        }
    });
    Ok(())
}

impl Heart {
    fn new(now: Instant) -> Self {
        Self { beats: 0, changed: now, still: false }
    }

    fn look(&mut self, beats: u64, now: Instant) -> Seen {
        let passed = now.saturating_duration_since(self.changed);
        if beats == self.beats {
            let late = passed >= BEAT + LIMIT && !self.still;
            self.still |= late;
            return if late { Seen::Still } else { Seen::Nothing };
        }
        (self.beats, self.changed) = (beats, now);
        if std::mem::take(&mut self.still) { Seen::Again(passed) } else { Seen::Nothing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watchdog_reports_a_blocked_arbiter_once_and_its_recovery() {
        let begin = Instant::now();
        let at = |milliseconds| begin + Duration::from_millis(milliseconds);
        let mut heart = Heart::new(begin);

        let looks = [(1, 1000), (2, 2000), (2, 3000), (2, 4000), (2, 5000), (3, 6000), (4, 7000)];
        let seen: Vec<_> = looks.into_iter().map(|(beats, time)| heart.look(beats, at(time))).collect();

        let again = Seen::Again(Duration::from_secs(4));
        assert_eq!(
            seen,
            [Seen::Nothing, Seen::Nothing, Seen::Nothing, Seen::Still, Seen::Nothing, again, Seen::Nothing]
        );
    }
}
