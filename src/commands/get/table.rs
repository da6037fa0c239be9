use anstyle::Style;
use jiff::Timestamp;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::row::{Row, RowVerdict};
use crate::commands::{
    colours::{GREEN, PLAIN, RED, YELLOW, paint},
    columns::WIDEST,
    output::one_line,
};

const HEAD: [&str; 9] =
    ["NAMESPACE", "NAME", "CLASS", "APPLIED", "HEALTHY", "PROGRESSING", "OBJECTS", "AGE", "PROBLEM"];
const PROBLEM: usize = HEAD.len() - 1;
const GAP: &str = "   ";
const LEAST: usize = 20;
const ELLIPSIS: char = '…';

/// Turns rows into lines. Columns are as wide as their widest cell so far.
pub(super) struct Table {
    pub(super) namespaces: bool,
    pub(super) colours: bool,
    pub(super) screen: Option<usize>, // width of the screen; `None` if nothing is cut
    widths: [usize; PROBLEM],
}

struct Cell {
    text: String,
    style: Style,
}

impl Table {
    pub(super) fn new(namespaces: bool, colours: bool, screen: Option<usize>, head: bool) -> Self {
        let mut widths = [0; PROBLEM];
        if head {
            widths.iter_mut().zip(HEAD).for_each(|(width, title)| *width = title.len());
        }
        Self { namespaces, colours, screen, widths }
    }

    pub(super) fn head(&self) -> String {
        self.line_of(&HEAD.map(|title| Cell { text: title.to_owned(), style: PLAIN }))
    }

    pub(super) fn lines<'a>(&mut self, rows: impl Iterator<Item = &'a Row> + Clone, now: Timestamp) -> String {
        for row in rows.clone() {
            for (width, cell) in self.widths.iter_mut().zip(cells(row, now)) {
                *width = (*width).max(cell.text.width().min(WIDEST));
            }
        }
        rows.map(|row| self.line_of(&cells(row, now))).collect()
    }

    fn line_of(&self, cells: &[Cell; HEAD.len()]) -> String {
        let first = usize::from(!self.namespaces);
        let last = if cells[PROBLEM].text.is_empty() { PROBLEM - 1 } else { PROBLEM };
        let mut line = String::new();
        let mut used = 0;
        for (index, cell) in cells.iter().enumerate().take(last + 1).skip(first) {
            if index == PROBLEM {
                let room = self.screen.map_or(usize::MAX, |screen| screen.saturating_sub(used).max(LEAST));
                line.push_str(&cut(&cell.text, room));
                break;
            }
            line.push_str(&paint(&cell.text, cell.style, self.colours));
            if index < last {
                let padding = self.widths[index].saturating_sub(cell.text.width());
                line.extend(std::iter::repeat_n(' ', padding));
                line.push_str(GAP);
            }
            used += self.widths[index] + GAP.len();
        }
        line.push('\n');
        line
    }
}

fn cells(row: &Row, now: Timestamp) -> [Cell; HEAD.len()] {
    let plain = |text: &str| Cell { text: one_line(text), style: PLAIN };
    let [applied, healthy, progressing] = row.conditions.each_ref().map(|mark| {
        let style = match mark.verdict {
            RowVerdict::Good => GREEN,
            RowVerdict::Open => YELLOW,
            RowVerdict::Bad => RED,
        };
        Cell { text: one_line(&mark.text), style }
    });
    [
        plain(&row.key.namespace),
        plain(&row.key.name),
        plain(&row.class),
        applied,
        healthy,
        progressing,
        plain(&row.objects.to_string()),
        plain(&row.age(now)),
        plain(row.problem.as_deref().unwrap_or_default()),
    ]
}

fn cut(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut left = room.saturating_sub(1);
    let fits = |letter: &char| {
        let rest = left.checked_sub(letter.width().unwrap_or_default());
        left = rest.unwrap_or_default();
        rest.is_some()
    };
    text.chars().take_while(fits).chain([ELLIPSIS]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::get::row::Mark;

    fn row(name: &str, problem: &str) -> Row {
        let mark = |text: &str, verdict| Mark { text: text.to_owned(), verdict };
        let healthy = if problem.is_empty() { mark("True", RowVerdict::Good) } else { mark("False", RowVerdict::Bad) };
        Row {
            key: cluster::object::NamespacedName::new("garden", name),
            class: "seed".to_owned(),
            conditions: [mark("True*", RowVerdict::Open), healthy, mark("False", RowVerdict::Good)],
            objects: 12,
            created: Some(now()),
            problem: Some(problem.to_owned()).filter(|problem| !problem.is_empty()),
        }
    }

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    #[test]
    fn table_columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(true, false, None, true);
        let rows = [row("a-long-name", ""), row("b", "R: m\n\x1b[2J")];

        let lines = table.lines(rows.iter(), now());

        assert_eq!(
            table.head() + &lines,
            "NAMESPACE   NAME          CLASS   APPLIED   HEALTHY   PROGRESSING   OBJECTS   AGE   PROBLEM\n\
             garden      a-long-name   seed    True*     True      False         12        0s\n\
             garden      b             seed    True*     False     False         12        0s    R: m  [2J\n"
        );
    }

    #[test]
    fn table_column_keeps_its_width_and_colours_take_no_room() {
        let mut table = Table::new(false, true, None, false);
        let (long, short) = ([row("long", "R")], [row("s", "R")]);

        let lines = table.lines(long.iter(), now()) + &table.lines(short.iter(), now());

        let cells = "\x1b[33mTrue*\x1b[0m   \x1b[31mFalse\x1b[0m   \x1b[32mFalse\x1b[0m   12   0s   R\n";
        assert_eq!(lines, format!("long   seed   {cells}s      seed   {cells}"));
    }

    #[test]
    fn table_problem_is_cut_at_the_edge_of_the_screen() {
        let problem = "0123456789äöüß0123456789";
        let before = "a   seed   True*   False   False   12   0s   ".len();
        let table = [
            (None, problem),
            (Some(before + 24), problem),
            (Some(before + 23), "0123456789äöüß01234567…"),
            (Some(before + 21), "0123456789äöüß012345…"),
            (Some(before + 2), "0123456789äöüß01234…"),
            (Some(0), "0123456789äöüß01234…"),
        ];

        for (screen, expected) in table {
            let line = Table::new(false, false, screen, false).lines([row("a", problem)].iter(), now());

            assert_eq!(line.get(before..), Some(format!("{expected}\n").as_str()), "{screen:?}");
        }
    }

    /// Wide letters take two columns each.
    #[test]
    fn table_width_counts_wide_letters_twice() {
        assert_eq!(cut("节点不可用 now", 14), "节点不可用 now");
        assert_eq!(cut("节点不可用 now", 8), "节点不…");
        assert_eq!(cut("节点不可用 now", 7), "节点不…");
        assert_eq!(cut("节点不可用 now", 0), "…");

        let lines = Table::new(false, false, None, false).lines([row("节", ""), row("ab", "")].iter(), now());
        assert_eq!(
            lines.lines().map(|line| line.split("seed").next()).collect::<Vec<_>>(),
            [Some("节   "), Some("ab   ")]
        );
    }
}
