use crate::kinds::ServedKind;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
                         must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation \
                         is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
                     and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                     '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                         alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
                           and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or \
                           '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
                          'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

pub(super) fn object_name(kind: &ServedKind, name: &str) -> Vec<String> {
    match (kind.group.as_str(), kind.kind.as_str()) {
        _ if kind.custom => subdomain(name),
        ("rbac.authorization.k8s.io", _) => path_segment(name),
        ("", "Namespace" | "Service") => label(name),
        _ => subdomain(name),
    }
}

fn subdomain(name: &str) -> Vec<String> {
    let mut findings = Vec::new();
    if name.len() > 253 {
        findings.push(too_long(253));
    }
    if !is_subdomain(name) {
        findings.push(SUBDOMAIN.to_owned());
    }
    findings
}

fn label(name: &str) -> Vec<String> {
    let mut findings = Vec::new();
    if name.len() > 63 {
        findings.push(too_long(63));
    }
    if !is_label(name) {
        findings.push(if is_subdomain(name) { "must not contain dots".to_owned() } else { LABEL.to_owned() });
    }
    findings
}

fn path_segment(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    let forbidden = ["/", "%"].into_iter().filter(|text| name.contains(text));
    forbidden.map(|text| format!("may not contain '{text}'")).collect()
}

/// Findings about a name with an optional DNS name and slash: keys of labels and annotations, finalizers.
pub(super) fn qualified_name(text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((prefix, name)) if !name.contains('/') => {
            if prefix.is_empty() {
                findings.push("prefix part must be non-empty".to_owned());
            } else {
                findings.extend(subdomain(prefix).into_iter().map(|finding| format!("prefix part {finding}")));
            }
            name
        }
        Some(_) => {
            return vec![format!(
                "a qualified name {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                NAME_PART.trim_start_matches("name part ")
            )];
        }
    };
    if name.is_empty() {
        findings.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        findings.push(format!("name part {}", too_long(63)));
    }
    if !is_name(name) {
        findings.push(NAME_PART.to_owned());
    }
    findings
}

pub(super) fn label_value(value: &str) -> Vec<String> {
    let mut findings = Vec::new();
    if value.len() > 63 {
        findings.push(too_long(63));
    }
    if !value.is_empty() && !is_name(value) {
        findings.push(LABEL_VALUE.to_owned());
    }
    findings
}

pub(super) fn config_key(key: &str) -> Vec<String> {
    let mut findings = Vec::new();
    if key.len() > 253 {
        findings.push(too_long(253));
    }
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
        findings.push(CONFIG_KEY.to_owned());
    } else if key == "." || key == ".." {
        findings.push(format!("must not be '{key}'"));
    }
    findings
}

fn too_long(most: usize) -> String {
    format!("must be no more than {most} bytes")
}

fn is_subdomain(name: &str) -> bool {
    name.split('.').all(is_label)
}

fn is_label(name: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let bytes = name.as_bytes();
    is_end(bytes.first()) && is_end(bytes.last()) && bytes.iter().all(|byte| *byte == b'-' || is_end(Some(byte)))
}

fn is_name(name: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    is_end(bytes.first()) && is_end(bytes.last()) && bytes.iter().all(inner)
}
