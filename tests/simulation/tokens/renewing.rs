use serde_json::{Value, json};
use sim::{Fault, Seen};

use super::{
    RENEW, SA, account, annotate, asked, given, in_future, issued, last_error, left, renewal, secret, start, token,
};
use crate::world::{NAMESPACE, PROGRAM, seconds, world};

/// spec 30 scenarios 9 and 10
#[test]
fn token_renewal_follows_the_lifetime_of_a_day_at_most() {
    for (lifetime, low, high) in [("10m", 478, 504), ("1h30m", 4318, 4536), ("100h", 69_118, 72_576)] {
        world(1, |world| async move {
            start(&world).await;
            given(&world, &[(&format!("{SA}token-expiration-duration"), lifetime)], &[]).await;

            assert!((low - 2..=high).contains(&left(&world)), "{lifetime}: {}", left(&world));
        });
    }
}

/// spec 30 scenarios 13 and 14
#[test]
fn token_renewal_happens_at_its_time_and_not_before() {
    world(1, |world| async move {
        start(&world).await;
        given(&world, &[], &[]).await;
        let first = token(&world);
        annotate(&world, RENEW, json!(in_future(&world, 60)));
        seconds(58).await;
        assert_eq!((issued(&world), token(&world) == first), (1, true));

        seconds(3).await;
        assert_eq!((issued(&world), token(&world) == first), (2, false));
    });
}

/// spec 30 scenarios 15, 16 and 19; T2
#[test]
fn token_missing_or_rejected_is_renewed_at_once() {
    world(1, |world| async move {
        start(&world).await;
        given(&world, &[(RENEW, &in_future(&world, 3600))], &[]).await;
        assert_eq!(issued(&world), 1, "there was no token");

        annotate(&world, RENEW, Value::Null);
        seconds(1).await;
        assert_eq!((issued(&world), renewal(&world).is_some()), (2, true), "the time was removed");

        world.sim.edit("secrets", NAMESPACE, "access", |live| live["data"]["token"] = json!("YS5iLmM="));
        seconds(1).await;
        assert_eq!(issued(&world), 3, "another token is rejected");

        world.sim.edit("secrets", NAMESPACE, "access", |live| live["data"]["token"] = json!(""));
        seconds(1).await;
        assert_eq!(issued(&world), 4, "the token is empty");
    });
}

/// spec 30 scenario 17
#[test]
fn token_review_that_fails_is_an_error_and_changes_nothing() {
    world(1, |world| async move {
        start(&world).await;
        given(&world, &[], &[]).await;
        seconds(100).await;
        let first = token(&world);
        world.sim.set_faults(|info| match info.resource.as_str() {
            "tokenreviews" => Fault::FailBefore(Seen::internal_error("no review today")),
            _ => Fault::None,
        });
        annotate(&world, "some", json!("news"));
        seconds(60).await;

        assert!(last_error(&world).starts_with("token review failed: no review today"), "{}", last_error(&world));
        assert_eq!((token(&world) == first, issued(&world)), (true, 1));
    });
}

/// spec 30 scenario 18
#[test]
fn token_renewal_time_that_is_invalid_is_an_error_only_beside_a_good_token() {
    world(1, |world| async move {
        start(&world).await;
        given(&world, &[], &[]).await;
        annotate(&world, RENEW, json!("invalid"));
        seconds(30).await;
        assert!(last_error(&world).starts_with("could not parse renew timestamp: "), "{}", last_error(&world));
        assert_eq!(issued(&world), 1);

        world.sim.edit("secrets", NAMESPACE, "access", |live| live["data"] = json!({}));
        seconds(2).await;
        assert_eq!((issued(&world), renewal(&world).is_some()), (2, true));
    });
}

/// spec 30 T4, "Better than upstream" 1
#[test]
fn token_renewal_follows_the_deletion_of_a_service_account() {
    world(1, |world| async move {
        start(&world).await;
        given(&world, &[], &[]).await;
        world.sim.remove("serviceaccounts", NAMESPACE, "client");
        seconds(2).await;

        assert_eq!((account(&world).is_some(), issued(&world)), (true, 2));
    });
}

/// spec 30 T9, "Better than upstream" 4
#[test]
fn token_renewal_slows_down_if_the_server_rejects_new_tokens() {
    world(1, |world| async move {
        start(&world).await;
        world.sim.set_faults(|info| match info.resource.as_str() {
            "tokenreviews" => Fault::FailBefore(Seen::status(201, "", "")),
            _ => Fault::None,
        });
        given(&world, &[], &[]).await;
        for minute in 0..120 {
            annotate(&world, "some", json!(minute.to_string()));
            seconds(60).await;
        }

        assert!((2..=9).contains(&issued(&world)), "{}", issued(&world));
    });
}

/// spec 30 §10, scenarios 5 and 6
#[test]
fn token_stays_when_the_secret_is_no_longer_ours() {
    world(1, |world| async move {
        start(&world).await;
        given(&world, &[], &[]).await;
        let first = token(&world);
        world.sim.edit("secrets", NAMESPACE, "access", |live| live["metadata"]["labels"] = json!({}));
        seconds(24 * 3600).await;
        assert_eq!((token(&world) == first, issued(&world), account(&world).is_some()), (true, 1, true));

        world.sim.remove("secrets", NAMESPACE, "access");
        seconds(60).await;
        assert!(account(&world).is_some());
        let actors = world.actors_of(PROGRAM);
        assert!(actors.iter().all(|actor| !actor.path.starts_with("token-requestor/")), "its actor has ended");
    });
}

/// spec 30 "Better than upstream" 9: a good token is checked, and not renewed.
#[test]
fn token_renewal_skips_fresh_tokens_after_a_restart() {
    world(1, |world| async move {
        start(&world).await;
        for number in 0..50 {
            super::put(&world, &format!("access-{number}"), &[], &[]);
        }
        given(&world, &[], &[]).await;
        seconds(60).await;
        assert_eq!(issued(&world), 51);
        world.stop().await;
        world.sim.clear_requests();
        world.start().await;
        seconds(10).await;
        assert!(asked(&world).len() < 20, "they are checked within five minutes: {:?}", asked(&world));

        seconds(600).await;
        let expected: usize = asked(&world).iter().filter(|asked| asked.starts_with("create tokenreviews")).count();
        // The kinds, and the proof that both versions of mutating admission policies are not served (decisions 38, 40).
        let group = "/apis/admissionregistration.k8s.io";
        let (v1, v1beta1) = (format!("{group}/v1"), format!("{group}/v1beta1"));
        let of_discovery = ["/api", "/apis", group, group, &v1, &v1beta1, "/readyz", "/readyz"];
        let requests = world.requests().into_iter().map(|request| request.info);
        let mut others: Vec<_> = requests.filter(|info| info.resource.is_empty()).map(|info| info.path).collect();
        others.sort();
        assert_eq!(others, of_discovery);
        assert_eq!((issued(&world), expected, asked(&world).len()), (0, 51, 2 * 51 + others.len()));
    });
}

/// spec 30 §5.1: the wall clock counts.
#[test]
fn token_renewal_comes_earlier_if_the_clock_jumps_ahead() {
    world(1, |world| async move {
        start(&world).await;
        given(&world, &[], &[]).await;
        world.universe.env.clock.jump(jiff::SignedDuration::from_hours(11));
        seconds(3700).await;

        assert_eq!(issued(&world), 2);
    });
}

/// spec 30 T10: a server clock that is more than a lifetime behind causes no loop.
#[test]
fn token_renewal_of_seemingly_expired_tokens_is_once_a_minute() {
    world(1, |world| async move {
        start(&world).await;
        world.universe.env.clock.jump(jiff::SignedDuration::from_hours(24));
        given(&world, &[], &[]).await;
        seconds(300).await;

        assert!((5..=6).contains(&issued(&world)), "{}", issued(&world));
    });
}

/// fault 17: a token is renewed by the monotonic clock, too, whatever enqueues its key meanwhile.
#[test]
fn token_renewal_is_in_time_if_the_clock_is_set_back() {
    for events in [false, true] {
        world(1, |world| async move {
            start(&world).await;
            given(&world, &[], &[]).await;
            seconds(3600).await;
            world.universe.env.clock.jump(jiff::SignedDuration::from_hours(-11));
            for hour in 0..8 {
                if events {
                    annotate(&world, "some", json!(hour.to_string()));
                }
                seconds(3590).await;
            }
            assert_eq!((issued(&world), last_error(&world).as_str()), (1, ""));

            seconds(4100).await;
            assert_eq!(issued(&world), 2, "9 h 36 min to 10 h 5 min after the first");
        });
    }
}

/// fault 17: the clock was already behind when the token was issued.
#[test]
fn token_renewal_is_in_time_if_the_clock_is_behind() {
    world(1, |world| async move {
        start(&world).await;
        world.universe.env.clock.jump(jiff::SignedDuration::from_hours(-24));
        given(&world, &[], &[]).await;
        seconds(9 * 3600).await;
        assert_eq!(issued(&world), 1);

        seconds(2 * 3600).await;
        assert_eq!(issued(&world), 2);
    });
}

/// fault 17: the renewal time comes from a writer with a fast clock, or from a backup.
#[test]
fn token_renewal_is_at_80_percent_if_the_token_expires_before_its_renewal_time() {
    world(1, |world| async move {
        start(&world).await;
        given(&world, &[], &[]).await;
        annotate(&world, RENEW, json!(in_future(&world, 30 * 86_400)));
        seconds(9 * 3600 + 2100).await;
        assert_eq!(issued(&world), 1);

        seconds(120).await;
        assert_eq!(issued(&world), 2);
        assert!((34_000..=36_288).contains(&left(&world)), "{}", left(&world));
    });
}

/// spec 30 §5.5, fault 17: the renewal time of one token says nothing about another.
#[test]
fn token_renewal_of_a_restored_older_token_is_at_80_percent_of_its_life() {
    world(1, |world| async move {
        start(&world).await;
        given(&world, &[], &[]).await;
        let first = secret(&world, "access")["data"]["token"].clone();
        seconds(3 * 3600).await;
        annotate(&world, RENEW, Value::Null);
        seconds(2).await;
        assert_eq!(issued(&world), 2);

        world.sim.edit("secrets", NAMESPACE, "access", |live| live["data"]["token"] = first.clone());
        seconds(6 * 3600 + 1800).await;
        assert_eq!((issued(&world), secret(&world, "access")["data"]["token"] == first), (2, true));
        seconds(600).await;
        assert_eq!((issued(&world), secret(&world, "access")["data"]["token"] == first), (3, false));
    });
}

/// spec 30 T10: if the clocks differ by a lifetime, the renewal time that was chosen for a token counts.
#[test]
fn token_renewal_of_tokens_expired_by_our_clock_does_not_loop() {
    world(1, |world| async move {
        start(&world).await;
        world.universe.env.clock.jump(jiff::SignedDuration::from_hours(24));
        given(&world, &[], &[]).await;
        for minute in 0..300 {
            annotate(&world, "some", json!(minute.to_string()));
            seconds(1).await;
        }

        assert!((2..=7).contains(&issued(&world)), "{}", issued(&world));
    });
}
