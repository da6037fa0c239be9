//! What the configurations of all programs share (spec 70 §2-§4, 80 §3-§6).
//! ```text
//! bytes ─ document.rs ─► JSON with today's keys ─ decode.rs ─► the program's Config ─ fill, settle, validate ─► Config
//!         kind, former keys                        unknown keys                        (in the program)
//! ```
//! A program declares one struct for each block of its file with [`config_blocks!`](crate::config_blocks), and its
//! [`ConfigSchema`]. The struct is decoded, printed and used; there is no second one.
//! * `fields.rs`: types of fields that know their default and what odd values count as
//! * `blocks.rs`: blocks that all programs have; `enabled.rs`: a block with `enabled`
//! * `finding.rs`: errors at a field, and warnings; `lines.rs`: where they are in the file; `nearest.rs`: what a misspelt
//!   key means
//! * `in_log.rs`: a configuration without what may be a credential
//!
//! A default stands at its field. Blocks of this module whose defaults differ between programs get them from
//! [`BlockDefaults`].

mod blocks;
mod decode;
mod document;
mod enabled;
mod fields;
mod finding;
mod in_log;
mod lines;
mod nearest;

#[cfg(test)]
mod tests;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
/// Defaults that stand at the fields of a block.
pub use smart_default::SmartDefault;

pub use self::{
    blocks::{
        BlockDefaults, Debugging, LeaderElection, PlainServer, check_burst, check_logging, fill_rate, rate_limit,
    },
    decode::DecodeError,
    document::{Alias, BothSpellings, ConfigSchema, Decoded},
    enabled::Enabled,
    fields::{HOURS, MINUTES, Period, Positive, Workers, fill},
    finding::{ConfigError, FieldError, Warning, WarningKind, json},
    in_log::to_log,
};

/// Declares the blocks of a configuration: structs whose keys are those of the file, in camel case. An absent key has its
/// field's default: that of its type, or that of `#[default]`.
#[macro_export]
macro_rules! config_blocks {
    ($($(#[$attribute:meta])* pub struct $name:ident { $($fields:tt)* })*) => {$(
        $(#[$attribute])*
        #[derive(Debug, Clone, PartialEq, $crate::config::SmartDefault, serde::Serialize, serde::Deserialize)]
        #[serde(default, rename_all = "camelCase", expecting = "an object")]
        pub struct $name { $($fields)* }
    )*};
}

/// Returns the file that a configuration comes from, with every key and its effective value.
pub fn to_yaml(config: &impl Serialize) -> String {
    serde_saphyr::to_string(config).expect("keys are texts, and all values have a form in YAML")
}

/// Returns the SHA-256, in hex, of what a configuration means. What stands in a block that is off means nothing.
pub fn hash(config: &impl Serialize) -> String {
    // Fails only for maps with keys that are no strings, which do not occur.
    let mut value = serde_json::to_value(config).unwrap_or_default();
    forget_what_is_off(&mut value);
    Sha256::digest(value.to_string()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn forget_what_is_off(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let is_off = |switch: &str| fields.get(switch) == Some(&Value::Bool(false));
            if let Some(switch) = ["enabled", "leaderElect"].into_iter().find(|switch| is_off(switch)) {
                fields.retain(|key, _| key == switch);
            }
            fields.values_mut().for_each(forget_what_is_off);
        }
        Value::Array(entries) => entries.iter_mut().for_each(forget_what_is_off),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
