//! What a process shares besides its actors: clock, randomness, status, observers, CPU workers (contract rule 12).

use std::{rc::Rc, sync::Arc, time::Duration};

use serde::Serialize;
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
    /// Runs work that would block the arbiter.
    pub cpu: Cpu,
    /// Makes the observer of a reconciler; metrics implement it.
    pub observers: Rc<dyn Observers>,
    /// Ends the process.
    pub fatal: Fatal,
    /// How long a controller waits, from its start on, for its required caches (spec 70 §7.1, `cacheSyncTimeout`).
    pub sync_timeout: Duration,
}

/// Makes observers: one per reconciler, when its supervisor starts.
pub trait Observers {
    /// Returns the observer of the reconciler `name` of `controller` with `permits` permits.
    fn reconciler(&self, controller: &'static str, name: &'static str, permits: usize) -> Rc<dyn ReconcilerObserver>;

    /// Sets a custom metric, or adds to its distribution or count. `label` tells figures of a name apart. Ignores unknown names.
    fn figure(&self, _name: &'static str, _label: &'static str, _value: f64) {}

    /// Sets one series of a custom gauge, by the values of its labels in the order of their declaration; `None` removes
    /// it. Ignores unknown names.
    fn figure_series(&self, _name: &'static str, _labels: &[&str], _value: Option<f64>) {}
}

/// How a reconcile ended, for metrics (spec 70 §9.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ReconcileResult {
    /// Done; the next wake starts the next one.
    Success,
    /// Failed; runs again after a back-off.
    Error,
    /// Failed, and a retry cannot mend it; the next wake starts the next one.
    TerminalError,
    /// Runs again, after a back-off or at once.
    Requeue,
    /// Runs again, after a time or an event it waits for.
    RequeueAfter,
}

/// Observes a reconciler.
pub trait ReconcilerObserver {
    /// Whether the required caches are synced: at the start, and after each change.
    fn ready(&self, is_ready: bool);
    /// Number of keys that wait with this priority.
    fn depth(&self, priority: Priority, waiting: usize);
    /// A key was queued.
    fn added(&self);
    /// A key was queued again by a back-off.
    fn retried(&self);
    /// A key waited this long for its permit.
    fn waited(&self, time: Duration);
    /// A reconcile begins. Returns its observer.
    fn started(&self) -> Box<dyn ReconcileObserver>;
    /// A timer ended and its idle check found nothing to do, so there was no reconcile.
    fn idle_checked(&self);
    /// A reconcile panicked.
    fn panicked(&self);
    /// A reconcile was dropped after its deadline.
    fn timed_out(&self);
}

/// Observes one reconcile. If it is dropped before `finished`, the end of the controller cut the reconcile off.
pub trait ReconcileObserver {
    /// The reconcile ended.
    fn finished(self: Box<Self>, result: ReconcileResult, took: Duration);
}

/// Observers that do nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

/// Runs CPU work: short jobs in place, long ones on the blocking pool, so that no arbiter is blocked.
#[derive(Clone, Debug)]
pub struct Cpu {
    pool: Option<Arc<Semaphore>>,
}

/// Inputs up to this size are processed in place: 64 KiB of YAML take less than 10 ms.
const INLINE_BYTES: usize = 64 * 1024;

/// A CPU job panicked. The text does not contain the job's input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a CPU job panicked")]
pub struct JobPanicked;

impl Cpu {
    /// Runs at most `workers` long jobs at once, on the blocking pool.
    pub fn pool(workers: usize) -> Self {
        Self { pool: Some(Arc::new(Semaphore::new(workers.max(1)))) }
    }

    /// Runs every job in place, on the arbiter: jobs end in the order they began, which tests need.
    pub fn inline() -> Self {
        Self { pool: None }
    }

    /// Runs `job` on an input of `bytes` bytes. A panic of the job is [`JobPanicked`]; the caller's reconcile goes on.
    pub async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JobPanicked> {
        let job = std::panic::AssertUnwindSafe(job);
        let caught = move || std::panic::catch_unwind(job).map_err(|_| JobPanicked);
        match &self.pool {
            Some(pool) if bytes > INLINE_BYTES => {
                // The semaphore is never closed, so this cannot fail; running without a permit would be correct, too.
                let permit = pool.clone().acquire_owned().await.ok();
                // The job owns the permit, because it runs on when its caller is dropped.
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
    fn reconciler(&self, _: &'static str, _: &'static str, _: usize) -> Rc<dyn ReconcilerObserver> {
        Rc::new(Self)
    }
}

impl ReconcilerObserver for Unobserved {
    fn ready(&self, _: bool) {}
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
