//! Approves or denies CertificateSigningRequests of kubelets (serving), node agents and gardenadm (spec 32).
//!
//! `CSR ─ csr.rs ─► Csr ─ judge.rs, facts.rs ─► Verdict ─ condition.rs ─► CSR with its decision`
//!
//! **Start reading at [`judge`]**: which user gets which certificate. All is pure except `stores` (watches of Nodes and
//! Machines) and this file: an actor per undecided request. A failed read is an error, never a denial.

pub mod condition;
pub mod csr;
pub mod facts;
pub mod judge;
mod stores;
#[cfg(test)]
pub(crate) mod tests;

use std::{rc::Rc, time::Duration};

use cluster::{Cluster, Context, Index, Predicate, object::NamespacedName};
use kit::{Controller, Failure, Outcome, Reconcile, Reconciler, quote::cut};
use serde_json::Value;
use tokio::time::Instant;

use self::{condition::decided, stores::Stores};
use super::controller_context::{ControllerContext, Registration, StartControllers, start};
use crate::api::config::resource_manager::Config;

/// Name in metrics and logs (spec 70 §9.2).
pub const NAME: &str = "csr-approver";

/// Registers the controller; `controllers.csrApprover.enabled` turns it on.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

struct Approver {
    permits: usize,
    resync: Duration,
    target: Cluster,
    requests: csr::Requests,
    by_node: Index<String>,
    stores: Stores,
}

fn setup(config: &Config, ctx: &ControllerContext) -> Option<StartControllers> {
    let settings = config.controllers.csr_approver.on()?;
    let requests = csr::watch(&ctx.target.watches);
    let approver = Approver {
        permits: settings.concurrent_syncs.count(),
        resync: config.target.cache_resync_period.get(),
        target: ctx.target.cluster.clone(),
        by_node: csr::index_by_node(&requests),
        requests,
        stores: Stores::open(ctx, settings.machine_namespace.clone()),
    };
    Some(start(approver, |approver, supervised| {
        let changed = Predicate::any_change().including_own_writes();
        approver.requests.on_change(supervised, changed, |name, csr| csr.fields.is_some().then(|| name.clone()));
        approver.stores.wake_on_changes(supervised, &approver.by_node);
    }))
}

impl Controller for Approver {
    type Key = NamespacedName;
    /// When the request was reconciled for the first time.
    type Memory = Option<Instant>;

    fn reconcilers(&self) -> Vec<Reconciler> {
        vec![
            Reconciler::new(NAME, self.permits)
                .about(csr::KIND)
                .resync(self.resync)
                .requires(self.requests.sync_requirement()),
        ]
    }

    async fn reconcile(
        self: &Rc<Self>,
        first: &mut Option<Instant>,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let known = self.requests.store().with(&reconcile.key, |csr| csr.fields.clone());
        let Some(object) = known.flatten() else { return Ok(Outcome::Retire) };
        let csr = match csr::Csr::read(&object) {
            Ok(Some(csr)) => csr,
            Ok(None) => return Ok(Outcome::Retire),
            Err(error) => {
                tracing::error!(%error, "a certificate signing request is left alone");
                return Ok(Outcome::Done); // immutable: spec 32 "Better than upstream" 7
            }
        };
        let context = Context::new(reconcile.priority(), reconcile.deadline, reconcile.key.to_string());
        let now = self.target.clock().monotonic();
        let waited = now - *first.get_or_insert(now); // clocks may differ
        let age = csr::age(&object, self.target.clock().wall()).max(waited);
        let verdict = self.stores.judge(&context, &csr, age).await?;
        if let Some(left) = verdict.wait(age) {
            return Ok(Outcome::After(left)); // or when its Node or Machine changes
        }
        reconcile.note(format!("{verdict}"));
        tracing::debug!(%verdict, "a certificate signing request is judged"); // spec 32 §7 C3
        let Some(body) = decided(Value::clone(&object), &verdict) else { return Ok(Outcome::Done) };
        let at = self.requests.resource().at("", &reconcile.key.name);
        let decide = self.target.replace(&context, &at, Some("approval"), &body);
        match self.requests.enter_answer_of(&context, decide).await {
            Ok(_) => {
                let username = &*cut(&csr.username);
                tracing::info!(username, %verdict, "a certificate signing request is decided");
            }
            Err(error) if error.is_not_found() => {} // spec 32 T10
            Err(error) => return Err(error.into()),
        }
        Ok(Outcome::Retire)
    }
}
