//! `projected-token-mount`: a short-lived token for Pods whose ServiceAccount switches automount off (spec 50 §5).

#[cfg(test)]
mod tests;

use cluster::object::NamespacedName;
use kit::quote::quoted;
use serde_json::{Value, json};

use super::{Mutation, Mutator, Request, text};
use crate::{
    api::{config::resource_manager::ProjectedTokenMount, meta::integer},
    webhooks::{
        cached_kind::{CachedKind, Objects},
        fields::{self, Field, Type, WrongType},
        view::{Failure, View},
    },
};

/// The path on which it is served.
pub const PATH: &str = "/webhooks/mount-projected-service-account-token";

/// The ServiceAccounts.
pub const SERVICE_ACCOUNTS: CachedKind<ServiceAccount> = CachedKind {
    objects: Objects { kind: "ServiceAccount", plural: "serviceaccounts", ..Objects::TARGET },
    fields: |object| ServiceAccount { automount: object.get("automountServiceAccountToken").and_then(Value::as_bool) },
};

const EXPIRATION_SECONDS: &str = "projected-token-mount.resources.gardener.cloud/expiration-seconds";

/// Prefix of the names of token volumes, both ours and the API server's.
const VOLUME_PREFIX: &str = "kube-api-access-";
const VOLUME: &str = "kube-api-access-gardener";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

const FIELDS: [Field; 6] = [
    ("spec.serviceAccountName", Type::Text),
    ("spec.automountServiceAccountToken", Type::Boolean),
    ("spec.volumes[].name", Type::Text),
    ("metadata.annotations{}", Type::Text),
    ("spec.containers[].volumeMounts[].mountPath", Type::Text),
    ("spec.initContainers[].volumeMounts[].mountPath", Type::Text),
];

/// The cached fields of a ServiceAccount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceAccount {
    /// `automountServiceAccountToken`.
    pub automount: Option<bool>,
}

/// Mounts a token at the usual path.
#[derive(Debug, Clone, Copy)]
pub struct TokenMount(pub ProjectedTokenMount);

impl TokenMount {
    /// Returns the annotation, or the default. An annotation that is not a number denies the Pod (spec 50 §5.1 rule 6).
    fn expiration_seconds(&self, pod: &Value) -> Result<i64, Failure> {
        match fields::text(pod, &["metadata", "annotations", EXPIRATION_SECONDS])? {
            None => Ok(self.0.expiration_seconds),
            Some(text) => integer::parse(text)
                .map_err(|cause| Failure::Denied(format!("strconv.ParseInt: parsing {}: {cause}", quoted(text)))),
        }
    }
}

impl Mutator for TokenMount {
    fn mutate(&self, pod: &mut Value, request: &Request<'_>, view: &dyn View) -> Result<Mutation, Failure> {
        fields::check(pod, &FIELDS)?;
        let account = fields::text(pod, &["spec", "serviceAccountName"])?.unwrap_or_default();
        if matches!(account, "" | "default") {
            return Ok(Mutation::Done);
        }
        let found = view.object(&SERVICE_ACCOUNTS, &NamespacedName::new(request.namespace, account))?;
        let found = found.ok_or_else(|| Failure::not_found("ServiceAccount", account))?;
        let is_off = found.automount == Some(false);
        let opts_out = fields::boolean(pod, &["spec", "automountServiceAccountToken"])? == Some(false);
        if !is_off || opts_out || has_token_volume(pod)? {
            return Ok(Mutation::Done);
        }

        let volume = volume(self.expiration_seconds(pod)?);
        fields::list_mut(pod, &["spec", "volumes"])?.push(volume);
        for containers in ["containers", "initContainers"] {
            fields::each_mut(pod, &["spec", containers], mount)?;
        }
        Ok(Mutation::Done)
    }
}

fn has_token_volume(pod: &Value) -> Result<bool, WrongType> {
    let volumes = fields::list(pod, &["spec", "volumes"])?;
    Ok(volumes.iter().any(|volume| text(volume, "name").starts_with(VOLUME_PREFIX)))
}

/// Mounts the volume, unless the container has a mount at that path: the API server refuses duplicate paths with an
/// unhelpful message (spec 50, "better" 12).
fn mount(container: &mut Value) -> Result<(), WrongType> {
    let mounts = fields::list(container, &["volumeMounts"])?;
    if mounts.iter().any(|mount| text(mount, "mountPath").trim_end_matches('/') == MOUNT_PATH) {
        return Ok(());
    }
    let mount = json!({ "name": VOLUME, "mountPath": MOUNT_PATH, "readOnly": true });
    fields::list_mut(container, &["volumeMounts"])?.push(mount);
    Ok(())
}

/// Returns a volume like the API server's own, with another lifetime.
fn volume(expiration_seconds: i64) -> Value {
    json!({
        "name": VOLUME,
        "projected": {
            "defaultMode": 0o644,
            "sources": [
                { "serviceAccountToken": { "expirationSeconds": expiration_seconds, "path": "token" } },
                { "configMap": { "name": "kube-root-ca.crt", "items": [{ "key": "ca.crt", "path": "ca.crt" }] } },
                { "downwardAPI": { "items": [
                    { "path": "namespace", "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.namespace" } },
                ] } },
            ],
        },
    })
}
