//! Runs random lives, several at once. A seed is one life, in its own world and thread, and always the same. `SEED=17`
//! replays one, `SEEDS=5000` tries more of them.

use std::{
    fmt,
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::time::Instant;

/// A run ends after this many failed lives.
const ENOUGH: usize = 5;

/// What happened in a life, for the report of a failure. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Diary {
    entries: Arc<Mutex<Vec<String>>>,
    begin: Arc<Mutex<Option<Instant>>>,
}

impl Diary {
    /// Adds an entry, with the virtual time since the first one.
    pub(crate) fn note(&self, text: impl fmt::Display) {
        let begin = *lock(&self.begin).get_or_insert_with(Instant::now);
        lock(&self.entries).push(format!("{:8.3} s  {text}", begin.elapsed().as_secs_f32()));
    }
}

/// Lives the life of each seed. `test` is the path of the test below `tests/simulation`.
pub(crate) fn run(seeds: u64, test: &str, live: impl Fn(u64, Diary) + Sync) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (first, end) = match number("SEED") {
        Some(seed) => (seed, seed + 1),
        None => (0, number("SEEDS").unwrap_or(seeds)),
    };
    let (next, failed) = (AtomicU64::new(first), Mutex::new(Vec::new()));
    std::thread::scope(|threads| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            threads.spawn(|| {
                while lock(&failed).len() < ENOUGH {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        break;
                    }
                    if !goes_well(seed, test, &live) {
                        lock(&failed).push(seed);
                    }
                }
            });
        }
    });
    let failed = lock(&failed);
    assert!(failed.is_empty(), "seeds whose lives went wrong: {failed:?}");
}

fn goes_well(seed: u64, test: &str, live: impl Fn(u64, Diary)) -> bool {
    let diary = Diary::default();
    let noted = diary.clone();
    let outcome = catch_unwind(AssertUnwindSafe(|| live(seed, noted)));
    if outcome.is_err() {
        let entries = lock(&diary.entries).join("\n");
        // Straight to stderr, because the test harness would mix the lives of all threads.
        let text = format!("seed {seed}:\n{entries}\nreplay it: SEED={seed} cargo test --test simulation {test}\n");
        std::io::stderr().write_all(text.as_bytes()).expect("standard error is open");
    }
    outcome.is_ok()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
