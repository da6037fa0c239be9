//! The requests that replace a SecretBinding by a CredentialsBinding (spec 84 C.10.1). The decisions are in `binding.rs`.

use cluster::{Cluster, Context, ListQuery, object, object::NamespacedName};
use serde_json::Value;

use super::{
    binding::{check_existing, first_matching, migrated, migrated_name},
    changes::BindingMigration,
};
use crate::{actors::controller_manager::fields::text, api::kinds};

/// Finds or creates the CredentialsBinding that takes the place of a Shoot's SecretBinding. Repeated calls find the
/// CredentialsBinding that the first one created.
pub(super) async fn migrate(
    cluster: &Cluster,
    context: &Context,
    shoot: &Value,
    secret_binding: &str,
) -> BindingMigration {
    let namespace = object::namespace(shoot);
    let name = NamespacedName::new(namespace, secret_binding);
    let old = cluster.get(context, &kinds::SECRET_BINDING.named(&name)).await;
    let old = old.map_err(|error| format!("failed to get SecretBinding {name}: {error}"))?;

    let new_name = migrated_name(&name);
    let at = kinds::CREDENTIALS_BINDING.named(&new_name);
    let existing = cluster.find(context, &at).await;
    let existing =
        existing.map_err(|error| format!("failed to check for existing CredentialsBinding {new_name}: {error}"))?;
    if let Some(existing) = existing {
        return check_existing(&old, &existing).map(|()| new_name.name);
    }

    let all = cluster.list(context, &kinds::CREDENTIALS_BINDING, Some(namespace), &ListQuery::default()).await;
    let all = all.map_err(|error| format!("failed to list CredentialsBindings in namespace {namespace}: {error}"))?;
    if let Some(found) = first_matching(&old, all.items.iter()) {
        return Ok(found.to_owned());
    }

    let new = migrated(&old, text(shoot, "/spec/provider/type"));
    let created = cluster.create(context, &at, &new).await;
    created.map_err(|error| format!("failed to create CredentialsBinding {new_name}: {error}"))?;
    Ok(new_name.name)
}
