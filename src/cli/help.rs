//! The command `help` of both programs.

use std::ffi::OsString;

use clap::{Arg, ArgMatches};
use kit::credentials::shown_word;
use process::command_line::{CommandLine, Parsed, UsageError};

/// Name of the command.
pub(super) const HELP: &str = "help";

const WORDS: &str = "words";

/// Returns the declaration of the command. `example` is a command of the program.
pub(super) fn command(example: &str) -> clap::Command {
    let words = Arg::new(WORDS).value_name("COMMAND").num_args(0..).help(format!("The command, e.g. {example}"));
    clap::Command::new(HELP).about("Print the help of a command").arg(words)
}

/// Returns the long help of the command that the words name; of the program without words.
pub(super) fn text(line: CommandLine, matches: &ArgMatches) -> Result<String, UsageError> {
    let words = matches.get_many::<String>(WORDS).unwrap_or_default();
    let args: Vec<OsString> = words.map(OsString::from).chain([OsString::from("--help")]).collect();
    let program = line.program;
    match line.parse(&args) {
        Ok(Parsed::Help(text)) => Ok(text),
        Err(error @ UsageError::Tool(_)) => Err(error),
        Ok(Parsed::Version(_) | Parsed::Run(_)) | Err(_) => {
            let word = args[0].to_string_lossy();
            let word = shown_word(&word);
            let usage = format!("Usage: {program} {HELP} [COMMAND]...\n\nFor more information, try '--help'.");
            Err(UsageError::Tool(format!("error: there is no command {word:?}\n\n{usage}\n")))
        }
    }
}
