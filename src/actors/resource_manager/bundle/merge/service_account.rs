//! ServiceAccounts (spec 10 §12.6).

use serde_json::Value;

use super::{Rule, copy_field};

/// Token controllers and users write the references to Secrets; the manifest's count only at the creation.
pub(super) fn merge_service_account(merged: &mut Value, rule: &Rule<'_>) {
    let Some(root) = merged.as_object_mut() else { return };
    copy_field(root, Some(rule.live), "secrets");
    copy_field(root, Some(rule.live), "imagePullSecrets");
}
