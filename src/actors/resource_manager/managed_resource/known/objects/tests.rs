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
use crate::actors::resource_manager::health::HealthVerdict;

/// Lets virtual time pass. Panics on a real clock.
async fn seconds(seconds: u64) {
    tokio::time::advance(Duration::ZERO).await;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn served(versions: &[&str]) -> Value {
    let resource = json!({"resource": "as", "scope": "Cluster", "responseKind": {"group": "g.io", "kind": "A"}});
    let version = |name: &&str| json!({"version": name, "freshness": "Current", "resources": [resource.clone()]});
    let versions: Vec<_> = versions.iter().map(version).collect();
    json!({"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": "g.io"}, "versions": versions}]})
}

/// fault 11
#[test]
fn watched_version_is_preferred_and_changes_when_it_is_no_longer_served() {
    universe(1, |universe: Universe| async move {
        let versions = Arc::new(Mutex::new(served(&["v1beta1", "v1alpha1"])));
        let shown = versions.clone();
        let server = Server::new(move |seen| match seen.line.as_str() {
            "GET /readyz" => text(200, "ok"),
            // The client asks for versions that the list lacks.
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
            false,
            Rc::new(|_| Some(true)),
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
            seconds(11).await;
            let resource = cluster.discovery().mapping(&GroupVersionKind::new("g.io", asked, "A")).await.unwrap();

            objects.watch(&resource);

            let kinds = objects.kinds.borrow();
            watched.push(kinds.get(&kind).unwrap().watch.resource().version.to_string());
        }
        *versions.lock().unwrap() = served(&["v2"]);
        cluster.discovery().refresh_requested("g.io");
        seconds(11).await;
        cluster.discovery().mapping(&GroupVersionKind::new("g.io", "v2", "A")).await.unwrap();
        objects.follow_discovery();
        watched.push(objects.kinds.borrow().get(&kind).unwrap().watch.resource().version.to_string());
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
fn owners_object_is_dropped_with_its_last_owner() {
    let mut owners = Owners::default();
    owners.replace(&bundle("one"), BTreeSet::from([key("ConfigMap", "a"), key("ConfigMap", "b")]));
    owners.replace(&bundle("two"), BTreeSet::from([key("ConfigMap", "b")]));

    assert_eq!(owners.replace(&bundle("one"), BTreeSet::from([key("ConfigMap", "c")])), [key("ConfigMap", "a")]);
    assert_eq!(owners.replace(&bundle("two"), BTreeSet::new()), [key("ConfigMap", "b")]);
    assert!(owners.holders(&key("ConfigMap", "a")).is_empty());
    assert!(owners.holders(&key("ConfigMap", "b")).is_empty());
    assert_eq!(owners.holders(&key("ConfigMap", "c")), [Rc::new(bundle("one"))]);
}

#[test]
fn owners_of_a_kind_are_the_owners_of_its_objects() {
    let mut owners = Owners::default();
    owners.replace(&bundle("one"), BTreeSet::from([key("ConfigMap", "a"), key("Pod", "a")]));
    owners.replace(&bundle("two"), BTreeSet::from([key("ConfigMap", "b"), key("Secret", "b")]));

    let holders = |kind: &str| owners.holders_of(&GroupKind::new("", kind)).into_iter().collect::<Vec<_>>();
    assert_eq!(holders("ConfigMap"), [bundle("one"), bundle("two")]);
    assert_eq!(holders("Pod"), [bundle("one")]);
    assert_eq!(holders("Service"), []);
}

#[test]
fn health_news_distinguish_health_and_rollout() {
    let judged = |health: &str, rollout: &str| {
        let verdict = |text: &str| if text.is_empty() { HealthVerdict::Fine } else { HealthVerdict::Bad(text.into()) };
        let judgement = Judgement { health: verdict(health), rollout: verdict(rollout), pods: None };
        let judgement = (judgement != Judgement::default()).then(|| Box::new(judgement));
        Some(CachedObject { judgement, ..CachedObject::of_metadata(&json!({}), None) })
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
fn owners_keep_a_kind_as_long_as_an_object_of_it() {
    let mut owners = Owners::default();
    owners.replace(&bundle("one"), BTreeSet::from([key("ConfigMap", "a"), key("Secret", "a")]));

    let wanted = |owners: &Owners, kind: &str| owners.has_kind(&GroupKind::new("", kind));
    assert!(wanted(&owners, "ConfigMap") && wanted(&owners, "Secret") && !wanted(&owners, "Service"));
    owners.replace(&bundle("one"), BTreeSet::from([key("Secret", "a")]));

    assert!(!wanted(&owners, "ConfigMap") && wanted(&owners, "Secret"));
}

#[test]
fn owners_hear_news_of_their_objects_and_kinds_only() {
    let mut owners = Owners::default();
    owners.replace(&bundle("one"), BTreeSet::from([key("ConfigMap", "a"), key("Pod", "a")]));
    owners.replace(&bundle("two"), BTreeSet::from([key("ConfigMap", "a"), key("ConfigMap", "b")]));
    let news = |owners: &Owners| {
        ["one", "two"].map(|name| owners.last_news(&bundle(name)).map(|(news, _)| news).unwrap_or_default())
    };
    type Step = fn(&mut Owners);
    let steps: [(&str, Step, [bool; 2]); 8] = [
        ("of both", |it| drop(it.news_of(&key("ConfigMap", "a"))), [true, true]),
        ("of one", |it| drop(it.news_of(&key("ConfigMap", "b"))), [false, true]),
        ("of none", |it| drop(it.news_of(&key("ConfigMap", "c"))), [false, false]),
        ("of a kind", |it| drop(it.news_of_kind(&GroupKind::new("", "Pod"))), [true, false]),
        ("for a ManagedResource", |it| it.news_for([&bundle("two")]), [false, true]),
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
        let before = news(&owners);

        step(&mut owners);

        let after = news(&owners);
        assert_eq!([before[0] != after[0], before[1] != after[1]], expected, "{what}");
    }
    assert!(owners.last_news(&bundle("one")).is_none());
}

#[test]
fn object_news_need_a_change_of_content_or_verdict() {
    let cached = |version: &str, labels: Value, bad: bool| {
        let object = json!({"metadata": {"uid": "u", "resourceVersion": version, "labels": labels}});
        let judgement = Judgement { health: HealthVerdict::Bad("x".into()), ..Judgement::default() };
        CachedObject { judgement: bad.then(|| Box::new(judgement)), ..CachedObject::of_object(&object, None) }
    };
    let (name, before) = (NamespacedName::new("shoot", "a"), cached("1", json!({}), false));
    for (new, expected) in [
        (Some(cached("2", json!({}), false)), false),
        (Some(cached("2", json!({"a": "b"}), false)), true),
        (Some(cached("2", json!({}), true)), true),
        (None, true),
    ] {
        let change = Change { name: &name, old: Some(&before), new: new.as_ref(), how: How::Event };

        assert_eq!(is_news(&change), expected, "{new:?}");
    }
    assert!(is_news(&Change { name: &name, old: None, new: Some(&before), how: How::First }));
}

/// Tells which groups it serves, and refuses everything else.
fn refusing_server(groups: Value) -> Server {
    Server::new(move |seen| match seen.line.as_str() {
        "GET /readyz" => text(200, "ok"),
        "GET /apis/g.io" | "GET /apis/g.io/v1" | "GET /apis/g.io/v2" => text(404, "404 page not found\n"),
        "GET /api" => reply(200, &json!({"kind": "APIGroupDiscoveryList", "items": []})),
        "GET /apis" => reply(200, &groups),
        _ => text(403, "no\n"),
    })
}

#[test]
fn watch_without_owners_ends_after_a_while() {
    universe(1, |universe: Universe| async move {
        let server = refusing_server(served(&["v1"]));
        let cluster = server.cluster();
        let (drift, health): (DriftListener, HealthListener) = (Rc::new(|_, _, _| {}), Rc::new(|_, _, _| {}));
        let watches = Watches::new(&cluster, &universe.env);
        watches.start();
        let objects = ManagedObjects::new(&watches, "a=b".to_owned(), false, Rc::new(|_| Some(true)), drift, health);
        let resource = cluster.discovery().mapping(&GroupVersionKind::new("g.io", "v1", "A")).await.unwrap();
        let held = ObjectKey { group: "g.io".into(), ..key("A", "a") };
        objects.register(&bundle("one"), BTreeSet::from([held]));
        objects.watch(&resource);
        seconds(1).await;
        let is_watched = || objects.kinds.borrow().contains_key(&resource.group_kind());

        objects.register(&bundle("one"), BTreeSet::new());
        seconds(299).await;
        objects.register(&bundle("two"), BTreeSet::new());
        assert!(is_watched());
        seconds(2).await;
        objects.register(&bundle("two"), BTreeSet::new());

        assert!(!is_watched());
        objects.stop();
    });
}

#[test]
fn watch_waits_until_it_is_known_whether_its_kind_is_custom() {
    universe(1, |universe: Universe| async move {
        let server = refusing_server(served(&["v1"]));
        let cluster = server.cluster();
        let (drift, health): (DriftListener, HealthListener) = (Rc::new(|_, _, _| {}), Rc::new(|_, _, _| {}));
        let watches = Watches::new(&cluster, &universe.env);
        watches.start();
        let is_custom = Rc::new(Cell::new(None));
        let told = is_custom.clone();
        let told: IsCustom = Rc::new(move |_| told.get());
        let objects = ManagedObjects::new(&watches, "a=b".to_owned(), false, told, drift, health);
        let resource = cluster.discovery().mapping(&GroupVersionKind::new("g.io", "v1", "A")).await.unwrap();
        let held = ObjectKey { group: "g.io".into(), ..key("A", "a") };
        objects.register(&bundle("one"), BTreeSet::from([held.clone()]));
        let is_whole = || {
            let kinds = objects.kinds.borrow();
            kinds.get(&resource.group_kind()).map(|kind| kind.watch.reports_bodies())
        };

        objects.watch(&resource);
        objects.follow_definitions();
        assert_eq!((is_whole(), objects.standing(&held)), (None, Standing::Starting));
        is_custom.set(Some(true));
        objects.follow_definitions();
        assert_eq!(is_whole(), Some(false), "metadata is enough for a custom kind");
        objects.stop();
    });
}

/// spec 20 §12: the owners of a kind hear of its watch, also after its version has changed.
#[test]
fn watch_in_another_version_still_notifies_the_owners_of_its_kind() {
    universe(1, |universe: Universe| async move {
        let versions = Arc::new(Mutex::new(served(&["v1"])));
        let shown = versions.clone();
        let server = Server::new(move |seen| match seen.line.as_str() {
            "GET /readyz" => text(200, "ok"),
            "GET /apis/g.io" | "GET /apis/g.io/v1" | "GET /apis/g.io/v2" => text(404, "404 page not found\n"),
            "GET /api" => reply(200, &json!({"kind": "APIGroupDiscoveryList", "items": []})),
            "GET /apis" => reply(200, &shown.lock().unwrap()),
            _ => text(403, "no\n"),
        });
        let cluster = server.cluster();
        let reported = Rc::new(Cell::new(0));
        let count = reported.clone();
        let listener: HealthListener = Rc::new(move |_, _, _| count.set(count.get() + 1));
        let watches = Watches::new(&cluster, &universe.env);
        watches.start();
        let objects = ManagedObjects::new(
            &watches,
            "a=b".to_owned(),
            false,
            Rc::new(|_| Some(true)),
            Rc::new(|_, _, _| {}),
            listener,
        );
        let resource = cluster.discovery().mapping(&GroupVersionKind::new("g.io", "v1", "A")).await.unwrap();
        let held = ObjectKey { group: "g.io".into(), ..key("A", "a") };
        objects.register(&bundle("one"), BTreeSet::from([held]));
        objects.watch(&resource);
        seconds(5).await;
        assert!(reported.get() > 0, "the first watch is refused");
        *versions.lock().unwrap() = served(&["v2"]);
        cluster.discovery().refresh_requested("g.io");
        seconds(11).await;
        cluster.discovery().mapping(&GroupVersionKind::new("g.io", "v2", "A")).await.unwrap();

        objects.follow_discovery();
        reported.set(0); // the end of the first watch was reported
        seconds(5).await;
        let heard = reported.get();
        objects.stop();

        assert!(heard > 0, "the second one is refused too");
    });
}

/// fault 11
#[test]
fn watch_listener_may_read_objects_and_start_watches() {
    universe(1, |universe: Universe| async move {
        let versions = Arc::new(Mutex::new(served(&["v1"])));
        let shown = versions.clone();
        let server = Server::new(move |seen| match seen.line.as_str() {
            "GET /readyz" => text(200, "ok"),
            "GET /apis/g.io" | "GET /apis/g.io/v1" | "GET /apis/g.io/v2" => text(404, "404 page not found\n"),
            "GET /api" => reply(200, &json!({"kind": "APIGroupDiscoveryList", "items": []})),
            "GET /apis" => reply(200, &shown.lock().unwrap()),
            _ => text(403, "no\n"),
        });
        let cluster = server.cluster();
        let own: Rc<RefCell<Option<Rc<ManagedObjects>>>> = Rc::default();
        let reported: Rc<Cell<usize>> = Rc::default();
        let held = ObjectKey { group: "g.io".into(), ..key("A", "a") };
        let (seen, count, object) = (own.clone(), reported.clone(), held.clone());
        let discovery = cluster.clone();
        let listener: HealthListener = Rc::new(move |_, _, _| {
            // The end of all watches is reported too.
            let Some(objects) = seen.borrow().clone() else { return };
            objects.standing(&object);
            let resource = discovery.discovery().known_preferred(&object.group_kind());
            resource.iter().for_each(|resource| objects.watch(resource));
            objects.register(&bundle("two"), BTreeSet::from([object.clone()]));
            count.set(count.get() + 1);
        });
        let watches = Watches::new(&cluster, &universe.env);
        watches.start();
        let objects = ManagedObjects::new(
            &watches,
            "a=b".to_owned(),
            false,
            Rc::new(|_| Some(true)),
            Rc::new(|_, _, _| {}),
            listener,
        );
        own.replace(Some(objects.clone()));
        let resource = cluster.discovery().mapping(&GroupVersionKind::new("g.io", "v1", "A")).await.unwrap();
        objects.register(&bundle("one"), BTreeSet::from([held.clone()]));
        objects.watch(&resource);
        for (version, follows) in [("v2", true), ("v3", false)] {
            seconds(5).await;
            *versions.lock().unwrap() = served(&[version]);
            cluster.discovery().refresh_requested("g.io");
            seconds(11).await;
            let next = cluster.discovery().mapping(&GroupVersionKind::new("g.io", version, "A")).await.unwrap();
            reported.set(0);

            if follows {
                objects.follow_discovery()
            } else {
                objects.watch(&next)
            }

            assert!(reported.get() > 0, "{version}: the end of the watch is reported at once");
            let watched = objects.kinds.borrow().get(&held.group_kind()).unwrap().watch.resource().clone();
            assert_eq!(&*watched.version, version);
        }
        own.take();
        objects.stop();
    });
}
