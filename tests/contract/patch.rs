use serde_json::{Value, json};

use crate::{
    api::{JSON, MERGE, STRATEGIC, version},
    bodies::{definition, failure, map_not_found},
    expect::{absent, equal, holds, includes},
    row::{Row, row},
};

pub(crate) fn rows() -> Vec<Row> {
    [merge(), json_patch(), strategic(), refusals()].into_iter().flatten().collect()
}

fn merge() -> Vec<Row> {
    vec![
        row("a merge patch sets, replaces lists, and removes with null", "facts §5", |api| async move {
            api.create_map("a", json!({"labels": {"l": "1", "m": "1"}, "finalizers": ["a.b/c"]})).await?;
            let patch = json!({"metadata": {"labels": {"l": null, "n": "2"}, "finalizers": ["a.b/d"]}, "data": {"v": null, "w": "2"}});

            let answer = api.patch(format!("{}/a", api.maps()), MERGE, &patch).await?.code(200)?;

            let meta = &answer.body["metadata"];
            equal("labels", &meta["labels"], &json!({"m": "1", "n": "2"}))?;
            equal("finalizers", &meta["finalizers"], &json!(["a.b/d"]))?;
            equal("data", &answer.body["data"], &json!({"w": "2"}))
        }),
        row("a patch that changes nothing keeps the version", "facts §5", |api| async move {
            let object = api.create_map("a", json!({})).await?;
            for patch in [json!({}), json!({"data": {"v": "1"}}), json!({"data": {"missing": null}})] {
                let answer = api.patch(format!("{}/a", api.maps()), MERGE, &patch).await?.code(200)?;

                equal("object", &answer.body, &object)?;
            }
            Ok(())
        }),
        row("a resourceVersion in a merge patch is a lock", "facts §5", |api| async move {
            let path = format!("{}/a", api.maps());
            let object = api.create_map("a", json!({})).await?;
            let lock = json!({"metadata": {"resourceVersion": version(&object)}, "data": {"v": "2"}});

            api.patch(&path, MERGE, &lock).await?.code(200)?;
            let again = api.patch(&path, MERGE, &lock).await?;

            let message = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again";
            again.is_status(&failure(409, "Conflict", message, json!({"name": "a", "kind": "configmaps"})))
        }),
        row("a resourceVersion in a merge patch of /status is a lock", "facts §5", |api| async move {
            let group = format!("{}.example.org", api.namespace);
            api.define(&definition(&group, "things", "Thing")).await?;
            let things = api.at(&format!("{group}/v1"), "things");
            let object = api
                .create(
                    &things,
                    &json!({"apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": {"name": "t"}}),
                )
                .await?;
            let lock = json!({"metadata": {"resourceVersion": version(&object)}, "status": {"s": 1}});

            api.patch(format!("{things}/t/status"), MERGE, &lock).await?.code(200)?;
            let again = api.patch(format!("{things}/t/status"), MERGE, &lock).await?;

            again.fails_with(409, "Conflict", "the object has been modified")
        }),
        row(
            "a uid in a merge patch is a lock, but another one is Invalid, not a Conflict",
            "facts §4",
            |api| async move {
                let path = format!("{}/a", api.maps());
                let object = api.create_map("a", json!({})).await?;
                let patch = |uid: &Value| json!({"metadata": {"uid": uid}, "data": {"v": "2"}});

                api.patch(&path, MERGE, &patch(&object["metadata"]["uid"])).await?.code(200)?;
                let other = "00000000-0000-0000-0000-000000000000";
                let answer = api.patch(&path, MERGE, &patch(&json!(other))).await?;

                answer.fails_with(
                    422,
                    "Invalid",
                    &format!("metadata.uid: Invalid value: \"{other}\": field is immutable"),
                )?;
                let causes = answer.body["details"]["causes"].as_array().cloned().unwrap_or_default();
                let only_uid = !causes.is_empty() && causes.iter().all(|cause| cause["field"] == "metadata.uid");
                holds(only_uid, "causes about the uid and nothing else", &answer.body)
            },
        ),
        row(
            "a merge patch with another uid and a stale version is a Conflict of versions",
            "facts §4",
            |api| async move {
                let path = format!("{}/a", api.maps());
                let former = api.create_map("a", json!({})).await?;
                api.delete(&path).await?.code(200)?;
                let now = api.create_map("a", json!({})).await?;
                let lock = json!({"uid": former["metadata"]["uid"], "resourceVersion": version(&former), "finalizers": ["a.b/c"]});

                let answer = api.patch(&path, MERGE, &json!({"metadata": lock})).await?;

                answer.fails_with(409, "Conflict", "the object has been modified")?;
                equal("the later incarnation", &api.get(&path).await?.code(200)?.body, &now)
            },
        ),
        row("uid and version in a merge patch of a custom object are locks, too", "facts §4", |api| async move {
            let group = format!("{}.example.org", api.namespace);
            api.define(&definition(&group, "things", "Thing")).await?;
            let things = api.at(&format!("{group}/v1"), "things");
            let body = json!({"apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": {"name": "t"}});
            let object = api.create(&things, &body).await?;
            let (path, uid) = (format!("{things}/t"), &object["metadata"]["uid"]);
            let lock = json!({"uid": uid, "resourceVersion": version(&object), "labels": {"a": "1"}});

            api.patch(&path, MERGE, &json!({"metadata": lock})).await?.code(200)?;
            let stale = api.patch(&path, MERGE, &json!({"metadata": lock})).await?;
            let foreign = api.patch(&path, MERGE, &json!({"metadata": {"uid": "1", "labels": {"a": "2"}}})).await?;

            stale.fails_with(409, "Conflict", "the object has been modified")?;
            foreign.fails_with(422, "Invalid", "metadata.uid: Invalid value: \"1\": field is immutable")
        }),
        row("a merge patch cannot add a finalizer to a deleting object", "facts §4", |api| async move {
            let path = format!("{}/a", api.maps());
            api.create_map("a", json!({"finalizers": ["a.b/c"]})).await?;
            api.delete(&path).await?.code(200)?;

            let answer = api.patch(&path, MERGE, &json!({"metadata": {"finalizers": ["a.b/c", "a.b/d"]}})).await?;

            answer.fails_with(422, "Invalid", "no new finalizers can be added if the object is being deleted")
        }),
        row("an empty list of finalizers, with uid and version, ends a deletion", "facts §3", |api| async move {
            let path = format!("{}/a", api.maps());
            api.create_map("a", json!({"finalizers": ["a.b/c"]})).await?;
            let live = api.delete(&path).await?.code(200)?.body;
            let metadata = json!({"uid": live["metadata"]["uid"], "resourceVersion": version(&live), "finalizers": []});

            let answer = api.patch(&path, MERGE, &json!({"metadata": metadata})).await?.code(200)?;

            equal("version", &answer.body["metadata"]["resourceVersion"], &live["metadata"]["resourceVersion"])?;
            absent(&answer.body, "/metadata/finalizers")?;
            api.get(&path).await?.is_status(&map_not_found("a"))
        }),
        row("null for a missing field in a merge patch sets nothing, at any depth", "facts §5", |api| async move {
            let path = format!("{}/a", api.maps());
            let object = api.create_map("a", json!({})).await?;

            let patch = json!({"metadata": {"labels": {"l": null}, "annotations": null}, "data": {"w": null}});
            api.patch(&path, MERGE, &patch).await?.code(200)?;

            equal("object", &api.get(&path).await?.code(200)?.body, &object)
        }),
        row("a merge patch that is no object is BadRequest", "facts §5", |api| async move {
            api.create_map("a", json!({})).await?;

            api.patch(format!("{}/a", api.maps()), MERGE, &json!([])).await?.fails_with(400, "BadRequest", "")
        }),
        row(
            "a patch that removes the last finalizer of a deleting object removes the object",
            "facts §3",
            |api| async move {
                let path = format!("{}/a", api.maps());
                api.create_map("a", json!({"finalizers": ["a.b/c"]})).await?;
                api.delete(&path).await?.code(200)?;

                api.patch(&path, MERGE, &json!({"metadata": {"finalizers": null}})).await?.code(200)?;

                api.get(&path).await?.is_status(&map_not_found("a"))
            },
        ),
    ]
}

fn json_patch() -> Vec<Row> {
    vec![
        row("a JSON patch tests, adds, replaces and removes", "facts §5", |api| async move {
            api.create_map("a", json!({"labels": {"a/b": "1"}})).await?;
            let patch = json!([
                {"op": "test", "path": "/data/v", "value": "1"},
                {"op": "replace", "path": "/data/v", "value": "2"},
                {"op": "add", "path": "/data/w", "value": "3"},
                {"op": "remove", "path": "/metadata/labels/a~1b"},
            ]);

            let answer = api.patch(format!("{}/a", api.maps()), JSON, &patch).await?.code(200)?;

            equal("data", &answer.body["data"], &json!({"v": "2", "w": "3"}))?;
            absent(&answer.body, "/metadata/labels")
        }),
        row("every operation of a JSON patch that fails is the same Invalid", "facts §5", |api| async move {
            api.create_map("a", json!({})).await?;
            let operations = [
                json!({"op": "test", "path": "/data/v", "value": "9"}),
                json!({"op": "remove", "path": "/data/x"}),
                json!({"op": "add", "path": "/metadata/labels/x", "value": "1"}),
            ];
            for operation in operations {
                let answer = api.patch(format!("{}/a", api.maps()), JSON, &json!([operation])).await?;

                let message = "the server rejected our request due to an error in our request";
                answer.is_status(&failure(422, "Invalid", message, json!({})))?;
            }
            Ok(())
        }),
        row("replace in a JSON patch adds a missing key", "facts §5", |api| async move {
            api.create_map("a", json!({})).await?;

            let patch = json!([{"op": "replace", "path": "/data/x", "value": "1"}]);
            let answer = api.patch(format!("{}/a", api.maps()), JSON, &patch).await?.code(200)?;

            equal("data", &answer.body["data"], &json!({"v": "1", "x": "1"}))
        }),
        row("a JSON patch that is no array is BadRequest", "facts §5", |api| async move {
            api.create_map("a", json!({})).await?;

            api.patch(format!("{}/a", api.maps()), JSON, &json!({})).await?.fails_with(400, "BadRequest", "")
        }),
    ]
}

fn strategic() -> Vec<Row> {
    vec![
        row("a strategic merge patch sets and removes labels and annotations", "facts §5", |api| async move {
            api.create_map("a", json!({"labels": {"l": "1", "m": "1"}, "annotations": {"a": "1"}})).await?;

            let patch = json!({"metadata": {"labels": {"l": null, "n": "2"}, "annotations": {"a": null}}});
            let answer = api.patch(format!("{}/a", api.maps()), STRATEGIC, &patch).await?.code(200)?;

            equal("labels", &answer.body["metadata"]["labels"], &json!({"m": "1", "n": "2"}))?;
            absent(&answer.body, "/metadata/annotations")
        }),
        row("a strategic merge patch adds finalizers, new ones first", "facts §5", |api| async move {
            let path = format!("{}/a", api.maps());
            api.create_map("a", json!({"finalizers": ["a.b/c"]})).await?;

            let answer =
                api.patch(&path, STRATEGIC, &json!({"metadata": {"finalizers": ["a.b/d"]}})).await?.code(200)?;

            equal("finalizers", &answer.body["metadata"]["finalizers"], &json!(["a.b/d", "a.b/c"]))
        }),
        row("a strategic merge patch deletes single finalizers", "facts §5", |api| async move {
            let path = format!("{}/a", api.maps());
            api.create_map("a", json!({"finalizers": ["a.b/c", "a.b/d"]})).await?;

            let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a.b/c"]}});
            let answer = api.patch(&path, STRATEGIC, &patch).await?.code(200)?;

            equal("finalizers", &answer.body["metadata"]["finalizers"], &json!(["a.b/d"]))
        }),
        row("a strategic merge patch finds the ports of a Service by port", "facts §5", |api| async move {
            let path = format!("{}/s", api.at("v1", "services"));
            let body = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]}});
            api.create(api.at("v1", "services"), &body).await?;

            let patch = json!({"spec": {"ports": [{"port": 81, "targetPort": 8081}]}});
            let answer = api.patch(&path, STRATEGIC, &patch).await?.code(200)?;

            let expected =
                json!([{"name": "a", "port": 80, "targetPort": 80}, {"name": "b", "port": 81, "targetPort": 8081}]);
            includes("ports", &answer.body["spec"]["ports"], &expected)
        }),
        row("a strategic merge patch of a custom object is UnsupportedMediaType", "facts §5", |api| async move {
            let group = format!("{}.example.org", api.namespace);
            api.define(&definition(&group, "things", "Thing")).await?;
            let things = api.at(&format!("{group}/v1"), "things");
            api.create(
                &things,
                &json!({"apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": {"name": "t"}}),
            )
            .await?;

            let answer = api.patch(format!("{things}/t"), STRATEGIC, &json!({})).await?;

            let message = "accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
            answer.fails_with(415, "UnsupportedMediaType", message)
        }),
    ]
}

fn refusals() -> Vec<Row> {
    vec![
        row("a patch of another content type is UnsupportedMediaType", "facts §5", |api| async move {
            api.create_map("a", json!({})).await?;

            let answer = api.patch(format!("{}/a", api.maps()), "application/json", &json!({})).await?;

            answer.fails_with(415, "UnsupportedMediaType", "415: Unsupported Media Type")
        }),
        row("a patch of a missing object is NotFound", "facts §5", |api| async move {
            for kind in [MERGE, STRATEGIC] {
                api.patch(format!("{}/a", api.maps()), kind, &json!({})).await?.is_status(&map_not_found("a"))?;
            }
            api.patch(format!("{}/a", api.maps()), JSON, &json!([])).await?.is_status(&map_not_found("a"))
        }),
        row(
            "a patch whose result does not decode is Invalid, and the message shows the object",
            "facts §5",
            |api| async move {
                api.create_map("a", json!({})).await?;

                let answer = api.patch(format!("{}/a", api.maps()), MERGE, &json!({"data": {"v": 1}})).await?;

                answer.fails_with(422, "Invalid", "\"\" is invalid: patch: Invalid value: \"")
            },
        ),
        row("an unknown field in a patch is dropped with a warning", "facts §5", |api| async move {
            api.create_map("a", json!({})).await?;

            let answer = api.patch(format!("{}/a", api.maps()), MERGE, &json!({"foo": 1})).await?.code(200)?;

            absent(&answer.body, "/foo")?;
            equal("Warning", &json!(answer.header_values("warning")), &json!(["299 - \"unknown field \\\"foo\\\"\""]))
        }),
    ]
}
