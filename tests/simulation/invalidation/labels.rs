//! Which labels a Secret gets (spec 31 §4.2).

use serde_json::{Value, json};

use super::{
    CONSIDER, PURPOSE, SKIP, VALID, account, admit, asked, considered, labelled, labels, last_error, mounts, pod, put,
    start, token, token_with,
};
use crate::world::{NAMESPACE, seconds, world};

/// spec 31 scenario 1
#[test]
fn secret_without_the_annotation_is_ignored() {
    world(1, |world| async move {
        account(&world, Some(false), json!({}));
        start(&world).await;
        put(&world, "Secret", json!({ "data": { "token": VALID } }), "t");
        seconds(1).await;
        world.sim.edit("secrets", NAMESPACE, "t", |live| live["data"]["token"] = json!("AAAA"));
        seconds(600).await;

        assert_eq!((asked(&world), labels(&world, "t")), (Vec::new(), Value::Null));
    });
}

/// spec 31 §4.2 rules 4 and 5, scenarios 2, 3 and 8; "Better than upstream" 3
#[test]
fn token_of_a_service_account_that_wants_it_stays_valid() {
    for (automount, skip) in
        [(None, None), (Some(true), None), (Some(false), Some("true")), (Some(false), Some("false"))]
    {
        world(1, |world| async move {
            account(&world, automount, skip.map_or(json!({}), |skip| json!({ SKIP: skip })));
            start(&world).await;
            token(&world, "t");
            seconds(60).await;

            assert_eq!(asked(&world), ["patch secrets t"], "{automount:?} {skip:?}");
            assert_eq!(labels(&world, "t"), labelled());
            assert_eq!(admit(&world, "t")["token"], VALID);
        });
    }
}

/// spec 31 §4.2 rules 4 and 9, scenario 4; "Better than upstream" 4: one patch sets both labels.
#[test]
fn token_of_a_service_account_that_opted_out_becomes_invalid() {
    world(1, |world| async move {
        account(&world, Some(false), json!({}));
        start(&world).await;
        token(&world, "t");
        seconds(60).await;

        assert_eq!(asked(&world), ["get serviceaccounts a", "list pods", "patch secrets t"]);
        assert_eq!(labels(&world, "t"), considered());
        assert_eq!(admit(&world, "t"), json!({ "token": "AAAA", "ca.crt": "Y2E=", "namespace": "c2hvb3Q=" }));
    });
}

/// spec 31 §6, scenarios 5 and 6
#[test]
fn token_written_or_removed_by_a_user_is_invalid_again() {
    world(1, |world| async move {
        account(&world, Some(false), json!({}));
        token_with(&world, "t", considered());
        start(&world).await;
        for token in [json!(null), json!(VALID)] {
            world.sim.edit("secrets", NAMESPACE, "t", |live| live["data"]["token"] = token);
            assert_eq!(admit(&world, "t")["token"], "AAAA");
        }
    });
}

/// spec 31 §4.2 rule 6, scenario 13
#[test]
fn considered_secret_costs_no_request_whatever_mounts_it() {
    world(1, |world| async move {
        account(&world, Some(false), json!({}));
        token_with(&world, "t", considered());
        start(&world).await;
        pod(&world, "p", mounts("t"));
        token_with(&world, "new", considered());
        seconds(25 * 3600).await;

        assert_eq!((asked(&world), labels(&world, "t")), (Vec::new(), considered()));
    });
}

/// spec 31 §4.2 rule 4, T11, scenario 15; "Better than upstream" 7
#[test]
fn secret_with_another_purpose_keeps_it_and_an_error_says_so() {
    world(1, |world| async move {
        account(&world, Some(false), json!({}));
        start(&world).await;
        token_with(&world, "t", json!({ PURPOSE: "foo" }));
        seconds(600).await;

        assert_eq!(asked(&world), ["get serviceaccounts a", "list pods", "patch secrets t"]);
        assert_eq!(labels(&world, "t"), json!({ PURPOSE: "foo", CONSIDER: "true" }));
        assert!(last_error(&world, "t").contains("the webhook does not see the Secret"), "{}", last_error(&world, "t"));
    });
}
