//! `csr-autoapprove`: approves client certificates of gardenlets and of gardenadm (spec 81 B).
//!
//! `CSR ─ request.rs ─► GardenletRequest ─ requirements.rs ─► Recognized ─ token.rs (Shoots), review.rs ─► decision`
//!
//! All is pure except this file: an actor per undecided request. A request that differs in one point is never approved.
//! Only a request in the name of a self-hosted Shoot may be denied. A failed read is an error, never a denial.

pub mod request;
pub mod requirements;
pub mod review;
#[cfg(test)]
mod tests;
pub mod token;

use std::{rc::Rc, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use cluster::{CachedFields, Cluster, Context, Predicate, Watch, WatchOptions, object::NamespacedName};
use kit::{Controller, Failure, Observers, Outcome, Reconcile, Reconciler, quote::cut};
use serde_json::Value;

use self::{
    request::{GardenletRequest, is_undecided},
    requirements::{Certificate, Recognized, recognize},
    review::Decision,
};
use super::{
    context::{GardenContext, Registration, StartControllers, start},
    fields::text,
    figures::CERTIFICATE_REQUESTS,
};
use crate::api::{config::controller_manager::Config, kinds, meta::field::formats};

const NAME: &str = "csr-autoapprove"; // spec 80 §15

const IGNORED: &str = "ignored";
const UNREADABLE: &str = "unreadable";

/// The labels of metrics.
const DECISIONS: [&str; 4] = [review::APPROVED, review::DENIED, IGNORED, UNREADABLE];

/// The namespace of bootstrap tokens.
const TOKENS: &str = "kube-system";

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

struct Approver {
    workers: usize,
    observers: Rc<dyn Observers>,
    garden: Cluster,
    /// Undecided requests are kept whole, because the decision is sent with the whole object.
    requests: Watch<CachedFields<Option<Arc<Value>>>>,
}

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    let undecided = |csr: &Value| is_undecided(csr).then(|| Arc::new(csr.clone()));
    let approver = Approver {
        workers: config.controllers.certificate_signing_request.concurrent_syncs.count(),
        observers: ctx.env.observers.clone(),
        garden: ctx.garden.cluster.clone(),
        requests: ctx.garden.watches.open(WatchOptions::fields(kinds::CERTIFICATE_SIGNING_REQUEST, undecided)),
    };
    Some(start(approver, |approver, supervised| {
        for decision in DECISIONS {
            approver.observers.figure(CERTIFICATE_REQUESTS, decision, 0.0);
        }
        let changed = Predicate::any_change();
        approver.requests.on_change(supervised, changed, |name, csr| csr.fields.is_some().then(|| name.clone()));
    }))
}

impl Approver {
    /// Returns the decision about a recognized request; `None` if it must wait.
    async fn decide(
        &self,
        context: &Context,
        request: &GardenletRequest,
        certificate: Certificate,
    ) -> Result<Decision, Failure> {
        if certificate == Certificate::Shoot
            && let Err(reason) = self.check_token(context, request).await?
        {
            return Ok(Decision::Deny(reason));
        }
        let asked = review::review(request, certificate);
        let answer = self.garden.review(context, &kinds::SUBJECT_ACCESS_REVIEW, &asked).await;
        let answer =
            answer.map_err(|error| Failure::new(format!("failed checking subresource authorization: {error}")))?;
        if !review::is_allowed(&answer) {
            let reason = text(&answer, "/status/reason");
            let text = "recognized CSR but SubjectAccessReview was not allowed";
            return Err(Failure::new(format!("{text}: {reason}")));
        }
        Ok(Decision::Approve)
    }

    /// Checks the bootstrap token of the user (spec 81 B.4). The inner error is the reason to deny the request.
    async fn check_token(&self, context: &Context, request: &GardenletRequest) -> Result<Result<(), String>, Failure> {
        let id = match token::id_of(request) {
            Ok(id) => id,
            Err(reason) => return Ok(Err(reason)),
        };
        let name = format!("bootstrap-token-{id}");
        // A name that no Secret can have is not asked for.
        let secret = if id.is_empty() || !formats::dns_subdomain(&name).is_empty() {
            None
        } else {
            let at = kinds::SECRET.at(TOKENS, name);
            let read = self.garden.find(context, &at).await;
            read.map_err(|error| Failure::new(format!("failed to read bootstrap token secret: {error}")))?
        };
        let Some(secret) = secret else { return Ok(Err(token::NOT_FOUND.to_owned())) };
        let description = BASE64_STANDARD.decode(text(&secret, "/data/description")).unwrap_or_default();
        Ok(token::check(&String::from_utf8_lossy(&description), &request.certificate.common_name))
    }

    fn count(&self, decision: &'static str) {
        self.observers.figure(CERTIFICATE_REQUESTS, decision, 1.0);
    }

    /// Writes a decision. The version of the request is the lock.
    async fn write(&self, context: &Context, csr: &Value, decision: &Decision) -> Result<(), Failure> {
        let at = self.requests.resource().named(&NamespacedName::of(csr));
        let body = review::decided(csr.clone(), decision);
        let write = self.garden.replace(context, &at, Some("approval"), &body);
        match self.requests.enter_answer_of(context, write).await {
            Ok(_) => {
                tracing::info!("{}", decision.done());
                self.count(decision.label());
            }
            Err(error) if error.is_not_found() => {} // spec 81 B-T4
            Err(error) => {
                let verb = decision.verb();
                return Err(Failure::new(format!("failed {verb} CertificateSigningRequest: {error}")));
            }
        }
        Ok(())
    }
}

impl Controller for Approver {
    type Key = NamespacedName;
    type Memory = ();

    fn reconcilers(&self) -> Vec<Reconciler> {
        let reconciler = Reconciler::new(NAME, self.workers);
        let reconciler = reconciler.about(("certificates.k8s.io", "CertificateSigningRequest"));
        vec![reconciler.requires(self.requests.sync_requirement())]
    }

    async fn reconcile(
        self: &Rc<Self>,
        (): &mut (),
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let known = self.requests.store().with(&reconcile.key, |csr| csr.fields.clone());
        let Some(csr) = known.flatten() else {
            tracing::debug!("Ignoring CSR, as it is in final state");
            return Ok(Outcome::Retire);
        };
        let request = match GardenletRequest::read(&csr) {
            Ok(Some(request)) => request,
            Ok(None) => {
                tracing::debug!("Ignoring CSR, as it is for another signer");
                return Ok(Outcome::Retire);
            }
            Err(error) => {
                tracing::error!("unable to parse csr: {error}");
                reconcile.note(format!("is left alone: its request cannot be read: {error}"));
                self.count(UNREADABLE);
                return Ok(Outcome::Done); // it never changes: no retry
            }
        };
        let certificate = match recognize(&request) {
            Recognized::Certificate(certificate) => certificate,
            Recognized::Nothing(reasons) => {
                reasons.log(&request);
                reconcile.note("is left alone: it is not of a gardenlet");
                reconcile.detail(reasons.lines());
                self.count(IGNORED);
                return Ok(Outcome::Done);
            }
        };
        let context = Context::new(reconcile.priority(), reconcile.deadline, reconcile.key.to_string());
        reconcile.note(format!("asks for a {} certificate, as {}", certificate.subresource(), cut(&request.username)));
        let decision = self.decide(&context, &request, certificate).await?;
        if decision == Decision::Approve {
            tracing::info!("Auto-approving CSR");
        }
        self.write(&context, &csr, &decision).await?;
        Ok(Outcome::Retire)
    }
}
