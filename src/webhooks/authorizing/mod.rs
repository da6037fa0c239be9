//! Authorization webhooks: whether a user of the target cluster may do something (spec 61).
//!
//! ```text
//! review.rs: decode ─► Attributes ─► an Authorizer: decide(attributes, view) ─► Decision ─► answer.rs: JSON
//! ```
//!
//! * `review.rs`: SubjectAccessReviews, from bytes to attributes, which borrow from the bytes; `selector.rs`: field selectors;
//!   `text.rs`: texts that are borrowed.
//! * `ruling.rs`: what becomes of a review: a decision, an error, a panic. `answer.rs`: the answer. Errors are told inside of HTTP 200.
//! * [`node_agent`]: the one authorizer there is.

mod answer;
pub mod node_agent;
mod review;
mod ruling;
mod selector;
mod text;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::{
    endpoint::{Account, Answer, Endpoint},
    exchange::{Received, Reply},
    view::{Failure, Lookup, View},
};
pub use review::{Action, Attributes, Refusal, ResourceAction, Review, decode};
pub use ruling::{Asked, Authorized, Ruling, rule};
pub use selector::{Requirement, Requirements, Selector};

/// Decides what users may do.
pub trait Authorizer: Send + Sync {
    /// The decision on a request, from what `view` knows. Free of side effects, and nothing is remembered.
    ///
    /// # Errors
    /// Why there is none; [`Failure::Look`] asks for a live read, and to be called again.
    fn decide(&self, attributes: &Attributes<'_>, view: &dyn View) -> Result<Decision, Failure>;

    /// What kind of object the request is about, for metrics: one of
    /// [`DECIDED_RESOURCES`](crate::metrics::DECIDED_RESOURCES).
    fn topic(&self, attributes: &Attributes<'_>) -> &'static str;

    /// Under which name it logs.
    fn logger(&self) -> &'static str;
}

/// What an authorizer says (spec 61 §1.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The user may.
    Allow,
    /// The user may not, whatever other authorizers say, for this reason; it may be empty.
    Deny(String),
    /// That is for others to say.
    NoOpinion,
}

/// Answers SubjectAccessReviews with what an [`Authorizer`] decides.
#[derive(Clone)]
pub struct Authorizing {
    /// Who decides.
    pub authorizer: Arc<dyn Authorizer>,
}

/// The topic of a request that is no review.
const NO_TOPIC: &str = "other";

// === impl Authorizing ===

impl Authorizing {
    fn conclude(&self, review: &Review<'_>, ruling: Ruling) -> Answer {
        let reply = answer::reply(&review.api_version, &review.kind, &ruling);
        let topic = self.authorizer.topic(&review.attributes);
        let asked = Asked::of(&review.attributes);
        self.account(reply, topic, asked, ruling)
    }

    fn refuse(&self, refusal: Refusal) -> Answer {
        let Refusal { api_version, kind, code, message } = refusal;
        let ruling = Ruling::Failed { code, message };
        let reply = answer::reply(&api_version, &kind, &ruling);
        self.account(reply, NO_TOPIC, Asked::default(), ruling)
    }

    fn account(&self, reply: Reply, topic: &'static str, asked: Asked, ruling: Ruling) -> Answer {
        let logger = self.authorizer.logger();
        Answer { reply, account: Account::Authorization(Authorized { logger, topic, asked, ruling }) }
    }
}

impl Endpoint for Authorizing {
    fn answer(&self, received: &Received, view: &dyn View) -> Result<Answer, Lookup> {
        match decode(received) {
            Ok(review) => Ok(self.conclude(&review, rule(&*self.authorizer, &review.attributes, view)?)),
            Err(refusal) => Ok(self.refuse(refusal)),
        }
    }

    fn give_up(&self, received: &Received, why: &str) -> Answer {
        match decode(received) {
            Ok(review) => self.conclude(&review, Ruling::Failed { code: 500, message: why.to_owned() }),
            Err(refusal) => self.refuse(refusal),
        }
    }
}
