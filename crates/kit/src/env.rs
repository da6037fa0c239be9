//! What a process is made of besides its actors: clock, randomness, census, observers, CPU workers (contract rule 12).

use std::{rc::Rc, sync::Arc, time::Duration};

use tokio::sync::Semaphore;

use super::{Clock, Fatal, Priority, Random, StatusRegistry};

/// The environment of all actors of one process. Cheap to clone; passed in, never global.
#[derive(Clone)]
pub struct Env {
    /// Wall and monotonic time.
    pub clock: Clock,
    /// Jitter and generated names.
    pub random: Random,
    /// What the dashboard shows.
    pub status_registry: StatusRegistry,
    /// Work that would hold up the arbiter.
    pub cpu: Cpu,
    /// Makes the observer of a duty; metrics implement it.
    pub observers: Rc<dyn Observers>,
    /// Ends the process.
    pub fatal: Fatal,
    /// How long a controller waits, from its start on, for the stores it needs (spec 70 §7.1, `cacheSyncTimeout`).
    pub sync_timeout: Duration,
}

/// Makes observers. One per duty, when its supervisor starts.
pub trait Observers {
    /// The observer of the duty `name` with `permits` permits.
    fn reconciler(&self, name: &'static str, permits: usize) -> Rc<dyn ReconcilerObserver>;

    /// A figure of a controller's own has this value now; where the process keeps a distribution under the name, the value is
    /// added to it. The process knows figures by their name; one that has none of this name looks away. `label` tells
    /// figures of one name apart.
    fn figure(&self, _name: &'static str, _label: &'static str, _value: f64) {}
}

/// How a pass ended, as metrics see it (spec 70 §9.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReconcileResult {
    /// Done; the next one comes by a wake.
    Success,
    /// Failed; again after a back-off.
    Error,
    /// Failed, and trying again cannot mend it; the next one comes by a wake.
    TerminalError,
    /// Again, after a back-off or at once.
    Requeue,
    /// Again, after a time or an event it waits for.
    RequeueAfter,
}

/// Sees what happens to a duty.
pub trait ReconcilerObserver {
    /// Keys that wait in a lane.
    fn depth(&self, priority: Priority, waiting: usize);
    /// A key was queued.
    fn added(&self);
    /// A key was queued again by a back-off.
    fn retried(&self);
    /// A key waited this long for its permit.
    fn waited(&self, time: Duration);
    /// A pass begins. What is returned is that pass.
    fn started(&self) -> Box<dyn ReconcileObserver>;
    /// A timer ended, and a look found nothing to do: there was no pass.
    fn idle_checked(&self);
    /// A pass panicked.
    fn panicked(&self);
    /// A pass was dropped after its deadline.
    fn timed_out(&self);
}

/// Sees one pass. Dropped without [`PassObserver::finished`], the pass was cut off by the end of its controller.
pub trait ReconcileObserver {
    /// The pass ended.
    fn finished(self: Box<Self>, result: ReconcileResult, took: Duration);
}

/// Observers that look away.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

/// Runs CPU work: short pieces at once, long ones on the blocking pool, so that no arbiter stands still.
#[derive(Clone, Debug)]
pub struct Cpu {
    pool: Option<Arc<Semaphore>>,
}

/// Inputs up to this size are worked on at once: 64 KiB of YAML take less than 10 ms.
const INLINE_BYTES: usize = 64 * 1024;

/// A CPU job panicked. Its text does not hold the job's input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a CPU job panicked")]
pub struct JobPanicked;

impl Cpu {
    /// At most `workers` long jobs at once, on the blocking pool.
    pub fn pool(workers: usize) -> Self {
        Self { pool: Some(Arc::new(Semaphore::new(workers.max(1)))) }
    }

    /// Every job at once, on the arbiter: jobs then end in the order they began, as tests need it.
    pub fn inline() -> Self {
        Self { pool: None }
    }

    /// Runs `job` on an input of `bytes` bytes.
    ///
    /// # Errors
    /// [`JobPanicked`] if the job panicked; the caller's pass goes on.
    pub async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JobPanicked> {
        let job = std::panic::AssertUnwindSafe(job);
        let caught = move || std::panic::catch_unwind(job).map_err(|_| JobPanicked);
        match &self.pool {
            Some(pool) if bytes > INLINE_BYTES => {
                // The semaphore is never closed, so an error cannot happen; running without a permit would be right too.
                let permit = pool.clone().acquire_owned().await.ok();
                // The permit goes with the job, which runs on when its caller is dropped.
                let job = move || {
                    let _permit = permit;
                    caught()
                };
                tokio::task::spawn_blocking(job).await.unwrap_or(Err(JobPanicked))
            }
            Some(_) | None => caught(),
        }
    }
}

impl Observers for Unobserved {
    fn reconciler(&self, _: &'static str, _: usize) -> Rc<dyn ReconcilerObserver> {
        Rc::new(Self)
    }
}

impl ReconcilerObserver for Unobserved {
    fn depth(&self, _: Priority, _: usize) {}
    fn added(&self) {}
    fn retried(&self) {}
    fn waited(&self, _: Duration) {}
    fn started(&self) -> Box<dyn ReconcileObserver> {
        Box::new(Self)
    }
    fn idle_checked(&self) {}
    fn panicked(&self) {}
    fn timed_out(&self) {}
}

impl ReconcileObserver for Unobserved {
    fn finished(self: Box<Self>, _: ReconcileResult, _: Duration) {}
}
