//! The caches that all controllers of references share, and the live check before a release.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use cluster::{
    ApiError, Cached as _, CachedFields, Context, Index, Lock, Watch, WatchOptions, Wrote,
    evidence::{Evidence, EvidenceSource, decide},
    object::{self, NamespacedName},
};
use kit::{Deadline, Failure, Priority, SyncRequirement};

use super::{
    extraction::ShootReferences,
    object::{KnownObject, ObjectState, PROTECTION, ReferencedKind, ReferencedObject},
    referrer::{REFERRER_KINDS, Referrer, ReferrerKind},
    verdict::{ObjectVerdict, ReferrerState, judge_object},
};
use crate::actors::{
    controller_manager::{context::GardenContext, rows::ReferrersOfKind},
    shared::live_lists::{LIST_TIME, LiveLists},
};

pub(super) type CachedObject = CachedFields<KnownObject>;
pub(super) type CachedReferrer = CachedFields<Referrer>;

/// More objects of a kind than this are read with one list of their namespace.
const MOST_READS: usize = 16;

/// Objects, referrers, and who refers to what.
pub(super) struct Protection {
    objects: [Watch<CachedObject>; 3],
    referrers: [Referrers; 3],
}

/// The referrers of a kind.
pub(super) struct Referrers {
    kind: &'static ReferrerKind,
    pub(super) watch: Watch<CachedReferrer>,
    pub(super) by_object: Index<ReferencedObject>,
    /// Live lists by namespace.
    live: LiveLists<Option<String>, StatesByObject>,
}

type StatesByObject = BTreeMap<ReferencedObject, Vec<ReferrerState>>;

/// The referrers of one object.
struct ReferrersOf<'a> {
    protection: &'a Protection,
    object: &'a ReferencedObject,
}

impl Protection {
    /// Opens the watches. A kind that is not served has no objects.
    pub(super) fn open(counted: ShootReferences, ctx: &GardenContext) -> Self {
        let object = |kind: ReferencedKind| {
            let options = WatchOptions::fields_with_finalizers(kind.resource().clone(), KnownObject::of);
            ctx.garden.watches.open(options.metadata().optional())
        };
        let referrers = |kind| Referrers::open(kind, counted, ctx);
        let referrers = REFERRER_KINDS.each_ref().map(referrers);
        Self { objects: ReferencedKind::ALL.map(object), referrers }
    }

    /// Returns the caches that all controllers of references need: who refers to what is known when all are listed.
    pub(super) fn requirements(&self) -> impl Iterator<Item = SyncRequirement> {
        let referrers = self.referrers.iter().map(|referrers| referrers.watch.sync_requirement());
        self.objects.iter().map(Watch::sync_requirement).chain(referrers)
    }

    /// Returns the watch of a kind of objects.
    pub(super) fn objects(&self, kind: ReferencedKind) -> &Watch<CachedObject> {
        let [secrets, config_maps, workload_identities] = &self.objects;
        match kind {
            ReferencedKind::Secret => secrets,
            ReferencedKind::ConfigMap => config_maps,
            ReferencedKind::WorkloadIdentity => workload_identities,
        }
    }

    /// Returns the referrers by kind, in the order of [`REFERRER_KINDS`].
    pub(super) fn referrers(&self) -> &[Referrers; 3] {
        &self.referrers
    }

    /// Returns true if an object has a referrer, in use or not.
    pub(super) fn has_referrer(&self, object: &ReferencedObject) -> bool {
        self.referrers.iter().any(|referrers| referrers.by_object.contains(object))
    }

    /// Returns the known referrers of an object, in use or not.
    pub(super) fn known_referrers(&self, object: &ReferencedObject) -> Vec<ReferrersOfKind> {
        let of_kind = |referrers: &Referrers| {
            let kind: &'static str = &referrers.kind.kind.kind;
            referrers.by_object.with(object, |names| ReferrersOfKind::new(kind, names))
        };
        self.referrers.iter().map(of_kind).collect()
    }

    /// Returns true if a known referrer in use, other than this one, refers to an object.
    pub(super) fn has_other_referrer(&self, object: &ReferencedObject, kind: usize, referrer: &NamespacedName) -> bool {
        self.referrers.iter().enumerate().any(|(other, referrers)| {
            let is_other = |name: &NamespacedName| other != kind || name != referrer;
            let is_in_use = |name: &NamespacedName| referrers.state(name).is_some_and(|state| state.is_in_use);
            referrers.by_object.with(object, |names| names.iter().any(|name| is_other(name) && is_in_use(name)))
        })
    }

    /// Returns the states of the objects of one referrer, without those that do not exist. All are in one namespace. Reads
    /// an object from the server if the cache is no evidence for it. If absence must be `confirmed`, also reads objects
    /// that the cache lacks.
    pub(super) async fn states_of(
        &self,
        context: &Context,
        objects: &[ReferencedObject],
        confirmed: bool,
    ) -> Result<BTreeMap<ReferencedObject, ObjectState>, Failure> {
        let mut states = BTreeMap::new();
        for kind in ReferencedKind::ALL {
            let watch = self.objects(kind);
            if watch.absence().is_some() {
                continue;
            }
            let mut unknown = Vec::new();
            for object in objects.iter().filter(|object| object.kind == kind && object.can_exist()) {
                match watch.known(&object.name) {
                    Some(Some(known)) => {
                        states.insert(object.clone(), known.fields.state);
                    }
                    Some(None) if !confirmed => {}
                    Some(None) | None => unknown.push(object),
                }
            }
            if unknown.len() > MOST_READS {
                let namespace = unknown.first().map(|object| object.name.namespace.as_str());
                let wanted: BTreeSet<_> = unknown.iter().map(|object| &object.name).collect();
                let add = |name: &NamespacedName, object: &CachedObject| {
                    if wanted.contains(name) {
                        states.insert(ReferencedObject { kind, name: name.clone() }, object.fields.state);
                    }
                };
                watch.list_live(context, namespace, None, add).await?;
            } else {
                for object in unknown {
                    let live = watch.read_live(context, &object.name).await?;
                    states.extend(live.map(|live| (object.clone(), live.fields.state)));
                }
            }
        }
        Ok(states)
    }

    /// Judges an object by its known referrers.
    pub(super) fn judge_by_caches(&self, object: &ReferencedObject, state: ObjectState) -> ObjectVerdict {
        let states = |referrers: &Referrers| referrers.known_states(object);
        judge_object(state, &self.referrers.iter().flat_map(states).collect::<Vec<_>>())
    }

    /// Judges an object by its known referrers. A release rests on lists of all referrers that begin now.
    pub(super) async fn judge(
        &self,
        context: &Context,
        object: &ReferencedObject,
        state: ObjectState,
    ) -> Result<ObjectVerdict, Failure> {
        let is_release = |verdict: &ObjectVerdict| *verdict == ObjectVerdict::Release;
        let judge = |evidence: &Evidence<'_, ReferrersOf<'_>>| {
            let mut states = Vec::new();
            for kind in 0..self.referrers.len() {
                states.extend_from_slice(&evidence.ask(&kind)?);
            }
            Ok::<_, usize>(judge_object(state, &states))
        };
        decide(&ReferrersOf { protection: self, object }, context, judge, is_release).await
    }
}

impl Referrers {
    fn open(kind: &'static ReferrerKind, counted: ShootReferences, ctx: &GardenContext) -> Self {
        let referrer = move |object: &_| CachedFields::with_finalizers(object, Referrer::of(kind, object, counted));
        let watch = ctx.garden.watches.open(WatchOptions::new(kind.kind.clone(), referrer).optional());
        let by_object = watch.index(|_, referrer| referrer.fields.references.to_vec());
        Self { kind, watch, by_object, live: LiveLists::default() }
    }

    fn state(&self, name: &NamespacedName) -> Option<ReferrerState> {
        self.watch.store().with(name, |referrer| referrer.fields.state)
    }

    fn known_states(&self, object: &ReferencedObject) -> Vec<ReferrerState> {
        self.by_object.with(object, |names| names.iter().filter_map(|name| self.state(name)).collect())
    }
}

/// A cache that is not fresh may keep an object: that costs nothing, and the object is looked at again.
impl EvidenceSource for ReferrersOf<'_> {
    /// Index of the kind of referrers.
    type Question = usize;
    type Answer = Rc<[ReferrerState]>;

    fn cached(&self, kind: &usize) -> Option<Self::Answer> {
        Some(self.protection.referrers.get(*kind)?.known_states(self.object).into())
    }

    async fn read(&self, _: &Context, kind: &usize) -> Result<Self::Answer, Failure> {
        let Some(referrers) = self.protection.referrers.get(*kind) else { return Ok(Rc::default()) };
        let namespace = &self.object.name.namespace;
        if !referrers.kind.refers_into(namespace) {
            return Ok(Rc::default());
        }
        let (watch, scope) = (referrers.watch.clone(), referrers.kind.list_scope(namespace));
        let list = referrers.live.get(&scope.clone(), move || async move {
            let context = Context::new(Priority::High, Deadline::after(LIST_TIME), "references");
            let mut states = StatesByObject::new();
            let add = |_: &NamespacedName, referrer: &CachedReferrer| {
                for object in &referrer.fields.references {
                    states.entry(object.clone()).or_default().push(referrer.fields.state);
                }
            };
            watch.list_live(&context, scope.as_deref(), None, add).await?;
            Ok::<_, ApiError>(states)
        });
        match list.await {
            Ok(states) => Ok(states.get(self.object).cloned().unwrap_or_default().into()),
            // The server denies the kind now, as discovery proved before.
            Err(error) if error.is_not_served() && referrers.watch.absence().is_some() => Ok(Rc::default()),
            Err(error) => Err(Failure::new(format!("cannot list {}: {error}", referrers.kind.kind.plural))),
        }
    }
}

/// Adds (`held`) or removes the finalizer of an object, if it is as it was judged. Returns false if it is not, or if the
/// server does not keep the change: then the object must be judged again. An object that was created anew under the
/// name was not judged either.
pub(super) async fn set_protection<T: Clone + Send + Sync + 'static>(
    watch: &Watch<CachedFields<T>>,
    context: &Context,
    name: &NamespacedName,
    held: bool,
    is_judged: impl Fn(&T) -> bool,
) -> Result<bool, ApiError> {
    let change = |cached: &CachedFields<T>| {
        let finalizers = cached.finalizers().filter(|_| is_judged(&cached.fields));
        finalizers.and_then(|object| object::finalizer_patch(&object, PROTECTION, held))
    };
    Ok(match watch.patch_cached(context, name, Lock::Version, change).await? {
        Wrote::Created(_) | Wrote::Updated(_) => true,
        // An object in deletion ends with its last finalizer.
        Wrote::Gone => !held && watch.store().with(name, |_| ()).is_none(),
        Wrote::Unchanged(_) | Wrote::Deleting(_) | Wrote::Altered(_) => false,
    })
}
