use super::*;
use crate::webhooks::testing::object;

const LABEL: &str = "resources.gardener.cloud";

const EVERYTHING: Circumstances = Circumstances {
    default_seccomp_profile: true,
    garden_is_self_hosted: true,
    bootstrapping: false,
    bin_packing: true,
    topology_aware_routing: true,
    match_label_keys_off: true,
};

fn deployment(mode: Mode) -> Deployment {
    Deployment {
        mode,
        client: Client::Service,
        prefix: String::new(),
        namespace: "garden".into(),
        enabled: RegistrationEntry::ALL.into(),
        ca_bundle: "LS0t...".into(),
    }
}

fn rendered(mode: Mode, entry: RegistrationEntry) -> Value {
    deployment(mode).entry(entry)
}

fn shown(selector: &Value) -> String {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let labels = labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap()));
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten().map(|expression| {
        let key = expression["key"].as_str().unwrap();
        let values = expression["values"].as_array().into_iter().flatten().map(|value| value.as_str().unwrap());
        let values = values.collect::<Vec<_>>().join(",");
        match expression["operator"].as_str().unwrap() {
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            other => panic!("no operator: {other}"),
        }
    });
    labels.chain(expressions).collect::<Vec<_>>().join(", ")
}

/// spec 50 §3.6
#[test]
fn registration_of_a_hosted_shoot_is_the_sample() {
    let sample = object(
        "
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: gardener-resource-manager-shoot
  labels:
    app: gardener-resource-manager
webhooks:
- name: projected-token-mount.resources.gardener.cloud
  clientConfig:
    url: https://gardener-resource-manager.shoot--demo--a:443/webhooks/mount-projected-service-account-token
    caBundle: LS0t...
  rules:
  - {apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}
  namespaceSelector:
    matchExpressions:
    - {key: kubernetes.io/metadata.name, operator: In, values: [kube-system, kubernetes-dashboard]}
  objectSelector:
    matchExpressions:
    - {key: projected-token-mount.resources.gardener.cloud/skip, operator: DoesNotExist}
    - {key: app, operator: NotIn, values: [gardener-resource-manager]}
    - {key: static-pod, operator: NotIn, values: ['true']}
  admissionReviewVersions: [v1beta1, v1]
  failurePolicy: Fail
  matchPolicy: Exact
  sideEffects: None
  timeoutSeconds: 10
- name: kubernetes-service-host.resources.gardener.cloud
  clientConfig:
    url: https://gardener-resource-manager.shoot--demo--a:443/webhooks/kubernetes-service-host
    caBundle: LS0t...
  rules:
  - {apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}
  namespaceSelector:
    matchExpressions:
    - {key: apiserver-proxy.networking.gardener.cloud/inject, operator: NotIn, values: [disable]}
  objectSelector:
    matchExpressions:
    - {key: apiserver-proxy.networking.gardener.cloud/inject, operator: NotIn, values: [disable]}
    - {key: static-pod, operator: NotIn, values: ['true']}
  admissionReviewVersions: [v1beta1, v1]
  reinvocationPolicy: Never
  failurePolicy: Ignore
  matchPolicy: Exact
  sideEffects: None
  timeoutSeconds: 2
",
    );

    let made = configuration(&Deployment {
        mode: Mode::Shoot,
        client: Client::Url,
        prefix: String::new(),
        namespace: "shoot--demo--a".into(),
        enabled: [RegistrationEntry::KubernetesServiceHost, RegistrationEntry::ProjectedTokenMount].into(),
        ca_bundle: "LS0t...".into(),
    });

    assert_eq!(made, sample);
}

/// spec 50 §1, spec 31 §5.1
#[test]
#[rustfmt::skip]
fn registration_entries_are_those_of_the_specification() {
    let table = [
        ("projected-token-mount", "mount-projected-service-account-token", "/v1 pods", "CREATE", "Exact", "Fail", 10, ""),
        ("high-availability-config", "high-availability-config", "apps/v1 deployments,statefulsets; autoscaling/v2 horizontalpodautoscalers", "CREATE,UPDATE", "Equivalent", "Fail", 10, ""),
        ("pod-scheduler-name", "default-pod-scheduler-name", "/v1 pods", "CREATE", "Exact", "Ignore", 10, ""),
        ("seccomp-profile", "seccomp-profile", "/v1 pods", "CREATE", "Exact", "Fail", 10, ""),
        ("kubernetes-service-host", "kubernetes-service-host", "/v1 pods", "CREATE", "Exact", "Ignore", 2, "Never"),
        ("pod-kube-apiserver-load-balancing", "pod-kube-apiserver-load-balancing", "/v1 pods", "CREATE", "Exact", "Fail", 10, ""),
        ("pod-virtual-garden-kube-apiserver-load-balancing", "pod-kube-apiserver-load-balancing", "/v1 pods", "CREATE", "Exact", "Fail", 10, ""),
        ("system-components-config", "system-components-config", "/v1 pods", "CREATE", "Exact", "Fail", 10, ""),
        ("endpoint-slice-hints", "endpoint-slice-hints", "discovery.k8s.io/v1 endpointslices", "CREATE,UPDATE", "Equivalent", "Fail", 10, ""),
        ("pod-topology-spread-constraints", "pod-topology-spread-constraints", "/v1 pods", "CREATE", "Exact", "Fail", 10, ""),
        ("vpa-in-place-updates", "vpa-in-place-updates", "autoscaling.k8s.io/v1 verticalpodautoscalers", "CREATE,UPDATE", "Equivalent", "Fail", 10, "Never"),
        ("token-invalidator", "invalidate-service-account-token-secret", "/v1 secrets", "CREATE,UPDATE", "Exact", "Fail", 10, "Never"),
    ];

    let made = configuration(&deployment(Mode::Runtime));
    let made = made["webhooks"].as_array().unwrap();

    let joined = |texts: &Value| {
        texts.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect::<Vec<_>>().join(",")
    };
    assert_eq!(made.len(), table.len());
    for (made, (name, path, resources, operations, match_policy, failure_policy, timeout, reinvocation)) in made.iter().zip(table) {
        let rules = made["rules"].as_array().unwrap();
        let shown: Vec<String> = rules
            .iter()
            .map(|rule| {
                assert_eq!(joined(&rule["operations"]), operations, "{name}");
                assert_eq!(rule.get("scope"), None, "{name}");
                format!("{}/{} {}", joined(&rule["apiGroups"]), joined(&rule["apiVersions"]), joined(&rule["resources"]))
            })
            .collect();

        assert_eq!(made["name"], format!("{name}.resources.gardener.cloud"));
        assert_eq!(made["clientConfig"]["service"]["path"], format!("/webhooks/{path}"), "{name}");
        assert_eq!(shown.join("; "), resources, "{name}");
        assert_eq!(made["matchPolicy"], match_policy, "{name}");
        assert_eq!(made["failurePolicy"], failure_policy, "{name}");
        assert_eq!(made["timeoutSeconds"], timeout, "{name}");
        assert_eq!(made["reinvocationPolicy"].as_str().unwrap_or_default(), reinvocation, "{name}");
        assert_eq!(made.get("matchConditions"), None, "{name}");
    }
}

/// spec 50 §3.3, §3.4
#[test]
fn namespace_selectors_are_those_of_the_specification() {
    const RUNTIME: &str = "gardener.cloud/role, kubernetes.io/metadata.name notin (kube-system,kubernetes-dashboard)";
    const SHOOT: &str = "kubernetes.io/metadata.name in (kube-system,kubernetes-dashboard)";
    let with = |webhook: &str, base: &str| format!("{webhook}.{LABEL}/consider=true, {base}");
    let inject = "apiserver-proxy.networking.gardener.cloud/inject notin (disable)";
    let both = |selector: &str| [selector.to_owned(), selector.to_owned()];
    let base = || [RUNTIME.to_owned(), SHOOT.to_owned()];

    for (entry, [runtime, shoot]) in [
        (RegistrationEntry::ProjectedTokenMount, base()),
        (
            RegistrationEntry::HighAvailabilityConfig,
            [with("high-availability-config", RUNTIME), with("high-availability-config", SHOOT)],
        ),
        (RegistrationEntry::PodSchedulerName, both("")),
        (RegistrationEntry::SeccompProfile, base()),
        (RegistrationEntry::KubernetesServiceHost, both(inject)),
        (RegistrationEntry::LoadBalancing, both("gardener.cloud/role=shoot")),
        (RegistrationEntry::LoadBalancingOfVirtualGarden, both("kubernetes.io/metadata.name=garden")),
        (RegistrationEntry::SystemComponentsConfig, [with("system-components-config", RUNTIME), SHOOT.to_owned()]),
        (RegistrationEntry::EndpointSliceHints, base()),
        (RegistrationEntry::PodTopologySpreadConstraints, base()),
        (RegistrationEntry::VpaInPlaceUpdates, base()),
        (
            RegistrationEntry::TokenInvalidator,
            ["notin", "in"]
                .map(|operator| format!("gardener.cloud/purpose {operator} (kube-system,kubernetes-dashboard)")),
        ),
    ] {
        assert_eq!(shown(&rendered(Mode::Runtime, entry)["namespaceSelector"]), runtime, "{entry:?}");
        assert_eq!(shown(&rendered(Mode::Shoot, entry)["namespaceSelector"]), shoot, "{entry:?}");
    }
}

/// spec 50 §3.4
#[test]
fn object_selectors_are_those_of_the_specification() {
    const MANAGED: &str = "resources.gardener.cloud/managed-by=gardener, ";
    let skip = |webhook: &str| format!("!{webhook}.{LABEL}/skip");
    let app = "app notin (gardener-resource-manager)";
    let static_pod = "static-pod notin (true)";

    for (entry, in_shoots, selector) in [
        (RegistrationEntry::ProjectedTokenMount, "", format!("{}, {app}, {static_pod}", skip("projected-token-mount"))),
        (RegistrationEntry::HighAvailabilityConfig, MANAGED, skip("high-availability-config")),
        (RegistrationEntry::PodSchedulerName, "", static_pod.to_owned()),
        (RegistrationEntry::SeccompProfile, "", format!("{}, {app}, {static_pod}", skip("seccompprofile"))),
        (
            RegistrationEntry::KubernetesServiceHost,
            "",
            format!("apiserver-proxy.networking.gardener.cloud/inject notin (disable), {static_pod}"),
        ),
        (RegistrationEntry::LoadBalancing, "", static_pod.to_owned()),
        (RegistrationEntry::LoadBalancingOfVirtualGarden, "", format!("{app}, {static_pod}")),
        (
            RegistrationEntry::SystemComponentsConfig,
            MANAGED,
            format!("{}, {static_pod}", skip("system-components-config")),
        ),
        (RegistrationEntry::EndpointSliceHints, "", format!("endpoint-slice-hints.{LABEL}/consider=true")),
        (
            RegistrationEntry::PodTopologySpreadConstraints,
            MANAGED,
            format!("{app}, {}, {static_pod}", skip("topology-spread-constraints")),
        ),
        (RegistrationEntry::VpaInPlaceUpdates, "", skip("vpa-in-place-updates")),
        (RegistrationEntry::TokenInvalidator, "", format!("{LABEL}/purpose=token-invalidator")),
    ] {
        assert_eq!(shown(&rendered(Mode::Runtime, entry)["objectSelector"]), selector, "{entry:?}");
        let in_shoots = format!("{in_shoots}{selector}");
        assert_eq!(shown(&rendered(Mode::Shoot, entry)["objectSelector"]), in_shoots, "{entry:?}");
    }
}

/// spec 50 §1, §3.4, scenario 42
#[test]
fn entries_for_pods_exclude_static_pods_and_all_agree_on_effects_and_versions() {
    for mode in [Mode::Runtime, Mode::Shoot] {
        for entry in configuration(&deployment(mode))["webhooks"].as_array().unwrap() {
            let for_pods = entry["rules"].as_array().unwrap().iter().any(|rule| rule["resources"] == json!(["pods"]));
            let expressions = entry["objectSelector"]["matchExpressions"].as_array().cloned().unwrap_or_default();
            let not_static = json!({ "key": "static-pod", "operator": "NotIn", "values": ["true"] });

            assert_eq!(expressions.contains(&not_static), for_pods, "{entry}");
            assert_eq!(entry["sideEffects"], "None");
            assert_eq!(entry["admissionReviewVersions"], json!(["v1beta1", "v1"]));
        }
    }
}

/// spec 50 §3.4, scenario 43: the API server calls for an UPDATE whose old or new object is selected.
#[test]
fn skip_label_update_itself_is_still_sent() {
    let entry = rendered(Mode::Runtime, RegistrationEntry::VpaInPlaceUpdates);
    let selected = |labels: Value| {
        let expressions = entry["objectSelector"]["matchExpressions"].as_array().unwrap();
        expressions.iter().all(|expression| {
            assert_eq!(expression["operator"], "DoesNotExist");
            labels.get(expression["key"].as_str().unwrap()).is_none()
        })
    };

    let old = selected(json!({}));
    let new = selected(json!({ "vpa-in-place-updates.resources.gardener.cloud/skip": "false" }));

    assert_eq!((old, new), (true, false));
    assert_eq!(entry["rules"][0]["operations"], json!(["CREATE", "UPDATE"]));
}

/// spec 50 §3.1, §3.2
#[test]
fn registration_names_labels_and_addresses_follow_the_deployment() {
    let remediation = "remediation.webhook.shoot.gardener.cloud/exclude";
    for (mode, client, prefix, name, labels, address) in [
        (
            Mode::Runtime,
            Client::Service,
            "",
            "gardener-resource-manager",
            json!({ "app": "gardener-resource-manager", remediation: "true" }),
            json!({ "service": {
                "name": "gardener-resource-manager", "namespace": "ns", "path": "/webhooks/seccomp-profile",
            }, "caBundle": "Q0E=" }),
        ),
        (
            Mode::Shoot,
            Client::Url,
            "virtual-garden-",
            "virtual-garden-gardener-resource-manager-shoot",
            json!({ "app": "virtual-garden-gardener-resource-manager" }),
            json!({
                "url": "https://virtual-garden-gardener-resource-manager.ns:443/webhooks/seccomp-profile",
                "caBundle": "Q0E=",
            }),
        ),
    ] {
        let made = configuration(&Deployment {
            mode,
            client,
            prefix: prefix.into(),
            namespace: "ns".into(),
            enabled: [RegistrationEntry::SeccompProfile].into(),
            ca_bundle: "Q0E=".into(),
        });

        assert_eq!(made["metadata"], json!({ "name": name, "labels": labels }));
        assert_eq!(made["webhooks"][0]["clientConfig"], address);
        let app = format!("app notin ({prefix}gardener-resource-manager)");
        assert!(shown(&made["webhooks"][0]["objectSelector"]).contains(&app));
    }
}

/// spec 50 §3.4 row 6b: it excludes the instance of the runtime cluster, whatever the prefix.
#[test]
fn entry_of_the_virtual_garden_never_selects_the_program_itself() {
    let deployment = Deployment { prefix: "virtual-garden-".into(), ..deployment(Mode::Runtime) };

    let entry = deployment.entry(RegistrationEntry::LoadBalancingOfVirtualGarden);

    assert_eq!(shown(&entry["objectSelector"]), "app notin (gardener-resource-manager), static-pod notin (true)");
}

/// spec 50 §3.5
#[test]
#[rustfmt::skip]
fn registration_of_each_cluster_has_the_entries_of_the_specification() {
    const PLACES: [RegisteredCluster; 7] = [
        RegisteredCluster::SeedRuntime, RegisteredCluster::GardenRuntime, RegisteredCluster::SelfHostedRuntime, RegisteredCluster::HostedShoot, RegisteredCluster::SelfHostedShoot,
        RegisteredCluster::WorkerlessShoot, RegisteredCluster::VirtualGarden,
    ];
    let nothing = Circumstances::default();
    let seccomp = Circumstances { default_seccomp_profile: true, ..nothing };
    let self_hosted = Circumstances { garden_is_self_hosted: true, ..nothing };
    let bootstrap = Circumstances { bootstrapping: true, ..nothing };
    let bin_packing = Circumstances { bin_packing: true, ..nothing };
    let routing = Circumstances { topology_aware_routing: true, ..nothing };
    let keys_off = Circumstances { match_label_keys_off: true, ..nothing };

    for (entry, now, expected) in [
        //                                                         seed   garden own rt hosted own sh none   virtual
        (RegistrationEntry::ProjectedTokenMount,          nothing,     [true,  true,  true,  true,  true,  false, false]),
        (RegistrationEntry::HighAvailabilityConfig,       nothing,     [true,  true,  true,  true,  true,  false, false]),
        (RegistrationEntry::HighAvailabilityConfig,       bootstrap,   [true,  true,  false, true,  false, false, false]),
        (RegistrationEntry::PodSchedulerName,             nothing,     [false, false, false, false, false, false, false]),
        (RegistrationEntry::PodSchedulerName,             bin_packing, [false, false, false, true,  true,  false, false]),
        (RegistrationEntry::SeccompProfile,               nothing,     [false, false, false, false, false, false, false]),
        (RegistrationEntry::SeccompProfile,               seccomp,     [true,  true,  true,  false, false, false, false]),
        (RegistrationEntry::KubernetesServiceHost,        nothing,     [false, false, false, true,  false, false, false]),
        (RegistrationEntry::LoadBalancing,                nothing,     [true,  true,  true,  false, false, false, false]),
        (RegistrationEntry::LoadBalancingOfVirtualGarden, nothing,     [false, true,  false, false, false, false, false]),
        (RegistrationEntry::SystemComponentsConfig,       nothing,     [false, false, true,  true,  true,  false, false]),
        (RegistrationEntry::SystemComponentsConfig,       self_hosted, [false, true,  true,  true,  true,  false, false]),
        (RegistrationEntry::EndpointSliceHints,           nothing,     [false, false, false, false, false, false, false]),
        (RegistrationEntry::EndpointSliceHints,           routing,     [true,  true,  false, false, false, false, false]),
        (RegistrationEntry::PodTopologySpreadConstraints, nothing,     [false, false, false, false, false, false, false]),
        (RegistrationEntry::PodTopologySpreadConstraints, keys_off,    [false, false, false, true,  true,  false, false]),
        (RegistrationEntry::VpaInPlaceUpdates,            nothing,     [true,  true,  false, true,  false, false, false]),
        (RegistrationEntry::TokenInvalidator,             nothing,     [true,  true,  true,  true,  true,  false, false]),
    ] {
        assert_eq!(PLACES.map(|place| place.entries(&now).contains(&entry)), expected, "{entry:?} with {now:?}");
    }
}

/// spec 60 §4
#[test]
fn validating_registration_exists_in_clusters_that_run_control_planes() {
    let all = super::validating(&deployment(Mode::Runtime), |_| true).unwrap();
    let webhooks = all["webhooks"].as_array().unwrap();
    let names: Vec<_> = webhooks.iter().map(|webhook| webhook["name"].as_str().unwrap()).collect();
    let of = |plural: &str| format!("validation.extensions.{plural}.resources.gardener.cloud");

    assert_eq!(all["metadata"]["name"], "gardener-resource-manager");
    assert_eq!(all["metadata"]["labels"]["remediation.webhook.shoot.gardener.cloud/exclude"], "true");
    assert_eq!(names.len(), 15);
    let protection = ["crd-deletion-protection", "cr-deletion-protection"];
    assert_eq!(names[..2], protection.map(|name| format!("{name}.resources.gardener.cloud")));
    assert!(names.contains(&&*of("etcds")) && names.contains(&&*of("bastions")) && names.contains(&&*of("workers")));
    for webhook in webhooks {
        assert_eq!((&webhook["failurePolicy"], &webhook["matchPolicy"]), (&json!("Fail"), &json!("Exact")));
        assert_eq!((&webhook["sideEffects"], &webhook["timeoutSeconds"]), (&json!("None"), &json!(10)));
        assert_eq!(
            (&webhook["namespaceSelector"], &webhook["admissionReviewVersions"]),
            (&json!({}), &json!(["v1beta1", "v1"]))
        );
        assert_eq!(webhook.get("reinvocationPolicy"), None, "spec 60 §4.1");
    }
    assert_eq!(shown(&webhooks[0]["objectSelector"]), "gardener.cloud/deletion-protected=true");
    assert_eq!(webhooks[1]["objectSelector"], json!({}));
    let protected = json!([
        { "apiGroups": ["druid.gardener.cloud"], "apiVersions": ["v1alpha1"], "resources": ["etcds"], "operations": ["DELETE"] },
        { "apiGroups": ["extensions.gardener.cloud"], "apiVersions": ["v1alpha1"], "operations": ["DELETE"], "resources": [
            "backupbuckets", "backupentries", "bastions", "containerruntimes", "controlplanes", "dnsrecords", "extensions",
            "infrastructures", "networks", "operatingsystemconfigs", "selfhostedshootexposures", "workers",
        ]},
    ]);
    assert_eq!(webhooks[1]["rules"], protected);

    assert_eq!(super::validating(&deployment(Mode::Shoot), |_| true), None);
    assert_eq!(super::validating(&deployment(Mode::Runtime), |_| false), None);
}

/// spec 71 §12.2: no label of Gardener is needed, and Pods of `kube-system` can be created while the program is down.
#[test]
fn registration_of_a_cluster_without_gardener_needs_no_labels_of_namespaces() {
    let all_but_system = "kubernetes.io/metadata.name notin (kube-system)";
    let deployment =
        Deployment { enabled: RegisteredCluster::Plain.entries(&Circumstances::default()), ..deployment(Mode::Plain) };

    let made = configuration(&deployment);

    assert_eq!(
        made["metadata"],
        json!({ "name": "gardener-resource-manager", "labels": { "app": "gardener-resource-manager" } })
    );
    assert_eq!(made["webhooks"].as_array().unwrap().len(), RegistrationEntry::ALL.len() - 1);
    for entry in
        [RegistrationEntry::ProjectedTokenMount, RegistrationEntry::SeccompProfile, RegistrationEntry::TokenInvalidator]
    {
        assert_eq!(shown(&deployment.entry(entry)["namespaceSelector"]), all_but_system, "{entry:?}");
    }
    let components = deployment.entry(RegistrationEntry::SystemComponentsConfig);
    let consider = "system-components-config.resources.gardener.cloud/consider=true";
    assert_eq!(shown(&components["namespaceSelector"]), format!("{consider}, {all_but_system}"));
    assert!(!shown(&components["objectSelector"]).contains("managed-by"), "spec 71 §12.3 no. 14");
    assert!(super::validating(&deployment, |_| true).is_some());
}

/// `RENEW_EXAMPLES=1 cargo test --lib webhooks::registration` renews the files.
#[test]
fn registration_examples_are_up_to_date() {
    let mut files: Vec<(String, Vec<Value>)> = Vec::new();
    for (name, place, _) in RegisteredCluster::NAMED {
        let namespace = if place.has_authorizer() { "shoot--demo--a" } else { "garden" };
        let deployment = Deployment {
            mode: place.mode(),
            client: place.client(),
            prefix: String::new(),
            namespace: if place == RegisteredCluster::SelfHostedShoot { "kube-system" } else { namespace }.into(),
            enabled: place.entries(&EVERYTHING),
            ca_bundle: CA.into(),
        };
        let validating = super::validating(&deployment, |_| true);
        files.push((format!("{name}.yaml"), [configuration(&deployment)].into_iter().chain(validating).collect()));
    }
    files.push(("authorizer.yaml".into(), authorizer(RegisteredCluster::HostedShoot, "", CA).unwrap().into()));

    for (file, objects) in files {
        let options = serde_saphyr::ser_options! { prefer_block_scalars: false, compact_list_indent: true };
        let written = objects.iter().map(|example| {
            let yaml = serde_saphyr::to_string_with_options(example, options.clone()).unwrap();
            assert_eq!(object(&yaml), *example, "{file} means what was rendered");
            yaml
        });
        let header = if file == "authorizer.yaml" { AUTHORIZER_HEADER } else { HEADER };
        let expected = format!("{header}{}", written.collect::<Vec<_>>().join("---\n"));
        let path = format!("{}/deploy/webhooks/{file}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("RENEW_EXAMPLES").is_some() {
            std::fs::write(&path, &expected).unwrap();
        }

        let actual = std::fs::read_to_string(&path).unwrap_or_default();

        assert!(
            actual == expected,
            "deploy/webhooks/{file} is out of date. Renew it with:\n\
             RENEW_EXAMPLES=1 cargo test --lib webhooks::registration\nIt must be:\n{expected}"
        );
    }
}

const CA: &str = "<Base64 of the CA certificates in PEM>";

const HEADER: &str = "\
# Generated from src/webhooks/registration/; a test compares. All entries that such a deployment can have. The charts take
# from this file the entries that their values enable.
#
# Do not apply it as it is: a webhook that your configuration does not enable answers 404, and then nothing that its entry
# selects can be created. This prints what fits your configuration:
# gardener-resource-manager webhook registration --place PLACE --config config.yaml --ca-file ca.crt
";

const AUTHORIZER_HEADER: &str = "\
# Generated from src/webhooks/registration/; a test compares. The authorizer for node agents of a shoot: the file for
# kube-apiserver's flag --authorization-config, and the kubeconfig that this file names. This prints both with your CA:
# gardener-resource-manager webhook registration --place shoot --authorizer --ca-file ca.crt
";
