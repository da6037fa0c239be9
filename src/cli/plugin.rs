//! The program as a plugin of kubectl: a file called `kubectl-managedresource` in `$PATH`, for example a link to the
//! program, is `kubectl managedresource`. It has the commands, and neither runs the controllers nor takes their flags.

mod candidates;

use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

use clap::{FromArgMatches as _, error::ErrorKind};
use process::command_line::{UsageError, printed, with_usage, without_content};

pub use self::candidates::candidates;
use super::{Cli, Command, PROGRAM, Tool, flags, terminal};

/// Name of the file that kubectl runs for `kubectl managedresource`.
pub const FILE: &str = "kubectl-managedresource";
/// Name of the file that kubectl runs to complete a command line of the plugin.
pub const COMPLETION_FILE: &str = "kubectl_complete-managedresource";

const NAME: &str = "kubectl managedresource";
const ABOUT: &str = "Write, check and inspect ManagedResources";
/// Commands that make no sense behind kubectl. It has a help of its own, and another way to complete command lines.
const OMITTED: [&str; 4] = ["demo", "help", "completion", "man"];
const WIDEST: usize = 100;

/// What the name of the running file asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The program itself.
    Program,
    /// The plugin of kubectl.
    Plugin,
    /// The completion of the plugin's command lines.
    Completion,
}

impl Role {
    /// Returns the role for the first word of a command line.
    pub fn of(program: &OsStr) -> Self {
        match Path::new(program).file_name().and_then(OsStr::to_str) {
            Some(FILE) => Self::Plugin,
            Some(COMPLETION_FILE) => Self::Completion,
            _ => Self::Program,
        }
    }
}

impl Cli {
    /// Parses a whole command line, whose first word is the name of the running file: the plugin of kubectl has a command
    /// line of its own. Fails if an argument is unknown, incomplete or invalid.
    pub fn parse_line(line: &[OsString], env: &dyn Fn(&str) -> Option<String>) -> Result<Command, UsageError> {
        let (program, args) = line.split_first().map_or((OsStr::new(PROGRAM), line), |(first, rest)| (&**first, rest));
        match Role::of(program) {
            Role::Program => Self::parse_from(args, env).map_err(terminal::usage),
            Role::Plugin => parse_from(args).map_err(terminal::usage),
            Role::Completion => Ok(Command::Candidates(candidates(args))),
        }
    }
}

/// Parses the arguments after `kubectl managedresource`. Fails if one is unknown, incomplete or invalid.
pub fn parse_from(args: &[OsString]) -> Result<Command, UsageError> {
    let all = std::iter::once(OsString::from(FILE)).chain(args.iter().cloned());
    let parsed = command()
        .try_get_matches_from(all)
        .map_err(without_content)
        .and_then(|matches| Tool::from_arg_matches(&matches));
    match parsed {
        Ok(tool) => match tool.check() {
            Ok(()) => Ok(Command::Tool(tool)),
            Err(reason) => Err(flags::wrong_usage(command(), args, reason)),
        },
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                Ok(Command::Help(printed(&error)))
            }
            _ => Err(UsageError::Tool(printed(&with_usage(&error, command(), args)))),
        },
    }
}

fn command() -> clap::Command {
    let all = flags::command_line().command;
    let commands = all.get_subcommands().filter(|command| !OMITTED.contains(&command.get_name())).cloned();
    clap::Command::new(FILE)
        .bin_name(NAME)
        .about(ABOUT)
        .max_term_width(WIDEST)
        .arg_required_else_help(true)
        .subcommand_required(true)
        .subcommands(commands.map(renamed))
}

/// Names the plugin in the examples of a command.
fn renamed(command: clap::Command) -> clap::Command {
    let help = command.get_after_long_help().map(|help| help.to_string().replace(PROGRAM, NAME));
    let command = match help {
        Some(help) => command.after_long_help(help),
        None => command,
    };
    command.mut_subcommands(renamed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Command, UsageError> {
        parse_from(&args.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn plugin_is_known_by_the_name_of_its_file() {
        for (program, role) in [
            ("kubectl-managedresource", Role::Plugin),
            ("/usr/local/bin/kubectl-managedresource", Role::Plugin),
            ("bin/kubectl_complete-managedresource", Role::Completion),
            ("gardener-resource-manager", Role::Program),
            ("kubectl-managedresource/gardener-resource-manager", Role::Program),
            ("", Role::Program),
        ] {
            assert_eq!(Role::of(OsStr::new(program)), role, "{program}");
        }
    }

    #[test]
    fn plugin_has_the_commands_and_no_flag_of_the_controllers() {
        assert!(
            matches!(parse(&["get", "-A"]), Ok(Command::Tool(Tool::Get(options))) if options.selection.all_namespaces)
        );
        assert!(matches!(parse(&["webhook", "list"]), Ok(Command::Tool(Tool::Webhook(_)))));
        for args in [["--config", "x"], ["--kubeconfig", "x"], ["completion", "bash"], ["demo", "--keep"]] {
            assert!(matches!(parse(&args), Err(UsageError::Tool(_))), "{args:?}");
        }
    }

    #[test]
    fn plugin_help_and_errors_name_the_plugin() {
        let table: [&[&str]; 3] = [&[], &["--help"], &["help"]];
        for args in table {
            let Ok(Command::Help(help)) = parse(args) else { panic!("{args:?} prints the help") };
            assert!(help.contains("Usage: kubectl managedresource") && help.contains("describe"), "{help}");
        }
        for args in [["get", "--help"], ["help", "get"]] {
            let Ok(Command::Help(help)) = parse(&args) else { panic!("{args:?} prints the help") };
            assert!(help.contains("  kubectl managedresource get -A --unhealthy"), "{help}");
            assert!(!help.contains(PROGRAM), "{help}");
        }
        let Ok(Command::Help(help)) = parse(&["webhook", "review", "--help"]) else { panic!("the help is printed") };
        assert!(!help.contains(PROGRAM), "{help}");
        match parse(&["descibe"]) {
            Err(UsageError::Tool(text)) => {
                assert!(text.contains("'describe'") && text.contains("Usage: kubectl managedresource"), "{text}");
            }
            other => panic!("{other:?}"),
        }
    }
}
