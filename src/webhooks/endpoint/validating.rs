//! A validating webhook as an endpoint.

use std::sync::Arc;

use super::{
    Account, Conclusion, Endpoint,
    mutating::{of_review, refuse},
};
use crate::webhooks::{
    exchange::Received,
    panics::caught,
    review::{FailurePolicy, Judged, ReviewVerdict, reply},
    validating::{Judgement, Review, Validated, Validator, decode},
    view::{Failure, Lookup, View},
};

/// Answers AdmissionReviews with the verdicts of a [`Validator`].
#[derive(Clone)]
pub struct Validating {
    /// The webhook.
    pub validator: Arc<dyn Validator>,
}

impl Validating {
    fn conclude(&self, review: &Review<'_>, judgement: Judgement) -> Conclusion {
        let validated = match &judgement.verdict {
            // A validator that panicked is not called again.
            ReviewVerdict::Panicked(_) => Validated { resource: "other", is_denied: false, deletion: None },
            _ => self.validator.account(review, &judgement),
        };
        let verdict = judgement.verdict;
        let reply = reply(&review.identity, &verdict, FailurePolicy::Fail);
        let judged = Judged::Reviewed {
            operation: review.operation.to_string(),
            namespace: review.namespace.to_string(),
            name: review.name.to_string(),
            verdict,
        };
        Conclusion { reply, account: Account::Admission(judged, Some(validated)) }
    }
}

impl Endpoint for Validating {
    fn answer(&self, received: &Received, view: &dyn View) -> Result<Conclusion, Lookup> {
        let review = match decode(received, self.validator.extent()) {
            Ok(review) => review,
            Err(refusal) => return Ok(refuse(refusal)),
        };
        of_review(&review.identity);
        let judgement = match caught(|| self.validator.judge(&review, view)) {
            Ok(Ok(judgement)) => judgement,
            Ok(Err(Failure::ReadLive(lookup))) => return Err(lookup),
            Ok(Err(failure)) => ReviewVerdict::Errored { code: 500, message: failure.text().to_owned() }.into(),
            Err(panic) => ReviewVerdict::Panicked(panic).into(),
        };
        Ok(self.conclude(&review, judgement))
    }

    fn give_up(&self, received: &Received, why: &str) -> Conclusion {
        match decode(received, self.validator.extent()) {
            Ok(review) => self.conclude(&review, ReviewVerdict::Errored { code: 500, message: why.to_owned() }.into()),
            Err(refusal) => refuse(refusal),
        }
    }
}
