//! Lists (spec 10 §11.3): a document that is a list stands for its items.

use serde_json::Value;

use crate::actors::resource_manager::bundle::identity;

/// Returns the items of a list of a built-in API, if each has its type. Returns everything else unchanged: other
/// objects, and lists that cannot be split, which fail later.
pub(super) fn take_apart(mut manifest: Value) -> Result<Vec<Value>, Value> {
    let is_list = identity::is_list(&identity::gvk_of(&manifest));
    match manifest.get_mut("items") {
        Some(Value::Array(items)) if is_list && !items.is_empty() && items.iter().all(is_item) => {
            Ok(std::mem::take(items))
        }
        _ => Err(manifest),
    }
}

fn is_item(item: &Value) -> bool {
    let kind = identity::gvk_of(item);
    !kind.version.is_empty() && !kind.kind.is_empty() && !identity::is_list(&kind)
}
