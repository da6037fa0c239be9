//! Watches that are open and say nothing.

use super::*;

/// Fault 6.
#[test]
fn a_watch_that_hangs_silently_is_taken_up_again_after_the_idle_limit_and_nothing_is_missed() {
    scene(
        Start::List,
        |_| {},
        |scene| async move {
            scene.sim.break_watches(WatchEnd::Hang);
            scene.sim.put(config_map("a", "1")).unwrap();
            tokio::time::sleep(IDLE_LIMIT - Duration::from_secs(1)).await;
            assert_eq!(scene.value("a"), None);
            assert!(scene.watch.store().is_fresh());
            tokio::time::sleep(Duration::from_secs(3)).await;

            assert_eq!(scene.value("a").as_deref(), Some("1"));
        },
    );
}

/// Fault 6. To accept a watch is not to tell what happened: a server or proxy may accept each, and say nothing.
#[test]
fn a_watch_that_is_opened_again_and_again_and_says_nothing_is_no_evidence_and_is_listed_anew() {
    let prepare = |sim: &Sim| {
        sim.set_faults(|request| match request.verb.as_str() {
            "watch" => Fault::BreakWatch { after_events: 0, end: WatchEnd::Hang },
            _ => Fault::None,
        });
    };
    scene(Start::List, prepare, |scene| async move {
        let counts = || {
            let requests = scene.sim.requests();
            ["list", "watch"].map(|verb| requests.iter().filter(|request| request.info.verb == verb).count())
        };
        assert!(scene.watch.store().is_fresh() && scene.watch.is_fresh(), "it was listed");
        scene.sim.put(config_map("a", "1")).unwrap();
        tokio::time::sleep(IDLE_LIMIT + Duration::from_secs(2)).await;
        assert!(!scene.watch.store().is_fresh() && !scene.watch.is_fresh(), "it was opened, and says nothing");
        assert!(!scene.watch.is_fresh_for(&name("a")));
        assert_eq!((counts(), scene.value("a")), ([1, 2], None));

        tokio::time::sleep(IDLE_LIMIT).await;
        assert!(scene.watch.is_fresh() && scene.watch.store().is_fresh(), "it was listed anew");
        assert_eq!((counts(), scene.value("a").as_deref()), ([2, 3], Some("1")));

        tokio::time::sleep(IDLE_LIMIT * 20).await;
        assert_eq!(counts(), [12, 23], "it is asked no more often than before");
    });
}

/// Fault 6. The watch after a silence is as good as any once it has said something: a bookmark will do.
#[test]
fn a_bookmark_after_a_silence_makes_the_store_evidence_again_without_a_list() {
    scene(
        Start::List,
        |_| {},
        |scene| async move {
            scene.sim.break_watches(WatchEnd::Hang);
            tokio::time::sleep(IDLE_LIMIT + Duration::from_secs(1)).await;
            assert!(!scene.watch.is_fresh());
            tokio::time::sleep(Duration::from_secs(61)).await;

            assert!(scene.watch.is_fresh());
            let lists = scene.sim.requests().iter().filter(|request| request.info.verb == "list").count();
            assert_eq!(lists, 1);
        },
    );
}
