use std::{sync::Arc, time::Duration};

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, AsyncContext as _, Context, Handler, Message, ResponseActFuture,
    SpawnHandle, StreamHandler, WrapFuture as _,
};
use cluster::{
    ApiError, Cluster, Context as RequestContext, Fence, ObjectRef, Recorder, Reference, Resource, WatchEvent,
    WatchKind, WatchQuery, WatchStream,
};
use kit::{Activity, Cell, Deadline, Indispensable, Priority};
use serde_json::Value;
use tokio::{
    sync::{oneshot, watch},
    time::Instant,
};

use super::{
    election::{Action, Answer, Election, Tick},
    lease::Lease,
};

const LOST: &str = "the leader election lease is lost";
/// A forbidden watch of the Lease is tried again after this time: rights may come later than the Pod.
const WATCH_AGAIN: Duration = Duration::from_secs(300);
/// Reason of the Events (spec 70 §12).
const REASON: &str = "LeaderElection";

/// Whether this process leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leadership {
    /// Another replica may lead.
    Candidate,
    /// We lead.
    Leader,
    /// We led until the lease was lost: the process must end (`leader election lost`, exit code 1).
    Lost,
    /// We led, or tried to, until we were asked to stop.
    Released,
}

/// Stops trying, and releases the lease if it is held. Send it when no write is in flight any more ([`Fence::quiet`]);
/// otherwise let the lease expire. Answers whether the lease was released; `false` also if it was not ours.
#[derive(Message)]
#[rtype(result = "bool")]
pub struct Release;

/// Stops trying at once and leaves the lease to expire. For the end of a process that must not release it.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Abandon;

/// What the actor needs.
pub struct LeaderSetup {
    /// The rules, with identity and timing.
    pub election: Election,
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// The source cluster, with a client of its own. The requests bypass request scheduler and fence.
    pub cluster: Cluster,
    /// Opened by each renewal. Made by [`Fence::leased`] with the same renew deadline.
    pub fence: Fence,
    /// Records who leads.
    pub recorder: Recorder,
    /// Its entry in the status registry.
    pub cell: Cell,
    /// Receives changes; keep a receiver.
    pub leadership: watch::Sender<Leadership>,
    /// Receives the identity of the lease's holder; keep a receiver.
    pub holder: watch::Sender<Option<Arc<str>>>,
    /// Without the actor, the lease would not be renewed, and its loss not be reported.
    pub lifeline: Indispensable,
}

/// Takes part in the election until it is lost or released.
pub struct LeaderActor {
    setup: LeaderSetup,
    lease: ObjectRef,
    under_way: Option<SpawnHandle>,
    busy: bool,
    releasing: Option<oneshot::Sender<bool>>,
    watch: Option<SpawnHandle>,
    is_watching: bool,
    watch_from: Option<Instant>,
    /// The Lease was seen free while a request was under way, whose answer may be older.
    is_free: bool,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Read,
    Write,
    Release,
}

impl LeaderActor {
    /// Creates an actor that begins when it is started.
    pub fn new(setup: LeaderSetup) -> Self {
        let resource = Resource::new("coordination.k8s.io", "v1", "Lease", "leases", true);
        let lease = resource.at(setup.namespace.as_str(), setup.name.as_str());
        let setup = LeaderSetup { cluster: setup.cluster.beside(), ..setup };
        Self {
            setup,
            lease,
            under_way: None,
            busy: false,
            releasing: None,
            watch: None,
            is_watching: false,
            watch_from: None,
            is_free: false,
        }
    }

    fn tick(&self) -> Tick {
        let (clock, random) = (self.setup.cluster.clock(), self.setup.cluster.random());
        Tick { now: clock.monotonic(), wall: clock.wall(), random: random.unit() }
    }

    fn begin(&mut self, ctx: &mut Context<Self>) {
        let action = self.setup.election.begin(self.tick());
        self.carry_out(action, ctx);
    }

    fn carry_out(&mut self, action: Action, ctx: &mut Context<Self>) {
        self.report();
        self.show_holder();
        if self.releasing.is_some() {
            return self.release(ctx);
        }
        match action {
            Action::Get => self.request(Step::Read, None, ctx),
            Action::Create(lease) | Action::Update(lease) => self.request(Step::Write, Some(lease), ctx),
            Action::Wait(time) => {
                self.busy = false;
                self.keep_watch(ctx);
                let time = if std::mem::take(&mut self.is_free) { Duration::ZERO } else { time };
                self.wait(time, ctx);
            }
            Action::Lost => self.lose(),
        }
    }

    fn wait(&mut self, time: Duration, ctx: &mut Context<Self>) {
        self.under_way = Some(ctx.run_later(time, Self::go_on));
    }

    /// Begins anew. A candidate that sees each renewal need not read the Lease before it can be free.
    fn go_on(&mut self, ctx: &mut Context<Self>) {
        let now = self.tick().now;
        match self.setup.election.held_by_another_until().filter(|until| self.is_watching && *until > now) {
            Some(until) => self.wait(until - now, ctx),
            None => self.begin(ctx),
        }
    }

    fn request(&mut self, step: Step, lease: Option<Value>, ctx: &mut Context<Self>) {
        self.busy = true;
        let (cluster, at) = (self.setup.cluster.clone(), self.lease.clone());
        let ctx_of_request = self.request_context();
        let request = async move { send(&cluster, &ctx_of_request, &at, lease).await };
        let request = request.into_actor(self).map(move |result, actor, ctx| actor.ended(step, result, ctx));
        self.under_way = Some(ctx.spawn(request));
    }

    /// Opens the watch by which a candidate sees changes of the Lease as they happen. A holder needs no watch. Without
    /// a watch (forbidden, or the stream broke), a candidate sees changes when it tries again.
    fn keep_watch(&mut self, ctx: &mut Context<Self>) {
        let (election, now) = (&self.setup.election, self.tick().now);
        let may_watch = self.watch_from.is_none_or(|from| from <= now) && election.held_since().is_none();
        let version = election.version().filter(|_| may_watch);
        let Some(version) = version.map(str::to_owned) else {
            if let Some(watch) = self.watch.take() {
                ctx.cancel_future(watch);
            }
            self.is_watching = false;
            return;
        };
        if self.watch.is_some() {
            return;
        }
        let (cluster, lease) = (self.setup.cluster.clone(), self.lease.clone());
        let field_selector = Some(format!("metadata.name={}", lease.name));
        let query = WatchQuery { field_selector, resource_version: Some(version), ..WatchQuery::default() };
        let opening = async move { cluster.watch(&lease.resource, Some(&lease.namespace), query).await };
        let opening = opening.into_actor(self).map(|opened, actor, ctx| actor.watching(opened, ctx));
        self.watch = Some(ctx.spawn(opening));
    }

    fn watching(&mut self, opened: Result<WatchStream, ApiError>, ctx: &mut Context<Self>) {
        self.is_watching = opened.is_ok();
        self.watch = match opened {
            Ok(stream) => Some(ctx.add_stream(stream)),
            Err(error) => {
                tracing::debug!(lease = %self.lease, %error, "the lease is not watched");
                let now = self.tick().now;
                self.watch_from = error.is_forbidden().then(|| now + WATCH_AGAIN);
                None
            }
        };
    }

    fn hurry(&mut self, ctx: &mut Context<Self>) {
        if self.busy {
            self.is_free = true;
        } else if let Some(wait) = self.under_way.take() {
            ctx.cancel_future(wait);
            self.begin(ctx);
        }
    }

    /// A holder's request ends when the lease is lost, at the latest.
    fn request_context(&self) -> RequestContext {
        let limit = Deadline::after(self.setup.election.timing().request_timeout());
        let now = self.tick().now;
        let lost_at = self.setup.election.lost_at().filter(|lost_at| *lost_at > now).map(Deadline);
        RequestContext::new(Priority::High, lost_at.map_or(limit, |lost_at| lost_at.min(limit)), "leader-election")
    }

    fn ended(&mut self, step: Step, result: Result<Value, ApiError>, ctx: &mut Context<Self>) {
        self.busy = false;
        let answer = match result {
            Ok(lease) => Answer::Lease(lease),
            Err(error) if error.is_not_found() => Answer::Missing,
            Err(error) if error.is_already_exists() => Answer::Exists,
            Err(error) => {
                tracing::warn!(lease = %self.lease, %error, "leader election request failed");
                self.note_error(&error);
                Answer::Failed
            }
        };
        let at = self.tick();
        let action = match step {
            Step::Read => self.setup.election.read(answer, at),
            Step::Write => self.setup.election.written(answer, at),
            Step::Release => return self.released(matches!(answer, Answer::Lease(_))),
        };
        self.carry_out(action, ctx);
    }

    fn report(&mut self) {
        let Some(held_since) = self.setup.election.held_since() else { return };
        self.setup.fence.renewed(held_since);
        self.is_free = false;
        if *self.setup.leadership.borrow() == Leadership::Candidate {
            let identity = self.setup.election.identity();
            tracing::info!(lease = %self.lease, identity, "became leader");
            self.setup.recorder.normal(&self.reference(), REASON, &format!("{identity} became leader"));
            self.announce(Leadership::Leader);
        }
    }

    /// A standby shows who leads.
    fn show_holder(&self) {
        let holder = self.setup.election.holder().filter(|holder| !holder.is_empty());
        let is_news = self.setup.holder.send_if_modified(|known| {
            let is_news = known.as_deref() != holder;
            if is_news {
                *known = holder.map(Into::into);
            }
            is_news
        });
        if is_news && *self.setup.leadership.borrow() == Leadership::Candidate {
            self.announce(Leadership::Candidate);
        }
    }

    fn lose(&mut self) {
        self.setup.fence.shut(LOST);
        let holder = self.setup.election.holder().unwrap_or_default();
        tracing::error!(lease = %self.lease, holder, "leader election lost");
        self.record_end();
        self.announce(Leadership::Lost);
    }

    fn release(&mut self, ctx: &mut Context<Self>) {
        if self.busy {
            return; // an answer under way may change what has to be released
        }
        if let Some(handle) = self.under_way.take() {
            ctx.cancel_future(handle);
        }
        match self.setup.election.release(self.tick()) {
            Some(lease) => self.request(Step::Release, Some(lease), ctx),
            None => self.released(false),
        }
    }

    fn released(&mut self, free: bool) {
        if *self.setup.leadership.borrow() == Leadership::Leader {
            self.record_end();
        }
        if *self.setup.leadership.borrow() != Leadership::Lost {
            self.announce(Leadership::Released);
        }
        if let Some(waiting) = self.releasing.take() {
            waiting.send(free).unwrap_or_default(); // the receiver may be gone
        }
    }

    fn record_end(&self) {
        let message = format!("{} stopped leading", self.setup.election.identity());
        self.setup.recorder.normal(&self.reference(), REASON, &message);
    }

    fn reference(&self) -> Reference {
        Reference {
            api_version: self.lease.resource.api_version(),
            kind: self.lease.resource.kind.to_string(),
            namespace: self.lease.namespace.clone(),
            name: self.lease.name.clone(),
            uid: self.setup.election.uid().to_owned(),
        }
    }

    fn announce(&self, leadership: Leadership) {
        self.setup.leadership.send_if_modified(|reported| std::mem::replace(reported, leadership) != leadership);
        let (activity, line) = match (leadership, &*self.setup.holder.borrow()) {
            (Leadership::Candidate, Some(holder)) => (Activity::Waiting, format!("candidate; {holder} leads")),
            (Leadership::Candidate, None) => (Activity::Waiting, "candidate".to_owned()),
            (Leadership::Leader, _) => (Activity::Running, "leader".to_owned()),
            (Leadership::Lost, _) => (Activity::Failing, "lost the lease".to_owned()),
            (Leadership::Released, _) => (Activity::Stopped, "released".to_owned()),
        };
        self.setup.cell.update(self.setup.cluster.clock().wall(), |state| {
            state.activity = activity;
            state.line = line;
        });
    }

    fn note_error(&self, error: &ApiError) {
        let now = self.setup.cluster.clock().wall();
        self.setup.cell.update(now, |state| state.last_error = Some((now, error.to_string())));
    }
}

impl Actor for LeaderActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.announce(Leadership::Candidate);
        self.begin(ctx);
    }
}

impl StreamHandler<Result<WatchEvent, ApiError>> for LeaderActor {
    fn handle(&mut self, event: Result<WatchEvent, ApiError>, ctx: &mut Self::Context) {
        let now = self.tick().now;
        let is_free = match event {
            Ok(WatchEvent { kind: WatchKind::Added | WatchKind::Modified, object }) => {
                Lease::is_one(&object) && self.setup.election.saw(object, now)
            }
            // A deleted Lease is not free: its holder may write until its own deadline. An error ends the stream.
            Ok(WatchEvent { kind: WatchKind::Deleted | WatchKind::Bookmark, .. }) | Err(_) => false,
        };
        self.show_holder();
        if is_free && self.releasing.is_none() && *self.setup.leadership.borrow() == Leadership::Candidate {
            self.hurry(ctx);
        }
    }

    /// The actor goes on; the next wait opens another stream.
    fn finished(&mut self, ctx: &mut Self::Context) {
        self.watch = None;
        let was_watching = std::mem::take(&mut self.is_watching);
        if let Some(wait) = self.under_way.take_if(|_| was_watching && !self.busy && self.releasing.is_none()) {
            ctx.cancel_future(wait);
            let pause = self.setup.election.pause(self.tick());
            self.wait(pause, ctx);
        }
    }
}

impl Handler<Release> for LeaderActor {
    type Result = ResponseActFuture<Self, bool>;

    fn handle(&mut self, _: Release, ctx: &mut Self::Context) -> Self::Result {
        let (sender, receiver) = oneshot::channel();
        self.releasing = Some(sender);
        self.release(ctx);
        Box::pin(async move { receiver.await.unwrap_or(false) }.into_actor(self))
    }
}

impl Handler<Abandon> for LeaderActor {
    type Result = ();

    fn handle(&mut self, _: Abandon, ctx: &mut Self::Context) {
        self.setup.lifeline.disarm();
        ctx.stop();
    }
}

async fn send(
    cluster: &Cluster,
    ctx: &RequestContext,
    at: &ObjectRef,
    lease: Option<Value>,
) -> Result<Value, ApiError> {
    let lease = match lease {
        None => cluster.get(ctx, at).await,
        Some(lease) if cluster::object::resource_version(&lease).is_empty() => cluster.create(ctx, at, &lease).await,
        Some(lease) => cluster.replace(ctx, at, None, &lease).await,
    }?;
    if Lease::is_one(&lease) { Ok(lease) } else { Err(ApiError::Decode("it is no Lease".into())) }
}

#[cfg(test)]
mod tests;
