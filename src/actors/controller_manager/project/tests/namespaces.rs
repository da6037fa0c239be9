use cluster::object::field_mut;
use serde_json::{Value, json};

use super::{DEV, project};
use crate::actors::controller_manager::project::namespace::{
    NamespaceState, NamespaceVerdict, Refusal, Release, adoption_patch, judge_namespace, judge_release, namespace_of,
    new_namespace, release_patch,
};

const OWNER: &str = "namespace.gardener.cloud/project";
const ORIGIN: &str = "namespace.gardener.cloud/created-by-project-controller";
const KEEP: &str = "namespace.gardener.cloud/keep-after-project-deletion";

/// A change of a Namespace: null removes a field.
type Edit<'a> = (&'a [&'a str], Value);

/// Returns the Namespace that `dev` creates, with these changes.
fn namespace(edits: &[Edit<'_>]) -> Value {
    let mut namespace = new_namespace(DEV, "garden-dev");
    for (path, value) in edits {
        *field_mut(&mut namespace, path) = value.clone();
    }
    namespace
}

fn label(key: &str) -> [&str; 3] {
    ["metadata", "labels", key]
}

fn annotation(key: &str) -> [&str; 3] {
    ["metadata", "annotations", key]
}

const OWNERS: [&str; 2] = ["metadata", "ownerReferences"];
const DELETION: [&str; 2] = ["metadata", "deletionTimestamp"];

fn judged(namespace: &Value) -> Result<NamespaceVerdict, Refusal> {
    judge_namespace(DEV, "garden-dev", Some(&NamespaceState::of(namespace)))
}

fn released(namespace: &Value) -> Release {
    judge_release(DEV, "garden-dev", Some(&NamespaceState::of(namespace)))
}

/// spec 82 §1, N1
#[test]
fn namespace_name_is_that_of_the_spec_or_follows_from_the_uid() {
    assert_eq!(namespace_of("dev", &project(json!({"namespace": "garden-x"}))), "garden-x");
    for spec in [json!({}), json!({"namespace": ""}), json!({"namespace": null})] {
        assert_eq!(namespace_of("dev", &project(spec)), "garden-dev-bb820");
    }
}

/// spec 82 N2, decision 24
#[test]
fn only_garden_and_names_with_the_prefix_are_usable() {
    for name in ["garden", "garden-dev"] {
        assert_eq!(judge_namespace(DEV, name, None), Ok(NamespaceVerdict::Create));
    }
    for name in ["gardener-system-public", "garden.x", "kube-system", ""] {
        assert_eq!(judge_namespace(DEV, name, None), Err(Refusal::Name(name.into())));
    }
    let long = format!("garden-{}", "a".repeat(60));
    for name in ["garden-", "garden-Dev", "garden-a.b", "garden-a/b", &long] {
        assert_eq!(judge_namespace(DEV, name, None), Err(Refusal::Form(name.into())));
    }
    let refusal = judge_namespace(DEV, "kube-public", None).unwrap_err();
    assert_eq!(refusal.to_string(), "namespace \"kube-public\" cannot be used as it does not start with garden-");
}

/// spec 82 N4, N8
#[test]
fn new_namespace_has_all_marks() {
    let owner = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project", "name": "dev", "uid": "u1",
        "controller": true, "blockOwnerDeletion": true,
    });
    let metadata = json!({
        "name": "garden-dev", "ownerReferences": [owner], "annotations": {OWNER: "u1", ORIGIN: "true"},
        "labels": {"gardener.cloud/role": "project", "project.gardener.cloud/name": "dev"},
    });
    assert_eq!(namespace(&[]), json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}));
    assert_eq!(judged(&namespace(&[])), Ok(NamespaceVerdict::Keep));
    assert_eq!(judge_namespace(DEV, "garden-dev", None), Ok(NamespaceVerdict::Create));
}

/// spec 82 N5 to N8, A-T1
#[test]
fn namespace_is_judged_by_labels_then_by_its_owner() {
    let labels = Err(Refusal::Labels("dev".into()));
    let terminating = Err(Refusal::Terminating("garden-dev".into()));
    let now = json!("2026-01-01T00:00:00Z");
    let table: &[(&[Edit<'_>], Result<NamespaceVerdict, Refusal>)] = &[
        (&[(&label("gardener.cloud/role"), Value::Null)], labels.clone()),
        (&[(&label("gardener.cloud/role"), json!("shoot"))], labels.clone()),
        (&[(&label("project.gardener.cloud/name"), json!("foo"))], labels.clone()),
        (&[(&label("project.gardener.cloud/name"), json!("foo")), (&annotation(OWNER), json!("u2"))], labels),
        (&[(&annotation(OWNER), json!("u2"))], Err(Refusal::InUse)),
        (&[(&annotation(OWNER), json!(""))], Err(Refusal::InUse)),
        (&[(&annotation(OWNER), Value::Null)], Ok(NamespaceVerdict::Adopt)),
        (&[(&OWNERS, json!([{"uid": "u2"}]))], Ok(NamespaceVerdict::Adopt)),
        (&[(&OWNERS, json!([{"uid": "u1", "controller": false}]))], Ok(NamespaceVerdict::Keep)),
        (&[(&annotation(ORIGIN), Value::Null)], Ok(NamespaceVerdict::Adopt)),
        (&[(&annotation(ORIGIN), json!(""))], Ok(NamespaceVerdict::Keep)),
        (&[(&annotation(ORIGIN), Value::Null), (&annotation(KEEP), json!("true"))], Ok(NamespaceVerdict::Keep)),
        (&[(&annotation(ORIGIN), Value::Null), (&annotation(KEEP), json!("1"))], Ok(NamespaceVerdict::Adopt)),
        (&[(&DELETION, now.clone())], Ok(NamespaceVerdict::Ending)),
        (&[(&DELETION, now.clone()), (&annotation(OWNER), json!("u2"))], terminating.clone()),
        (&[(&DELETION, now), (&label("gardener.cloud/role"), Value::Null)], terminating),
    ];
    for (edits, expected) in table {
        assert_eq!(&judged(&namespace(edits)), expected, "{edits:?}");
    }
}

/// spec 82 N5, N6: the texts are fixed.
#[test]
fn refusals_have_the_texts_of_the_specification() {
    let text = "namespace cannot be used as it needs the project labels \
                map[string]string{\"gardener.cloud/role\":\"project\", \"project.gardener.cloud/name\":\"dev\"}";
    assert_eq!(Refusal::Labels("dev".into()).to_string(), text);
    assert_eq!(Refusal::InUse.to_string(), "namespace is already in-use by another project");
    assert_eq!(Refusal::Terminating("a".into()).to_string(), "namespace \"a\" is being terminated");
}

/// spec 82 N7, N8: foreign fields are not in the patch, and lists keep foreign entries.
#[test]
fn adoption_adds_what_is_missing_and_nothing_else() {
    let owner = DEV.strong_reference();
    let labels = json!({"gardener.cloud/role": "project", "project.gardener.cloud/name": "dev", "a": "b"});
    let foreign = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u9"});
    let handed_over = json!({"metadata": {
        "name": "garden-dev", "labels": labels, "annotations": {"c": "d"}, "ownerReferences": [foreign],
    }});
    let expected = json!({"metadata": {
        "annotations": {OWNER: "u1", KEEP: "true"}, "ownerReferences": [foreign, owner],
    }});
    assert_eq!(adoption_patch(DEV, &handed_over), Some(expected));

    let lost_reference = namespace(&[(&OWNERS, Value::Null)]);
    let expected = json!({"metadata": {"ownerReferences": [owner]}});
    assert_eq!(adoption_patch(DEV, &lost_reference), Some(expected));

    for foreign in [
        namespace(&[]),
        namespace(&[(&annotation(OWNER), json!("u2"))]),
        namespace(&[(&label("project.gardener.cloud/name"), json!("foo")), (&OWNERS, Value::Null)]),
        namespace(&[(&DELETION, json!("2026-01-01T00:00:00Z")), (&OWNERS, Value::Null)]),
    ] {
        assert_eq!(adoption_patch(DEV, &foreign), None, "{foreign}");
    }
}

/// spec 82 A.10 step 5: only a Namespace with the marks of this instance is touched.
#[test]
fn release_deletes_only_what_was_created_for_the_project() {
    let now = json!("2026-01-01T00:00:00Z");
    let table: &[(&[Edit<'_>], Release)] = &[
        (&[], Release::Delete),
        (&[(&annotation(KEEP), json!("yes"))], Release::Delete),
        (&[(&annotation(KEEP), json!("T"))], Release::Keep),
        (&[(&annotation(ORIGIN), Value::Null), (&annotation(KEEP), json!("true"))], Release::Keep),
        (&[(&annotation(ORIGIN), Value::Null)], Release::Keep),
        (&[(&annotation(OWNER), Value::Null)], Release::Delete),
        (&[(&OWNERS, Value::Null)], Release::Delete),
        (&[(&annotation(OWNER), Value::Null), (&OWNERS, Value::Null)], Release::Foreign),
        (&[(&annotation(OWNER), json!("u2"))], Release::Disown),
        (&[(&label("gardener.cloud/role"), Value::Null)], Release::Disown),
        (&[(&label("project.gardener.cloud/name"), json!("foo"))], Release::Disown),
        (&[(&label("gardener.cloud/role"), Value::Null), (&OWNERS, Value::Null)], Release::Foreign),
        (&[(&DELETION, now.clone())], Release::Ending),
        (&[(&DELETION, now.clone()), (&label("gardener.cloud/role"), Value::Null)], Release::Ending),
        (&[(&DELETION, now.clone()), (&annotation(OWNER), json!("u2"))], Release::Ending),
        (
            &[(&DELETION, now), (&annotation(OWNER), json!("u2")), (&label("gardener.cloud/role"), Value::Null)],
            Release::Foreign,
        ),
    ];
    for (edits, expected) in table {
        assert_eq!(released(&namespace(edits)), *expected, "{edits:?}");
    }
    assert_eq!(judge_release(DEV, "garden-dev", None), Release::Gone);
    let own = NamespaceState::of(&namespace(&[]));
    assert_eq!(judge_release(DEV, "kube-public", Some(&own)), Release::Foreign);
}

/// spec 82 A.10.1: an owner reference to another instance stays.
#[test]
fn release_takes_only_the_marks_of_this_project() {
    let mut foreign = DEV.strong_reference();
    foreign["uid"] = json!("u2");
    let kept = namespace(&[(&OWNERS, json!([foreign, DEV.strong_reference()]))]);

    let patch = release_patch(DEV, &kept);

    let metadata = json!({
        "labels": {"gardener.cloud/role": null, "project.gardener.cloud/name": null},
        "annotations": {OWNER: null, ORIGIN: null, KEEP: null}, "ownerReferences": [foreign],
    });
    assert_eq!(patch, json!({"metadata": metadata}));
    assert_eq!(release_patch(DEV, &namespace(&[]))["metadata"]["ownerReferences"], Value::Null);
}
