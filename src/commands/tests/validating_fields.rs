//! What `validate` finds in the text of manifests, and in fields and names of built-in kinds.

use super::{validating::findings, *};
use crate::commands::{DIFFERENT, OK, validate::validate};

/// spec 10 §9.2: the index is that of conditions
#[test]
fn validate_counts_documents_as_conditions_do() {
    let text = "---\n---\nkind: A\n---\n[\n";

    let found = findings(text);

    assert!(found[0].starts_with("f:1 /A/default/: there is no apiVersion"), "{found:#?}");
    assert!(found.last().unwrap().starts_with("f:2: yaml: line "), "{found:#?}");
}

/// spec 10 §9.2: the last one counts
#[test]
fn validate_names_duplicate_keys_with_their_line() {
    let duplicate = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  x: hidden\n  x: other\n";
    let indented = duplicate.replace('\n', "\n    ");
    let secret =
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData:\n  a.yaml: |\n    {indented}\n");
    let json = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a",
        "name": "a"}}"#;
    let managed_resource = "apiVersion: resources.gardener.cloud/v1alpha1\nkind: ManagedResource\nmetadata: {name: m}\nspec: {secretRefs: [], class: a, class: b}\n";
    let configuration = "apiVersion: controllermanager.config.gardener.cloud/v1alpha1\nkind: ControllerManagerConfiguration\nlogLevel: info\nlogLevel: debug\n";
    let table = [
        (duplicate, "f v1/ConfigMap/default/a: duplicate key data.x in line 6: only the last one has an effect — "),
        (secret.as_str(), "f[a.yaml:0] v1/ConfigMap/default/a: duplicate key data.x in line 6: "),
        (json, "f v1/ConfigMap/default/a: duplicate key metadata.name in line 2: "),
        (
            managed_resource,
            "f resources.gardener.cloud/v1alpha1/ManagedResource/default/m: duplicate key spec.class in line 4: ",
        ),
        (configuration, ": duplicate key logLevel in line 4: "),
    ];

    for (text, expected) in table {
        let said = validate(&[source("f", text)]);

        assert_eq!((said.out.matches(expected).count(), said.code), (1, DIFFERENT), "{expected}\n{}", said.out);
        assert!(!said.out.contains("hidden"), "{}", said.out);
    }
}

#[test]
fn validate_names_unknown_fields_and_wrong_types_of_built_in_kinds() {
    let deployment = |spec: &str| format!("apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: a}}\nspec: {spec}");
    let container =
        |fields: &str| deployment(&format!("{{template: {{spec: {{containers: [{{name: c, {fields}}}]}}}}}}"));
    let schema = |schema: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: as.b}}\n\
             spec: {{group: b, names: {{plural: as}}, versions: [{{schema: {{openAPIV3Schema: {schema}}}}}]}}"
        )
    };
    let in_container = "spec.template.spec.containers[0]";
    let table = [
        (deployment("{replica: 3}"), "warning: spec.replica is not known in Kubernetes 1.".to_owned()),
        (container("imagee: i"), format!("warning: {in_container}.imagee is not known in Kubernetes 1.")),
        (
            deployment("{replicas: '3'}"),
            "spec.replicas is no whole number of 32 bits — write a whole number".to_owned(),
        ),
        (deployment("{replicas: 3000000000}"), "spec.replicas is no whole number of 32 bits".to_owned()),
        (deployment("{paused: 'yes'}"), "spec.paused is no boolean — write true or false, without quotes".to_owned()),
        (container("args: x"), format!("{in_container}.args is no list")),
        (container("args: [1]"), format!("{in_container}.args[0] is no string — quote the value")),
        (container("resources: []"), format!("{in_container}.resources is no map")),
        (container("resources: {limits: {cpu: [1]}}"), format!("{in_container}.resources.limits.cpu is no quantity")),
        (schema("{properties: {a: {typ: string}}}"), "openAPIV3Schema.properties.a.typ is not known".to_owned()),
        (schema("{items: {typ: string}}"), "openAPIV3Schema.items.typ is not known".to_owned()),
        (
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a, label: {}}".to_owned(),
            "metadata.label is not known".to_owned(),
        ),
        (
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndatas: {}".to_owned(),
            "warning: datas is not known".to_owned(),
        ),
    ];

    for (text, expected) in table {
        let said = validate(&[source("f", &text)]);

        assert_eq!(said.out.lines().count(), 1, "{expected}\n{}", said.out);
        assert!(said.out.contains(&expected), "{expected}\n{}", said.out);
        let code = if said.out.contains(": warning: ") { OK } else { DIFFERENT };
        assert_eq!(said.code, code, "{}", said.out);
    }
    for text in [
        container(
            "resources: {limits: {cpu: 1, memory: 1Gi}}, ports: [{containerPort: 80}], livenessProbe: {httpGet: {port: web}}",
        ),
        container("env: null, command: []"),
        deployment("{replicas: 3.0, strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 10%}}}"),
        schema("{properties: {a: {items: {type: string}, additionalProperties: true, default: {x: [1]}}}}"),
        "apiVersion: example.org/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replica: 3}".to_owned(),
    ] {
        assert_eq!(findings(&text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn validate_reports_a_bounded_number_of_unknown_fields() {
    let fields: String = (0..1000).map(|number| format!("x{number}: 1, ")).collect();

    let found = findings(&format!("apiVersion: v1\nkind: Service\nmetadata: {{name: a}}\nspec: {{{fields}}}"));

    assert_eq!(found.len(), 51);
    assert!(found[50].ends_with(": 950 more findings are not listed — correct these first"), "{}", found[50]);
}

#[test]
fn validate_finds_impossible_names_and_namespaces() {
    let table = [
        ("v1", "ConfigMap", "{name: A_b}", "metadata.name is no DNS subdomain — use lower-case letters"),
        ("v1", "ConfigMap", "{name: a.b-c}", ""),
        ("v1", "Namespace", "{name: a.b}", "metadata.name is no DNS label — "),
        ("apps/v1", "StatefulSet", "{name: a.b}", "metadata.name is no DNS label — "),
        ("v1", "Service", "{name: a.b}", "metadata.name is no DNS label — "),
        ("v1", "Service", "{name: 1a}", "warning: metadata.name begins with a digit"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", "{name: 'system:A_b'}", ""),
        (
            "example.org/v1",
            "A",
            "{name: A_b}",
            "warning: metadata.name is no DNS subdomain, so API servers refuse it if ",
        ),
        ("v1", "ConfigMap", "{name: a, namespace: a.b}", "metadata.namespace is no DNS label — "),
        ("example.org/v1", "A", "{name: a, namespace: A}", "metadata.namespace is no DNS label — "),
        (
            "rbac.authorization.k8s.io/v1",
            "ClusterRole",
            "{name: a, namespace: b}",
            "warning: metadata.namespace has no effect: a ClusterRole belongs to no namespace — leave it out",
        ),
    ];

    for (api_version, kind, metadata, expected) in table {
        let found = findings(&format!("apiVersion: {api_version}\nkind: {kind}\nmetadata: {metadata}"));

        assert_eq!(found.len(), usize::from(!expected.is_empty()), "{metadata}: {found:#?}");
        assert!(found.iter().all(|line| line.contains(&format!(": {expected}"))), "{expected}\n{found:#?}");
    }
    let long = findings(&format!("apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: {}}}", "a".repeat(53)));
    assert!(long.len() == 1 && long[0].contains("metadata.name has more than 52 characters — "), "{long:#?}");
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b}\nspec: {group: b, names: {plural: as}}";
    let named = findings(definition);
    assert!(
        named.len() == 1 && named[0].contains("of spec.names.plural and spec.group — write \"as.b\""),
        "{named:#?}"
    );
}

#[test]
fn validate_tells_templates_from_manifests() {
    let config_map = |name: &str, value: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata:\n  x: {value}\n")
    };
    let table = [
        (
            config_map("a", "{{ .Values.hidden }}"),
            "f: yaml: line 5 column ",
            "; line 5 has {{ … }}: it is a template, such as",
        ),
        (
            "{{- if .Values.a }}\nkind: A\n{{- end }}\n".to_owned(),
            "f: yaml: line ",
            "; line 1 has {{ … }}: it is a template",
        ),
        (
            config_map("'{{ .Release.Name }}'", "'{{ .Values.hidden }}'"),
            "f v1/ConfigMap/default/{{ .Release.Name }}: ",
            "metadata.name has {{ … }}: it is a template",
        ),
        (
            config_map("a", "'{{ .Values.hidden }}'\n  'y{{ include \"z\" . }}': z"),
            "f v1/ConfigMap/default/a: warning: ",
            "data.x has {{ … }} of a template of Helm, and 1 other values",
        ),
    ];

    for (text, start, expected) in table {
        let found = findings(&text);

        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].starts_with(start) && found[0].contains(expected), "{found:#?}");
        assert!(found[0].ends_with(" — render the template first, e.g. with helm template"), "{found:#?}");
        assert!(!found[0].contains("hidden"), "{found:#?}");
    }
    assert_eq!(findings(&config_map("a", "'{{ $labels.pod }} is down'")), Vec::<String>::new());
}
