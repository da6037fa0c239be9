//! The streams of a command. Here alone is decided what a terminal gets: texts come from tenants, and may steer it.

use std::io::{self, Write};

use super::output;

const USUAL: usize = 80;

pub(super) struct Screen<'a> {
    out: &'a mut dyn Write,
    remarks: &'a mut dyn Write,
    pub(super) look: Look,
    failure: Option<io::Error>,
}

/// What is behind standard output.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Look {
    pub(super) is_terminal: bool,
    pub(super) colours: bool,
    /// Width of the terminal, if tables are cut to it.
    pub(super) columns: Option<usize>,
}

/// What a text consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Content {
    /// JSON, YAML, or what a template makes. Other programs get it byte by byte, a terminal without control characters.
    #[default]
    Data,
    /// A text for people. Its colours are ours: foreign parts have no control characters.
    Painted,
}

impl<'a> Screen<'a> {
    pub(super) fn new(out: &'a mut dyn Write, remarks: &'a mut dyn Write, look: Look) -> Self {
        Self { out, remarks, look, failure: None }
    }

    /// Prints a text.
    pub(super) fn print(&mut self, text: &str, content: Content) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let Look { is_terminal, colours, .. } = self.look;
        if is_terminal {
            let text = output::escaped(text, colours && content == Content::Painted);
            self.out.write_all(text.as_bytes())?;
        } else {
            self.out.write_all(text.as_bytes())?;
        }
        self.out.flush()
    }

    /// Prints a text, for commands that go on when nobody reads. The first failure is kept.
    pub(super) fn say(&mut self, text: &str, content: Content) {
        if self.failure.is_none() {
            self.failure = self.print(text, content).err();
        }
    }

    /// Prints a line on standard error.
    pub(super) fn remark(&mut self, text: &str) {
        remark(self.remarks, text);
    }

    /// Returns why [`Self::say`] failed.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }
}

/// Prints a line on standard error, for what has no screen. A pipe gets the same text as a terminal.
pub(super) fn remark(stderr: &mut dyn Write, text: &str) {
    writeln!(stderr, "{}", output::remark(text)).ok();
}

/// Returns the width of the terminal behind standard output: `$COLUMNS`, else what the terminal reports.
pub(super) fn columns(env: &dyn Fn(&str) -> Option<String>) -> usize {
    width(env("COLUMNS").as_deref(), &of_terminal)
}

fn width(wanted: Option<&str>, terminal: &dyn Fn() -> Option<u16>) -> usize {
    let wanted = wanted.and_then(|text| text.trim().parse().ok());
    let columns = wanted.filter(|columns| *columns > 0).or_else(|| terminal().map(usize::from));
    columns.filter(|columns| *columns > 0).unwrap_or(USUAL)
}

fn of_terminal() -> Option<u16> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str, content: Content, look: Look) -> String {
        let (mut out, mut remarks) = (Vec::new(), Vec::new());
        Screen::new(&mut out, &mut remarks, look).print(text, content).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn terminal_gets_no_control_characters_and_a_pipe_gets_the_same_bytes() {
        let text = "\x1b[31ma\x1b[0m\r\n\u{202e}\x1b]0;t\x07";
        let terminal = |colours| Look { is_terminal: true, colours, columns: None };
        let pipe = |colours| Look { colours, ..Look::default() };

        for content in [Content::Data, Content::Painted] {
            for colours in [false, true] {
                assert_eq!(printed(text, content, pipe(colours)), text);
            }
            assert!(!printed(text, content, terminal(false)).contains(['\x1b', '\r', '\u{202e}']));
        }
        let safe = "\\u001b[31ma\\u001b[0m\\u000d\n\\u202e\\u001b]0;t\\u0007";
        assert_eq!(printed(text, Content::Data, terminal(true)), safe);
        let painted = "\x1b[31ma\x1b[0m\\u000d\n\\u202e\\u001b]0;t\\u0007";
        assert_eq!(printed(text, Content::Painted, terminal(true)), painted);
    }

    #[test]
    fn terminal_width_comes_from_the_environment_then_from_the_terminal() {
        let table = [
            (Some("132"), Some(100), 132),
            (Some("0"), Some(100), 100),
            (Some("wide"), Some(100), 100),
            (None, Some(100), 100),
            (None, Some(0), USUAL),
            (None, None, USUAL),
        ];

        for (wanted, terminal, expected) in table {
            assert_eq!(width(wanted, &|| terminal), expected, "{wanted:?} {terminal:?}");
        }
    }
}
