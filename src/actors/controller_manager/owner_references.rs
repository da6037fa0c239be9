//! Owner references of objects that controllers make. Pure.

use cluster::Resource;
use serde_json::{Value, json};

use super::fields::list;

/// Returns the reference to an object as the controller of its dependents. If it blocks the deletion, a foreground
/// deletion of the owner waits for the dependent. The client that writes such a reference needs the right to `update`
/// the subresource `finalizers` of the owner.
pub fn controller_reference(kind: &Resource, name: &str, uid: &str, blocks_deletion: bool) -> Value {
    json!({
        "apiVersion": kind.api_version(), "kind": &*kind.kind, "name": name, "uid": uid,
        "controller": true, "blockOwnerDeletion": blocks_deletion,
    })
}

/// Returns the uids in the owner references of an object, in their order.
pub fn owner_uids(object: &Value) -> impl Iterator<Item = &str> {
    list(object, "/metadata/ownerReferences").filter_map(|owner| owner.get("uid")?.as_str())
}

/// Returns the owner references of an object followed by `owner`; `None` if a reference has the owner's uid already.
pub fn with_owner(object: &Value, owner: &Value) -> Option<Value> {
    let uid = owner.get("uid").and_then(Value::as_str).unwrap_or_default();
    if owner_uids(object).any(|other| other == uid) {
        return None;
    }
    Some(list(object, "/metadata/ownerReferences").chain([owner]).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::kinds;

    /// spec 82 §1
    #[test]
    fn owner_reference_is_that_of_a_controller() {
        let reference = controller_reference(&kinds::PROJECT, "dev", "u1", false);

        let expected = json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project", "name": "dev", "uid": "u1",
            "controller": true, "blockOwnerDeletion": false,
        });
        assert_eq!(reference, expected);
    }

    /// spec 82 A.4 N7: an entry with this uid stays as it is.
    #[test]
    fn owner_reference_is_added_once_and_after_those_of_others() {
        let owner = controller_reference(&kinds::PROJECT, "dev", "u1", true);
        let other = json!({"uid": "u0", "unknown": 1});

        assert_eq!(with_owner(&json!({}), &owner), Some(json!([owner])));
        let object = json!({"metadata": {"ownerReferences": [other]}});
        assert_eq!(with_owner(&object, &owner), Some(json!([other, owner])));
        let object = json!({"metadata": {"ownerReferences": [other, {"uid": "u1", "controller": false}]}});
        assert_eq!(with_owner(&object, &owner), None);
    }
}
