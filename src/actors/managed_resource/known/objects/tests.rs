//! What is watched, what is known, and who is told.

use std::sync::{Arc, Mutex};

use cluster::{
    Change, How,
    testing::{Server, json as reply, text},
};
use kit::testing::{Universe, universe};
use serde_json::json;

use super::{
    watch::{is_news, judged_differently},
    *,
};
use crate::actors::health::Verdict;

/// A server whose group `g.io` has the kind `A` in these versions, in the order of preference.
fn served(versions: &[&str]) -> Value {
    let resource = json!({"resource": "as", "scope": "Cluster", "responseKind": {"group": "g.io", "kind": "A"}});
    let version = |name: &&str| json!({"version": name, "freshness": "Current", "resources": [resource.clone()]});
    let versions: Vec<_> = versions.iter().map(version).collect();
    json!({"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": "g.io"}, "versions": versions}]})
}

/// fault 11
#[test]
fn a_kind_is_watched_in_the_preferred_version_and_in_another_when_that_is_no_longer_served() {
    universe(1, |universe: Universe| async move {
        let versions = Arc::new(Mutex::new(served(&["v1beta1", "v1alpha1"])));
        let shown = versions.clone();
        let server = Server::new(move |seen| match seen.line.as_str() {
            "GET /readyz" => text(200, "ok"),
            // Those that the list lacks are asked for themselves.
            "GET /apis/g.io" | "GET /apis/g.io/v1" | "GET /apis/g.io/v2" => text(404, "404 page not found\n"),
            "GET /api" => reply(200, &json!({"kind": "APIGroupDiscoveryList", "items": []})),
            "GET /apis" => reply(200, &shown.lock().unwrap()),
            _ => text(404, "404 page not found\n"),
        });
        let cluster = server.cluster();
        let watches = Watches::new(&cluster, &universe.env);
        watches.start();
        let objects = ManagedObjects::new(
            &watches,
            "a=b".to_owned(),
            Rc::new(|_| true),
            Rc::new(|_, _, _| {}),
            Rc::new(|_, _, _| {}),
        );
        let kind = GroupKind::new("g.io", "A");
        let mut watched = Vec::new();
        for (served_now, asked) in
            [(&["v1beta1", "v1alpha1"][..], "v1alpha1"), (&["v1", "v1beta1"][..], "v1"), (&["v1"][..], "v1")]
        {
            *versions.lock().unwrap() = served(served_now);
            cluster.discovery().refresh_requested("g.io");
            tokio::time::sleep(Duration::from_secs(11)).await;
            let resource = cluster.discovery().mapping(&GroupVersionKind::new("g.io", asked, "A")).await.unwrap();

            objects.watch(&resource);

            let kinds = objects.inner.kinds.borrow();
            watched.push(kinds.get(&kind).unwrap().watch.resource().version.to_string());
        }
        *versions.lock().unwrap() = served(&["v2"]);
        cluster.discovery().refresh_requested("g.io");
        tokio::time::sleep(Duration::from_secs(11)).await;
        cluster.discovery().mapping(&GroupVersionKind::new("g.io", "v2", "A")).await.unwrap();
        objects.follow_discovery();
        watched.push(objects.inner.kinds.borrow().get(&kind).unwrap().watch.resource().version.to_string());
        objects.stop();

        assert_eq!(watched, ["v1beta1", "v1beta1", "v1", "v2"]);
    });
}

fn key(kind: &str, name: &str) -> ObjectKey {
    ObjectKey { kind: kind.into(), name: name.into(), ..ObjectKey::default() }
}

fn bundle(name: &str) -> NamespacedName {
    NamespacedName::new("shoot", name)
}

#[test]
fn an_object_is_lost_only_when_the_last_bundle_lets_go_of_it() {
    let mut interest = Interest::default();
    interest.replace(&bundle("one"), BTreeSet::from([key("ConfigMap", "a"), key("ConfigMap", "b")]));
    interest.replace(&bundle("two"), BTreeSet::from([key("ConfigMap", "b")]));

    assert_eq!(interest.replace(&bundle("one"), BTreeSet::from([key("ConfigMap", "c")])), [key("ConfigMap", "a")]);
    assert_eq!(interest.replace(&bundle("two"), BTreeSet::new()), [key("ConfigMap", "b")]);
    assert!(interest.holders(&key("ConfigMap", "a")).is_empty());
    assert!(interest.holders(&key("ConfigMap", "b")).is_empty());
    assert_eq!(interest.holders(&key("ConfigMap", "c")), [Rc::new(bundle("one"))]);
}

#[test]
fn the_holders_of_a_kind_are_those_of_its_objects() {
    let mut interest = Interest::default();
    interest.replace(&bundle("one"), BTreeSet::from([key("ConfigMap", "a"), key("Pod", "a")]));
    interest.replace(&bundle("two"), BTreeSet::from([key("ConfigMap", "b"), key("Secret", "b")]));

    let holders = |kind: &str| interest.holders_of(&GroupKind::new("", kind)).into_iter().collect::<Vec<_>>();
    assert_eq!(holders("ConfigMap"), [bundle("one"), bundle("two")]);
    assert_eq!(holders("Pod"), [bundle("one")]);
    assert_eq!(holders("Service"), []);
}

#[test]
fn what_changes_in_an_object_is_told_apart() {
    let judged = |health: &str, rollout: &str| {
        let verdict = |text: &str| if text.is_empty() { Verdict::Fine } else { Verdict::Bad(text.into()) };
        let judgement = Judgement { health: verdict(health), rollout: verdict(rollout), pods: None };
        let judgement = (judgement != Judgement::default()).then(|| Box::new(judgement));
        Some(ObjectRecord { judgement, ..ObjectRecord::of_metadata(&json!({}), None) })
    };
    let name = NamespacedName::new("shoot", "a");
    for (old, new, expected) in [
        (judged("", ""), judged("", ""), None),
        (judged("a", "b"), judged("a", "b"), None),
        (judged("a", ""), judged("b", ""), Some((true, false))),
        (judged("", ""), judged("", "b"), Some((false, true))),
        (None, judged("", ""), Some((true, false))),
        (None, judged("a", "b"), Some((true, true))),
        (judged("", ""), None, Some((true, false))),
    ] {
        let expected = expected.map(|(health, rollout)| News::Judged { health, rollout });
        let change = |how| Change { name: &name, old: old.as_ref(), new: new.as_ref(), how };

        assert_eq!(judged_differently(&change(How::Event)), expected, "{old:?} → {new:?}");
        assert_eq!(judged_differently(&change(How::First)), None);
    }
}

#[test]
fn a_kind_is_wanted_as_long_as_one_of_its_objects_is() {
    let mut interest = Interest::default();
    interest.replace(&bundle("one"), BTreeSet::from([key("ConfigMap", "a"), key("Secret", "a")]));

    let wanted = |interest: &Interest, kind: &str| interest.has_kind(&GroupKind::new("", kind));
    assert!(wanted(&interest, "ConfigMap") && wanted(&interest, "Secret") && !wanted(&interest, "Service"));
    interest.replace(&bundle("one"), BTreeSet::from([key("Secret", "a")]));

    assert!(!wanted(&interest, "ConfigMap") && wanted(&interest, "Secret"));
}

#[test]
fn news_reach_the_bundles_that_hold_the_object_or_one_of_its_kind_and_no_others() {
    let mut interest = Interest::default();
    interest.replace(&bundle("one"), BTreeSet::from([key("ConfigMap", "a"), key("Pod", "a")]));
    interest.replace(&bundle("two"), BTreeSet::from([key("ConfigMap", "a"), key("ConfigMap", "b")]));
    let news = |interest: &Interest| {
        ["one", "two"].map(|name| interest.last_news(&bundle(name)).map(|(news, _)| news).unwrap_or_default())
    };
    type Step = fn(&mut Interest);
    let steps: [(&str, Step, [bool; 2]); 8] = [
        ("of both", |it| drop(it.news_of(&key("ConfigMap", "a"))), [true, true]),
        ("of one", |it| drop(it.news_of(&key("ConfigMap", "b"))), [false, true]),
        ("of none", |it| drop(it.news_of(&key("ConfigMap", "c"))), [false, false]),
        ("of a kind", |it| drop(it.news_of_kind(&GroupKind::new("", "Pod"))), [true, false]),
        ("for a bundle", |it| it.news_for(&bundle("two")), [false, true]),
        (
            "other objects",
            |it| drop(it.replace(&bundle("one"), BTreeSet::from([key("ConfigMap", "a"), key("Pod", "b")]))),
            [true, false],
        ),
        (
            "the same objects",
            |it| drop(it.replace(&bundle("one"), BTreeSet::from([key("ConfigMap", "a"), key("Pod", "b")]))),
            [false, false],
        ),
        ("no objects", |it| drop(it.replace(&bundle("one"), BTreeSet::new())), [true, false]),
    ];
    for (what, step, expected) in steps {
        let before = news(&interest);

        step(&mut interest);

        let after = news(&interest);
        assert_eq!([before[0] != after[0], before[1] != after[1]], expected, "{what}");
    }
    assert!(interest.last_news(&bundle("one")).is_none());
}

#[test]
fn only_what_changes_an_object_or_its_verdict_is_news() {
    let record = |version: &str, labels: Value, bad: bool| {
        let object = json!({"metadata": {"uid": "u", "resourceVersion": version, "labels": labels}});
        let judgement = Judgement { health: Verdict::Bad("x".into()), ..Judgement::default() };
        ObjectRecord { judgement: bad.then(|| Box::new(judgement)), ..ObjectRecord::of_object(&object, None) }
    };
    let (name, before) = (NamespacedName::new("shoot", "a"), record("1", json!({}), false));
    for (new, expected) in [
        (Some(record("2", json!({}), false)), false),
        (Some(record("2", json!({"a": "b"}), false)), true),
        (Some(record("2", json!({}), true)), true),
        (None, true),
    ] {
        let change = Change { name: &name, old: Some(&before), new: new.as_ref(), how: How::Event };

        assert_eq!(is_news(&change), expected, "{new:?}");
    }
    assert!(is_news(&Change { name: &name, old: None, new: Some(&before), how: How::First }));
}

#[test]
fn a_watch_that_nobody_needs_any_more_ends_after_a_while() {
    universe(1, |universe: Universe| async move {
        let groups = served(&["v1"]);
        let server = Server::new(move |seen| match seen.line.as_str() {
            "GET /readyz" => text(200, "ok"),
            // Those that the list lacks are asked for themselves.
            "GET /apis/g.io" | "GET /apis/g.io/v1" | "GET /apis/g.io/v2" => text(404, "404 page not found\n"),
            "GET /api" => reply(200, &json!({"kind": "APIGroupDiscoveryList", "items": []})),
            "GET /apis" => reply(200, &groups),
            _ => text(403, "no\n"),
        });
        let cluster = server.cluster();
        let (drift, health): (DriftListener, HealthListener) = (Rc::new(|_, _, _| {}), Rc::new(|_, _, _| {}));
        let watches = Watches::new(&cluster, &universe.env);
        watches.start();
        let objects = ManagedObjects::new(&watches, "a=b".to_owned(), Rc::new(|_| true), drift, health);
        let resource = cluster.discovery().mapping(&GroupVersionKind::new("g.io", "v1", "A")).await.unwrap();
        let held = ObjectKey { group: "g.io".into(), ..key("A", "a") };
        objects.register(&bundle("one"), BTreeSet::from([held]));
        objects.watch(&resource);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let is_watched = || objects.inner.kinds.borrow().contains_key(&resource.group_kind());

        objects.register(&bundle("one"), BTreeSet::new());
        tokio::time::sleep(Duration::from_secs(299)).await;
        objects.register(&bundle("two"), BTreeSet::new());
        assert!(is_watched());
        tokio::time::sleep(Duration::from_secs(2)).await;
        objects.register(&bundle("two"), BTreeSet::new());

        assert!(!is_watched());
        objects.stop();
    });
}

/// spec 20 §12: the holders of a kind hear of its watch, also after it has changed its version.
#[test]
fn a_watch_that_changed_its_version_still_tells_the_holders_of_its_kind() {
    universe(1, |universe: Universe| async move {
        let versions = Arc::new(Mutex::new(served(&["v1"])));
        let shown = versions.clone();
        let server = Server::new(move |seen| match seen.line.as_str() {
            "GET /readyz" => text(200, "ok"),
            // Those that the list lacks are asked for themselves.
            "GET /apis/g.io" | "GET /apis/g.io/v1" | "GET /apis/g.io/v2" => text(404, "404 page not found\n"),
            "GET /api" => reply(200, &json!({"kind": "APIGroupDiscoveryList", "items": []})),
            "GET /apis" => reply(200, &shown.lock().unwrap()),
            _ => text(403, "no\n"),
        });
        let cluster = server.cluster();
        let told = Rc::new(Cell::new(0));
        let count = told.clone();
        let listener: HealthListener = Rc::new(move |_, _, _| count.set(count.get() + 1));
        let watches = Watches::new(&cluster, &universe.env);
        watches.start();
        let objects =
            ManagedObjects::new(&watches, "a=b".to_owned(), Rc::new(|_| true), Rc::new(|_, _, _| {}), listener);
        let resource = cluster.discovery().mapping(&GroupVersionKind::new("g.io", "v1", "A")).await.unwrap();
        let held = ObjectKey { group: "g.io".into(), ..key("A", "a") };
        objects.register(&bundle("one"), BTreeSet::from([held]));
        objects.watch(&resource);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(told.get() > 0, "the first watch is refused");
        *versions.lock().unwrap() = served(&["v2"]);
        cluster.discovery().refresh_requested("g.io");
        tokio::time::sleep(Duration::from_secs(11)).await;
        cluster.discovery().mapping(&GroupVersionKind::new("g.io", "v2", "A")).await.unwrap();

        objects.follow_discovery();
        told.set(0); // the end of the first watch was told
        tokio::time::sleep(Duration::from_secs(5)).await;
        let heard = told.get();
        objects.stop();

        assert!(heard > 0, "the second one is refused too");
    });
}

/// fault 11
#[test]
fn who_is_told_that_a_watch_ends_or_begins_may_look_at_what_is_known_and_start_watches_itself() {
    universe(1, |universe: Universe| async move {
        let versions = Arc::new(Mutex::new(served(&["v1"])));
        let shown = versions.clone();
        let server = Server::new(move |seen| match seen.line.as_str() {
            "GET /readyz" => text(200, "ok"),
            // Those that the list lacks are asked for themselves.
            "GET /apis/g.io" | "GET /apis/g.io/v1" | "GET /apis/g.io/v2" => text(404, "404 page not found\n"),
            "GET /api" => reply(200, &json!({"kind": "APIGroupDiscoveryList", "items": []})),
            "GET /apis" => reply(200, &shown.lock().unwrap()),
            _ => text(403, "no\n"),
        });
        let cluster = server.cluster();
        let (own, told): (Rc<RefCell<Option<ManagedObjects>>>, Rc<Cell<usize>>) = Default::default();
        let held = ObjectKey { group: "g.io".into(), ..key("A", "a") };
        let (seen, count, object) = (own.clone(), told.clone(), held.clone());
        let discovery = cluster.clone();
        let listener: HealthListener = Rc::new(move |_, _, _| {
            // The end of all is told too.
            let Some(objects) = seen.borrow().clone() else { return };
            objects.standing(&object);
            let resource = discovery.discovery().known_preferred(&object.group_kind());
            resource.iter().for_each(|resource| objects.watch(resource));
            objects.register(&bundle("two"), BTreeSet::from([object.clone()]));
            count.set(count.get() + 1);
        });
        let watches = Watches::new(&cluster, &universe.env);
        watches.start();
        let objects =
            ManagedObjects::new(&watches, "a=b".to_owned(), Rc::new(|_| true), Rc::new(|_, _, _| {}), listener);
        own.replace(Some(objects.clone()));
        let resource = cluster.discovery().mapping(&GroupVersionKind::new("g.io", "v1", "A")).await.unwrap();
        objects.register(&bundle("one"), BTreeSet::from([held.clone()]));
        objects.watch(&resource);
        for (version, follows) in [("v2", true), ("v3", false)] {
            tokio::time::sleep(Duration::from_secs(5)).await;
            *versions.lock().unwrap() = served(&[version]);
            cluster.discovery().refresh_requested("g.io");
            tokio::time::sleep(Duration::from_secs(11)).await;
            let next = cluster.discovery().mapping(&GroupVersionKind::new("g.io", version, "A")).await.unwrap();
            told.set(0);

            if follows {
                objects.follow_discovery()
            } else {
                objects.watch(&next)
            }

            assert!(told.get() > 0, "{version}: that the watch ends is told at once");
            let watched = objects.inner.kinds.borrow().get(&held.group_kind()).unwrap().watch.resource().clone();
            assert_eq!(&*watched.version, version);
        }
        own.take();
        objects.stop();
    });
}
