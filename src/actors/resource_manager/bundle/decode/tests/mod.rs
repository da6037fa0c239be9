//! Tables after spec 10 §9.2. `robustness`: arbitrary bytes. `dialect`, `repair`: YAML. `lists`: lists.

mod dialect;
mod lists;
mod repair;
mod robustness;

use std::io::Write;

use serde_json::json;

use super::*;

type Data = BTreeMap<String, Vec<u8>>;

fn data(entries: &[(&str, &[u8])]) -> Data {
    entries.iter().map(|&(key, value)| (key.to_owned(), value.to_vec())).collect()
}

fn secret(data: &Data) -> SecretData<'_> {
    SecretData { namespace: "ns", name: "s", data }
}

fn compress(data: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    let mut writer = brotli::CompressorWriter::new(&mut output, 4096, 5, 22);
    writer.write_all(data).unwrap();
    drop(writer);
    output
}

fn with_limits(input: &[u8], limits: Limits) -> Vec<(usize, Result<Value, String>)> {
    let data = data(&[("k", input)]);
    let read = |item: Result<ManifestDocument, DecodeError>| match item {
        Ok(document) => (document.index, Ok(document.manifest)),
        Err(error) => (error.index, Err(error.text)),
    };
    Decoder::new([secret(&data)], limits).map(read).collect()
}

fn read(input: &str) -> Vec<(usize, Result<Value, String>)> {
    with_limits(input.as_bytes(), Limits::default())
}

/// `<index>` of each manifest and `<index>!` of each error.
fn outline(input: &str) -> String {
    let item =
        |(index, result): (usize, Result<Value, String>)| format!("{index}{}", if result.is_ok() { "" } else { "!" });
    read(input).into_iter().map(item).collect::<Vec<_>>().join(" ")
}

/// spec 10 §9.2
#[test]
fn separators_split_documents_and_only_real_documents_count() {
    for (input, expected) in [
        ("", ""),
        ("\n\n", ""),
        ("# comment\n", ""),
        ("---\n", ""),
        ("---\n---\n", ""),
        ("a: 1", "0"),
        ("a: 1\n---\nb: 1\n", "0 1"),
        ("---\na: 1\n---\nb: 1\n---\n", "0 1"),
        ("a: 1\n---   # comment\nb: 1\n", "0 1"),
        ("a: 1\n---\t \nb: 1\n", "0 1"),
        ("a: 1\r\n---\r\nb: 1\r\n", "0 1"),
        ("a: 1\n---\n---\nb: 1\n", "0 1"),
        ("a: 1\n---\n---\n---\nb: 1\n", "0 2"),
        ("---\n---\na: 1\n", "1"),
        ("a: 1\n---\n# comment\n---\nb: 1\n", "0 2"),
        ("a: 1\n---\nnull\n---\n~\n---\nb: 1\n", "0 3"),
        ("a: 1\n---\n\n---\nb: 1\n", "0 2"),
        ("a: 1\n...\n][\n---\nb: 1\n", "0 1"),
        ("a: |\n  ---\n  x\n---\nb: 1\n", "0 1"),
        ("{}\n", "0"),
        ("a: 1\n---\n- 1\n---\ntext\n---\n5\n---\ntrue\n---\nb: 1\n", "0 1! 2! 3! 4! 5"),
    ] {
        assert_eq!(outline(input), expected, "{input:?}");
    }
}

#[test]
fn a_separator_with_text_behind_it_costs_the_document_before_it() {
    let documents = read("a: 1\n---\nlost: 1\n--- text: geheim\nb: 1\n---foo\nc: 1\n");

    let error = |line| Err(format!("invalid Yaml document separator: line {line} goes on after it"));
    assert_eq!(documents, [(0, Ok(json!({"a": 1}))), (1, error(4)), (2, error(6)), (3, Ok(json!({"c": 1})))]);
}

/// spec 10 scenario 4
#[test]
fn a_broken_document_is_named_and_the_others_are_read() {
    let documents = read("a: 1\n---\nkind: [broken\n---\nb: 1\n");

    assert_eq!(documents[0], (0, Ok(json!({"a": 1}))));
    let error = documents[1].1.as_ref().unwrap_err();
    assert!(documents[1].0 == 1 && error.starts_with("yaml: line 3 column 7: "), "{error}");
    assert_eq!(documents[2], (2, Ok(json!({"b": 1}))));
}

#[test]
fn json_is_a_stream_of_objects_that_may_turn_out_to_be_yaml() {
    for (input, expected) in [
        ("{\"a\":1}{\"b\":2}\n {\"c\":3}", "0 1 2"),
        (" \n\t{\"a\":1}\n\n", "0"),
        ("{\"a\":1}\n---\n{\"b\":2}\n---\n{\"c\":3}\n", "0 1 2"),
        ("{\"a\":1} ---\n{\"b\":2}", "0 1"),
        ("{\"a\":1} \t ---\n{\"b\":2}", "0 1"),
        ("{\"a\":1,}", "0"),
        ("{a: yes}", "0"),
        ("{\"a\":1}null{\"b\":2}", "0 2"),
        ("{\"a\":1}{\"b\":2}garbage{\"c\":3}", "0 1 2!"),
        ("{\"a\":1}{\"b\":2}[1]{\"c\":3}", "0 1 2! 3"),
        ("{\"a\":1}\n[1]\n---\nc: 3\n", "0 1! 2"),
        ("{\"a\":", "0!"),
        ("{\"a\":1}{\"b\":", "0 1!"),
        ("{\"a\":1}\u{a0}", "0 1!"),
    ] {
        assert_eq!(outline(input), expected, "{input:?}");
    }
    assert_eq!(read("{\"a\":1,}"), [(0, Ok(json!({"a": 1})))]);
    assert_eq!(read("{a: yes}"), [(0, Ok(json!({"a": true})))]);
}

#[test]
fn a_brace_beyond_the_first_1024_bytes_does_not_make_it_json() {
    let far = format!("{}{{\"a\":1}}{{\"b\":2}}", " ".repeat(1024));
    let near = format!("{}{{\"a\":1}}{{\"b\":2}}", " ".repeat(1023));

    assert_eq!(outline(&near), "0 1");
    assert_ne!(outline(&far), "0 1");
}

#[test]
fn secrets_keep_their_order_and_data_keys_are_sorted() {
    let first = data(&[("z", b"a: 1\n---\nb: 1\n"), ("B", b"c: 1\n"), ("a", b"d: [\n")]);
    let second = data(&[("x", b"e: 1\n")]);
    let secrets = [
        SecretData { namespace: "ns", name: "two", data: &first },
        SecretData { namespace: "ns", name: "one", data: &second },
    ];

    let decoded = decode(secrets);

    let places: Vec<_> = decoded
        .documents
        .iter()
        .map(|document| (&*document.secret, &*document.data_key, document.index, document.raw))
        .collect();
    let expected = [("ns/two", "B", 0, 0), ("ns/two", "z", 0, 2), ("ns/two", "z", 1, 2), ("ns/one", "x", 0, 3)];
    assert_eq!(places, expected);
    assert_eq!(decoded.errors.len(), 1);
    assert_eq!((&*decoded.errors[0].data_key, decoded.errors[0].index), ("a", 0));
}

/// spec 10 scenario 2
#[test]
fn a_compressed_key_gives_the_same_manifests() {
    let text = b"a: 1\n---\nb: 1\n";
    let compressed = compress(text);
    let plain = data(&[("data.yaml", text)]);
    let packed = data(&[("data.yaml.br", &compressed)]);

    let (plain, packed) = (decode([secret(&plain)]), decode([secret(&packed)]));

    let manifests = |decoded: &Decoded| decoded.documents.iter().map(|d| d.manifest.clone()).collect::<Vec<_>>();
    assert_eq!(manifests(&plain), manifests(&packed));
}

/// spec 10 scenario 5
#[test]
fn defective_brotli_is_exactly_one_error_and_other_keys_go_on() {
    let mut cut = compress(&b"a: 1\n---\n".repeat(1000));
    cut.truncate(cut.len() / 2);
    for value in [&b"\x21\x42 this is no brotli stream"[..], b"", &cut] {
        let data = data(&[("a.br", value), ("b", b"b: 1\n")]);

        let decoded = decode([secret(&data)]);

        assert_eq!((decoded.errors.len(), decoded.documents.len()), (1, 1), "{value:?}");
        let text = decoded.errors[0].to_string();
        assert!(
            text.starts_with("Could not decode resource at index 0 in 'a.br' in secret 'ns/s': brotli: "),
            "{text}"
        );
    }
}

#[test]
fn the_data_of_a_raw_secret_is_decoded_from_base64() {
    let data = secret_data(&json!({"data": {"a": "eA==", "b": "", "c": null}})).unwrap();

    assert_eq!(
        data,
        [("a", &b"x"[..]), ("b", b""), ("c", b"")].map(|(key, value)| (key.to_owned(), value.to_vec())).into()
    );
    assert_eq!(secret_data(&json!({})).unwrap(), Data::new());
    assert_eq!(secret_data(&json!({"data": {"a": "geheim!"}})), Err(SecretDataError("a".to_owned())));
    assert_eq!(secret_data(&json!({"data": {"a": 1}})), Err(SecretDataError("a".to_owned())));
}

#[test]
fn labels_that_are_no_strings_are_dropped_with_a_warning() {
    let data = data(&[("k", b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {x: true, y: z}}\n")]);

    let decoded = decode([secret(&data)]);

    assert_eq!(decoded.documents[0].manifest["metadata"], json!({"name": "a"}));
    assert_eq!(decoded.warnings.len(), 1);
    assert_eq!(
        (decoded.warnings[0].object.as_str(), decoded.warnings[0].key.as_str()),
        ("v1/ConfigMap/default/a", "x")
    );
}

#[test]
fn debug_output_holds_no_manifest() {
    let data = data(&[("k", b"data: {password: geheim}\n")]);

    let document = decode([secret(&data)]).documents.remove(0);

    assert!(!format!("{document:?}").contains("geheim"));
}

#[test]
fn documents_are_shown_with_their_position_and_without_content() {
    let data = data(&[("k", b"password: geheim\n")]);

    let shown = format!("{:?}", decode([secret(&data)]).documents[0]);

    assert!(shown.contains("ns/s") && !shown.contains("geheim"), "{shown}");
}

/// The line in the data key, not in the document; if it is compressed, after decompression.
#[test]
fn an_error_names_the_line_of_the_data_key() {
    for (input, expected) in [
        (&b"a: 1\n---\nb: 1\nc: \xff\n"[..], "yaml: line 4: not UTF-8"),
        (b"\xff", "yaml: line 1: not UTF-8"),
        (b"{\"a\": 1}\n\n---\nb: ]\n", "yaml: line 4 column 4: "),
        (b"{\"a\": 1} # not JSON\n\n  ]\n", "yaml: line 3 column 3: "),
        (b"a: 1\r\n---\r\nb: ]\r\n", "yaml: line 3 column 4: "),
    ] {
        let error = with_limits(input, Limits::default()).pop().unwrap().1.unwrap_err();

        assert!(error.starts_with(expected), "{error}, expected {expected}");
    }
}

/// `<index> <path>@<line>` of each duplicate key.
fn duplicates(input: &str) -> Vec<String> {
    let data = data(&[("k", input.as_bytes())]);
    let documents = Decoder::new([secret(&data)], Limits::default()).with_duplicate_keys(3).filter_map(Result::ok);
    let keys = documents.flat_map(|document| {
        let index = document.index;
        document.duplicate_keys.into_iter().map(move |key| format!("{index} {}@{}", key.path, key.line))
    });
    keys.collect()
}

/// spec 10 §9.2: the last of two equal keys counts, so the reader of a manifest is told of both
#[test]
fn duplicate_keys_are_gathered_with_path_and_line() {
    let table: [(&str, &[&str]); 13] = [
        ("a: 1\nb: 1\n", &[]),
        ("a: 1\nb: 1\na: 2\n", &["0 a@3"]),
        ("a: 1\n---\nx:\n- k: {c: 1, d: 2}\n- k: {c: 1,\n c: 2}\n", &["1 x[1].k.c@6"]),
        ("true: 1\nyes: 2\n", &["0 true@2"]),
        ("m: {a.b/c: 1, a.b/c: 2}", &["0 m[a.b/c]@1"]),
        ("base: &b {a: 1}\nx:\n  <<: *b\n  a: 2\n", &[]),
        ("base: &b {a: 1}\nx:\n  <<: [*b]\n  a: 2\n  a: 3\n", &["0 x.a@5"]),
        ("base: &b {a: 1}\nx: {<<: *b}\nz: {<<: {c: 1, c: 2}}\n", &["0 z[<<].c@3"]),
        ("a: 1\na: 1\na: 1\na: 1\na: 1\n", &["0 a@2", "0 a@3", "0 a@4"]),
        // Read twice, because the text has to be repaired.
        ("a: 1\na: 2\nt: \"x\ny\"\n", &["0 a@2"]),
        ("{\"a\": 1,\n \"b\": {\"c\": [], \"c\": []}}\n{\"a\": 1,\n \"a\": 2}", &["0 b.c@2", "1 a@4"]),
        (
            "kind: List\nkind: List\napiVersion: v1\nitems:\n- {apiVersion: v1, kind: A}\n- apiVersion: v1\n  kind: A\n  kind: B\n",
            &["0 kind@2", "0 kind@8"],
        ),
        ("[", &[]),
    ];

    for (input, expected) in table {
        assert_eq!(duplicates(input), expected, "{input:?}");
    }
    let key = "x".repeat(900);
    let long = format!("{key}: {{{key}: {{{key}: {{a: 1, a: 2}}}}}}");
    assert!(duplicates(&long)[0].len() < 1_100);
    let data = data(&[("k", b"a: 1\na: 2")]);
    let document = Decoder::new([secret(&data)], Limits::default()).next().unwrap().unwrap();
    assert_eq!(document.duplicate_keys, [], "nothing is gathered unless it is asked for");
}

#[test]
fn template_line_of_an_unreadable_document_is_the_first_with_braces() {
    let line = |input: &str| {
        let data = data(&[("k", input.as_bytes())]);
        Decoder::new([secret(&data)], Limits::default()).last().unwrap().err().map(|error| error.template_line)
    };

    assert_eq!(line("a: 1\n---\nb: 1\nc: {{ .Values.c }}\n"), Some(Some(4)));
    assert_eq!(line("{{- if .Values.a }}\na: 1\n{{- end }}\n"), Some(Some(1)));
    assert_eq!(line("a: ["), Some(None));
    assert_eq!(line("a: '{{ .Values.c }}'"), None);
}
