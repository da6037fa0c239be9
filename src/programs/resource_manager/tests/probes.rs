use crate::programs::resource_manager::tests::*;

/// spec 70 scenario 22
#[test]
fn probes_report_an_api_server_that_cannot_be_reached() {
    world(|world| async move {
        let away = Arc::new(AtomicBool::new(true));
        let faults = away.clone();
        world.sim.set_faults(move |_| match faults.load(Ordering::Relaxed) {
            true => Fault::FailBefore(Seen::Disconnect),
            false => Fault::None,
        });
        world.bundle("one", "v");
        let replica = world.start("grm", Config::default());
        let (liveness, readiness) = (replica.vitals.liveness(), replica.vitals.readiness());
        let query = ProbeQuery { exclude: vec!["apiserver-healthz".into()], ..ProbeQuery::default() };
        let codes = || (liveness.aggregate(&query).status, readiness.aggregate(&query).status);
        assert_eq!(codes(), (200, 500));

        sleep(Duration::from_secs(179)).await;
        assert_eq!(codes(), (200, 500));
        sleep(Duration::from_secs(1)).await;
        assert_eq!(codes(), (500, 500));

        away.store(false, Ordering::Relaxed);
        world.applied("one").await;
        assert_eq!(codes(), (200, 200));
        replica.process.stop(PATIENCE).await;
        assert_eq!(readiness.aggregate(&query).status, 500);
    });
}

/// spec 70 trap 10
#[test]
fn readiness_survives_an_api_server_that_goes_away_later() {
    world(|world| async move {
        let replica = world.start("grm", Config::default());
        let readiness = replica.vitals.readiness();
        let query = ProbeQuery::default();
        testing::eventually("it is ready", LIMIT, || readiness.aggregate(&query).status == 200).await;

        world.sim.set_faults(|_| Fault::FailBefore(Seen::Disconnect));
        world.sim.break_watches(sim::WatchEnd::Disconnect);
        sleep(Duration::from_secs(600)).await;

        assert_eq!(readiness.aggregate(&query).status, 200);
        replica.process.stop(PATIENCE).await;
    });
}

/// spec 70 scenario 23; many probes share a request, and an idle process sends none
#[test]
fn liveness_asks_the_api_server_only_for_probes() {
    world(|world| async move {
        let replica = world.start("grm", Config::default());
        let liveness = replica.vitals.liveness();
        let ask = async || {
            liveness.refresh_single("apiserver-healthz").await;
            liveness.single("apiserver-healthz")
        };
        sleep(Duration::from_secs(60)).await;
        assert_eq!(world.probes(), 0);

        assert_eq!(ask().await.body, "ok");
        futures::future::join(ask(), ask()).await;
        assert_eq!(world.probes(), 1);

        sleep(Duration::from_secs(1)).await;
        world.sim.set_faults(|info| match info.path.as_str() {
            "/healthz" => Fault::FailBefore(Seen::unavailable()),
            _ => Fault::None,
        });
        let text = "internal server error: failed talking to the source cluster's kube-apiserver (status code: 503)";
        assert_eq!((ask().await.status, ask().await.body.as_str()), (500, text));
        assert_eq!(world.probes(), 2);

        sleep(Duration::from_secs(1)).await;
        world.sim.set_faults(|_| Fault::Hang);
        let begin = Instant::now();
        assert_eq!(ask().await.status, 500);
        assert_eq!(begin.elapsed(), Duration::from_secs(3));
        replica.process.stop(PATIENCE).await;
    });
}

/// spec 70 §6: webhooks keep working with the first lists, and a restart would end that
#[test]
fn probes_ignore_rejected_credentials_after_the_first_lists() {
    let unauthorized = |_: &sim::RequestInfo| Fault::FailBefore(Seen::unauthorized());
    let codes = async |replica: &Replica| {
        let (liveness, readiness) = (replica.vitals.liveness(), replica.vitals.readiness());
        let query = ProbeQuery::default();
        liveness.refresh(&query).await;
        (liveness.aggregate(&query).status, readiness.aggregate(&query).status)
    };
    world(|world| async move {
        world.sim.set_faults(unauthorized);
        let replica = world.start("grm", Config::default());
        for minutes in 0..10 {
            assert_eq!(codes(&replica).await, (500, 500), "after {minutes} min");
            sleep(Duration::from_secs(60)).await;
        }
        replica.process.stop(PATIENCE).await;
    });
    world(|world| async move {
        let replica = world.start("grm", Config::default());
        let readiness = replica.vitals.readiness();
        testing::eventually("it is ready", LIMIT, || readiness.aggregate(&ProbeQuery::default()).status == 200).await;
        assert_eq!(codes(&replica).await, (200, 200));

        world.sim.set_faults(unauthorized);
        world.sim.break_watches(sim::WatchEnd::Disconnect);
        for minutes in 0..10 {
            sleep(Duration::from_secs(60)).await;
            assert_eq!(codes(&replica).await, (200, 200), "after {minutes} min");
        }
        replica.process.stop(PATIENCE).await;
    });
}
