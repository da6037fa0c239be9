//! AdmissionReviews with both objects, which borrow from the request's bytes (spec 60 §1.1).

use serde::{Deserialize, Deserializer, de::DeserializeSeed as _};

use super::confirmation::CONFIRMED;
use crate::{
    api::meta::field::{
        Json, Keep, MOST_VALUES, Picking,
        shapes::{Part, Text},
    },
    webhooks::{
        exchange::Received,
        review::{Identity, Refusal, checked, fault, reason},
    },
};

/// All of `metadata` except `managedFields[].fieldsV1`: no rule reads it, and it is as large and as deep as the object.
const METADATA: Keep = Keep::Except(&[("managedFields", Some(Keep::Each(&Keep::Except(&[("fieldsV1", None)]))))]);

/// How much of a review's objects is read. The rest may be malformed and costs no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All fields that rules may read.
    Whole,
    /// All except `status`.
    WithoutStatus,
    /// Name and confirmation of the deletion.
    Confirmation,
}

/// A decoded review. Absent fields are empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Review<'a> {
    /// The fields that the answer repeats.
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
#[serde(default, rename_all = "camelCase", bound(deserialize = "O: Deserialize<'de> + Default"))]
struct ReviewedObjects<'a, O> {
    #[serde(borrow)]
    api_version: Text<'a>,
    kind: Text<'a>,
    request: Part<Request<'a, O>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "O: Deserialize<'de> + Default"))]
struct Request<'a, O> {
    #[serde(borrow)]
    uid: Text<'a>,
    kind: Part<ReviewedKind<'a>>,
    resource: Part<Resource<'a>>,
    namespace: Text<'a>,
    name: Text<'a>,
    operation: Text<'a>,
    object: O,
    old_object: O,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ReviewedKind<'a> {
    #[serde(borrow)]
    kind: Text<'a>,
}

/// An object of a review. `serde` reads types, so the [`Extent`] is part of the type, as its number.
#[derive(Default)]
struct Object<'a, const EXTENT: usize>(Json<'a>);

/// The parts of an object that the [`Extent`]s read.
const KEPT: [Keep; 3] = [
    Keep::Except(&[("metadata", Some(METADATA))]),
    Keep::Except(&[("metadata", Some(METADATA)), ("status", None)]),
    CONFIRMED,
];

/// Decodes a review, with this much of its objects. Fails as the rows of spec 60 §1.1 say.
pub fn decode(received: &Received, extent: Extent) -> Result<Review<'_>, Refusal> {
    let bytes = checked(&received.body, &received.content_type, 400)?;
    match read(bytes, extent) {
        Ok(review) => Ok(review),
        Err(error) => Err(Refusal { identity: Identity::found_in(bytes), code: 400, message: fault(&error) }),
    }
}

pub(super) fn object(review: &[u8], extent: Extent) -> Result<Json<'_>, &'static str> {
    read(review, extent).map(|review| review.object).map_err(|error| reason(&error))
}

fn read(bytes: &[u8], extent: Extent) -> serde_json::Result<Review<'_>> {
    match extent {
        Extent::Whole => read_as::<{ Extent::Whole as usize }>(bytes),
        Extent::WithoutStatus => read_as::<{ Extent::WithoutStatus as usize }>(bytes),
        Extent::Confirmation => read_as::<{ Extent::Confirmation as usize }>(bytes),
    }
}

fn read_as<const EXTENT: usize>(bytes: &[u8]) -> serde_json::Result<Review<'_>> {
    // `null` is an empty review.
    let Part(document) = serde_json::from_slice::<Part<ReviewedObjects<'_, Object<'_, EXTENT>>>>(bytes)?;
    Ok(document.into())
}

impl<'de: 'a, 'a, const EXTENT: usize> Deserialize<'de> for Object<'a, EXTENT> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Picking { keep: KEPT[EXTENT], room: &mut { MOST_VALUES } }.deserialize(deserializer).map(Self)
    }
}

impl<'a, const EXTENT: usize> From<ReviewedObjects<'a, Object<'a, EXTENT>>> for Review<'a> {
    fn from(document: ReviewedObjects<'a, Object<'a, EXTENT>>) -> Self {
        let ReviewedObjects { api_version, kind, request: Part(request) } = document;
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
            object: request.object.0,
            old_object: request.old_object.0,
        }
    }
}
