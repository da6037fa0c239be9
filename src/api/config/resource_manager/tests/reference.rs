use super::{super::super::tests::assert_reference, examples::COMMENTED, *};

const INTRODUCTION: &str = "\
# Keys of the configuration

Generated from `config/component-config.yaml` and the defaults of the program; a test compares this file with both.

For a setting without a default the table shows an example. The settings of the target mean the same as those of the
source. A block with `enabled` does nothing until that is `true`.
";

/// `docs/reference/keys.md` is generated; on failure the test prints the expected text.
#[test]
fn the_documentation_lists_every_key() {
    let empty = Draft::decode(b"").expect("an empty file is a configuration").config;

    assert_reference("keys.md", INTRODUCTION, COMMENTED, &serde_json::to_value(&empty).expect("it is JSON"));
}
