use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::{
    answers::{LARGEST_ANSWER, Share},
    testing::{Recorded, Reply, Server, answer, config_maps, ctx, json as reply, late, pieces, status, text},
};

fn object() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ns"}})
}

fn at() -> ObjectRef {
    config_maps().at("ns", "a")
}

#[tokio::test(start_paused = true)]
async fn each_verb_sends_its_request() {
    let server = Server::new(|seen| {
        let list = json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {}});
        reply(200, &if seen.line.contains("limit=") { list } else { object() })
    });
    let (cluster, ctx, at, object) = (server.cluster(), ctx(), at(), object());
    let labelled = ListQuery { limit: Some(5), ..ListQuery::labelled("a=b") };

    cluster.get(&ctx, &at).await.unwrap();
    cluster.create(&ctx, &at, &object).await.unwrap();
    cluster.replace(&ctx, &at, Some("status"), &object).await.unwrap();
    cluster.merge_patch(&ctx, &at, None, &json!({"a": null})).await.unwrap();
    cluster.create_subresource(&ctx, &at, "token", &json!({})).await.unwrap();
    cluster.delete_collection(&ctx, &config_maps(), "ns", "a=b").await.unwrap();
    cluster.list(&ctx, &config_maps(), None, &labelled).await.unwrap();
    cluster.healthz(ctx.deadline).await.unwrap();

    let path = "/api/v1/namespaces/ns/configmaps";
    assert_eq!(
        server.lines(),
        [
            format!("GET {path}/a"),
            format!("POST {path}"),
            format!("PUT {path}/a/status"),
            format!("PATCH {path}/a"),
            format!("POST {path}/a/token"),
            format!("DELETE {path}?labelSelector=a%3Db"),
            "GET /api/v1/configmaps?labelSelector=a%3Db&limit=5".into(),
            "GET /healthz".into(),
        ]
    );
    let requests = server.requests();
    assert_eq!(requests[1].body, object);
    assert_eq!(requests[3].headers["content-type"], "application/merge-patch+json");
    assert_eq!(requests[1].headers["content-type"], "application/json");
}

/// api-facts §6
#[tokio::test(start_paused = true)]
async fn deletion_is_done_or_pending() {
    let gone = json!({"kind": "Status", "metadata": {}, "status": "Success", "details": {"name": "a"}});
    let pending = json!({"kind": "Service", "metadata": {"name": "a", "deletionTimestamp": "2026-01-02T03:04:05Z"}});
    let cases = [(gone, false), (object(), false), (pending.clone(), true)];

    for (body, waits) in cases {
        let server = Server::new(move |_| reply(200, &body));
        let options = DeleteOptions {
            uid: Some("u".into()),
            resource_version: Some("7".into()),
            propagation: Some(Propagation::Foreground),
            grace_period_seconds: Some(60),
        };

        let deleted = server.cluster().delete(&ctx(), &at(), &options).await.unwrap();

        assert_eq!(deleted, if waits { Deleted::Pending(pending.clone()) } else { Deleted::Gone });
        assert_eq!(
            server.requests()[0].body,
            json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground", "gracePeriodSeconds": 60,
                "preconditions": {"uid": "u", "resourceVersion": "7"}})
        );
    }
}

#[tokio::test(start_paused = true)]
async fn metadata_is_narrowed_when_the_server_does_not() {
    let server = Server::new(|_| reply(200, &json!({"kind": "X", "metadata": {"name": "a"}, "spec": {"big": 1}})));

    let read = server.cluster().metadata_only().get(&ctx(), &at()).await.unwrap();
    let written = server.cluster().metadata_only().merge_patch(&ctx(), &at(), None, &json!({})).await.unwrap();

    for (metadata, request) in [read, written].into_iter().zip(server.requests()) {
        assert_eq!(
            metadata,
            json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a"}})
        );
        let accept = request.headers["accept"].clone();
        assert!(accept.to_str().unwrap().starts_with("application/json;as=PartialObjectMetadata;"));
    }
}

#[tokio::test(start_paused = true)]
async fn list_is_read_page_by_page() {
    let server = Server::new(|seen| {
        let continued = seen.line.contains("continue=t%3D");
        let metadata = if continued {
            json!({"resourceVersion": "5"})
        } else {
            json!({"resourceVersion": "5", "continue": "t=", "remainingItemCount": 1})
        };
        reply(200, &json!({"kind": "ConfigMapList", "metadata": metadata, "items": [{"metadata": {"name": "a"}}]}))
    });
    let mut pages = server.cluster().pages(ctx(), config_maps(), Some("ns".into()), ListQuery::default());

    let first = pages.next().await.unwrap().unwrap();
    let second = pages.next().await.unwrap().unwrap();

    assert!(pages.next().await.is_none());
    assert_eq!((first.remaining, second.remaining), (Some(1), None));
    assert_eq!(first.resource_version, "5");
    assert_eq!(second.items, [json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})]);
    assert!(server.lines()[0].ends_with("?limit=250"));
}

/// fault 27
#[tokio::test(start_paused = true)]
async fn expired_page_token_ends_the_list_with_an_error() {
    let server = Server::new(|seen| {
        if seen.line.contains("continue=") {
            return status(410, "Expired", "The provided continue parameter is too old");
        }
        reply(200, &json!({"kind": "L", "metadata": {"continue": "t"}, "items": []}))
    });
    let mut pages = server.cluster().pages(ctx(), config_maps(), None, ListQuery::default());
    pages.next().await.unwrap().unwrap();

    let error = pages.next().await.unwrap().unwrap_err();

    assert!(error.is_expired());
    assert!(pages.next().await.is_none());
}

/// fault 8
#[tokio::test(start_paused = true)]
async fn retry_after_is_honoured_for_writes_too() {
    let mut left = 3;
    let server = Server::new(move |_| {
        left -= 1;
        let busy = || answer(429, &[("retry-after", "2")], "Too many requests, please try again later.\n".into());
        if left > 0 { busy() } else { reply(201, &object()) }
    });
    let begin = Instant::now();

    server.cluster().create(&ctx(), &at(), &object()).await.unwrap();

    assert_eq!(begin.elapsed(), Duration::from_secs(4));
    assert_eq!(server.lines().len(), 3);
}

/// fault 8
#[tokio::test(start_paused = true)]
async fn retry_wait_beyond_the_deadline_is_not_begun() {
    let server = Server::new(|_| answer(503, &[("retry-after", "3600")], "down\n".into()));
    let begin = Instant::now();

    let error = server.cluster().get(&ctx(), &at()).await.unwrap_err();

    assert_eq!((error.to_string().as_str(), error.code()), ("down", Some(503)));
    assert_eq!(begin.elapsed(), Duration::ZERO);
}

/// fault 8
#[tokio::test(start_paused = true)]
async fn broken_connection_repeats_a_read_but_never_a_write() {
    let server = Server::new(|_| Reply::Broken);
    let cluster = server.cluster();

    let read = cluster.get(&ctx(), &at()).await.unwrap_err();
    assert_eq!(server.lines().len(), 2);
    let write = cluster.replace(&ctx(), &at(), None, &object()).await.unwrap_err();
    assert_eq!(server.lines().len(), 3);

    assert!(read.to_string().contains("connection reset by peer"), "{read}");
    assert!(write.outcome_unknown());
}

/// fault 9
#[tokio::test(start_paused = true)]
async fn unauthorized_request_is_repeated_once() {
    let mut first = true;
    let server = Server::new(move |_| {
        if std::mem::take(&mut first) { status(401, "Unauthorized", "Unauthorized") } else { reply(201, &object()) }
    });

    server.cluster().create(&ctx(), &at(), &object()).await.unwrap();

    assert_eq!(server.lines().len(), 2);
}

/// fault 7: deciding again is the caller's
#[tokio::test(start_paused = true)]
async fn conflict_is_not_repeated() {
    let server = Server::new(|_| status(409, "Conflict", "Operation cannot be fulfilled on configmaps \"a\""));

    let error = server.cluster().replace(&ctx(), &at(), None, &object()).await.unwrap_err();

    assert!(error.is_conflict());
    assert_eq!(server.lines().len(), 1);
}

/// fault 8
#[tokio::test(start_paused = true)]
async fn request_ends_at_its_deadline() {
    let server = Server::new(|_| late(3600, reply(200, &object())));
    let (cluster, begin) = (server.cluster(), Instant::now());

    let error = cluster.create(&ctx(), &at(), &object()).await.unwrap_err();

    assert_eq!(error, ApiError::Timeout);
    assert!(error.outcome_unknown());
    assert_eq!(begin.elapsed(), Duration::from_secs(60));
    let over = cluster.create(&ctx().until(Deadline(begin)), &at(), &object()).await.unwrap_err();
    assert_eq!(over, ApiError::NotSent);
    assert!(!over.outcome_unknown());
    assert_eq!(server.lines().len(), 1);
}

/// fault 16
#[tokio::test(start_paused = true)]
async fn fence_that_is_shut_stops_writes_but_no_reads() {
    let server = Server::new(|_| reply(200, &object()));
    let fence = Fence::leased(Duration::from_secs(10));
    let cluster = server.cluster_with(fence.clone(), Rc::new(crate::NoObserver));

    cluster.get(&ctx(), &at()).await.unwrap();
    let error = cluster.create(&ctx(), &at(), &object()).await.unwrap_err();
    assert!(matches!(error, ApiError::Fenced(_)), "{error}");

    cluster.beside().create(&ctx(), &at(), &object()).await.unwrap();
    fence.renewed(Instant::now());
    cluster.create(&ctx(), &at(), &object()).await.unwrap();
    assert_eq!(server.lines().len(), 3);
}

/// fault 16
#[tokio::test(start_paused = true)]
async fn fence_that_shuts_stops_queued_writes() {
    let server = Server::new(|_| late(5, reply(200, &object())));
    let fence = Fence::open();
    let cluster = server.cluster_with(fence.clone(), Rc::new(crate::NoObserver));
    let writes = (0..17).map(|_| {
        let cluster = cluster.clone();
        async move { cluster.create(&ctx(), &at(), &object()).await }
    });
    let shut = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        fence.shut("shutting down");
        assert_eq!(fence.in_flight(), 16);
        fence.quiet().await;
    };

    let (results, ()) = tokio::join!(futures::future::join_all(writes), shut);

    assert_eq!(server.lines().len(), 16);
    assert_eq!(results.iter().filter(|result| **result == Err(ApiError::Fenced("shutting down"))).count(), 1);
    assert_eq!(cluster.request_scheduler().writes_in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn exchanges_are_observed() {
    let mut replies = vec![reply(200, &object()), status(401, "Unauthorized", "Unauthorized"), Reply::Broken];
    let server = Server::new(move |_| replies.pop().unwrap());
    let recorded = Rc::new(Recorded::default());
    let cluster = server.cluster_with(Fence::open(), recorded.clone());

    cluster.get(&ctx(), &at()).await.unwrap();

    assert_eq!(*recorded.0.borrow(), ["GET api:443 None", "GET api:443 Some(401)", "GET api:443 Some(200)"]);
}

#[tokio::test(start_paused = true)]
async fn undecodable_success_has_an_unknown_outcome() {
    let server = Server::new(|_| text(201, "ok"));

    let error = server.cluster().create(&ctx(), &at(), &object()).await.unwrap_err();

    assert!(matches!(error, ApiError::Decode(_)));
    assert!(error.outcome_unknown());
}

#[tokio::test(start_paused = true)]
async fn silent_cluster_is_one_without_any_answer() {
    let answering = |what: &'static str| match what {
        "refused" => status(403, "Forbidden", "no"),
        "rejected" => status(401, "Unauthorized", "no"),
        "found" => reply(200, &object()),
        "never" => late(3600, reply(200, &object())),
        _ => Reply::Broken,
    };
    let said = std::sync::Arc::new(std::sync::Mutex::new("broken"));
    let server = Server::new({
        let said = said.clone();
        move |_| answering(*said.lock().unwrap())
    });
    let cluster = server.cluster();
    assert!(cluster.is_silent() && !cluster.is_unauthorized(), "nothing was asked yet");

    let table = [
        ("broken", true),
        ("refused", false),
        ("rejected", false),
        ("never", true),
        ("rejected", false),
        ("found", false),
        ("broken", true),
    ];
    for (what, silent) in table {
        *said.lock().unwrap() = what;
        let ctx = Context { deadline: Deadline::after(Duration::from_secs(5)), ..ctx() };
        cluster.get(&ctx, &at()).await.ok();
        assert_eq!(cluster.is_silent(), silent, "{what}");
        assert_eq!(cluster.is_unauthorized(), what == "rejected", "{what}");
    }
}

/// Answers of a broken API server, or of something else.
const NONSENSE: [&str; 13] = [
    r#"{"items": []}"#,
    r#"{"kind": "ConfigMapList", "items": []}"#,
    "[]",
    r#""x""#,
    "null",
    "7",
    "{}",
    r#"{"metadata": "x"}"#,
    r#"{"metadata": [], "spec": "x"}"#,
    r#"{"kind": "List", "apiVersion": "v1", "metadata": {}, "items": "x"}"#,
    r#"{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": ""}}"#,
    r#"{"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}"#,
    r#"{"items": [7, "x", [], {"metadata": 7}], "kind": "ConfigMapList"}"#,
];

/// fault 31
#[tokio::test(start_paused = true)]
async fn answer_with_another_object_is_an_error() {
    let server = Server::new(|_| reply(200, &json!({"metadata": {"name": "b"}})));
    let (cluster, ctx, at) = (server.cluster(), ctx(), at());

    let errors = [
        cluster.get(&ctx, &at).await.unwrap_err(),
        cluster.replace(&ctx, &at, None, &object()).await.unwrap_err(),
        cluster.merge_patch(&ctx, &at, None, &json!({})).await.unwrap_err(),
        cluster.delete(&ctx, &at, &DeleteOptions::default()).await.unwrap_err(),
    ];

    assert!(errors.iter().all(|error| matches!(error, ApiError::Decode(_))), "{errors:?}");
    assert!(cluster.create(&ctx, &at, &object()).await.is_ok(), "the server may have made the name");
}

/// fault 31
#[tokio::test(start_paused = true)]
async fn answer_without_an_object_is_an_error_and_never_an_absence() {
    for text in NONSENSE {
        let server = Server::new(move |_| answer(200, &[], text.to_owned()));
        let (cluster, ctx, at) = (server.cluster(), ctx(), at());
        let resource = config_maps();
        let metadata_only = ListQuery { metadata_only: true, ..ListQuery::default() };

        let errors = [
            cluster.get(&ctx, &at).await.unwrap_err(),
            cluster.metadata_only().get(&ctx, &at).await.unwrap_err(),
            cluster.create(&ctx, &at, &object()).await.unwrap_err(),
            cluster.metadata_only().merge_patch(&ctx, &at, None, &json!({})).await.unwrap_err(),
            cluster.list(&ctx, &resource, None, &ListQuery::default()).await.unwrap_err(),
            cluster.list(&ctx, &resource, None, &metadata_only).await.unwrap_err(),
        ];
        let deleted = cluster.delete(&ctx, &at, &DeleteOptions::default()).await;
        assert_eq!(deleted.is_ok(), text.contains("Success"), "{text}: {deleted:?}");

        for error in errors {
            assert!(matches!(error, ApiError::Decode(_)), "{text}: {error:?}");
            assert!(!error.is_not_found() && error.outcome_unknown(), "{text}");
        }
    }
}

fn list_of(items: usize, bytes: usize) -> Value {
    let item = |index: usize| json!({"metadata": {"name": index.to_string()}, "data": {"a": "x".repeat(bytes)}});
    let items: Vec<Value> = (0..items).map(item).collect();
    json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "1", "continue": "c"}, "items": items})
}

fn limit(line: &str) -> usize {
    line.split_once("limit=").unwrap().1.split('&').next().unwrap().parse().unwrap()
}

/// spec 70 §8.3
#[tokio::test(start_paused = true)]
async fn page_that_is_too_large_is_requested_again_with_fewer_objects() {
    let server = Server::new(|seen| match limit(&seen.line) {
        items @ 0..=3 => reply(200, &list_of(items, 1 << 20)),
        items => pieces(vec![Ok(" ".repeat(1 << 20)); items]),
    });
    let cluster = server.cluster();
    let mut pages = cluster.pages(ctx(), config_maps(), None, ListQuery::default());

    let sizes = [pages.next().await.unwrap().unwrap().items.len(), pages.next().await.unwrap().unwrap().items.len()];

    assert_eq!(sizes, [3, 3], "and those after it are no larger");
    let limits: Vec<usize> = server.lines().iter().map(|line| limit(line)).collect();
    assert_eq!(limits, [250, 31, 3, 3]);
    assert_eq!(cluster.inner.transport.room.taken(), 0);
}

/// spec 70 §8.3
#[tokio::test(start_paused = true)]
async fn answer_without_end_or_with_too_many_values_is_an_error() {
    let many = format!(r#"{{"kind": "L", "metadata": {{}}, "items": [{}{{}}]}}"#, "{},".repeat(1_000_000));
    for many in [None, Some(many)] {
        let server = Server::new(move |_| match &many {
            Some(many) => answer(200, &[], many.clone()),
            None => pieces(vec![Ok(" ".repeat(1 << 20)); 20]),
        });
        let cluster = server.cluster();

        let error = cluster.get(&ctx(), &at()).await.unwrap_err();

        assert!(matches!(error, ApiError::TooLarge(_)), "{error}");
        assert_eq!((server.lines().len(), cluster.inner.transport.room.taken()), (1, 0));
    }
}

/// Room for an answer of the largest size.
fn held(cluster: &Cluster) -> Share {
    let mut share = cluster.inner.transport.room.share();
    share.fit(LARGEST_ANSWER).unwrap();
    share
}

/// spec 70 §8.3
#[tokio::test(start_paused = true)]
async fn answers_of_a_cluster_have_48_mib_together_and_a_small_one_always_fits() {
    let server = Server::new(|seen| match seen.line.ends_with("/a") {
        true => pieces((0..15).map(|_| Ok(" ".repeat(1 << 20))).chain([Err("end")]).collect()),
        false => reply(200, &json!({"metadata": {"name": "b"}})),
    });
    let cluster = server.cluster();
    let held: Vec<_> = (0..3).map(|_| held(&cluster)).collect();

    let large = cluster.get(&ctx(), &at()).await.unwrap_err();
    let small = cluster.get(&ctx(), &config_maps().at("ns", "b")).await;

    assert!(large.to_string().contains("no room"), "{large}");
    assert!(small.is_ok(), "{small:?}");
    drop(held);
    let broken = cluster.get(&ctx(), &at()).await.unwrap_err();
    assert!(broken.to_string().ends_with("end"), "there is room again: {broken}");
}

/// spec 70 §8.3
#[tokio::test(start_paused = true)]
async fn rate_limit_of_strangers_is_separate() {
    let server = Server::new(|_| reply(200, &object()));
    let options = ClusterOptions { qps: 1.0, burst: 4, ..server.cluster().options().clone() };
    let env = server.cluster().inner.env.clone();
    let cluster = Cluster::new(kube::Client::new(server.clone(), "default"), options, env, Rc::new(crate::NoObserver));
    let apart = cluster.apart();
    let start = Instant::now();
    let get = async |cluster: &Cluster| cluster.get(&ctx(), &at()).await.map(drop);

    let strangers = futures::future::join_all((0..6).map(|_| get(&apart)));
    let own = futures::future::join_all((0..4).map(|_| async {
        get(&cluster).await.unwrap();
        start.elapsed()
    }));
    let (strangers, own) = tokio::join!(strangers, own);

    assert_eq!(own, [Duration::ZERO; 4]);
    assert!(strangers.iter().all(Result::is_ok));
    assert_eq!(start.elapsed().as_secs(), 8, "a burst of two, then one in two seconds");
}
