//! Which kinds the server serves (fault 11).
//!
//! `documents` reads the server's documents into [`Served`]; this file caches it, fetches it anew when a kind is missed
//! or somebody has seen a change, and tells those who wait. A group that cannot be asked keeps its last good answer, so
//! a broken aggregated API takes nothing away from anybody else. `absence` proves that a kind is not served: before that no
//! kind is forgotten, and none that was never known counts as absent (spec 10 §13.1).

mod absence;
mod documents;
mod fetch;
mod list_kinds;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use futures::{
    FutureExt as _, StreamExt as _,
    future::{LocalBoxFuture, Shared, WeakShared},
    stream,
};
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use crate::object::{GroupKind, GroupVersionKind};

use self::{
    absence::{AbsenceVerdict, Answer},
    documents::{Served, Version},
    fetch::{Cached, SIDE_BY_SIDE},
};
pub use self::{
    absence::{ProvedAbsent, Serving},
    list_kinds::is_list_kind,
};
use super::{ApiError, Resource, transport::Transport};

/// A group is asked for anew at most this often.
const PER_GROUP: Duration = Duration::from_secs(10);
/// A document younger than this answers every question.
const YOUNG: Duration = Duration::from_secs(1);
/// Answers of versions are kept for so long.
const REMEMBERED: Duration = Duration::from_secs(60);
/// The same for those that tell since when a version is missing: who asks seldom is not to wait for the proof anew.
const MISSING: Duration = Duration::from_secs(60 * 60);

/// The kinds of one cluster; cheap to clone.
#[derive(Clone)]
pub struct Discovery(Rc<Inner>);

struct Inner {
    transport: Rc<Transport>,
    state: RefCell<DiscoveryState>,
    running: RefCell<Option<WeakShared<Refresh>>>,
    /// Questions for versions that are under way.
    asking: RefCell<BTreeMap<VersionKey, WeakShared<Asking>>>,
    version: watch::Sender<u64>,
    requested: Notify,
}

type Refresh = LocalBoxFuture<'static, Result<(), ApiError>>;
type Asking = LocalBoxFuture<'static, ()>;
/// A group and one of its versions.
type VersionKey = (Arc<str>, Arc<str>);

/// How old an answer of a version may be.
#[derive(Clone, Copy)]
enum Age {
    /// It was asked for after this moment, see [`Discovery::asked`].
    After(u64),
    /// It answers the questions of [`PER_GROUP`]; that it cannot be told, those of [`YOUNG`].
    Recent,
}

#[derive(Default)]
struct DiscoveryState {
    /// `None` before the first good answer.
    served: Option<Served>,
    /// Why the last fetch failed.
    failure: Option<ApiError>,
    /// When the last fetch began.
    began: Option<Instant>,
    /// How many fetches and questions for versions have begun.
    begun: u64,
    /// The last answers of versions that were asked for themselves.
    verdicts: BTreeMap<VersionKey, AbsenceVerdict>,
    /// When a fetch last began for the sake of a group; entries older than [`PER_GROUP`] are dropped.
    asked: BTreeMap<Arc<str>, Instant>,
    /// When a change of a group last made it be asked for at once; entries as old are dropped, too.
    changed: BTreeMap<Arc<str>, Instant>,
    /// Groups somebody has seen a change of.
    requested: BTreeSet<Arc<str>>,
    /// Documents with their entity tags.
    cached: Cached,
}

impl Discovery {
    pub(super) fn new(transport: Rc<Transport>) -> Self {
        Self(Rc::new(Inner {
            transport,
            state: RefCell::default(),
            running: RefCell::default(),
            asking: RefCell::default(),
            version: watch::Sender::new(0),
            requested: Notify::new(),
        }))
    }

    /// How the server serves a kind in a version. A miss asks the server, at most every 10 s per group.
    ///
    /// # Errors
    /// [`ApiError::NoMatch`] if the version's own document says that it is not served; [`ApiError::Discovery`] or the failure
    /// of the request if that cannot be told.
    pub async fn mapping(&self, kind: &GroupVersionKind) -> Result<Resource, ApiError> {
        match self.find(&kind.group, |served| served.resource(kind)).await {
            Err(ApiError::NoMatch(_)) => {
                let answer = self.answer(&version_key(kind), Age::Recent).await?;
                of_kind(answer.version.as_ref(), kind).ok_or_else(|| ApiError::NoMatch(kind.clone()))
            }
            result => result,
        }
    }

    /// How the server serves a kind: in this version, or else in another one, or not at all. A miss asks the server, at most
    /// every 10 s per version.
    ///
    /// # Errors
    /// If it cannot be told.
    pub async fn serving(&self, kind: &GroupVersionKind) -> Result<Serving, ApiError> {
        match self.mapping(kind).await {
            Ok(resource) => Ok(Serving::Served(resource)),
            Err(ApiError::NoMatch(_)) => self.ask(kind, Age::Recent).await,
            Err(error) => Err(error),
        }
    }

    /// A moment, for [`Self::look_up`]: how often the server was asked so far.
    pub fn asked(&self) -> u64 {
        self.0.state.borrow().begun
    }

    /// As [`Self::serving`], but from answers that were asked for after that moment, whatever is known: for what a 404 means.
    /// Asks the server however short a time ago that was done, unless somebody has since.
    ///
    /// # Errors
    /// If it cannot be told.
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

    /// What the server says of a version itself. Those who ask at once share the question. However long a question took, its
    /// answer counts for who asked before it began: nobody asks more than twice.
    async fn answer(&self, key: &VersionKey, age: Age) -> Result<Answer, ApiError> {
        let entered = self.asked();
        loop {
            let allows = |verdict: &&AbsenceVerdict| verdict.number > entered || age.allows(verdict);
            let known = self.0.state.borrow().verdicts.get(key).filter(allows).cloned();
            if let Some(verdict) = known {
                return verdict.answer;
            }
            // A question under way may have begun before. Two do not run at once.
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

    /// What a version says of itself counts more than any list.
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
        drop(state);
        if is_changed {
            self.changed();
        }
    }

    fn changed(&self) {
        self.0.version.send_modify(|version| *version += 1);
    }

    /// What is known of a kind now, without asking the server.
    pub fn known(&self, kind: &GroupVersionKind) -> Option<Resource> {
        self.0.state.borrow().served.as_ref()?.resource(kind).ok()
    }

    /// How the server serves a kind in the version it prefers, without asking the server.
    pub fn known_preferred(&self, kind: &GroupKind) -> Option<Resource> {
        self.0.state.borrow().served.as_ref()?.preferred(kind)
    }

    /// All kinds the server serves, as far as known, by group, in the server's order of versions.
    pub fn served(&self) -> Vec<Resource> {
        self.0.state.borrow().served.as_ref().map(|served| served.resources().cloned().collect()).unwrap_or_default()
    }

    /// Somebody has seen that the kinds of a group change (an event of a CRD or APIService): the group is asked for anew by
    /// the next question or by [`Self::run`]. A miss just before, e.g. of the kind that the CRD brings, does not put that
    /// off; many changes share the 10 s.
    pub fn refresh_requested(&self, group: &str) {
        self.0.state.borrow_mut().changed(group, Instant::now());
        self.missed(group);
    }

    /// Whether there was an answer of the server, and the kind is not in it.
    pub(super) fn lacks(&self, resource: &Resource) -> bool {
        let state = self.0.state.borrow();
        state.served.as_ref().is_some_and(|served| served.resource(&resource.group_version_kind()).is_err())
    }

    /// A path of the group was answered with 404, or one of a kind that is not known with anything else, so that what is
    /// known is out of date: as [`Self::refresh_requested`], but at most every 10 s.
    pub(super) fn missed(&self, group: &str) {
        self.0.state.borrow_mut().requested.insert(group.into());
        self.0.requested.notify_one();
    }

    /// Grows with each change of what is served.
    pub fn version(&self) -> u64 {
        *self.0.version.borrow()
    }

    /// Is told of each change of [`Self::version`]: wake those who wait for a kind.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.version.subscribe()
    }

    /// Fetches what was requested, for ever; nothing at rest. One such task per cluster; without it only
    /// questions lead to requests, and subscribers hear of changes late.
    pub async fn run(self) {
        loop {
            let Some(due) = self.next_due() else {
                self.0.requested.notified().await;
                continue;
            };
            tokio::time::sleep_until(due).await;
            let group = self.0.state.borrow().due(Instant::now());
            if let Some(group) = group {
                self.log(self.refresh(&group).await);
            }
        }
    }

    fn log(&self, result: Result<(), ApiError>) {
        if let Err(error) = result {
            tracing::warn!(host = self.0.transport.host, %error, "cannot discover the kinds of the API server");
        }
    }

    /// When the first requested group may be asked for.
    fn next_due(&self) -> Option<Instant> {
        let state = self.0.state.borrow();
        let now = Instant::now();
        state.requested.iter().map(|group| state.free_at(group).unwrap_or(now)).min()
    }

    async fn find<T>(&self, group: &str, look: impl Fn(&Served) -> Result<T, ApiError>) -> Result<T, ApiError> {
        let running = self.running();
        if !self.is_requested(group)
            && let Ok(found) = self.look(&look)
        {
            return Ok(found);
        }
        if let Some(running) = running {
            running.await.ok(); // its error is remembered in the state
            if let Ok(found) = self.look(&look) {
                return Ok(found);
            }
        }
        if self.0.state.borrow().may_ask(group, Instant::now()) {
            self.refresh(group).await.ok(); // as above
        }
        self.look(&look)
    }

    /// Looks into the cache. A miss while the last fetch failed is no proof of absence.
    fn look<T>(&self, look: &impl Fn(&Served) -> Result<T, ApiError>) -> Result<T, ApiError> {
        let state = self.0.state.borrow();
        let result = state.served.as_ref().map(look);
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

    /// The fetch that runs.
    fn running(&self) -> Option<Shared<Refresh>> {
        self.0.running.borrow().as_ref().and_then(WeakShared::upgrade).filter(|it| it.peek().is_none())
    }

    /// Fetches all documents, or shares the fetch that runs; for the sake of `group`.
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
                // That there are no documents says nothing of a kind.
                let error = if error.is_not_served() { ApiError::Discovery(error.to_string()) } else { error };
                self.0.state.borrow_mut().failure = Some(error.clone());
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
        drop(state);
        if is_changed {
            self.changed();
        }
        Ok(())
    }

    /// Versions that the lists name no more are asked themselves. What cannot be told stays as it was, and is asked for again.
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

/// The version that a kind names.
fn version_key(kind: &GroupVersionKind) -> VersionKey {
    (kind.group.as_str().into(), kind.version.as_str().into())
}

/// The resource of a kind in a version.
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
    /// Whether a fetch may begin for the sake of a group.
    fn may_ask(&self, group: &str, now: Instant) -> bool {
        self.free_at(group).is_none_or(|free| free <= now)
    }

    /// When a fetch may begin for the sake of a group; `None` for at once.
    fn free_at(&self, group: &str) -> Option<Instant> {
        let young_until = self.began.map(|began| began + YOUNG);
        let asked_until = self.asked.get(group).map(|asked| *asked + PER_GROUP);
        young_until.max(asked_until)
    }

    /// A change was seen: the group may be asked for at once, unless that was so within the last [`PER_GROUP`].
    fn changed(&mut self, group: &str, now: Instant) {
        self.verdicts.retain(|(of, _), _| &**of != group);
        if self.changed.get(group).is_none_or(|changed| *changed + PER_GROUP <= now) {
            self.changed.insert(group.into(), now);
            self.asked.remove(group);
        }
    }

    /// A requested group that may be asked for now.
    fn due(&self, now: Instant) -> Option<Arc<str>> {
        self.requested.iter().find(|group| self.may_ask(group, now)).cloned()
    }

    /// A fetch begins: it answers all requests there are.
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
