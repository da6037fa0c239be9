//! Lines in columns. Texts come from outside: control characters become spaces.

use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

use super::{
    colours::{PLAIN, paint},
    output::one_line,
};

/// Widest column. A longer cell shifts the rest of its own row. Otherwise one long text would lengthen all rows.
pub(super) const WIDEST: usize = 256;
const GAP: &str = "   ";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cell {
    text: String,
    style: Style,
}

pub(super) fn plain(text: impl AsRef<str>) -> Cell {
    styled(text, PLAIN)
}

pub(super) fn styled(text: impl AsRef<str>, style: Style) -> Cell {
    Cell { text: one_line(text.as_ref()), style }
}

/// Aligns rows. Empty cells at the end of a row take no room.
pub(super) fn lines(rows: &[Vec<Cell>], indent: &str, colours: bool) -> String {
    let mut widths = vec![0; rows.iter().map(Vec::len).max().unwrap_or_default()];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.text.width().min(WIDEST).max(*width);
        }
    }
    let mut text = String::new();
    for row in rows {
        let used = row.iter().rposition(|cell| !cell.text.is_empty()).map_or(0, |last| last + 1);
        text.push_str(indent);
        for (index, (cell, width)) in row.iter().zip(&widths).take(used).enumerate() {
            text.push_str(&paint(&cell.text, cell.style, colours));
            if index + 1 < used {
                text.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.text.width())));
                text.push_str(GAP);
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::colours::RED;

    #[test]
    fn columns_are_aligned_and_end_without_blanks() {
        let rows = [vec![plain("A"), plain("LONG"), plain("B")], vec![plain("long"), styled("x", RED), plain("")]];

        assert_eq!(lines(&rows, "  ", false), "  A      LONG   B\n  long   x\n");
        assert_eq!(lines(&rows[1..], "", true), "long   \x1b[31mx\x1b[0m\n");
    }

    #[test]
    fn one_long_cell_does_not_lengthen_all_rows() {
        let rows = [vec![plain("x".repeat(10_000)), plain("a")], vec![plain("x"), plain("b")]];

        let text = lines(&rows, "", false);

        let widths: Vec<usize> = text.lines().map(str::len).collect();
        assert_eq!(widths, [10_000 + GAP.len() + 1, WIDEST + GAP.len() + 1]);
    }
}
