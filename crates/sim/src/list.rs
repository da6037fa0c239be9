//! Lists: selection, pages, old versions (facts §2).

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    encode,
    kinds::ServedKind,
    negotiate::{Asked, negotiate},
    render::{self, Form},
    request::Request,
    selector::{FieldSelector, LabelSelector},
    state::{Answer, ApiState, Refusal, read_revision},
    status::Failure,
    storage::{Key, Object, Scope},
    table,
};

#[derive(Debug, Clone, Default)]
pub(super) struct Selection {
    labels: Option<LabelSelector>,
    fields: Option<FieldSelector>,
}

/// Where a list continues: the content of `metadata.continue`.
#[derive(Debug, Serialize, Deserialize)]
struct Token {
    v: String,
    /// The revision of the first page; -1 for the present one.
    rv: i64,
    /// The first key that is not listed yet, below the collection.
    start: String,
}

struct Page {
    revision: u64,
    objects: Vec<(Key, Arc<Object>)>,
}

impl Selection {
    pub(super) fn of(kind: &ServedKind, request: &Request) -> Result<Self, Failure> {
        Ok(Self {
            labels: request.query.get("labelSelector").map(LabelSelector::parse).transpose()?,
            fields: request.query.get("fieldSelector").map(|text| FieldSelector::parse(kind, text)).transpose()?,
        })
    }

    pub(super) fn is_everything(&self) -> bool {
        self.labels.is_none() && self.fields.is_none()
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        self.labels.as_ref().is_none_or(|selector| selector.matches(object))
            && self.fields.as_ref().is_none_or(|selector| selector.matches(object))
    }
}

impl Token {
    fn encode(revision: i64, scope: &Scope, last: &Key) -> String {
        let path = if scope.namespace.is_some() || last.namespace.is_empty() {
            format!("/{}\0", last.name)
        } else {
            format!("/{}/{}\0", last.namespace, last.name)
        };
        let token = Self { v: "meta.k8s.io/v1".into(), rv: revision, start: path };
        URL_SAFE_NO_PAD.encode(encode::to_vec(&token))
    }

    fn decode(text: &str) -> Result<Self, Failure> {
        let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('='));
        let token: Option<Self> = bytes.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        token
            .filter(|token| token.v == "meta.k8s.io/v1" && token.start.starts_with('/'))
            .ok_or_else(|| Failure::bad_request("invalid continue token: continue key is not valid"))
    }

    fn key(&self, scope: &Scope) -> Key {
        let path = &self.start[1..];
        let (namespace, name) = match (&scope.namespace, path.split_once('/')) {
            (Some(namespace), _) => (&**namespace, path),
            (None, Some(parts)) => parts,
            (None, None) => ("", path),
        };
        Key::new(&scope.group, &scope.resource, namespace, name)
    }
}

impl ApiState {
    pub(super) fn scope_of(&self, kind: &ServedKind, request: &Request) -> Scope {
        let (group, resource) = kind.home();
        let namespace = Some(request.info.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        Scope::new(group, resource, namespace)
    }

    pub(super) fn list(
        &mut self,
        kind: &ServedKind,
        request: &Request,
        read_as_of: Option<u64>,
    ) -> Result<Answer, Refusal> {
        let form = match negotiate(&request.info.accept)? {
            Asked::Full => Form::Full,
            Asked::MetadataList => Form::Metadata,
            Asked::Table => Form::Row(self.clock.now()),
            Asked::Metadata => return Err(requested_one_of_many(kind).into()),
        };
        let selection = Selection::of(kind, request)?;
        let scope = self.scope_of(kind, request);
        let page = self.page(request, &scope, read_as_of)?;

        // `resourceVersion=0` is answered from the server's cache, which has no pages.
        let limit = match request.query.get("resourceVersion") {
            Some("0") => None,
            _ => limit(request)?,
        };
        let mut items = Vec::new();
        let mut count = 0;
        let mut last: Option<&Key> = None;
        let mut rest = 0_usize;
        for (key, object) in page.objects.iter().filter(|(_, object)| selection.matches(&object.value)) {
            if limit.is_some_and(|limit| count >= limit) {
                rest += 1;
                if !selection.is_everything() {
                    break;
                }
                continue;
            }
            if count > 0 {
                items.push(b',');
            }
            self.render_item(&mut items, kind, object, form)?;
            count += 1;
            last = Some(key);
        }

        let mut metadata = serde_json::Map::new();
        metadata.insert("resourceVersion".into(), page.revision.to_string().into());
        if let (true, Some(last)) = (rest > 0, last) {
            let revision = i64::try_from(page.revision).unwrap_or(-1);
            metadata.insert("continue".into(), Token::encode(revision, &scope, last).into());
            if selection.is_everything() {
                metadata.insert("remainingItemCount".into(), rest.into());
            }
        }
        Ok(Answer::json(200, list_body(kind, form, &metadata.into(), &items)))
    }

    fn page(&self, request: &Request, scope: &Scope, read_as_of: Option<u64>) -> Result<Page, Refusal> {
        let present = self.storage.revision();
        let asked = read_revision(request)?;
        let matching = request.query.get("resourceVersionMatch");
        if let Some(token) = request.query.get("continue") {
            if asked.is_some() {
                let text = "specifying resource version is not allowed when using continue";
                return Err(Failure::bad_request(text).into());
            }
            return Ok(self.next_page(&Token::decode(token)?, scope)?);
        }
        match (matching, request.query.get("resourceVersion")) {
            (None | Some("Exact" | "NotOlderThan"), Some(_)) | (None, None) => {}
            (Some(_), None) => return Err(Failure::match_without_version().into()),
            (Some(other), Some(_)) => return Err(Failure::unknown_match(other).into()),
        }
        if matching == Some("Exact") && asked.is_none() {
            return Err(Failure::exact_match_of_zero().into());
        }
        if let Some(revision) = asked.filter(|revision| *revision > present) {
            return Err(Refusal::NotYet { revision });
        }
        let revision = match (matching, asked, read_as_of) {
            (Some("Exact"), Some(exact), _) => exact,
            // A lagging API server waits until it knows the requested version.
            (_, asked, Some(stale)) => stale.clamp(self.storage.oldest(), present).max(asked.unwrap_or(0)),
            _ => present,
        };
        let objects = self.storage.at(scope, revision, None).map_err(|_| Failure::list_expired())?;
        Ok(Page { revision, objects })
    }

    fn next_page(&self, token: &Token, scope: &Scope) -> Result<Page, Failure> {
        let present = self.storage.revision();
        let revision = u64::try_from(token.rv).unwrap_or(present);
        let start = token.key(scope);
        match self.storage.at(scope, revision, Some(&start)) {
            Ok(objects) => Ok(Page { revision, objects }),
            Err(_) => {
                let start = Token { v: token.v.clone(), rv: -1, start: token.start.clone() };
                Err(Failure::continue_expired(&URL_SAFE_NO_PAD.encode(encode::to_vec(&start))))
            }
        }
    }

    fn render_item(&self, out: &mut Vec<u8>, kind: &ServedKind, object: &Object, form: Form) -> Result<(), Failure> {
        let api_version = kind.api_version();
        match (super::convert::to_version(kind, &object.value)?, form) {
            (Some(converted), _) => render::value(out, &converted, &api_version, &kind.kind, form, None),
            (None, Form::Full) if !kind.custom => render::untyped(out, object),
            (None, _) => render::object(out, object, &api_version, &kind.kind, form),
        }
        Ok(())
    }

    pub(super) fn selected(&self, scope: &Scope, selection: &Selection) -> Vec<(Key, Arc<Object>)> {
        let all = self.storage.scan(scope);
        let selected = all.filter(|(_, object)| selection.matches(&object.value));
        selected.map(|(key, object)| (key.clone(), object.clone())).collect()
    }
}

pub(super) fn list_body(kind: &ServedKind, form: Form, metadata: &Value, items: &[u8]) -> Vec<u8> {
    let (list_kind, api_version) = match form {
        Form::Row(_) => return table::table(metadata, items),
        Form::Full => (kind.list_kind.clone(), kind.api_version()),
        Form::Metadata => ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned()),
    };
    let mut body = Vec::with_capacity(items.len() + 256);
    body.extend_from_slice(b"{\"kind\":");
    body.extend(encode::to_vec(&list_kind));
    body.extend_from_slice(b",\"apiVersion\":");
    body.extend(encode::to_vec(&api_version));
    body.extend_from_slice(b",\"metadata\":");
    body.extend(encode::to_vec(metadata));
    body.extend_from_slice(b",\"items\":[");
    body.extend_from_slice(items);
    body.extend_from_slice(b"]}\n");
    body
}

fn limit(request: &Request) -> Result<Option<usize>, Failure> {
    match request.query.get("limit") {
        None | Some("0") => Ok(None),
        Some(text) => match text.parse() {
            Ok(limit) => Ok(Some(limit)),
            Err(_) => Err(Failure::bad_request(&format!("limit: Invalid value: \"{text}\": must be a number"))),
        },
    }
}

fn requested_one_of_many(kind: &ServedKind) -> Failure {
    if kind.custom {
        return Failure::not_acceptable(
            "you requested PartialObjectMetadata, but the requested object is a list (*unstructured.UnstructuredList)",
        );
    }
    let package = if kind.group.is_empty() { "core" } else { kind.group.split('.').next().unwrap_or_default() };
    let list = &kind.list_kind;
    Failure::not_acceptable(&format!(
        "you requested PartialObjectMetadata, but the requested object is a list (*{package}.{list})"
    ))
}
