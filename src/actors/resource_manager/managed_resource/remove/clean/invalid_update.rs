//! What follows from an error about one object (spec 10 §11.7).

use cluster::{
    Propagation,
    object::{self, truthy},
};
use serde_json::Value;

use super::is_config_map_or_secret;
use crate::{actors::resource_manager::bundle::identity, api::resources::keys};

/// Type of the cause with which the API server refuses to change an immutable ConfigMap or Secret.
const FORBIDDEN: &str = "FieldValueForbidden";
const IMMUTABLE: &str = "field is immutable when `immutable` is set";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// Report the error as it is: another client was faster.
    Conflict,
    Report,
    /// Delete the object if it is still the same, and create it again.
    Delete {
        /// `None` sends no policy.
        propagation: Option<Propagation>,
    },
    /// The annotation asks for an unknown policy: delete nothing, and report this.
    InvalidPropagation(String),
}

/// Decides about the error of an **update**, from its HTTP status, its reason, and type and message of its causes in
/// order. `merged` is the object that was sent.
pub(crate) fn react<'a>(
    code: u16,
    reason: &str,
    causes: impl IntoIterator<Item = (&'a str, &'a str)>,
    merged: &Value,
) -> Reaction {
    if is_conflict(code, reason) {
        return Reaction::Conflict;
    }
    let is_invalid = reason == "Invalid" || code == 422;
    let wants_deletion = truthy(object::annotation(merged, keys::DELETE_ON_INVALID_UPDATE));
    if !is_invalid || !(wants_deletion || is_immutable(causes, merged)) {
        return Reaction::Report;
    }
    match object::annotation(merged, keys::DELETION_PROPAGATION_ON_INVALID_UPDATE) {
        None => Reaction::Delete { propagation: None },
        Some(name) => match Propagation::from_name(name) {
            Some(propagation) => Reaction::Delete { propagation: Some(propagation) },
            None => Reaction::InvalidPropagation(invalid_propagation(&identity::display_of_object(merged), name)),
        },
    }
}

/// Returns true if another client changed the object: `Conflict`, not `AlreadyExists` (with the same HTTP status).
fn is_conflict(code: u16, reason: &str) -> bool {
    reason == "Conflict" || reason.is_empty() && code == 409
}

pub(crate) fn apply_error(display: &str, error: &str) -> String {
    format!("error during apply of object \"{display}\": {error}")
}

pub(crate) fn deleted(display: &str, error: &str) -> String {
    format!(
        "deleted object \"{display}\" because of 'invalid' update error, and 'delete-on-invalid-update' annotation on object \
         or the resource is an immutable ConfigMap/Secret: {error}"
    )
}

pub(crate) fn not_deleted(display: &str, error: &str) -> String {
    format!("error deleting object \"{display}\" after 'invalid' update error: {error}")
}

fn invalid_propagation(display: &str, value: &str) -> String {
    let supported = Propagation::ALL.map(Propagation::as_str).join(" ");
    format!(
        "invalid deletion propagation policy on object {display}: \"{value}\" is invalid, supported values: [{supported}]"
    )
}

/// Returns true if a user re-created an immutable ConfigMap or Secret with other content. Only the first forbidden
/// field counts; a changed type of a Secret is no such cause.
fn is_immutable<'a>(causes: impl IntoIterator<Item = (&'a str, &'a str)>, merged: &Value) -> bool {
    let mut forbidden = causes.into_iter().filter(|(kind, _)| *kind == FORBIDDEN);
    is_config_map_or_secret(&identity::gvk_of(merged))
        && forbidden.next().is_some_and(|(_, message)| message.contains(IMMUTABLE))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const IMMUTABLE_CAUSE: (&str, &str) =
        ("FieldValueForbidden", "Forbidden: field is immutable when `immutable` is set");

    fn object(kind: &str, annotations: Value) -> Value {
        let api_version = if kind == "RoleBinding" { "rbac.authorization.k8s.io/v1" } else { "v1" };
        json!({"apiVersion": api_version, "kind": kind,
            "metadata": {"namespace": "ns", "name": "a", "annotations": annotations}})
    }

    /// spec 10 §11.7, scenarios 20 and 21
    #[test]
    fn invalid_update_deletes_only_annotated_or_immutable_objects() {
        let role_binding = |value: &str| object("RoleBinding", json!({keys::DELETE_ON_INVALID_UPDATE: value}));
        let config_map = object("ConfigMap", json!({}));
        let secret_type = ("FieldValueInvalid", "Invalid value: \"x\": field is immutable");
        let other_forbidden = ("FieldValueForbidden", "Forbidden: something else");
        let delete = Reaction::Delete { propagation: None };
        let table = [
            (422, "Invalid", vec![], role_binding("t"), delete.clone()),
            (422, "", vec![], role_binding("t"), delete.clone()),
            (400, "Invalid", vec![], role_binding("t"), delete.clone()),
            (422, "Invalid", vec![], role_binding("yes"), Reaction::Report),
            (422, "Invalid", vec![], object("RoleBinding", json!({})), Reaction::Report),
            (403, "Forbidden", vec![], role_binding("true"), Reaction::Report),
            (500, "", vec![], role_binding("true"), Reaction::Report),
            (409, "Conflict", vec![], role_binding("true"), Reaction::Conflict),
            (409, "", vec![], role_binding("true"), Reaction::Conflict),
            (409, "AlreadyExists", vec![], role_binding("true"), Reaction::Report),
            (422, "Invalid", vec![IMMUTABLE_CAUSE], config_map.clone(), delete.clone()),
            (422, "Invalid", vec![secret_type, IMMUTABLE_CAUSE], object("Secret", json!({})), delete),
            (422, "Invalid", vec![secret_type], object("Secret", json!({})), Reaction::Report),
            (422, "Invalid", vec![other_forbidden, IMMUTABLE_CAUSE], config_map, Reaction::Report),
            (422, "Invalid", vec![IMMUTABLE_CAUSE], object("Pod", json!({})), Reaction::Report),
        ];

        for (code, reason, causes, merged, reaction) in table {
            assert_eq!(react(code, reason, causes.clone(), &merged), reaction, "{code} {reason} {causes:?} {merged}");
        }
    }

    /// spec 10 §11.7, scenario 21
    #[test]
    fn invalid_update_annotation_chooses_the_deletion_policy() {
        let with = |policy: &str| {
            let annotations =
                json!({keys::DELETE_ON_INVALID_UPDATE: "true", keys::DELETION_PROPAGATION_ON_INVALID_UPDATE: policy});
            react(422, "Invalid", [], &object("RoleBinding", annotations))
        };

        for propagation in Propagation::ALL {
            assert_eq!(with(propagation.as_str()), Reaction::Delete { propagation: Some(propagation) });
        }
        for value in ["orphan", ""] {
            let text = format!(
                "invalid deletion propagation policy on object rbac.authorization.k8s.io/v1/RoleBinding/ns/a: \
                 \"{value}\" is invalid, supported values: [Background Foreground Orphan]"
            );
            assert_eq!(with(value), Reaction::InvalidPropagation(text));
        }
    }

    /// spec 10 §11.7
    #[test]
    fn invalid_update_texts_are_those_of_the_specification() {
        assert_eq!(
            apply_error("v1/ConfigMap/ns/a", "boom"),
            "error during apply of object \"v1/ConfigMap/ns/a\": boom"
        );
        assert_eq!(
            deleted("v1/ConfigMap/ns/a", "boom"),
            "deleted object \"v1/ConfigMap/ns/a\" because of 'invalid' update error, and 'delete-on-invalid-update' annotation on object or the resource is an immutable ConfigMap/Secret: boom"
        );
        assert_eq!(
            not_deleted("v1/ConfigMap/ns/a", "boom"),
            "error deleting object \"v1/ConfigMap/ns/a\" after 'invalid' update error: boom"
        );
    }
}
