use std::{collections::BTreeMap, io};

use serde_json::json;

use super::*;
use crate::{
    cli::{DataFormat, PackOptions},
    commands::{
        DIFFERENT, OK, input,
        pack::{pack, pack_within},
        unpack,
    },
    producer::decode::Limits,
};

fn options() -> PackOptions {
    PackOptions { name: "web".to_owned(), namespace: Some("garden".to_owned()), ..PackOptions::default() }
}

fn unpack_files(sources: &[Source], list: bool) -> Said {
    unpack::from_files(sources).said(list, None).unwrap()
}

#[test]
fn pack_and_unpack_are_inverse() {
    let manifests = format!("{}---\n# nothing\n---\n{}", config_map("b"), config_map("a"));
    for plain in [false, true] {
        let packed =
            pack(&PackOptions { plain, class: Some("seed".to_owned()), ..options() }, &[source("a.yaml", &manifests)]);

        let unpacked = unpack_files(&[source("-", &packed.out)], false);
        let listed = unpack_files(&[source("-", &packed.out)], true);

        assert_eq!((packed.code, unpacked.code, unpacked.remarks.as_slice()), (OK, OK, [].as_slice()));
        assert!(packed.out.contains("class: seed") && packed.out.contains("immutable: true"), "{}", packed.out);
        assert_eq!(packed.out.contains("stringData:"), plain);
        assert_eq!(unpacked.out.matches("kind: ConfigMap").count(), 2);
        assert!(unpacked.out.find("name: a").unwrap() < unpacked.out.find("name: b").unwrap());
        let rows: Vec<Vec<&str>> = listed.out.lines().map(|line| line.split_whitespace().collect()).collect();
        let key = if plain { "data.yaml" } else { "data.yaml.br" };
        assert_eq!(rows[0], ["KIND", "NAMESPACE", "NAME", "KEY", "BYTES"]);
        assert_eq!(rows[1][..4], ["ConfigMap", "ns", "a", key]);
    }
}

#[test]
fn list_shows_a_very_long_name() {
    let name = "x".repeat(100_000);
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "ns"},
        "stringData": {"a": config_map(&name), "b": config_map("short")},
    });

    let listed = unpack_files(&[source("-", &secret.to_string())], true);

    let lengths: Vec<usize> = listed.out.lines().map(str::len).collect();
    assert!(listed.out.contains(&name) && lengths[2] < 500, "{lengths:?}");
}

#[test]
fn pack_ignores_the_order_of_files() {
    let (a, b) = (config_map("a"), config_map("b"));

    let one = pack(&options(), &[source("1.yaml", &a), source("2.yaml", &b)]);
    let other = pack(&options(), &[source("1.yaml", &b), source("2.yaml", &a)]);

    assert_eq!(one, other);
}

#[test]
fn pack_may_print_only_the_secret_and_no_namespace() {
    let said =
        pack(&PackOptions { secret_only: true, namespace: None, ..options() }, &[source("a.yaml", &config_map("a"))]);

    assert!(said.out.contains("name: managedresource-web-"), "{}", said.out);
    assert!(!said.out.contains("ManagedResource\n") && !said.out.contains("namespace"), "{}", said.out);
}

#[test]
fn pack_names_bad_documents_by_file_and_position_without_content() {
    let duplicate = format!("{}---\n{}", config_map("a"), config_map("a"));
    let table = [
        ("kind: ConfigMap\nmetadata: {name: a}", "f.yaml: the object has no apiVersion or no kind"),
        ("apiVersion: v1\nkind: ConfigMap", "f.yaml: v1/ConfigMap/default/ has no metadata.name"),
        (duplicate.as_str(), "f.yaml:1: v1/ConfigMap/ns/a is in f.yaml:0 already"),
        ("hidden: [", "f.yaml: yaml: line 1"),
        ("- hidden", "f.yaml: the document is a list and no map"),
        ("apiVersion: v1\nkind: List\nmetadata: {name: a}\nitems: []", "f.yaml: v1/List/default/a is a list"),
        (
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: {on: hidden, x: yes}}",
            "f.yaml: v1/Secret/default/a: a value in metadata.annotations is no string (key \"x\")",
        ),
        (
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: n}",
            "f.yaml: v1/Secret/default/a: metadata.namespace is no string",
        ),
        ("", "there is no manifest in the input"),
    ];

    for (text, expected) in table {
        let said = pack(&options(), &[source("f.yaml", text)]);

        assert_eq!((said.code, said.out.as_str()), (DIFFERENT, ""));
        assert!(said.remarks[0].starts_with(expected), "{:?}", said.remarks);
        assert!(said.remarks[0].contains(" — ") && !said.remarks[0].contains("hidden"), "{:?}", said.remarks);
    }
}

/// spec 10 §11.3
#[test]
fn pack_splits_lists_into_items() {
    let item =
        |name: &str| format!("- {{apiVersion: v1, kind: ConfigMap, metadata: {{namespace: ns, name: {name}}}}}\n");
    let list = format!("apiVersion: v1\nkind: ConfigMapList\nitems:\n{}{}", item("a"), item("b"));

    let packed = pack(&options(), &[source("f", &list)]);
    let listed = unpack_files(&[source("-", &packed.out)], true);

    assert_eq!((packed.code, packed.remarks.as_slice()), (OK, [].as_slice()));
    assert_eq!(listed.out.lines().filter(|line| line.starts_with("ConfigMap ")).count(), 2, "{}", listed.out);
}

#[test]
fn pack_refuses_a_secret_that_the_api_server_refuses() {
    let random = "x".repeat(1 << 20);
    let huge = format!("{}  big: \"{random}\"\n", config_map("a"));

    let large = pack(&PackOptions { plain: true, ..options() }, &[source("f", &huge)]);

    assert!(large.remarks[0].starts_with("the Secret would hold "), "{:?}", large.remarks);
}

#[test]
fn pack_refuses_manifests_that_the_controller_could_not_decode() {
    let sources = ["a", "b", "c"].map(|name| source(&format!("{name}.yaml"), &config_map(name)));
    let refused = |limits| {
        let said = pack_within(&options(), &sources, limits);
        assert_eq!((said.code, said.out.as_str(), said.remarks.len()), (DIFFERENT, "", 1), "{:?}", said.remarks);
        said.remarks[0].clone()
    };

    let large = refused(Limits { decompressed: 200, ..Limits::default() });
    let many = refused(Limits { documents: 2, ..Limits::default() });
    let deep = refused(Limits { depth: 1, ..Limits::default() });

    let text = "c.yaml: with this document the bundle has 266 bytes of YAML, more than the 200 that the controller decompresses \
                — pack the manifests into several bundles";
    assert_eq!(large, text);
    assert!(
        many.starts_with("the controller could not decode the bundle: there are more than 2 documents — "),
        "{many}"
    );
    assert!(deep.contains("could not decode the bundle: ") && deep.contains("deeper than 1 levels"), "{deep}");
}

#[test]
fn pack_and_unpack_of_deep_lists_take_little_room() {
    kit::testing::on_a_large_stack(|| {
        let manifest = |name: &str| {
            let (open, close) = ("[".repeat(9_990), "]".repeat(9_990));
            let head = format!(r#""apiVersion": "v1", "kind": "A", "metadata": {{"name": "{name}"}}"#);
            format!(r#"{{{head}, "spec": {open}"a: b"{close}}}"#)
        };
        let sources = ["a", "b"].map(|name| source(name, &manifest(name)));

        let packed = pack(&options(), &sources);
        let unpacked = unpack_files(&[source("-", &packed.out)], false);
        let again = pack(&options(), &[source("-", &unpacked.out)]);
        let listed =
            unpack::from_files(&[source("-", &packed.out)]).said(false, Some(&"json".parse().unwrap())).unwrap();

        assert_eq!((packed.code, unpacked.code, unpacked.remarks), (OK, OK, Vec::new()), "{:?}", packed.remarks);
        assert_eq!(again, packed);
        assert!(packed.out.len() < 10_000 && unpacked.out.len() < 500_000, "{}", unpacked.out.len());
        assert!(listed.out.len() < 100_000, "{}", listed.out.len());
    });
}

#[test]
fn pack_as_json_is_one_object_or_a_list() {
    let json = PackOptions { output: Some(DataFormat::Json), ..options() };

    let both = pack(&json, &[source("f", &config_map("a"))]);
    let alone = pack(&PackOptions { secret_only: true, ..json }, &[source("f", &config_map("a"))]);

    let both_read: serde_json::Value = serde_json::from_str(&both.out).unwrap();
    assert_eq!((&both_read["kind"], &both_read["items"][1]["kind"]), (&json!("List"), &json!("ManagedResource")));
    let alone_read: serde_json::Value = serde_json::from_str(&alone.out).unwrap();
    assert_eq!(alone_read, both_read["items"][0]);
    let unpacked = unpack_files(&[source("-", &both.out)], false);
    assert_eq!((unpacked.code, unpacked.out.matches("kind: ConfigMap").count()), (OK, 1), "{:?}", unpacked.remarks);
}

#[test]
fn pack_says_if_kubectl_apply_needs_a_flag() {
    let of = |bytes: usize, plain: bool| {
        let letters = "abcdefghijklmnop".chars().cycle();
        let text: String = letters.take(bytes).collect();
        pack(&PackOptions { plain, ..options() }, &[source("f", &format!("{}  big: \"{text}\"\n", config_map("a")))])
    };

    let large = of(300 << 10, true);
    assert_eq!((large.code, large.remarks.len()), (OK, 1), "{:?}", large.remarks);
    assert!(large.remarks[0].starts_with("warning: v1/Secret/garden/managedresource-web-"), "{:?}", large.remarks);
    assert!(large.remarks[0].contains(" bytes: apply it with kubectl apply --server-side, "), "{:?}", large.remarks);
    assert_eq!(of(200 << 10, true).remarks, Vec::<String>::new());
    assert_eq!(of(300 << 10, false).remarks, Vec::<String>::new(), "compression makes it small");
}

#[test]
fn input_that_is_a_template_is_named_as_such() {
    let text = config_map("{{ .Values.name }}");

    let packed = pack(&options(), &[source("f", &text)]);

    assert!(
        packed.remarks[0].contains("; line 4 has {{ … }}: it is a template, such as those of Helm — render"),
        "{:?}",
        packed.remarks
    );
}

#[test]
fn unpack_takes_lists_of_secrets_and_refuses_other_objects() {
    let list = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: s}\n  stringData: {a: 'kind: A'}\n";
    let broken = "apiVersion: v1\nkind: Secret\nmetadata: {namespace: ns, name: s}\nstringData: {a: \"kind: A\\n---\\n- hidden\"}\n";

    let list = unpack_files(&[source("-", list)], false);
    let other = unpack_files(&[source("f", &config_map("a"))], false);
    let broken = unpack_files(&[source("f", broken)], false);

    assert_eq!((list.out.as_str(), list.code), ("kind: A\n", OK));
    let kindless = unpack_files(&[source("f", "apiVersion: v1")], false);
    assert_eq!(errors(&other), ["f: v1/ConfigMap/ns/a is no Secret — give the Secret of a bundle"]);
    assert_eq!(errors(&kindless), ["f: an object without kind is no Secret — give the Secret of a bundle"]);
    assert_eq!((broken.out.as_str(), broken.code), ("kind: A\n", DIFFERENT));
    let text = "Could not decode resource at index 1 in 'a' in secret 'ns/s': the document is a list and no map.";
    assert_eq!(broken.remarks, [text]);
}

#[test]
fn unpack_succeeds_if_there_are_only_warnings() {
    let manifest = "apiVersion: v1\\nkind: A\\nmetadata: {name: a, labels: {b: true}}\\n";
    let secret = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{namespace: ns, name: s}}\nstringData: {{a: \"{manifest}\"}}\n"
    );

    let said = unpack_files(&[source("warning: f", &secret)], false);
    let broken = unpack_files(&[source("warning: f", "- a")], false);

    assert!(said.remarks[0].starts_with("warning: "), "{:?}", said.remarks);
    assert_eq!((said.remarks.len(), said.code), (1, OK));
    assert_eq!(broken.code, DIFFERENT, "{:?}", broken.remarks);
}

#[test]
fn unpack_prints_json_for_programs() {
    let packed = pack(&options(), &[source("f", &config_map("a"))]);
    let read = |list: bool| -> serde_json::Value {
        let said = unpack::from_files(&[source("-", &packed.out)]).said(list, Some(&"json".parse().unwrap())).unwrap();
        serde_json::from_str(&said.out).unwrap()
    };

    let (list, rows) = (read(false), read(true));

    assert_eq!((&list["kind"], &list["items"][0]["metadata"]["name"]), (&json!("List"), &json!("a")));
    assert_eq!((&rows[0]["kind"], &rows[0]["name"]), (&json!("ConfigMap"), &json!("a")));
    assert!(rows[0]["bytes"].as_u64().is_some_and(|bytes| bytes > 50), "{rows}");
}

#[test]
fn unpack_refuses_a_decompression_bomb() {
    let mut registry = crate::producer::Registry::default();
    registry.add_serialized("bomb", format!("a: {}", "x".repeat(2000)));
    let secret = crate::producer::SecretBuilder::new("ns", "s").data(registry.data()).build();
    let limits = Limits { decompressed: 1000, ..Limits::default() };

    let said = unpack::secrets_within(&[secret], limits).said(false, None).unwrap();

    assert_eq!((said.code, said.out.as_str()), (DIFFERENT, ""));
    assert!(said.remarks[0].contains("decompressed data is larger than 1000 bytes"), "{:?}", said.remarks);
}

#[test]
fn input_folders_are_read_in_order_and_only_their_manifests() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    std::fs::create_dir(at("b")).unwrap();
    for (path, text) in [("c.json", "{}"), ("b/x.yml", "b"), ("a.yaml", "a"), ("ignored.txt", "t")] {
        std::fs::write(at(path), text).unwrap();
    }
    let paths = |paths: &[&str]| -> Vec<String> { paths.iter().map(|path| (*path).to_owned()).collect() };
    let root = folder.path().display().to_string();

    let read = input::read(&paths(&[&root, "-"]), &mut io::Cursor::new("in")).unwrap();
    let twice = input::read(&paths(&["-", "-"]), &mut io::empty());
    let missing = input::read(&paths(&["/nowhere.yaml"]), &mut io::empty());
    std::fs::create_dir(at("empty")).unwrap();
    let empty = input::read(&paths(&[&at("empty").display().to_string()]), &mut io::empty());

    let names: BTreeMap<usize, String> = read.iter().map(|source| source.name.replace(&root, "")).enumerate().collect();
    assert_eq!(names.into_values().collect::<Vec<_>>(), ["/a.yaml", "/b/x.yml", "/c.json", "-"]);
    assert_eq!(read[3].bytes, b"in");
    assert!(twice.is_err());
    assert!(missing.err().unwrap().to_string().starts_with("cannot read /nowhere.yaml: "));
    assert!(empty.err().unwrap().to_string().contains("has no *.yaml"));
}
