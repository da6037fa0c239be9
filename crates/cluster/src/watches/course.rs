//! The loop of a watch: list, watch, and again, with pauses after failures.

use std::{collections::BTreeSet, panic::AssertUnwindSafe, rc::Rc, time::Duration};

use futures::{FutureExt, StreamExt};
use kit::{Deadline, Priority};
use serde_json::Value;

use super::{
    super::{ApiError, Context, ListQuery, WatchEvent, WatchKind, WatchQuery, store::IDLE_LIMIT},
    How, Start,
    informer::Informer,
    member::Member,
    pace::{End, Pace, Round},
    scope::Scope,
};
use crate::object::{self, NamespacedName};

const LIST_TIME: Duration = Duration::from_secs(300);

/// Time limit of the list that only reads the present version. Reconciles wait for it.
const VERSION_TIME: Duration = Duration::from_secs(10);

const MOST_UNREADABLE: u32 = 2; // after this many attempts an unreadable event is skipped by a list

/// After this many watches in a row without even a bookmark, relist: an accepted watch may report nothing.
const MOST_SILENT: u32 = 2;

struct Broken {
    error: ApiError,
    unreadable: bool,
}

impl From<ApiError> for Broken {
    fn from(error: ApiError) -> Self {
        Self { error, unreadable: false }
    }
}

impl Informer {
    pub(super) async fn course(self: Rc<Self>, scope: Rc<Scope>) {
        let mut pace = Pace::default();
        loop {
            scope.begin();
            let round = AssertUnwindSafe(self.round(&scope)).catch_unwind();
            let round = tokio::select! {
                biased;
                () = scope.restarted() => continue,
                round = round => round,
            };
            scope.listing.set(false);
            if scope.is_to_restart() {
                continue;
            }
            let end = match &round {
                Ok(Ok(())) => End::Closed,
                Ok(Err(broken)) if broken.error.is_expired() => End::Expired,
                Ok(Err(_)) | Err(_) => End::Failed,
            };
            let open = scope.opened.get().map_or(Duration::ZERO, |opened| self.env.clock.monotonic() - opened);
            let outcome = Round { open, listed: scope.listed.get(), moved: scope.moved.get(), end };
            let pause = pace.after(outcome, &self.env.random);
            match round {
                Ok(Ok(())) => {
                    scope.error.replace(None);
                }
                Ok(Err(_)) if end == End::Expired && pause.is_none() => {
                    scope.position.replace(None);
                    continue;
                }
                Ok(Err(broken)) => self.note_failure(&scope, &broken),
                Err(_) => {
                    scope.position.replace(None);
                    scope.error.replace(Some("the watch panicked and lists again".to_owned()));
                }
            }
            self.show();
            let Some(pause) = pause else { continue };
            if end == End::Closed {
                tracing::debug!(watch = %self.name, "a watch ended at once");
            }
            if scope.forbidden.get() && scope.namespace.is_none() {
                self.namespaces_changed(); // if single namespaces are watched instead, this task ends here
            }
            tokio::time::sleep(pause).await;
        }
    }

    fn note_failure(&self, scope: &Scope, Broken { error, unreadable }: &Broken) {
        let text = self.explained(error);
        tracing::warn!(watch = %self.name, error = text, "watch failed");
        if error.is_expired() {
            scope.position.replace(None);
        }
        if *unreadable {
            scope.unreadable.set(scope.unreadable.get() + 1);
        }
        let is_passed_over = scope.unreadable.get() >= MOST_UNREADABLE;
        if is_passed_over {
            scope.unreadable.set(0);
            scope.position.replace(None);
        }
        let is_denied = error.is_forbidden() || error.is_unauthorized();
        if is_passed_over || is_denied || error.is_not_served() || error.is_not_found() {
            // Not a broken connection or a busy server: it does not report this kind any more.
            self.lose_contact(scope);
        }
        scope.error.replace(Some(text));
        match error.is_forbidden() {
            true => self.note_denial(scope),
            false => scope.fail(),
        }
    }

    /// Returns the text of an error. One about a kind that is not served names it, and the command that installs it.
    fn explained(&self, error: &ApiError) -> String {
        if !error.is_not_served() {
            return error.to_string();
        }
        let kind = self.key.resource.group_version_kind();
        let command = self.members().iter().find_map(|member| member.installed_by);
        let remedy = command.map(|command| format!("; this installs it: {command}")).unwrap_or_default();
        format!("{error} — the API server does not serve {kind}{remedy}")
    }

    /// Records that the server denied the right to watch a scope. Readers are notified if that lasts.
    pub(super) fn note_denial(&self, scope: &Scope) {
        if scope.deny(self.env.clock.monotonic()) {
            for member in self.members_of(scope) {
                self.call(&member, |sink| sink.denied());
            }
        }
    }

    /// Lists if there is no position, then watches until the watch ends.
    async fn round(&self, scope: &Scope) -> Result<(), Broken> {
        scope.whole.set(self.is_whole());
        let known = scope.position.borrow().clone();
        let position = match known {
            Some(position) => position,
            None => {
                scope.listing.set(true);
                let position = self.list(scope, &self.members_of(scope)).await?;
                scope.listing.set(false);
                scope.listed.set(true);
                scope.position.replace(Some(position.clone()));
                scope.silent.set(0);
                self.begin_from_now(scope);
                self.hear_well(scope);
                position
            }
        };
        let query = self.watch_query(position, scope.whole.get());
        let mut stream = self.cluster.watch(&self.key.resource, scope.namespace.as_deref(), query).await?;
        scope.opened.set(Some(self.env.clock.monotonic()));
        scope.allow();
        // Being accepted again after silence is not a sign of life.
        if scope.unreadable.get() == 0 && scope.silent.get() == 0 {
            self.hear_well(scope);
        }
        loop {
            let Ok(next) = tokio::time::timeout(IDLE_LIMIT, stream.next()).await else {
                self.note_silence(scope);
                return Ok(());
            };
            let event = match next {
                None => return Ok(()),
                Some(Ok(event)) => event,
                Some(Err(error)) => {
                    let unreadable =
                        matches!(error, ApiError::Decode(_) | ApiError::TooLarge(_)) || stream.is_amid_event();
                    return Err(Broken { error, unreadable });
                }
            };
            scope.unreadable.set(0);
            scope.silent.set(0);
            self.hear_well(scope);
            self.pass_on(scope, &event);
            let version = object::resource_version(&event.object);
            if !version.is_empty() {
                let before = scope.position.replace(Some(version.to_owned()));
                let is_step = event.kind != WatchKind::Bookmark && before.as_deref() != Some(version);
                scope.moved.set(scope.moved.get() || is_step);
            }
            if scope.is_to_restart() {
                return Ok(());
            }
        }
    }

    /// The connection died unnoticed, or the server sends nothing: reopen the watch; relist if that does not help.
    fn note_silence(&self, scope: &Scope) {
        scope.silent.set(scope.silent.get() + 1);
        tracing::debug!(watch = %self.name, times = scope.silent.get(), "a watch was silent and is reopened");
        if scope.silent.get() >= MOST_SILENT {
            scope.position.replace(None);
        }
    }

    /// Records contact with the server, after which the watch has no error any more.
    fn hear_well(&self, scope: &Scope) {
        let was_wrong = scope.error.take().is_some();
        self.record_contact(scope);
        if was_wrong {
            self.show();
        }
    }

    fn pass_on(&self, scope: &Scope, event: &WatchEvent) {
        if event.kind == WatchKind::Bookmark {
            return;
        }
        let name = NamespacedName::of(&event.object);
        let version = object::resource_version(&event.object).parse().ok();
        // Readers that are not covered get a list that is younger than this event.
        for member in self.members_of(scope).iter().filter(|member| member.covers(scope)) {
            self.call(member, |sink| match event.kind {
                WatchKind::Added | WatchKind::Modified => sink.put(&name, &event.object, How::Event),
                WatchKind::Deleted => sink.remove(&name, version, How::Event),
                WatchKind::Bookmark => {}
            });
        }
        self.show_cached_objects();
    }

    pub(super) fn watch_query(&self, position: String, whole: bool) -> WatchQuery {
        WatchQuery {
            label_selector: self.key.label_selector.clone(),
            field_selector: self.key.field_selector.clone(),
            resource_version: Some(position),
            metadata_only: !whole,
            ..WatchQuery::default()
        }
    }

    /// Lists the scope for these readers. Returns the version to watch from.
    pub(super) async fn list(&self, scope: &Scope, members: &[Rc<Member>]) -> Result<String, ApiError> {
        let namespace = scope.namespace.as_deref();
        let is_in = |name: &NamespacedName| scope.contains(name);
        // A reader that only wants changes and knows nothing yet has nothing to compare.
        let is_new = |member: &Member| !member.covers(scope) && !member.is_owed(scope);
        let begins_now =
            |member: &Member| member.start == Start::Now && is_new(member) && !member.sink.knows_any(&is_in);
        let how = |member: &Member| {
            if member.covers(scope) || member.complete.get() { How::Relist } else { How::First }
        };
        let recipients: Vec<_> =
            members.iter().filter(|member| !begins_now(member)).map(|member| (member.clone(), how(member))).collect();
        let version = if recipients.is_empty() {
            self.version_of(namespace).await?
        } else {
            self.list_all(scope, &recipients).await?
        };
        members.iter().for_each(|member| self.cover(member, scope));
        self.show_cached_objects();
        Ok(version)
    }

    /// Readers that joined during the list and only want changes get those after it. All others get another list.
    fn begin_from_now(&self, scope: &Scope) {
        let came = |member: &&Rc<Member>| member.start == Start::Now && !member.covers(scope);
        self.members_of(scope).iter().filter(came).for_each(|member| self.cover(member, scope));
    }

    async fn list_all(&self, scope: &Scope, recipients: &[(Rc<Member>, How<'static>)]) -> Result<String, ApiError> {
        let query = ListQuery { metadata_only: !scope.whole.get(), ..self.list_query() };
        let mut seen = BTreeSet::new();
        let mut version = String::new();
        let mut pages =
            self.cluster.pages(self.context(LIST_TIME), self.key.resource.clone(), scope.namespace.clone(), query);
        while let Some(page) = pages.next().await {
            let page = page?;
            version = page.resource_version;
            for object in &page.items {
                self.report_item(object, recipients, &mut seen);
            }
        }
        let number = version.parse().ok();
        for (member, how) in recipients {
            self.call(member, |sink| sink.listed(&|name| scope.contains(name), &seen, number, *how));
        }
        Ok(version)
    }

    fn report_item(
        &self,
        object: &Value,
        recipients: &[(Rc<Member>, How<'static>)],
        seen: &mut BTreeSet<NamespacedName>,
    ) {
        let name = NamespacedName::of(object);
        let mut is_kept = false;
        for (member, how) in recipients {
            self.call(member, |sink| {
                if sink.keeps(&name) {
                    is_kept = true;
                    sink.put(&name, object, *how);
                }
            });
        }
        if is_kept {
            seen.insert(name);
        }
    }

    /// Returns the present version, by a list of one object.
    pub(super) async fn version_of(&self, namespace: Option<&str>) -> Result<String, ApiError> {
        let one = ListQuery { limit: Some(1), metadata_only: true, ..self.list_query() };
        let page = self.cluster.list(&self.context(VERSION_TIME), &self.key.resource, namespace, &one).await?;
        Ok(page.resource_version)
    }

    fn list_query(&self) -> ListQuery {
        ListQuery {
            label_selector: self.key.label_selector.clone(),
            field_selector: self.key.field_selector.clone(),
            ..ListQuery::default()
        }
    }

    fn context(&self, time: Duration) -> Context {
        Context { priority: Priority::Low, deadline: Deadline::after(time), key: self.name.as_str().into() }
    }
}
