//! An authorization webhook as an endpoint.

use std::sync::Arc;

use super::{Account, Conclusion, Endpoint};
use crate::webhooks::{
    authorizing::{Asked, Authorized, Authorizer, NO_TOPIC, Review, Ruling, decode, reply, rule},
    exchange::{Received, Reply},
    review::Refusal,
    view::{Lookup, View},
};

/// Answers SubjectAccessReviews with the decisions of an [`Authorizer`].
#[derive(Clone)]
pub struct Authorizing {
    /// The authorizer.
    pub authorizer: Arc<dyn Authorizer>,
}

impl Authorizing {
    fn conclude(&self, review: &Review<'_>, ruling: Ruling) -> Conclusion {
        let reply = reply(&review.api_version, &review.kind, &ruling);
        let topic = self.authorizer.topic(&review.attributes);
        let asked = Asked::of(&review.attributes);
        self.account(reply, topic, asked, ruling)
    }

    fn refuse(&self, refusal: Refusal) -> Conclusion {
        let Refusal { identity, code, message } = refusal;
        let ruling = Ruling::Failed { code, message };
        let reply = reply(&identity.api_version, &identity.kind, &ruling);
        self.account(reply, NO_TOPIC, Asked::default(), ruling)
    }

    fn account(&self, reply: Reply, topic: &'static str, asked: Asked, ruling: Ruling) -> Conclusion {
        let logger = self.authorizer.logger();
        Conclusion { reply, account: Account::Authorization(Authorized { logger, topic, asked, ruling }) }
    }
}

impl Endpoint for Authorizing {
    fn answer(&self, received: &Received, view: &dyn View) -> Result<Conclusion, Lookup> {
        match decode(received) {
            Ok(review) => Ok(self.conclude(&review, rule(&*self.authorizer, &review.attributes, view)?)),
            Err(refusal) => Ok(self.refuse(refusal)),
        }
    }

    fn logger(&self) -> Option<&'static str> {
        Some(self.authorizer.logger())
    }

    fn give_up(&self, received: &Received, why: &str) -> Conclusion {
        match decode(received) {
            Ok(review) => self.conclude(&review, Ruling::Failed { code: 500, message: why.to_owned() }),
            Err(refusal) => self.refuse(refusal),
        }
    }
}
