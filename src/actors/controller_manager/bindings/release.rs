//! When the credentials and Quotas of a binding are released, and which labels go (spec 81 G.5, G.6, G-T6). Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::Arc,
};

use cluster::{Index, object::NamespacedName};

use super::{
    binding::{Binding, BindingKind, BindingName},
    credentials::{CredentialsKind, CredentialsRef},
};

/// A fact that a judgement asks for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// The bindings of a kind. One list for all credentials and Quotas, because a binding may have many.
    Bindings(BindingKind),
    /// The bindings to which Shoots refer. One list for all bindings, because many may be deleted at once.
    InUse,
}

/// The answer.
#[derive(Clone)]
pub enum Answer {
    /// The bindings of a kind.
    Bindings(Rc<dyn BindingsOfKind>),
    /// The bindings to which Shoots refer.
    InUse(UsedBindings),
}

/// The bindings of a kind, as a cache or a live list knows them.
pub trait BindingsOfKind {
    /// Returns the bindings with these credentials.
    fn with_credentials(&self, credentials: &CredentialsRef) -> Vec<NamedBinding>;

    /// Returns true if `is_meant` returns true for a binding with this Quota.
    fn any_with_quota(&self, quota: &NamespacedName, is_meant: &dyn Fn(&NamespacedName, &Binding) -> bool) -> bool;
}

/// A binding with its name.
pub type NamedBinding = (NamespacedName, Arc<Binding>);

/// Bindings of a kind that were listed live.
#[derive(Debug, Default)]
pub struct ListedBindings {
    by_credentials: BTreeMap<CredentialsRef, Vec<NamedBinding>>,
    by_quota: BTreeMap<NamespacedName, Vec<NamedBinding>>,
}

/// The bindings to which Shoots refer.
#[derive(Debug, Clone)]
pub enum UsedBindings {
    /// As the cache knows them.
    Cached(Index<BindingName>),
    /// As listed live.
    Listed(Rc<BTreeSet<BindingName>>),
}

impl ListedBindings {
    /// Adds a binding.
    pub fn add(&mut self, name: &NamespacedName, binding: &Arc<Binding>) {
        let named = || (name.clone(), binding.clone());
        if let Ok(credentials) = &binding.credentials {
            self.by_credentials.entry(credentials.clone()).or_default().push(named());
        }
        for quota in &binding.quotas {
            self.by_quota.entry(quota.clone()).or_default().push(named());
        }
    }
}

impl BindingsOfKind for ListedBindings {
    fn with_credentials(&self, credentials: &CredentialsRef) -> Vec<NamedBinding> {
        self.by_credentials.get(credentials).cloned().unwrap_or_default()
    }

    fn any_with_quota(&self, quota: &NamespacedName, is_meant: &dyn Fn(&NamespacedName, &Binding) -> bool) -> bool {
        self.by_quota.get(quota).is_some_and(|named| named.iter().any(|(name, binding)| is_meant(name, binding)))
    }
}

impl UsedBindings {
    /// Returns true if a Shoot refers to a binding.
    fn contains(&self, binding: &BindingName) -> bool {
        match self {
            Self::Cached(index) => index.contains(binding),
            Self::Listed(names) => names.contains(binding),
        }
    }
}

/// What is released.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Release {
    /// The types whose provider labels go, with finalizer and reference label; `None`: the credentials stay protected.
    pub types: Option<BTreeSet<String>>,
    /// A binding of the other kind needs the credentials.
    pub other_is_used: bool,
    /// The Quotas that lose the reference label.
    pub quotas: BTreeSet<NamespacedName>,
}

impl Release {
    /// Returns true if anything is released.
    pub fn is_any(&self) -> bool {
        self.types.is_some() || !self.quotas.is_empty()
    }
}

/// The rules, with the setting that they depend on.
#[derive(Debug, Clone, Copy)]
pub struct Judge {
    /// The kind of the binding that is released.
    pub kind: BindingKind,
    /// WorkloadIdentities get provider labels (spec 81 D-3).
    pub labels_workload_identities: bool,
}

impl Judge {
    /// Judges a deleted binding to which no Shoot refers (G.3 steps 4 and 5).
    pub fn binding<E>(
        self,
        name: &NamespacedName,
        binding: &Binding,
        ask: impl Fn(Question) -> Result<Answer, E>,
    ) -> Result<Release, E> {
        let mut release = Release::default();
        if let Ok(credentials) = &binding.credentials {
            let mut counts = false;
            for (other, binding) in bindings(&ask, self.kind)?.with_credentials(credentials) {
                counts |= other != *name && self.counts(self.kind, &other, &binding, &ask)?;
            }
            if !counts {
                let needed = self.needed(Some(name), credentials, &ask)?;
                release.types = Some(binding.types.difference(&needed).cloned().collect());
                release.other_is_used = self.other_is_used(credentials, &ask)?;
            }
        }
        if !binding.quotas.is_empty() {
            let bindings = bindings(&ask, self.kind)?;
            let is_free = |quota: &&NamespacedName| !bindings.any_with_quota(quota, &|other, _| other != name);
            release.quotas = binding.quotas.iter().filter(is_free).cloned().collect();
        }
        Ok(release)
    }

    /// Judges credentials that a binding left without a release: it is gone, or refers to others now. `types` are those
    /// that it had.
    pub fn left_credentials<E>(
        self,
        credentials: &CredentialsRef,
        types: &BTreeSet<String>,
        ask: impl Fn(Question) -> Result<Answer, E>,
    ) -> Result<Release, E> {
        let mut release = Release::default();
        let others = bindings(&ask, self.kind)?.with_credentials(credentials);
        if !others.iter().any(|(_, binding)| binding.exists()) {
            let needed = self.needed(None, credentials, &ask)?;
            release.types = Some(types.difference(&needed).cloned().collect());
            release.other_is_used = self.other_is_used(credentials, &ask)?;
        }
        Ok(release)
    }

    /// Judges a Quota that a binding left without a release.
    pub fn left_quota<E>(
        self,
        quota: &NamespacedName,
        ask: impl Fn(Question) -> Result<Answer, E>,
    ) -> Result<Release, E> {
        let mut release = Release::default();
        if !bindings(&ask, self.kind)?.any_with_quota(quota, &|_, binding| binding.exists()) {
            release.quotas.insert(quota.clone());
        }
        Ok(release)
    }

    /// Returns the types whose labels other bindings of both kinds need.
    fn needed<E>(
        self,
        name: Option<&NamespacedName>,
        credentials: &CredentialsRef,
        ask: &impl Fn(Question) -> Result<Answer, E>,
    ) -> Result<BTreeSet<String>, E> {
        let mut needed = BTreeSet::new();
        if credentials.kind == CredentialsKind::WorkloadIdentity && !self.labels_workload_identities {
            return Ok(needed);
        }
        for kind in BindingKind::ALL {
            for (other, binding) in bindings(ask, kind)?.with_credentials(credentials) {
                let is_itself = kind == self.kind && Some(&other) == name;
                if !is_itself && self.counts(kind, &other, &binding, ask)? {
                    needed.extend(binding.types.iter().cloned());
                }
            }
        }
        Ok(needed)
    }

    /// Returns true if a binding of the other kind needs the credentials.
    fn other_is_used<E>(
        self,
        credentials: &CredentialsRef,
        ask: &impl Fn(Question) -> Result<Answer, E>,
    ) -> Result<bool, E> {
        let kind = self.kind.other();
        for (name, binding) in bindings(ask, kind)?.with_credentials(credentials) {
            if self.counts(kind, &name, &binding, ask)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A deleted binding counts while Shoots refer to it.
    fn counts<E>(
        self,
        kind: BindingKind,
        name: &NamespacedName,
        binding: &Binding,
        ask: &impl Fn(Question) -> Result<Answer, E>,
    ) -> Result<bool, E> {
        if !binding.is_deleting {
            return Ok(true);
        }
        if !binding.is_held {
            return Ok(false);
        }
        Ok(match ask(Question::InUse)? {
            Answer::InUse(used) => used.contains(&(kind, name.clone())),
            Answer::Bindings(_) => true,
        })
    }
}

fn bindings<E>(ask: &impl Fn(Question) -> Result<Answer, E>, kind: BindingKind) -> Result<Rc<dyn BindingsOfKind>, E> {
    Ok(match ask(Question::Bindings(kind))? {
        Answer::Bindings(bindings) => bindings,
        Answer::InUse(_) => Rc::<ListedBindings>::default(),
    })
}
