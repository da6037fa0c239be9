//! What `-o` and `--sort-by` make of the ManagedResources that are read.

use cluster::object;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    GetError,
    columns::CustomTable,
    follow::LastSeen,
    objects::{Format, Objects, Shape},
    row::Row,
    shares::Shares,
    sort::Rank,
    table::Table,
};
use crate::{
    api::resources::keys,
    cli::{GetOptions, OutputFormat, SortBy, TableColumn},
    commands::{output::one_line, screen::Content},
    jsonpath::{Template, TooMuch},
};

/// Bytes of objects that are kept until all are read.
const MOST_KEPT: usize = 256 << 20;

pub(super) struct Printer<'o> {
    form: Form<'o>,
    has_head: bool,
    sort_by: Option<&'o SortBy>,
    /// What waits for its place in the order.
    waiting: Vec<(Rank, Kept)>,
    bytes: usize,
}

/// How the table looks.
#[derive(Debug, Clone, Copy)]
pub(super) struct TableStyle {
    pub(super) namespaces: bool,
    pub(super) colours: bool,
    /// Width of the screen; `None` if nothing is cut.
    pub(super) screen: Option<usize>,
}

enum Form<'o> {
    Table(Table, Vec<Row>),
    Columns(CustomTable<'o>, Vec<Vec<String>>),
    Names,
    Objects(Objects),
    Template(&'o Template, Shape, Vec<Value>),
}

enum Kept {
    Row(Box<Row>),
    Object(Value),
}

impl<'o> Printer<'o> {
    pub(super) fn new(options: &'o GetOptions, style: TableStyle, shape: Shape) -> Self {
        let has_head = !options.no_headers;
        let form = match &options.output {
            None | Some(OutputFormat::Wide) => {
                let table = Table::new(style.namespaces, style.colours, style.screen, has_head);
                let keeps_room = options.watch || options.watch_only;
                Form::Table(if keeps_room { table.keeping_room() } else { table }, Vec::new())
            }
            Some(OutputFormat::CustomColumns(columns)) => {
                Form::Columns(CustomTable::new(columns, has_head), Vec::new())
            }
            Some(OutputFormat::Name) => Form::Names,
            Some(OutputFormat::Json) => Form::Objects(Objects::new(Format::Json, shape)),
            Some(OutputFormat::Yaml) => Form::Objects(Objects::new(Format::Yaml, shape)),
            Some(OutputFormat::JsonPath(template)) => Form::Template(template, shape, Vec::new()),
        };
        Self { form, has_head, sort_by: options.sort_by.as_ref(), waiting: Vec::new(), bytes: 0 }
    }

    pub(super) fn is_table(&self) -> bool {
        matches!(self.form, Form::Table(..))
    }

    /// Returns what its texts consist of.
    pub(super) fn content(&self) -> Content {
        if self.is_table() { Content::Painted } else { Content::Data }
    }

    /// Whether it prints lines below titles.
    pub(super) fn is_tabular(&self) -> bool {
        matches!(self.form, Form::Table(..) | Form::Columns(..))
    }

    pub(super) fn is_empty_table(&self) -> bool {
        let is_empty = match &self.form {
            Form::Table(_, rows) => rows.is_empty(),
            Form::Columns(_, rows) => rows.is_empty(),
            Form::Names | Form::Objects(_) | Form::Template(..) => false,
        };
        is_empty && self.waiting.is_empty()
    }

    /// Forgets the objects so far. Returns `false` if they are printed already.
    pub(super) fn forget(&mut self) -> bool {
        self.waiting.clear();
        self.bytes = 0;
        match &mut self.form {
            Form::Table(_, rows) => rows.clear(),
            Form::Columns(_, rows) => rows.clear(),
            Form::Template(_, Shape::List, items) => items.clear(),
            Form::Objects(objects) => return objects.written() == 0,
            Form::Names | Form::Template(_, Shape::Documents, _) => return self.sort_by.is_some(),
        }
        true
    }

    /// Takes an object, and returns what can be printed at once.
    pub(super) fn take(&mut self, row: Row, mut object: Value) -> Result<String, GetError> {
        // Long and of no use for readers; kubectl hides it, too.
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let Some(sort_by) = self.sort_by else {
            let kept = if self.is_table() { Kept::Row(row.into()) } else { Kept::Object(object) };
            return self.place(kept);
        };
        let rank = Rank::of(sort_by, &row, &object)?;
        let kept = if self.is_table() {
            Kept::Row(row.into())
        } else {
            self.keep(&object)?;
            Kept::Object(object)
        };
        self.waiting.push((rank, kept));
        Ok(String::new())
    }

    fn place(&mut self, kept: Kept) -> Result<String, GetError> {
        let nothing = Ok(String::new());
        match (kept, &mut self.form) {
            (Kept::Row(row), Form::Table(_, rows)) => {
                rows.push(*row);
                nothing
            }
            (Kept::Row(_), _) | (Kept::Object(_), Form::Table(..)) => nothing,
            (Kept::Object(object), Form::Names) => Ok(reference(&object)),
            (Kept::Object(object), Form::Objects(objects)) => Ok(objects.next(object)),
            (Kept::Object(object), Form::Columns(table, rows)) => {
                let cells = table.cells(&object)?;
                self.bytes += cells.iter().map(String::len).sum::<usize>();
                rows.push(cells);
                if self.bytes > MOST_KEPT { Err(GetError::TooLarge) } else { nothing }
            }
            (Kept::Object(object), Form::Template(template, Shape::Documents, _)) => Ok(template.print(&object)?),
            (Kept::Object(object), Form::Template(_, Shape::List, items)) => {
                items.push(object);
                if self.sort_by.is_none()
                    && let Some(object) = items.last()
                {
                    self.bytes += size(object);
                }
                if self.bytes > MOST_KEPT { Err(GetError::TooLarge) } else { nothing }
            }
        }
    }

    fn keep(&mut self, object: &Value) -> Result<(), GetError> {
        self.bytes += size(object);
        if self.bytes > MOST_KEPT { Err(GetError::TooLarge) } else { Ok(()) }
    }

    /// Returns what is printed after the last object.
    pub(super) fn end(&mut self, shares: &Shares, now: Timestamp) -> Result<String, GetError> {
        let mut text = String::new();
        let mut waiting = std::mem::take(&mut self.waiting);
        if let Some(by @ SortBy::Column(TableColumn::Problem)) = self.sort_by {
            for (rank, kept) in &mut waiting {
                if let Kept::Row(row) = kept {
                    // Only now is it known what it shares.
                    row.shares = shares.text(&row.key);
                    *rank = Rank::of(by, row, &Value::Null)?;
                }
            }
        }
        waiting.sort_by(|(a, _), (b, _)| a.cmp(b));
        if matches!(self.form, Form::Columns(..)) {
            self.bytes = 0; // the objects are counted until now, from here on the cells
        }
        for (_, kept) in waiting {
            text.push_str(&self.place(kept)?);
        }
        text.push_str(&match &mut self.form {
            Form::Table(..) | Form::Columns(..) => self.lines(shares, now),
            Form::Names | Form::Template(_, Shape::Documents, _) => String::new(),
            Form::Objects(objects) => objects.end().to_owned(),
            Form::Template(template, Shape::List, items) => {
                let list = json!({"apiVersion": "v1", "kind": "List", "items": std::mem::take(items)});
                template.print(&list)?
            }
        });
        Ok(text)
    }

    /// Returns the titles and lines of a table, and forgets its rows.
    pub(super) fn lines(&mut self, shares: &Shares, now: Timestamp) -> String {
        let has_head = self.has_head;
        let (lines, head) = match &mut self.form {
            Form::Table(table, rows) => {
                let rows: Vec<Row> = std::mem::take(rows).into_iter().map(|row| row.sharing(shares)).collect();
                (table.lines(rows.iter(), now), table.head())
            }
            Form::Columns(table, rows) => (table.lines(std::mem::take(rows).iter()), table.head()),
            Form::Names | Form::Objects(_) | Form::Template(..) => return String::new(),
        };
        if has_head { head + &lines } else { lines }
    }

    /// Returns the cells of an object for `-o custom-columns`, nothing for other forms.
    pub(super) fn cells(&self, object: &Value) -> Result<Vec<String>, TooMuch> {
        match &self.form {
            Form::Columns(table, _) => table.cells(object),
            Form::Table(..) | Form::Names | Form::Objects(_) | Form::Template(..) => Ok(Vec::new()),
        }
    }

    /// Whether two states of a ManagedResource are printed alike.
    pub(super) fn is_same(&self, old: &LastSeen, new: &LastSeen) -> bool {
        match self.form {
            Form::Table(..) | Form::Names => old.row == new.row,
            Form::Columns(..) => old.cells == new.cells,
            Form::Objects(_) | Form::Template(..) => old.version == new.version,
        }
    }

    /// Returns the text of a changed object.
    pub(super) fn change(
        &mut self,
        new: &LastSeen,
        object: Value,
        shares: &Shares,
        now: Timestamp,
    ) -> Result<String, GetError> {
        match &mut self.form {
            Form::Table(table, _) => Ok(table.lines([new.row.clone().sharing(shares)].iter(), now)),
            Form::Columns(table, _) => Ok(table.lines([&new.cells].into_iter())),
            Form::Names | Form::Objects(_) | Form::Template(..) => self.take(new.row.clone(), object),
        }
    }

    /// Returns the last line of an object that is gone. Only tables can express it.
    pub(super) fn gone(&mut self, row: Row, now: Timestamp) -> Option<String> {
        match &mut self.form {
            Form::Table(table, _) => Some(table.lines([row.deleted()].iter(), now)),
            Form::Columns(..) | Form::Names | Form::Objects(_) | Form::Template(..) => None,
        }
    }
}

impl Row {
    fn sharing(self, shares: &Shares) -> Self {
        Self { shares: shares.text(&self.key), ..self }
    }
}

fn size(object: &Value) -> usize {
    serde_json::to_vec(object).map_or(0, |text| text.len())
}

fn reference(object: &Value) -> String {
    format!("managedresource.{}/{}\n", keys::GROUP, one_line(object::name(object)))
}
