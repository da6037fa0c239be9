//! The default ResourceQuotas of Projects.

use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};
use tracing::Level;

use super::{
    garden::{Garden, garden, object},
    projects::{becomes, hand_over, owner_reference, project},
};
use crate::log_capture::logged;

const SHOOTS: &str = "count/shoots.core.gardener.cloud";
const BINDINGS: &str = "count/secretbindings.core.gardener.cloud";

pub(super) fn configure(garden: &Garden, quotas: Value) {
    garden.config.borrow_mut().controllers.project.quotas =
        serde_json::from_value(quotas).expect("quotas of a configuration");
}

/// Two quotas for Projects with the label `plan`: the first for `one` only.
pub(super) fn plans() -> Value {
    let metadata = json!({"labels": {"tier": "one"}, "annotations": {"note": "configured"}});
    json!([
        {"config": {"metadata": metadata, "spec": {"hard": {SHOOTS: "100", BINDINGS: "42"}}},
            "projectSelector": {"matchLabels": {"plan": "one"}}},
        {"config": {"spec": {"hard": {"pods": "7"}}},
            "projectSelector": {"matchExpressions": [{"key": "plan", "operator": "Exists"}]}},
    ])
}

pub(super) fn put_dev_with_plan(garden: &Garden, plan: Option<&str>) {
    let mut dev = project("dev", json!({"namespace": "garden-dev"}));
    if let Some(plan) = plan {
        dev["metadata"]["labels"] = json!({"plan": plan});
    }
    garden.put(dev);
}

fn quota(garden: &Garden) -> Value {
    garden.find(&kinds::RESOURCE_QUOTA, "garden-dev", "gardener").unwrap_or_default()
}

/// spec 82 A.6 no. 1, scenario 22
#[test]
fn first_quota_that_selects_the_project_is_used() {
    for (plan, hard) in [("one", json!({SHOOTS: "100", BINDINGS: "42"})), ("two", json!({"pods": "7"}))] {
        garden(|garden| async move {
            configure(&garden, plans());
            garden.settled().await;
            put_dev_with_plan(&garden, Some(plan));
            becomes(&garden, "dev", "Ready").await;

            let quota = quota(&garden);
            assert_eq!(quota["spec"]["hard"], hard);
            assert_eq!(quota["metadata"]["ownerReferences"], json!([owner_reference(&garden, "dev", true)]));
            let (labels, annotations) = (&quota["metadata"]["labels"], &quota["metadata"]["annotations"]);
            match plan {
                "one" => assert_eq!((labels, annotations), (&json!({"tier": "one"}), &json!({"note": "configured"}))),
                _ => assert_eq!((labels, annotations), (&Value::Null, &Value::Null)),
            }
        });
    }
}

/// spec 82 A.6 no. 1, scenario 22
#[test]
fn without_a_matching_quota_nothing_is_created_or_touched() {
    garden(|garden| async move {
        configure(&garden, plans());
        garden.settled().await;
        put_dev_with_plan(&garden, None);
        becomes(&garden, "dev", "Ready").await;
        assert_eq!(quota(&garden), Value::Null);
        garden.put(object(&kinds::RESOURCE_QUOTA, "garden-dev", "gardener", json!({"spec": {"hard": {"pods": "5"}}})));
        let before = quota(&garden);

        garden.patch(&kinds::PROJECT, "", "dev", json!({"spec": {"description": "x"}})).await;
        becomes(&garden, "dev", "Ready").await;
        garden.settle().await;

        assert_eq!(quota(&garden), before);
    });
}

/// spec 82 A.6 no. 2, D-7, scenario 23
#[test]
fn existing_quota_keeps_its_values_but_not_its_keys() {
    garden(|garden| async move {
        configure(&garden, plans());
        hand_over(&garden, "garden-dev", "dev");
        garden.put(object(
            &kinds::RESOURCE_QUOTA,
            "garden-dev",
            "gardener",
            json!({
                "metadata": {"labels": {"a": "b", "tier": "x"}, "annotations": {"c": "d"}},
                "spec": {"hard": {SHOOTS: "120", "pods": "5"}},
            }),
        ));
        garden.settled().await;
        put_dev_with_plan(&garden, Some("one"));
        becomes(&garden, "dev", "Ready").await;

        let quota = quota(&garden);
        assert_eq!(quota["spec"]["hard"], json!({SHOOTS: "120", BINDINGS: "42"}));
        assert_eq!(quota["metadata"]["labels"], json!({"a": "b", "tier": "one"}));
        assert_eq!(quota["metadata"]["annotations"], json!({"c": "d", "note": "configured"}));
        assert_eq!(quota["metadata"]["ownerReferences"], json!([owner_reference(&garden, "dev", true)]));
    });
}

/// spec 82 "better" 1, A.6: another value is no drift, and usage wakes nobody.
#[test]
fn deleted_quota_is_created_again_and_other_values_stay() {
    garden(|garden| async move {
        configure(&garden, plans());
        garden.settled().await;
        put_dev_with_plan(&garden, Some("one"));
        becomes(&garden, "dev", "Ready").await;
        let wanted = quota(&garden)["spec"].clone();
        garden.sim.remove("resourcequotas", "garden-dev", "gardener");
        garden.soon("it is created again", || quota(&garden)["spec"] == wanted).await;
        garden.edit(&kinds::RESOURCE_QUOTA, "garden-dev", "gardener", |quota| {
            quota["spec"]["hard"] = json!({SHOOTS: "100", "pods": "1"});
        });
        garden.soon("the limits are the configured ones", || quota(&garden)["spec"] == wanted).await;
        garden.settle().await;
        garden.sim.clear_requests();

        garden.edit(&kinds::RESOURCE_QUOTA, "garden-dev", "gardener", |quota| {
            quota["spec"]["hard"][SHOOTS] = json!("200");
            quota["status"] = json!({"used": {SHOOTS: "3"}});
        });
        garden.settle().await;

        assert_eq!(garden.asked(), Vec::<String>::new());
        assert_eq!(quota(&garden)["spec"]["hard"], json!({SHOOTS: "200", BINDINGS: "42"}));
    });
}

/// spec 82 §4: scopes have no effect, which the log says at the start.
#[test]
fn scopes_of_a_configured_quota_have_no_effect() {
    let ((), log) = logged(Level::WARN, || {
        garden(|garden| async move {
            configure(&garden, json!([{"config": {"spec": {"hard": {"pods": "7"}, "scopes": ["BestEffort"]}}}]));
            garden.settled().await;
            put_dev_with_plan(&garden, None);
            becomes(&garden, "dev", "Ready").await;

            assert_eq!(quota(&garden)["spec"], json!({"hard": {"pods": "7"}}));
        });
    });
    assert!(log.contains("scopes of the ResourceQuota have no effect"), "{log}");
    assert!(log.contains("controllers.project.quotas[0]"), "{log}");
}

/// spec 82 A-T8, A.3 step 7: a quota that the server refuses is shown with its prefix.
#[test]
fn refused_quota_is_shown() {
    garden(|garden| async move {
        configure(&garden, plans());
        garden.settled().await;
        garden.sim.set_faults(|info| match info.resource.as_str() {
            "resourcequotas" if info.verb == "create" => {
                sim::Fault::FailBefore(sim::Seen::status(403, "Forbidden", "exceeded quota"))
            }
            _ => sim::Fault::None,
        });
        put_dev_with_plan(&garden, Some("one"));
        becomes(&garden, "dev", "Failed").await;
        let text = "Error while setting up ResourceQuota: exceeded quota";
        super::projects::told(&garden, "dev", super::projects::FAILED, text).await;

        garden.sim.clear_faults();

        becomes(&garden, "dev", "Ready").await;
    });
}
