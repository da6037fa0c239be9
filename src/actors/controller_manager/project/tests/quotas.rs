use serde_json::{Value, json};

use super::DEV;
use crate::{
    actors::controller_manager::project::quota::{QuotaState, Template, first_match, has_scopes},
    api::{
        config::controller_manager::ProjectQuota,
        meta::selector::{Labels, labels_in},
    },
};

const SHOOTS: &str = "count/shoots.core.gardener.cloud";

fn configured(quota: Value) -> ProjectQuota {
    serde_json::from_value(quota).unwrap()
}

fn template(quota: Value) -> Template {
    Template::new(&configured(quota)).unwrap()
}

fn limits(hard: Value) -> Template {
    template(json!({"config": {"spec": {"hard": hard}}}))
}

fn labels(labels: &Value) -> Labels {
    labels_in(labels)
}

/// spec 82 A.6 no. 1, scenario 22
#[test]
fn first_template_that_selects_the_project_counts() {
    let by_labels = |selector: Value| template(json!({"config": {}, "projectSelector": selector}));
    let templates = [
        by_labels(json!({"matchLabels": {"plan": "one"}})),
        by_labels(json!({"matchExpressions": [{"key": "plan", "operator": "Exists"}]})),
        by_labels(json!({"matchLabels": {"plan": "two"}})),
    ];
    let index = |object: &Value| first_match(&templates, &labels(object)).map(|(index, _)| index);

    assert_eq!(index(&json!({"plan": "one", "a": "b"})), Some(0));
    assert_eq!(index(&json!({"plan": "two"})), Some(1));
    assert_eq!(index(&json!({"a": "b"})), None);
    for every in [by_labels(json!({})), template(json!({"config": {}}))] {
        assert!(first_match(&[every], &Labels::new()).is_some(), "it selects every Project");
    }
}

/// spec 82 A.6: only labels, annotations and limits of the configuration are used.
#[test]
fn new_quota_has_what_is_configured_and_the_owner() {
    let config = json!({
        "apiVersion": "v2", "kind": "Foo",
        "metadata": {"name": "x", "creationTimestamp": null, "labels": {"tier": "default"}, "annotations": {"a": "b"}},
        "spec": {"hard": {SHOOTS: 100, "pods": "1k"}, "scopes": ["BestEffort"]}, "status": {},
    });
    let owner = DEV.strong_reference();

    let quota = template(json!({"config": config})).new_quota("garden-dev", &owner);

    let metadata = json!({
        "name": "gardener", "namespace": "garden-dev", "ownerReferences": [owner],
        "labels": {"tier": "default"}, "annotations": {"a": "b"},
    });
    let spec = json!({"hard": {SHOOTS: "100", "pods": "1k"}});
    assert_eq!(quota, json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}));
    assert!(has_scopes(&configured(json!({"config": config}))));
    assert!(!has_scopes(&configured(json!({"config": {"spec": {"scopes": []}}}))));
}

/// spec 82 A.6 no. 2, D-7, scenario 23
#[test]
fn existing_limits_keep_their_values_and_others_go() {
    let template = template(json!({"config": {
        "metadata": {"labels": {"tier": "default"}, "annotations": {"note": "configured"}},
        "spec": {"hard": {SHOOTS: "100", "count/secretbindings.core.gardener.cloud": "42"}},
    }}));
    let foreign = json!({"uid": "u9"});
    let quota = json!({
        "metadata": {"labels": {"a": "b", "tier": "x"}, "annotations": {"c": "d"}, "ownerReferences": [foreign]},
        "spec": {"hard": {SHOOTS: "120", "pods": "5"}, "scopes": ["BestEffort"]},
    });
    let owner = DEV.strong_reference();

    let patch = template.patch(&quota, &owner).unwrap();

    let metadata = json!({
        "labels": {"tier": "default"}, "annotations": {"note": "configured"}, "ownerReferences": [foreign, owner],
    });
    let hard = json!({"count/secretbindings.core.gardener.cloud": "42", "pods": null});
    assert_eq!(patch, json!({"metadata": metadata, "spec": {"hard": hard}}));
}

/// spec 82 A.6: what another controller raised or noted is no difference.
#[test]
fn quota_that_lacks_nothing_is_not_written() {
    let owner = DEV.strong_reference();
    let template = limits(json!({"count/secrets": "42"}));
    let mut quota = template.new_quota("garden-dev", &owner);
    quota["spec"]["hard"]["count/secrets"] = json!("400");
    quota["metadata"]["annotations"] = json!({"quota.gardener.cloud/secrets-per-shoot": "4"});
    quota["status"] = json!({"used": {"count/secrets": "3"}});

    assert_eq!(template.patch(&quota, &owner), None);
    let other = limits(json!({"pods": "1"}));
    let state = QuotaState::of(&quota, &[other, template]);
    assert!(state.fits(1, "u1") && !state.fits(0, "u1") && !state.fits(1, "u2") && !state.fits(2, "u1"));
}

/// spec 82 A.6, B.1: parts A and B do not write the same annotation in turn.
#[test]
fn annotations_of_the_alignment_are_set_at_creation_only() {
    let owner = DEV.strong_reference();
    let alignment = json!({
        "quota.gardener.cloud/configmaps-per-shoot": "1", "quota.gardener.cloud/secrets-per-shoot": "3",
    });
    let template = template(json!({"config": {"metadata": {"annotations": alignment}}}));
    let mut quota = template.new_quota("garden-dev", &owner);
    assert_eq!(quota["metadata"]["annotations"], alignment);

    quota["metadata"]["annotations"] = json!({"quota.gardener.cloud/secrets-per-shoot": "4"});

    assert_eq!(template.patch(&quota, &owner), None);
    assert!(QuotaState::of(&quota, &[template]).fits(0, "u1"));
}

/// spec 82 A.6: without `spec.hard` there are no limits.
#[test]
fn quota_without_configured_limits_is_emptied() {
    let owner = DEV.strong_reference();
    let template = template(json!({"config": {}}));
    let mut quota = template.new_quota("garden-dev", &owner);
    assert_eq!(template.patch(&quota, &owner), None);
    quota["spec"]["hard"] = json!({"pods": "5"});

    assert_eq!(template.patch(&quota, &owner), Some(json!({"spec": {"hard": {"pods": null}}})));
    for odd in [json!({}), json!({"spec": null}), json!({"spec": {"hard": []}, "metadata": 5})] {
        assert_eq!(template.patch(&odd, &owner), Some(json!({"metadata": {"ownerReferences": [owner]}})), "{odd}");
    }
}
