use std::ffi::OsString;

use cluster::Resource;
use serde_json::{Value, json};

use super::*;
use crate::{
    api::kinds,
    cli::controller_manager::{Command, Tool},
    commands::{DIFFERENT, OK, extensions::extensions},
};

const GARDEN: [&Resource; 6] = [
    &kinds::SHOOT,
    &kinds::SEED,
    &kinds::CONTROLLER_REGISTRATION,
    &kinds::CONTROLLER_INSTALLATION,
    &kinds::BACKUP_BUCKET,
    &kinds::BACKUP_ENTRY,
];

fn garden() -> (Sim, Clock) {
    let (sim, clock) = cluster_and_clock();
    for kind in GARDEN {
        let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let version =
            json!({ "name": &*kind.version, "served": true, "storage": true, "schema": { "openAPIV3Schema": any } });
        let names = json!({ "kind": &*kind.kind, "listKind": format!("{}List", kind.kind), "plural": &*kind.plural,
            "singular": kind.kind.to_lowercase() });
        sim.put(json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": format!("{}.{}", kind.plural, kind.group) },
            "spec": { "group": &*kind.group, "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
                "versions": [version], "names": names },
        }))
        .unwrap();
    }
    (sim, clock)
}

fn put(sim: &Sim, kind: &Resource, name: &str, fields: Value) {
    let mut object = fields;
    (object["apiVersion"], object["kind"]) = (kind.api_version().into(), (*kind.kind).into());
    object["metadata"]["name"] = name.into();
    if kind.namespaced {
        object["metadata"]["namespace"] = "ns".into();
    }
    sim.put(object).unwrap();
}

/// A Seed with two Shoots: `rp` is installed, `re` is not yet, and nothing serves `Network/n`.
fn seed() -> (Sim, Clock) {
    let (sim, clock) = garden();
    put(&sim, &kinds::SEED, "s1", json!({ "spec": { "provider": { "type": "p" } } }));
    let resources = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(kind, of_type)| json!({ "kind": kind, "type": of_type })).collect::<Vec<_>>()
    };
    let provider = resources(&[("ControlPlane", "p"), ("Infrastructure", "p"), ("Worker", "p")]);
    put(&sim, &kinds::CONTROLLER_REGISTRATION, "rp", json!({ "spec": { "resources": provider } }));
    let extension = resources(&[("Extension", "e")]);
    put(&sim, &kinds::CONTROLLER_REGISTRATION, "re", json!({ "spec": { "resources": extension } }));
    let spec = json!({ "registrationRef": { "name": "rp" }, "seedRef": { "name": "s1" } });
    put(&sim, &kinds::CONTROLLER_INSTALLATION, "rp-1", json!({ "spec": spec }));
    for name in ["a", "b"] {
        let spec = json!({ "seedName": "s1", "extensions": [{ "type": "e" }] });
        put(&sim, &kinds::SHOOT, name, json!({ "spec": spec }));
    }
    (sim, clock)
}

async fn said((sim, clock): &(Sim, Clock), words: &str) -> Said {
    let arguments: Vec<OsString> = ["extensions"].into_iter().chain(words.split(' ')).map(OsString::from).collect();
    let options = match Command::parse_from(&arguments, &|_| None) {
        Ok(Command::Tool(Tool::Extensions(options))) => options,
        other => panic!("{words}: {other:?}"),
    };
    sim.clear_requests();
    let said = extensions(sim.client(), (clock.clone(), Random::seeded(1)), &options, false).await.unwrap();
    for request in sim.requests() {
        assert!(["get", "list"].contains(&request.info.verb.as_str()), "{}", request.info.verb);
    }
    said
}

fn table(said: &Said) -> Vec<String> {
    said.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[tokio::test(start_paused = true)]
async fn extensions_of_a_seed_are_shown_with_their_reasons() {
    let said = said(&seed(), "s1").await;

    let expected = [
        "Seed: s1",
        "",
        "EXTENSION STATE NEEDS BY",
        "re not installed Extension/e 2 Shoots: ns/a, ns/b",
        "rp installed ControlPlane/p Seed spec.provider.type, for its Shoots; Seed spec.provider.type",
        "Infrastructure/p, Worker/p Seed spec.provider.type",
    ];
    assert_eq!((table(&said), said.code, said.remarks), (expected.map(str::to_owned).to_vec(), OK, vec![]));
}

#[tokio::test(start_paused = true)]
async fn extensions_that_nobody_registered_are_errors() {
    let garden = seed();
    put(&garden.0, &kinds::SHOOT, "c", json!({ "spec": { "seedName": "s1", "extensions": [{ "type": "none" }] } }));

    let said = said(&garden, "s1 -o json").await;

    let json: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(json["withoutRegistration"], json!([{ "needs": "Extension/none", "by": "Shoot ns/c" }]));
    let text = "error: no ControllerRegistration serves Extension/none, needed by Shoot ns/c — register one, or remove the need";
    assert_eq!((said.code, said.remarks), (DIFFERENT, vec![text.to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn extensions_of_a_seed_that_does_not_exist_are_an_error() {
    let said = said(&seed(), "s2").await;

    assert_eq!((said.code, said.remarks), (DIFFERENT, vec!["error: there is no Seed s2 — check the name".to_owned()]));
}
