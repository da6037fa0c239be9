//! The commands and their options. The comments of variants and options are the texts of the help.

#![allow(rustdoc::broken_intra_doc_links, reason = "the help shows defaults in brackets")]

use clap::{ArgGroup, Args, Subcommand};

use super::{
    check::CheckOptions,
    data_format::DataFormat,
    epilogue::epilogue,
    grammar::{
        ClustersOptions, ConnectionOptions, NAME, PATH, ReportOptions, SelectionOptions, bundle, namespace, new_name,
    },
    manual::ManOptions,
    operator_tools::{
        CompletionOptions, DescribeOptions, EventsOptions, GarbageOptions, GetOptions, PoliciesOptions, RequestOptions,
        TraceOptions, VersionOptions, WaitOptions,
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
            &[
                "pack manifests/ --name web -n garden | kubectl apply -f -",
                "pack -f manifests/ --name web -o json --output-file bundle.json",
            ],
            "a manifest was rejected",
        )
    )]
    Pack(PackOptions),
    /// Print the manifests of a bundle.
    #[command(
        long_about = "Print the manifests of a bundle as YAML: of Secrets in files, or of a ManagedResource in the \
            cluster. They are decoded as the controller decodes them.",
        after_long_help = epilogue(
            &["unpack garden/web --list", "unpack -f bundle.yaml", "unpack garden/web -o json"],
            "a document is not a manifest, or the ManagedResource does not exist",
        )
    )]
    Unpack(UnpackOptions),
    /// Check manifests, bundles and configuration files, without a cluster.
    #[command(
        long_about = "Check manifests, ManagedResources, their Secrets and component configurations for mistakes, \
            without a cluster.\n\n\
            Each finding is one line: <file>[:<document>] <object>: <problem> — <what to do>. Documents count from 0, as \
            in the conditions of ManagedResources. The manifests in a Secret are checked if a ManagedResource references \
            it, or if it looks like part of a bundle. Fields are checked for kinds of Kubernetes itself, not for custom \
            resources.",
        after_long_help = epilogue(&["validate manifests/"], "errors were found (warnings alone: 0)")
    )]
    Validate(ValidateOptions),
    /// Show what the controller would change in the target cluster, object by object. Nothing is written, and values of
    /// Secrets are not shown.
    ///
    /// ManagedResources are compared as they are in the cluster. With -f, files are the bundle. If they do not contain a
    /// ManagedResource, NAME says which one they belong to. With -l and -A, all ManagedResources are compared with one
    /// target cluster: --class leaves out those that have another target.
    ///
    /// A warning names objects that belong to another ManagedResource: the last writer wins.
    ///
    /// A field that only the live object has is taken for a default of the API server, unless another field manager owns
    /// it or the bundle in the cluster sets it.
    #[command(
        about = "Show what the controller would change in the target cluster",
        after_long_help = epilogue(
            &["diff garden/web", "diff garden/web -f manifests/", "diff -A --class seed"],
            "there are differences",
        )
    )]
    Diff(DiffOptions),
    /// List ManagedResources with their conditions and the first problem of each. Nothing is written.
    ///
    /// All is well if APPLIED and HEALTHY are True and PROGRESSING is False. Otherwise PROBLEM shows the first condition
    /// that differs, truncated to the width of the terminal. On a narrow terminal, CLASS, OBJECTS and AGE make room for it.
    /// An asterisk (True*) marks a condition that was reported for an older generation of the ManagedResource; a dash
    /// marks a missing condition.
    ///
    /// PROBLEM also says whether a ManagedResource is being deleted, "ignored" for a suspended one, and which others have
    /// the same objects in their status. Of the class "resources" only those of one namespace are compared: each namespace
    /// may have a target cluster of its own. The last two do not count for --unhealthy.
    #[command(
        about = "List ManagedResources with their conditions and the first problem of each",
        after_long_help = epilogue(
            &[
                "get -A --unhealthy --watch",
                "get garden/web -o wide",
                "get -A --sort-by AGE",
                "get -o custom-columns=NAME:.metadata.name,CLASS:.spec.class",
                "get -o jsonpath='{range .items[*]}{.metadata.name}{\"\\n\"}{end}'",
            ],
            "a ManagedResource of this name does not exist",
        )
    )]
    Get(GetOptions),
    /// Show a ManagedResource: its conditions, its Events, and the state of its objects in the target cluster. Nothing is
    /// written.
    ///
    /// Objects are read and judged as the controller does it: healthy, progressing, unhealthy, deleting, missing, unknown
    /// (they cannot be read), or present (nothing but their existence is checked). Old Pods of a Deployment are not
    /// counted. With --tree, the content of the Secrets is read too, and each object stands below the document that it
    /// comes from.
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
    /// object. If several have the object, the annotation names the last writer. Documents are counted from 0, as in
    /// conditions. KIND may be a plural, or a short name of kubectl such as deploy.
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
            neither them nor their objects until they are resumed. A deletion goes on all the same. With --wait, waits \
            until the controller reports that it ignores them: a reconcile that was running is over then.",
        after_long_help = epilogue(
            &["suspend garden/web --wait", "suspend -l app=web -A"],
            "a ManagedResource was not changed, or the controller has not reported it in time",
        )
    )]
    Suspend(RequestOptions),
    /// Let the controller look after suspended ManagedResources again.
    #[command(
        long_about = "Remove the annotation resources.gardener.cloud/ignore of ManagedResources. The controller reconciles \
            them at once. With --wait, waits until they are applied.",
        after_long_help = epilogue(
            &["resume garden/web --wait", "resume -l app=web -n garden"],
            "a ManagedResource was not changed, or was not applied in time",
        )
    )]
    Resume(RequestOptions),
    /// Ask the controller to reconcile ManagedResources now.
    ///
    /// Sets the annotation gardener.cloud/operation=reconcile, which the controller removes when it begins. With --wait,
    /// waits until the annotation is gone and ResourcesApplied is True for the current generation. A reconcile that
    /// changes nothing leaves no trace in the status, so its end cannot be seen: if ResourcesApplied was True before, the
    /// command may end while the reconcile still runs.
    #[command(
        about = "Ask the controller to reconcile ManagedResources now",
        after_long_help = epilogue(
            &["reconcile garden/web --wait", "reconcile -l app=web -n garden"],
            "a ManagedResource was not changed, is suspended, or was not applied in time",
        )
    )]
    Reconcile(RequestOptions),
    /// Wait until ManagedResources are applied, healthy or deleted. Nothing is written.
    ///
    /// A ManagedResource that does not exist, is suspended or is being deleted ends the wait for applied and healthy at
    /// once. A ManagedResource that does not exist counts as deleted, with a warning. -l and -A select from what exists
    /// at the start.
    #[command(
        about = "Wait until ManagedResources are applied, healthy or deleted",
        after_long_help = epilogue(
            &["wait garden/web --for=healthy", "wait -A -l app=web --for=deleted --timeout 10m"],
            "a ManagedResource did not get there in time, or cannot get there",
        )
    )]
    Wait(WaitOptions),
    /// Show what the garbage collector would delete.
    #[command(
        long_about = "Show the collectable Secrets and ConfigMaps that nothing refers to: what the garbage collector \
            would delete if it ran now. Nothing is written. The command reads all namespaces, whatever \
            targetClientConnection.namespaces of the configuration says.\n\n\
            Collectable are objects with the label resources.gardener.cloud/garbage-collectable-reference=true that are \
            at least 10 minutes old. Annotations reference.resources.gardener.cloud/secret-<hash> and configmap-<hash> \
            of workloads, ManagedResources and Prometheuses keep them.",
        after_long_help = epilogue(&["garbage", "garbage -o json"], "")
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
    /// Check what the program with a configuration needs of its clusters: rights, kinds, and its serving certificate. Nothing
    /// is written.
    ///
    /// The command reaches the clusters as the program does: by the kubeconfigs of the configuration file and the environment
    /// variables of the program. Run it where the program runs, for example with kubectl exec. For each right it asks the API
    /// server with a SelfSubjectAccessReview. Rights on the objects in bundles are not among them.
    ///
    /// RESULT is ok, missing, or note: the program does without it, or waits for it. Only missing changes the exit code.
    #[command(
        about = "Check rights, kinds and certificate that the program needs",
        after_long_help = epilogue(
            &["check --config config.yaml", "check --config config.yaml -o json"],
            "a right, a kind or a cluster is missing, or the certificate is unreadable or not valid now",
        )
    )]
    Check(CheckOptions),
    /// Print the version and the details of the build.
    #[command(
        long_about = "Print the version and the details of the build.",
        after_long_help = epilogue(&["version", "version -o json"], "")
    )]
    Version(VersionOptions),
    /// Write a manual page for each command.
    #[command(
        long_about = "Write a manual page for the program and for each command, in section 1: \
            gardener-resource-manager.1, gardener-resource-manager-get.1 … A directory that does not exist is made; \
            pages that exist are overwritten.",
        after_long_help = epilogue(&["man ~/.local/share/man/man1"], "")
    )]
    Man(ManOptions),
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

impl Tool {
    /// Fails for options that contradict each other in a way that their declarations do not say.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        match self {
            Self::Diff(options) if !options.files.is_empty() && options.selection.names.len() > 1 => {
                Err("files with -f are one bundle — name one ManagedResource")
            }
            Self::Get(options)
                if (options.watch || options.watch_only) && options.selection.has_several_namespaces() =>
            {
                Err("a watch of names is in one namespace — name it once with -n")
            }
            _ if self.selection().is_some_and(SelectionOptions::has_another_namespace) => {
                Err("-n and the namespace of a name differ — leave out one of them")
            }
            _ => Ok(()),
        }
    }

    fn selection(&self) -> Option<&SelectionOptions> {
        match self {
            Self::Get(options) => Some(&options.selection),
            Self::Diff(options) => Some(&options.selection),
            Self::Suspend(options) | Self::Resume(options) | Self::Reconcile(options) => Some(&options.selection),
            Self::Wait(options) => Some(&options.selection),
            _ => None,
        }
    }
}

/// Options of `pack`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct PackOptions {
    /// Files and directories; - reads standard input.
    #[arg(value_name = "FILE|DIR", value_parser = PATH, long_help = PATHS, required_unless_present = "files")]
    pub paths: Vec<String>,
    /// A file or directory, as with kubectl; may be repeated.
    #[arg(long = "filename", short = 'f', value_name = "FILE|DIR", value_parser = PATH, hide_short_help = true)]
    pub files: Vec<String>,
    /// Name of the ManagedResource.
    #[arg(long, value_name = "NAME", value_parser = new_name)]
    pub name: String,
    /// Namespace of both objects [default: that of kubectl apply]
    #[arg(long, short, value_name = "NAMESPACE", value_parser = namespace)]
    pub namespace: Option<String>,
    /// Class of the ManagedResource [default: resources]
    #[arg(long, value_name = "CLASS", value_parser = NAME)]
    pub class: Option<String>,
    /// Print only the Secret.
    #[arg(long, hide_short_help = true)]
    pub secret_only: bool,
    /// Do not compress the manifests.
    #[arg(long, hide_short_help = true)]
    pub plain: bool,
    /// Output format [default: yaml]
    #[arg(long, short, value_name = "FORMAT")]
    pub output: Option<DataFormat>,
    /// Write to a file that only you may read, instead of standard output.
    #[arg(long, value_name = "FILE", value_parser = PATH)]
    pub output_file: Option<String>,
}

/// Options of `unpack`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
#[command(group = ArgGroup::new("bundle").args(["name", "files"]).required(true))]
pub struct UnpackOptions {
    /// The ManagedResource whose Secrets are read from the cluster.
    #[arg(value_name = "[NAMESPACE/]NAME", value_parser = bundle)]
    pub name: Option<String>,
    /// Namespace of the ManagedResource [default: that of the kubeconfig's context]
    #[arg(long, short, value_name = "NAMESPACE", value_parser = namespace, conflicts_with = "files")]
    pub namespace: Option<String>,
    /// Files and directories with Secrets instead of a cluster; - reads standard input.
    #[arg(long = "filename", short, value_name = "FILE|DIR", value_parser = PATH, long_help = PATHS)]
    #[arg(conflicts_with_all = ["kubeconfig", "context", "cluster", "user"])]
    pub files: Vec<String>,
    /// Print a table instead: kind, namespace, name, data key, bytes.
    #[arg(long)]
    pub list: bool,
    /// How the manifests are printed.
    #[command(flatten)]
    pub report: ReportOptions,
    /// The connection to the cluster.
    #[command(flatten)]
    pub connection: ConnectionOptions,
}

/// Options of `validate`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct ValidateOptions {
    /// Files and directories; - reads standard input.
    #[arg(value_name = "FILE|DIR", value_parser = PATH, long_help = PATHS, required_unless_present = "files")]
    pub paths: Vec<String>,
    /// A file or directory, as with kubectl; may be repeated.
    #[arg(long = "filename", short = 'f', value_name = "FILE|DIR", value_parser = PATH, hide_short_help = true)]
    pub files: Vec<String>,
}

/// Options of `diff`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
#[command(
    group = ArgGroup::new("bundles").args(["names", "files", "selector", "all_namespaces"]).required(true).multiple(true)
)]
pub struct DiffOptions {
    /// Which ManagedResources.
    #[command(flatten)]
    pub selection: SelectionOptions,
    /// Files and directories of one bundle instead of what is in the cluster; - reads standard input.
    #[arg(long = "filename", short, value_name = "FILE|DIR", value_parser = PATH, long_help = PATHS)]
    #[arg(conflicts_with_all = ["selector", "all_namespaces"])]
    pub files: Vec<String>,
    /// Only ManagedResources of this class, with -l or -A [default: all]
    #[arg(long, value_name = "CLASS", value_parser = NAME, conflicts_with_all = ["names", "files"], hide_short_help = true)]
    pub class: Option<String>,
    /// Let the server check new objects too, and estimate nothing.
    #[arg(
        long,
        hide_short_help = true,
        long_help = "Send new objects as dry runs, too, so that the server adds its defaults and admission refuses what it \
            would refuse. Fail instead of estimating if the server does not answer a dry run. Needs the rights to create \
            and update the objects"
    )]
    pub server_side_dry_run: bool,
    /// How the differences are printed.
    #[command(flatten)]
    pub report: ReportOptions,
    /// The connections.
    #[command(flatten)]
    pub clusters: ClustersOptions,
    /// The controller's setting controllers.clusterID [default: none]
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true, hide_short_help = true)]
    pub cluster_id: String,
    /// The controller's setting controllers.managedResource.managedByLabelValue [default: gardener]
    #[arg(long, value_name = "VALUE", hide_short_help = true)]
    pub managed_by: Option<String>,
}
