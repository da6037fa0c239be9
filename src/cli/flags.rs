use std::ffi::OsString;

use clap::{
    Arg, ArgAction, ArgMatches,
    error::{ContextKind, ContextValue, ErrorKind},
};
use cluster::kubeconfig::Environment;

use super::{BuildInfo, Command, DemoOptions, PROGRAM, RunOptions, UsageError, legacy, tools};

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

const WIDEST: usize = 100;

/// The command line.
#[derive(Debug, Clone, Copy)]
pub struct Cli;

impl Cli {
    /// Parses arguments (without the program's name). Fails if one is unknown, incomplete or invalid.
    pub fn parse_from(args: &[OsString], env: &dyn Fn(&str) -> Option<String>) -> Result<Command, UsageError> {
        let program = std::iter::once(OsString::from(PROGRAM));
        let matches = match command().try_get_matches_from(program.chain(args.iter().cloned())) {
            Ok(matches) => matches,
            Err(error) if error.kind() == ErrorKind::DisplayHelp => return Ok(Command::Help(error.to_string())),
            Err(error) if args.first().is_some_and(|first| tools::is_tool(first)) => {
                return Err(UsageError::Tool(error.to_string()));
            }
            Err(error) => return Err(usage_error(&error)),
        };

        let mut version = BuildInfo::of_this_binary();
        match version_request(text(&matches, "version").as_deref().unwrap_or("false"))? {
            VersionRequest::No => {}
            VersionRequest::Line => return Ok(Command::Version(format!("{PROGRAM} {}", version.version))),
            VersionRequest::Raw => {
                let fields: Vec<_> = version.fields().map(|(name, value)| format!("{name}: {value}")).into();
                return Ok(Command::Version(fields.join("\n")));
            }
            VersionRequest::Override(other) => version.version = other,
        }
        match matches.subcommand() {
            // After a flag it is not a command (spec 70 §1).
            Some((name, _)) if args.first().is_none_or(|first| first != name) => {
                return Err(UsageError::UnknownCommand(name.to_owned()));
            }
            Some(("demo", matches)) => return Ok(Command::Demo(DemoOptions { keep: flag_is_set(matches, "keep")? })),
            Some((name, matches)) => {
                if let Some(tool) = tools::parsed(name, matches) {
                    return Ok(Command::Tool(tool));
                }
            }
            None => {}
        }

        let extra = matches.get_many::<String>("extra-target-namespace").unwrap_or_default();
        let print_config = flag_is_set(&matches, "print-config")?;
        let options = Box::new(RunOptions {
            config: text(&matches, "config").filter(|path| !path.is_empty()),
            extra_target_namespaces: extra.cloned().collect(),
            version,
            environment: Environment::read(env),
            legacy: legacy::explicit(|name| text(&matches, name))?,
        });
        Ok(if print_config { Command::PrintConfig(options) } else { Command::Run(options) })
    }

    /// Returns the usage, as `-h` prints it.
    pub fn usage() -> String {
        command().render_help().to_string()
    }
}

enum VersionRequest {
    No,
    Line,
    Raw,
    Override(String),
}

fn version_request(value: &str) -> Result<VersionRequest, UsageError> {
    match (value, legacy::parse_bool(value)) {
        ("raw", _) => Ok(VersionRequest::Raw),
        (_, Ok(true)) => Ok(VersionRequest::Line),
        (_, Ok(false)) => Ok(VersionRequest::No),
        (version, Err(_)) if version.starts_with('v') && version.len() > 1 => {
            Ok(VersionRequest::Override(version.to_owned()))
        }
        (other, Err(_)) => Err(UsageError::InvalidValue {
            flag: "version".to_owned(),
            value: other.to_owned(),
            cause: "must be true, false, raw or a version that begins with v".to_owned(),
        }),
    }
}

pub(super) fn command() -> clap::Command {
    let command = clap::Command::new(PROGRAM)
        .about(ABOUT)
        .long_about(LONG_ABOUT)
        .override_usage(USAGE)
        .after_long_help(EPILOGUE)
        .max_term_width(WIDEST)
        .disable_help_subcommand(true)
        .args_override_self(true)
        .arg(value("config").value_name("FILE").help("Component configuration file"))
        .arg(
            value("extra-target-namespace")
                .action(ArgAction::Append)
                .value_name("NAMESPACE")
                .help("Another namespace to watch in the target cluster; may be repeated"),
        )
        .arg(bare("print-config").value_name("true|false").help("Print the effective configuration").long_help(
            "Print the configuration that results from file, flags, environment and defaults, and exit. It can be given to \
             --config, and holds paths of kubeconfigs, not their content",
        ))
        .arg(bare("version").value_name("raw|vX.Y.Z").help("Print the version").long_help(
            "Print the version and exit. With =raw print all details of the build; with =vX.Y.Z run, but report this version",
        ))
        .next_help_heading(LEGACY_HEADING)
        .args(legacy::FLAGS.iter().map(legacy_arg))
        .subcommands(tools::commands());
    if cfg!(feature = "sim") { command.subcommand(demo()) } else { command }
}

fn demo() -> clap::Command {
    clap::Command::new("demo")
        .about("Show the program at work on an in-memory cluster")
        .args_override_self(true)
        .arg(bare("keep").value_name("true|false").help("Stay up after the last step, until Ctrl-C"))
}

fn legacy_arg(flag: &legacy::LegacyFlag) -> Arg {
    let arg = if flag.is_bool() { bare(flag.name).hide_possible_values(true) } else { value(flag.name) };
    let default = if flag.default.is_empty() { String::new() } else { format!(" [default: {}]", flag.default) };
    arg.value_name(flag.value_name()).help(format!("{}{default}", flag.help)).hide_short_help(true)
}

/// `--flag value` or `--flag=value`; the value may begin with a dash.
fn value(name: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::Set).allow_hyphen_values(true)
}

/// `--flag` (true) or `--flag=value`.
fn bare(name: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::Set).num_args(0..=1).require_equals(true).default_missing_value("true")
}

fn text(matches: &ArgMatches, name: &str) -> Option<String> {
    matches.get_one::<String>(name).cloned()
}

fn flag_is_set(matches: &ArgMatches, name: &str) -> Result<bool, UsageError> {
    let value = text(matches, name).unwrap_or_default();
    if value.is_empty() {
        Ok(false)
    } else {
        legacy::parse_bool(&value).map_err(|cause| legacy::invalid(name, &value, cause))
    }
}

fn usage_error(error: &clap::Error) -> UsageError {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(" "),
        _ => String::new(),
    };
    let argument = context(ContextKind::InvalidArg);
    let flag = argument.split([' ', '[', '=']).next().unwrap_or_default().to_owned();
    match error.kind() {
        ErrorKind::InvalidSubcommand => UsageError::UnknownCommand(context(ContextKind::InvalidSubcommand)),
        ErrorKind::UnknownArgument if argument.starts_with('-') => UsageError::UnknownFlag(argument),
        ErrorKind::UnknownArgument => UsageError::UnknownCommand(argument),
        ErrorKind::InvalidUtf8 => UsageError::UnknownCommand("(not UTF-8)".to_owned()),
        _ => UsageError::MissingValue(flag),
    }
}
