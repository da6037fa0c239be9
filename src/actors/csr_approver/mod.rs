//! Approves or denies CertificateSigningRequests of kubelets (serving), node agents and gardenadm (spec 32).
//!
//! ```text
//! CSR ─ csr.rs ─► Csr ─ judge.rs ─► Verdict ─ condition.rs ─► CSR with its decision
//!       request.rs       facts.rs: Nodes, Machines, from stores.rs or read live
//! ```
//!
//! Pure: [`judge`], who gets which certificate (**start reading there**); [`csr`], which requests are judged, and what is
//! read of them; [`request`], PKCS#10 as Go reads it; [`facts`] and [`condition`]. `stores` watches Nodes and Machines. This
//! file is the shell: an actor per undecided request. A read that fails is an error of its pass, never a denial.

pub mod condition;
pub mod csr;
pub mod facts;
pub mod judge;
pub mod request;
mod stores;
#[cfg(test)]
mod tests;

use std::{rc::Rc, sync::Arc, time::Duration};

use cluster::{Cluster, Context, Projected, Want, Watch, object::NamespacedName};
use kit::{Causes, Clock, Controller, Duty, Failure, Outcome, Pass, Supervised, Wake};
use serde_json::Value;

use condition::decided;
use csr::{Csr, age, wants};
use stores::Stores;

use super::{
    ground::Ground,
    module::{Lead, Module},
};
use crate::api::config::Config;

/// Name in metrics and logs (spec 70 §9.2).
pub const NAME: &str = "csr-approver";

/// The approver; on with `controllers.csrApprover.enabled`.
pub const MODULE: Module = Module { names: &[NAME], install };

/// How often a request is looked at that waits for a Node or Machine, although nothing was heard of these.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The approver, in the hands of its actors.
struct Approver {
    permits: usize,
    target: Cluster,
    /// Whole while they wait for a decision: the decision is sent with all of what was read.
    requests: Watch<Projected<Option<Arc<Value>>>>,
    stores: Stores,
    clock: Clock,
}

fn install(config: &Config, ground: &Ground) -> Option<Lead> {
    let settings = config.controllers.csr_approver.clone()?;
    let undecided = |csr: &Value| Projected::of(csr, wants(csr).then(|| Arc::new(csr.clone())));
    let requests = ground.target.watches.open(Want::new(csr::resource(), undecided));
    let stores = Stores::open(ground, settings.machine_namespace);
    Some(Box::new(move |ground| {
        let (target, clock) = (ground.target.cluster.clone(), ground.env.clock.clone());
        let permits = settings.concurrent_syncs;
        let approver = Approver { permits, target, requests: requests.clone(), stores, clock };
        let supervised = Supervised::start(Rc::new(approver), &ground.env);
        let waker = supervised.weak();
        requests.subscribe(move |change| {
            if change.new.is_some_and(|csr| csr.fields.is_some()) {
                waker.wake(change.name, Wake::live(Causes::OBJECT));
            }
        });
        supervised.into()
    }))
}

impl Controller for Approver {
    type Key = NamespacedName;
    type Object = ();
    type Memory = ();

    fn name(&self) -> &'static str {
        NAME
    }

    fn duties(&self) -> Vec<Duty> {
        let duty = Duty::new(NAME, self.permits).needs(self.requests.need());
        vec![self.stores.needs().into_iter().fold(duty, Duty::needs)]
    }

    fn object(&self, _: &NamespacedName) {}

    async fn pass(self: &Rc<Self>, _: &Rc<()>, (): &mut (), pass: &Pass<NamespacedName>) -> Result<Outcome, Failure> {
        let known = self.requests.store().with(&pass.key, |csr| csr.fields.clone());
        let Some(object) = known.flatten() else { return Ok(Outcome::Retire) };
        let csr = match Csr::read(&object) {
            Ok(Some(csr)) => csr,
            Ok(None) => return Ok(Outcome::Retire),
            Err(error) => {
                tracing::error!(name = %pass.key, %error, "a certificate signing request is left alone");
                return Ok(Outcome::Retire); // it cannot change: "Better than upstream" 7
            }
        };
        let context = Context::new(pass.lane(), pass.deadline, pass.key.to_string());
        let verdict = self.stores.judge(&context, &csr).await?;
        if verdict.may_wait(age(&object, self.clock.wall())) {
            return Ok(Outcome::After(LOOK_AGAIN));
        }
        let Some(body) = decided(Value::clone(&object), &verdict) else { return Ok(Outcome::Retire) };
        let (at, asked) = (self.requests.resource().at("", &pass.key.name), self.clock.monotonic());
        match self.target.replace(&context, &at, Some("approval"), &body).await {
            Ok(answer) => self.requests.wrote(&answer, &pass.key.to_string(), asked),
            Err(error) if error.is_not_found() => {} // spec 32 T10
            Err(error) => return Err(error.into()),
        }
        pass.note(format!("{verdict}"));
        Ok(Outcome::Retire)
    }
}
