//! Maintenances whose writes fail: how `lastMaintenance` ends.

use std::time::Duration;

use serde_json::json;
use sim::{Fault, Seen};

use super::{
    garden::garden,
    shoot_maintenance::{
        ask, has_tasks, last, maintenances, on_updates, put_profile, refused, shoot, started, two_versions, version,
        window,
    },
};

/// spec 84 C-25, C-T3: the answer to the update is lost, or the last write to the status fails. Nobody asks any more.
#[test]
fn maintenance_with_a_lost_answer_is_not_left_processing() {
    for (verb, nth) in [("update", 2), ("patch", 2)] {
        garden(|garden| async move {
            started(&garden, json!({})).await;
            let mut count = 0;
            garden.sim.set_faults(move |info| {
                if info.user != "gcm" || info.verb != verb || info.resource != "shoots" {
                    return Fault::None;
                }
                count += 1;
                match verb {
                    _ if count != nth => Fault::None,
                    "update" => Fault::FailAfterCommit(Seen::Disconnect),
                    _ => Fault::FailBefore(Seen::internal_error("no")),
                }
            });

            ask(&garden).await;
            garden.soon("it is updated", || version(&garden) == "1.30.5").await;
            garden.soon("its end is written", || last(&garden)["state"] == "Succeeded").await;
            garden.settle().await;

            assert_eq!((has_tasks(&garden), maintenances(&garden, "failed")), (true, Some(1.0)), "{verb}");
        });
    }
}

/// spec 84 C-25, C-T3
#[test]
fn maintenance_is_not_repeated_because_its_end_could_not_be_written() {
    garden(|garden| async move {
        put_profile(&garden, &two_versions());
        garden.settled().await;
        let mut patches = 0;
        garden.sim.set_faults(move |info| {
            let is_meant = info.user == "gcm" && info.verb == "patch" && info.resource == "shoots";
            patches += usize::from(is_meant);
            let fails = is_meant && (2..6).contains(&patches);
            if fails { Fault::FailBefore(Seen::internal_error("no")) } else { Fault::None }
        });

        let settings = json!({ "timeWindow": window(&garden, -10, 60), "autoUpdate": { "kubernetesVersion": true } });
        garden.put(shoot(&garden, "s", json!({ "maintenance": settings })));
        garden.soon("its end is written", || last(&garden)["state"] == "Succeeded").await;
        tokio::time::sleep(Duration::from_secs(1800)).await;

        let updates = garden.asked_for("shoots").iter().filter(|request| request.starts_with("update")).count();
        assert_eq!((version(&garden), updates), ("1.30.5".to_owned(), 2), "a dry run and an update");
    });
}

/// spec 84 C-T3: the Shoot does not tell whether it has an update that changes no spec.
#[test]
fn maintenance_that_was_never_written_does_not_succeed() {
    garden(|garden| async move {
        put_profile(&garden, &json!([{ "version": "1.30.1" }]));
        garden.settled().await;
        on_updates(&garden, |_, is_dry_run, _| if is_dry_run { Fault::None } else { refused(503) });

        let mut asking = shoot(&garden, "s", json!({ "maintenance": { "timeWindow": window(&garden, -10, 30) } }));
        asking["metadata"]["annotations"] = json!({ "maintenance.gardener.cloud/operation": "rotate-ssh-keypair" });
        garden.put(asking);
        tokio::time::sleep(Duration::from_secs(2 * 3600)).await;

        assert_eq!(last(&garden)["state"], "Processing");
        assert!(!has_tasks(&garden));
    });
}
