//! The table of `-o custom-columns=…`. Missing values are `<none>`, several are separated by commas, as by kubectl.

use serde_json::Value;
use unicode_width::UnicodeWidthStr as _;

use crate::{
    cli::CustomColumn,
    commands::{columns::WIDEST, output::one_line},
    jsonpath::{self, TooMuch},
};

const NONE: &str = "<none>";
const GAP: &str = "   ";

/// Turns objects into lines. Columns are as wide as their widest cell so far.
pub(super) struct CustomTable<'o> {
    columns: &'o [CustomColumn],
    widths: Vec<usize>,
}

impl<'o> CustomTable<'o> {
    pub(super) fn new(columns: &'o [CustomColumn], head: bool) -> Self {
        let widths = columns.iter().map(|column| if head { column.header.width() } else { 0 }).collect();
        Self { columns, widths }
    }

    pub(super) fn head(&self) -> String {
        self.line(&self.columns.iter().map(|column| column.header.clone()).collect::<Vec<_>>())
    }

    /// Returns the cells of an object. Fails if that takes too long.
    pub(super) fn cells(&self, object: &Value) -> Result<Vec<String>, TooMuch> {
        let cell = |column: &CustomColumn| {
            let values = column.path.of(object)?;
            let texts: Vec<String> = values.into_iter().filter(|value| !value.is_null()).map(jsonpath::text).collect();
            Ok(if texts.is_empty() { NONE.to_owned() } else { one_line(&texts.join(",")) })
        };
        self.columns.iter().map(cell).collect()
    }

    pub(super) fn lines<'a>(&mut self, rows: impl Iterator<Item = &'a Vec<String>> + Clone) -> String {
        for row in rows.clone() {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width().min(WIDEST));
            }
        }
        rows.map(|row| self.line(row)).collect()
    }

    fn line(&self, cells: &[String]) -> String {
        let mut line = String::new();
        for (index, (cell, width)) in cells.iter().zip(&self.widths).enumerate() {
            line.push_str(cell);
            if index + 1 < cells.len() {
                line.extend(std::iter::repeat_n(' ', width.saturating_sub(cell.width())));
                line.push_str(GAP);
            }
        }
        line.push('\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::OutputFormat;

    #[test]
    fn custom_columns_have_values_lists_and_none() {
        let Ok(OutputFormat::CustomColumns(columns)) = "custom-columns=NAME:.a,ITEMS:.b[*],X:.c".parse() else {
            panic!("it is a format")
        };
        let mut table = CustomTable::new(&columns, true);
        let objects = [json!({"a": "long name", "b": [1, "x\n"], "c": {"d": true}}), json!({"a": "b", "c": null})];

        let rows: Vec<_> = objects.iter().map(|object| table.cells(object).unwrap()).collect();
        let lines = table.lines(rows.iter());

        assert_eq!(
            table.head() + &lines,
            "NAME        ITEMS    X\n\
             long name   1,x      {\"d\":true}\n\
             b           <none>   <none>\n"
        );
    }
}
