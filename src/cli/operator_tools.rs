//! The options of the commands for operators. The comments are the texts of the help.

#![allow(rustdoc::broken_intra_doc_links, reason = "the help shows defaults in brackets")]

use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};

use super::{
    format::{FormatParser, OutputFormat, SortBy},
    grammar::{
        ClustersOptions, ConnectionOptions, PATH, ReportOptions, SelectionOptions, duration, kind_and_name,
        managed_resource, namespace, service,
    },
};

/// Options of `get`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct GetOptions {
    /// Which ManagedResources.
    #[command(flatten)]
    pub selection: SelectionOptions,
    /// Show only ManagedResources that have a problem.
    #[arg(long)]
    pub unhealthy: bool,
    /// Keep running, and print changes.
    #[arg(
        long,
        short,
        long_help = "Keep running, and print a row again when it changes. A ManagedResource that is deleted has the \
            PROBLEM \"deleted\". With --unhealthy, a ManagedResource that recovers is printed once more"
    )]
    pub watch: bool,
    /// As --watch, without the present state.
    #[arg(long, hide_short_help = true)]
    pub watch_only: bool,
    /// Sort by a column or by a JSONPath, e.g. AGE or .spec.class.
    #[arg(
        long,
        value_name = "COLUMN|JSONPATH",
        conflicts_with_all = ["watch", "watch_only"],
        long_help = "Sort by a column of the table, e.g. AGE, or by a JSONPath, e.g. .spec.class. Numbers are sorted by \
            value, before texts. What lacks the value comes last"
    )]
    pub sort_by: Option<SortBy>,
    /// Output format [default: a table]
    #[arg(long, short, value_name = "FORMAT", value_parser = FormatParser::<OutputFormat>::new())]
    pub output: Option<OutputFormat>,
    /// Do not print the column headers.
    #[arg(long, hide_short_help = true)]
    pub no_headers: bool,
    /// The connection to the cluster.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

/// Options of `describe`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct DescribeOptions {
    /// The ManagedResource.
    #[arg(value_name = "[NAMESPACE/]NAME", value_parser = managed_resource)]
    pub name: String,
    /// Namespace of the ManagedResource [default: that of the kubeconfig's context]
    #[arg(long, short, value_name = "NAMESPACE", value_parser = namespace)]
    pub namespace: Option<String>,
    /// Show each object below the Secret and the document that it comes from.
    #[arg(long)]
    pub tree: bool,
    /// How the description is printed.
    #[command(flatten)]
    pub report: ReportOptions,
    /// The connections.
    #[command(flatten)]
    pub clusters: ClustersOptions,
}

/// Options of `events`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct EventsOptions {
    /// The ManagedResource [default: all]
    #[arg(value_name = "[NAMESPACE/]NAME", value_parser = managed_resource)]
    pub name: Option<String>,
    /// Namespace of the ManagedResources [default: that of the kubeconfig's context]
    #[arg(long, short, value_name = "NAMESPACE", value_parser = namespace, conflicts_with = "all_namespaces")]
    pub namespace: Option<String>,
    /// List the Events of all namespaces.
    #[arg(long, short = 'A', conflicts_with = "name")]
    pub all_namespaces: bool,
    /// How the Events are printed.
    #[command(flatten)]
    pub report: ReportOptions,
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
    #[arg(long, short, value_name = "NAMESPACE", value_parser = namespace)]
    pub namespace: Option<String>,
    /// How the trace is printed.
    #[command(flatten)]
    pub report: ReportOptions,
    /// The connections.
    #[command(flatten)]
    pub clusters: ClustersOptions,
}

/// Options of `suspend`, `resume` and `reconcile`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
#[command(group = ArgGroup::new("managed_resources").args(["names", "selector"]).required(true).multiple(true))]
pub struct RequestOptions {
    /// Which ManagedResources.
    #[command(flatten)]
    pub selection: SelectionOptions,
    /// Wait until the controller has done it, and show what it waits for.
    #[arg(long)]
    pub wait: bool,
    /// How long to wait [default: 5m]
    #[arg(long, value_name = "DURATION", requires = "wait", value_parser = duration, hide_short_help = true)]
    pub timeout: Option<Duration>,
    /// How the results are printed.
    #[command(flatten)]
    pub report: ReportOptions,
    /// The connection to the source cluster.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

/// Options of `wait`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[group(skip)]
#[command(
    group = ArgGroup::new("managed_resources").args(["names", "selector", "all_namespaces"]).required(true).multiple(true)
)]
pub struct WaitOptions {
    /// Which ManagedResources.
    #[command(flatten)]
    pub selection: SelectionOptions,
    /// What to wait for.
    #[arg(long = "for", value_name = "STATE")]
    pub goal: WaitGoal,
    /// How long to wait, with all requests; 0 looks once [default: 5m]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// How the results are printed.
    #[command(flatten)]
    pub report: ReportOptions,
    /// The connection to the source cluster.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

/// What `wait` waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WaitGoal {
    /// ResourcesApplied is True for the current generation.
    Applied,
    /// Applied, and ResourcesHealthy is True.
    Healthy,
    /// It does not exist.
    Deleted,
}

/// Options of `garbage`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct GarbageOptions {
    /// Accepted, no effect: this command never deletes.
    #[arg(long, hide = true)]
    pub dry_run: bool,
    /// How the objects are printed.
    #[command(flatten)]
    pub report: ReportOptions,
    /// The connection to the cluster.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

/// Options of `policies`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct PoliciesOptions {
    /// The Service.
    #[arg(value_name = "[NAMESPACE/]SERVICE", value_parser = service, required_unless_present = "files")]
    pub service: Option<String>,
    /// Namespace of the Service [default: that of the kubeconfig's context; with -f, all]
    #[arg(long, short, value_name = "NAMESPACE", value_parser = namespace)]
    pub namespace: Option<String>,
    /// Read objects from files and directories instead of a cluster; - reads standard input.
    #[arg(long = "filename", visible_alias = "file", short, value_name = "FILE|DIR", value_parser = PATH)]
    #[arg(conflicts_with_all = ["kubeconfig", "context", "cluster", "user"])]
    pub files: Vec<String>,
    /// Configuration whose controllers.networkPolicy counts [default: the defaults of all settings]
    #[arg(long, value_name = "FILE", value_parser = PATH)]
    pub config: Option<String>,
    /// Output format [default: a table]
    #[arg(long, short, value_name = "FORMAT")]
    pub output: Option<PoliciesFormat>,
    /// The connection to the cluster.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

/// Output format of `policies`, other than the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PoliciesFormat {
    /// The policies as YAML, ready for kubectl apply.
    Yaml,
    /// The rows of the table as JSON, each with its policy.
    Json,
}

/// Options of `version`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct VersionOptions {
    /// How the version is printed.
    #[command(flatten)]
    pub report: ReportOptions,
}

/// Options of `completion`.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[group(skip)]
pub struct CompletionOptions {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}
