//! A take-over as the API server saw it.
//!
//! The times are those of the audit log and of the Lease, all by the clock of this machine.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use jiff::Timestamp;
use serde_json::Value;

use super::NAMESPACE;
use crate::{
    objects::Admin,
    support::{ControlPlane, User},
};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/take-over/leases/gardener-resource-manager";

/// Who leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Term {
    holder: String,
    /// When its holder asked for it.
    acquired: Timestamp,
}

/// A finished take-over.
#[derive(Debug)]
pub(super) struct TakeOver {
    /// The last update of the Lease before the next leader's was answered: the release, if it was given up. `None`: it was
    /// not updated since the mark.
    pub(super) given_up: Option<Timestamp>,
    /// The next leader asked for the Lease.
    pub(super) acquired: Timestamp,
    /// The API server answered the first write of the next leader.
    pub(super) first_effect: Timestamp,
    /// Writes that came when the Lease was given up and not yet asked for.
    pub(super) stray: Vec<String>,
}

/// The leader; an error while there is none.
pub(super) async fn term(admin: &Admin) -> Result<Term> {
    let lease = admin.get(LEASE).await?;
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
    ensure!(!holder.is_empty(), "no replica leads");
    Ok(Term { holder, acquired: time(&lease["spec"]["acquireTime"])? })
}

/// The leader; an error while there is none, or still the former one.
pub(super) async fn term_after(admin: &Admin, former: &Term) -> Result<Term> {
    let term = term(admin).await?;
    ensure!(term.holder != former.holder, "{} leads still", former.holder);
    Ok(term)
}

/// The take-over that led to `term`; an error while it has had no effect yet. `mark`: before it, in the audit log.
pub(super) fn take_over(cluster: &ControlPlane, mark: u64, term: &Term) -> Result<TakeOver> {
    let (mut given_up, mut first_effect, mut writes) = (None, None, Vec::new());
    for event in cluster.audit(User::Grm, mark)?.iter().filter(|event| is_write(event)) {
        let (received, answered) = (time(&event["requestReceivedTimestamp"])?, time(&event["stageTimestamp"])?);
        let before = received < term.acquired;
        match event["objectRef"]["resource"].as_str() {
            Some("leases") if before => given_up = given_up.max(Some(answered)),
            // Messages: of no effect, and the leaving leader sends its last ones when it has given up.
            Some("leases" | "events") => {}
            _ if before => writes.push((received, event["requestURI"].to_string())),
            _ => first_effect = Some(first_effect.map_or(answered, |first: Timestamp| first.min(answered))),
        }
    }
    let is_stray = |received: Timestamp| given_up.is_some_and(|given_up| received > given_up);
    Ok(TakeOver {
        given_up,
        acquired: term.acquired,
        first_effect: first_effect.ok_or_else(|| anyhow!("the next leader has written nothing"))?,
        stray: writes.into_iter().filter(|(received, _)| is_stray(*received)).map(|(_, write)| write).collect(),
    })
}

/// From `earlier` to `later`; zero if it is the other way round.
pub(super) fn between(earlier: Timestamp, later: Timestamp) -> Duration {
    later.duration_since(earlier).try_into().unwrap_or_default()
}

/// Whether a request changed something.
pub(super) fn is_write(event: &Value) -> bool {
    let written = matches!(event["verb"].as_str(), Some("create" | "update" | "patch" | "delete"));
    written && event["responseStatus"]["code"].as_u64().is_some_and(|code| code < 300) && !is_question(event)
}

/// Whether it only asks.
fn is_question(event: &Value) -> bool {
    matches!(event["objectRef"]["resource"].as_str(), Some("tokenreviews" | "subjectaccessreviews"))
}

fn time(value: &Value) -> Result<Timestamp> {
    let text = value.as_str().ok_or_else(|| anyhow!("{value} is no time, in {NAMESPACE}"))?;
    text.parse().with_context(|| format!("the time {text}"))
}
