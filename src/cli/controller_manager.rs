//! The command line of gardener-controller-manager (spec 80 §2): the flags of all programs, and commands for operators.
//! `tools` declares the commands.

#[cfg(test)]
mod tests;
mod tools;

use std::{ffi::OsString, io};

use clap::{FromArgMatches as _, Subcommand as _};
use cluster::kubeconfig::Environment;
use process::command_line::{CommandLine, LoadError, Parsed, SharedOptions, UsageError, read_config};

pub use self::tools::{
    ExtensionsOptions, HibernationOptions, MaintenanceOptions, ReferredKind, ReferrersOptions, Tool,
};
use super::{ProgramCheckOptions, flags, help, terminal};
use crate::api::config::controller_manager::{self as config, Loaded};

/// Name of the program in messages and usage.
pub const PROGRAM: &str = "gardener-controller-manager";

const ABOUT: &str = "Look after the resources of Gardener in a garden cluster";
const LONG_ABOUT: &str = "Look after the resources of Gardener in a garden cluster.

With --config, run the controllers. The commands help operators; none of them needs running controllers.";
const USAGE: &str = "gardener-controller-manager --config <FILE> [OPTIONS]
       gardener-controller-manager <COMMAND>";
const EPILOGUE: &str = "\
Environment:
  KUBECONFIG   kubeconfig of the garden cluster; overrides the configuration file
  HTTPS_PROXY  proxy of the cluster, unless the kubeconfig has a proxy-url; HTTP_PROXY for one
               without TLS
  NO_PROXY     clusters that are reached without the proxy of the environment

Examples:
  gardener-controller-manager --config config/controller-manager.yaml
  gardener-controller-manager referrers secret garden-dev/my-secret";

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Run the controllers.
    Run(Box<RunOptions>),
    /// Print the effective configuration and exit 0.
    PrintConfig(Box<RunOptions>),
    /// Run a command for operators.
    Tool(Tool),
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
        Self::parse(args, env).map_err(terminal::usage)
    }

    fn parse(args: &[OsString], env: &dyn Fn(&str) -> Option<String>) -> Result<Self, UsageError> {
        let (shared, matches) = match command_line().parse(args)? {
            Parsed::Help(text) => return Ok(Self::Help(text)),
            Parsed::Version(text) => return Ok(Self::Version(text)),
            Parsed::Run(given) => *given,
        };
        match matches.subcommand() {
            Some((help::HELP, matches)) => return help::text(command_line(), matches).map(Self::Help),
            Some(_) => {
                let tool = Tool::from_arg_matches(&matches).map_err(|error| UsageError::Tool(error.to_string()))?;
                return match tool.check() {
                    Ok(()) => Ok(Self::Tool(tool)),
                    Err(reason) => Err(flags::wrong_usage(command_line().command, args, &reason)),
                };
            }
            None => {}
        }
        let print_config = shared.print_config;
        let options = Box::new(RunOptions { shared, environment: Environment::read(env) });
        Ok(if print_config { Self::PrintConfig(options) } else { Self::Run(options) })
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
    // The comment of `Tool` would be the text of the whole program.
    let command = Tool::augment_subcommands(line.command).about(ABOUT).long_about(LONG_ABOUT);
    line.command = command.subcommand(help::command("referrers"));
    line
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
