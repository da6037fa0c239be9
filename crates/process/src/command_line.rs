//! The command line as far as all programs share it (spec 70 §1, 80 §2): `--config`, `--version`, `--print-config`, help,
//! and what is said about a wrong one. A program adds its own flags and commands to [`CommandLine::command`].

use std::{collections::BTreeMap, ffi::OsString, fmt, io, io::Write as _, path::Path};

use clap::{
    Arg, ArgAction, ArgMatches,
    error::{ContextKind, ContextValue, ErrorKind},
};
use cluster::files;
use kit::credentials::{is_content, shown_word, without_credentials};

use crate::{
    BuildInfo,
    config::{ConfigError, Warning},
    print_or_fail,
};

const WIDEST: usize = 100;
const MAX_BYTES: u64 = 2 << 20; // largest configuration file. It comes from a ConfigMap, whose limit is 1 MiB.
/// Stands in help texts for a space at which no line is broken.
const UNBROKEN: char = '\u{a0}';
const TRUE: [&str; 6] = ["1", "t", "T", "TRUE", "true", "True"];
const FALSE: [&str; 6] = ["0", "f", "F", "FALSE", "false", "False"];

/// The command line of a program.
#[derive(Debug)]
pub struct CommandLine {
    /// Name of the program in messages and usage.
    pub program: &'static str,
    /// The shared flags; a program adds its own ones.
    pub command: clap::Command,
}

/// What a valid command line asks for.
#[derive(Debug)]
pub enum Parsed {
    /// Print this help and exit 0.
    Help(String),
    /// Print this version and exit 0.
    Version(String),
    /// Anything else: the shared flags, and the values of the program's own.
    Run(Box<(SharedOptions, ArgMatches)>),
}

/// Values of the flags that all programs have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedOptions {
    /// Path of the configuration file.
    pub config: Option<String>,
    /// Print the effective configuration instead of running.
    pub print_config: bool,
    /// The version to report.
    pub version: BuildInfo,
    /// The texts of further flags of all programs, as far as they were given.
    given: BTreeMap<&'static str, String>,
}

/// An invalid command line. The texts are those of the flag library of the Go program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UsageError {
    /// An argument that is not a flag.
    #[error("unknown command {word:?} for {program:?}")]
    UnknownCommand {
        /// The argument.
        word: String,
        /// Name of the program.
        program: &'static str,
    },
    /// A command that follows flags of the program.
    #[error(
        "unknown command {word:?} for {program:?}; a command comes first, and its flags follow it: {program} {word} …"
    )]
    LateCommand {
        /// The command.
        word: String,
        /// Name of the program.
        program: &'static str,
    },
    /// Invalid arguments of a command of the program, with the text of our own parser. The exit code is 2.
    #[error("{0}")]
    Tool(String),
    /// A flag that does not exist.
    #[error("unknown flag: {0}")]
    UnknownFlag(String),
    /// A flag that the program does not have, before a command.
    #[error("unknown flag: {flag}; a command comes first, and its flags follow it: {program} {command} {flag} …")]
    EarlyFlag {
        /// The flag.
        flag: String,
        /// The command.
        command: String,
        /// Name of the program.
        program: &'static str,
    },
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

/// Why a program has no configuration. The texts are those of spec 70 §1.1.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No file is named.
    #[error("missing config file")]
    MissingConfig,
    /// The file cannot be read.
    #[error("error reading config file: {0}")]
    Read(io::Error),
    /// The file is no configuration of this program, or file and flags together are an invalid one.
    #[error("{error} ({place})")]
    Config {
        /// What is wrong.
        error: ConfigError,
        /// The file, and if the file alone is wrong, the lines of the keys.
        place: String,
    },
    /// The flags alone are an invalid configuration.
    #[error(transparent)]
    Flags(ConfigError),
}

impl CommandLine {
    /// The shared flags of a program. The help ends with `epilogue`; lines of it that call the program are not wrapped.
    pub fn new(program: &'static str, usage: &'static str, epilogue: &str) -> Self {
        let is_call = |line: &str| line.trim_start().starts_with(program);
        let lines = epilogue.split('\n');
        let lines = lines.map(|line| if is_call(line) { unbroken(line) } else { line.to_owned() });
        let epilogue = lines.collect::<Vec<_>>().join("\n");
        let command = clap::Command::new(program)
            .override_usage(usage)
            .after_long_help(epilogue)
            .max_term_width(WIDEST)
            .disable_help_subcommand(true)
            .args_override_self(true)
            .arg(value("config").value_name("FILE").help("Component configuration file"))
            .arg(bare("print-config").value_name("true|false").help("Print the effective configuration").long_help(
                "Print the configuration that results from file, flags, environment and defaults, and exit. It can be \
                 given to --config, and holds paths of kubeconfigs, not their content",
            ))
            .arg(bare("version").value_name("raw|vX.Y.Z").help("Print the version").long_help(
                "Print the version and exit. With =raw print all details of the build; with =vX.Y.Z run, but report \
                 this version",
            ));
        Self { program, command }
    }

    /// Returns the usage, as `-h` prints it.
    pub fn usage(mut self) -> String {
        printed(&self.command.render_help())
    }

    /// Parses arguments (without the program's name). Fails if one is unknown, incomplete or invalid.
    pub fn parse(self, args: &[OsString]) -> Result<Parsed, UsageError> {
        let Self { program, mut command } = self;
        let has_command = args.first().is_some_and(|first| command.find_subcommand(first).is_some());
        let all = std::iter::once(OsString::from(program)).chain(args.iter().cloned());
        let matches = match command.try_get_matches_from_mut(all).map_err(without_content) {
            Ok(matches) => matches,
            Err(error) if error.kind() == ErrorKind::DisplayHelp => return Ok(Parsed::Help(printed(&error))),
            Err(error) if has_command => return Err(UsageError::Tool(printed(&with_usage(&error, command, args)))),
            Err(error) if is_misspelt(&error, args) => return Err(UsageError::Tool(printed(&error))),
            Err(error) => return Err(usage_error(&error, &command, args, program)),
        };
        let mut version = BuildInfo::of_this_binary();
        let request = text(&matches, "version").unwrap_or_else(|| "false".to_owned());
        match (request.as_str(), parse_bool(&request)) {
            ("raw", _) => {
                let fields: Vec<_> = version.fields().map(|(name, value)| format!("{name}: {value}")).into();
                return Ok(Parsed::Version(fields.join("\n")));
            }
            (_, Ok(true)) => return Ok(Parsed::Version(format!("{program} {}", version.version))),
            (_, Ok(false)) => {}
            (other, Err(_)) if other.starts_with('v') && other.len() > 1 => version.version = request,
            (other, Err(_)) => {
                let cause = "must be true, false, raw or a version that begins with v";
                return Err(UsageError::invalid("version", other, cause));
            }
        }
        // After a flag it is not a command (spec 70 §1).
        if let Some((name, _)) = matches.subcommand().filter(|_| !has_command) {
            return Err(UsageError::LateCommand { word: name.to_owned(), program });
        }
        let given = ["print-config", "version"].into_iter();
        let options = SharedOptions {
            config: text(&matches, "config").filter(|path| !path.is_empty()),
            print_config: flag_is_set(&matches, "print-config")?,
            version,
            given: given.filter_map(|name| Some((name, text(&matches, name)?))).collect(),
        };
        Ok(Parsed::Run(Box::new((options, matches))))
    }
}

impl SharedOptions {
    /// Returns those of a process that has only a configuration file.
    pub fn of_file(file: &str) -> Self {
        Self {
            config: Some(file.to_owned()).filter(|path| !path.is_empty()),
            print_config: false,
            version: BuildInfo::of_this_binary(),
            given: BTreeMap::new(),
        }
    }

    /// Returns `FLAG: --<name>=<value>` for `--config`, for each given flag of all programs, and for `others`, sorted by
    /// name (spec 70 §7). Credentials are left out.
    pub fn flag_lines<'a>(&self, others: impl IntoIterator<Item = (&'a str, String)>) -> Vec<String> {
        let mut values = vec![("config", self.config.clone().unwrap_or_default())];
        values.extend(self.given.iter().map(|(name, value)| (*name, value.clone())));
        values.extend(others);
        values.sort();
        values.into_iter().map(|(name, value)| format!("FLAG: --{name}={}", without_credentials(&value))).collect()
    }
}

/// Returns a text for the help of a program that is not wrapped between its words, however narrow the terminal is. Half of
/// an example is no command.
pub fn unbroken(text: &str) -> String {
    text.replace(' ', UNBROKEN.encode_utf8(&mut [0; 4]))
}

/// Returns what clap has laid out as it is printed: examples are kept together during the layout alone.
pub fn printed(text: &dyn fmt::Display) -> String {
    text.to_string().replace(UNBROKEN, " ")
}

/// A flag `--name value` or `--name=value`; the value may begin with a dash.
pub fn value(name: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::Set).allow_hyphen_values(true)
}

/// A flag `--name` (true) or `--name=value`.
pub fn bare(name: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::Set).num_args(0..=1).require_equals(true).default_missing_value("true")
}

/// Returns the value of a flag.
pub fn text(matches: &ArgMatches, name: &str) -> Option<String> {
    matches.get_one::<String>(name).cloned()
}

/// Returns the value of a boolean flag; false if it is not set. Fails if it has another value.
pub fn flag_is_set(matches: &ArgMatches, name: &str) -> Result<bool, UsageError> {
    match text(matches, name).filter(|value| !value.is_empty()) {
        Some(value) => parse_bool(&value).map_err(|cause| UsageError::invalid(name, &value, cause)),
        None => Ok(false),
    }
}

/// Parses a boolean as Go does. Fails with what it must be.
pub fn parse_bool(text: &str) -> Result<bool, &'static str> {
    match text {
        text if TRUE.contains(&text) => Ok(true),
        text if FALSE.contains(&text) => Ok(false),
        _ => Err("must be true or false"),
    }
}

impl UsageError {
    /// A flag that does not take this value.
    pub fn invalid(flag: &str, value: &str, cause: impl fmt::Display) -> Self {
        Self::InvalidValue { flag: flag.to_owned(), value: shown_word(value).into_owned(), cause: cause.to_string() }
    }
}

/// Reads a file. Fails with the error of the file system, if the file is too large, or if
/// the path is the content of a file. The error begins with a path.
pub fn read_file(path: &str) -> io::Result<Vec<u8>> {
    if is_content(path) {
        let text = "this is the content of a file, and no path — name the file that holds it";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let named = |error: io::Error| io::Error::new(error.kind(), format!("open {path}: {error}"));
    files::read(Path::new(path), MAX_BYTES).map_err(named)
}

/// Reads the configuration file. Fails if none is named or if it cannot be read.
pub fn read_config(options: &SharedOptions, read: &dyn Fn(&str) -> io::Result<Vec<u8>>) -> Result<Vec<u8>, LoadError> {
    read(options.config.as_deref().ok_or(LoadError::MissingConfig)?).map_err(LoadError::Read)
}

/// Prints a configuration, and warnings about it on standard error; returns the exit code. `file`: the configuration file,
/// if there is one.
pub fn print_config(yaml: &str, warnings: &[Warning], file: Option<&str>) -> i32 {
    for warning in warnings {
        writeln!(io::stderr(), "{}", warning.text(file)).ok();
    }
    print_or_fail(yaml)
}

/// Returns an error about arguments without texts that are the content of a file: they may hold credentials. The reason of
/// a parser is left out with them, because it may repeat the value.
pub fn without_content(mut error: clap::Error) -> clap::Error {
    let value = match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) if is_content(value) => Some(shown_word(value).into_owned()),
        _ => None,
    };
    for kind in [ContextKind::InvalidValue, ContextKind::InvalidArg, ContextKind::InvalidSubcommand] {
        if let Some(ContextValue::String(text)) = error.get(kind)
            && is_content(text)
        {
            let shown = ContextValue::String(shown_word(text).into_owned());
            error.insert(kind, shown);
        }
    }
    match (value, error.get(ContextKind::InvalidArg).cloned()) {
        (Some(value), Some(ContextValue::String(argument))) if error.kind() == ErrorKind::ValueValidation => {
            let text = format!("invalid value '{value}' for '{argument}'");
            let mut without_reason = clap::Error::raw(ErrorKind::ValueValidation, text);
            without_reason.insert(ContextKind::InvalidArg, ContextValue::String(argument));
            without_reason
        }
        _ => error,
    }
}

/// Returns the text of an error about the arguments of a command, with the short usage of that command. clap leaves it
/// out where a value is wrong, and elsewhere makes one of the given arguments, even if they exclude each other. clap's tip
/// to pass an unknown flag as a value is left out.
pub fn with_usage(error: &clap::Error, mut command: clap::Command, args: &[OsString]) -> String {
    const USAGE: &str = "\nUsage: ";
    const END: &str = "\nFor more information";
    const TIP: &str = "\n  tip: to pass '";
    let mut text = error.to_string();
    if let (Some(usage), Some(end)) = (text.find(USAGE), text.rfind(END)) {
        text.replace_range(usage..end, "");
    }
    if let Some(tip) = text.find(TIP) {
        let end = text[tip + 1..].find('\n').map_or(text.len(), |length| tip + 1 + length);
        text.replace_range(tip..end, "");
    }
    command.build(); // names of commands in their usage
    for arg in args {
        let Some(inner) = command.find_subcommand(arg).cloned() else { break };
        command = inner;
    }
    let usage = command.render_usage();
    match text.rsplit_once(END) {
        Some((head, end)) => format!("{}\n\n{usage}\n{END}{end}", head.trim_end()),
        None => format!("{text}\n{usage}\n"),
    }
}

/// Whether the first argument is nearly the name of a command. The error names that command.
fn is_misspelt(error: &clap::Error, args: &[OsString]) -> bool {
    let has_suggestion = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(names)) => !names.is_empty(),
        Some(ContextValue::String(name)) => !name.is_empty(),
        _ => false,
    };
    let is_word = args.first().and_then(|first| first.to_str()).is_some_and(|first| !first.starts_with('-'));
    error.kind() == ErrorKind::InvalidSubcommand && has_suggestion && is_word
}

fn usage_error(error: &clap::Error, command: &clap::Command, args: &[OsString], program: &'static str) -> UsageError {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(" "),
        _ => String::new(),
    };
    let unknown = |word| UsageError::UnknownCommand { word, program };
    let argument = context(ContextKind::InvalidArg);
    let flag = argument.split([' ', '[', '=']).next().unwrap_or_default().to_owned();
    match error.kind() {
        ErrorKind::InvalidSubcommand => unknown(context(ContextKind::InvalidSubcommand)),
        ErrorKind::UnknownArgument if argument.starts_with('-') => {
            match args.iter().find_map(|arg| command.find_subcommand(arg)) {
                Some(command) => UsageError::EarlyFlag { flag, command: command.get_name().to_owned(), program },
                None => UsageError::UnknownFlag(argument),
            }
        }
        ErrorKind::UnknownArgument => unknown(argument),
        ErrorKind::InvalidUtf8 => unknown("(not UTF-8)".to_owned()),
        _ => UsageError::MissingValue(flag),
    }
}
