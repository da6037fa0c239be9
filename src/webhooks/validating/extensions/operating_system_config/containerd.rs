//! The configuration of containerd (spec 62 §7.1, from rule 5 on).

use std::collections::BTreeSet;

use kit::quote::cut;
use serde::Deserialize;

use super::super::rules::{each_invalid, one_of, required};
use crate::api::meta::field::{
    Errors, Json, Opaque, Path, Shown,
    formats::dns_subdomain,
    shapes::{List, Part, Text},
    url,
};

/// The upstream that stands for all unnamed ones.
const DEFAULT_UPSTREAM: &str = "_default";
const CAPABILITIES: [&str; 3] = ["push", "pull", "resolve"];
const OPERATIONS: [&str; 2] = ["add", "remove"];

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Containerd<'a> {
    #[serde(borrow)]
    sandbox_image: Text<'a>,
    registries: List<Part<Registry<'a>>>,
    plugins: List<Part<Plugin<'a>>>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Registry<'a> {
    #[serde(borrow)]
    upstream: Text<'a>,
    server: Option<Text<'a>>,
    hosts: List<Part<Host<'a>>>,
    readiness_probe: Option<bool>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Host<'a> {
    #[serde(borrow)]
    url: Text<'a>,
    capabilities: List<Text<'a>>,
    ca_certs: List<Text<'a>>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Plugin<'a> {
    #[serde(borrow)]
    op: Option<Text<'a>>,
    path: List<Text<'a>>,
    values: Option<Opaque<'a>>,
}

impl Containerd<'_> {
    pub(super) fn check(&self, path: &Path<'_>, errors: &mut Errors) {
        required(&path.child("sandboxImage"), &self.sandbox_image, errors);
        let (registries, plugins) = (path.child("registries"), path.child("plugins"));
        let mut upstreams = BTreeSet::new();
        for (at, registry) in self.registries.iter().enumerate() {
            let path = registries.at(at);
            if !upstreams.insert(&registry.upstream) {
                errors.duplicate(&path.child("upstream"), Shown::Text(&registry.upstream));
            }
            registry.check(&path, errors);
        }
        for (at, plugin) in self.plugins.iter().enumerate() {
            plugin.check(&plugins.at(at), errors);
        }
    }
}

impl Registry<'_> {
    fn check(&self, path: &Path<'_>, errors: &mut Errors) {
        if *self.upstream != *DEFAULT_UPSTREAM {
            check_upstream(&path.child("upstream"), &self.upstream, errors);
        }
        if let Some(server) = &self.server {
            check_url(&path.child("server"), server, true, errors);
        }
        let hosts = path.child("hosts");
        for (at, host) in self.hosts.iter().enumerate() {
            let path = hosts.at(at);
            check_url(&path.child("url"), &host.url, false, errors);
            let capabilities = path.child("capabilities");
            for (at, capability) in host.capabilities.iter().enumerate() {
                one_of(&capabilities.at(at), capability, &CAPABILITIES, errors);
            }
        }
    }
}

/// Rule 7: `<host>[:<port>]`.
fn check_upstream(path: &Path<'_>, upstream: &str, errors: &mut Errors) {
    let is_port = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (host, port) = match upstream.rsplit_once(':') {
        Some((host, port)) if is_port(port) => (host, Some(port)),
        _ => (upstream, None),
    };
    let in_range = |port: &str| !port.starts_with('0') && port.parse::<u16>().is_ok();
    if let Some(port) = port.filter(|port| !in_range(port)) {
        let detail = format!("port '{}' is not valid, valid port must be in the range [1, 65535]", cut(port));
        errors.invalid(path, Shown::Text(upstream), detail);
    }
    each_invalid(path, upstream, dns_subdomain(host), errors);
}

/// Rules 8 to 11.
fn check_url(path: &Path<'_>, text: &str, with_scheme: bool, errors: &mut Errors) {
    const FORM: &str = "desired format: https://host[:port]";

    let url = match url::parse(text) {
        Ok(url) => url,
        Err(why) => return errors.required(path, &format!("url must be a valid URL: {why}; {FORM}")),
    };
    if with_scheme && !["http", "https"].contains(&&*url.scheme) {
        errors.unsupported(path, Shown::Text(&url.scheme), &["http", "https"]);
    }
    if url.host.is_empty() {
        errors.invalid(path, Shown::Text(""), format_args!("host must be provided; {FORM}"));
    }
}

impl Plugin<'_> {
    /// Rules 13a to 13d.
    fn check(&self, path: &Path<'_>, errors: &mut Errors) {
        if let Some(op) = &self.op {
            one_of(&path.child("op"), op, &OPERATIONS, errors);
        }
        if self.path.is_empty() {
            errors.required(&path.child("path"), "must provide a path");
        }
        let Some(Opaque(values)) = &self.values else { return };
        let path = path.child("values");
        if self.op.as_deref() == Some("remove") {
            errors.forbidden(&path, "values must not be specified when 'remove' operation is used");
        } else if !matches!(values, Json::Map(_)) {
            // The rule demands that the value is repeated. Values are confidential in reports of changes, but a value
            // that is not a map configures nothing, and its author must see the mistake.
            let text = serde_json::to_string(values).unwrap_or_default();
            errors.invalid(&path, Shown::Text(&text), "provided values must be given in json format");
        }
    }
}
