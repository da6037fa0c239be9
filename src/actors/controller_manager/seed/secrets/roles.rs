//! Which Secrets are shared with all Seeds (spec 83 §1, A.1; decision 25). Pure.

use cluster::object;
use serde_json::Value;

/// The namespace of the Secrets that are shared.
pub const GARDEN: &str = "garden";

/// The label whose value is the role of an object.
pub const ROLE: &str = "gardener.cloud/role";

/// Selects Secrets with a shared role. The server does not even send others to a watch.
pub(in crate::actors::controller_manager) const SELECTOR: &str = "gardener.cloud/role,\
    gardener.cloud/role!=kubeconfig,\
    gardener.cloud/role!=ssh-keypair,\
    gardener.cloud/role!=monitoring,\
    gardener.cloud/role!=helm-pull-secret,\
    gardener.cloud/role!=oci-ca-bundle,\
    gardener.cloud/role!=resource-reference";

/// Roles that are not shared: each Seed can read all that its namespace contains.
pub const PRIVATE_ROLES: [&str; 6] =
    ["kubeconfig", "ssh-keypair", "monitoring", "helm-pull-secret", "oci-ca-bundle", "resource-reference"];

/// Returns true if a Secret has a role that is shared; an empty one is.
pub fn has_shared_role(secret: &Value) -> bool {
    object::label(secret, ROLE).is_some_and(|role| !PRIVATE_ROLES.contains(&role))
}

/// Returns true if each Seed gets a copy of a Secret.
pub fn is_shared(secret: &Value) -> bool {
    object::namespace(secret) == GARDEN && has_shared_role(secret)
}
