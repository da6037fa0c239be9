//! The command line of gardener-controller-manager (spec 80 §2): the flags of all programs, and the command `check`.

#[cfg(test)]
mod tests;

use std::{ffi::OsString, io};

use clap::{Args as _, FromArgMatches as _};
use cluster::kubeconfig::Environment;
use process::command_line::{CommandLine, LoadError, Parsed, SharedOptions, UsageError, read_config, unbroken};

use super::{ProgramCheckOptions, terminal};
use crate::api::config::controller_manager::{self as config, Loaded};

/// Name of the program in messages and usage.
pub const PROGRAM: &str = "gardener-controller-manager";

const ABOUT: &str = "Look after the resources of Gardener in a garden cluster";
const USAGE: &str = "gardener-controller-manager --config <FILE> [OPTIONS]
       gardener-controller-manager check --config <FILE>";
const CHECK: &str = "check";
const ABOUT_CHECK: &str = "Check rights and kinds that the program needs";
const LONG_ABOUT_CHECK: &str = "Check what the program with a configuration needs of the garden cluster: rights and kinds. \
     Nothing is written. The command reaches the cluster as the program does: run it where the program runs, for example \
     with kubectl exec. For each right it asks the API server with a SelfSubjectAccessReview.

RESULT is ok, missing, or note: the program waits for it. Only missing changes the exit code.";
const EPILOGUE_CHECK: &str = "\
Examples:
  gardener-controller-manager check --config config.yaml
  gardener-controller-manager check --config config.yaml -o json

Exit codes:
  0  success
  1  a right, a kind or the cluster is missing
  2  wrong usage, or a failure";
const EPILOGUE: &str = "\
Environment:
  KUBECONFIG   kubeconfig of the garden cluster; overrides the configuration file
  HTTPS_PROXY  proxy of the cluster, unless the kubeconfig has a proxy-url; HTTP_PROXY for one
               without TLS
  NO_PROXY     clusters that are reached without the proxy of the environment

Example:
  gardener-controller-manager --config config/controller-manager.yaml";

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Run the controllers.
    Run(Box<RunOptions>),
    /// Print the effective configuration and exit 0.
    PrintConfig(Box<RunOptions>),
    /// Check what the program needs of its cluster.
    Check(ProgramCheckOptions),
    /// Print the version and exit 0.
    Version(String),
    /// Print the help and exit 0.
    Help(String),
}

/// Options of [`Command::Run`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOptions {
    /// The flags that all programs have.
    pub shared: SharedOptions,
    /// Environment variables that locate the cluster.
    pub environment: Environment,
}

impl Command {
    /// Parses arguments (without the program's name). Fails if one is unknown, incomplete or invalid.
    pub fn parse_from(args: &[OsString], env: &dyn Fn(&str) -> Option<String>) -> Result<Self, UsageError> {
        Ok(match command_line().parse(args).map_err(terminal::usage)? {
            Parsed::Help(text) => Self::Help(text),
            Parsed::Version(text) => Self::Version(text),
            Parsed::Run(given) => {
                let (shared, matches) = *given;
                if let Some((CHECK, matches)) = matches.subcommand() {
                    let options = ProgramCheckOptions::from_arg_matches(matches);
                    return options.map(Self::Check).map_err(|error| UsageError::Tool(error.to_string()));
                }
                let print_config = shared.print_config;
                let options = Box::new(RunOptions { shared, environment: Environment::read(env) });
                if print_config { Self::PrintConfig(options) } else { Self::Run(options) }
            }
        })
    }
}

/// Returns the usage, as `-h` prints it.
pub fn usage() -> String {
    command_line().usage()
}

/// Order: file, environment, defaults, feature gates, validation. Fails as spec 70 §1.1 says.
pub fn load(options: &RunOptions, read: &dyn Fn(&str) -> io::Result<Vec<u8>>) -> Result<Loaded, LoadError> {
    let bytes = read_config(&options.shared, read)?;
    let mut loaded = config::load(&bytes, options.environment.kubeconfig.as_deref()).map_err(|error| {
        let file = options.shared.config.as_deref().unwrap_or_default();
        LoadError::Config { place: config::SCHEMA.place(&error, file, &bytes), error }
    })?;
    config::SCHEMA.locate(&mut loaded.warnings, &bytes);
    Ok(loaded)
}

pub(super) fn command_line() -> CommandLine {
    let mut line = CommandLine::new(PROGRAM, USAGE, EPILOGUE);
    let check = ProgramCheckOptions::augment_args(clap::Command::new(CHECK));
    let check = check.about(ABOUT_CHECK).long_about(LONG_ABOUT_CHECK);
    // A call of the program is not wrapped.
    let check = check.after_long_help(EPILOGUE_CHECK.lines().map(unwrapped).collect::<Vec<_>>().join("\n"));
    line.command = line.command.about(ABOUT).subcommand(check);
    line
}

fn unwrapped(line: &str) -> String {
    if line.trim_start().starts_with(PROGRAM) { unbroken(line) } else { line.to_owned() }
}

impl RunOptions {
    /// Returns those of a process that has only a configuration file.
    pub fn of_file(file: &str, environment: Environment) -> Self {
        Self { shared: SharedOptions::of_file(file), environment }
    }

    /// Returns `FLAG: --<name>=<value>` for `--config` and each given flag, sorted by name (spec 70 §7).
    pub fn flag_lines(&self) -> Vec<String> {
        self.shared.flag_lines([])
    }
}
