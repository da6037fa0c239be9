//! The same objects as evidence: what the cache proves, and live reads in the cached form.

use super::Watch;
use crate::{ApiError, Cached, Context, ListQuery, object::NamespacedName};

impl<R: Cached> Watch<R> {
    /// Returns what the cache proves about an object: its cached form, or `Some(None)` if there is no such object. The
    /// cache proves nothing (`None`) while it is not fresh.
    pub fn known(&self, name: &NamespacedName) -> Option<Option<R>> {
        self.is_fresh_for(name).then(|| self.store().get(name))
    }

    /// Reads an object live, whatever the selectors are. Returns `None` if it does not exist. Fails if it is unreadable.
    pub async fn read_live(&self, context: &Context, name: &NamespacedName) -> Result<Option<R>, ApiError> {
        let live = self.answering().find(context, &self.resource().named(name)).await?;
        live.map(|object| self.reader.converted(&object)).transpose()
    }

    /// Lists live and calls `look` with each object: those of the watch, or of one namespace, that also have the labels
    /// (a selector in the API's syntax). The list is consistent: its pages show one state of the server's storage. Fails
    /// if any object is unreadable, and if the kind is not served.
    pub async fn list_live(
        &self,
        context: &Context,
        namespace: Option<&str>,
        labels: Option<&str>,
        mut look: impl FnMut(&NamespacedName, &R),
    ) -> Result<(), ApiError> {
        let key = &self.informer.key;
        let selectors: Vec<&str> = key.label_selector.as_deref().into_iter().chain(labels).collect();
        let query = ListQuery {
            label_selector: Some(selectors.join(",")).filter(|selector| !selector.is_empty()),
            field_selector: key.field_selector.clone(),
            metadata_only: !self.reports_bodies(),
            ..ListQuery::default()
        };
        let scopes = namespace.map_or_else(|| self.scopes(), |namespace| vec![Some(namespace.to_owned())]);
        for scope in scopes {
            let mut pages = self.informer.cluster.pages(context.clone(), key.resource.clone(), scope, query.clone());
            while let Some(page) = pages.next().await {
                for object in &page?.items {
                    look(&NamespacedName::of(object), &self.reader.converted(object)?);
                }
            }
        }
        Ok(())
    }
}
