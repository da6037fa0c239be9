use kit::{Causes, Controller, Failure, Outcome, Priority, Reconcile, Reconciler, Supervised};

use super::*;
use crate::{Predicate, watches::Change};

/// Notes each reconcile: `priority key`.
#[derive(Default)]
struct Noted(RefCell<Vec<String>>);

impl Controller for Noted {
    type Key = String;
    type Memory = ();

    fn name(&self) -> &'static str {
        "noted"
    }

    fn reconcilers(&self) -> Vec<Reconciler> {
        vec![Reconciler::new("noted", 1)]
    }

    async fn reconcile(self: &Rc<Self>, (): &mut (), reconcile: &Reconcile<String>) -> Result<Outcome, Failure> {
        let priority = if reconcile.priority() == Priority::High { "high" } else { "low" };
        self.0.borrow_mut().push(format!("{priority} {}", reconcile.key));
        Ok(Outcome::Retire)
    }
}

impl Noted {
    fn taken(&self) -> Vec<String> {
        self.0.borrow_mut().drain(..).collect()
    }
}

/// An object's value names the keys that it concerns.
fn predicate_scene<F: Future>(
    predicate: Predicate<Entry>,
    test: impl FnOnce(Rc<Noted>, Sim, Watch<Entry>) -> F + 'static,
) {
    universe(1, |universe: Universe| async move {
        let env = &universe.env;
        let sim = Sim::new(SimOptions::new(env.clock.clone(), env.random.clone()));
        sim.put(config_map("a", "x")).unwrap();
        let watches = watches_of(&sim, &["default"], env);
        let watch = watches.open(WatchOptions::new(config_maps(), entry).labelled("ours=true"));
        let noted = Rc::new(Noted::default());
        let supervised = Supervised::start(noted.clone(), env);
        watch.on_change(&supervised, predicate, |_, entry| {
            entry.value.split(',').map(str::to_owned).collect::<Vec<_>>()
        });
        watches.start();
        watches.listed().await;
        settle().await;
        test(noted, sim, watch).await;
        supervised.stop(Duration::ZERO).await;
        watches.stop();
    });
}

fn value_changed() -> Predicate<Entry> {
    Predicate::differing(|old: &Entry, new| old.value != new.value)
}

/// spec 80 §16 S-20
#[test]
fn predicate_wakes_keys_of_the_first_list_at_low_and_others_at_high_priority() {
    predicate_scene(value_changed(), |noted, sim, _| async move {
        assert_eq!(noted.taken(), ["low x"]);

        sim.put(config_map("b", "y")).unwrap();
        settle().await;
        assert_eq!(noted.taken(), ["high y"]);
        sim.remove("configmaps", "default", "b");
        settle().await;
        assert_eq!(noted.taken(), ["high y"]);
    });
}

#[test]
fn predicate_wakes_the_keys_of_the_old_and_of_the_new_object_once() {
    predicate_scene(value_changed(), |noted, sim, _| async move {
        noted.taken();
        sim.edit("configmaps", "default", "a", |live| live["data"]["k"] = json!("z,x,z"));
        settle().await;
        assert_eq!(noted.taken(), ["high x", "high z"]);

        sim.edit("configmaps", "default", "a", |live| live["data"]["k"] = json!("y"));
        settle().await;
        assert_eq!(noted.taken(), ["high x", "high y", "high z"]);
    });
}

#[test]
fn predicate_ignores_equal_fields_and_own_writes() {
    predicate_scene(value_changed(), |noted, sim, watch| async move {
        noted.taken();
        sim.edit("configmaps", "default", "a", |live| live["data"]["other"] = json!("v"));
        settle().await;
        sim.edit("configmaps", "default", "a", |live| live["data"]["k"] = json!("y"));
        watch.wrote(&sim.object("configmaps", "default", "a").unwrap(), "writer", Instant::now());
        settle().await;

        assert_eq!((noted.taken(), watch.store().len()), (Vec::new(), 1));
    });
}

#[test]
fn predicate_can_include_equal_fields_and_own_writes() {
    predicate_scene(Predicate::any_change().including_own_writes(), |noted, sim, watch| async move {
        noted.taken();
        sim.edit("configmaps", "default", "a", |live| live["data"]["other"] = json!("v"));
        settle().await;
        assert_eq!(noted.taken(), ["high x"]);

        sim.edit("configmaps", "default", "a", |live| live["data"]["k"] = json!("y"));
        watch.wrote(&sim.object("configmaps", "default", "a").unwrap(), "writer", Instant::now());
        settle().await;
        assert_eq!(noted.taken(), ["high x", "high y"], "the event of the own write brings nothing new");
    });
}

#[test]
fn predicate_selects_changes_and_gives_their_causes() {
    const OWN: Causes = Causes::own(0);
    let entry = |value: &str| Entry { uid: "u".into(), version: 1, value: value.to_owned() };
    let (x, y) = (entry("x"), entry("y"));
    let causes = |predicate: Predicate<Entry>| {
        let changes = [
            (None, Some(&x), How::First),
            (None, Some(&x), How::Event),
            (Some(&x), Some(&y), How::Relist),
            (Some(&x), Some(&x), How::Event),
            (Some(&x), None, How::Event),
            (Some(&x), None, How::Lost),
            (None, None, How::Event),
        ];
        changes.map(|(old, new, how)| {
            let change = Change { name: &name("a"), old, new, how };
            predicate.wake::<()>(&change).map_or(Causes::NONE, |wake| wake.causes)
        })
    };

    let (none, object) = (Causes::NONE, Causes::OBJECT);
    assert_eq!(causes(value_changed()), [object, object, object, none, object, object, none]);
    assert_eq!(causes(value_changed().because(OWN)), [OWN, OWN, OWN, none, OWN, OWN, none]);
    assert_eq!(causes(Predicate::any_change()), [object, object, object, object, object, object, none]);
    let expected = [none, object, object, none, object, object, none];
    assert_eq!(causes(value_changed().ignoring_first_list()), expected);
    let expected = [none, none, object, none, object, object, none];
    assert_eq!(causes(value_changed().ignoring_creation()), expected);
    let expected = [object, object, object, none, none, none, none];
    assert_eq!(causes(value_changed().ignoring_deletion()), expected);
}
