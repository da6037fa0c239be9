//! Waits until a ManagedResource is healthy, or gone (spec 10 §19.9). A watch that ends, or is forbidden, only costs
//! time: after [`POLL_INTERVAL`] the object is read again. If such a read fails, the wait ends with its error.

use std::{collections::BTreeMap, pin::pin, time::Duration};

use cluster::{
    ApiError,
    object::{self, NamespacedName},
};
use futures::StreamExt as _;
use kube::{Client, core::WatchEvent};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::{
    POLL_INTERVAL, health,
    requests::{ObjectKind, Requests, Selection},
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

enum WaitVerdict {
    Done,
    NotYet(String),
}

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
    until_check(client, namespace, name, limit, |mr| match health::check(mr) {
        Ok(()) => WaitVerdict::Done,
        Err(_) => WaitVerdict::NotYet(format!("managed resource {} is not healthy", mr.key())),
    })
    .await
}

/// Like [`until_healthy`], and waits until no rollout is in progress.
pub async fn until_healthy_and_not_progressing(
    client: &Client,
    namespace: &str,
    name: &str,
    limit: Duration,
) -> Result<(), WaitError> {
    until_check(client, namespace, name, limit, |mr| {
        if health::check(mr).is_err() {
            WaitVerdict::NotYet(format!("managed resource {} is not healthy", mr.key()))
        } else if health::check_not_progressing(mr).is_err() {
            WaitVerdict::NotYet(format!("managed resource {} is still progressing", mr.key()))
        } else {
            WaitVerdict::Done
        }
    })
    .await
}

async fn until_check(
    client: &Client,
    namespace: &str,
    name: &str,
    limit: Duration,
    check: impl Fn(&ManagedResource) -> WaitVerdict,
) -> Result<(), WaitError> {
    let key = NamespacedName::new(namespace, name);
    until_object(client, &key, limit, |live| match live.map(ManagedResource::from_value) {
        Some(Ok(mr)) => check(&mr),
        Some(Err(error)) => WaitVerdict::NotYet(format!("managed resource {key}: {error}")),
        None => WaitVerdict::NotYet(format!("{}.{} \"{name}\" not found", keys::PLURAL, keys::GROUP)),
    })
    .await
}

/// Waits until the ManagedResource is gone. The error includes the controller's report about its objects.
pub async fn until_deleted(client: &Client, namespace: &str, name: &str, limit: Duration) -> Result<(), WaitError> {
    let key = NamespacedName::new(namespace, name);
    let mut last = None;
    let waited = until_object(client, &key, limit, |live| match live {
        None => WaitVerdict::Done,
        Some(live) => {
            last = Some(live.clone());
            WaitVerdict::NotYet(format!("resource {key} still exists"))
        }
    });
    let waited = waited.await;
    match (waited, last.as_ref().and_then(deletion_message)) {
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
    let selection = Selection { namespace, label_selector, field_selector: "" };
    let mut left = BTreeMap::new();
    let result = timeout_at(deadline(limit), follow_list(Requests(client), selection, &mut left)).await;
    let error = match result {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => WaitError::Read(error),
        Err(_) if left.is_empty() => WaitError::Deadline(None),
        Err(_) => {
            let names: Vec<_> = left.keys().map(|key| key.name.as_str()).collect();
            WaitError::Deadline(Some(format!("resource(s) [{}] still exists", names.join(" "))))
        }
    };
    let items: Vec<_> =
        left.values().filter_map(deletion_message).map(|message| format!("{error}:\n{message}")).collect();
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

async fn until_object(
    client: &Client,
    key: &NamespacedName,
    limit: Duration,
    mut judge: impl FnMut(Option<&Value>) -> WaitVerdict,
) -> Result<(), WaitError> {
    let mut last = None;
    let look = |live: Option<&Value>| match judge(live) {
        WaitVerdict::Done => true,
        WaitVerdict::NotYet(error) => {
            last = Some(error);
            false
        }
    };
    match timeout_at(deadline(limit), follow_object(Requests(client), key, look)).await {
        Ok(result) => Ok(result?),
        Err(_) => Err(WaitError::Deadline(last)),
    }
}

async fn follow_object(
    requests: Requests<'_>,
    key: &NamespacedName,
    mut look: impl FnMut(Option<&Value>) -> bool,
) -> Result<(), ApiError> {
    let field_selector = format!("metadata.name={}", key.name);
    let selection = Selection { namespace: Some(&key.namespace), label_selector: "", field_selector: &field_selector };
    loop {
        let live = requests.find(ObjectKind::ManagedResource, &key.namespace, &key.name).await?;
        if look(live.as_ref()) {
            return Ok(());
        }
        // Without a version, the watch begins with the object, in case it exists by now.
        let from = live.as_ref().map(object::resource_version).unwrap_or_default();
        if let Ok(events) = requests.watch(ObjectKind::ManagedResource, selection, from).await {
            let mut events = pin!(events);
            while let Ok(Some(Ok(event))) = timeout(SILENCE, events.next()).await {
                let content = match &event {
                    WatchEvent::Added(live) | WatchEvent::Modified(live) => look(Some(live)),
                    WatchEvent::Deleted(_) => look(None),
                    WatchEvent::Bookmark(_) => false,
                    WatchEvent::Error(_) => break,
                };
                if content {
                    return Ok(());
                }
            }
        }
        sleep(POLL_INTERVAL).await;
    }
}

async fn follow_list(
    requests: Requests<'_>,
    selection: Selection<'_>,
    left: &mut BTreeMap<NamespacedName, Value>,
) -> Result<(), ApiError> {
    loop {
        let listed = requests.list(ObjectKind::ManagedResource, selection).await?;
        *left = listed.items.into_iter().map(|item| (NamespacedName::of(&item), item)).collect();
        if left.is_empty() {
            return Ok(());
        }
        if let Ok(events) = requests.watch(ObjectKind::ManagedResource, selection, &listed.resource_version).await {
            let mut events = pin!(events);
            while let Ok(Some(Ok(event))) = timeout(SILENCE, events.next()).await {
                match event {
                    WatchEvent::Added(live) | WatchEvent::Modified(live) => {
                        left.insert(NamespacedName::of(&live), live);
                    }
                    WatchEvent::Deleted(live) => {
                        left.remove(&NamespacedName::of(&live));
                    }
                    WatchEvent::Bookmark(_) => {}
                    WatchEvent::Error(_) => break,
                }
                if left.is_empty() {
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
