use super::*;

/// Facts §3: without a version a watch starts with the present objects, with a version with later changes only.
#[test]
fn watch_starts_with_present_objects_or_after_its_version() {
    run(async {
        let bench = Bench::new();
        bench.config_map("b");
        bench.config_map("a");
        let version = bench.sim.revision();

        let mut all = bench.watch(&format!("{MAPS}?watch=1")).await;
        bench.config_map("c");
        let mut later = bench.watch(&format!("{MAPS}?watch=1&resourceVersion={version}")).await;
        bench.sim.remove("configmaps", "default", "a");

        for expected in ["ADDED a", "ADDED b", "ADDED c", "DELETED a", "nothing"] {
            assert_eq!(all.brief().await, expected);
        }
        for expected in ["ADDED c", "DELETED a", "nothing"] {
            assert_eq!(later.brief().await, expected);
        }
    });
}

/// Facts §3: an object that leaves the selection appears as deleted.
#[test]
fn leaving_a_selection_is_a_deletion_with_the_last_matching_content() {
    run(async {
        let bench = Bench::new();
        let mut watch = bench.watch(&format!("{MAPS}?watch=1&labelSelector=x%3D1")).await;
        bench.post(MAPS, config_map("a")).await;
        let path = format!("{MAPS}/a");

        bench.merge(&path, json!({"metadata": {"labels": {"x": "1"}}})).await;
        let changed =
            bench.merge(&path, json!({"metadata": {"labels": {"x": "2"}}, "data": {"a": "new"}})).await.json();
        let added = watch.next().await.unwrap();
        let deleted = watch.next().await.unwrap();

        assert_eq!(added["type"], "ADDED");
        assert_eq!(deleted["type"], "DELETED");
        assert_eq!(deleted["object"]["metadata"]["labels"]["x"], "1");
        assert_eq!(deleted["object"]["data"]["a"], "b");
        assert_eq!(deleted["object"]["metadata"]["resourceVersion"], changed["metadata"]["resourceVersion"]);
        assert!(watch.next().await.is_none());
    });
}

/// Facts §3: the removal of the last finalizer appears as the deletion of the state before it.
#[test]
fn the_last_finalizer_is_still_in_the_deletion_event() {
    run(async {
        let bench = Bench::new();
        let mut object = config_map("a");
        object["metadata"]["finalizers"] = json!(["x.io/y"]);
        bench.post(MAPS, object).await;
        let held = bench.delete(&format!("{MAPS}/a"), json!({})).await.json();
        let version = held["metadata"]["resourceVersion"].as_str().unwrap();
        let mut watch = bench.watch(&format!("{MAPS}?watch=1&resourceVersion={version}")).await;

        bench.merge(&format!("{MAPS}/a"), json!({"metadata": {"finalizers": null}, "data": {"a": "c"}})).await;
        let event = watch.next().await.unwrap();

        assert_eq!(event["type"], "DELETED");
        assert_eq!(event["object"]["metadata"]["finalizers"], json!(["x.io/y"]));
        assert_eq!(event["object"]["data"]["a"], "b");
        assert_ne!(event["object"]["metadata"]["resourceVersion"], version);
    });
}

/// Facts §3: bookmarks come each minute with the version of all kinds, and before the end.
#[test]
fn bookmarks_come_each_minute_and_before_the_timeout() {
    run(async {
        let bench = Bench::new();
        let path = format!("{MAPS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=90&resourceVersion=1");
        let mut watch = bench.watch(&path).await;
        let start = tokio::time::Instant::now();
        bench
            .sim
            .put(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}}))
            .unwrap();

        let mut times = Vec::new();
        while let Some(line) = watch.lines.next().await {
            let event: Value = serde_json::from_str(&line.unwrap()).unwrap();
            assert_eq!(event["type"], "BOOKMARK");
            assert_eq!(event["object"]["metadata"], json!({"resourceVersion": bench.sim.revision().to_string()}));
            times.push(start.elapsed().as_secs());
        }

        assert_eq!(times, [60, 88]);
        assert_eq!(start.elapsed().as_secs(), 90);
        assert_eq!(bench.sim.watch_count(), 0);
    });
}

/// Facts §3: a list as a watch.
#[test]
fn initial_events_end_with_a_marked_bookmark() {
    run(async {
        let bench = Bench::new();
        bench.config_map("a");
        let parameters = "watch=1&sendInitialEvents=true&allowWatchBookmarks=true";

        let refused = bench.get(&format!("{MAPS}?{parameters}")).await;
        let mut watch = bench.watch(&format!("{MAPS}?{parameters}&resourceVersionMatch=NotOlderThan")).await;

        assert_eq!(refused.code, 422);
        assert_eq!(watch.brief().await, "ADDED a");
        let end = watch.next().await.unwrap();
        assert_eq!(end["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    });
}

/// Facts §3: an expired version is an event, not a status.
#[test]
fn watch_reports_an_expired_version_in_the_stream() {
    run(async {
        let bench = Bench::new();
        let old = bench.sim.revision();
        bench.config_map("a");
        bench.sim.compact();

        let mut watch = bench.watch(&format!("{MAPS}?watch=1&resourceVersion={old}")).await;
        let event = watch.next().await.unwrap();

        assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
        assert!(watch.lines.next().await.is_none());
    });
}

/// Facts §3: watches of metadata, and the trap of the list form.
#[test]
fn watches_can_be_of_metadata() {
    run(async {
        let bench = Bench::new();
        bench.config_map("a");
        let partial = |form: &str| format!("application/json;as={form};g=meta.k8s.io;v=v1");
        let path = format!("{MAPS}?watch=1");

        let mut metadata = bench.watch_as(&path, &partial("PartialObjectMetadata")).await;
        let mut trap = bench.watch_as(&path, &partial("PartialObjectMetadataList")).await;

        let event = metadata.next().await.unwrap();
        assert_eq!(event["object"]["kind"], "PartialObjectMetadata");
        assert!(event["object"].get("data").is_none());
        assert!(trap.lines.next().await.is_none());
    });
}

/// Facts §3: a watch that is not read is ended; queued events are still delivered.
#[test]
fn watch_that_is_not_read_is_ended() {
    run(async {
        let bench = Bench::new();
        let mut watch = bench.watch(&format!("{MAPS}?watch=1&resourceVersion={}", bench.sim.revision())).await;

        for _ in 0..17_000 {
            bench.config_map("a");
        }
        let mut events = 0;
        while watch.lines.next().await.is_some() {
            events += 1;
        }

        assert_eq!(events, 16_384);
        assert_eq!(bench.sim.watch_count(), 0);
    });
}

#[test]
fn a_list_and_the_changes_after_it_make_the_present_state() {
    for seed in 0..20 {
        run(async {
            let bench = Bench::new();
            let mut random = fastrand::Rng::with_seed(seed);
            let mut act = |bench: &Bench| {
                let name = format!("m{}", random.u8(..8));
                if random.u8(..4) == 0 {
                    bench.sim.remove("configmaps", "default", &name);
                } else {
                    let mut object = config_map(&name);
                    object["metadata"]["labels"] = json!({"x": random.u8(..3).to_string()});
                    bench.sim.put(object).unwrap();
                }
            };
            for _ in 0..30 {
                act(&bench);
            }
            let selector = "labelSelector=x%21%3D0";
            let list = bench.get(&format!("{MAPS}?{selector}")).await.json();
            let version = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
            for _ in 0..30 {
                act(&bench);
            }
            let mut watch = bench.watch(&format!("{MAPS}?watch=1&{selector}&resourceVersion={version}")).await;
            for _ in 0..30 {
                act(&bench);
            }

            let key = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
            let slim = |object: &Value| object["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
            let items = list["items"].as_array().unwrap();
            let mut cache: BTreeMap<_, _> = items.iter().map(|item| (key(item), slim(item))).collect();
            while let Some(event) = watch.next().await {
                let object = &event["object"];
                let is_known = cache.contains_key(&key(object));
                match event["type"].as_str().unwrap() {
                    "ADDED" => assert!(!is_known, "seed {seed}"),
                    _ => assert!(is_known, "seed {seed}"),
                }
                match event["type"].as_str().unwrap() {
                    "DELETED" => cache.remove(&key(object)),
                    _ => cache.insert(key(object), slim(object)),
                };
            }
            let now = bench.get(&format!("{MAPS}?{selector}")).await.json();
            let now: BTreeMap<_, _> =
                now["items"].as_array().unwrap().iter().map(|item| (key(item), slim(item))).collect();
            assert_eq!(cache, now, "seed {seed}");
        });
    }
}
