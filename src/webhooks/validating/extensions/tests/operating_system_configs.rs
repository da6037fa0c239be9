//! Spec 62 §7.

use super::*;

const KIND: &str = "OperatingSystemConfig";
const REGISTRY: &str = "spec.criConfig.containerd.registries";
const SOURCES: &str = "either 'secretRef', 'inline' or 'imageRef' must be provided";
const FORM: &str = "; desired format: https://host[:port]";

fn of<const N: usize>(changes: [(&str, Value); N]) -> Vec<String> {
    created(&spec_with(KIND, changes))
}

fn containerd(more: Value) -> Vec<String> {
    let mut containerd = json!({ "sandboxImage": "p" });
    containerd.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    of([("/criConfig", json!({ "containerd": containerd }))])
}

fn registry(registry: Value) -> Vec<String> {
    containerd(json!({ "registries": [registry] }))
}

fn file(path: &str) -> Value {
    json!({ "path": path, "content": { "inline": { "data": "x" } } })
}

fn on(host: &str, path: &str) -> Value {
    with(file(path), [("/hostName", json!(host))])
}

/// spec 62 scenario 17; spec 62 §7.1 rules 1 to 5
#[test]
fn purpose_decides_whether_containerd_may_be_configured() {
    assert_eq!(of([("/purpose", json!(""))]), required(["spec.purpose"]));
    let unknown = "spec.purpose: Unsupported value: \"x\": supported values: \"provision\", \"reconcile\"".to_owned();
    let bare = json!({ "containerd": {} });
    let image = required(["spec.criConfig.containerd.sandboxImage"]).remove(0);
    assert_eq!(of([("/purpose", json!("x")), ("/criConfig", bare.clone())]), [unknown, image.clone()]);
    assert_eq!(of([("/criConfig", bare.clone())]), [image]);
    assert_eq!(
        of([("/purpose", json!("provision")), ("/criConfig", bare)]),
        [
            "spec.criConfig.containerd: Forbidden: containerd config is not allowed for OperatingSystemConfig with purpose \
          'provision'"
        ]
    );
    assert_eq!(
        of([("/criConfig", json!({ "cgroupDriver": "x" }))]),
        ["spec.criConfig.cgroupDriver: Unsupported value: \"x\": supported values: \"cgroupfs\", \"systemd\""]
    );
    assert!(of([("/criConfig", json!({ "name": "any", "cgroupDriver": "systemd" })), ("/type", json!(""))]).is_empty());
}

/// spec 62 scenarios 18, 19; spec 62 §7.1 rules 6 and 7
#[test]
fn upstream_is_a_host_with_a_port_and_unique() {
    let two = containerd(json!({ "registries": [{ "upstream": "_default" }, { "upstream": "_default" }] }));
    assert_eq!(two, [format!("{REGISTRY}[1].upstream: Duplicate value: \"_default\"")]);
    for fine in ["docker.io", "a:1", "reg.example.org:65535"] {
        assert!(registry(json!({ "upstream": fine })).is_empty(), "{fine}");
    }
    for port in ["70000", "0", "01", "65536", "99999999999999999999"] {
        let text = format!("port '{port}' is not valid, valid port must be in the range [1, 65535]");
        let error = format!("{REGISTRY}[0].upstream: Invalid value: \"a.b:{port}\": {text}");
        assert_eq!(registry(json!({ "upstream": format!("a.b:{port}") })), [error]);
    }
    for host in ["", "A", "a:b", "a:"] {
        let error = format!("{REGISTRY}[0].upstream: Invalid value: \"{host}\": {SUBDOMAIN}");
        assert_eq!(registry(json!({ "upstream": host })), [error]);
    }
}

/// spec 62 scenario 20; spec 62 §7.1 rules 8 to 12
#[test]
fn servers_and_hosts_are_urls() {
    let server = |url: &str| registry(json!({ "upstream": "a.b", "server": url }));
    let scheme = |value: &str| {
        format!("{REGISTRY}[0].server: Unsupported value: \"{value}\": supported values: \"http\", \"https\"")
    };
    let host = |field: &str| format!("{REGISTRY}[0].{field}: Invalid value: \"\": host must be provided{FORM}");
    assert!(server("https://reg.example.org:5000").is_empty());
    assert_eq!(server("reg.example.org"), [scheme(""), host("server")]);
    assert_eq!(server("reg.example.org:5000"), [scheme("reg.example.org"), host("server")]);
    assert_eq!(server("//reg.example.org"), [scheme("")]);
    assert_eq!(server("http://"), [host("server")]);
    for broken in ["10.0.0.1:5000", "https://a:b", "https://a/%zz", "https://a\u{1}"] {
        let errors = server(broken);
        let start = format!("{REGISTRY}[0].server: Required value: url must be a valid URL: ");
        assert!(errors.len() == 1 && errors[0].starts_with(&start) && errors[0].ends_with(FORM), "{errors:?}");
    }
    let url = |host: Value| registry(json!({ "upstream": "a.b", "hosts": [host] }));
    assert!(url(json!({ "url": "mirror://m.example.org", "capabilities": ["pull", "push", "resolve"] })).is_empty());
    let capability = format!(
        "{REGISTRY}[0].hosts[0].capabilities[0]: Unsupported value: \"fly\": supported values: \"push\", \"pull\", \"resolve\""
    );
    assert_eq!(url(json!({ "url": "m", "capabilities": ["fly"] })), [host("hosts[0].url"), capability]);
    assert_eq!(url(json!({ "url": "1:2" })).len(), 1);
}

/// spec 62 scenarios 21, 22; spec 62 §7.1 rule 13a
#[test]
fn plugins_have_a_path_and_a_map_of_values() {
    let plugin = |plugin: Value| containerd(json!({ "plugins": [plugin] }));
    let at = "spec.criConfig.containerd.plugins[0]";
    assert!(plugin(json!({ "path": ["a"], "values": { "a": 1 } })).is_empty());
    assert!(plugin(json!({ "path": ["a"], "op": "remove" })).is_empty());
    let removed = format!("{at}.values: Forbidden: values must not be specified when 'remove' operation is used");
    assert_eq!(plugin(json!({ "path": ["a"], "op": "remove", "values": { "a": 1 } })), [removed]);
    assert_eq!(
        plugin(json!({ "op": "move", "values": [1, 2] })),
        [
            format!("{at}.op: Unsupported value: \"move\": supported values: \"add\", \"remove\""),
            format!("{at}.path: Required value: must provide a path"),
            format!("{at}.values: Invalid value: \"[1,2]\": provided values must be given in json format"),
        ]
    );
}

/// spec 62 scenario 23; spec 62 §7.1 rules 14 to 17
#[test]
fn units_have_names_and_their_files_exist() {
    let unit = json!({ "name": "", "dropIns": [{}] });
    let fields = |list: &str| {
        ["name", "dropIns[0].name", "dropIns[0].content"]
            .map(|field| format!("{list}[0].{field}: Required value: field is required"))
    };
    assert_eq!(of([("/units", json!([unit]))]), fields("spec.units"));
    let status = with(good(KIND), [("/status", json!({ "extensionUnits": [unit] }))]);
    assert_eq!(created(&status), fields("status.extensionUnits"));

    let unit = json!({ "name": "u", "filePaths": ["/a", "/x", "/y"] });
    let object =
        with(spec_with(KIND, [("/units", json!([unit]))]), [("/status", json!({ "extensionFiles": [file("/x")] }))]);
    let missing =
        "spec.units[0].filePaths[2]: Invalid value: \"/y\": 'filePath' requires a matching 'path' in 'spec.files'";
    assert_eq!(created(&object), [missing]);
    let fixed = with(object, [("/spec/units/0/filePaths", json!(["/x"]))]);
    assert!(updated(&fixed, &good(KIND)).is_empty());
}

/// spec 62 scenario 25; spec 62 §7.1 rules 18 to 25
#[test]
fn files_have_one_source() {
    let content = |content: Value| of([("/files", json!([{ "path": "/a", "content": content }]))]);
    let at = "spec.files[0].content";
    assert_eq!(of([("/files", json!([file("")]))]), required(["spec.files[0].path"]));
    assert_eq!(content(json!({})), [format!("{at}: Required value: {SOURCES}")]);
    let two = content(json!({ "inline": { "data": "s3cret" }, "imageRef": { "image": "" } }));
    assert!(two.len() == 1 && two[0].starts_with(&format!("{at}: Invalid value: <")), "{two:?}");
    assert!(two[0].ends_with(&format!(": {SOURCES}, not multiple at the same time")) && !two[0].contains("s3cret"));
    let needs = |fields: [&str; 2]| fields.map(|field| format!("{at}.{field}: Required value: field is required"));
    assert_eq!(content(json!({ "secretRef": {} })), needs(["secretRef.name", "secretRef.dataKey"]));
    assert_eq!(content(json!({ "imageRef": {} })), needs(["imageRef.image", "imageRef.filePathInImage"]));
    assert_eq!(
        content(json!({ "inline": { "encoding": "rot13" } })),
        [
            format!("{at}.inline.encoding: Unsupported value: \"rot13\": supported values: \"\", \"b64\""),
            format!("{at}.inline.data: Required value: field is required"),
        ]
    );
    assert!(content(json!({ "inline": { "encoding": "b64", "data": "%" } })).is_empty());
    assert_eq!(
        of([("/files", json!([on("N", "/a")]))]),
        [format!("spec.files[0].hostName: Invalid value: \"N\": {SUBDOMAIN}")]
    );
}

/// spec 62 scenario 24; spec 62 §7.2
#[test]
fn file_path_is_unique_for_each_host() {
    let files = |files: Value| of([("/files", files)]);
    let twice = |at: usize| vec![format!("spec.files[{at}].path: Duplicate value: \"/a\"")];
    assert_eq!(files(json!([on("n1", "/a"), on("n2", "/a"), file("/a")])), twice(2));
    assert_eq!(files(json!([file("/a"), on("n1", "/a")])), twice(1));
    assert_eq!(files(json!([on("n1", "/a"), on("n1", "/a")])), twice(1));
    assert!(
        files(json!([on("a", "/a"), on("b", "/a"), on("b", "/a")])).is_empty(),
        "only the first host is remembered"
    );
    let object = with(good(KIND), [("/status", json!({ "extensionFiles": [file("/a")] }))]);
    assert_eq!(created(&object), ["status.extensionFiles[0].path: Duplicate value: \"/a\""]);
}
