use std::ffi::OsString;

use cluster::Resource;
use serde_json::{Value, json};
use sim::{Fault, Seen};

use super::*;
use crate::{
    api::kinds,
    cli::controller_manager::{Command, Tool},
    commands::{
        DIFFERENT, OK,
        referrers::{ReferrersError, referrers},
    },
};

const GARDEN: [&Resource; 7] = [
    &kinds::SHOOT,
    &kinds::SEED,
    &kinds::SECRET_BINDING,
    &kinds::CREDENTIALS_BINDING,
    &kinds::QUOTA,
    &kinds::CLOUD_PROFILE,
    &kinds::NAMESPACED_CLOUD_PROFILE,
];

fn garden(served: &[&Resource]) -> (Sim, Clock) {
    let (sim, clock) = cluster_and_clock();
    for kind in served {
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

/// A Secret `ns/login` in deletion, with three referrers.
fn login() -> (Sim, Clock) {
    let garden = garden(&GARDEN);
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "name": "login" });
    let shoot = || json!({ "spec": { "resources": [{ "name": "n", "resourceRef": secret }] } });
    let deletion = "2025-12-31T21:00:00Z";
    let finalizers = ["gardener.cloud/reference-protection", "gardener.cloud/secretbinding"];
    let metadata = json!({ "finalizers": finalizers, "deletionTimestamp": deletion });
    put(&garden.0, &kinds::SECRET, "login", json!({ "metadata": metadata, "stringData": { "password": "sesame" } }));
    put(&garden.0, &kinds::SHOOT, "web", shoot());
    put(&garden.0, &kinds::SHOOT, "other", json!({ "spec": {} }));
    let mut leaving = shoot();
    leaving["metadata"] =
        json!({ "finalizers": ["gardener.cloud/reference-protection"], "deletionTimestamp": deletion });
    put(&garden.0, &kinds::SHOOT, "gone", leaving);
    put(&garden.0, &kinds::SECRET_BINDING, "aws", json!({ "secretRef": { "name": "login" } }));
    garden
}

async fn run((sim, clock): &(Sim, Clock), line: &str) -> Result<Said, ReferrersError> {
    let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    let options = match Command::parse_from(&arguments, &|_| None) {
        Ok(Command::Tool(Tool::Referrers(options))) => options,
        other => panic!("{line}: {other:?}"),
    };
    sim.clear_requests();
    let said = referrers(sim.client(), (clock.clone(), Random::seeded(1)), &options, false).await;
    for request in sim.requests() {
        let info = &request.info;
        assert!(["get", "list"].contains(&info.verb.as_str()), "{}", info.verb);
        assert!(info.resource != "secrets" || info.verb == "get", "Secrets are not listed");
    }
    said
}

/// spec 81 §3.2 G-10, G.5: the rows are those of the controllers' rules.
#[tokio::test(start_paused = true)]
async fn referrers_of_a_secret_say_which_finalizer_they_keep() {
    let garden = login();

    let said = run(&garden, "referrers secret ns/login").await.unwrap();

    assert_eq!((said.code, &said.remarks), (OK, &vec![]));
    let (head, table) = said.out.split_once("\n\n").unwrap();
    let expected = "Object:       Secret ns/login\nDeleting:     yes, for 3h\n\
        Finalizers:   gardener.cloud/reference-protection, gardener.cloud/secretbinding";
    assert_eq!(head, expected);
    let rows: Vec<String> = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let expected = [
        "KIND NAMESPACE NAME STATE KEEPS",
        "Shoot ns gone finished -",
        "Shoot ns web in use gardener.cloud/reference-protection",
        "SecretBinding ns aws in use gardener.cloud/secretbinding",
    ];
    assert_eq!(rows, expected);
    assert!(!said.out.contains("sesame"));
}

#[tokio::test(start_paused = true)]
async fn referrers_are_the_same_for_each_name_of_a_kind() {
    let garden = login();
    let expected = run(&garden, "referrers secret ns/login").await.unwrap();

    for line in ["referrers Secrets login -n ns", "referrers SECRET ns/login", "referrers secrets. ns/login"] {
        assert_eq!(run(&garden, line).await.unwrap(), expected, "{line}");
    }
}

#[tokio::test(start_paused = true)]
async fn referrers_as_json_have_object_and_referrers() {
    let garden = login();

    let said = run(&garden, "referrers secrets ns/login -o json").await.unwrap();
    let json: Value = serde_json::from_str(&said.out).unwrap();

    let object = &json["object"];
    assert_eq!((&object["kind"], &object["exists"]), (&json!("Secret"), &json!(true)));
    assert_eq!(object["deletionTimestamp"], "2025-12-31T21:00:00Z");
    let states: Vec<_> = json["referrers"].as_array().unwrap().iter().map(|it| (&it["state"], &it["keeps"])).collect();
    let (finished, in_use) = (json!("finished"), json!("inUse"));
    let keeps = [json!(null), json!("gardener.cloud/reference-protection"), json!("gardener.cloud/secretbinding")];
    assert_eq!(states, [(&finished, &keeps[0]), (&in_use, &keeps[1]), (&in_use, &keeps[2])]);
    let said = run(&garden, "referrers secrets ns/login -o jsonpath={.referrers[*].name}").await.unwrap();
    assert_eq!(said.out, "gone web aws");
}

#[tokio::test(start_paused = true)]
async fn referrers_of_a_missing_object_are_shown_and_the_exit_code_is_1() {
    let garden = login();
    put(&garden.0, &kinds::SHOOT, "p", json!({ "spec": { "cloudProfileName": "nothing" } }));

    let missing = run(&garden, "referrers cloudprofile nothing").await.unwrap();
    let unused = run(&garden, "referrers configmap ns/unused").await.unwrap();

    assert_eq!(missing.code, DIFFERENT);
    assert_eq!(missing.remarks, ["error: there is no CloudProfile nothing — check the name"]);
    assert!(missing.out.contains("(does not exist)") && missing.out.contains("Shoot"), "{}", missing.out);
    let remarks =
        ["nobody refers to ConfigMap ns/unused", "error: there is no ConfigMap ns/unused — check name and namespace"];
    assert_eq!((unused.code, unused.remarks), (DIFFERENT, remarks.map(str::to_owned).to_vec()));
}

/// Kinds that are not served have no objects; without any of them the cluster is no garden.
#[tokio::test(start_paused = true)]
async fn referrers_in_a_cluster_that_is_no_garden_are_an_error() {
    let none = garden(&[]);
    let shoots_only = garden(&[&kinds::SHOOT]);
    for (sim, _) in [&none, &shoots_only] {
        put(sim, &kinds::SECRET, "login", json!({}));
    }

    let said = run(&shoots_only, "referrers secret ns/login").await.unwrap();
    let error = run(&none, "referrers secret ns/login").await.unwrap_err().to_string();
    let unserved = run(&none, "referrers quota ns/small").await.unwrap_err().to_string();

    assert_eq!((said.code, said.remarks), (OK, vec!["nobody refers to Secret ns/login".to_owned()]));
    assert!(error.starts_with("the cluster does not serve shoots.core.gardener.cloud — it is no garden"), "{error}");
    assert!(unserved.starts_with("the cluster does not serve quotas.core.gardener.cloud — "), "{unserved}");
}

#[tokio::test(start_paused = true)]
async fn referrers_are_not_known_if_one_list_fails() {
    let garden = login();
    garden.0.set_faults(|info| match (info.verb.as_str(), info.resource.as_str()) {
        ("list", "secretbindings") => Fault::FailBefore(Seen::status(403, "Forbidden", "secretbindings is forbidden")),
        _ => Fault::None,
    });

    let error = run(&garden, "referrers secret ns/login").await.unwrap_err().to_string();

    let expected = "cannot list secretbindings.core.gardener.cloud: secretbindings is forbidden — it is not known who \
        refers to Secret ns/login";
    assert_eq!(error, expected);
}

/// Lists are read in pages, and begin anew if they expire meanwhile.
#[tokio::test(start_paused = true)]
async fn referrers_are_listed_in_pages() {
    let garden = garden(&GARDEN);
    put(&garden.0, &kinds::CLOUD_PROFILE, "p", json!({}));
    for number in 0..600 {
        put(&garden.0, &kinds::SHOOT, &format!("s{number}"), json!({ "spec": { "cloudProfileName": "p" } }));
    }
    let expired = std::cell::Cell::new(false);
    garden.0.set_faults(move |info| {
        let is_next_page = info.resource == "shoots" && info.query.contains("continue=");
        if is_next_page && !expired.replace(true) {
            return Fault::FailBefore(Seen::status(410, "Expired", "the list has expired"));
        }
        Fault::None
    });

    let said = run(&garden, "referrers cloudprofile p").await.unwrap();

    let lists = garden.0.requests().into_iter().filter(|request| request.info.resource == "shoots");
    assert!(lists.clone().count() > 3, "{}", lists.count());
    assert_eq!(said.out.lines().filter(|line| line.starts_with("Shoot ")).count(), 600);
}
