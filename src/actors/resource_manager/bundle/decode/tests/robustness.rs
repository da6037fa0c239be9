//! For any content of a Secret: no panic, no endless loop, bounded memory.

use kit::{json, testing::on_a_large_stack};
use proptest::prelude::*;

use super::*;

fn small() -> Limits {
    Limits { decompressed: 10_000, documents: 50, depth: 10, aliases: 20_000, bundle: 100_000 }
}

fn last_error(input: &str, limits: Limits) -> String {
    let mut documents = with_limits(input.as_bytes(), limits);
    documents.pop().and_then(|(_, result)| result.err()).unwrap_or_default()
}

#[test]
fn limits_are_named_in_their_errors() {
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned()
        + &(0..9)
            .map(|level| {
                let (name, from) = ((b'b' + level) as char, (b'a' + level) as char);
                format!("{name}: &{name} [*{from},*{from},*{from},*{from},*{from},*{from},*{from},*{from},*{from}]\n")
            })
            .collect::<String>();
    let tower = (1..9).fold("a: &a0 [[[[x]]]]\n".to_owned(), |text, level| {
        text + &format!("b{level}: &a{level} [[[[*a{}]]]]\n", level - 1)
    });
    for (name, input, expected) in [
        ("nested flow lists", "a: ".to_owned() + &"[".repeat(50) + &"]".repeat(50), "nested deeper than 10 levels"),
        ("endless flow lists", "[".repeat(5000), "nested deeper than 10 levels"),
        ("nested block lists", "- ".repeat(50), "nested deeper than 10 levels"),
        ("nested JSON", "{\"a\":".repeat(50) + "1" + &"}".repeat(50), "nested deeper than 10 levels"),
        ("depth by aliases", tower, "nested deeper than 10 levels"),
        ("many documents", "a: 1\n---\n".repeat(60), "more than 50 documents"),
        ("many empty documents", "# x\n---\n".repeat(60), "more than 50 documents"),
        ("many JSON objects", "{}".repeat(60), "more than 50 documents"),
        ("many broken separators", "---x\n".repeat(60), "more than 50 documents"),
        ("aliases of aliases", bomb, "aliases copy more than 20000 bytes"),
        ("a large list", format!("a: [{}]", "0,".repeat(3000)), "more than 100000 bytes of memory"),
        ("a large JSON list", format!("{{\"a\":[{}0]}}", "0,".repeat(3000)), "more than 100000 bytes of memory"),
    ] {
        let error = last_error(&input, small());

        assert!(error.contains(expected), "{name}: {error:?}");
    }
}

/// The memory limit is a promise, so the cost of each part is fixed: its text, 64 bytes for each list, map, scalar and
/// key, 600 bytes more for each map with fields, and a copy for each anchor and alias.
#[test]
fn memory_of_each_part_of_a_document_is_counted() {
    for (input, nodes, text, maps) in [
        ("{\"a\":null}", 3, 1, 1),
        ("{\"a\":[true,1,-1,1.5,\"xyz\",{}]}", 9, 4, 1),
        ("a: ~\n", 3, 2, 1),
        ("a: [1, 22, 'xyz', {}]\n", 7, 7, 1),
        ("a: &x [1, 2]\n", 5 + 3, 3 + 2, 1),
        ("a: &x [1, 2]\nb: *x\n", 5 + 3 + 1 + 3, 3 + 2 + 1 + 2, 1),
        ("&x a: *x\n", 2 + 1 + 1, 1 + 1 + 1, 1),
        ("a: {<<: {b: 1}}\n", 7, 5, 3),
        ("a:\n  b: \"x\n    y\"\n", 5, 5, 2),
    ] {
        let cost = input.len() + 64 * nodes + text + 600 * maps;
        let succeeds = |bundle| with_limits(input.as_bytes(), Limits { bundle, ..small() })[0].1.is_ok();

        assert!(succeeds(cost), "{input:?} costs more than {cost}");
        assert!(!succeeds(cost - 1), "{input:?} costs less than {cost}");
    }
}

#[test]
fn an_alias_may_reach_the_depth_limit_and_not_pass_it() {
    let lists = |depth: usize, content: &str| format!("{}{content}{}", "[".repeat(depth), "]".repeat(depth));
    for (anchored, around, is_accepted) in [(9, 0, true), (9, 1, false), (6, 1, true), (1, 8, true), (1, 9, false)] {
        let input = format!("a: &x {}\nb: {}\n", lists(anchored, "1"), lists(around, "*x"));

        assert_eq!(last_error(&input, small()).is_empty(), is_accepted, "{input}");
    }
}

/// An anchor copies its value once, and so does each of its aliases.
#[test]
fn aliases_may_copy_up_to_their_limit() {
    for (input, copied) in [("a: &x 1\n", 65), ("a: &x 1\nb: *x\n", 2 * 65), ("a: &x [1]\nb: *x\n", 2 * 129)] {
        let succeeds = |aliases| with_limits(input.as_bytes(), Limits { aliases, ..small() })[0].1.is_ok();

        assert!(succeeds(copied) && !succeeds(copied - 1), "{input:?}");
    }
}

/// A repair costs the text once more; the cost of the first reading is given back.
#[test]
fn a_repaired_document_is_counted_once() {
    let input = "a:\n  b: \"x\ny\"\n";
    let repaired = input.len() + 3 + 8;
    let cost = input.len() + repaired + 64 * 5 + 5 + 600 * 2;
    let succeeds = |bundle| with_limits(input.as_bytes(), Limits { bundle, ..small() })[0].1.is_ok();

    assert!(succeeds(cost) && !succeeds(cost - 1));
}

#[test]
fn memory_of_errors_is_counted() {
    let input = "[\n---\n".repeat(40);
    let errors = with_limits(input.as_bytes(), Limits { bundle: input.len() + 10 * (512 + 64), ..small() }).len();

    assert!((10..=12).contains(&errors), "{errors}");
}

#[test]
fn decompression_is_bounded() {
    let value = compress(&vec![b'\n'; 10_001]);
    let data = data(&[("k.br", &value)]);

    let results: Vec<_> = Decoder::new([secret(&data)], small()).collect();

    let error = results[0].as_ref().unwrap_err();
    assert_eq!((results.len(), error.text.as_str()), (1, "decompressed data is larger than 10000 bytes"));
}

#[test]
fn memory_limit_holds_over_all_data_keys() {
    let value = compress(&b"a: 1\n---\n".repeat(49));
    let data: Data = (0..200).map(|key| (format!("k{key:03}.br"), value.clone())).collect();

    let results: Vec<_> = Decoder::new([secret(&data)], small()).collect();

    assert!(results.len() < 1000, "{}", results.len());
    assert!(results.last().unwrap().as_ref().unwrap_err().text.contains("the rest is skipped"));
    assert_eq!(results.iter().filter(|result| result.is_err()).count(), 1);
}

#[test]
fn a_manifest_at_the_depth_limit_can_be_written_and_read_back() {
    let depth = Limits::default().depth;
    let within = depth - 1;
    let inputs = [
        format!("a: {}{}", "[".repeat(within), "]".repeat(within)),
        format!("a: {}{}", "{a: ".repeat(within), "}".repeat(within)),
        format!("a:\n{}", "- ".repeat(within)),
        format!("{{\"a\":{}{}}}", "[".repeat(within), "]".repeat(within)),
    ];

    on_a_large_stack(move || {
        for input in inputs {
            let manifest = read(&input).remove(0).1.unwrap();

            assert!(json::from_slice::<Value>(manifest.to_string().as_bytes()).unwrap() == manifest);
        }
    });
}

const SAMPLE: &str = r#"# comment
apiVersion: v1
kind: ConfigMap
metadata: {name: &n "a\tb", labels: {on: yes, 'x': ~}}
data:
  <<: {k: v}
  text: |
    line
      indented
  folded: >-
    one
    two
  list: [1, 0x1F, 1.5e3, *n, !!str 7]
---
- not a map
--- # comment
? complex
: - - nested
    - deep
...
trailing
---
{"json": {"a": [1, 2.5, "\u00fc"]}}
"#;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_panic(input in proptest::collection::vec(any::<u8>(), 0..300), key in "k(\\.br)?") {
        let data = data(&[(&key, &input)]);

        let items = Decoder::new([secret(&data)], small()).count();

        prop_assert!(items <= 51);
    }

    #[test]
    fn arbitrary_text_of_yaml_characters_never_panics(input in "[-{}\\[\\]:,?&*!|>'\"%@#.~<=0-9a-f\\\\ \t\n]{0,200}") {
        prop_assert!(with_limits(input.as_bytes(), small()).len() <= 51);
    }

    #[test]
    fn damaged_manifests_never_panic_and_errors_hold_no_content(
        changes in proptest::collection::vec((0..SAMPLE.len(), any::<u8>(), 0..3_u8), 1..6),
    ) {
        let mut input = SAMPLE.replace("line", "geheim").into_bytes();
        for (at, byte, kind) in changes {
            let at = at.min(input.len() - 1);
            match kind {
                0 => input[at] = byte,
                1 => input.insert(at, byte),
                _ => { input.remove(at); }
            }
        }

        for (_, result) in with_limits(&input, small()) {
            if let Err(text) = result {
                prop_assert!(!text.contains("geheim"), "{}", text);
            }
        }
    }

    #[test]
    fn json_objects_are_read_as_the_same_object(value in json_object()) {
        let documents = read(&value.to_string());

        prop_assert_eq!(documents, [(0, Ok(value))]);
    }

    #[test]
    fn a_json_object_read_as_yaml_is_the_same_object(value in json_object()) {
        let documents = read(&format!("# not a brace\n{value}\n"));

        prop_assert_eq!(documents, [(0, Ok(value))]);
    }
}

fn json_object() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        "[ -~äöü\n\t]{0,12}".prop_map(Value::from),
    ];
    let node = leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map("[a-z/.]{1,8}", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    proptest::collection::btree_map("[a-z]{1,8}", node, 0..5).prop_map(|map| Value::Object(map.into_iter().collect()))
}
