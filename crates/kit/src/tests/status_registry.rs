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
    fn reconciler(&self, _: &'static str, name: &'static str, permits: usize) -> Rc<dyn ReconcilerObserver> {
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

fn enter(registry: &StatusRegistry, path: &str) -> Cell {
    registry.enter(path, Role::Object)
}

fn paths(changes: &RegistryChanges) -> (Vec<&str>, Vec<&str>) {
    (
        changes.changed.iter().map(|state| state.path.as_str()).collect(),
        changes.gone.iter().map(|path| &**path).collect(),
    )
}

#[test]
fn follower_finds_new_changed_and_removed_cells() {
    let registry = StatusRegistry::default();
    let [a, b] = ["a", "b"].map(|path| enter(&registry, path));
    let mut follower = Follower::new(registry.clone());

    assert_eq!(follower.look(), None, "nothing changed");

    b.update(jiff::Timestamp::UNIX_EPOCH, |state| state.finished = 7);
    let changes = follower.look().unwrap();
    assert_eq!(paths(&changes), (vec!["b"], vec![]));
    assert_eq!((changes.changed[0].finished, changes.version), (7, registry.version()));

    registry.leave("a");
    enter(&registry, "c");
    assert_eq!(paths(&follower.look().unwrap()), (vec!["c"], vec!["a"]));

    registry.leave("b");
    enter(&registry, "b");
    assert_eq!(paths(&follower.look().unwrap()), (vec!["b"], vec![]), "another actor has the path");

    a.update(jiff::Timestamp::UNIX_EPOCH, |_| {});
    assert_eq!(paths(&follower.look().unwrap()), (vec![], vec!["a"]), "the cell of an actor that is gone");
}

#[test]
fn follower_reports_the_end_of_an_actor_that_was_listed_between_two_looks() {
    let registry = StatusRegistry::default();
    let mut follower = Follower::new(registry.clone());
    enter(&registry, "a");

    let listed = registry.paths();
    registry.leave("a");

    assert_eq!(listed, ["a".into()]);
    assert_eq!(paths(&follower.look().unwrap()), (vec![], vec!["a"]));
    assert_eq!(follower.look(), None);
}

#[test]
fn followers_of_one_registry_each_get_what_changed_since_they_began() {
    let registry = StatusRegistry::default();
    let mut first = Follower::new(registry.clone());
    enter(&registry, "a");
    let mut second = Follower::new(registry.clone());
    enter(&registry, "b");

    assert_eq!(paths(&first.look().unwrap()), (vec!["a", "b"], vec![]));
    drop(first);
    enter(&registry, "c");
    assert_eq!(paths(&second.look().unwrap()), (vec!["b", "c"], vec![]));
}

#[test]
fn follower_finds_headlines_at_once_and_the_rest_with_the_next_whole_look() {
    let registry = StatusRegistry::default();
    let [a, b] = ["a", "b"].map(|path| enter(&registry, path));
    let mut follower = Follower::new(registry.clone());
    let epoch = jiff::Timestamp::UNIX_EPOCH;

    a.update(epoch, |state| state.finished = 1);
    b.update(epoch, |state| state.finished = 1);
    assert_eq!(follower.look_for_headlines(), None);
    b.set_problem(epoch, Some("broken".to_owned()));
    assert_eq!(paths(&follower.look_for_headlines().unwrap()), (vec!["b"], vec![]));
    enter(&registry, "c");
    assert_eq!(paths(&follower.look_for_headlines().unwrap()), (vec!["c"], vec![]));

    assert_eq!(paths(&follower.look().unwrap()), (vec!["a"], vec![]));
    assert_eq!(follower.look(), None);
    b.update(epoch, |state| state.finished = 2);
    assert_eq!(follower.look_for_headlines(), None);
    registry.leave("b");
    assert_eq!(paths(&follower.look_for_headlines().unwrap()), (vec![], vec!["b"]));
    assert_eq!(follower.look(), None, "its end was reported");
}

/// Each look may come between any two steps of a change, and finds it then or later.
#[test]
fn follower_loses_no_change_of_other_threads() {
    const CHANGES: u64 = 20_000;
    let registry = StatusRegistry::default();
    let mut follower = Follower::new(registry.clone());
    let mut known = std::collections::BTreeMap::new();
    let mut look = || {
        let Some(changes) = follower.look() else { return };
        known.extend(changes.changed.into_iter().map(|state| (state.path, state.finished)));
        known.retain(|path, _| !changes.gone.iter().any(|gone| **gone == **path));
    };

    std::thread::scope(|threads| {
        let changing: Vec<_> = (0..2)
            .map(|thread| {
                let registry = registry.clone();
                threads.spawn(move || {
                    let cells: Vec<_> = (0..8).map(|cell| enter(&registry, &format!("{thread}/{cell}"))).collect();
                    for number in 1..=CHANGES {
                        cells[number as usize % 8].update(jiff::Timestamp::UNIX_EPOCH, |state| state.finished = number);
                        let passing = format!("passing/{thread}/{}", number % 3);
                        enter(&registry, &passing);
                        registry.leave(&passing);
                    }
                })
            })
            .collect();
        while changing.iter().any(|thread| !thread.is_finished()) {
            look();
        }
    });
    look();

    let expected = registry.snapshot().into_iter().map(|state| (state.path, state.finished));
    assert_eq!(known, expected.collect());
    assert_eq!(known.len(), 16);
}

/// The dashboard looks twenty times a second while a page is open.
#[test]
fn follower_finds_one_change_among_ten_thousand_cells_within_microseconds() {
    const LOOKS: u32 = 50;
    let registry = StatusRegistry::default();
    let cells: Vec<_> = (0..10_000)
        .map(|number| enter(&registry, &format!("managedresource/shoot--project--{}/bundle-{number}", number % 100)))
        .collect();
    let mut follower = Follower::new(registry);
    assert_eq!(follower.look(), None);

    let begin = tokio::time::Instant::now();
    for _ in 0..LOOKS {
        cells[77].update(jiff::Timestamp::UNIX_EPOCH, |_| {});
        assert_eq!(follower.look().unwrap().changed.len(), 1);
    }
    let each = begin.elapsed() / LOOKS;

    println!("a look at 10000 cells, one of them changed, takes {each:?}");
    assert!(each < Duration::from_millis(1), "{each:?}");
}

/// What an actor costs while nobody looks: its state, its history, and the texts of a usual bundle.
#[test]
fn actor_shows_itself_in_less_than_a_kibibyte() {
    let registry = StatusRegistry::default();
    let path = "managedresource/shoot--project--cluster/extension-controlplane-shoot";
    let cell = enter(&registry, path);
    let shared: std::sync::Arc<str> = "ResourcesApplied".into();
    let condition = || ConditionSummary {
        kind: shared.clone(),
        status: shared.clone(),
        reason: shared.clone(),
        since: Some(jiff::Timestamp::UNIX_EPOCH),
        tone: Tone::Good,
    };
    let object = ObjectSummary {
        kind: "ManagedResource",
        namespace: "shoot--project--cluster".into(),
        name: "extension-controlplane-shoot".into(),
        class: "seed".into(),
        objects: 20,
        marks: Vec::new(),
        conditions: vec![condition(), condition(), condition()],
    };
    cell.update(jiff::Timestamp::UNIX_EPOCH, |state| {
        state.line = "20 objects, applied".to_owned();
        state.object = Some(object.clone().into());
    });
    let state = cell.read();

    let two_counters = 2 * size_of::<usize>();
    let summary = size_of::<ObjectSummary>()
        + two_counters
        + object.namespace.len()
        + object.name.len()
        + object.class.len()
        + object.conditions.len() * size_of::<ConditionSummary>();
    let entry_of_the_map = size_of::<std::sync::Arc<str>>() + size_of::<Cell>();
    let path = path.len() + two_counters;
    let cell = size_of::<ActorState>() + 4 * size_of::<usize>() + two_counters;
    let bytes = cell + state.line.len() + path + summary + 2 * entry_of_the_map + size_of::<crate::history::History>();
    println!("an actor with a bundle: {bytes} bytes; the summary of its object: {summary} bytes");
    assert!(bytes < 1024, "{bytes}");
}
