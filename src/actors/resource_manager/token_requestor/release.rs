//! Removal of the finalizer and deletion of ServiceAccounts (spec 30 §9).

use cluster::{ApiError, Context, DeleteOptions, object::NamespacedName};
use serde_json::Value;

use super::{Problem, Requestor, access::FINALIZER};
use crate::api::kinds;

impl Requestor {
    /// Deletes the ServiceAccount if given, then removes the finalizer (D3, D4).
    pub(super) async fn release(
        &self,
        context: &Context,
        live: &Value,
        account: Option<&NamespacedName>,
    ) -> Result<(), Problem> {
        if let Some(account) = account.filter(|account| !account.name.is_empty() && !account.namespace.is_empty()) {
            if !self.secrets.is_fresh() {
                return Err(Problem::Unknown(
                    "the watch of Secrets is stale: other Secrets may name the ServiceAccount",
                ));
            }
            if !self.is_claimed(account, &NamespacedName::of(live)) {
                let at = kinds::SERVICE_ACCOUNT.named(account);
                let secret = NamespacedName::of(live);
                match self.target.delete(context, &at, &DeleteOptions::default()).await {
                    Ok(_) => tracing::info!(%secret, %account, "a ServiceAccount is deleted"),
                    // Not sent: the annotations contain an invalid name, so no such ServiceAccount exists.
                    Err(ApiError::BadRequest(reason)) => {
                        tracing::info!(%secret, reason, "there is no ServiceAccount to delete");
                    }
                    Err(error) if error.is_not_found() => {
                        tracing::info!(%secret, %account, "there is no ServiceAccount to delete");
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        }
        match self.set_finalizer(context, live, false).await {
            Err(Problem::Api(_, error)) if error.is_not_found() => Ok(()),
            Err(Problem::Api(_, error)) => Err(Problem::Api("error removing finalizer from Secret: ", error)),
            Err(other) => Err(other),
            Ok(_) => Ok(()),
        }
    }

    /// Returns true if another Secret needs the ServiceAccount (D6).
    fn is_claimed(&self, account: &NamespacedName, by_other_than: &NamespacedName) -> bool {
        let claims = |name: &NamespacedName| {
            let claims = |secret: &cluster::CachedFields<Option<super::Access>>| {
                secret.fields.as_ref().is_some_and(|access| access.claims_account(self.rules))
            };
            self.secrets.store().with(name, claims) == Some(true)
        };
        self.by_account.get(account).iter().any(|name| name != by_other_than && claims(name))
    }

    /// Sets or removes the finalizer. Returns the Secret afterwards, or its last state if it is gone.
    pub(super) async fn set_finalizer(&self, context: &Context, live: &Value, held: bool) -> Result<Value, Problem> {
        let at = kinds::SECRET.named(&NamespacedName::of(live));
        let write = self.source.set_finalizer(context, &at, live, FINALIZER, held);
        Ok(self.secrets.enter_answer_of(context, write).await?)
    }
}
