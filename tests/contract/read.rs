use anyhow::Result;
use http::Method;
use serde_json::json;

use crate::{
    api::{Answer, Api, MERGE, version},
    bodies::{definition, failure, map_not_found, pod},
    expect::{absent, equal, holds, includes},
    row::{Row, row},
};

pub(crate) fn rows() -> Vec<Row> {
    [objects(), selectors(), pages(), versions(), forms()].into_iter().flatten().collect()
}

async fn seven(api: &Api) -> Result<String> {
    for index in 0..7 {
        let app = if index % 2 == 0 { "x" } else { "y" };
        api.create_map(&format!("c{index}"), json!({"labels": {"app": app, "n": index.to_string()}})).await?;
    }
    Ok(api.maps())
}

fn token(page: &Answer) -> String {
    page.body["metadata"]["continue"].as_str().unwrap_or_default().replace('+', "%2B").replace('=', "%3D")
}

fn objects() -> Vec<Row> {
    vec![
        row("a missing object is NotFound", "facts §2", |api| async move {
            api.get(format!("{}/x", api.maps())).await?.is_status(&map_not_found("x"))
        }),
        row("a missing object in a missing namespace is NotFound by its own name", "facts §2", |api| async move {
            let path = format!("/api/v1/namespaces/{}/configmaps/x", api.unique("gone"));

            api.get(path).await?.is_status(&map_not_found("x"))
        }),
        row("a missing object of a group is NotFound with the group", "facts §0", |api| async move {
            let answer = api.get(format!("{}/d", api.at("apps/v1", "deployments"))).await?;

            let details = json!({"name": "d", "group": "apps", "kind": "deployments"});
            answer.is_status(&failure(404, "NotFound", "deployments.apps \"d\" not found", details))
        }),
        row("a list in a missing namespace is empty", "facts §2", |api| async move {
            let path = format!("/api/v1/namespaces/{}/configmaps", api.unique("gone"));

            let answer = api.get(path).await?.code(200)?;

            let expected = json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": answer.version()}, "items": []});
            equal("list", &answer.body, &expected)
        }),
        row("an unknown resource of a built-in group is a Status without a name", "facts §2", |api| async move {
            for path in ["/api/v1/nope", "/apis/apps/v1/nope"] {
                let message = "the server could not find the requested resource";
                api.get(path).await?.is_status(&failure(404, "NotFound", message, json!({})))?;
            }
            Ok(())
        }),
        row("an unknown group is a plain 404", "facts §2", |api| async move {
            api.get("/apis/nope.example.org/v1/x").await?.is_text(404, "404 page not found\n")
        }),
        row(
            "an unknown version is a Status for a built-in group, a plain 404 for a custom one",
            "facts §2",
            |api| async move {
                let group = format!("{}.example.org", api.namespace);
                api.define(&definition(&group, "things", "Thing")).await?;

                let message = "the server could not find the requested resource";
                api.get("/apis/apps/v9/deployments").await?.is_status(&failure(404, "NotFound", message, json!({})))?;
                api.get(format!("/apis/{group}/v9/things")).await?.is_text(404, "404 page not found\n")
            },
        ),
        row("an unknown resource of a custom group is a plain 404", "facts §2", |api| async move {
            let group = format!("{}.example.org", api.namespace);
            api.define(&definition(&group, "things", "Thing")).await?;

            api.get(format!("/apis/{group}/v1/nope")).await?.is_text(404, "404 page not found\n")
        }),
        row(
            "items are ordered by the key namespace/name, so that a-b/… comes before a/…",
            "facts §2",
            |api| async move {
                let other = api.unique("b");
                api.create("/api/v1/namespaces", &json!({"metadata": {"name": other}})).await?;
                for (namespace, name) in [(&other, "a"), (&api.namespace, "c"), (&api.namespace, "b")] {
                    let body = json!({"metadata": {"name": name, "labels": {"order": api.namespace}}});
                    api.create(format!("/api/v1/namespaces/{namespace}/configmaps"), &body).await?;
                }

                let answer =
                    api.get(format!("/api/v1/configmaps?labelSelector=order%3D{}", api.namespace)).await?.code(200)?;

                equal("names", &json!(answer.names()), &json!(["a", "b", "c"]))
            },
        ),
        row("items of built-in kinds lack kind and apiVersion, custom ones have them", "facts §2", |api| async move {
            let group = format!("{}.example.org", api.namespace);
            let things = api.at(&format!("{group}/v1"), "things");
            api.define(&definition(&group, "things", "Thing")).await?;
            api.create(
                &things,
                &json!({"apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": {"name": "t"}}),
            )
            .await?;
            api.create_map("a", json!({})).await?;

            let maps = api.get(api.maps()).await?.code(200)?;
            absent(&maps.body, "/items/0/kind")?;
            absent(&maps.body, "/items/0/apiVersion")?;
            let custom = api.get(&things).await?.code(200)?;
            let expected = json!({"kind": "ThingList", "apiVersion": format!("{group}/v1"),
                "items": [{"kind": "Thing", "apiVersion": format!("{group}/v1"), "metadata": {"name": "t"}}]});
            includes("custom list", &custom.body, &expected)
        }),
    ]
}

fn selectors() -> Vec<Row> {
    vec![
        row("a label selector knows equality, sets, existence and comparison", "facts §2", |api| async move {
            let maps = seven(&api).await?;
            api.create_map("none", json!({})).await?;
            let table: [(&str, &[&str]); 9] = [
                ("app=x", &["c0", "c2", "c4", "c6"]),
                ("app%3D%3Dx", &["c0", "c2", "c4", "c6"]),
                ("app!%3Dx", &["c1", "c3", "c5", "none"]),
                ("app%20in%20(x,%20z),n%20notin%20(0,2)", &["c4", "c6"]),
                ("n%20notin%20(0,1,2,3,4)", &["c5", "c6", "none"]),
                ("app,n%3E4", &["c5", "c6"]),
                ("n%3C1", &["c0"]),
                ("!app", &["none"]),
                ("app%3Dx,app%3Dy", &[]),
            ];
            for (selector, expected) in table {
                let answer = api.get(format!("{maps}?labelSelector={selector}")).await?.code(200)?;
                equal(selector, &json!(answer.names()), &json!(expected))?;
            }
            Ok(())
        }),
        row("a label selector that does not parse is BadRequest", "facts §2", |api| async move {
            let answer = api.get(format!("{}?labelSelector=a%20b", api.maps())).await?;

            answer.fails_with(
                400,
                "BadRequest",
                "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
            )
        }),
        row("a field selector finds by name and by namespace", "facts §2", |api| async move {
            seven(&api).await?;
            let selector = format!("metadata.name%3Dc3,metadata.namespace%3D{}", api.namespace);

            let answer = api.get(format!("/api/v1/configmaps?fieldSelector={selector}")).await?.code(200)?;

            equal("names", &json!(answer.names()), &json!(["c3"]))
        }),
        row("some kinds have field selectors of their own", "facts §2", |api| async move {
            api.create(api.at("v1", "pods"), &pod("free", "")).await?;
            api.create(api.at("v1", "pods"), &pod("bound", "n1")).await?;
            api.create(api.at("v1", "secrets"), &json!({"metadata": {"name": "s"}, "type": "a/b"})).await?;
            api.create(api.at("v1", "secrets"), &json!({"metadata": {"name": "o"}})).await?;
            let reference = json!({"kind": "Pod", "name": "p", "namespace": api.namespace});
            api.create(api.at("v1", "events"), &json!({"metadata": {"name": "e"}, "involvedObject": reference}))
                .await?;
            let table: [(&str, &str, &[&str]); 6] = [
                ("pods", "spec.nodeName%3Dn1", &["bound"]),
                ("pods", "spec.nodeName%3D", &["free"]),
                ("pods", "status.phase!%3DRunning", &["bound", "free"]),
                ("secrets", "type%3Da/b", &["s"]),
                ("events", "involvedObject.kind%3DPod,involvedObject.name%3Dp", &["e"]),
                ("events", "involvedObject.name%3Dq", &[]),
            ];

            for (plural, selector, expected) in table {
                let answer = api.get(format!("{}?fieldSelector={selector}", api.at("v1", plural))).await?.code(200)?;
                equal(selector, &json!(answer.names()), &json!(expected))?;
            }
            Ok(())
        }),
        row("an unknown field selector is BadRequest", "facts §2", |api| async move {
            let maps = api.get(format!("{}?fieldSelector=data.v%3D1", api.maps())).await?;
            maps.fails_with(
                400,
                "BadRequest",
                "\"data.v\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
            )?;

            let pods = api.get(format!("{}?fieldSelector=spec.a%3D1", api.at("v1", "pods"))).await?;
            pods.fails_with(400, "BadRequest", "field label not supported: spec.a")
        }),
    ]
}

fn pages() -> Vec<Row> {
    vec![
        row(
            "a page has a continue token and the number of what remains, the last one neither",
            "facts §2",
            |api| async move {
                let maps = seven(&api).await?;

                let first = api.get(format!("{maps}?limit=3")).await?.code(200)?;
                equal("first page", &json!(first.names()), &json!(["c0", "c1", "c2"]))?;
                equal("remaining", &first.body["metadata"]["remainingItemCount"], &json!(4))?;
                let second = api.get(format!("{maps}?limit=3&continue={}", token(&first))).await?.code(200)?;
                equal("second page", &json!(second.names()), &json!(["c3", "c4", "c5"]))?;
                equal("remaining", &second.body["metadata"]["remainingItemCount"], &json!(1))?;
                let last = api.get(format!("{maps}?limit=3&continue={}", token(&second))).await?.code(200)?;
                equal("last page", &json!(last.names()), &json!(["c6"]))?;
                absent(&last.body, "/metadata/continue")?;
                absent(&last.body, "/metadata/remainingItemCount")
            },
        ),
        row("later pages show the state and the version of the first", "facts §2", |api| async move {
            let maps = seven(&api).await?;
            let first = api.get(format!("{maps}?limit=3")).await?.code(200)?;
            api.delete(format!("{maps}/c5")).await?.code(200)?;
            api.create_map("c9", json!({})).await?;

            let rest = api.get(format!("{maps}?continue={}", token(&first))).await?.code(200)?;

            equal("names", &json!(rest.names()), &json!(["c3", "c4", "c5", "c6"]))?;
            equal("version", &json!(rest.version()), &json!(first.version()))
        }),
        row("limit=1 gives the count of the others and a version to watch from", "architecture §5", |api| async move {
            let maps = seven(&api).await?;
            let page = api.get(format!("{maps}?limit=1")).await?.code(200)?;
            equal("remaining", &page.body["metadata"]["remainingItemCount"], &json!(6))?;

            let mut watch = api.watch(&format!("{maps}?resourceVersion={}", page.version())).await?;
            api.patch(format!("{maps}/c6"), MERGE, &json!({"data": {"v": "2"}})).await?.code(200)?;

            watch.expect("MODIFIED", "c6").await?;
            Ok(())
        }),
        row(
            "limit=1 of an empty collection is an empty list with a version to watch from",
            "architecture §5",
            |api| async move {
                let page = api.get(format!("{}?limit=1", api.maps())).await?.code(200)?;
                equal("list", &page.body["items"], &json!([]))?;

                let mut watch = api.watch(&format!("{}?resourceVersion={}", api.maps(), page.version())).await?;
                api.create_map("a", json!({})).await?;

                watch.expect("ADDED", "a").await?;
                Ok(())
            },
        ),
        row("with a selector there is no remainingItemCount", "facts §2", |api| async move {
            let maps = seven(&api).await?;

            let page = api.get(format!("{maps}?limit=2&labelSelector=app%3Dx")).await?.code(200)?;

            equal("names", &json!(page.names()), &json!(["c0", "c2"]))?;
            holds(!token(&page).is_empty(), "a continue token", &page.body["metadata"])?;
            absent(&page.body, "/metadata/remainingItemCount")
        }),
        row("limit is ignored with resourceVersion=0", "facts §2", |api| async move {
            let maps = seven(&api).await?;

            let answer = api.get(format!("{maps}?limit=3&resourceVersion=0")).await?.code(200)?;

            // This read may be stale: the row only shows that nothing is held back.
            absent(&answer.body, "/metadata/continue")
        }),
        row("a continue token with a resourceVersion is BadRequest", "facts §2", |api| async move {
            let maps = seven(&api).await?;
            let page = api.get(format!("{maps}?limit=3")).await?.code(200)?;

            let answer =
                api.get(format!("{maps}?resourceVersion={}&continue={}", page.version(), token(&page))).await?;

            answer.fails_with(400, "BadRequest", "specifying resource version is not allowed when using continue")
        }),
        row("a broken continue token is BadRequest", "facts §2", |api| async move {
            let answer = api.get(format!("{}?continue=garbage", api.maps())).await?;

            answer.fails_with(400, "BadRequest", "continue")
        }),
        row("a continue token that is too old is Expired and brings another one", "facts §2", |api| async move {
            let maps = seven(&api).await?;
            let page = api.get(format!("{maps}?limit=3")).await?.code(200)?;
            api.create_map("later", json!({})).await?;
            api.forget_history().await?;

            let answer = api.get(format!("{maps}?limit=3&continue={}", token(&page))).await?;

            let message = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter";
            answer.fails_with(410, "Expired", message)?;
            let rest = api.get(format!("{maps}?limit=9&continue={}", token(&answer))).await?.code(200)?;
            equal("the rest, not consistent", &json!(rest.names()), &json!(["c3", "c4", "c5", "c6", "later"]))
        })
        .alone(),
        row("a version that is too old is Expired for an exact list", "facts §2", |api| async move {
            api.create_map("a", json!({})).await?;
            let past = api.version(&api.maps()).await?;
            api.create_map("b", json!({})).await?;
            api.forget_history().await?;

            let path = format!("{}?resourceVersion={past}&resourceVersionMatch=Exact", api.maps());

            api.get(path).await?.fails_with(410, "Expired", "The resourceVersion for the provided list is too old.")
        })
        .alone(),
    ]
}

fn versions() -> Vec<Row> {
    vec![
        row("a list shows the newest version of all kinds", "facts §0", |api| async move {
            let before = api.version(&api.maps()).await?;
            let secret = api.create(api.at("v1", "secrets"), &json!({"metadata": {"name": "s"}})).await?;

            let answer = api.get(api.maps()).await?.code(200)?;

            let numbers =
                [before, version(&secret), answer.version()].map(|text| text.parse::<u64>().unwrap_or_default());
            holds(numbers[0] < numbers[1] && numbers[1] <= numbers[2], "list ≥ secret > before", &json!(numbers))
        }),
        row("resourceVersionMatch=Exact shows the past", "facts §2", |api| async move {
            api.create_map("a", json!({})).await?;
            let past = api.version(&api.maps()).await?;
            api.create_map("b", json!({})).await?;

            let path = format!("{}?resourceVersion={past}&resourceVersionMatch=Exact", api.maps());
            let answer = api.get(path).await?.code(200)?;

            equal("names", &json!(answer.names()), &json!(["a"]))?;
            equal("version", &json!(answer.version()), &json!(past))
        }),
        row("a list at a version shows that state or a newer one", "facts §2", |api| async move {
            let object = api.create_map("a", json!({})).await?;

            let answer = api.get(format!("{}?resourceVersion={}", api.maps(), version(&object))).await?.code(200)?;

            equal("names", &json!(answer.names()), &json!(["a"]))
        }),
        row("a list at a version of the future is a Timeout", "facts §2", |api| async move {
            let answer = api.get(format!("{}?resourceVersion=99999999", api.maps())).await?;

            answer.fails_with(504, "Timeout", "Timeout: Too large resource version: 99999999, current: ")?;
            let details = json!({"retryAfterSeconds": 1, "causes": [{"reason": "ResourceVersionTooLarge"}]});
            includes("details", &answer.body["details"], &details)?;
            equal("Retry-After", &json!(answer.header("retry-after")), &json!("1"))
        }),
        row("a version that is no number is BadRequest for a list", "facts §2", |api| async move {
            api.get(format!("{}?resourceVersion=x", api.maps())).await?.fails_with(400, "BadRequest", "")
        })
        .not_for_the_oldest(),
    ]
}

fn forms() -> Vec<Row> {
    vec![
        row("an object can be read as metadata only", "facts §2", |api| async move {
            let object = api.create_map("a", json!({"labels": {"l": "1"}})).await?;

            let call = api.call(Method::GET, format!("{}/a", api.maps())).form("PartialObjectMetadata");
            let answer = call.send().await?.code(200)?;

            let expected = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]});
            equal("object", &answer.body, &expected)
        }),
        row("a write can be answered with metadata only", "facts §2", |api| async move {
            let call = api.call(Method::POST, api.maps()).form("PartialObjectMetadata");
            let answer = call.json(&crate::bodies::config_map("a", json!({}))).send().await?.code(201)?;

            includes("object", &answer.body, &json!({"kind": "PartialObjectMetadata", "metadata": {"name": "a"}}))?;
            absent(&answer.body, "/data")?;
            let call = api.call(Method::PATCH, format!("{}/a", api.maps())).form("PartialObjectMetadata");
            let patch = json!({"metadata": {"labels": {"l": "1"}, "resourceVersion": answer.version()}});
            let answer = call.body(MERGE, &patch.to_string()).send().await?.code(200)?;
            includes(
                "object",
                &answer.body,
                &json!({"kind": "PartialObjectMetadata", "metadata": {"labels": {"l": "1"}}}),
            )?;
            absent(&answer.body, "/data")
        }),
        row("a list can be read as metadata only; every item has its kind", "facts §2", |api| async move {
            api.create_map("a", json!({})).await?;

            let answer = api.call(Method::GET, api.maps()).form("PartialObjectMetadataList").send().await?.code(200)?;

            let item =
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a"}});
            let expected =
                json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "items": [item]});
            includes("list", &answer.body, &expected)?;
            holds(!answer.version().is_empty(), "a version to watch from", &answer.body["metadata"])?;
            absent(&answer.body, "/items/0/data")
        }),
        row("pages and selectors work for metadata lists", "facts §2", |api| async move {
            let maps = seven(&api).await?;

            let call = api.call(Method::GET, format!("{maps}?limit=2&labelSelector=app%3Dy"));
            let answer = call.form("PartialObjectMetadataList").send().await?.code(200)?;

            equal("names", &json!(answer.names()), &json!(["c1", "c3"]))?;
            holds(!token(&answer).is_empty(), "a continue token", &answer.body["metadata"])
        }),
        row("asking a list for the form of an object is NotAcceptable", "facts §2", |api| async move {
            let answer = api.call(Method::GET, api.maps()).form("PartialObjectMetadata").send().await?;

            let message =
                "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)";
            answer.fails(406, "NotAcceptable", message)
        }),
        row("a Table has columns, and rows with metadata", "facts §2", |api| async move {
            api.create_map("a", json!({})).await?;

            let answer = api.call(Method::GET, api.maps()).form("Table").send().await?.code(200)?;

            let object =
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a"}});
            includes(
                "table",
                &answer.body,
                &json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "rows": [{"object": object}]}),
            )?;
            equal("first column", &answer.body["columnDefinitions"][0]["name"], &json!("Name"))?;
            equal("first cell", &answer.body["rows"][0]["cells"][0], &json!("a"))
        }),
        row("of several accepted forms the first known one wins", "facts §2", |api| async move {
            api.create_map("a", json!({})).await?;
            let accept = "application/json;as=Unknown;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

            let call = api.call(Method::GET, format!("{}/a", api.maps())).header("accept", accept);
            let answer = call.send().await?.code(200)?;

            equal("kind", &answer.body["kind"], &json!("PartialObjectMetadata"))
        }),
        row("an unknown accepted form is NotAcceptable", "facts §2", |api| async move {
            let answer = api.call(Method::GET, api.maps()).form("Unknown").send().await?;

            answer.fails_with(406, "NotAcceptable", "")
        }),
    ]
}
