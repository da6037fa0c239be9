//! PATCH: the three patch types this program sends, and what is refused.

use serde_json::json;

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
            "another uid in a merge patch is refused: Conflict, or Invalid because of the uid, and nothing is changed",
            "facts §4",
            |api| async move {
                let path = format!("{}/a", api.maps());
                let object = api.create_map("a", json!({"finalizers": ["a.b/c"]})).await?;
                let foreign = "00000000-0000-0000-0000-000000000000";

                let patch = json!({"metadata": {"uid": foreign, "finalizers": null}});
                let answer = api.patch(&path, MERGE, &patch).await?;

                let is_about_uid = answer.body["details"]["causes"][0]["field"] == "metadata.uid";
                let is_refused = answer.code == 409 || (answer.code == 422 && is_about_uid);
                holds(is_refused, "409, or 422 about metadata.uid", &answer.body)?;
                equal("object", &api.get(&path).await?.body, &object)
            },
        ),
        row("the right uid in a merge patch is no lock", "facts §4", |api| async move {
            let path = format!("{}/a", api.maps());
            let object = api.create_map("a", json!({})).await?;
            api.patch(&path, MERGE, &json!({"data": {"v": "2"}})).await?.code(200)?;

            let patch = json!({"metadata": {"uid": object["metadata"]["uid"]}, "data": {"v": "3"}});
            let answer = api.patch(&path, MERGE, &patch).await?.code(200)?;

            equal("data", &answer.body["data"], &json!({"v": "3"}))
        }),
        row("a merge patch that is no object is BadRequest", "facts §5", |api| async move {
            api.create_map("a", json!({})).await?;

            api.patch(format!("{}/a", api.maps()), MERGE, &json!([])).await?.fails_with(400, "BadRequest", "")
        }),
        row(
            "a patch that takes the last finalizer of a deleting object away removes it",
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
