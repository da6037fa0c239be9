use sim::WatchEnd;

use super::*;

/// spec 50, "better" 1 and 2
#[test]
fn cached_objects_are_not_read_live() {
    world(
        &ALL,
        &[],
        |sim| {
            put_account(sim, "a", false);
            let labels = json!({"high-availability-config.resources.gardener.cloud/consider": "true"});
            put(sim, "v1", "Namespace", "", "ha", json!({"metadata": {"labels": labels}}));
            put_autoscaler(sim, "one", 4);
            put_autoscaler(sim, "two", 6);
            put_node(sim, "n1", "system", "x");
            put_node(sim, "n2", "other", "y");
            put(
                sim,
                "v1",
                "ConfigMap",
                "ns",
                "istio-internal-load-balancing",
                json!({"data": {"hosts": "h", "more": "x"}}),
            );
            put(sim, "v1", "ConfigMap", "ns", "another", json!({"data": {"hosts": "h"}}));
            let ports = json!({"spec": {"ports": [{"port": 443}]}});
            put(sim, "v1", "Service", "istio", "istio-ingressgateway-internal", ports);
        },
        async |world| {
            world.synced().await;

            assert_eq!(world.account("a").await, automount(false));
            assert_eq!(world.namespace("ha").await, Ok(Some(Annotations::new())));
            assert_eq!(world.ask(|view| view.autoscaler(&WEB, true)).await, Ok(Some(6)));
            let other = Scaled { name: "other", ..WEB };
            assert_eq!(world.ask(|view| view.autoscaler(&other, false)).await, Ok(None));
            assert_eq!(world.ask(|view| view.has_one_node()).await, Ok(false));
            let tolerations = vec![json!({"key": "x", "operator": "Exists", "effect": "NoSchedule"})];
            assert_eq!(world.ask(|view| view.tolerations_of_nodes()).await, Ok(Arc::new(tolerations)));
            let hosts = Annotations::from([("hosts".to_owned(), "h".to_owned())]);
            assert_eq!(world.load_balancing("ns").await, Ok(Some(Arc::new(hosts))));
            let gateway = world.gateway("istio").await;
            assert_eq!(gateway.map(|addresses| addresses.map(|addresses| addresses.len())), Ok(Some(1)));

            assert!(world.requests().is_empty(), "{:?}", world.requests());
            world
        },
    );
}

/// spec 50, "better" 1: one ConfigMap of each namespace, not all of them
#[test]
fn watch_by_name_brings_only_objects_of_that_name() {
    world(
        &[Reads::Objects(&CONFIG_MAPS), Reads::Objects(&SERVICES)],
        &[],
        |sim| put(sim, "v1", "ConfigMap", "ns", "another", json!({})),
        async |world| {
            eventually("the stores are filled", LIMIT, || world.watches.synced().check().is_ok()).await;
            let asked: Vec<_> = world.sim.requests().into_iter().map(|request| request.info.resource).collect();

            put(&world.sim, "v1", "ConfigMap", "ns", "third", json!({}));
            put(&world.sim, "v1", "ConfigMap", "ns", "istio-internal-load-balancing", json!({}));
            let store = world.knowledge.stores.objects[&(&CONFIG_MAPS as &dyn AnyCachedKind)].clone();
            eventually("it is in the store", LIMIT, || !store.is_empty()).await;

            assert_eq!(store.len(), 1);
            assert!(asked.iter().all(|resource| resource == "configmaps" || resource == "services"), "{asked:?}");
            world
        },
    );
}

/// spec 50 §10.1, "better" 5; decision 4
#[test]
fn nodes_are_counted_and_their_taints_followed() {
    world(
        &[Reads::NodeCount, Reads::NodeTaints],
        &[],
        |sim| put_node(sim, "n1", "system", "x"),
        async |world| {
            world.synced().await;
            assert_eq!(world.ask(|view| view.has_one_node()).await, Ok(true));

            put_node(&world.sim, "n2", "system", "a");
            let keys = || {
                let tolerations = world.knowledge.sight(&Answers::default()).tolerations_of_nodes().unwrap();
                tolerations.iter().map(|toleration| toleration["key"].clone()).collect::<Vec<_>>()
            };
            eventually("the new taint is tolerated", LIMIT, || keys() == ["a", "x"]).await;

            assert_eq!(world.ask(|view| view.has_one_node()).await, Ok(false));
            world
        },
    );
}

/// spec 50 §2.7, an informer that does not sync; "better" 2
#[test]
fn nodes_without_their_first_list_delay_reads_and_readiness() {
    let away = |sim: &Sim| sim.set_faults(|_| Fault::FailBefore(Seen::Disconnect));
    world(&[Reads::NodeCount], &[], away, async |world| {
        let late = world.ask_within(Duration::from_secs(2), |view| view.has_one_node()).await;
        let Err(Failure::Status(status)) = late else { panic!("no status") };
        assert_eq!(status.message, "Timeout: failed waiting for *v1.Node Informer to sync");
        assert!(world.watches.synced().check().is_err());

        put_node(&world.sim, "n1", "system", "x");
        world.sim.set_faults(|_| Fault::None);
        assert_eq!(world.ask_within(Duration::from_secs(60), |view| view.has_one_node()).await, Ok(true));
        world.synced().await;
        world
    });
}

#[test]
fn nodes_that_are_no_longer_watched_fail_reads_at_once() {
    let away = |sim: &Sim| sim.set_faults(|_| Fault::FailBefore(Seen::Disconnect));
    world(&[Reads::NodeCount], &[], away, async |world| {
        let begin = Instant::now();
        let stopping = async {
            sleep(Duration::from_secs(1)).await;
            world.caches.stop();
        };

        let (answer, ()) = futures::join!(world.ask(|view| view.has_one_node()), stopping);
        assert!(answer.is_err());
        assert!(world.ask(|view| view.has_one_node()).await.is_err());

        assert_eq!(begin.elapsed().as_secs(), 1);
        world
    });
}

/// spec 50 §2.7, "Cache lags behind the API server": stale data, no error
#[test]
fn stale_cache_is_good_enough_for_mutating_webhooks() {
    world(
        &ALL,
        &[],
        |sim| put_account(sim, "a", false),
        async |world| {
            world.synced().await;
            world.sim.set_faults(|_| Fault::Hang);
            world.sim.break_watches(WatchEnd::Hang);
            sleep(cluster::IDLE_LIMIT).await;
            world.sim.clear_requests();

            assert_eq!(world.account("a").await, automount(false));
            assert!(world.requests().is_empty());
            world
        },
    );
}

/// spec 50 §2.7, restricted namespaces
#[test]
fn namespaces_outside_of_the_configuration_are_unknown() {
    world(
        &ALL,
        &["ns"],
        |_| (),
        async |world| {
            world.synced().await;
            let denied = |text: &str| Failure::Denied(text.to_owned());
            let account = NamespacedName::new("istio", "a");

            let get = world.ask(|view| view.object(&SERVICE_ACCOUNTS, &account)).await;
            let gateway = world.gateway("istio").await;
            let list = world.ask(|view| view.autoscaler(&Scaled { namespace: "istio", ..WEB }, false)).await;

            assert_eq!(get, Err(denied("unable to get: istio/a because of unknown namespace for the cache")));
            let text = "unable to get: istio/istio-ingressgateway-internal because of unknown namespace for the cache";
            assert_eq!(gateway, Err(denied(text)));
            assert_eq!(list, Err(denied("unable to list: istio because of unknown namespace for the cache")));
            assert_eq!(world.namespace("istio").await, Ok(Some(Annotations::new())), "cluster scope is visible");
            world
        },
    );
}

/// The webhooks share the stream of the controllers, but see only their own namespaces. spec 50 §2.7
#[test]
fn autoscalers_are_watched_everywhere_or_as_permitted_in_the_namespaces() {
    for (denied, place) in [(false, ""), (true, "ns")] {
        let before = move |sim: &Sim| {
            put_autoscaler(sim, "one", 4);
            sim.set_faults(move |info| match (info.resource.as_str(), info.namespace.as_str()) {
                ("horizontalpodautoscalers", "") if denied => Fault::FailBefore(Seen::forbidden(info)),
                _ => Fault::None,
            });
        };
        world(&[Reads::Autoscalers], &["ns"], before, async move |world| {
            eventually("the store is filled", LIMIT, || world.watches.synced().check().is_ok()).await;
            settle().await;
            let asked = world.sim.requests();
            let watched = asked.iter().rev().find(|request| request.info.verb == "watch");
            assert_eq!(watched.map(|request| request.info.namespace.as_str()), Some(place));
            world.sim.clear_requests();

            assert_eq!(world.ask(|view| view.autoscaler(&WEB, true)).await, Ok(Some(4)));
            let elsewhere = world.ask(|view| view.autoscaler(&Scaled { namespace: "istio", ..WEB }, false)).await;
            assert!(matches!(elsewhere, Err(Failure::Denied(_))), "{elsewhere:?}");
            assert!(world.requests().is_empty(), "{:?}", world.requests());
            world
        });
    }
}

/// spec 50 §2.7: kinds that no enabled webhook reads are not watched
#[test]
fn kinds_without_a_reader_are_unknown() {
    world(
        &[],
        &[],
        |_| (),
        async |world| {
            sleep(LIMIT).await;

            assert_eq!(
                world.account("a").await,
                Err(Failure::Denied("the cache is not started, can not read objects".to_owned()))
            );
            assert!(world.requests().is_empty());
            world
        },
    );
}
