use std::{cell::RefCell, rc::Rc, time::Duration};

use jiff::SignedDuration;

use super::support::*;
use crate::{
    testing::{settle, universe},
    *,
};

#[test]
fn rule_11_status_registry_shows_each_actor_and_its_next_timer() {
    let script = |_: &ScriptedReconcile| Step::End(Ok(Outcome::After(seconds(60))));
    run(Scripted::new(script), |supervised, _, universe| async move {
        let begin = universe.env.clock.wall();
        supervised.wake(&key("a"), Wake::high(EVENT));
        settle().await;

        let actors = universe.env.status_registry.snapshot();
        let paths: Vec<_> = actors.iter().map(|actor| actor.path.as_str()).collect();
        assert_eq!(paths, ["scripted", "scripted/a"]);
        assert_eq!((actors[1].activity, actors[1].finished), (Activity::Idle, 1));
        assert_eq!(actors[1].next_timer, Some(begin + SignedDuration::from_secs(60)));
    });
}

#[test]
fn rule_11_actor_whose_object_has_a_problem_is_failing_while_it_rests() {
    let script = |_: &ScriptedReconcile| Step::After(seconds(1), Ok(Outcome::After(seconds(60))));
    run(Scripted::new(script), |supervised, _, universe| async move {
        let shows = || {
            let state = shown(&universe, "a");
            (state.activity, state.problem)
        };
        let problem = || Some("broken".to_owned());
        let weak = supervised.weak();
        weak.set_problem(&key("b"), problem());
        supervised.wake(&key("a"), Wake::high(EVENT));
        settle().await;
        weak.set_problem(&key("a"), problem());
        assert_eq!(shows(), (Activity::Running, problem()));

        reconcile_time(2).await;
        assert_eq!(shows(), (Activity::Failing, problem()));

        weak.set_problem(&key("a"), None);
        assert_eq!(shows(), (Activity::Idle, None));
    });
}

#[test]
fn rule_11_next_timer_is_the_earliest_of_all_reconcilers() {
    let script = |reconcile: &ScriptedReconcile| {
        let again = if reconcile.reconciler == 0 { 60 } else { 600 };
        if reconcile.because_of(Causes::own(1)) { done() } else { Step::End(Ok(Outcome::After(seconds(again)))) }
    };
    let controller = Scripted::new(script).reconcilers([EVENT.with(Causes::own(1)), EVENT.with(Causes::own(1))]);
    run(controller, |supervised, _, universe| async move {
        let begin = universe.env.clock.wall();
        supervised.wake(&key("a"), Wake::high(EVENT));
        settle().await;
        assert_eq!(shown(&universe, "a").next_timer, Some(begin + SignedDuration::from_secs(60)));
        supervised.wake(&key("a"), Wake::high(Causes::own(1)));
        settle().await;

        assert_eq!(shown(&universe, "a").next_timer, None);
    });
}

#[test]
fn rule_11_status_shows_running_reconciles() {
    let script = |reconcile: &ScriptedReconcile| {
        reconcile.note(format!("reconciler {}", reconcile.reconciler));
        Step::After(seconds(1 + reconcile.reconciler as u64), Ok(Outcome::Done))
    };
    run(Scripted::new(script).reconcilers([EVENT, EVENT]), |supervised, _, universe| async move {
        let current = || shown(&universe, "a").current;
        supervised.wake(&key("a"), Wake::high(EVENT));
        settle().await;
        assert_eq!(current().as_deref(), Some("reconcile first, second"));
        tokio::time::sleep(Duration::from_millis(1500)).await;
        assert_eq!(current().as_deref(), Some("reconcile second"));
        reconcile_time(1).await;

        assert_eq!(current(), None);
        assert_eq!(shown(&universe, "a").line, "reconciler 1");
    });
}

#[test]
fn rule_11_waiting_wakes_and_their_high_water_mark_are_counted() {
    run(Scripted::new(|_| done()).reconcilers([EVENT, EVENT]).permits(1), |supervised, _, universe| async move {
        for name in ["a", "b"] {
            supervised.wake(&key(name), Wake::high(EVENT));
        }
        assert_eq!((shown(&universe, "b").mailbox, shown(&universe, "b").activity), (2, Activity::Queued));
        settle().await;

        let after = shown(&universe, "b");
        assert_eq!((after.mailbox, after.mailbox_high, after.activity), (0, 2, Activity::Idle));
    });
}

#[derive(Clone, Default)]
struct Recorder(Rc<RefCell<Vec<String>>>);

struct Recording(Recorder);

impl Observers for Recording {
    fn reconciler(&self, name: &'static str, permits: usize) -> Rc<dyn ReconcilerObserver> {
        self.0.say(format!("{name} has {permits}"));
        Rc::new(self.0.clone())
    }
}

impl Recorder {
    fn say(&self, text: impl Into<String>) {
        self.0.borrow_mut().push(text.into());
    }

    fn count(&self, text: &str) -> usize {
        self.0.borrow().iter().filter(|said| *said == text).count()
    }
}

impl ReconcilerObserver for Recorder {
    fn ready(&self, is_ready: bool) {
        self.say(format!("ready {is_ready}"));
    }
    fn depth(&self, priority: Priority, waiting: usize) {
        self.say(format!("depth {priority:?} {waiting}"));
    }
    fn added(&self) {
        self.say("added");
    }
    fn retried(&self) {
        self.say("retried");
    }
    fn waited(&self, time: Duration) {
        self.say(format!("waited {}", time.as_secs()));
    }
    fn started(&self) -> Box<dyn ReconcileObserver> {
        self.say("started");
        Box::new(OneReconcile { recorder: self.clone(), number: self.count("started") })
    }
    fn idle_checked(&self) {
        self.say("rested");
    }
    fn panicked(&self) {
        self.say("panicked");
    }
    fn timed_out(&self) {
        self.say("timed out");
    }
}

/// A reconcile by its number, from 1 on.
struct OneReconcile {
    recorder: Recorder,
    number: usize,
}

impl ReconcileObserver for OneReconcile {
    fn finished(self: Box<Self>, result: ReconcileResult, took: Duration) {
        self.recorder.say("finished");
        self.recorder.say(format!("{result:?} after {}", took.as_secs()));
        self.recorder.say(format!("reconcile {} ended", self.number));
    }
}

impl Drop for OneReconcile {
    fn drop(&mut self) {
        self.recorder.say("over");
    }
}

#[test]
fn rule_11_observer_of_a_reconcile_gets_the_end_of_that_reconcile() {
    universe(1, |universe| async move {
        let recorder = Recorder::default();
        let env = Env { observers: Rc::new(Recording(recorder.clone())), ..universe.env.clone() };
        let script =
            |reconcile: &ScriptedReconcile| Step::After(seconds(reconcile.key.len() as u64), Ok(Outcome::Done));
        let supervised = Supervised::start(Rc::new(Scripted::new(script)), &env);
        for name in ["four", "a", "stopped before"] {
            supervised.wake(&key(name), Wake::high(EVENT));
        }
        reconcile_time(5).await;
        supervised.stop(Duration::ZERO).await;
        settle().await;

        let ends: Vec<_> = recorder.0.borrow().iter().filter(|said| said.starts_with("reconcile ")).cloned().collect();
        assert_eq!(ends, ["reconcile 2 ended", "reconcile 1 ended"]);
        assert_eq!(
            (recorder.count("started"), recorder.count("over")),
            (3, 3),
            "a reconcile that is cut off is over, too"
        );
    });
}

#[test]
fn rule_11_observer_sees_whether_the_required_caches_are_synced() {
    universe(1, |universe| async move {
        let recorder = Recorder::default();
        let env = Env { observers: Rc::new(Recording(recorder.clone())), ..universe.env.clone() };
        let scripted = Scripted::new(|_| done());
        scripted.ready.set(false);
        let supervised = Supervised::start(Rc::new(scripted), &env);
        for is_ready in [true, false] {
            supervised.controller().ready.set(is_ready);
            supervised.controller().readiness.raise();
        }
        settle().await;
        supervised.stop(Duration::ZERO).await;

        let told: Vec<_> = recorder.0.borrow().iter().filter(|said| said.starts_with("ready")).cloned().collect();
        assert_eq!(told, ["ready false", "ready true", "ready false"]);
    });
}

#[test]
fn rule_11_observer_counts_idle_checks_without_a_reconcile() {
    universe(1, |universe| async move {
        let recorder = Recorder::default();
        let env = Env { observers: Rc::new(Recording(recorder.clone())), ..universe.env.clone() };
        let idle_check = |_: &_| Step::End(Ok(Outcome::Idle(seconds(60), IdleCheck::new(|| Some(seconds(60))))));
        let supervised = Supervised::start(Rc::new(Scripted::new(idle_check)), &env);
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(200).await;
        supervised.stop(Duration::ZERO).await;

        assert_eq!((recorder.count("finished"), recorder.count("rested")), (1, 3));
    });
}

#[test]
fn rule_11_observer_sees_start_and_end_of_each_reconcile_even_when_its_actor_dies() {
    universe(1, |universe| async move {
        let recorder = Recorder::default();
        let env = Env { observers: Rc::new(Recording(recorder.clone())), ..universe.env.clone() };
        let script = steps([|| Step::Panic, || Step::Hang, || Step::HangThenKill, one_second]);
        let supervised = Supervised::start(Rc::new(Scripted::new(script).permits(0)), &env);
        supervised.wake(&key("a"), Wake::high(EVENT));
        reconcile_time(100).await;
        supervised.stop(Duration::ZERO).await;

        assert_eq!(recorder.count("first has 1"), 1);
        assert_eq!((recorder.count("started"), recorder.count("finished")), (4, 4));
        assert_eq!((recorder.count("Error after 40"), recorder.count("Success after 1")), (2, 1));
        assert_eq!((recorder.count("panicked"), recorder.count("timed out")), (1, 1));
        assert_eq!((recorder.count("added"), recorder.count("retried")), (4, 2));
    });
}
