use anstyle::Style;
use jiff::Timestamp;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::row::{Row, RowVerdict};
use crate::{
    cli::TableColumn,
    commands::{
        colours::{GREEN, PLAIN, RED, YELLOW, paint},
        columns::WIDEST,
        output::one_line,
    },
};

const COLUMNS: usize = TableColumn::ALL.len();
const PROBLEM: usize = COLUMNS - 1;
const GAP: &str = "   ";
const LEAST: usize = 20;
/// Width that PROBLEM keeps. On a narrow terminal, the columns of [`DISPENSABLE`] go for it, the first of them first.
const ROOM: usize = 30;
const DISPENSABLE: [TableColumn; 3] = [TableColumn::Class, TableColumn::Objects, TableColumn::Age];
const ELLIPSIS: char = '…';

/// Turns rows into lines. Columns are as wide as their widest cell so far.
pub(super) struct Table {
    namespaces: bool,
    colours: bool,
    screen: Option<usize>, // width of the screen; `None` if nothing is cut
    /// Whether PROBLEM keeps its width even if no row has a problem: later rows may have one.
    keeps_room: bool,
    widths: [usize; PROBLEM],
    /// Columns that had to go; decided with the first rows, so that rows stay below their titles.
    hidden: Option<Vec<TableColumn>>,
}

struct Cell {
    text: String,
    style: Style,
}

impl Table {
    pub(super) fn new(namespaces: bool, colours: bool, screen: Option<usize>, head: bool) -> Self {
        let mut widths = [0; PROBLEM];
        if head {
            widths.iter_mut().zip(TableColumn::ALL).for_each(|(width, column)| *width = column.title().len());
        }
        Self { namespaces, colours, screen, keeps_room: false, widths, hidden: None }
    }

    /// Keeps the room of PROBLEM for rows that are printed later.
    pub(super) fn keeping_room(self) -> Self {
        Self { keeps_room: true, ..self }
    }

    pub(super) fn head(&self) -> String {
        self.line_of(&TableColumn::ALL.map(|column| Cell { text: column.title().to_owned(), style: PLAIN }))
    }

    pub(super) fn lines<'a>(&mut self, rows: impl Iterator<Item = &'a Row> + Clone, now: Timestamp) -> String {
        let mut problem = 0;
        for row in rows.clone() {
            let cells = cells(row, now);
            problem = problem.max(cells[PROBLEM].text.width());
            for (width, cell) in self.widths.iter_mut().zip(cells) {
                *width = (*width).max(cell.text.width().min(WIDEST));
            }
        }
        if self.hidden.is_none() {
            let room = if self.keeps_room { ROOM } else { problem.min(ROOM) };
            self.hidden = Some(self.hidden_for(room));
        }
        rows.map(|row| self.line_of(&cells(row, now))).collect()
    }

    /// Returns which columns have to go so that PROBLEM has this room.
    fn hidden_for(&self, room: usize) -> Vec<TableColumn> {
        let mut hidden = Vec::new();
        let Some(screen) = self.screen else { return hidden };
        for column in DISPENSABLE {
            let used: usize = self.shown(&hidden).map(|index| self.widths[index] + GAP.len()).sum();
            if used + room <= screen {
                break;
            }
            hidden.push(column);
        }
        hidden
    }

    /// Returns the indexes of the columns before PROBLEM that are shown.
    fn shown(&self, hidden: &[TableColumn]) -> impl Iterator<Item = usize> {
        let is_shown =
            |column: &TableColumn| !hidden.contains(column) && (self.namespaces || *column != TableColumn::Namespace);
        (0..PROBLEM).zip(TableColumn::ALL).filter(move |(_, column)| is_shown(column)).map(|(index, _)| index)
    }

    fn line_of(&self, cells: &[Cell; COLUMNS]) -> String {
        let shown: Vec<usize> = self.shown(self.hidden.as_deref().unwrap_or_default()).collect();
        let has_problem = !cells[PROBLEM].text.is_empty();
        let mut line = String::new();
        let mut used = 0;
        for (position, index) in shown.iter().copied().enumerate() {
            let cell = &cells[index];
            line.push_str(&paint(&cell.text, cell.style, self.colours));
            if has_problem || position + 1 < shown.len() {
                let padding = self.widths[index].saturating_sub(cell.text.width());
                line.extend(std::iter::repeat_n(' ', padding));
                line.push_str(GAP);
            }
            used += self.widths[index] + GAP.len();
        }
        if has_problem {
            let room = self.screen.map_or(usize::MAX, |screen| screen.saturating_sub(used).max(LEAST));
            line.push_str(&cut(&cells[PROBLEM].text, room));
        }
        line.push('\n');
        line
    }
}

fn cells(row: &Row, now: Timestamp) -> [Cell; COLUMNS] {
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
        plain(&row.remark()),
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
            ignored: false,
            shares: None,
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
        let problem = "0123456789äöüß0123456789äöüß0123456789";
        let before = "a   True*   False   False   ".len();
        let table = [
            (Some(before + 38), problem),
            (Some(before + 37), "0123456789äöüß0123456789äöüß01234567…"),
            (Some(before + 21), "0123456789äöüß012345…"),
            (Some(before + 2), "0123456789äöüß01234…"),
            (Some(0), "0123456789äöüß01234…"),
        ];

        for (screen, expected) in table {
            let mut table = Table::new(false, false, screen, false);
            table.hidden = Some(DISPENSABLE.to_vec());
            let line = table.lines([row("a", problem)].iter(), now());

            assert_eq!(line, format!("a   True*   False   False   {expected}\n"), "{screen:?}");
        }
    }

    #[test]
    fn table_problem_keeps_its_room_on_a_narrow_screen() {
        let problem = "0123456789".repeat(5);
        let titles = |screen: Option<usize>, problem: &str, keeps_room: bool| {
            let mut table = Table::new(false, false, screen, true);
            table.keeps_room = keeps_room;
            table.lines([row("a", problem)].iter(), now());
            table.head().split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ")
        };
        let all = "NAME CLASS APPLIED HEALTHY PROGRESSING OBJECTS AGE PROBLEM";
        let used = "NAME   CLASS   APPLIED   HEALTHY   PROGRESSING   OBJECTS   AGE   ".len();
        let table = [
            (None, all),
            (Some(used + ROOM), all),
            (Some(used + ROOM - 1), "NAME APPLIED HEALTHY PROGRESSING OBJECTS AGE PROBLEM"),
            (Some(used + ROOM - 8), "NAME APPLIED HEALTHY PROGRESSING OBJECTS AGE PROBLEM"),
            (Some(used + ROOM - 9), "NAME APPLIED HEALTHY PROGRESSING AGE PROBLEM"),
            (Some(used + ROOM - 19), "NAME APPLIED HEALTHY PROGRESSING PROBLEM"),
            (Some(0), "NAME APPLIED HEALTHY PROGRESSING PROBLEM"),
        ];

        for (screen, expected) in table {
            assert_eq!(titles(screen, &problem, false), expected, "{screen:?}");
        }
        assert_eq!(titles(Some(used), "", false), all, "no problem needs no room");
        assert_eq!(titles(Some(used), "", true), "NAME APPLIED HEALTHY PROGRESSING PROBLEM", "a later one will");
        assert_eq!(titles(Some(used + 10), "short", false), all);
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
