use super::*;

/// Facts §7: a definition is served a moment after its creation, and its objects go with it.
#[test]
fn definitions_come_into_effect_and_go() {
    run(async {
        let bench = Bench::new();
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

        bench.post(path, definition()).await;
        let early = bench.get(THINGS).await.code;
        tokio::time::sleep(Duration::from_millis(50)).await;
        let created = bench.post(THINGS, thing("t")).await.code;
        let deleted = bench.delete(&format!("{path}/things.g.io"), json!({})).await.json();
        let refused = bench.post(THINGS, thing("u")).await;
        tokio::time::sleep(Duration::from_secs(6)).await;

        assert_eq!((early, created, refused.code), (404, 201, 403));
        assert_eq!(deleted["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
        assert!(bench.sim.object("customresourcedefinitions.apiextensions.k8s.io", "", "things.g.io").is_none());
        assert_eq!(bench.get(THINGS).await.text, "404 page not found\n");
    });
}

/// Facts §6: a namespace is emptied after five seconds; finalizers hold it, and it says so.
#[test]
fn a_namespace_is_emptied_and_waits_for_finalizers() {
    run(async {
        let bench = Bench::new();
        let in_namespace = |name: &str| {
            let mut object = config_map(name);
            object["metadata"]["namespace"] = "ns".into();
            object
        };
        let mut held = in_namespace("held");
        held["metadata"]["finalizers"] = json!(["x.io/y"]);
        bench.sim.put(held).unwrap();
        bench.sim.put(in_namespace("free")).unwrap();

        let deleted = bench.delete("/api/v1/namespaces/ns", json!({})).await.json();
        let late = bench.post("/api/v1/namespaces/ns/configmaps", in_namespace("late")).await;
        tokio::time::sleep(Duration::from_secs(6)).await;
        let waiting = bench.sim.object("namespaces", "", "ns").unwrap();
        bench.merge("/api/v1/namespaces/ns/configmaps/held", json!({"metadata": {"finalizers": null}})).await;
        tokio::time::sleep(Duration::from_secs(6)).await;

        assert_eq!(deleted["status"]["phase"], "Terminating");
        assert_eq!(
            (late.code, late.json()["details"]["causes"][0]["reason"].as_str()),
            (403, Some("NamespaceTerminating"))
        );
        let text = waiting["status"]["conditions"].to_string();
        assert!(text.contains("Some resources are remaining: configmaps. has 1 resource instances"), "{text}");
        assert!(bench.sim.object("namespaces", "", "ns").is_none());
    });
}

fn owned(name: &str, owner: &Value, blocks: bool) -> Value {
    let mut object = config_map(name);
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": blocks,
    }]);
    object
}

/// Facts §6: background, foreground and orphan.
#[test]
fn dependents_follow_their_owner_as_it_was_asked() {
    for (policy, is_kept) in [("Background", false), ("Foreground", false), ("Orphan", true)] {
        run(async {
            let bench = Bench::new();
            let owner = bench.post(MAPS, config_map("owner")).await.json();
            bench.post(MAPS, owned("dependent", &owner, true)).await;

            bench.delete(&format!("{MAPS}/owner"), json!({"propagationPolicy": policy})).await;
            let waits = bench.sim.object("configmaps", "default", "owner").is_some();
            tokio::time::sleep(Duration::from_secs(1)).await;

            assert_eq!(waits, policy != "Background", "{policy}");
            assert!(bench.sim.object("configmaps", "default", "owner").is_none(), "{policy}");
            let dependent = bench.sim.object("configmaps", "default", "dependent");
            assert_eq!(dependent.is_some(), is_kept, "{policy}");
            assert!(dependent.is_none_or(|object| object["metadata"].get("ownerReferences").is_none()), "{policy}");
        });
    }
}

/// Facts §6: none of that happens without kube-controller-manager.
#[test]
fn controllers_off_means_that_nothing_happens_by_itself() {
    run(async {
        let bench = Bench::with(SimOptions { behaviour: Behaviour::without_controllers(), ..options() });
        let owner = bench.post(MAPS, config_map("owner")).await.json();
        bench.post(MAPS, owned("dependent", &owner, true)).await;
        bench.sim.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})).unwrap();

        bench.delete(&format!("{MAPS}/owner"), json!({})).await;
        bench.delete("/api/v1/namespaces/ns", json!({})).await;
        tokio::time::sleep(Duration::from_secs(60)).await;

        assert!(bench.sim.object("configmaps", "default", "dependent").is_some());
        assert!(bench.sim.object("namespaces", "", "ns").is_some());
    });
}
