//! Spec 62 §2: operations, order, the answer, objects that are being deleted.

use super::*;

const KINDS: [&str; 13] = [
    "BackupBucket",
    "BackupEntry",
    "Bastion",
    "ContainerRuntime",
    "ControlPlane",
    "DNSRecord",
    "Etcd",
    "Extension",
    "Infrastructure",
    "Network",
    "OperatingSystemConfig",
    "SelfHostedShootExposure",
    "Worker",
];

/// spec 62 §1
#[test]
fn good_object_of_each_kind_is_allowed() {
    for kind in KINDS {
        let object = good(kind);
        assert_eq!(created(&object), Vec::<String>::new(), "{kind}");
        assert_eq!(updated(&object, &object), Vec::<String>::new(), "{kind}");
    }
    assert_eq!(all().map(|extension| extension.kind.kind).iter().filter(|kind| !KINDS.contains(kind)).count(), 0);
}

/// spec 62 §1, column "Scope": the objects of the other tests follow what the kinds say of themselves.
#[test]
fn backup_buckets_and_entries_alone_are_in_no_namespace() {
    let elsewhere = all().map(|extension| extension.kind).into_iter().filter(|kind| !kind.namespaced);

    assert_eq!(elsewhere.map(|kind| kind.kind).collect::<Vec<_>>(), ["BackupBucket", "BackupEntry"]);
}

/// spec 62 scenario 1; spec 62 §2.2
#[test]
fn denial_is_a_complete_status() {
    let object = json!({ "metadata": { "name": "bucket" } });
    let ReviewVerdict::Invalid { status, .. } = judged("BackupBucket", "CREATE", &object, &Value::Null) else {
        panic!("allowed")
    };

    assert_eq!((status.code, &*status.reason), (422, "Invalid"));
    let [one, two, three] = ["spec.type", "spec.region", "spec.secretRef.name"];
    let text = "Required value: field is required";
    let message = format!(
        "BackupBucket.extensions.gardener.cloud \"bucket\" is invalid: [{one}: {text}, {two}: {text}, {three}: {text}]"
    );
    assert_eq!(status.message, message);
    assert_eq!([&*status.name, &*status.group, &*status.kind], ["bucket", "extensions.gardener.cloud", "BackupBucket"]);
    let cause = |field: &str| json!({ "reason": "FieldValueRequired", "message": text, "field": field });
    assert_eq!(json!(status.causes), json!([cause(one), cause(two), cause(three)]));
}

/// spec 62 scenarios 32, 33; spec 62 §2.3
#[test]
fn operation_without_its_objects_is_an_error() {
    let (ok, none) = (good("Worker"), Value::Null);
    let bad = with(ok.clone(), [("/spec", json!({}))]);
    let no_content = vec!["400 there is no content to decode".to_owned()];
    let no_map = vec!["400 couldn't decode the Worker: it is not a map".to_owned()];
    let unknown = |operation: &str| vec![format!("400 unknown operation \"{operation}\"")];
    for (operation, new, old, expected) in [
        ("CREATE", &none, &none, no_content.clone()),
        ("CREATE", &json!("text"), &none, no_map.clone()),
        ("CREATE", &ok, &json!(5), Vec::new()),
        ("UPDATE", &ok, &none, no_content.clone()),
        ("UPDATE", &ok, &json!(5), no_map.clone()),
        ("UPDATE", &json!(5), &none, no_map.clone()),
        ("UPDATE", &none, &ok, no_content.clone()),
        ("DELETE", &none, &bad, Vec::new()),
        ("DELETE", &none, &none, no_content),
        ("DELETE", &ok, &json!([]), no_map),
        ("CONNECT", &none, &none, Vec::new()),
        ("EXPLODE", &ok, &none, unknown("EXPLODE")),
        ("", &ok, &ok, unknown("")),
    ] {
        assert_eq!(reported(judged("Worker", operation, new, old)), expected, "{operation} {new} {old}");
    }
}

/// spec 62 §2.3, spec 60 §3
#[test]
fn decoding_fails_for_a_wrong_type_or_kind() {
    let of = |pointer: &str, value: Value| created(&with(good("Worker"), [(pointer, value)]));
    let wrong = |path: &str| vec![format!("400 couldn't decode the Worker: {path} has the wrong type")];
    assert_eq!(of("/spec/type", json!(5)), wrong("spec.type"));
    assert_eq!(of("/spec/pools", json!({})), wrong("spec.pools"));
    assert_eq!(of("/spec/pools/0/minimum", json!("1")), wrong("spec.pools[0].minimum"));
    assert_eq!(of("/spec/sshPublicKey", json!("%")), wrong("spec.sshPublicKey"));
    assert_eq!(of("/metadata/generation", json!(1.5)), wrong("metadata.generation"));
    assert_eq!(of("/spec/pools/0/nodeTemplate", json!({ "capacity": { "cpu": "many" } })).len(), 1);
    let other = vec!["400 couldn't decode the Worker: the object names another kind or version".to_owned()];
    for (pointer, value) in [("/apiVersion", "extensions.gardener.cloud/v1"), ("/kind", "Network")] {
        let object = with(good("Worker"), [(pointer, json!(value))]);
        assert_eq!(reported(judged("Worker", "CREATE", &object, &Value::Null)), other);
    }
    let nameless = with(good("Worker"), [("/apiVersion", json!("")), ("/spec/class", json!(null))]);
    assert!(created(&nameless).is_empty());
}

/// spec 62 §2.2
#[test]
fn denial_size_is_bounded() {
    let labels: serde_json::Map<_, _> =
        (0..2_000).map(|number| (format!("{number} {}", "€".repeat(600)), json!("a b"))).collect();
    let name = "<\u{1}".repeat(100_000);
    let object = with(good("Worker"), [("/metadata/labels", labels.into()), ("/metadata/name", json!(name))]);

    let verdict = judged("Worker", "CREATE", &object, &Value::Null);

    let ReviewVerdict::Invalid { status, errors } = &verdict else { panic!("allowed") };
    let causes = &status.causes;
    assert!(serde_json::to_vec(causes).unwrap().len() < 2 << 20 && status.message.len() < 1 << 20);
    assert!(causes.len() <= 101, "{}", causes.len());
    let last = causes.last().unwrap();
    assert!(last.message.starts_with("and ") && last.message.ends_with(" more") && last.field.is_empty());
    assert!(status.message.ends_with(&format!(", {}]", last.message)));
    assert_eq!(last.message, format!("and {} more", errors - (causes.len() - 1)), "all errors are counted");
    let again = judged("Worker", "CREATE", &object, &Value::Null);
    assert_eq!(again, verdict, "the same input has the same answer");
}

/// spec 62 §2.1
#[test]
fn error_detail_cuts_long_values() {
    let (long, beginning) = ("x".repeat(2_000), "x".repeat(512));
    let of = |kind: &str, pointer: &str, value: Value| created(&spec_with(kind, [(pointer, value)]));
    let families = |families: Value| spec_with("Network", [("/ipFamilies", families)]);
    let (known, unknown) = (families(json!(["IPv4"])), families(json!([long])));
    let zeros = "0".repeat(2_000);
    let cidrs = with(good_spec("Network"), [("/podCIDR", json!(format!("10.0.0.0/{zeros}8")))]);
    let cidrs = with(cidrs, [("/serviceCIDR", json!("10.0.0.0/16"))]);
    let address = json!([{ "nodeName": "n", "addresses": [{ "type": long, "address": "x" }] }]);
    let registry = json!({ "upstream": format!("a.b:{}", "9".repeat(2_000)) });
    let containerd = json!({ "containerd": { "sandboxImage": "p", "registries": [registry] } });
    let owner = json!({ "apiVersion": "v1", "kind": "K", "name": long, "uid": "u", "controller": true });
    let deleting = with(good("Worker"), [("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"))]);
    let finalized = with(deleting.clone(), [("/metadata/finalizers", json!([long]))]);

    for (errors, detail) in [
        (of("Network", "/podCIDR", json!(long)), format!(": invalid CIDR address: {beginning}…")),
        (
            updated(&unknown, &known),
            format!(": unsupported IP family update: oldIPFamilies=[IPv4], newIPFamilies=[{beginning}…]"),
        ),
        (
            updated(&known, &unknown),
            format!(": unsupported IP family update: oldIPFamilies=[{beginning}…], newIPFamilies=[IPv4]"),
        ),
        (
            created(&with(good("Network"), [("/spec", cidrs)])),
            format!(": must not overlap with \"spec.podCIDR\" (\"10.0.0.0/{}…\")", &zeros[..503]),
        ),
        (of("Etcd", "/backup/store/provider", json!(long)), format!(": unsupported storage provider: '{beginning}…'")),
        (
            of("SelfHostedShootExposure", "/endpoints", address),
            format!(": invalid address for unsupported address type \"{beginning}…\""),
        ),
        (
            of("OperatingSystemConfig", "/criConfig", containerd),
            format!(": port '{}…' is not valid, valid port must be in the range [1, 65535]", "9".repeat(512)),
        ),
        (
            created(&with(good("Worker"), [("/metadata/ownerReferences", json!([owner, owner]))])),
            format!(" in references for K/{beginning}… and K/{beginning}…"),
        ),
        (updated(&finalized, &deleting), format!(", found new finalizers []string{{\"{beginning}…\"}}")),
    ] {
        assert!(errors.iter().any(|error| error.ends_with(&detail)), "{detail}: {errors:?}");
    }
}

/// spec 62 §2.2
#[test]
fn denial_escapes_the_name_of_the_object() {
    let object = with(good("Worker"), [("/metadata/name", json!("a\"\n"))]);
    let ReviewVerdict::Invalid { status, .. } = judged("Worker", "CREATE", &object, &Value::Null) else {
        panic!("allowed")
    };
    assert!(
        status.message.starts_with(r#"Worker.extensions.gardener.cloud "a\"\n" is invalid: "#),
        "{}",
        status.message
    );
    assert_eq!(status.name, "a\"\n");
}

/// spec 62 scenario 34; spec 62 §2.4
#[test]
fn error_of_both_rule_sets_is_one_text_and_two_causes() {
    let old = good("Worker");
    let new = with(old.clone(), [("/metadata/labels", json!({ "a b": "c" })), ("/spec/region", json!(""))]);

    let ReviewVerdict::Invalid { status, .. } = judged("Worker", "UPDATE", &new, &old) else { panic!("allowed") };

    let fields: Vec<_> = status.causes.iter().map(|cause| &*cause.field).collect();
    assert_eq!(fields, ["metadata.labels", "spec.region", "metadata.labels", "spec.region"]);
    assert_eq!(status.message.matches("metadata.labels: ").count(), 1);
    assert_eq!(status.message.matches("spec.region: ").count(), 2, "two texts");
}

/// spec 62 scenarios 3, 4; spec 62 §2.5
#[test]
fn deleting_object_has_an_immutable_spec() {
    let deleting = [
        ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")),
        ("/metadata/finalizers", json!(["a.io/x", "a.io/y"])),
    ];
    for kind in KINDS.into_iter().filter(|kind| *kind != "Etcd") {
        let old = with(good(kind), deleting.clone());
        let new = with(old.clone(), [("/spec/type", json!("new"))]);
        let errors = updated(&new, &old);
        let noun = extension(kind).kind.noun;
        let expected = format!(
            "spec: Forbidden: cannot update {noun} spec if deletion timestamp is set. Requested changes: type: new != t"
        );
        assert_eq!(errors, [expected], "{kind}");

        let finalized = with(old.clone(), [("/metadata/finalizers", json!(["a.io/x"]))]);
        assert!(updated(&finalized, &old).is_empty(), "{kind}");
    }
}

/// spec 62 scenario 5; spec 62 §2.5
#[test]
fn deleting_etcd_has_an_immutable_spec() {
    let old = with(good("Etcd"), [("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"))]);
    let errors = updated(&with(old.clone(), [("/spec/replicas", json!(3))]), &old);
    assert_eq!(errors.len(), 1);
    assert!(errors[0].starts_with("spec: Invalid value: {") && errors[0].ends_with("}: field is immutable"));
    assert!(errors[0].contains("\"replicas\":3"), "{errors:?}");
    let same = with(old.clone(), [("/spec/etcd", json!({})), ("/spec/labels", json!(null))]);
    assert!(updated(&same, &old).is_empty());
}

/// spec 62 §2.6
#[test]
fn equivalent_specs_count_as_unchanged() {
    let pool = |capacity: &str, ttl: &str| {
        with(
            good("Worker"),
            [
                ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")),
                ("/spec/pools/0/nodeTemplate", json!({ "capacity": { "cpu": capacity } })),
                ("/spec/pools/0/machineControllerManager", json!({ "machineDrainTimeout": ttl })),
            ],
        )
    };
    assert!(updated(&pool("1500m", "60s"), &pool("1.5", "1m0s")).is_empty());
    let empty = with(pool("1", "1m"), [("/spec/pools/0/labels", json!({})), ("/spec/pools/0/zones", json!([]))]);
    assert!(updated(&empty, &pool("1", "1m")).is_empty());
    assert_eq!(updated(&pool("2", "1m"), &pool("1", "1m")).len(), 1);
    let etcd =
        |changes| with(spec_with("Etcd", changes), [("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"))]);
    let container = |name: &str| etcd([("/backup/store/container", json!(name))]);
    assert_eq!(updated(&container("60m"), &container("1h")).len(), 1, "names are no durations");
    let limits = |cpu: Value| etcd([("/etcd", json!({ "resources": { "limits": { "cpu": cpu } } }))]);
    assert!(updated(&limits(json!(1)), &limits(json!("1"))).is_empty());
    let rotation = |time: &str| {
        let rotation = json!({ "certificateAuthorities": { "lastInitiationTime": time } });
        with(
            good("OperatingSystemConfig"),
            [
                ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")),
                ("/spec/inPlaceUpdates", json!({ "credentialsRotation": rotation })),
            ],
        )
    };
    assert!(updated(&rotation("2026-01-01T00:00:00Z"), &rotation("2026-01-01T01:00:00+01:00")).is_empty());
    assert_eq!(updated(&rotation("2026-01-01T00:00:00Z"), &rotation("2026-01-01T00:00:01Z")).len(), 1);
    let config = |value: Value| with(pool("1", "1m"), [("/spec/providerConfig", value)]);
    assert!(updated(&config(json!({ "a": 1, "b": 2 })), &config(json!({ "b": 2, "a": 1 }))).is_empty());
    assert_eq!(updated(&config(json!({ "a": [] })), &config(json!({}))).len(), 1, "content counts as it is");
}

/// spec 62 "Better than upstream"
#[test]
fn deleting_object_may_lose_finalizers_despite_newer_rules() {
    let old = with(
        good("Worker"),
        [("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z")), ("/spec/pools/0/name", json!(""))],
    );
    assert!(updated(&old, &old).is_empty());
    let alive = spec_with("Worker", [("/pools/0/name", json!(""))]);
    assert_eq!(updated(&alive, &alive), required(["spec.pools[0].name"]), "as long as it lives, it counts");
}

/// spec 62 §2.3: `fieldsV1` is as deep as the object, and no rule reads it
#[test]
fn managed_fields_are_skipped_while_decoding() {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let many = format!("[{}0]", "0,".repeat(60_000));
    let decoded = |kind: &str, fields: &str, config: &str| {
        let managed = format!(r#"[{{"manager":"m","operation":"Apply","fieldsV1":{fields}}}]"#);
        let metadata = format!(r#"{{"name":"o","namespace":"ns","managedFields":{managed}}}"#);
        let object = format!(r#"{{"metadata":{metadata},"spec":{{"type":"t","providerConfig":{config}}}}}"#);
        let review = format!(r#"{{"request":{{"operation":"CREATE","object":{object}}}}}"#);
        let received = Received { body: Body::Whole(review.into()), content_type: "application/json".to_owned() };
        decode(&received, extension(kind).extent()).map(drop).map_err(|refusal| refusal.message)
    };
    for kind in ["Extension", "OperatingSystemConfig"] {
        for fields in [&deep, &many] {
            assert_eq!(decoded(kind, fields, "{}"), Ok(()), "{kind}");
        }
        let refusal = decoded(kind, "{}", &deep).unwrap_err();
        assert!(refusal.contains("the object is nested too deeply (more than 125 levels)"), "{refusal}");
    }
    let object = with(good("Extension"), [("/metadata/managedFields", json!({}))]);
    assert_eq!(created(&object), ["400 couldn't decode the Extension: metadata.managedFields has the wrong type"]);
}

/// spec 62 §2.3
#[test]
fn status_without_rules_is_skipped() {
    let many = json!({ "state": vec![0; 60_000] });
    assert!(created(&with(good("Infrastructure"), [("/status", many.clone())])).is_empty());

    let config = with(good("OperatingSystemConfig"), [("/status", many)]).to_string();
    let review = format!(r#"{{"request":{{"operation":"CREATE","object":{config}}}}}"#);
    let received = Received { body: Body::Whole(review.into()), content_type: "application/json".to_owned() };
    let refusal = decode(&received, extension("OperatingSystemConfig").extent()).unwrap_err();
    assert!(refusal.message.contains(crate::api::meta::field::TOO_MANY), "{}", refusal.message);
}
