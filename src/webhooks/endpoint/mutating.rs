//! A mutating webhook as an endpoint.

use std::sync::Arc;

use tracing::Span;

use super::{Account, Conclusion, Endpoint};
use crate::webhooks::{
    exchange::Received,
    mutating::Mutator,
    review::{FailurePolicy, Identity, Judged, Refusal, Review, ReviewVerdict, attempt, decode, reply},
    view::{Lookup, View},
};

/// Answers AdmissionReviews with the patches of a [`Mutator`].
#[derive(Clone)]
pub struct Mutating {
    /// The failure policy of its registration.
    pub failure_policy: FailurePolicy,
    /// The webhook.
    pub mutator: Arc<dyn Mutator>,
}

impl Mutating {
    /// Consumes the review, so that its object is freed.
    fn conclude(&self, review: Review, verdict: ReviewVerdict) -> Conclusion {
        let reply = reply(&review.identity, &verdict, self.failure_policy);
        let Review { identity: _, operation, namespace, name, kind: _, object: _ } = review;
        let judged = Judged::Reviewed { operation, namespace, name, verdict };
        Conclusion { reply, account: Account::Admission(judged, None) }
    }
}

pub(super) fn of_review(identity: &Identity) {
    Span::current().record("uid", &*identity.uid);
}

pub(super) fn refuse(refusal: Refusal) -> Conclusion {
    of_review(&refusal.identity);
    Conclusion { reply: refusal.reply(), account: Account::Admission(Judged::Refused(refusal), None) }
}

impl Endpoint for Mutating {
    fn answer(&self, received: &Received, view: &dyn View) -> Result<Conclusion, Lookup> {
        let review = match decode(&received.body, &received.content_type) {
            Ok(review) => review,
            Err(refusal) => return Ok(refuse(refusal)),
        };
        of_review(&review.identity);
        let verdict = attempt(&*self.mutator, &review, view)?;
        Ok(self.conclude(review, verdict))
    }

    fn give_up(&self, received: &Received, why: &str) -> Conclusion {
        let verdict = ReviewVerdict::Errored { code: 500, message: why.to_owned() };
        match decode(&received.body, &received.content_type) {
            Ok(review) => self.conclude(review, verdict),
            Err(refusal) => refuse(refusal),
        }
    }
}
