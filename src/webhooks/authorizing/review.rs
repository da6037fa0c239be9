//! Decodes SubjectAccessReviews (spec 61 §1.1, §2). Strings are borrowed from the request's bytes.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::error::Category;

use super::{selector::Selector, text::Lenient};
use crate::{
    api::meta::field::shapes::{Keyed, Text},
    webhooks::{
        exchange::Received,
        review::{Identity, Refusal, checked},
    },
};

/// The version with another key for the groups (spec 61 §11.11).
const OLD_VERSION: &str = "authorization.k8s.io/v1beta1";
pub(super) const KIND: &str = "SubjectAccessReview";

/// A decoded review.
#[derive(Debug, Clone, PartialEq)]
pub struct Review<'a> {
    /// `apiVersion`, which the answer repeats.
    pub api_version: Text<'a>,
    /// `kind`, which the answer repeats.
    pub kind: Text<'a>,
    /// The user and the action.
    pub attributes: Attributes<'a>,
}

/// Who wants to do what.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attributes<'a> {
    /// `spec.user`.
    pub user: Text<'a>,
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
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceAction<'a> {
    /// Verb, e.g. `get`.
    #[serde(borrow)]
    pub verb: Text<'a>,
    /// Namespace.
    pub namespace: Text<'a>,
    /// API group.
    pub group: Text<'a>,
    /// Plural name of the kind.
    pub resource: Text<'a>,
    /// Subresource.
    pub subresource: Text<'a>,
    /// Name; for a list or watch the name in its field selector `metadata.name`.
    pub name: Text<'a>,
    /// The field selector.
    pub field_selector: Option<Keyed<Selector<'a>>>,
}

/// An action on a path. Absent fields are empty.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PathAction<'a> {
    /// Verb, e.g. `get`.
    #[serde(borrow)]
    pub verb: Text<'a>,
    /// The path.
    pub path: Text<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct ReviewDocument<'a> {
    #[serde(borrow)]
    api_version: Text<'a>,
    kind: Text<'a>,
    spec: Option<Keyed<ReviewSpec<'a>>>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct ReviewSpec<'a> {
    #[serde(borrow)]
    user: Text<'a>,
    /// The version decides which of the two counts. Any value in the other is no error.
    groups: Lenient<'a>,
    group: Lenient<'a>,
    resource_attributes: Option<Keyed<ResourceAction<'a>>>,
    non_resource_attributes: Option<Keyed<PathAction<'a>>>,
}

/// Decodes a review. Fails as the rows of spec 61 §1.1 say.
pub fn decode(received: &Received) -> Result<Review<'_>, Refusal> {
    let bytes = checked(&received.body, &received.content_type, 422)?;
    let refusal = |message| Refusal { identity: Identity::found_in(bytes), code: 400, message };
    let document = serde_json::from_slice::<Keyed<ReviewDocument<'_>>>(bytes);
    let Keyed(document) = document.map_err(|error| refusal(fault(&error)))?;
    Review::of(document).map_err(refusal)
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
        let ReviewDocument { api_version, kind, spec } = document;
        let spec = spec.map(|Keyed(spec)| spec).unwrap_or_default();
        let groups = if *api_version == *OLD_VERSION { spec.group } else { spec.groups };
        let groups = match groups {
            Lenient::Null => Vec::new(),
            Lenient::List(groups) => groups,
            Lenient::Text(_) | Lenient::Other => {
                return Err(format!("couldn't decode the {KIND}: the groups are not a list of strings"));
            }
        };
        let action = match (spec.resource_attributes, spec.non_resource_attributes) {
            (Some(Keyed(action)), _) => Action::Resource(action),
            (None, Some(Keyed(action))) => Action::Path(action),
            (None, None) => Action::None,
        };
        Ok(Self { api_version, kind, attributes: Attributes { user: spec.user, groups, action } })
    }
}
