//! Watches and their streams (facts §3). A write puts its [`Change`] into the queue of each watch of the resource; the
//! stream selects, shapes and encodes it when it is read. A watch that is read too slowly ends.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{Stream, stream};
use http_body::Frame;
use serde_json::json;
use tokio::{
    sync::mpsc::Receiver,
    time::{Instant, sleep_until},
};

use super::{
    Shared, encode,
    fault::{EventFault, EventInfo, Process, WatchEnd, disconnected},
    kinds::ServedKind,
    list::Selection,
    negotiate::{Asked, negotiate},
    render::{self, Form},
    request::Request,
    state::{ApiState, Refusal},
    status::Failure,
    storage::{Change, Object},
    watchers::Signal,
};

const BOOKMARKS: Duration = Duration::from_secs(60);

const LAST_BOOKMARK: Duration = Duration::from_secs(2); // time from the last bookmark to the timeout

pub(super) struct WatchPlan {
    kind: Arc<ServedKind>,
    form: Form,
    selection: Selection,
    bookmarks: bool,
    timeout: Duration,
    first: VecDeque<Item>,
    queue: Receiver<Signal>,
    /// Changes up to this revision are not sent: the request named a future version. Else 0.
    silent_up_to: u64,
}

#[derive(Clone)]
enum Item {
    Initial(Arc<Object>),
    /// The end of the initial objects, with the revision at which they were read.
    InitialEnd(u64),
    Change(Arc<Change>),
    Error(Failure),
    End(WatchEnd),
}

struct Watch {
    plan: WatchPlan,
    shared: Arc<Shared>,
    process: Process,
    number: u64,
    user_agent: String,
    next_bookmark: Option<Instant>,
    deadline: Instant,
    /// A fault: how the watch ends, and after how many events.
    planned_end: Option<(u64, WatchEnd)>,
    sent: u64,
    /// An event that waits until the next one has overtaken it.
    held: Option<Vec<u8>>,
    ready: VecDeque<Bytes>,
    ended: Option<WatchEnd>,
}

impl ApiState {
    pub(super) fn watch(&mut self, kind: &Arc<ServedKind>, request: &Request) -> Result<WatchPlan, Refusal> {
        let form = match negotiate(&request.info.accept)? {
            Asked::Full => Some(Form::Full),
            Asked::Metadata => Some(Form::Metadata),
            Asked::MetadataList => None,
            Asked::Table => return Err(Failure::not_simulated("watches of tables").into()),
        };
        let selection = Selection::of(kind, request)?;
        let query = &request.query;
        let asked = match query.get("resourceVersion") {
            None => 0,
            Some(text) => text.parse().map_err(|_| Failure::watch_version(text))?,
        };
        let bookmarks = query.truthy("allowWatchBookmarks");
        let matching = query.get("resourceVersionMatch");
        let initial = query.get("sendInitialEvents").map(|_| query.truthy("sendInitialEvents"));
        match (initial, matching) {
            (None, None) | (Some(_), Some("NotOlderThan")) => {}
            (Some(_), _) => return Err(Failure::initial_events_without_match().into()),
            (None, Some(_)) => return Err(Failure::match_on_watch().into()),
        }
        let scope = self.scope_of(kind, request);
        let present = self.storage.revision();

        let mut first = VecDeque::new();
        let mut silent_up_to = 0;
        if initial == Some(true) || (asked == 0 && initial.is_none()) {
            let objects = self.storage.scan(&scope).filter(|(_, object)| selection.matches(&object.value));
            first.extend(objects.map(|(_, object)| Item::Initial(object.clone())));
            if initial == Some(true) && bookmarks {
                first.push_back(Item::InitialEnd(present));
            }
        } else if asked > present {
            silent_up_to = asked;
        } else if asked > 0 {
            match self.storage.since(asked) {
                Ok(changes) => {
                    let changes = changes.filter(|change| scope.contains(&change.key));
                    first.extend(changes.map(|change| Item::Change(change.clone())));
                }
                Err(_) => first.push_back(Item::Error(Failure::watch_expired(asked, self.storage.oldest()))),
            }
        }
        if form.is_none() {
            first = VecDeque::from([Item::End(WatchEnd::Close)]);
        }
        let timeout = match query.get("timeoutSeconds").and_then(|text| text.parse().ok()) {
            Some(seconds) if seconds > 0 => Duration::from_secs(seconds),
            _ => Duration::from_secs(self.random.u64(1800..3600)),
        };
        let form = form.unwrap_or(Form::Full);
        let queue = self.watches.add(scope);
        let kind = kind.clone();
        Ok(WatchPlan { kind, form, selection, bookmarks, timeout, first, queue, silent_up_to })
    }
}

impl WatchPlan {
    pub(super) fn into_stream(
        self,
        shared: Arc<Shared>,
        process: Process,
        request: &Request,
        planned_end: Option<(u64, WatchEnd)>,
    ) -> impl Stream<Item = Result<Frame<Bytes>, tower::BoxError>> + Send + use<> {
        let now = Instant::now();
        let deadline = now + self.timeout;
        let mut watch = Watch {
            shared,
            process,
            number: request.info.number,
            user_agent: request.info.user_agent.clone(),
            next_bookmark: None,
            deadline,
            planned_end,
            sent: 0,
            held: None,
            ready: VecDeque::new(),
            ended: None,
            plan: self,
        };
        watch.next_bookmark = watch.bookmark_after(now);
        stream::unfold(watch, |mut watch| async move {
            let item = watch.next().await?;
            Some((item.map(Frame::data), watch))
        })
    }
}

impl Watch {
    async fn next(&mut self) -> Option<Result<Bytes, tower::BoxError>> {
        loop {
            if self.process.is_crashed() {
                std::future::pending::<()>().await;
            }
            if let Some((_, end)) = self.planned_end.filter(|(after, _)| self.sent >= *after) {
                self.planned_end = None;
                self.ready.clear();
                self.take(Item::End(end));
            }
            if let Some(line) = self.ready.pop_front() {
                self.sent += 1;
                return Some(Ok(line));
            }
            match self.ended {
                Some(WatchEnd::Close | WatchEnd::Expired) => return None,
                Some(WatchEnd::Disconnect) => {
                    self.ended = Some(WatchEnd::Close);
                    return Some(Err(disconnected()));
                }
                Some(WatchEnd::Hang) => std::future::pending::<()>().await,
                None => {}
            }
            match self.plan.first.pop_front() {
                Some(item) => self.take(item),
                None => self.wait().await,
            }
        }
    }

    async fn wait(&mut self) {
        let tick = self.next_bookmark.unwrap_or(self.deadline).min(self.deadline);
        tokio::select! {
            biased;
            signal = self.plan.queue.recv() => match signal {
                Some(Signal::Change(change)) => self.take(Item::Change(change)),
                Some(Signal::End(end)) => self.take(Item::End(end)),
                None => self.take(Item::End(WatchEnd::Close)),
            },
            () = sleep_until(tick) => self.tick(tick),
        }
    }

    fn tick(&mut self, now: Instant) {
        if now >= self.deadline {
            self.take(Item::End(WatchEnd::Close));
            return;
        }
        // Under the state's lock nothing can be queued: an empty queue proves that the watch has seen all revisions.
        let state = self.shared.state();
        let revision = state.storage.revision();
        let up_to_date = self.plan.queue.is_empty() && self.held.is_none();
        drop(state);
        if up_to_date {
            self.bookmark(revision.max(self.plan.silent_up_to), false);
        }
        self.next_bookmark = self.bookmark_after(now);
    }

    fn bookmark_after(&self, now: Instant) -> Option<Instant> {
        if !self.plan.bookmarks {
            return None;
        }
        let last = self.deadline.checked_sub(LAST_BOOKMARK)?;
        if now >= last { None } else { Some((now + BOOKMARKS).min(last)) }
    }

    fn bookmark(&mut self, revision: u64, ends_initial_events: bool) {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if ends_initial_events {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let (api_version, kind) = match self.plan.form {
            Form::Full | Form::Row(_) => (self.plan.kind.api_version(), self.plan.kind.kind.clone()),
            Form::Metadata => ("meta.k8s.io/v1".to_owned(), "PartialObjectMetadata".to_owned()),
        };
        let object = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata});
        self.ready.push_back(line("BOOKMARK", &encode::to_vec(&object)).into());
    }

    fn take(&mut self, item: Item) {
        match item {
            Item::Initial(object) => match self.encode("ADDED", &object, None) {
                Ok(line) => self.ready.push_back(line.into()),
                Err(failure) => self.take(Item::Error(failure)),
            },
            Item::InitialEnd(revision) => self.bookmark(revision, true),
            Item::Change(change) => self.change(&change),
            Item::Error(failure) => {
                self.ready.push_back(line("ERROR", failure.body.trim_ascii_end()).into());
                self.plan.queue.close();
                self.ended = Some(WatchEnd::Close);
            }
            Item::End(WatchEnd::Expired) => {
                let revision = self.shared.state().storage.revision();
                self.take(Item::Error(Failure::watch_expired(revision.saturating_sub(1), revision)));
            }
            Item::End(end) => {
                self.plan.queue.close();
                self.ended = Some(end);
            }
        }
    }

    /// Handles a change. An object that leaves the selection appears as deleted, with its last matching content.
    fn change(&mut self, change: &Change) {
        if change.revision <= self.plan.silent_up_to {
            return;
        }
        let selected =
            |object: &Option<Arc<Object>>| object.clone().filter(|object| self.plan.selection.matches(&object.value));
        let (event, object, revision) = match (selected(&change.before), selected(&change.after)) {
            (None, Some(after)) => ("ADDED", after, None),
            (Some(_), Some(after)) => ("MODIFIED", after, None),
            (Some(before), None) => ("DELETED", before, Some(change.revision)),
            (None, None) => return,
        };
        match self.encode(event, &object, revision) {
            Ok(line) => self.deliver(event, change, line),
            Err(failure) => self.take(Item::Error(failure)),
        }
    }

    fn deliver(&mut self, event: &'static str, change: &Change, line: Vec<u8>) {
        let info = EventInfo {
            watch: self.number,
            event,
            group: change.key.group.to_string(),
            resource: change.key.resource.to_string(),
            namespace: change.key.namespace.to_string(),
            name: change.key.name.to_string(),
            revision: change.revision,
            user_agent: self.user_agent.clone(),
        };
        let held = self.held.take();
        match self.shared.event_fault(&info) {
            EventFault::Deliver => self.ready.push_back(line.into()),
            EventFault::Drop => {}
            EventFault::Duplicate => {
                let line = Bytes::from(line);
                self.ready.extend([line.clone(), line]);
            }
            EventFault::Swap => self.held = Some(line),
        }
        self.ready.extend(held.map(Bytes::from));
    }

    fn encode(&self, event: &str, object: &Object, revision: Option<u64>) -> Result<Vec<u8>, Failure> {
        let kind = &self.plan.kind;
        let mut body = Vec::new();
        let converted = super::convert::to_version(kind, &object.value)?;
        match (&converted, revision) {
            (None, None) => render::object(&mut body, object, &kind.api_version(), &kind.kind, self.plan.form),
            (converted, revision) => {
                let value = converted.as_ref().unwrap_or(&object.value);
                render::value(&mut body, value, &kind.api_version(), &kind.kind, self.plan.form, revision);
            }
        }
        Ok(line(event, &body))
    }
}

fn line(event: &str, object: &[u8]) -> Vec<u8> {
    let mut line = Vec::with_capacity(object.len() + 40);
    line.extend_from_slice(b"{\"type\":\"");
    line.extend_from_slice(event.as_bytes());
    line.extend_from_slice(b"\",\"object\":");
    line.extend_from_slice(object);
    line.extend_from_slice(b"}\n");
    line
}
