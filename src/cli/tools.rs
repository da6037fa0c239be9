//! The commands and their options. The comments of variants and options are the texts of the help.

#![allow(rustdoc::broken_intra_doc_links, reason = "the help shows defaults in brackets")]

use clap::{Args, Subcommand, ValueEnum};
use cluster::object::NamespacedName;

use super::{
    epilogue::epilogue,
    operator_tools::{
        CompletionOptions, ConnectionOptions, DescribeOptions, EventsOptions, ReconcileOptions, SelectionOptions,
        TraceOptions, VersionOptions,
    },
    webhook::WebhookTool,
};

const PATHS: &str = "Files and directories; - reads standard input. Directories are read recursively, in sorted order: \
     *.yaml, *.yml and *.json";

/// A command for authors of bundles, or for operators.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Tool {
    /// Pack manifests into a ManagedResource and its Secret, ready for kubectl apply.
    ///
    /// The Secret is immutable, and its name ends with a checksum of its content: the same manifests always give the
    /// same output.
    #[command(
        about = "Pack manifests into a ManagedResource and its Secret",
        after_long_help = epilogue(
            &["pack manifests/ --name web -n garden | kubectl apply -f -"],
            "a manifest was rejected",
        )
    )]
    Pack(PackOptions),
    /// Print the manifests of a bundle.
    #[command(
        long_about = "Print the manifests of a bundle as YAML: of Secrets in files, or of a ManagedResource in the \
            cluster. They are decoded as the controller decodes them.",
        after_long_help = epilogue(
            &["unpack bundle.yaml", "unpack --managed-resource garden/web --list"],
            "a document is not a manifest",
        )
    )]
    Unpack(UnpackOptions),
    /// Check manifests, bundles and configuration files, without a cluster.
    #[command(
        long_about = "Check manifests, ManagedResources, their Secrets and component configurations for mistakes, \
            without a cluster.\n\n\
            Each finding is one line: <file>[:<document>] <object>: <problem> — <what to do>. The manifests in a \
            Secret are checked if a ManagedResource references it, or if it looks like part of a bundle.",
        after_long_help = epilogue(&["validate manifests/"], "errors were found (warnings alone: 0)")
    )]
    Validate(ValidateOptions),
    /// Show what the controller would change in the target cluster, object by object. Nothing is written, and values of
    /// Secrets are not shown.
    ///
    /// The bundle comes from files, or from the cluster with --managed-resource. If the files do not contain a
    /// ManagedResource, --name says which one they belong to.
    ///
    /// A field that only the live object has is taken for a default of the API server, unless another field manager owns
    /// it or the bundle in the cluster sets it.
    #[command(
        about = "Show what the controller would change in the target cluster",
        after_long_help = epilogue(
            &["diff manifests/ --name garden/web", "diff --managed-resource garden/web"],
            "there are differences",
        )
    )]
    Diff(DiffOptions),
    /// List ManagedResources with their conditions and the first problem of each. Nothing is written.
    ///
    /// All is well if APPLIED and HEALTHY are True and PROGRESSING is False. Otherwise PROBLEM shows the first condition
    /// that differs, truncated to the width of the terminal. An asterisk (True*) marks a condition that was reported for
    /// an older generation of the ManagedResource; a dash marks a missing condition.
    #[command(
        about = "List ManagedResources with their conditions and the first problem of each",
        after_long_help = epilogue(
            &["get -A --unhealthy --watch", "get -n garden web -o wide"],
            "a ManagedResource of this name does not exist",
        )
    )]
    Get(GetOptions),
    /// Show a ManagedResource: its conditions, its Events, and the state of its objects in the target cluster. Nothing is
    /// written.
    ///
    /// Objects are read and judged as the controller does it: healthy, progressing, unhealthy, missing, unknown (they
    /// cannot be read), or present (nothing but their existence is checked). Old Pods of a Deployment are not counted.
    /// With --tree, the Secrets are read too, and each object stands below the document that it comes from.
    #[command(
        about = "Show a ManagedResource with its conditions, Events and objects",
        after_long_help = epilogue(
            &["describe garden/web", "describe -n garden web --tree", "describe garden/web -o json"],
            "the ManagedResource does not exist",
        )
    )]
    Describe(DescribeOptions),
    /// List the Events about ManagedResources, the oldest first.
    #[command(
        long_about = "List the Events about ManagedResources, the oldest first. Nothing is written. API servers delete an \
            Event after an hour, unless they are configured otherwise.",
        after_long_help = epilogue(&["events -A", "events garden/web"], "")
    )]
    Events(EventsOptions),
    /// Find the ManagedResource, the Secret and the document that an object of the target cluster comes from. Nothing is
    /// written.
    ///
    /// The origin annotation of the object names the ManagedResource, or the status of the ManagedResource names the
    /// object. Documents are counted from 1.
    #[command(
        about = "Find the ManagedResource, Secret and document of an object",
        after_long_help = epilogue(
            &["trace Deployment/web -n garden", "trace ClusterRole.rbac.authorization.k8s.io/web"],
            "no ManagedResource has the object",
        )
    )]
    Trace(TraceOptions),
    /// Let the controller ignore ManagedResources, until they are resumed.
    #[command(
        long_about = "Set the annotation resources.gardener.cloud/ignore=true of ManagedResources: the controller touches \
            neither them nor their objects until they are resumed. A deletion goes on all the same.",
        after_long_help = epilogue(&["suspend web -n garden", "suspend -l app=web"], "a ManagedResource was not changed")
    )]
    Suspend(SelectionOptions),
    /// Let the controller look after suspended ManagedResources again.
    #[command(
        long_about = "Remove the annotation resources.gardener.cloud/ignore of ManagedResources. The controller reconciles \
            them at once.",
        after_long_help = epilogue(&["resume web -n garden", "resume -l app=web"], "a ManagedResource was not changed")
    )]
    Resume(SelectionOptions),
    /// Ask the controller to reconcile ManagedResources now.
    ///
    /// Sets the annotation gardener.cloud/operation=reconcile, which the controller removes when it begins. With --wait,
    /// waits until the annotation is gone and ResourcesApplied is True for the current generation. If it was True before,
    /// the reconcile may not be over then.
    #[command(
        about = "Ask the controller to reconcile ManagedResources now",
        after_long_help = epilogue(
            &["reconcile web -n garden --wait", "reconcile -l app=web"],
            "a ManagedResource was not changed, or was not applied in time",
        )
    )]
    Reconcile(ReconcileOptions),
    /// Show what the garbage collector would delete.
    #[command(
        long_about = "Show the collectable Secrets and ConfigMaps that nothing refers to: what the garbage collector \
            would delete if it ran now. Nothing is written. The command reads all namespaces, whatever \
            targetClientConnection.namespaces of the configuration says.\n\n\
            Collectable are objects with the label resources.gardener.cloud/garbage-collectable-reference=true that are \
            at least 10 minutes old. Annotations reference.resources.gardener.cloud/secret-<hash> and configmap-<hash> \
            of workloads, ManagedResources and Prometheuses keep them.",
        after_long_help = epilogue(&["garbage"], "")
    )]
    Garbage(GarbageOptions),
    /// Show which NetworkPolicies the controller writes for a Service, and why. Nothing is written.
    ///
    /// In a cluster, STATE compares them with the existing policies: right, missing, differs, taken (another Service has
    /// the name), obsolete (the controller deletes it), or kept (it may come from an annotation or a Gateway that cannot
    /// be read at present). With -f, the policies follow from files alone; without SERVICE, those of all Services in the
    /// files are shown.
    #[command(
        about = "Show which NetworkPolicies a Service should have, and why",
        after_long_help = epilogue(
            &["policies garden/etcd-main-client", "policies -f manifests/ --config config.yaml"],
            "a policy is not as it should be, an annotation cannot be read, or there is no such Service",
        )
    )]
    Policies(PoliciesOptions),
    /// Print the version and the details of the build.
    #[command(
        long_about = "Print the version and the details of the build.",
        after_long_help = epilogue(&["version", "version -o json"], "")
    )]
    Version(VersionOptions),
    /// Print a script that completes commands and flags in a shell.
    #[command(
        long_about = "Print a script that completes commands and flags in a shell.",
        after_long_help = epilogue(&["completion bash > /etc/bash_completion.d/gardener-resource-manager"], "")
    )]
    Completion(CompletionOptions),
    /// Try and register webhooks, without a cluster.
    #[command(subcommand, arg_required_else_help = false)]
    Webhook(WebhookTool),
}

/// Options of `pack`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct PackOptions {
    /// Files and directories; - reads standard input.
    #[arg(value_name = "FILE|DIR", long_help = PATHS, required = true)]
    pub paths: Vec<String>,
    /// Name of the ManagedResource.
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// Namespace of both objects [default: that of kubectl apply]
    #[arg(long, short, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// Class of the ManagedResource [default: resources]
    #[arg(long, value_name = "CLASS")]
    pub class: Option<String>,
    /// Print only the Secret.
    #[arg(long, hide_short_help = true)]
    pub secret_only: bool,
    /// Do not compress the manifests.
    #[arg(long, hide_short_help = true)]
    pub plain: bool,
    /// Write to a file that only you may read, instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<String>,
}

/// Options of `unpack`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct UnpackOptions {
    /// Files and directories; - reads standard input.
    #[arg(value_name = "FILE|DIR", long_help = PATHS)]
    #[arg(required_unless_present = "managed_resource")]
    #[arg(conflicts_with_all = ["managed_resource", "kubeconfig", "context"])]
    pub paths: Vec<String>,
    /// Read the Secrets of this ManagedResource from the cluster.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = namespaced_name)]
    pub managed_resource: Option<NamespacedName>,
    /// Print a table instead: kind, namespace, name, data key, bytes.
    #[arg(long)]
    pub list: bool,
    /// The connection to the cluster.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

/// Options of `validate`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct ValidateOptions {
    /// Files and directories; - reads standard input.
    #[arg(value_name = "FILE|DIR", long_help = PATHS, required = true)]
    pub paths: Vec<String>,
}

/// Options of `diff`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct DiffOptions {
    /// Files and directories; - reads standard input.
    #[arg(value_name = "FILE|DIR", long_help = PATHS)]
    #[arg(required_unless_present = "managed_resource", conflicts_with = "managed_resource")]
    pub paths: Vec<String>,
    /// Compare this ManagedResource as it is in the cluster.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = namespaced_name)]
    pub managed_resource: Option<NamespacedName>,
    /// ManagedResource that the files belong to.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = namespaced_name, conflicts_with = "managed_resource")]
    pub name: Option<NamespacedName>,
    /// The connection to the cluster.
    #[command(flatten)]
    pub connection: ConnectionOptions,
    /// Kubeconfig of the target cluster [default: the source cluster]
    #[arg(long, value_name = "FILE")]
    pub target_kubeconfig: Option<String>,
    /// The controller's setting controllers.clusterID [default: none]
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true, hide_short_help = true)]
    pub cluster_id: String,
    /// The controller's setting controllers.managedResource.managedByLabelValue [default: gardener]
    #[arg(long, value_name = "VALUE", hide_short_help = true)]
    pub managed_by: Option<String>,
}

/// Options of `get`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct GetOptions {
    /// Names of ManagedResources [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Namespace of the ManagedResources [default: that of the kubeconfig's context]
    #[arg(long, short, value_name = "NAMESPACE", conflicts_with = "all_namespaces")]
    pub namespace: Option<String>,
    /// List ManagedResources in all namespaces.
    #[arg(long, short = 'A', conflicts_with = "names")]
    pub all_namespaces: bool,
    /// Label selector, e.g. app=web,tier!=test.
    #[arg(long, short = 'l', value_name = "SELECTOR", conflicts_with = "names")]
    pub selector: Option<String>,
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
    /// Output format [default: a table]
    #[arg(long, short, value_name = "FORMAT")]
    pub output: Option<OutputFormat>,
    /// Do not print the column headers.
    #[arg(long, hide_short_help = true)]
    pub no_headers: bool,
    /// The connection to the cluster.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

/// Options of `garbage`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct GarbageOptions {
    /// Accepted, no effect: this command never deletes.
    #[arg(long, hide = true)]
    pub dry_run: bool,
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
    #[arg(long, short, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// Read objects from files and directories instead of a cluster; - reads standard input.
    #[arg(long = "file", short, value_name = "FILE|DIR", conflicts_with_all = ["kubeconfig", "context"])]
    pub files: Vec<String>,
    /// Configuration whose controllers.networkPolicy counts [default: the defaults of all settings]
    #[arg(long, value_name = "FILE")]
    pub config: Option<String>,
    /// Output format [default: a table]
    #[arg(long, short, value_name = "FORMAT")]
    pub output: Option<PoliciesFormat>,
    /// The connection to the cluster.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

/// Output format of `get`, other than the table that is cut to the width of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// The table, with PROBLEM in full.
    Wide,
    /// The objects as JSON.
    Json,
    /// The objects as YAML.
    Yaml,
    /// Names only, one per line.
    Name,
}

/// Output format of `policies`, other than the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PoliciesFormat {
    /// The policies as YAML.
    Yaml,
}

fn namespaced_name(text: &str) -> Result<NamespacedName, &'static str> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(NamespacedName::new(namespace, name))
        }
        _ => Err("must be <namespace>/<name>"),
    }
}

fn service(text: &str) -> Result<String, &'static str> {
    let mut parts = text.split('/');
    let is_name = parts.clone().count() <= 2 && parts.all(|part| !part.is_empty());
    if is_name { Ok(text.to_owned()) } else { Err("must be <service> or <namespace>/<service>") }
}
