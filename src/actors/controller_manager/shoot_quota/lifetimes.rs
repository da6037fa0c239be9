//! The lifetimes that the Quotas of bindings allow: from caches, or live.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc, sync::Arc};

use cluster::{
    ApiError, Cached, CachedFields, Context, Index, Predicate, Watch, WatchOptions,
    evidence::EvidenceSource,
    object::{self, NamespacedName},
};
use kit::{Failure, GeneralController, Supervised, SyncRequirement, quote::cut};
use serde_json::Value;

use super::rules::{LifetimeDays, lifetime_of_quota, shortest};
use crate::{
    actors::controller_manager::{
        bindings::binding::{BindingKind, BindingName, can_exist},
        context::GardenContext,
        fields::{list, text},
    },
    api::kinds,
};

/// More Quotas of a binding than this are read with one list.
const MOST_READS: usize = 16;

/// Bindings and Quotas.
pub(super) struct Lifetimes {
    bindings: [Bindings; 2],
    quotas: Watch<CachedFields<LifetimeDays>>,
    /// What caches said since the last change of any binding or Quota: thousands of Shoots may share a binding, and a
    /// binding may have thousands of Quotas. Only of bindings that exist: Shoots may name any number of others.
    known: Rc<RefCell<BTreeMap<BindingName, Lifetime>>>,
}

/// The bindings of a kind.
struct Bindings {
    kind: BindingKind,
    /// The Quotas of each binding, each once.
    watch: Watch<CachedFields<Arc<[NamespacedName]>>>,
    by_quota: Index<NamespacedName>,
}

/// The lifetime that the Quotas of a binding allow. `Err`: the text about a binding or Quota that does not exist.
pub(super) type Lifetime = Result<LifetimeDays, String>;

impl Lifetimes {
    pub(super) fn open(ctx: &GardenContext) -> Self {
        Self {
            bindings: BindingKind::ALL.map(|kind| Bindings::open(kind, ctx)),
            quotas: ctx.garden.watches.open(WatchOptions::fields(kinds::QUOTA, lifetime_of_quota)),
            known: Rc::default(),
        }
    }

    /// Returns the caches that reconciles need.
    pub(super) fn requirements(&self) -> impl Iterator<Item = SyncRequirement> {
        let bindings = self.bindings.iter().map(|bindings| bindings.watch.sync_requirement());
        bindings.chain([self.quotas.sync_requirement()])
    }

    /// Wakes the Shoots whose lifetime may have changed (spec 84 "better" 12). `shoots` returns those of a binding. First
    /// lists wake nobody: all Shoots begin then.
    pub(super) fn subscribe<C: GeneralController<Key = NamespacedName>>(
        &self,
        supervised: &Supervised<C>,
        shoots: impl Fn(&BindingName) -> Vec<NamespacedName> + Clone + 'static,
    ) {
        for Bindings { kind, watch, .. } in &self.bindings {
            let (kind, shoots) = (*kind, shoots.clone());
            self.forget_on_change(watch);
            let changed = Predicate::fields_changed().ignoring_first_list();
            watch.on_change(supervised, changed, move |name, _| shoots(&(kind, name.clone())));
        }
        self.forget_on_change(&self.quotas);
        let by_quota = self.bindings.each_ref().map(|bindings| (bindings.kind, bindings.by_quota.clone()));
        let changed = Predicate::<CachedFields<LifetimeDays>>::fields_changed().ignoring_first_list();
        self.quotas.on_change(supervised, changed, move |quota, _| {
            let bindings =
                by_quota.iter().flat_map(|(kind, index)| index.get(quota).into_iter().map(move |name| (*kind, name)));
            bindings.flat_map(|binding| shoots(&binding)).collect::<Vec<_>>()
        });
    }

    fn forget_on_change<T: PartialEq + Clone + Send + Sync + 'static>(&self, watch: &Watch<CachedFields<T>>) {
        let known = self.known.clone();
        watch.subscribe(move |change| {
            let fields = |object: Option<&CachedFields<T>>| object.map(|object| object.fields.clone());
            if fields(change.old) != fields(change.new) {
                known.borrow_mut().clear();
            }
        });
    }

    fn bindings(&self, kind: BindingKind) -> &Bindings {
        let [secret_bindings, credentials_bindings] = &self.bindings;
        match kind {
            BindingKind::SecretBinding => secret_bindings,
            BindingKind::CredentialsBinding => credentials_bindings,
        }
    }

    /// Returns the lifetime of Quotas in the cache.
    fn of_quotas(&self, quotas: &[NamespacedName]) -> Lifetime {
        let lifetime = |quota: &NamespacedName| {
            let known = self.quotas.store().with(quota, |quota| quota.fields);
            known.ok_or_else(|| missing(&self.quotas, quota))
        };
        Ok(shortest(quotas.iter().map(lifetime).collect::<Result<Vec<_>, _>>()?))
    }

    /// Reads Quotas live, and returns their lifetimes.
    async fn read_quotas(&self, context: &Context, names: &[NamespacedName]) -> Result<Lifetime, ApiError> {
        let mut found = BTreeMap::new();
        if names.len() > MOST_READS {
            let add = |name: &NamespacedName, quota: &CachedFields<LifetimeDays>| {
                if names.binary_search(name).is_ok() {
                    found.insert(name.clone(), quota.fields);
                }
            };
            self.quotas.list_live(context, None, None, add).await?;
        } else {
            for name in names.iter().filter(|name| can_exist(name)) {
                let live = self.quotas.read_live(context, name).await?;
                found.extend(live.map(|quota| (name.clone(), quota.fields)));
            }
        }
        let lifetime = |name: &NamespacedName| found.get(name).copied().ok_or_else(|| missing(&self.quotas, name));
        let lifetimes: Result<Vec<_>, _> = names.iter().map(lifetime).collect();
        Ok(lifetimes.map(shortest))
    }
}

impl Bindings {
    fn open(kind: BindingKind, ctx: &GardenContext) -> Self {
        let watch = ctx.garden.watches.open(WatchOptions::fields(kind.resource().clone(), quotas_of));
        let by_quota = watch.index(|_, binding: &CachedFields<Arc<[NamespacedName]>>| binding.fields.to_vec());
        Self { kind, watch, by_quota }
    }
}

impl EvidenceSource for Lifetimes {
    type Question = BindingName;
    type Answer = Lifetime;

    fn cached(&self, binding: &BindingName) -> Option<Lifetime> {
        if !self.quotas.is_fresh() || !self.bindings(binding.0).watch.is_fresh_for(&binding.1) {
            return None;
        }
        if let Some(known) = self.known.borrow().get(binding) {
            return Some(known.clone());
        }
        let watch = &self.bindings(binding.0).watch;
        let Some(quotas) = watch.store().with(&binding.1, |binding| binding.fields.clone()) else {
            return Some(Err(missing(watch, &binding.1)));
        };
        let lifetime = self.of_quotas(&quotas);
        self.known.borrow_mut().insert(binding.clone(), lifetime.clone());
        Some(lifetime)
    }

    async fn read(&self, context: &Context, (kind, name): &BindingName) -> Result<Lifetime, Failure> {
        let watch = &self.bindings(*kind).watch;
        if !can_exist(name) {
            return Ok(Err(missing(watch, name)));
        }
        let cannot_read = |plural: &str, error: ApiError| Failure::new(format!("cannot read {plural}: {error}"));
        let binding = watch.read_live(context, name).await;
        let binding = binding.map_err(|error| cannot_read(&watch.resource().plural, error))?;
        let Some(binding) = binding else { return Ok(Err(missing(watch, name))) };
        let lifetime = self.read_quotas(context, &binding.fields).await;
        lifetime.map_err(|error| cannot_read(&self.quotas.resource().plural, error))
    }
}

/// Returns the Quotas of a binding, sorted, each once. An absent namespace is that of the binding (rule L-2). An entry
/// without a name is a Quota that does not exist.
fn quotas_of(binding: &Value) -> Arc<[NamespacedName]> {
    let quota = |entry: &Value| {
        let namespace = Some(text(entry, "/namespace")).filter(|namespace| !namespace.is_empty());
        NamespacedName::new(namespace.unwrap_or(object::namespace(binding)), text(entry, "/name"))
    };
    let mut quotas: Vec<_> = list(binding, "/quotas").map(quota).collect();
    quotas.sort_unstable();
    quotas.dedup();
    quotas.into()
}

/// Returns the text about an object that does not exist, as API servers say it.
fn missing<R: Cached>(watch: &Watch<R>, name: &NamespacedName) -> String {
    let kind = watch.resource();
    format!("{}.{} \"{}\" not found", kind.plural, kind.group, cut(&name.name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// spec 84 L-2; spec 80 §10.2
    #[test]
    fn quotas_of_a_binding_are_those_that_it_names() {
        let quotas = |quotas: Value| -> Vec<String> {
            let binding = json!({ "metadata": { "namespace": "a" }, "quotas": quotas });
            quotas_of(&binding).iter().map(NamespacedName::to_string).collect()
        };

        let all = json!([
            { "name": "x", "namespace": "b", "kind": "Other" }, { "name": "x" }, { "name": "w", "namespace": "" },
            { "name": "x", "namespace": "b" },
        ]);
        assert_eq!(quotas(all), ["a/w", "a/x", "b/x"]);
        assert_eq!(quotas(json!([5, { "name": null }])), ["a/"]);
        for none in [json!(null), json!([]), json!("x"), json!({ "name": "x" })] {
            assert_eq!(quotas(none), Vec::<String>::new());
        }
    }
}
