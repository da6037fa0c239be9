//! The namespace of a Project (spec 82 §2.1). Pure.

use serde_json::Value;

use super::fields::text;
use crate::api::meta::field::formats;

/// Returns the namespace of a Project: `spec.namespace`. Returns `None` if that is absent or empty, or if it is no name that
/// a namespace of a Project can have: such a namespace never belongs to the Project (decision 24; spec 82 A.10 step 5).
pub(super) fn namespace_of(project: &Value) -> Option<&str> {
    Some(text(project, "/spec/namespace")).filter(|namespace| may_belong_to_project(namespace))
}

/// Returns true if a namespace of this name may belong to a Project (decision 24, spec 82 D-10).
pub(super) fn may_belong_to_project(namespace: &str) -> bool {
    (namespace == "garden" || namespace.starts_with("garden-")) && formats::dns_label(namespace).is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// spec 82 §2.1, D-10; decision 24
    #[test]
    fn project_has_a_namespace_if_its_name_is_one_of_projects() {
        let of = |namespace: Value| {
            let project = json!({ "spec": { "namespace": namespace } });
            namespace_of(&project).map(str::to_owned)
        };

        for namespace in ["garden", "garden-dev", "garden-dev-5aef3"] {
            assert_eq!(of(json!(namespace)).as_deref(), Some(namespace));
        }
        let long = format!("garden-{}", "a".repeat(60));
        for namespace in
            ["", "kube-system", "gardener-system-public", "Garden", "garden-", "garden-/x", "garden-a.b", &long]
        {
            assert_eq!(of(json!(namespace)), None, "{namespace}");
        }
        assert_eq!((of(Value::Null), of(json!(5)), namespace_of(&json!({}))), (None, None, None));
    }
}
