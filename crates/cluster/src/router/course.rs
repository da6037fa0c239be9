//! The course of a watch: list, watch, and again, with pauses after failures.

use std::{collections::BTreeSet, panic::AssertUnwindSafe, rc::Rc, time::Duration};

use futures::{FutureExt, StreamExt};
use kit::{Deadline, Lane};

use super::{
    super::{
        ApiError, Context, ListQuery, WatchKind, WatchQuery,
        store::{IDLE_LIMIT, Record},
    },
    Core, How, Start,
};
use crate::object::{self, NamespacedName};

/// Back-off after a failed list or watch: 0.8 s · 2ⁿ, at most this, stretched by up to 100 %.
const MAX_BACK_OFF: Duration = Duration::from_secs(30);

/// See [`MAX_BACK_OFF`].
const FIRST_BACK_OFF: Duration = Duration::from_millis(800);

/// A watch that ends sooner, and without an event, counts as failed: a server or proxy that answers and hangs up is not
/// asked as fast as it answers.
const SHORTEST_WATCH: Duration = Duration::from_secs(1);

/// A watch that was open for this long makes up for failures before it.
const HEALTHY_WATCH: Duration = Duration::from_secs(60);

/// How long a list may take.
const LIST_TIME: Duration = Duration::from_secs(300);

/// How long the list may take that only asks for the present version. Passes wait for it.
const VERSION_TIME: Duration = Duration::from_secs(10);

// === impl Core ===

impl<R: Record> Core<R> {
    /// Lists and watches one scope for ever.
    pub(super) async fn run(self: Rc<Self>, index: usize) {
        let mut failures = 0u32;
        loop {
            let scope = &self.scopes[index];
            scope.opened.set(None);
            scope.event.set(false);
            let round = AssertUnwindSafe(self.round(index)).catch_unwind().await;
            let open = scope.opened.get().map_or(Duration::ZERO, |opened| self.env.clock.monotonic() - opened);
            if scope.event.get() || open >= HEALTHY_WATCH {
                failures = 0;
            }
            match round {
                Ok(Ok(())) => {
                    scope.error.replace(None);
                    if scope.event.get() || open >= SHORTEST_WATCH {
                        failures = 0;
                        self.show();
                        continue;
                    }
                    tracing::debug!(router = %self.options.name, "a watch ended at once");
                }
                Ok(Err(error)) => {
                    if error.is_expired() {
                        scope.position.replace(None);
                        if failures == 0 {
                            // The first time the list follows at once; a server that says so for ever gets the back-off.
                            failures = 1;
                            continue;
                        }
                    }
                    tracing::warn!(router = %self.options.name, error = %error, "watch failed");
                    if error.is_not_served() || error.is_not_found() || error.is_forbidden() {
                        // Not a broken connection or a busy server: it does not tell of this kind any more.
                        self.store.unheard();
                        scope.heard.set(None);
                    }
                    scope.forbidden.set(error.is_forbidden());
                    scope.error.replace(Some(error.to_string()));
                }
                Err(_) => {
                    scope.position.replace(None);
                    scope.error.replace(Some("the router panicked and lists again".to_owned()));
                }
            }
            self.show();
            let back_off = FIRST_BACK_OFF.saturating_mul(1 << failures.min(10)).min(MAX_BACK_OFF);
            failures = failures.saturating_add(1);
            tokio::time::sleep(self.env.random.jitter(back_off, 1.0)).await;
        }
    }

    /// One list if there is no position, then one watch until it ends.
    async fn round(&self, index: usize) -> Result<(), ApiError> {
        let scope = &self.scopes[index];
        let position = scope.position.borrow().clone();
        let position = match position {
            Some(position) => position,
            None => {
                let position = self.list(index).await?;
                self.store.listed(self.env.clock.monotonic());
                scope.position.replace(Some(position.clone()));
                scope.listed.set(true);
                scope.error.replace(None);
                self.heard(index);
                position
            }
        };
        let query = WatchQuery {
            label_selector: self.options.label_selector.clone(),
            field_selector: self.field_selector.clone(),
            resource_version: Some(position),
            metadata_only: self.options.metadata_only,
            ..WatchQuery::default()
        };
        let namespace = self.options.scopes[index].as_deref();
        let mut stream = self.cluster.watch(&self.options.resource, namespace, query).await?;
        scope.opened.set(Some(self.env.clock.monotonic()));
        scope.error.replace(None);
        scope.forbidden.set(false);
        self.heard(index);
        loop {
            // Silence for too long means a connection that died without a word: the watch is taken up again.
            let Ok(next) = tokio::time::timeout(IDLE_LIMIT, stream.next()).await else { return Ok(()) };
            let Some(event) = next else { return Ok(()) };
            let event = event?;
            self.heard(index);
            scope.event.set(scope.event.get() || event.kind != WatchKind::Bookmark);
            let version = object::resource_version(&event.object).to_owned();
            match event.kind {
                WatchKind::Added | WatchKind::Modified => {
                    self.upsert(&event.object, How::Event, None);
                }
                WatchKind::Deleted => {
                    let number = version.parse().ok();
                    self.remove(&NamespacedName::of(&event.object), number, How::Event);
                }
                WatchKind::Bookmark => {}
            }
            if !version.is_empty() {
                scope.position.replace(Some(version));
            }
        }
    }

    /// Reads what is there and gives the version to watch from.
    async fn list(&self, index: usize) -> Result<String, ApiError> {
        let first = !self.scopes[index].listed.get();
        let namespace = self.options.scopes[index].as_deref();
        let context = Context {
            lane: Lane::Background,
            deadline: Deadline::after(LIST_TIME),
            key: self.options.name.as_str().into(),
        };
        let query = ListQuery {
            label_selector: self.options.label_selector.clone(),
            field_selector: self.field_selector.clone(),
            metadata_only: self.options.metadata_only,
            ..ListQuery::default()
        };
        if first && self.options.start == Start::Now {
            let one = ListQuery { limit: Some(1), metadata_only: true, ..query };
            let context = Context { deadline: Deadline::after(VERSION_TIME), ..context };
            let page = self.cluster.list(&context, &self.options.resource, namespace, &one).await?;
            return Ok(page.resource_version);
        }
        let how = if first { How::First } else { How::Relist };
        let mut seen = BTreeSet::new();
        let mut version = String::new();
        let scope = self.options.scopes[index].clone();
        let mut pages = self.cluster.pages(context, self.options.resource.clone(), scope, query);
        while let Some(page) = pages.next().await {
            let page = page?;
            version = page.resource_version;
            for object in &page.items {
                let name = NamespacedName::of(object);
                if (self.options.keep)(&name) {
                    seen.insert(name);
                    self.upsert(object, how, None);
                }
            }
        }
        let number = version.parse().ok();
        for name in self.store.names() {
            let in_scope = namespace.is_none_or(|namespace| namespace == name.namespace);
            if in_scope && !seen.contains(&name) {
                self.remove(&name, number, how);
            }
        }
        Ok(version)
    }
}
