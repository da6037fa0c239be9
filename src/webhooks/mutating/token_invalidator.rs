//! `token-invalidator`: the token of a Secret is invalid as long as the Secret is considered (spec 31 §5). The
//! controller of the same name sets the label in a patch that this webhook sees, so label and token change together.

#[cfg(test)]
mod tests;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::Value;

use super::{Mutation, Mutator, Request};
use crate::{
    api::resources::keys::{DATA_KEY_TOKEN as TOKEN, TOKEN_INVALIDATOR_CONSIDER as CONSIDER},
    webhooks::{
        fields::{self, Field, Type},
        view::{Failure, View},
    },
};

/// The path on which it is served.
pub const PATH: &str = "/webhooks/invalidate-service-account-token-secret";

/// The invalid token: three NUL bytes in Base64. kube-controller-manager would fill in an empty one (spec 31 T9).
pub const INVALID: &str = "AAAA";

/// Other keys of the data are not read, so that no error names them.
const FIELDS: [Field; 3] = [("metadata.labels{}", Type::Text), ("data", Type::Map), ("data.token", Type::Text)];

/// Overwrites tokens of considered Secrets, and removes the invalid token of others, so that a new one is generated.
#[derive(Debug, Clone, Copy)]
pub struct TokenInvalidator;

impl Mutator for TokenInvalidator {
    fn mutate(&self, secret: &mut Value, _: &Request<'_>, _: &dyn View) -> Result<Mutation, Failure> {
        fields::check(secret, &FIELDS)?;
        let token = fields::text(secret, &["data", TOKEN])?;
        if token.is_some_and(|token| BASE64_STANDARD.decode(token).is_err()) {
            let message = "data.token: expected Base64".to_owned();
            return Err(Failure::Errored { code: 400, message });
        }
        let is_invalid = token == Some(INVALID);
        let is_considered = fields::text(secret, &["metadata", "labels", CONSIDER])?.is_some();
        if let Some(data) = secret.get_mut("data").and_then(Value::as_object_mut) {
            if is_considered {
                data.insert(TOKEN.to_owned(), INVALID.into());
            } else if is_invalid {
                data.remove(TOKEN);
            }
        }
        Ok(Mutation::Done)
    }

    fn takes(&self) -> Option<(&'static str, &'static str)> {
        Some(("", "Secret"))
    }
}
