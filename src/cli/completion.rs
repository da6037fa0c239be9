//! Scripts that complete the commands and their flags in a shell.

use std::fmt::Write as _;

use clap::{Arg, Command};

use super::{PROGRAM, Shell, flags};

/// Returns the script for a shell.
pub fn script(shell: Shell) -> String {
    let program = flags::command_line().command;
    match shell {
        Shell::Bash => bash(&program),
        Shell::Zsh => format!("#compdef {PROGRAM}\nautoload -U +X bashcompinit && bashcompinit\n{}", bash(&program)),
        Shell::Fish => fish(&program),
    }
}

fn bash(program: &Command) -> String {
    let function = format!("_{}", PROGRAM.replace('-', "_"));
    let mut cases = String::new();
    for command in program.get_subcommands() {
        let words: Vec<String> = names(command).into_iter().chain(long_flags(command)).collect();
        writeln!(cases, "        {}) words=\"{}\" ;;", command.get_name(), words.join(" ")).ok();
    }
    let commands = names(program).join(" ");
    let flags = long_flags(program).collect::<Vec<_>>().join(" ");
    format!(
        "{function}() {{\n    \
             local word=\"${{COMP_WORDS[COMP_CWORD]}}\" words=\"{flags}\"\n    \
             if [[ $COMP_CWORD -eq 1 ]]; then\n        \
                 words=\"{commands} $words\"\n    \
             else\n        \
                 case \"${{COMP_WORDS[1]}}\" in\n\
                 {cases}        \
                 esac\n    \
             fi\n    \
             COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n\
         }}\n\
         complete -o default -F {function} {PROGRAM}\n"
    )
}

fn fish(program: &Command) -> String {
    let mut script = String::new();
    let about = |command: &Command| command.get_about().map(|text| quoted(&text.to_string())).unwrap_or_default();
    for command in program.get_subcommands() {
        let name = command.get_name();
        let of = |condition: &str, rest: &str| format!("complete -c {PROGRAM} -n '{condition}' {rest}\n");
        script += &of("__fish_use_subcommand", &format!("-a {name} -d {}", about(command)));
        let condition = format!("__fish_seen_subcommand_from {name}");
        for nested in command.get_subcommands() {
            script += &of(&condition, &format!("-a {} -d {}", nested.get_name(), about(nested)));
        }
        for (flag, help) in flags_of(command).filter_map(|flag| Some((flag.get_long()?, flag.get_help()))) {
            let help = quoted(&help.map(ToString::to_string).unwrap_or_default());
            script += &of(&condition, &format!("-l {flag} -d {help}"));
        }
    }
    script
}

fn names(command: &Command) -> Vec<String> {
    command.get_subcommands().map(|nested| nested.get_name().to_owned()).collect()
}

fn long_flags(command: &Command) -> impl Iterator<Item = String> {
    flags_of(command).filter_map(|flag| Some(format!("--{}", flag.get_long()?)))
}

fn flags_of(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|flag| !flag.is_hide_set())
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completion_has_commands_and_their_flags() {
        let bash = script(Shell::Bash);
        let describe = bash.lines().find(|line| line.trim_start().starts_with("describe) ")).unwrap();

        for flag in ["--tree", "--namespace", "--output", "--context", "--request-timeout"] {
            assert!(describe.contains(flag), "{describe}");
        }
        assert!(bash.contains("pack unpack validate diff get describe"), "{bash}");
        assert!(
            bash.ends_with("complete -o default -F _gardener_resource_manager gardener-resource-manager\n"),
            "{bash}"
        );
        assert!(script(Shell::Zsh).starts_with("#compdef gardener-resource-manager\n"));
    }

    #[test]
    fn completion_for_fish_has_descriptions() {
        let fish = script(Shell::Fish);

        let suspend =
            "complete -c gardener-resource-manager -n '__fish_use_subcommand' -a suspend -d 'Let the controller ignore";
        assert!(fish.contains(suspend), "{fish}");
        assert!(fish.contains("-n '__fish_seen_subcommand_from webhook' -a review -d "), "{fish}");
        assert!(fish.contains("-n '__fish_seen_subcommand_from get' -l unhealthy -d "), "{fish}");
        assert!(!fish.contains("-l dry-run"), "{fish}");
    }
}
