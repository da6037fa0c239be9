//! Lists stand for their items (spec 10 §11.3).

use super::*;

fn taken_apart(input: &str) -> Vec<String> {
    let shown = |(index, result): (usize, Result<Value, String>)| match result {
        Ok(manifest) => format!(
            "{index} {}/{}",
            manifest["kind"].as_str().unwrap_or_default(),
            manifest["metadata"]["name"].as_str().unwrap_or_default()
        ),
        Err(text) => format!("{index} {text}"),
    };
    read(input).into_iter().map(shown).collect()
}

/// spec 10 §11.3: as in the manifests of kube-prometheus.
#[test]
fn lists_of_objects_that_say_their_kind_stand_for_them() {
    let role = |name: &str| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name, "namespace": "monitoring"}});
    let list =
        |kind: &str, items: Value| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "items": items});
    let roles = list("RoleList", json!([role("a"), role("b")]));
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "labels": {"x": true}}});
    let mixed =
        json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": [map, role("d")]});
    let input = format!("# roles\n---\n{roles}\n---\n{}\n---\n{mixed}\n", role("e"));

    assert_eq!(taken_apart(&input), ["1 Role/a", "1 Role/b", "2 Role/e", "3 ConfigMap/c", "3 Role/d"]);
    let data = data(&[("k", input.as_bytes())]);
    let decoded = decode([secret(&data)]);
    assert_eq!(decoded.documents[3].manifest["metadata"].get("labels"), None);
    assert_eq!(decoded.warnings.len(), 1);
    assert!(decoded.documents.iter().all(|document| document.raw == 0));
}

/// spec 10 §11.3
#[test]
fn lists_that_cannot_be_taken_apart_and_custom_kinds_stay_as_they_are() {
    let good = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    for (api_version, kind, items) in [
        ("v1", "List", json!(null)),
        ("v1", "List", json!([])),
        ("v1", "List", json!({})),
        ("v1", "List", json!("x")),
        ("v1", "ConfigMapList", json!([good, {"metadata": {"name": "b"}}])),
        ("v1", "List", json!([good, {"apiVersion": "v1", "metadata": {"name": "b"}}])),
        ("v1", "List", json!([good, {"apiVersion": "", "kind": "ConfigMap"}])),
        ("v1", "List", json!([good, {"apiVersion": "v1", "kind": 1}])),
        ("v1", "List", json!([good, null])),
        ("v1", "List", json!([good, {"apiVersion": "v1", "kind": "List", "items": [good]}])),
        ("g.io/v1", "AccessList", json!([good])),
        ("v1", "ConfigMap", json!([good])),
    ] {
        let list = json!({"apiVersion": api_version, "kind": kind, "items": items});

        assert_eq!(read(&list.to_string()), [(0, Ok(list.clone()))], "{list}");
    }
    assert_eq!(taken_apart("apiVersion: v1\nkind: List\n"), ["0 List/"]);
}

/// spec 10 §9.2, §11.3
#[test]
fn lists_may_have_as_many_items_as_a_data_key_has_documents() {
    let limits = Limits { documents: 50, ..Limits::default() };
    let items = |count: usize| {
        let item = |index| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("m{index}")}});
        let list = json!({"apiVersion": "v1", "kind": "List", "items": (0..count).map(item).collect::<Vec<_>>()});
        with_limits(format!("{list}{{\"a\":1}}").as_bytes(), limits)
    };

    assert_eq!(items(50).len(), 51);
    let too_many = items(51);
    assert_eq!(too_many[0], (0, Err("there are more than 50 documents".to_owned())));
    assert_eq!(too_many.len(), 2);
}
