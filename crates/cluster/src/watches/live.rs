//! The same objects as evidence: what the cache proves, and live reads in the cached form.

use std::time::Duration;

use super::Watch;
use crate::{ApiError, Cached, Context, ListQuery, object::NamespacedName};

/// How long a reported end of an object is as good as a live read: a watch that hangs would not show that the name has
/// another object since.
pub(super) const MOMENT: Duration = Duration::from_secs(10);

impl<R: Cached> Watch<R> {
    /// Returns true if this process heard of the end of an object a moment ago, and of nothing of this name since, and the
    /// cache is fresh. The end itself may be older: a relist or a reopened watch reports it late. A watch with a selector
    /// proves nothing: an object that leaves the selection looks the same.
    pub fn saw_end_of(&self, name: &NamespacedName) -> bool {
        let key = &self.informer.key;
        let has_selector = key.label_selector.is_some() || key.field_selector.is_some();
        !has_selector && self.is_fresh_for(name) && self.store().ended_within(name, MOMENT)
    }

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
        look: impl FnMut(&NamespacedName, &R),
    ) -> Result<(), ApiError> {
        self.list_live_selected(context, namespace, (labels, None), look).await
    }

    /// As [`Self::list_live`], for objects that have certain fields, too (a selector in the API's syntax). Fails with the
    /// code 400 if the server does not select by these fields.
    pub async fn list_live_with_fields(
        &self,
        context: &Context,
        fields: &str,
        look: impl FnMut(&NamespacedName, &R),
    ) -> Result<(), ApiError> {
        self.list_live_selected(context, None, (None, Some(fields)), look).await
    }

    async fn list_live_selected(
        &self,
        context: &Context,
        namespace: Option<&str>,
        (labels, fields): (Option<&str>, Option<&str>),
        mut look: impl FnMut(&NamespacedName, &R),
    ) -> Result<(), ApiError> {
        let key = &self.informer.key;
        let joined = |of_watch: &Option<String>, more: Option<&str>| {
            let selectors: Vec<&str> = of_watch.as_deref().into_iter().chain(more).collect();
            Some(selectors.join(",")).filter(|selector| !selector.is_empty())
        };
        let query = ListQuery {
            label_selector: joined(&key.label_selector, labels),
            field_selector: joined(&key.field_selector, fields),
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
