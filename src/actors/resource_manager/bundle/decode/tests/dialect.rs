//! Spec 10 §9.2, table "YAML dialect".

use super::*;

fn one(input: &str) -> Value {
    let mut documents = read(input);
    assert_eq!(documents.len(), 1, "{input:?}: {documents:?}");
    documents.remove(0).1.unwrap_or_else(|error| panic!("{input:?}: {error}"))
}

fn error(input: &str) -> String {
    let mut documents = read(input);
    assert_eq!(documents.len(), 1, "{input:?}: {documents:?}");
    documents.remove(0).1.expect_err(input)
}

#[test]
fn yaml_values_mean_what_go_makes_of_them() {
    for (input, expected) in [
        ("a: yes\nb: Off\nc: tRue\nd: y", json!({"a": true, "b": false, "c": "tRue", "d": true})),
        ("a: 'yes'\nb: \"no\"\nc: |\n  on", json!({"a": "yes", "b": "no", "c": "on\n"})),
        ("metadata: {name: y}", json!({"metadata": {"name": true}})),
        ("on: x\ny: z", json!({"true": "z"})),
        ("off: x\n\"on\": z", json!({"false": "x", "on": "z"})),
        ("a:\nb: ~\nc: null\nd: NULL\ne: ''", json!({"a": null, "b": null, "c": null, "d": null, "e": ""})),
        (
            "mode: 0777\nhex: 0x1F\nbin: 0b11\noct: 0o17\nbig: 1_000",
            json!({"mode": 511, "hex": 31, "bin": 3, "oct": 15, "big": 1000}),
        ),
        ("a: 08\nb: 1.0\nc: 1e3\nd: 0.5", json!({"a": 8, "b": 1, "c": 1000, "d": 0.5})),
        ("a: 9223372036854775807\nb: 18446744073709551615", json!({"a": i64::MAX, "b": u64::MAX})),
        (
            "a: 2001-12-14\nb: 2001-12-14T21:59:43.10Z\nc: 2001-12-14 21:59:43",
            json!({"a": "2001-12-14", "b": "2001-12-14T21:59:43.10Z", "c": "2001-12-14 21:59:43"}),
        ),
        ("a: 1\nb: 2\na: 3", json!({"a": 3, "b": 2})),
        ("1: a\n1.5: b\ntrue: c\n0x10: d\n1e6: e", json!({"1": "a", "1.5": "b", "true": "c", "16": "d", "1e+06": "e"})),
        ("a: 1:20\nb: 10Gi\nc: v1", json!({"a": "1:20", "b": "10Gi", "c": "v1"})),
        (
            "a: >\n  x\n  y\n\n  z\nb: |-\n  x\n   y\nc: |+\n  x\n\n",
            json!({"a": "x y\nz\n", "b": "x\n y", "c": "x\n\n"}),
        ),
        ("a: |\n  no line break at the end", json!({"a": "no line break at the end\n"})),
        // A last line of blanks counts as a line, even without a line break.
        ("a: |+\n  x\n\n ", json!({"a": "x\n\n\n"})),
        ("a: |\r\n  x\r\n  y\r\n", json!({"a": "x\ny\n"})),
        ("a: \"\\u00fc\\n\\x41\"\nb: 'it''s'", json!({"a": "ü\nA", "b": "it's"})),
        ("a:\n- 1\n- - 2\n- b: 3\n  c: []", json!({"a": [1, [2], {"b": 3, "c": []}]})),
        (
            "m:\n  a: \"x\ny\n\n it's\nz\"\n  b: 'x\n  y\n\"\n  z'\n",
            json!({"m": {"a": "x y\nit's z", "b": "x y \" z"}}),
        ),
        ("a: {{x}: 1}", Value::Null),
    ] {
        if expected.is_null() {
            error(input);
        } else {
            assert_eq!(one(input), expected, "{input:?}");
        }
    }
}

#[test]
fn tags_of_yaml_are_honoured_and_others_make_text() {
    for (input, expected) in [
        ("a: !!str 1\nb: !!str yes", json!({"a": "1", "b": "yes"})),
        ("a: !!int '7'\nb: !!float 7\nc: !!bool \"on\"\nd: !!null ''", json!({"a": 7, "b": 7, "c": true, "d": null})),
        ("a: !custom 1\nb: ! 1", json!({"a": "1", "b": "1"})),
        ("a: !!binary aGVsbG8=", json!({"a": "hello"})),
        ("a: !!binary |\n  aGVs\n  bG8=", json!({"a": "hello"})),
        ("a: !!timestamp 2001-12-14", json!({"a": "2001-12-14"})),
    ] {
        assert_eq!(one(input), expected, "{input:?}");
    }
    assert!(error("a: !!int geheim").ends_with("a value does not fit its tag"));
    assert!(error("a: !!binary '%%%'").ends_with("a value tagged as binary is no Base64"));
}

#[test]
fn anchors_aliases_and_merge_keys_work() {
    for (input, expected) in [
        ("a: &x {k: 1}\nb: *x\nc: [*x]", json!({"a": {"k": 1}, "b": {"k": 1}, "c": [{"k": 1}]})),
        ("a: &x 1\nb: *x\na2: &x 2\nc: *x", json!({"a": 1, "b": 1, "a2": 2, "c": 2})),
        ("a: &x foo\n*x : 1", json!({"a": "foo", "foo": 1})),
        ("&k key: 1\nb: *k", json!({"key": 1, "b": "key"})),
        ("a: &x {k: 1, l: 1}\nb:\n  <<: *x\n  k: 2", json!({"a": {"k": 1, "l": 1}, "b": {"k": 2, "l": 1}})),
        ("a: &x {k: 1}\nb:\n  k: 2\n  <<: *x", json!({"a": {"k": 1}, "b": {"k": 1}})),
        (
            "a: &x {k: 1}\nb: &y {k: 2, l: 2}\nc:\n  <<: [*x, *y]",
            json!({"a": {"k": 1}, "b": {"k": 2, "l": 2}, "c": {"k": 1, "l": 2}}),
        ),
        ("a:\n  <<: {k: 1}", json!({"a": {"k": 1}})),
        ("a:\n  '<<': {k: 1}\nb: <<", json!({"a": {"<<": {"k": 1}}, "b": "<<"})),
        ("a:\n  !!str <<: {k: 1}", json!({"a": {"<<": {"k": 1}}})),
        ("a:\n  !!merge '<<': {k: 1}", json!({"a": {"k": 1}})),
    ] {
        assert_eq!(one(input), expected, "{input:?}");
    }
}

#[test]
fn yaml_errors_have_a_position_and_no_content() {
    for (input, expected) in [
        ("geheim: *unknown", "yaml: line 1 column 9: while parsing node, found unknown anchor"),
        ("a: &x [*x]", "yaml: line 1 column 8: an anchor's value contains itself"),
        ("? [geheim]\n: 1", "yaml: line 1 column 3: a list or map cannot be a map key"),
        ("? {geheim: 1}\n: 1", "yaml: line 1 column 3: a list or map cannot be a map key"),
        ("null: 1", "yaml: line 1 column 1: a map key must not be null"),
        ("a:\n  <<: geheim", "yaml: line 2 column 7: a merge key needs a map or a list of maps"),
        ("a:\n  <<: [geheim]", "yaml: line 2 column 14: a merge key needs a map or a list of maps"),
        ("a: .nan", "yaml: line 1 column 4: a number has no JSON form"),
        ("a: -.inf", "yaml: line 1 column 4: a number has no JSON form"),
        ("- geheim", "the document is a list and no map"),
        ("geheim", "the document is a string and no map"),
    ] {
        assert_eq!(error(input), expected, "{input:?}");
    }
    for input in ["a: @geheim", "a: [geheim}", "geheim: 'x", "a: %geheim\n b", "geheim: x: y", "a: b\n  geheim: c"] {
        let error = error(input);
        assert!(!error.contains("geheim") && !error.contains('@'), "{input:?}: {error}");
    }
}

#[test]
fn lines_in_errors_count_from_the_start_of_the_data_key() {
    let documents = read("# first\na: 1\n---\nb: 1\nc: [\n");

    let error = documents[1].1.as_ref().unwrap_err();
    assert!(error.starts_with("yaml: line 5 column 4: "), "{error}");
}
