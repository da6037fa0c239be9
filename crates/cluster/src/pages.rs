//! Lists, whole or in pages whose size follows the size of the objects.

use std::time::Duration;

use kit::Deadline;
use serde_json::Value;

use super::{
    ApiError, Cluster, Context, Resource,
    cluster::narrow,
    resource::Query,
    transport::{Answer, Call, JSON},
    whole::whole,
};

/// Time limit of one page: API servers give up after a minute themselves.
const PAGE_TIME: Duration = Duration::from_secs(60);
/// `Accept` of a list of metadata, whose kind differs from that of an object (api-facts §2).
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

const PAGE_BYTES: u64 = 1 << 20; // target size of a page; parsing it takes several times as much memory
const FIRST_LIMIT: u32 = 250;
const SMALLEST_LIMIT: u32 = 25;
const LARGEST_LIMIT: u32 = 500;
const SHRINKING: u32 = 8; // a page that is too large is requested again with this many times fewer objects

/// What to list, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// Label selector in the API's syntax.
    pub label_selector: Option<String>,
    /// Field selector in the API's syntax.
    pub field_selector: Option<String>,
    /// Maximum number of objects; `continue_token` reads the rest.
    pub limit: Option<u32>,
    /// Token of the previous page.
    pub continue_token: Option<String>,
    /// Return items as `PartialObjectMetadata`.
    pub metadata_only: bool,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// The objects, each with `apiVersion` and `kind`.
    pub items: Vec<Value>,
    /// Version of the whole list: watch from here.
    pub resource_version: String,
    /// Token of the next page.
    pub continue_token: Option<String>,
    /// Number of objects after this page, if the server says so (not with a selector).
    pub remaining: Option<u64>,
    /// Size of the answer.
    pub bytes: usize,
}

/// A list in pages. After an error, e.g. [`ApiError::is_expired`] (an old token), start a new list.
pub struct Pages {
    cluster: Cluster,
    ctx: Context,
    resource: Resource,
    scope: Option<String>,
    query: ListQuery,
    most: u32, // upper bound of the limit, because a larger page was too large
    over: bool,
}

impl ListQuery {
    /// Selects the objects with these labels.
    pub fn labelled(selector: impl Into<String>) -> Self {
        Self { label_selector: Some(selector.into()), ..Self::default() }
    }

    pub(super) fn call(&self, resource: &Resource, scope: Option<&str>) -> Call {
        let limit = self.limit.map(|limit| limit.to_string());
        let uri = Query::default()
            .maybe("labelSelector", self.label_selector.as_deref())
            .maybe("fieldSelector", self.field_selector.as_deref())
            .maybe("limit", limit.as_deref())
            .maybe("continue", self.continue_token.as_deref())
            .after(&resource.collection_path(scope));
        let accept = if self.metadata_only { METADATA_LIST } else { JSON };
        Call::read(uri).accepting(accept).about_secret(resource.is_secret())
    }
}

impl Page {
    pub(super) fn decode(resource: &Resource, metadata_only: bool, answer: &Answer) -> Result<Self, ApiError> {
        let mut list = answer.json()?;
        let kind = list["kind"].as_str().filter(|_| list["metadata"].is_object()).unwrap_or_default();
        let (has_kind, is_named_list) = (!kind.is_empty(), kind.ends_with("List"));
        let items = match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) if has_kind => items,
            None | Some(Value::Null) if is_named_list => Vec::new(),
            _ => return Err(ApiError::Decode("it is not a list with items".into())),
        };
        let metadata = &list["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
        let complete = |item| -> Result<Value, ApiError> {
            let item = whole(item)?;
            Ok(if metadata_only { narrow(item) } else { with_type(item, resource) })
        };
        Ok(Self {
            items: items.into_iter().map(complete).collect::<Result<_, _>>()?,
            resource_version: text("resourceVersion"),
            continue_token: Some(text("continue")).filter(|token| !token.is_empty()),
            remaining: metadata["remainingItemCount"].as_u64(),
            bytes: answer.body.len(),
        })
    }
}

/// Adds kind and version, which items of built-in lists lack (api-facts §2).
fn with_type(mut item: Value, resource: &Resource) -> Value {
    if let Some(fields) = item.as_object_mut() {
        fields.entry("kind").or_insert_with(|| Value::from(&*resource.kind));
        fields.entry("apiVersion").or_insert_with(|| resource.api_version().into());
    }
    item
}

impl Cluster {
    /// Lists in pages of about 1 MiB, or fewer objects if necessary. Sets `query.limit` and `query.continue_token`.
    pub fn pages(&self, ctx: Context, resource: Resource, scope: Option<String>, query: ListQuery) -> Pages {
        let query = ListQuery { limit: Some(FIRST_LIMIT), continue_token: None, ..query };
        Pages { cluster: self.clone(), ctx, resource, scope, query, most: LARGEST_LIMIT, over: false }
    }
}

impl Pages {
    /// Returns the next page; `None` after the last one and after an error.
    pub async fn next(&mut self) -> Option<Result<Page, ApiError>> {
        if self.over {
            return None;
        }
        self.over = true; // a dropped request ends the list as well
        let deadline = self.ctx.deadline.min(Deadline::after(PAGE_TIME));
        let ctx = Context { deadline, ..self.ctx.clone() };
        let page = loop {
            let page = self.cluster.list(&ctx, &self.resource, self.scope.as_deref(), &self.query).await;
            match self.query.limit.filter(|limit| *limit > 1) {
                Some(limit) if matches!(page, Err(ApiError::TooLarge(_))) => {
                    self.most = (limit / SHRINKING).max(1);
                    self.query.limit = Some(self.most);
                }
                _ => break page,
            }
        };
        if let Ok(page) = &page {
            let next = |limit| next_limit(limit, page.items.len(), page.bytes).min(self.most);
            self.query.limit = self.query.limit.map(next);
            self.query.continue_token.clone_from(&page.continue_token);
            self.over = page.continue_token.is_none();
        }
        Some(page)
    }
}

/// Returns the limit with which this page would have had [`PAGE_BYTES`], at most twice the last limit.
fn next_limit(limit: u32, items: usize, bytes: usize) -> u32 {
    let (items, bytes) = (items as u64, bytes as u64);
    if items == 0 || bytes == 0 {
        return limit;
    }
    let fitting = u32::try_from(PAGE_BYTES * items / bytes).unwrap_or(LARGEST_LIMIT);
    fitting.clamp(SMALLEST_LIMIT, LARGEST_LIMIT).min(limit.saturating_mul(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_limit_follows_the_size_of_the_objects() {
        let cases = [
            (250, 250, 1 << 20, 250),
            (250, 250, 1 << 19, 500),
            (250, 250, 1 << 10, 500),
            (500, 500, 500 << 20, 25),
            (25, 25, 1 << 10, 50),
            (250, 0, 100, 250),
        ];

        for (limit, items, bytes, expected) in cases {
            assert_eq!(next_limit(limit, items, bytes), expected, "{limit} {items} {bytes}");
        }
    }
}
