//! The commands for authors of bundles, pack, unpack, validate, diff, and for people on duty: get, webhook review.

use clap::{Arg, ArgAction, ArgMatches, Command, builder::PossibleValuesParser};

use crate::api::object::NamespacedName;

/// A command for authors of bundles, or for people on duty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tool {
    /// Manifests → Secret and ManagedResource.
    Pack(PackOptions),
    /// Secret → manifests.
    Unpack(UnpackOptions),
    /// Find mistakes without a cluster.
    Validate(ValidateOptions),
    /// What would be changed in the target cluster.
    Diff(DiffOptions),
    /// How ManagedResources are.
    Get(GetOptions),
    /// What a webhook makes of a review, without a cluster.
    Review(ReviewOptions),
}

/// How to pack.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PackOptions {
    /// Files and folders; `-` is the standard input.
    pub paths: Vec<String>,
    /// Name of the ManagedResource.
    pub name: String,
    /// Namespace of both objects; `None` leaves it to kubectl.
    pub namespace: Option<String>,
    /// Class of the ManagedResource.
    pub class: Option<String>,
    /// Print no ManagedResource.
    pub secret_only: bool,
    /// Do not compress.
    pub plain: bool,
    /// Where to write to, instead of the standard output.
    pub output: Option<String>,
}

/// How to unpack.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UnpackOptions {
    /// A file, `-`, or the name of a ManagedResource if there is a namespace.
    pub subject: String,
    /// Namespace of the ManagedResource in the cluster.
    pub namespace: Option<String>,
    /// How the cluster is reached.
    pub kubeconfig: Option<String>,
    /// Print a table instead of the manifests.
    pub list: bool,
}

/// What to validate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ValidateOptions {
    /// Files and folders; `-` is the standard input.
    pub paths: Vec<String>,
}

/// What to compare.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiffOptions {
    /// Files and folders; `-` is the standard input. Empty if the bundle is in the cluster.
    pub paths: Vec<String>,
    /// The ManagedResource in the cluster whose bundle is compared.
    pub managed_resource: Option<NamespacedName>,
    /// The ManagedResource the files stand for.
    pub name: Option<NamespacedName>,
    /// How the source cluster is reached.
    pub kubeconfig: Option<String>,
    /// How the target cluster is reached; the source if there is none.
    pub target_kubeconfig: Option<String>,
    /// `controllers.clusterID`.
    pub cluster_id: String,
    /// `controllers.managedResource.managedByLabelValue`; the default if there is none.
    pub managed_by: Option<String>,
}

/// What to show.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GetOptions {
    /// These ManagedResources; all if there is none.
    pub names: Vec<String>,
    /// Their namespace; that of the kubeconfig's context if there is none.
    pub namespace: Option<String>,
    /// Of all namespaces.
    pub all_namespaces: bool,
    /// Label selector in the API's syntax.
    pub selector: Option<String>,
    /// In which format.
    pub output: OutputFormat,
    /// Go on with what changes.
    pub watch: bool,
    /// Print no line with the names of the columns.
    pub no_headers: bool,
    /// Only those that are not applied, healthy and rolled out.
    pub unhealthy: bool,
    /// How the cluster is reached.
    pub kubeconfig: Option<String>,
}

/// What to review.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReviewOptions {
    /// Path of the webhook.
    pub path: String,
    /// File with the AdmissionReview, or with an object to be created; `-` is the standard input.
    pub file: String,
    /// File with the configuration; all webhooks with their defaults if there is none.
    pub config: Option<String>,
    /// Files and folders with the objects of the cluster.
    pub objects: Vec<String>,
}

/// Format of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutputFormat {
    /// Columns that fit the terminal.
    #[default]
    Table,
    /// Columns, nothing cut.
    Wide,
    /// Objects as JSON.
    Json,
    /// Objects as YAML.
    Yaml,
    /// One `managedresource.<group>/<name>` a line.
    Name,
}

const EXIT_CODES: &str = "Exit codes: 0 all is well, 2 wrong usage or failure";

/// All of them, for the command line.
pub(super) fn commands() -> [Command; 6] {
    [pack(), unpack(), validate(), diff(), get(), webhook()]
}

/// Whether an argument is the name of one.
pub(super) fn is_tool(argument: &std::ffi::OsStr) -> bool {
    commands().iter().any(|command| argument == command.get_name())
}

/// The command that was parsed; `None` if it is none of these.
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
            subject: text("subject").unwrap_or_default(),
            namespace: text("namespace"),
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
        "webhook" => return matches.subcommand_matches("review").map(|matches| Tool::Review(reviewed(matches))),
        _ => return None,
    })
}

fn reviewed(matches: &ArgMatches) -> ReviewOptions {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    ReviewOptions {
        path: text("path").unwrap_or_default(),
        file: text("filename").unwrap_or_default(),
        config: text("config"),
        objects: matches.get_many::<String>("objects").unwrap_or_default().cloned().collect(),
    }
}

fn pack() -> Command {
    Command::new("pack")
        .about("Packs manifests into the Secret and the ManagedResource of a bundle")
        .long_about(
            "Packs manifests into the Secret and the ManagedResource of a bundle, ready for kubectl apply.\n\n\
             Folders are read with all below them: *.yaml, *.yml, *.json, in sorted order. The Secret is immutable and \
             its name has a checksum of its content, so the same manifests give the same text.",
        )
        .after_help(format!(
            "Example:\n  gardener-resource-manager pack manifests/ --name web --namespace garden | kubectl apply -f -\n\n\
             {EXIT_CODES}, 1 a manifest is refused"
        ))
        .arg(paths().required(true))
        .arg(option("name", "NAME").required(true).help("name of the ManagedResource"))
        .arg(option("namespace", "NAMESPACE").short('n').help("namespace of both; without it that of kubectl's context"))
        .arg(option("class", "CLASS").help("class of the ManagedResource"))
        .arg(switch("secret-only", "print the Secret alone"))
        .arg(switch("plain", "do not compress, for people to read"))
        .arg(option("output", "FILE").short('o').help("write to a file instead of the standard output"))
}

fn unpack() -> Command {
    Command::new("unpack")
        .about("Prints the manifests of a bundle")
        .long_about(
            "Prints the manifests of a bundle as YAML: of the Secrets in a file, or with --namespace of the Secrets that a \
             ManagedResource in the cluster names. They are decoded as the controller does it, with its limits.",
        )
        .after_help(format!(
            "Examples:\n  kubectl get secret managedresource-web-0a1b2c3d -o yaml | gardener-resource-manager unpack -\n  \
             gardener-resource-manager unpack web -n garden --list\n\n{EXIT_CODES}, 1 a document is no manifest"
        ))
        .arg(
            Arg::new("subject")
                .required(true)
                .value_name("FILE|-|NAME")
                .help("file with Secrets, - for the standard input; with --namespace: name of a ManagedResource"),
        )
        .arg(option("namespace", "NAMESPACE").short('n').help("read the ManagedResource of this namespace in the cluster"))
        .arg(kubeconfig("kubeconfig", "kubeconfig of the cluster"))
        .arg(switch("list", "print a table: kind, namespace, name, data key, bytes"))
}

fn validate() -> Command {
    Command::new("validate")
        .about("Finds mistakes in manifests, bundles and configurations, without a cluster")
        .long_about(
            "Finds mistakes without a cluster: in manifests, in Secrets with manifests, in ManagedResources, and in component \
             configurations. Each finding is one line: file[:document] object: what is wrong — what to do. A bundle is a \
             Secret that a ManagedResource names or whose data are manifests.",
        )
        .after_help(format!("Example:\n  gardener-resource-manager validate manifests/\n\n{EXIT_CODES}, 1 there are errors (warnings alone: 0)"))
        .arg(paths().required(true))
}

fn diff() -> Command {
    Command::new("diff")
        .about("Shows what the controller would change in the target cluster")
        .long_about(
            "Shows what the controller would change in the target cluster, object by object. Nothing is written. The bundle \
             comes from files, which stand for the ManagedResource --name (or hold one), or with --managed-resource from \
             the cluster. Values of Secrets are never shown.\n\n\
             Fields that only the live object has are taken for defaults of the API server, unless another manager owns \
             them or the bundle had them before.",
        )
        .after_help(format!(
            "Examples:\n  gardener-resource-manager diff manifests/ --name garden/web\n  \
             gardener-resource-manager diff --managed-resource garden/web --kubeconfig ~/.kube/config\n\n\
             {EXIT_CODES}, 1 there are differences"
        ))
        .arg(paths().required_unless_present("managed-resource").conflicts_with("managed-resource"))
        .arg(key("managed-resource").help("compare the bundle that is in the cluster"))
        .arg(key("name").conflicts_with("managed-resource").help("the ManagedResource that the files stand for"))
        .arg(kubeconfig("kubeconfig", "kubeconfig of the source cluster"))
        .arg(kubeconfig("target-kubeconfig", "kubeconfig of the target cluster, if it is another one"))
        .arg(option("cluster-id", "ID").help("controllers.clusterID of the controller's configuration"))
        .arg(option("managed-by", "VALUE").help("managedByLabelValue of the controller's configuration [gardener]"))
}

fn get() -> Command {
    Command::new("get")
        .about("Shows how ManagedResources are, with the first problem of each")
        .long_about(
            "Shows how ManagedResources are: CLASS, the conditions APPLIED (should be True), HEALTHY (True) and PROGRESSING \
             (False), the number of OBJECTS, AGE, and as PROBLEM the first condition that is not as it should be, cut at \
             the edge of the terminal. Nothing is written.\n\n\
             An asterisk (True*) marks a condition that is not about the present spec: status.observedGeneration is below \
             metadata.generation. A dash stands for a condition that was not reported yet.\n\n\
             With --watch a row is printed again when it says something else; one that is gone has the PROBLEM deleted. \
             A watch that breaks is taken up again. With --unhealthy, a row that recovers is printed once more.",
        )
        .after_help(format!(
            "Examples:\n  gardener-resource-manager get -A --unhealthy --watch\n  \
             gardener-resource-manager get -n garden web -o wide\n\n{EXIT_CODES}, 1 a named one does not exist"
        ))
        .arg(Arg::new("name").value_name("NAME").action(ArgAction::Append).num_args(1..).help("only these; all without it"))
        .arg(
            option("namespace", "NAMESPACE")
                .short('n')
                .conflicts_with("all-namespaces")
                .help("their namespace; without it that of the kubeconfig's context"),
        )
        .arg(switch("all-namespaces", "of all namespaces").short('A').conflicts_with("name"))
        .arg(option("selector", "SELECTOR").short('l').conflicts_with("name").help("only those with these labels, e.g. a=b,c!=d"))
        .arg(
            option("output", "FORMAT")
                .short('o')
                .value_parser(PossibleValuesParser::new(["wide", "json", "yaml", "name"]))
                .help("wide: nothing is cut; the objects themselves, or their names"),
        )
        .arg(switch("watch", "go on with what changes").short('w'))
        .arg(switch("no-headers", "print no line with the names of the columns"))
        .arg(switch("unhealthy", "only those that are not applied, healthy and rolled out"))
        .arg(kubeconfig("kubeconfig", "kubeconfig of the cluster"))
}

fn webhook() -> Command {
    Command::new("webhook")
        .about("Shows what a webhook makes of a review, without a cluster")
        .subcommand_required(true)
        .subcommand(review())
}

fn review() -> Command {
    Command::new("review")
        .about("Shows what a webhook makes of a review, without a cluster")
        .long_about(
            "Shows what a webhook makes of an AdmissionReview, or of the creation of an object, without a cluster: prints the \
             object as it becomes, and the patch as second YAML document. The verdict goes to the standard error.\n\n\
             What the webhook wants to know of the cluster comes from --objects: ServiceAccounts, Namespaces, \
             HorizontalPodAutoscalers, Nodes, the ConfigMaps and Services of the load balancing. What is not there does not \
             exist. Manifests need their namespace. targetClientConnection.namespaces does not count.",
        )
        .after_help(format!(
            "Example:\n  gardener-resource-manager webhook review --path /webhooks/high-availability-config \\\n    \
             -f deployment.yaml --objects namespace.yaml --objects nodes.yaml\n\n{EXIT_CODES}, 1 the review is not allowed"
        ))
        .arg(option("path", "PATH").required(true).help("path of the webhook, e.g. /webhooks/seccomp-profile"))
        .arg(
            option("filename", "FILE")
                .short('f')
                .required(true)
                .allow_hyphen_values(true)
                .help("AdmissionReview or object, JSON or YAML; - is the standard input"),
        )
        .arg(option("config", "FILE").help("configuration; without it all webhooks are on, with their defaults"))
        .arg(
            option("objects", "FILE|DIR")
                .action(ArgAction::Append)
                .num_args(1..)
                .help("manifests of what is in the cluster, repeatable"),
        )
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
        .help("files and folders; - is the standard input")
}

fn option(name: &'static str, value: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).action(ArgAction::Set)
}

fn kubeconfig(name: &'static str, help: &'static str) -> Arg {
    option(name, "FILE").help(format!("{help} [$KUBECONFIG, the Pod's, ~/.kube/config]"))
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
