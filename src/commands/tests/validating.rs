use super::*;
use crate::{
    cli::PackOptions,
    commands::{DIFFERENT, OK, pack::pack, validate::validate},
};

pub(super) fn findings(text: &str) -> Vec<String> {
    validate(&[source("f", text)]).out.lines().map(str::to_owned).collect()
}

#[test]
fn validate_has_no_findings_for_good_input() {
    let manifests = format!("{}---\n{}", config_map("a"), config_map("b"));
    let options = PackOptions { name: "web".to_owned(), namespace: Some("ns".to_owned()), ..PackOptions::default() };
    let packed = pack(&options, &[source("f", &manifests)]);

    for text in [manifests.as_str(), &packed.out, include_str!("../../../config/component-config.yaml")] {
        let said = validate(&[source("f", text)]);

        assert_eq!((said.out.as_str(), said.code), ("", OK));
    }
}

#[test]
fn validate_names_mistakes_of_manifests() {
    let table = [
        ("- hidden", "f: the document is a list and no map — "),
        (
            "apiVersion: v1\nkind: List\nitems: []",
            "f v1/List/default/: the list cannot be taken apart — give each item",
        ),
        (
            "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: A, metadata: {name: yes}}]",
            "f v1/A/default/: metadata.name is no string — quote it",
        ),
        ("kind: A", "f /A/default/: there is no apiVersion — add it"),
        ("apiVersion: v1\nmetadata: {name: a}", "f: there is no kind — add it"),
        ("kind: ''\n---\na: b", "f:0: there is no apiVersion — add it"),
        (
            "apiVersion: v1\nkind: A\nmetadata: {generateName: a}",
            "f v1/A/default/: there is no metadata.name — give it a name",
        ),
        ("apiVersion: v1\nkind: A\nmetadata: {name: yes}", "f v1/A/default/: metadata.name is no string — quote it"),
        (
            "apiVersion: v1\nkind: A\nmetadata: {name: a/b}",
            "f v1/A/default/a/b: metadata.name cannot be part of a path — ",
        ),
        (
            "apiVersion: v1\nkind: A\nmetadata: {name: a, resourceVersion: '1'}",
            "f v1/A/default/a: metadata.resourceVersion ",
        ),
        (
            "apiVersion: v1\nkind: A\nmetadata: {name: a, annotations: {b: true}}",
            "f v1/A/default/a: all metadata.annotations are ignored, because the value of \"b\" is no string — quote",
        ),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {b: 1}",
            "f v1/ConfigMap/default/a: data.b is no string — ",
        ),
        (
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {b: hidden!}",
            "f v1/Secret/default/a: data.b is no Base64 text — ",
        ),
        (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {metadata: {labels: {x: 1}}}}",
            "f apps/v1/Deployment/default/a: spec.template.metadata.labels.x is no string — quote the value",
        ),
        (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: {containers: [{env: [{name: a, value: on}]}]}}}",
            "f apps/v1/Deployment/default/a: spec.template.spec.containers[0].env[0].value is no string — quote the value",
        ),
        (
            "apiVersion: apps/v1beta2\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {metadata: {labels: {x: 1}}}}",
            "f apps/v1beta2/Deployment/default/a: .spec.template.metadata.labels: the value of \"x\" is no string — ",
        ),
        (
            "apiVersion: apps/v1beta2\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: {containers: [{env: [{name: a, value: on}]}]}}}",
            "f apps/v1beta2/Deployment/default/a: .spec.template.spec.containers[0].env[0].value is no string — ",
        ),
        (
            "apiVersion: batch/v2\nkind: CronJob\nmetadata: {name: a}",
            "f batch/v2/CronJob/default/a: CronJobs of version v2 ",
        ),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a}", "f v1/Pod/default/a: warning: the API server fills in "),
    ];

    for (text, expected) in table {
        let found = findings(text);

        assert!(found.iter().any(|line| line.starts_with(expected)), "{expected}\n{found:#?}");
        assert!(found.iter().all(|line| line.contains(" — ") && !line.contains("hidden")), "{found:#?}");
    }
}

/// spec 10 §2.7
#[test]
fn validate_checks_annotations_by_their_table() {
    let table = [
        (
            "mode",
            "ignore",
            "annotation resources.gardener.cloud/mode: \"ignore\" has no effect — write exactly \"Ignore\"",
        ),
        ("mode", "Ignore", ""),
        ("ignore", "yes", "warning: annotation resources.gardener.cloud/ignore: \"yes\" counts as false — "),
        ("ignore", "T", ""),
        ("ignore", "false", ""),
        ("preserve-replicas", "1", "annotation resources.gardener.cloud/preserve-replicas: \"1\" has no effect — "),
        ("preserve-replicas", "true", ""),
        ("skip-health-check", "1", "annotation resources.gardener.cloud/skip-health-check: \"1\" has no effect — "),
        ("skip-health-check", "true", ""),
        (
            "finalize-deletion-after",
            "1d",
            "annotation resources.gardener.cloud/finalize-deletion-after: \"1d\" is no duration — ",
        ),
        ("finalize-deletion-after", "1h30m", ""),
        (
            "deletion-propagation-on-invalid-update",
            "orphan",
            "annotation resources.gardener.cloud/deletion-propagation-on-invalid-update: \"orphan\" is no propagation policy — write one of Background, Foreground, Orphan",
        ),
        ("origin", "x", "warning: annotation resources.gardener.cloud/origin is overwritten"),
        ("keep-objects", "true", "warning: annotation resources.gardener.cloud/keep-objects is not known"),
    ];

    for (key, value, expected) in table {
        let text = format!(
            "apiVersion: v1\nkind: A\nmetadata: {{name: a, annotations: {{resources.gardener.cloud/{key}: \"{value}\"}}}}"
        );
        let found = findings(&text);

        let prefix = format!("f v1/A/default/a: {expected}");
        let as_expected =
            if expected.is_empty() { found.is_empty() } else { found.iter().any(|line| line.starts_with(&prefix)) };
        assert!(as_expected, "{key}: {value}: {found:#?}");
    }
}

#[test]
fn validate_finds_duplicates_within_a_bundle() {
    let deployment = |group: &str| format!("apiVersion: {group}\nkind: Deployment\nmetadata: {{name: a}}\n");
    let said = validate(&[
        source("a", &config_map("a")),
        source(
            "b",
            &format!("{}---\n{}---\n{}", config_map("a"), deployment("apps/v1"), deployment("extensions/v1beta1")),
        ),
    ]);

    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(
        lines,
        [
            "b:0 v1/ConfigMap/ns/a: the same object is in a — remove one of them",
            "b:2 extensions/v1beta1/Deployment/default/a: stands for the same object as Deployment.apps in b:1 — remove one of them",
        ]
    );
    assert_eq!((said.code, said.remarks[0].as_str()), (DIFFERENT, "documents: 4, errors: 2, warnings: 0"));
}

#[test]
fn validate_checks_documents_inside_of_secrets() {
    let text = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: ns}\nstringData:\n  a.yaml: |\n    apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: on}\n    ---\n    hidden: [\n";

    let found = findings(text);

    assert!(found[0].starts_with("f[a.yaml:0] v1/ConfigMap/default/: metadata.name is no string"), "{found:#?}");
    assert!(found[1].starts_with("f[a.yaml:1] v1/Secret/ns/s: yaml: line "), "{found:#?}");
    assert!(!found.concat().contains("hidden"));
}

#[test]
fn validate_names_mistakes_of_managed_resources() {
    let table = [
        ("{}", "there is no spec.secretRefs — "),
        ("{secretRefs: [{name: a}, {name: a}]}", "spec.secretRefs[1] names Secret \"a\" again"),
        ("{secretRefs: [{name: a}]}", "warning: Secret \"a\" is not in the input"),
        ("{secretRefs: [{}]}", "spec.secretRefs[0].name is no name"),
        ("{secretRefs: x}", "spec.secretRefs is no list"),
        ("{secretRefs: [], keepObjects: 'true'}", "spec.keepObjects is no boolean"),
        ("{secretRefs: [], injectLabels: {a: true}}", "spec.injectLabels: the value of \"a\" is no string"),
        ("{secretRefs: [], secretRef: a}", "warning: spec.secretRef is not known"),
        ("{secretRefs: [], equivalences: [[{group: a, kind: K}]]}", "spec.equivalences[0] has less than two"),
        ("{secretRefs: [], equivalences: [[{kind: K}]]}", "spec.equivalences[0] has a member without group or kind"),
        (
            "{secretRefs: [], equivalences: [[{group: '', kind: Secret}, {group: '', kind: ConfigMap}]]}",
            "spec.equivalences[0] declares different kinds of the API server to be equivalent: ConfigMap, Secret",
        ),
        (
            "{secretRefs: [], equivalences: [[{group: a, kind: K}, {group: b, kind: K}], [{group: b, kind: K}, {group: c, kind: K}]]}",
            "warning: spec.equivalences[1] names K.b, as spec.equivalences[0] does",
        ),
    ];

    for (spec, expected) in table {
        let text = format!(
            "apiVersion: resources.gardener.cloud/v1alpha1\nkind: ManagedResource\nmetadata: {{name: m, namespace: ns}}\nspec: {spec}"
        );
        let found = findings(&text);

        let prefix = format!("f resources.gardener.cloud/v1alpha1/ManagedResource/ns/m: {expected}");
        assert!(found.iter().any(|line| line.starts_with(&prefix)), "{prefix}\n{found:#?}");
    }
}

#[test]
fn validate_checks_component_configurations() {
    let text = "apiVersion: resourcemanager.config.gardener.cloud/v1alpha1\nkind: ResourceManagerConfiguration\n\
                controllers: {managedResource: {concurrentSyncs: 0}}\nunknown: 1\n";

    let found = findings(text);

    assert!(
        found.iter().any(|line| line.contains("controllers.managedResources.concurrentSyncs: Invalid value: 0")),
        "{found:#?}"
    );
}

/// Of gardener-controller-manager: recognized by its kind or by its group, and checked as at the start of the program.
#[test]
fn validate_checks_configurations_of_the_controller_manager() {
    let group = "apiVersion: controllermanager.config.gardener.cloud/v1alpha1\n";
    let burst = "gardenClientConnection.burst: Invalid value: -1: must be non-negative";
    let table = [
        (format!("{group}kind: ControllerManagerConfiguration\ngardenClientConnection: {{burst: -1}}\n"), burst),
        (format!("{group}featureGates: {{Foo: true}}\n"), "unrecognized feature gate: Foo"),
        (format!("{group}kind: Foo\n"), "no kind \"Foo\" is registered for version"),
        ("kind: ControllerManagerConfiguration\ngardenClientConnection: {burst: -1}\n".to_owned(), burst),
        (format!("{group}controllers: {{plant: {{}}}}\n"), "warning: controllers.plant"),
    ];

    for (text, expected) in table {
        let found = findings(&text);
        assert!(found.len() == 1 && found[0].contains(expected), "{expected}: {found:#?}");
        assert!(found[0].ends_with("see docs/configuration.md"), "{found:#?}");
    }
    assert!(findings(include_str!("../../../config/controller-manager.yaml")).is_empty());
}

#[test]
fn validate_notices_an_edited_immutable_secret() {
    let options = PackOptions { name: "web".to_owned(), plain: true, secret_only: true, ..PackOptions::default() };
    let packed = pack(&options, &[source("f", &config_map("a"))]).out;

    let found = findings(&packed.replace("key: value", "key: other"));

    assert!(found[0].contains("warning: the checksum in the name is not that of the data, "), "{found:#?}");
}

/// spec 62 §4
#[test]
fn extension_objects_are_checked_against_their_rules() {
    let worker = "apiVersion: extensions.gardener.cloud/v1alpha1\nkind: Worker\nmetadata: {name: w}\n\
        spec: {type: t, region: r, secretRef: {name: s}, pools: [{name: p, machineType: m}]}\n";
    let found = findings(worker);

    let error = "spec.pools[0].machineImage.name: Required value: field is required";
    assert!(found.len() == 2 && found[0].contains(error), "{found:?}");
    let found = findings(&worker.replace("type: t", "type: 5"));
    assert!(found.len() == 1 && found[0].contains("spec.type has the wrong type"), "{found:?}");
}

/// spec 62 §3.1 rules 4 and 5
#[test]
fn extension_object_namespace_may_be_missing_but_not_wrong() {
    let of = |kind: &str, namespace: &str| {
        let said = findings(&format!(
            "apiVersion: extensions.gardener.cloud/v1alpha1\nkind: {kind}\nmetadata: {{name: o{namespace}}}\n\
             spec: {{type: t, region: r, secretRef: {{name: s}}}}\n"
        ));
        said.into_iter().filter(|line| line.contains("metadata.namespace")).collect::<Vec<_>>()
    };
    assert!(of("Infrastructure", "").is_empty());
    assert!(
        of("BackupBucket", ", namespace: ns")[0].contains("metadata.namespace: Forbidden: not allowed on this type")
    );
    assert!(of("Infrastructure", ", namespace: a.b").concat().contains("must not contain dots"));
}

/// spec 62 §2.3
#[test]
fn extension_object_that_the_webhook_cannot_read_is_reported() {
    let extension = |spec: &str| {
        findings(&format!(
            "{{apiVersion: extensions.gardener.cloud/v1alpha1, kind: Extension, metadata: {{name: o}}, spec: {{type: t, x: {spec}}}}}"
        ))
    };
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(extension(&deep(123)).is_empty()); // the object and its spec add two levels
    for (spec, reason) in [
        (deep(124), "the object is nested too deeply (more than 125 levels)"),
        (format!("[{}0]", "0, ".repeat(50_000)), "the object has too many fields"),
    ] {
        let (found, text) = (extension(&spec), format!("couldn't decode the Extension: {reason} — "));
        assert!(found.len() == 1 && found[0].contains(&text), "{found:?}");
    }
}

/// spec 62 §2.3: what the webhook ignores
#[test]
fn extension_object_status_is_read_only_if_it_has_rules() {
    let of = |kind: &str, spec: &str| {
        findings(&format!(
            "{{apiVersion: extensions.gardener.cloud/v1alpha1, kind: {kind}, metadata: {{name: o}}, spec: {{{spec}}}, status: []}}"
        ))
    };
    assert_eq!(of("Extension", "type: t"), Vec::<String>::new());
    let config = of("OperatingSystemConfig", "type: t, purpose: reconcile");
    assert!(config.len() == 1 && config[0].contains("status has the wrong type"), "{config:?}");
}

/// spec 60 §4
#[test]
fn extension_objects_of_unregistered_versions_are_ignored() {
    for version in ["v1alpha1", "v1beta1"] {
        for (group, kind) in [("extensions.gardener.cloud", "Infrastructure"), ("druid.gardener.cloud", "Etcd")] {
            let spec = "{backup: {store: {prefix: x}}}";
            let found = findings(&format!(
                "{{apiVersion: {group}/{version}, kind: {kind}, metadata: {{name: o}}, spec: {spec}}}"
            ));
            assert_eq!(found.is_empty(), version == "v1beta1", "{kind} {version}: {found:?}");
        }
    }
}

fn bundle(references: usize, documents: usize) -> String {
    let manifests: String =
        (0..documents).map(|number| format!("---\n{}", config_map(&format!("a{number}")))).collect();
    let secret = serde_json::json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "ns", "name": "s"}, "stringData": {"a.yaml": manifests},
    });
    let references = vec![serde_json::json!({"name": "s"}); references];
    let mr = serde_json::json!({
        "apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
        "metadata": {"namespace": "ns", "name": "mr"}, "spec": {"secretRefs": references},
    });
    format!("{secret}\n---\n{mr}\n")
}

#[test]
fn validate_checks_a_secret_once_however_often_it_is_named() {
    let found = findings(&bundle(3_000, 300));

    assert_eq!(found.len(), 51, "{:#?}", found.first());
    assert!(found[..50].iter().all(|line| line.contains("names Secret \"s\" again")), "{:#?}", found.first());
    assert!(found[50].ends_with(": 2949 more findings are not listed — correct these first"), "{}", found[50]);
}

#[test]
fn validate_counts_findings_that_it_does_not_list() {
    let broken = |index: usize| {
        format!("apiVersion: v1\nkind: A\nmetadata: {{name: a{index}, namespace: {}}}\n", "N".repeat(600))
    };
    let text = (0..5_100).map(broken).collect::<Vec<_>>().join("---\n");

    let said = validate(&[source("f", &text)]);

    assert_eq!(said.out.lines().count(), 5_000);
    assert!(said.out.lines().all(|line| line.chars().count() < 700));
    assert_eq!(
        said.remarks,
        ["100 more findings are not listed — correct these first", "documents: 5100, errors: 5100, warnings: 0"]
    );
}

#[test]
fn validate_lists_fifty_findings_of_an_object_and_cuts_long_paths() {
    // JSON: a key of YAML has at most 1,024 characters before its colon.
    let entries: Vec<_> =
        (0..2_000).map(|index| serde_json::json!({format!("b{index}"): {"labels": {"a": 1}}})).collect();
    let text = serde_json::json!({
        "apiVersion": "apps/v1beta2", "kind": "Deployment", "metadata": {"name": "a"}, "x".repeat(100_000): entries,
    });

    let found = findings(&text.to_string());

    assert_eq!(found.len(), 51);
    assert!(found.iter().all(|line| line.chars().count() < 700), "{}", found[0].len());
    assert!(found[50].contains(": 1950 more findings are not listed"), "{}", found[50]);
}
