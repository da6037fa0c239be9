//! Spec 62 §4, §8, §9, §10.

use super::*;

fn of<const N: usize>(kind: &str, changes: [(&str, Value); N]) -> Vec<String> {
    created(&spec_with(kind, changes))
}

/// spec 62 scenario 6; spec 62 §4
#[test]
fn missing_fields_are_reported_in_the_order_of_the_table() {
    let common = required(["spec.type", "spec.region", "spec.secretRef.name"]);
    for (kind, expected) in [
        ("BackupBucket", common.clone()),
        ("BackupEntry", required(["spec.type", "spec.bucketName", "spec.region", "spec.secretRef.name"])),
        ("Bastion", required(["spec.type", "spec.userData", "spec.ingress"])),
        ("ContainerRuntime", required(["spec.type", "spec.binaryPath", "spec.workerPool.name"])),
        ("ControlPlane", common.clone()),
        ("Extension", required(["spec.type"])),
        ("Infrastructure", common.clone()),
        ("Worker", common),
        ("Etcd", Vec::new()),
    ] {
        assert_eq!(created(&with(good(kind), [("/spec", json!({}))])), expected, "{kind}");
        assert_eq!(created(&with(good(kind), [("/spec", json!(null))])), expected, "{kind}");
    }
    assert_eq!(of("Bastion", [("/ingress", json!([]))]), required(["spec.ingress"]));
}

/// spec 62 scenario 2; spec 62 §4
#[test]
fn immutable_fields_are_reported_with_their_new_value() {
    let fixed = |kind: &str, changes: &[(&str, &str)]| {
        let new = changes.iter().fold(good(kind), |object, (field, value)| {
            with(object, [(&*format!("/spec/{}", field.replace('.', "/")), json!(value))])
        });
        let expected: Vec<_> = changes
            .iter()
            .map(|(field, value)| format!("spec.{field}: Invalid value: \"{value}\": field is immutable"))
            .collect();
        assert_eq!(updated(&new, &good(kind)), expected, "{kind}");
    };
    for kind in ["BackupBucket", "ControlPlane", "Infrastructure", "Worker"] {
        fixed(kind, &[("type", "n"), ("region", "n")]);
    }
    for kind in ["BackupEntry", "Bastion", "Extension", "SelfHostedShootExposure"] {
        fixed(kind, &[("type", "n")]);
    }
    fixed("ContainerRuntime", &[("type", "n"), ("workerPool.name", "n")]);
    fixed("DNSRecord", &[("type", "n"), ("name", "b.example.org"), ("recordType", "AAAA")]);
    fixed("Network", &[("type", "n"), ("podCIDR", "10.0.0.0/16"), ("serviceCIDR", "10.1.0.0/16")]);
    fixed("OperatingSystemConfig", &[("type", "n"), ("purpose", "provision")]);
}

/// spec 62 §4 to §9: all else may change
#[test]
fn mutable_fields_are_those_outside_the_tables() {
    for (kind, field, value) in [
        ("BackupEntry", "bucketName", json!("n")),
        ("BackupEntry", "region", json!("n")),
        ("Bastion", "ingress", json!([{ "ipBlock": { "cidr": "not checked" } }])),
        ("ContainerRuntime", "binaryPath", json!("/n")),
        ("ContainerRuntime", "workerPool", json!({ "name": "p", "selector": { "matchLabels": { "a": "b" } } })),
        ("ControlPlane", "secretRef", json!({ "name": "n" })),
        ("DNSRecord", "values", json!(["10.0.0.2"])),
        ("DNSRecord", "ttl", json!(0)),
        ("Infrastructure", "sshPublicKey", json!("YQ==")),
        ("Infrastructure", "class", json!("garden")),
        ("OperatingSystemConfig", "units", json!([])),
        ("SelfHostedShootExposure", "port", json!(1)),
        ("Worker", "pools", json!([])),
        ("Etcd", "replicas", json!(3)),
        ("Extension", "providerConfig", json!({ "a": 1 })),
    ] {
        assert!(
            updated(&with(good(kind), [(&*format!("/spec/{field}"), value)]), &good(kind)).is_empty(),
            "{kind} {field}"
        );
    }
}

/// spec 62 §4
#[test]
fn user_data_is_immutable_and_not_repeated() {
    let errors = updated(&spec_with("Bastion", [("/userData", json!("czNjcmV0"))]), &good("Bastion"));
    assert_eq!(errors.len(), 1);
    assert!(errors[0].starts_with("spec.userData: Invalid value: <6 bytes, SHA-256 "), "{errors:?}");
    assert!(errors[0].ends_with(": field is immutable") && !errors[0].contains("czNjcmV0"), "{errors:?}");
}

/// spec 62 scenarios 26, 27; spec 62 §8, all rows
#[test]
fn self_hosted_shoot_exposures_have_endpoints_that_can_be_reached() {
    const KIND: &str = "SelfHostedShootExposure";
    let reference = json!({ "apiVersion": "v1", "kind": "Secret", "namespace": "ns", "name": "s" });
    assert!(of(KIND, [("/credentialsRef", reference.clone())]).is_empty());
    let secret = "supported values: \"/v1, Kind=Secret\"";
    let gvk = |group: &str, version: &str, kind: &str| {
        format!(
            "spec.credentialsRef: Unsupported value: {{\"Group\":\"{group}\",\"Version\":\"{version}\",\"Kind\":\"{kind}\"}}: {secret}"
        )
    };
    let other =
        |field: &str, value: &str| of(KIND, [("/credentialsRef", with(reference.clone(), [(field, json!(value))]))]);
    assert_eq!(other("/kind", "ConfigMap"), [gvk("", "v1", "ConfigMap")]);
    assert_eq!(other("/apiVersion", "a/b/c"), [gvk("", "", "Secret")]);
    assert_eq!(other("/apiVersion", "a/b"), [gvk("a", "b", "Secret")]);
    assert_eq!(
        other("/namespace", "x"),
        ["spec.credentialsRef.namespace: Invalid value: \"x\": must equal metadata.namespace"]
    );
    assert_eq!(other("/name", "X"), [format!("spec.credentialsRef.name: Invalid value: \"X\": {SUBDOMAIN}")]);
    assert_eq!(
        of(KIND, [("/credentialsRef", json!({}))]),
        [
            "spec.credentialsRef.apiVersion: Required value: must provide an apiVersion".to_owned(),
            "spec.credentialsRef.kind: Required value: must provide a kind".to_owned(),
            "spec.credentialsRef.namespace: Required value: must provide a namespace".to_owned(),
            "spec.credentialsRef.name: Required value: must provide a name".to_owned(),
            gvk("", "", ""),
        ]
    );
    for port in [0, -1, 65_536] {
        let error = format!("spec.port: Invalid value: {port}: must be between 1 and 65535, inclusive");
        assert_eq!(of(KIND, [("/port", json!(port))]), [error]);
    }
    assert_eq!(of(KIND, [("/type", json!("")), ("/endpoints", json!([]))]), required(["spec.type", "spec.endpoints"]));
    let at = "spec.endpoints[0].addresses[0]";
    let address = |kind: &str, address: &str| {
        of(KIND, [("/endpoints", json!([{ "nodeName": "n", "addresses": [{ "type": kind, "address": address }] }]))])
    };
    let types = "supported values: \"ExternalDNS\", \"ExternalIP\", \"Hostname\", \"InternalDNS\", \"InternalIP\"";
    let no_ip = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
    assert_eq!(
        address("Foo", "x"),
        [
            format!("{at}.type: Unsupported value: \"Foo\": {types}"),
            format!("{at}.address: Invalid value: \"x\": invalid address for unsupported address type \"Foo\""),
        ]
    );
    assert_eq!(
        address("", "x"),
        [
            format!("{at}.type: Required value: field is required"),
            format!("{at}.address: Invalid value: \"x\": invalid address for unsupported address type \"\""),
        ]
    );
    assert_eq!(address("Hostname", ""), [format!("{at}.address: Required value: field is required")]);
    for kind in ["InternalIP", "ExternalIP"] {
        assert!(address(kind, "010.0.0.1").is_empty() && address(kind, "::ffff:10.0.0.1").is_empty());
        assert_eq!(
            address(kind, "n.example.org"),
            [format!("{at}.address: Invalid value: \"n.example.org\": {no_ip}")]
        );
    }
    for kind in ["Hostname", "InternalDNS", "ExternalDNS"] {
        assert!(address(kind, "n.example.org").is_empty());
        assert_eq!(address(kind, "N"), [format!("{at}.address: Invalid value: \"N\": {SUBDOMAIN}")]);
    }
    let nameless = of(KIND, [("/endpoints", json!([{ "addresses": [] }]))]);
    assert_eq!(nameless, required(["spec.endpoints[0].nodeName"]));
}

/// spec 62 scenarios 28, 29; spec 62 §9, all rows
#[test]
fn workers_have_pools_that_machines_can_be_made_for() {
    let pool = |pool: Value| of("Worker", [("/pools", json!([pool]))]);
    assert_eq!(
        pool(json!({})),
        required([
            "spec.pools[0].machineType",
            "spec.pools[0].machineImage.name",
            "spec.pools[0].machineImage.version",
            "spec.pools[0].name",
        ])
    );
    let of = |pointer: &str, value: Value| of("Worker", [(pointer, value)]);
    assert_eq!(
        of("/pools/0/architecture", json!("riscv64")),
        ["spec.pools[0].architecture: Unsupported value: \"riscv64\": supported values: \"amd64\", \"arm64\""]
    );
    assert!(of("/pools/0/architecture", json!("arm64")).is_empty());
    let capacity =
        |resource: &str, amount: Value| of("/pools/0/nodeTemplate", json!({ "capacity": { resource: amount } }));
    let at = "spec.pools[0].nodeTemplate.capacity";
    let whole = "must be an integer";
    assert_eq!(
        capacity("nvidia.com/gpu", json!("1500m")),
        [format!("{at}.nvidia.com/gpu: Invalid value: \"1500m\": {whole}")]
    );
    assert_eq!(capacity("pods", json!("1.5")), [format!("{at}.pods: Invalid value: \"1500m\": {whole}")]);
    assert_eq!(
        capacity("cpu", json!(-1)),
        [format!("{at}.cpu: Invalid value: \"-1\": must be greater than or equal to 0")]
    );
    for fine in [
        ("cpu", "1500m"),
        ("pods", "2"),
        ("pods", "2000m"),
        ("memory", "1.5Gi"),
        ("x.kubernetes.io/y", "1.5"),
        ("requests.a/b", "1.5"),
    ] {
        assert!(capacity(fine.0, json!(fine.1)).is_empty(), "{fine:?}");
    }
    for counted in ["services", "services.nodeports", "services.loadbalancers", "secrets", "configmaps", "a.io/b"] {
        assert_eq!(capacity(counted, json!("0.5")).len(), 1, "{counted}");
    }
    let both = of("/pools/0/nodeTemplate", json!({ "capacity": { "b/x": "-0.5", "a": "-1" } }));
    assert_eq!(
        both.iter().map(|error| &error[at.len()..at.len() + 4]).collect::<Vec<_>>(),
        [".a: ", ".b/x", ".b/x"],
        "sorted"
    );
}

/// spec 62 scenarios 30, 31; spec 62 §10, all rows
#[test]
fn etcds_have_a_store_of_their_own() {
    let store = |store: Value| of("Etcd", [("/backup", json!({ "store": store }))]);
    let prefix = |value: &str| {
        format!("spec.backup.store.prefix: Invalid value: \"{value}\": must contain object name and namespace")
    };
    assert!(store(json!({ "prefix": "ns--uid/o" })).is_empty());
    for value in ["foo", "ns", "n/o", ""] {
        assert_eq!(store(json!({ "prefix": value })), [prefix(value)]);
    }
    assert_eq!(
        store(json!({ "prefix": "ns/o", "provider": "AWS" })),
        ["spec.backup.store.provider: Invalid value: \"AWS\": unsupported storage provider: 'AWS'"]
    );
    let providers = [
        "aws",
        "S3",
        "stackit",
        "azure",
        "ABS",
        "gcp",
        "GCS",
        "alicloud",
        "OSS",
        "openstack",
        "Swift",
        "dell",
        "ECS",
        "openshift",
        "OCS",
        "Local",
        "local",
        "",
    ];
    for provider in providers {
        assert!(store(json!({ "prefix": "ns/o", "provider": provider })).is_empty(), "{provider}");
    }
    let none = spec_with("Etcd", [("/backup", json!({}))]);
    assert!(
        created(&none).is_empty()
            && updated(&good("Etcd"), &none).is_empty()
            && updated(&none, &good("Etcd")).is_empty()
    );
    let moved = spec_with("Etcd", [("/backup/store/prefix", json!("ns/o/2")), ("/memberNamePrefix", json!("m"))]);
    assert_eq!(
        updated(&moved, &good("Etcd")),
        [
            "spec.backup.store.prefix: Invalid value: \"ns/o/2\": field is immutable",
            "spec.memberNamePrefix: Invalid value: \"m\": field is immutable",
        ]
    );
    let named = spec_with("Etcd", [("/memberNamePrefix", json!(""))]);
    assert_eq!(updated(&good("Etcd"), &named), ["spec.memberNamePrefix: Invalid value: null: field is immutable"]);
}
