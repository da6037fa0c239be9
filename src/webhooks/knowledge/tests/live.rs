use super::*;

/// spec 50, "better" 3; scenario 17
#[test]
fn live_read_after_a_miss_is_shared_by_all_callers() {
    world(
        &[Reads::Objects(&SERVICE_ACCOUNTS)],
        &[],
        |_| (),
        async |world| {
            world.synced().await;
            // The server knows the object, the store does not yet.
            world.sim.set_faults(|info| match info.verb.as_str() {
                "watch" => Fault::Hang,
                _ => Fault::None,
            });
            put_account(&world.sim, "late", false);

            let (one, two) = futures::future::join(world.account("late"), world.account("late")).await;
            assert_eq!((one, two), (automount(false), automount(false)));
            // The second call must not join a read that was in flight when it came.
            assert!(world.requests().len() <= 2, "{:?}", world.requests());
            assert_eq!(world.account("missing").await, Ok(None));
            world
        },
    );
}

/// A GET takes longer than half of the time that an API server waits.
#[test]
fn live_read_of_a_late_caller_does_not_wait_for_a_slow_one() {
    world(
        &[Reads::Objects(&SERVICE_ACCOUNTS)],
        &[],
        |_| (),
        async |world| {
            world.synced().await;
            world.sim.set_faults(|info| match info.verb.as_str() {
                "watch" => Fault::Hang,
                "get" => Fault::Delay(Duration::from_secs(7)),
                _ => Fault::None,
            });
            put_account(&world.sim, "late", false);
            let after = async |seconds, name| {
                sleep(Duration::from_secs(seconds)).await;
                world.account(name).await
            };

            let found = futures::join!(after(0, "late"), after(1, "late"), after(2, "late"), after(6, "late"));
            assert_eq!(found, (automount(false), automount(false), automount(false), automount(false)));
            let begin = Instant::now();
            let missing = futures::join!(after(0, "missing"), after(1, "missing"));
            assert_eq!(missing, (Ok(None), Ok(None)));

            assert!(begin.elapsed() < Duration::from_secs(9), "{:?}", begin.elapsed());
            assert!(world.requests().len() <= 4, "{:?}", world.requests());
            world
        },
    );
}

/// spec 51, "better" 4
#[test]
fn stale_namespace_without_the_label_is_read_live() {
    world(
        &[Reads::Objects(&NAMESPACES)],
        &[],
        |_| (),
        async |world| {
            world.synced().await;

            assert_eq!(world.namespace("ns").await, Ok(Some(Annotations::new())));
            assert_eq!(world.namespace("none").await, Ok(None));

            assert_eq!(world.requests(), ["get namespaces", "get namespaces"]);
            world
        },
    );
}

/// spec 51, "better" 5
#[test]
fn missing_autoscaler_is_confirmed_by_a_live_read() {
    world(
        &[Reads::Autoscalers],
        &[],
        |_| (),
        async |world| {
            world.synced().await;
            assert_eq!(world.ask(|view| view.autoscaler(&WEB, false)).await, Ok(None));
            assert!(world.requests().is_empty());

            assert_eq!(world.ask(|view| view.autoscaler(&WEB, true)).await, Ok(None));
            assert_eq!(world.requests(), ["list horizontalpodautoscalers"]);
            world
        },
    );
}

/// spec 50 §5, §9.1 rules 2 and 5; spec 51 §2.4: the answer is that of a cache, not the client's error about the name
#[test]
fn object_with_an_impossible_name_does_not_exist() {
    world(
        &ALL,
        &[],
        |_| (),
        async |world| {
            world.synced().await;

            for (namespace, name) in [("", "x"), ("ns", ""), ("ns", "a/b"), ("a/b", "x")] {
                let name = NamespacedName::new(namespace, name);
                assert_eq!(world.ask(|view| view.object(&SERVICE_ACCOUNTS, &name)).await, Ok(None), "{name:?}");
            }
            for name in ["", "a/b"] {
                assert_eq!(world.namespace(name).await, Ok(None), "{name}");
                assert_eq!(world.load_balancing(name).await, Ok(None), "{name}");
                assert_eq!(world.gateway(name).await, Ok(None), "{name}");
            }

            assert!(world.requests().is_empty(), "{:?}", world.requests());
            world
        },
    );
}

/// spec 50 §2.7
#[test]
fn failed_live_read_is_an_error_and_not_an_absence() {
    world(
        &[Reads::Objects(&SERVICE_ACCOUNTS)],
        &[],
        |_| (),
        async |world| {
            world.synced().await;

            world.sim.set_faults(|info| match info.verb.as_str() {
                "get" => Fault::FailBefore(Seen::forbidden(info)),
                _ => Fault::None,
            });
            let Err(Failure::Status(status)) = world.account("a").await else { panic!("no status") };
            assert_eq!(status.code, 403);

            world.sim.set_faults(|_| Fault::Hang);
            let begin = Instant::now();
            let late = world
                .ask_within(Duration::from_secs(2), |view| {
                    view.object(&SERVICE_ACCOUNTS, &NamespacedName::new("ns", "a"))
                })
                .await;
            let Err(Failure::Status(status)) = late else { panic!("no status") };
            assert_eq!((begin.elapsed().as_secs(), status.code, status.reason.as_str()), (2, 504, "Timeout"));
            assert_eq!(status.message, "Timeout: failed waiting for *v1.ServiceAccount Informer to sync");
            world.sim.set_faults(|_| Fault::None);
            sleep(Duration::from_secs(20)).await;
            world
        },
    );
}
