//! ResourceQuotas of Projects: the default one, its change with the plan of the Project, and room for what Gardener itself
//! creates.

use gardener_resource_manager::api::kinds;
use serde_json::json;
use sim::Sim;

use super::{Scenario, look, seconds};
use crate::{
    controller_manager::{
        garden::{Garden, object},
        project_resource_quotas::quota,
        projects::{hand_over, put_dev},
        projects_quotas::{configure, plans, put_dev_with_plan},
    },
    systematic::ensure,
};

fn put_foreign(garden: &Garden) {
    let hard = json!({ "spec": { "hard": { "pods": "5" } } });
    garden.put(object(&kinds::RESOURCE_QUOTA, "a", "gardener", hard));
}

fn prepare_plans(garden: &Garden) {
    configure(garden, plans());
    put_foreign(garden);
}

/// A ResourceQuota outside of Projects keeps its values.
fn foreign_quota_stays(sim: &Sim) -> Result<(), String> {
    let quota = look(sim, &kinds::RESOURCE_QUOTA, "a", "gardener");
    ensure(quota["spec"]["hard"] == json!({ "pods": "5" }), "a foreign ResourceQuota is changed")
}

/// Longer than a request can hang: until the deadline of its reconcile.
const LONGER_THAN_A_RECONCILE: u64 = 240;

async fn quota_is_removed(garden: &Garden) {
    put_dev_with_plan(garden, Some("one"));
    seconds(LONGER_THAN_A_RECONCILE).await;
    garden.sim.remove("resourcequotas", "garden-dev", "gardener");
    seconds(60).await;
}

/// spec 82 A.6, scenario 22
#[test]
fn default_quotas_of_projects_survive_each_single_fault() {
    Scenario { prepare: prepare_plans, invariant: foreign_quota_stays, ..Scenario::new("project-default-quotas") }
        .survives(quota_is_removed);
}

/// The ResourceQuota of the first plan exists when faults begin: the next plan leaves it the labels that it has.
fn prepare_plan(garden: &Garden) {
    prepare_plans(garden);
    put_dev_with_plan(garden, Some("one"));
}

async fn plan_changes(garden: &Garden) {
    let change = json!({ "metadata": { "labels": { "plan": "two" } }, "spec": { "description": "x" } });
    garden.patch(&kinds::PROJECT, "", "dev", change).await;
    seconds(60).await;
}

/// spec 82 A.6, scenarios 22 and 23
#[test]
fn default_quotas_of_projects_survive_each_single_fault_when_another_one_is_chosen() {
    Scenario { prepare: prepare_plan, invariant: foreign_quota_stays, ..Scenario::new("project-quota-plans") }
        .survives(plan_changes);
}

fn prepare_dev(garden: &Garden) {
    hand_over(garden, "garden-dev", "dev");
    put_dev(garden, json!({}));
    put_foreign(garden);
}

async fn room(garden: &Garden) {
    garden.put(quota("garden-dev", "small", ([Some("1"), Some("1"), Some("2")], [None; 2])));
    seconds(30).await;
    let notes = [Some("1"), Some("3")];
    garden.put(quota("garden-dev", "more", ([Some("10"), Some("10"), Some("30")], notes)));
    seconds(30).await;
    garden.put(quota("garden-dev", "enough", ([Some("1"), Some("20"), Some("40")], [None; 2])));
    seconds(30).await;
}

/// spec 82 B.3, scenarios 29, 31 and 33
#[test]
fn project_quotas_survive_each_single_fault() {
    Scenario { prepare: prepare_dev, invariant: foreign_quota_stays, ..Scenario::new("project-quotas") }.survives(room);
}
