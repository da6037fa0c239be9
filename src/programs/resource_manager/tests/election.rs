use crate::programs::resource_manager::tests::*;

/// spec 70 scenario 24
#[test]
fn standby_takes_over_when_the_leader_has_crashed() {
    world(|world| async move {
        let mut first = world.start_beside("first", elected());
        world.held_by("first").await;
        let second = world.start_beside("second", elected());
        world.bundle("one", "v");
        world.applied("one").await;
        assert_eq!(world.writes("second"), 0);

        first.life.crash();
        let crashed = Instant::now();
        world.bundle("two", "v");
        world.applied("two").await;

        assert!(crashed.elapsed() < LEASE_DURATION + Duration::from_secs(6), "{:?}", crashed.elapsed());
        assert_eq!(world.holder().as_deref(), Some("second"));
        assert_eq!(first.process.ended().await.to_string(), "leader election lost");
        assert!(!first.process.stop(Duration::ZERO).await.released);
        let stopped = second.process.stop(PATIENCE).await;
        assert_eq!(stopped, Stopped { finished: true, released: true });
    });
}

/// spec 71 scenario 8: the standby watches the Lease
#[test]
fn standby_takes_over_at_once_after_a_stop_and_when_the_lease_expires() {
    world(|world| async move {
        let first = world.start_beside("first", elected());
        world.held_by("first").await;
        let second = world.start_beside("second", elected());
        sleep(Duration::from_secs(30)).await;

        assert!(first.process.stop(PATIENCE).await.released);
        let released = Instant::now();
        world.held_by("second").await;
        assert!(released.elapsed() < Duration::from_millis(200), "{:?}", released.elapsed());

        let third = world.start_beside("third", elected());
        sleep(Duration::from_secs(30)).await;
        second.life.crash();
        let crashed = Instant::now();
        world.held_by("third").await;
        assert!(crashed.elapsed() < LEASE_DURATION + Duration::from_millis(200), "{:?}", crashed.elapsed());
        second.process.stop(Duration::ZERO).await;
        third.process.stop(PATIENCE).await;
    });
}

/// spec 70 §12: a standby that sees each renewal sends no requests.
#[test]
fn standby_sends_no_requests_while_it_sees_the_renewals() {
    world(|world| async move {
        let first = world.start_beside("first", elected());
        world.held_by("first").await;
        let second = world.start_beside("second", elected());
        sleep(Duration::from_secs(30)).await;
        world.sim.clear_requests();
        sleep(Duration::from_secs(120)).await;

        let requests = world.sim.requests().into_iter().map(|request| request.info);
        let of_leases = requests.filter(|info| info.user == "second" && info.resource == "leases");
        assert_eq!(of_leases.map(|info| info.verb).collect::<Vec<_>>(), Vec::<String>::new());
        first.process.stop(PATIENCE).await;
        second.process.stop(PATIENCE).await;
    });
}

/// spec 70 §12: no replica leads beside a leader whose Lease was deleted.
#[test]
fn leader_keeps_a_lease_that_was_deleted() {
    world(|world| async move {
        let first = world.start_beside("first", elected());
        world.held_by("first").await;
        let second = world.start_beside("second", elected());
        sleep(Duration::from_secs(30)).await;

        for _ in 0..20 {
            world.sim.remove(LEASES, NAMESPACE, "grm");
            sleep(Duration::from_millis(2700)).await;
            assert_eq!(world.holder().as_deref(), Some("first"));
        }
        world.bundle("one", "v");
        world.applied("one").await;
        assert_eq!(world.writes("second"), 0);
        first.process.stop(PATIENCE).await;
        world.held_by("second").await;
        second.process.stop(PATIENCE).await;
    });
}

/// spec 70 scenario 28, contract rule 9
#[test]
fn leader_election_loss_ends_the_process_and_its_writes() {
    world(|world| async move {
        let mut replica = world.start("first", elected());
        world.bundle("one", "v");
        world.applied("one").await;

        world.sim.edit(LEASES, NAMESPACE, "grm", |lease| lease["spec"]["holderIdentity"] = json!("other_1"));
        let error = replica.process.ended().await;
        let writes = world.writes("first");
        world.bundle("two", "v");
        sleep(Duration::from_secs(30)).await;

        assert_eq!(error.to_string(), "leader election lost");
        assert_eq!(world.writes("first"), writes);
        replica.process.stop(Duration::ZERO).await;
        assert_eq!(world.holder().as_deref(), Some("other"));
    });
}

#[test]
fn leader_election_settings_that_contradict_are_refused_at_the_start() {
    type Change = fn(&mut LeaderElection);
    let cases: [(Change, &str); 3] = [
        (
            |it| it.retry_period = Duration::from_secs(9).into(),
            "renewDeadline must be greater than retryPeriod*JitterFactor",
        ),
        (|it| it.resource_lock = "configmaps".into(), "configmaps lock is removed, migrate to leases"),
        (|it| it.resource_lock = "x".into(), "Invalid lock-type x"),
    ];
    world(|world| async move {
        for (change, text) in cases {
            let mut config = elected();
            change(&mut config.leader_election);
            let parts = ProcessParts {
                links: Links {
                    source: Link { client: world.sim.client(), host: String::new(), context: None, ca: Rc::default() },
                    target: None,
                },
                election: None,
                host: String::new(),
                config: Rc::new(config),
                env: world.env.clone(),
                requests: Rc::new(NoObserver),
                vitals: Vitals::new::<ResourceManager>(),
            };

            assert_eq!(
                Process::<ResourceManager>::start(parts).err().map(|error| error.to_string()).as_deref(),
                Some(text)
            );
        }
    });
}
