//! The outcome of a SubjectAccessReview (spec 61 §1.2, §8).

use kit::quote::cut;

use super::{Action, Attributes, Authorizer, Decision};
use crate::webhooks::{
    panics::caught,
    view::{Failure, Lookup, View},
};

/// The outcome of a SubjectAccessReview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    /// A decision.
    Decided(Decision),
    /// No decision; `status.evaluationError` reports the code and the text.
    Failed {
        /// The code, as if it were an HTTP status.
        code: u16,
        /// The text.
        message: String,
    },
    /// The authorizer panicked with this text.
    Panicked(String),
}

/// A SubjectAccessReview and its outcome, for statistics and log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authorized {
    /// See [`Authorizer::logger`].
    pub logger: &'static str,
    /// See [`Authorizer::topic`].
    pub topic: &'static str,
    /// The question; empty if the request was no review.
    pub asked: Asked,
    /// The outcome.
    pub ruling: Ruling,
}

/// What is logged of a request. Absent fields are empty; very long strings are [cut].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// `spec.user`.
    pub user: String,
    /// Verb.
    pub verb: String,
    /// Namespace.
    pub namespace: String,
    /// API group.
    pub group: String,
    /// Plural name of the kind.
    pub resource: String,
    /// Subresource.
    pub subresource: String,
    /// Name.
    pub name: String,
    /// Path, if the request is not about objects.
    pub path: String,
}

/// Runs an authorizer; a panic is an outcome too. Fails with what must be read live before the next attempt.
pub fn rule(authorizer: &dyn Authorizer, attributes: &Attributes<'_>, view: &dyn View) -> Result<Ruling, Lookup> {
    match caught(|| authorizer.decide(attributes, view)) {
        Ok(Ok(decision)) => Ok(Ruling::Decided(decision)),
        Ok(Err(Failure::ReadLive(lookup))) => Err(lookup),
        Ok(Err(failure)) => Ok(Ruling::Failed { code: 500, message: failure.text().to_owned() }),
        Err(panic) => Ok(Ruling::Panicked(panic)),
    }
}

impl Ruling {
    /// Returns the value for metrics: one of [`DECISIONS`](crate::webhooks::server::metrics::DECISIONS).
    pub fn outcome(&self) -> &'static str {
        match self {
            Self::Decided(Decision::Allow) => "allow",
            Self::Decided(Decision::Deny(_)) => "deny",
            Self::Decided(Decision::NoOpinion) => "no_opinion",
            Self::Failed { .. } | Self::Panicked(_) => "error",
        }
    }
}

impl Asked {
    /// Takes the fields from a request.
    pub fn of(attributes: &Attributes<'_>) -> Self {
        let text = |text: &str| cut(text).into_owned();
        let user = text(&attributes.user);
        match &attributes.action {
            Action::Resource(action) => Self {
                user,
                verb: text(&action.verb),
                namespace: text(&action.namespace),
                group: text(&action.group),
                resource: text(&action.resource),
                subresource: text(&action.subresource),
                name: text(&action.name),
                path: String::new(),
            },
            Action::Path(action) => {
                Self { user, verb: text(&action.verb), path: text(&action.path), ..Self::default() }
            }
            Action::None => Self { user, ..Self::default() },
        }
    }
}
