//! Live reads, each once for all who ask.
//!
//! Whoever asks while a read is under way waits for the next one: the answer to a request of before may not know what was
//! created since, and that is why somebody asks.

use std::{cell::RefCell, collections::BTreeMap, mem, panic::AssertUnwindSafe, rc::Rc, sync::Arc, time::Duration};

use futures::FutureExt as _;
use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout_at,
};

use super::{
    index::Limits,
    kind_of, records, too_late,
    watches::{self, NodeRouter},
};
use crate::{
    actors::kit::{Deadline, Lane, Signal},
    api::object::NamespacedName,
    cluster::{self, ApiError, Cluster, Context, ListQuery, Resource, Status},
    webhooks::{
        mutating::load_balancing::{CONFIG_MAP, SERVICE},
        view::{Annotations, ApiStatus, Cause, Details, Failure, Lookup, ServiceAccount},
    },
};

/// How long a read may take: less than the 10 s that an API server waits for most webhooks.
const TIME: Duration = Duration::from_secs(8);

/// What was read.
#[derive(Debug, Clone)]
pub enum Known {
    /// A ServiceAccount.
    ServiceAccount(Option<ServiceAccount>),
    /// Annotations of a Namespace.
    Namespace(Option<Arc<Annotations>>),
    /// The autoscalers of a namespace.
    Autoscalers(Autoscalers),
    /// Data of a ConfigMap.
    LoadBalancing(Option<Arc<Annotations>>),
    /// Addresses of a Service.
    Gateway(Option<Arc<Vec<String>>>),
    /// The Nodes are in their store.
    Nodes,
    /// It cannot be read.
    Failed(Failure),
}

/// What the autoscalers of a namespace scale, and how far.
#[derive(Debug, Clone)]
pub struct Autoscalers(pub(super) Limits);

/// A question to the thread of the cluster.
pub(in crate::webhooks) struct Question {
    pub(in crate::webhooks) lookup: Lookup,
    pub(in crate::webhooks) reply: oneshot::Sender<Known>,
}

/// Answers questions.
pub(super) struct Reader {
    cluster: Cluster,
    nodes: Option<NodeRouter>,
    waiting: RefCell<BTreeMap<Lookup, Waiting>>,
}

/// Who waits for an answer.
#[derive(Default)]
struct Waiting {
    /// For the read that is under way.
    now: Vec<oneshot::Sender<Known>>,
    /// For the one after it.
    next: Vec<oneshot::Sender<Known>>,
}

// === impl Reader ===

impl Reader {
    pub(super) fn new(cluster: Cluster, nodes: Option<NodeRouter>) -> Rc<Self> {
        Rc::new(Self { cluster, nodes, waiting: RefCell::default() })
    }

    /// Answers questions until nobody can ask any more.
    pub(super) async fn run(self: Rc<Self>, mut questions: mpsc::Receiver<Question>) {
        while let Some(Question { lookup, reply }) = questions.recv().await {
            let mut waiting = self.waiting.borrow_mut();
            if let Some(waiting) = waiting.get_mut(&lookup) {
                waiting.next.push(reply);
                continue;
            }
            waiting.insert(lookup.clone(), Waiting { now: vec![reply], next: Vec::new() });
            actix::spawn(self.clone().answer(lookup));
        }
    }

    /// Reads until nobody waits for this any more.
    async fn answer(self: Rc<Self>, lookup: Lookup) {
        loop {
            let known = AssertUnwindSafe(self.read(&lookup)).catch_unwind().await;
            let known = known.unwrap_or_else(|_| {
                let message = format!("reading a {} panicked", kind_of(&lookup));
                Known::Failed(Failure::Errored { code: 500, message })
            });
            let mut all = self.waiting.borrow_mut();
            let Some(waiting) = all.get_mut(&lookup) else { return };
            for reply in mem::take(&mut waiting.now) {
                // Who does not wait any more needs no answer.
                reply.send(known.clone()).ok();
            }
            waiting.now = mem::take(&mut waiting.next);
            waiting.now.retain(|reply| !reply.is_closed());
            if waiting.now.is_empty() {
                all.remove(&lookup);
                return;
            }
        }
    }

    async fn read(&self, lookup: &Lookup) -> Known {
        let context = Context { lane: Lane::Live, deadline: Deadline::after(TIME), key: "webhooks".into() };
        let known = match lookup {
            Lookup::ServiceAccount(name) => {
                let found = self.get(&context, &watches::service_accounts(), name).await;
                found.map(|object| Known::ServiceAccount(object.as_ref().map(records::service_account)))
            }
            Lookup::Namespace(name) => {
                let found = self.get(&context, &watches::namespaces(), &NamespacedName::new("", name)).await;
                found.map(|object| Known::Namespace(object.as_ref().map(|object| records::space(object).annotations)))
            }
            Lookup::Autoscalers(namespace) => self.autoscalers(&context, namespace).await,
            Lookup::LoadBalancing(namespace) => {
                let name = NamespacedName::new(namespace, CONFIG_MAP);
                let found = self.get(&context, &watches::config_maps(), &name).await;
                found.map(|object| Known::LoadBalancing(object.as_ref().map(records::load_balancing)))
            }
            Lookup::Gateway(namespace) => {
                let found = self.get(&context, &watches::services(), &NamespacedName::new(namespace, SERVICE)).await;
                found.map(|object| Known::Gateway(object.as_ref().map(records::gateway)))
            }
            Lookup::Nodes => return self.nodes(context.deadline).await,
        };
        known.unwrap_or_else(|error| {
            tracing::warn!(?lookup, %error, "A live read for a webhook failed");
            Known::Failed(failure(lookup, &error))
        })
    }

    /// An object of a name that no object can have is not asked for: it does not exist.
    async fn get(
        &self,
        context: &Context,
        resource: &Resource,
        name: &NamespacedName,
    ) -> Result<Option<Value>, ApiError> {
        match self.cluster.get(context, &resource.at(&name.namespace, &name.name)).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(ApiError::BadRequest(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn autoscalers(&self, context: &Context, namespace: &str) -> Result<Known, ApiError> {
        let limits = Limits::default();
        let (resource, scope) = (watches::autoscalers(), Some(namespace.to_owned()));
        let mut pages = self.cluster.pages(context.clone(), resource, scope, ListQuery::default());
        while let Some(page) = pages.next().await {
            page?.items.iter().for_each(|object| limits.change(None, Some(&records::autoscaler(object))));
        }
        Ok(Known::Autoscalers(Autoscalers(limits)))
    }

    async fn nodes(&self, deadline: Deadline) -> Known {
        let Some(router) = &self.nodes else { return Known::Nodes };
        let listed = async {
            loop {
                let moment = router.signal().moment();
                if router.store().is_listed() {
                    return;
                }
                Signal::raised_after(&moment).await;
            }
        };
        match timeout_at(deadline.0, listed).await {
            Ok(()) => Known::Nodes,
            Err(_) => Known::Failed(too_late(&Lookup::Nodes)),
        }
    }
}

/// An API status passes through as it is; else there is only a text.
fn failure(lookup: &Lookup, error: &ApiError) -> Failure {
    match error {
        ApiError::Status(status) => Failure::Status(Box::new(api_status(status))),
        ApiError::Timeout | ApiError::NotSent => too_late(lookup),
        other => Failure::Denied(other.to_string()),
    }
}

fn api_status(status: &Status) -> ApiStatus {
    let Status { code, reason, message, name, group, kind, uid, causes, retry_after_seconds, retry_after: _ } =
        status.clone();
    let cause = |cause: cluster::Cause| Cause { reason: cause.reason, message: cause.message, field: cause.field };
    let causes = causes.into_iter().map(cause).collect();
    ApiStatus { code, reason, message, details: Details { name, group, kind, uid, causes, retry_after_seconds } }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec 50 §2.4, "Denied with status": that API status, unchanged
    #[test]
    fn a_status_of_the_target_keeps_its_details() {
        let [reason, message, field] = ["R", "m", "spec.a"].map(str::to_owned);
        let causes = vec![cluster::Cause { reason: reason.clone(), message: message.clone(), field: field.clone() }];
        let [group, uid] = ["g", "u"].map(str::to_owned);
        let status = Status { code: 429, group, uid, causes, retry_after_seconds: 7, ..Status::default() };

        let failure = failure(&Lookup::Nodes, &ApiError::Status(Box::new(status)));

        let Failure::Status(status) = failure else { panic!("no status") };
        let causes = vec![Cause { reason, message, field }];
        let [group, uid] = ["g", "u"].map(str::to_owned);
        assert_eq!(status.details, Details { group, uid, causes, retry_after_seconds: 7, ..Details::default() });
    }
}
