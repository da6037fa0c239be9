//! The actor of a webhook on one worker thread (architecture §9).
//!
//! It judges a review in the turn of its message, so reviews of a worker go one after the other; one that needs a live read
//! waits beside the mailbox. A panic of a webhook is part of its verdict; if the actor itself ends, the next request starts
//! it again.

use std::{cell::RefCell, sync::Arc};

use actix::{Actor, ActorFutureExt as _, Addr, AsyncContext as _, Context, Handler, Message, WrapFuture as _};
use tokio::{sync::oneshot, time::Instant};

use super::{handler::Overloaded, load::Load, statistics::Statistics};
use crate::{
    actors::kit::{Census, post},
    dashboard::metrics::Metrics,
    webhooks::{
        knowledge::{Answers, Knowledge},
        registry::Entry,
        review::{Body, Reply, Review, Verdict, attempt, decode, reply},
        view::Lookup,
    },
};

/// Reviews that wait for their turn: with a millisecond each, none waits long.
const MAILBOX: usize = 128;
/// Reviews that wait for a live read; each may hold an object of some MiB.
const MOST_WAITING: usize = 64;

/// A webhook that is served.
pub(super) struct Webhook {
    pub(super) entry: Entry,
    pub(super) statistics: Statistics,
}

/// Where the requests of a worker to a webhook are handed in.
pub(super) struct Desk {
    pub(super) webhook: Arc<Webhook>,
    pub(super) load: Load,
    knowledge: Knowledge,
    actor: RefCell<Addr<WebhookActor>>,
}

struct WebhookActor {
    webhook: Arc<Webhook>,
    knowledge: Knowledge,
    /// Reviews that wait for a live read.
    waiting: usize,
}

/// A request.
#[derive(Message)]
#[rtype(result = "()")]
struct Request {
    body: Body,
    content_type: String,
    deadline: Instant,
    reply: oneshot::Sender<Result<Reply, Overloaded>>,
}

// === impl Webhook ===

impl Webhook {
    pub(super) fn new(entry: Entry, metrics: &Metrics, census: &Census) -> Self {
        let statistics = Statistics::new(entry.path, metrics, census);
        Self { entry, statistics }
    }

    fn attempt(&self, review: &Review, knowledge: &Knowledge, answers: &Answers) -> Result<Verdict, Lookup> {
        attempt(&*self.entry.mutator, review, &knowledge.sight(answers))
    }

    fn conclude(&self, review: &Review, verdict: &Verdict) -> Reply {
        self.statistics.judged(review, verdict);
        reply(&review.identity, verdict, self.entry.failure_policy)
    }

    /// Reads what an attempt asked for, and attempts again, until there is a verdict.
    async fn look(&self, review: &Review, knowledge: &Knowledge, mut lookup: Lookup, deadline: Instant) -> Verdict {
        let mut answers = Answers::default();
        loop {
            let known = knowledge.look(lookup.clone(), deadline).await;
            if !answers.add(lookup, known) {
                let message = "the webhook asked the same question again".to_owned();
                return Verdict::Errored { code: 500, message };
            }
            match self.attempt(review, knowledge, &answers) {
                Ok(verdict) => return verdict,
                Err(next) => lookup = next,
            }
        }
    }
}

// === impl Desk ===

impl Desk {
    /// On the thread of the worker.
    pub(super) fn open(webhook: &Arc<Webhook>, knowledge: &Knowledge, load: &Load) -> Self {
        let actor = RefCell::new(WebhookActor::begin(webhook, knowledge));
        Self { webhook: webhook.clone(), load: load.clone(), knowledge: knowledge.clone(), actor }
    }

    pub(super) fn path(&self) -> &'static str {
        self.webhook.entry.path
    }

    pub(super) async fn ask(&self, body: Body, content_type: String, deadline: Instant) -> Result<Reply, Overloaded> {
        let (reply, answer) = oneshot::channel();
        if !post(&self.actor(), Request { body, content_type, deadline, reply }) {
            return Err(Overloaded);
        }
        // The actor ended without an answer, which only a defect of it can do.
        answer.await.unwrap_or_else(|_| Ok(Reply { status: 500, body: b"the review was given up\n".to_vec() }))
    }

    fn actor(&self) -> Addr<WebhookActor> {
        let mut actor = self.actor.borrow_mut();
        if !actor.connected() {
            *actor = WebhookActor::begin(&self.webhook, &self.knowledge);
        }
        actor.clone()
    }
}

// === impl WebhookActor ===

impl WebhookActor {
    fn begin(webhook: &Arc<Webhook>, knowledge: &Knowledge) -> Addr<Self> {
        Self { webhook: webhook.clone(), knowledge: knowledge.clone(), waiting: 0 }.start()
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

    /// An answer that nobody waits for any more is dropped.
    fn handle(&mut self, request: Request, ctx: &mut Context<Self>) {
        let Request { body, content_type, deadline, mut reply } = request;
        let review = match decode(&body, &content_type) {
            Ok(review) => review,
            Err(refusal) => {
                self.webhook.statistics.refused(&refusal);
                reply.send(Ok(refusal.reply())).ok();
                return;
            }
        };
        drop(body);
        let lookup = match self.webhook.attempt(&review, &self.knowledge, &Answers::default()) {
            Ok(verdict) => {
                reply.send(Ok(self.webhook.conclude(&review, &verdict))).ok();
                return;
            }
            Err(lookup) => lookup,
        };
        if self.waiting >= MOST_WAITING {
            reply.send(Err(Overloaded)).ok();
            return;
        }
        self.waiting += 1;
        let (webhook, knowledge) = (self.webhook.clone(), self.knowledge.clone());
        let looking = async move {
            let verdict = tokio::select! {
                biased;
                () = reply.closed() => return,
                verdict = webhook.look(&review, &knowledge, lookup, deadline) => verdict,
            };
            reply.send(Ok(webhook.conclude(&review, &verdict))).ok();
        };
        ctx.spawn(looking.into_actor(self).map(|(), actor, _| actor.waiting -= 1));
    }
}
