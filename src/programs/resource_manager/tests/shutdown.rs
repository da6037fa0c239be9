use crate::programs::resource_manager::tests::*;

/// spec 70 scenario 27
#[test]
fn shutdown_waits_for_a_reconcile_of_two_seconds_and_releases_the_lease() {
    world(|world| async move {
        let replica = world.start("first", elected());
        world.held_by("first").await;
        world.delay_creations(Duration::from_secs(2));
        world.bundle("one", "v");
        sleep(Duration::from_millis(500)).await;

        let begin = Instant::now();
        let stopped = replica.process.stop(PATIENCE).await;

        assert_eq!(stopped, Stopped { finished: true, released: true });
        assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
        assert!(world.origin("one").is_some());
        assert_eq!(world.holder().as_deref(), Some(""));
    });
}

/// spec 70 scenario 27: a request that was sent may still take effect, so the lease is left to expire
#[test]
fn shutdown_cuts_off_a_reconcile_of_sixty_seconds_and_keeps_the_lease() {
    world(|world| async move {
        let replica = world.start("first", elected());
        world.held_by("first").await;
        world.delay_creations(Duration::from_secs(60));
        world.bundle("one", "v");
        sleep(Duration::from_millis(500)).await;

        let begin = Instant::now();
        let stopped = replica.process.stop(PATIENCE).await;

        assert_eq!(stopped, Stopped { finished: false, released: false });
        assert!(begin.elapsed() >= PATIENCE && begin.elapsed() <= GRACE_PERIOD, "{:?}", begin.elapsed());
        assert_eq!(world.holder().as_deref(), Some("first"));
        let requests = world.sim.requests().len();
        sleep(LIMIT).await;
        assert_eq!(world.sim.requests().len(), requests);
    });
}

#[test]
fn shutdown_writes_the_events_of_the_election() {
    world(|world| async move {
        let replica = world.start("first", elected());
        world.held_by("first").await;

        replica.process.stop(PATIENCE).await;

        let mut messages: Vec<_> =
            world.sim.objects("events").into_iter().map(|event| event["message"].clone()).collect();
        messages.sort_by_key(ToString::to_string);
        let texts: Vec<_> = messages.iter().filter_map(|message| message.as_str()?.split_once(' ')).collect();
        assert_eq!(texts.iter().map(|(_, text)| *text).collect::<Vec<_>>(), ["became leader", "stopped leading"]);
    });
}
