//! Completes command lines of the plugin. kubectl runs `kubectl_complete-managedresource` with the words after
//! `kubectl managedresource`. The last word may be incomplete. kubectl expects what Cobra's `__complete` prints.

use std::{ffi::OsString, fmt::Write as _};

use clap::{Arg, Command};

/// Directives of Cobra: the shell completes names of files itself, or does not.
const FILES: &str = ":0";
const NO_FILES: &str = ":4";

/// Returns one candidate per line, with a tab before its description, and last a directive.
pub fn candidates(words: &[OsString]) -> String {
    let mut command = super::command();
    command.build();
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let (last, before) = words.split_last().map_or(("", &[][..]), |(last, before)| (*last, before));

    let mut at = &command;
    let mut option = None;
    for word in before {
        if option.take().is_some() {
            continue; // the word is the value of the option
        }
        if let Some(found) = argument(at, word) {
            option = Some(found).filter(|found| takes_value(found) && !word.contains('='));
        } else if let Some(found) = at.find_subcommand(word) {
            at = found;
        }
    }

    let found = match option {
        Some(option) => values(option),
        None if last.starts_with('-') => flags(at),
        None => commands(at),
    };
    let is_closed = !found.is_empty();
    let mut text = String::new();
    for (word, description) in found.into_iter().filter(|(word, _)| word.starts_with(last)) {
        let description = description.lines().next().unwrap_or_default();
        writeln!(text, "{word}\t{description}").expect("it is a string");
    }
    text.push_str(if is_closed { NO_FILES } else { FILES });
    text
}

/// Returns the option that a word names.
fn argument<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let name = word.split('=').next().unwrap_or_default();
    command.get_arguments().find(|argument| match name.strip_prefix("--") {
        Some(long) => argument.get_long() == Some(long),
        None => name
            .strip_prefix('-')
            .is_some_and(|short| argument.get_short().is_some_and(|known| short.chars().eq(std::iter::once(known)))),
    })
}

fn takes_value(argument: &Arg) -> bool {
    argument.get_action().takes_values()
}

fn flags(command: &Command) -> Vec<(String, String)> {
    let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let named = shown.filter_map(|argument| {
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        Some((format!("--{}", argument.get_long()?), help))
    });
    named.collect()
}

fn commands(command: &Command) -> Vec<(String, String)> {
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    let about = |command: &Command| command.get_about().map(ToString::to_string).unwrap_or_default();
    shown.map(|command| (command.get_name().to_owned(), about(command))).collect()
}

fn values(argument: &Arg) -> Vec<(String, String)> {
    let values = argument.get_possible_values();
    let help = |value: &clap::builder::PossibleValue| value.get_help().map(ToString::to_string).unwrap_or_default();
    values.iter().map(|value| (value.get_name().to_owned(), help(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &[&str]) -> (Vec<String>, String) {
        let text = candidates(&line.iter().map(OsString::from).collect::<Vec<_>>());
        let mut lines: Vec<String> = text.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect();
        let directive = lines.pop().unwrap();
        (lines, directive)
    }

    #[test]
    fn plugin_completion_has_commands_flags_and_values() {
        let (all, _) = words(&[""]);
        assert!(all.contains(&"describe".to_owned()) && !all.contains(&"demo".to_owned()), "{all:?}");
        let table: [(&[&str], &[&str], &str); 10] = [
            (&["de"], &["describe"], NO_FILES),
            (&["webhook", "re"], &["review", "registration"], NO_FILES),
            (&["get", "-A", "--unh"], &["--unhealthy"], NO_FILES),
            (&["pack", "-o", ""], &["yaml", "json"], NO_FILES),
            (&["pack", "-n", "get", "--output", "j"], &["json"], NO_FILES),
            (&["get", "--output=wide", "--allow"], &[], NO_FILES),
            (&["validate", ""], &[], FILES),
            (&["get", "--kubeconfig", ""], &[], FILES),
            (&["garbage", "--dry"], &[], NO_FILES),
            (&["nothing-like-it", "x"], &[], NO_FILES),
        ];
        for (line, expected, directive) in table {
            let (found, directive_found) = words(line);
            assert_eq!(
                (found, directive_found.as_str()),
                (expected.iter().map(|&it| it.to_owned()).collect(), directive)
            );
        }
        assert_eq!(words(&[]).1, NO_FILES);
    }
}
