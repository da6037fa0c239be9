//! What all commands share: how ManagedResources, files, clusters and formats are named. Comments are texts of the help.

#![allow(rustdoc::broken_intra_doc_links, reason = "the help shows defaults in brackets")]

use std::{ffi::OsStr, str::FromStr, time::Duration};

use clap::{
    Args,
    builder::{NonEmptyStringValueParser, TypedValueParser},
    error::ErrorKind,
};
use kit::{
    credentials::is_content,
    duration::{DurationError, GoDuration},
};

use super::format::{FormatParser, ReportFormat};
use crate::api::meta::field::formats::{dns_label, dns_subdomain};

const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// How a command reaches a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct ConnectionOptions {
    /// Kubeconfig of the cluster [default: $KUBECONFIG, ~/.kube/config, in-cluster]
    #[arg(long, value_name = "FILE", value_parser = PATH)]
    pub kubeconfig: Option<String>,
    /// Context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME", value_parser = NAME)]
    pub context: Option<String>,
    /// Cluster of the kubeconfig [default: that of the context]
    #[arg(long, value_name = "NAME", value_parser = NAME, hide_short_help = true)]
    pub cluster: Option<String>,
    /// User of the kubeconfig [default: that of the context]
    #[arg(long, value_name = "NAME", value_parser = NAME, hide_short_help = true)]
    pub user: Option<String>,
    /// Time limit of a request, e.g. 30s; 0 for none [default: 15s]
    #[arg(long, value_name = "DURATION", default_value = "15s", hide_default_value = true, hide_short_help = true)]
    pub request_timeout: RequestTimeout,
}

/// How a command reaches the source cluster and the target cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct ClustersOptions {
    /// Kubeconfig of the target cluster [default: the source cluster]
    #[arg(long, value_name = "FILE", value_parser = PATH)]
    pub target_kubeconfig: Option<String>,
    /// The connection to the source cluster.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

/// Which ManagedResources a command is about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct SelectionOptions {
    /// Names of ManagedResources
    #[arg(value_name = "[NAMESPACE/]NAME", value_parser = managed_resource)]
    #[arg(conflicts_with_all = ["selector", "all_namespaces"])]
    pub names: Vec<String>,
    /// Namespace of the ManagedResources [default: that of the kubeconfig's context]
    #[arg(long, short, value_name = "NAMESPACE", value_parser = namespace, conflicts_with = "all_namespaces")]
    pub namespace: Option<String>,
    /// Select ManagedResources in all namespaces
    #[arg(long, short = 'A')]
    pub all_namespaces: bool,
    /// Label selector instead of names, e.g. app=web,tier!=test
    #[arg(long, short = 'l', value_name = "SELECTOR", value_parser = selector)]
    pub selector: Option<String>,
}

/// How a report is printed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct ReportOptions {
    /// Output format [default: a text]
    #[arg(long, short, value_name = "FORMAT", value_parser = FormatParser::<ReportFormat>::new())]
    pub output: Option<ReportFormat>,
}

/// Time limit of one request to a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestTimeout(Duration);

impl SelectionOptions {
    /// Whether names are written with different namespaces.
    pub(super) fn has_several_namespaces(&self) -> bool {
        let mut given = self.names.iter().filter_map(|name| Some(name.split_once('/')?.0));
        let first = given.next();
        given.any(|namespace| Some(namespace) != first)
    }

    /// Whether `-n` has no effect, because each name is written with a namespace, and one of them is another.
    pub(super) fn has_another_namespace(&self) -> bool {
        let Some(namespace) = &self.namespace else { return false };
        let given: Option<Vec<_>> = self.names.iter().map(|name| Some(name.split_once('/')?.0)).collect();
        given.is_some_and(|given| given.iter().any(|given| given != namespace))
    }
}

impl RequestTimeout {
    /// Returns the limit. None is a year, so that deadlines can be computed.
    pub fn get(self) -> Duration {
        const NONE: Duration = Duration::from_secs(365 * 24 * 3600);
        if self.0.is_zero() { NONE } else { self.0 }
    }
}

impl Default for RequestTimeout {
    fn default() -> Self {
        Self(DEFAULT_REQUEST_TIMEOUT)
    }
}

impl FromStr for RequestTimeout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        duration(text).map(Self)
    }
}

/// Reads a path or a name. Refuses an empty text, and the content of a file in its place, which it does not repeat.
#[derive(Debug, Clone, Copy)]
pub(super) struct WordParser {
    what: &'static str,
}

/// Reads the path of a file or directory.
pub(super) const PATH: WordParser = WordParser { what: "path" };
/// Reads a name without further rules.
pub(super) const NAME: WordParser = WordParser { what: "name" };

impl TypedValueParser for WordParser {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        let text = NonEmptyStringValueParser::new().parse_ref(command, argument, value)?;
        if is_content(&text) {
            let (argument, what) = (argument.map(ToString::to_string).unwrap_or_default(), self.what);
            let reason = format!("'{argument}' takes a {what}, and this is the content of a file");
            return Err(command.clone().error(ErrorKind::ValueValidation, reason));
        }
        Ok(text)
    }
}

/// Reads `[namespace/]name` of a ManagedResource.
pub(super) fn managed_resource(text: &str) -> Result<String, String> {
    const FORM: &str = "must be <name> or <namespace>/<name>";
    let (given, name) = text.split_once('/').map_or((None, text), |(namespace, name)| (Some(namespace), name));
    if name.contains('/') || name.is_empty() || given == Some("") {
        return Err(FORM.to_owned());
    }
    if let Some(given) = given {
        namespace(given)?;
    }
    match dns_subdomain(name).is_empty() {
        true => Ok(text.to_owned()),
        false => Err(format!("{FORM}, in lower case letters, digits, - and dots")),
    }
}

/// As [`managed_resource`], for commands that also take files.
pub(super) fn bundle(text: &str) -> Result<String, String> {
    managed_resource(text).map_err(|reason| format!("{reason}; files are given with -f"))
}

pub(super) fn namespace(text: &str) -> Result<String, String> {
    match dns_label(text).is_empty() {
        true => Ok(text.to_owned()),
        false => Err("a namespace must be lower case letters, digits and -".to_owned()),
    }
}

/// An empty selector would select everything.
pub(super) fn selector(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() {
        return Err("must not be empty");
    }
    if is_content(text) { Err("must be a selector such as app=web") } else { Ok(text.to_owned()) }
}

/// Longest name of a ManagedResource: those of its Secrets have a prefix and a checksum.
const LONGEST_NAME: usize = 200;

/// Reads the name of a ManagedResource that is made.
pub(super) fn new_name(text: &str) -> Result<String, String> {
    match dns_subdomain(text).is_empty() && text.len() <= LONGEST_NAME {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "a name must be lower case letters, digits, - and ., begin and end with a letter or digit, and have at most \
             {LONGEST_NAME} characters"
        )),
    }
}

pub(super) fn service(text: &str) -> Result<String, &'static str> {
    let mut parts = text.split('/');
    let is_name = parts.clone().count() <= 2 && parts.all(|part| !part.is_empty());
    if is_name && !is_content(text) { Ok(text.to_owned()) } else { Err("must be <service> or <namespace>/<service>") }
}

pub(super) fn kind_and_name(text: &str) -> Result<String, &'static str> {
    match text.split_once('/') {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() && !name.contains('/') && !is_content(text) => {
            Ok(text.to_owned())
        }
        _ => Err("must be <kind>/<name> or <kind>.<group>/<name>"),
    }
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let hint = if is_number { format!(" — write {text}s, {text}m or {text}h") } else { String::new() };
    let parsed: GoDuration = text.parse().map_err(|error: DurationError| format!("{error}{hint}"))?;
    parsed.to_std().ok_or_else(|| "must not be negative".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_a_managed_resource_may_have_a_namespace() {
        for right in ["web", "garden/web", "shoot--a--b/web.v1"] {
            assert_eq!(managed_resource(right), Ok(right.to_owned()));
        }
        for wrong in ["", "/", "a/", "/a", "a/b/c", "Web", "a.b/web", "a b", "-", "../x"] {
            assert!(managed_resource(wrong).is_err(), "{wrong}");
        }
        assert!(bundle("manifests/").is_err_and(|text| text.ends_with("; files are given with -f")));
        assert!(selector(" ").is_err() && selector("a").is_ok());
        for wrong in ["", "Web", "-a", "a_b", "a/b", &"a".repeat(201)] {
            assert!(new_name(wrong).is_err(), "{wrong}");
        }
        assert!(new_name("shoot-core.v1").is_ok());
    }
}
