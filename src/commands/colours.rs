use std::io;

use anstyle::{AnsiColor, Style};

pub(crate) const RED: Style = AnsiColor::Red.on_default();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(super) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(super) const CYAN: Style = AnsiColor::Cyan.on_default();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const PLAIN: Style = Style::new();

/// Whether standard output is a terminal whose user wants colours (`NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE`, `TERM`).
pub(crate) fn wanted() -> bool {
    anstream::AutoStream::choice(&io::stdout()) != anstream::ColorChoice::Never
}

pub(crate) fn paint(part: &str, style: Style, colours: bool) -> String {
    let style = if colours { style } else { PLAIN };
    format!("{style}{part}{style:#}")
}
