//! The streams of a command that prints while it runs.

use std::io::{self, Write};

use super::output::{harmless, one_line};

const USUAL: usize = 80;

pub(super) struct Screen<'a> {
    out: &'a mut dyn Write,
    remarks: &'a mut dyn Write,
    pub(super) colours: bool,
    /// Width of the terminal behind standard output, if tables are cut to it.
    pub(super) columns: Option<usize>,
    failure: Option<io::Error>,
}

impl<'a> Screen<'a> {
    pub(super) fn new(
        out: &'a mut dyn Write,
        remarks: &'a mut dyn Write,
        colours: bool,
        columns: Option<usize>,
    ) -> Self {
        Self { out, remarks, colours, columns, failure: None }
    }

    /// Prints a text. In a pipe it stays as it is: JSON escapes control characters, and a template may want them.
    pub(super) fn print(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        let on_terminal = self.columns.map(|_| harmless(text.to_owned(), self.colours));
        let text = on_terminal.as_deref().unwrap_or(text);
        self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush())
    }

    /// Prints a text without control characters, for commands that go on when nobody reads. The first failure is kept.
    pub(super) fn say(&mut self, text: String) {
        if self.failure.is_none() {
            let text = harmless(text, self.colours);
            self.failure = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()).err();
        }
    }

    pub(super) fn remark(&mut self, text: &str) {
        writeln!(self.remarks, "{}", one_line(text)).ok();
    }

    /// Returns why [`Self::say`] failed.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }
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
