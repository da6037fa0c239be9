//! Decodes SubjectAccessReviews (spec 61 §1.1, §2). Strings are borrowed from the request's bytes.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::error::Category;

use super::{selector::Selector, text::Lenient};
use crate::{
    api::meta::field::shapes::Text,
    webhooks::{
        exchange::{Body, EMPTY, JSON, Received, TOO_LARGE},
        review::{Identity, Keyed},
    },
};

const VERSION: &str = "authorization.k8s.io/v1";
/// The version with another key for the groups (spec 61 §11.11).
const OLD_VERSION: &str = "authorization.k8s.io/v1beta1";
const KIND: &str = "SubjectAccessReview";

/// A decoded review.
#[derive(Debug, Clone, PartialEq)]
pub struct Review<'a> {
    /// `apiVersion`, which the answer repeats.
    pub api_version: Cow<'a, str>,
    /// `kind`, which the answer repeats.
    pub kind: Cow<'a, str>,
    /// The user and the action.
    pub attributes: Attributes<'a>,
}

/// Who wants to do what.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attributes<'a> {
    /// `spec.user`.
    pub user: Cow<'a, str>,
    /// `spec.groups`; `spec.group` in v1beta1.
    pub groups: Vec<Cow<'a, str>>,
    /// The action.
    pub action: Action<'a>,
}

/// An action.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Action<'a> {
    /// On objects.
    Resource(ResourceAction<'a>),
    /// On a path.
    Path(PathAction<'a>),
    /// The review names none.
    #[default]
    None,
}

/// An action on objects. Absent fields are empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResourceAction<'a> {
    /// Verb, e.g. `get`.
    pub verb: Cow<'a, str>,
    /// Namespace.
    pub namespace: Cow<'a, str>,
    /// API group.
    pub group: Cow<'a, str>,
    /// Plural name of the kind.
    pub resource: Cow<'a, str>,
    /// Subresource.
    pub subresource: Cow<'a, str>,
    /// Name; for a list or watch the name in its field selector `metadata.name`.
    pub name: Cow<'a, str>,
    /// The field selector.
    pub field_selector: Selector<'a>,
}

/// An action on a path. Absent fields are empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PathAction<'a> {
    /// Verb, e.g. `get`.
    pub verb: Cow<'a, str>,
    /// The path.
    pub path: Cow<'a, str>,
}

/// The error for a request that is not a review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// `apiVersion`, if it can be read.
    pub api_version: String,
    /// `kind`, if it can be read.
    pub kind: String,
    /// The code, as if it were an HTTP status.
    pub code: u16,
    /// The reason.
    pub message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReviewDocument<'a> {
    #[serde(borrow, default)]
    api_version: Text<'a>,
    #[serde(borrow, default)]
    kind: Text<'a>,
    #[serde(borrow)]
    spec: Option<Keyed<ReviewSpec<'a>>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct ReviewSpec<'a> {
    #[serde(borrow, default)]
    user: Text<'a>,
    /// The version decides which of the two counts. Any value in the other is no error.
    #[serde(borrow, default)]
    groups: Lenient<'a>,
    #[serde(borrow, default)]
    group: Lenient<'a>,
    #[serde(borrow)]
    resource_attributes: Option<Keyed<Resource<'a>>>,
    #[serde(borrow)]
    non_resource_attributes: Option<Keyed<Path<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource<'a> {
    #[serde(borrow, default)]
    verb: Text<'a>,
    #[serde(borrow, default)]
    namespace: Text<'a>,
    #[serde(borrow, default)]
    group: Text<'a>,
    #[serde(borrow, default)]
    resource: Text<'a>,
    #[serde(borrow, default)]
    subresource: Text<'a>,
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow)]
    field_selector: Option<Keyed<Selector<'a>>>,
}

#[derive(Deserialize)]
struct Path<'a> {
    #[serde(borrow, default)]
    verb: Text<'a>,
    #[serde(borrow, default)]
    path: Text<'a>,
}

/// Decodes a review. Fails as the rows of spec 61 §1.1 say.
pub fn decode(received: &Received) -> Result<Review<'_>, Refusal> {
    let bytes = match &received.body {
        Body::None => return Err(Refusal::of(&[], 422, EMPTY)),
        Body::Broken(cause) => return Err(Refusal::of(&[], 400, cause)),
        Body::TooLarge(beginning) => return Err(Refusal::of(beginning, 413, TOO_LARGE)),
        Body::Whole(bytes) => bytes,
    };
    if received.content_type != JSON {
        let found = &received.content_type;
        return Err(Refusal::of(bytes, 400, format!("contentType={found}, expected {JSON}")));
    }
    let Keyed(document) = serde_json::from_slice::<Keyed<ReviewDocument<'_>>>(bytes)
        .map_err(|error| Refusal::of(bytes, 400, fault(&error)))?;
    Review::of(document).map_err(|message| Refusal::of(bytes, 400, message))
}

/// Reports the position of an error, without the content there.
fn fault(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        Category::Data => "a field has the wrong type",
        Category::Eof => "unexpected end of JSON",
        Category::Syntax | Category::Io => "invalid JSON",
    };
    format!("couldn't decode the {KIND}: {what} at line {}, column {}", error.line(), error.column())
}

impl<'a> Review<'a> {
    fn of(document: ReviewDocument<'a>) -> Result<Self, String> {
        let ReviewDocument { api_version: Text(mut api_version), kind: Text(mut kind), spec } = document;
        let spec = spec.map(|Keyed(spec)| spec).unwrap_or_default();
        let groups = if api_version == OLD_VERSION { spec.group } else { spec.groups };
        let groups = match groups {
            Lenient::Null => Vec::new(),
            Lenient::List(groups) => groups,
            Lenient::Text(_) | Lenient::Other => {
                return Err(format!("couldn't decode the {KIND}: the groups are not a list of strings"));
            }
        };
        if api_version.is_empty() && kind.is_empty() {
            (api_version, kind) = (VERSION.into(), KIND.into());
        }
        let action = match (spec.resource_attributes, spec.non_resource_attributes) {
            (Some(Keyed(resource)), _) => Action::Resource(resource.into()),
            (None, Some(Keyed(Path { verb, path }))) => Action::Path(PathAction { verb: verb.0, path: path.0 }),
            (None, None) => Action::None,
        };
        Ok(Self { api_version, kind, attributes: Attributes { user: spec.user.0, groups, action } })
    }
}

impl<'a> From<Resource<'a>> for ResourceAction<'a> {
    fn from(resource: Resource<'a>) -> Self {
        Self {
            verb: resource.verb.0,
            namespace: resource.namespace.0,
            group: resource.group.0,
            resource: resource.resource.0,
            subresource: resource.subresource.0,
            name: resource.name.0,
            field_selector: resource.field_selector.map(|Keyed(selector)| selector).unwrap_or_default(),
        }
    }
}

impl Refusal {
    fn of(bytes: &[u8], code: u16, message: impl Into<String>) -> Self {
        let Identity { mut api_version, mut kind, uid: _ } = Identity::found_in(bytes);
        if api_version.is_empty() && kind.is_empty() {
            (api_version, kind) = (VERSION.to_owned(), KIND.to_owned());
        }
        Self { api_version, kind, code, message: message.into() }
    }
}
