use serde_json::{Value, json};
use sim::{Fault, Seen};

use super::*;
use crate::{
    api::resources::side::Side,
    commands::{OK, connect::read_only, garbage::garbage},
};

const OLD: &str = "2025-12-31T20:00:00Z";

fn collectable(created: &str) -> Value {
    let labels = json!({ "resources.gardener.cloud/garbage-collectable-reference": "true" });
    json!({ "metadata": { "labels": labels, "creationTimestamp": created } })
}

fn put(sim: &Sim, kind: &str, name: &str, mut object: Value) {
    (object["apiVersion"], object["kind"]) = (json!("v1"), json!(kind));
    (object["metadata"]["namespace"], object["metadata"]["name"]) = (json!("ns"), json!(name));
    sim.put(object).unwrap();
}

/// spec 33, better 10
#[tokio::test(start_paused = true)]
async fn garbage_is_shown_and_nothing_is_written() {
    let (sim, clock) = cluster_and_clock();
    put(&sim, "ConfigMap", "unused", collectable(OLD));
    put(&sim, "Secret", "used", collectable(OLD));
    put(&sim, "Secret", "young", collectable("2025-12-31T23:59:00Z"));
    let annotations = json!({ "reference.resources.gardener.cloud/secret-x": "used" });
    let spec = json!({ "containers": [{ "name": "c", "image": "i" }] });
    put(&sim, "Pod", "p", json!({ "metadata": { "annotations": annotations }, "spec": spec }));
    sim.clear_requests();

    let cluster = read_only(sim.client(), Side::Target, clock.clone(), Random::seeded(1));
    let said = garbage(&cluster, clock.wall(), None).await.unwrap();

    assert_eq!(said.code, OK);
    let rows: Vec<Vec<&str>> = said.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows, [["NAMESPACE", "KIND", "AGE", "NAME"], ["ns", "ConfigMap", "4h", "unused"]]);
    let summary = "would be deleted: 1, referred to: 1, less than 10 minutes old: 1, being deleted already: 0";
    assert_eq!(said.remarks, [summary]);
    let said = garbage(&cluster, clock.wall(), Some(&"json".parse().unwrap())).await.unwrap();
    let json: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (&json["objects"][0]["name"], &json["referredTo"], &json["young"]),
        (&json!("unused"), &json!(1), &json!(1))
    );
    assert!(sim.requests().iter().all(|request| ["list", "get"].contains(&request.info.verb.as_str())));
}

/// spec 33 T5, T6: a proxy that answers everything else with 404 proves nothing
#[tokio::test(start_paused = true)]
async fn garbage_is_not_shown_when_a_list_fails() {
    let not_found = || Seen::status(404, "NotFound", "the server could not find the requested resource");
    for (refused, expected) in [
        ("secrets", "failed listing secrets: the server could not find the requested resource"),
        (
            "",
            "failed listing objects of gvk apps/v1, Kind=DeploymentList: unable to retrieve the complete list of server \
             APIs: apps/v1: the API server is not ready (404)",
        ),
    ] {
        let (sim, clock) = cluster_and_clock();
        put(&sim, "ConfigMap", "unused", collectable(OLD));
        sim.set_faults(move |info| match info.resource.as_str() {
            "secrets" | "configmaps" if refused != info.resource => Fault::None,
            _ => Fault::FailBefore(not_found()),
        });

        let cluster = read_only(sim.client(), Side::Target, clock.clone(), Random::seeded(1));
        let error = garbage(&cluster, clock.wall(), None).await.unwrap_err();

        assert_eq!(error.to_string(), format!("{expected} — it is not known what would be deleted"));
    }
}
