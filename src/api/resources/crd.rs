//! The CustomResourceDefinition of `ManagedResource`, as it is deployed.

/// `deploy/crd-managedresources.yaml` (spec 10 §2.6).
pub const MANAGED_RESOURCES: &str = include_str!("../../../deploy/crd-managedresources.yaml");

/// The command that installs [`MANAGED_RESOURCES`], for errors about a cluster that lacks it.
pub const INSTALL_MANAGED_RESOURCES: &str = "kubectl apply -f deploy/crd-managedresources.yaml";

#[cfg(test)]
mod tests {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use serde_json::{Value, json};

    use super::*;

    /// spec 10 §2.1, §2.2
    #[test]
    fn the_definition_has_the_identity_and_the_printer_columns_of_the_api() {
        let definition: CustomResourceDefinition =
            serde_saphyr::from_str(MANAGED_RESOURCES).expect("it is a definition");

        let spec = &definition.spec;
        assert_eq!(definition.metadata.name.as_deref(), Some("managedresources.resources.gardener.cloud"));
        assert_eq!((spec.group.as_str(), spec.scope.as_str()), ("resources.gardener.cloud", "Namespaced"));
        assert_eq!(spec.names.short_names.as_deref(), Some(&["mr".to_owned()][..]));
        let [version] = spec.versions.as_slice() else { panic!("there is one version") };
        assert_eq!((version.name.as_str(), version.served, version.storage), ("v1alpha1", true, true));
        let columns = version.additional_printer_columns.iter().flatten();
        let columns: Vec<_> = columns.map(|column| [column.name.as_str(), &column.type_, &column.json_path]).collect();
        let condition = |name: &str| format!(".status.conditions[?(@.type==\"Resources{name}\")].status");
        assert_eq!(
            columns,
            [
                ["Class", "string", ".spec.class"],
                ["Applied", "string", &condition("Applied")],
                ["Healthy", "string", &condition("Healthy")],
                ["Progressing", "string", &condition("Progressing")],
                ["Age", "date", ".metadata.creationTimestamp"],
            ]
        );
    }

    /// spec 10 §2.3, §2.4
    #[test]
    fn the_definition_has_the_fields_of_the_api() {
        let definition: Value = serde_saphyr::from_str(MANAGED_RESOURCES).expect("it is YAML");
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        let fields = |object: &Value| -> Vec<String> {
            object["properties"].as_object().expect("it has fields").keys().cloned().collect()
        };
        let reference = &schema["status"]["properties"]["resources"]["items"];
        let secret = &schema["spec"]["properties"]["secretRefs"]["items"];

        assert_eq!(
            fields(&schema["spec"]),
            [
                "class",
                "deletePersistentVolumeClaims",
                "equivalences",
                "forceOverwriteAnnotations",
                "forceOverwriteLabels",
                "injectLabels",
                "keepObjects",
                "secretRefs"
            ]
        );
        assert_eq!(fields(&schema["status"]), ["conditions", "observedGeneration", "resources", "secretsDataChecksum"]);
        assert_eq!(
            fields(reference),
            ["annotations", "apiVersion", "fieldPath", "kind", "labels", "name", "namespace", "resourceVersion", "uid"]
        );
        assert_eq!(secret["properties"]["name"], json!({"type": "string", "default": ""}));
        assert_eq!([&reference["x-kubernetes-map-type"], &secret["x-kubernetes-map-type"]], ["atomic", "atomic"]);
    }
}
