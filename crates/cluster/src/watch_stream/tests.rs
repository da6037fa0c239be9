use futures::StreamExt as _;
use serde_json::json;

use super::*;
use crate::testing::{Server, config_maps, late, pieces, reply_watch, status};

fn line(kind: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": kind, "object": object}))
}

async fn open(server: &Server, query: WatchQuery) -> Result<WatchStream, ApiError> {
    server.cluster().watch(&config_maps(), Some("ns"), query).await
}

#[tokio::test(start_paused = true)]
async fn watch_events_are_read_from_bytes_cut_anywhere() {
    let text = line("ADDED", &json!({"metadata": {"name": "a"}}))
        + "\n"
        + &line("BOOKMARK", &json!({"metadata": {"resourceVersion": "7"}}));
    for cut in 1..text.len() - 1 {
        let (head, tail) = (text[..cut].to_owned(), text[cut..].to_owned());
        let server = reply_watch(vec![Ok(head), Ok(tail)]);

        let events: Vec<_> = open(&server, WatchQuery::default()).await.unwrap().collect().await;

        let kinds: Vec<_> = events.into_iter().map(|event| event.unwrap().kind).collect();
        assert_eq!(kinds, [WatchKind::Added, WatchKind::Bookmark]);
    }
}

#[tokio::test(start_paused = true)]
async fn watch_query_is_sent_without_compression() {
    let server = reply_watch(Vec::new());
    let query = WatchQuery {
        label_selector: Some("a=b".into()),
        resource_version: Some("5".into()),
        metadata_only: true,
        timeout: Some(Duration::from_secs(300)),
        ..WatchQuery::default()
    };

    assert!(open(&server, query).await.unwrap().next().await.is_none());

    let seen = server.requests().remove(0);
    assert_eq!(
        seen.line,
        "GET /api/v1/namespaces/ns/configmaps?watch=1&allowWatchBookmarks=true&labelSelector=a%3Db&resourceVersion=5\
         &timeoutSeconds=300"
    );
    assert_eq!(seen.headers["accept-encoding"], "identity");
    assert!(seen.headers["accept"].to_str().unwrap().starts_with("application/json;as=PartialObjectMetadata;"));
}

/// fault 5, api-facts §3
#[tokio::test(start_paused = true)]
async fn watch_error_event_ends_the_stream_with_an_error() {
    let expired =
        json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version: 1 (9)"});
    let server = reply_watch(vec![Ok(line("ERROR", &expired) + &line("ADDED", &json!({})))]);
    let mut stream = open(&server, WatchQuery::default()).await.unwrap();

    let error = stream.next().await.unwrap().unwrap_err();

    assert!(error.is_expired());
    assert_eq!(error.to_string(), "too old resource version: 1 (9)");
    assert!(stream.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn watch_stream_that_breaks_or_is_cut_is_an_error() {
    let whole = line("ADDED", &json!({"metadata": {}}));
    for last in [
        Err("reset"),
        Ok(r#"{"type":"ADD"#.to_owned()),
        Ok("nonsense\n".to_owned()),
        Ok(line("NEW", &json!({"metadata": {}}))),
        Ok(line("ADDED", &json!({}))),
        Ok(line("MODIFIED", &json!([]))),
        Ok(line("DELETED", &json!("x"))),
    ] {
        let server = reply_watch(vec![Ok(whole.clone()), last]);
        let mut stream = open(&server, WatchQuery::default()).await.unwrap();

        assert!(stream.next().await.unwrap().is_ok());
        assert!(stream.next().await.unwrap().is_err());
        assert!(stream.next().await.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn watch_event_without_end_is_an_error() {
    let endless = (0..40).map(|_| Ok("x".repeat(1 << 20))).collect();
    let server = reply_watch(endless);
    let mut stream = open(&server, WatchQuery::default()).await.unwrap();

    let error = stream.next().await.unwrap().unwrap_err();

    assert!(error.to_string().contains("a watch event of more than"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn watch_that_is_refused_or_does_not_begin_fails() {
    let server = Server::new(|_| status(403, "Forbidden", "no"));
    assert!(open(&server, WatchQuery::default()).await.unwrap_err().is_forbidden());
    assert_eq!(server.lines().len(), 1);

    let server = Server::new(|_| late(3600, pieces(Vec::new())));
    assert_eq!(open(&server, WatchQuery::default()).await.unwrap_err(), ApiError::Timeout);
}
