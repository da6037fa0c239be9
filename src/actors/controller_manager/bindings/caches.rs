//! The caches that both controllers of bindings share, and the live check before a release.

use std::{collections::BTreeSet, rc::Rc, sync::Arc};

use cluster::{
    ApiError, CachedFields, Context, Index, Watch, WatchOptions,
    evidence::EvidenceSource,
    object::{self, NamespacedName},
};
use kit::{Deadline, Failure, Priority, SyncRequirement};
use serde_json::Value;

use super::{
    binding::{Binding, BindingKind, BindingName, bindings_of_shoot},
    credentials::{CredentialsKind, CredentialsRef, CredentialsState},
    release::{Answer, BindingsOfKind, ListedBindings, NamedBinding, Question, UsedBindings},
};
use crate::{
    actors::{
        controller_manager::context::GardenContext,
        shared::live_lists::{LIST_TIME, LiveLists},
    },
    api::kinds,
};

/// Shared with those who look at it: a binding may have many Quotas.
pub(super) type CachedBinding = CachedFields<Arc<Binding>>;
pub(super) type CachedCredentials = CachedFields<CredentialsState>;
/// The kinds of bindings whose label a Quota has.
pub(super) type CachedQuota = CachedFields<BTreeSet<BindingKind>>;

/// Bindings, what they refer to, and Shoots.
pub(super) struct Caches {
    secret_bindings: Rc<Bindings>,
    credentials_bindings: Rc<Bindings>,
    credentials: [Watch<CachedCredentials>; 3],
    pub(super) quotas: Watch<CachedQuota>,
    shoots: Watch<CachedFields<Box<[BindingName]>>>,
    in_use: Index<BindingName>,
    live_shoots: LiveLists<(), BTreeSet<BindingName>>,
}

/// The bindings of a kind.
pub(super) struct Bindings {
    pub(super) watch: Watch<CachedBinding>,
    pub(super) by_credentials: Index<CredentialsRef>,
    pub(super) by_quota: Index<NamespacedName>,
    live: LiveLists<(), ListedBindings>,
}

impl Caches {
    /// Opens the watches. A kind that is not served has no objects.
    pub(super) fn open(ctx: &GardenContext) -> Self {
        let watches = &ctx.garden.watches;
        let credentials = |kind: CredentialsKind| {
            let options = WatchOptions::fields_with_finalizers(kind.resource().clone(), CredentialsState::of);
            watches.open(options.metadata().optional())
        };
        let labels = |quota: &Value| {
            let has_label = |kind: &BindingKind| object::label(quota, kind.label()).is_some();
            BindingKind::ALL.into_iter().filter(has_label).collect()
        };
        let shoots = watches.open(WatchOptions::fields(kinds::SHOOT, bindings_of_shoot));
        let in_use = shoots.index(|_, shoot: &CachedFields<Box<[BindingName]>>| shoot.fields.to_vec());
        Self {
            secret_bindings: Rc::new(Bindings::open(BindingKind::SecretBinding, ctx)),
            credentials_bindings: Rc::new(Bindings::open(BindingKind::CredentialsBinding, ctx)),
            credentials: CredentialsKind::ALL.map(credentials),
            quotas: watches.open(WatchOptions::fields(kinds::QUOTA, labels).metadata().optional()),
            shoots,
            in_use,
            live_shoots: LiveLists::default(),
        }
    }

    /// Returns the caches that both controllers need.
    pub(super) fn requirements(&self) -> Vec<SyncRequirement> {
        let bindings = BindingKind::ALL.map(|kind| self.bindings(kind).watch.sync_requirement());
        let others = [self.quotas.sync_requirement(), self.shoots.sync_requirement()];
        bindings.into_iter().chain(self.credentials.iter().map(Watch::sync_requirement)).chain(others).collect()
    }

    /// Returns the bindings of a kind.
    pub(super) fn bindings(&self, kind: BindingKind) -> &Rc<Bindings> {
        match kind {
            BindingKind::SecretBinding => &self.secret_bindings,
            BindingKind::CredentialsBinding => &self.credentials_bindings,
        }
    }

    /// Returns the credentials of a kind.
    pub(super) fn credentials(&self, kind: CredentialsKind) -> &Watch<CachedCredentials> {
        let [secrets, internal_secrets, workload_identities] = &self.credentials;
        match kind {
            CredentialsKind::Secret => secrets,
            CredentialsKind::InternalSecret => internal_secrets,
            CredentialsKind::WorkloadIdentity => workload_identities,
        }
    }

    /// Returns the state of credentials, from the cache or else live; `None` if they do not exist.
    pub(super) async fn state_of(
        &self,
        context: &Context,
        credentials: &CredentialsRef,
    ) -> Result<Option<CredentialsState>, ApiError> {
        let watch = self.credentials(credentials.kind);
        if !credentials.can_exist() || watch.absence().is_some() {
            return Ok(None);
        }
        let state = match watch.known(&credentials.name) {
            Some(known) => known,
            None => watch.read_live(context, &credentials.name).await?,
        };
        Ok(state.map(|state| state.fields))
    }

    async fn live_bindings(&self, kind: BindingKind) -> Result<Rc<ListedBindings>, Failure> {
        let bindings = self.bindings(kind);
        let watch = bindings.watch.clone();
        let list = bindings.live.get(&(), move || async move {
            let context = Context::new(Priority::High, Deadline::after(LIST_TIME), "bindings");
            let mut all = ListedBindings::default();
            let add = |name: &NamespacedName, binding: &CachedBinding| all.add(name, &binding.fields);
            watch.list_live(&context, None, None, add).await?;
            Ok::<_, ApiError>(all)
        });
        match list.await {
            Ok(live) => Ok(live),
            // The server denies the kind now, as discovery proved before.
            Err(error) if error.is_not_served() && bindings.watch.absence().is_some() => Ok(Rc::default()),
            Err(error) => Err(Failure::new(format!("cannot list {}: {error}", kind.resource().plural))),
        }
    }

    async fn live_use(&self) -> Result<Rc<BTreeSet<BindingName>>, Failure> {
        let watch = self.shoots.clone();
        let list = self.live_shoots.get(&(), move || async move {
            let context = Context::new(Priority::High, Deadline::after(LIST_TIME), "bindings");
            let mut names = BTreeSet::new();
            let add = |_: &NamespacedName, shoot: &CachedFields<Box<[BindingName]>>| {
                names.extend(shoot.fields.iter().cloned());
            };
            watch.list_live(&context, None, None, add).await?;
            Ok::<_, ApiError>(names)
        });
        list.await.map_err(|error| Failure::new(format!("cannot list shoots: {error}")))
    }
}

impl Bindings {
    fn open(kind: BindingKind, ctx: &GardenContext) -> Self {
        let binding = move |object: &Value| Arc::new(Binding::of(kind, object));
        let watch = ctx.garden.watches.open(WatchOptions::fields(kind.resource().clone(), binding).optional());
        let by_credentials =
            watch.index(|_, binding: &CachedBinding| binding.fields.credentials.iter().cloned().collect());
        let by_quota = watch.index(|_, binding: &CachedBinding| binding.fields.quotas.iter().cloned().collect());
        Self { watch, by_credentials, by_quota, live: LiveLists::default() }
    }
}

impl BindingsOfKind for Bindings {
    fn with_credentials(&self, credentials: &CredentialsRef) -> Vec<NamedBinding> {
        let named = |name: NamespacedName| {
            let binding = self.watch.store().with(&name, |binding| binding.fields.clone())?;
            Some((name, binding))
        };
        self.by_credentials.get(credentials).into_iter().filter_map(named).collect()
    }

    fn any_with_quota(&self, quota: &NamespacedName, is_meant: &dyn Fn(&NamespacedName, &Binding) -> bool) -> bool {
        let store = self.watch.store();
        let is_meant =
            |name: &NamespacedName| store.with(name, |binding| is_meant(name, &binding.fields)) == Some(true);
        self.by_quota.with(quota, |names| names.iter().any(is_meant))
    }
}

/// A cache that is not fresh may keep an object: that costs nothing, and the object is looked at again.
impl EvidenceSource for Caches {
    type Question = Question;
    type Answer = Answer;

    fn cached(&self, question: &Question) -> Option<Answer> {
        Some(match question {
            Question::Bindings(kind) => Answer::Bindings(self.bindings(*kind).clone()),
            Question::InUse => Answer::InUse(UsedBindings::Cached(self.in_use.clone())),
        })
    }

    async fn read(&self, _: &Context, question: &Question) -> Result<Answer, Failure> {
        Ok(match question {
            Question::Bindings(kind) => Answer::Bindings(self.live_bindings(*kind).await?),
            Question::InUse => Answer::InUse(UsedBindings::Listed(self.live_use().await?)),
        })
    }
}
