//! A take-over as the API server saw it: by the audit log and the Lease, all by the clock of this machine.

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

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Term {
    holder: String,
    acquired: Timestamp,
}

#[derive(Debug)]
pub(super) struct TakeOver {
    /// When the former leader's last update of the Lease since the mark was answered: its release, if it was released.
    pub(super) given_up: Option<Timestamp>,
    pub(super) acquired: Timestamp,
    /// When the API server answered the first write of the next leader.
    pub(super) first_effect: Timestamp,
    /// Writes between the release of the Lease and its next acquisition.
    pub(super) stray: Vec<String>,
}

pub(super) async fn term(admin: &Admin) -> Result<Term> {
    let lease = admin.get(LEASE).await?;
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
    ensure!(!holder.is_empty(), "no replica leads");
    Ok(Term { holder, acquired: time(&lease["spec"]["acquireTime"])? })
}

pub(super) async fn term_after(admin: &Admin, former: &Term) -> Result<Term> {
    let term = term(admin).await?;
    ensure!(term.holder != former.holder, "{} leads still", former.holder);
    Ok(term)
}

/// Returns the take-over since `mark` (in the audit log) that led to `term`. Fails while it has had no effect yet.
pub(super) fn take_over(cluster: &ControlPlane, mark: u64, term: &Term) -> Result<TakeOver> {
    let (mut given_up, mut first_effect, mut writes) = (None, None, Vec::new());
    for event in cluster.audit(User::Grm, mark)?.iter().filter(|event| is_write(event)) {
        let (received, answered) = (time(&event["requestReceivedTimestamp"])?, time(&event["stageTimestamp"])?);
        let before = received < term.acquired;
        match event["objectRef"]["resource"].as_str() {
            Some("leases") if before => given_up = given_up.max(Some(answered)),
            // These have no effect on objects, and a leader sends its last ones after it has released the Lease.
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

pub(super) fn between(earlier: Timestamp, later: Timestamp) -> Duration {
    later.duration_since(earlier).try_into().unwrap_or_default()
}

pub(super) fn is_write(event: &Value) -> bool {
    let written = matches!(event["verb"].as_str(), Some("create" | "update" | "patch" | "delete"));
    written && event["responseStatus"]["code"].as_u64().is_some_and(|code| code < 300) && !is_question(event)
}

/// A review only asks.
fn is_question(event: &Value) -> bool {
    matches!(event["objectRef"]["resource"].as_str(), Some("tokenreviews" | "subjectaccessreviews"))
}

fn time(value: &Value) -> Result<Timestamp> {
    let text = value.as_str().ok_or_else(|| anyhow!("{value} is no time, in {NAMESPACE}"))?;
    text.parse().with_context(|| format!("the time {text}"))
}
