use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use cluster::{
    ApiError, IDLE_LIMIT, WatchKind, WatchQuery,
    object::{self, NamespacedName},
    pace::{End, Pace, Round},
};
use futures::StreamExt as _;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::{DIFFERENT, Get, GetError, Listed, Printer, objects::Shape, row::Row};

struct Followed<'o> {
    printer: Printer<'o>,
    known: BTreeMap<NamespacedName, LastSeen>,
    /// The version to watch from; `None` if a list must come first.
    position: Option<String>,
    opened: Option<Instant>,
    listed: bool,
    /// Whether the current watch brought an object at another version than the one it was opened at.
    moved: bool,
}

/// The last state of a ManagedResource that was seen, as far as it is printed.
pub(super) struct LastSeen {
    pub(super) row: Row,
    pub(super) cells: Vec<String>,
    pub(super) version: String,
}

#[derive(Debug, thiserror::Error)]
enum Lost {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(transparent)]
    Output(#[from] GetError),
}

impl<'o> Get<'o, '_, '_> {
    /// Prints all objects, then each row that changes. Ends when reading is forbidden or printing fails.
    pub(super) async fn follow(&mut self) -> Result<i32, GetError> {
        for name in &self.names.clone() {
            if self.find(name).await?.is_none() {
                return Ok(DIFFERENT);
            }
        }
        let printer = self.printer(Shape::Documents);
        let mut followed =
            Followed { printer, known: BTreeMap::new(), position: None, opened: None, listed: false, moved: false };
        self.start(&mut followed).await?;
        let mut pace = Pace::default();
        loop {
            let end = match self.watch_once(&mut followed).await {
                Ok(()) => End::Closed,
                Err(Lost::Output(error)) => return Err(error),
                Err(Lost::Api(error)) if error.is_forbidden() || error.is_unauthorized() => {
                    return Err(self.failed(error));
                }
                Err(Lost::Api(error)) if error.is_expired() => {
                    followed.position = None;
                    End::Expired
                }
                Err(Lost::Api(error)) => {
                    self.screen.remark(&format!("warning: the watch broke and is opened again: {error}"));
                    End::Failed
                }
            };
            let open = followed.opened.map_or(Duration::ZERO, |opened| opened.elapsed());
            let round = Round { open, listed: followed.listed, moved: followed.moved, end };
            if let Some(pause) = pace.after(round, self.cluster.random()) {
                sleep(pause).await;
            }
        }
    }

    async fn start(&mut self, followed: &mut Followed<'o>) -> Result<(), GetError> {
        let Followed { printer, known, position, .. } = followed;
        self.is_quiet = self.options.watch_only;
        let (read, version) = self
            .read(printer, |printer, listed| match listed {
                Listed::Object(object) => {
                    // A template that takes too long fails when the object is printed.
                    let cells = printer.cells(object).unwrap_or_default();
                    enter(known, LastSeen::of(object, cells));
                }
                Listed::Anew => known.clear(),
            })
            .await?;
        self.is_quiet = false;
        *position = Some(version);
        if printer.is_tabular() {
            let is_empty = printer.is_empty_table() && !self.options.watch_only;
            let text = printer.lines(&self.shares, self.cluster.clock().wall());
            self.screen.print(&text, printer.content())?;
            if is_empty {
                self.remark_on_nothing(read);
            }
        }
        Ok(())
    }

    async fn watch_once(&mut self, followed: &mut Followed<'o>) -> Result<(), Lost> {
        (followed.opened, followed.listed, followed.moved) = (None, false, false);
        let position = match followed.position.clone() {
            Some(position) => position,
            None => self.list_again(followed).await?,
        };
        let query = WatchQuery {
            label_selector: self.options.selection.selector.clone(),
            field_selector: self.field_selector(),
            resource_version: Some(position),
            ..WatchQuery::default()
        };
        let mut stream = self.cluster.watch(&self.resource, self.scope.as_deref(), query).await?;
        followed.opened = Some(Instant::now());
        loop {
            // A watch that stays silent for so long has a dead connection.
            let Ok(next) = timeout(IDLE_LIMIT, stream.next()).await else { return Ok(()) };
            let Some(event) = next else { return Ok(()) };
            let event = event?;
            let version = object::resource_version(&event.object).to_owned();
            let is_step = event.kind != WatchKind::Bookmark && followed.position.as_ref() != Some(&version);
            followed.moved |= is_step;
            match event.kind {
                WatchKind::Added | WatchKind::Modified => self.changed(followed, event.object)?,
                WatchKind::Deleted => self.gone(followed, &NamespacedName::of(&event.object))?,
                WatchKind::Bookmark => {}
            }
            if !version.is_empty() {
                followed.position = Some(version);
            }
        }
    }

    /// Prints what changed while no watch was open, and returns the version to watch from.
    async fn list_again(&mut self, followed: &mut Followed<'o>) -> Result<String, Lost> {
        let mut seen = BTreeSet::new();
        let mut position = String::new();
        let mut pages = self.pages();
        while let Some(page) = pages.next().await {
            let page = page?;
            position = page.resource_version;
            for object in page.items {
                seen.insert(NamespacedName::of(&object));
                self.changed(followed, object)?;
            }
        }
        let gone: Vec<_> = followed.known.keys().filter(|key| !seen.contains(*key)).cloned().collect();
        for key in gone {
            self.gone(followed, &key)?;
        }
        followed.position = Some(position.clone());
        followed.listed = true;
        Ok(position)
    }

    /// Prints an object if its row changed. With `--unhealthy`, a recovered object is printed once more.
    fn changed(&mut self, followed: &mut Followed<'o>, object: Value) -> Result<(), GetError> {
        if !self.is_wanted(&object) {
            return Ok(());
        }
        let row = self.row(&followed.printer, &object);
        let cells = followed.printer.cells(&object)?;
        let version = object::resource_version(&object).to_owned();
        let new = LastSeen { row, cells, version };
        let old = followed.known.get(&new.row.key);
        let is_same = old.is_some_and(|old| followed.printer.is_same(old, &new));
        let was_shown = old.is_some_and(|old| old.row.problem.is_some());
        let is_left_out = self.options.unhealthy && new.row.problem.is_none() && !was_shown;
        if !is_same && !is_left_out {
            let now = self.cluster.clock().wall();
            let text = followed.printer.change(&new, object, &self.shares, now)?;
            self.screen.print(&text, followed.printer.content())?;
        }
        enter(&mut followed.known, new);
        Ok(())
    }

    /// Prints a last row for an object that is gone, in tables only: the other formats cannot express it.
    fn gone(&mut self, followed: &mut Followed<'o>, key: &NamespacedName) -> Result<(), GetError> {
        let Some(LastSeen { row, .. }) = followed.known.remove(key) else { return Ok(()) };
        self.shares.leave(key);
        if self.options.unhealthy && row.problem.is_none() {
            return Ok(());
        }
        let text = followed.printer.gone(row, self.cluster.clock().wall()).unwrap_or_default();
        Ok(self.screen.print(&text, followed.printer.content())?)
    }
}

impl LastSeen {
    fn of(object: &Value, cells: Vec<String>) -> Self {
        Self { row: Row::of(object), cells, version: object::resource_version(object).to_owned() }
    }
}

fn enter(known: &mut BTreeMap<NamespacedName, LastSeen>, seen: LastSeen) {
    known.insert(seen.row.key.clone(), seen);
}
