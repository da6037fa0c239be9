//! The `Status` bodies of the API server's refusals, byte for byte (facts §0).

mod invalid;

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use super::kinds::ServedKind;

/// A refusal as a complete answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The HTTP status.
    pub code: u16,
    /// The body, with its last line feed.
    pub body: Bytes,
    /// `application/json` or a plain text type.
    pub content_type: &'static str,
    /// `Retry-After` in seconds.
    pub retry_after: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Cause {
    pub(super) reason: &'static str,
    pub(super) message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) field: String,
}

/// The order of the fields is the server's.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    kind: &'static str,
    api_version: &'static str,
    metadata: ListMeta,
    status: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
    #[serde(skip_serializing_if = "is_zero")]
    code: u16,
}

#[derive(Debug, Default, Serialize)]
struct ListMeta {
    #[serde(rename = "continue", skip_serializing_if = "String::is_empty")]
    token: String,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    uid: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<Cause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(code: &u16) -> bool {
    *code == 0
}

/// `plural` or `plural.group`, as messages name a resource.
fn qualified(resource: &str, group: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

fn of_resource(kind: &ServedKind, name: &str) -> Details {
    Details { name: name.into(), group: kind.group.clone(), kind: kind.plural.clone(), ..Details::default() }
}

/// The body of a DELETE of a kind that does not answer with the object.
pub(super) fn deleted(kind: &ServedKind, name: &str, uid: &str) -> Vec<u8> {
    let details = Details { uid: uid.into(), ..of_resource(kind, name) };
    to_vec(&Status { status: "Success", details: Some(details), ..Status::new() })
}

fn to_vec(status: &Status) -> Vec<u8> {
    // A struct of strings and numbers always has a JSON form.
    let mut body = serde_json::to_vec(status).unwrap_or_default();
    body.push(b'\n');
    body
}

impl Status {
    fn new() -> Self {
        Self { kind: "Status", api_version: "v1", ..Self::default() }
    }
}

impl Cause {
    fn new(reason: &'static str, field: &str, message: String) -> Self {
        Self { reason, message, field: field.into() }
    }

    /// A missing field. `text` may be empty.
    pub(super) fn required(field: &str, text: &str) -> Self {
        let colon = if text.is_empty() { "" } else { ": " };
        Self::new("FieldValueRequired", field, format!("Required value{colon}{text}"))
    }

    pub(super) fn invalid(field: &str, value: &Value, text: &str) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {value}: {text}"))
    }

    pub(super) fn forbidden(field: &str, text: &str) -> Self {
        Self::new("FieldValueForbidden", field, format!("Forbidden: {text}"))
    }

    pub(super) fn not_supported(field: &str, value: &Value, supported: &[&str]) -> Self {
        let supported: Vec<String> = supported.iter().map(|text| Value::from(*text).to_string()).collect();
        let text = format!("Unsupported value: {value}: supported values: {}", supported.join(", "));
        Self::new("FieldValueNotSupported", field, text)
    }

    pub(super) fn too_long(field: &str, most_bytes: u64) -> Self {
        Self::new("FieldValueTooLong", field, format!("Too long: may not be more than {most_bytes} bytes"))
    }

    pub(super) fn too_many(field: &str, count: u64, most: u64) -> Self {
        let text = format!("Too many: {count}: must have at most {most} items");
        Self::new("FieldValueTooMany", field, text)
    }

    pub(super) fn not_found(field: &str, value: &Value) -> Self {
        Self::new("FieldValueNotFound", field, format!("Not found: {value}"))
    }

    pub(super) fn duplicate(field: &str, value: &Value) -> Self {
        Self::new("FieldValueDuplicate", field, format!("Duplicate value: {value}"))
    }

    /// A value of the wrong JSON type in a custom kind.
    pub(super) fn type_invalid(field: &str, value: &Value, text: &str) -> Self {
        Self::new("FieldValueTypeInvalid", field, format!("Invalid value: {value}: {text}"))
    }

    fn line(&self) -> String {
        format!("{}: {}", self.field, self.message)
    }
}

impl Failure {
    fn of(status: Status) -> Self {
        let retry_after = status.details.as_ref().and_then(|details| details.retry_after_seconds);
        let body = to_vec(&Status { status: "Failure", ..status }).into();
        let code = status.code;
        Self { code, body, content_type: "application/json", retry_after }
    }

    fn plain(code: u16, body: &'static str) -> Self {
        Self {
            code,
            body: Bytes::from_static(body.as_bytes()),
            content_type: "text/plain; charset=utf-8",
            retry_after: None,
        }
    }

    fn new(code: u16, reason: &'static str, message: impl Into<String>, details: Option<Details>) -> Self {
        Self::of(Status { code, reason, message: message.into(), details, ..Status::new() })
    }

    fn generic(code: u16, reason: &'static str, message: &str) -> Self {
        Self::new(code, reason, message, Some(Details::default()))
    }

    pub(super) fn bad_request(text: &str) -> Self {
        Self::new(400, "BadRequest", text, None)
    }

    /// 400: the body is no object of the kind; `text` says why.
    pub(super) fn unrecognized(kind: &ServedKind, text: &str) -> Self {
        Self::bad_request(&format!("the object provided is unrecognized (must be of type {}): {text}", kind.kind))
    }

    /// 400: a field has the wrong type, or is unknown where that is refused.
    pub(super) fn cannot_be_handled(kind: &ServedKind, text: &str) -> Self {
        let ServedKind { kind, version, .. } = kind;
        Self::bad_request(&format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {text}"))
    }

    pub(super) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized", None)
    }

    pub(super) fn forbidden(kind: &ServedKind, name: &str, text: &str) -> Self {
        Self::forbidden_with(kind, name, text, Vec::new())
    }

    fn forbidden_with(kind: &ServedKind, name: &str, text: &str, causes: Vec<Cause>) -> Self {
        let resource = qualified(&kind.plural, &kind.group);
        let message = match name {
            "" => format!("{resource} is forbidden: {text}"),
            name => format!("{resource} \"{name}\" is forbidden: {text}"),
        };
        Self::new(403, "Forbidden", message, Some(Details { causes, ..of_resource(kind, name) }))
    }

    /// 403: the user lacks a right. `resource` is `plural` or `plural/subresource`; cluster scope has no namespace.
    pub(super) fn not_allowed(
        kind: &ServedKind,
        name: &str,
        user: &str,
        verb: &str,
        resource: &str,
        namespace: &str,
    ) -> Self {
        let place = match namespace {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace \"{namespace}\""),
        };
        let group = &kind.group;
        let text = format!("User \"{user}\" cannot {verb} resource \"{resource}\" in API group \"{group}\" {place}");
        Self::forbidden(kind, name, &text)
    }

    pub(super) fn namespace_terminating(kind: &ServedKind, name: &str, namespace: &str) -> Self {
        let text = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let cause = format!("namespace {namespace} is being terminated");
        Self::forbidden_with(kind, name, &text, vec![Cause::new("NamespaceTerminating", "metadata.namespace", cause)])
    }

    pub(super) fn not_found(kind: &ServedKind, name: &str) -> Self {
        Self::missing(&kind.plural, &kind.group, name)
    }

    pub(super) fn missing(resource: &str, group: &str, name: &str) -> Self {
        let details = Details { name: name.into(), group: group.into(), kind: resource.into(), ..Details::default() };
        Self::new(404, "NotFound", format!("{} \"{name}\" not found", qualified(resource, group)), Some(details))
    }

    pub(super) fn namespace_not_found(name: &str) -> Self {
        Self::missing("namespaces", "", name)
    }

    /// 404 of a resource in a built-in group.
    pub(super) fn unknown_resource() -> Self {
        Self::generic(404, "NotFound", "the server could not find the requested resource")
    }

    /// 404 of any other path.
    pub(super) fn page_not_found() -> Self {
        Self::plain(404, "404 page not found\n")
    }

    pub(super) fn method_not_allowed() -> Self {
        Self::generic(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    }

    pub(super) fn not_acceptable(text: &str) -> Self {
        Self::new(406, "NotAcceptable", text, None)
    }

    pub(super) fn already_exists(kind: &ServedKind, name: &str) -> Self {
        Self::exists(kind, name, "")
    }

    pub(super) fn already_exists_deleting(kind: &ServedKind, name: &str) -> Self {
        Self::exists(kind, name, "object is being deleted: ")
    }

    fn exists(kind: &ServedKind, name: &str, prefix: &str) -> Self {
        let message = format!("{prefix}{} \"{name}\" already exists", qualified(&kind.plural, &kind.group));
        Self::new(409, "AlreadyExists", message, Some(of_resource(kind, name)))
    }

    pub(super) fn conflict(kind: &ServedKind, name: &str) -> Self {
        let text = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict_because(kind, name, text)
    }

    pub(super) fn conflict_because(kind: &ServedKind, name: &str, text: &str) -> Self {
        let resource = qualified(&kind.plural, &kind.group);
        let message = format!("Operation cannot be fulfilled on {resource} \"{name}\": {text}");
        Self::new(409, "Conflict", message, Some(of_resource(kind, name)))
    }

    pub(super) fn uid_conflict(kind: &ServedKind, namespace: &str, name: &str, sent: &str, stored: &str) -> Self {
        let group = if kind.custom { format!("{}/", kind.group) } else { String::new() };
        let namespace = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        let key = format!("/registry/{group}{}/{namespace}{name}", kind.plural);
        let text = format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
             UID in precondition: {sent}, UID in object meta: {stored}"
        );
        Self::conflict_because(kind, name, &text)
    }

    pub(super) fn uid_precondition(kind: &ServedKind, name: &str, asked: &str, stored: &str) -> Self {
        let text = format!(
            "the UID in the precondition ({asked}) does not match the UID in record ({stored}). The object might have been \
             deleted and then recreated"
        );
        Self::precondition(kind, name, &text)
    }

    pub(super) fn version_precondition(kind: &ServedKind, name: &str, asked: &str, stored: &str) -> Self {
        let text = format!(
            "the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record ({stored}). The \
             object might have been modified"
        );
        Self::precondition(kind, name, &text)
    }

    /// Names the kind, where other conflicts name the resource.
    fn precondition(kind: &ServedKind, name: &str, text: &str) -> Self {
        let details =
            Details { name: name.into(), group: kind.group.clone(), kind: kind.kind.clone(), ..Details::default() };
        let qualified = qualified(&kind.kind, &kind.group);
        let message = format!("Operation cannot be fulfilled on {qualified} \"{name}\": {text}");
        Self::new(409, "Conflict", message, Some(details))
    }

    /// 410: the revision of a page has expired. `token` continues with the present state.
    pub(super) fn continue_expired(token: &str) -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. You can start a new \
                       list without the continue parameter, or use the continue token in this response to retrieve the \
                       remainder of the results. Continuing with the provided token results in an inconsistent list - \
                       objects that were created, modified, or deleted between the time the first chunk was returned and \
                       now may show up in the list.";
        let metadata = ListMeta { token: token.into() };
        Self::of(Status { code: 410, reason: "Expired", message: message.into(), metadata, ..Status::new() })
    }

    pub(super) fn list_expired() -> Self {
        Self::new(410, "Expired", "The resourceVersion for the provided list is too old.", None)
    }

    /// The error event of a watch whose start has expired; `oldest` is the first known revision.
    pub(super) fn watch_expired(asked: u64, oldest: u64) -> Self {
        Self::new(410, "Expired", format!("too old resource version: {asked} ({oldest})"), None)
    }

    pub(super) fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(413, "RequestEntityTooLarge", message, None)
    }

    pub(super) fn unknown_body_format(kind: &ServedKind) -> Self {
        let more = if kind.custom { "" } else { ", application/vnd.kubernetes.protobuf" };
        Self::unknown_format(&format!("application/json, application/yaml{more}"))
    }

    /// 415 of a patch type that custom kinds lack.
    pub(super) fn unknown_custom_patch() -> Self {
        Self::unknown_format("application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml")
    }

    fn unknown_format(accepted: &str) -> Self {
        let text =
            format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
        Self::new(415, "UnsupportedMediaType", text, None)
    }

    pub(super) fn unsupported_media_type() -> Self {
        Self::generic(415, "UnsupportedMediaType", "415: Unsupported Media Type")
    }
}
