//! Patches of webhooks (spec 50 §2.5).

use gardener_resource_manager::webhooks::review::{FEW, Operation, difference};
use json_patch::Patch;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::json_value;

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn patch_turns_one_value_into_the_other(before in json_value(), after in json_value()) {
        let steps = difference(&before, &after);

        let mut made = before.clone();
        json_patch::patch(&mut made, &patch(&steps)).unwrap();
        prop_assert_eq!(&made, &after);
        prop_assert_eq!(steps.is_empty(), before == after);
    }

    /// spec 50 §2.5 rule 8. Keys are long here, so that steps are larger than the values they change.
    #[test]
    fn patch_is_hardly_larger_than_its_result(
        before in json_value(), after in json_value(), key in "[~/a]{1,400}", moved in any::<bool>(),
    ) {
        let below = |value: Value| json!({ &key: [{ &key: value }] });
        let (before, mut after) = (json!([below(before), below(after.clone())]), json!([below(after)]));
        if moved {
            after[0] = before[1].clone();
        }
        let steps = difference(&before, &after);

        let mut made = before.clone();
        json_patch::patch(&mut made, &patch(&steps)).unwrap();
        prop_assert_eq!(&made, &after);
        prop_assert!(json!(steps).to_string().len() <= after.to_string().len() + FEW + 64);
    }

    #[test]
    fn patch_mentions_no_unchanged_field(mut map in fields(), key in "[a-d~/]{1,3}", value in json_value()) {
        let before = Value::Object(map.clone());
        map.insert(key.clone(), value);
        let after = Value::Object(map);
        let pointer = format!("/{}", key.replace('~', "~0").replace('/', "~1"));

        for step in difference(&before, &after) {
            let (Operation::Add { path, .. } | Operation::Remove { path } | Operation::Replace { path, .. }) = step;
            let path = path.to_string();
            prop_assert!(path == pointer || path.starts_with(&format!("{pointer}/")), "{} for {}", path, pointer);
        }
    }
}

fn fields() -> impl Strategy<Value = serde_json::Map<String, Value>> {
    prop::collection::btree_map("[a-d~/]{1,3}", json_value(), 0..4).prop_map(|map| map.into_iter().collect())
}

fn patch(steps: &[Operation<'_>]) -> Patch {
    serde_json::from_value(json!(steps)).expect("a patch that was written can be read")
}
