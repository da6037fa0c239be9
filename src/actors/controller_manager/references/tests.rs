use serde_json::{Value, json};

use super::{
    extraction::{ShootReferences, of_controller_deployment, of_seed, of_shoot},
    object::{ObjectState, ReferencedKind, ReferencedObject},
    referrer::{REFERRER_KINDS, Referrer},
    verdict::{ObjectVerdict, ReferrerState, ReferrerVerdict, SeenObject, judge_object, judge_referrer},
};

const ALL: ShootReferences = ShootReferences { audit_policies: true };

fn resource(api_version: &str, kind: &str, name: &str) -> Value {
    json!({ "name": "n", "resourceRef": { "apiVersion": api_version, "kind": kind, "name": name } })
}

fn resources() -> Value {
    json!([
        resource("v1", "Secret", "s"),
        resource("v1", "Secret", "s"),
        resource("v1", "ConfigMap", "c"),
        resource("security.gardener.cloud/v1alpha1", "WorkloadIdentity", "w"),
        resource("v1", "Secret", ""),
        resource("v2", "Secret", "x"),
        resource("v1", "WorkloadIdentity", "x"),
        resource("apps/v1", "Deployment", "x"),
        { "name": "n" },
        null,
    ])
}

fn shown(references: super::extraction::References) -> Vec<String> {
    references.into_iter().map(|(kind, name)| format!("{kind:?} {name}")).collect()
}

/// spec 81 F
#[test]
fn references_of_a_controller_deployment_are_resources_and_secrets_of_its_registry() {
    let registry = json!({ "pullSecretRef": { "name": "pull" }, "caBundleSecretRef": { "name": "ca" } });
    let deployment = json!({ "resources": resources(), "helm": { "ociRepository": registry } });

    assert_eq!(shown(of_controller_deployment(&deployment)), ["Secret ca", "Secret pull", "Secret s", "ConfigMap c"]);
}

/// The references of Seeds, and what is none: other kinds and versions, empty names.
#[test]
fn references_of_a_seed_are_its_resources() {
    let seed = json!({ "spec": { "resources": resources() } });

    assert_eq!(shown(of_seed(&seed)), ["Secret s", "ConfigMap c", "WorkloadIdentity w"]);
}

#[test]
fn references_of_a_shoot_are_found_at_each_path() {
    let reference = |api_version: &str, kind: &str| json!({ "apiVersion": api_version, "kind": kind, "name": "x" });
    let api_server = |fields: Value| json!({ "kubernetes": { "kubeAPIServer": fields } });
    let workload_identity = reference("security.gardener.cloud/v1alpha1", "WorkloadIdentity");
    let cases: [(Value, &[&str]); 13] = [
        (json!({ "resources": resources() }), &["Secret s", "ConfigMap c", "WorkloadIdentity w"]),
        (json!({ "dns": { "providers": [{ "credentialsRef": reference("v1", "Secret") }] } }), &["Secret x"]),
        (json!({ "dns": { "providers": [{ "credentialsRef": workload_identity }] } }), &["WorkloadIdentity x"]),
        (json!({ "dns": { "providers": [{ "credentialsRef": reference("v1", "ConfigMap") }] } }), &[]),
        (json!({ "dns": { "providers": [{ "secretName": "x" }, { "secretName": "" }] } }), &["Secret x"]),
        (api_server(json!({ "admissionPlugins": [{ "kubeconfigSecretName": "x" }, {}] })), &["Secret x"]),
        (api_server(json!({ "structuredAuthorization": { "kubeconfigs": [{ "secretName": "x" }] } })), &["Secret x"]),
        (
            api_server(json!({ "auditConfig": { "auditPolicy": { "configMapRef": { "name": "x" } } } })),
            &["ConfigMap x"],
        ),
        (api_server(json!({ "structuredAuthentication": { "configMapName": "x" } })), &["ConfigMap x"]),
        (api_server(json!({ "structuredAuthorization": { "configMapName": "x" } })), &["ConfigMap x"]),
        (json!({ "secretBindingName": "x", "kubernetes": null, "dns": [], "resources": {} }), &[]),
        (json!({ "kubernetes": { "kubeAPIServer": null } }), &[]),
        (Value::Null, &[]),
    ];
    for (spec, expected) in cases {
        assert_eq!(shown(of_shoot(&json!({ "spec": spec }), ALL)), expected, "{spec}");
    }
}

#[test]
fn references_to_audit_policies_do_not_count_if_switched_off() {
    let policy = json!({ "auditPolicy": { "configMapRef": { "name": "x" } } });
    let shoot = json!({ "spec": { "kubernetes": { "kubeAPIServer": {
        "auditConfig": policy, "structuredAuthentication": { "configMapName": "y" },
    } } } });

    assert_eq!(shown(of_shoot(&shoot, ShootReferences { audit_policies: false })), ["ConfigMap y"]);
}

/// spec 81 §3.2
#[test]
fn referrer_is_in_use_until_its_deletion_and_the_end_of_its_last_user() {
    let [deployment, seed, shoot] = &REFERRER_KINDS;
    let gardener: &[&str] = &["gardener"];
    let own: &[&str] = &["core.gardener.cloud/controllerdeployment", "x"];
    let cases = [
        (deployment, false, &[][..], true),
        (deployment, true, own, true),
        (deployment, true, gardener, false),
        (seed, false, &[], true),
        (seed, true, gardener, true),
        (seed, true, own, false),
        (shoot, true, gardener, true),
        (shoot, true, &["gardener.cloud/reference-protection"], false),
    ];
    for (kind, is_deleting, finalizers, expected) in cases {
        let mut metadata = json!({ "namespace": "a", "name": "r", "finalizers": finalizers });
        if is_deleting {
            metadata["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
        }
        let state = Referrer::of(kind, &json!({ "metadata": metadata }), ALL).state;
        assert_eq!(state.is_in_use, expected, "{} {finalizers:?}", kind.controller);
    }
}

/// spec 81 §3.2
#[test]
fn referrer_without_a_namespace_refers_to_objects_in_garden() {
    let object = json!({
        "metadata": { "namespace": "a", "name": "r" },
        "spec": { "resources": [resource("v1", "Secret", "s")] }, "resources": [resource("v1", "Secret", "s")],
    });
    let targets = REFERRER_KINDS.each_ref().map(|kind| Referrer::of(kind, &object, ALL).references);

    let in_garden = ReferencedObject::new(ReferencedKind::Secret, "garden", "s");
    let in_a = ReferencedObject::new(ReferencedKind::Secret, "a", "s");
    assert_eq!(targets, [Box::from([in_garden.clone()]), Box::from([in_garden]), Box::from([in_a])]);
}

const FREE: ObjectState = ObjectState { is_held: false, is_deleting: false };
const HELD: ObjectState = ObjectState { is_held: true, is_deleting: false };
const LEAVING: ObjectState = ObjectState { is_held: true, is_deleting: true };
const LOST: ObjectState = ObjectState { is_held: false, is_deleting: true };

const USER: ReferrerState = ReferrerState { is_in_use: true, is_held: true, is_deleting: false };
const NEW_USER: ReferrerState = ReferrerState { is_in_use: true, is_held: false, is_deleting: false };
const DELETED_USER: ReferrerState = ReferrerState { is_in_use: true, is_held: true, is_deleting: true };
const FINISHED: ReferrerState = ReferrerState { is_in_use: false, is_held: true, is_deleting: true };

/// spec 81 §3.2 G-10 to G-12, G-14
#[test]
fn object_is_protected_while_a_referrer_is_in_use() {
    let cases: [(ObjectState, &[ReferrerState], ObjectVerdict); 11] = [
        (FREE, &[USER], ObjectVerdict::Protect),
        (FREE, &[FINISHED, DELETED_USER], ObjectVerdict::Protect),
        (FREE, &[FINISHED], ObjectVerdict::Keep),
        (FREE, &[], ObjectVerdict::Keep),
        (HELD, &[FINISHED, NEW_USER], ObjectVerdict::Keep),
        (HELD, &[FINISHED], ObjectVerdict::Release),
        (HELD, &[], ObjectVerdict::Release),
        (LEAVING, &[USER], ObjectVerdict::Keep),
        (LEAVING, &[FINISHED], ObjectVerdict::ReleaseLast),
        (LEAVING, &[], ObjectVerdict::Release),
        (LOST, &[USER], ObjectVerdict::TooLate),
    ];
    for (object, referrers, expected) in cases {
        assert_eq!(judge_object(object, referrers), expected, "{object:?} {referrers:?}");
    }
}

fn seen(state: Option<ObjectState>) -> SeenObject {
    SeenObject { state, has_other_referrer: false }
}

/// spec 81 §3.2 G-13
#[test]
fn referrer_in_use_is_held_while_one_of_its_objects_exists() {
    let cases: [(ReferrerState, &[SeenObject], ReferrerVerdict); 8] = [
        (NEW_USER, &[], ReferrerVerdict::Keep),
        (NEW_USER, &[seen(None), seen(Some(LOST))], ReferrerVerdict::Keep),
        (NEW_USER, &[seen(None), seen(Some(FREE))], ReferrerVerdict::Hold),
        (USER, &[seen(Some(LEAVING))], ReferrerVerdict::Keep),
        (USER, &[seen(None)], ReferrerVerdict::Release),
        (USER, &[], ReferrerVerdict::Release),
        (DELETED_USER, &[seen(Some(HELD))], ReferrerVerdict::Keep),
        (ReferrerState { is_held: false, ..DELETED_USER }, &[seen(Some(HELD))], ReferrerVerdict::Keep),
    ];
    for (referrer, objects, expected) in cases {
        assert_eq!(judge_referrer(referrer, objects), expected, "{referrer:?} {objects:?}");
    }
}

/// spec 81 §3.2 G-14
#[test]
fn referrer_that_is_finished_waits_for_the_release_of_its_objects() {
    let shared = SeenObject { state: Some(HELD), has_other_referrer: true };
    let cases: [(ReferrerState, &[SeenObject], ReferrerVerdict); 7] = [
        (FINISHED, &[seen(Some(FREE)), seen(Some(HELD))], ReferrerVerdict::Wait),
        (FINISHED, &[seen(None), seen(Some(FREE)), seen(Some(LOST))], ReferrerVerdict::Release),
        (FINISHED, &[shared], ReferrerVerdict::Release),
        (FINISHED, &[seen(Some(LEAVING))], ReferrerVerdict::Release),
        (FINISHED, &[], ReferrerVerdict::Release),
        (FINISHED, &[shared, seen(Some(HELD))], ReferrerVerdict::Wait),
        (ReferrerState { is_held: false, ..FINISHED }, &[seen(Some(HELD))], ReferrerVerdict::Keep),
    ];
    for (referrer, objects, expected) in cases {
        assert_eq!(judge_referrer(referrer, objects), expected, "{referrer:?} {objects:?}");
    }
}

/// spec 81 §3.2 G-16
#[test]
fn missing_object_is_named_as_api_servers_name_it() {
    let text = |kind| ReferencedObject::new(kind, "ns", "x").missing(false);

    assert_eq!(text(ReferencedKind::Secret), "secrets \"x\" not found");
    assert_eq!(text(ReferencedKind::WorkloadIdentity), "workloadidentities.security.gardener.cloud \"x\" not found");
}
