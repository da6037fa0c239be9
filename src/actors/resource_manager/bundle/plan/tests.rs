use cluster::object::GroupKind;
use serde_json::json;

use super::*;

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "ns"}})
}

fn unknown(_: &GroupVersionKind) -> Scope {
    Scope::Unknown
}

fn plan_of(documents: Vec<Value>, old: &[ResourceRef]) -> Plan {
    plan(Input {
        documents,
        old,
        equivalences: &Equivalences::predefined(),
        labels: &BTreeMap::from([(keys::MANAGED_BY.to_owned(), "gardener".to_owned())]),
        incomplete: false,
        scope: &unknown,
    })
}

fn shown(references: &[ResourceRef]) -> Vec<String> {
    references.iter().map(ToString::to_string).collect()
}

/// spec 10 §2.4
#[test]
fn a_reference_has_the_manifests_labels_the_injected_ones_and_its_annotations() {
    let mut manifest = config_map("a");
    manifest["metadata"]["labels"] = json!({"l": "1", keys::MANAGED_BY: "me"});
    manifest["metadata"]["annotations"] = json!({"a": null});

    let plan = plan_of(vec![manifest], &[]);

    let mut expected = ResourceRef::new("v1", "ConfigMap", "ns", "a");
    expected.labels.insert("l".into(), "1".into());
    expected.labels.insert(keys::MANAGED_BY.into(), "gardener".into());
    expected.annotations.insert("a".into(), String::new());
    assert_eq!(plan.references, [expected]);
}

/// spec 10 §9.6: the key string is compared, so `a.b/…` comes before `a/…`
#[test]
fn references_are_sorted_by_key_string() {
    let mut references = [
        ResourceRef::new("v1", "ConfigMap", "ns", "b"),
        ResourceRef::new("apps/v1", "Deployment", "ns", "a"),
        ResourceRef::new("apps.x/v1", "Deployment", "ns", "a"),
        ResourceRef::new("v1", "ConfigMap", "ns", "B"),
    ];

    sort_references(&mut references);

    assert_eq!(
        shown(&references),
        ["v1/ConfigMap/ns/B", "v1/ConfigMap/ns/b", "apps.x/v1/Deployment/ns/a", "apps/v1/Deployment/ns/a"]
    );
}

/// spec 10 scenario 6
#[test]
fn a_config_map_lands_in_default_and_a_cluster_role_has_no_namespace() {
    let scope = |gvk: &GroupVersionKind| if gvk.kind == "ClusterRole" { Scope::Cluster } else { Scope::Namespaced };
    let documents = vec![
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "b", "namespace": "foo"}}),
    ];

    let plan = plan(Input {
        documents,
        old: &[],
        equivalences: &Equivalences::predefined(),
        labels: &BTreeMap::new(),
        incomplete: false,
        scope: &scope,
    });

    let namespaces: Vec<&str> = plan.references.iter().map(|reference| reference.namespace.as_str()).collect();
    assert_eq!(namespaces, ["default", ""]);
}

/// spec 10 scenario 8
#[test]
fn prune_removes_an_object_whose_manifest_is_gone() {
    let old = [ResourceRef::new("v1", "ConfigMap", "ns", "a"), ResourceRef::new("v1", "ConfigMap", "ns", "b")];

    let plan = plan_of(vec![config_map("b"), config_map("c")], &old);

    assert_eq!(shown(&plan.removed), ["v1/ConfigMap/ns/a"]);
    assert_eq!(shown(&plan.references), ["v1/ConfigMap/ns/b", "v1/ConfigMap/ns/c"]);
}

/// decision 9
#[test]
fn prune_removes_and_forgets_nothing_while_a_document_does_not_decode() {
    let plan = plan(Input {
        documents: vec![config_map("b")],
        old: &[ResourceRef::new("v1", "ConfigMap", "ns", "a")],
        equivalences: &Equivalences::predefined(),
        labels: &BTreeMap::new(),
        incomplete: true,
        scope: &unknown,
    });

    assert!(plan.removed.is_empty());
    assert_eq!(shown(&plan.references), ["v1/ConfigMap/ns/a", "v1/ConfigMap/ns/b"], "a later pass can remove it");
}

/// spec 10 scenario 36
#[test]
fn an_equivalent_kind_is_the_same_object_and_its_old_labels_are_known() {
    let mut old = ResourceRef::new("extensions/v1beta1", "Ingress", "ns", "a");
    old.labels.insert("l".into(), "1".into());
    let manifest =
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "a", "namespace": "ns"}});

    let plan = plan_of(vec![manifest], &[old.clone()]);

    assert!(plan.removed.is_empty());
    assert_eq!(plan.objects[0].old, Some(Old { labels: old.labels, annotations: BTreeMap::new() }));
}

/// spec 10 §10.2: no list takes a kind out of a set.
#[test]
fn equivalent_kinds_share_a_set_and_may_have_further_sets() {
    let kind = GroupKind::new;
    let b_and_c = vec![vec![kind("c.io", "C"), kind("b.io", "B")], vec![kind("apps", "Deployment"), kind("c.io", "C")]];
    let ingress = vec![vec![kind("apps", "Deployment"), kind("extensions", "Ingress")]];
    let (old, new) = (("extensions/v1beta1", "Ingress"), ("networking.k8s.io/v1", "Ingress"));
    for (lists, listed, wanted) in [
        (&b_and_c, ("b.io/v1", "B"), ("c.io/v1", "C")),
        (&b_and_c, ("c.io/v1", "C"), ("b.io/v1", "B")),
        (&ingress, new, old),
        (&ingress, old, new),
    ] {
        let manifest = json!({"apiVersion": wanted.0, "kind": wanted.1, "metadata": {"name": "a", "namespace": "ns"}});

        let plan = plan(Input {
            documents: vec![manifest],
            old: &[ResourceRef::new(listed.0, listed.1, "ns", "a")],
            equivalences: &Equivalences::with(lists),
            labels: &BTreeMap::new(),
            incomplete: false,
            scope: &unknown,
        });

        assert!(plan.removed.is_empty(), "{listed:?} becomes {wanted:?}: {:?}", shown(&plan.removed));
        assert!(plan.objects[0].old.is_some() && plan.added.is_empty(), "{listed:?} becomes {wanted:?}");
    }
}

/// spec 10 §10.3: both refs are one object of the API server.
#[test]
fn the_predefined_partner_of_a_listed_object_is_not_removed_whatever_is_declared() {
    let lists = [vec![GroupKind::new("apps", "Deployment"), GroupKind::new("extensions", "Ingress")]];
    let ingress = |api_version: &str| ResourceRef::new(api_version, "Ingress", "ns", "a");
    let refs = ["extensions/v1beta1", "networking.k8s.io/v1"].map(ingress);
    for wanted in &refs {
        let manifest = json!({"apiVersion": wanted.api_version, "kind": "Ingress",
            "metadata": {"name": "a", "namespace": "ns"}});

        let plan = plan(Input {
            documents: vec![manifest],
            old: &refs,
            equivalences: &Equivalences::with(&lists),
            labels: &BTreeMap::new(),
            incomplete: false,
            scope: &unknown,
        });

        assert!(plan.removed.is_empty(), "{}: {:?}", wanted.api_version, shown(&plan.removed));
    }
}

/// spec 10 scenario 23
#[test]
fn an_object_in_ignore_mode_is_released_and_neither_applied_nor_removed() {
    let mut manifest = config_map("a");
    manifest["metadata"]["annotations"] = json!({keys::MODE: "Ignore"});
    let mut never_managed = config_map("b");
    never_managed["metadata"]["annotations"] = json!({keys::MODE: "Ignore"});

    let plan = plan_of(vec![manifest, never_managed], &[ResourceRef::new("v1", "ConfigMap", "ns", "a")]);

    assert_eq!(shown(&plan.released), ["v1/ConfigMap/ns/a"]);
    assert!(plan.objects.is_empty() && plan.references.is_empty() && plan.removed.is_empty());
}

/// spec 10 §9.4, §10.2: one manifest wants the object, so it is not released
#[test]
fn an_object_in_ignore_mode_is_not_released_while_an_equivalent_manifest_is_applied() {
    let ingress = |api_version: &str, mode: &str| {
        let annotations = json!({keys::MODE: mode});
        json!({"apiVersion": api_version, "kind": "Ingress", "metadata": {"name": "a", "annotations": annotations}})
    };
    let manifests = vec![ingress("extensions/v1beta1", "Ignore"), ingress("networking.k8s.io/v1", "")];

    let plan = plan_of(manifests, &[ResourceRef::new("networking.k8s.io/v1", "Ingress", "default", "a")]);

    assert!(plan.released.is_empty());
    assert_eq!(plan.objects.len(), 1);
}

/// spec 10 §9.3, §9.4: while the scope is unknown, both manifests may mean the object recorded without a namespace
#[test]
fn an_object_in_ignore_mode_is_not_released_while_the_manifest_that_is_applied_may_be_of_the_same() {
    let role = |namespace: &str, mode: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "a", "namespace": namespace, "annotations": {keys::MODE: mode}}})
    };

    let plan = plan_of(
        vec![role("foo", "Ignore"), role("", "")],
        &[ResourceRef::new("rbac.authorization.k8s.io/v1", "ClusterRole", "", "a")],
    );

    assert!(plan.released.is_empty());
}

/// spec 10 §9.4, §10.3: the next plan would find the equivalent, and release it then
#[test]
fn an_object_in_ignore_mode_is_released_with_its_declared_equivalent_while_manifests_are_unknown() {
    let thing = |group: &str| ResourceRef::new(&format!("{group}/v1"), "Thing", "ns", "a");
    let manifest = json!({"apiVersion": "a.io/v1", "kind": "Thing",
        "metadata": {"name": "a", "namespace": "ns", "annotations": {keys::MODE: "Ignore"}}});
    let equivalences = Equivalences::with(&[vec![GroupKind::new("a.io", "Thing"), GroupKind::new("b.io", "Thing")]]);

    let plan = plan(Input {
        documents: vec![manifest],
        old: &[thing("a.io"), thing("b.io"), thing("c.io")],
        equivalences: &equivalences,
        labels: &BTreeMap::new(),
        incomplete: true,
        scope: &unknown,
    });

    assert_eq!(shown(&plan.released), ["a.io/v1/Thing/ns/a", "b.io/v1/Thing/ns/a"]);
    assert_eq!(shown(&plan.kept), ["c.io/v1/Thing/ns/a"]);
    assert!(plan.removed.is_empty());
}

/// spec 10 §9.4: exactly `Ignore`
#[test]
fn mode_other_than_ignore_has_no_meaning() {
    let mut manifest = config_map("a");
    manifest["metadata"]["annotations"] = json!({keys::MODE: "ignore"});

    let plan = plan_of(vec![manifest], &[ResourceRef::new("v1", "ConfigMap", "ns", "a")]);

    assert_eq!(plan.objects.len(), 1);
    assert!(plan.released.is_empty());
}

/// spec 10 scenario 22: the annotation accepts every truthy value, here of the manifest
#[test]
fn an_object_marked_ignore_is_planned_with_that_mark() {
    let mut manifest = config_map("a");
    manifest["metadata"]["annotations"] = json!({keys::IGNORE: "TRUE"});

    let plan = plan_of(vec![manifest], &[]);

    assert!(plan.objects[0].ignored);
}

/// spec 10 §9.4
#[test]
fn a_manifest_given_twice_is_applied_twice_and_reported() {
    let plan = plan_of(vec![config_map("a"), config_map("b"), config_map("a"), config_map("a")], &[]);

    assert_eq!(plan.objects.len(), 4);
    assert_eq!(shown(&plan.references).len(), 4);
    assert_eq!(plan.duplicates, [identity::index_key("", "ConfigMap", "ns", "a")]);
}

/// spec 10 §11.3
#[test]
fn manifests_no_cluster_would_take_fail_in_their_turn_and_leave_no_reference() {
    let table = [
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "a"}}),
            "resource name may not be empty",
        ),
        (json!({}), "resource apiVersion may not be empty"),
        (json!({"apiVersion": "v1"}), "resource kind may not be empty"),
        (json!({"apiVersion": "v1", "kind": "List", "items": []}), "object type \"/v1, Kind=List\" is unsupported"),
        (
            json!({"apiVersion": "apps/v1", "kind": "DeploymentList", "items": []}),
            "object type \"apps/v1, Kind=DeploymentList\" is unsupported",
        ),
    ];

    for (manifest, text) in table {
        let plan = plan_of(vec![manifest], &[]);

        assert_eq!(plan.objects[0].error.as_ref().map(ToString::to_string).as_deref(), Some(text));
        assert!(plan.references.is_empty());
    }
}

#[test]
fn prune_removes_nothing_while_a_document_is_no_object() {
    let old = [ResourceRef::new("v1", "ConfigMap", "ns", "gone")];
    let broken = [
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "ns"}}),
        json!({"apiVersion": "v1", "metadata": {"namespace": "ns", "name": "gone"}}),
        json!({"apiVersion": "v1", "kind": "List", "items": []}),
    ];

    for manifest in broken {
        let plan = plan_of(vec![manifest], &old);

        assert!(plan.removed.is_empty());
        assert_eq!(shown(&plan.references), ["v1/ConfigMap/ns/gone"]);
    }
}

/// spec 10 §11.3
#[test]
fn a_custom_kind_may_end_in_list() {
    let manifest = json!({"apiVersion": "g.io/v1", "kind": "AccessList", "metadata": {"name": "a"}});

    assert_eq!(plan_of(vec![manifest], &[]).objects[0].error, None);
}

/// spec 10 §11.8
#[test]
fn a_cluster_scoped_object_recorded_with_a_namespace_is_not_removed_once_its_scope_is_known() {
    let scope = |_: &GroupVersionKind| Scope::Cluster;
    let manifest = json!({"apiVersion": "g.io/v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "foo"}});

    let plan = plan(Input {
        documents: vec![manifest],
        old: &[ResourceRef::new("g.io/v1", "Thing", "foo", "a")],
        equivalences: &Equivalences::predefined(),
        labels: &BTreeMap::new(),
        incomplete: false,
        scope: &scope,
    });

    assert!(plan.removed.is_empty());
}

/// spec 10 §9.3: a failing discovery must not make an object look removed
#[test]
fn a_cluster_scoped_object_whose_manifest_names_a_namespace_is_not_removed_while_discovery_fails() {
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "a", "namespace": "foo"}});

    let plan = plan_of(vec![role], &[ResourceRef::new("rbac.authorization.k8s.io/v1", "ClusterRole", "", "a")]);

    assert!(plan.removed.is_empty());
    assert!(plan.objects[0].old.is_some() && plan.added.is_empty(), "it is the object that was applied before");
}

/// spec 10 §9.4: an object that has a namespace may move while the scope of its kind is unknown
#[test]
fn an_object_recorded_with_another_namespace_is_removed_even_while_discovery_fails() {
    let moved = json!({"apiVersion": "g.io/v1", "kind": "Thing", "metadata": {"name": "a", "namespace": "foo"}});

    let plan = plan_of(vec![moved], &[ResourceRef::new("g.io/v1", "Thing", "default", "a")]);

    assert_eq!(shown(&plan.removed), ["g.io/v1/Thing/default/a"]);
}

/// spec 10 §9.7
#[test]
fn references_without_a_predecessor_are_added_first() {
    let plan = plan_of(vec![config_map("b"), config_map("a")], &[ResourceRef::new("v1", "ConfigMap", "ns", "b")]);

    assert_eq!(shown(&plan.added), ["v1/ConfigMap/ns/a"]);
}

#[test]
fn a_planned_secret_does_not_show_its_data() {
    let mut secret = config_map("a");
    secret["kind"] = json!("Secret");
    secret["stringData"] = json!({"password": "hunter2"});

    let plan = plan_of(vec![secret], &[]);

    let (shown, object) = (format!("{plan:?}"), format!("{:?}", plan.objects[0]));
    assert!(object.contains("Secret") && !shown.contains("hunter2"), "{shown}");
}

/// spec 10 §9.4
#[test]
fn ignore_mode_gives_objects_away() {
    let in_mode = |kind: &str, mode: &str| {
        let mut manifest = config_map("a");
        manifest["kind"] = json!(kind);
        manifest["metadata"]["annotations"] = json!({keys::MODE: mode});
        manifest
    };
    let scope = |gvk: &GroupVersionKind| if gvk.kind == "Node" { Scope::Cluster } else { Scope::Namespaced };
    let kept = [config_map("b"), in_mode("Pod", "Other")];
    let given = [in_mode("ConfigMap", keys::MODE_IGNORE), in_mode("Node", keys::MODE_IGNORE)];

    let keys = given_away(kept.into_iter().chain(given).collect(), &scope);

    assert_eq!(keys.iter().map(ToString::to_string).collect::<Vec<_>>(), ["/ConfigMap/ns/a", "/Node/default/a"]);
}
