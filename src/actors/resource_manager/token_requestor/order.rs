//! The order in a Secret's annotations (spec 30 §2.2, §5.2, §5.3).

use std::collections::BTreeMap;

use cluster::object::{self, NamespacedName};
use kit::duration::GoDuration;
use serde_json::Value;

use super::Problem;
use crate::api::{
    meta::selector::Labels,
    resources::keys::{
        INJECT_CA_BUNDLE, SERVICE_ACCOUNT_LABELS, SERVICE_ACCOUNT_NAME, SERVICE_ACCOUNT_NAMESPACE,
        TOKEN_EXPIRATION_DURATION, TOKEN_TARGET_SECRET_NAME, TOKEN_TARGET_SECRET_NAMESPACE,
    },
};

const DEFAULT_SECONDS: i64 = 43_200;

/// The annotations of a Secret. Equal orders want the same token in the same Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The ServiceAccount; name and namespace may be empty.
    pub account: NamespacedName,
    labels: Option<String>,
    lifetime: Option<String>,
    /// Store the CA bundle with the token.
    pub wants_ca: bool,
    /// The Secret of the target cluster that gets the token; `None` means the Secret itself.
    pub target: Option<NamespacedName>,
}

impl Order {
    /// Reads the annotations of a Secret.
    pub fn of(secret: &Value) -> Self {
        let annotation = |key| object::annotation(secret, key);
        let text = |key| annotation(key).unwrap_or_default();
        let target = NamespacedName::new(text(TOKEN_TARGET_SECRET_NAMESPACE), text(TOKEN_TARGET_SECRET_NAME));
        Self {
            account: NamespacedName::new(text(SERVICE_ACCOUNT_NAMESPACE), text(SERVICE_ACCOUNT_NAME)),
            labels: annotation(SERVICE_ACCOUNT_LABELS).filter(|text| !text.is_empty()).map(str::to_owned),
            lifetime: annotation(TOKEN_EXPIRATION_DURATION).map(str::to_owned),
            wants_ca: object::truthy(annotation(INJECT_CA_BUNDLE)),
            // Name and namespace must both be set.
            target: Some(target).filter(|target| !target.name.is_empty() && !target.namespace.is_empty()),
        }
    }

    /// Fails unless the ServiceAccount has name and namespace ("Better than upstream" 8: no request would succeed).
    pub fn check_account(&self) -> Result<(), Problem> {
        let named = [(&self.account.name, SERVICE_ACCOUNT_NAME), (&self.account.namespace, SERVICE_ACCOUNT_NAMESPACE)];
        match named.into_iter().find(|(text, _)| text.is_empty()) {
            Some((_, key)) => Err(Problem::Unusable(format!("the annotation {key:?} is missing or empty"))),
            None => Ok(()),
        }
    }

    /// Returns the ServiceAccount's labels (spec 30 §5.2 rule 2). Fails if the annotation is not an object of strings.
    pub fn labels(&self) -> Result<Labels, Problem> {
        let Some(text) = &self.labels else { return Ok(Labels::new()) };
        match serde_json::from_str::<Option<BTreeMap<String, Option<String>>>>(text) {
            Ok(labels) => Ok(labels
                .unwrap_or_default()
                .into_iter()
                .map(|(key, value)| (key, value.unwrap_or_default()))
                .collect()),
            Err(error) => Err(Problem::Unusable(format!(
                "failed unmarshalling service account labels from secret annotation {SERVICE_ACCOUNT_LABELS:?} ({text}): {error}"
            ))),
        }
    }

    /// Returns the lifetime in seconds, unchecked (spec 30 §5.3). Fails with Go's message if it is not a duration.
    pub fn seconds(&self) -> Result<i64, Problem> {
        let Some(text) = &self.lifetime else { return Ok(DEFAULT_SECONDS) };
        let duration: GoDuration = text.parse().map_err(|error| Problem::Unusable(format!("time: {error}")))?;
        Ok(duration.nanos() / 1_000_000_000)
    }
}
