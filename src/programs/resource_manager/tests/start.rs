use crate::programs::resource_manager::tests::*;

/// spec 70 §7: a controller that fails takes the process down.
#[test]
fn fatal_panic_of_a_supervisor_ends_the_process_and_releases_the_lease() {
    world(|world| async move {
        let mut replica = world.start("first", elected());
        world.bundle("one", "v");
        world.applied("one").await;
        sleep(Duration::from_secs(1)).await; // an unanswered write would keep the Lease (spec 70 §12)

        world.env.fatal.end("the supervisor of the controller managedresource panicked");
        let error = replica.process.ended().await;
        replica.process.stop(Duration::ZERO).await;

        assert_eq!(error.to_string(), "the supervisor of the controller managedresource panicked");
        assert_eq!(world.holder().as_deref(), Some(""));
    });
}

/// spec 70 §7.1.
#[test]
fn cache_sync_timeout_ends_the_process() {
    for (resource, name) in [("managedresources", "source/managedresources"), ("secrets", "source/secrets")] {
        world(|world| async move {
            world.bundle("one", "v");
            world.sim.set_faults(move |info| match info.verb.as_str() {
                "list" | "watch" if info.resource == resource => Fault::FailBefore(Seen::forbidden(info)),
                _ => Fault::None,
            });
            let mut config = elected();
            config.controllers.cache_sync_timeout = Duration::from_secs(30).into();
            let mut replica = world.start("first", config);
            world.held_by("first").await;
            let led = Instant::now();
            let error = replica.process.ended().await.to_string();

            let took = led.elapsed();
            assert!((Duration::from_secs(29)..Duration::from_secs(33)).contains(&took), "{took:?}");
            let text = format!("failed to wait for managedresource caches to sync {name}: ");
            assert!(error.starts_with(&text) && error.contains("forbidden"), "{error}");
            assert!(!world.is_applied("one"), "nothing is reconciled before the cache of {resource} has synced");
            replica.process.stop(Duration::ZERO).await;
        });
    }
}

/// spec 70 §7 step 8c, §7.1
#[test]
fn start_without_election_waits_for_the_caches_without_a_limit() {
    world(|world| async move {
        world.bundle("one", "v");
        world.sim.set_faults(|info| match (info.verb.as_str(), info.resource.as_str()) {
            ("list", "managedresources") => Fault::FailBefore(Seen::forbidden(info)),
            _ => Fault::None,
        });
        let mut config = Config::default();
        config.controllers.cache_sync_timeout = Duration::from_secs(30).into();
        let mut replica = world.start("first", config);
        let ended = tokio::time::timeout(Duration::from_secs(600), replica.process.ended()).await;
        assert!(ended.is_err(), "{ended:?}");
        world.sim.clear_faults();

        testing::eventually("it is applied", Duration::from_secs(300), || world.is_applied("one")).await;
        replica.process.stop(PATIENCE).await;
    });
}

/// spec 70 §14, scenarios 29 and 30
#[test]
fn cluster_identity_is_resolved_before_controllers_start() {
    const UNKNOWN: &str = "failed during bootstrapping: unable to determine cluster id: \
                           cannot determine cluster identity from configmap: ";
    let found = || Some(json!({"cluster-identity": "garden-1"}));
    let cases = [
        ("", None, Ok("shoot/one")),
        ("mine", found(), Ok("mine:shoot/one")),
        ("<cluster>", found(), Ok("garden-1:shoot/one")),
        ("<cluster>", Some(json!({})), Err("no cluster-identity entry")),
        ("<cluster>", None, Err("configmaps \"cluster-identity\" not found")),
        ("<default>", found(), Ok("garden-1:shoot/one")),
        ("<default>", Some(json!({"cluster-identity": ""})), Ok("shoot/one")),
        ("<default>", Some(json!({})), Ok("shoot/one")),
        ("<default>", None, Ok("shoot/one")),
    ];
    for (configured, data, expected) in cases {
        world(|world| async move {
            data.into_iter().for_each(|data| world.put_cluster_identity(data));
            world.bundle("one", "v");
            let mut config = Config::default();
            config.controllers.cluster_id = configured.into();
            config.source.namespaces = vec![NAMESPACE.into()];

            let mut replica = world.start("grm", config);

            match expected {
                Ok(origin) => {
                    world.applied("one").await;
                    assert_eq!(world.origin("one").as_deref(), Some(origin), "{configured}");
                }
                Err(cause) => {
                    let error = replica.process.ended().await.to_string();
                    assert_eq!(error, format!("{UNKNOWN}{cause}"), "{configured}");
                }
            }
            replica.process.stop(PATIENCE).await;
        });
    }
}
