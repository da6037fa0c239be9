//! Tolerations of broken nodes (spec 51 §7): how long Pods stay on them.

use serde_json::{Value, json};

use super::text;
use crate::{
    api::config::resource_manager::HighAvailabilityConfig,
    webhooks::fields::{self, WrongType},
};

const TOLERATIONS: [&str; 4] = ["spec", "template", "spec", "tolerations"];

/// Adds the configured tolerations, unless the Pod has one with the same key (not: all keys) for evictions.
pub(super) fn add(object: &mut Value, config: &HighAvailabilityConfig) -> Result<(), WrongType> {
    let configured = [
        ("node.kubernetes.io/not-ready", config.default_not_ready_toleration_seconds),
        ("node.kubernetes.io/unreachable", config.default_unreachable_toleration_seconds),
    ];
    for (key, seconds) in configured {
        let Some(seconds) = seconds else { continue };
        if !is_tolerated(object, key)? {
            fields::list_mut(object, &TOLERATIONS)?.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds,
            }));
        }
    }
    Ok(())
}

fn is_tolerated(object: &Value, key: &str) -> Result<bool, WrongType> {
    let mut tolerations = fields::list(object, &TOLERATIONS)?.iter();
    Ok(tolerations
        .any(|toleration| text(toleration, "key") == key && matches!(text(toleration, "effect"), "" | "NoExecute")))
}
