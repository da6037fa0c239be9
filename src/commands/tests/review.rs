use std::{collections::BTreeMap, sync::Arc};

use super::*;
use crate::{
    cli::DataFormat,
    commands::{
        CommandError, DIFFERENT, FAILED, OK,
        input::InputLocation,
        review::{Input, ReviewDocument, review, validate},
        webhook_list::list,
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
    review(&Input { path, reviews: &[source("review", text)], config: config.as_ref(), objects })
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

    assert!(
        broken.starts_with("review: yaml: line 1 column ") && broken.ends_with(" — correct the document"),
        "{broken}"
    );
    assert!(!broken.contains("hidden"), "{broken}");
    assert!(mistyped.starts_with("review: couldn't decode the AdmissionReview"), "{mistyped}");
    assert!(!mistyped.contains("hidden"), "{mistyped}");
}

#[test]
fn review_of_several_documents_judges_each_alone() {
    let pods = format!(
        "{POD}\n---\n{}\n---\n{{kind: List, apiVersion: v1, items: [{POD}]}}\n",
        POD.replace("name: p", "name: q")
    );

    let said = reviewed(SCHEDULER, &pods, None, "").unwrap();

    let names: Vec<String> = documents(&said)
        .iter()
        .filter_map(|document| Some(document["metadata"]["name"].as_str()?.to_owned()))
        .collect();
    let verdict = |index: usize| format!("review:{index}: allowed, changed");
    assert_eq!((said.code, said.remarks), (OK, (0..3).map(verdict).collect()));
    assert_eq!(names, ["p", "q", "p"]);

    let extensions = "{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Worker, metadata: {namespace: ns, name: w}, spec: {type: t}}";
    let good = extensions.replace("type: t", "type: t, region: r, secretRef: {name: s}");
    let said = reviewed(WORKERS, &format!("{extensions}\n---\n{good}\n"), None, "").unwrap();
    assert_eq!(said.code, DIFFERENT);
    assert!(said.out.lines().all(|line| line.starts_with("review:0: spec.")) && !said.out.is_empty(), "{}", said.out);
    assert_eq!(said.remarks, ["review:0: denied with code 422: errors: 2", "review:1: allowed"]);
}

#[test]
fn review_without_a_document_is_an_error_and_says_what_is_ignored() {
    let none = reviewed(SCHEDULER, "# nothing\n", None, "").unwrap_err().to_string();
    let labelled = POD.replace("name: p", "name: p, labels: {a: 1}");
    let said = reviewed(SCHEDULER, &labelled, None, "").unwrap();

    assert!(none.starts_with("there is no AdmissionReview and no object in the input — "), "{none}");
    let warning = "warning: review: metadata.labels of \"v1/Pod/ns/p\" are ignored: the value of \"a\" is no string";
    assert_eq!(said.remarks, [warning, "allowed, changed"]);
}

#[test]
fn webhook_list_names_all_paths_with_their_keys() {
    let config = "apiVersion: resourcemanager.config.gardener.cloud/v1alpha1\nkind: ResourceManagerConfiguration\n\
                  leaderElection: {leaderElect: false}\nwebhooks: {seccompProfile: {enabled: true}}\n";

    let all = list(None, None).unwrap();
    let json: serde_json::Value = serde_json::from_str(&list(None, Some(DataFormat::Json)).unwrap().out).unwrap();
    let enabled = list(Some(&source("config", config)), Some(DataFormat::Yaml)).unwrap();

    for (path, kind, key) in [
        (TOKEN_MOUNT, "mutating", "projectedTokenMount"),
        (WORKERS, "validating", "extensionValidation"),
        ("/webhooks/auth/nodeagent", "authorizing", "nodeAgentAuthorizer"),
    ] {
        let row = all.out.lines().find(|line| line.starts_with(&format!("{path} "))).unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), [path, kind, key]);
    }
    assert_eq!(json.as_array().unwrap().len(), all.out.lines().count() - 1);
    let keys: std::collections::BTreeSet<&str> =
        json.as_array().unwrap().iter().filter_map(|entry| entry["key"].as_str()).collect();
    assert_eq!(keys, crate::webhooks::registry::KEYS.into());
    assert_eq!(enabled.out, "- key: seccompProfile\n  kind: mutating\n  path: /webhooks/seccomp-profile\n");
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
    let location = InputLocation { file: "review".into(), document: None };
    let value = serde_saphyr::from_str(POD).unwrap();
    let document = ReviewDocument { location, value, warnings: Vec::new() };

    let said = validate(&entry, &document, &Manifests::new(&[], BTreeMap::new())).unwrap();

    assert_eq!((said.code, said.remarks), (FAILED, vec!["not decided, a defect: of a test".to_owned()]));
}
