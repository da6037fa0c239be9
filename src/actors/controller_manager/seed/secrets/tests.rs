use std::collections::{BTreeMap, BTreeSet};

use proptest::{collection, option, prelude::*, sample::select};
use serde_json::{Value, json};

use super::{
    copy::{CopyVerdict, digest, judge_copy, new_copy},
    namespace::{NamespaceVerdict, SeedNamespace, judge_namespace, namespace_of, new_namespace, seed_of},
    plan::{Digests, KnownCopy, Plan},
    roles::{GARDEN, PRIVATE_ROLES, ROLE, SELECTOR, has_shared_role, is_shared},
};

fn secret(namespace: &str, name: &str, role: Option<&str>) -> Value {
    let mut secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"k": "dg=="},
        "metadata": {"namespace": namespace, "name": name, "labels": {"other": "label"}},
    });
    if let Some(role) = role {
        secret["metadata"]["labels"][ROLE] = role.into();
    }
    secret
}

/// spec 83 §1, A.1, D-2, scenarios 2 and 3
#[test]
fn shared_secret_is_in_the_garden_and_has_a_role_that_is_not_private() {
    let table = [
        (GARDEN, Some("foo"), true),
        (GARDEN, Some(""), true),
        (GARDEN, Some("Kubeconfig"), true),
        (GARDEN, None, false),
        ("default", Some("foo"), false),
        ("seed-s1", Some("foo"), false),
    ];
    for (namespace, role, expected) in table {
        assert_eq!(is_shared(&secret(namespace, "x", role)), expected, "{namespace} {role:?}");
    }
    for role in ["kubeconfig", "ssh-keypair", "monitoring", "helm-pull-secret", "oci-ca-bundle", "resource-reference"] {
        assert!(!is_shared(&secret(GARDEN, "x", Some(role))), "{role}");
    }
    for labels in [json!(null), json!([]), json!({}), json!({ROLE: null}), json!({ROLE: 1})] {
        assert!(!is_shared(&json!({"metadata": {"namespace": GARDEN, "labels": labels}})), "{labels}");
    }
}

/// Returns what a server answers for a selector with terms `key` and `key!=value`.
fn is_selected(selector: &str, secret: &Value) -> bool {
    let label = |key: &str| secret["metadata"]["labels"].get(key).and_then(Value::as_str);
    selector.split(',').all(|term| match term.split_once("!=") {
        Some((key, value)) => label(key) != Some(value),
        None => label(term).is_some(),
    })
}

fn role() -> impl Strategy<Value = Option<String>> {
    let near = PRIVATE_ROLES.map(|role| role.to_uppercase());
    let roles = PRIVATE_ROLES.map(str::to_owned).into_iter().chain(near).chain(["".to_owned(), "foo".to_owned()]);
    option::of(prop_oneof![select(roles.collect::<Vec<_>>()), "[a-z-]{0,12}"])
}

fn any_secret() -> impl Strategy<Value = Value> {
    let namespace = select(vec![GARDEN, GARDEN, GARDEN, "default", "garden-dev", "seed-s1", "seed-garden"]);
    (namespace, "[a-d]", role(), "[a-z]{4}").prop_map(|(namespace, name, role, value)| {
        let mut secret = secret(namespace, &name, role.as_deref());
        secret["data"]["k"] = value.into();
        secret
    })
}

proptest! {
    /// spec 83 D-2, A.3 step 6, decision 25: no plan writes a Secret that is not shared, or deletes a Secret with a
    /// private role; and what it writes and deletes leads to exactly the shared Secrets.
    #[test]
    fn plan_gives_a_seed_the_shared_secrets_and_no_other(
        secrets in collection::vec(any_secret(), 0..12),
        copies in collection::vec(("[a-d]", role(), "[a-z]{4}"), 0..6),
        may_create in any::<bool>(),
    ) {
        let key = |secret: &Value| (secret["metadata"]["namespace"].to_string(), secret["metadata"]["name"].to_string());
        let world: BTreeMap<_, _> = secrets.into_iter().map(|secret| (key(&secret), secret)).collect();
        let name = |secret: &Value| secret["metadata"]["name"].as_str().unwrap().to_owned();
        let sources: BTreeMap<String, &Value> =
            world.values().filter(|secret| is_shared(secret)).map(|secret| (name(secret), secret)).collect();
        let present: BTreeMap<String, Value> = copies.into_iter().map(|(name, role, value)| {
            let mut copy = secret("seed-s1", &name, role.as_deref());
            copy["data"]["k"] = value.into();
            (name, copy)
        }).collect();
        let digests: Digests = sources.iter().map(|(name, secret)| (name.clone(), digest(secret))).collect();
        let known = |copy: &Value| KnownCopy { digest: digest(copy), is_deleting: false };
        let seen = present.iter().filter(|(_, copy)| has_shared_role(copy)); // as a watch with the selector sees them
        let seen: BTreeMap<String, KnownCopy> = seen.map(|(name, copy)| (name.clone(), known(copy))).collect();

        let plan = Plan::of(&digests, &seen, may_create);

        let mut after = present.clone();
        for name in &plan.write {
            let source = world.values().find(|secret| secret["metadata"]["name"] == **name && is_shared(secret));
            let source = source.expect("only shared Secrets are written");
            prop_assert!(!PRIVATE_ROLES.contains(&source["metadata"]["labels"][ROLE].as_str().unwrap()));
            prop_assert_eq!(&source["metadata"]["namespace"], GARDEN);
            after.insert(name.clone(), new_copy(source, "seed-s1"));
        }
        for name in &plan.delete {
            let deleted = after.remove(name).expect("only copies are deleted");
            prop_assert!(has_shared_role(&deleted) && !sources.contains_key(name));
        }
        for (name, copy) in after.iter().filter(|(_, copy)| has_shared_role(copy)) {
            prop_assert_eq!(Some(digest(copy)), sources.get(name).map(|source| digest(source)));
        }
        let shared: BTreeSet<_> = sources.keys().collect();
        let missing = shared.iter().filter(|name| !after.contains_key(**name)).count();
        prop_assert!(!may_create || missing == 0);
        prop_assert!(plan.write.iter().all(|name| may_create || seen.contains_key(name)));
    }

    /// spec 83 D-2: the server selects exactly the Secrets with a shared role.
    #[test]
    fn selector_selects_what_is_shared(secret in any_secret()) {
        prop_assert_eq!(is_selected(SELECTOR, &secret), has_shared_role(&secret));
    }

    /// spec 83 A.4: after the patch a copy is like its source, and keeps what is its own.
    #[test]
    fn patched_copy_is_like_its_source(
        source in any_secret(),
        data in collection::btree_map("[a-c]", "[a-z]{0,3}", 0..4),
        labels in collection::btree_map("[a-c]", "[a-z]{0,3}", 0..4),
        annotations in option::of(collection::btree_map("[a-c]", "[a-z]{0,3}", 0..4)),
    ) {
        let copy = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data, "unknown": {"field": 1},
            "metadata": {
                "name": "a", "namespace": "seed-s1", "uid": "u", "resourceVersion": "7", "finalizers": ["example.com/x"],
                "labels": labels, "annotations": annotations, "ownerReferences": [{"uid": "o"}],
            },
        });
        let before = copy.clone();
        let patched = match judge_copy(&source, Some(&copy)) {
            CopyVerdict::Patch(patch) => merged(copy, &patch),
            CopyVerdict::Keep => copy,
            _ => return Err(TestCaseError::fail("it can be patched")),
        };

        prop_assert_eq!(digest(&patched), digest(&source));
        prop_assert!(judge_copy(&source, Some(&patched)) == CopyVerdict::Keep);
        for pointer in ["/unknown", "/metadata/finalizers", "/metadata/ownerReferences", "/metadata/name", "/type"] {
            prop_assert_eq!(patched.pointer(pointer), before.pointer(pointer));
        }
    }
}

/// RFC 7386 §2
fn merged(mut object: Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    if !object.is_object() {
        object = json!({});
    }
    for (key, value) in patch {
        if value.is_null() {
            object.as_object_mut().unwrap().remove(key);
        } else {
            object[key] = merged(object[key].take(), value);
        }
    }
    object
}

/// spec 83 A.4, A-T5
#[test]
fn copy_has_type_data_labels_and_annotations_of_its_source() {
    let mut source = secret(GARDEN, "x", Some("foo"));
    let applied = "kubectl.kubernetes.io/last-applied-configuration";
    source["metadata"]["annotations"] = json!({applied: "{}"});
    source["metadata"]["finalizers"] = json!(["gardener.cloud/reference-protection"]);
    source["metadata"]["ownerReferences"] = json!([{"uid": "o"}]);
    source["immutable"] = json!(true);

    let copy = new_copy(&source, "seed-s1");

    let metadata = json!({
        "name": "x", "namespace": "seed-s1", "annotations": {applied: "{}"},
        "labels": {"other": "label", ROLE: "foo"},
    });
    let expected =
        json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"k": "dg=="}, "metadata": metadata});
    assert_eq!(copy, expected);
    source.as_object_mut().unwrap().remove("data");
    assert_eq!(new_copy(&source, "seed-s1").get("data"), None);
}

/// spec 83 A.4, scenario 4: only the difference is sent, and removed keys are null.
#[test]
fn copy_patch_is_the_difference() {
    let mut source = secret(GARDEN, "x", Some("foo"));
    let mut copy = new_copy(&source, "seed-s1");
    assert!(judge_copy(&source, Some(&copy)) == CopyVerdict::Keep);

    source["data"] = json!({"k": "dg==", "new": "bg=="});
    copy["data"]["old"] = json!("bw==");
    copy["metadata"]["annotations"] = json!({"foreign": "x"});
    copy["metadata"]["labels"]["foreign"] = json!("x");

    let CopyVerdict::Patch(patch) = judge_copy(&source, Some(&copy)) else { panic!("it differs") };
    let metadata = json!({"annotations": null, "labels": {"foreign": null}});
    assert_eq!(patch, json!({"data": {"new": "bg==", "old": null}, "metadata": metadata}));
}

/// spec 83 A.4, scenario 9; A.3: a Secret without a shared role is no copy.
#[test]
fn copy_that_cannot_be_changed_is_replaced() {
    let source = secret(GARDEN, "x", Some("foo"));
    let copy = |change: &dyn Fn(&mut Value)| {
        let mut copy = new_copy(&source, "seed-s1");
        change(&mut copy);
        judge_copy(&source, Some(&copy))
    };
    let immutable = |copy: &mut Value| {
        copy["immutable"] = json!(true);
        copy["data"] = json!({});
    };

    assert!(judge_copy(&source, None) == CopyVerdict::Create);
    assert!(copy(&|copy| copy["type"] = json!("other")) == CopyVerdict::Replace);
    assert!(copy(&immutable) == CopyVerdict::Replace);
    assert!(copy(&|copy| copy["immutable"] = json!(true)) == CopyVerdict::Keep);
    let label = |copy: &mut Value| {
        copy["immutable"] = json!(true);
        copy["metadata"]["labels"]["other"] = json!("x");
    };
    assert!(matches!(copy(&label), CopyVerdict::Patch(_)), "labels of an immutable Secret may change");
    let leaving = |copy: &mut Value| {
        immutable(copy);
        copy["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    };
    assert!(copy(&leaving) == CopyVerdict::Leave);
    for role in [json!(null), json!("kubeconfig")] {
        let foreign = |copy: &mut Value| {
            copy["metadata"]["labels"][ROLE] = role.clone();
            copy["type"] = json!("other");
        };
        assert!(copy(&foreign) == CopyVerdict::Blocked, "{role}");
        let foreign = |copy: &mut Value| copy["metadata"]["labels"][ROLE] = role.clone();
        assert!(matches!(copy(&foreign), CopyVerdict::Patch(_)), "a copy overwrites it: {role}");
    }
}

/// spec 83 A.3 steps 2 to 4, scenarios 1, 6, 7 and 12
#[test]
fn namespace_of_a_seed_is_judged_by_its_controller() {
    let namespace = |change: &dyn Fn(&mut Value)| {
        let mut namespace = new_namespace("s1", "u1");
        change(&mut namespace);
        judge_namespace(Some(&SeedNamespace::of(&namespace)), "u1")
    };
    let owner = |change: &dyn Fn(&mut Value)| namespace(&|it| change(&mut it["metadata"]["ownerReferences"][0]));

    assert_eq!(judge_namespace(None, "u1"), NamespaceVerdict::Create);
    assert_eq!(namespace(&|_| {}), NamespaceVerdict::Serve);
    assert_eq!(owner(&|owner| owner["uid"] = json!("u2")), NamespaceVerdict::Foreign);
    assert_eq!(owner(&|owner| owner["controller"] = json!(false)), NamespaceVerdict::Foreign);
    assert_eq!(owner(&|owner| owner["controller"] = Value::Null), NamespaceVerdict::Foreign);
    assert_eq!(namespace(&|it| it["metadata"]["ownerReferences"] = Value::Null), NamespaceVerdict::Foreign);
    assert_eq!(namespace(&|it| it["metadata"]["labels"] = Value::Null), NamespaceVerdict::Label);
    assert_eq!(namespace(&|it| it["metadata"]["labels"][ROLE] = json!("x")), NamespaceVerdict::Label);
    let deleting = |it: &mut Value| it["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(namespace(&deleting), NamespaceVerdict::Ending);
    let foreign = json!({"metadata": {"name": "seed-s1", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    assert_eq!(judge_namespace(Some(&SeedNamespace::of(&foreign)), "u1"), NamespaceVerdict::Foreign);
    let uncontrolled = json!({"metadata": {"ownerReferences": [{"controller": true}]}});
    assert_eq!(judge_namespace(Some(&SeedNamespace::of(&uncontrolled)), "u1"), NamespaceVerdict::Foreign);
}

/// spec 83 §1
#[test]
fn namespace_of_a_seed_has_its_name_and_its_owner_reference() {
    let owner = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "name": "s1", "uid": "u1",
        "controller": true, "blockOwnerDeletion": true,
    });
    let metadata = json!({"name": "seed-s1", "labels": {ROLE: "seed"}, "ownerReferences": [owner]});
    assert_eq!(new_namespace("s1", "u1"), json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}));
    assert_eq!(seed_of(&namespace_of("seed-s1")), Some("seed-s1"));
    assert_eq!((seed_of("seed-"), seed_of("seeds"), seed_of("garden")), (None, None, None));
}

/// spec 83 A.3 step 6: a copy that is being deleted is not deleted again.
#[test]
fn plan_leaves_copies_in_deletion() {
    let copy = |is_deleting| KnownCopy { digest: 1, is_deleting };
    let copies = [("a", copy(true)), ("b", copy(false)), ("c", copy(true))].map(|(name, copy)| (name.to_owned(), copy));
    let sources = Digests::from([("c".to_owned(), 1)]);

    let plan = Plan::of(&sources, &copies.into(), true);

    assert_eq!(plan, Plan { write: Vec::new(), delete: vec!["b".to_owned()] });
    assert!(Plan::of(&Digests::new(), &BTreeMap::new(), true).is_empty());
}
