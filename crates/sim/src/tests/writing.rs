use super::*;

/// Facts §1: the order of the checks.
#[test]
fn creations_are_checked_in_order() {
    run(async {
        let bench = Bench::new();
        let with_version = |mut object: Value| {
            object["metadata"]["resourceVersion"] = "1".into();
            object
        };

        let created = bench.post(MAPS, config_map("a")).await;
        let again = bench.post(MAPS, config_map("a")).await;
        let nowhere = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        let missing = bench.post("/api/v1/namespaces/x/configmaps", nowhere).await;
        let mismatch = bench.post("/api/v1/namespaces/x/configmaps", config_map("a")).await;
        let version = bench.post(MAPS, with_version(config_map("b"))).await;
        let nameless = bench.post(MAPS, json!({"metadata": {}})).await;
        let wrong = bench.post(MAPS, json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}})).await;

        assert_eq!(created.code, 201);
        assert!(created.json()["metadata"]["uid"].as_str().unwrap().len() == 36);
        assert_eq!(created.json()["metadata"]["creationTimestamp"], "2026-01-01T00:00:00Z");
        assert_eq!((again.code, again.message().as_str()), (409, "configmaps \"a\" already exists"));
        assert_eq!((missing.code, missing.message().as_str()), (404, "namespaces \"x\" not found"));
        assert_eq!(mismatch.code, 400);
        assert_eq!(version.message(), "resourceVersion should not be set on objects to be created");
        assert_eq!((version.code, nameless.code, wrong.code), (500, 422, 400));
    });
}

/// Facts §1: `generateName`, and no answer depends on anything but the seed.
#[test]
fn generated_names_and_whole_answers_are_the_same_for_the_same_seed() {
    let scenario = || {
        run(async {
            let bench = Bench::new();
            let nameless = json!({"metadata": {"generateName": "run-"}});
            let created = bench.post(MAPS, nameless).await;
            tokio::time::sleep(Duration::from_secs(5)).await;
            let listed = bench.get(MAPS).await;
            (created.json()["metadata"]["name"].as_str().unwrap().to_owned(), created.text, listed.text)
        })
    };

    let (name, created, listed) = scenario();

    assert!(name.starts_with("run-") && name.len() == 9);
    assert_eq!(scenario(), (name, created, listed));
}

/// Facts §1: a dry run stores nothing.
#[test]
fn a_dry_run_answers_without_a_version() {
    run(async {
        let bench = Bench::new();

        let dry = bench.post(&format!("{MAPS}?dryRun=All"), config_map("a")).await;

        assert_eq!(dry.code, 201);
        assert!(dry.json()["metadata"].get("resourceVersion").is_none());
        assert!(bench.sim.object("configmaps", "default", "a").is_none());
    });
}

/// Facts §4: conflicts.
#[test]
fn stale_versions_and_foreign_uids_conflict() {
    run(async {
        let bench = Bench::new();
        let stored = bench.post(MAPS, config_map("a")).await.json();
        let with = |field: &str, text: &str| {
            let mut object = stored.clone();
            object["metadata"][field] = text.into();
            object["data"]["a"] = "c".into();
            object
        };
        let path = format!("{MAPS}/a");

        let stale = bench.put(&path, with("resourceVersion", "1")).await;
        let foreign = bench.put(&path, with("uid", "x")).await;
        let free = bench.put(&path, with("resourceVersion", "")).await;
        let missing = bench.put(&format!("{MAPS}/b"), config_map("b")).await;
        let name = bench.put(&path, config_map("b")).await;

        assert!(stale.message().contains("the object has been modified"));
        assert!(foreign.message().contains("Precondition failed: UID in precondition: x, UID in object meta:"));
        assert_eq!((stale.code, foreign.code, free.code, missing.code, name.code), (409, 409, 200, 404, 400));
    });
}

/// Facts §4: a write that changes nothing takes no version and makes no event.
#[test]
fn a_write_without_a_change_keeps_the_version() {
    run(async {
        let bench = Bench::new();
        let stored = bench.post(MAPS, config_map("a")).await.json();
        let path = format!("{MAPS}/a");
        let before = bench.sim.revision();

        let put = bench.put(&path, stored.clone()).await.json();
        let bare = bench.put(&path, config_map("a")).await.json();
        let patched = bench.merge(&path, json!({})).await.json();

        assert_eq!(bench.sim.revision(), before);
        for answer in [put, bare, patched] {
            assert_eq!(answer["metadata"]["resourceVersion"], stored["metadata"]["resourceVersion"]);
        }
    });
}

/// Facts §4: the status is a subresource; custom kinds take no metadata there.
#[test]
fn the_status_is_written_through_its_own_path_only() {
    run(async {
        let bench = Bench::new();
        bench.sim.put(definition()).unwrap();
        let created = bench.post(THINGS, thing("t")).await.json();
        let path = format!("{THINGS}/t");

        let main = bench.merge(&path, json!({"spec": {"n": 2}, "status": {"x": 1}})).await.json();
        let part = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"n": 3}, "status": {"x": 2}});
        let status = bench.merge(&format!("{path}/status"), part).await.json();

        assert_eq!(created["metadata"]["generation"], 1);
        assert_eq!((&main["metadata"]["generation"], &main["status"]), (&json!(2), &Value::Null));
        assert_eq!((&status["spec"]["n"], &status["status"]["x"]), (&json!(2), &json!(2)));
        assert_eq!(status["metadata"]["generation"], 2);
        assert!(status["metadata"].get("labels").is_none());
    });
}

/// Facts §4: custom kinds are not replaced without a version.
#[test]
fn custom_objects_are_replaced_with_a_version_only() {
    run(async {
        let bench = Bench::new();
        bench.sim.put(definition()).unwrap();
        bench.post(THINGS, thing("t")).await;

        let refused = bench.put(&format!("{THINGS}/t"), thing("t")).await;

        assert_eq!(refused.code, 422);
        assert!(
            refused.message().ends_with("metadata.resourceVersion: Invalid value: 0: must be specified for an update")
        );
    });
}

/// Facts §6: finalizers hold an object; the removal of the last one removes it.
#[test]
fn an_object_with_finalizers_goes_when_the_last_one_is_removed() {
    run(async {
        let bench = Bench::new();
        let mut object = config_map("a");
        object["metadata"]["finalizers"] = json!(["x.io/y"]);
        let created = bench.post(MAPS, object).await.json();
        let path = format!("{MAPS}/a");

        let held = bench.delete(&path, json!({})).await.json();
        let again = bench.delete(&path, json!({})).await.json();
        let mut last = held.clone();
        last["metadata"]["finalizers"] = json!([]);
        let gone = bench.put(&path, last).await;

        assert_eq!(held["metadata"]["deletionGracePeriodSeconds"], 0);
        assert_ne!(held["metadata"]["resourceVersion"], created["metadata"]["resourceVersion"]);
        assert_eq!(again, held);
        assert_eq!(gone.code, 200);
        assert_eq!(gone.json()["metadata"]["resourceVersion"], held["metadata"]["resourceVersion"]);
        assert_eq!(bench.get(&path).await.code, 404);
    });
}

/// Facts §6: preconditions.
#[test]
fn deletions_check_their_preconditions() {
    run(async {
        let bench = Bench::new();
        let stored = bench.post(MAPS, config_map("a")).await.json();
        let path = format!("{MAPS}/a");

        let uid = bench.delete(&path, json!({"preconditions": {"uid": "1", "resourceVersion": "1"}})).await;
        let version = bench.delete(&path, json!({"preconditions": {"resourceVersion": "1"}})).await;
        let right = json!({"preconditions": {
            "uid": stored["metadata"]["uid"], "resourceVersion": stored["metadata"]["resourceVersion"],
        }});
        let gone = bench.delete(&path, right).await;

        assert!(uid.message().contains("the UID in the precondition (1) does not match the UID in record"));
        assert!(version.message().contains("the ResourceVersion in the precondition (1)"));
        assert_eq!((uid.code, version.code, gone.code), (409, 409, 200));
        assert_eq!(gone.json()["status"], "Success");
        assert_eq!(gone.json()["details"]["kind"], "configmaps");
    });
}

/// Facts §6: the answer shows the collection as it was.
#[test]
fn a_collection_is_deleted_by_its_selector() {
    run(async {
        let bench = Bench::new();
        let mut marked = config_map("a");
        marked["metadata"]["labels"] = json!({"x": "y"});
        bench.sim.put(marked).unwrap();
        bench.config_map("b");

        let deleted = bench.delete(&format!("{MAPS}?labelSelector=x%3Dy"), json!({})).await;
        let everywhere = bench.delete("/api/v1/configmaps", json!({})).await;

        assert_eq!(deleted.json()["items"].as_array().unwrap().len(), 1);
        assert_eq!(bench.sim.objects("configmaps").len(), 1);
        assert_eq!(everywhere.code, 405);
    });
}

/// Facts §8: tokens and their reviews.
#[test]
fn tokens_are_issued_bound_and_reviewed() {
    run(async {
        let bench = Bench::new();
        let account =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa", "namespace": "default"}});
        let account = bench.post("/api/v1/namespaces/default/serviceaccounts", account).await.json();
        let path = "/api/v1/namespaces/default/serviceaccounts/sa/token";

        let short = bench.post(path, json!({"spec": {"expirationSeconds": 599}})).await;
        let issued = bench.post(path, json!({})).await;
        let token = issued.json()["status"]["token"].clone();
        let review = json!({"spec": {"token": token}});
        let good = bench.post("/apis/authentication.k8s.io/v1/tokenreviews", review.clone()).await.json();
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let late = bench.post("/apis/authentication.k8s.io/v1/tokenreviews", review).await.json();

        assert_eq!((short.code, issued.code), (422, 201));
        assert_eq!(issued.json()["metadata"]["uid"], account["metadata"]["uid"]);
        assert_eq!(issued.json()["status"]["expirationTimestamp"], "2026-01-01T01:00:00Z");
        assert_eq!(good["status"]["user"]["username"], "system:serviceaccount:default:sa");
        assert!(late["status"].get("authenticated").is_none());
    });
}

#[test]
fn bodies_of_the_wrong_shape_are_refused() {
    run(async {
        let bench = Bench::new();
        bench.config_map("a");
        let namespace = |body: Value| {
            json!({"metadata": {"name": "n"}})
                .as_object()
                .cloned()
                .map(|mut map| {
                    map.extend(body.as_object().cloned().unwrap());
                    Value::Object(map)
                })
                .unwrap()
        };
        let bodies = [
            json!([]),
            json!("text"),
            json!({"metadata": "text"}),
            json!({"metadata": {"name": "n", "labels": []}}),
            json!({"metadata": {"name": "n", "labels": {"a": 1}}}),
            json!({"metadata": {"name": "n", "finalizers": {}}}),
            namespace(json!({"spec": "text"})),
            namespace(json!({"spec": []})),
        ];
        for body in bodies {
            let posted = bench.post("/api/v1/namespaces", body.clone()).await;
            assert_eq!(posted.code, 400, "{body}");
        }
        for patch in
            [json!({"metadata": "text"}), json!({"metadata": {"labels": {"a": {}}}}), json!({"kind": "Secret"})]
        {
            let patched = bench.merge(&format!("{MAPS}/a"), patch.clone()).await;
            assert_eq!(patched.code, 422, "{patch}");
        }
        let status = json!({"status": "text"});
        assert_eq!(bench.merge("/api/v1/namespaces/default/status", status).await.code, 422);
        assert_eq!(bench.delete(&format!("{MAPS}/a"), json!({"preconditions": 7})).await.code, 400);
    });
}

/// As on a real API server, the writer owns what admission adds, and an update that admission makes equal to the stored
/// object changes nothing (facts §4).
#[test]
fn mutations_are_part_of_the_write_they_change() {
    run(async {
        let bench = Bench::new();
        bench.post(MAPS, config_map("a")).await;
        bench.sim.set_mutation(|reviewed, object| {
            assert_eq!((reviewed.operation, reviewed.resource), ("UPDATE", "configmaps"));
            assert_eq!(reviewed.namespace.unwrap()["metadata"]["name"], "default");
            object["data"]["added"] = "x".into();
        });
        let path = format!("{MAPS}/a");

        let first = bench.put(&path, config_map("a")).await.json();
        let second = bench.put(&path, config_map("a")).await.json();

        assert_eq!(first["data"]["added"], "x");
        let added = &first["metadata"]["managedFields"][0]["fieldsV1"]["f:data"]["f:added"];
        assert!(added.is_object(), "{first}");
        assert_eq!(first["metadata"]["resourceVersion"], second["metadata"]["resourceVersion"]);
    });
}

/// facts §10: a test's edit has an owner, as on a server; the status is written by itself.
#[test]
fn edits_of_fixtures_belong_to_the_editor() {
    run(async {
        let bench = Bench::new();
        bench.post(MAPS, config_map("a")).await;

        bench.sim.edit("configmaps", "default", "a", |live| live["data"]["edited"] = "x".into());

        let live = bench.sim.object("configmaps", "default", "a").unwrap();
        let entries = live["metadata"]["managedFields"].as_array().unwrap();
        let edited: Vec<_> =
            entries.iter().filter(|entry| entry["fieldsV1"]["f:data"]["f:edited"].is_object()).collect();
        assert_eq!(edited.len(), 1, "{live}");
        assert_eq!(edited[0]["manager"], crate::EDITOR);
    });
}
