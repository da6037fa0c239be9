//! The contract of the kit, rule by rule, on virtual time.

use std::{
    cell::{Cell as StdCell, RefCell},
    collections::VecDeque,
    rc::Rc,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::{
    testing::{Universe, settle, universe},
    *,
};

/// What a scripted pass does.
type Script = Rc<dyn Fn(&Pass<String>) -> Step>;

/// One scripted step.
enum Step {
    End(Result<Outcome, Failure>),
    After(Duration, Result<Outcome, Failure>),
    Panic,
    Hang,
}

/// A controller whose passes follow a script and are written down.
struct Scripted {
    permits: usize,
    duties: usize,
    script: Script,
    ready: Rc<StdCell<bool>>,
    readiness: Signal,
    log: RefCell<Vec<Run>>,
    running: StdCell<usize>,
    most_running: StdCell<usize>,
}

/// A pass that ran.
#[derive(Clone, Debug)]
struct Run {
    key: String,
    duty: usize,
    wake: Wake,
    at: Duration,
    memory: u32,
}

thread_local! {
    static ZERO: StdCell<Option<Instant>> = const { StdCell::new(None) };
}

fn now() -> Duration {
    ZERO.with(|zero| zero.get().map(|zero| zero.elapsed()).unwrap_or_default())
}

const EVENT: Causes = Causes::own(0);

impl Controller for Scripted {
    type Key = String;
    type Object = ();
    type Memory = u32;

    fn name(&self) -> &'static str {
        "scripted"
    }

    fn duties(&self) -> Vec<Duty> {
        let (ready, signal) = (self.ready.clone(), self.readiness.clone());
        let need = Need { name: "store".into(), ready: Rc::new(move || ready.get()), signal };
        let duty = |name| Duty {
            name,
            permits: self.permits,
            causes: EVENT,
            max_back_off: Duration::from_secs(60),
            deadline: Duration::from_secs(30),
            needs: vec![need.clone()],
        };
        ["first", "second"][..self.duties].iter().map(|name| duty(name)).collect()
    }

    fn object(&self, _: &String) -> Self::Object {}

    async fn pass(self: &Rc<Self>, _: &Rc<()>, memory: &mut u32, pass: &Pass<String>) -> Result<Outcome, Failure> {
        *memory += 1;
        let run = Run { key: pass.key.clone(), duty: pass.duty, wake: pass.wake.clone(), at: now(), memory: *memory };
        self.log.borrow_mut().push(run);
        self.running.set(self.running.get() + 1);
        self.most_running.set(self.most_running.get().max(self.running.get()));
        let leaving = Leaving(self.clone());
        match (self.script)(pass) {
            Step::End(result) => result,
            Step::After(time, result) => {
                tokio::time::sleep(time).await;
                result
            }
            Step::Panic => {
                drop(leaving);
                panic!("scripted");
            }
            Step::Hang => std::future::pending().await,
        }
    }
}

/// Counts a pass out, however it ends.
struct Leaving(Rc<Scripted>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.running.set(self.0.running.get() - 1);
    }
}

fn scripted(script: impl Fn(&Pass<String>) -> Step + 'static) -> Scripted {
    ZERO.with(|zero| zero.set(Some(Instant::now())));
    Scripted {
        permits: 5,
        duties: 1,
        script: Rc::new(script),
        ready: Rc::new(StdCell::new(true)),
        readiness: Signal::default(),
        log: RefCell::default(),
        running: StdCell::new(0),
        most_running: StdCell::new(0),
    }
}

/// Steps in turn; the last one for ever.
fn steps(steps: impl IntoIterator<Item = fn() -> Step>) -> impl Fn(&Pass<String>) -> Step {
    let steps: RefCell<VecDeque<fn() -> Step>> = RefCell::new(steps.into_iter().collect());
    move |_| {
        let mut steps = steps.borrow_mut();
        if steps.len() > 1 { steps.pop_front().map(|step| step()) } else { steps.front().map(|step| step()) }
            .unwrap_or(Step::End(Ok(Outcome::Done)))
    }
}

fn done() -> Step {
    Step::End(Ok(Outcome::Done))
}

fn run<F: Future>(controller: Scripted, test: impl FnOnce(Supervised<Scripted>, Rc<Scripted>, Universe) -> F) {
    // The controller is built before the universe's clock begins, so the zero is set again inside.
    universe(1, |universe| async move {
        ZERO.with(|zero| zero.set(Some(Instant::now())));
        let controller = Rc::new(controller);
        let supervised = Supervised::start(controller.clone(), &universe.env);
        test(supervised.clone(), controller, universe.clone()).await;
        supervised.stop(Duration::ZERO).await;
    });
}

fn key(name: &str) -> String {
    name.to_owned()
}

#[test]
fn rule_1_any_number_of_wakes_before_a_pass_makes_one_pass_with_their_union() {
    run(scripted(|_| done()), |supervised, controller, _| async move {
        for index in 0..1000u32 {
            let name = crate::api::object::ObjectKey { name: format!("{index}"), ..Default::default() };
            supervised.wake(&key("a"), Wake::background(EVENT).about(name));
        }
        supervised.wake(&key("a"), Wake::live(Causes::OBJECT));
        settle().await;

        let log = controller.log.borrow();
        assert_eq!(log.len(), 1);
        assert_eq!(log[0].wake.causes, EVENT.with(Causes::OBJECT));
        assert_eq!((log[0].wake.refs.clone(), log[0].wake.lane), (Refs::All, Lane::Live));
    });
}

#[test]
fn rule_1_a_wake_survives_the_panic_of_the_pass_that_took_it() {
    run(scripted(steps([|| Step::Panic, done])), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        tokio::time::sleep(Duration::from_secs(1)).await;

        let log = controller.log.borrow();
        assert_eq!(log.len(), 2);
        assert!(log[1].wake.causes.meets(EVENT));
    });
}

#[test]
fn rule_2_a_wake_during_a_pass_leads_to_exactly_one_more() {
    let slow = || Step::After(Duration::from_secs(1), Ok(Outcome::Done));
    run(scripted(steps([slow, done])), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        settle().await;
        for _ in 0..10 {
            supervised.wake(&key("a"), Wake::live(EVENT));
        }
        tokio::time::sleep(Duration::from_secs(10)).await;

        assert_eq!(controller.log.borrow().len(), 2);
        assert_eq!(controller.most_running.get(), 1);
    });
}

#[test]
fn rule_4_each_result_makes_its_own_next_pass() {
    run(
        scripted(steps([|| Step::End(Ok(Outcome::After(Duration::from_secs(60)))), done])),
        |supervised, controller, _| async move {
            supervised.wake(&key("a"), Wake::live(EVENT));
            tokio::time::sleep(Duration::from_secs(300)).await;

            let times: Vec<_> = controller.log.borrow().iter().map(|run| run.at.as_secs()).collect();
            assert_eq!(times, [0, 60]);
            assert!(controller.log.borrow()[1].wake.causes.meets(Causes::TIMER));
        },
    );
}

#[test]
fn rule_4_errors_back_off_from_5_ms_doubling_up_to_the_cap_and_success_resets() {
    fn fail() -> Step {
        Step::End(Err(Failure::new("no")))
    }
    run(scripted(steps([fail as fn() -> Step; 20])), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        tokio::time::sleep(Duration::from_secs(400)).await;

        let times: Vec<_> = controller.log.borrow().iter().map(|run| run.at.as_millis()).collect();
        let gaps: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // Timers have a resolution of 1 ms.
        for (n, gap) in gaps.iter().enumerate() {
            let expected = (5u128 << n).min(60_000);
            assert!((expected..=expected + 2).contains(gap), "gap {n} is {gap} ms");
        }
    });
}

#[test]
fn rule_4_a_wall_time_timer_follows_jumps_of_the_clock_within_ten_minutes() {
    let begin = Timestamp::from_second(1_893_456_000).unwrap();
    let at = begin + SignedDuration::from_hours(10);
    let script = move |pass: &Pass<String>| {
        if pass.because_of(Causes::TIMER) { done() } else { Step::End(Ok(Outcome::At(at))) }
    };
    run(scripted(script), |supervised, controller, universe| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        tokio::time::sleep(Duration::from_secs(3600)).await;
        universe.env.clock.jump(SignedDuration::from_hours(9));
        tokio::time::sleep(Duration::from_secs(601)).await;

        let log = controller.log.borrow();
        assert_eq!(log.len(), 2, "the second pass came soon after the jump");
    });
}

#[test]
fn rule_4_a_pass_that_waits_runs_when_the_signal_was_raised_even_in_between() {
    let signal = Signal::default();
    let (raised, waited) = (signal.clone(), signal.clone());
    let script = move |pass: &Pass<String>| {
        if pass.because_of(Causes::STORE) {
            return done();
        }
        let moment = waited.moment();
        if pass.key == "late" {
            waited.raise();
        }
        Step::End(Ok(Outcome::Wait(vec![moment])))
    };
    run(scripted(script), |supervised, controller, _| async move {
        supervised.wake(&key("early"), Wake::live(EVENT));
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert_eq!(controller.log.borrow().len(), 1);
        raised.raise();
        supervised.wake(&key("late"), Wake::live(EVENT));
        tokio::time::sleep(Duration::from_secs(1)).await;

        assert_eq!(controller.log.borrow().len(), 4);
        let _ = signal;
    });
}

#[test]
fn rule_4_only_retire_ends_an_actor_and_a_later_wake_starts_a_new_one() {
    run(scripted(|_| Step::End(Ok(Outcome::Retire))), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        settle().await;
        assert!(supervised.is_empty());
        supervised.wake(&key("a"), Wake::live(EVENT));
        settle().await;

        let memories: Vec<_> = controller.log.borrow().iter().map(|run| run.memory).collect();
        assert_eq!(memories, [1, 1], "the second actor knows nothing of the first");
    });
}

#[test]
fn rule_4_a_wake_during_the_retiring_pass_keeps_the_actor() {
    let retire = || Step::After(Duration::from_secs(1), Ok(Outcome::Retire));
    run(scripted(steps([retire, done])), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        settle().await;
        supervised.wake(&key("a"), Wake::live(EVENT));
        tokio::time::sleep(Duration::from_secs(5)).await;

        assert_eq!(controller.log.borrow().len(), 2);
        assert_eq!(supervised.len(), 1);
    });
}

#[test]
fn rule_5_no_more_passes_than_permits_live_first_and_each_eighth_for_the_background() {
    let mut controller = scripted(|_| Step::After(Duration::from_secs(1), Ok(Outcome::Done)));
    controller.permits = 1;
    run(controller, |supervised, controller, _| async move {
        supervised.wake(&key("first"), Wake::live(EVENT));
        settle().await;
        for index in 0..20 {
            supervised.wake(&format!("background-{index:02}"), Wake::background(EVENT));
        }
        for index in 0..20 {
            supervised.wake(&format!("live-{index:02}"), Wake::live(EVENT));
        }
        tokio::time::sleep(Duration::from_secs(60)).await;

        let order: Vec<_> = controller.log.borrow().iter().map(|run| run.key.clone()).collect();
        assert_eq!(controller.most_running.get(), 1);
        assert_eq!(order[1], "live-00");
        assert_eq!(order[7], "background-00", "{order:?}");
        assert_eq!(order[8], "live-06");
        assert_eq!(order.len(), 41);
    });
}

#[test]
fn rule_5_a_pass_that_continues_queues_behind_others_and_keeps_its_wake() {
    let script = move |pass: &Pass<String>| {
        let first = pass.key == "big" && !pass.because_of(Causes::AGAIN);
        if first { Step::After(Duration::from_secs(3), Ok(Outcome::Continue)) } else { done() }
    };
    let mut controller = scripted(script);
    controller.permits = 1;
    run(controller, |supervised, controller, _| async move {
        supervised.wake(&key("big"), Wake::live(EVENT));
        settle().await;
        supervised.wake(&key("small"), Wake::live(EVENT));
        tokio::time::sleep(Duration::from_secs(10)).await;

        let log = controller.log.borrow();
        let order: Vec<_> = log.iter().map(|run| run.key.as_str()).collect();
        assert_eq!(order, ["big", "small", "big"]);
        assert!(log[2].wake.causes.meets(EVENT));
    });
}

#[test]
fn rule_6_a_panic_costs_the_memory_of_that_key_only() {
    let script = move |pass: &Pass<String>| {
        if pass.key == "bad" && pass.because_of(Causes::own(1)) { Step::Panic } else { done() }
    };
    let mut controller = scripted(script);
    controller.script = Rc::new(move |pass| script(pass));
    run(controller, |supervised, controller, universe| async move {
        for name in ["bad", "good"] {
            supervised.wake(&key(name), Wake::live(EVENT));
        }
        settle().await;
        supervised.wake(&key("bad"), Wake::live(EVENT.with(Causes::own(1))));
        settle().await;
        supervised.wake(&key("good"), Wake::live(EVENT));
        settle().await;

        let log = controller.log.borrow();
        let memory = |name: &str| log.iter().rev().find(|run| run.key == name).map(|run| run.memory);
        assert_eq!(memory("good"), Some(2));
        let bad = universe.env.census.snapshot().into_iter().find(|actor| actor.path == "scripted/bad").unwrap();
        assert!(bad.last_error.is_some_and(|(_, text)| text.contains("panicked")));
    });
}

#[test]
fn rule_6_a_duty_that_panics_too_often_is_quarantined_and_tried_when_its_object_changes() {
    run(scripted(|_| Step::Panic), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert_eq!(controller.log.borrow().len(), 6, "five panics are forgiven, the sixth is one too many");
        supervised.wake(&key("a"), Wake::live(EVENT));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(controller.log.borrow().len(), 6, "other wakes wait");
        supervised.wake(&key("a"), Wake::live(Causes::OBJECT));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(controller.log.borrow().len(), 7, "a change of the object is tried at once");
        tokio::time::sleep(Duration::from_secs(601)).await;

        assert!(controller.log.borrow().len() >= 8, "and every ten minutes");
    });
}

#[test]
fn rule_7_a_pass_that_ignores_its_deadline_is_dropped_ten_seconds_later() {
    run(scripted(steps([|| Step::Hang, done])), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        tokio::time::sleep(Duration::from_secs(60)).await;

        let log = controller.log.borrow();
        assert_eq!(log.iter().map(|run| run.at.as_secs()).collect::<Vec<_>>(), [0, 40]);
        assert_eq!(log[1].memory, 1, "what a dropped pass knew is gone");
        assert!(log[1].wake.causes.meets(Causes::RESTARTED));
    });
}

#[test]
fn rule_8_a_duty_does_not_run_before_the_stores_it_needs_are_there() {
    let controller = scripted(|_| done());
    controller.ready.set(false);
    run(controller, |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        supervised.wake(&key("a"), Wake::background(Causes::OBJECT));
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(controller.log.borrow().is_empty());
        controller.ready.set(true);
        controller.readiness.raise();
        settle().await;

        let log = controller.log.borrow();
        assert_eq!(log.len(), 1);
        assert_eq!(log[0].wake.causes, EVENT.with(Causes::OBJECT), "wakes gathered meanwhile");
    });
}

#[test]
fn rule_10_stopping_lets_passes_end_and_begins_no_new_one() {
    let mut controller = scripted(|_| Step::After(Duration::from_secs(2), Ok(Outcome::Done)));
    controller.permits = 1;
    run(controller, |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        supervised.wake(&key("b"), Wake::live(EVENT));
        settle().await;
        let finished = supervised.stop(Duration::from_secs(4)).await;

        assert!(finished);
        assert_eq!(now().as_secs(), 2);
        assert_eq!(controller.log.borrow().len(), 1);
        assert_eq!(controller.running.get(), 0);
    });
}

#[test]
fn rule_10_a_pass_that_does_not_end_is_abandoned() {
    run(scripted(|_| Step::Hang), |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        settle().await;
        let finished = supervised.stop(Duration::from_secs(4)).await;
        settle().await;

        assert!(!finished);
        assert_eq!(controller.running.get(), 0, "its future was dropped");
    });
}

#[test]
fn rule_11_the_census_shows_each_actor_and_what_it_waits_for() {
    run(scripted(|_| Step::End(Ok(Outcome::After(Duration::from_secs(60))))), |supervised, _, universe| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        settle().await;

        let actors = universe.env.census.snapshot();
        let paths: Vec<_> = actors.iter().map(|actor| actor.path.as_str()).collect();
        assert_eq!(paths, ["scripted", "scripted/a"]);
        assert_eq!((actors[1].activity, actors[1].finished), (Activity::Idle, 1));
        assert!(actors[1].next_timer.is_some());
    });
}

#[test]
fn the_duties_of_one_actor_run_side_by_side() {
    let mut controller = scripted(|_| Step::After(Duration::from_secs(1), Ok(Outcome::Done)));
    controller.duties = 2;
    run(controller, |supervised, controller, _| async move {
        supervised.wake(&key("a"), Wake::live(EVENT));
        tokio::time::sleep(Duration::from_millis(500)).await;

        let duties: Vec<_> = controller.log.borrow().iter().map(|run| run.duty).collect();
        assert_eq!(duties, [0, 1]);
        assert_eq!(controller.running.get(), 2);
    });
}
