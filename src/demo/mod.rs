//! The demonstration (command `demo`): the program at work on an in-memory cluster, explained step by step; or a cluster
//! with many bundles, for the dashboard.
//! ```text
//! mod.rs ── log into a file, System ─► scene.rs (Sim, program.rs, kubectl) ◄── story.rs or world/ ──► screen.rs
//! ```
//! * `story.rs`: the steps in their order; start reading there. `beyond_bundles.rs`: those about other controllers and
//!   webhooks. `world/`: many bundles (`--bundles`).
//! * `scene.rs`: simulator, program, a user with `kubectl`, and waits; `program.rs`: starts the program as production does;
//!   `journal.rs`: its requests to the API; `certificates.rs`: the certificate of its webhooks.
//! * `rollouts.rs`: the cluster rolls out Deployments; `admission.rs`: it calls webhooks.
//!
//! The program does not know the demonstration. The panic of one step comes from the scene's observer of requests,
//! which the program calls during a reconcile.

mod admission;
mod beyond_bundles;
mod certificates;
mod demo_object;
mod examples;
mod journal;
mod program;
mod rollouts;
mod scene;
mod screen;
mod stage;
mod story;
mod world;

use std::{
    fs::File,
    future::Future,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use actix::System;
use futures::future::LocalBoxFuture;
use kit::{Clock, json};
use process::logging::{self, Logging};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::{
    layer::SubscriberExt as _,
    util::{SubscriberInitExt as _, TryInitError},
};

use self::{
    scene::{Scene, SceneError},
    screen::Screen,
    stage::Stage,
    story::STORY,
};
use crate::cli::DemoOptions;

const LAST_RECORDS: Duration = Duration::from_millis(500);
const LAST_RECONCILES: Duration = Duration::from_secs(1);
const STOPPING: &str = "Stopping.";
const INTERRUPTED: i32 = 130; // the exit code of shells

struct Step<S: 'static> {
    title: &'static str,
    play: for<'a> fn(&'a S) -> LocalBoxFuture<'a, Result<Seen, Missed>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    what: String,
    took: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected: {expected}; instead: {found}")]
struct Missed {
    expected: String,
    found: String,
}

struct PlayedStep {
    title: &'static str,
    seen: Option<Seen>, // `None`: the step did not happen
}

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

/// Runs the demonstration in the terminal. Returns the exit code: 0, 1 if a step did not happen, or 130 if it was
/// interrupted before its end without `--keep`.
pub fn run(options: DemoOptions) -> i32 {
    let screen = Screen::of_process();
    match perform(options, screen) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("Error: {error}");
            1
        }
    }
}

fn perform(options: DemoOptions, screen: Screen) -> Result<i32, DemoError> {
    let path = log_path(&std::env::temp_dir());
    let log = log_into(&path)?;
    rustls::crypto::ring::default_provider().install_default().ok();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().thread_stack_size(json::STACK).build()?;
    let system = System::with_tokio_rt(|| runtime);
    let code = match options.bundles {
        None => system.block_on(tell_story(options, screen, &path)),
        Some(count) => system.block_on(show_world(options, screen, &path, count)),
    }?;
    log.finish(LAST_RECORDS);
    Ok(code)
}

async fn tell_story(options: DemoOptions, screen: Screen, log: &Path) -> Result<i32, DemoError> {
    let mut interrupt = Interrupt::listen()?;
    let stage = Stage { scene: Scene::for_story()?, screen };
    story::prologue(&stage, log);
    let code = match interrupt.or(play(&STORY, &stage, &stage.screen)).await {
        Some(played) => {
            stage.screen.summary(&played);
            let code = exit_code(&played);
            if options.keep && code == 0 {
                stage.screen.say("");
                stage.scene.forget_requests();
                announce(&stage.scene, &stage.screen, options);
                interrupt.or(story::live(&stage, options.change_interval)).await;
                stage.screen.say(STOPPING);
            } else if !options.keep {
                story::epilogue(&stage);
            }
            code
        }
        None => interrupted(&stage.screen, options),
    };
    stage.scene.stop(LAST_RECONCILES).await;
    Ok(code)
}

async fn show_world(options: DemoOptions, screen: Screen, log: &Path, count: usize) -> Result<i32, DemoError> {
    let mut interrupt = Interrupt::listen()?;
    let scene = Scene::for_many_bundles()?;
    world::prologue(&screen, log, count);
    let code = match interrupt.or(world::fill(&scene, &screen, count)).await {
        Some(Ok(())) if options.keep => {
            announce(&scene, &screen, options);
            interrupt.or(world::live(&scene, count, options.change_interval)).await;
            screen.say(STOPPING);
            0
        }
        Some(Ok(())) => 0,
        Some(Err(missed)) => {
            screen.missed(&missed);
            1
        }
        None => interrupted(&screen, options),
    };
    scene.stop(LAST_RECONCILES).await;
    Ok(code)
}

/// Returns the exit code after an interrupt before the end. With `--keep` there is no other end.
fn interrupted(screen: &Screen, options: DemoOptions) -> i32 {
    screen.say(STOPPING);
    if options.keep { 0 } else { INTERRUPTED }
}

/// Says that the program stays up.
fn announce(scene: &Scene, screen: &Screen, options: DemoOptions) {
    screen.say(&format!("The program stays up: {}", scene.url("/dashboard")));
    screen.say(match options.change_interval {
        Some(_) => "Now and then somebody edits, deletes or breaks something. Ctrl-C ends it.",
        None => "Nobody changes anything. Ctrl-C ends it.",
    });
}

/// Ctrl-C, or a request to end.
struct Interrupt {
    ctrl_c: Signal,
    terminate: Signal,
}

impl Interrupt {
    fn listen() -> Result<Self, io::Error> {
        Ok(Self { ctrl_c: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Returns what `work` returns, or `None` after an interrupt.
    async fn or<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            _ = self.ctrl_c.recv() => None,
            _ = self.terminate.recv() => None,
            done = work => Some(done),
        }
    }
}

async fn play<S>(steps: &[Step<S>], stage: &S, screen: &Screen) -> Vec<PlayedStep> {
    let mut played = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        screen.heading(index + 1, step.title);
        let result = (step.play)(stage).await;
        match &result {
            Ok(seen) => screen.happened(seen),
            Err(missed) => screen.missed(missed),
        }
        let seen = result.ok();
        let over = seen.is_none();
        played.push(PlayedStep { title: step.title, seen });
        if over {
            break;
        }
        screen.pause().await;
    }
    played
}

fn exit_code(played: &[PlayedStep]) -> i32 {
    i32::from(played.iter().any(|step| step.seen.is_none()))
}

fn log_path(folder: &Path) -> PathBuf {
    folder.join(format!("gardener-resource-manager-demo-{}-{:08x}.log", std::process::id(), fastrand::u32(..)))
}

fn log_into(path: &Path) -> Result<logging::Handle, DemoError> {
    let file = File::create_new(path).map_err(|cause| DemoError::Log { path: path.to_owned(), cause })?;
    let now = Arc::new(Clock::system_wall);
    let logging = Logging { level: logging::Level::Info, format: logging::Format::Text };
    let (layer, handle, _) = logging::layer(logging, now, file);
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
    async fn story_whose_steps_all_happen_ends_with_0() {
        let (screen, _) = Screen::captured();

        let played = play(&[GOOD, GOOD], &(), &screen).await;

        assert_eq!((played.len(), exit_code(&played)), (2, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn story_ends_with_1_at_a_step_that_does_not_happen() {
        let (screen, printed) = Screen::captured();

        let played = play(&[GOOD, BAD, GOOD], &(), &screen).await;
        screen.summary(&played);

        assert_eq!((played.len(), exit_code(&played)), (2, 1));
        let text = printed.text();
        for expected in ["expected: a Service webapp", "instead:  no Service at all", "did not happen"] {
            assert!(text.contains(expected), "{expected:?} is missing in\n{text}");
        }
    }
}
