//! The actor of a webhook on one worker thread (architecture §4). It judges a review in the turn of its message, so a
//! worker judges one review after the other. A review that needs a live read waits outside the mailbox, as the received
//! bytes, and is decoded again for the next attempt: a decoded tree may be a hundred times as large as its JSON, and so
//! each thread holds only one. [`Load`] bounds the requests and bytes that wait. A panic of a webhook is part of its
//! verdict. If the actor ends, the next request restarts it.

use std::{cell::RefCell, sync::Arc};

use actix::{Actor, Addr, AsyncContext as _, Context, Handler, Message, WrapFuture as _};
use kit::{StatusRegistry, post};
use tokio::{sync::oneshot, time::Instant};
use tracing::{Instrument as _, field};

use super::{
    load::{Load, MOST_REQUESTS, Overloaded},
    metrics::WebhookServerMetrics,
    statistics::Statistics,
};
use crate::webhooks::{
    endpoint::Conclusion,
    exchange::{Body, Received, Reply},
    knowledge::{Answers, Knowledge},
    registry::WebhookEntry,
    view::Lookup,
};

/// The mailbox has room for all requests: [`Load`] refuses, the mailbox never does.
const MAILBOX: usize = MOST_REQUESTS;

pub(super) struct Webhook {
    pub(super) entry: WebhookEntry,
    pub(super) statistics: Statistics,
}

pub(super) struct Desk {
    pub(super) webhook: Arc<Webhook>,
    pub(super) load: Load,
    knowledge: Knowledge,
    actor: RefCell<Addr<WebhookActor>>,
}

struct WebhookActor {
    webhook: Arc<Webhook>,
    knowledge: Knowledge,
}

#[derive(Message)]
#[rtype(result = "()")]
struct Request {
    received: Received,
    deadline: Instant,
    reply: oneshot::Sender<Result<Reply, Overloaded>>,
}

impl Webhook {
    pub(super) fn new(entry: WebhookEntry, metrics: &WebhookServerMetrics, status_registry: &StatusRegistry) -> Self {
        let statistics = Statistics::new(entry.path, metrics, status_registry);
        Self { entry, statistics }
    }

    /// Answers a request, or fails with what must be read first. The decoded review is freed before it returns.
    fn attempt(&self, received: &Received, knowledge: &Knowledge, answers: &Answers) -> Result<Reply, Lookup> {
        let answer = self.entry.endpoint.answer(received, &knowledge.sight(answers))?;
        Ok(self.conclude(answer))
    }

    fn conclude(&self, answer: Conclusion) -> Reply {
        self.statistics.answered(&answer.account);
        answer.reply
    }

    async fn look(&self, received: &Received, knowledge: &Knowledge, mut lookup: Lookup, deadline: Instant) -> Reply {
        let mut answers = Answers::default();
        loop {
            let known = knowledge.look(lookup.clone(), deadline).await;
            if !answers.add(lookup, known) {
                return self
                    .conclude(self.entry.endpoint.give_up(received, "the webhook asked for too many live reads"));
            }
            match self.attempt(received, knowledge, &answers) {
                Ok(reply) => return reply,
                Err(next) => lookup = next,
            }
        }
    }
}

impl Desk {
    /// Must run on the worker's thread.
    pub(super) fn open(webhook: &Arc<Webhook>, knowledge: &Knowledge, load: &Load) -> Self {
        let actor = RefCell::new(WebhookActor::begin(webhook, knowledge));
        Self { webhook: webhook.clone(), load: load.clone(), knowledge: knowledge.clone(), actor }
    }

    pub(super) fn path(&self) -> &'static str {
        self.webhook.entry.path
    }

    pub(super) async fn ask(&self, body: Body, content_type: String, deadline: Instant) -> Result<Reply, Overloaded> {
        let (reply, answer) = oneshot::channel();
        let received = Received { body, content_type };
        if !self.post(Request { received, deadline, reply }) {
            return Err(Overloaded);
        }
        // The actor ended without an answer, which only a defect can cause.
        answer.await.unwrap_or_else(|_| Ok(Reply { status: 500, body: b"the review was abandoned\n".to_vec() }))
    }

    /// Uses the single address: each copy of it would have a mailbox bound of its own.
    fn post(&self, request: Request) -> bool {
        let mut actor = self.actor.borrow_mut();
        if !actor.connected() {
            *actor = WebhookActor::begin(&self.webhook, &self.knowledge);
        }
        post(&actor, request)
    }
}

impl WebhookActor {
    fn begin(webhook: &Arc<Webhook>, knowledge: &Knowledge) -> Addr<Self> {
        Self { webhook: webhook.clone(), knowledge: knowledge.clone() }.start()
    }
}

impl Actor for WebhookActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(MAILBOX);
    }
}

impl Handler<Request> for WebhookActor {
    type Result = ();

    /// Drops the answer if the client stopped waiting.
    fn handle(&mut self, request: Request, ctx: &mut Context<Self>) {
        let Request { received, deadline, mut reply } = request;
        if let Some(logger) = self.webhook.entry.endpoint.logger() {
            tracing::debug!(logger, "Received request"); // spec 61 §8
        }
        let span = tracing::error_span!("review", webhook = self.webhook.entry.path, uid = field::Empty);
        let attempt = || self.webhook.attempt(&received, &self.knowledge, &Answers::default());
        let lookup = match span.in_scope(attempt) {
            Ok(answer) => {
                reply.send(Ok(answer)).ok();
                return;
            }
            Err(lookup) => lookup,
        };
        let (webhook, knowledge) = (self.webhook.clone(), self.knowledge.clone());
        let looking = async move {
            let answer = tokio::select! {
                biased;
                () = reply.closed() => return,
                answer = webhook.look(&received, &knowledge, lookup, deadline) => answer,
            };
            reply.send(Ok(answer)).ok();
        };
        ctx.spawn(looking.instrument(span).into_actor(self));
    }
}
