use super::super::{flags, legacy};

fn reference() -> String {
    let command = flags::command_line().command;
    let own: String = command
        .get_arguments()
        .filter(|argument| !legacy::FLAGS.iter().any(|flag| argument.get_long() == Some(flag.name)))
        .map(|argument| {
            let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
            format!("| `--{}` | {help} |\n", argument.get_long().unwrap_or_default())
        })
        .collect();
    let former: String = legacy::FLAGS
        .iter()
        .map(|flag| {
            let default = if flag.default.is_empty() { String::new() } else { format!("`{}`", flag.default) };
            format!("| `--{}` | {default} | {} |\n", flag.name, flag.help)
        })
        .collect();
    let commands: String = command
        .get_subcommands()
        .map(|command| {
            format!(
                "| `{}` | {} |\n",
                command.get_name(),
                command.get_about().map(ToString::to_string).unwrap_or_default()
            )
        })
        .collect();
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

/// On failure the message is the text that the file must have.
#[cfg(feature = "sim")]
#[test]
fn flags_reference_lists_every_flag() {
    let expected = reference();

    let actual =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/flags.md")).unwrap_or_default();

    assert!(actual == expected, "docs/reference/flags.md must be:\n{expected}");
}
