use std::time::Duration;

use kit::{Clock, Random};
use serde_json::json;
use sim::{Fault, Seen, Sim, SimOptions};

use super::*;

const GARDEN: ClusterLabel = ClusterLabel::kinds_may_come_later("garden");

fn garden() -> (Sim, Clock) {
    let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let sim = Sim::new(SimOptions::new(clock.clone(), Random::seeded(1)));
    sim.set_reviewer(|_| (true, String::new()));
    (sim, clock)
}

async fn findings((sim, clock): &(Sim, Clock)) -> Vec<Finding> {
    let cluster = connect::read_only_as(sim.client(), GARDEN, clock.clone(), Random::seeded(1));
    let limit = Duration::from_secs(15);
    ask(Asked { cluster: &cluster, host: "sim", needed: &[], necessary: Some(&SHOOTS), limit }).await
}

fn shoots(findings: &[Finding]) -> (Outcome, &str) {
    let finding = findings.iter().find(|finding| finding.what == "shoots.core.gardener.cloud").unwrap();
    (finding.outcome, &finding.detail)
}

#[tokio::test(start_paused = true)]
async fn check_of_a_cluster_that_is_no_garden_has_a_missing_kind() {
    let garden = garden();
    let without = findings(&garden).await;
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let names = json!({"plural": "shoots", "singular": "shoot", "kind": "Shoot", "listKind": "ShootList"});
    let versions = json!([{"name": "v1beta1", "served": true, "storage": true, "schema": schema}]);
    let spec = json!({"group": "core.gardener.cloud", "names": names, "scope": "Namespaced", "versions": versions});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "shoots.core.gardener.cloud"}, "spec": spec,
    });
    garden.0.put(definition).unwrap();

    let with = findings(&garden).await;

    assert_eq!(shoots(&without), (Outcome::Missing, SHOOTS.without));
    assert_eq!(said(&without, None, false).unwrap().code, 1);
    assert_eq!(shoots(&with), (Outcome::Good, ""));
    assert_eq!(said(&with, None, false).unwrap().code, 0);
}

#[tokio::test(start_paused = true)]
async fn check_does_not_call_a_cluster_without_an_answer_no_garden() {
    let garden = garden();
    garden.0.set_faults(|info| match info.path.contains("core.gardener.cloud") {
        true => Fault::FailBefore(Seen::status(503, "ServiceUnavailable", "not now")),
        false => Fault::None,
    });

    let findings = findings(&garden).await;

    let (outcome, detail) = shoots(&findings);
    assert!(outcome == Outcome::Missing && detail.starts_with("not known: "), "{outcome:?} {detail}");
}

#[test]
fn check_cuts_the_answer_of_a_server() {
    let finding = Finding::new("cluster", "source", "h", Outcome::Missing).because("x".repeat(1 << 20));

    assert!(finding.detail.len() < 5_000, "{}", finding.detail.len());
}
