//! The guard of one kind: its caches, its decisions and its writes.

use std::{collections::BTreeMap, rc::Rc, time::Duration};

use cluster::{
    ApiError, CachedFields, Context, Index, Predicate, Recorder, Reference, Watch, WatchOptions, Wrote,
    evidence::{EvidenceSource, decide},
    object,
    object::NamespacedName,
};
use kit::{
    Clock, Deadline, Failure, GeneralController, Observers, Outcome, Priority, Reconcile, Supervised, SyncRequirement,
};
use serde_json::Value;

use super::{
    definition::{GuardDefinition, ReferringKind},
    note::{Note, ReferrerNames},
    waiting::{PERIOD, Tell, Told},
};
use crate::actors::{
    controller_manager::{
        context::GardenContext,
        held::{DeletionTime, HeldObjects},
        rows::{Lines, ReferrersOfKind, in_use, kept},
    },
    shared::live_lists::{LIST_TIME, LiveLists},
};

/// Reason of all Events of guards.
const REASON: &str = "ResourceReferenced";

/// After a live list found a referrer that the caches lack, the guard looks again after this time.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// Guards the objects of one kind.
pub struct Guard {
    definition: &'static GuardDefinition,
    clock: Clock,
    observers: Rc<dyn Observers>,
    events: Recorder,
    guarded: Watch<CachedFields<Guarded>>,
    users: Vec<Users>,
}

/// What is kept of a guarded object.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Guarded {
    /// It has the guard's finalizer.
    is_held: bool,
    /// uid of an object that is being deleted, for its Events.
    deleting: Option<Box<str>>,
    /// When its deletion began.
    deleted: Option<DeletionTime>,
}

/// The objects of a referring kind, with the guarded objects to which each refers.
struct Users {
    kind: &'static ReferringKind,
    watch: Watch<CachedFields<Box<[NamespacedName]>>>,
    by_target: Index<NamespacedName>,
    /// Live lists by namespace.
    live: LiveLists<Option<String>, ReferrersByTarget>,
}

type ReferrersByTarget = BTreeMap<NamespacedName, Rc<ReferrerNames>>;

/// The referrers of one object.
struct Referrers<'a> {
    guard: &'a Guard,
    target: &'a NamespacedName,
}

/// What a guard says about an object.
pub enum GuardVerdict {
    /// It does not exist.
    Gone,
    /// It is not being deleted and has the finalizer.
    Alive,
    /// The server, or another client, removed the finalizer at once, or the object was replaced by another one of its
    /// name: check again after a back-off.
    Unguarded,
    /// It is being deleted without the finalizer: it is not our business any more.
    Free,
    /// It is being deleted and somebody refers to it.
    InUse(Outcome),
    /// The object with this uid is being deleted and nobody refers to it: [`Guard::release`] it.
    Accepted(Box<str>),
}

impl Guard {
    /// Opens its watches.
    pub fn open(definition: &'static GuardDefinition, ctx: &GardenContext) -> Self {
        let guarded =
            move |object: &Value| CachedFields::with_finalizers(object, Guarded::of(object, definition.finalizer));
        Self {
            definition,
            clock: ctx.env.clock.clone(),
            observers: ctx.env.observers.clone(),
            events: ctx.garden.events.for_component(format!("{}-controller", definition.controller)),
            guarded: ctx.garden.watches.open(WatchOptions::new(definition.kind.clone(), guarded).metadata()),
            users: definition.users.iter().map(|kind| Users::open(kind, ctx)).collect(),
        }
    }

    /// Returns the caches that its reconciles need.
    pub fn requirements(&self) -> impl Iterator<Item = SyncRequirement> {
        self.users.iter().map(|users| users.watch.sync_requirement()).chain([self.guarded.sync_requirement()])
    }

    /// Wakes keys of a controller when an object or its referrers change. A referrer that changes or goes wakes its old
    /// target.
    pub fn subscribe<C: GeneralController<Key = NamespacedName>>(&self, supervised: &Supervised<C>) {
        self.subscribe_as(supervised, |name| name);
    }

    /// As [`Self::subscribe`], for a controller that has other keys, too. `key` returns the key of a guarded object.
    pub fn subscribe_as<C: GeneralController>(&self, supervised: &Supervised<C>, key: fn(NamespacedName) -> C::Key) {
        let definition = self.definition;
        let held = |object: &CachedFields<Guarded>| object.fields.deleted.filter(|_| object.fields.is_held);
        HeldObjects::show(&self.observers, (definition.controller, &definition.kind), &self.guarded, held);
        self.guarded.on_change(supervised, Predicate::fields_changed(), move |name, _| [key(name.clone())]);
        for users in &self.users {
            let changed = Predicate::fields_changed().ignoring_first_list();
            let keys = move |_: &NamespacedName, user: &CachedFields<Box<[NamespacedName]>>| {
                user.fields.iter().cloned().map(key).collect::<Vec<_>>()
            };
            users.watch.on_change(supervised, changed, keys);
        }
    }

    /// Checks an object: adds the finalizer if it is missing, or tells who refers to a deleted object. `Accepted` rests
    /// on lists that began after the deletion was seen.
    pub async fn check(
        &self,
        context: &Context,
        key: &NamespacedName,
        told: &mut Told,
    ) -> Result<GuardVerdict, Failure> {
        let Some(object) = self.guarded.store().with(key, |object| object.fields.clone()) else {
            tracing::debug!("Object is gone, stop reconciling");
            return Ok(GuardVerdict::Gone);
        };
        let Some(uid) = object.deleting else {
            return if object.is_held { Ok(GuardVerdict::Alive) } else { self.add_finalizer(context, key).await };
        };
        if !object.is_held {
            return Ok(GuardVerdict::Free);
        }
        let referrers = Referrers { guard: self, target: key };
        let note = decide(
            &referrers,
            context,
            |evidence| Note::first(self.definition.notes, |user| evidence.ask(&user)),
            Option::is_none,
        );
        let Some(note) = note.await? else {
            self.definition.accepted.iter().for_each(|text| tracing::info!("{text}"));
            return Ok(GuardVerdict::Accepted(uid));
        };
        self.tell(key, &uid, &note, told);
        let is_cached = self.users.iter().any(|users| users.by_target.contains(key));
        Ok(GuardVerdict::InUse(Outcome::After(if is_cached { PERIOD } else { LOOK_AGAIN })))
    }

    /// Checks an object, and releases it if that is accepted. Returns what ends the reconcile; `None` if the object lives
    /// and has the finalizer: then its controller may go on.
    pub async fn settle(
        &self,
        context: &Context,
        told: &mut Told,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Option<Outcome>, Failure> {
        let key = &reconcile.key;
        Ok(match self.check(context, key, told).await? {
            GuardVerdict::Alive => None,
            GuardVerdict::Unguarded => Some(Outcome::Again),
            GuardVerdict::Gone | GuardVerdict::Free => Some(Outcome::Retire),
            GuardVerdict::InUse(outcome) => {
                self.show_use(key, reconcile, Vec::new());
                Some(outcome)
            }
            GuardVerdict::Accepted(uid) => Some(self.release(context, key, &uid).await?),
        })
    }

    /// Shows on the dashboard what keeps an object in use, and `further` lines.
    pub fn show_use<K>(&self, key: &NamespacedName, reconcile: &Reconcile<K>, further: Lines) {
        let of_kind =
            |users: &Users| users.by_target.with(key, |names| ReferrersOfKind::new(&users.kind.kind.kind, names));
        let referrers: Vec<_> = self.users.iter().map(of_kind).collect();
        let since = self.guarded.store().with(key, |object| object.fields.deleted).flatten();
        reconcile.note(in_use(&referrers));
        reconcile.detail([kept(self.definition.finalizer, since, &referrers), further].concat());
    }

    /// Removes the finalizer of the accepted object with this uid. An object that was created anew under the name keeps
    /// its finalizer. Returns what ends the reconcile.
    pub async fn release(&self, context: &Context, key: &NamespacedName, uid: &str) -> Result<Outcome, Failure> {
        let finalizer = self.definition.finalizer;
        let without = |object: &Value| {
            let is_accepted = object::uid(object) == uid && object::deletion_timestamp(object).is_some();
            is_accepted.then(|| object::finalizer_patch(object, finalizer, false)).flatten()
        };
        tracing::info!(finalizer, "Removing finalizer");
        let removed = self.guarded.patch_finalizers(context, key, without).await;
        let removed = removed.map_err(|error| Failure::new(format!("failed to remove finalizer: {error}")))?;
        Ok(if matches!(removed, Wrote::Altered(_)) { Outcome::Again } else { Outcome::Retire })
    }

    async fn add_finalizer(&self, context: &Context, key: &NamespacedName) -> Result<GuardVerdict, Failure> {
        let added = self.guarded.set_finalizer(context, key, self.definition.finalizer, true).await;
        let added = added.map_err(|error| Failure::new(format!("{}: {error}", self.definition.add_error)))?;
        Ok(match added {
            Wrote::Gone | Wrote::Altered(_) => GuardVerdict::Unguarded,
            Wrote::Created(_) | Wrote::Updated(_) | Wrote::Unchanged(_) | Wrote::Deleting(_) => GuardVerdict::Alive,
        })
    }

    fn tell(&self, key: &NamespacedName, uid: &str, note: &Note, told: &mut Told) {
        let tell = told.tell(&note.referrers, self.clock.monotonic());
        let text = if self.definition.event.is_some() { note.bounded(&key.name) } else { note.whole(&key.name) };
        if tell == Tell::Change {
            tracing::info!("{text}");
        }
        if let (Some(event), Tell::Change | Tell::Repetition) = (self.definition.event, tell) {
            let regarding = Reference {
                api_version: self.definition.kind.api_version(),
                kind: self.definition.kind.kind.to_string(),
                namespace: key.namespace.clone(),
                name: key.name.clone(),
                uid: uid.into(),
            };
            self.events.record(event.event_type, &regarding, event.action, REASON, &text);
        }
    }
}

impl Guarded {
    fn of(object: &Value, finalizer: &str) -> Self {
        let is_deleting = object::deletion_timestamp(object).is_some();
        Self {
            is_held: object::finalizers(object).any(|other| other == finalizer),
            deleting: is_deleting.then(|| object::uid(object).into()),
            deleted: DeletionTime::of(object),
        }
    }
}

impl Users {
    fn open(kind: &'static ReferringKind, ctx: &GardenContext) -> Self {
        let targets = move |object: &Value| CachedFields::of(object, (kind.targets)(object).into_boxed_slice());
        let watch = ctx.garden.watches.open(WatchOptions::new(kind.kind.clone(), targets));
        let by_target = watch.index(|_, user| user.fields.to_vec());
        Self { kind, watch, by_target, live: LiveLists::default() }
    }
}

/// A cache that is not fresh may keep an object: that costs nothing, and the guard looks again.
impl EvidenceSource for Referrers<'_> {
    /// Index of the referring kind.
    type Question = usize;
    type Answer = Rc<ReferrerNames>;

    fn cached(&self, user: &usize) -> Option<Self::Answer> {
        let names = self.guard.users.get(*user)?.by_target.get(self.target);
        Some(Rc::new(names.iter().map(NamespacedName::to_string).collect()))
    }

    async fn read(&self, _: &Context, user: &usize) -> Result<Self::Answer, Failure> {
        let Some(users) = self.guard.users.get(*user) else { return Ok(Rc::default()) };
        let (watch, namespace) = (users.watch.clone(), users.kind.scope.namespace(self.target));
        let list = users.live.get(&namespace.clone(), move || async move {
            let context = Context::new(Priority::High, Deadline::after(LIST_TIME), "guards");
            let mut names: BTreeMap<NamespacedName, ReferrerNames> = BTreeMap::new();
            let add = |name: &NamespacedName, user: &CachedFields<Box<[NamespacedName]>>| {
                for target in &user.fields {
                    names.entry(target.clone()).or_default().insert(name.to_string());
                }
            };
            watch.list_live(&context, namespace.as_deref(), None, add).await?;
            let referrers = names.into_iter().map(|(target, names)| (target, Rc::new(names)));
            Ok::<ReferrersByTarget, ApiError>(referrers.collect())
        });
        let cannot_list = |error| Failure::new(format!("cannot list {}: {error}", users.kind.kind.plural));
        Ok(list.await.map_err(cannot_list)?.get(self.target).cloned().unwrap_or_default())
    }
}
