//! Deletion protection: critical resources of a cluster are deleted only with a confirmation (spec 60 §2).

use cluster::object::NamespacedName;
use serde_json::Value;

use super::{
    Extent, Judgement, Resource, Review, Validated, Validator,
    confirmation::{CONFIRMATION, PROTECTION},
};
use crate::{
    api::meta::field::Json,
    webhooks::{
        review::ReviewVerdict,
        view::{Collection, Failure, View},
    },
};

/// Path of the webhook.
pub const PATH: &str = "/webhooks/validate-crd-deletion";
/// Name of its logger.
pub const LOGGER: &str = "webhook.crd-deletion-protection";

const DENIAL: &str = r#"must have a "confirmation.gardener.cloud/deletion" annotation to delete"#;
const TRUTHS: [&str; 6] = ["1", "t", "T", "true", "TRUE", "True"];

const DEFINITIONS: &str = "customresourcedefinitions";
const PROTECTED_DEFINITIONS: &str = "gardener.cloud/deletion-protected=true";

const API_EXTENSIONS: &str = "apiextensions.k8s.io";
const EXTENSIONS: &str = "extensions.gardener.cloud";
/// The protected resources (spec 60 §2.2). The registration also sends Bastions, which are not protected.
const PROTECTED: [(&str, &[&str], &[&str]); 3] = [
    (API_EXTENSIONS, &["v1", "v1beta1"], &[DEFINITIONS]),
    ("druid.gardener.cloud", &["v1alpha1"], &["etcds"]),
    (
        EXTENSIONS,
        &["v1alpha1"],
        &[
            "backupbuckets",
            "backupentries",
            "containerruntimes",
            "controlplanes",
            "dnsrecords",
            "extensions",
            "infrastructures",
            "networks",
            "operatingsystemconfigs",
            "selfhostedshootexposures",
            "workers",
        ],
    ),
];

/// Protects resources from being deleted without a confirmation.
#[derive(Debug, Clone, Copy)]
pub struct DeletionProtection;

/// Log data of a deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletion {
    /// Whether a collection is deleted.
    pub is_collection: bool,
    /// The object that decided; for a collection it may differ from the request's object. Its fields may be empty.
    pub object: NamespacedName,
    /// Whether the deletion is confirmed; `None` if that is unknown.
    pub is_confirmed: Option<bool>,
}

impl Validator for DeletionProtection {
    fn extent(&self) -> Extent {
        Extent::Confirmation
    }

    fn judge(&self, review: &Review<'_>, view: &dyn View) -> Result<Judgement, Failure> {
        if *review.operation != *"DELETE" {
            return Ok(ReviewVerdict::Unexpected("operation is not DELETE".to_owned()).into());
        }
        if protected(&review.resource).is_none() {
            return Ok(ReviewVerdict::Unexpected("resource is not deletion-protected".to_owned()).into());
        }
        let object = object_of(review);
        let (is_collection, is_map) = (review.name.is_empty(), matches!(object, Json::Map(_)));
        if !is_collection && !is_map && !object.is_null() {
            return Ok(errored("couldn't decode the object: it is not a map"));
        }
        match (is_collection, !is_map) {
            (false, true) => return Ok(errored("no object found in admission request")),
            (true, true) => {}
            // If the collection contains the request's own object and it is unconfirmed, no list is needed.
            (true, false) if !is_of_collection(&review.resource, object) => {}
            (_, false) if !is_confirmed_here(object) => return Ok(denied(&review.namespace, name(object)).into()),
            (false, false) => return Ok(ReviewVerdict::Allowed.into()),
            (true, false) => {}
        }
        match view.unconfirmed(&collection(review)) {
            Ok(None) => Ok(ReviewVerdict::Allowed.into()),
            Ok(Some(found)) => Ok(Judgement { verdict: denied(&found.namespace, &found.name), about: Some(found) }),
            Err(Failure::Status(status)) if status.code == 404 => {
                Ok(ReviewVerdict::Unexpected("object was not found".to_owned()).into())
            }
            Err(look @ Failure::ReadLive(_)) => Err(look),
            Err(other) => Ok(errored(other.text())),
        }
    }

    fn account(&self, review: &Review<'_>, judgement: &Judgement) -> Validated {
        let resource = protected(&review.resource).filter(|_| *review.operation == *"DELETE");
        let is_confirmed = match judgement.verdict {
            ReviewVerdict::Allowed => Some(true),
            ReviewVerdict::Denied(_) => Some(false),
            _ => None,
        };
        let is_collection = review.name.is_empty();
        let of_request = || {
            let name = if is_collection { name(object_of(review)) } else { &*review.name };
            NamespacedName::new(&*review.namespace, name)
        };
        let object = judgement.about.clone().unwrap_or_else(of_request);
        let deletion = resource.map(|_| Deletion { is_collection, object, is_confirmed });
        Validated { resource: resource.unwrap_or("other"), is_denied: is_confirmed == Some(false), deletion }
    }
}

fn object_of<'a, 'b>(review: &'a Review<'b>) -> &'a Json<'b> {
    if review.old_object.is_null() { &review.object } else { &review.old_object }
}

/// Returns whether the deletion of a listed object is confirmed.
pub fn is_confirmed(object: &Value) -> bool {
    object["metadata"]["annotations"][CONFIRMATION].as_str().is_some_and(|value| TRUTHS.contains(&value))
}

/// The same for an object of a request. The rest of the object may be malformed.
fn is_confirmed_here(object: &Json<'_>) -> bool {
    mark(object, "annotations", CONFIRMATION).is_some_and(|value| TRUTHS.contains(&value))
}

/// Whether the object would be in the list of its collection.
fn is_of_collection(resource: &Resource<'_>, object: &Json<'_>) -> bool {
    *resource.resource != *DEFINITIONS || mark(object, "labels", PROTECTION) == Some("true")
}

fn mark<'a>(object: &'a Json<'_>, kind: &str, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get(kind)?.get(key)?.as_text()
}

fn protected(resource: &Resource<'_>) -> Option<&'static str> {
    let Resource { group, version, resource } = resource;
    let (_, _, plurals) =
        PROTECTED.iter().find(|(protected, versions, _)| **protected == **group && versions.contains(&&**version))?;
    plurals.iter().find(|plural| **plural == &**resource).copied()
}

/// Uses group and version of the resource. With `matchPolicy: Exact` no API server converts what it sends, so those of
/// the kind are the same (spec 60 §2.3, §4).
fn collection(review: &Review<'_>) -> Collection {
    let Resource { group, version, resource } = &review.resource;
    let of_definitions = **resource == *DEFINITIONS;
    Collection {
        group: group.to_string(),
        version: version.to_string(),
        kind: review.kind.to_string(),
        plural: resource.to_string(),
        namespace: if of_definitions { String::new() } else { review.namespace.to_string() },
        label_selector: of_definitions.then_some(PROTECTED_DEFINITIONS),
    }
}

fn name<'a>(object: &'a Json<'_>) -> &'a str {
    let name = object.get("metadata").and_then(|metadata| metadata.get("name"));
    name.and_then(Json::as_text).unwrap_or_default()
}

/// Clients look for the first sentence; the second names the object of the collection.
fn denied(namespace: &str, name: &str) -> ReviewVerdict {
    let object = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
    ReviewVerdict::Denied(match name {
        "" => DENIAL.to_owned(),
        _ => format!("{DENIAL}. It is missing, or not true, at {}", kit::quote::shown(&object)),
    })
}

fn errored(message: &str) -> Judgement {
    ReviewVerdict::Errored { code: 500, message: message.to_owned() }.into()
}

#[cfg(test)]
mod tests;
