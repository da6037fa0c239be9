//! Spec 62 §3.

use super::*;

const KEY: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

fn of(pointer: &str, value: Value) -> Vec<String> {
    created(&with(good("Worker"), [(pointer, value)]))
}

/// spec 62 §3.1 rules 1 to 6
#[test]
fn names_are_names_of_dns() {
    assert!(of("/metadata/generateName", json!("a-b-")).is_empty());
    assert_eq!(of("/metadata/generateName", json!("A-")), Vec::<String>::new(), "its last two bytes are replaced");
    assert_eq!(
        of("/metadata/generateName", json!("A_b-")),
        [format!("metadata.generateName: Invalid value: \"A_b-\": {SUBDOMAIN}")]
    );
    assert_eq!(of("/metadata/name", json!("")), ["metadata.name: Required value: name or generateName is required"]);
    assert_eq!(of("/metadata/name", json!("A")), [format!("metadata.name: Invalid value: \"A\": {SUBDOMAIN}")]);
    assert_eq!(of("/metadata/namespace", json!("")), ["metadata.namespace: Required value"]);
    assert_eq!(
        of("/metadata/namespace", json!("a.b")),
        ["metadata.namespace: Invalid value: \"a.b\": must not contain dots"]
    );
    let bucket = with(good("BackupBucket"), [("/metadata/namespace", json!("ns"))]);
    assert_eq!(created(&bucket), ["metadata.namespace: Forbidden: not allowed on this type"]);
    assert_eq!(
        of("/metadata/generation", json!(-1)),
        ["metadata.generation: Invalid value: -1: must be greater than or equal to 0"]
    );
}

/// spec 62 §3.1 rules 7 to 9
#[test]
fn labels_and_annotations_have_keys_that_are_qualified_names() {
    assert_eq!(
        of("/metadata/labels", json!({ "-a": "b", "c": "d e" })),
        [
            format!("metadata.labels: Invalid value: \"-a\": {KEY}"),
            "metadata.labels: Invalid value: \"d e\": a valid label must be an empty string or consist of alphanumeric \
             characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
             'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                .to_owned(),
        ]
    );
    assert!(of("/metadata/annotations", json!({ "Example.COM/A": "any thing" })).is_empty(), "in lower case");
    assert_eq!(
        of("/metadata/annotations", json!({ "A b": "" })),
        [format!("metadata.annotations: Invalid value: \"A b\": {KEY}")]
    );
    let long = |bytes: usize| of("/metadata/annotations", json!({ "a": "x".repeat(bytes - 1) }));
    assert!(long(262_144).is_empty());
    assert_eq!(long(262_145), ["metadata.annotations: Too long: may not be more than 262144 bytes"]);
}

/// spec 62 §3.1 rules 10 and 11
#[test]
fn owners_are_complete_and_one_of_them_controls() {
    let owner = |more: Value| {
        let mut owner = json!({ "apiVersion": "v1", "kind": "K", "name": "n", "uid": "u" });
        owner.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        owner
    };
    let of = |owners: Value| of("/metadata/ownerReferences", owners);
    let owners = |field: &str| format!("metadata.ownerReferences.{field}");
    assert!(of(json!([owner(json!({})), owner(json!({ "controller": true }))])).is_empty());
    assert_eq!(
        of(json!([owner(json!({ "apiVersion": "a/" })), {}])),
        [
            format!("{}: Invalid value: \"a/\": version must not be empty", owners("apiVersion")),
            format!("{}: Invalid value: \"\": version must not be empty", owners("apiVersion")),
            format!("{}: Invalid value: \"\": must not be empty", owners("kind")),
            format!("{}: Invalid value: \"\": must not be empty", owners("name")),
            format!("{}: Invalid value: \"\": must not be empty", owners("uid")),
        ]
    );
    let event = of(json!([owner(json!({ "kind": "Event" }))]));
    assert!(event[0].ends_with("}: /v1, Kind=Event is disallowed from being an owner"), "{event:?}");
    let controls = |name: &str| owner(json!({ "name": name, "controller": true }));
    let two = of(json!([controls("a"), controls("b")]));
    let text = "Only one reference can have Controller set to true. Found \"true\" in references for K/a and K/b";
    let four = of(json!([controls("a"), controls("b"), controls("c"), {}]));
    assert_eq!(four.len(), 5, "reported once, and the others are checked too: {four:?}");
    assert!(
        two.len() == 1 && two[0].starts_with("metadata.ownerReferences: Invalid value: [{") && two[0].ends_with(text)
    );
}

/// spec 62 §3.1 rules 12 and 13
#[test]
fn finalizers_are_qualified_names_that_do_not_contradict() {
    assert_eq!(
        of("/metadata/finalizers", json!(["a.io/x", "-"])),
        [format!("metadata.finalizers: Invalid value: \"-\": {KEY}")]
    );
    assert_eq!(
        of("/metadata/finalizers", json!(["orphan", "foregroundDeletion"])),
        ["metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and \
          foregroundDeletion cannot be both set"]
    );
}

/// spec 62 §3.1 rule 14
#[test]
fn managed_fields_are_of_known_operations() {
    let of = |fields: Value| of("/metadata/managedFields", json!([fields]));
    assert!(of(json!({ "manager": "m", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {} })).is_empty());
    assert_eq!(
        of(json!({ "operation": "Patch", "fieldsType": "V2", "manager": "m\u{7}", "subresource": "s".repeat(257) })),
        [
            "metadata.managedFields[0].operation: Invalid value: \"Patch\": must be `Apply` or `Update`",
            "metadata.managedFields[0].fieldsType: Invalid value: \"V2\": must be `FieldsV1`",
            "metadata.managedFields[0].manager: Invalid value: \"m\\a\": should only contain printable characters (at \
             position 1)",
            "metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes",
        ]
    );
    for (manager, shown, at) in [("ab\u{200b}", r"ab\u200b", 2), ("ä\u{a0}", r"ä\u00a0", 2), ("\u{e000}", r"\ue000", 0)]
    {
        let expected = format!(
            "metadata.managedFields[0].manager: Invalid value: \"{shown}\": should only contain printable characters (at \
             position {at})"
        );
        assert_eq!(of(json!({ "operation": "Update", "manager": manager })), [expected]);
    }
    assert_eq!(
        of(json!({ "operation": "Update", "manager": "m".repeat(129) })),
        ["metadata.managedFields[0].manager: Too long: may not be more than 128 bytes"]
    );
}

/// spec 62 §3.2 rules 1 to 4
#[test]
fn update_keeps_fields_set_by_the_api_server() {
    let old = with(good("Worker"), [("/metadata/generation", json!(2))]);
    let of = |pointer: &str, value: Value| updated(&with(old.clone(), [(pointer, value)]), &old);
    assert_eq!(
        of("/metadata/resourceVersion", json!("")),
        ["metadata.resourceVersion: Invalid value: \"\": must be specified for an update"]
    );
    assert_eq!(
        of("/metadata/generation", json!(1)),
        ["metadata.generation: Invalid value: 1: must not be decremented"]
    );
    let time = json!("2026-01-01T00:00:00Z");
    for (field, value, shown) in [
        ("name", json!("p"), "\"p\""),
        ("namespace", json!("ns2"), "\"ns2\""),
        ("uid", json!("v<"), "\"v\\u003c\""),
        ("creationTimestamp", time.clone(), "\"2026-01-01T00:00:00Z\""),
        ("deletionTimestamp", time.clone(), "\"2026-01-01T00:00:00Z\""),
        ("deletionGracePeriodSeconds", json!(5), "5"),
    ] {
        let expected = format!("metadata.{field}: Invalid value: {shown}: field is immutable");
        assert_eq!(of(&format!("/metadata/{field}"), value), [expected]);
    }
    let renamed = of("/metadata/name", json!("b<"));
    assert_eq!(renamed[0], "metadata.name: Invalid value: \"b<\": field is immutable", "a plain text");
    let back = updated(&old, &with(old.clone(), [("/metadata/deletionTimestamp", time.clone())]));
    assert_eq!(back, ["metadata.deletionTimestamp: Invalid value: null: field is immutable"]);

    let deleting =
        with(old.clone(), [("/metadata/deletionTimestamp", time), ("/metadata/finalizers", json!(["a.io/x"]))]);
    let more = with(deleting.clone(), [("/metadata/finalizers", json!(["c.io/x", "a.io/x", "b.io/x"]))]);
    assert_eq!(
        updated(&more, &deleting),
        ["metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new \
          finalizers []string{\"b.io/x\", \"c.io/x\"}"]
    );
}
