//! Runs a scenario once without a fault, and then once with each chosen fault.

use std::{
    any::Any,
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::{
    Scenario, Stage,
    end_state::{EndState, differences, end_state},
    faults::{self, Choice, Injection},
    observer::{Notes, Observer},
};
use crate::random::disturbances;

/// Time from the start of the program until it is at rest.
const START: Duration = Duration::from_secs(10);

/// Time between the end of a life and the lists that replace lost events.
const LAST_STEP: Duration = Duration::from_secs(10);

/// The end state must stay for this long.
const QUIET: Duration = Duration::from_secs(60);

/// Time limit for the end state. It is longer than the longest back-off.
const LIMIT: Duration = Duration::from_secs(1300);

/// So many more requests than without a fault are a storm. Watches that expire and are listed anew cost less than a third.
const STORM: usize = 400;

/// A scenario with fewer faults proves nothing.
const FEWEST_FAULTS: usize = 16;

/// A test ends after so many failed runs.
const MOST_FAILURES: usize = 5;

/// A run that came to its end.
struct Run {
    notes: Notes,
    end: EndState,
}

/// Fails unless a scenario survives each chosen fault.
pub(super) fn survive<S: Stage>(scenario: &Scenario<S>, life: &(impl AsyncFn(&S) + Sync)) {
    let (name, choice) = (scenario.name, Choice::from_environment());
    if !choice.includes(name) {
        return;
    }
    let faultless = run(scenario, life, None).unwrap_or_else(|text| panic!("{name} without a fault: {text}"));
    let Notes { requests, events, writes, .. } = &faultless.notes;
    assert!(*writes > 0, "{name}: the program writes nothing: {requests:#?}");
    let all = faults::all(requests.len(), events.len());
    assert!(all.len() >= FEWEST_FAULTS, "{name} has few faults: {requests:#?} {events:#?}");
    let (count, chosen) = (all.len(), choice.select(name, all));
    assert!(!chosen.is_empty(), "{name} has no such fault");
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|threads| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            threads.spawn(|| {
                while lock(&failed).len() < MOST_FAILURES {
                    let Some(injection) = chosen.get(next.fetch_add(1, Ordering::Relaxed)).copied() else { break };
                    if let Err(text) = run_with_fault(scenario, life, injection, &faultless) {
                        report(name, injection, &text);
                        lock(&failed).push(injection);
                    }
                }
            });
        }
    });
    let runs = next.load(Ordering::Relaxed).min(chosen.len());
    let (requests, events) = (requests.len(), events.len());
    println!("{name}: {runs} runs with a fault, of {count} possible ones at {requests} requests and {events} events");
    let failed = lock(&failed);
    assert!(failed.is_empty(), "{name} does not survive {failed:?}");
}

/// Runs a scenario with a fault. A panic is a violation, too.
fn run_with_fault<S: Stage>(
    scenario: &Scenario<S>,
    life: &(impl AsyncFn(&S) + Sync),
    injection: Injection,
    faultless: &Run,
) -> Result<(), String> {
    let attempt = || run(scenario, life, Some((injection, faultless)));
    let ended = catch_unwind(AssertUnwindSafe(attempt)).unwrap_or_else(|panic| Err(text_of(&*panic)));
    ended.map(drop)
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_else(|| "a panic".to_owned())
}

fn report(name: &str, injection: Injection, text: &str) {
    let Injection { kind, index } = injection;
    let fault = kind.name();
    let text = format!(
        "{name}, {fault} {index}: {text}\nrepeat it: SCENARIO={name} FAULT={fault} INDEX={index} cargo test --test \
         simulation systematic\n"
    );
    // Straight to stderr: the test harness would keep it until the last run.
    std::io::stderr().write_all(text.as_bytes()).expect("standard error is open");
}

/// Runs a scenario in a fresh world. With a fault, the end must be the same as without one.
fn run<S: Stage>(
    scenario: &Scenario<S>,
    life: &(impl AsyncFn(&S) + Sync),
    fault: Option<(Injection, &Run)>,
) -> Result<Run, String> {
    S::enter(|stage| async move {
        let stage = &*stage;
        (scenario.prepare)(stage);
        if !scenario.hits_start {
            stage.start_program().await;
            sleep(START).await;
        }
        let observer = Observer::default();
        observer.watch(stage.sim(), S::USER, scenario.invariant, fault.map(|(injection, _)| injection));
        let course = async {
            if scenario.hits_start {
                stage.start_program().await;
            }
            life(stage).await;
            sleep(LAST_STEP).await;
            observer.end_life();
            disturbances::expire(stage.sim());
            match fault {
                Some((_, faultless)) => ends_like(scenario, stage, &observer, faultless).await,
                None => ends(scenario, stage, &observer).await,
            }
        };
        let end = tokio::select! {
            biased; // until its fault, a run is like the one without a fault
            end = course => end,
            () = keep_busy(scenario.others, stage) => unreachable!("the others act for ever"),
        };
        stage.sim().clear_faults();
        stage.sim().clear_event_faults();
        let notes = std::mem::take(&mut *observer.notes());
        end.map(|end| Run { notes, end })
    })
}

/// Lets other programs act for ever.
async fn keep_busy<S>(act: fn(&S), stage: &S) {
    loop {
        sleep(Duration::from_secs(1)).await;
        act(stage);
    }
}

fn state_of<S: Stage>(scenario: &Scenario<S>, stage: &S) -> EndState {
    end_state(stage.sim(), scenario.with_events, scenario.blur)
}

/// Waits for the end of the run without a fault.
async fn ends<S: Stage>(scenario: &Scenario<S>, stage: &S, observer: &Observer) -> Result<EndState, String> {
    sleep(QUIET).await;
    let end = state_of(scenario, stage);
    sleep(QUIET).await;
    let later = state_of(scenario, stage);
    if end != later {
        return Err(format!("there is no rest at the end:\n{}", differences(&end, &later)));
    }
    if let Some(violation) = observer.notes().violation.take() {
        return Err(violation);
    }
    (scenario.invariant)(stage.sim()).map(|()| end)
}

/// Waits until the end is the same as without a fault, and stays so.
async fn ends_like<S: Stage>(
    scenario: &Scenario<S>,
    stage: &S,
    observer: &Observer,
    faultless: &Run,
) -> Result<EndState, String> {
    let deadline = Instant::now() + LIMIT;
    let mut seen = None;
    loop {
        if let Some(violation) = violation(&observer.notes(), &faultless.notes) {
            return Err(violation);
        }
        // Only a change of the cluster can bring the end.
        let is_new = seen.replace(stage.sim().revision()) != Some(stage.sim().revision());
        if is_new && state_of(scenario, stage) == faultless.end {
            sleep(QUIET).await;
            let end = state_of(scenario, stage);
            if end == faultless.end {
                let violation = violation(&observer.notes(), &faultless.notes);
                violation.map_or(Ok(()), Err)?;
                return (scenario.invariant)(stage.sim()).map(|()| end);
            }
        }
        if Instant::now() >= deadline {
            let found = state_of(scenario, stage);
            let notes = observer.notes();
            return Err(format!("{}\n{}", place_of_fault(&notes), differences(&faultless.end, &found)));
        }
        sleep(Duration::from_secs(1)).await;
    }
}

/// Returns what a run did and must not do.
fn violation(notes: &Notes, faultless: &Notes) -> Option<String> {
    let text = if let Some(violation) = &notes.violation {
        violation.clone()
    } else if let Some(deletion) = notes.deletions.difference(&faultless.deletions).next() {
        format!("{deletion} is deleted, which does not happen without a fault")
    } else if notes.total > faultless.total + STORM {
        format!("{} requests instead of {}", notes.total, faultless.total)
    } else if notes.hit.is_none() {
        "the fault met nothing: the scenario is not the same each time".to_owned()
    } else {
        return None;
    };
    Some(format!("{}\n{text}", place_of_fault(notes)))
}

fn place_of_fault(notes: &Notes) -> String {
    format!("at {}", notes.hit.as_deref().unwrap_or("nothing"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
