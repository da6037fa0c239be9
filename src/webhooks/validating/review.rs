//! AdmissionReviews with both objects: from bytes to what is asked, which borrows from the bytes (spec 60 §1.1).

use std::marker::PhantomData;

use serde::{Deserialize, Deserializer, de::DeserializeSeed as _};

use super::confirmation::CONFIRMED;
use crate::{
    api::field::{
        Json, Keep, MOST_VALUES, Picking,
        shapes::{Part, Text},
    },
    webhooks::{
        exchange::Received,
        review::{Identity, Refusal, checked, fault, reason},
    },
};

/// All of `metadata` but `managedFields[].fieldsV1`: no rule reads it, and it has as many fields and levels as the object.
const METADATA: Keep = Keep::Except(&[("managedFields", Some(Keep::Each(&Keep::Except(&[("fieldsV1", None)]))))]);

/// How much of the objects of a review is read. What is not does not need to make sense, and costs no memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All that rules may read.
    Whole,
    /// All but `status`.
    WithoutStatus,
    /// What tells whether the deletion is confirmed, and of what.
    Confirmation,
}

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

/// An [`Extent`] as a type: `serde` reads types.
trait Extended {
    const KEEP: Keep;
}

struct Whole;
struct WithoutStatus;
struct Confirmation;

/// An object as far as it is read.
struct Object<'a, E>(Json<'a>, PhantomData<E>);

/// Makes a review of a request; of its objects this much.
///
/// # Errors
/// The rows of spec 60 §1.1.
pub fn decode(received: &Received, extent: Extent) -> Result<Review<'_>, Refusal> {
    let bytes = checked(&received.body, &received.content_type)?;
    match read(bytes, extent) {
        Ok(review) => Ok(review),
        Err(error) => Err(Refusal { identity: Identity::found_in(bytes), code: 400, message: fault(&error) }),
    }
}

/// The object of a review that was made for it.
///
/// # Errors
/// Why it is refused with the review.
pub(super) fn object(review: &[u8], extent: Extent) -> Result<Json<'_>, &'static str> {
    read(review, extent).map(|review| review.object).map_err(|error| reason(&error))
}

fn read(bytes: &[u8], extent: Extent) -> serde_json::Result<Review<'_>> {
    match extent {
        Extent::Whole => read_as::<Whole>(bytes),
        Extent::WithoutStatus => read_as::<WithoutStatus>(bytes),
        Extent::Confirmation => read_as::<Confirmation>(bytes),
    }
}

fn read_as<'a, E: Extended>(bytes: &'a [u8]) -> serde_json::Result<Review<'a>> {
    // `null` is an empty review.
    let Part(document) = serde_json::from_slice::<Part<ReviewedObjects<'a, Object<'a, E>>>>(bytes)?;
    Ok(document.into())
}

impl Extended for Whole {
    const KEEP: Keep = Keep::Except(&[("metadata", Some(METADATA))]);
}

impl Extended for WithoutStatus {
    const KEEP: Keep = Keep::Except(&[("metadata", Some(METADATA)), ("status", None)]);
}

impl Extended for Confirmation {
    const KEEP: Keep = CONFIRMED;
}

impl<E> Default for Object<'_, E> {
    fn default() -> Self {
        Self(Json::Null, PhantomData)
    }
}

impl<'de: 'a, 'a, E: Extended> Deserialize<'de> for Object<'a, E> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let picking = Picking { keep: E::KEEP, room: &mut { MOST_VALUES } };
        Ok(Self(picking.deserialize(deserializer)?, PhantomData))
    }
}

impl<'a, E> From<ReviewedObjects<'a, Object<'a, E>>> for Review<'a> {
    fn from(document: ReviewedObjects<'a, Object<'a, E>>) -> Self {
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
