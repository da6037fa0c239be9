//! What the use of Projects depends on: caches with indexes, and live reads.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::Arc,
};

use cluster::{
    ApiError, Cached, CachedFields, Context, Index, Predicate, Watch, WatchOptions,
    evidence::EvidenceSource,
    object::{self, NamespacedName},
};
use kit::{Deadline, Failure, GeneralController, Priority, Supervised, SyncRequirement};
use serde_json::Value;

use super::in_use::{Answer, NamedReferences, Question, ReferencedKind, References};
use crate::{
    actors::{
        controller_manager::{
            bindings::{
                binding::{BindingKind, BindingName, bindings_of_shoot},
                credentials::CredentialsKind,
            },
            context::GardenContext,
            project_namespace::may_belong_to_project,
        },
        shared::live_lists::{LIST_TIME, LiveLists},
    },
    api::kinds,
};

/// Marks a Namespace whose Project is never stale.
const SKIP: &str = "project.gardener.cloud/skip-stale-check";

/// The Shoots of up to this many namespaces are listed one by one, and else those of all namespaces at once.
const MOST_NAMESPACES: usize = 16;

/// Namespaces, Shoots, BackupEntries, bindings, and what bindings refer to.
pub(super) struct Caches {
    /// Whether a Namespace is marked to skip the check.
    namespaces: Watch<CachedFields<bool>>,
    shoots: Watch<CachedFields<Box<[BindingName]>>>,
    shoots_by_namespace: Index<String>,
    used: Index<BindingName>,
    backup_entries: Watch<CachedFields<()>>,
    entries_by_namespace: Index<String>,
    bindings: [Bindings; 2],
    objects: [Watch<CachedFields<()>>; 4],
}

/// The bindings of a kind.
struct Bindings {
    kind: BindingKind,
    watch: Watch<CachedFields<Arc<References>>>,
    /// By the namespaces of the objects to which they refer.
    by_namespace: Index<String>,
    live: LiveLists<(), ListedBindings>,
}

/// Bindings by the namespaces of the objects to which they refer.
type ListedBindings = BTreeMap<String, Vec<NamedReferences>>;

impl Caches {
    /// Opens the watches. A kind that is not served has no objects (spec 82 D.5).
    pub(super) fn open(ctx: &GardenContext) -> Self {
        let watches = &ctx.garden.watches;
        let skips = |namespace: &Value| object::truthy(object::annotation(namespace, SKIP));
        let namespaces = WatchOptions::fields(kinds::NAMESPACE, skips).metadata();
        let shoots = watches.open(WatchOptions::fields(kinds::SHOOT, bindings_of_shoot).optional());
        let existing = |resource| {
            let options = WatchOptions::fields(resource, |_| ()).metadata().optional();
            watches.open(options.keeping(|name| may_belong_to_project(&name.namespace)))
        };
        let backup_entries = existing(kinds::BACKUP_ENTRY);
        Self {
            namespaces: watches.open(namespaces.keeping(|name| may_belong_to_project(&name.name))),
            shoots_by_namespace: shoots.index(|name, _| vec![name.namespace.clone()]),
            used: shoots.index(|_, shoot: &CachedFields<Box<[BindingName]>>| shoot.fields.to_vec()),
            shoots,
            entries_by_namespace: backup_entries.index(|name, _| vec![name.namespace.clone()]),
            backup_entries,
            bindings: BindingKind::ALL.map(|kind| Bindings::open(kind, ctx)),
            objects: ReferencedKind::ALL.map(|kind| existing(kind.resource().clone())),
        }
    }

    /// Returns the caches that reconciles need.
    pub(super) fn requirements(&self) -> impl Iterator<Item = SyncRequirement> {
        let own = [self.namespaces.sync_requirement(), self.shoots.sync_requirement()];
        let bindings = self.bindings.iter().map(|bindings| bindings.watch.sync_requirement());
        let objects = self.objects.iter().chain([&self.backup_entries]).map(Watch::sync_requirement);
        own.into_iter().chain(bindings).chain(objects)
    }

    /// Wakes the Projects whose use may have changed. `projects` returns those of a namespace. Of Shoots and BackupEntries
    /// only the first that comes and the last that goes matter: a Project may have thousands. First lists wake, too: a kind
    /// may be served later.
    pub(super) fn subscribe<C: GeneralController<Key = NamespacedName>>(
        &self,
        supervised: &Supervised<C>,
        projects: impl Fn(&str) -> Vec<NamespacedName> + Clone + 'static,
    ) {
        let of_namespace = projects.clone();
        self.namespaces.on_change(supervised, Predicate::fields_changed(), move |name, _| of_namespace(&name.name));
        self.subscribe_to_shoots(supervised, projects.clone());
        let (entries, of_namespace) = (self.entries_by_namespace.clone(), projects.clone());
        self.backup_entries.on_change(supervised, come_or_gone(), move |name, _| {
            if entries.count(&name.namespace) <= 1 { of_namespace(&name.namespace) } else { Vec::new() }
        });
        for bindings in &self.bindings {
            let of_namespace = projects.clone();
            bindings.watch.on_change(supervised, Predicate::fields_changed(), move |_, binding| {
                binding.fields.namespaces().into_iter().flat_map(&of_namespace).collect::<Vec<_>>()
            });
        }
        for (watch, kind) in self.objects.iter().zip(ReferencedKind::ALL) {
            let (of_namespace, referring) = (projects.clone(), self.bindings.each_ref().map(Bindings::index));
            let is_secret = kind == ReferencedKind::Credentials(CredentialsKind::Secret);
            // There may be very many Secrets, and their kind is always served.
            let changed = if is_secret { come_or_gone().ignoring_first_list() } else { come_or_gone() };
            watch.on_change(supervised, changed, move |name, _| {
                let is_meant = referring.iter().any(|bindings| bindings.contains(&name.namespace));
                if is_meant { of_namespace(&name.namespace) } else { Vec::new() }
            });
        }
    }

    fn subscribe_to_shoots<C: GeneralController<Key = NamespacedName>>(
        &self,
        supervised: &Supervised<C>,
        projects: impl Fn(&str) -> Vec<NamespacedName> + 'static,
    ) {
        let (shoots, used) = (self.shoots_by_namespace.clone(), self.used.clone());
        let bindings = self.bindings.each_ref().map(|bindings| (bindings.kind, bindings.watch.store().clone()));
        self.shoots.on_change(supervised, Predicate::fields_changed(), move |shoot, of_shoot| {
            let mut woken = Vec::new();
            if shoots.count(&shoot.namespace) <= 1 {
                woken.extend(projects(&shoot.namespace));
            }
            for binding in of_shoot.fields.iter().filter(|binding| used.count(binding) <= 1) {
                for (_, store) in bindings.iter().filter(|(kind, _)| *kind == binding.0) {
                    let references = store.with(&binding.1, |binding| binding.fields.clone()).unwrap_or_default();
                    woken.extend(references.namespaces().into_iter().flat_map(&projects));
                }
            }
            woken
        });
    }

    fn objects(&self, kind: ReferencedKind) -> Option<&Watch<CachedFields<()>>> {
        self.objects.iter().zip(ReferencedKind::ALL).find(|(_, of)| *of == kind).map(|(watch, _)| watch)
    }

    async fn used_live(
        &self,
        context: &Context,
        bindings: &BTreeSet<BindingName>,
    ) -> Result<BTreeSet<BindingName>, Failure> {
        let namespaces: BTreeSet<&str> = bindings.iter().map(|(_, name)| name.namespace.as_str()).collect();
        let scopes: Vec<Option<&str>> =
            if namespaces.len() > MOST_NAMESPACES { vec![None] } else { namespaces.into_iter().map(Some).collect() };
        let mut used = BTreeSet::new();
        for scope in scopes {
            let add = |_: &NamespacedName, shoot: &CachedFields<Box<[BindingName]>>| {
                used.extend(shoot.fields.iter().filter(|binding| bindings.contains(binding)).cloned());
            };
            unless_absent(&self.shoots, self.shoots.list_live(context, scope, None, add).await)?;
        }
        Ok(used)
    }
}

impl Bindings {
    fn open(kind: BindingKind, ctx: &GardenContext) -> Self {
        let references = move |binding: &Value| Arc::new(References::of(kind, binding));
        let watch = ctx.garden.watches.open(WatchOptions::fields(kind.resource().clone(), references).optional());
        let by_namespace = watch.index(|_, binding: &CachedFields<Arc<References>>| {
            binding.fields.namespaces().into_iter().map(str::to_owned).collect()
        });
        Self { kind, watch, by_namespace, live: LiveLists::default() }
    }

    fn index(&self) -> Index<String> {
        self.by_namespace.clone()
    }

    fn referring_to(&self, namespace: &String) -> impl Iterator<Item = NamedReferences> {
        self.by_namespace.get(namespace).into_iter().filter_map(|name| {
            let references = self.watch.store().with(&name, |binding| binding.fields.clone())?;
            Some(((self.kind, name), references))
        })
    }

    /// Returns the bindings of a list that begins now. Reconciles share it.
    async fn list(&self) -> Result<Rc<ListedBindings>, Failure> {
        let (watch, kind) = (self.watch.clone(), self.kind);
        let list = self.live.get(&(), move || async move {
            let context = Context::new(Priority::High, Deadline::after(LIST_TIME), "project-stale");
            let mut all = ListedBindings::new();
            let add = |name: &NamespacedName, binding: &CachedFields<Arc<References>>| {
                for namespace in binding.fields.namespaces() {
                    let named = ((kind, name.clone()), binding.fields.clone());
                    all.entry(namespace.to_owned()).or_default().push(named);
                }
            };
            watch.list_live(&context, None, None, add).await?;
            Ok::<_, ApiError>(all)
        });
        match list.await {
            Ok(listed) => Ok(listed),
            Err(error) => unless_absent(&self.watch, Err(error)).map(|()| Rc::default()),
        }
    }
}

impl EvidenceSource for Caches {
    type Question = Question;
    type Answer = Answer;

    fn cached(&self, question: &Question) -> Option<Answer> {
        match question {
            Question::Namespace(namespace) => {
                let known = self.namespaces.known(&NamespacedName::new("", namespace.as_str()))?;
                Some(Answer::Namespace(known.map(|namespace| namespace.fields)))
            }
            Question::Shoots(namespace) => {
                is_evidence(&self.shoots).then(|| Answer::Exists(self.shoots_by_namespace.contains(namespace)))
            }
            Question::BackupEntries(namespace) => {
                let is_any = || Answer::Exists(self.entries_by_namespace.contains(namespace));
                is_evidence(&self.backup_entries).then(is_any)
            }
            Question::Bindings(namespace) => {
                let referring = || self.bindings.iter().flat_map(|bindings| bindings.referring_to(namespace)).collect();
                let is_known = self.bindings.iter().all(|bindings| is_evidence(&bindings.watch));
                is_known.then(|| Answer::Bindings(referring()))
            }
            Question::Used(bindings) => {
                let used = || bindings.iter().filter(|binding| self.used.contains(binding)).cloned().collect();
                is_evidence(&self.shoots).then(|| Answer::Used(used()))
            }
            Question::Objects(kind, namespace, names) => {
                let watch = self.objects(*kind).filter(|watch| is_evidence(watch))?;
                let exists = |name: &String| {
                    watch.store().with(&NamespacedName::new(namespace.as_str(), name.as_str()), |_| ()).is_some()
                };
                Some(Answer::Exists(names.iter().any(exists)))
            }
        }
    }

    async fn read(&self, context: &Context, question: &Question) -> Result<Answer, Failure> {
        match question {
            Question::Namespace(namespace) => {
                let name = NamespacedName::new("", namespace.as_str());
                let live = self.namespaces.read_live(context, &name).await;
                let live = live.map_err(|error| Failure::new(format!("cannot get namespace {namespace}: {error}")))?;
                Ok(Answer::Namespace(live.map(|namespace| namespace.fields)))
            }
            Question::Shoots(namespace) => any_live(&self.shoots, context, namespace, |_| true).await,
            Question::BackupEntries(namespace) => any_live(&self.backup_entries, context, namespace, |_| true).await,
            Question::Bindings(namespace) => {
                let mut all = Vec::new();
                for bindings in &self.bindings {
                    all.extend(bindings.list().await?.get(namespace).into_iter().flatten().cloned());
                }
                Ok(Answer::Bindings(all))
            }
            Question::Used(bindings) => self.used_live(context, bindings).await.map(Answer::Used),
            Question::Objects(kind, namespace, names) => match self.objects(*kind) {
                Some(watch) => any_live(watch, context, namespace, |name| names.contains(&name.name)).await,
                None => Err(Failure::new(format!("objects of kind {kind:?} are not known"))),
            },
        }
    }
}

/// Returns true if a cache is evidence, or there is nothing to know because the kind is not served.
fn is_evidence<R: Cached>(watch: &Watch<R>) -> bool {
    watch.is_fresh() || watch.absence().is_some()
}

/// Returns whether a namespace has an object that is meant, as a live list says.
async fn any_live<R: Cached>(
    watch: &Watch<R>,
    context: &Context,
    namespace: &str,
    is_meant: impl Fn(&NamespacedName) -> bool,
) -> Result<Answer, Failure> {
    let mut is_any = false;
    let listed = watch.list_live(context, Some(namespace), None, |name, _| is_any |= is_meant(name)).await;
    unless_absent(watch, listed)?;
    Ok(Answer::Exists(is_any))
}

/// The server denies a kind that is not served, as discovery proved before: it has no objects. Any other error of a list
/// proves nothing (spec 82 D.5).
fn unless_absent<R: Cached>(watch: &Watch<R>, listed: Result<(), ApiError>) -> Result<(), Failure> {
    match listed {
        Err(error) if error.is_not_served() && watch.absence().is_some() => Ok(()),
        listed => listed.map_err(|error| Failure::new(format!("cannot list {}: {error}", watch.resource().plural))),
    }
}

/// Selects objects that come and go.
fn come_or_gone() -> Predicate<CachedFields<()>> {
    Predicate::differing(|_, _| false)
}
