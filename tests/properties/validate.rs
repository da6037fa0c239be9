//! Reviews of extension objects (spec 62).

use std::{fs, path::Path};

use proptest::{
    prelude::*,
    sample::{Index, select},
};
use serde_json::{Value, json};

use crate::{
    checks::validate::check,
    json_value,
    places::{count, nth},
};

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn extension_objects_get_an_answer(
        mut review in select(reviews()),
        operation in select(vec!["CREATE", "UPDATE", "UPDATE", "DELETE", "CONNECT"]),
        changes in prop::collection::vec((any::<Index>(), value()), 0..4),
    ) {
        review["request"]["operation"] = json!(operation);
        for (index, value) in changes {
            let count = count(&review["request"]);
            if let Some(place) = nth(&mut review["request"], &mut index.index(count)) {
                *place = value;
            }
        }
        check(review.to_string().as_bytes());
    }
}

/// Valid and invalid reviews of each kind: the inputs that fuzzing starts from.
fn reviews() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/validate");
    let files = fs::read_dir(&folder).expect("the corpus");
    let mut files: Vec<_> = files.map(|file| file.expect("an entry of a folder").path()).collect();
    files.sort();
    let named = files.into_iter().filter(|file| file.extension().is_some_and(|extension| extension == "json"));
    named.map(|file| serde_json::from_slice(&fs::read(file).expect("a file")).expect("a review is JSON")).collect()
}

fn value() -> impl Strategy<Value = Value> {
    let texts = select(vec!["", "v1", "2026-01-01T00:00:00Z", "10.0.0.0/8", "IPv6", "-1", "x.example.org", "a/b/c"]);
    prop_oneof![json_value(), texts.prop_map(Value::from), (-2_i64..70_000).prop_map(Value::from)]
}
