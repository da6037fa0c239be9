//! The served kinds: built-in ones and those of established CustomResourceDefinitions.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::kinds::ServedKind;

#[derive(Default)]
pub(super) struct Registry {
    kinds: BTreeMap<(String, String, String), Arc<ServedKind>>,
    built_in: BTreeSet<String>,
}

impl Registry {
    pub(super) fn new(built_in: Vec<ServedKind>) -> Self {
        let mut registry = Self::default();
        for kind in built_in {
            registry.built_in.insert(kind.group.clone());
            registry.kinds.insert(place(&kind), Arc::new(kind));
        }
        registry
    }

    pub(super) fn find(&self, group: &str, version: &str, resource: &str) -> Option<Arc<ServedKind>> {
        self.kinds.get(&(group.to_owned(), version.to_owned(), resource.to_owned())).cloned()
    }

    pub(super) fn find_kind(&self, api_version: &str, kind: &str) -> Option<Arc<ServedKind>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let first = (group.to_owned(), version.to_owned(), String::new());
        self.kinds
            .range(first..)
            .take_while(|((other, at, _), _)| other == group && at == version)
            .map(|(_, found)| found)
            .find(|found| found.kind == kind)
            .cloned()
    }

    pub(super) fn find_resource(&self, group: &str, resource: &str) -> Option<Arc<ServedKind>> {
        self.all().find(|kind| kind.group == group && kind.plural == resource).cloned()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<ServedKind>> {
        self.kinds.values()
    }

    pub(super) fn is_built_in(&self, group: &str) -> bool {
        self.built_in.contains(group)
    }

    pub(super) fn is_served(&self, group: &str, version: &str) -> bool {
        self.all().any(|kind| kind.group == group && kind.version == version)
    }

    pub(super) fn replace_custom(&mut self, group: &str, resource: &str, kinds: Vec<ServedKind>) {
        self.kinds.retain(|_, kind| !(kind.custom && kind.group == group && kind.plural == resource));
        for kind in kinds {
            self.kinds.insert(place(&kind), Arc::new(kind));
        }
    }
}

fn place(kind: &ServedKind) -> (String, String, String) {
    (kind.group.clone(), kind.version.clone(), kind.plural.clone())
}
