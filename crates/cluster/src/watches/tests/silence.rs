use super::*;

/// Fault 6.
#[test]
fn silent_watch_is_reopened_after_the_idle_limit_and_nothing_is_missed() {
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

/// Fault 6. A server or proxy may accept each watch and report nothing.
#[test]
fn silent_watch_that_was_reopened_is_no_evidence_and_is_relisted() {
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
        assert!(scene.watch.is_fresh() && scene.watch.store().is_fresh(), "it was relisted");
        assert_eq!((counts(), scene.value("a").as_deref()), ([2, 3], Some("1")));

        tokio::time::sleep(IDLE_LIMIT * 20).await;
        assert_eq!(counts(), [12, 23], "it is asked no more often than before");
    });
}

/// Fault 6. The watch after a silence counts again once it has reported something: a bookmark is enough.
#[test]
fn bookmark_after_a_silence_makes_the_store_evidence_again_without_a_list() {
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

/// Fault 6. Stores count as fresh for 150 s; the status registry shows since when there was no contact.
#[test]
fn status_registry_shows_the_last_contact_of_a_silent_watch() {
    scene(
        Start::List,
        |_| {},
        |scene| async move {
            let heard_ago = || {
                let now = scene.watch.informer.env.clock.wall();
                let watch = scene
                    .watch
                    .informer
                    .env
                    .status_registry
                    .snapshot()
                    .into_iter()
                    .find(|actor| actor.path == "watch/target/configmaps.v1");
                now.duration_since(watch.and_then(|watch| watch.heard).expect("it was heard of")).as_secs()
            };
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_secs(60)).await;
                assert!(heard_ago() <= 75, "a bookmark comes each minute: {}", heard_ago());
            }
            let before = scene.watch.informer.env.status_registry.version();
            for round in 0..100 {
                scene.sim.put(config_map(&format!("a{round}"), "1")).unwrap();
                settle().await;
            }
            let changes = scene.watch.informer.env.status_registry.version() - before;
            assert!(
                changes <= 102,
                "each event changes the number of cached objects, and the last contact changes now and then: {changes}"
            );
            let before = heard_ago();
            scene.sim.break_watches(WatchEnd::Hang);
            tokio::time::sleep(IDLE_LIMIT - Duration::from_secs(10)).await;

            assert!(scene.watch.store().is_fresh());
            let expected = before + IDLE_LIMIT.as_secs() as i64 - 10;
            assert!((expected..=expected + 1).contains(&heard_ago()), "{} of {expected}", heard_ago());
        },
    );
}

/// The store stays evidence for 150 s after its watch failed; who looks at the watch sees the failure at once.
#[test]
fn status_registry_shows_a_failed_watch_as_failing_before_its_store_is_stale() {
    scene(
        Start::List,
        |_| {},
        |scene| async move {
            let shown = || {
                let actors = scene.watch.informer.env.status_registry.snapshot();
                let watch = actors.into_iter().find(|actor| actor.path == "watch/target/configmaps.v1").unwrap();
                (watch.activity, watch.last_error.map(|(_, text)| text).unwrap_or_default())
            };
            assert_eq!(shown(), (kit::Activity::Idle, String::new()));
            scene.sim.set_faults(|request| match request.verb.as_str() {
                "watch" => Fault::FailBefore(Seen::Disconnect),
                _ => Fault::None,
            });
            scene.sim.break_watches(WatchEnd::Disconnect);
            settle().await;

            assert!(scene.watch.store().is_fresh());
            let (activity, error) = shown();
            assert_eq!(activity, kit::Activity::Failing, "{error}");
            assert!(!error.is_empty());

            scene.sim.set_faults(|_| Fault::None);
            eventually("the watch is open again", IDLE_LIMIT, || shown().0 == kit::Activity::Idle).await;
        },
    );
}
