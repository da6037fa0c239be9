//! What becomes of a SubjectAccessReview (spec 61 §1.2, §8).

use super::{Action, Attributes, Authorizer, Decision};
use crate::{
    api::quote::cut,
    webhooks::{
        panics::caught,
        view::{Failure, Lookup, View},
    },
};

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

/// What is logged of a request; what does not apply is empty, and absurdly long texts are [cut].
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
    /// Path, of a request that is about no object.
    pub path: String,
}

/// Has an authorizer look at a request, with what `view` knows. A panic is a ruling like another.
///
/// # Errors
/// What must be read live before the next attempt.
pub fn rule(authorizer: &dyn Authorizer, attributes: &Attributes<'_>, view: &dyn View) -> Result<Ruling, Lookup> {
    match caught(|| authorizer.decide(attributes, view)) {
        Ok(Ok(decision)) => Ok(Ruling::Decided(decision)),
        Ok(Err(Failure::Look(lookup))) => Err(lookup),
        Ok(Err(failure)) => Ok(Ruling::Failed { code: 500, message: failure.text().to_owned() }),
        Err(panic) => Ok(Ruling::Panicked(panic)),
    }
}

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

impl Asked {
    /// Of a request.
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
