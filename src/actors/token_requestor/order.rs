//! What a Secret's annotations order (spec 30 §2.2, §5.2, §5.3).

use std::collections::BTreeMap;

use cluster::{
    Reference,
    object::{self, NamespacedName},
};
use serde_json::Value;

use super::Problem;
use crate::api::{
    duration::GoDuration,
    keys::{
        INJECT_CA_BUNDLE, SERVICE_ACCOUNT_LABELS, SERVICE_ACCOUNT_NAME, SERVICE_ACCOUNT_NAMESPACE,
        TOKEN_EXPIRATION_DURATION, TOKEN_TARGET_SECRET_NAME, TOKEN_TARGET_SECRET_NAMESPACE,
    },
};

/// Lifetime that is asked for where nothing else is said: 12 h.
const DEFAULT_SECONDS: i64 = 43_200;

/// Labels of a ServiceAccount.
pub type Labels = BTreeMap<String, String>;

/// What the annotations of a Secret say. Two equal ones want the same token in the same place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The ServiceAccount; parts of it may be empty.
    pub account: NamespacedName,
    labels: Option<String>,
    lifetime: Option<String>,
    /// The CA bundle is wanted beside the token.
    pub wants_ca: bool,
    /// The Secret of the target cluster that gets the token; `None`: the Secret itself.
    pub target: Option<NamespacedName>,
}

impl Order {
    /// Of a Secret.
    pub fn of(secret: &Value) -> Self {
        let annotation = |key| object::annotation(secret, key);
        let text = |key| annotation(key).unwrap_or_default();
        let target = NamespacedName::new(text(TOKEN_TARGET_SECRET_NAMESPACE), text(TOKEN_TARGET_SECRET_NAME));
        Self {
            account: NamespacedName::new(text(SERVICE_ACCOUNT_NAMESPACE), text(SERVICE_ACCOUNT_NAME)),
            labels: annotation(SERVICE_ACCOUNT_LABELS).filter(|text| !text.is_empty()).map(str::to_owned),
            lifetime: annotation(TOKEN_EXPIRATION_DURATION).map(str::to_owned),
            wants_ca: object::truthy(annotation(INJECT_CA_BUNDLE)),
            // One alone does not count.
            target: Some(target).filter(|target| !target.name.is_empty() && !target.namespace.is_empty()),
        }
    }

    /// The ServiceAccount has a name and a namespace ("Better than upstream" 8: no request would succeed without).
    ///
    /// # Errors
    /// The annotation that is missing.
    pub fn check_account(&self) -> Result<(), Problem> {
        let named = [(&self.account.name, SERVICE_ACCOUNT_NAME), (&self.account.namespace, SERVICE_ACCOUNT_NAMESPACE)];
        match named.into_iter().find(|(text, _)| text.is_empty()) {
            Some((_, key)) => Err(Problem::Order(format!("the annotation {key:?} is missing or empty"))),
            None => Ok(()),
        }
    }

    /// All labels of the ServiceAccount (spec 30 §5.2 rule 2).
    ///
    /// # Errors
    /// If the annotation is no JSON object of texts; the message shows it.
    pub fn labels(&self) -> Result<Labels, Problem> {
        let Some(text) = &self.labels else { return Ok(Labels::new()) };
        match serde_json::from_str::<Option<BTreeMap<String, Option<String>>>>(text) {
            Ok(labels) => Ok(labels
                .unwrap_or_default()
                .into_iter()
                .map(|(key, value)| (key, value.unwrap_or_default()))
                .collect()),
            Err(error) => Err(Problem::Order(format!(
                "failed unmarshalling service account labels from secret annotation {SERVICE_ACCOUNT_LABELS:?} ({text}): {error}"
            ))),
        }
    }

    /// How long the token shall live, in seconds, as it is asked for; the API server knows what is possible (spec 30 §5.3).
    ///
    /// # Errors
    /// If the annotation is no duration, as Go says it.
    pub fn seconds(&self) -> Result<i64, Problem> {
        let Some(text) = &self.lifetime else { return Ok(DEFAULT_SECONDS) };
        let duration: GoDuration = text.parse().map_err(|error| Problem::Order(format!("time: {error}")))?;
        Ok(duration.nanos() / 1_000_000_000)
    }
}

/// The Secret, for Events about it.
pub(super) fn reference(key: &NamespacedName, uid: &str) -> Reference {
    Reference {
        api_version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        uid: uid.to_owned(),
    }
}
