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

use super::{DIFFERENT, Get, GetError, Listed, Printer, objects::Shape, reference, row::Row};

struct Followed {
    printer: Printer,
    known: BTreeMap<NamespacedName, LastSeen>,
    /// The version to watch from; `None` if a list must come first.
    position: Option<String>,
    opened: Option<Instant>,
    listed: bool,
    /// Whether the current watch brought an object at another version than the one it was opened at.
    moved: bool,
}

struct LastSeen {
    row: Row,
    version: String,
}

#[derive(Debug, thiserror::Error)]
enum Lost {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(transparent)]
    Output(#[from] GetError),
}

impl Get<'_, '_> {
    /// Prints all objects, then each row that changes. Ends when reading is forbidden or printing fails.
    pub(super) async fn follow(&mut self) -> Result<i32, GetError> {
        for name in &self.options.names {
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

    async fn start(&mut self, followed: &mut Followed) -> Result<(), GetError> {
        let Followed { printer, known, position, .. } = followed;
        let (read, version) = self
            .read(printer, |listed| match listed {
                Listed::Object(object) => drop(enter(known, object)),
                Listed::Anew => known.clear(),
            })
            .await?;
        *position = Some(version);
        if let Printer::Table(table, rows) = printer {
            self.print_table(table, rows)?;
            if rows.is_empty() {
                self.remark_on_nothing(read);
            }
            *rows = Vec::new(); // `known` has them
        }
        Ok(())
    }

    async fn watch_once(&mut self, followed: &mut Followed) -> Result<(), Lost> {
        (followed.opened, followed.listed, followed.moved) = (None, false, false);
        let position = match followed.position.clone() {
            Some(position) => position,
            None => self.list_again(followed).await?,
        };
        let query = WatchQuery {
            label_selector: self.options.selector.clone(),
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
    async fn list_again(&mut self, followed: &mut Followed) -> Result<String, Lost> {
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
    fn changed(&mut self, followed: &mut Followed, object: Value) -> Result<(), GetError> {
        if !self.is_wanted(&object) {
            return Ok(());
        }
        let (old, row) = enter(&mut followed.known, &object);
        let version = object::resource_version(&object);
        let same = old.as_ref().is_some_and(|old| match followed.printer {
            Printer::Table(..) | Printer::Names => old.row == row,
            Printer::Objects(_) => old.version == version,
        });
        let was_shown = old.is_some_and(|old| old.row.problem.is_some());
        if same || (self.options.unhealthy && row.problem.is_none() && !was_shown) {
            return Ok(());
        }
        let text = match &mut followed.printer {
            Printer::Table(table, _) => table.lines([row].iter(), self.cluster.clock().wall()),
            Printer::Names => reference(&object),
            Printer::Objects(objects) => objects.next(object),
        };
        self.screen.print(&text)
    }

    /// Prints a last row for an object that is gone, in tables only: the other formats cannot express it.
    fn gone(&mut self, followed: &mut Followed, key: &NamespacedName) -> Result<(), GetError> {
        let Some(LastSeen { row, .. }) = followed.known.remove(key) else { return Ok(()) };
        match &mut followed.printer {
            Printer::Table(table, _) if !self.options.unhealthy || row.problem.is_some() => {
                let line = table.lines([row.deleted()].iter(), self.cluster.clock().wall());
                self.screen.print(&line)
            }
            Printer::Table(..) | Printer::Names | Printer::Objects(_) => Ok(()),
        }
    }
}

/// Stores an object; returns the previous state and the new row.
fn enter(known: &mut BTreeMap<NamespacedName, LastSeen>, object: &Value) -> (Option<LastSeen>, Row) {
    let row = Row::of(object);
    let new = LastSeen { row: row.clone(), version: object::resource_version(object).to_owned() };
    (known.insert(row.key.clone(), new), row)
}
