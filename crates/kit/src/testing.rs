//! For tests: a universe on virtual time, which fails if actors are left running. Everything in a universe runs on one
//! arbiter with a paused clock: a test that spans hours takes milliseconds, and two runs with the same seed are equal.
//! Call it from a plain `#[test]`.

use std::{future::Future, rc::Rc, time::Duration};

use actix::System;
use jiff::Timestamp;

use super::{Activity, Clock, Cpu, Env, Fatal, Random, StatusRegistry, Unobserved, json};

const BEGIN: i64 = 1_893_456_000; // start of virtual time: 2030-01-01 00:00:00 UTC, in Unix seconds

const SYNC_TIMEOUT: Duration = Duration::from_secs(120); // the default of `cacheSyncTimeout` (spec 70 §3)

/// The argument of a test.
#[derive(Clone)]
pub struct Universe {
    /// The environment for the program under test.
    pub env: Env,
}

/// Runs `test` in its own universe, on a paused clock. Panics if the test does, or if it leaves actors running.
pub fn universe<F: Future>(seed: u64, test: impl FnOnce(Universe) -> F) -> F::Output {
    // No I/O driver: a socket opened by accident panics instead of breaking the clock.
    let paused = || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    universe_on(
        || paused().expect("a runtime without an I/O driver asks the system for nothing that can fail"),
        seed,
        test,
    )
}

/// As `universe`, on a runtime of the caller: current-thread, paused clock, no I/O driver. For tests of other crates.
pub fn universe_on<F: Future>(
    runtime: impl FnOnce() -> tokio::runtime::Runtime,
    seed: u64,
    test: impl FnOnce(Universe) -> F,
) -> F::Output {
    let system = System::with_tokio_rt(runtime);
    system.block_on(async move {
        let start = Timestamp::from_second(BEGIN).expect("2030 is within the range of timestamps");
        let env = Env {
            clock: Clock::starting_at(start),
            random: Random::seeded(seed),
            status_registry: StatusRegistry::default(),
            cpu: Cpu::inline(),
            observers: Rc::new(Unobserved),
            fatal: Fatal::default(),
            sync_timeout: SYNC_TIMEOUT,
        };
        let result = test(Universe { env: env.clone() }).await;
        settle().await;
        let left: Vec<_> =
            env.status_registry.snapshot().into_iter().filter(|actor| actor.activity != Activity::Stopped).collect();
        assert!(left.is_empty(), "actors were left running: {left:#?}");
        result
    })
}

/// Runs `test` on a thread with a large stack ([`json::STACK`]); the test harness has 2 MiB. Panics if the test does.
pub fn on_a_large_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(json::STACK).spawn(test);
    if let Err(panic) = thread.expect("there is room for a stack").join() {
        std::panic::resume_unwind(panic);
    }
}

/// Runs everything that is ready, without letting time pass.
pub async fn settle() {
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}

/// Waits until `condition` holds, and checks it each 10 ms. Panics if it does not hold within `limit` of virtual time.
pub async fn eventually(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    let end = tokio::time::Instant::now() + limit;
    while !condition() {
        assert!(tokio::time::Instant::now() < end, "not within {limit:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
