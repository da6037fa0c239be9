//! The properties of `tests/checks/` and of webhooks, with generated values.

mod authorize;
#[path = "../../src/actors/resource_manager/csr_approver/tests/builder.rs"]
mod builder;
#[path = "../checks/mod.rs"]
mod checks;
mod cron;
mod decode;
mod gardenlet_certificates;
mod hibernation;
mod high_availability;
mod installations;
mod managed_seed_sets;
mod merge;
mod mutate;
mod patch;
#[path = "../checks/places.rs"]
mod places;
mod plan;
mod policies;
mod projects;
mod review;
mod shoot_maintenance;
mod validate;

use proptest::prelude::*;
use serde_json::Value;

/// Any JSON value, small enough that two of them are often equal.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-d]", inner, 0..3).prop_map(|map| map.into_iter().collect()),
        ]
    })
}
