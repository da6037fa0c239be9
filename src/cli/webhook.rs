use clap::{
    ArgAction, ArgMatches, Command,
    builder::{PossibleValue, PossibleValuesParser},
};

use super::args::{epilogue, option};
use crate::webhooks::registration::RegisteredCluster;

/// Options of `webhook review`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReviewOptions {
    /// Path of the webhook.
    pub path: String,
    /// File with the AdmissionReview or with an object to create; `-` is standard input.
    pub file: String,
    /// File with the configuration; `None` enables all webhooks with their defaults.
    pub config: Option<String>,
    /// Files and folders with the objects of the cluster.
    pub objects: Vec<String>,
}

/// Options of `webhook registration`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RegistrationOptions {
    /// Where the program runs, one of [`RegisteredCluster::NAMED`].
    pub place: String,
    /// Namespace of the program's Service.
    pub namespace: String,
    /// Prefix of the names of the program's objects.
    pub prefix: String,
    /// File with the CA certificates of the server certificate (PEM).
    pub ca_file: String,
    /// File with the configuration; `None`: the webhooks that are usually enabled there.
    pub config: Option<String>,
}

pub(super) fn reviewed(matches: &ArgMatches) -> ReviewOptions {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    ReviewOptions {
        path: text("path").unwrap_or_default(),
        file: text("filename").unwrap_or_default(),
        config: text("config"),
        objects: matches.get_many::<String>("objects").unwrap_or_default().cloned().collect(),
    }
}

pub(super) fn registered(matches: &ArgMatches) -> RegistrationOptions {
    let text = |name: &str| matches.get_one::<String>(name).cloned();
    RegistrationOptions {
        place: text("place").unwrap_or_default(),
        namespace: text("namespace").unwrap_or_else(|| "garden".to_owned()),
        prefix: text("prefix").unwrap_or_default(),
        ca_file: text("ca-file").unwrap_or_default(),
        config: text("config"),
    }
}

pub(super) fn command() -> Command {
    let webhook =
        Command::new("webhook").about("Try and register webhooks, without a cluster").subcommand_required(true);
    webhook.subcommand(review()).subcommand(registration())
}

fn review() -> Command {
    Command::new("review")
        .about("Show what a webhook answers to an AdmissionReview")
        .long_about(
            "Show what a webhook answers to an AdmissionReview, or to the creation of an object, without a cluster.\n\n\
             The output is the resulting object, then the JSON patch, as two YAML documents. The verdict goes to standard \
             error.\n\n\
             --objects stands for the cluster. Webhooks look for ServiceAccounts, Namespaces, HorizontalPodAutoscalers, \
             Nodes, and the ConfigMaps and Services of the load balancing; other objects do not exist. Namespaced \
             objects need a metadata.namespace. targetClientConnection.namespaces has no effect.",
        )
        .after_long_help(epilogue(
            &["webhook review --path /webhooks/high-availability-config -f deployment.yaml \\\n    \
               --objects namespace.yaml --objects nodes.yaml"],
            "the request is not allowed",
        ))
        .arg(option("path", "PATH").required(true).help("Path of the webhook, e.g. /webhooks/seccomp-profile"))
        .arg(
            option("filename", "FILE")
                .short('f')
                .required(true)
                .allow_hyphen_values(true)
                .help("AdmissionReview or object, as JSON or YAML; - reads standard input"),
        )
        .arg(option("config", "FILE").help("Component configuration [default: all webhooks enabled, with their defaults]"))
        .arg(
            option("objects", "FILE|DIR")
                .action(ArgAction::Append)
                .num_args(1..)
                .help("Objects of the cluster; may be repeated"),
        )
}

fn registration() -> Command {
    let places = RegisteredCluster::NAMED.map(|(name, _, help)| PossibleValue::new(name).help(help));
    Command::new("registration")
        .about("Print the webhook configurations to apply to the target cluster")
        .long_about(
            "Print the webhook configurations to apply to the target cluster, as YAML: the mutating webhooks, and in a \
             cluster that runs control planes the validating ones.\n\n\
             Give the configuration of the program with --config: a webhook that is registered but not enabled answers \
             404, and the API server then refuses all objects it selects.",
        )
        .after_long_help(epilogue(
            &["webhook registration --place seed --ca-file ca.crt --config config.yaml | kubectl apply -f -"],
            "",
        ))
        .arg(
            option("place", "PLACE")
                .required(true)
                .value_parser(PossibleValuesParser::new(places))
                .help("Where the program runs, and for which cluster"),
        )
        .arg(option("ca-file", "FILE").required(true).help("CA certificates of the webhook server's certificate, PEM"))
        .arg(option("config", "FILE").help("Component configuration [default: what such a place usually enables]"))
        .arg(option("namespace", "NAMESPACE").short('n').help("Namespace of the program's Service [default: garden]"))
        .arg(
            option("prefix", "TEXT")
                .hide_short_help(true)
                .help("Prefix of the names of the program's objects, e.g. virtual-garden-"),
        )
}
