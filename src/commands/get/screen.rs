use std::io::{self, Write};

use super::GetError;
use crate::commands::output::{harmless, one_line};

const USUAL: usize = 80;

pub(in crate::commands) struct Screen<'a> {
    pub(in crate::commands) out: &'a mut dyn Write,
    pub(in crate::commands) remarks: &'a mut dyn Write,
    pub(in crate::commands) colours: bool,
    pub(in crate::commands) columns: Option<usize>,
}

impl Screen<'_> {
    pub(super) fn print(&mut self, text: &str) -> Result<(), GetError> {
        let on_terminal = self.columns.map(|_| harmless(text.to_owned(), self.colours));
        let text = on_terminal.as_deref().unwrap_or(text);
        self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()).map_err(GetError::Output)
    }

    pub(super) fn remark(&mut self, text: &str) {
        writeln!(self.remarks, "{}", one_line(text)).ok();
    }
}

/// Returns the width of the terminal behind standard output: `$COLUMNS`, else what the terminal reports.
pub(in crate::commands) fn columns(env: &dyn Fn(&str) -> Option<String>) -> usize {
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
