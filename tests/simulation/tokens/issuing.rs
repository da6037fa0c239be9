use serde_json::{Value, json};

use super::{
    CLASS, KUBECONFIG, PURPOSE, SA, TARGET, access, account, annotate, asked, claims, configure, given, issued,
    last_error, left, put, renewal, secret, start, token, value,
};
use crate::world::{NAMESPACE, World, seconds, world};

fn parsed(text: &str) -> Value {
    serde_saphyr::from_str(text).expect("YAML")
}

/// spec 30 scenarios 1 and 38
#[test]
fn secret_without_a_renewal_time_gets_a_token_of_a_new_service_account() {
    world(1, |world| async move {
        start(&world).await;
        given(&world, &[], &[("other", "kept")]).await;

        let account = account(&world).expect("the ServiceAccount");
        assert_eq!(account["automountServiceAccountToken"], false);
        assert!(account["metadata"].get("labels").is_none() && account["metadata"].get("annotations").is_none());
        let now = secret(&world, "access");
        assert_eq!((value(&now, "other").as_str(), now["data"].get("bundle.crt")), ("kept", None));
        let claims = claims(&token(&world));
        assert_eq!(
            (&claims["aud"], &claims["sub"]),
            (&json!(["gardener"]), &json!("system:serviceaccount:shoot:client"))
        );
        assert!((34_550..=36_288).contains(&left(&world)), "{}", left(&world));
    });
}

/// spec 30 scenarios 2, 3 and 4
#[test]
fn secrets_of_another_purpose_or_class_are_ignored() {
    for labels in
        [json!({ PURPOSE: "token-requestor", CLASS: "garden" }), json!({ PURPOSE: "token-requestor" }), json!({})]
    {
        world(1, |world| async move {
            start(&world).await;
            let mut foreign = access("access", &[], &[]);
            foreign["metadata"]["labels"] = labels.clone();
            world.sim.put(foreign).expect("a Secret");
            seconds(60).await;
            assert_eq!(asked(&world), [""; 0], "{labels}");

            let ours = json!({ PURPOSE: "token-requestor", CLASS: "shoot" });
            world.sim.edit("secrets", NAMESPACE, "access", |live| live["metadata"]["labels"] = ours.clone());
            seconds(2).await;
            assert!(!token(&world).is_empty());
        });
    }
}

/// spec 30 §2.1, scenario 3
#[test]
fn flag_mode_ignores_the_class() {
    world(1, |world| async move {
        configure(&world, false, true);
        world.start().await;
        let mut foreign = access("access", &[], &[]);
        foreign["metadata"]["labels"] = json!({ PURPOSE: "token-requestor" });
        world.sim.put(foreign).expect("a Secret");
        seconds(2).await;

        assert!(!token(&world).is_empty());
    });
}

/// spec 30 scenario 7
#[test]
fn existing_service_account_gets_the_labels_and_mounts_no_tokens() {
    world(1, |world| async move {
        let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "automountServiceAccountToken": true,
            "metadata": { "namespace": NAMESPACE, "name": "client", "labels": {"x": "y"}, "annotations": {"kept": "yes"} } });
        world.sim.put(account).expect("a ServiceAccount");
        start(&world).await;
        given(&world, &[(&format!("{SA}labels"), r#"{"foo":"bar"}"#)], &[]).await;

        let account = super::account(&world).expect("the ServiceAccount");
        assert_eq!(
            (&account["metadata"]["labels"], &account["automountServiceAccountToken"]),
            (&json!({"foo": "bar"}), &json!(false))
        );
        assert_eq!(account["metadata"]["annotations"], json!({"kept": "yes"}));
        assert_eq!(issued(&world), 1);
    });
}

async fn refused(world: &World, annotations: &[(&str, &str)], data: &[(&str, &str)]) -> String {
    start(world).await;
    given(world, annotations, data).await;
    seconds(600).await;
    assert_eq!((issued(world), renewal(world)), (0, None), "{annotations:?}");
    last_error(world)
}

/// spec 30 scenario 8
#[test]
fn labels_that_are_not_strings_are_reported_before_anything_is_created() {
    world(1, |world| async move {
        let error = refused(&world, &[(&format!("{SA}labels"), r#"{"foo":1}"#)], &[]).await;

        let text = "failed unmarshalling service account labels from secret annotation \
                    \"serviceaccount.resources.gardener.cloud/labels\" ({\"foo\":1}): ";
        assert!(error.starts_with(text), "{error}");
        assert_eq!(account(&world), None);
        let events = world.sim.objects("events");
        assert!(events.iter().any(|event| event["type"] == "Warning" && event["reason"] == "TokenNotRenewed"));
    });
}

/// spec 30 scenario 11
#[test]
fn invalid_duration_is_reported_before_a_token_is_requested() {
    world(1, |world| async move {
        let error = refused(&world, &[(&format!("{SA}token-expiration-duration"), "abc")], &[]).await;

        assert_eq!(error, "time: invalid duration \"abc\"");
        assert!(account(&world).is_some());
    });
}

/// spec 30 §11, "Better than upstream" 8
#[test]
fn service_account_without_a_name_causes_no_request() {
    world(1, |world| async move {
        let error = refused(&world, &[(&format!("{SA}name"), "")], &[]).await;

        assert_eq!(error, "the annotation \"serviceaccount.resources.gardener.cloud/name\" is missing or empty");
        assert!(asked(&world).iter().all(|asked| asked == "get secrets access"), "{:?}", asked(&world));
    });
}

/// spec 30 scenarios 22 and 23
#[test]
fn kubeconfig_that_is_unusable_is_reported_before_a_token_is_requested() {
    let elsewhere = KUBECONFIG.replace("current-context: c", "current-context: nowhere");
    let table = [
        (elsewhere.as_str(), "did not find context defined in current context"),
        ("", "did not find context defined in current context"),
        ("not a kubeconfig", "the kubeconfig cannot be decoded: it is not an object"),
        ("a: [", "the kubeconfig cannot be decoded at line"),
        ("{\"kind\": \"Pod\"}", "no kind \"Config\""),
    ];
    for (kubeconfig, expected) in table {
        let (kubeconfig, expected) = (kubeconfig.to_owned(), expected.to_owned());
        world(1, |world| async move {
            let error = refused(&world, &[], &[("kubeconfig", &kubeconfig)]).await;

            assert!(error.starts_with(&format!("could not update Secret with token: {expected}")), "{error}");
            assert_eq!(value(&secret(&world, "access"), "kubeconfig"), kubeconfig);
        });
    }
}

/// spec 30 scenarios 20 and 21
#[test]
fn kubeconfig_user_of_the_current_context_gets_the_token() {
    let json = parsed(KUBECONFIG).to_string();
    for kubeconfig in [KUBECONFIG.to_owned(), json] {
        world(1, |world| async move {
            start(&world).await;
            given(&world, &[], &[("kubeconfig", &kubeconfig)]).await;

            let now = secret(&world, "access");
            let text = value(&now, "kubeconfig");
            assert!(now["data"].get("token").is_none() && !text.trim_start().starts_with('{'), "{text}");
            let written = parsed(&text);
            let token = written["users"][1]["user"]["token"].as_str().expect("a token").to_owned();
            assert_eq!(claims(&token)["sub"], "system:serviceaccount:shoot:client");
            let mut expected = parsed(&kubeconfig);
            expected["users"][1]["user"]["token"] = json!(token);
            assert_eq!(written, expected);

            annotate(&world, "some", json!("news"));
            seconds(100).await;
            assert_eq!(issued(&world), 1, "{}", last_error(&world));
        });
    }
}

/// spec 30 scenarios 24, 26 and 27
#[test]
fn ca_bundle_is_beside_the_token_while_it_is_wanted() {
    world(1, |world| async move {
        *world.ca.borrow_mut() = b"PEM"[..].into();
        start(&world).await;
        let inject = format!("{SA}inject-ca-bundle");
        given(&world, &[(&inject, "yes")], &[]).await;
        assert_eq!((value(&secret(&world, "access"), "bundle.crt").as_str(), last_error(&world).as_str()), ("", ""));

        annotate(&world, &inject, json!("true"));
        seconds(2).await;
        assert_eq!((value(&secret(&world, "access"), "bundle.crt").as_str(), issued(&world)), ("PEM", 2));

        world.sim.edit("secrets", NAMESPACE, "access", |live| live["data"]["bundle.crt"] = json!("eA=="));
        seconds(2).await;
        assert_eq!((value(&secret(&world, "access"), "bundle.crt").as_str(), issued(&world)), ("PEM", 3));

        annotate(&world, &inject, Value::Null);
        seconds(100).await;
        assert_eq!(value(&secret(&world, "access"), "bundle.crt"), "PEM", "not before the renewal");
        seconds(11 * 3600).await;
        assert_eq!((value(&secret(&world, "access"), "bundle.crt").as_str(), issued(&world)), ("", 4));
    });
}

/// spec 30 scenario 25
#[test]
fn kubeconfig_cluster_of_the_current_context_gets_the_ca_bundle() {
    world(1, |world| async move {
        *world.ca.borrow_mut() = b"PEM"[..].into();
        start(&world).await;
        given(&world, &[(&format!("{SA}inject-ca-bundle"), "true")], &[("kubeconfig", KUBECONFIG)]).await;

        let now = secret(&world, "access");
        let cluster = &parsed(&value(&now, "kubeconfig"))["clusters"][0]["cluster"];
        assert_eq!(*cluster, json!({ "server": "https://old", "certificate-authority-data": "UEVN" }));
        assert!(now["data"].get("bundle.crt").is_none());
    });
}

/// spec 30 scenarios 28, 29 and 30
#[test]
fn target_secret_gets_the_token_and_the_source_loses_it() {
    world(1, |world| async move {
        start(&world).await;
        given(&world, &[(&format!("{TARGET}name"), "there")], &[("other", "kept")]).await;
        assert!(!token(&world).is_empty() && secret(&world, "there").is_null(), "one annotation alone does not count");

        annotate(&world, &format!("{TARGET}namespace"), json!(NAMESPACE));
        seconds(2).await;
        let (source, there) = (secret(&world, "access"), secret(&world, "there"));
        assert_eq!(
            source["data"].as_object().map(|data| data.keys().cloned().collect()),
            Some(vec!["other".to_owned()])
        );
        assert_eq!(claims(&value(&there, "token"))["sub"], "system:serviceaccount:shoot:client");
        assert_eq!((&there["type"], there["metadata"].get("labels")), (&json!("Opaque"), None));
        assert_eq!(issued(&world), 2);

        world.sim.remove("secrets", NAMESPACE, "there");
        annotate(&world, "some", json!("news"));
        seconds(2).await;
        assert_eq!((issued(&world), value(&secret(&world, "there"), "token").is_empty()), (3, false));
    });
}

/// spec 30 scenario 31
#[test]
fn kubeconfig_of_the_target_secret_gets_the_token() {
    world(1, |world| async move {
        start(&world).await;
        let mut there = access("there", &[], &[("kubeconfig", KUBECONFIG)]);
        there["metadata"]["labels"] = json!({});
        world.sim.put(there).expect("a Secret");
        put(&world, "access", &[(&format!("{TARGET}name"), "there"), (&format!("{TARGET}namespace"), NAMESPACE)], &[]);
        seconds(2).await;

        let there = secret(&world, "there");
        let token = parsed(&value(&there, "kubeconfig"))["users"][1]["user"]["token"].clone();
        assert!(token.is_string() && there["data"].get("token").is_none());
        assert_eq!((secret(&world, "access")["data"].get("token"), renewal(&world).is_some()), (None, true));
    });
}

/// spec 30 §5.1 f, §6 rule 5, §7: without a CA of the target, an existing one is not compared: that would cost tokens.
#[test]
fn kubeconfig_ca_stays_without_a_ca_and_costs_no_token() {
    world(1, |world| async move {
        start(&world).await;
        let ours = KUBECONFIG.replace("server: https://old", "server: https://old, certificate-authority-data: YQ==");
        given(&world, &[(&format!("{SA}inject-ca-bundle"), "true")], &[("kubeconfig", &ours)]).await;
        for number in 0..5 {
            annotate(&world, "some", json!(number.to_string()));
            seconds(10).await;
        }

        let kubeconfig = parsed(&value(&secret(&world, "access"), "kubeconfig"));
        assert_eq!(kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"], "YQ==");
        assert_eq!((issued(&world), last_error(&world).as_str()), (1, ""));
    });
}
