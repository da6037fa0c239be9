//! Waits until a ManagedResource is healthy, or gone (spec 10 §19.9). A watch that ends, or is forbidden, only costs
//! time: after [`POLL_INTERVAL`] the object is read again. If such a read fails, the wait ends with its error.

use std::{collections::BTreeMap, pin::pin, time::Duration};

use cluster::{ApiError, object::NamespacedName};
use futures::StreamExt as _;
use kube::{Client, core::WatchEvent};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::{
    POLL_INTERVAL, health,
    requests::{Listed, Requests, Selection},
};
use crate::api::{
    meta::conditions::ConditionStatus,
    resources::{
        condition_names::{DELETION_FAILED, DELETION_PENDING, RESOURCES_APPLIED},
        keys,
        managed_resource::ManagedResource,
    },
};

/// A watch that is silent for longer has a dead connection: the server ends it earlier.
const SILENCE: Duration = Duration::from_secs(75);

/// Error code of Gardener: only the user can help, by changing the configuration.
pub const CONFIGURATION_PROBLEM: &str = "ERR_CONFIGURATION_PROBLEM";

const NOT_DELETED: &str = "error while waiting for all resources to be deleted: ";

/// Why a wait failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// The time is over; with the last error.
    #[error("retry failed with context deadline exceeded{}", last_error(.0.as_deref()))]
    Deadline(Option<String>),
    /// A read failed.
    #[error(transparent)]
    Read(#[from] ApiError),
    /// The time is over, or a read failed, and the controller reported why objects are still there.
    #[error("{text}")]
    NotDeleted {
        /// The whole text.
        text: String,
        /// Error codes of Gardener for the text.
        codes: Vec<&'static str>,
        /// Why the wait ended.
        cause: Box<WaitError>,
    },
}

/// What is known of the awaited ManagedResources.
type Live = BTreeMap<NamespacedName, Value>;

impl WaitError {
    /// Error codes of Gardener, such as [`CONFIGURATION_PROBLEM`].
    pub fn codes(&self) -> &[&'static str] {
        match self {
            Self::Deadline(_) | Self::Read(_) => &[],
            Self::NotDeleted { codes, .. } => codes,
        }
    }

    /// Whether the time was over.
    pub fn is_deadline(&self) -> bool {
        match self {
            Self::Deadline(_) => true,
            Self::Read(_) => false,
            Self::NotDeleted { cause, .. } => cause.is_deadline(),
        }
    }

    fn not_deleted(self, text: String) -> Self {
        let codes = if is_configuration_problem(&text) { vec![CONFIGURATION_PROBLEM] } else { Vec::new() };
        Self::NotDeleted { text, codes, cause: Box::new(self) }
    }
}

fn last_error(last: Option<&str>) -> String {
    last.map(|last| format!(", last error: {last}")).unwrap_or_default()
}

/// Waits until the ManagedResource is applied and healthy. Fails after `limit`, or if it cannot be read.
pub async fn until_healthy(client: &Client, namespace: &str, name: &str, limit: Duration) -> Result<(), WaitError> {
    until_check(client, namespace, name, limit, check_healthy).await
}

/// Like [`until_healthy`], and waits until no rollout is in progress.
pub async fn until_healthy_and_not_progressing(
    client: &Client,
    namespace: &str,
    name: &str,
    limit: Duration,
) -> Result<(), WaitError> {
    until_check(client, namespace, name, limit, |mr| {
        check_healthy(mr)?;
        health::check_not_progressing(mr).map_err(|_| format!("managed resource {} is still progressing", mr.key()))
    })
    .await
}

fn check_healthy(mr: &ManagedResource) -> Result<(), String> {
    health::check(mr).map_err(|_| format!("managed resource {} is not healthy", mr.key()))
}

async fn until_check(
    client: &Client,
    namespace: &str,
    name: &str,
    limit: Duration,
    check: impl Fn(&ManagedResource) -> Result<(), String>,
) -> Result<(), WaitError> {
    let key = NamespacedName::new(namespace, name);
    until(client, Selection::One(&key), limit, &mut Live::new(), |live| {
        let Some(live) = live.values().next() else {
            return Err(format!("{}.{} \"{name}\" not found", keys::PLURAL, keys::GROUP));
        };
        let mr = ManagedResource::from_value(live);
        check(&mr.map_err(|error| format!("managed resource {key}: {error}"))?)
    })
    .await
}

/// Waits until the ManagedResource is gone. The error includes the controller's report about its objects.
pub async fn until_deleted(client: &Client, namespace: &str, name: &str, limit: Duration) -> Result<(), WaitError> {
    let key = NamespacedName::new(namespace, name);
    let mut live = Live::new();
    let waited = until(client, Selection::One(&key), limit, &mut live, |live| {
        if live.is_empty() { Ok(()) } else { Err(format!("resource {key} still exists")) }
    });
    let waited = waited.await;
    match (waited, live.values().next().and_then(deletion_message)) {
        (Err(error), Some(message)) => {
            let text = format!("{NOT_DELETED}{error}:\n{message}");
            Err(error.not_deleted(text))
        }
        (waited, _) => waited,
    }
}

/// Waits until no ManagedResource has the labels, in a namespace or in all. Fails like [`until_deleted`].
pub async fn until_all_deleted(
    client: &Client,
    namespace: Option<&str>,
    label_selector: &str,
    limit: Duration,
) -> Result<(), WaitError> {
    let mut live = Live::new();
    let waited = until(client, Selection::Labelled { namespace, label_selector }, limit, &mut live, |live| {
        let names: Vec<_> = live.keys().map(|key| key.name.as_str()).collect();
        if names.is_empty() { Ok(()) } else { Err(format!("resource(s) [{}] still exists", names.join(" "))) }
    });
    let Err(error) = waited.await else { return Ok(()) };
    let items: Vec<_> =
        live.values().filter_map(deletion_message).map(|message| format!("{error}:\n{message}")).collect();
    Err(match items.as_slice() {
        [] => error,
        [item] => error.not_deleted(format!("{NOT_DELETED}: 1 error occurred: {item}")),
        items => error.not_deleted(format!("{NOT_DELETED}: {} errors occurred: [{}]", items.len(), items.join(", "))),
    })
}

fn deletion_message(live: &Value) -> Option<String> {
    let mr = ManagedResource::from_value(live).ok()?;
    let applied = mr.condition(RESOURCES_APPLIED)?;
    let is_about_deletion = matches!(applied.reason.as_str(), DELETION_FAILED | DELETION_PENDING);
    (applied.status != ConditionStatus::True && is_about_deletion).then(|| applied.message.clone())
}

/// Matches `error during apply of object .* is invalid:`, ignoring case, within one line.
fn is_configuration_problem(text: &str) -> bool {
    const START: &str = "error during apply of object ";

    text.to_lowercase().lines().any(|line| line.find(START).is_some_and(|at| line[at..].contains(" is invalid:")))
}

fn deadline(limit: Duration) -> Instant {
    let now = Instant::now();
    // A limit that the clock cannot represent counts as forever.
    now.checked_add(limit).unwrap_or_else(|| now + Duration::from_secs(u64::from(u32::MAX)))
}

/// Waits until `judge` accepts what is live. Fails with its last error when the time is over.
async fn until(
    client: &Client,
    selection: Selection<'_>,
    limit: Duration,
    live: &mut Live,
    mut judge: impl FnMut(&Live) -> Result<(), String>,
) -> Result<(), WaitError> {
    let mut last = None;
    let is_done = |live: &Live| {
        last = judge(live).err();
        last.is_none()
    };
    match timeout_at(deadline(limit), follow(Requests(client), selection, live, is_done)).await {
        Ok(result) => Ok(result?),
        Err(_) => Err(WaitError::Deadline(last)),
    }
}

async fn follow(
    requests: Requests<'_>,
    selection: Selection<'_>,
    live: &mut Live,
    mut is_done: impl FnMut(&Live) -> bool,
) -> Result<(), ApiError> {
    loop {
        let Listed { items, resource_version } = requests.read(selection).await?;
        *live = items.into_iter().map(|item| (NamespacedName::of(&item), item)).collect();
        if is_done(live) {
            return Ok(());
        }
        if let Ok(events) = requests.watch(selection, &resource_version).await {
            let mut events = pin!(events);
            while let Ok(Some(Ok(event))) = timeout(SILENCE, events.next()).await {
                match event {
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                        live.insert(NamespacedName::of(&object), object);
                    }
                    WatchEvent::Deleted(object) => {
                        live.remove(&NamespacedName::of(&object));
                    }
                    WatchEvent::Bookmark(_) => continue,
                    WatchEvent::Error(_) => break,
                }
                if is_done(live) {
                    return Ok(());
                }
            }
        }
        sleep(POLL_INTERVAL).await;
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn configuration_problem_is_found_in_the_whole_text_ignoring_case() {
        assert!(is_configuration_problem("a:\nError during apply of object \"v1/Pod/a/b\": Pod \"b\" is invalid: x"));
        assert!(!is_configuration_problem("error during apply of object \"a\":\n is invalid: x"));
        assert!(!is_configuration_problem("\"b\" is invalid: error during apply of object \"a\""));
    }
}
