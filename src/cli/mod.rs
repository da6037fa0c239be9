//! The command line (spec 70 §1, §5): flags, environment, and how both change the configuration file.
//! ```text
//! arguments, environment ─ Cli::parse_from ─► Command::Run(RunOptions) ─ load ─► Loaded { config, warnings }
//! ```
//! `flags.rs` declares the current flags, `tools.rs` the commands for authors of bundles and for operators, `legacy.rs`
//! the flags from before there was a configuration file. `reference.rs` generates the reference of all flags. `load.rs`
//! merges flags, file and environment. Everything is pure: a function that is passed in reads files
//! ([`load::read_file`] in production). Start reading at [`Cli::parse_from`].

mod args;
mod flags;
mod legacy;
pub mod load;
#[cfg(test)]
mod reference;
mod tools;
mod version;
mod webhook;

#[cfg(test)]
mod tests;

pub use flags::Cli;
pub use load::{StartError, load};
pub use tools::{
    DiffOptions, GarbageOptions, GetOptions, OutputFormat, PackOptions, PoliciesOptions, Tool, UnpackOptions,
    ValidateOptions,
};
pub use version::BuildInfo;
pub use webhook::{RegistrationOptions, ReviewOptions};

use cluster::kubeconfig::Environment;

use self::legacy::LegacyFlag;

/// Name of the program in messages and usage.
pub const PROGRAM: &str = "gardener-resource-manager";

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
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
}

/// Options of [`Command::Run`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOptions {
    /// Path of the configuration file.
    pub config: Option<String>,
    /// Namespaces to append to those of the target, in order.
    pub extra_target_namespaces: Vec<String>,
    /// The version to report.
    pub version: BuildInfo,
    /// Environment variables that locate clusters.
    pub environment: Environment,
    /// The legacy flags that were set, in the order of the table, with their checked texts.
    legacy: Vec<(&'static LegacyFlag, String)>,
}

/// Options of [`Command::Demo`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DemoOptions {
    /// Keep running after the last step, until interrupted.
    pub keep: bool,
}

/// An invalid command line. The texts are those of the flag library of the Go program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UsageError {
    /// An argument that is not a flag.
    #[error("unknown command {0:?} for {PROGRAM:?}")]
    UnknownCommand(String),
    /// Invalid arguments of a [`Tool`], with the text of our own parser. The exit code is 2.
    #[error("{0}")]
    Tool(String),
    /// A flag that does not exist.
    #[error("unknown flag: {0}")]
    UnknownFlag(String),
    /// A flag at the end that needs a value.
    #[error("flag needs an argument: {0}")]
    MissingValue(String),
    /// The flag does not take this value.
    #[error("invalid argument {value:?} for \"--{flag}\" flag: {cause}")]
    InvalidValue {
        /// Name without dashes.
        flag: String,
        /// The given value.
        value: String,
        /// Why it is invalid.
        cause: String,
    },
}

/// What the process prints when it fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Printed {
    /// Text for standard error.
    pub stderr: String,
    /// Text for standard output.
    pub stdout: String,
}

/// Output of a failure before logging is set up (spec 70 §1.1). The exit code is 1.
pub fn failure_before_logging(text: &str, usage: &str) -> Printed {
    Printed { stderr: format!("Error: {text}\n{}\n", usage.trim_end()), stdout: format!("{text}\n") }
}

/// Output of a failure after logging is set up (spec 70 §1.1). The exit code is 1.
pub fn failure_after_logging(text: &str) -> Printed {
    Printed { stderr: String::new(), stdout: format!("{text}\n") }
}

impl RunOptions {
    /// Whether flags alone configure the process (spec 70 §5).
    pub fn is_flag_mode(&self) -> bool {
        self.config.is_none() && !self.legacy.is_empty()
    }

    fn legacy(&self, name: &str) -> Option<&str> {
        self.legacy.iter().find(|(flag, _)| flag.name == name).map(|(_, value)| value.as_str())
    }

    fn version_override(&self) -> Option<&str> {
        (self.version != BuildInfo::of_this_binary()).then_some(&self.version.version)
    }

    /// Returns `FLAG: --<name>=<value>` for each flag, sorted by name (spec 70 §7).
    pub fn flag_lines(&self) -> Vec<String> {
        let mut values: Vec<(&str, String)> = vec![
            ("config", self.config.clone().unwrap_or_default()),
            ("extra-target-namespace", format!("[{}]", self.extra_target_namespaces.join(","))),
            ("help", "false".to_owned()),
            ("print-config", "false".to_owned()),
            ("version", self.version_override().unwrap_or("false").to_owned()),
        ];
        let legacy = legacy::FLAGS.iter();
        values.extend(legacy.map(|flag| (flag.name, self.legacy(flag.name).unwrap_or(flag.default).to_owned())));
        values.sort();
        values.into_iter().map(|(name, value)| format!("FLAG: --{name}={value}")).collect()
    }
}
