//! `get`: ManagedResources of a cluster as a table for operators, or as whole objects.
//! ```text
//! pages, watch ─► row.rs: one ManagedResource ─► table.rs: lines
//!                                             └► objects.rs: JSON, YAML
//! ```
//! [`get`] reads once; `follow.rs` also prints changes afterwards; `screen.rs` has the streams and the width of the
//! terminal. Lists are read in pages. A table keeps rows, never objects. Start reading at [`get`]: client, clock and
//! streams are passed in, so tests use those of the simulator.

mod follow;
mod objects;
mod row;
mod screen;
mod table;

use std::{io, time::Duration};

use cluster::{ApiError, Cluster, Context, ListQuery, Resource, object};
use kit::{Clock, Deadline, Priority, Random};
use serde_json::Value;

pub(super) use self::screen::{Screen, columns};
use self::{
    objects::{Format, Objects, Shape},
    row::Row,
    table::Table,
};
use super::{DIFFERENT, OK, connect};
use crate::{
    api::{
        kinds,
        resources::{keys, side::Side},
    },
    cli::{GetOptions, OutputFormat},
};

const LIST_TIME: Duration = Duration::from_secs(300);
const MOST_LISTS: u32 = 3; // how often a list is started again if it expires while it is read

#[derive(Debug, thiserror::Error)]
pub(super) enum GetError {
    #[error("cannot read {what}: {source}")]
    Read { what: String, source: ApiError },
    #[error("cannot write: {0}")]
    Output(io::Error),
}

struct Get<'o, 's> {
    cluster: Cluster,
    resource: Resource,
    options: &'o GetOptions,
    scope: Option<String>,
    screen: Screen<'s>,
}

enum Listed<'a> {
    Object(&'a Value),
    /// The list starts again: forget all earlier objects.
    Anew,
}

enum Printer {
    Table(Table, Vec<Row>),
    Names,
    Objects(Objects),
}

/// Prints the selected ManagedResources. Returns 1 for names that do not exist. With `watch` it ends only on errors.
pub(super) async fn get(
    client: kube::Client,
    (clock, random): (Clock, Random),
    options: &GetOptions,
    screen: Screen<'_>,
) -> Result<i32, GetError> {
    let given = options.namespace.as_deref().unwrap_or(client.default_namespace());
    let scope = (!options.all_namespaces).then(|| given.to_owned());
    let cluster = connect::read_only(client, Side::Source, clock, random);
    let cluster = cluster.limited(options.connection.request_timeout.get());
    let mut get = Get { cluster, resource: kinds::MANAGED_RESOURCE, options, scope, screen };
    if options.watch {
        get.follow().await
    } else if options.names.is_empty() {
        get.list().await
    } else {
        get.named().await
    }
}

impl Get<'_, '_> {
    async fn list(&mut self) -> Result<i32, GetError> {
        let mut printer = self.printer(Shape::List);
        let (read, _) = self.read(&mut printer, |_| {}).await?;
        let shown = self.end(&mut printer)?;
        if !shown {
            self.remark_on_nothing(read);
        }
        Ok(OK)
    }

    async fn read(
        &mut self,
        printer: &mut Printer,
        mut report: impl FnMut(Listed<'_>),
    ) -> Result<(usize, String), GetError> {
        let mut lists = 1;
        let (mut read, mut version) = (0, String::new());
        let mut pages = self.pages();
        while let Some(page) = pages.next().await {
            let page = match page {
                Ok(page) => page,
                Err(error) if error.is_expired() && lists < MOST_LISTS && printer.forget() => {
                    lists += 1;
                    read = 0;
                    report(Listed::Anew);
                    pages = self.pages();
                    continue;
                }
                Err(source) => return Err(self.failed(source)),
            };
            version = page.resource_version;
            for object in page.items {
                if self.is_wanted(&object) {
                    read += 1;
                    report(Listed::Object(&object));
                    self.take(printer, object)?;
                }
            }
        }
        Ok((read, version))
    }

    async fn named(&mut self) -> Result<i32, GetError> {
        let several = self.options.names.len() > 1;
        let mut printer = self.printer(if several { Shape::List } else { Shape::Documents });
        let mut found = 0;
        for name in &self.options.names {
            if let Some(object) = self.find(name).await? {
                found += 1;
                self.take(&mut printer, object)?;
            }
        }
        let shown = self.end(&mut printer)?;
        if !shown && found > 0 {
            self.remark_on_nothing(found); // missing objects already have a remark
        }
        Ok(if found == self.options.names.len() { OK } else { DIFFERENT })
    }

    async fn find(&mut self, name: &str) -> Result<Option<Value>, GetError> {
        let context = Context::new(Priority::High, Deadline::after(LIST_TIME), "get");
        let namespace = self.scope.as_deref().unwrap_or_default();
        match self.cluster.get(&context, &self.resource.at(namespace, name)).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => {
                self.screen.remark(&format!("error: {error}"));
                Ok(None)
            }
            Err(source) => Err(GetError::Read { what: format!("ManagedResource {namespace}/{name}"), source }),
        }
    }

    fn pages(&self) -> cluster::Pages {
        let context = Context::new(Priority::High, Deadline::after(LIST_TIME), "get");
        let query = ListQuery {
            label_selector: self.options.selector.clone(),
            field_selector: self.field_selector(),
            ..ListQuery::default()
        };
        self.cluster.pages(context, self.resource.clone(), self.scope.clone(), query)
    }

    /// Selects one name; the API cannot select several.
    fn field_selector(&self) -> Option<String> {
        match self.options.names.as_slice() {
            [name] => Some(format!("metadata.name={name}")),
            _ => None,
        }
    }

    fn is_wanted(&self, object: &Value) -> bool {
        let names = &self.options.names;
        names.is_empty() || names.iter().any(|name| name == object::name(object))
    }

    fn printer(&self, shape: Shape) -> Printer {
        match self.options.output {
            None | Some(OutputFormat::Wide) => Printer::Table(self.table(), Vec::new()),
            Some(OutputFormat::Name) => Printer::Names,
            Some(OutputFormat::Json) => Printer::Objects(Objects::new(Format::Json, shape)),
            Some(OutputFormat::Yaml) => Printer::Objects(Objects::new(Format::Yaml, shape)),
        }
    }

    fn table(&self) -> Table {
        let cut = self.screen.columns.filter(|_| self.options.output != Some(OutputFormat::Wide));
        Table::new(self.scope.is_none(), self.screen.colours, cut, !self.options.no_headers)
    }

    fn take(&mut self, printer: &mut Printer, object: Value) -> Result<(), GetError> {
        let row = Row::of(&object);
        if self.options.unhealthy && row.problem.is_none() {
            return Ok(());
        }
        match printer {
            Printer::Table(_, rows) => {
                rows.push(row);
                Ok(())
            }
            Printer::Names => self.screen.print(&reference(&object)),
            Printer::Objects(objects) => self.screen.print(&objects.next(object)),
        }
    }

    fn end(&mut self, printer: &mut Printer) -> Result<bool, GetError> {
        match printer {
            Printer::Table(_, rows) if rows.is_empty() => return Ok(false),
            Printer::Table(table, rows) => self.print_table(table, rows)?,
            Printer::Names => {}
            Printer::Objects(objects) => self.screen.print(objects.end())?,
        }
        Ok(true)
    }

    fn print_table(&mut self, table: &mut Table, rows: &[Row]) -> Result<(), GetError> {
        let lines = table.lines(rows.iter(), self.cluster.clock().wall());
        let head = if self.options.no_headers { String::new() } else { table.head() };
        self.screen.print(&(head + &lines))
    }

    fn remark_on_nothing(&mut self, read: usize) {
        let location = self.scope.as_ref().map_or_else(String::new, |namespace| format!(" in namespace {namespace}"));
        self.screen.remark(&match read {
            0 => format!("no ManagedResources found{location}"),
            1 => format!("the one ManagedResource found{location} is applied, healthy and rolled out"),
            _ => format!("all {read} ManagedResources found{location} are applied, healthy and rolled out"),
        });
    }

    fn failed(&self, source: ApiError) -> GetError {
        let location = self.scope.as_ref().map_or_else(String::new, |namespace| format!(" of namespace {namespace}"));
        GetError::Read { what: format!("the ManagedResources{location}"), source }
    }
}

impl Printer {
    /// Forgets the objects so far. Returns `false` if they are printed already.
    fn forget(&mut self) -> bool {
        match self {
            Self::Table(_, rows) => {
                rows.clear();
                true
            }
            Self::Names => false,
            Self::Objects(objects) => objects.written() == 0,
        }
    }
}

fn reference(object: &Value) -> String {
    format!("managedresource.{}/{}\n", keys::GROUP, super::output::one_line(object::name(object)))
}
