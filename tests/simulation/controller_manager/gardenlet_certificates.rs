//! CertificateSigningRequests of gardenlets and gardenadm.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use sim::{EventFault, Fault, Seen};
use tracing::Level;

use super::garden::{Garden, garden, object};
use crate::{builder::Parts, log_capture::logged};

pub(super) const SIGNER: &str = "kubernetes.io/kube-apiserver-client";
pub(super) const TOKEN_USER: &str = "system:bootstrap:abcdef";
pub(super) const SEEDS: &str = "gardener.cloud:system:seeds";
pub(super) const SHOOTS: &str = "gardener.cloud:system:shoots";
pub(super) const OF_SEED: &str = "gardener.cloud:system:seed:x";
pub(super) const OF_SHOOT: &str = "gardener.cloud:system:shoot:ns:s";

fn ask(garden: &Garden, name: &str, signer: &str, common_name: &str, organizations: &[&str], username: &str) {
    let pem = Parts::usual(common_name, organizations, &[], &[]).pem();
    garden.put(object(
        &kinds::CERTIFICATE_SIGNING_REQUEST,
        "",
        name,
        json!({ "spec": {
            "request": BASE64_STANDARD.encode(pem), "signerName": signer,
            "usages": ["key encipherment", "digital signature", "client auth"],
        } }),
    ));
    garden.edit(&kinds::CERTIFICATE_SIGNING_REQUEST, "", name, |csr| {
        csr["spec"]["username"] = json!(username);
        csr["spec"]["groups"] = json!(["system:bootstrappers", "system:authenticated"]);
    });
}

fn conditions(garden: &Garden, name: &str) -> Vec<(String, String)> {
    let csr = garden.find(&kinds::CERTIFICATE_SIGNING_REQUEST, "", name).unwrap_or_default();
    let conditions = csr["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    conditions.iter().map(|condition| (text(&condition["type"]), text(&condition["reason"]))).collect()
}

fn approved() -> Vec<(String, String)> {
    vec![("Approved".to_owned(), "AutoApproved".to_owned())]
}

fn denied() -> Vec<(String, String)> {
    vec![("Denied".to_owned(), "RequestDenied".to_owned())]
}

pub(super) fn put_token(garden: &Garden, description: &str) {
    let data = json!({ "data": { "description": BASE64_STANDARD.encode(description) } });
    garden.put(object(&kinds::SECRET, "kube-system", "bootstrap-token-abcdef", data));
}

/// Lets users have what they ask for while the returned switch is on.
pub(super) fn allow(garden: &Garden) -> Arc<AtomicBool> {
    let allows = Arc::new(AtomicBool::new(true));
    let switch = allows.clone();
    garden.sim.set_reviewer(move |spec| {
        let asked = &spec["resourceAttributes"]["subresource"];
        let is_allowed = allows.load(Ordering::Relaxed) && (asked == "seedclient" || asked == "shootclient");
        (is_allowed, "no RBAC policy matched".to_owned())
    });
    switch
}

/// spec 81 scenario 9
#[test]
fn certificate_of_a_seed_is_approved_after_a_review() {
    garden(|garden| async move {
        allow(&garden);
        garden.settled().await;
        ask(&garden, "csr", SIGNER, OF_SEED, &[SEEDS], TOKEN_USER);
        garden.soon("it is approved", || conditions(&garden, "csr") == approved()).await;

        let asked = ["create subjectaccessreviews", "update certificatesigningrequests csr"];
        assert_eq!(garden.asked(), asked);
        garden.settle().await;
        assert_eq!(garden.asked(), asked);
    });
}

/// spec 81 scenario 10
#[test]
fn certificate_waits_for_the_permission_of_its_user() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            let allows = allow(&garden);
            allows.store(false, Ordering::Relaxed);
            garden.settled().await;
            ask(&garden, "csr", SIGNER, OF_SEED, &[SEEDS], TOKEN_USER);
            garden.settle().await;
            assert_eq!(conditions(&garden, "csr"), []);

            allows.store(true, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(20)).await;

            assert_eq!(conditions(&garden, "csr"), approved());
        });
    });
    let text = "recognized CSR but SubjectAccessReview was not allowed: no RBAC policy matched";
    assert!(log.contains(text), "{log}");
}

/// spec 81 scenarios 11, 12, 18 and 19
#[test]
fn certificates_of_others_are_left_alone_without_a_request() {
    let ((), log) = logged(Level::WARN, || {
        garden(|garden| async move {
            allow(&garden);
            garden.settled().await;
            ask(&garden, "signer", "example.com/foo", OF_SEED, &[SEEDS], TOKEN_USER);
            ask(&garden, "organizations", SIGNER, OF_SEED, &[SEEDS, "system:masters"], TOKEN_USER);
            ask(&garden, "prefix", SIGNER, "gardener.cloud:system:seed:", &[SEEDS], TOKEN_USER);
            ask(&garden, "other", SIGNER, OF_SEED, &[SEEDS], "gardener.cloud:system:seed:y");
            ask(
                &garden,
                "kubelet",
                "kubernetes.io/kubelet-serving",
                "system:node:n",
                &["system:nodes"],
                "system:node:n",
            );
            ask(&garden, "agent", SIGNER, "gardener.cloud:node-agent:machine:m", &["gardener.cloud:node-agents"], "m");
            garden.settle().await;

            for name in ["signer", "organizations", "prefix", "other", "kubelet", "agent"] {
                assert_eq!(conditions(&garden, name), [], "{name}");
            }
            assert_eq!(garden.asked(), Vec::<String>::new());
            ask(&garden, "own", SIGNER, OF_SEED, &[SEEDS], OF_SEED);
            garden.soon("a seed renews its certificate", || conditions(&garden, "own") == approved()).await;
        });
    });
    assert!(!log.contains("csr-autoapprove"), "{log}");
}

/// spec 81 scenario 19
#[test]
fn certificate_request_that_cannot_be_read_is_logged_once() {
    let ((), log) = logged(Level::INFO, || {
        garden(|garden| async move {
            garden.settled().await;
            ask(&garden, "csr", SIGNER, OF_SEED, &[SEEDS], TOKEN_USER);
            garden.settle().await;
            garden.put(object(
                &kinds::CERTIFICATE_SIGNING_REQUEST,
                "",
                "broken",
                json!({ "spec": { "request": "bm8=", "signerName": SIGNER, "usages": ["client auth"] } }),
            ));
            tokio::time::sleep(Duration::from_secs(3600)).await;
            assert_eq!(conditions(&garden, "broken"), []);
        });
    });
    assert_eq!(log.matches("unable to parse csr").count(), 1, "{log}");
}

/// spec 81 scenarios 13 and 17
#[test]
fn certificate_of_a_self_hosted_shoot_is_approved_for_its_token() {
    let of_gardenlet = "A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.Gardenlet \
                        resource ns/self-hosted-shoot-s.";
    for description in ["Used for connecting the self-hosted Shoot ns/s via x", of_gardenlet] {
        garden(|garden| async move {
            allow(&garden);
            put_token(&garden, description);
            garden.settled().await;
            ask(&garden, "gardenlet", SIGNER, OF_SHOOT, &[SHOOTS], TOKEN_USER);
            ask(&garden, "gardenadm", SIGNER, "gardener.cloud:gardenadm:shoot:ns:s", &[SHOOTS], TOKEN_USER);
            garden.settle().await;

            assert_eq!((conditions(&garden, "gardenlet"), conditions(&garden, "gardenadm")), (approved(), approved()));
        });
    }
}

/// spec 81 scenarios 14, 15 and 17
#[test]
fn certificate_of_a_self_hosted_shoot_is_denied_without_its_token() {
    let of_seed =
        "A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource ns/s.";
    let cases = [
        (None, TOKEN_USER),
        (Some("Used for connecting the self-hosted Shoot ns/s via x"), "admin"),
        (Some("foo"), TOKEN_USER),
        (Some("Used for connecting the self-hosted Shoot nsonly"), TOKEN_USER),
        (Some("Used for connecting the self-hosted Shoot ns/other"), TOKEN_USER),
        (Some(of_seed), TOKEN_USER),
    ];
    for (description, username) in cases {
        garden(|garden| async move {
            allow(&garden);
            description.into_iter().for_each(|description| put_token(&garden, description));
            garden.settled().await;
            ask(&garden, "csr", SIGNER, OF_SHOOT, &[SHOOTS], username);
            garden.settle().await;

            assert_eq!(conditions(&garden, "csr"), denied(), "{description:?} {username}");
        });
    }
}

/// spec 81 scenario 16
#[test]
fn certificate_is_not_denied_because_a_token_cannot_be_read() {
    garden(|garden| async move {
        allow(&garden);
        put_token(&garden, "Used for connecting the self-hosted Shoot ns/s via x");
        garden.settled().await;
        garden.sim.set_faults(|request| match request.resource == "secrets" && request.verb == "get" {
            true => Fault::FailBefore(Seen::Disconnect),
            false => Fault::None,
        });
        ask(&garden, "csr", SIGNER, OF_SHOOT, &[SHOOTS], TOKEN_USER);
        garden.settle().await;
        assert_eq!(conditions(&garden, "csr"), []);

        garden.sim.clear_faults();
        tokio::time::sleep(Duration::from_secs(30)).await;

        assert_eq!(conditions(&garden, "csr"), approved());
    });
}

/// spec 81 scenario 20
#[test]
fn certificate_that_somebody_else_decides_is_left_alone() {
    garden(|garden| async move {
        let allows = allow(&garden);
        allows.store(false, Ordering::Relaxed);
        garden.settled().await;
        ask(&garden, "csr", SIGNER, OF_SEED, &[SEEDS], TOKEN_USER);
        garden.settle().await;
        garden.sim.set_event_faults(|event| match event.resource == "certificatesigningrequests" {
            true => EventFault::Drop,
            false => EventFault::Deliver,
        });
        let decided = json!([{ "type": "Approved", "status": "True", "reason": "ByHand", "message": "by hand" }]);
        garden.edit(&kinds::CERTIFICATE_SIGNING_REQUEST, "", "csr", |csr| csr["status"]["conditions"] = decided);

        allows.store(true, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(60)).await;

        assert_eq!(conditions(&garden, "csr"), [("Approved".to_owned(), "ByHand".to_owned())]);
    });
}

/// spec 81 B: each decision counts, and a request that is left alone shows why.
#[test]
fn certificate_requests_are_counted_by_decision() {
    garden(|garden| async move {
        allow(&garden);
        garden.settled().await;
        let count = |decision: &str| garden.metric(&format!("certificate_requests_total{{decision=\"{decision}\"}}"));
        assert_eq!(["approved", "denied", "ignored", "unreadable"].map(count), [Some(0.0); 4]);

        ask(&garden, "seed", SIGNER, OF_SEED, &[SEEDS], TOKEN_USER);
        ask(&garden, "shoot", SIGNER, OF_SHOOT, &[SHOOTS], TOKEN_USER);
        ask(&garden, "kubelet", "kubernetes.io/kubelet-serving", "system:node:n", &["system:nodes"], "system:node:n");
        garden.settle().await;
        assert_eq!(["approved", "denied", "ignored"].map(count), [Some(1.0), Some(1.0), Some(0.0)]);
        ask(&garden, "other", SIGNER, "x", &["y"], TOKEN_USER);
        garden.settle().await;

        assert!(count("ignored") > Some(0.0));
        let row = garden.row("csr-autoapprove/other").expect("the request has a row");
        assert_eq!(row.line, "is left alone: it is not of a gardenlet");
        let reasons: Vec<&str> = row.details.iter().map(|(label, _)| label.as_str()).collect();
        assert_eq!(reasons, ["No gardenlet of a Seed", "No gardenlet of a Shoot", "Not of gardenadm"]);
    });
}
