use cluster::{
    ListQuery,
    object::{self, NamespacedName},
};
use jiff::Timestamp;
use kit::quote::cut_after;
use serde_json::{Value, json};

use super::{Clusters, InspectError};
use crate::api::{
    kinds,
    resources::keys::{GROUP, KIND},
};

/// Longest text of an Event, in characters. Those of the controller are not longer. Other clients may write any text.
const LONGEST: usize = 1024;

/// An Event about a ManagedResource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) about: NamespacedName,
    pub(super) uid: String,
    /// `Normal` or `Warning`.
    pub(super) kind: String,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) count: u64,
    /// When it happened last.
    pub(super) last: Option<Timestamp>,
    name: String,
}

impl Clusters {
    /// Returns the Events about a ManagedResource, or about all of a namespace or of all namespaces, the oldest first.
    pub(super) async fn events(&self, namespace: Option<&str>, name: Option<&str>) -> Result<Vec<Event>, InspectError> {
        let name = name.map(|name| format!(",involvedObject.name={name}")).unwrap_or_default();
        let query =
            ListQuery { field_selector: Some(format!("involvedObject.kind={KIND}{name}")), ..ListQuery::default() };
        let mut events = Vec::new();
        let mut pages = self.pages(kinds::CORE_EVENT, namespace.map(str::to_owned), query);
        while let Some(page) = pages.next().await {
            let page = page.map_err(|source| InspectError::Read { what: "the Events".to_owned(), source })?;
            events.extend(page.items.iter().filter_map(Event::of));
        }
        events.sort_by(|a, b| (a.last, &a.about, &a.name).cmp(&(b.last, &b.about, &b.name)));
        Ok(events)
    }
}

impl Event {
    /// Returns `None` if it is about an object of another kind.
    fn of(event: &Value) -> Option<Self> {
        let text = |pointer: &str| {
            let text = event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            cut_after(LONGEST, text).into_owned()
        };
        let api_version = text("/involvedObject/apiVersion");
        let is_ours = api_version.split('/').next() == Some(GROUP) || api_version.is_empty();
        if !is_ours || text("/involvedObject/kind") != KIND {
            return None;
        }
        let times = [
            "/series/lastObservedTime",
            "/lastTimestamp",
            "/eventTime",
            "/firstTimestamp",
            "/metadata/creationTimestamp",
        ];
        let count = ["/series/count", "/count"].into_iter().find_map(|pointer| event.pointer(pointer)?.as_u64());
        Some(Self {
            about: NamespacedName::new(text("/involvedObject/namespace"), text("/involvedObject/name")),
            uid: text("/involvedObject/uid"),
            kind: text("/type"),
            reason: text("/reason"),
            message: text("/message"),
            count: count.unwrap_or(1),
            last: times.into_iter().find_map(|pointer| text(pointer).parse().ok()),
            name: object::name(event).to_owned(),
        })
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "namespace": self.about.namespace, "name": self.about.name, "type": self.kind, "reason": self.reason,
            "message": self.message, "count": self.count, "last": self.last.map(|last| last.to_string()),
        })
    }
}
