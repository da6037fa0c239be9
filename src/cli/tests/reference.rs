//! The references of all flags, one page for each program. They are generated; a failing test prints the expected text.

use clap::Command;

use super::super::{controller_manager, flags, legacy};

fn reference() -> String {
    let command = flags::command_line().command;
    let own = own_flags(&command);
    let former: String = legacy::FLAGS
        .iter()
        .map(|flag| {
            let default = if flag.default.is_empty() { String::new() } else { format!("`{}`", flag.default) };
            format!("| `--{}` | {default} | {} |\n", flag.name, flag.help)
        })
        .collect();
    let commands = commands(&command);
    format!(
        "# Flags\n\n\
         Generated from `src/cli/`; a test compares this file with it.\n\n\
         | Flag | Meaning |\n|---|---|\n{own}\n\
         ## Commands\n\n\
         Each has its own `--help`.\n\n\
         | Command | Meaning |\n|---|---|\n{commands}\n\
         ## Legacy flags\n\n\
         Each overrides its field of the configuration file. Their defaults count only without `--config`.\n\n\
         | Flag | Default | Meaning |\n|---|---|---|\n{former}"
    )
}

/// Returns the rows of the commands.
fn commands(command: &Command) -> String {
    let row = |command: &Command| {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        format!("| `{}` | {about} |\n", command.get_name())
    };
    command.get_subcommands().map(row).collect()
}

/// Returns the rows of the flags that are not legacy flags.
fn own_flags(command: &Command) -> String {
    command
        .get_arguments()
        .filter(|argument| !legacy::FLAGS.iter().any(|flag| argument.get_long() == Some(flag.name)))
        .map(|argument| {
            let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
            format!("| `--{}` | {help} |\n", argument.get_long().unwrap_or_default())
        })
        .collect()
}

fn assert_page(file: &str, expected: &str) {
    let path = format!("{}/docs/reference/{file}", env!("CARGO_MANIFEST_DIR"));
    let actual = std::fs::read_to_string(path).unwrap_or_default();

    assert!(actual == expected, "docs/reference/{file} must be:\n{expected}");
}

#[cfg(feature = "sim")]
#[test]
fn flags_reference_lists_every_flag() {
    assert_page("flags.md", &reference());
}

/// spec 80 §2
#[test]
fn flags_reference_of_the_controller_manager_lists_every_flag() {
    let command = controller_manager::command_line().command;
    let (own, commands) = (own_flags(&command), commands(&command));
    let expected = format!(
        "# Flags of gardener-controller-manager\n\n\
         Generated from `src/cli/controller_manager.rs`; a test compares this file with it.\n\n\
         | Flag | Meaning |\n|---|---|\n{own}\n\
         `--help` and `-h` print the flags. There are no legacy flags and no arguments.\n\n\
         ## Commands\n\n\
         | Command | Meaning |\n|---|---|\n{commands}"
    );

    assert_page("controller-manager-flags.md", &expected);
}
