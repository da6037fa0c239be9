//! Requests, conflicts, faults.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use serde_json::{Value, json};
use sim::{Fault, Seen};

use super::{RENEW, annotate, asked, configure, given, issued, put, renewal, secret, start, token};
use crate::world::{NAMESPACE, PROGRAM, seconds, world, world_with};

/// What a Secret costs: three requests for a renewal, and no pass for one's own write.
#[test]
fn a_renewal_takes_three_requests() {
    world(1, |world| async move {
        start(&world).await;
        given(&world, &[], &[]).await;
        let first = [
            "get secrets access",
            "create serviceaccounts",
            "create serviceaccounts/token client",
            "patch secrets access",
        ];
        assert_eq!(asked(&world), first);
        world.sim.clear_requests();

        annotate(&world, RENEW, Value::Null);
        seconds(60).await;
        assert_eq!(
            asked(&world),
            ["get secrets access", "create serviceaccounts/token client", "patch secrets access"]
        );
        let actor = world.actors_of(PROGRAM).into_iter().find(|actor| actor.path == "token-requestor/shoot/access");
        let rows: Vec<String> = actor.expect("its actor").details.into_iter().map(|(label, _)| label).collect();
        assert_eq!(rows, ["next renewal", "last renewal", "token expires"]);
    });
}

/// spec 30 scenario 32; "Better than upstream" 2
#[test]
fn after_a_conflict_the_token_in_hand_is_written() {
    world_with(1, Duration::from_millis(20), |world| async move {
        start(&world).await;
        put(&world, "access", &[], &[]);
        let sim = world.sim.clone();
        world.universe.env.fatal.spawn("the other writer", async move {
            loop {
                if sim.requests().iter().any(|request| request.info.subresource == "token") {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            sim.edit("secrets", NAMESPACE, "access", |live| live["data"]["other"] = json!("b3RoZXI="));
            std::future::pending::<()>().await;
        });
        seconds(5).await;

        let now = secret(&world, "access");
        let patches = asked(&world).iter().filter(|asked| asked.starts_with("patch secrets")).count();
        assert_eq!((patches, issued(&world)), (2, 1), "{:?}", asked(&world));
        assert_eq!(now["data"]["other"], "b3RoZXI=");
        assert!(!token(&world).is_empty() && renewal(&world).is_some());
    });
}

/// A write that failed is tried again with the same token.
#[test]
fn a_token_that_could_not_be_written_is_used_again() {
    world(1, |world| async move {
        start(&world).await;
        let mut left = 5;
        world.sim.set_faults(move |info| {
            if info.verb == "patch" && info.resource == "secrets" && left > 0 {
                left -= 1;
                return Fault::FailBefore(Seen::unavailable());
            }
            Fault::None
        });
        given(&world, &[], &[]).await;
        seconds(60).await;

        assert_eq!((issued(&world), token(&world).is_empty()), (1, false));
    });
}

/// A token that was written is not the answer to a later request for another one, though it is not known that it was written.
#[test]
fn a_rotation_that_is_asked_for_after_a_lost_answer_gives_another_token() {
    for looks_between in [true, false] {
        world(1, |world| async move {
            start(&world).await;
            let is_down = Arc::new(AtomicBool::new(false));
            let (down, mut is_lost) = (is_down.clone(), false);
            world.sim.set_faults(move |info| match (info.verb.as_str(), info.resource.as_str()) {
                ("patch", "secrets") if !is_lost => {
                    is_lost = true;
                    down.store(!looks_between, Relaxed);
                    Fault::FailAfterCommit(Seen::unavailable())
                }
                ("get", "secrets") if down.load(Relaxed) => Fault::FailBefore(Seen::unavailable()),
                _ => Fault::None,
            });
            given(&world, &[], &[]).await;
            let first = token(&world);
            annotate(&world, RENEW, Value::Null);
            is_down.store(false, Relaxed);
            seconds(30).await;

            assert_eq!((issued(&world), token(&world) == first), (2, false), "looks between: {looks_between}");
            assert!(renewal(&world).is_some());
        });
    }
}

/// Events are about what somebody can put right in the Secret: not about credentials or a busy server.
#[test]
fn what_concerns_all_secrets_alike_is_no_event() {
    for (fault, told) in [
        (Seen::unauthorized(), false),
        (Seen::status(429, "TooManyRequests", "later"), false),
        (Seen::status(403, "Forbidden", "no"), true),
    ] {
        world(1, |world| async move {
            start(&world).await;
            let seen = fault.clone();
            world.sim.set_faults(move |info| match info.subresource.as_str() {
                "token" => Fault::FailBefore(seen.clone()),
                _ => Fault::None,
            });
            given(&world, &[], &[]).await;
            seconds(60).await;

            let events = world.sim.objects("events");
            let is_told = events.iter().any(|event| event["reason"] == "TokenNotRenewed");
            assert_eq!(is_told, told, "{fault:?}");
        });
    }
}

/// Secrets that were restored without their tokens: a few passes at once, one token each, and renewals that are spread.
#[test]
fn many_secrets_at_once_are_no_stampede() {
    world_with(1, Duration::from_millis(5), |world| async move {
        for number in 0..1_000 {
            put(&world, &format!("access-{number}"), &[], &[]);
        }
        configure(&world, false, false);
        world.start().await;
        seconds(60).await;

        assert_eq!(issued(&world), 1_000);
        // The simulator answers after 5 ms, and five passes of three requests or four go side by side.
        let first = world.requests().iter().position(|request| request.info.subresource == "token");
        assert!(first.is_some_and(|first| first < 100), "the first is not kept waiting: {first:?}");
        let all = world.sim.objects("secrets");
        let renewals: std::collections::BTreeSet<_> =
            all.iter().filter_map(|secret| secret["metadata"]["annotations"][RENEW].as_str()).collect();
        assert!(renewals.len() > 500, "{} times of renewal", renewals.len());
    });
}

/// No token leaves its Secret.
#[test]
fn tokens_are_in_no_text() {
    world(1, |world| async move {
        start(&world).await;
        given(&world, &[], &[]).await;
        let token = token(&world);
        let signature = token.rsplit('.').next().expect("a signature").to_owned();

        let actors = serde_json::to_string(&world.actors_of(PROGRAM)).expect("JSON");
        let events = json!(world.sim.objects("events")).to_string();
        assert!(!actors.contains(&signature) && !events.contains(&signature));
    });
}
