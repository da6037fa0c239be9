//! ServiceAccounts that opt in, opt out, appear later or cannot be read (spec 31 §4.1, §4.2).

use serde_json::{Value, json};
use sim::{EventFault, Fault, Seen};

use super::{SKIP, account, admit, asked, considered, labelled, labels, last_error, reconciles, start, token};
use crate::world::{NAMESPACE, seconds, world};

/// spec 31 §4.1, §6, scenarios 7 and 9; "Better than upstream" 1: `.secrets[]` is not needed.
#[test]
fn service_account_that_opts_in_again_loses_the_invalid_token() {
    for (automount, labels_then) in [(Some(false), json!({ SKIP: "" })), (Some(true), json!({})), (None, json!({}))] {
        world(1, |world| async move {
            account(&world, Some(false), json!({}));
            token(&world, "t");
            start(&world).await;
            assert_eq!(admit(&world, "t")["token"], "AAAA");
            seconds(1).await;
            world.sim.clear_requests();

            account(&world, automount, labels_then);
            seconds(1).await;

            assert_eq!(asked(&world), ["patch secrets t"]);
            assert_eq!(labels(&world, "t"), labelled());
            assert_eq!(admit(&world, "t"), json!({ "ca.crt": "Y2E=", "namespace": "c2hvb3Q=" }));
        });
    }
}

/// spec 31 §4.1, scenario 16
#[test]
fn service_account_with_changed_annotations_enqueues_nothing() {
    world(1, |world| async move {
        account(&world, Some(false), json!({}));
        token(&world, "t");
        start(&world).await;
        let before = reconciles(&world);

        world.sim.edit("serviceaccounts", NAMESPACE, "a", |live| live["metadata"]["annotations"] = json!({ "a": "b" }));
        seconds(60).await;

        assert_eq!((reconciles(&world), asked(&world)), (before, Vec::new()));
    });
}

/// spec 31 §4.1, scenario 17
#[test]
fn service_account_that_opts_out_enqueues_all_its_secrets() {
    world(1, |world| async move {
        account(&world, None, json!({}));
        for name in ["one", "two"] {
            token(&world, name);
        }
        start(&world).await;

        let secrets = json!([{ "name": "one" }, { "name": "two" }]);
        world.sim.edit("serviceaccounts", NAMESPACE, "a", |live| {
            (live["automountServiceAccountToken"], live["secrets"]) = (json!(false), secrets);
        });
        seconds(1).await;

        assert_eq!((labels(&world, "one"), labels(&world, "two")), (considered(), considered()));
    });
}

/// spec 31 §4.2 rule 3, scenario 14; "Better than upstream" 1: the creation event replaces retries.
#[test]
fn service_account_that_appears_later_is_awaited() {
    world(1, |world| async move {
        start(&world).await;
        token(&world, "t");
        seconds(3600).await;
        let error = r#"could not fetch ServiceAccount: serviceaccounts "a" not found"#;
        assert_eq!((last_error(&world, "t"), labels(&world, "t")), (error.to_owned(), Value::Null));
        assert_eq!(asked(&world), ["get serviceaccounts a"]);

        account(&world, Some(false), json!({}));
        seconds(1).await;
        assert_eq!(labels(&world, "t"), considered());
    });
}

/// spec 31 §4.2 rule 3
#[test]
fn service_account_that_is_unreadable_is_retried_without_a_decision() {
    world(1, |world| async move {
        account(&world, Some(false), json!({}));
        start(&world).await;
        world.sim.set_faults(|info| match (info.resource.as_str(), info.verb.as_str()) {
            ("serviceaccounts", "get") => Fault::FailBefore(Seen::forbidden(info)),
            _ => Fault::None,
        });
        token(&world, "t");
        seconds(60).await;
        assert!(
            last_error(&world, "t").starts_with("could not fetch ServiceAccount: serviceaccounts \"a\" is forbidden")
        );
        assert_eq!(labels(&world, "t"), labelled(), "no decision is made");

        world.sim.clear_faults();
        seconds(120).await;
        assert_eq!(labels(&world, "t"), considered());
    });
}

/// spec 31 T3: one of two watch streams may lag behind the other.
#[test]
fn token_stays_valid_while_a_watch_lags() {
    world(1, |world| async move {
        account(&world, Some(false), json!({}));
        start(&world).await;
        world.sim.set_event_faults(|event| match event.resource.as_str() {
            "serviceaccounts" => EventFault::Drop,
            _ => EventFault::Deliver,
        });
        account(&world, Some(false), json!({ SKIP: "true" }));
        token(&world, "t");
        seconds(140).await;
        assert_eq!(labels(&world, "t"), labelled());

        world.sim.clear_event_faults();
        world.sim.edit("serviceaccounts", NAMESPACE, "a", |live| live["metadata"]["labels"] = json!({}));
        seconds(300).await;
        assert_eq!(labels(&world, "t"), considered());
    });
}
