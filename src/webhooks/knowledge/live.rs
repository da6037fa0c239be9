//! Live reads, shared by all callers. An object that was found answers all callers: stores may lag just as much. A "not
//! found" or a list may be outdated, because an object may have been created after our request was sent. Such an answer
//! goes only to callers that asked before the request was sent. Later callers get the next read, which is sent at once,
//! so that a slow answer does not delay it. At most two equal reads are in flight; further callers share the third.

use std::{cell::RefCell, collections::BTreeMap, mem, panic::AssertUnwindSafe, rc::Rc, time::Duration};

use cluster::{ApiError, Cached, Cluster, Context, ListQuery, Resource, StoreState, Watch, object::NamespacedName};
use futures::FutureExt as _;
use kit::{Deadline, Priority, Signal};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout_at},
};

use super::{index::Limits, kind_of, records, too_late};
use crate::{
    api::{kinds, resources::side::Side},
    webhooks::{
        cached_kind::{AnyCachedKind, Fields},
        validating::deletion::is_confirmed,
        view::{Collection, Failure, Lookup, Recency},
    },
};

/// Time limit of a read: below the 10 s that an API server waits for most webhooks.
const TIME: Duration = Duration::from_secs(8);

/// The result of a live read.
#[derive(Debug, Clone)]
pub enum LiveAnswer {
    /// The cached fields of an object, or `None` if it does not exist.
    Object(Option<Fields>),
    /// The cached fields of all objects, in the order of their names.
    Objects(Vec<(NamespacedName, Fields)>),
    /// The store holds the objects now.
    Listed,
    /// The autoscalers of a namespace.
    Autoscalers(Limits),
    /// The first object of a collection whose deletion is not confirmed.
    Unconfirmed(Option<NamespacedName>),
    /// The read failed.
    Failed(Failure),
}

pub(in crate::webhooks) struct Question {
    pub(in crate::webhooks) lookup: Lookup,
    pub(in crate::webhooks) reply: oneshot::Sender<LiveAnswer>,
}

pub(super) struct FirstList {
    /// Whether the first list arrived; `None` if it never will, because the process ends.
    is_listed: Box<dyn Fn() -> Option<bool>>,
    signal: Signal,
}

pub(super) struct Reader {
    source: Cluster,
    target: Cluster,
    first_lists: BTreeMap<Lookup, FirstList>,
    waiting: RefCell<BTreeMap<Lookup, Waiting>>,
    /// Collections whose deletion is confirmed as a whole, and the time of the request.
    confirmed: RefCell<BTreeMap<Collection, Instant>>,
}

/// How long the answer about a confirmed collection is reused: its objects are deleted one by one, and each deletion
/// asks about all. A missing confirmation is not remembered, so that the deletion continues once it is confirmed.
const REMEMBERED: Duration = Duration::from_secs(1);

const MOST_READS: usize = 2;

#[derive(Default)]
struct Waiting {
    /// The reads in flight by number, in the order of their start, with the callers that asked before it.
    reads: BTreeMap<u64, Vec<oneshot::Sender<LiveAnswer>>>,
    next: Vec<oneshot::Sender<LiveAnswer>>,
    last: u64,
}

impl FirstList {
    pub(super) fn of<R: Cached>(watch: &Watch<R>) -> Self {
        let (store, signal) = (watch.store().clone(), watch.signal().clone());
        let is_listed = move || match store.is_listed() {
            true => Some(true),
            false => (store.state() != StoreState::Off).then_some(false),
        };
        Self { is_listed: Box::new(is_listed), signal }
    }
}

impl Reader {
    pub(super) fn new(source: Cluster, target: Cluster, first_lists: BTreeMap<Lookup, FirstList>) -> Rc<Self> {
        Rc::new(Self { source, target, first_lists, waiting: RefCell::default(), confirmed: RefCell::default() })
    }

    pub(super) async fn run(self: Rc<Self>, mut questions: mpsc::Receiver<Question>) {
        while let Some(Question { lookup, reply }) = questions.recv().await {
            if self.is_confirmed(&lookup) {
                reply.send(LiveAnswer::Unconfirmed(None)).ok();
                continue;
            }
            let mut all = self.waiting.borrow_mut();
            let waiting = all.entry(lookup.clone()).or_default();
            waiting.next.push(reply);
            self.begin(&lookup, waiting);
        }
    }

    fn begin(self: &Rc<Self>, lookup: &Lookup, waiting: &mut Waiting) {
        if let Some(place) = waiting.begin() {
            actix::spawn(self.clone().answer(lookup.clone(), place));
        }
    }

    async fn answer(self: Rc<Self>, lookup: Lookup, place: u64) {
        let known = AssertUnwindSafe(self.read(&lookup)).catch_unwind().await;
        let known = known.unwrap_or_else(|_| {
            let message = format!("reading a {} panicked", kind_of(&lookup).1);
            LiveAnswer::Failed(Failure::Errored { code: 500, message })
        });
        let mut all = self.waiting.borrow_mut();
        let Some(waiting) = all.get_mut(&lookup) else { return };
        for reply in waiting.answered(place, &lookup, &known) {
            reply.send(known.clone()).ok();
        }
        self.begin(&lookup, waiting);
        if waiting.reads.is_empty() {
            all.remove(&lookup);
        }
    }

    async fn read(&self, lookup: &Lookup) -> LiveAnswer {
        let context = Context { priority: Priority::High, deadline: Deadline::after(TIME), key: "webhooks".into() };
        let known = match lookup {
            Lookup::Object { cached_kind, name, recency: _ } => self.object(&context, *cached_kind, name).await,
            Lookup::List(cached_kind) => self.objects(&context, *cached_kind).await,
            Lookup::Autoscalers(namespace) => self.autoscalers(&context, namespace).await,
            Lookup::Collection(collection) => self.collection(&context, collection).await,
            Lookup::Objects(_) | Lookup::Nodes => return self.listed(lookup, context.deadline).await,
        };
        known.unwrap_or_else(|error| {
            let (kind, of) = (kind_of(lookup).1, lookup.subject());
            tracing::warn!(kind, of, %error, "A live read for a webhook failed");
            LiveAnswer::Failed(failure(lookup, &error))
        })
    }

    /// An object with an impossible name does not exist: `BadRequest` means that no request was sent.
    async fn object(
        &self,
        context: &Context,
        cached_kind: &'static dyn AnyCachedKind,
        name: &NamespacedName,
    ) -> Result<LiveAnswer, ApiError> {
        let objects = cached_kind.objects();
        match self.cluster(objects.side).get(context, &objects.resource().at(&name.namespace, &name.name)).await {
            Ok(object) => Ok(LiveAnswer::Object(Some(cached_kind.cached_fields(&object)))),
            Err(error) if error.is_not_found() => Ok(LiveAnswer::Object(None)),
            Err(ApiError::BadRequest(_)) => Ok(LiveAnswer::Object(None)),
            Err(error) => Err(error),
        }
    }

    fn cluster(&self, side: Side) -> &Cluster {
        match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        }
    }

    async fn objects(
        &self,
        context: &Context,
        cached_kind: &'static dyn AnyCachedKind,
    ) -> Result<LiveAnswer, ApiError> {
        let objects = cached_kind.objects();
        let cluster = self.cluster(objects.side);
        let (label_selector, field_selector) = objects.selected.selectors();
        let mut all = Vec::new();
        for scope in objects.scopes(&cluster.options().namespaces) {
            let query = ListQuery {
                label_selector: label_selector.clone(),
                field_selector: field_selector.clone(),
                metadata_only: objects.metadata_only,
                ..ListQuery::default()
            };
            let mut pages = cluster.pages(context.clone(), objects.resource(), scope, query);
            while let Some(page) = pages.next().await {
                all.extend(
                    page?.items.iter().map(|object| (NamespacedName::of(object), cached_kind.cached_fields(object))),
                );
            }
        }
        all.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(LiveAnswer::Objects(all))
    }

    fn is_confirmed(&self, lookup: &Lookup) -> bool {
        let Lookup::Collection(collection) = lookup else { return false };
        self.confirmed.borrow().get(&**collection).is_some_and(|asked| asked.elapsed() < REMEMBERED)
    }

    async fn collection(&self, context: &Context, collection: &Collection) -> Result<LiveAnswer, ApiError> {
        let asked = Instant::now();
        let Collection { group, version, kind, plural, namespace, label_selector } = collection;
        let scope = (!namespace.is_empty()).then(|| namespace.clone());
        let resource = Resource::new(group, version, kind, plural, scope.is_some());
        let label_selector = label_selector.map(str::to_owned);
        let query = ListQuery { label_selector, metadata_only: true, ..ListQuery::default() };
        let mut pages = self.source.pages(context.clone(), resource, scope, query);
        while let Some(page) = pages.next().await {
            if let Some(object) = page?.items.iter().find(|object| !is_confirmed(object)) {
                return Ok(LiveAnswer::Unconfirmed(Some(NamespacedName::of(object))));
            }
        }
        let mut confirmed = self.confirmed.borrow_mut();
        confirmed.retain(|_, asked| asked.elapsed() < REMEMBERED);
        confirmed.insert(collection.clone(), asked);
        Ok(LiveAnswer::Unconfirmed(None))
    }

    async fn autoscalers(&self, context: &Context, namespace: &str) -> Result<LiveAnswer, ApiError> {
        let limits = Limits::default();
        let (resource, scope) = (kinds::HORIZONTAL_POD_AUTOSCALER, Some(namespace.to_owned()));
        let mut pages = self.target.pages(context.clone(), resource, scope, ListQuery::default());
        while let Some(page) = pages.next().await {
            page?.items.iter().for_each(|object| limits.change(None, Some(&records::autoscaler(object))));
        }
        Ok(LiveAnswer::Autoscalers(limits))
    }

    async fn listed(&self, lookup: &Lookup, deadline: Deadline) -> LiveAnswer {
        let Some(first_list) = self.first_lists.get(lookup) else { return LiveAnswer::Listed };
        let listed = async {
            loop {
                let moment = first_list.signal.moment();
                match (first_list.is_listed)() {
                    Some(false) => Signal::raised_after(&moment).await,
                    Some(true) => return true,
                    None => return false, // the process ends, and no list will come
                }
            }
        };
        match timeout_at(deadline.0, listed).await {
            Ok(true) => LiveAnswer::Listed,
            Ok(false) | Err(_) => LiveAnswer::Failed(too_late(lookup)),
        }
    }
}

impl Waiting {
    fn begin(&mut self) -> Option<u64> {
        self.next.retain(|reply| !reply.is_closed());
        if self.next.is_empty() || self.reads.len() >= MOST_READS {
            return None;
        }
        self.last += 1;
        self.reads.insert(self.last, mem::take(&mut self.next));
        Some(self.last)
    }

    fn answered(&mut self, place: u64, lookup: &Lookup, known: &LiveAnswer) -> Vec<oneshot::Sender<LiveAnswer>> {
        let for_all = known.is_for_all(lookup);
        let mut replies = self.reads.remove(&place).unwrap_or_default();
        for (other, waiting) in &mut self.reads {
            // A read that began earlier has no newer answer.
            if for_all || *other < place && !matches!(known, LiveAnswer::Failed(_)) {
                replies.append(waiting);
            }
        }
        if for_all {
            replies.append(&mut self.next);
        }
        replies
    }
}

impl LiveAnswer {
    /// Whether callers that asked later may have it too. That holds for an object that is read because the store lacks
    /// it. If the store has an old version, an even newer one may exist.
    fn is_for_all(&self, lookup: &Lookup) -> bool {
        match (self, lookup) {
            (Self::Object(found), Lookup::Object { recency: Recency::Known, .. }) => found.is_some(),
            (Self::Listed, _) => true,
            (Self::Object(_) | Self::Objects(_) | Self::Autoscalers(_) | Self::Unconfirmed(_) | Self::Failed(_), _) => {
                false
            }
        }
    }
}

fn failure(lookup: &Lookup, error: &ApiError) -> Failure {
    match error {
        ApiError::Status(status) => Failure::Status(status.clone()),
        ApiError::Timeout | ApiError::NotSent => too_late(lookup),
        other => Failure::Denied(other.to_string()),
    }
}
