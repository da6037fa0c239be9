//! Rule 11: what a question about an actor finds out.

use serde_json::json;

use super::support::*;
use crate::{testing::settle, *};

const LIMIT: std::time::Duration = seconds(2);

async fn details(universe: &crate::testing::Universe, name: &str) -> ActorDetails {
    universe.env.status_registry.ask(&format!("scripted/{name}"), LIMIT).await.unwrap().unwrap()
}

#[test]
fn rule_11_details_have_the_last_ten_reconciles_with_causes_and_the_last_error() {
    let ends: [fn() -> Step; 4] = [fail, || Step::After(seconds(3), Ok(Outcome::Again)), fail, done];
    run(Scripted::new(steps(ends)), |supervised, _, universe| async move {
        let begin = universe.env.clock.wall();
        supervised.wake(&key("a"), Wake::high(EVENT.with(Causes::OBJECT)));
        reconcile_time(5).await;

        let past = details(&universe, "a").await.reconciles;

        let shown: Vec<_> = past.iter().map(|past| (past.result, past.ms, past.error.as_deref())).collect();
        let expected = [
            (ReconcileResult::Success, 0, None),
            (ReconcileResult::Error, 0, Some("no")),
            (ReconcileResult::Requeue, 3000, None),
            (ReconcileResult::Error, 0, None),
        ];
        assert_eq!(shown, expected, "only the text of the last error is known");
        assert!(past.iter().all(|past| past.reconciler == "first"));
        assert_eq!(past[3].causes, ["object"]);
        assert_eq!(past[3].ended, begin);

        for _ in 0..20 {
            supervised.wake(&key("a"), Wake::high(Causes::RESYNC));
            settle().await;
        }
        let past = details(&universe, "a").await.reconciles;
        assert_eq!((past.len(), past[9].causes.as_slice()), (10, ["resync"].as_slice()));
    });
}

#[test]
fn rule_11_details_say_what_runs_next_and_why() {
    let controller = Scripted::new(|reconcile: &ScriptedReconcile| match reconcile.key.as_str() {
        "timer" => Step::End(Ok(Outcome::After(seconds(60)))),
        "failing" => fail(),
        "waiting" => Step::End(Ok(Outcome::Wait(vec![Signal::default().moment()]))),
        _ => Step::After(seconds(10), Ok(Outcome::Done)),
    });
    run(controller.permits(1), |supervised, _, universe| async move {
        let begin = universe.env.clock.wall();
        for name in ["timer", "failing", "waiting"] {
            supervised.wake(&key(name), Wake::high(Causes::OBJECT));
            settle().await;
        }
        for name in ["running", "before", "queued"] {
            supervised.wake(&key(name), Wake::low(Causes::RESYNC));
        }
        settle().await;
        supervised.wake(&key("running"), Wake::high(Causes::OBJECT));
        let shown = async |name: &str| {
            let details = details(&universe, name).await;
            let pending: Vec<_> = details.pending.iter().map(|it| (it.state, it.causes.join("+"), it.due)).collect();
            (pending, details.waits_for.unwrap_or_default())
        };
        let text = |causes: &str| causes.to_owned();

        assert_eq!(shown("timer").await.0, [(PendingState::Timer, text(""), Some(begin + seconds(60)))]);
        let (failing, _) = shown("failing").await;
        assert_eq!(
            (failing[0].0, &*failing[0].1, failing[0].2 > Some(begin)),
            (PendingState::BackingOff, "object", true)
        );
        let (waiting, what) = shown("waiting").await;
        assert_eq!(waiting, [(PendingState::Waiting, text("object"), None)]);
        assert_eq!(what, "first waits for a change that its last reconcile asked for");
        let (running, _) = shown("running").await;
        let expected = [(PendingState::Running, text("resync"), None), (PendingState::Next, text("object"), None)];
        assert_eq!(running, expected);
        let (queued, what) = shown("queued").await;
        assert_eq!(queued, [(PendingState::Queued, text("resync"), None)]);
        assert_eq!(what, "first waits for a permit: 1 of 1 are in use, 1 keys are before it");
    });
}

#[test]
fn rule_11_details_name_the_caches_that_an_actor_waits_for() {
    let controller = Scripted::new(|_| done());
    controller.ready.set(false);
    controller.error.replace(Some("forbidden".to_owned()));
    run(controller, |supervised, _, universe| async move {
        supervised.wake(&key("a"), Wake::high(Causes::OBJECT));
        settle().await;

        let details = details(&universe, "a").await;

        assert_eq!(details.pending[0].state, PendingState::Caches);
        let expected = "first waits for caches that are not synced: store: forbidden";
        assert_eq!(details.waits_for.as_deref(), Some(expected));
    });
}

#[test]
fn rule_11_details_contain_the_description_of_the_object() {
    run(Scripted::new(|_| done()), |supervised, controller, universe| async move {
        supervised.wake(&key("a"), Wake::high(Causes::OBJECT));
        settle().await;
        controller.description.replace(Some(|key| ("bundle", json!({ "name": key }))));

        let described = serde_json::to_value(details(&universe, "a").await).unwrap();

        assert_eq!(described["bundle"], json!({"name": "a"}));
        assert_eq!(described["reconciles"][0]["result"], "success");

        controller.description.replace(Some(|_| panic!("scripted")));
        let details = details(&universe, "a").await;
        assert_eq!((details.own.len(), details.reconciles.len()), (0, 1), "a panic costs the description only");
    });
}
