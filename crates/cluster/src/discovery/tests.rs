use std::sync::{
    Arc as Shared_, Mutex,
    atomic::{AtomicBool, Ordering},
};

use serde_json::{Value, json};
use tokio::time::sleep;

use super::*;
use crate::WatchQuery;
use crate::testing::{Reply, Server, answer, json as reply, late, text};

fn core() -> Value {
    json!({"kind": "APIGroupDiscoveryList", "items": [{"metadata": {}, "versions": [{"version": "v1", "freshness": "Current",
        "resources": [{"resource": "configmaps", "scope": "Namespaced", "responseKind": {"group": "", "version": "",
        "kind": "ConfigMap"}, "subresources": []}]}]}]})
}

fn version(name: &str, kinds: &[(&str, &str)], freshness: &str) -> Value {
    let resources = kinds.iter().map(|(kind, plural)| {
        json!({"resource": plural, "scope": "Cluster", "responseKind": {"group": "g.io", "version": name, "kind": kind}})
    });
    json!({"version": name, "freshness": freshness, "resources": resources.collect::<Vec<_>>()})
}

fn groups(versions: &[Value]) -> Value {
    json!({"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": "g.io"}, "versions": versions}]})
}

/// A server whose `/apis` document can be changed.
fn serving(first: Value) -> (Server, Shared_<Mutex<Value>>) {
    let apis = Shared_::new(Mutex::new(first));
    let shown = apis.clone();
    let server = Server::new(move |seen| match seen.line.as_str() {
        "GET /api" => reply(200, &core()),
        "GET /apis" => reply(200, &shown.lock().unwrap()),
        _ => text(404, "404 page not found\n"),
    });
    (server, apis)
}

fn kind(version: &str, kind: &str) -> GroupVersionKind {
    GroupVersionKind::new("g.io", version, kind)
}

#[tokio::test(start_paused = true)]
async fn kinds_are_found_in_aggregated_documents() {
    let (server, _) =
        serving(groups(&[version("v2", &[("B", "bs")], "Current"), version("v1", &[("A", "as")], "Current")]));
    let cluster = server.cluster();
    let discovery = cluster.discovery();

    let config_map = discovery.mapping(&GroupVersionKind::new("", "v1", "ConfigMap")).await;

    assert_eq!(config_map, Ok(Resource::new("", "v1", "ConfigMap", "configmaps", true)));
    assert_eq!(discovery.mapping(&kind("v1", "A")).await, Ok(Resource::new("g.io", "v1", "A", "as", false)));
    assert_eq!(discovery.preferred(&GroupKind::new("g.io", "A")).await.unwrap().version, "v1".into());
    assert_eq!(server.lines(), ["GET /api", "GET /apis"]);
}

/// fault 11
#[tokio::test(start_paused = true)]
async fn a_missing_kind_is_asked_for_at_most_every_ten_seconds_and_found_when_it_comes() {
    let (server, apis) = serving(groups(&[version("v1", &[], "Current")]));
    let cluster = server.cluster();
    let discovery = cluster.discovery();

    for _ in 0..100 {
        let missing = discovery.mapping(&kind("v1", "A")).await.unwrap_err();
        assert_eq!(missing.to_string(), "no matches for kind \"A\" in version \"g.io/v1\"");
        assert!(discovery.preferred(&GroupKind::new("g.io", "A")).await.unwrap_err().is_no_match());
    }
    assert_eq!(server.lines().len(), 2);

    *apis.lock().unwrap() = groups(&[version("v1", &[("A", "as")], "Current")]);
    sleep(PER_GROUP).await;
    assert!(discovery.mapping(&kind("v1", "A")).await.is_ok());
    assert_eq!(server.lines().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn concurrent_misses_share_a_request() {
    let (server, _) = serving(groups(&[]));
    let cluster = server.cluster();
    let groups: Vec<_> = (0..50).map(|index| GroupVersionKind::new(format!("g{index}"), "v1", "A")).collect();

    let results = futures::future::join_all(groups.iter().map(|kind| cluster.discovery().mapping(kind))).await;

    assert!(results.iter().all(|result| result.as_ref().is_err_and(ApiError::is_no_match)));
    assert_eq!(server.lines().len(), 2);
}

/// fault 11
#[tokio::test(start_paused = true)]
async fn a_requested_refresh_tells_those_who_wait() {
    let (server, apis) = serving(groups(&[]));
    let cluster = server.cluster();
    let discovery = cluster.discovery().clone();
    discovery.mapping(&kind("v1", "A")).await.unwrap_err();
    let mut changes = discovery.subscribe();
    let before = discovery.version();
    let begin = Instant::now();

    *apis.lock().unwrap() = groups(&[version("v1", &[("A", "as")], "Current")]);
    for _ in 0..100 {
        discovery.refresh_requested("g.io");
    }
    tokio::select! { biased; changed = changes.changed() => changed.unwrap(), () = discovery.clone().run() => {} }

    assert_eq!(begin.elapsed(), YOUNG, "the miss just before does not put it off");
    assert!(discovery.version() > before);
    assert!(discovery.known(&kind("v1", "A")).is_some());
    assert_eq!(server.lines().len(), 4);

    *apis.lock().unwrap() = groups(&[]);
    discovery.refresh_requested("g.io");
    tokio::select! { biased; changed = changes.changed() => changed.unwrap(), () = discovery.clone().run() => {} }
    assert_eq!(begin.elapsed(), YOUNG + PER_GROUP, "changes in a row share the time");
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_gone_is_noticed_by_the_next_question_after_a_request() {
    let (server, apis) = serving(groups(&[version("v1", &[("A", "as")], "Current")]));
    let cluster = server.cluster();
    let discovery = cluster.discovery();
    discovery.mapping(&kind("v1", "A")).await.unwrap();
    sleep(PER_GROUP).await;

    *apis.lock().unwrap() = groups(&[]);
    discovery.refresh_requested("g.io");

    assert!(discovery.mapping(&kind("v1", "A")).await.unwrap_err().is_no_match());
}

/// architecture §6: the last good answer of a group is kept
#[tokio::test(start_paused = true)]
async fn a_stale_group_keeps_its_last_good_answer() {
    let (server, apis) = serving(groups(&[version("v1", &[("A", "as")], "Current")]));
    let cluster = server.cluster();
    let discovery = cluster.discovery();
    discovery.mapping(&kind("v1", "A")).await.unwrap();

    *apis.lock().unwrap() = groups(&[version("v1", &[], "Stale")]);
    sleep(PER_GROUP).await;
    let other = discovery.mapping(&kind("v1", "B")).await.unwrap_err();

    assert!(discovery.mapping(&kind("v1", "A")).await.is_ok());
    assert!(!other.is_no_match(), "it may be there: {other}");
    assert_eq!(
        other.to_string(),
        "unable to retrieve the complete list of server APIs: g.io/v1: stale GroupVersion discovery: g.io/v1"
    );
}

#[tokio::test(start_paused = true)]
async fn while_the_server_is_down_known_kinds_are_found_and_others_are_unknown() {
    let down = Shared_::new(AtomicBool::new(false));
    let switch = down.clone();
    let server = Server::new(move |seen| match seen.line.as_str() {
        _ if switch.load(Ordering::Relaxed) => Reply::Broken,
        "GET /api" => reply(200, &core()),
        _ => reply(200, &groups(&[])),
    });
    let cluster = server.cluster();
    let config_map = GroupVersionKind::new("", "v1", "ConfigMap");
    cluster.discovery().mapping(&config_map).await.unwrap();

    down.store(true, Ordering::Relaxed);
    sleep(PER_GROUP).await;
    let error = cluster.discovery().mapping(&kind("v1", "A")).await.unwrap_err();

    assert!(matches!(error, ApiError::Transport { .. }), "{error}");
    assert!(cluster.discovery().mapping(&config_map).await.is_ok());
}

/// spec 33 T5: that a kind was not served is no proof that it is not
#[tokio::test(start_paused = true)]
async fn what_is_asked_after_a_moment_is_not_answered_from_older_documents() {
    let (server, apis) = serving(groups(&[version("v1", &[], "Current")]));
    let cluster = server.cluster();
    let discovery = cluster.discovery();
    let (a, b) = (kind("v1", "A"), kind("v1", "B"));
    discovery.mapping(&a).await.unwrap_err();
    let moment = discovery.asked();
    *apis.lock().unwrap() = groups(&[version("v1", &[("A", "as")], "Current")]);
    assert!(discovery.mapping(&a).await.is_err(), "it was asked for a moment ago");

    assert!(discovery.mapping_after(&a, moment).await.is_ok());
    assert_eq!(discovery.mapping_after(&b, moment).await, Err(ApiError::NoMatch(b.clone())));
    assert_eq!(server.lines().len(), 4, "one fetch answers for both");
    assert_eq!(discovery.mapping_after(&b, discovery.asked()).await, Err(ApiError::NoMatch(b)));
    assert_eq!(server.lines().len(), 6);
}

/// spec 33 T5
#[tokio::test(start_paused = true)]
async fn a_fetch_that_began_before_a_moment_or_never_ended_answers_nothing_about_it() {
    let server = Server::new(|seen| match seen.line.as_str() {
        "GET /api" => late(1, reply(200, &core())),
        _ => reply(200, &groups(&[version("v1", &[], "Current")])),
    });
    let cluster = server.cluster();
    let (discovery, a) = (cluster.discovery(), kind("v1", "A"));
    let asked_while_it_runs = async {
        sleep(Duration::from_millis(500)).await;
        discovery.mapping_after(&a, discovery.asked()).await
    };

    let (_, after) = tokio::join!(discovery.mapping(&a), asked_while_it_runs);
    assert!(after.unwrap_err().is_no_match());
    assert_eq!(server.lines(), ["GET /api", "GET /apis", "GET /api", "GET /apis"]);

    let moment = discovery.asked();
    tokio::time::timeout(Duration::from_millis(500), discovery.mapping_after(&a, moment)).await.unwrap_err();
    assert!(discovery.mapping_after(&a, moment).await.unwrap_err().is_no_match());
    assert_eq!(server.lines()[4..], ["GET /api", "GET /api", "GET /apis"]);
}

/// spec 33 T5: a proxy that knows no path says nothing of any kind
#[tokio::test(start_paused = true)]
async fn documents_that_are_not_found_are_no_proof_of_absence() {
    let server = Server::new(|_| text(404, "404 page not found\n"));
    let cluster = server.cluster();
    let (discovery, a) = (cluster.discovery(), kind("v1", "A"));

    for result in [discovery.mapping(&a).await, discovery.mapping_after(&a, discovery.asked()).await] {
        let error = result.unwrap_err();
        assert!(!error.is_no_match(), "{error}");
        assert_eq!(error.to_string(), "unable to retrieve the complete list of server APIs: 404 page not found");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unchanged_document_is_not_sent_again() {
    let server = Server::new(|seen| {
        let known = seen.headers.get("if-none-match").is_some_and(|tag| tag == "\"1\"");
        let document = if seen.line == "GET /api" { core() } else { groups(&[version("v1", &[], "Current")]) };
        if known { text(304, "") } else { answer(200, &[("etag", "\"1\"")], document.to_string()) }
    });
    let cluster = server.cluster();
    let discovery = cluster.discovery();
    discovery.mapping(&kind("v1", "A")).await.unwrap_err();
    let version = discovery.version();

    sleep(PER_GROUP).await;

    assert!(discovery.mapping(&kind("v1", "A")).await.unwrap_err().is_no_match());
    assert_eq!((server.lines().len(), discovery.version()), (4, version));
    assert!(discovery.known(&GroupVersionKind::new("", "v1", "ConfigMap")).is_some());
}

#[tokio::test(start_paused = true)]
async fn servers_without_aggregated_documents_are_asked_one_by_one() {
    let server = Server::new(|seen| {
        let aggregated = seen.headers["accept"].to_str().unwrap().contains("APIGroupDiscoveryList");
        let resources = |name: &str, kind: &str| {
            json!({"kind": "APIResourceList", "resources": [{"name": name, "kind": kind, "namespaced": true},
                {"name": format!("{name}/status"), "kind": kind, "namespaced": true}]})
        };
        match seen.line.as_str() {
            "GET /api" if aggregated => text(406, ""),
            "GET /api" => reply(200, &json!({"kind": "APIVersions", "versions": ["v1"]})),
            "GET /apis" => reply(
                200,
                &json!({"kind": "APIGroupList", "groups": [{"name": "g.io", "versions":
                [{"version": "v2"}, {"version": "v1"}, {"version": "v0"}], "preferredVersion": {"version": "v1"}}]}),
            ),
            "GET /api/v1" => reply(200, &resources("configmaps", "ConfigMap")),
            "GET /apis/g.io/v1" | "GET /apis/g.io/v2" => reply(200, &resources("as", "A")),
            _ => text(503, "service unavailable\n"),
        }
    });
    let cluster = server.cluster();
    let discovery = cluster.discovery();

    assert_eq!(
        discovery.preferred(&GroupKind::new("g.io", "A")).await,
        Ok(Resource::new("g.io", "v1", "A", "as", true))
    );
    assert!(discovery.mapping(&GroupVersionKind::new("", "v1", "ConfigMap")).await.is_ok());
    let broken = discovery.mapping(&kind("v0", "A")).await.unwrap_err();
    assert!(broken.to_string().ends_with("g.io/v0: service unavailable"), "{broken}");
}

/// api-facts §2: a path that is not served any more makes the group be asked for anew
#[tokio::test(start_paused = true)]
async fn a_404_of_the_path_requests_a_refresh() {
    let (server, apis) = serving(groups(&[version("v1", &[("A", "as")], "Current")]));
    let cluster = server.cluster();
    let resource = cluster.discovery().mapping(&kind("v1", "A")).await.unwrap();
    *apis.lock().unwrap() = groups(&[]);
    sleep(PER_GROUP).await;

    let error = cluster.get(&crate::testing::ctx(), &resource.at("", "x")).await.unwrap_err();

    assert!(error.is_no_match());
    assert!(cluster.discovery().mapping(&kind("v1", "A")).await.is_err());
}

/// fault 11
#[tokio::test(start_paused = true)]
async fn a_watch_of_a_version_that_is_no_longer_served_leads_to_a_new_question() {
    let (server, apis) = serving(groups(&[version("v1", &[("A", "as")], "Current")]));
    let cluster = server.cluster();
    let resource = cluster.discovery().mapping(&kind("v1", "A")).await.unwrap();
    *apis.lock().unwrap() = groups(&[version("v2", &[("A", "as")], "Current")]);
    sleep(PER_GROUP).await;

    assert!(cluster.watch(&resource, None, WatchQuery::default()).await.is_err());

    assert!(cluster.discovery().mapping(&kind("v1", "A")).await.is_err());
}
