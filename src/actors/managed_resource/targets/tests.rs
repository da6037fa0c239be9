//! What is watched, what is known, and who is told.

use std::sync::{Arc, Mutex};

use serde_json::json;

use super::*;
use crate::{
    actors::{
        health::Verdict,
        kit::testing::{Universe, universe},
    },
    cluster::{
        Change, How,
        testing::{Server, json as reply, text},
    },
};

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
            "GET /api" => reply(200, &json!({"kind": "APIGroupDiscoveryList", "items": []})),
            "GET /apis" => reply(200, &shown.lock().unwrap()),
            _ => text(404, "404 page not found\n"),
        });
        let cluster = server.cluster();
        let targets = Targets::new(
            &cluster,
            &universe.env,
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

            targets.watch(&resource);

            let kinds = targets.inner.kinds.borrow();
            watched.push(kinds.get(&kind).unwrap().router.resource().version.to_string());
        }
        *versions.lock().unwrap() = served(&["v2"]);
        cluster.discovery().refresh_requested("g.io");
        tokio::time::sleep(Duration::from_secs(11)).await;
        cluster.discovery().mapping(&GroupVersionKind::new("g.io", "v2", "A")).await.unwrap();
        targets.follow_discovery();
        watched.push(targets.inner.kinds.borrow().get(&kind).unwrap().router.resource().version.to_string());
        targets.stop();

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
    assert!(interest.holders(&key("ConfigMap", "a")).is_none());
    assert!(interest.holders(&key("ConfigMap", "b")).is_none());
    assert!(interest.holders(&key("ConfigMap", "c")).is_some());
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
        Some(Record { judgement, ..Record::of_metadata(&json!({})) })
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

/// spec 20 §12: the holders of a kind hear of its watch, also after it has changed its version.
#[test]
fn a_watch_that_changed_its_version_still_tells_the_holders_of_its_kind() {
    universe(1, |universe: Universe| async move {
        let versions = Arc::new(Mutex::new(served(&["v1"])));
        let shown = versions.clone();
        let server = Server::new(move |seen| match seen.line.as_str() {
            "GET /api" => reply(200, &json!({"kind": "APIGroupDiscoveryList", "items": []})),
            "GET /apis" => reply(200, &shown.lock().unwrap()),
            _ => text(403, "no\n"),
        });
        let cluster = server.cluster();
        let told = Rc::new(Cell::new(0));
        let count = told.clone();
        let listener: HealthListener = Rc::new(move |_, _, _| count.set(count.get() + 1));
        let targets =
            Targets::new(&cluster, &universe.env, "a=b".to_owned(), Rc::new(|_| true), Rc::new(|_, _, _| {}), listener);
        let resource = cluster.discovery().mapping(&GroupVersionKind::new("g.io", "v1", "A")).await.unwrap();
        let held = ObjectKey { group: "g.io".into(), ..key("A", "a") };
        targets.register(&bundle("one"), BTreeSet::from([held]));
        targets.watch(&resource);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(told.get() > 0, "the first watch is refused");
        *versions.lock().unwrap() = served(&["v2"]);
        cluster.discovery().refresh_requested("g.io");
        tokio::time::sleep(Duration::from_secs(11)).await;
        cluster.discovery().mapping(&GroupVersionKind::new("g.io", "v2", "A")).await.unwrap();

        targets.follow_discovery();
        told.set(0); // the end of the first watch was told
        tokio::time::sleep(Duration::from_secs(5)).await;
        let heard = told.get();
        targets.stop();

        assert!(heard > 0, "the second one is refused too");
    });
}
