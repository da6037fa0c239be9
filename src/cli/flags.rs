use std::ffi::OsString;

use clap::{Arg, ArgAction, FromArgMatches as _, Subcommand as _, error::ErrorKind};
use cluster::kubeconfig::Environment;
use process::command_line::{CommandLine, Parsed, UsageError, bare, printed, text, value};

use super::{Command, PROGRAM, RunOptions, Tool, demo, help, legacy};

const ABOUT: &str = "Keep Kubernetes objects in line with the manifests of ManagedResources";
const LONG_ABOUT: &str = "Keep Kubernetes objects in line with the manifests of ManagedResources.

With --config, run the controllers and webhooks. The commands help to write, check and inspect ManagedResources; \
     only some of them need a cluster, and none a running controller.";
const USAGE: &str = "gardener-resource-manager --config <FILE> [OPTIONS]
       gardener-resource-manager <COMMAND>";
const LEGACY_HEADING: &str = "Legacy flags";
const EPILOGUE: &str = "\
A legacy flag overrides its field of the configuration file. Without --config, at least one of them is required; only \
     then the defaults in brackets apply.

Environment:
  KUBECONFIG         kubeconfig of the source cluster; overrides the configuration file
  TARGET_KUBECONFIG  kubeconfig of the target cluster; overrides the configuration file
  HTTPS_PROXY        proxy of the clusters, unless the kubeconfig has a proxy-url; HTTP_PROXY for
                     those without TLS
  NO_PROXY           clusters that are reached without the proxy of the environment

Examples:
  gardener-resource-manager --config config/local.yaml
  gardener-resource-manager get -A --unhealthy";

/// The command line.
#[derive(Debug, Clone, Copy)]
pub struct Cli;

impl Cli {
    /// Parses arguments (without the program's name). Fails if one is unknown, incomplete or invalid.
    pub fn parse_from(args: &[OsString], env: &dyn Fn(&str) -> Option<String>) -> Result<Command, UsageError> {
        let (shared, matches) = match command_line().parse(args)? {
            Parsed::Help(text) => return Ok(Command::Help(text)),
            Parsed::Version(text) => return Ok(Command::Version(text)),
            Parsed::Run(given) => *given,
        };
        match matches.subcommand() {
            Some((help::HELP, matches)) => return help::text(command_line(), matches).map(Command::Help),
            Some(("demo", matches)) => return Ok(Command::Demo(demo::options(matches)?)),
            Some(_) => {
                let tool = Tool::from_arg_matches(&matches).map_err(|error| UsageError::Tool(error.to_string()))?;
                return match tool.check() {
                    Ok(()) => Ok(Command::Tool(tool)),
                    Err(reason) => Err(wrong_usage(command_line().command, args, reason)),
                };
            }
            None => {}
        }

        let extra = matches.get_many::<String>("extra-target-namespace").unwrap_or_default();
        let print_config = shared.print_config;
        let options = Box::new(RunOptions {
            shared,
            extra_target_namespaces: extra.cloned().collect(),
            environment: Environment::read(env),
            legacy: legacy::explicit(|name| text(&matches, name))?,
        });
        Ok(if print_config { Command::PrintConfig(options) } else { Command::Run(options) })
    }

    /// Returns the usage, as `-h` prints it.
    pub fn usage() -> String {
        command_line().usage()
    }
}

pub(super) fn command_line() -> CommandLine {
    let mut line = CommandLine::new(PROGRAM, USAGE, EPILOGUE);
    let command = line
        .command
        .arg(
            value("extra-target-namespace")
                .action(ArgAction::Append)
                .value_name("NAMESPACE")
                .help("Another namespace to watch in the target cluster; may be repeated"),
        )
        .next_help_heading(LEGACY_HEADING)
        .args(legacy::FLAGS.iter().map(legacy_arg));
    // The comment of `Tool` would be the text of the whole program.
    let command = Tool::augment_subcommands(command).about(ABOUT).long_about(LONG_ABOUT);
    let command = command.subcommand(help::command("webhook review"));
    line.command = if cfg!(feature = "sim") { command.subcommand(demo::command()) } else { command };
    line
}

/// Options of a command contradict each other in a way that clap does not know.
pub(super) fn wrong_usage(mut command: clap::Command, args: &[OsString], reason: &str) -> UsageError {
    command.build(); // names of commands in their usage
    let name = args.iter().filter_map(|arg| arg.to_str()).find(|arg| command.find_subcommand(arg).is_some());
    let named = name.map(str::to_owned).and_then(|name| command.find_subcommand_mut(&name).cloned());
    let error = named.unwrap_or(command).error(ErrorKind::ArgumentConflict, reason);
    UsageError::Tool(printed(&error))
}

fn legacy_arg(flag: &legacy::LegacyFlag) -> Arg {
    let arg = if flag.is_bool() { bare(flag.name).hide_possible_values(true) } else { value(flag.name) };
    let default = if flag.default.is_empty() { String::new() } else { format!(" [default: {}]", flag.default) };
    arg.value_name(flag.value_name()).help(format!("{}{default}", flag.help)).hide_short_help(true)
}
