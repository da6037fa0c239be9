use clap::{
    Arg, ArgAction, ArgMatches, Command,
    builder::{PossibleValue, PossibleValuesParser},
};
use cluster::object::NamespacedName;

use super::{
    args::{epilogue, option},
    webhook::{self, RegistrationOptions, ReviewOptions},
};

/// A command for authors of bundles, or for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tool {
    /// `pack`: manifests → Secret and ManagedResource.
    Pack(PackOptions),
    /// `unpack`: Secret → manifests.
    Unpack(UnpackOptions),
    /// `validate`: find mistakes without a cluster.
    Validate(ValidateOptions),
    /// `diff`: show what would change in the target cluster.
    Diff(DiffOptions),
    /// `get`: show the status of ManagedResources.
    Get(GetOptions),
    /// `garbage`: show what the garbage collector would delete.
    Garbage(GarbageOptions),
    /// `policies`: show the NetworkPolicies that a Service should have.
    Policies(PoliciesOptions),
    /// `webhook review`: run a webhook on one review, without a cluster.
    Review(ReviewOptions),
    /// `webhook registration`: print the registration of the webhooks.
    Registration(RegistrationOptions),
}

/// Options of `pack`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PackOptions {
    /// Files and folders; `-` is standard input.
    pub paths: Vec<String>,
    /// Name of the ManagedResource.
    pub name: String,
    /// Namespace of both objects; `None` leaves the choice to kubectl.
    pub namespace: Option<String>,
    /// Class of the ManagedResource.
    pub class: Option<String>,
    /// Print only the Secret.
    pub secret_only: bool,
    /// Do not compress.
    pub plain: bool,
    /// File to write to; `None` is standard output.
    pub output: Option<String>,
}

/// Options of `unpack`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnpackOptions {
    /// Files and folders; `-` is standard input.
    pub paths: Vec<String>,
    /// Unpack the Secrets of this ManagedResource in the cluster instead of files.
    pub managed_resource: Option<NamespacedName>,
    /// Kubeconfig of the cluster.
    pub kubeconfig: Option<String>,
    /// Print a table instead of the manifests.
    pub list: bool,
}

/// Options of `validate`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ValidateOptions {
    /// Files and folders; `-` is standard input.
    pub paths: Vec<String>,
}

/// Options of `diff`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiffOptions {
    /// Files and folders; `-` is standard input. Empty if the bundle is in the cluster.
    pub paths: Vec<String>,
    /// Compare the bundle of this ManagedResource in the cluster.
    pub managed_resource: Option<NamespacedName>,
    /// The ManagedResource that the files belong to.
    pub name: Option<NamespacedName>,
    /// Kubeconfig of the source cluster.
    pub kubeconfig: Option<String>,
    /// Kubeconfig of the target cluster; `None`: the target is the source.
    pub target_kubeconfig: Option<String>,
    /// `controllers.clusterID`.
    pub cluster_id: String,
    /// `controllers.managedResource.managedByLabelValue`; `None` is its default.
    pub managed_by: Option<String>,
}

/// Options of `get`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GetOptions {
    /// Names of ManagedResources; empty for all.
    pub names: Vec<String>,
    /// Their namespace; `None` is the namespace of the kubeconfig's context.
    pub namespace: Option<String>,
    /// Show all namespaces.
    pub all_namespaces: bool,
    /// Label selector in the API's syntax.
    pub selector: Option<String>,
    /// Output format.
    pub output: OutputFormat,
    /// Keep running, and print changes.
    pub watch: bool,
    /// Print no column headers.
    pub no_headers: bool,
    /// Show only ManagedResources that have a problem.
    pub unhealthy: bool,
    /// Kubeconfig of the cluster.
    pub kubeconfig: Option<String>,
}

/// Options of `garbage`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GarbageOptions {
    /// Kubeconfig of the target cluster.
    pub kubeconfig: Option<String>,
}

/// Options of `policies`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PoliciesOptions {
    /// `[<namespace>/]<name>`; `None` for all Services of the files.
    pub service: Option<String>,
    /// Namespace of a Service that is named without one; `None` is the namespace of the kubeconfig's context.
    pub namespace: Option<String>,
    /// Files and folders; `-` is standard input. Empty: read the cluster.
    pub files: Vec<String>,
    /// File with the controller's configuration; `None` for the defaults.
    pub config: Option<String>,
    /// Print the policies as YAML.
    pub yaml: bool,
    /// Kubeconfig of the target cluster.
    pub kubeconfig: Option<String>,
}

/// Output format of `get`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutputFormat {
    /// Columns, cut to the width of the terminal.
    #[default]
    Table,
    /// Columns in full width.
    Wide,
    /// Objects as JSON.
    Json,
    /// Objects as YAML.
    Yaml,
    /// One `managedresource.<group>/<name>` per line.
    Name,
}

pub(super) fn commands() -> [Command; 8] {
    [pack(), unpack(), validate(), diff(), get(), garbage(), policies(), webhook::command()]
}

pub(super) fn parsed(name: &str, matches: &ArgMatches) -> Option<Tool> {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    let paths = || matches.get_many::<String>("path").unwrap_or_default().cloned().collect();
    let key = |name: &str| matches.get_one::<NamespacedName>(name).cloned();
    Some(match name {
        "pack" => Tool::Pack(PackOptions {
            paths: paths(),
            name: text("name").unwrap_or_default(),
            namespace: text("namespace"),
            class: text("class"),
            secret_only: matches.get_flag("secret-only"),
            plain: matches.get_flag("plain"),
            output: text("output"),
        }),
        "unpack" => Tool::Unpack(UnpackOptions {
            paths: paths(),
            managed_resource: key("managed-resource"),
            kubeconfig: text("kubeconfig"),
            list: matches.get_flag("list"),
        }),
        "validate" => Tool::Validate(ValidateOptions { paths: paths() }),
        "diff" => Tool::Diff(DiffOptions {
            paths: paths(),
            managed_resource: key("managed-resource"),
            name: key("name"),
            kubeconfig: text("kubeconfig"),
            target_kubeconfig: text("target-kubeconfig"),
            cluster_id: text("cluster-id").unwrap_or_default(),
            managed_by: text("managed-by"),
        }),
        "get" => Tool::Get(GetOptions {
            names: matches.get_many::<String>("name").unwrap_or_default().cloned().collect(),
            namespace: text("namespace"),
            all_namespaces: matches.get_flag("all-namespaces"),
            selector: text("selector"),
            output: output_format(text("output").as_deref()),
            watch: matches.get_flag("watch"),
            no_headers: matches.get_flag("no-headers"),
            unhealthy: matches.get_flag("unhealthy"),
            kubeconfig: text("kubeconfig"),
        }),
        "garbage" => Tool::Garbage(GarbageOptions { kubeconfig: text("kubeconfig") }),
        "policies" => Tool::Policies(PoliciesOptions {
            service: text("service"),
            namespace: text("namespace"),
            files: matches.get_many::<String>("file").unwrap_or_default().cloned().collect(),
            config: text("config"),
            yaml: text("output").is_some(),
            kubeconfig: text("kubeconfig"),
        }),
        "webhook" => match matches.subcommand()? {
            ("review", matches) => Tool::Review(webhook::reviewed(matches)),
            ("registration", matches) => Tool::Registration(webhook::registered(matches)),
            _ => return None,
        },
        _ => return None,
    })
}

fn pack() -> Command {
    Command::new("pack")
        .about("Pack manifests into a ManagedResource and its Secret")
        .long_about(
            "Pack manifests into a ManagedResource and its Secret, ready for kubectl apply.\n\n\
             The Secret is immutable, and its name ends with a checksum of its content: the same manifests always give \
             the same output.",
        )
        .after_long_help(epilogue(
            &["pack manifests/ --name web -n garden | kubectl apply -f -"],
            "a manifest was rejected",
        ))
        .arg(paths().required(true))
        .arg(option("name", "NAME").required(true).help("Name of the ManagedResource"))
        .arg(
            option("namespace", "NAMESPACE")
                .short('n')
                .help("Namespace of both objects [default: that of kubectl apply]"),
        )
        .arg(option("class", "CLASS").help("Class of the ManagedResource [default: resources]"))
        .arg(switch("secret-only", "Print only the Secret").hide_short_help(true))
        .arg(switch("plain", "Do not compress the manifests").hide_short_help(true))
        .arg(
            option("output", "FILE")
                .short('o')
                .help("Write to a file that only you may read, instead of standard output"),
        )
}

fn unpack() -> Command {
    Command::new("unpack")
        .about("Print the manifests of a bundle")
        .long_about(
            "Print the manifests of a bundle as YAML: of Secrets in files, or of a ManagedResource in the cluster. They \
             are decoded as the controller decodes them.",
        )
        .after_long_help(epilogue(
            &["unpack bundle.yaml", "unpack --managed-resource garden/web --list"],
            "a document is not a manifest",
        ))
        .arg(paths().required_unless_present("managed-resource").conflicts_with("managed-resource"))
        .arg(key("managed-resource").help("Read the Secrets of this ManagedResource from the cluster"))
        .arg(switch("list", "Print a table instead: kind, namespace, name, data key, bytes"))
        .arg(kubeconfig("kubeconfig", "Kubeconfig of the cluster").requires("managed-resource"))
}

fn validate() -> Command {
    Command::new("validate")
        .about("Check manifests, bundles and configuration files, without a cluster")
        .long_about(
            "Check manifests, ManagedResources, their Secrets and component configurations for mistakes, without a \
             cluster.\n\n\
             Each finding is one line: <file>[:<document>] <object>: <problem> — <what to do>. The manifests in a Secret \
             are checked if a ManagedResource references it, or if it looks like part of a bundle.",
        )
        .after_long_help(epilogue(&["validate manifests/"], "errors were found (warnings alone: 0)"))
        .arg(paths().required(true))
}

fn diff() -> Command {
    Command::new("diff")
        .about("Show what the controller would change in the target cluster")
        .long_about(
            "Show what the controller would change in the target cluster, object by object. Nothing is written, and \
             values of Secrets are not shown.\n\n\
             The bundle comes from files, or from the cluster with --managed-resource. If the files do not contain a \
             ManagedResource, --name says which one they belong to.\n\n\
             A field that only the live object has is taken for a default of the API server, unless another field \
             manager owns it or the bundle in the cluster sets it.",
        )
        .after_long_help(epilogue(
            &["diff manifests/ --name garden/web", "diff --managed-resource garden/web"],
            "there are differences",
        ))
        .arg(paths().required_unless_present("managed-resource").conflicts_with("managed-resource"))
        .arg(key("managed-resource").help("Compare this ManagedResource as it is in the cluster"))
        .arg(key("name").conflicts_with("managed-resource").help("ManagedResource that the files belong to"))
        .arg(kubeconfig("kubeconfig", "Kubeconfig of the source cluster"))
        .arg(option("target-kubeconfig", "FILE").help("Kubeconfig of the target cluster [default: the source cluster]"))
        .arg(
            option("cluster-id", "ID")
                .hide_short_help(true)
                .help("The controller's setting controllers.clusterID [default: none]"),
        )
        .arg(
            option("managed-by", "VALUE")
                .hide_short_help(true)
                .help("The controller's setting controllers.managedResource.managedByLabelValue [default: gardener]"),
        )
}

fn get() -> Command {
    Command::new("get")
        .about("List ManagedResources with their conditions and the first problem of each")
        .long_about(
            "List ManagedResources with their conditions and the first problem of each. Nothing is written.\n\n\
             All is well if APPLIED and HEALTHY are True and PROGRESSING is False. Otherwise PROBLEM shows the first \
             condition that differs, truncated to the width of the terminal. An asterisk (True*) marks a condition that \
             was reported for an older generation of the ManagedResource; a dash marks a missing condition.",
        )
        .after_long_help(epilogue(
            &["get -A --unhealthy --watch", "get -n garden web -o wide"],
            "a ManagedResource of this name does not exist",
        ))
        .arg(
            Arg::new("name")
                .value_name("NAME")
                .action(ArgAction::Append)
                .num_args(1..)
                .help("Names of ManagedResources [default: all]"),
        )
        .arg(
            option("namespace", "NAMESPACE")
                .short('n')
                .conflicts_with("all-namespaces")
                .help("Namespace of the ManagedResources [default: that of the kubeconfig's context]"),
        )
        .arg(switch("all-namespaces", "List ManagedResources in all namespaces").short('A').conflicts_with("name"))
        .arg(
            option("selector", "SELECTOR")
                .short('l')
                .conflicts_with("name")
                .help("Label selector, e.g. app=web,tier!=test"),
        )
        .arg(switch("unhealthy", "Show only ManagedResources that have a problem"))
        .arg(
            switch("watch", "Keep running, and print changes").short('w').long_help(
                "Keep running, and print a row again when it changes. A ManagedResource that is deleted has the PROBLEM \
                 \"deleted\". With --unhealthy, a ManagedResource that recovers is printed once more",
            ),
        )
        .arg(
            option("output", "FORMAT")
                .short('o')
                .value_parser(PossibleValuesParser::new([
                    PossibleValue::new("wide").help("The table, with PROBLEM in full"),
                    PossibleValue::new("json").help("The objects as JSON"),
                    PossibleValue::new("yaml").help("The objects as YAML"),
                    PossibleValue::new("name").help("Names only, one per line"),
                ]))
                .help("Output format [default: a table]"),
        )
        .arg(switch("no-headers", "Do not print the column headers").hide_short_help(true))
        .arg(kubeconfig("kubeconfig", "Kubeconfig of the cluster"))
}

fn garbage() -> Command {
    Command::new("garbage")
        .about("Show what the garbage collector would delete")
        .long_about(
            "Show the collectable Secrets and ConfigMaps that nothing refers to: what the garbage collector would delete if \
             it ran now. Nothing is written. The command reads all namespaces, whatever \
             targetClientConnection.namespaces of the configuration says.\n\n\
             Collectable are objects with the label resources.gardener.cloud/garbage-collectable-reference=true that are \
             at least 10 minutes old. Annotations reference.resources.gardener.cloud/secret-<hash> and configmap-<hash> of \
             workloads, ManagedResources and Prometheuses keep them.",
        )
        .after_long_help(epilogue(&["garbage"], ""))
        .arg(switch("dry-run", "Accepted, no effect: this command never deletes").hide(true))
        .arg(kubeconfig("kubeconfig", "Kubeconfig of the target cluster"))
}

fn policies() -> Command {
    Command::new("policies")
        .about("Show which NetworkPolicies a Service should have, and why")
        .long_about(
            "Show which NetworkPolicies the controller writes for a Service, and why. Nothing is written.\n\n\
             In a cluster, STATE compares them with the existing policies: right, missing, differs, taken (another Service has the \
             name), obsolete (the controller deletes it), or kept (it may come from an annotation or a Gateway that cannot be read at present). With -f, the \
             policies follow from files alone; without SERVICE, those of all Services in the files are shown.",
        )
        .after_long_help(epilogue(
            &["policies garden/etcd-main-client", "policies -f manifests/ --config config.yaml"],
            "a policy is not as it should be, an annotation cannot be read, or there is no such Service",
        ))
        .arg(
            Arg::new("service")
                .value_name("[NAMESPACE/]SERVICE")
                .required_unless_present("file")
                .value_parser(|text: &str| {
                    let mut parts = text.split('/');
                    let is_name = parts.clone().count() <= 2 && parts.all(|part| !part.is_empty());
                    if is_name { Ok(text.to_owned()) } else { Err("must be <service> or <namespace>/<service>") }
                })
                .help("The Service"),
        )
        .arg(
            option("namespace", "NAMESPACE")
                .short('n')
                .help("Namespace of the Service [default: that of the kubeconfig's context; with -f, all]"),
        )
        .arg(
            option("file", "FILE|DIR")
                .short('f')
                .action(ArgAction::Append)
                .conflicts_with("kubeconfig")
                .help("Read objects from files and directories instead of a cluster; - reads standard input"),
        )
        .arg(
            option("config", "FILE")
                .help("Configuration whose controllers.networkPolicy counts [default: the defaults of all settings]"),
        )
        .arg(
            option("output", "FORMAT")
                .short('o')
                .value_parser(PossibleValuesParser::new([PossibleValue::new("yaml").help("The policies as YAML")]))
                .help("Output format [default: a table]"),
        )
        .arg(kubeconfig("kubeconfig", "Kubeconfig of the target cluster"))
}

fn output_format(text: Option<&str>) -> OutputFormat {
    match text {
        Some("wide") => OutputFormat::Wide,
        Some("json") => OutputFormat::Json,
        Some("yaml") => OutputFormat::Yaml,
        Some("name") => OutputFormat::Name,
        Some(_) | None => OutputFormat::Table,
    }
}

fn paths() -> Arg {
    Arg::new("path")
        .value_name("FILE|DIR")
        .action(ArgAction::Append)
        .num_args(1..)
        .help("Files and directories; - reads standard input")
        .long_help(
            "Files and directories; - reads standard input. Directories are read recursively, in sorted order: *.yaml, \
             *.yml and *.json",
        )
}

fn kubeconfig(name: &'static str, help: &'static str) -> Arg {
    option(name, "FILE").help(format!("{help} [default: $KUBECONFIG, ~/.kube/config, in-cluster]"))
}

fn key(name: &'static str) -> Arg {
    option(name, "NAMESPACE/NAME").value_parser(|text: &str| match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(NamespacedName::new(namespace, name))
        }
        _ => Err("must be <namespace>/<name>"),
    })
}

fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}
