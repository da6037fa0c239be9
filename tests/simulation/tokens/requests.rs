use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use sim::{Failure, Fault, Seen};

use super::{
    RENEW, TARGET, account, annotate, asked, claims, configure, given, issued, last_error, put, renewal, secret, start,
    token, value,
};
use crate::{
    log_capture::logged,
    world::{NAMESPACE, PROGRAM, World, seconds, world, world_with},
};

/// A renewal costs three requests, and the own write causes no reconcile.
#[test]
fn token_renewal_takes_three_requests() {
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
fn token_is_written_after_a_conflict() {
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

#[test]
fn token_whose_write_failed_is_used_again() {
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

/// spec 30 T4: an unwritten token is worthless once its ServiceAccount is deleted or recreated.
#[test]
fn token_not_yet_written_is_dropped_with_its_service_account() {
    for is_made_anew in [true, false] {
        world(1, |world| async move {
            start(&world).await;
            let is_down = Arc::new(AtomicBool::new(true));
            let down = is_down.clone();
            world.sim.set_faults(move |info| match (info.verb.as_str(), info.resource.as_str()) {
                ("patch", "secrets") if down.load(Relaxed) => Fault::FailBefore(Seen::unavailable()),
                _ => Fault::None,
            });
            given(&world, &[], &[]).await;
            assert_eq!((issued(&world), token(&world).as_str()), (1, ""));
            let mut remade = world.sim.remove("serviceaccounts", NAMESPACE, "client").expect("the ServiceAccount");
            if is_made_anew {
                remade["metadata"] = json!({ "namespace": NAMESPACE, "name": "client" });
                world.sim.put(remade).expect("another one");
            }
            seconds(10).await;
            is_down.store(false, Relaxed);
            seconds(40).await;

            let uid = account(&world).expect("the ServiceAccount")["metadata"]["uid"].clone();
            assert_eq!(claims(&token(&world))["kubernetes.io"]["serviceaccount"]["uid"], uid, "new: {is_made_anew}");
            assert_eq!(issued(&world), 2, "the second is used again");
        });
    }
}

/// A token whose write was not confirmed must not answer a later request for another one.
#[test]
fn token_rotation_after_a_lost_answer_gives_another_token() {
    for (looks_between, holder) in [(true, "access"), (false, "access"), (true, "there"), (false, "there")] {
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
            let target = [(format!("{TARGET}name"), holder), (format!("{TARGET}namespace"), NAMESPACE)];
            let target = target.each_ref().map(|(key, text)| (key.as_str(), *text));
            let annotations: &[(&str, &str)] = if holder == "access" { &[] } else { &target };
            given(&world, annotations, &[]).await;
            let first = value(&secret(&world, holder), "token");
            annotate(&world, RENEW, Value::Null);
            is_down.store(false, Relaxed);
            seconds(30).await;

            let now = value(&secret(&world, holder), "token");
            assert!(!first.is_empty() && !now.is_empty());
            assert_eq!((issued(&world), now == first), (2, false), "reconciles between: {looks_between}, in {holder}");
            assert!(renewal(&world).is_some());
        });
    }
}

/// Events report what a user can correct in the Secret: not bad credentials or a busy server.
#[test]
fn event_is_not_sent_for_faults_of_all_secrets() {
    for (fault, reported) in [
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
            let is_reported = events.iter().any(|event| event["reason"] == "TokenNotRenewed");
            assert_eq!(is_reported, reported, "{fault:?}");
        });
    }
}

/// spec 30 "Better than upstream" 8: an annotation prevents the request from being sent.
#[test]
fn event_reports_an_impossible_name() {
    for (annotations, expected) in [
        ([("serviceaccount.resources.gardener.cloud/namespace", "a/b"), ("some", "x")], "invalid namespace"),
        ([("serviceaccount.resources.gardener.cloud/namespace", ".."), ("some", "x")], "invalid namespace"),
        (
            [
                ("token-requestor.resources.gardener.cloud/target-secret-name", "a/b"),
                ("token-requestor.resources.gardener.cloud/target-secret-namespace", NAMESPACE),
            ],
            "could not read target secret: invalid resource name",
        ),
    ] {
        world(1, |world| async move {
            start(&world).await;
            given(&world, &annotations, &[]).await;
            seconds(60).await;

            assert!(last_error(&world).starts_with(expected), "{}", last_error(&world));
            let events = json!(world.sim.objects("events")).to_string();
            assert!(events.contains("TokenNotRenewed") && events.contains(expected), "{events}");
        });
    }
}

/// Secrets restored without tokens cause few reconciles at once, one token each, and spread renewals.
#[test]
fn token_requests_of_many_secrets_are_spread() {
    world_with(1, Duration::from_millis(5), |world| async move {
        for number in 0..1_000 {
            put(&world, &format!("access-{number}"), &[], &[]);
        }
        configure(&world, false, false);
        world.start().await;
        seconds(60).await;

        assert_eq!(issued(&world), 1_000);
        // The simulator answers after 5 ms, and five reconciles of three or four requests run concurrently.
        let first = world.requests().iter().position(|request| request.info.subresource == "token");
        assert!(first.is_some_and(|first| first < 100), "the first request does not wait: {first:?}");
        let all = world.sim.objects("secrets");
        let renewals: std::collections::BTreeSet<_> =
            all.iter().filter_map(|secret| secret["metadata"]["annotations"][RENEW].as_str()).collect();
        assert!(renewals.len() > 500, "{} times of renewal", renewals.len());
    });
}

/// The current fault of [`tokens_are_in_no_text`].
const NOTHING: usize = 0;
const PATCH_FAILS: usize = 1;
const REVIEW_FAILS: usize = 2;
const REJECTED: usize = 3;

/// Everything that the program shows, except for its log.
fn shown(world: &World) -> String {
    let actors = format!("{:?}", world.actors_of(PROGRAM));
    format!("{actors}\n{}", json!(world.sim.objects("events")))
}

/// No token leaves its Secret, even if a receiver quotes it.
#[test]
fn tokens_are_in_no_text() {
    let ((tokens, mut texts), log) = logged(tracing::Level::DEBUG, || world(1, quoting));
    assert!(log.lines().any(|line| line.contains("a token is rejected") && line.contains("(left out)")), "{log}");
    texts.push(log);

    for token in tokens {
        let signature = token.rsplit('.').next().expect("a signature");
        for secret in [signature, &BASE64_STANDARD.encode(&token)] {
            let reported = texts.iter().find(|text| text.contains(secret));
            assert_eq!(reported, None, "{secret}");
        }
    }
}

/// A life in which each receiver of a token quotes it. Returns the tokens, and what was shown.
async fn quoting(world: std::rc::Rc<World>) -> (Vec<String>, Vec<String>) {
    let of_target = |world: &World| value(&secret(world, "there"), "token");
    start(&world).await;
    let fault = Arc::new(AtomicUsize::new(PATCH_FAILS));
    let (now, sim) = (fault.clone(), world.sim.clone());
    world.sim.set_faults(move |info| {
        let token = value(&sim.object("secrets", NAMESPACE, "there").unwrap_or_default(), "token");
        match (now.load(Relaxed), info.verb.as_str(), info.resource.as_str()) {
            (PATCH_FAILS, "patch", "secrets") => {
                let text =
                    format!("a webhook denied the request: {token} or {} is bad", BASE64_STANDARD.encode(&token));
                Fault::FailBefore(Seen::status(403, "Forbidden", &text))
            }
            (REVIEW_FAILS, "create", "tokenreviews") => {
                Fault::FailBefore(Seen::status(403, "Forbidden", &format!("{token} is bad")))
            }
            (REJECTED, "create", "tokenreviews") => {
                let status = json!({ "user": {}, "error": format!("[invalid bearer token {token}]") });
                let review =
                    json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status });
                let (body, content_type) = (review.to_string().into(), "application/json");
                Fault::FailBefore(Seen::Answer(Failure { code: 201, body, content_type, retry_after: None }))
            }
            _ => Fault::None,
        }
    });
    // The target Secret already has the token, so that the fault can quote it.
    let target = [(format!("{TARGET}name"), "there"), (format!("{TARGET}namespace"), NAMESPACE)];
    let target = target.each_ref().map(|(key, text)| (key.as_str(), *text));
    given(&world, &target, &[]).await;
    assert!(last_error(&world).starts_with("could not update Secret with token: a webhook denied"));
    assert!(last_error(&world).contains("(left out)") && shown(&world).contains("TokenNotRenewed"));
    let (mut tokens, mut texts) = (vec![of_target(&world)], vec![shown(&world)]);
    fault.store(NOTHING, Relaxed);
    seconds(200).await;
    assert!(renewal(&world).is_some());

    fault.store(REVIEW_FAILS, Relaxed);
    annotate(&world, "some", json!("news"));
    seconds(10).await;
    assert!(last_error(&world).starts_with("token review failed: (left out)"), "{}", last_error(&world));
    tokens.push(of_target(&world));
    texts.push(shown(&world));

    fault.store(REJECTED, Relaxed);
    seconds(200).await;
    tokens.push(of_target(&world));
    texts.push(shown(&world));
    (tokens, texts)
}
