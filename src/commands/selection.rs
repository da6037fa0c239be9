//! Which ManagedResources a command is about: `[NAMESPACE/]NAME`, `-n`, `-l`, `-A`.

use std::collections::BTreeSet;

use cluster::{ApiError, Cluster, Context, ListQuery, object::NamespacedName};

use crate::{api::kinds, cli::SelectionOptions};

/// Where names without a namespace are, and what is listed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Selection<'a> {
    options: &'a SelectionOptions,
    namespace: &'a str,
}

/// Returns namespace and name of `[namespace/]name`. `namespace` counts if the name has none.
pub(super) fn key(name: &str, namespace: &str) -> NamespacedName {
    match name.split_once('/') {
        Some((namespace, name)) => NamespacedName::new(namespace, name),
        None => NamespacedName::new(namespace, name),
    }
}

impl<'a> Selection<'a> {
    /// `default` is the namespace of the context.
    pub(super) fn new(options: &'a SelectionOptions, default: &'a str) -> Self {
        Self { options, namespace: options.namespace.as_deref().unwrap_or(default) }
    }

    /// Returns the named ManagedResources, each once, in their order; empty if all or those with labels are meant.
    pub(super) fn named(self) -> Vec<NamespacedName> {
        let mut seen = BTreeSet::new();
        let keys = self.options.names.iter().map(|name| key(name, self.namespace));
        keys.filter(|key| seen.insert(key.clone())).collect()
    }

    /// Returns the namespace that is listed; `None` for all.
    pub(super) fn scope(self) -> Option<String> {
        (!self.options.all_namespaces).then(|| self.namespace.to_owned())
    }

    /// Returns the end of a sentence: the namespace that is listed.
    pub(super) fn location(self) -> String {
        self.scope().map_or_else(String::new, |namespace| format!(" in namespace {namespace}"))
    }

    /// Returns the named ManagedResources, or lists those with the labels. Fails if they cannot be listed.
    pub(super) async fn keys(self, cluster: &Cluster, context: Context) -> Result<Vec<NamespacedName>, ApiError> {
        let named = self.named();
        if !named.is_empty() {
            return Ok(named);
        }
        let label_selector = self.options.selector.clone();
        let query = ListQuery { metadata_only: true, label_selector, ..ListQuery::default() };
        let mut pages = cluster.pages(context, kinds::MANAGED_RESOURCE, self.scope(), query);
        let mut keys = Vec::new();
        while let Some(page) = pages.next().await {
            keys.extend(page?.items.iter().map(NamespacedName::of));
        }
        Ok(keys)
    }
}
