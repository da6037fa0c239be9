//! The Secrets of a ManagedResource, for `unpack`.

use cluster::object::NamespacedName;
use serde_json::Value;

use super::{Clusters, InspectError};
use crate::api::kinds;

impl Clusters {
    /// Returns the Secrets of a ManagedResource, each once; `None` if it does not exist. Fails if a Secret cannot be read.
    pub(in crate::commands) async fn bundle(
        &self,
        name: &str,
        namespace: Option<&str>,
    ) -> Result<(NamespacedName, Option<Vec<Value>>), InspectError> {
        let key = self.key(name, namespace);
        let Some(found) = self.managed_resource(&key).await? else { return Ok((key, None)) };
        let mut secrets = Vec::new();
        for name in found.secrets() {
            let at = kinds::SECRET.at(key.namespace.as_str(), name);
            let secret = self.source.get(&self.context(), &at).await;
            let what = || format!("Secret {}/{name} of ManagedResource {key}", key.namespace);
            secrets.push(secret.map_err(|source| InspectError::Read { what: what(), source })?);
        }
        Ok((key, Some(secrets)))
    }
}
