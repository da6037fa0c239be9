use super::*;
use crate::{Synced, testing};

const NAME: &str = "widgets.example.com";

fn widgets() -> Resource {
    Resource::new("example.com", "v1", "Widget", "widgets", true)
}

fn definition() -> Value {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let names = json!({ "kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget" });
    let version = json!({ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } });
    let spec = json!({ "group": "example.com", "names": names, "scope": "Namespaced", "versions": [version] });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": NAME },
        "spec": spec
    })
}

fn widget() -> Value {
    let metadata = json!({ "namespace": "default", "name": "a" });
    json!({ "apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata })
}

async fn definition_changed(watches: &Watches) {
    tokio::time::sleep(Duration::from_secs(1)).await;
    watches.cluster().discovery().refresh_requested("example.com");
    tokio::time::sleep(Duration::from_secs(15)).await;
}

#[test]
fn optional_kind_is_watched_while_it_is_served() {
    bare(|sim, watches| async move {
        let discovery = actix::spawn(watches.cluster().discovery().clone().run());
        let watch = watches.open(WatchOptions::new(widgets(), entry).optional());
        let lost = Rc::new(RefCell::new(Vec::new()));
        let reported = lost.clone();
        watch.subscribe(move |change| {
            if change.how == How::Lost {
                reported.borrow_mut().push(change.name.name.clone());
            }
        });
        let states = Rc::new(RefCell::new(Vec::new()));
        let (seen, store) = (states.clone(), watch.store().clone());
        let _listening = watch.signal().listen(move || seen.borrow_mut().push(store.state()));
        watches.start();
        assert_eq!(watch.store().state(), StoreState::Starting);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(watch.store().state(), StoreState::Off);
        assert!((watch.sync_requirement().ready)(), "there are none to wait for");
        assert!(Synced::check(&watches.synced()).is_ok(), "readiness does not wait for it");
        sim.clear_requests();
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert!(sim.requests().is_empty(), "nothing is asked at rest");

        sim.put(definition()).unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        sim.put(widget()).unwrap();
        definition_changed(&watches).await;
        assert_eq!((watch.store().state(), watch.store().len()), (StoreState::Synced, 1));
        sim.remove("customresourcedefinitions.apiextensions.k8s.io", "", NAME);
        definition_changed(&watches).await;

        assert_eq!((watch.store().state(), watch.store().len()), (StoreState::Off, 0));
        assert!(!watch.is_fresh());
        assert_eq!(states.borrow().first(), Some(&StoreState::Off));
        assert_eq!(states.borrow().last(), Some(&StoreState::Off));
        discovery.abort();
    });
}

#[test]
fn optional_kind_is_watched_if_another_reader_requires_it() {
    bare(|sim, watches| async move {
        let discovery = actix::spawn(watches.cluster().discovery().clone().run());
        let optional = watches.open(WatchOptions::new(config_maps(), entry).optional());
        let required = watches.open(WatchOptions::new(config_maps(), entry));
        watches.start();
        settle().await;

        assert!(optional.is_fresh() && required.is_fresh());
        assert_eq!(sim.watch_count(), 1);
        required.stop();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(optional.is_fresh(), "it is served");
        discovery.abort();
    });
}

/// spec 80 §9: a missing kind holds back only the readers that require it.
#[test]
fn kind_that_is_not_served_is_absent_for_optional_readers_only() {
    bare(|sim, watches| async move {
        let discovery = actix::spawn(watches.cluster().discovery().clone().run());
        let optional = watches.open(WatchOptions::new(widgets(), entry).optional());
        let required = watches.open(WatchOptions::new(widgets(), entry));
        let is_ready = |watch: &Watch<Entry>| (watch.sync_requirement().ready)();
        let lost = Rc::new(Cell::new(0));
        let counted = lost.clone();
        optional.subscribe(move |change| counted.set(counted.get() + u32::from(change.how == How::Lost)));
        watches.start();
        for round in 1..3 {
            tokio::time::sleep(Duration::from_secs(30)).await;
            assert_eq!((is_ready(&optional), optional.absence().is_some()), (true, true));
            assert_eq!((is_ready(&required), required.absence().is_some()), (round == 2, false));
            assert!(watches.synced().failure().is_some() || round == 2, "readiness waits for it");

            sim.put(definition()).unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
            sim.put(widget()).unwrap();
            tokio::time::sleep(Duration::from_secs(180)).await;

            assert!(optional.is_fresh() && required.is_fresh(), "{round}");
            assert_eq!((optional.absence(), optional.store().len(), required.store().len()), (None, 1, 1));
            assert_eq!(sim.watch_count(), 1, "they share a stream");
            sim.remove("customresourcedefinitions.apiextensions.k8s.io", "", NAME);
            definition_changed(&watches).await;
            assert_eq!((optional.store().len(), lost.get()), (0, round));
        }
        discovery.abort();
    });
}

#[test]
fn discovery_that_fails_at_the_start_is_asked_again() {
    bare(|sim, watches| async move {
        sim.set_faults(
            |request| {
                if request.resource.is_empty() { Fault::FailBefore(Seen::unavailable()) } else { Fault::None }
            },
        );
        let watch = watches.open(WatchOptions::new(config_maps(), entry).optional());
        watches.start();
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(watch.store().state(), StoreState::Starting, "whether it is served is not known");
        sim.clear_faults();
        tokio::time::sleep(Duration::from_secs(120)).await;

        assert_eq!(watch.store().state(), StoreState::Synced);
    });
}

/// Without a watch of definitions, as for a source, only the first answer of a kind shows that it is served.
#[test]
fn optional_kind_is_watched_after_the_first_read_that_shows_it() {
    for read in ["a", "absent"] {
        bare(move |sim, watches| async move {
            let discovery = actix::spawn(watches.cluster().discovery().clone().run());
            let watch = watches.open(WatchOptions::new(widgets(), entry).optional());
            watches.start();
            let cluster = watches.cluster().clone();
            let look = async || cluster.find(&testing::ctx(), &widgets().at("default", read)).await;
            tokio::time::sleep(Duration::from_secs(5)).await;
            assert!(look().await.is_err(), "it is not served");
            tokio::time::sleep(Duration::from_secs(60)).await;
            sim.put(definition()).unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
            sim.put(widget()).unwrap();
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert_eq!(watch.store().state(), StoreState::Off, "no request has shown the kind");

            assert_eq!(look().await.unwrap().is_some(), read == "a");
            tokio::time::sleep(Duration::from_secs(15)).await;

            assert!(watch.is_fresh() && watch.store().len() == 1, "{read}");
            sim.clear_requests();
            assert_eq!(look().await.unwrap().is_some(), read == "a");
            tokio::time::sleep(Duration::from_secs(60)).await;
            let asked: Vec<_> = sim.requests().into_iter().map(|request| request.info.verb).collect();
            assert_eq!(asked, ["get"], "discovery is not asked for what it knows");
            discovery.abort();
        });
    }
}

/// Otherwise a kind with a dead watch would look unchanged and alive.
#[test]
fn watch_panic_ends_the_process_and_a_stop_does_not() {
    universe(1, |universe: Universe| async move {
        let fatal = universe.env.fatal.clone();
        let server = crate::testing::Server::new(|_| panic!("scripted"));
        let watches = Watches::new(&server.cluster(), &universe.env);
        let stopped = watches.open(WatchOptions::new(config_maps(), entry).optional());
        watches.start();
        stopped.stop();
        settle().await;
        assert_eq!(fatal.cause(), None);

        let _watch = watches.open(WatchOptions::new(widgets(), entry).optional());
        settle().await;
        tokio::time::sleep(Duration::from_secs(1)).await;

        assert_eq!(fatal.cause().as_deref(), Some("the watch of target/widgets panicked"));
        watches.stop();
    });
}

/// decision 38: a kind that is served in another version may have objects, although nothing is watched
#[test]
fn kind_served_in_another_version_is_not_absent() {
    bare(|sim, watches| async move {
        let discovery = actix::spawn(watches.cluster().discovery().clone().run());
        sim.put(definition()).unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let old = Resource::new("example.com", "v1beta1", "Widget", "widgets", true);
        let (elsewhere, nowhere) =
            (WatchOptions::new(old, entry).optional(), WatchOptions::new(gadgets(), entry).optional());
        let (elsewhere, nowhere) = (watches.open(elsewhere), watches.open(nowhere));
        watches.start();
        tokio::time::sleep(Duration::from_secs(5)).await;

        for watch in [&elsewhere, &nowhere] {
            assert_eq!(watch.store().state(), StoreState::Off);
            assert!((watch.sync_requirement().ready)() && !watch.is_fresh());
        }
        assert_eq!((elsewhere.absence().is_some(), nowhere.absence().is_some()), (false, true));
        discovery.abort();
    });
}

/// decision 38: the watch of a kind goes on while a starting server denies that it serves the kind
#[test]
fn server_start_ends_no_watch_and_proves_no_absence() {
    bare(|sim, watches| async move {
        let discovery = actix::spawn(watches.cluster().discovery().clone().run());
        sim.put(definition()).unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        sim.put(widget()).unwrap();
        let watch = watches.open(WatchOptions::new(widgets(), entry).optional());
        watches.start();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(watch.is_fresh());
        let is_told = Rc::new(Cell::new(false));
        let reported = is_told.clone();
        let telling = watch.on_absence(move || reported.set(true));

        for start in [
            sim::Start::default(),
            sim::Start { installing: Duration::from_secs(30), ..sim::Start::default() },
            sim::Start {
                discovering: Duration::from_secs(30),
                unready: Duration::from_secs(30),
                ..sim::Start::default()
            },
        ] {
            sim.restart(start);
            for _ in 0..1200 {
                tokio::time::sleep(Duration::from_millis(100)).await;
                watches.cluster().discovery().refresh_requested("example.com");
                assert_eq!((watch.absence(), watch.store().len()), (None, 1));
            }
            assert!(watch.is_fresh());
        }
        assert!(!is_told.get());
        sim.remove("customresourcedefinitions.apiextensions.k8s.io", "", NAME);
        definition_changed(&watches).await;
        assert!(watch.absence().is_some() && is_told.get());
        drop(telling);
        discovery.abort();
    });
}

fn gadgets() -> Resource {
    Resource::new("example.com", "v1", "Gadget", "gadgets", true)
}
