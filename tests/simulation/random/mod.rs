//! Random lives of several ManagedResources: the final state is what the last manifests say, and no forbidden action
//! happens at any moment. A seed is one life, in its own world and thread, and always the same. `SEEDS=20000 cargo test
//! --test simulation random` tries more of them, `SEED=17` replays one. `items` are the contents of ManagedResources,
//! `life` the changes to them, `users` interfering users, `certificates` and `beside` (static `tokens`, `access` to
//! tokens, `collectables`) everything else in the cluster, `disturbances` the random faults. `watchman` checks each
//! request, `check` the end. Start at [`life::live`]. `runner` and `disturbances` serve the lives of the garden, too.

mod access;
mod beside;
mod certificates;
mod check;
mod collectables;
pub(crate) mod disturbances;
mod items;
mod life;
pub(crate) mod runner;
mod tokens;
mod users;
mod watchman;

use crate::world::world;

const SEEDS: u64 = 1_000;

/// faults rows 1 to 8, 15, 16, 17, 21, 22 and 23
#[test]
fn random_lives_end_in_the_state_of_the_last_manifests() {
    runner::run(SEEDS, "random", |seed, diary| world(seed, |world| life::live(world, seed, diary)));
}
