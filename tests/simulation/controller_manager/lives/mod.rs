//! Random lives of the garden: users, two replicas and faults meet all controllers at once. No object in use is released,
//! nobody sees or loses what he must not, and at last each object is as the rules say. `SEED=17` replays a life,
//! `SEEDS=5000` tries more of them. Start at [`life::live`].
//! * `users` change the objects of the `garden`'s kinds; `seeds`, `certificates`, `small` and `projects` have users of
//!   their own
//! * `ties`: who refers to what, as the simulator's objects say; `watchman` checks each request with them
//! * `replicas`: two processes with leader election; `check`: the end

mod certificates;
mod check;
mod common;
mod life;
mod projects;
mod replicas;
mod seed_conditions;
mod seeds;
mod small;
mod ties;
mod users;
mod watchman;

use super::garden::garden_of;
use crate::random::runner;

const SEEDS: u64 = 32;

/// spec 80 §16; spec 81 A to K; spec 82 A, B; spec 83; decision 25; faults rows 1 to 8, 16, 17 and 26
#[test]
fn lives_of_the_garden_release_nothing_in_use_and_end_as_the_rules_say() {
    runner::run(SEEDS, "controller_manager::lives", |seed, diary| {
        garden_of(seed, |garden| life::live(garden, seed, diary));
    });
}
