//! The checks of an HTTP request, in the order of spec 50 §2.2.

use cluster::object::GroupVersionKind;
use serde::{Deserialize, Deserializer, de::DeserializeSeed as _};
use serde_json::{Value, error::Category};

use super::Identity;
use crate::{
    api::meta::field::{MOST_VALUES, Owning, TOO_MANY, shapes::Keyed},
    webhooks::exchange::{Body, EMPTY, JSON, TOO_LARGE},
};

/// A decoded review.
#[derive(Debug, Clone, PartialEq)]
pub struct Review {
    /// The fields that the answer repeats.
    pub identity: Identity,
    /// `request.kind`.
    pub kind: GroupVersionKind,
    /// `request.namespace`.
    pub namespace: String,
    /// `request.name`.
    pub name: String,
    /// `request.operation`.
    pub operation: String,
    /// `request.object`; `None` if it is absent or `null`.
    pub object: Option<Value>,
}

/// The error for a request that is not a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The fields that could be read of the review.
    pub identity: Identity,
    /// `status.code`.
    pub code: u16,
    /// `status.message`.
    pub message: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct ReviewDocument {
    api_version: Option<String>,
    kind: Option<String>,
    request: Option<Keyed<RequestDocument>>,
}

/// Other fields, such as the old object, are skipped.
#[derive(Deserialize, Default)]
struct RequestDocument {
    uid: Option<String>,
    kind: Option<Keyed<KindDocument>>,
    namespace: Option<String>,
    name: Option<String>,
    operation: Option<String>,
    #[serde(default, deserialize_with = "bounded")]
    object: Option<Value>,
}

#[derive(Deserialize, Default)]
struct KindDocument {
    group: Option<String>,
    version: Option<String>,
    kind: Option<String>,
}

/// Reads the object of a review; `None` if it is `null`. Fails if it is not JSON or has more than [`MOST_VALUES`].
fn bounded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    let object = Owning { room: &mut { MOST_VALUES } }.deserialize(deserializer)?;
    Ok((!object.is_null()).then_some(object))
}

/// Decodes a review. Fails as rows 1 to 5 of spec 50 §2.2 say. `content_type` is empty if the header is absent.
pub fn decode(body: &Body, content_type: &str) -> Result<Review, Refusal> {
    let bytes = checked(body, content_type, 400)?;
    match serde_json::from_slice::<Keyed<ReviewDocument>>(bytes) {
        Ok(Keyed(document)) => Ok(document.into()),
        Err(error) => Err(Refusal { identity: Identity::found_in(bytes), code: 400, message: fault(&error) }),
    }
}

/// Rows 1 to 4 of spec 50 §2.2. `code_if_empty` is the code for a request without a body.
pub(in crate::webhooks) fn checked<'a>(
    body: &'a Body,
    content_type: &str,
    code_if_empty: u16,
) -> Result<&'a [u8], Refusal> {
    let refusal = |identity, code, message: String| Err(Refusal { identity, code, message });
    let bytes = match body {
        Body::None => return refusal(Identity::default(), code_if_empty, EMPTY.to_owned()),
        Body::Broken(cause) => return refusal(Identity::default(), 400, cause.clone()),
        Body::TooLarge(beginning) => return refusal(Identity::found_in(beginning), 413, TOO_LARGE.to_owned()),
        Body::Whole(bytes) => bytes,
    };
    if content_type != JSON {
        let message = format!("contentType={content_type}, expected {JSON}");
        return refusal(Identity::found_in(bytes), 400, message);
    }
    Ok(bytes)
}

/// `serde_json` reads 127 levels of lists and maps; two of them are the review's own.
const TOO_DEEP: &str = "the object is nested too deeply (more than 125 levels)";

/// Reports the error and its position, without the content there: it may be a secret.
pub(in crate::webhooks) fn fault(error: &serde_json::Error) -> String {
    let what = reason(error);
    format!("couldn't decode the AdmissionReview: {what} at line {}, column {}", error.line(), error.column())
}

pub(in crate::webhooks) fn reason(error: &serde_json::Error) -> &'static str {
    match error.classify() {
        // Other errors have texts that begin differently, whatever they quote.
        Category::Data if error.to_string().starts_with(TOO_MANY) => TOO_MANY,
        Category::Data => "a field has the wrong type",
        Category::Eof => "unexpected end of JSON",
        // These texts quote nothing; the error offers no other way to distinguish them.
        Category::Syntax if error.to_string().starts_with("recursion limit exceeded") => TOO_DEEP,
        Category::Syntax | Category::Io => "invalid JSON",
    }
}

impl From<ReviewDocument> for Review {
    fn from(document: ReviewDocument) -> Self {
        let request = document.request.map(|Keyed(request)| request).unwrap_or_default();
        let kind = request.kind.map(|Keyed(kind)| kind).unwrap_or_default();
        let identity = Identity {
            api_version: document.api_version.unwrap_or_default(),
            kind: document.kind.unwrap_or_default(),
            uid: request.uid.unwrap_or_default(),
        };
        let [group, version, kind] = [kind.group, kind.version, kind.kind].map(Option::unwrap_or_default);
        Self {
            identity: identity.or_default(),
            kind: GroupVersionKind { group, version, kind },
            namespace: request.namespace.unwrap_or_default(),
            name: request.name.unwrap_or_default(),
            operation: request.operation.unwrap_or_default(),
            object: request.object,
        }
    }
}
