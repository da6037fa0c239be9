use anyhow::Result;
use http::Method;
use serde_json::{Value, json};

use crate::{
    api::{Api, MERGE, Watch, version},
    bodies::{config_map, definition},
    expect::{absent, equal, holds, includes},
    row::{Row, row},
};

pub(crate) fn rows() -> Vec<Row> {
    [starts(), changes(), selections(), forms(), ends()].into_iter().flatten().collect()
}

async fn from_now(api: &Api, query: &str) -> Result<Watch> {
    let version = api.version(&api.maps()).await?;
    api.watch(&format!("{}?resourceVersion={version}{query}", api.maps())).await
}

async fn set(api: &Api, name: &str, value: &str) -> Result<Value> {
    let patch = json!({"data": {"v": value}});
    Ok(api.patch(format!("{}/{name}", api.maps()), MERGE, &patch).await?.code(200)?.body)
}

fn starts() -> Vec<Row> {
    vec![
        row("a watch without a version begins with all objects, ordered by key", "facts §3", |api| async move {
            for name in ["b", "a", "c"] {
                api.create_map(name, json!({})).await?;
            }

            let mut watch = api.watch(&api.maps()).await?;

            for name in ["a", "b", "c"] {
                watch.expect("ADDED", name).await?;
            }
            set(&api, "b", "2").await?;
            watch.expect("MODIFIED", "b").await?;
            Ok(())
        }),
        row("a watch from a version shows the changes after it only", "facts §3", |api| async move {
            api.create_map("a", json!({})).await?;
            let version = api.version(&api.maps()).await?;
            set(&api, "a", "2").await?;

            let mut watch = api.watch(&format!("{}?resourceVersion={version}", api.maps())).await?;
            let object = watch.expect("MODIFIED", "a").await?;
            api.create_map("b", json!({})).await?;

            equal("data", &object["data"], &json!({"v": "2"}))?;
            watch.expect("ADDED", "b").await?;
            Ok(())
        }),
        row("a streaming list ends with a bookmark that says so", "facts §3", |api| async move {
            api.create_map("a", json!({})).await?;

            let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
            let mut watch = api.watch(&format!("{}?{query}", api.maps())).await?;

            watch.expect("ADDED", "a").await?;
            let bookmark = watch.next().await?.unwrap_or_default();
            equal("type", &bookmark["type"], &json!("BOOKMARK"))?;
            let annotations = json!({"k8s.io/initial-events-end": "true"});
            let meta = json!({"resourceVersion": version(&bookmark["object"]), "annotations": annotations});
            includes(
                "bookmark",
                &bookmark["object"],
                &json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": meta}),
            )
        }),
        row("sendInitialEvents without resourceVersionMatch is Invalid", "facts §3", |api| async move {
            let answer = api.get(format!("{}?watch=1&sendInitialEvents=true", api.maps())).await?;

            answer.fails_with(422, "Invalid", "resourceVersionMatch")
        }),
        row("a watch of a missing namespace is silent until the namespace exists", "facts §3", |api| async move {
            let late = api.unique("late");
            let path = format!("/api/v1/namespaces/{late}/configmaps");
            let mut watch = api.watch(&path).await?;
            api.create("/api/v1/namespaces", &json!({"metadata": {"name": late}})).await?;

            api.create(&path, &config_map("a", json!({}))).await?;

            watch.expect("ADDED", "a").await?;
            Ok(())
        }),
        row("watch=1 on one object is a GET", "facts §3", |api| async move {
            let object = api.create_map("a", json!({})).await?;

            let answer = api.get(format!("{}/a?watch=1", api.maps())).await?.code(200)?;

            equal("object", &answer.body, &object)
        }),
    ]
}

fn changes() -> Vec<Row> {
    vec![
        row("events carry the object as the writes were answered", "facts §3", |api| async move {
            let mut watch = from_now(&api, "").await?;
            let created = api.create_map("a", json!({})).await?;
            let changed = set(&api, "a", "2").await?;

            equal("ADDED", &watch.expect("ADDED", "a").await?, &created)?;
            equal("MODIFIED", &watch.expect("MODIFIED", "a").await?, &changed)
        }),
        row("a deletion event has the last content and a new version", "facts §3", |api| async move {
            let created = api.create_map("a", json!({})).await?;
            let mut watch = from_now(&api, "").await?;
            api.delete(format!("{}/a", api.maps())).await?.code(200)?;

            let last = watch.expect("DELETED", "a").await?;

            let (old, new) = (version(&created), version(&last));
            holds(number(&old) < number(&new), "a new version", &json!([old, new]))?;
            equal("content", &without_version(last), &without_version(created))
        }),
        row("an object with finalizers is MODIFIED when it is deleted", "facts §3", |api| async move {
            api.create_map("a", json!({"finalizers": ["a.b/c"]})).await?;
            let mut watch = from_now(&api, "").await?;
            api.delete(format!("{}/a", api.maps())).await?.code(200)?;

            let object = watch.expect("MODIFIED", "a").await?;

            holds(object["metadata"]["deletionTimestamp"].is_string(), "deletionTimestamp", &object["metadata"])
        }),
        row(
            "removing the last finalizer is one DELETED with the content before that write",
            "facts §3",
            |api| async move {
                api.create_map("a", json!({"finalizers": ["a.b/c"]})).await?;
                let deleting = api.delete(format!("{}/a", api.maps())).await?.code(200)?.body;
                let mut watch = from_now(&api, "").await?;

                let patch = json!({"metadata": {"finalizers": null}, "data": {"v": "last"}});
                let answer = api.patch(format!("{}/a", api.maps()), MERGE, &patch).await?.code(200)?;

                equal("the write is answered with its own content", &answer.body["data"], &json!({"v": "last"}))?;
                equal("and the old version", &json!(answer.version()), &json!(version(&deleting)))?;
                let last = watch.expect("DELETED", "a").await?;
                equal("finalizers of the event", &last["metadata"]["finalizers"], &json!(["a.b/c"]))?;
                equal("data of the event", &last["data"], &json!({"v": "1"}))?;
                holds(number(&version(&deleting)) < number(&version(&last)), "a new version", &last["metadata"])
            },
        ),
        row("writes that change nothing and dry runs are no events", "facts §3", |api| async move {
            let object = api.create_map("a", json!({})).await?;
            let mut watch = from_now(&api, "").await?;

            let path = format!("{}/a", api.maps());
            api.put(&path, &object).await?.code(200)?;
            api.patch(&path, MERGE, &json!({})).await?.code(200)?;
            api.patch(format!("{path}?dryRun=All"), MERGE, &json!({"data": {"v": "dry"}})).await?.code(200)?;
            api.create_map("end", json!({})).await?;

            watch.expect("ADDED", "end").await?;
            Ok(())
        }),
        row("a watch of all namespaces sees each of them", "facts §3", |api| async move {
            let path = format!("/api/v1/configmaps?labelSelector=row%3D{}", api.namespace);
            let start = api.version("/api/v1/configmaps?limit=1").await?;
            let mut watch = api.watch(&format!("{path}&resourceVersion={start}")).await?;

            api.create_map("a", json!({"labels": {"row": api.namespace}})).await?;

            let object = watch.expect("ADDED", "a").await?;
            equal("namespace", &object["metadata"]["namespace"], &json!(api.namespace))
        }),
    ]
}

fn selections() -> Vec<Row> {
    vec![
        row(
            "an object that leaves the selection is DELETED, with its last matching content",
            "architecture §5",
            |api| async move {
                api.create_map("a", json!({"labels": {"sel": "y"}})).await?;
                let mut watch = from_now(&api, "&labelSelector=sel%3Dy").await?;

                let patch = json!({"metadata": {"labels": {"sel": "n"}}, "data": {"v": "2"}});
                let left = api.patch(format!("{}/a", api.maps()), MERGE, &patch).await?.code(200)?;

                let last = watch.expect("DELETED", "a").await?;
                equal("labels", &last["metadata"]["labels"], &json!({"sel": "y"}))?;
                equal("data", &last["data"], &json!({"v": "1"}))?;
                equal("the version of the change", &json!(version(&last)), &json!(left.version()))?;
                api.get(format!("{}/a", api.maps())).await?.code(200)?;
                Ok(())
            },
        ),
        row("outside of the selection nothing is seen; coming back is ADDED", "facts §3", |api| async move {
            api.create_map("a", json!({"labels": {"sel": "n"}})).await?;
            let mut watch = from_now(&api, "&labelSelector=sel%3Dy").await?;

            set(&api, "a", "unseen").await?;
            api.patch(format!("{}/a", api.maps()), MERGE, &json!({"metadata": {"labels": {"sel": "y"}}}))
                .await?
                .code(200)?;

            let object = watch.expect("ADDED", "a").await?;
            equal("data", &object["data"], &json!({"v": "unseen"}))
        }),
        row("one object is watched by a field selector", "facts §3", |api| async move {
            api.create_map("a", json!({})).await?;
            api.create_map("b", json!({})).await?;
            let mut watch = from_now(&api, "&fieldSelector=metadata.name%3Db").await?;

            set(&api, "a", "2").await?;
            set(&api, "b", "2").await?;

            watch.expect("MODIFIED", "b").await?;
            Ok(())
        }),
        row("a selector that does not parse is BadRequest for a watch", "facts §3", |api| async move {
            let answer = api.get(format!("{}?watch=1&labelSelector=a%20b", api.maps())).await?;

            answer.fails_with(400, "BadRequest", "unable to parse requirement")
        }),
    ]
}

fn forms() -> Vec<Row> {
    vec![
        row("a metadata watch has metadata in each event", "facts §3", |api| async move {
            let start = api.version(&api.maps()).await?;
            let path = format!("{}?resourceVersion={start}", api.maps());
            let mut watch = api.call(Method::GET, path).form("PartialObjectMetadata").watch().await?;

            let created = api.create_map("a", json!({})).await?;
            api.delete(format!("{}/a", api.maps())).await?.code(200)?;

            let expected = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": created["metadata"]});
            equal("ADDED", &watch.expect("ADDED", "a").await?, &expected)?;
            let last = watch.expect("DELETED", "a").await?;
            includes(
                "DELETED",
                &last,
                &json!({"kind": "PartialObjectMetadata", "metadata": {"uid": created["metadata"]["uid"]}}),
            )
        }),
        row("a metadata watch of a custom kind has metadata in each event", "facts §3", |api| async move {
            let group = format!("{}.example.org", api.namespace);
            let things = api.at(&format!("{group}/v1"), "things");
            api.define(&definition(&group, "things", "Thing")).await?;
            let mut watch = api.call(Method::GET, &things).form("PartialObjectMetadata").watch().await?;

            let body = json!({"apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": {"name": "t"}, "spec": {"a": 1}});
            api.create(&things, &body).await?;

            let object = watch.expect("ADDED", "t").await?;
            equal("kind", &object["kind"], &json!("PartialObjectMetadata"))?;
            absent(&object, "/spec")
        }),
        row(
            "bookmarks have kind, apiVersion and a version, and come before the end of a stream",
            "facts §3",
            |api| async move {
                let mut watch = from_now(&api, "&allowWatchBookmarks=true&timeoutSeconds=8").await?;
                let secret = api.create(api.at("v1", "secrets"), &json!({"metadata": {"name": "s"}})).await?;

                let event = watch.next().await?.unwrap_or_default();

                let seen = version(&event["object"]);
                includes(
                    "event",
                    &event,
                    &json!({"type": "BOOKMARK", "object": {"kind": "ConfigMap", "apiVersion": "v1"}}),
                )?;
                absent(&event, "/object/metadata/name")?;
                holds(number(&seen) >= number(&version(&secret)), "the version of all kinds", &event)
            },
        ),
    ]
}

fn ends() -> Vec<Row> {
    vec![
        row(
            "a watch from a version that is too old is one ERROR event in a 200 stream",
            "facts §3",
            |api| async move {
                let object = api.create_map("a", json!({})).await?;
                api.create_map("b", json!({})).await?;
                api.forget_history().await?;

                let mut watch = api.watch(&format!("{}?resourceVersion={}", api.maps(), version(&object))).await?;

                let event = watch.next().await?.unwrap_or_default();
                let message = event["object"]["message"].clone();
                let start = format!("too old resource version: {} (", version(&object));
                holds(message.as_str().is_some_and(|text| text.starts_with(&start)), &start, &event)?;
                let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": message, "reason": "Expired", "code": 410});
                equal("event", &event, &json!({"type": "ERROR", "object": status}))?;
                equal("the end", &json!(watch.next().await?), &json!(null))
            },
        )
        .alone(),
        row("a streaming list starts from a version that is too old", "facts §3", |api| async move {
            let object = api.create_map("a", json!({})).await?;
            api.create_map("b", json!({})).await?;
            api.forget_history().await?;

            let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
            let mut watch = api.watch(&format!("{}?{query}&resourceVersion={}", api.maps(), version(&object))).await?;

            watch.expect("ADDED", "a").await?;
            watch.expect("ADDED", "b").await?;
            Ok(())
        })
        .alone(),
        row("timeoutSeconds ends a stream without an event", "facts §3", |api| async move {
            let mut watch = from_now(&api, "&timeoutSeconds=1").await?;

            equal("the end", &json!(watch.next().await?), &json!(null))
        }),
        row("a version that is no number is a server error for a watch", "facts §2", |api| async move {
            api.get(format!("{}?watch=1&resourceVersion=x", api.maps())).await?.fails_with(500, "", "")
        }),
        row("removing a definition deletes its objects in a watch", "facts §3", |api| async move {
            let group = format!("{}.example.org", api.namespace);
            let things = api.at(&format!("{group}/v1"), "things");
            api.define(&definition(&group, "things", "Thing")).await?;
            api.create(
                &things,
                &json!({"apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": {"name": "t"}}),
            )
            .await?;
            let mut watch = api.watch(&things).await?;
            watch.expect("ADDED", "t").await?;

            let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            api.delete(format!("{definitions}/things.{group}")).await?.code(200)?;

            watch.expect("DELETED", "t").await?;
            Ok(())
        }),
    ]
}

fn number(version: &str) -> u64 {
    version.parse().unwrap_or_default()
}

fn without_version(mut object: Value) -> Value {
    object["metadata"]["resourceVersion"] = json!(null);
    object
}
