//! Names, label keys and label values as Kubernetes checks them (spec 62 §2.7). The texts are the API server's.

const NAME: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";

/// Findings about a qualified name: an optional DNS subdomain and `/`, then a name of at most 63 bytes.
pub fn qualified_name(value: &str) -> Vec<String> {
    let mut parts = value.splitn(3, '/');
    let (prefix, name) = match (parts.next().unwrap_or_default(), parts.next(), parts.next()) {
        (name, None, _) => (None, name),
        (prefix, Some(name), None) => (Some(prefix), name),
        (_, Some(_), Some(_)) => {
            let form = name_form();
            return vec![format!(
                "a valid label key {form} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };

    let mut errors = Vec::new();
    match prefix {
        Some("") => errors.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => errors.extend(dns_subdomain(prefix).into_iter().map(|text| format!("prefix part {text}"))),
        None => {}
    }
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        errors.push("name part must be no more than 63 bytes".to_owned());
    }
    if !is_name(name) {
        errors.push(format!("name part {}", name_form()));
    }
    errors
}

/// Findings about a label value: empty, or a name of at most 63 bytes.
pub fn label_value(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > 63 {
        errors.push("must be no more than 63 bytes".to_owned());
    }
    if !value.is_empty() && !is_name(value) {
        errors.push(format!(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
             for validation is '({NAME})?')"
        ));
    }
    errors
}

fn name_form() -> String {
    format!(
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
         character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{NAME}')"
    )
}

/// Findings about a DNS label: at most 63 bytes.
pub fn dns_label(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > 63 {
        errors.push("must be no more than 63 characters".to_owned());
    }
    if !is_label(value) {
        errors.push(if dns_subdomain(value).is_empty() {
            "must not contain dots".to_owned()
        } else {
            format!(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
                 and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                 '{LABEL}')"
            )
        });
    }
    errors
}

/// Findings about a DNS subdomain: labels of any length with dots between them, at most 253 bytes in all.
pub fn dns_subdomain(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > 253 {
        errors.push("must be no more than 253 characters".to_owned());
    }
    if !value.split('.').all(is_label) {
        errors.push(format!(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '{SUBDOMAIN}')"
        ));
    }
    errors
}

fn is_name(value: &str) -> bool {
    let bytes = value.as_bytes();
    let ends = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    ends(bytes.first()) && ends(bytes.last()) && bytes.iter().all(inner)
}

fn is_label(value: &str) -> bool {
    let bytes = value.as_bytes();
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = |byte: Option<&u8>| byte.is_some_and(alphanumeric);
    ends(bytes.first()) && ends(bytes.last()) && bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME_FORM: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
        alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
        '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

    /// spec 62 §2.7
    #[test]
    fn qualified_names_are_checked_part_by_part() {
        let long = "a".repeat(64);
        let table = [
            ("a", vec![]),
            ("example.com/My_Name.1", vec![]),
            ("/a", vec!["prefix part must be non-empty".to_owned()]),
            ("a/", vec!["name part must be non-empty".to_owned(), format!("name part {NAME_FORM}")]),
            (&long, vec!["name part must be no more than 63 bytes".to_owned()]),
            ("-a", vec![format!("name part {NAME_FORM}")]),
            (
                "a/b/c",
                vec![format!(
                    "a valid label key {NAME_FORM} with an optional DNS subdomain prefix and '/' (e.g. \
                     'example.com/MyName')"
                )],
            ),
        ];

        for (value, errors) in table {
            assert_eq!(qualified_name(value), errors, "{value}");
        }
        let prefix = qualified_name("Example.com/a");
        assert!(prefix[0].starts_with("prefix part a lowercase RFC 1123 subdomain must consist"), "{prefix:?}");
    }

    /// spec 62 §2.7
    #[test]
    fn names_of_dns_are_lower_case_letters_digits_and_dashes() {
        let (label, name) = ("a".repeat(64), format!("{}a", "a.".repeat(127)));
        let form = |kind: &str| format!("a lowercase RFC 1123 {kind} must consist of");
        for (value, of_label, of_name) in [
            ("a-1", vec![], vec![]),
            ("a.b", vec!["must not contain dots".to_owned()], vec![]),
            ("A", vec![form("label")], vec![form("subdomain")]),
            ("", vec![form("label")], vec![form("subdomain")]),
            ("a..b", vec![form("label")], vec![form("subdomain")]),
            (&label, vec!["must be no more than 63 characters".to_owned()], vec![]),
            (
                &name,
                vec!["must be no more than 63 characters".to_owned(), form("label")],
                vec!["must be no more than 253 characters".to_owned()],
            ),
        ] {
            for (found, expected) in [(dns_label(value), of_label), (dns_subdomain(value), of_name)] {
                assert_eq!(found.len(), expected.len(), "{value}: {found:?}");
                assert!(found.iter().zip(&expected).all(|(found, expected)| found.starts_with(expected)), "{found:?}");
            }
        }
    }

    /// spec 62 §2.7
    #[test]
    fn label_values_may_be_empty_but_not_strange() {
        assert_eq!(label_value(""), Vec::<String>::new());
        assert_eq!(label_value("a_b"), Vec::<String>::new());
        assert_eq!(label_value(&"a".repeat(64)), ["must be no more than 63 bytes"]);
        assert!(label_value("a b")[0].ends_with("is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"));
    }
}
