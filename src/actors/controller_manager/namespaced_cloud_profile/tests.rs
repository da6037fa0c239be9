use serde_json::{Value, json};

use super::{
    Profile,
    merge::{merged, status_patch},
};

fn version(version: &str) -> Value {
    json!({ "version": version, "architectures": ["amd64"] })
}

fn with(object: Value, fields: Value) -> Value {
    let (Value::Object(mut object), Value::Object(fields)) = (object, fields) else { panic!("both are objects") };
    object.extend(fields);
    object.into()
}

/// The merged versions of the image `i`.
fn image_versions(parent: Value, own: Value) -> Value {
    let image = |versions: Value| json!({ "machineImages": [{ "name": "i", "versions": versions }] });
    merged(&image(parent), &image(own))["machineImages"][0]["versions"].clone()
}

const CAPABILITIES: &str =
    r#"[{ "name": "architecture", "values": ["amd64", "arm64"] }, { "name": "net", "values": ["a"] }]"#;

fn with_capabilities(fields: Value) -> Value {
    with(fields, json!({ "machineCapabilities": serde_json::from_str::<Value>(CAPABILITIES).unwrap() }))
}

/// spec 81 D.3 nos. 1 and 9, scenarios 38 and 47
#[test]
fn empty_profile_is_its_parent_with_architectures() {
    let parent = json!({
        "type": "t", "regions": [{ "name": "r", "later": 1.50 }], "providerConfig": { "kind": "C", "list": [null, {}] },
        "kubernetes": { "versions": [{ "version": "1.3.0" }] }, "seedSelector": null,
        "machineImages": [{ "name": "i", "versions": [{ "version": "1" }] }], "machineTypes": [{ "name": "m", "cpu": "2" }],
    });

    let result = merged(&parent, &json!({ "parent": { "name": "p" }, "providerConfig": { "kind": "N" } }));

    let mut expected = parent;
    expected.as_object_mut().unwrap().remove("seedSelector");
    expected["machineImages"][0]["versions"][0]["architectures"] = json!(["amd64"]);
    expected["machineTypes"][0]["architecture"] = json!("amd64");
    assert_eq!(result, expected);
}

/// spec 81 D.3 no. 2, trap D-T2, scenario 39
#[test]
fn only_the_expiration_of_common_kubernetes_versions_is_overridden() {
    let of = |versions: Value| json!({ "kubernetes": { "versions": versions } });
    let parent = of(json!([{ "version": "1.3.0", "expirationDate": "a" },
        { "version": "1.2.3", "classification": "deprecated", "expirationDate": "b", "lifecycle": [{ "classification": "x" }] }]));
    let versions = |own: &Value| merged(&parent, own)["kubernetes"]["versions"].clone();

    let overridden = versions(&of(json!([{ "version": "1.2.3", "expirationDate": "c", "classification": "preview" },
        { "version": "9.9.9" }])));
    let cleared = versions(&of(json!([{ "version": "1.2.3" }])));

    let mut expected = parent["kubernetes"]["versions"].clone();
    assert_eq!(versions(&json!({})), expected);
    assert_eq!(versions(&json!({ "kubernetes": {} })), expected);
    expected[1]["expirationDate"] = json!("c");
    assert_eq!(overridden, expected);
    expected[1].as_object_mut().unwrap().remove("expirationDate");
    assert_eq!(cleared, expected);
}

/// spec 81 D.3 no. 4, D.5, scenario 40
#[test]
fn version_of_an_image_that_both_have_is_replaced_or_gets_the_date() {
    let parent = with(
        version("1"),
        json!({ "expirationDate": "a", "cri": [{ "name": "c" }], "inPlaceUpdates": { "supported": true } }),
    );
    let only = |own: Value| image_versions(json!([parent]), json!([own]))[0].clone();

    assert_eq!(
        only(json!({ "version": "1", "expirationDate": "b" })),
        with(parent.clone(), json!({ "expirationDate": "b" }))
    );
    let mut cleared = parent.clone();
    cleared.as_object_mut().unwrap().remove("expirationDate");
    assert_eq!(only(json!({ "version": "1", "lifecycle": [{}], "inPlaceUpdates": {} })), cleared);
    for fields in [
        json!({ "architectures": ["arm64"] }),
        json!({ "cri": [{ "name": "d" }] }),
        json!({ "kubeletVersionConstraint": ">1" }),
        json!({ "classification": "preview" }),
    ] {
        let own = with(json!({ "version": "1" }), fields);
        let mut expected = own.clone();
        if expected.get("architectures").is_none() {
            expected["architectures"] = json!(["amd64"]);
        }
        assert_eq!(only(own), expected);
    }
    let kept = json!({ "version": "1", "architectures": [], "cri": null, "classification": "", "expirationDate": "b" });
    assert_eq!(only(kept), with(parent.clone(), json!({ "expirationDate": "b" })));
}

/// spec 81 D.3 no. 4, scenarios 40 and 41
#[test]
fn image_that_both_have_gets_a_strategy_and_new_versions_at_the_end() {
    let parent = json!({ "machineImages": [
        { "name": "i", "updateStrategy": "major", "later": 1, "versions": [version("2"), version("1")] }, { "name": "j", "versions": [version("1")] }] });
    let own = json!({ "machineImages": [
        { "name": "k", "versions": [version("7")] },
        { "name": "i", "updateStrategy": "minor", "later": 2, "versions": [version("3")] }, { "name": "j", "updateStrategy": "" }] });

    let result = merged(&parent, &own);

    assert_eq!(
        result["machineImages"],
        json!([
            { "name": "i", "updateStrategy": "minor", "later": 1, "versions": [version("2"), version("1"), version("3")] },
            { "name": "j", "versions": [version("1")] }, { "name": "k", "versions": [version("7")] },
        ])
    );
}

/// spec 81 D.3 nos. 5 and 6, scenario 42
#[test]
fn machine_and_volume_types_are_replaced_in_place_or_appended() {
    let types = |names: &[(&str, &str)]| -> Value {
        names.iter().map(|(name, cpu)| json!({ "name": name, "cpu": cpu, "architecture": "amd64" })).collect()
    };
    let of = |types: &Value| json!({ "machineTypes": types, "volumeTypes": types });

    let result = merged(&of(&types(&[("a", "1"), ("b", "1"), ("a", "2")])), &of(&types(&[("c", "8"), ("b", "8")])));

    assert_eq!(result, of(&types(&[("a", "2"), ("b", "8"), ("c", "8")])));
}

/// spec 81 D.4, D.6, scenario 43
#[test]
fn own_entries_get_capabilities_if_the_parent_has_them() {
    let parent = with_capabilities(json!({}));
    let own = json!({
        "machineImages": [{ "name": "i", "versions": [{ "version": "1", "architectures": ["amd64", "arm64"] }] }],
        "machineTypes": [{ "name": "a" }, { "name": "b", "architecture": "arm64" },
            { "name": "c", "capabilities": { "architecture": ["arm64"], "net": ["a"] } }],
    });

    let result = merged(&parent, &own);

    let flavors = json!([{ "architecture": ["amd64"] }, { "architecture": ["arm64"] }]);
    assert_eq!(
        result["machineImages"][0]["versions"],
        json!([{ "version": "1", "architectures": ["amd64", "arm64"], "capabilityFlavors": flavors }])
    );
    assert_eq!(
        result["machineTypes"],
        json!([
            { "name": "a", "capabilities": { "architecture": ["amd64"] }, "architecture": "amd64" },
            { "name": "b", "capabilities": { "architecture": ["arm64"] }, "architecture": "arm64" },
            { "name": "c", "capabilities": { "architecture": ["arm64"], "net": ["a"] }, "architecture": "arm64" },
        ])
    );
    let single = json!({ "machineCapabilities": [{ "name": "architecture", "values": ["arm64"] }] });
    let result = merged(&single, &json!({ "machineTypes": [{ "name": "a" }] }));
    assert_eq!(
        result["machineTypes"],
        json!([{ "name": "a", "capabilities": { "architecture": ["arm64"] }, "architecture": "arm64" }])
    );
}

/// spec 81 D.4, scenario 44
#[test]
fn own_entries_lose_capabilities_if_the_parent_has_none() {
    let own = json!({
        "machineImages": [{ "name": "i", "versions": [{ "version": "1",
            "capabilityFlavors": [{ "architecture": ["amd64"] }, { "architecture": ["arm64", "amd64"] }] }] }],
        "machineTypes": [{ "name": "a", "capabilities": { "architecture": ["arm64"] } },
            { "name": "b", "architecture": "amd64", "capabilities": { "architecture": ["arm64"] } }],
    });

    let result = merged(&json!({}), &own);

    assert_eq!(
        result["machineImages"][0]["versions"],
        json!([{ "version": "1", "architectures": ["amd64", "arm64"] }])
    );
    let types = json!([{ "name": "a", "architecture": "arm64" }, { "name": "b", "architecture": "amd64" }]);
    assert_eq!(result["machineTypes"], types);
}

/// spec 81 D.6
#[test]
fn entries_of_the_parent_get_architectures_from_flavors_and_definitions() {
    let flavors = json!([{ "architecture": ["arm64"] }, { "net": ["a"] }]);
    let parent = json!({
        "machineImages": [{ "name": "i", "versions": [{ "version": "1" }, { "version": "2", "capabilityFlavors": flavors }] }],
        "machineTypes": [{ "name": "a", "capabilities": { "architecture": ["arm64"] } }, { "name": "b" }],
    });
    let architectures = |result: &Value| {
        let versions = result["machineImages"][0]["versions"].as_array().unwrap().clone();
        let types = result["machineTypes"].as_array().unwrap().clone();
        (
            versions.iter().map(|version| version["architectures"].clone()).collect::<Vec<_>>(),
            types.iter().map(|kind| kind["architecture"].clone()).collect::<Vec<_>>(),
        )
    };

    let with = architectures(&merged(&with_capabilities(parent.clone()), &json!({})));
    let without = architectures(&merged(&parent, &json!({})));

    assert_eq!(
        with,
        (vec![json!(["amd64", "arm64"]), json!(["arm64", "amd64"])], vec![json!("arm64"), json!("amd64")])
    );
    assert_eq!(without, (vec![json!(["amd64"]), json!(["amd64"])], vec![json!("amd64"), json!("amd64")]));
}

/// spec 81 D.3 no. 8, scenario 45
#[test]
fn limits_are_those_of_the_profile_if_they_are_positive() {
    let of = |nodes: i64| json!({ "limits": { "maxNodesTotal": nodes } });
    for (own, expected) in [(24, 24), (5, 5), (0, 10), (-1, 10)] {
        assert_eq!(merged(&of(10), &of(own)), of(expected), "{own}");
    }
    assert_eq!(merged(&json!({}), &of(7)), of(7));
    assert_eq!(merged(&of(10), &json!({})), of(10));
    assert_eq!(merged(&json!({}), &json!({ "limits": null })), json!({}));
}

/// spec 81 D.3 no. 7, scenario 46
#[test]
fn ca_bundles_are_two_readable_blocks() {
    let of = |bundle: &str| json!({ "caBundle": bundle });
    for (parent, own, expected) in [("a", "b\n", "a\nb\n"), ("a\n", "b", "a\nb"), ("", "b", "b"), ("a", "", "a")] {
        assert_eq!(merged(&of(parent), &of(own)), of(expected));
    }
    assert_eq!(merged(&json!({}), &of("b")), of("b"));
    assert_eq!(merged(&of("a"), &json!({})), of("a"));
}

fn child(status: Value) -> Value {
    json!({ "metadata": { "name": "n", "generation": 3 }, "spec": { "limits": { "maxNodesTotal": 5 } }, "status": status })
}

/// spec 81 D.2, scenarios 38 and 50
#[test]
fn merged_status_is_the_difference_to_the_present_one() {
    let parent = json!({ "type": "t", "providerConfig": { "a": { "b": 1 } } });
    let expected = with(parent.clone(), json!({ "limits": { "maxNodesTotal": 5 } }));
    let status = |spec: &Value, generation: i64| json!({ "cloudProfileSpec": spec, "observedGeneration": generation });

    let first = status_patch(&child(Value::Null), &parent).unwrap();
    assert_eq!(first, json!({ "status": status(&expected, 3) }));
    for same in
        [status(&expected, 3), status(&with(expected.clone(), json!({ "regions": null, "volumeTypes": [] })), 3)]
    {
        assert_eq!(status_patch(&child(same.clone()), &parent), None, "{same}");
    }
    assert_eq!(
        status_patch(&child(status(&expected, 2)), &parent),
        Some(json!({ "status": { "observedGeneration": 3 } }))
    );
    let mut other = expected.clone();
    other["providerConfig"]["a"]["c"] = json!(2);
    assert_eq!(
        status_patch(&child(status(&other, 3)), &parent),
        Some(
            json!({ "status": { "observedGeneration": 3, "cloudProfileSpec": { "providerConfig": { "a": { "c": null } } } } })
        )
    );
}

/// spec 81 D.2, "better" 7: the hash of the present status tells that nothing must be written.
#[test]
fn profile_is_up_to_date_if_its_status_has_the_merged_spec_and_the_generation() {
    let parent = json!({ "type": "t", "regions": null });
    let merged = json!({ "type": "t", "limits": { "maxNodesTotal": 5 }, "volumeTypes": [] });
    let is_up_to_date = |status: Value| Profile::of(&child(status)).is_up_to_date(&parent);

    assert!(is_up_to_date(json!({ "cloudProfileSpec": merged, "observedGeneration": 3 })));
    assert!(!is_up_to_date(json!({ "cloudProfileSpec": merged, "observedGeneration": 2 })));
    assert!(!is_up_to_date(json!({ "cloudProfileSpec": { "type": "t" }, "observedGeneration": 3 })));
    assert!(!is_up_to_date(Value::Null));
}

/// spec 81 D.1: changes of the status and of labels do not count.
#[test]
fn profile_concerns_its_merge_by_spec_and_generation() {
    let profile = |generation: i64, spec: Value, status: Value| {
        Profile::of(&json!({ "metadata": { "generation": generation }, "spec": spec, "status": status }))
    };
    let old = profile(1, json!({}), Value::Null);

    assert!(!old.concerns_merge_unlike(&profile(1, json!({}), json!({ "observedGeneration": 1 }))));
    assert!(old.concerns_merge_unlike(&profile(2, json!({}), Value::Null)));
    assert!(old.concerns_merge_unlike(&profile(1, json!({ "limits": {} }), Value::Null)));
}

#[test]
fn profiles_of_any_shape_are_merged() {
    let odd = [
        json!(null),
        json!([]),
        json!({ "kubernetes": [], "machineImages": {}, "machineTypes": [null, 5], "limits": 1 }),
        json!({ "machineImages": [{ "versions": [null, "x", {}] }, 3], "volumeTypes": [[]], "caBundle": 5 }),
        json!({ "machineCapabilities": [null, {}], "kubernetes": { "versions": [1] } }),
    ];
    for parent in &odd {
        for own in &odd {
            assert!(merged(parent, own).is_object());
        }
    }
}
