use super::*;

/// Facts §2: pages show the state of the first one.
#[test]
fn a_paged_list_shows_the_state_of_its_first_page() {
    run(async {
        let bench = Bench::new();
        for name in ["a", "b", "c", "d", "e", "f", "g"] {
            bench.config_map(name);
        }

        let first = bench.get(&format!("{MAPS}?limit=3")).await.json();
        bench.sim.remove("configmaps", "default", "d");
        bench.config_map("aa");
        let token = first["metadata"]["continue"].as_str().unwrap();
        let second = bench.get(&format!("{MAPS}?limit=3&continue={token}")).await.json();
        let token = second["metadata"]["continue"].as_str().unwrap();
        let third = bench.get(&format!("{MAPS}?limit=3&continue={token}")).await.json();

        let names = |list: &Value| -> Vec<String> {
            list["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["metadata"]["name"].as_str().unwrap().into())
                .collect()
        };
        assert_eq!(first["metadata"]["remainingItemCount"], 4);
        assert_eq!(names(&first), ["a", "b", "c"]);
        assert_eq!(names(&second), ["d", "e", "f"]);
        assert_eq!(names(&third), ["g"]);
        assert!(third["metadata"].get("continue").is_none());
        assert_eq!(third["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
        assert!(first["items"][0].get("kind").is_none(), "built-in items have no type");
    });
}

/// Facts §2: the answer to an expired token has a token that continues.
#[test]
fn an_expired_token_comes_back_with_one_for_the_inconsistent_rest() {
    run(async {
        let bench = Bench::new();
        for name in ["a", "b", "c"] {
            bench.config_map(name);
        }
        let first = bench.get(&format!("{MAPS}?limit=1")).await.json();
        bench.config_map("d");
        bench.sim.compact();

        let token = first["metadata"]["continue"].as_str().unwrap();
        let expired = bench.get(&format!("{MAPS}?limit=1&continue={token}")).await;
        let token = expired.json()["metadata"]["continue"].as_str().unwrap().to_owned();
        let rest = bench.get(&format!("{MAPS}?continue={token}")).await.json();

        assert_eq!((expired.code, expired.json()["reason"].as_str()), (410, Some("Expired")));
        assert_eq!(rest["items"].as_array().unwrap().len(), 3);
    });
}

/// Facts §2: parameters that exclude each other.
#[test]
fn versions_and_tokens_follow_the_rules() {
    run(async {
        let bench = Bench::new();
        bench.config_map("a");
        let old = bench.sim.revision();
        bench.config_map("b");

        let exact = bench.get(&format!("{MAPS}?resourceVersion={old}&resourceVersionMatch=Exact")).await;
        let newest = bench.get(&format!("{MAPS}?resourceVersion={old}")).await;
        let text = bench.get(&format!("{MAPS}?resourceVersion=x")).await;
        let before = tokio::time::Instant::now();
        let future = bench.get(&format!("{MAPS}?resourceVersion=9999")).await;

        assert_eq!(exact.json()["items"].as_array().unwrap().len(), 1);
        assert_eq!(newest.json()["items"].as_array().unwrap().len(), 2);
        assert_eq!(text.code, 400);
        assert_eq!(future.code, 504);
        assert_eq!(future.headers["retry-after"], "1");
        assert_eq!(before.elapsed(), Duration::from_secs(3));
        let zero = bench.get(&format!("{MAPS}?resourceVersion=0&limit=1")).await;
        assert_eq!(zero.json()["items"].as_array().unwrap().len(), 2, "the limit is ignored");
    });
}

/// Facts §2: metadata only.
#[test]
fn metadata_lists_have_typed_items_and_a_single_one_is_not_acceptable_for_a_list() {
    run(async {
        let bench = Bench::new();
        bench.config_map("a");
        let partial = |form: &str| format!("application/json;as={form};g=meta.k8s.io;v=v1");

        let one = bench.get_as(&format!("{MAPS}/a"), &partial("PartialObjectMetadata")).await.json();
        let list = bench.get_as(MAPS, &partial("PartialObjectMetadataList")).await.json();
        let wrong = bench.get_as(MAPS, &partial("PartialObjectMetadata")).await;

        assert_eq!(one["kind"], "PartialObjectMetadata");
        assert!(one.get("data").is_none());
        assert_eq!(list["kind"], "PartialObjectMetadataList");
        assert_eq!(list["items"][0]["kind"], "PartialObjectMetadata");
        assert_eq!(wrong.code, 406);
        assert!(wrong.message().ends_with("the requested object is a list (*core.ConfigMapList)"));
    });
}

/// Facts §2: paths that are not served.
#[test]
fn unknown_paths_are_answered_as_the_real_server_does() {
    run(async {
        let bench = Bench::new();

        let missing = bench.get(&format!("{MAPS}/x")).await;
        let resource = bench.get("/api/v1/namespaces/default/nonsense").await;
        let group = bench.get("/apis/no.io/v1/things").await;
        let method = bench.post("/api/v1/configmaps", config_map("a")).await;

        assert_eq!((missing.code, missing.message().as_str()), (404, "configmaps \"x\" not found"));
        assert_eq!(
            (resource.code, resource.message().as_str()),
            (404, "the server could not find the requested resource")
        );
        assert_eq!((group.code, group.text.as_str()), (404, "404 page not found\n"));
        assert_eq!(method.code, 405);
    });
}

/// Facts §7: the aggregated document has an entity tag.
#[test]
fn discovery_is_not_sent_again_while_it_has_not_changed() {
    run(async {
        let bench = Bench::new();
        let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

        let first = bench.get_as("/apis", accept).await;
        let etag = first.headers["etag"].to_str().unwrap();
        let headers = [("accept", accept), ("if-none-match", etag)];
        let second = bench.send("GET", "/apis", &headers, Vec::new()).await.unwrap();
        bench.sim.put(definition()).unwrap();
        let third = bench.send("GET", "/apis", &headers, Vec::new()).await.unwrap();

        assert_eq!(first.json()["kind"], "APIGroupDiscoveryList");
        assert_eq!((second.code, second.text.as_str()), (304, ""));
        assert_eq!(third.code, 200);
        assert!(third.text.contains("g.io"));
    });
}

/// Facts §2, §7: an APIService whose server is missing.
#[test]
fn a_group_without_its_server_is_stale_and_unavailable() {
    run(async {
        let bench = Bench::new();
        let service = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1.dead.io"},
            "spec": {"group": "dead.io", "version": "v1", "service": {"name": "s", "namespace": "default"},
                "groupPriorityMinimum": 1, "versionPriority": 1},
        });
        bench.sim.put(service).unwrap();

        let answer = bench.get("/apis/dead.io/v1/things").await;
        let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let aggregated = bench.get_as("/apis", accept).await;

        assert_eq!((answer.code, answer.text.as_str()), (503, "service unavailable\n"));
        assert!(answer.headers.get("retry-after").is_none());
        assert!(aggregated.text.contains("Stale"));
    });
}

#[test]
fn the_client_library_discovers_and_reads() {
    run(async {
        let bench = Bench::new();
        bench.sim.put(definition()).unwrap();
        bench.sim.put(thing("t")).unwrap();

        let discovery = kube::Discovery::new(bench.client.clone()).run_aggregated().await.unwrap();
        let kind = kube::core::GroupVersionKind::gvk("g.io", "v1", "Thing");
        let (resource, _) = discovery.resolve_gvk(&kind).unwrap();
        let api: kube::Api<kube::core::DynamicObject> =
            kube::Api::namespaced_with(bench.client.clone(), "default", &resource);
        let listed = api.list(&kube::api::ListParams::default()).await.unwrap();

        assert_eq!(listed.items[0].data["spec"]["n"], 1);
        assert_eq!(bench.client.apiserver_version().await.unwrap().major, "1");
    });
}
