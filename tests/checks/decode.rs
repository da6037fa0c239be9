//! Properties of the decoder (spec 10 §9.2).

use std::collections::BTreeSet;

use gardener_resource_manager::actors::resource_manager::bundle::decode::{
    Decoder, Limits, ManifestDocument, SecretData,
};
use serde_json::Value;

/// Small limits, so that an input of some kilobytes reaches each of them.
pub const LIMITS: Limits = Limits { decompressed: 10_000, documents: 50, depth: 10, aliases: 20_000, bundle: 100_000 };

/// A text that must never appear in an error.
const CONTENT: &str = "geheim";

/// The longest text of an error in bytes. The decoder counts 512 for each error.
const ERROR_TEXT: usize = 256;

/// What the decoder counts, in bytes, for a list, map, scalar or key in addition to its text.
const NODE_COST: usize = 64;

/// The longest key that YAML allows on one line, in characters.
const YAML_KEY: usize = 1000;

/// Checks the value of a data key, both plain and compressed.
pub fn check(input: &[u8]) {
    for key in ["k", "k.br"] {
        let (documents, errors) = decode(key, input, LIMITS);
        check_bounds(&documents, &errors);
        check_texts(&errors);
        for document in &documents {
            check_shape(&document.manifest);
            check_languages(&document.manifest);
        }
        assert_eq!(decode(key, input, LIMITS), (documents, errors), "decoding is a function of its input");
    }
    check_independence(input);
    check_work(input);
}

/// The cost of an input grows only with its size, unless it has aliases: the decoder reads nothing twice. In the worst
/// case each byte is a list and each second byte an error; repairs make a text up to 64 times larger.
fn check_work(input: &[u8]) {
    let bundle = (64 + 512 + 64) * input.len() + 10_000;
    let limits = Limits { decompressed: usize::MAX, documents: usize::MAX, depth: LIMITS.depth, aliases: 0, bundle };
    let (_, errors) = decode("k", input, limits);
    assert!(!errors.iter().any(|text| text.contains("bytes of memory")), "{} bytes cost too much", input.len());
}

/// An object decodes to the same value from JSON and from YAML. A list is skipped: it stands for its items.
pub fn check_languages(object: &Value) {
    if object["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) {
        return;
    }
    let (json, pretty) = (object.to_string(), format!("{object:#}"));
    assert_eq!(only(json.as_bytes()), Ok(object.clone()), "read as JSON");
    assert_eq!(only(pretty.as_bytes()), Ok(object.clone()), "read as JSON of several lines");
    if longest_key(object) <= YAML_KEY {
        assert_eq!(only(format!("# YAML\n{json}").as_bytes()), Ok(object.clone()), "read as YAML");
        assert_eq!(only(format!("---\n{pretty}").as_bytes()), Ok(object.clone()), "read as YAML of several lines");
    }
}

fn decode(key: &str, input: &[u8], limits: Limits) -> (Vec<ManifestDocument>, Vec<String>) {
    let data = [(key.to_owned(), input.to_owned())].into();
    let secret = SecretData { namespace: "ns", name: "secret", data: &data };
    let (mut documents, mut errors, mut next_index) = (Vec::<ManifestDocument>::new(), Vec::new(), 0);
    for item in Decoder::new([secret], limits) {
        let index = match &item {
            Ok(document) => document.index,
            Err(error) => error.index,
        };
        // The items of a list share its position.
        let last = documents.last().map(|document| document.index);
        let is_item = item.is_ok() && last == Some(index) && next_index == index + 1;
        assert!(index >= next_index || is_item, "positions go up: {index} after {next_index}");
        next_index = index + 1;
        match item {
            Ok(document) => documents.push(document),
            Err(error) => errors.push(error.text),
        }
    }
    (documents, errors)
}

fn only(input: &[u8]) -> Result<Value, String> {
    let (mut documents, errors) = decode("k", input, Limits::default());
    match (documents.pop(), errors.as_slice()) {
        (Some(document), []) if documents.is_empty() => Ok(document.manifest),
        (_, errors) => Err(format!("{} further documents, errors: {errors:?}", documents.len())),
    }
}

fn check_bounds(documents: &[ManifestDocument], errors: &[String]) {
    let places: BTreeSet<usize> = documents.iter().map(|document| document.index).collect();
    assert!(places.len() + errors.len() <= LIMITS.documents + 1, "the number of documents is bounded");
    let nodes: usize = documents.iter().map(|document| nodes(&document.manifest)).sum();
    assert!(
        nodes * NODE_COST <= LIMITS.bundle,
        "{nodes} lists, maps, scalars and keys are more than the memory allows"
    );
}

fn check_texts(errors: &[String]) {
    for text in errors {
        assert!(text.len() <= ERROR_TEXT, "a long error: {text}");
        assert!(!text.contains(CONTENT), "an error with content: {text}");
    }
}

fn check_shape(manifest: &Value) {
    assert!(manifest.is_object(), "a manifest is a map");
    assert!(height(manifest) <= LIMITS.depth, "the depth is bounded");
    for field in ["labels", "annotations"] {
        let map = manifest.get("metadata").and_then(|metadata| metadata.get(field));
        match map {
            None | Some(Value::Null) => {}
            Some(Value::Object(map)) => assert!(map.values().all(Value::is_string), "{field} are strings"),
            Some(_) => panic!("{field} are a map"),
        }
    }
}

/// A YAML document does not affect the next one: a stream given twice yields everything twice. Inputs with directives
/// or `...` are skipped, because these have another meaning after a separator than at the start of a stream.
fn check_independence(input: &[u8]) {
    const ROOMY: Limits = Limits { documents: 500, bundle: 1_000_000, ..LIMITS };

    let input = [b"# YAML\n", input, b"\n"].concat();
    let (once, errors) = decode("k", &input, LIMITS);
    let has_line = |start: &[u8]| input.split(|&byte| byte == b'\n').any(|line| line.starts_with(start));
    let is_about_a_bound = |text: &String| text.contains("more than") || text.contains("deeper than");
    if errors.iter().any(is_about_a_bound) || has_line(b"...") || has_line(b"%") {
        return;
    }

    let (twice, _) = decode("k", &[&input, &b"---\n"[..], &input].concat(), ROOMY);

    let manifests = |documents: &[ManifestDocument]| documents.iter().map(|it| it.manifest.clone()).collect::<Vec<_>>();
    assert_eq!(manifests(&twice), [manifests(&once), manifests(&once)].concat(), "a stream that comes twice");
}

fn nodes(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(nodes).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(|value| 1 + nodes(value)).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

fn height(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(height).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(height).max().unwrap_or_default(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn longest_key(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(longest_key).max().unwrap_or_default(),
        Value::Object(fields) => {
            let longest = fields.iter().map(|(key, value)| key.len().max(longest_key(value))).max();
            longest.unwrap_or_default()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}
