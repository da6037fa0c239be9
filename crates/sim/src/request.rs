//! What a request asks for: verb, path, query, form of the answer. No state.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, Method, header};
use serde::Serialize;

use super::ClientOptions;

/// Facts of a request that do not depend on stored objects, for fault functions and the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestInfo {
    /// Counts all requests of the simulator from 1, in order of arrival.
    pub number: u64,
    /// `get list watch create update patch delete deletecollection`; other paths: the HTTP method in lower case.
    pub verb: String,
    /// The path, not decoded.
    pub path: String,
    /// The query, not decoded; may be empty.
    pub query: String,
    /// API group; empty for the core group and for paths without a resource.
    pub group: String,
    /// Version, e.g. `v1`; empty for paths without a resource.
    pub version: String,
    /// Plural name; empty for paths without a resource.
    pub resource: String,
    /// E.g. `status`; may be empty.
    pub subresource: String,
    /// Empty for cluster scope and all namespaces.
    pub namespace: String,
    /// Empty for collections and creations.
    pub name: String,
    /// Media type of the body; may be empty.
    pub content_type: String,
    /// The header `Accept`; may be empty.
    pub accept: String,
    /// The user of the request.
    pub user: String,
    /// The `User-Agent`.
    pub user_agent: String,
}

#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) info: RequestInfo,
    pub(super) target: Target,
    pub(super) method: Method,
    pub(super) query: Query,
    pub(super) groups: Vec<String>,
    pub(super) impersonated: bool,
    pub(super) if_none_match: Option<String>,
    pub(super) body: Bytes,
}

/// Decoded parameters of a query; the last of equal names wins.
#[derive(Debug, Clone, Default)]
pub(super) struct Query(BTreeMap<String, String>);

const IMPERSONATE_USER: &str = "impersonate-user";
const IMPERSONATE_GROUP: &str = "impersonate-group";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// `/version`.
    Version,
    /// `/healthz`, `/livez`, `/readyz` and paths below them.
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
    /// The details are in [`RequestInfo`].
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

    /// Returns a parameter, or `None` if it is absent or empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Returns true if a parameter is true. An empty one counts as true, as in `?watch`.
    pub(super) fn truthy(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| !matches!(value.as_str(), "0" | "f" | "F" | "false" | "FALSE" | "False"))
    }
}

impl Request {
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
        info.accept = header_text(&parts.headers, header::ACCEPT).unwrap_or_default().to_owned();
        let impersonated = header_text(&parts.headers, IMPERSONATE_USER);
        info.user = impersonated.unwrap_or(&client.user).to_owned();
        info.user_agent = header_text(&parts.headers, header::USER_AGENT).unwrap_or(&client.user_agent).to_owned();
        Self {
            info,
            target,
            method: parts.method.clone(),
            query,
            groups: if impersonated.is_some() { impersonated_groups(&parts.headers) } else { client.groups.clone() },
            impersonated: impersonated.is_some(),
            if_none_match: header_text(&parts.headers, header::IF_NONE_MATCH).map(str::to_owned),
            body: Bytes::new(),
        }
    }

    pub(super) fn is_dry_run(&self) -> bool {
        self.query.get("dryRun").is_some()
    }

    pub(super) fn is_pretty(&self) -> bool {
        let agents = ["curl", "Wget", "Mozilla/5.0"];
        self.query.truthy("pretty") || agents.iter().any(|agent| self.info.user_agent.starts_with(agent))
    }

    pub(super) fn field_manager(&self) -> &str {
        let agent = self.info.user_agent.split('/').next().unwrap_or_default();
        self.query.get("fieldManager").unwrap_or(if agent.is_empty() { "unknown" } else { agent })
    }
}

impl RequestInfo {
    /// Returns true if the request changes nothing.
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
            accept: String::new(),
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
    // `/namespaces/<name>/status` and `/finalize` belong to the namespace; other paths below it lie inside of it.
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

/// Replaces `%XX`; invalid escapes and invalid UTF-8 stay as they are.
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
