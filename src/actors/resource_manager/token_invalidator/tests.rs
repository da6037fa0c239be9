//! The pure parts: cached fields and patches.

use serde_json::{Value, json};

use super::{
    account::Account,
    pods::mounted,
    secret::{Purpose, TokenSecret},
};

const PURPOSE: &str = "resources.gardener.cloud/purpose";
const CONSIDER: &str = "token-invalidator.resources.gardener.cloud/consider";
const SKIP: &str = "token-invalidator.resources.gardener.cloud/skip";

fn secret(account: &str, labels: Value) -> Value {
    json!({ "metadata": { "annotations": { "kubernetes.io/service-account.name": account }, "labels": labels } })
}

fn account(automount: Value, labels: Value) -> Account {
    Account::of(&json!({ "metadata": { "labels": labels }, "automountServiceAccountToken": automount }))
}

/// spec 31 §4.1, scenario 1
#[test]
fn secret_is_relevant_by_its_annotation_only() {
    assert_eq!(TokenSecret::of(&secret("", json!({}))), None);
    assert_eq!(TokenSecret::of(&json!({ "type": "kubernetes.io/service-account-token" })), None);

    let token = TokenSecret::of(&secret("a", json!({})));

    assert_eq!(token, Some(TokenSecret { account: "a".into(), purpose: Purpose::Unset, considered: false }));
}

/// spec 31 §2, §4.2 rules 4 and 6
#[test]
fn consider_label_counts_by_its_presence() {
    for (labels, purpose, considered) in [
        (json!({ CONSIDER: "true" }), Purpose::Unset, true),
        (json!({ CONSIDER: "" }), Purpose::Unset, true),
        (json!({ PURPOSE: "token-invalidator" }), Purpose::TokenInvalidator, false),
        (json!({ PURPOSE: "" }), Purpose::Other, false),
        (json!({ PURPOSE: "token-requestor", CONSIDER: "false" }), Purpose::Other, true),
    ] {
        let read = TokenSecret::of(&secret("a", labels.clone()));

        assert_eq!(read, Some(TokenSecret { account: "a".into(), purpose, considered }), "{labels}");
    }
}

/// spec 31 §2, §4.2 rule 5, scenarios 2, 3 and 8
#[test]
fn account_wants_no_tokens_if_it_opted_out_and_is_not_skipped() {
    for (automount, labels, wanted) in [
        (json!(null), json!({}), false),
        (json!(true), json!({}), false),
        (json!(false), json!({}), true),
        (json!(false), json!({ "other": "x" }), true),
        (json!(false), json!({ SKIP: "true" }), false),
        (json!(false), json!({ SKIP: "false" }), false),
        (json!(false), json!({ SKIP: "" }), false),
    ] {
        assert_eq!(account(automount.clone(), labels.clone()).wants_no_tokens, wanted, "{automount} {labels}");
    }
}

/// spec 31 §4.2 rules 4, 5, 6 and 9, "Better than upstream" 3 and 4
#[test]
fn patch_sets_only_the_labels_that_differ() {
    use Purpose::{Other, TokenInvalidator, Unset};
    let (ours, on, off) = (json!("token-invalidator"), json!("true"), json!(null));
    for (purpose, before, after, labels) in [
        (Unset, false, false, json!({ PURPOSE: ours })),
        (Unset, false, true, json!({ PURPOSE: ours, CONSIDER: on })),
        (Unset, true, true, json!({ PURPOSE: ours })),
        (Unset, true, false, json!({ PURPOSE: ours, CONSIDER: off })),
        (TokenInvalidator, false, false, json!(null)),
        (TokenInvalidator, false, true, json!({ CONSIDER: on })),
        (TokenInvalidator, true, true, json!(null)),
        (TokenInvalidator, true, false, json!({ CONSIDER: off })),
        (Other, false, false, json!(null)),
        (Other, false, true, json!({ CONSIDER: on })),
        (Other, true, true, json!(null)),
        (Other, true, false, json!({ CONSIDER: off })),
    ] {
        let secret = TokenSecret { account: "a".into(), purpose, considered: before };

        let patch = secret.patch(after);

        let expected = json!({ "metadata": { "labels": labels } });
        assert_eq!(patch, (!labels.is_null()).then_some(expected), "{purpose:?} {before} {after}");
    }
}

/// spec 31 T11: the webhook never sees a Secret of another purpose
#[test]
fn token_changes_only_where_the_webhook_sees_the_label() {
    for (purpose, before, after, changes) in [
        (Purpose::Unset, false, true, true),
        (Purpose::TokenInvalidator, false, true, true),
        (Purpose::TokenInvalidator, true, false, true),
        (Purpose::TokenInvalidator, true, true, false),
        (Purpose::Other, false, true, false),
        (Purpose::Other, true, false, false),
    ] {
        let secret = TokenSecret { account: "a".into(), purpose, considered: before };

        assert_eq!(secret.changes_token(after), changes, "{purpose:?} {before} {after}");
    }
}

/// spec 31 §4.2 rule 8, scenarios 10, 11 and 12; spec 31, better 2
#[test]
fn pod_mounts_its_plain_secret_volumes_until_it_has_ended() {
    let volumes = json!([
        { "name": "a", "secret": { "secretName": "one" } },
        { "name": "b", "configMap": { "name": "two" } },
        { "name": "c", "projected": { "sources": [{ "secret": { "name": "three" } }] } },
        { "name": "d", "secret": {} },
        { "name": "e", "secret": { "secretName": "four", "optional": true } },
    ]);
    let container = json!({ "envFrom": [{ "secretRef": { "name": "five" } }] });
    let spec = json!({ "volumes": volumes, "containers": [container], "imagePullSecrets": [{ "name": "six" }] });

    for (phase, expected) in [
        (json!(null), &["one", "four"][..]),
        (json!("Pending"), &["one", "four"]),
        (json!("Running"), &["one", "four"]),
        (json!("Unknown"), &["one", "four"]),
        (json!("Succeeded"), &[]),
        (json!("Failed"), &[]),
    ] {
        let pod = json!({ "spec": spec, "status": { "phase": phase } });

        assert_eq!(mounted(&pod).collect::<Vec<_>>(), expected, "{phase}");
    }
    for nothing in [json!({}), json!({ "spec": { "volumes": null } }), json!({ "spec": { "volumes": "a" } })] {
        assert_eq!(mounted(&nothing).count(), 0, "{nothing}");
    }
}
