//! Authorization webhooks: whether a user of the target cluster may do something (spec 61).
//!
//! ```text
//! review.rs: decode ─► Attributes ─► an Authorizer: decide(attributes, view) ─► Decision ─► answer.rs: JSON
//! ```
//!
//! * `review.rs`: SubjectAccessReviews, from bytes to attributes, which borrow from the bytes; `selector.rs`: field selectors;
//!   `text.rs`: texts that are borrowed.
//! * `answer.rs`: the answer. Errors are told inside of HTTP 200.
//! * [`node_agent`]: the one authorizer there is.

mod answer;
pub mod node_agent;
mod review;
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
    panics::caught,
    view::{Failure, Lookup, View},
};
pub use review::{Action, Attributes, Refusal, ResourceAction, Review, decode};
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

/// What became of a SubjectAccessReview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    /// There is a decision.
    Decided(Decision),
    /// There is none, for a reason that `status.evaluationError` tells: a code and a text.
    Failed {
        /// As if it were an HTTP status.
        code: u16,
        /// The text.
        message: String,
    },
    /// The authorizer panicked with this text.
    Panicked(String),
}

/// A SubjectAccessReview and what became of it, for statistics and log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorized {
    /// See [`Authorizer::logger`].
    pub logger: &'static str,
    /// See [`Authorizer::topic`].
    pub topic: &'static str,
    /// Who asked; empty if the request was no review.
    pub asked: Asked,
    /// What became of it.
    pub ruling: Ruling,
}

/// What is logged of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// `spec.user`.
    pub user: String,
    /// Verb.
    pub verb: String,
    /// Namespace.
    pub namespace: String,
    /// Plural name of the kind, or the path.
    pub resource: String,
    /// Subresource.
    pub subresource: String,
    /// Name.
    pub name: String,
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
    fn rule(&self, attributes: &Attributes<'_>, view: &dyn View) -> Result<Ruling, Lookup> {
        match caught(|| self.authorizer.decide(attributes, view)) {
            Ok(Ok(decision)) => Ok(Ruling::Decided(decision)),
            Ok(Err(Failure::Look(lookup))) => Err(lookup),
            Ok(Err(failure)) => Ok(Ruling::Failed { code: 500, message: failure.text().to_owned() }),
            Err(panic) => Ok(Ruling::Panicked(panic)),
        }
    }

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
            Ok(review) => Ok(self.conclude(&review, self.rule(&review.attributes, view)?)),
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

// === impl Ruling ===

impl Ruling {
    /// For metrics: one of [`DECISIONS`](crate::metrics::DECISIONS).
    pub fn outcome(&self) -> &'static str {
        match self {
            Self::Decided(Decision::Allow) => "allow",
            Self::Decided(Decision::Deny(_)) => "deny",
            Self::Decided(Decision::NoOpinion) => "no_opinion",
            Self::Failed { .. } | Self::Panicked(_) => "error",
        }
    }
}

// === impl Asked ===

impl Asked {
    fn of(attributes: &Attributes<'_>) -> Self {
        let user = attributes.user.to_string();
        match &attributes.action {
            Action::Resource(action) => Self {
                user,
                verb: action.verb.to_string(),
                namespace: action.namespace.to_string(),
                resource: action.resource.to_string(),
                subresource: action.subresource.to_string(),
                name: action.name.to_string(),
            },
            Action::Path | Action::None => Self { user, ..Self::default() },
        }
    }
}
