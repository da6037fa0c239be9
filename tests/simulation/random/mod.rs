//! Random lives of several ManagedResources: the final state is what the last manifests say, and no forbidden action
//! happens at any moment. A seed is one life, in its own world and thread, and always the same. `SEEDS=20000 cargo test
//! --test simulation random` tries more of them, `SEED=17` replays one. `items` are the contents of ManagedResources,
//! `life` the changes to them, `users` interfering users, `certificates` and `beside` (static `tokens`, `access` to
//! tokens, `collectables`) everything else in the cluster, `disturbances` the random faults. `watchman` checks each
//! request, `check` the end. Start at [`life::live`].

mod access;
mod beside;
mod certificates;
mod check;
mod collectables;
mod disturbances;
mod items;
mod life;
mod tokens;
mod users;
mod watchman;

use std::{
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use life::Steps;

use crate::world::world;

const SEEDS: u64 = 1_000;
/// A run ends after this many failed lives.
const ENOUGH: usize = 5;

/// faults rows 1 to 8, 15, 16, 17, 21, 22 and 23
#[test]
fn random_lives_end_in_the_state_of_the_last_manifests() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (first, end) = match number("SEED") {
        Some(seed) => (seed, seed + 1),
        None => (0, number("SEEDS").unwrap_or(SEEDS)),
    };
    let (next, failed) = (AtomicU64::new(first), Mutex::new(Vec::new()));
    let failed_so_far = || failed.lock().unwrap_or_else(PoisonError::into_inner).len();
    std::thread::scope(|threads| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            threads.spawn(|| {
                while failed_so_far() < ENOUGH {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        break;
                    }
                    if !goes_well(seed) {
                        failed.lock().unwrap_or_else(PoisonError::into_inner).push(seed);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(failed.is_empty(), "seeds whose lives went wrong: {failed:?}");
}

fn goes_well(seed: u64) -> bool {
    let steps = Steps::default();
    let noted = steps.clone();
    let outcome = catch_unwind(AssertUnwindSafe(|| world(seed, |world| life::live(world, seed, noted))));
    if outcome.is_err() {
        let steps = steps.lock().unwrap_or_else(PoisonError::into_inner).join("\n");
        // Straight to stderr, because the test harness would mix the lives of all threads.
        let text = format!("seed {seed}:\n{steps}\nreplay it: SEED={seed} cargo test --test simulation random\n");
        std::io::stderr().write_all(text.as_bytes()).expect("standard error is open");
    }
    outcome.is_ok()
}
