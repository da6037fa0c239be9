//! AdmissionReviews with both objects: from bytes to what is asked, which borrows from the bytes (spec 60 §1.1).

use serde::{Deserialize, Deserializer, de::DeserializeSeed as _};

use crate::{
    api::field::{
        Budget, Json, MOST_VALUES,
        shapes::{Part, Text},
    },
    webhooks::{
        exchange::Received,
        review::{Identity, Refusal, checked, fault},
    },
};

/// A review that was understood. What it does not say is empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Review<'a> {
    /// What the answer repeats.
    pub identity: Identity,
    /// `request.kind.kind`.
    pub kind: Text<'a>,
    /// `request.resource`.
    pub resource: Resource<'a>,
    /// `request.namespace`.
    pub namespace: Text<'a>,
    /// `request.name`.
    pub name: Text<'a>,
    /// `request.operation`.
    pub operation: Text<'a>,
    /// `request.object`.
    pub object: Json<'a>,
    /// `request.oldObject`.
    pub old_object: Json<'a>,
}

/// `request.resource`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Resource<'a> {
    /// API group; empty for the core group.
    #[serde(borrow)]
    pub group: Text<'a>,
    /// Version.
    pub version: Text<'a>,
    /// Plural.
    pub resource: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Document<'a> {
    #[serde(borrow)]
    api_version: Text<'a>,
    kind: Text<'a>,
    request: Part<Request<'a>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Request<'a> {
    #[serde(borrow)]
    uid: Text<'a>,
    kind: Part<Kind<'a>>,
    resource: Part<Resource<'a>>,
    namespace: Text<'a>,
    name: Text<'a>,
    operation: Text<'a>,
    #[serde(deserialize_with = "bounded")]
    object: Json<'a>,
    #[serde(deserialize_with = "bounded")]
    old_object: Json<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Kind<'a> {
    #[serde(borrow)]
    kind: Text<'a>,
}

fn bounded<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Json<'a>, D::Error> {
    Budget(&mut { MOST_VALUES }).deserialize(deserializer)
}

/// Makes a review of a request.
///
/// # Errors
/// The rows of spec 60 §1.1.
pub fn decode(received: &Received) -> Result<Review<'_>, Refusal> {
    let bytes = checked(&received.body, &received.content_type)?;
    // `null` is an empty review.
    match serde_json::from_slice::<Part<Document<'_>>>(bytes) {
        Ok(Part(document)) => Ok(document.into()),
        Err(error) => Err(Refusal { identity: Identity::found_in(bytes), code: 400, message: fault(&error) }),
    }
}

// === impl Review ===

impl<'a> From<Document<'a>> for Review<'a> {
    fn from(document: Document<'a>) -> Self {
        let Document { api_version, kind, request: Part(request) } = document;
        let identity = Identity {
            api_version: api_version.0.into_owned(),
            kind: kind.0.into_owned(),
            uid: request.uid.0.into_owned(),
        };
        Self {
            identity: identity.or_default(),
            kind: request.kind.0.kind,
            resource: request.resource.0,
            namespace: request.namespace,
            name: request.name,
            operation: request.operation,
            object: request.object,
            old_object: request.old_object,
        }
    }
}
