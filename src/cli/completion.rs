//! Scripts that complete the commands and their flags in a shell.

use clap_complete::{Shell, generate};

use super::{PROGRAM, flags};

/// Returns the script for a shell.
pub fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    generate(shell, &mut flags::command_line().command, PROGRAM, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completion_has_commands_and_their_flags() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell);

            for word in ["describe", "request-timeout", "suspend", PROGRAM] {
                assert!(script.contains(word), "{shell}: {word}");
            }
        }
    }
}
