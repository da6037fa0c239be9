//! Where results go, and how wide that is.

use std::{
    io::{self, Write},
    os::fd::AsFd,
    process::{Command, Stdio},
};

use super::GetError;
use crate::commands::one_line;

/// Columns of a terminal that does not say how many it has.
const USUAL: usize = 80;

/// Streams of a command that prints as it goes.
pub(in crate::commands) struct Screen<'a> {
    /// Results.
    pub(in crate::commands) out: &'a mut dyn Write,
    /// One line each: what else should be known.
    pub(in crate::commands) remarks: &'a mut dyn Write,
    /// Whether results may be coloured.
    pub(in crate::commands) colours: bool,
    /// Columns of the terminal; `None` if it is none.
    pub(in crate::commands) columns: Option<usize>,
}

// === impl Screen ===

impl Screen<'_> {
    pub(super) fn print(&mut self, text: &str) -> Result<(), GetError> {
        self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()).map_err(GetError::Output)
    }

    pub(super) fn remark(&mut self, text: &str) {
        // Nobody is left to be told that nobody reads.
        writeln!(self.remarks, "{}", one_line(text)).ok();
    }
}

/// The columns of the terminal that the standard output is: `$COLUMNS`, else what the terminal says.
pub(in crate::commands) fn columns(env: &dyn Fn(&str) -> Option<String>) -> usize {
    width(env("COLUMNS").as_deref(), &ask)
}

fn width(wanted: Option<&str>, ask: &dyn Fn() -> Option<String>) -> usize {
    let positive = |text: &str| text.trim().parse().ok().filter(|columns| *columns > 0);
    let asked = || positive(ask()?.split_whitespace().nth(1)?);
    wanted.and_then(positive).or_else(asked).unwrap_or(USUAL)
}

/// Rows and columns, of `stty`: the system call needs code that this program does not allow itself.
fn ask() -> Option<String> {
    let terminal = io::stdout().as_fd().try_clone_to_owned().ok()?;
    let output = Command::new("stty").arg("size").stdin(terminal).stderr(Stdio::null()).output().ok()?;
    String::from_utf8(output.stdout).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_knows_the_width_best_then_the_terminal() {
        let table = [
            (Some("132"), Some("24 100\n"), 132),
            (Some("0"), Some("24 100\n"), 100),
            (Some("wide"), Some("24 100\n"), 100),
            (None, Some("24 100\n"), 100),
            (None, Some("0 0\n"), USUAL),
            (None, Some(""), USUAL),
            (None, None, USUAL),
        ];

        for (wanted, asked, expected) in table {
            assert_eq!(width(wanted, &|| asked.map(str::to_owned)), expected, "{wanted:?} {asked:?}");
        }
    }
}
