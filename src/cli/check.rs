//! The command `check` of both programs.

#![allow(rustdoc::broken_intra_doc_links, reason = "the help shows defaults in brackets")]

use clap::Args;

use super::grammar::{PATH, ReportOptions, RequestTimeout, namespace};

/// Options of `check`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct CheckOptions {
    /// What both programs have.
    #[command(flatten)]
    pub program: ProgramCheckOptions,
    /// The same flag of the checked program; may be repeated.
    #[arg(long = "extra-target-namespace", value_name = "NAMESPACE", value_parser = namespace, hide_short_help = true)]
    pub extra_target_namespaces: Vec<String>,
}

/// Options of `check` that both programs have.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct ProgramCheckOptions {
    /// Configuration file of the program.
    #[arg(long, value_name = "FILE", value_parser = PATH)]
    pub config: String,
    /// Time limit of a request, e.g. 30s; 0 for none [default: 15s]
    #[arg(long, value_name = "DURATION", default_value = "15s", hide_default_value = true, hide_short_help = true)]
    pub request_timeout: RequestTimeout,
    /// How the result is printed.
    #[command(flatten)]
    pub report: ReportOptions,
}
