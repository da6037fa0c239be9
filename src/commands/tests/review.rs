use std::{collections::BTreeMap, sync::Arc};

use super::*;
use crate::{
    commands::{
        CommandError, DIFFERENT, FAILED, OK,
        review::{Input, review, validate},
    },
    webhooks::{
        endpoint::Validating,
        knowledge::Manifests,
        registry::WebhookEntry,
        validating::{Judgement, Review, Validated, Validator},
        view::{Failure, View},
    },
};

const POD: &str = "{apiVersion: v1, kind: Pod, metadata: {namespace: ns, name: p}, spec: {serviceAccountName: a}}";
const ACCOUNT: &str =
    "{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: ns, name: a}, automountServiceAccountToken: false}";
const TOKEN_MOUNT: &str = "/webhooks/mount-projected-service-account-token";
const SCHEDULER: &str = "/webhooks/default-pod-scheduler-name";
const WORKERS: &str = "/validate-extensions-gardener-cloud-v1alpha1-worker";
const DELETIONS: &str = "/webhooks/validate-crd-deletion";

fn reviewed(path: &str, text: &str, config: Option<&str>, objects: &str) -> Result<Said, CommandError> {
    let config = config.map(|config| source("config", config));
    let objects = [source("objects", objects)];
    let objects = if objects[0].bytes.is_empty() { &[][..] } else { &objects[..] };
    review(&Input { path, review: &source("review", text), config: config.as_ref(), objects })
}

fn documents(said: &Said) -> Vec<serde_json::Value> {
    said.out.split("---\n").map(|text| serde_saphyr::from_str(text).unwrap()).collect()
}

#[test]
fn review_prints_the_object_and_the_patch() {
    let review = format!(
        "{{apiVersion: admission.k8s.io/v1, kind: AdmissionReview, request: {{uid: u, operation: CREATE, namespace: ns,
          kind: {{version: v1, kind: Pod}}, object: {POD}}}}}"
    );

    for text in [review.as_str(), POD] {
        let said = reviewed(TOKEN_MOUNT, text, None, ACCOUNT).unwrap();

        let documents = documents(&said);
        assert_eq!((said.code, said.remarks.as_slice()), (OK, &["allowed, changed".to_owned()][..]));
        assert_eq!(documents[0]["spec"]["volumes"][0]["name"], "kube-api-access-gardener");
        assert_eq!((&documents[1][0]["op"], &documents[1][0]["path"]), (&"add".into(), &"/spec/volumes".into()));
        assert_eq!(documents.len(), 2);
    }
}

#[test]
fn review_objects_that_are_not_given_do_not_exist() {
    let said = reviewed(TOKEN_MOUNT, POD, None, "").unwrap();

    assert_eq!(said.remarks, ["denied with code 404: ServiceAccount \"a\" not found"]);
    assert_eq!((said.code, said.out.as_str()), (DIFFERENT, ""));
}

#[test]
fn review_prints_an_unchanged_object_without_a_patch() {
    let objects = "{apiVersion: v1, kind: Secret, metadata: {namespace: ns, name: s}}";

    let said = reviewed(
        "/webhooks/seccomp-profile",
        &POD.replace("spec: {", "spec: {securityContext: {seccompProfile: {type: Unconfined}}, "),
        None,
        objects,
    )
    .unwrap();

    assert_eq!(said.remarks, ["warning: objects: no webhook reads such an object", "allowed, nothing to change"]);
    assert_eq!((said.code, documents(&said).len()), (OK, 1));
}

#[test]
fn review_takes_settings_from_the_configuration_and_refuses_disabled_webhooks() {
    let config = "apiVersion: resourcemanager.config.gardener.cloud/v1alpha1\nkind: ResourceManagerConfiguration\n\
                  leaderElection: {leaderElect: false}\nwebhooks: {podSchedulerName: {enabled: true, schedulerName: mine}}\n";

    let said = reviewed(SCHEDULER, POD, Some(config), "").unwrap();
    let off = reviewed(TOKEN_MOUNT, POD, Some(config), "").unwrap_err();

    assert_eq!(documents(&said)[0]["spec"]["schedulerName"], "mine");
    assert_eq!(off.to_string(), format!("no webhook is served at {TOKEN_MOUNT}; enabled are: {SCHEDULER}"));
}

#[test]
fn review_input_that_cannot_be_read_is_named_and_not_quoted() {
    let broken = reviewed(SCHEDULER, "{hidden: [", None, "").unwrap_err().to_string();
    let mistyped = reviewed(SCHEDULER, "{request: hidden}", None, "").unwrap_err().to_string();

    assert_eq!(broken, "review: is neither JSON nor YAML");
    assert!(mistyped.starts_with("review: couldn't decode the AdmissionReview"), "{mistyped}");
    assert!(!mistyped.contains("hidden"), "{mistyped}");
}

/// spec 60 §2.3, spec 62 §2.2
#[test]
fn review_by_a_validating_webhook_prints_errors() {
    let worker = "{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Worker, metadata: {namespace: ns, name: w}, spec: {type: t}}";

    let said = reviewed(WORKERS, worker, None, "").unwrap();

    let errors =
        "spec.region: Required value: field is required\nspec.secretRef.name: Required value: field is required\n";
    assert_eq!((said.code, &*said.out), (DIFFERENT, errors));
    assert_eq!(said.remarks, ["denied with code 422: errors: 2"]);

    let said = reviewed(DELETIONS, worker, None, "").unwrap();
    assert_eq!((said.code, said.remarks), (OK, vec!["allowed, not its business: operation is not DELETE".to_owned()]));
}

/// spec 60 §2.3 step 7, spec 62 §2.2
#[test]
fn review_that_a_validating_webhook_allows_has_no_output() {
    let good = "{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Extension, metadata: {namespace: ns, name: e}, spec: {type: t}}";
    let deletion = "{request: {operation: DELETE, name: w,
        resource: {group: extensions.gardener.cloud, version: v1alpha1, resource: workers},
        oldObject: {metadata: {name: w, annotations: {confirmation.gardener.cloud/deletion: 'true'}}}}}";

    for (path, text) in [(&*WORKERS.replace("worker", "extension"), good), (DELETIONS, deletion)] {
        let said = reviewed(path, text, None, "").unwrap();

        assert_eq!((said.code, &*said.out, said.remarks), (OK, "", vec!["allowed".to_owned()]), "{path}");
    }
}

/// spec 62 §2.2: errors beyond the limit are counted, too
#[test]
fn review_counts_all_errors_of_an_object() {
    let pools = vec!["{}"; 26].join(", ");
    let worker = format!(
        "{{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Worker, metadata: {{namespace: ns, name: w}}, spec: {{pools: [{pools}]}}}}"
    );

    let said = reviewed(WORKERS, &worker, None, "").unwrap();

    assert_eq!(said.remarks, ["denied with code 422: errors: 107"]);
    assert_eq!(said.out.lines().last(), Some("and 7 more"));
}

#[test]
fn review_warns_of_objects_for_a_validating_webhook() {
    let said = reviewed(DELETIONS, POD, None, ACCOUNT).unwrap();

    assert_eq!(
        said.remarks,
        [
            "warning: --objects: a validating webhook reads no objects",
            "allowed, not its business: operation is not DELETE"
        ]
    );
}

/// spec 60 §1.2
#[test]
fn review_reports_a_panic_of_a_validating_webhook_as_a_defect() {
    struct Panicking;

    impl Validator for Panicking {
        fn judge(&self, _: &Review<'_>, _: &dyn View) -> Result<Judgement, Failure> {
            panic!("of a test")
        }

        fn account(&self, _: &Review<'_>, _: &Judgement) -> Validated {
            panic!("of a test")
        }
    }

    let endpoint = Validating { validator: Arc::new(Panicking) };
    let entry = WebhookEntry { key: "x", path: "/x", reads: Vec::new(), endpoint };
    let input = Input { path: "/x", review: &source("review", POD), config: None, objects: &[] };

    let said = validate(&entry, &input, &Manifests::new(&[], BTreeMap::new())).unwrap();

    assert_eq!((said.code, said.remarks), (FAILED, vec!["not decided, a defect: of a test".to_owned()]));
}
