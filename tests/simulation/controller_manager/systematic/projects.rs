//! Projects: their lives, their members, their activity, the mark of unused Projects, and their end.

use gardener_resource_manager::api::kinds;
use serde_json::json;
use sim::Sim;

use super::{Scenario, is_going, look, put_namespace, seconds, stays};
use crate::{
    controller_manager::{
        garden::{Garden, object},
        guards::shoot,
        project_stale::{self, configure},
        projects::{hand_over, put_dev},
        projects_rbac::{member, set_members},
    },
    systematic::ensure,
};

fn prepare_foreign(garden: &Garden) {
    put_namespace(garden, "garden-other");
}

/// Nothing happens to a foreign Namespace. The Namespace of the Project goes with the Project only.
fn namespaces_stay(sim: &Sim) -> Result<(), String> {
    stays(sim, &kinds::NAMESPACE, "", "garden-other")?;
    let project = look(sim, &kinds::PROJECT, "", "dev");
    let is_needed = !project.is_null() && !is_going(&project);
    let is_ending = is_going(&look(sim, &kinds::NAMESPACE, "", "garden-dev"));
    ensure(!is_needed || !is_ending, "the Namespace of a Project is deleted")
}

async fn whole_life(garden: &Garden) {
    put_dev(garden, json!({}));
    seconds(60).await;
    set_members(garden, json!([member("m", &["viewer", "extension:foo"])])).await;
    seconds(60).await;
    garden.delete(&kinds::PROJECT, "", "dev").await;
    seconds(90).await;
}

/// spec 82 A.3, A.7, A.10, scenarios 1, 7 and 14
#[test]
fn projects_survive_each_single_fault_of_a_whole_life() {
    Scenario { prepare: prepare_foreign, invariant: namespaces_stay, ..Scenario::new("projects-life") }
        .survives(whole_life);
}

async fn members(garden: &Garden) {
    set_members(garden, json!([member("m", &["viewer", "extension:foo"])])).await;
    seconds(30).await;
    set_members(garden, json!([member("n", &["admin"])])).await;
    seconds(60).await;
}

fn prepare_dev(garden: &Garden) {
    prepare_foreign(garden);
    put_dev(garden, json!({}));
}

/// spec 82 A.3 step 9, A.7, scenarios 14 and 15: who lost a role loses its rights.
#[test]
fn projects_survive_each_single_fault_when_members_come_and_go() {
    Scenario { prepare: prepare_dev, invariant: namespaces_stay, ..Scenario::new("projects-members") }
        .survives(members);
}

fn prepare_active(garden: &Garden) {
    hand_over(garden, "garden-dev", "dev");
    put_dev(garden, json!({}));
}

async fn activity(garden: &Garden) {
    garden.put(shoot("garden-dev", "s", json!({})));
    seconds(30).await;
    garden.patch(&kinds::SHOOT, "garden-dev", "s", json!({ "spec": { "purpose": "testing" } })).await;
    seconds(30).await;
    garden.put(object(&kinds::BACKUP_ENTRY, "garden-dev", "b", json!({ "spec": { "bucketName": "x" } })));
    seconds(30).await;
}

/// spec 82 C.2, scenario 36
#[test]
fn project_activity_survives_each_single_fault() {
    Scenario { prepare: prepare_active, ..Scenario::new("project-activity") }.survives(activity);
}

fn prepare_used(garden: &Garden) {
    configure(garden);
    hand_over(garden, "garden-used", "used");
    garden.put(project_stale::project(garden, "used", None, None));
    garden.put(shoot("garden-used", "s", json!({})));
}

/// A Project in use stays, and no Namespace goes before its Project.
fn used_project_stays(sim: &Sim) -> Result<(), String> {
    stays(sim, &kinds::PROJECT, "", "used")?;
    let project = look(sim, &kinds::PROJECT, "", "dev");
    let is_needed = !project.is_null() && !is_going(&project);
    let is_ending = |name: &str| is_going(&look(sim, &kinds::NAMESPACE, "", name));
    ensure(!is_ending("garden-used"), "the Namespace of a Project in use is deleted")?;
    ensure(!is_needed || !is_ending("garden-dev"), "the Namespace of a Project is deleted")
}

/// The Namespace is made for the Project: whether it was adopted before its end plays no role.
async fn becomes_stale(garden: &Garden) {
    garden.put(project_stale::project(garden, "dev", Some(-20), Some(-1)));
    seconds(150).await;
}

/// spec 82 D.4, D.6, scenario 44
#[test]
fn project_that_is_stale_is_deleted_despite_each_single_fault() {
    Scenario { prepare: prepare_used, invariant: used_project_stays, ..Scenario::new("project-stale") }
        .survives(becomes_stale);
}

async fn nobody_uses_it(garden: &Garden) {
    project_stale::put_project(garden, None, None);
    seconds(150).await;
}

fn no_project_goes(sim: &Sim) -> Result<(), String> {
    used_project_stays(sim)?;
    ensure(!is_going(&look(sim, &kinds::PROJECT, "", "dev")), "a Project is deleted before its time")
}

/// spec 82 D.3, scenario 41
#[test]
fn project_that_nobody_uses_is_marked_despite_each_single_fault() {
    Scenario { prepare: prepare_used, invariant: no_project_goes, ..Scenario::new("project-mark") }
        .survives(nobody_uses_it);
}

/// The program knows the marked Project when faults begin. What happens in the Namespace of a Project that it has missed is
/// no activity (spec 82 C.2), and no later list makes up for it.
fn prepare_marked(garden: &Garden) {
    prepare_used(garden);
    project_stale::put_project(garden, Some(-1), None);
}

async fn is_used_again(garden: &Garden) {
    garden.put(shoot("garden-dev", "s", json!({})));
    seconds(150).await;
}

/// spec 82 D.3, scenarios 45 and 48
#[test]
fn project_that_is_used_again_loses_its_mark_despite_each_single_fault() {
    Scenario { prepare: prepare_marked, invariant: no_project_goes, ..Scenario::new("project-mark-end") }
        .survives(is_used_again);
}
