//! What a request asks for: verb, path, query, form of the answer. No state.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, Method, header};
use serde::Serialize;

use super::ClientOptions;

/// The facts of a request that do not depend on what is stored: what fault functions see and what is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestInfo {
    /// Counts all requests of the simulator from 1, in the order in which they arrived.
    pub number: u64,
    /// `get list watch create update patch delete deletecollection`; for paths that are no resource the HTTP method in
    /// lower case.
    pub verb: String,
    /// The path, not decoded.
    pub path: String,
    /// The query, not decoded; empty without one.
    pub query: String,
    /// API group; empty for the core group and for paths that are no resource.
    pub group: String,
    /// Version, e.g. `v1`; empty for paths that are no resource.
    pub version: String,
    /// Plural name; empty for paths that are no resource.
    pub resource: String,
    /// E.g. `status`; empty without one.
    pub subresource: String,
    /// Empty for cluster scope and all namespaces.
    pub namespace: String,
    /// Empty for collections, and so for creations too.
    pub name: String,
    /// Media type of the body, e.g. of a patch; empty without one.
    pub content_type: String,
    /// Who asks.
    pub user: String,
    /// The `User-Agent`.
    pub user_agent: String,
}

/// A request as the handlers read it.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) info: RequestInfo,
    pub(super) target: Target,
    pub(super) method: Method,
    pub(super) query: Query,
    pub(super) accept: String,
    /// The groups of the user.
    pub(super) groups: Vec<String>,
    /// The user is another one than the client.
    pub(super) impersonated: bool,
    /// `If-None-Match`, for discovery.
    pub(super) if_none_match: Option<String>,
    pub(super) body: Bytes,
}

/// The parameters of a query, decoded; the last of equal names wins.
#[derive(Debug, Clone, Default)]
pub(super) struct Query(BTreeMap<String, String>);

/// Headers that make a request that of another user.
const IMPERSONATE_USER: &str = "impersonate-user";
const IMPERSONATE_GROUP: &str = "impersonate-group";

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// `/version`.
    Version,
    /// `/healthz`, `/livez`, `/readyz` and what is below them.
    Health,
    /// `/api` or `/apis`.
    Groups {
        /// `/api`.
        core: bool,
    },
    /// `/apis/<group>`.
    Group(String),
    /// `/api/v1`, `/apis/<group>/<version>`.
    GroupVersion { group: String, version: String },
    /// A resource; the details are in [`RequestInfo`].
    Resource,
    /// Anything else.
    Unknown,
}

impl Query {
    pub(super) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let decode = |text: &str| percent_decode(&text.replace('+', " "));
        Self(
            pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(name, value)| (decode(name), decode(value)))
                .collect(),
        )
    }

    /// A parameter's value; `None` if it is absent or empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Whether a parameter is set to a true value. An empty one counts as true, as in `?watch`.
    pub(super) fn truthy(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| !matches!(value.as_str(), "0" | "f" | "F" | "false" | "FALSE" | "False"))
    }
}

impl Request {
    /// Reads everything but the body.
    pub(super) fn new(number: u64, parts: &http::request::Parts, client: &ClientOptions) -> Self {
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let (target, mut info) = parse_path(parts.uri.path());
        info.verb = match target {
            Target::Resource => resource_verb(&parts.method, &info, &query).to_owned(),
            _ => parts.method.as_str().to_lowercase(),
        };
        info.number = number;
        info.path = parts.uri.path().to_owned();
        info.query = parts.uri.query().unwrap_or_default().to_owned();
        info.content_type = media_type(header_text(&parts.headers, header::CONTENT_TYPE).unwrap_or_default());
        let impersonated = header_text(&parts.headers, IMPERSONATE_USER);
        info.user = impersonated.unwrap_or(&client.user).to_owned();
        info.user_agent = header_text(&parts.headers, header::USER_AGENT).unwrap_or(&client.user_agent).to_owned();
        Self {
            info,
            target,
            method: parts.method.clone(),
            query,
            accept: header_text(&parts.headers, header::ACCEPT).unwrap_or_default().to_owned(),
            groups: if impersonated.is_some() { impersonated_groups(&parts.headers) } else { client.groups.clone() },
            impersonated: impersonated.is_some(),
            if_none_match: header_text(&parts.headers, header::IF_NONE_MATCH).map(str::to_owned),
            body: Bytes::new(),
        }
    }

    /// Whether nothing may be stored.
    pub(super) fn is_dry_run(&self) -> bool {
        self.query.get("dryRun").is_some()
    }

    /// Whether the answer is for people.
    pub(super) fn is_pretty(&self) -> bool {
        let agents = ["curl", "Wget", "Mozilla/5.0"];
        self.query.truthy("pretty") || agents.iter().any(|agent| self.info.user_agent.starts_with(agent))
    }

    /// Who owns the fields that this request writes.
    pub(super) fn field_manager(&self) -> &str {
        let agent = self.info.user_agent.split('/').next().unwrap_or_default();
        self.query.get("fieldManager").unwrap_or(if agent.is_empty() { "unknown" } else { agent })
    }
}

impl RequestInfo {
    /// Whether the request changes nothing.
    pub fn is_read(&self) -> bool {
        matches!(self.verb.as_str(), "get" | "list" | "watch" | "head" | "options")
    }

    fn empty() -> Self {
        Self {
            number: 0,
            verb: String::new(),
            path: String::new(),
            query: String::new(),
            group: String::new(),
            version: String::new(),
            resource: String::new(),
            subresource: String::new(),
            namespace: String::new(),
            name: String::new(),
            content_type: String::new(),
            user: String::new(),
            user_agent: String::new(),
        }
    }
}

fn impersonated_groups(headers: &HeaderMap) -> Vec<String> {
    let groups = headers.get_all(IMPERSONATE_GROUP).iter().filter_map(|group| group.to_str().ok());
    groups.map(str::to_owned).chain(["system:authenticated".to_owned()]).collect()
}

fn header_text(headers: &HeaderMap, name: impl header::AsHeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn media_type(text: &str) -> String {
    text.split(';').next().unwrap_or_default().trim().to_lowercase()
}

fn resource_verb(method: &Method, info: &RequestInfo, query: &Query) -> &'static str {
    let one = !info.name.is_empty();
    match *method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if one => "delete",
        Method::DELETE => "deletecollection",
        _ if one => "get",
        _ if query.truthy("watch") => "watch",
        _ => "list",
    }
}

fn parse_path(path: &str) -> (Target, RequestInfo) {
    let mut info = RequestInfo::empty();
    let parts: Vec<String> = path.split('/').filter(|part| !part.is_empty()).map(percent_decode).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let rest = match parts.as_slice() {
        ["version"] => return (Target::Version, info),
        ["healthz" | "livez" | "readyz", ..] => return (Target::Health, info),
        ["api"] => return (Target::Groups { core: true }, info),
        ["apis"] => return (Target::Groups { core: false }, info),
        ["apis", group] => return (Target::Group((*group).to_owned()), info),
        ["api", version, rest @ ..] => {
            info.version = (*version).to_owned();
            rest
        }
        ["apis", group, version, rest @ ..] => {
            info.group = (*group).to_owned();
            info.version = (*version).to_owned();
            rest
        }
        _ => return (Target::Unknown, info),
    };
    // `/namespaces/<name>/status` and `/finalize` belong to the namespace, everything else there is inside of it.
    let rest = match rest {
        [] => {
            let target = Target::GroupVersion { group: info.group.clone(), version: info.version.clone() };
            return (target, info);
        }
        ["namespaces", _, "status" | "finalize"] => rest,
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => {
            info.namespace = (*namespace).to_owned();
            rest
        }
        _ => rest,
    };
    info.resource = rest.first().copied().unwrap_or_default().to_owned();
    info.name = rest.get(1).copied().unwrap_or_default().to_owned();
    info.subresource = rest.get(2..).map(|rest| rest.join("/")).unwrap_or_default();
    (Target::Resource, info)
}

/// Replaces `%XX`; what is no valid escape or no UTF-8 stays as it is.
fn percent_decode(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match escape.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_resources() {
        // path → group, version, resource, namespace, name, subresource
        let table = [
            ("/api/v1/pods", ["", "v1", "pods", "", "", ""]),
            ("/api/v1/namespaces/a/pods/p/status", ["", "v1", "pods", "a", "p", "status"]),
            ("/api/v1/namespaces/a", ["", "v1", "namespaces", "", "a", ""]),
            ("/api/v1/namespaces/a/finalize", ["", "v1", "namespaces", "", "a", "finalize"]),
            ("/apis/apps/v1/namespaces/a/deployments", ["apps", "v1", "deployments", "a", "", ""]),
            (
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
                ["rbac.authorization.k8s.io", "v1", "clusterroles", "", "system:node", ""],
            ),
        ];
        for (path, [group, version, resource, namespace, name, subresource]) in table {
            let (target, info) = parse_path(path);

            assert_eq!(target, Target::Resource, "{path}");
            assert_eq!(
                [&info.group, &info.version, &info.resource, &info.namespace, &info.name, &info.subresource],
                [group, version, resource, namespace, name, subresource],
                "{path}"
            );
        }
    }

    #[test]
    fn paths_without_a_resource_are_distinguished() {
        assert_eq!(parse_path("/version").0, Target::Version);
        assert_eq!(parse_path("/readyz/ping").0, Target::Health);
        assert_eq!(parse_path("/apis").0, Target::Groups { core: false });
        assert_eq!(parse_path("/apis/apps").0, Target::Group("apps".into()));
        assert_eq!(parse_path("/api/v1").0, Target::GroupVersion { group: String::new(), version: "v1".into() });
        assert_eq!(parse_path("/metrics").0, Target::Unknown);
    }

    #[test]
    fn queries_are_decoded() {
        let query = Query::parse("labelSelector=a%3Db%2Cc+in+%28d%29&watch&limit=&dryRun=All");

        assert_eq!(query.get("labelSelector"), Some("a=b,c in (d)"));
        assert!(query.truthy("watch"));
        assert_eq!(query.get("limit"), None);
        assert!(!Query::parse("watch=false").truthy("watch"));
    }
}
