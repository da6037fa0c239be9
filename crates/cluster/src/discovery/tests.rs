use std::sync::{
    Arc as Shared_, Mutex,
    atomic::{AtomicBool, Ordering},
};

use serde_json::{Value, json};
use tokio::time::sleep;

use super::*;
use crate::{
    WatchQuery,
    testing::{Reply, Server, answer, json as reply, late, text},
};

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

fn serving(first: Value) -> (Server, Shared_<Mutex<Value>>) {
    let apis = Shared_::new(Mutex::new(first));
    let shown = apis.clone();
    let server = Server::new(move |seen| match seen.line.as_str() {
        "GET /readyz" => text(200, "ok"),
        "GET /api" => reply(200, &core()),
        "GET /apis" => reply(200, &shown.lock().unwrap()),
        line => own_document(line, &shown.lock().unwrap()),
    });
    (server, apis)
}

fn own_document(line: &str, apis: &Value) -> Reply {
    let versions = apis["items"][0]["versions"].as_array().cloned().unwrap_or_default();
    if line == "GET /apis/g.io" && !versions.is_empty() {
        return reply(200, &json!({"kind": "APIGroup", "name": "g.io", "versions": versions}));
    }
    let is_asked = |version: &&Value| line == format!("GET /apis/g.io/{}", version["version"].as_str().unwrap());
    let Some(version) = versions.iter().find(is_asked) else { return text(404, "404 page not found\n") };
    let resource = |it: &Value| {
        let namespaced = it["scope"] == "Namespaced";
        json!({"name": it["resource"], "kind": it["responseKind"]["kind"], "namespaced": namespaced})
    };
    let resources: Vec<_> = version["resources"].as_array().unwrap().iter().map(resource).collect();
    reply(200, &json!({"kind": "APIResourceList", "resources": resources}))
}

fn absent(kind: &GroupVersionKind) -> Result<Serving, ApiError> {
    Ok(Serving::Absent(ProvedAbsent::new(kind)))
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
    assert_eq!(discovery.known_preferred(&GroupKind::new("g.io", "A")).unwrap().version.as_str(), "v1");
    assert_eq!(server.lines(), ["GET /api", "GET /apis"]);
}

/// fault 11
#[tokio::test(start_paused = true)]
async fn missing_kind_is_requested_at_most_every_ten_seconds_and_found_when_it_comes() {
    let (server, apis) = serving(groups(&[version("v1", &[], "Current")]));
    let cluster = server.cluster();
    let discovery = cluster.discovery();

    for _ in 0..100 {
        let missing = discovery.mapping(&kind("v1", "A")).await.unwrap_err();
        assert_eq!(missing.to_string(), "no matches for kind \"A\" in version \"g.io/v1\"");
        assert_eq!(discovery.serving(&kind("v1", "A")).await, absent(&kind("v1", "A")));
    }
    assert_eq!(server.lines().len(), 5, "two lists; readiness, version and group");

    *apis.lock().unwrap() = groups(&[version("v1", &[("A", "as")], "Current")]);
    sleep(PER_GROUP).await;
    assert!(discovery.mapping(&kind("v1", "A")).await.is_ok());
    assert_eq!(server.lines().len(), 7);
}

#[tokio::test(start_paused = true)]
async fn concurrent_misses_share_a_request() {
    let (server, _) = serving(groups(&[]));
    let cluster = server.cluster();
    let kinds: Vec<_> = (0..50).map(|index| kind("v1", &format!("A{index}"))).collect();

    let results = futures::future::join_all(kinds.iter().map(|kind| cluster.discovery().mapping(kind))).await;

    assert!(results.iter().all(|result| result.as_ref().is_err_and(ApiError::is_no_match)));
    assert_eq!(server.lines().len(), 5);
}

/// fault 11
#[tokio::test(start_paused = true)]
async fn requested_refresh_notifies_subscribers() {
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
    assert_eq!(server.lines().len(), 7);

    *apis.lock().unwrap() = groups(&[]);
    discovery.refresh_requested("g.io");
    tokio::select! { biased; changed = changes.changed() => changed.unwrap(), () = discovery.clone().run() => {} }
    assert_eq!(begin.elapsed(), YOUNG + PER_GROUP, "changes in a row share the time");
}

#[tokio::test(start_paused = true)]
async fn removed_kind_is_noticed_by_the_next_question_after_a_refresh_request() {
    let (server, apis) = serving(groups(&[version("v1", &[("A", "as")], "Current")]));
    let cluster = server.cluster();
    let discovery = cluster.discovery();
    discovery.mapping(&kind("v1", "A")).await.unwrap();
    sleep(PER_GROUP).await;

    *apis.lock().unwrap() = groups(&[]);
    discovery.refresh_requested("g.io");

    assert!(discovery.mapping(&kind("v1", "A")).await.unwrap_err().is_no_match());
}

/// architecture §5: the last good answer of a group is kept
#[tokio::test(start_paused = true)]
async fn stale_group_keeps_its_last_good_answer() {
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
async fn kinds_are_known_or_unknown_but_not_absent_while_the_server_is_down() {
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
async fn look_up_ignores_answers_from_before_its_moment() {
    let (server, apis) = serving(groups(&[version("v1", &[("C", "cs")], "Current")]));
    let cluster = server.cluster();
    let discovery = cluster.discovery();
    let (a, b) = (kind("v1", "A"), kind("v1", "B"));
    discovery.mapping(&a).await.unwrap_err();
    let moment = discovery.asked();
    *apis.lock().unwrap() = groups(&[version("v1", &[("A", "as")], "Current")]);
    assert!(discovery.mapping(&a).await.is_err(), "it was asked for a moment ago");

    let found = Serving::Served(Resource::new("g.io", "v1", "A", "as", false));
    assert_eq!(discovery.look_up(&a, moment).await, Ok(found));
    assert_eq!(discovery.look_up(&b, moment).await, absent(&b));
    assert_eq!(server.lines().len(), 8, "one question answers for both");
    assert_eq!(discovery.look_up(&b, discovery.asked()).await, absent(&b));
    assert_eq!(server.lines().len(), 11);
    assert!(discovery.known(&a).is_some(), "what a version says of itself counts");
}

/// spec 33 T5
#[tokio::test(start_paused = true)]
async fn look_up_ignores_questions_that_began_before_its_moment_or_never_ended() {
    let server = Server::new(|seen| match seen.line.as_str() {
        "GET /readyz" => late(1, text(200, "ok")),
        _ => text(404, "404 page not found\n"),
    });
    let cluster = server.cluster();
    let (discovery, a) = (cluster.discovery(), kind("v1", "A"));
    let asked_while_it_runs = async {
        sleep(Duration::from_millis(500)).await;
        discovery.look_up(&a, discovery.asked()).await
    };

    let (_, after) = tokio::join!(discovery.look_up(&a, 0), asked_while_it_runs);
    assert_eq!(after, absent(&a));
    let question = ["GET /readyz", "GET /apis/g.io/v1", "GET /apis/g.io"];
    assert_eq!(server.lines(), [question, question].concat());

    let moment = discovery.asked();
    tokio::time::timeout(Duration::from_millis(500), discovery.look_up(&a, moment)).await.unwrap_err();
    assert_eq!(discovery.look_up(&a, moment).await, absent(&a));
}

/// decision 38: a question that takes longer than its answer counts for other callers is not repeated for ever
#[tokio::test(start_paused = true)]
async fn slow_discovery_answer_counts_for_its_callers() {
    for (seconds, code) in [(2, 500), (11, 500), (2, 200), (11, 200)] {
        let server = Server::new(move |seen| match seen.line.as_str() {
            "GET /readyz" => late(seconds, text(code, "")),
            "GET /api" => reply(200, &core()),
            "GET /apis" => reply(200, &groups(&[])),
            _ => text(404, "404 page not found\n"),
        });
        let cluster = server.cluster();
        let (discovery, a) = (cluster.discovery(), kind("v1", "A"));
        let patience = Duration::from_secs(seconds + 1);

        let answer = tokio::time::timeout(patience, discovery.mapping(&a)).await.expect("it is asked once");

        assert_eq!(answer.unwrap_err().is_no_match(), code == 200, "{seconds} s, {code}");
        let questions = server.lines().iter().filter(|line| *line == "GET /readyz").count();
        assert_eq!(questions, 1, "{seconds} s, {code}");
    }
}

/// decision 38; spec 10 §13.1; facts §7: the lists and the documents of versions of a server that starts prove nothing
#[tokio::test(start_paused = true)]
async fn absence_is_proved_by_a_server_that_is_ready_and_by_the_version_itself() {
    let unready = "[+]ping ok\n[-]poststarthook/start-apiextensions-controllers failed: reason withheld\n";
    let served = json!({"kind": "APIResourceList", "resources": [{"name": "as", "kind": "A", "namespaced": true}]});
    let a = kind("v1", "A");
    let cases = [
        ((500, unready), (503, "starting"), false),
        ((500, unready), (404, "404 page not found\n"), false),
        ((404, "404 page not found\n"), (404, "404 page not found\n"), false),
        ((401, ""), (404, "404 page not found\n"), false),
        ((200, "ok"), (503, "service unavailable\n"), false),
        ((200, "ok"), (500, ""), false),
        ((200, "ok"), (404, "<html>not found</html>"), false),
        ((200, "ok"), (404, ""), false),
        ((200, "ok"), (404, "404 page not found\n"), true),
        ((200, "ok"), (200, r#"{"kind": "APIResourceList", "resources": []}"#), true),
        ((200, "ok"), (200, "{}"), false),
        ((200, "ok"), (200, &served.to_string()), false),
    ];
    for (readyz, own, is_proof) in cases {
        let (own, body) = (own.0, own.1.to_owned());
        let server = Server::new(move |seen| match seen.line.as_str() {
            "GET /readyz" => text(readyz.0, readyz.1),
            "GET /api" => reply(200, &core()),
            "GET /apis" => reply(200, &groups(&[])),
            "GET /apis/g.io/v1" => text(own, &body),
            _ => text(404, "404 page not found\n"),
        });
        let cluster = server.cluster();
        let discovery = cluster.discovery();

        let found = discovery.serving(&a).await;
        assert_eq!(found == absent(&a), is_proof, "{readyz:?} {own}: {found:?}");
        assert_eq!(discovery.mapping(&a).await.is_err_and(|error| error.is_no_match()), is_proof, "{readyz:?} {own}");
    }
}

/// decision 38: a known kind is not forgotten because a list lacks it
#[tokio::test(start_paused = true)]
async fn kind_missing_in_a_list_stays_known_until_its_version_lacks_it() {
    let apis = Shared_::new(Mutex::new(groups(&[version("v1", &[("A", "as")], "Current")])));
    let (is_ready, own) = (Shared_::new(AtomicBool::new(false)), Shared_::new(AtomicBool::new(true)));
    let (shown, ready, there) = (apis.clone(), is_ready.clone(), own.clone());
    let server = Server::new(move |seen| match seen.line.as_str() {
        "GET /readyz" => {
            if ready.load(Ordering::Relaxed) {
                text(200, "ok")
            } else {
                text(500, "")
            }
        }
        "GET /api" => reply(200, &core()),
        "GET /apis" => reply(200, &shown.lock().unwrap()),
        line if there.load(Ordering::Relaxed) => {
            own_document(line, &groups(&[version("v1", &[("A", "as")], "Current")]))
        }
        _ => text(404, "404 page not found\n"),
    });
    let cluster = server.cluster();
    let discovery = cluster.discovery().clone();
    let a = kind("v1", "A");
    discovery.mapping(&a).await.unwrap();
    let version = discovery.version();
    let running = discovery.clone();
    let fetching = async { tokio::time::timeout(Duration::from_secs(60), running.clone().run()).await };

    *apis.lock().unwrap() = groups(&[]);
    discovery.refresh_requested("g.io");
    fetching.await.unwrap_err();
    assert!(discovery.known(&a).is_some(), "the server is not ready");
    let other = discovery.mapping(&kind("v1", "B")).await.unwrap_err();
    assert!(!other.is_no_match() && other.to_string().ends_with("the API server is not ready (500)"), "{other}");
    is_ready.store(true, Ordering::Relaxed);
    tokio::time::timeout(Duration::from_secs(60), discovery.clone().run()).await.unwrap_err();
    assert!(discovery.known(&a).is_some(), "its version says that it is there");
    assert!(discovery.mapping(&kind("v1", "B")).await.unwrap_err().is_no_match());

    own.store(false, Ordering::Relaxed);
    discovery.refresh_requested("g.io");
    tokio::time::timeout(Duration::from_secs(60), discovery.clone().run()).await.unwrap_err();
    assert_eq!(discovery.known(&a), None);
    assert!(discovery.version() > version);
}

/// spec 10 §13.1: another version that is served comes before the proof
#[tokio::test(start_paused = true)]
async fn kind_is_found_in_another_version_that_only_the_group_names() {
    let (server, apis) = serving(groups(&[]));
    let cluster = server.cluster();
    let (discovery, old) = (cluster.discovery(), kind("v1beta1", "A"));
    assert_eq!(discovery.serving(&old).await, absent(&old));
    *apis.lock().unwrap() =
        groups(&[version("v2", &[("B", "bs")], "Current"), version("v1", &[("A", "as")], "Current")]);

    let found = Serving::Served(Resource::new("g.io", "v1", "A", "as", false));
    assert_eq!(discovery.look_up(&old, discovery.asked()).await, Ok(found));
    assert!(discovery.mapping(&old).await.unwrap_err().is_no_match());
}

/// spec 10 §13.1: without the right to ask whether the server is ready, absence must outlast a start
#[tokio::test(start_paused = true)]
async fn absence_must_last_without_the_right_to_readyz() {
    let server = Server::new(|seen| match seen.line.as_str() {
        "GET /readyz" => crate::testing::status(403, "Forbidden", "cannot get path \"/readyz\""),
        "GET /api" => reply(200, &core()),
        "GET /apis" => reply(200, &groups(&[])),
        _ => text(404, "404 page not found\n"),
    });
    let cluster = server.cluster();
    let (discovery, a) = (cluster.discovery(), kind("v1", "A"));

    let error = discovery.serving(&a).await.unwrap_err();
    assert!(error.to_string().contains("/readyz"), "{error}");
    sleep(Duration::from_secs(5)).await;
    assert!(discovery.serving(&a).await.is_err());
    sleep(Duration::from_secs(5)).await;
    assert_eq!(discovery.serving(&a).await, absent(&a));

    sleep(Duration::from_secs(600)).await;
    discovery.serving(&kind("v2", "A")).await.unwrap_err();
    assert_eq!(discovery.serving(&a).await, absent(&a), "it has been missing since");
}

/// spec 33 T5: a proxy that knows no path says nothing of any kind
#[tokio::test(start_paused = true)]
async fn absence_is_not_proved_by_missing_documents() {
    let server = Server::new(|_| text(404, "404 page not found\n"));
    let cluster = server.cluster();
    let (discovery, a) = (cluster.discovery(), kind("v1", "A"));

    let error = discovery.mapping(&a).await.unwrap_err();
    assert!(!error.is_no_match(), "{error}");
    assert_eq!(error.to_string(), "unable to retrieve the complete list of server APIs: 404 page not found");
    let error = discovery.look_up(&a, discovery.asked()).await.unwrap_err();
    let expected = "unable to retrieve the complete list of server APIs: g.io/v1: the API server is not ready (404)";
    assert_eq!(error.to_string(), expected);
}

#[tokio::test(start_paused = true)]
async fn unchanged_discovery_document_is_not_sent_again() {
    let server = Server::new(|seen| {
        if seen.line == "GET /readyz" {
            return text(200, "ok");
        }
        let known = seen.headers.get("if-none-match").is_some_and(|tag| tag == "\"1\"");
        if seen.line.starts_with("GET /apis/") {
            return own_document(&seen.line, &groups(&[version("v1", &[], "Current")]));
        }
        let document = if seen.line == "GET /api" { core() } else { groups(&[version("v1", &[], "Current")]) };
        if known { text(304, "") } else { answer(200, &[("etag", "\"1\"")], document.to_string()) }
    });
    let cluster = server.cluster();
    let discovery = cluster.discovery();
    discovery.mapping(&kind("v1", "A")).await.unwrap_err();
    let version = discovery.version();

    sleep(PER_GROUP).await;

    assert!(discovery.mapping(&kind("v1", "A")).await.unwrap_err().is_no_match());
    assert_eq!((server.lines().len(), discovery.version()), (10, version));
    assert!(discovery.known(&GroupVersionKind::new("", "v1", "ConfigMap")).is_some());
}

#[tokio::test(start_paused = true)]
async fn legacy_discovery_fetches_documents_one_by_one() {
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

    discovery.mapping(&kind("v2", "A")).await.unwrap();
    let preferred = discovery.known_preferred(&GroupKind::new("g.io", "A"));
    assert_eq!(preferred, Some(Resource::new("g.io", "v1", "A", "as", true)));
    assert!(discovery.mapping(&GroupVersionKind::new("", "v1", "ConfigMap")).await.is_ok());
    let broken = discovery.mapping(&kind("v0", "A")).await.unwrap_err();
    assert!(broken.to_string().ends_with("g.io/v0: service unavailable"), "{broken}");
}

/// api-facts §2: a path that is not served any more makes discovery fetch the group again
#[tokio::test(start_paused = true)]
async fn unknown_path_requests_a_discovery_refresh() {
    let (server, apis) = serving(groups(&[version("v1", &[("A", "as")], "Current")]));
    let cluster = server.cluster();
    let resource = cluster.discovery().mapping(&kind("v1", "A")).await.unwrap();
    *apis.lock().unwrap() = groups(&[]);
    sleep(PER_GROUP).await;

    let error = cluster.get(&crate::testing::ctx(), &resource.at("", "x")).await.unwrap_err();

    assert!(error.is_not_served());
    assert!(cluster.discovery().mapping(&kind("v1", "A")).await.unwrap_err().is_no_match());
}

/// fault 11
#[tokio::test(start_paused = true)]
async fn watch_of_an_unserved_version_requests_a_discovery_refresh() {
    let (server, apis) = serving(groups(&[version("v1", &[("A", "as")], "Current")]));
    let cluster = server.cluster();
    let resource = cluster.discovery().mapping(&kind("v1", "A")).await.unwrap();
    *apis.lock().unwrap() = groups(&[version("v2", &[("A", "as")], "Current")]);
    sleep(PER_GROUP).await;

    assert!(cluster.watch(&resource, None, WatchQuery::default()).await.is_err());

    assert!(cluster.discovery().mapping(&kind("v1", "A")).await.is_err());
}
