//! The options of the commands for operators, and of the connection to a cluster. The comments are the texts of the help.

#![allow(rustdoc::broken_intra_doc_links, reason = "the help shows defaults in brackets")]

use std::{str::FromStr, time::Duration};

use clap::{Args, ValueEnum};
use kit::duration::{DurationError, GoDuration};

const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// How a command reaches a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct ConnectionOptions {
    /// Kubeconfig of the cluster [default: $KUBECONFIG, ~/.kube/config, in-cluster]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<String>,
    /// Context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Time limit of a request, e.g. 30s; 0 for none [default: 15s]
    #[arg(long, value_name = "DURATION", default_value = "15s", hide_default_value = true, hide_short_help = true)]
    pub request_timeout: RequestTimeout,
}

/// Time limit of one request to a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestTimeout(Duration);

/// Options of `describe`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct DescribeOptions {
    /// The ManagedResource.
    #[arg(value_name = "[NAMESPACE/]NAME", value_parser = maybe_namespaced)]
    pub name: String,
    /// Namespace of the ManagedResource [default: that of the kubeconfig's context]
    #[arg(long, short, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// Show each object below the Secret and the document that it comes from.
    #[arg(long)]
    pub tree: bool,
    /// Output format [default: a text]
    #[arg(long, short, value_name = "FORMAT")]
    pub output: Option<ReportFormat>,
    /// Kubeconfig of the target cluster [default: the source cluster]
    #[arg(long, value_name = "FILE")]
    pub target_kubeconfig: Option<String>,
    /// The connection to the source cluster.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

/// Options of `events`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct EventsOptions {
    /// The ManagedResource [default: all]
    #[arg(value_name = "[NAMESPACE/]NAME", value_parser = maybe_namespaced)]
    pub name: Option<String>,
    /// Namespace of the ManagedResources [default: that of the kubeconfig's context]
    #[arg(long, short, value_name = "NAMESPACE", conflicts_with = "all_namespaces")]
    pub namespace: Option<String>,
    /// List the Events of all namespaces.
    #[arg(long, short = 'A', conflicts_with = "name")]
    pub all_namespaces: bool,
    /// Output format [default: a table]
    #[arg(long, short, value_name = "FORMAT")]
    pub output: Option<ReportFormat>,
    /// The connection to the source cluster.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

/// Options of `trace`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct TraceOptions {
    /// The object of the target cluster, e.g. Deployment/web or Deployment.apps/web.
    #[arg(value_name = "KIND[.GROUP]/NAME", value_parser = kind_and_name)]
    pub object: String,
    /// Namespace of the object [default: that of the kubeconfig's context]
    #[arg(long, short, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// Output format [default: a text]
    #[arg(long, short, value_name = "FORMAT")]
    pub output: Option<ReportFormat>,
    /// Kubeconfig of the target cluster [default: the source cluster]
    #[arg(long, value_name = "FILE")]
    pub target_kubeconfig: Option<String>,
    /// The connection to the source cluster.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

/// Which ManagedResources `suspend`, `resume` and `reconcile` are about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct SelectionOptions {
    /// The ManagedResources.
    #[arg(value_name = "[NAMESPACE/]NAME", value_parser = maybe_namespaced)]
    #[arg(required_unless_present = "selector", conflicts_with = "selector")]
    pub names: Vec<String>,
    /// Label selector instead of names, e.g. app=web.
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// Namespace of the ManagedResources [default: that of the kubeconfig's context]
    #[arg(long, short, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// The connection to the source cluster.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

/// Options of `reconcile`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct ReconcileOptions {
    /// Which ManagedResources.
    #[command(flatten)]
    pub selection: SelectionOptions,
    /// Wait until the controller has begun, and ResourcesApplied is True.
    #[arg(long)]
    pub wait: bool,
    /// How long to wait [default: 5m]
    #[arg(long, value_name = "DURATION", requires = "wait", value_parser = duration, hide_short_help = true)]
    pub timeout: Option<Duration>,
}

/// Options of `version`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct VersionOptions {
    /// Output format [default: lines]
    #[arg(long, short, value_name = "FORMAT")]
    pub output: Option<ReportFormat>,
}

/// Options of `completion`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[group(skip)]
pub struct CompletionOptions {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// Output format of a report, other than the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// JSON.
    Json,
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

fn maybe_namespaced(text: &str) -> Result<String, &'static str> {
    let mut parts = text.split('/');
    let is_name = parts.clone().count() <= 2 && parts.all(|part| !part.is_empty());
    if is_name { Ok(text.to_owned()) } else { Err("must be <name> or <namespace>/<name>") }
}

fn kind_and_name(text: &str) -> Result<String, &'static str> {
    match text.split_once('/') {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() && !name.contains('/') => Ok(text.to_owned()),
        _ => Err("must be <kind>/<name> or <kind>.<group>/<name>"),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let parsed: GoDuration = text.parse().map_err(|error: DurationError| error.to_string())?;
    parsed.to_std().ok_or_else(|| "must not be negative".to_owned())
}
