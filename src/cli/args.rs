//! What all commands write alike.

use clap::{Arg, ArgAction};

use super::PROGRAM;

/// What stands below the long help of a command: examples, and the meaning of its exit codes; 1 may have none.
pub(super) fn epilogue(examples: &[&str], exit_code_1: &str) -> String {
    let examples: String = examples.iter().map(|example| format!("  {PROGRAM} {example}\n")).collect();
    let exit_code_1 = if exit_code_1.is_empty() { String::new() } else { format!("  1  {exit_code_1}\n") };
    format!("Examples:\n{examples}\nExit codes:\n  0  success\n{exit_code_1}  2  wrong usage, or a failure")
}

/// An option with a value.
pub(super) fn option(name: &'static str, value: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).action(ArgAction::Set)
}
