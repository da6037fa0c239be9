//! The command lines (spec 70 §1, §5, spec 80 §2): flags, environment, and how both change the configuration file. What
//! all programs share is in [`process::command_line`]; this is the one of gardener-resource-manager, and
//! [`controller_manager`] the other.
//! ```text
//! arguments, environment ─ Cli::parse_from ─► Command::Run(RunOptions) ─ load ─► Loaded { config, warnings }
//! ```
//! `flags.rs` declares the current flags, `tools.rs` the commands for authors of bundles and for operators,
//! `operator_tools.rs` options of the latter, `demo.rs` those of the demonstration, `grammar.rs` what all commands share,
//! `format.rs` and `data_format.rs` their output formats, `legacy.rs` the flags from before there was a configuration
//! file. `completion.rs` makes scripts for shells, `manual.rs` manual pages, `plugin.rs` the plugin of kubectl, `help.rs` is
//! the command `help`. `short_names.rs` has those of kinds.
//! `terminal.rs` decides which characters a terminal gets. `tests/reference.rs` generates the reference of all flags.
//! `load.rs` merges flags, file and environment. Everything is pure: a function that is passed in reads files
//! ([`process::command_line::read_file`] in production). Start reading at [`Cli::parse_from`].

mod check;
pub mod completion;
pub mod controller_manager;
mod data_format;
mod demo;
mod epilogue;
mod flags;
mod format;
mod grammar;
mod help;
mod legacy;
pub mod load;
pub mod manual;
mod operator_tools;
pub mod plugin;
pub(crate) mod short_names;
pub(crate) mod terminal;
mod tools;
mod webhook;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use check::{CheckOptions, ProgramCheckOptions};
use cluster::kubeconfig::Environment;
pub use data_format::DataFormat;
pub use demo::DemoOptions;
pub use flags::Cli;
pub use format::{CustomColumn, OutputFormat, ReportFormat, SortBy, TableColumn};
pub use grammar::{ClustersOptions, ConnectionOptions, ReportOptions, RequestTimeout, SelectionOptions};
pub use load::{StartError, load};
pub use operator_tools::{
    CompletionOptions, DescribeOptions, EventsOptions, GarbageOptions, GetOptions, PoliciesFormat, PoliciesOptions,
    RequestOptions, TraceOptions, VersionOptions, WaitGoal, WaitOptions,
};
pub use process::{
    BuildInfo,
    command_line::{SharedOptions, UsageError},
};
pub use terminal::printable;
pub use tools::{DiffOptions, PackOptions, Tool, UnpackOptions, ValidateOptions};
pub use webhook::{RegistrationOptions, ReviewOptions, WebhookListOptions, WebhookTool};

/// Name of the program in messages and usage.
pub const PROGRAM: &str = "gardener-resource-manager";

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a process makes one")]
pub enum Command {
    /// Run the controllers and webhooks.
    Run(Box<RunOptions>),
    /// Print the effective configuration and exit 0.
    PrintConfig(Box<RunOptions>),
    /// Run the demonstration on an in-memory cluster.
    Demo(DemoOptions),
    /// Run a command for authors of bundles, or for operators.
    Tool(Tool),
    /// Print the version and exit 0.
    Version(String),
    /// Print the help and exit 0.
    Help(String),
    /// Print how the command line of the plugin may go on, and exit 0.
    Candidates(String),
}

/// Options of [`Command::Run`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOptions {
    /// The flags that all programs have.
    pub shared: SharedOptions,
    /// Namespaces to append to those of the target, in order.
    pub extra_target_namespaces: Vec<String>,
    /// Environment variables that locate clusters.
    pub environment: Environment,
    /// The legacy flags that were set, with their checked texts.
    legacy: BTreeMap<&'static str, String>,
}

impl RunOptions {
    /// Whether flags alone configure the process (spec 70 §5).
    pub fn is_flag_mode(&self) -> bool {
        self.shared.config.is_none() && !self.legacy.is_empty()
    }

    /// Returns those of a process that has only a configuration file, and perhaps further namespaces of the target.
    pub fn of_file(file: &str, extra_target_namespaces: &[String], environment: Environment) -> Self {
        Self {
            shared: SharedOptions::of_file(file),
            extra_target_namespaces: extra_target_namespaces.to_vec(),
            environment,
            legacy: BTreeMap::new(),
        }
    }

    fn legacy(&self, name: &str) -> Option<&str> {
        self.legacy.get(name).map(String::as_str)
    }

    /// Returns `FLAG: --<name>=<value>` for `--config` and each given flag, sorted by name (spec 70 §7).
    pub fn flag_lines(&self) -> Vec<String> {
        let extra = format!("[{}]", self.extra_target_namespaces.join(","));
        let extra = (!self.extra_target_namespaces.is_empty()).then_some(("extra-target-namespace", extra));
        self.shared.flag_lines(self.legacy.iter().map(|(name, value)| (*name, value.clone())).chain(extra))
    }
}
