//! Manual pages of the programs and of their commands, in section 1.

use clap::{Args, Command};
use clap_mangen::Man;
use process::command_line::CommandLine;

use super::{controller_manager, flags, grammar::PATH};

/// Options of `man`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Args)]
#[group(skip)]
pub struct ManOptions {
    /// Where the pages go.
    #[arg(value_name = "DIRECTORY", value_parser = PATH)]
    pub directory: String,
}

/// A manual page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManualPage {
    /// Name of the file, e.g. `gardener-resource-manager-get.1`.
    pub file: String,
    /// The page, for roff.
    pub content: Vec<u8>,
}

/// Returns the pages of gardener-resource-manager and of all its commands.
pub fn pages() -> Vec<ManualPage> {
    pages_of(flags::command_line())
}

/// Returns the pages of gardener-controller-manager and of all its commands.
pub fn controller_manager_pages() -> Vec<ManualPage> {
    pages_of(controller_manager::command_line())
}

fn pages_of(line: CommandLine) -> Vec<ManualPage> {
    let mut command = complete(line.command);
    command.build();
    let mut pages = Vec::new();
    add(&command, &mut pages);
    pages
}

/// A page has all options with their texts, and stands for the help of the command.
fn complete(command: Command) -> Command {
    let command = command.disable_help_subcommand(true).mut_args(|argument| argument.hide_short_help(false));
    command.mut_subcommands(complete)
}

fn add(command: &Command, pages: &mut Vec<ManualPage>) {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let mut content = Vec::new();
    Man::new(command.clone()).render(&mut content).expect("memory can be written");
    pages.push(ManualPage { file: format!("{name}.1"), content });
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        add(command, pages);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn manual_has_a_page_for_each_command() {
        let pages: BTreeMap<String, String> =
            pages().into_iter().map(|page| (page.file, String::from_utf8(page.content).unwrap())).collect();

        let mut expected = vec!["gardener-resource-manager.1".to_owned()];
        for command in flags::command_line().command.get_subcommands() {
            let name = format!("gardener-resource-manager-{}", command.get_name());
            expected.extend(command.get_subcommands().map(|it| format!("{name}-{}.1", it.get_name())));
            expected.push(format!("{name}.1"));
        }
        expected.sort();
        assert_eq!(pages.keys().cloned().collect::<Vec<_>>(), expected);
        let get = &pages["gardener-resource-manager-get.1"];
        for text in ["List ManagedResources with their conditions", "unhealthy", "Exit codes", ".SH SYNOPSIS"] {
            assert!(get.contains(text), "{text}: {get}");
        }
        assert!(pages["gardener-resource-manager-pack.1"].contains("Do not compress the manifests"));
    }

    #[test]
    fn manual_of_the_controller_manager_has_a_page_for_each_command() {
        let mut files: Vec<String> = controller_manager_pages().into_iter().map(|page| page.file).collect();
        files.sort();

        let of = |command: &str| format!("gardener-controller-manager{command}.1");
        let commands = [
            "-check",
            "-completion",
            "-extensions",
            "-help",
            "-hibernation",
            "-maintenance",
            "-man",
            "-referrers",
            "-version",
            "",
        ];
        assert_eq!(files, commands.map(of));
    }
}
