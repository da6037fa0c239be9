//! The proof that a kind is not served (spec 10 §13.1, decision 38). The lists of groups prove nothing: a starting
//! kube-apiserver lacks the groups of its CustomResourceDefinitions, and answers 503 for the document of a version,
//! then 404 for some 10 ms (facts §7). So a proof takes three answers: `/readyz` was good, and later the version's
//! document and that of its group did not name the kind.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    super::{
        ApiError, ApiName, Resource,
        transport::{Call, Transport},
    },
    documents::{Version, legacy_resources, version_names},
    fetch::get,
};
use crate::object::{GroupKind, GroupVersionKind, api_version};

/// If readiness of the server is unknown, a version's absence counts after this time.
const UNREADY: Duration = Duration::from_secs(10);

/// Discovery's proof that a kind is served in no version. Code that deletes or forgets for this reason needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvedAbsent(GroupKind);

/// How a kind is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Serving {
    /// In the requested version, or else in another one.
    Served(Resource),
    /// In no version.
    Absent(ProvedAbsent),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// `None` if the version is not served.
    pub(super) version: Option<Version>,
    pub(super) all: Vec<ApiName>,
}

#[derive(Debug, Clone)]
pub(super) struct AbsenceVerdict {
    pub(super) number: u64,
    pub(super) asked: Instant,
    /// Since when no answer has named a resource of the version; only set if readiness of the server is unknown.
    pub(super) missing_since: Option<Instant>,
    pub(super) answer: Result<Answer, ApiError>,
}

impl ProvedAbsent {
    pub(super) fn new(kind: &GroupVersionKind) -> Self {
        Self(kind.group_kind())
    }

    /// The kind that is not served.
    pub fn kind(&self) -> &GroupKind {
        &self.0
    }
}

impl AbsenceVerdict {
    /// Asks the server. `before` is the last verdict of the same version.
    pub(super) async fn ask(
        transport: &Transport,
        (group, version): (&ApiName, &ApiName),
        number: u64,
        before: Option<Self>,
    ) -> Self {
        let asked = Instant::now();
        let (answer, is_proof) = match ask(transport, group, version).await {
            Ok((answer, is_proof)) => (Ok(answer), is_proof),
            Err(error) => {
                let text = format!("{}: {}", api_version(group, version), error.into_discovery_text());
                (Err(ApiError::Discovery(text)), false)
            }
        };
        let is_missing = answer.as_ref().is_ok_and(|answer| answer.version.is_none());
        let missing_since =
            (is_missing && !is_proof).then(|| before.and_then(|before| before.missing_since).unwrap_or(asked));
        let answer = match missing_since {
            Some(since) if asked < since + UNREADY => {
                let why = "access to /readyz is denied, so the absence must last before it counts";
                Err(ApiError::Discovery(format!("{}: not found, but {why}", api_version(group, version))))
            }
            Some(_) | None => answer,
        };
        Self { number, asked, missing_since, answer }
    }
}

/// Returns the answer, and whether it proves that what it lacks is absent.
async fn ask(transport: &Transport, group: &ApiName, version: &ApiName) -> Result<(Answer, bool), ApiError> {
    // First: the answers below count only if the server is ready already.
    let is_ready = is_ready(transport).await?;
    let root = if group.is_empty() { "/api" } else { "/apis" };
    let path = format!("{root}/{}", api_version(group, version));
    let version = match found(get(transport, &Call::read(path)).await)? {
        Some(answer) => Some(legacy_resources(group, version, &answer.json()?)?),
        None => None,
    };
    let path = if group.is_empty() { root.to_owned() } else { format!("{root}/{group}") };
    let all = match found(get(transport, &Call::read(path)).await)? {
        Some(answer) => version_names(&answer.json()?)?,
        None => Vec::new(),
    };
    Ok((Answer { version, all }, is_ready))
}

/// Returns true if the server is ready, and false if the right to read `/readyz` is missing.
async fn is_ready(transport: &Transport) -> Result<bool, ApiError> {
    match get(transport, &Call::read("/readyz".into()).accepting("*/*")).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_forbidden() => Ok(false),
        // The text lists all checks.
        Err(error) => Err(match error.code() {
            Some(401) => ApiError::Discovery("the API server rejects the credentials (401)".to_owned()),
            Some(code) => ApiError::Discovery(format!("the API server is not ready ({code})")),
            None => error,
        }),
    }
}

/// Returns `None` for a 404 of an API server itself; a proxy's 404 stays an error.
fn found<T>(answer: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.is_unknown_path() => Ok(None),
        Err(error) => Err(error),
    }
}
