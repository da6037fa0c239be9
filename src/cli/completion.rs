//! Scripts that complete the commands and their flags in a shell.

use clap_complete::{Shell, generate};
use process::command_line::CommandLine;

use super::{controller_manager, flags};

/// Returns the script of gardener-resource-manager for a shell.
pub fn script(shell: Shell) -> String {
    script_of(flags::command_line(), shell)
}

/// Returns the script of gardener-controller-manager for a shell.
pub fn controller_manager_script(shell: Shell) -> String {
    script_of(controller_manager::command_line(), shell)
}

fn script_of(mut line: CommandLine, shell: Shell) -> String {
    let mut script = Vec::new();
    generate(shell, &mut line.command, line.program, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completion_has_commands_and_their_flags() {
        let of_resource_manager = ["describe", "request-timeout", "suspend", "gardener-resource-manager"];
        let of_controller_manager = ["referrers", "request-timeout", "completion", "gardener-controller-manager"];
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let of_programs =
                [(script(shell), of_resource_manager), (controller_manager_script(shell), of_controller_manager)];
            for (script, words) in of_programs {
                for word in words {
                    assert!(script.contains(word), "{shell}: {word}");
                }
            }
        }
    }

    #[test]
    fn completion_has_the_kinds_whose_referrers_are_known() {
        for shell in [Shell::Bash, Shell::Zsh] {
            let script = controller_manager_script(shell);

            assert!(["secrets", "quotas", "seeds"].iter().all(|kind| script.contains(kind)), "{shell}: {script}");
        }
    }
}
