//! Projects and their Namespaces.

use std::time::Duration;

use cluster::object::{annotation, generation, label, uid};
use gardener_resource_manager::api::kinds;
use kit::testing::eventually;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::garden::{Garden, garden, object};

pub(super) const ROLE: &str = "gardener.cloud/role";
pub(super) const PROJECT: &str = "project.gardener.cloud/name";
pub(super) const OWNER: &str = "namespace.gardener.cloud/project";
pub(super) const ORIGIN: &str = "namespace.gardener.cloud/created-by-project-controller";
pub(super) const KEEP: &str = "namespace.gardener.cloud/keep-after-project-deletion";
pub(super) const FAILED: &str = "NamespaceReconcileFailed";

pub(super) fn project(name: &str, spec: Value) -> Value {
    object(&kinds::PROJECT, "", name, json!({"spec": spec}))
}

/// Puts Project `dev` with Namespace `garden-dev`, and these other fields of the spec.
pub(super) fn put_dev(garden: &Garden, mut spec: Value) {
    spec["namespace"] = json!("garden-dev");
    garden.put(project("dev", spec));
}

/// Starts the controllers, and waits until Project `dev` is ready.
pub(super) async fn ready_dev(garden: &Garden) {
    garden.settled().await;
    put_dev(garden, json!({}));
    becomes(garden, "dev", "Ready").await;
}

/// As [`ready_dev`], then deletes the Project. It waits for its Namespace, whose content another program holds.
pub(super) async fn ending_dev(garden: &Garden) {
    ready_dev(garden).await;
    hold_namespace(garden, "garden-dev");
    garden.delete(&kinds::PROJECT, "", "dev").await;
    becomes(garden, "dev", "Terminating").await;
}

pub(super) fn find_project(garden: &Garden, name: &str) -> Value {
    garden.find(&kinds::PROJECT, "", name).unwrap_or_default()
}

pub(super) fn find_namespace(garden: &Garden, name: &str) -> Value {
    garden.find(&kinds::NAMESPACE, "", name).unwrap_or_default()
}

/// Returns the phase of the present generation; empty if there is none.
pub(super) fn phase(garden: &Garden, name: &str) -> String {
    let project = find_project(garden, name);
    let is_present = project["status"]["observedGeneration"] == generation(&project);
    project["status"]["phase"].as_str().filter(|_| is_present).unwrap_or_default().to_owned()
}

pub(super) async fn becomes(garden: &Garden, name: &str, wanted: &str) {
    // The end of a Namespace takes some seconds.
    let what = format!("{name} becomes {wanted}");
    eventually(&what, Duration::from_secs(30), || phase(garden, name) == wanted).await;
}

pub(super) async fn project_gone(garden: &Garden, name: &str) {
    let is_gone = || garden.find(&kinds::PROJECT, "", name).is_none();
    eventually("the Project is gone", Duration::from_secs(30), is_gone).await;
}

/// Returns the notes of the Events about a Project with this reason.
pub(super) fn notes(garden: &Garden, name: &str, reason: &str) -> Vec<String> {
    garden.events(&kinds::PROJECT, name, reason).into_iter().map(|(_, _, note)| note).collect()
}

/// Waits for an Event with this reason and note.
pub(super) async fn told(garden: &Garden, name: &str, reason: &str, note: &str) {
    garden.soon(note, || notes(garden, name, reason).iter().any(|told| told == note)).await;
}

pub(super) fn owner_reference(garden: &Garden, name: &str, blocks_deletion: bool) -> Value {
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project", "name": name,
        "uid": uid(&find_project(garden, name)), "controller": true, "blockOwnerDeletion": blocks_deletion,
    })
}

/// Puts a Namespace with the labels of a Project.
pub(super) fn hand_over(garden: &Garden, name: &str, project: &str) {
    let labels = json!({ROLE: "project", PROJECT: project});
    garden.put(object(&kinds::NAMESPACE, "", name, json!({"metadata": {"labels": labels}})));
}

/// Puts what keeps a Namespace from ending, until [`let_end`].
pub(super) fn hold_namespace(garden: &Garden, namespace: &str) {
    let metadata = json!({"metadata": {"finalizers": ["example.com/x"]}});
    garden.put(object(&kinds::CONFIG_MAP, namespace, "held", metadata));
}

pub(super) fn let_end(garden: &Garden, namespace: &str) {
    garden.sim.remove("configmaps", namespace, "held");
}

pub(super) fn shoot(namespace: &str, name: &str) -> Value {
    object(&kinds::SHOOT, namespace, name, json!({}))
}

fn labels_text(project: &str) -> String {
    format!(
        "namespace cannot be used as it needs the project labels \
         map[string]string{{\"gardener.cloud/role\":\"project\", \"project.gardener.cloud/name\":\"{project}\"}}"
    )
}

/// Returns true if a Namespace bears no mark of a Project.
pub(super) fn is_unmarked(namespace: &Value) -> bool {
    let annotations = [OWNER, ORIGIN, KEEP].iter().all(|key| annotation(namespace, key).is_none());
    let labels = [ROLE, PROJECT].iter().all(|key| label(namespace, key).is_none());
    annotations && labels && namespace["metadata"]["ownerReferences"].is_null()
}

pub(super) fn is_ending(garden: &Garden, namespace: &str) -> bool {
    find_namespace(garden, namespace)["metadata"]["deletionTimestamp"].is_string()
}

/// spec 82 A.3, N4, A.11, scenario 1
#[test]
fn project_gets_its_namespace() {
    garden(|garden| async move {
        ready_dev(&garden).await;

        let (dev, namespace) = (find_project(&garden, "dev"), find_namespace(&garden, "garden-dev"));
        assert_eq!(garden.finalizers(&kinds::PROJECT, "", "dev"), ["gardener"]);
        assert_eq!(dev["status"], json!({"phase": "Ready", "observedGeneration": generation(&dev)}));
        assert_eq!((label(&namespace, ROLE), label(&namespace, PROJECT)), (Some("project"), Some("dev")));
        assert_eq!(namespace["metadata"]["annotations"], json!({OWNER: uid(&dev), ORIGIN: "true"}));
        assert_eq!(namespace["metadata"]["ownerReferences"], json!([owner_reference(&garden, "dev", true)]));
        let note = "Successfully reconciled namespace \"garden-dev\" for project";
        let event = ("Normal".to_owned(), "Reconcile".to_owned(), note.to_owned());
        garden.settle().await;
        assert_eq!(garden.events(&kinds::PROJECT, "dev", "NamespaceReconcileSuccessful"), [event]);
    });
}

/// spec 82 A.4 N1, A.5, A-T2, A-T4, scenario 2: unknown fields survive.
#[test]
fn project_without_namespace_gets_one_of_its_uid() {
    garden(|garden| async move {
        garden.settled().await;
        garden.put(project("dev", json!({"namespace": "", "unknown": {"field": 1}, "description": "x"})));
        becomes(&garden, "dev", "Ready").await;

        let dev = find_project(&garden, "dev");
        let hash = Sha256::digest(uid(&dev).as_bytes());
        let name = format!("garden-dev-{:02x}{:02x}{:x}", hash[0], hash[1], hash[2] >> 4);
        assert_eq!(dev["spec"], json!({"namespace": name, "unknown": {"field": 1}, "description": "x"}));
        assert_eq!((generation(&dev), &dev["status"]["observedGeneration"]), (2, &json!(2)));
        assert_eq!(annotation(&find_namespace(&garden, &name), OWNER), Some(uid(&dev)));
        let asked = garden.asked();
        let place = |wanted: &str| asked.iter().position(|asked| asked == wanted);
        let second_patch = asked.iter().rposition(|asked| asked == "patch projects dev");
        assert!(place("create namespaces").unwrap() < second_patch.unwrap(), "{asked:?}");
        garden.settle().await;
        assert_eq!(notes(&garden, "dev", "NamespaceReconcileSuccessful").len(), 1);
    });
}

/// spec 82 N5, N7, N8, scenario 3
#[test]
fn project_adopts_a_namespace_once_it_is_labelled() {
    garden(|garden| async move {
        let metadata = json!({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}});
        garden.put(object(&kinds::NAMESPACE, "", "garden-dev", metadata));
        let before = find_namespace(&garden, "garden-dev");
        garden.settled().await;
        put_dev(&garden, json!({}));
        becomes(&garden, "dev", "Failed").await;
        told(&garden, "dev", FAILED, &labels_text("dev")).await;
        assert_eq!(find_namespace(&garden, "garden-dev"), before);

        garden.edit(&kinds::NAMESPACE, "", "garden-dev", |live| {
            live["metadata"]["labels"] = json!({"a": "b", ROLE: "project", PROJECT: "dev"});
        });

        becomes(&garden, "dev", "Ready").await;
        let namespace = find_namespace(&garden, "garden-dev");
        let dev = find_project(&garden, "dev");
        assert_eq!(namespace["metadata"]["annotations"], json!({"c": "d", OWNER: uid(&dev), KEEP: "true"}));
        assert_eq!(label(&namespace, "a"), Some("b"));
        assert_eq!(namespace["metadata"]["ownerReferences"], json!([owner_reference(&garden, "dev", true)]));
    });
}

/// spec 82 N5, N6, scenarios 4 and 5
#[test]
fn project_does_not_take_the_namespace_of_another_and_can_be_deleted() {
    let in_use = "namespace is already in-use by another project".to_owned();
    for (project_label, owner, text) in [("foo", None, labels_text("dev")), ("dev", Some("other-uid"), in_use)] {
        garden(|garden| async move {
            hand_over(&garden, "garden-dev", project_label);
            garden.edit(&kinds::NAMESPACE, "", "garden-dev", |live| {
                live["metadata"]["annotations"] = json!({OWNER: owner});
            });
            let before = find_namespace(&garden, "garden-dev");
            garden.settled().await;
            put_dev(&garden, json!({}));
            becomes(&garden, "dev", "Failed").await;
            told(&garden, "dev", FAILED, &text).await;
            assert_eq!(notes(&garden, "dev", FAILED), [text]);

            garden.delete(&kinds::PROJECT, "", "dev").await;

            project_gone(&garden, "dev").await;
            assert_eq!(find_namespace(&garden, "garden-dev"), before);
        });
    }
}

/// spec 82 N2, D-10, decision 24, scenario 6
#[test]
fn project_cannot_have_a_namespace_of_another_name() {
    garden(|garden| async move {
        let before = find_namespace(&garden, "kube-public");
        garden.put(shoot("kube-public", "s"));
        garden.settled().await;
        garden.put(project("dev", json!({"namespace": "kube-public"})));
        becomes(&garden, "dev", "Failed").await;
        let text = "namespace \"kube-public\" cannot be used as it does not start with garden-";
        told(&garden, "dev", FAILED, text).await;
        assert!(garden.asked().iter().all(|asked| !asked.starts_with("create")), "{:?}", garden.asked());

        garden.delete(&kinds::PROJECT, "", "dev").await;

        project_gone(&garden, "dev").await;
        assert_eq!(find_namespace(&garden, "kube-public"), before);
    });
}

/// spec 82 W2, N4, scenario 12
#[test]
fn namespace_that_vanishes_is_created_again_with_its_content() {
    garden(|garden| async move {
        let quotas = json!([{"config": {"spec": {"hard": {"pods": "5"}}}}]);
        garden.config.borrow_mut().controllers.project.quotas = serde_json::from_value(quotas).unwrap();
        ready_dev(&garden).await;
        hold_namespace(&garden, "garden-dev");
        garden.delete(&kinds::NAMESPACE, "", "garden-dev").await;
        becomes(&garden, "dev", "Failed").await;
        told(&garden, "dev", FAILED, "namespace \"garden-dev\" is being terminated").await;

        let_end(&garden, "garden-dev");

        becomes(&garden, "dev", "Ready").await;
        assert!(!is_ending(&garden, "garden-dev"));
        assert!(garden.find(&kinds::RESOURCE_QUOTA, "garden-dev", "gardener").is_some());
        let bindings = garden.sim.objects("rolebindings.rbac.authorization.k8s.io");
        assert_eq!(bindings.len(), 3, "{bindings:?}");
    });
}

/// spec 82 A-T1, W2, scenario 13
#[test]
fn project_that_is_created_anew_waits_for_the_end_of_the_old_namespace() {
    garden(|garden| async move {
        ending_dev(&garden).await;
        garden.sim.remove("projects.core.gardener.cloud", "", "dev");
        garden.settle().await;
        put_dev(&garden, json!({}));
        becomes(&garden, "dev", "Failed").await;
        garden.settle().await;
        assert!(is_ending(&garden, "garden-dev"));

        let_end(&garden, "garden-dev");

        becomes(&garden, "dev", "Ready").await;
        let dev = find_project(&garden, "dev");
        assert_eq!(annotation(&find_namespace(&garden, "garden-dev"), OWNER), Some(uid(&dev)));
    });
}

/// spec 82 A.3 step 2: without the finalizer, a deletion would not wait for Shoots.
#[test]
fn finalizer_that_somebody_removes_is_added_again() {
    garden(|garden| async move {
        ready_dev(&garden).await;

        garden.patch(&kinds::PROJECT, "", "dev", json!({"metadata": {"finalizers": ["example.com/x"]}})).await;

        let finalizers = || garden.finalizers(&kinds::PROJECT, "", "dev");
        garden.soon("it is added again", || finalizers() == ["example.com/x", "gardener"]).await;
    });
}

/// spec 82 "better" 1, N7: owner reference and annotations are repaired; without its labels the Namespace is lost.
#[test]
fn marks_of_the_namespace_are_restored() {
    garden(|garden| async move {
        ready_dev(&garden).await;
        let before = find_namespace(&garden, "garden-dev")["metadata"].clone();
        let edits: [fn(&mut Value); 2] =
            [|live| live["ownerReferences"] = Value::Null, |live| live["annotations"][OWNER] = Value::Null];
        for edit in edits {
            garden.edit(&kinds::NAMESPACE, "", "garden-dev", |live| edit(&mut live["metadata"]));
            garden
                .soon("it is restored", || {
                    let live = &find_namespace(&garden, "garden-dev")["metadata"];
                    ["ownerReferences", "annotations", "labels"].iter().all(|field| live[*field] == before[*field])
                })
                .await;
        }
        assert_eq!(phase(&garden, "dev"), "Ready");

        garden.edit(&kinds::NAMESPACE, "", "garden-dev", |live| live["metadata"]["labels"][ROLE] = json!("x"));

        becomes(&garden, "dev", "Failed").await;
        garden.settle().await;
        assert_eq!(label(&find_namespace(&garden, "garden-dev"), ROLE), Some("x"), "N5: only others may hand it over");
    });
}
