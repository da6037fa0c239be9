//! `get`: ManagedResources of a cluster as a table for operators, or as whole objects.
//! ```text
//! pages, watch ─► row.rs: one ManagedResource, with shares.rs ─► table.rs: lines
//!             ├► columns.rs: the cells of -o custom-columns
//!             └► objects.rs: JSON, YAML, templates               printer.rs: chooses, sorts, prints
//! ```
//! [`get`] reads once; `follow.rs` also prints changes afterwards. Lists are read in pages. A table keeps rows, never
//! objects. Templates and `--sort-by` keep objects, up to a limit. Start reading at [`get`]: client, clock and streams are
//! passed in, so tests use those of the simulator.

mod columns;
mod follow;
mod objects;
mod printer;
mod row;
mod shares;
mod sort;
mod table;

use std::{collections::BTreeSet, io, time::Duration};

use cluster::{ApiError, Cluster, Context, ListQuery, Resource, object::NamespacedName};
use kit::{Clock, Deadline, Priority, Random};
use serde_json::Value;

use self::{
    objects::Shape,
    printer::{Printer, TableStyle},
    row::Row,
    shares::Shares,
};
use super::{DIFFERENT, OK, Screen, connect, inspect::missing, selection::Selection};
use crate::{
    api::{kinds, resources::side::Side},
    cli::{GetOptions, OutputFormat},
    jsonpath::TooMuch,
};

const LIST_TIME: Duration = Duration::from_secs(300);
const MOST_LISTS: u32 = 3; // how often a list is started again if it expires while it is read

#[derive(Debug, thiserror::Error)]
pub(super) enum GetError {
    #[error("cannot read {what}: {source}")]
    Read { what: String, source: ApiError },
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
    #[error(transparent)]
    Template(#[from] TooMuch),
    #[error(
        "the ManagedResources are too large to be kept together — select fewer, or leave out --sort-by and jsonpath"
    )]
    TooLarge,
    #[error("a watch of names is in one namespace — name it once with -n, or use -A with a label selector")]
    Namespaces,
}

struct Get<'o, 's, 'w> {
    cluster: Cluster,
    resource: Resource,
    options: &'o GetOptions,
    names: Vec<NamespacedName>,
    /// The namespace that is read; `None` for several.
    scope: Option<String>,
    screen: &'s mut Screen<'w>,
    shares: Shares,
    /// Whether objects are noted only: `--watch-only` prints changes alone.
    is_quiet: bool,
}

/// What was read.
#[derive(Debug, Clone, Copy, Default)]
struct Read {
    all: usize,
    ignored: usize,
}

enum Listed<'a> {
    Object(&'a Value),
    /// The list starts again: forget all earlier objects.
    Anew,
}

/// Prints the selected ManagedResources. Returns 1 for names that do not exist. With `watch` it ends only on errors.
pub(super) async fn get(
    client: kube::Client,
    (clock, random): (Clock, Random),
    options: &GetOptions,
    screen: &mut Screen<'_>,
) -> Result<i32, GetError> {
    let default = client.default_namespace().to_owned();
    let selection = Selection::new(&options.selection, &default);
    let names = selection.named();
    let namespaces: BTreeSet<&str> = names.iter().map(|name| name.namespace.as_str()).collect();
    let namespaces_are_several = namespaces.len() > 1;
    let scope = match namespaces.first() {
        Some(first) => (!namespaces_are_several).then(|| (*first).to_owned()),
        None => selection.scope(),
    };
    let cluster = connect::read_only(client, Side::Source, clock, random);
    let cluster = cluster.limited(options.connection.request_timeout.get());
    let (resource, shares) = (kinds::MANAGED_RESOURCE, Shares::default());
    let mut get = Get { cluster, resource, options, names, scope, screen, shares, is_quiet: false };
    if options.watch || options.watch_only {
        if namespaces_are_several {
            return Err(GetError::Namespaces);
        }
        get.follow().await
    } else if get.names.is_empty() {
        get.list().await
    } else {
        get.named().await
    }
}

impl<'o> Get<'o, '_, '_> {
    async fn list(&mut self) -> Result<i32, GetError> {
        let mut printer = self.printer(Shape::List);
        let (read, _) = self.read(&mut printer, |_, _| {}).await?;
        self.end(&mut printer, read)?;
        Ok(OK)
    }

    async fn read(
        &mut self,
        printer: &mut Printer<'_>,
        mut report: impl FnMut(&Printer<'_>, Listed<'_>),
    ) -> Result<(Read, String), GetError> {
        let mut lists = 1;
        let (mut read, mut version) = (Read::default(), String::new());
        let mut pages = self.pages();
        while let Some(page) = pages.next().await {
            let page = match page {
                Ok(page) => page,
                Err(error) if error.is_expired() && lists < MOST_LISTS && (printer.forget() || self.is_quiet) => {
                    lists += 1;
                    read = Read::default();
                    self.shares = Shares::default();
                    report(printer, Listed::Anew);
                    pages = self.pages();
                    continue;
                }
                Err(source) => return Err(self.failed(source)),
            };
            version = page.resource_version;
            for object in page.items {
                if self.is_wanted(&object) {
                    report(printer, Listed::Object(&object));
                    self.take(printer, object, &mut read)?;
                }
            }
        }
        Ok((read, version))
    }

    async fn named(&mut self) -> Result<i32, GetError> {
        let names = self.names.clone();
        let mut printer = self.printer(if names.len() > 1 { Shape::List } else { Shape::Documents });
        let mut read = Read::default();
        for name in &names {
            if let Some(object) = self.find(name).await? {
                self.take(&mut printer, object, &mut read)?;
            }
        }
        if read.all > 0 || !printer.is_tabular() {
            self.end(&mut printer, read)?; // missing objects already have a remark
        }
        Ok(if read.all == names.len() { OK } else { DIFFERENT })
    }

    async fn find(&mut self, name: &NamespacedName) -> Result<Option<Value>, GetError> {
        let context = Context::new(Priority::High, Deadline::after(LIST_TIME), "get");
        match self.cluster.get(&context, &self.resource.named(name)).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => {
                self.screen.remark(&missing(name));
                Ok(None)
            }
            Err(source) => Err(GetError::Read { what: format!("ManagedResource {name}"), source }),
        }
    }

    fn pages(&self) -> cluster::Pages {
        let context = Context::new(Priority::High, Deadline::after(LIST_TIME), "get");
        let query = ListQuery {
            label_selector: self.options.selection.selector.clone(),
            field_selector: self.field_selector(),
            ..ListQuery::default()
        };
        self.cluster.pages(context, self.resource.clone(), self.scope.clone(), query)
    }

    /// Selects one name; the API cannot select several.
    fn field_selector(&self) -> Option<String> {
        match self.names.as_slice() {
            [name] => Some(format!("metadata.name={}", name.name)),
            _ => None,
        }
    }

    fn is_wanted(&self, object: &Value) -> bool {
        self.names.is_empty() || self.names.contains(&NamespacedName::of(object))
    }

    /// Hands an object to the printer. `--unhealthy` drops those without a problem.
    fn take(&mut self, printer: &mut Printer<'_>, object: Value, read: &mut Read) -> Result<(), GetError> {
        let row = self.row(printer, &object);
        read.all += 1;
        read.ignored += usize::from(row.ignored);
        if self.is_quiet || self.options.unhealthy && row.problem.is_none() {
            return Ok(());
        }
        let text = printer.take(row, object)?;
        Ok(self.screen.print(&text, printer.content())?)
    }

    /// Returns the row of an object, whose objects are compared with those of others if a table is printed.
    fn row(&mut self, printer: &Printer<'_>, object: &Value) -> Row {
        if !printer.is_table() {
            return Row::of(object);
        }
        let (row, references) = Row::with_references(object);
        self.shares.enter(&row.key, &row.class, references.iter());
        row
    }

    fn end(&mut self, printer: &mut Printer<'_>, read: Read) -> Result<(), GetError> {
        let is_empty = printer.is_empty_table();
        let text = if is_empty { String::new() } else { printer.end(&self.shares, self.cluster.clock().wall())? };
        self.screen.print(&text, printer.content())?;
        if is_empty {
            self.remark_on_nothing(read);
        } else if self.shares.is_incomplete {
            self.screen.remark("warning: there are too many objects to find all that several ManagedResources share");
        }
        Ok(())
    }

    fn printer(&self, shape: Shape) -> Printer<'o> {
        let is_cut = self.options.output != Some(OutputFormat::Wide);
        let screen = self.screen.look.columns.filter(|_| is_cut);
        Printer::new(
            self.options,
            TableStyle { namespaces: self.scope.is_none(), colours: self.screen.look.colours, screen },
            shape,
        )
    }

    fn location(&self) -> String {
        self.scope.as_ref().map_or_else(String::new, |namespace| format!(" in namespace {namespace}"))
    }

    fn remark_on_nothing(&mut self, read: Read) {
        let location = self.location();
        let well = match read.all {
            0 => format!("no ManagedResources found{location}"),
            1 => format!("the one ManagedResource found{location} is applied, healthy and rolled out"),
            all => format!("all {all} ManagedResources found{location} are applied, healthy and rolled out"),
        };
        let ignored = match read.ignored {
            0 => String::new(),
            ignored => format!(", or ignored ({ignored})"),
        };
        self.screen.remark(&(well + &ignored));
    }

    fn failed(&self, source: ApiError) -> GetError {
        let location = self.location().replacen(" in ", " of ", 1);
        GetError::Read { what: format!("the ManagedResources{location}"), source }
    }
}
