//! The command `demo` and its options.

use std::time::Duration;

use clap::{Arg, ArgMatches, value_parser};
use process::command_line::{UsageError, bare, flag_is_set, value};

/// Largest number of bundles: that many need about 2 GiB of memory.
const MOST_BUNDLES: u64 = 20_000;
const MOST_CHANGES: f64 = 100.0; // per second

/// Options of [`Command::Demo`](super::Command::Demo).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DemoOptions {
    /// Keep running until interrupted.
    pub keep: bool,
    /// Show a cluster with so many bundles, instead of the story.
    pub bundles: Option<usize>,
    /// Time from a user's change to the next, while it keeps running; `None`: nobody changes anything.
    pub change_interval: Option<Duration>,
}

pub(super) fn command() -> clap::Command {
    clap::Command::new("demo")
        .about("Show the program at work on an in-memory cluster")
        .long_about(
            "Show the program at work on an in-memory cluster.

Without --bundles it tells a story, step by step, in half a minute. With --bundles it fills the cluster with that many \
             bundles instead, for the dashboard: about one in twenty has a problem, others are ignored, suspended or \
             being deleted. From 100 bundles on, each problem occurs.",
        )
        .args_override_self(true)
        .arg(bare("keep").value_name("true|false").help("Stay up after the last step, until Ctrl-C"))
        .arg(
            value("bundles")
                .value_name("N")
                .value_parser(value_parser!(u64).range(1..=MOST_BUNDLES))
                .help("Fill the cluster with so many bundles, and show the dashboard"),
        )
        .arg(changes())
}

fn changes() -> Arg {
    value("changes-per-second")
        .value_name("R")
        .default_value("1")
        .value_parser(interval)
        .help("With --keep: so often a user changes something; 0 is never")
}

pub(super) fn options(matches: &ArgMatches) -> Result<DemoOptions, UsageError> {
    let bundles = matches.get_one::<u64>("bundles").and_then(|number| usize::try_from(*number).ok());
    let change_interval = matches.get_one::<Option<Duration>>("changes-per-second").copied().flatten();
    Ok(DemoOptions { keep: flag_is_set(matches, "keep")?, bundles, change_interval })
}

/// Returns the time between two changes.
fn interval(changes_per_second: &str) -> Result<Option<Duration>, String> {
    match changes_per_second.parse::<f64>() {
        Ok(0.0) => Ok(None),
        Ok(rate) if (0.001..=MOST_CHANGES).contains(&rate) => Ok(Some(Duration::from_secs_f64(rate.recip()))),
        Ok(_) | Err(_) => Err(format!("it must be 0, or a number from 0.001 to {MOST_CHANGES}")),
    }
}
