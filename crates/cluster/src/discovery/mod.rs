//! Which kinds the server serves (fault 11). `documents` parses the server's documents into [`Served`]. This file
//! caches them, fetches them again after a miss or a reported change, and notifies subscribers. A group that cannot be
//! read keeps its last good answer, so that a broken aggregated API affects no other group. `absence` proves that a
//! kind is not served: without proof no kind is forgotten, and an unknown kind does not count as absent (spec 10
//! §13.1).

mod absence;
mod documents;
mod fetch;
mod view;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    time::Duration,
};

use futures::{
    FutureExt as _, StreamExt as _,
    future::{LocalBoxFuture, Shared, WeakShared},
    stream,
};
use kit::Clock;
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use self::{
    absence::{AbsenceVerdict, Answer},
    documents::{Served, Version},
    fetch::{Cached, SIDE_BY_SIDE},
};
pub use self::{
    absence::{ProvedAbsent, Serving},
    view::{DiscoverySummary, DiscoveryView},
};
use super::{ApiError, ApiName, Resource, transport::Transport};
use crate::object::{GroupKind, GroupVersionKind};

const PER_GROUP: Duration = Duration::from_secs(10); // a group is fetched again at most this often
const YOUNG: Duration = Duration::from_secs(1); // a document younger than this answers every question
const REMEMBERED: Duration = Duration::from_secs(60); // how long answers of versions are kept
/// The same for answers that say since when a version is missing, so that rare questions do not start the proof again.
const MISSING: Duration = Duration::from_secs(60 * 60);

/// The kinds of one cluster; cheap to clone.
#[derive(Clone)]
pub struct Discovery(Rc<Inner>);

struct Inner {
    transport: Rc<Transport>,
    state: RefCell<DiscoveryState>,
    running: RefCell<Option<WeakShared<Refresh>>>,
    asking: RefCell<BTreeMap<VersionKey, WeakShared<Asking>>>,
    version: watch::Sender<u64>,
    requested: Notify,
    clock: Clock,
    view: DiscoveryView,
}

type Refresh = LocalBoxFuture<'static, Result<(), ApiError>>;
type Asking = LocalBoxFuture<'static, ()>;
type VersionKey = (ApiName, ApiName);

#[derive(Clone, Copy)]
enum Age {
    /// Asked for after this moment, see [`Discovery::asked`].
    After(u64),
    /// At most [`PER_GROUP`] old; an error at most [`YOUNG`].
    Recent,
}

#[derive(Default)]
struct DiscoveryState {
    served: Option<Served>,
    failure: Option<ApiError>,
    began: Option<Instant>,
    /// Number of fetches and questions for versions so far.
    begun: u64,
    verdicts: BTreeMap<VersionKey, AbsenceVerdict>,
    /// When the last fetch for a group began; entries older than [`PER_GROUP`] are dropped.
    asked: BTreeMap<ApiName, Instant>,
    /// When a change of a group last allowed a fetch at once; entries older than [`PER_GROUP`] are dropped.
    changed: BTreeMap<ApiName, Instant>,
    requested: BTreeSet<ApiName>,
    cached: Cached,
}

impl Discovery {
    pub(super) fn new(transport: Rc<Transport>, clock: Clock) -> Self {
        Self(Rc::new(Inner {
            transport,
            state: RefCell::default(),
            running: RefCell::default(),
            asking: RefCell::default(),
            version: watch::Sender::new(0),
            requested: Notify::new(),
            clock,
            view: DiscoveryView::default(),
        }))
    }

    /// Returns how the server serves a kind in a version. A miss asks the server, at most every 10 s per group. Fails
    /// with [`ApiError::NoMatch`] if the version's own document lacks the kind, and with [`ApiError::Discovery`] or the
    /// failed request if that is unknown.
    pub async fn mapping(&self, kind: &GroupVersionKind) -> Result<Resource, ApiError> {
        match self.find(kind).await {
            Err(ApiError::NoMatch(_)) => {
                let answer = self.answer(&version_key(kind), Age::Recent).await?;
                of_kind(answer.version.as_ref(), kind).ok_or_else(|| ApiError::NoMatch(kind.clone()))
            }
            result => result,
        }
    }

    /// Returns how the server serves a kind: in this version, or else in another one, or not at all. A miss asks the
    /// server, at most every 10 s per version. Fails if that is unknown.
    pub async fn serving(&self, kind: &GroupVersionKind) -> Result<Serving, ApiError> {
        match self.mapping(kind).await {
            Ok(resource) => Ok(Serving::Served(resource)),
            Err(ApiError::NoMatch(_)) => self.ask(kind, Age::Recent).await,
            Err(error) => Err(error),
        }
    }

    /// Returns a moment for [`Self::look_up`]: the number of questions so far.
    pub fn asked(&self) -> u64 {
        self.0.state.borrow().begun
    }

    /// As [`Self::serving`], but ignores everything that was asked before that moment: for the meaning of a 404. It
    /// asks the server again however young the last answer is, unless another caller has asked since.
    pub async fn look_up(&self, kind: &GroupVersionKind, after: u64) -> Result<Serving, ApiError> {
        self.ask(kind, Age::After(after)).await
    }

    async fn ask(&self, kind: &GroupVersionKind, age: Age) -> Result<Serving, ApiError> {
        let key = version_key(kind);
        let answer = self.answer(&key, age).await?;
        if let Some(found) = of_kind(answer.version.as_ref(), kind) {
            return Ok(Serving::Served(found));
        }
        let known = self.known_preferred(&kind.group_kind()).map(|resource| resource.version);
        let others: BTreeSet<_> = known.into_iter().chain(answer.all).filter(|version| *version != key.1).collect();
        for version in others {
            let answer = self.answer(&(key.0.clone(), version), age).await?;
            if let Some(found) = of_kind(answer.version.as_ref(), kind) {
                return Ok(Serving::Served(found));
            }
        }
        Ok(Serving::Absent(ProvedAbsent::new(kind)))
    }

    /// Returns the server's answer about a version. Concurrent callers share the question. An answer counts for all
    /// callers that asked before its question began, so no caller asks more than twice.
    async fn answer(&self, key: &VersionKey, age: Age) -> Result<Answer, ApiError> {
        let entered = self.asked();
        loop {
            let allows = |verdict: &&AbsenceVerdict| verdict.number > entered || age.allows(verdict);
            let known = self.0.state.borrow().verdicts.get(key).filter(allows).cloned();
            if let Some(verdict) = known {
                return verdict.answer;
            }
            // A running question may have begun before. Two do not run at once.
            let running =
                self.0.asking.borrow().get(key).and_then(WeakShared::upgrade).filter(|it| it.peek().is_none());
            let asking = running.unwrap_or_else(|| self.begin_asking(key));
            asking.await;
        }
    }

    fn begin_asking(&self, key: &VersionKey) -> Shared<Asking> {
        let mut state = self.0.state.borrow_mut();
        state.begun += 1;
        let (number, before) = (state.begun, state.verdicts.get(key).cloned());
        drop(state);
        let (this, of) = (self.clone(), key.clone());
        let asking = async move {
            let verdict = AbsenceVerdict::ask(&this.0.transport, (&of.0, &of.1), number, before).await;
            this.enter(&of, verdict);
        };
        let asking = asking.boxed_local().shared();
        let weak = asking.downgrade();
        let mut all = self.0.asking.borrow_mut();
        all.retain(|_, other| other.upgrade().is_some());
        all.extend(weak.map(|weak| (key.clone(), weak)));
        asking
    }

    /// A version's own document outranks every list.
    fn enter(&self, key: &VersionKey, verdict: AbsenceVerdict) {
        let (group, version) = key;
        let mut state = self.0.state.borrow_mut();
        let mut is_changed = false;
        if let (Ok(answer), Some(served)) = (&verdict.answer, &mut state.served) {
            is_changed = match answer.version.clone() {
                Some(version) => served.put(group, version),
                None => served.remove(group, version),
            };
        }
        let now = Instant::now();
        state
            .verdicts
            .retain(|_, old| now < old.asked + if old.missing_since.is_some() { MISSING } else { REMEMBERED });
        state.verdicts.insert(key.clone(), verdict);
        if is_changed {
            self.0.view.show(&state, None);
        }
        drop(state);
        if is_changed {
            self.changed();
        }
    }

    fn changed(&self) {
        self.0.version.send_modify(|version| *version += 1);
    }

    /// Returns what is known of a kind now, without a request.
    pub fn known(&self, kind: &GroupVersionKind) -> Option<Resource> {
        self.0.state.borrow().served.as_ref()?.resource(kind).ok()
    }

    /// Returns the resource of a kind in its preferred version, without a request.
    pub fn known_preferred(&self, kind: &GroupKind) -> Option<Resource> {
        self.0.state.borrow().served.as_ref()?.preferred(kind)
    }

    /// Returns all known kinds, by group, in the server's order of versions.
    pub fn served(&self) -> Vec<Resource> {
        self.0.state.borrow().served.as_ref().map(|served| served.resources().cloned().collect()).unwrap_or_default()
    }

    /// Reports that the kinds of a group change (an event of a CRD or APIService): the next question or [`Self::run`]
    /// fetches the group. An earlier miss, e.g. of the new kind, does not delay that; many changes share the 10 s.
    pub fn refresh_requested(&self, group: &str) {
        self.0.state.borrow_mut().changed(group, Instant::now());
        self.missed(group);
    }

    /// Returns true if the server has answered and the kind is missing.
    pub(super) fn lacks(&self, resource: &Resource) -> bool {
        let state = self.0.state.borrow();
        state.served.as_ref().is_some_and(|served| served.resource(&resource.group_version_kind()).is_err())
    }

    /// Reports that the known kinds are out of date: a path of the group was answered with 404, or a path of an unknown
    /// kind with anything else. As [`Self::refresh_requested`], but at most every 10 s.
    pub(super) fn missed(&self, group: &str) {
        self.0.state.borrow_mut().requested.insert(group.into());
        self.0.requested.notify_one();
    }

    /// Returns a view of what it knows, for other threads.
    pub fn view(&self) -> DiscoveryView {
        self.0.view.clone()
    }

    /// Grows with each change of the served kinds.
    pub fn version(&self) -> u64 {
        *self.0.version.borrow()
    }

    /// Notifies of each change of [`Self::version`].
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.version.subscribe()
    }

    /// Fetches what was requested, for ever; sends nothing while there is no request. Run one such task per cluster:
    /// without it only questions cause fetches, and subscribers learn of changes late.
    pub async fn run(self) {
        loop {
            let Some(due) = self.next_due() else {
                self.0.requested.notified().await;
                continue;
            };
            tokio::time::sleep_until(due).await;
            let group = self.0.state.borrow().due(Instant::now());
            if let Some(group) = group
                && let Err(error) = self.refresh(&group).await
            {
                tracing::warn!(host = self.0.transport.host, %error, "cannot discover the kinds of the API server");
            }
        }
    }

    fn next_due(&self) -> Option<Instant> {
        let state = self.0.state.borrow();
        let now = Instant::now();
        state.requested.iter().map(|group| state.free_at(group).unwrap_or(now)).min()
    }

    async fn find(&self, kind: &GroupVersionKind) -> Result<Resource, ApiError> {
        let running = self.running();
        if !self.is_requested(&kind.group)
            && let Ok(found) = self.look(kind)
        {
            return Ok(found);
        }
        if let Some(running) = running {
            running.await.ok(); // the state keeps its error
            if let Ok(found) = self.look(kind) {
                return Ok(found);
            }
        }
        if self.0.state.borrow().may_ask(&kind.group, Instant::now()) {
            self.refresh(&kind.group).await.ok(); // as above
        }
        self.look(kind)
    }

    /// Reads the cache. A miss is no proof of absence if the last fetch failed.
    fn look(&self, kind: &GroupVersionKind) -> Result<Resource, ApiError> {
        let state = self.0.state.borrow();
        let result = state.served.as_ref().map(|served| served.resource(kind));
        match (result, &state.failure) {
            (Some(Ok(found)), _) => Ok(found),
            (_, Some(failure)) => Err(failure.clone()),
            (Some(Err(missing)), None) => Err(missing),
            (None, None) => Err(ApiError::Discovery("the server has not been asked yet".into())),
        }
    }

    fn is_requested(&self, group: &str) -> bool {
        let state = self.0.state.borrow();
        state.requested.contains(group) && state.may_ask(group, Instant::now())
    }

    fn running(&self) -> Option<Shared<Refresh>> {
        self.0.running.borrow().as_ref().and_then(WeakShared::upgrade).filter(|it| it.peek().is_none())
    }

    fn refresh(&self, group: &str) -> Shared<Refresh> {
        if let Some(shared) = self.running() {
            return shared;
        }
        self.0.state.borrow_mut().begin(group, Instant::now());
        let this = self.clone();
        let shared = async move { this.load().await }.boxed_local().shared();
        *self.0.running.borrow_mut() = shared.downgrade();
        shared
    }

    async fn load(&self) -> Result<(), ApiError> {
        let mut cached = std::mem::take(&mut self.0.state.borrow_mut().cached);
        let fetched = fetch::fetch(&self.0.transport, &mut cached).await;
        self.0.state.borrow_mut().cached = cached;
        let mut fresh = match fetched {
            Ok(fresh) => fresh,
            Err(error) => {
                // Missing documents say nothing of a kind.
                let error = if error.is_not_served() { ApiError::Discovery(error.to_string()) } else { error };
                let mut state = self.0.state.borrow_mut();
                state.failure = Some(error.clone());
                self.0.view.show(&state, Some(self.0.clock.wall()));
                return Err(error);
            }
        };
        let lost = self.0.state.borrow().served.as_ref().map(|before| fresh.lost_since(before)).unwrap_or_default();
        self.confirm(&mut fresh, lost).await;
        let mut state = self.0.state.borrow_mut();
        state.failure = None;
        let merged = fresh.keeping(state.served.as_ref());
        let is_changed = state.served.as_ref() != Some(&merged);
        state.served = Some(merged);
        self.0.view.show(&state, Some(self.0.clock.wall()));
        drop(state);
        if is_changed {
            self.changed();
        }
        Ok(())
    }

    /// Asks for each version that the lists lack now. A version without an answer stays as is and is requested again.
    async fn confirm(&self, fresh: &mut Served, lost: Vec<VersionKey>) {
        let after = Age::After(self.asked());
        let answers = stream::iter(lost).map(|key| async move { (self.answer(&key, after).await, key) });
        let answers: Vec<_> = answers.buffered(SIDE_BY_SIDE).collect().await;
        for (answer, (group, version)) in answers {
            match answer {
                Ok(Answer { version: Some(version), .. }) => {
                    fresh.put(&group, version);
                }
                Ok(Answer { version: None, .. }) => {
                    fresh.remove(&group, &version);
                }
                Err(error) => {
                    if let Some(before) = &self.0.state.borrow().served {
                        fresh.keep(&group, &version, before, error);
                    }
                    self.missed(&group);
                }
            }
        }
    }
}

fn version_key(kind: &GroupVersionKind) -> VersionKey {
    (kind.group.as_str().into(), kind.version.as_str().into())
}

fn of_kind(version: Option<&Version>, kind: &GroupVersionKind) -> Option<Resource> {
    version.and_then(|version| version.resource(&kind.kind)).cloned()
}

impl Age {
    fn allows(self, verdict: &AbsenceVerdict) -> bool {
        match self {
            Self::After(moment) => verdict.number > moment,
            Self::Recent => verdict.asked.elapsed() < if verdict.answer.is_ok() { PER_GROUP } else { YOUNG },
        }
    }
}

impl std::fmt::Debug for Discovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Discovery").field("version", &self.version()).finish_non_exhaustive()
    }
}

impl DiscoveryState {
    fn may_ask(&self, group: &str, now: Instant) -> bool {
        self.free_at(group).is_none_or(|free| free <= now)
    }

    /// Returns when a fetch for a group may begin; `None` for at once.
    fn free_at(&self, group: &str) -> Option<Instant> {
        let young_until = self.began.map(|began| began + YOUNG);
        let asked_until = self.asked.get(group).map(|asked| *asked + PER_GROUP);
        young_until.max(asked_until)
    }

    /// Reports a change: the group may be fetched at once, unless that was allowed within the last [`PER_GROUP`].
    fn changed(&mut self, group: &str, now: Instant) {
        self.verdicts.retain(|(of, _), _| &**of != group);
        if self.changed.get(group).is_none_or(|changed| *changed + PER_GROUP <= now) {
            self.changed.insert(group.into(), now);
            self.asked.remove(group);
        }
    }

    fn due(&self, now: Instant) -> Option<ApiName> {
        self.requested.iter().find(|group| self.may_ask(group, now)).cloned()
    }

    fn begin(&mut self, group: &str, now: Instant) {
        self.began = Some(now);
        self.begun += 1;
        self.asked.retain(|_, asked| *asked + PER_GROUP > now);
        self.changed.retain(|_, changed| *changed + PER_GROUP > now);
        self.asked.insert(group.into(), now);
        for requested in std::mem::take(&mut self.requested) {
            self.asked.insert(requested, now);
        }
    }
}

#[cfg(test)]
mod tests;
