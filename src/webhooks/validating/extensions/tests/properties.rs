use proptest::prelude::*;

use super::*;

fn kinds() -> impl Strategy<Value = &'static str> {
    let kinds: Vec<_> = all().iter().map(|extension| extension.kind.kind).collect();
    proptest::sample::select(kinds)
}

fn anything() -> impl Strategy<Value = Value> {
    let texts = prop_oneof![
        ".{0,12}",
        Just("1500m".to_owned()),
        Just("IPv4".to_owned()),
        Just("10.0.0.0/8".to_owned()),
        Just("http://[::1".to_owned()),
        Just("2026-01-01T00:00:00Z".to_owned()),
        Just("x".repeat(300)),
        Just("ä.\u{1}:%/".to_owned()),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3_i64..70_000).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        texts.prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-z]{1,6}", inner, 0..4)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(position, item)| pointers(item, &format!("{at}/{position}"), found));
        }
        Value::Object(fields) => fields.iter().for_each(|(key, item)| {
            pointers(item, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found)
        }),
        _ => {}
    }
}

fn changed(kind: &str, changes: &[(prop::sample::Index, Value)]) -> Value {
    let mut object = rich(kind);
    for (index, value) in changes {
        let mut all = Vec::new();
        pointers(&object, "", &mut all);
        *object.pointer_mut(&all[index.index(all.len())]).unwrap() = value.clone();
    }
    object
}

fn rich(kind: &str) -> Value {
    let object = with(
        good(kind),
        [
            ("/metadata/labels", json!({ "a": "b" })),
            ("/metadata/annotations", json!({ "a.io/b": "c" })),
            ("/metadata/finalizers", json!(["a.io/x"])),
            ("/metadata/ownerReferences", json!([{ "apiVersion": "v1", "kind": "K", "name": "n", "uid": "u" }])),
            ("/metadata/managedFields", json!([{ "manager": "m", "operation": "Update", "fieldsType": "FieldsV1" }])),
            ("/metadata/creationTimestamp", json!("2026-01-01T00:00:00Z")),
            ("/spec/providerConfig", json!({ "a": [1, { "b": "c" }] })),
        ],
    );
    match kind {
        "OperatingSystemConfig" => with(
            object,
            [
                (
                    "/spec/criConfig",
                    json!({ "containerd": { "sandboxImage": "p", "registries": [
                { "upstream": "a.b:1", "server": "https://a", "hosts": [{ "url": "http://b", "capabilities": ["pull"] }] },
            ], "plugins": [{ "op": "add", "path": ["a"], "values": { "a": 1 } }] } }),
                ),
                (
                    "/status",
                    json!({ "extensionFiles": [{ "path": "/b", "content": { "secretRef": { "name": "a", "dataKey": "b" } } }] }),
                ),
            ],
        ),
        "Worker" => with(
            object,
            [("/spec/pools/0/nodeTemplate", json!({ "capacity": { "cpu": "1", "pods": "2", "a/b": "3" } }))],
        ),
        "Network" => with(object, [("/spec/ipFamilies", json!(["IPv4"]))]),
        _ => object,
    }
}

fn answered(kind: &str, operation: &str, new: &Value, old: &Value) -> ReviewVerdict {
    let verdict = judged(kind, operation, new, old);
    assert!(
        matches!(
            verdict,
            ReviewVerdict::Allowed | ReviewVerdict::Invalid { .. } | ReviewVerdict::Errored { code: 400, .. }
        ),
        "{operation} {new} {old}: {verdict:?}"
    );
    verdict
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// spec 62 §2.3, "Unknown JSON fields are ignored"
    #[test]
    fn unknown_fields_keep_a_good_object_good(
        kind in kinds(),
        unknown in proptest::collection::vec((any::<prop::sample::Index>(), anything()), 1..6),
    ) {
        let mut object = rich(kind);
        for (index, value) in unknown {
            // Maps such as labels have no unknown fields.
            let maps = ["labels", "annotations", "capacity"];
            let mut all = Vec::new();
            pointers(&object, "", &mut all);
            all.retain(|at| {
                object.pointer(at).is_some_and(Value::is_object) && !at.split('/').any(|step| maps.contains(&step))
            });
            object.pointer_mut(&all[index.index(all.len())]).unwrap()["x-unknown"] = value;
        }
        prop_assert_eq!(created(&object), Vec::<String>::new());
        prop_assert_eq!(updated(&object, &object), Vec::<String>::new());
    }

    /// No object makes a webhook panic, and the same input has the same answer.
    #[test]
    fn any_object_has_always_the_same_answer(
        kind in kinds(),
        new in proptest::collection::vec((any::<prop::sample::Index>(), anything()), 0..6),
        old in proptest::collection::vec((any::<prop::sample::Index>(), anything()), 0..4),
        deleting in any::<bool>(),
    ) {
        let (mut new, old) = (changed(kind, &new), changed(kind, &old));
        if deleting && new["metadata"].is_object() {
            new["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        for operation in ["CREATE", "UPDATE", "DELETE", "CONNECT"] {
            let verdict = answered(kind, operation, &new, &old);
            prop_assert_eq!(&verdict, &answered(kind, operation, &new, &old));
        }
    }

    /// spec 62 "Better than upstream"
    #[test]
    fn user_content_is_in_no_answer(changes in proptest::collection::vec((any::<prop::sample::Index>(), anything()), 0..4)) {
        const SECRET: &str = "c2VjcmV0";
        let marked = |mut object: Value| {
            object["spec"]["userData"] = json!(SECRET);
            object["spec"]["sshPublicKey"] = json!(SECRET);
            object["spec"]["providerConfig"] = json!({ "key": SECRET });
            object["spec"]["files"] = json!([{ "path": "/a", "content": { "inline": { "data": SECRET }, "imageRef": {} } }]);
            object["spec"]["units"] = json!([{ "name": "u", "content": SECRET, "dropIns": [{ "name": "", "content": SECRET }] }]);
            object
        };
        for kind in ["Bastion", "OperatingSystemConfig", "Infrastructure"] {
            let changed = changed(kind, &changes);
            let old = good(kind);
            if !changed.is_object() || !changed["spec"].is_object() {
                continue;
            }
            let deleting = with(marked(good(kind)), [("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"))]);
            for (operation, new, old) in [
                ("CREATE", &marked(changed.clone()), &Value::Null),
                ("UPDATE", &marked(changed), &old),
                ("UPDATE", &deleting, &old),
                ("UPDATE", &old, &deleting),
            ] {
                let ReviewVerdict::Invalid { status, .. } = answered(kind, operation, new, old) else { continue };
                prop_assert!(!format!("{status:?}").contains(SECRET), "{:?}", status);
            }
        }
    }
}
