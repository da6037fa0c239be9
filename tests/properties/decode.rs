use proptest::prelude::*;
use serde_json::Value;

use crate::checks::decode::{check, check_languages};

proptest! {
    #[test]
    fn bounds_hold_for_any_bytes(input in prop::collection::vec(any::<u8>(), 0..300)) {
        check(&input);
    }

    #[test]
    fn bounds_hold_for_any_text_of_yaml_characters(
        input in "[-{}\\[\\]:,?&*!|>'\"%@#.~<=0-9a-f\\\\ \t\n]{0,200}",
    ) {
        check(input.as_bytes());
    }

    #[test]
    fn bounds_hold_for_any_lines_of_yaml(lines in prop::collection::vec(line(), 0..12)) {
        check(lines.join("\n").as_bytes());
    }

    #[test]
    fn object_is_the_same_in_json_and_in_yaml(object in object()) {
        check_languages(&object);
    }
}

fn line() -> impl Strategy<Value = String> {
    let text = prop::sample::select(vec![
        "---",
        "--- # x",
        "---x",
        "...",
        "# x",
        "a: &x 1",
        "b: *x",
        "- c",
        "? d",
        ": e",
        "f: |",
        "g: >-",
        "<<: *x",
        "{\"h\": 1}",
        "{i: yes, j: ~}",
        "[k, 0x1F]",
        "\"l\": 'm'",
        "n: \"o",
        "p\"",
        "q: !!str 1",
        "\"q\": geheim",
    ]);
    (0..3_usize, text).prop_map(|(depth, text)| "  ".repeat(depth) + text)
}

fn object() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f32>().prop_filter_map("whole numbers come back as integers", |float| {
            (float.is_finite() && float.fract() != 0.0).then(|| Value::from(float))
        }),
        "[ -~äöü\n\t]{0,12}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let node = leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-z/.<~]{1,8}", inner, 0..5).prop_map(|map| map.into_iter().collect()),
        ]
    });
    prop::collection::btree_map("[a-z]{1,8}", node, 0..5).prop_map(|map| map.into_iter().collect())
}
