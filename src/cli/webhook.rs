//! The commands about webhooks and their options. Comments are texts of the help, as in `tools.rs`.

#![allow(rustdoc::broken_intra_doc_links, reason = "the help shows defaults in brackets")]

use clap::{
    Args, Subcommand,
    builder::{PossibleValue, PossibleValuesParser},
};

use super::{
    data_format::DataFormat,
    epilogue::epilogue,
    grammar::{PATH, namespace},
};
use crate::webhooks::registration::RegisteredCluster;

/// A command about webhooks.
#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum WebhookTool {
    /// List the webhooks with their paths.
    ///
    /// KEY is the block of the component configuration that enables the webhook: webhooks.KEY. The command webhook review takes
    /// the paths of mutating and validating webhooks.
    #[command(
        about = "List the webhooks with their paths",
        after_long_help = epilogue(&["webhook list", "webhook list --config config.yaml"], "")
    )]
    List(WebhookListOptions),
    /// Show what a webhook answers to AdmissionReviews, or to the creation of objects, without a cluster.
    ///
    /// A file may have several documents, each an AdmissionReview or an object; lists count as their items. Each is
    /// reviewed alone. The output is the resulting object, then the JSON patch, as two YAML documents. The verdicts go to
    /// standard error; with several documents each names its own. Documents count from 0. The defaults that API servers
    /// add before they ask, such as replicas: 1, have to be in the file.
    ///
    /// --objects stands for the cluster. Webhooks look for ServiceAccounts, Namespaces, HorizontalPodAutoscalers, Nodes,
    /// and the ConfigMaps and Services of the load balancing; other objects do not exist. Namespaced objects need a
    /// metadata.namespace. targetClientConnection.namespaces has no effect.
    #[command(
        about = "Show what a webhook answers to AdmissionReviews or objects",
        after_long_help = epilogue(
            &["webhook review --path /webhooks/high-availability-config -f deployment.yaml \\\n    \
               --objects namespace.yaml --objects nodes.yaml"],
            "a request is not allowed",
        )
    )]
    Review(ReviewOptions),
    /// Print the webhook configurations to apply to the target cluster, as YAML: the mutating webhooks, and in a cluster
    /// that runs control planes the validating ones.
    ///
    /// Give the configuration of the program with --config: a webhook that is registered but not enabled answers 404,
    /// and the API server then refuses all objects it selects.
    ///
    /// --authorizer prints the two files that a kube-apiserver reads to ask the authorizer for node agents: its
    /// structured authorization configuration, and the kubeconfig that this names.
    #[command(
        about = "Print the webhook configurations to apply to the target cluster",
        after_long_help = epilogue(
            &[
                "webhook registration --place seed --ca-file ca.crt --config config.yaml | kubectl apply -f -",
                "webhook registration --place shoot --ca-file ca.crt --authorizer",
            ],
            "",
        )
    )]
    Registration(RegistrationOptions),
}

/// Options of `webhook list`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct WebhookListOptions {
    /// List only what this component configuration enables [default: all webhooks]
    #[arg(long, value_name = "FILE", value_parser = PATH)]
    pub config: Option<String>,
    /// Output format [default: a table]
    #[arg(long, short, value_name = "FORMAT")]
    pub output: Option<DataFormat>,
}

/// Options of `webhook review`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct ReviewOptions {
    /// Path of the webhook, e.g. /webhooks/seccomp-profile; the command webhook list has them all.
    #[arg(long, value_name = "PATH", value_parser = PATH)]
    pub path: String,
    /// AdmissionReviews or objects, as JSON or YAML, several in a file; - reads standard input.
    #[arg(long = "filename", short = 'f', value_name = "FILE|DIR", value_parser = PATH, required = true)]
    pub files: Vec<String>,
    /// Component configuration [default: all webhooks enabled, with their defaults]
    #[arg(long, value_name = "FILE", value_parser = PATH)]
    pub config: Option<String>,
    /// Objects of the cluster; may be repeated.
    #[arg(long, value_name = "FILE|DIR", value_parser = PATH, num_args = 1..)]
    pub objects: Vec<String>,
}

/// Options of `webhook registration`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct RegistrationOptions {
    /// Where the program runs, and for which cluster.
    #[arg(long, value_name = "PLACE", value_parser = places())]
    pub place: String,
    /// CA certificates of the webhook server's certificate, PEM.
    #[arg(long, value_name = "FILE", value_parser = PATH)]
    pub ca_file: String,
    /// Component configuration [default: what such a place usually enables]
    #[arg(long, value_name = "FILE", value_parser = PATH)]
    pub config: Option<String>,
    /// Namespace of the program's Service [default: garden]
    #[arg(long, short, value_name = "NAMESPACE", value_parser = namespace, default_value = "garden", hide_default_value = true)]
    pub namespace: String,
    /// Print the files of kube-apiserver for the authorizer instead.
    #[arg(long)]
    pub authorizer: bool,
    /// Prefix of the names of the program's objects, e.g. virtual-garden-.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true, hide_short_help = true)]
    pub prefix: String,
}

fn places() -> PossibleValuesParser {
    PossibleValuesParser::new(RegisteredCluster::NAMED.map(|(name, _, help)| PossibleValue::new(name).help(help)))
}
