//! The demonstration: the program at work on an in-memory cluster, told step by step (`demo` on the command line).
//!
//! ```text
//! mod.rs ── log into a file, System ─► scene.rs (Sim, process::Process, kubectl) ◄── story.rs ──► screen.rs
//! ```
//!
//! * `story.rs`: the steps, in the order in which they are told; start reading there.
//! * `scene.rs`: simulator, program, somebody with `kubectl`, and waiting for what must happen; `journal.rs`: what the
//!   program asked of the API.
//! * `examples.rs`: the bundles of `config/examples`, and what is done to them.
//! * `screen.rs`: printing.
//!
//! The program knows nothing of all this. Where a step needs a defect, it comes from outside: the panic of one step is
//! thrown by the scene's own observer of requests, which the program calls inside of a pass.

mod examples;
mod journal;
mod place;
mod scene;
mod screen;
mod story;

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use actix::System;
use futures::future::LocalBoxFuture;
use kit::{Clock, json};
use tracing_subscriber::{
    layer::SubscriberExt as _,
    util::{SubscriberInitExt as _, TryInitError},
};

use self::{
    scene::{Scene, SceneError},
    screen::Screen,
    story::{STORY, Stage},
};
use crate::{cli::DemoOptions, logging};

/// How long the end waits for the disk of the log.
const LAST_RECORDS: Duration = Duration::from_millis(500);
/// How long it waits for passes.
const LAST_PASSES: Duration = Duration::from_secs(1);

/// A step of a story. `S` is what it is played on.
struct Step<S: 'static> {
    title: &'static str,
    play: for<'a> fn(&'a S) -> LocalBoxFuture<'a, Result<Seen, Missed>>,
}

/// What was seen of a step, for the summary.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    what: String,
    /// From the cause to the effect.
    took: Duration,
}

/// A step that did not happen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected: {expected}; instead: {found}")]
struct Missed {
    expected: String,
    found: String,
}

/// How a step went, for the summary.
struct Told {
    title: &'static str,
    /// `None`: it did not happen.
    seen: Option<Seen>,
}

/// Why there is no story.
#[derive(Debug, thiserror::Error)]
enum DemoError {
    #[error("cannot write the log {}: {cause}", path.display())]
    Log { path: PathBuf, cause: io::Error },
    #[error("cannot set up the log: {0}")]
    LogTaken(#[from] TryInitError),
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
    #[error("cannot set the scene: {0}")]
    Scene(#[from] SceneError),
}

/// Tells the story in the terminal. The exit code: 0, or 1 if a step did not happen.
pub fn run(options: DemoOptions) -> i32 {
    let screen = Screen::of_process();
    match tell(options, screen) {
        Ok(told) => exit_code(&told),
        Err(error) => {
            eprintln!("Error: {error}");
            1
        }
    }
}

fn tell(options: DemoOptions, screen: Screen) -> Result<Vec<Told>, DemoError> {
    let path = log_path(&std::env::temp_dir());
    let log = log_into(&path)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().thread_stack_size(json::STACK).build()?;
    let told = System::with_tokio_rt(|| runtime).block_on(perform(options, screen, &path))?;
    log.finish(LAST_RECORDS);
    Ok(told)
}

async fn perform(options: DemoOptions, screen: Screen, log: &Path) -> Result<Vec<Told>, DemoError> {
    let stage = Stage { scene: Scene::new()?, screen };
    story::prologue(&stage, log);
    let told = play(&STORY, &stage, &stage.screen).await;
    stage.screen.summary(&told);
    if options.keep && exit_code(&told) == 0 {
        story::keep(&stage).await?;
    } else if !options.keep {
        story::epilogue(&stage);
    }
    stage.scene.stop(LAST_PASSES).await;
    Ok(told)
}

/// Plays steps up to the first that does not happen.
async fn play<S>(steps: &[Step<S>], stage: &S, screen: &Screen) -> Vec<Told> {
    let mut told = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        screen.heading(index + 1, step.title);
        let result = (step.play)(stage).await;
        match &result {
            Ok(seen) => screen.happened(seen),
            Err(missed) => screen.missed(missed),
        }
        let seen = result.ok();
        let over = seen.is_none();
        told.push(Told { title: step.title, seen });
        if over {
            break;
        }
        screen.pause().await;
    }
    told
}

fn exit_code(told: &[Told]) -> i32 {
    i32::from(told.iter().any(|step| step.seen.is_none()))
}

/// A name that nobody else uses, so that nobody else's file is written.
fn log_path(folder: &Path) -> PathBuf {
    folder.join(format!("gardener-resource-manager-demo-{}-{:08x}.log", std::process::id(), fastrand::u32(..)))
}

fn log_into(path: &Path) -> Result<logging::Handle, DemoError> {
    let file = File::create_new(path).map_err(|cause| DemoError::Log { path: path.to_owned(), cause })?;
    let now = Arc::new(Clock::system_wall);
    let (layer, handle) = logging::layer(logging::Level::Info, logging::Format::Text, now, file);
    tracing_subscriber::registry().with(layer).try_init()?;
    logging::log_panics();
    Ok(handle)
}

impl Missed {
    fn new(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { expected: expected.into(), found: found.into() }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    const GOOD: Step<()> = Step {
        title: "It works",
        play: |()| async { Ok(Seen { what: "it".to_owned(), took: Duration::from_millis(3) }) }.boxed_local(),
    };
    const BAD: Step<()> = Step {
        title: "It does not",
        play: |()| async { Err(Missed::new("a Service webapp", "no Service at all")) }.boxed_local(),
    };

    #[tokio::test(start_paused = true)]
    async fn a_story_whose_steps_all_happen_ends_with_0() {
        let (screen, _) = Screen::captured();

        let told = play(&[GOOD, GOOD], &(), &screen).await;

        assert_eq!((told.len(), exit_code(&told)), (2, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_that_does_not_happen_ends_the_story_with_1_and_says_what_is_there() {
        let (screen, printed) = Screen::captured();

        let told = play(&[GOOD, BAD, GOOD], &(), &screen).await;
        screen.summary(&told);

        assert_eq!((told.len(), exit_code(&told)), (2, 1));
        let text = printed.text();
        for expected in ["expected: a Service webapp", "instead:  no Service at all", "did not happen"] {
            assert!(text.contains(expected), "{expected:?} is missing in\n{text}");
        }
    }
}
