//! Watches on the simulated API server (contract rule 3, faults 4 to 6).

mod answers;
mod cached_writes;
mod definitions;
mod index;
mod live;
mod narrowing;
mod pauses;
mod predicate;
mod serving;
mod sharing;
mod silence;
mod unreadable;
mod writes;

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use kit::{
    Env,
    testing::{Universe, eventually, settle, universe},
};
use serde_json::{Value, json};
use sim::{Fault, Seen, Sim, SimOptions, WatchEnd};
use tokio::time::Instant;

use super::{Found, How, MOST_NAMESPACES, Start, Watch, WatchOptions, Watches};
use crate::{
    AnswerRoom, Cached, Cluster, ClusterEnv, ClusterLabel, ClusterOptions, Fence, IDLE_LIMIT, NoObserver, Resource,
    StoreState,
    object::{self, NamespacedName},
};

#[derive(Clone, Debug)]
struct Entry {
    uid: Arc<str>,
    version: u64,
    value: String,
}

impl Cached for Entry {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn version(&self) -> u64 {
        self.version
    }
}

fn entry(object: &Value) -> Option<Entry> {
    let version = object::resource_version(object).parse().ok()?;
    let value = object["data"]["k"].as_str().unwrap_or_default().to_owned();
    Some(Entry { uid: object::uid(object).into(), version, value })
}

/// The calls of an event handler: `how name old→new`.
type Log = Rc<RefCell<Vec<String>>>;

struct Scene {
    begun: Instant,
    sim: Sim,
    watch: Watch<Entry>,
    log: Log,
}

fn version_of(object: &Value) -> u64 {
    object::resource_version(object).parse().unwrap()
}

fn config_map(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "namespace": "default", "name": name, "labels": { "ours": "true" } }, "data": { "k": value }
    })
}

fn config_maps() -> Resource {
    Resource::new("", "v1", "ConfigMap", "configmaps", true)
}

fn name(name: &str) -> NamespacedName {
    NamespacedName::new("default", name)
}

fn bare<F: Future>(test: impl FnOnce(Sim, Watches) -> F + 'static) {
    universe(1, |universe: Universe| async move {
        let env = &universe.env;
        let sim = Sim::new(SimOptions::new(env.clock.clone(), env.random.clone()));
        let watches = watches_of(&sim, &["default"], env);
        test(sim, watches.clone()).await;
        watches.stop();
    });
}

fn watches_of(sim: &Sim, namespaces: &[&str], env: &Env) -> Watches {
    let namespaces = namespaces.iter().map(ToString::to_string).collect();
    let options = ClusterOptions {
        label: ClusterLabel::may_be_down("target"),
        host: "sim".into(),
        qps: -1.0,
        burst: 0,
        namespaces,
    };
    let cluster_env = ClusterEnv {
        clock: env.clock.clone(),
        random: env.random.clone(),
        fence: Fence::open(),
        room: AnswerRoom::default(),
    };
    Watches::new(&Cluster::new(sim.client(), options, cluster_env, Rc::new(NoObserver)), env)
}

fn scene<F: Future>(start: Start, prepare: impl FnOnce(&Sim) + 'static, test: impl FnOnce(Rc<Scene>) -> F + 'static) {
    universe(1, |universe: Universe| async move {
        let env = &universe.env;
        let sim = Sim::new(SimOptions::new(env.clock.clone(), env.random.clone()));
        prepare(&sim);
        let watches = watches_of(&sim, &["default"], env);
        let options = WatchOptions::new(config_maps(), entry).labelled("ours=true");
        let watch = watches.open(if start == Start::Now { options.from_now() } else { options });
        let begun = Instant::now();
        watches.start();
        let log = Log::default();
        let (reported, store) = (log.clone(), watch.store().clone());
        watch.subscribe(move |change| {
            let value = |entry: Option<&Entry>| entry.map_or("-".to_owned(), |entry| entry.value.clone());
            let known = store.get(change.name);
            assert_eq!(value(known.as_ref()), value(change.new), "the store is never behind the event handler");
            let how = match change.how {
                How::First => "first",
                How::Event => "event",
                How::Relist => "relist",
                How::Own { .. } => "own",
                How::Lost => "lost",
            };
            reported.borrow_mut().push(format!(
                "{how} {} {}→{}",
                change.name.name,
                value(change.old),
                value(change.new)
            ));
        });
        let scene = Rc::new(Scene { begun, sim, watch: watch.clone(), log });
        settle().await;
        eventually("the watch has begun", Duration::from_secs(600), || {
            matches!(watch.store().state(), StoreState::Synced | StoreState::Failing(_))
        })
        .await;
        test(scene).await;
        watches.stop();
    });
}

impl Scene {
    fn reported(&self) -> Vec<String> {
        self.log.borrow_mut().drain(..).collect()
    }

    fn value(&self, object: &str) -> Option<String> {
        self.watch.store().with(&name(object), |entry| entry.value.clone())
    }
}

#[test]
fn rule_3_event_handler_gets_the_first_list_then_each_event_in_the_turn_of_the_store() {
    let prepare = |sim: &Sim| {
        sim.put(config_map("a", "1")).unwrap();
    };
    scene(Start::List, prepare, |scene| async move {
        assert_eq!(scene.reported(), ["first a -→1"]);

        scene.sim.put(config_map("b", "1")).unwrap();
        scene.sim.edit("configmaps", "default", "a", |live| live["data"]["k"] = json!("2"));
        scene.sim.remove("configmaps", "default", "b");
        settle().await;

        assert_eq!(scene.reported(), ["event b -→1", "event a 1→2", "event b 1→-"]);
    });
}

#[test]
fn rule_3_list_after_a_lost_watch_becomes_the_differences() {
    let prepare = |sim: &Sim| {
        for object in ["a", "b", "c"] {
            sim.put(config_map(object, "1")).unwrap();
        }
    };
    scene(Start::List, prepare, |scene| async move {
        scene.reported();
        scene.sim.break_watches(WatchEnd::Hang);
        scene.sim.edit("configmaps", "default", "b", |live| live["data"]["k"] = json!("2"));
        scene.sim.remove("configmaps", "default", "c");
        scene.sim.compact();
        tokio::time::sleep(IDLE_LIMIT + Duration::from_secs(60)).await;

        assert_eq!(scene.reported(), ["relist b 1→2", "relist c 1→-"]);
    });
}

/// Otherwise an event handler that compares both finds no difference, and does nothing for the new object.
#[test]
fn list_that_shows_an_object_created_anew_reports_the_end_of_the_old_one() {
    let prepare = |sim: &Sim| {
        sim.put(config_map("a", "1")).unwrap();
    };
    scene(Start::List, prepare, |scene| async move {
        scene.reported();
        scene.sim.break_watches(WatchEnd::Hang);
        scene.sim.remove("configmaps", "default", "a");
        scene.sim.put(config_map("a", "1")).unwrap();
        scene.sim.compact();
        tokio::time::sleep(IDLE_LIMIT + Duration::from_secs(60)).await;

        assert_eq!(scene.reported(), ["relist a 1→-", "relist a -→1"]);
    });
}

#[test]
fn event_handler_added_later_gets_the_cached_objects() {
    let prepare = |sim: &Sim| {
        sim.put(config_map("a", "1")).unwrap();
    };
    scene(Start::List, prepare, |scene| async move {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let reported = seen.clone();
        scene
            .watch
            .subscribe(move |change| reported.borrow_mut().push((change.name.name.clone(), change.how == How::First)));

        assert_eq!(*seen.borrow(), [("a".to_owned(), true)]);
    });
}

#[test]
fn watch_that_starts_now_gets_changes_only() {
    let prepare = |sim: &Sim| {
        sim.put(config_map("old", "1")).unwrap();
    };
    scene(Start::Now, prepare, |scene| async move {
        assert!(scene.watch.store().is_empty() && scene.watch.store().is_fresh());

        scene.sim.put(config_map("new", "1")).unwrap();
        settle().await;

        assert_eq!(scene.reported(), ["event new -→1"]);
        assert_eq!(scene.watch.store().len(), 1);
    });
}

/// Fault 11.
#[test]
fn watch_that_is_refused_makes_the_store_no_evidence_until_it_is_open_again() {
    for refusal in ["forbidden", "unauthorized"] {
        scene(
            Start::List,
            |_| {},
            move |scene| async move {
                let mut left = 1;
                scene.sim.set_faults(move |request| {
                    if request.verb == "watch" && left > 0 {
                        left -= 1;
                        return Fault::FailBefore(match refusal {
                            "forbidden" => Seen::forbidden(request),
                            _ => Seen::unauthorized(),
                        });
                    }
                    Fault::None
                });
                scene.sim.break_watches(WatchEnd::Disconnect);
                tokio::time::sleep(Duration::from_secs(3)).await;
                assert!(!scene.watch.store().is_fresh(), "{refusal}");
                tokio::time::sleep(Duration::from_secs(10)).await;

                assert!(scene.watch.store().is_fresh());
                assert_eq!(scene.watch.store().state(), StoreState::Synced);
            },
        );
    }
}

#[test]
fn selection_change_removes_an_object_from_the_store() {
    let prepare = |sim: &Sim| {
        sim.put(config_map("a", "1")).unwrap();
    };
    scene(Start::List, prepare, |scene| async move {
        scene.reported();
        scene.sim.edit("configmaps", "default", "a", |live| live["metadata"]["labels"] = json!({}));
        settle().await;

        assert_eq!(scene.reported(), ["event a 1→-"]);
    });
}

#[test]
fn list_that_fails_is_shown_and_tried_again_with_back_off() {
    let prepare = |sim: &Sim| {
        let mut left = 3;
        sim.set_faults(move |request| {
            if request.verb == "list" && left > 0 {
                left -= 1;
                return Fault::FailBefore(Seen::forbidden(request));
            }
            Fault::None
        });
        sim.put(config_map("a", "1")).unwrap();
    };
    scene(Start::List, prepare, |scene| async move {
        assert!(matches!(scene.watch.store().state(), StoreState::Failing(error) if error.contains("forbidden")));
        assert!(!scene.watch.store().is_fresh());
        tokio::time::sleep(Duration::from_secs(60)).await;

        assert_eq!(scene.watch.store().state(), StoreState::Synced);
        assert_eq!(scene.value("a").as_deref(), Some("1"));
        let lists = scene.sim.requests().iter().filter(|request| request.info.verb == "list").count();
        assert_eq!(lists, 4, "no more requests than the back-off allows");
    });
}

#[test]
fn watch_that_ends_at_once_is_reopened_with_back_off() {
    let prepare = |sim: &Sim| {
        sim.set_faults(|request| match request.verb.as_str() {
            "watch" => Fault::BreakWatch { after_events: 0, end: WatchEnd::Close },
            _ => Fault::None,
        });
    };
    scene(Start::List, prepare, |scene| async move {
        tokio::time::sleep(Duration::from_secs(60)).await;

        let watches = scene.sim.requests().iter().filter(|request| request.info.verb == "watch").count();
        assert!((3..=8).contains(&watches), "{watches} watches in a minute");
    });
}

#[test]
fn watch_that_was_open_for_long_is_reopened_soon_however_often_it_broke() {
    scene(
        Start::List,
        |_| {},
        |scene| async move {
            for round in 0..5 {
                tokio::time::sleep(Duration::from_secs(600)).await;
                scene.sim.break_watches(WatchEnd::Disconnect);
                let name = format!("a{round}");
                tokio::time::sleep(Duration::from_secs(2)).await;
                scene.sim.put(config_map(&name, "1")).unwrap();
                settle().await;

                assert_eq!(scene.value(&name).as_deref(), Some("1"));
                scene.sim.remove("configmaps", "default", &name);
            }
        },
    );
}
