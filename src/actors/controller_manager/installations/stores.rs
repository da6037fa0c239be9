//! What the controllers of installations know of the garden cluster: watches, and what is computed of them event by event.

use std::{
    cell::{Cell, Ref, RefCell},
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::Arc,
};

use cluster::{
    ApiError, Cached as _, CachedFields, Cluster, Context, How, Index, Watch, WatchOptions, object,
    object::NamespacedName,
};
use futures::future::join_all;
use kit::{Deadline, Failure, Priority, SyncRequirement};
use serde_json::Value;

use super::{
    backups::{BackupIndex, BucketFacts, EntryFacts, ExtensionCluster},
    content::Deployed,
    demand::DemandIndex,
    deployment::{DeploymentFacts, ReferredName, is_settled},
    domains::{DomainSecret, DomainSecretFacts, Domains},
    installation::{CachedInstallation, InstallationFacts},
    plan::{Existing, grouped},
    reference_locks::ReferenceLocks,
    registration::{Catalogue, KnownRegistration, RegistrationFacts},
    seed_facts::SeedFacts,
    shoot_needs::ShootNeeds,
};
use crate::{
    actors::{
        controller_manager::{
            context::GardenContext,
            seed::secrets::{
                namespace::{namespace_of, seed_of},
                roles::{GARDEN, SELECTOR},
            },
            shoot_record::CachedShoot,
        },
        shared::live_lists::{LIST_TIME, LiveLists},
    },
    api::kinds,
};

/// Selects the objects of `garden` whose changes are reported (A.2 W8, W9).
const REFERENCED: &str = "gardener.cloud/role=resource-reference";

/// The field by which a server may select installations.
const REGISTRATION_NAME: &str = "spec.registrationRef.name";

/// A cache of a few fields.
pub(super) type FieldsWatch<T> = Watch<CachedFields<T>>;

/// The installations of a live list: registrations by cluster, and clusters by registration.
#[derive(Debug, Default)]
pub(super) struct LiveInstallations {
    by_cluster: BTreeMap<ExtensionCluster, BTreeMap<Box<str>, BTreeSet<String>>>,
    by_registration: BTreeMap<Box<str>, BTreeSet<String>>,
}

/// The cluster by which an installation is found, and its registration.
type CreationKey = (ExtensionCluster, Box<str>);

/// The right to create an installation, from before the list that shows that there is none until the answer.
pub(super) struct Creation<'s> {
    creations: &'s RefCell<BTreeSet<CreationKey>>,
    key: CreationKey,
}

impl Drop for Creation<'_> {
    fn drop(&mut self) {
        self.creations.borrow_mut().remove(&self.key);
    }
}

/// All that is known.
pub(super) struct Stores {
    cluster: Cluster,
    pub(super) seeds: FieldsWatch<Arc<SeedFacts>>,
    pub(super) shoots: Watch<CachedShoot>,
    /// The self-hosted Shoots.
    pub(super) self_hosted: Index<()>,
    pub(super) registrations: FieldsWatch<Arc<RegistrationFacts>>,
    /// Registrations by each of their deployments.
    pub(super) by_deployment: Index<Box<str>>,
    pub(super) installations: Watch<CachedInstallation>,
    by_seed: Index<Box<str>>,
    by_shoot: Index<NamespacedName>,
    by_registration: Index<Box<str>>,
    pub(super) deployments: FieldsWatch<Arc<DeploymentFacts>>,
    /// Deployments by each of their resources.
    pub(super) by_resource: Index<ReferredName>,
    pub(super) buckets: FieldsWatch<BucketFacts>,
    pub(super) entries: FieldsWatch<EntryFacts>,
    /// Labelled Secrets and ConfigMaps of `garden`: whether they have the finalizer that this program sets.
    pub(super) referred: [FieldsWatch<bool>; 2],
    pub(super) domain_secrets: FieldsWatch<DomainSecretFacts>,
    pub(super) demand: Rc<RefCell<DemandIndex>>,
    pub(super) backups: Rc<RefCell<BackupIndex>>,
    catalogue: Rc<RefCell<Catalogue>>,
    /// The versions at which the content of Seeds and self-hosted Shoots changed, as far as this process saw it.
    content_versions: Rc<RefCell<BTreeMap<ExtensionCluster, u64>>>,
    /// By registration, or of all.
    lists: LiveLists<Option<Box<str>>, LiveInstallations>,
    /// False if the server does not select installations by registration.
    selects: Rc<Cell<bool>>,
    /// Creations that have begun: the controllers of a self-hosted Shoot and of its Seed may want the same.
    creations: RefCell<BTreeSet<CreationKey>>,
    /// Keep creations, and releases of what they refer to, apart.
    pub(super) locks: ReferenceLocks,
    /// Reads of objects without the label.
    reads: LiveLists<ReferredName, Option<ReferredState>>,
}

/// What counts of an object to which a deployment refers.
#[derive(Debug, Clone)]
struct ReferredState {
    /// Its resourceVersion.
    version: Box<str>,
    /// It has the finalizer that this program sets.
    is_settled: bool,
}

impl Stores {
    pub(super) fn open(ctx: &GardenContext) -> Self {
        let watches = &ctx.garden.watches;
        let shoots = ctx.shoots.clone();
        let self_hosted = shoots
            .index(|_, shoot: &CachedShoot| shoot.fields.needs.is_self_hosted().then_some(()).into_iter().collect());
        let registrations = watches.open(WatchOptions::fields_with_finalizers(kinds::CONTROLLER_REGISTRATION, |it| {
            Arc::new(RegistrationFacts::of(it))
        }));
        let by_deployment =
            registrations.index(|_, it: &CachedFields<Arc<RegistrationFacts>>| it.fields.deployments.to_vec());
        let installations: Watch<CachedInstallation> = watches
            .open(WatchOptions::fields(kinds::CONTROLLER_INSTALLATION, |it| Arc::new(InstallationFacts::of(it))));
        let by_seed = installations.index(|_, it: &CachedInstallation| it.fields.seed.iter().cloned().collect());
        let by_shoot = installations.index(|_, it: &CachedInstallation| it.fields.shoot.iter().cloned().collect());
        let by_registration = installations.index(|_, it: &CachedInstallation| vec![it.fields.registration.clone()]);
        let deployments =
            watches.open(WatchOptions::fields(kinds::CONTROLLER_DEPLOYMENT, |it| Arc::new(DeploymentFacts::of(it))));
        let by_resource = deployments.index(|_, it: &CachedFields<Arc<DeploymentFacts>>| it.fields.resources.to_vec());
        let referred = [kinds::SECRET, kinds::CONFIG_MAP].map(|kind| {
            watches.open(WatchOptions::fields(kind, is_settled).metadata().labelled(REFERENCED).within([GARDEN]))
        });
        let domain_secrets = WatchOptions::fields(kinds::SECRET, DomainSecret::of).metadata().labelled(SELECTOR);
        let stores = Self {
            cluster: ctx.garden.cluster.clone(),
            seeds: watches
                .open(WatchOptions::fields_with_finalizers(kinds::SEED, |seed| Arc::new(SeedFacts::of(seed)))),
            shoots,
            self_hosted,
            registrations,
            by_deployment,
            installations,
            by_seed,
            by_shoot,
            by_registration,
            deployments,
            by_resource,
            buckets: watches.open(WatchOptions::fields(kinds::BACKUP_BUCKET, BucketFacts::of)),
            entries: watches.open(WatchOptions::fields(kinds::BACKUP_ENTRY, EntryFacts::of)),
            referred,
            domain_secrets: watches.open(domain_secrets.keeping(|name| seed_of(&name.namespace).is_some())),
            demand: Rc::default(),
            backups: Rc::default(),
            catalogue: Rc::default(),
            content_versions: Rc::default(),
            lists: LiveLists::default(),
            selects: Rc::new(Cell::new(true)),
            creations: RefCell::default(),
            locks: ReferenceLocks::default(),
            reads: LiveLists::default(),
        };
        stores.keep_indexes();
        stores
    }

    /// Keeps what is computed of the watches up to date. These event handlers come before those that wake.
    fn keep_indexes(&self) {
        let demand = self.demand.clone();
        self.shoots.subscribe(move |change| {
            let new = change.new.map(|shoot| {
                let migration = &shoot.fields.migration;
                ([&*migration.destination, &*migration.source], &shoot.fields.needs)
            });
            demand.borrow_mut().put(change.name, new);
        });
        let catalogue = self.catalogue.clone();
        self.registrations.subscribe(move |change| {
            let new = change.new.map(|it| KnownRegistration { version: it.version(), facts: it.fields.clone() });
            catalogue.borrow_mut().put(&change.name.name, new);
        });
        let backups = self.backups.clone();
        self.buckets.subscribe(move |change| {
            backups.borrow_mut().put_bucket(&change.name.name, change.new.map(|bucket| bucket.fields.clone()));
        });
        let backups = self.backups.clone();
        self.entries.subscribe(move |change| {
            backups.borrow_mut().put_entry(change.name, change.new.map(|entry| entry.fields.clone()));
        });
        self.keep_content_versions();
    }

    fn keep_content_versions(&self) {
        let note =
            |versions: &RefCell<BTreeMap<_, _>>, cluster, how: How<'_>, old: Option<u64>, new: Option<(u64, u64)>| {
                match (old, new) {
                    (_, None) => drop(versions.borrow_mut().remove(&cluster)),
                    (Some(old), Some((content, _))) if old == content => {}
                    (None, Some(_)) if how == How::First => {}
                    (_, Some((_, version))) => drop(versions.borrow_mut().insert(cluster, version)),
                }
            };
        let versions = self.content_versions.clone();
        self.seeds.subscribe(move |change| {
            let old = change.old.map(|seed| seed.fields.content);
            let new = change.new.map(|seed| (seed.fields.content, seed.version()));
            note(&versions, ExtensionCluster::Seed(change.name.name.as_str().into()), change.how, old, new);
        });
        let versions = self.content_versions.clone();
        self.shoots.subscribe(move |change| {
            let content = |shoot: &CachedShoot| shoot.fields.needs.own_cluster.as_ref().map(|it| it.content);
            let old = change.old.and_then(content);
            let new = change.new.and_then(|shoot| Some((content(shoot)?, shoot.version())));
            if old.is_some() || new.is_some() {
                note(&versions, ExtensionCluster::Shoot(change.name.clone()), change.how, old, new);
            }
        });
    }

    /// Returns the caches that reconciles need.
    pub(super) fn requirements(&self) -> Vec<SyncRequirement> {
        let [secrets, config_maps] = &self.referred;
        vec![
            self.seeds.sync_requirement(),
            self.shoots.sync_requirement(),
            self.registrations.sync_requirement(),
            self.installations.sync_requirement(),
            self.deployments.sync_requirement(),
            self.buckets.sync_requirement(),
            self.entries.sync_requirement(),
            secrets.sync_requirement(),
            config_maps.sync_requirement(),
            self.domain_secrets.sync_requirement(),
        ]
    }

    /// Returns true if the caches prove what is not wanted: each of them is fresh.
    pub(super) fn are_fresh(&self) -> bool {
        self.seeds.is_fresh()
            && self.shoots.is_fresh()
            && self.registrations.is_fresh()
            && self.installations.is_fresh()
            && self.buckets.is_fresh()
            && self.entries.is_fresh()
            && self.domain_secrets.is_fresh()
    }

    pub(super) fn catalogue(&self) -> Ref<'_, Catalogue> {
        self.catalogue.borrow()
    }

    /// Returns the version at which the content of a cluster changed last; `None` if that was before this process.
    pub(super) fn content_version(&self, cluster: &ExtensionCluster) -> Option<u64> {
        self.content_versions.borrow().get(cluster).copied()
    }

    /// Returns the domains of a Seed. Fails with the text about its Secrets.
    pub(super) fn domains(&self, seed: &str, facts: &SeedFacts) -> Result<Domains, String> {
        let mut secrets = Vec::new();
        self.domain_secrets.store().for_each_in(&namespace_of(seed), |name, secret| {
            secrets.extend(secret.fields.clone().map(|secret| (name.clone(), secret)));
        });
        Domains::of(facts, secrets.iter().map(|(name, secret)| (name, secret)))
    }

    /// Returns the installations of a cluster.
    pub(super) fn installations_of(&self, cluster: &ExtensionCluster) -> Existing {
        let names = match cluster {
            ExtensionCluster::Seed(seed) => self.by_seed.get(seed),
            ExtensionCluster::Shoot(shoot) => self.by_shoot.get(shoot),
        };
        let facts = |name: NamespacedName| {
            let facts = self.installations.store().with(&name, |it| it.fields.clone())?;
            Some((name.name.into(), facts))
        };
        grouped(names.into_iter().filter_map(facts))
    }

    /// Returns the names of the installations of a registration.
    pub(super) fn installations_of_registration(&self, registration: &str) -> BTreeSet<String> {
        self.by_registration.with(&registration.into(), |names| names.iter().map(|it| it.name.clone()).collect())
    }

    /// Returns what a self-hosted Shoot needs, its version, and whether it is being deleted; `None` if the cache lacks it.
    pub(super) fn own_shoot(&self, name: &NamespacedName) -> Option<(Arc<ShootNeeds>, u64, bool)> {
        let known = |shoot: &CachedShoot| (shoot.fields.needs.clone(), shoot.version(), shoot.fields.is_deleting);
        self.shoots.store().with(name, known)
    }

    /// Begins the creation of an installation; `None` while another one of the same registration and cluster runs: its
    /// object might be in no list yet.
    pub(super) fn begin_creation(&self, cluster: &ExtensionCluster, registration: &str) -> Option<Creation<'_>> {
        let key = (cluster.clone(), registration.into());
        let is_first = self.creations.borrow_mut().insert(key.clone());
        is_first.then(|| Creation { creations: &self.creations, key })
    }

    /// Returns all installations, or those of a registration, of a list that begins now. Decisions share it.
    pub(super) async fn live_installations(
        &self,
        registration: Option<&str>,
    ) -> Result<Rc<LiveInstallations>, Failure> {
        // A server that does not select lists all, once for all registrations.
        let registration = registration.filter(|_| self.selects.get());
        let (watch, key, selects) = (self.installations.clone(), registration.map(Box::from), self.selects.clone());
        let of_registration: Option<Box<str>> = key.clone();
        let list = self.lists.get(&key, move || async move {
            let context = Context::new(Priority::High, Deadline::after(LIST_TIME), "controllerinstallations");
            if let Some(registration) = of_registration.filter(|_| selects.get()) {
                let (mut found, fields) = (LiveInstallations::default(), format!("{REGISTRATION_NAME}={registration}"));
                let add = |name: &NamespacedName, it: &CachedInstallation| found.add(&name.name, &it.fields);
                match watch.list_live_with_fields(&context, &fields, add).await {
                    // A server of CustomResourceDefinitions selects by the fields that they name.
                    Err(error) if error.code() == Some(400) => selects.set(false),
                    listed => return listed.map(|()| found),
                }
            }
            let mut found = LiveInstallations::default();
            watch.list_live(&context, None, None, |name, it| found.add(&name.name, &it.fields)).await?;
            Ok::<_, ApiError>(found)
        });
        list.await.map_err(|error| Failure::new(format!("cannot list controllerinstallations: {error}")))
    }

    /// Returns the first deployment of a registration, with the versions of the objects to which it refers. Fails with the
    /// texts of A.6.
    pub(super) async fn deployed(
        &self,
        context: &Context,
        registration: &RegistrationFacts,
    ) -> Result<Option<Deployed>, DeployError> {
        let Some(name) = registration.deployments.first() else { return Ok(None) };
        let cannot = |error: String| {
            DeployError(format!(
                "cannot deploy ControllerInstallation because the referenced ControllerDeployment cannot be retrieved: \
                 {error}"
            ))
        };
        let key = NamespacedName::new("", &**name);
        let deployment = match self.deployments.known(&key) {
            Some(known) => known,
            None => self.deployments.read_live(context, &key).await.map_err(|error| cannot(error.to_string()))?,
        };
        let missing = || cannot(format!("controllerdeployments.core.gardener.cloud \"{name}\" not found"));
        let deployment = deployment.ok_or_else(missing)?;
        let referred = deployment.fields.resources.iter().map(|(kind, name)| self.referred_state(kind, name));
        let referred = join_all(referred).await.into_iter().collect::<Result<Vec<_>, DeployError>>()?;
        let (version, hash) = (deployment.version(), deployment.fields.hash.clone());
        let is_settled = deployment.fields.is_settled && referred.iter().all(|object| object.is_settled);
        let resources = deployment.fields.resources.iter().zip(referred);
        let resources = resources.map(|((kind, name), object)| (kind.clone(), name.clone(), object.version)).collect();
        Ok(Some(Deployed { name: name.clone(), version, hash, resources, is_settled }))
    }

    /// Returns the state of an object of `garden`. One without the label is read (trap T-13); all Seeds that wait for it share
    /// the read.
    async fn referred_state(&self, kind: &str, name: &str) -> Result<ReferredState, DeployError> {
        let Some(watch) = self.referred.iter().find(|watch| *watch.resource().kind == *kind) else {
            return Err(DeployError(format!("unsupported kind \"{kind}\" in ControllerDeployment resource reference")));
        };
        let key = NamespacedName::new(GARDEN, name);
        if let Some(Some(known)) = watch.known(&key) {
            return Ok(ReferredState { version: known.version().to_string().into(), is_settled: known.fields });
        }
        let cannot = |error: String| {
            DeployError(format!(
                "cannot deploy ControllerInstallation because the referenced {kind} cannot be retrieved: {error}"
            ))
        };
        let plural = watch.resource().plural.clone();
        let (cluster, at) = (self.cluster.metadata_only(), watch.resource().named(&key));
        let read = self.reads.get(&(kind.into(), name.into()), move || async move {
            let context = Context::new(Priority::High, Deadline::after(LIST_TIME), "controllerinstallations");
            let live = cluster.find(&context, &at).await?;
            let state = |live: &Value| ReferredState {
                version: object::resource_version(live).into(),
                is_settled: is_settled(live),
            };
            Ok::<_, ApiError>(live.as_ref().map(state))
        });
        let state = read.await.map_err(|error| cannot(error.to_string()))?;
        (*state).clone().ok_or_else(|| cannot(format!("{plural} \"{name}\" not found")))
    }
}

/// Why a registration cannot be deployed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct DeployError(String);

impl LiveInstallations {
    fn add(&mut self, name: &str, facts: &InstallationFacts) {
        let seed = facts.seed.clone().map(ExtensionCluster::Seed);
        for cluster in seed.into_iter().chain(facts.shoot.clone().map(ExtensionCluster::Shoot)) {
            let of_cluster = self.by_cluster.entry(cluster).or_default();
            of_cluster.entry(facts.registration.clone()).or_default().insert(name.to_owned());
        }
        self.by_registration.entry(facts.registration.clone()).or_default().insert(name.to_owned());
    }

    /// Returns the installations of a registration on a cluster.
    pub(super) fn of(&self, cluster: &ExtensionCluster, registration: &str) -> impl Iterator<Item = &str> {
        let of_cluster = self.by_cluster.get(cluster).and_then(|it| it.get(registration));
        of_cluster.into_iter().flatten().map(String::as_str)
    }

    /// Returns true if a cluster has installations.
    pub(super) fn has_any(&self, cluster: &ExtensionCluster) -> bool {
        self.by_cluster.contains_key(cluster)
    }

    /// Returns the installations of a registration.
    pub(super) fn of_registration(&self, registration: &str) -> BTreeSet<String> {
        self.by_registration.get(registration).cloned().unwrap_or_default()
    }
}
