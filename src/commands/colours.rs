//! Colours of a terminal.

pub(super) const RED: &str = "\x1b[31m";
pub(super) const GREEN: &str = "\x1b[32m";
pub(super) const YELLOW: &str = "\x1b[33m";
pub(super) const CYAN: &str = "\x1b[36m";
pub(super) const BOLD: &str = "\x1b[1m";
const RESET: &str = "\x1b[0m";

/// Appends a part in a colour (empty for none), if there are `colours`.
pub(super) fn push(text: &mut String, part: &str, colour: &str, colours: bool) {
    if colours && !colour.is_empty() {
        text.push_str(colour);
        text.push_str(part);
        text.push_str(RESET);
    } else {
        text.push_str(part);
    }
}
