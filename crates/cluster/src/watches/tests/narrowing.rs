use std::{cell::RefCell, collections::BTreeSet};

use sim::EventFault;

use super::*;

type Places = Rc<RefCell<BTreeSet<String>>>;

fn places(names: &[&str]) -> Places {
    Rc::new(RefCell::new(names.iter().map(ToString::to_string).collect()))
}

fn narrowing(places: &Places) -> WatchOptions<Entry> {
    let places = places.clone();
    WatchOptions::new(config_maps(), entry).narrowing(move || places.borrow().clone())
}

fn deny(sim: &Sim) {
    sim.set_faults(|request| match (request.resource.as_str(), request.namespace.as_str()) {
        ("configmaps", "") => Fault::FailBefore(Seen::forbidden(request)),
        _ => Fault::None,
    });
}

fn put(sim: &Sim, namespace: &str, value: &str) {
    let mut object = config_map("a", value);
    object["metadata"]["namespace"] = json!(namespace);
    if !sim.edit("configmaps", namespace, "a", |live| live["data"] = object["data"].clone()) {
        sim.put(object).unwrap();
    }
}

fn values(watch: &Watch<Entry>) -> Vec<String> {
    let mut values = Vec::new();
    watch.store().for_each(|name, entry| values.push(format!("{}={}", name.namespace, entry.value)));
    values
}

fn everywhere<F: Future>(test: impl FnOnce(Sim, Watches) -> F + 'static) {
    universe(1, |universe: Universe| async move {
        let env = &universe.env;
        let sim = Sim::new(SimOptions::new(env.clock.clone(), env.random.clone()));
        for namespace in ["one", "two", "three"] {
            let metadata = json!({ "name": namespace });
            sim.put(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata })).unwrap();
            put(&sim, namespace, "1");
        }
        let watches = watches_of(&sim, &[], env);
        test(sim, watches.clone()).await;
        watches.stop();
    });
}

/// architecture §5
#[test]
fn narrowing_watches_wanted_namespaces_until_all_are_allowed_again() {
    everywhere(|sim, watches| async move {
        deny(&sim);
        let wanted = places(&["one"]);
        let (narrow, wide) = (watches.open(narrowing(&wanted)), watches.open(WatchOptions::new(config_maps(), entry)));
        watches.start();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!((values(&narrow), narrow.scopes()), (vec!["one=1".to_owned()], vec![Some("one".to_owned())]));
        assert!(narrow.is_fresh() && narrow.is_fresh_for(&NamespacedName::new("one", "a")));
        assert!(!narrow.is_fresh_for(&NamespacedName::new("two", "a")), "it is not watched");
        assert_eq!((narrow.state_in("one"), narrow.state_in("two")), (StoreState::Synced, StoreState::Off));
        assert!(matches!(wide.store().state(), StoreState::Failing(_)) && !wide.is_fresh());
        assert!(watches.synced().check().is_err());

        wanted.borrow_mut().insert("two".to_owned());
        narrow.namespaces_changed();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(values(&narrow), ["one=1", "two=1"]);
        sim.clear_faults();
        put(&sim, "three", "2");
        tokio::time::sleep(Duration::from_secs(680)).await;

        for watch in [&narrow, &wide] {
            assert_eq!(values(watch), ["one=1", "three=2", "two=1"]);
            assert!(watch.is_fresh());
            assert_eq!(watch.scopes(), [None]);
        }
        assert_eq!(sim.watch_count(), 1);
        put(&sim, "two", "2");
        settle().await;
        assert_eq!(values(&narrow), ["one=1", "three=2", "two=2"]);
    });
}

#[test]
fn narrowing_loses_unwatched_objects_and_compares_the_rest() {
    everywhere(|sim, watches| async move {
        let watch = watches.open(narrowing(&places(&["one", "two"])));
        watches.start();
        settle().await;
        let log = Log::default();
        let reported = log.clone();
        watch.subscribe(move |change| {
            if change.how != How::First {
                let value = |entry: Option<&Entry>| entry.map_or("-".to_owned(), |entry| entry.value.clone());
                let (old, new) = (value(change.old), value(change.new));
                reported.borrow_mut().push(format!("{:?} {} {old}→{new}", change.how, change.name.namespace));
            }
        });
        deny(&sim);
        sim.break_watches(WatchEnd::Disconnect);
        put(&sim, "one", "2");
        sim.remove("configmaps", "two", "a");
        tokio::time::sleep(Duration::from_secs(30)).await;

        let mut reported = log.borrow().clone();
        reported.sort();
        assert_eq!(reported, ["Lost three 1→-", "Relist one 1→2", "Relist two 1→-"]);
        assert!(watch.is_fresh());
    });
}

#[test]
fn narrowing_tries_all_namespaces_soon_then_each_ten_minutes_and_needs_the_right_to_watch() {
    everywhere(|sim, watches| async move {
        sim.set_faults(|request| match (request.verb.as_str(), request.namespace.as_str()) {
            ("watch", "") => Fault::FailBefore(Seen::forbidden(request)),
            _ => Fault::None,
        });
        let watch = watches.open(narrowing(&places(&["one"])));
        watches.start();
        tokio::time::sleep(Duration::from_secs(30)).await;
        sim.clear_requests();
        tokio::time::sleep(Duration::from_secs(3600)).await;

        let requests = sim.requests();
        let tried = requests.iter().filter(|request| request.info.namespace.is_empty()).count();
        assert!((12..=14).contains(&tried), "{tried}");
        assert_eq!(values(&watch), ["one=1"]);
    });
}

#[test]
fn narrowing_replaces_namespaces_that_are_not_wanted_any_more() {
    everywhere(|sim, watches| async move {
        deny(&sim);
        let many: Vec<String> = (0..MOST_NAMESPACES).map(|number| format!("n{number:02}")).collect();
        let wanted = places(&many.iter().map(String::as_str).collect::<Vec<_>>());
        let watch = watches.open(narrowing(&wanted));
        watches.start();
        tokio::time::sleep(Duration::from_secs(5)).await;
        wanted.borrow_mut().insert("one".to_owned());
        watch.namespaces_changed();
        assert_eq!(watch.state_in("one"), StoreState::Off, "there are too many");

        wanted.borrow_mut().remove("n07");
        watch.namespaces_changed();
        tokio::time::sleep(Duration::from_secs(5)).await;

        assert_eq!((watch.state_in("one"), watch.state_in("n07")), (StoreState::Synced, StoreState::Off));
        assert_eq!(watch.scopes().len(), MOST_NAMESPACES);
        assert_eq!(values(&watch), ["one=1"]);
    });
}

#[test]
fn narrowing_to_no_namespace_is_no_evidence() {
    everywhere(|_, watches| async move {
        let watch = watches.open(WatchOptions::new(config_maps(), entry).within([""; 0]));
        watches.start();
        settle().await;

        assert_eq!(watch.store().state(), StoreState::Starting);
        assert!(!watch.is_fresh() && !watch.is_fresh_for(&NamespacedName::new("one", "a")));
    });
}

#[test]
fn narrowing_reports_no_listed_object_missing_when_namespaces_change_during_the_list() {
    everywhere(|sim, watches| async move {
        for number in 0..300 {
            let mut object = config_map(&format!("b{number:03}"), "1");
            object["metadata"]["namespace"] = json!("one");
            sim.put(object).unwrap();
        }
        deny(&sim);
        let wanted = places(&["three"]);
        let watch = watches.open(narrowing(&wanted));
        watches.start();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(values(&watch), ["three=1"]);
        sim.set_faults(|request| match (request.verb.as_str(), request.namespace.as_str()) {
            ("list", "") => Fault::DelayAnswer(Duration::from_secs(5)),
            _ => Fault::None,
        });
        eventually("a page of the list", Duration::from_secs(900), || watch.store().len() > 100).await;

        wanted.borrow_mut().insert("two".to_owned());
        watch.namespaces_changed();
        eventually("all is watched", Duration::from_secs(900), || watch.scopes() == [None]).await;
        let b = NamespacedName::new("one", "b000");
        assert!(!watch.is_fresh_for(&b) || watch.store().get(&b).is_some(), "it is not known to be missing");
        tokio::time::sleep(Duration::from_secs(60)).await;

        assert_eq!((watch.store().len(), watch.is_fresh()), (303, true));
    });
}

#[test]
fn narrowing_drops_listed_objects_after_a_panic_of_the_list() {
    everywhere(|sim, watches| async move {
        for number in 0..600 {
            let mut object = config_map(&format!("b{number:03}"), "1");
            object["metadata"]["namespace"] = json!("two");
            sim.put(object).unwrap();
        }
        deny(&sim);
        let watch = watches.open(narrowing(&places(&["one"])));
        watches.start();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(values(&watch), ["one=1"]);
        let pages = std::sync::atomic::AtomicU64::new(0);
        sim.set_faults(move |request| {
            let is_page = request.verb == "list" && !request.query.split('&').any(|part| part == "limit=1");
            let is_page = is_page && request.namespace.is_empty();
            if is_page && pages.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 1 {
                panic!("scripted");
            }
            Fault::None
        });
        sim.clear_requests();
        let pages = || sim.requests().iter().filter(|request| request.info.query.contains("continue=")).count();
        eventually("a second page", Duration::from_secs(900), || pages() > 0).await;
        tokio::time::sleep(Duration::from_secs(5)).await;

        assert_eq!((values(&watch), watch.scopes()), (vec!["one=1".to_owned()], vec![Some("one".to_owned())]));
        assert!(watch.is_fresh() && !watch.is_fresh_for(&NamespacedName::new("two", "a")));
        tokio::time::sleep(Duration::from_secs(700)).await;
        assert_eq!((watch.store().len(), watch.scopes(), watch.is_fresh()), (603, vec![None], true));
    });
}

/// A reader that began to get changes gets all of them, from whichever watch.
#[test]
fn narrowing_reports_changes_during_the_switch_to_readers_of_changes() {
    everywhere(|sim, watches| async move {
        sim.set_faults(|request| match (request.verb.as_str(), request.namespace.as_str()) {
            ("watch", "") => Fault::FailBefore(Seen::forbidden(request)),
            ("list", "one") => Fault::Delay(Duration::from_secs(5)),
            _ => Fault::None,
        });
        let watch = watches.open(narrowing(&places(&["one"])).from_now());
        let reported = Rc::new(RefCell::new(Vec::new()));
        let log = reported.clone();
        watch.subscribe(move |change| {
            log.borrow_mut().push((change.name.namespace.clone(), change.how == How::Relist, change.new.is_some()));
        });
        watches.start();
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(watch.scopes() == [Some("one".to_owned())] && watch.state_in("one") == StoreState::Starting);
        put(&sim, "one", "2");
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(reported.take(), [("one".to_owned(), true, true)], "a difference, and no first sight");

        watch.forget(&NamespacedName::new("one", "a"));
        assert!(watch.is_fresh());
    });
}

#[test]
fn narrowing_reports_changes_during_a_try_to_readers_of_changes() {
    everywhere(|sim, watches| async move {
        deny(&sim);
        let watch = watches.open(narrowing(&places(&["one"])).from_now());
        let reported = Rc::new(RefCell::new(Vec::new()));
        let log = reported.clone();
        watch.subscribe(move |change| {
            log.borrow_mut().push((change.name.namespace.clone(), change.new.is_some()));
        });
        watches.start();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(watch.is_fresh() && watch.store().is_empty());
        // The event lags behind the list.
        sim.set_event_faults(|event| if event.namespace == "one" { EventFault::Drop } else { EventFault::Deliver });
        put(&sim, "one", "2");
        settle().await;
        sim.clear_faults();
        tokio::time::sleep(Duration::from_secs(700)).await;

        assert_eq!(watch.scopes(), [None]);
        assert!(reported.borrow().contains(&("one".to_owned(), true)), "{reported:?}");
    });
}
