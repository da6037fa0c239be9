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
    /// A higher one was written later: times have seconds only.
    version: Option<u64>,
    name: String,
}

/// What Events are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About<'a> {
    /// All ManagedResources.
    All,
    /// Those of this name, also earlier ones.
    Name(&'a str),
    /// This one.
    Object { name: &'a str, uid: &'a str },
}

impl About<'_> {
    fn field_selector(self) -> String {
        let kind = format!("involvedObject.kind={KIND}");
        match self {
            Self::All => kind,
            Self::Name(name) => format!("{kind},involvedObject.name={name}"),
            Self::Object { name, uid } => format!("{kind},involvedObject.name={name},involvedObject.uid={uid}"),
        }
    }

    fn is(self, event: &Event) -> bool {
        match self {
            Self::All => true,
            Self::Name(name) => event.about.name == name,
            Self::Object { name, uid } => event.about.name == name && event.uid == uid,
        }
    }
}

impl Clusters {
    /// Returns the newest Events about ManagedResources of a namespace or of all, the oldest of them first.
    pub(super) async fn events(
        &self,
        namespace: Option<&str>,
        about: About<'_>,
        most: usize,
    ) -> Result<Vec<Event>, InspectError> {
        let query = ListQuery { field_selector: Some(about.field_selector()), ..ListQuery::default() };
        let mut events = Vec::new();
        let mut pages = self.pages(kinds::CORE_EVENT, namespace.map(str::to_owned), query);
        while let Some(page) = pages.next().await {
            let page = page.map_err(|source| InspectError::Read { what: "the Events".to_owned(), source })?;
            events.extend(page.items.iter().filter_map(Event::of).filter(|event| about.is(event)));
            events.sort_by(|a, b| a.order().cmp(&b.order()));
            events.drain(..events.len().saturating_sub(most));
        }
        Ok(events)
    }
}

impl Event {
    /// Returns `None` if it is about an object of another kind, or names no group of the kind.
    fn of(event: &Value) -> Option<Self> {
        let text = |pointer: &str| {
            let text = event.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            cut_after(LONGEST, text).into_owned()
        };
        let api_version = text("/involvedObject/apiVersion");
        let is_ours = api_version.split_once('/').is_some_and(|(group, _)| group == GROUP);
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
            version: object::resource_version(event).parse().ok(),
            name: object::name(event).to_owned(),
        })
    }

    /// The oldest is the first.
    fn order(&self) -> impl Ord {
        (self.last, self.version, &self.about, &self.name)
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "namespace": self.about.namespace, "name": self.about.name, "type": self.kind, "reason": self.reason,
            "message": self.message, "count": self.count, "last": self.last.map(|last| last.to_string()),
        })
    }
}
