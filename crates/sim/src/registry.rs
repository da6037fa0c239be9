//! Which kinds are served: the built-in ones, and those of established CustomResourceDefinitions.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::kinds::Kind;

/// The kinds by group, version and resource.
#[derive(Default)]
pub(super) struct Registry {
    kinds: BTreeMap<(String, String, String), Arc<Kind>>,
    /// Groups that are compiled into the server.
    built_in: BTreeSet<String>,
}

impl Registry {
    pub(super) fn new(built_in: Vec<Kind>) -> Self {
        let mut registry = Self::default();
        for kind in built_in {
            registry.built_in.insert(kind.group.clone());
            registry.kinds.insert(place(&kind), Arc::new(kind));
        }
        registry
    }

    pub(super) fn find(&self, group: &str, version: &str, resource: &str) -> Option<Arc<Kind>> {
        self.kinds.get(&(group.to_owned(), version.to_owned(), resource.to_owned())).cloned()
    }

    /// The kind that an object or a reference names.
    pub(super) fn find_kind(&self, api_version: &str, kind: &str) -> Option<Arc<Kind>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let first = (group.to_owned(), version.to_owned(), String::new());
        self.kinds
            .range(first..)
            .take_while(|((other, at, _), _)| other == group && at == version)
            .map(|(_, found)| found)
            .find(|found| found.kind == kind)
            .cloned()
    }

    /// Any version of a resource.
    pub(super) fn find_resource(&self, group: &str, resource: &str) -> Option<Arc<Kind>> {
        self.all().find(|kind| kind.group == group && kind.plural == resource).cloned()
    }

    /// All kinds, by group, version and resource.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.kinds.values()
    }

    pub(super) fn is_built_in(&self, group: &str) -> bool {
        self.built_in.contains(group)
    }

    pub(super) fn is_served(&self, group: &str, version: &str) -> bool {
        self.all().any(|kind| kind.group == group && kind.version == version)
    }

    /// Serves the kinds of a definition in place of those it had.
    pub(super) fn replace_custom(&mut self, group: &str, resource: &str, kinds: Vec<Kind>) {
        self.kinds.retain(|_, kind| !(kind.custom && kind.group == group && kind.plural == resource));
        for kind in kinds {
            self.kinds.insert(place(&kind), Arc::new(kind));
        }
    }
}

fn place(kind: &Kind) -> (String, String, String) {
    (kind.group.clone(), kind.version.clone(), kind.plural.clone())
}
