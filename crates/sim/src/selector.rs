//! Label and field selectors of lists and watches (facts §2).

use serde_json::Value;

use super::{kinds::ServedKind, status::Failure};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LabelSelector(Vec<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    In(Vec<String>),
    /// Absence matches as well.
    NotIn(Vec<String>),
    Greater(i64),
    Less(i64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    /// One of `= == != > < ! , ( )`.
    Sign(&'static str),
}

/// Field requirements, which must all be met: path, whether it must be equal, value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FieldSelector(Vec<(String, bool, String)>);

impl LabelSelector {
    /// Reads e.g. `a=b,c in (d, e),!f`.
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let tokens = tokens(text);
        let mut rest = tokens.as_slice();
        let mut requirements = Vec::new();
        while !rest.is_empty() {
            requirements.push(requirement(&mut rest).map_err(|text| unparsable(&text))?);
            match rest {
                [] => {}
                // A requirement must follow the comma.
                [Token::Sign(","), _, ..] => rest = &rest[1..],
                [Token::Sign(",")] => return Err(unparsable("found '', expected: identifier after ','")),
                [other, ..] => {
                    return Err(unparsable(&format!("found '{}', expected: ',' or 'end of string'", other.text())));
                }
            }
        }
        Ok(Self(requirements))
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|requirement| {
            let label = object["metadata"]["labels"].get(&requirement.key).and_then(Value::as_str);
            requirement.test.accepts(label)
        })
    }
}

impl Test {
    fn accepts(&self, label: Option<&str>) -> bool {
        let number = || label.and_then(|label| label.parse::<i64>().ok());
        match self {
            Self::Exists => label.is_some(),
            Self::Absent => label.is_none(),
            Self::In(values) => label.is_some_and(|label| values.iter().any(|value| value == label)),
            Self::NotIn(values) => label.is_none_or(|label| values.iter().all(|value| value != label)),
            Self::Greater(bound) => number().is_some_and(|number| number > *bound),
            Self::Less(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::Word(word) => word,
            Self::Sign(sign) => sign,
        }
    }
}

fn tokens(text: &str) -> Vec<Token> {
    const SIGNS: [&str; 9] = ["==", "!=", "=", "!", ">", "<", ",", "(", ")"]; // longer signs first
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let token = match SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            Some(sign) => Token::Sign(sign),
            None => {
                let is_end = |letter: char| letter.is_whitespace() || "=!><,()".contains(letter);
                Token::Word(rest[..rest.find(is_end).unwrap_or(rest.len())].to_owned())
            }
        };
        rest = rest[token.text().len()..].trim_start();
        tokens.push(token);
    }
    tokens
}

fn requirement(rest: &mut &[Token]) -> Result<Requirement, String> {
    let negated = matches!(rest, [Token::Sign("!"), ..]);
    if negated {
        *rest = &rest[1..];
    }
    let Some((Token::Word(key), after)) = rest.split_first() else {
        let found = rest.first().map(Token::text).unwrap_or_default();
        return Err(format!("found '{found}', expected: !, identifier, or 'end of string'"));
    };
    check_key(key)?;
    *rest = after;
    let key = key.clone();
    if negated {
        return Ok(Requirement { key, test: Test::Absent });
    }
    let Some((operator, after)) = rest.split_first() else { return Ok(Requirement { key, test: Test::Exists }) };
    if *operator == Token::Sign(",") {
        return Ok(Requirement { key, test: Test::Exists });
    }
    *rest = after;
    let test = match operator.text() {
        "=" | "==" => Test::In(vec![label_value(rest)?]),
        "!=" => Test::NotIn(vec![label_value(rest)?]),
        ">" => Test::Greater(bound(rest)?),
        "<" => Test::Less(bound(rest)?),
        "in" => Test::In(values(rest)?),
        "notin" => Test::NotIn(values(rest)?),
        found => return Err(format!("found '{found}', expected: in, notin, =, ==, !=, gt, lt")),
    };
    Ok(Requirement { key, test })
}

fn label_value(rest: &mut &[Token]) -> Result<String, String> {
    let value = match rest {
        [] | [Token::Sign(","), ..] => return Ok(String::new()),
        [Token::Word(value), ..] => value.clone(),
        [other, ..] => return Err(format!("found '{}', expected: identifier", other.text())),
    };
    *rest = &rest[1..];
    check_value(&value)?;
    Ok(value)
}

fn bound(rest: &mut &[Token]) -> Result<i64, String> {
    let text = label_value(rest)?;
    text.parse().map_err(|_| {
        format!("values[0]: Invalid value: \"{text}\": for 'Gt', 'Lt' operators, the value must be an integer")
    })
}

/// A list in parentheses. Two commas in a row mean an empty value.
fn values(rest: &mut &[Token]) -> Result<Vec<String>, String> {
    let found = |rest: &[Token]| rest.first().map(|token| token.text().to_owned()).unwrap_or_default();
    if !matches!(rest, [Token::Sign("("), ..]) {
        return Err(format!("found '{}' expected: '('", found(rest)));
    }
    *rest = &rest[1..];
    let mut values = Vec::new();
    loop {
        values.push(match rest {
            [Token::Word(value), ..] => {
                check_value(value)?;
                let value = value.clone();
                *rest = &rest[1..];
                value
            }
            _ => String::new(),
        });
        match rest {
            [Token::Sign(","), ..] => *rest = &rest[1..],
            [Token::Sign(")"), ..] => {
                *rest = &rest[1..];
                return Ok(values);
            }
            _ => return Err(format!("found '{}', expected: ',' or ')'", found(rest))),
        }
    }
}

/// A label key: a name with an optional DNS name and slash before it.
fn check_key(key: &str) -> Result<(), String> {
    let name = key.rsplit('/').next().unwrap_or_default();
    if key.matches('/').count() <= 1 && is_name(name) {
        return Ok(());
    }
    Err(format!("key: Invalid value: \"{key}\": name part must consist of alphanumeric characters, '-', '_' or '.'"))
}

fn check_value(value: &str) -> Result<(), String> {
    if value.is_empty() || is_name(value) {
        return Ok(());
    }
    Err(format!(
        "values[0]: Invalid value: \"{value}\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.'"
    ))
}

/// At most 63 letters, digits, `-`, `_`, `.`; a letter or digit at both ends.
fn is_name(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let at_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63 && at_end(bytes.first()) && at_end(bytes.last()) && bytes.iter().all(|byte| inner(*byte))
}

fn unparsable(text: &str) -> Failure {
    Failure::bad_request(&format!("unable to parse requirement: {text}"))
}

fn fields(kind: &ServedKind) -> &'static [&'static str] {
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "pods") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        ("", "events") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("events.k8s.io", "events") => &[
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type",
        ],
        ("", "secrets") => &["type"],
        ("", "services") => &["spec.clusterIP", "spec.type"],
        ("", "nodes") => &["spec.unschedulable"],
        ("", "namespaces") => &["status.phase"],
        ("", "replicationcontrollers") | ("apps", "replicasets") => &["status.replicas"],
        ("batch", "jobs") => &["status.successful"],
        ("certificates.k8s.io", "certificatesigningrequests") => &["spec.signerName"],
        _ => &[],
    }
}

impl FieldSelector {
    /// Reads e.g. `metadata.name=a,type!=b`. `\` escapes a comma, an equals sign or itself in values.
    pub(super) fn parse(kind: &ServedKind, text: &str) -> Result<Self, Failure> {
        let mut requirements = Vec::new();
        for term in split_terms(text).iter().filter(|term| !term.is_empty()) {
            let (field, equal, value) = match (term.split_once("!="), term.split_once("=="), term.split_once('=')) {
                (Some((field, value)), ..) => (field, false, value),
                (None, Some((field, value)), _) | (None, None, Some((field, value))) => (field, true, value),
                (None, None, None) => {
                    let text = format!("invalid selector: '{text}'; can't understand '{term}'");
                    return Err(Failure::bad_request(&text));
                }
            };
            let common = field == "metadata.name" || (kind.namespaced && field == "metadata.namespace");
            if !common && !fields(kind).contains(&field) {
                return Err(unknown_field(kind, field));
            }
            requirements.push((field.to_owned(), equal, unescape(value)));
        }
        Ok(Self(requirements))
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|(field, equal, wanted)| (field_text(object, field) == *wanted) == *equal)
    }
}

fn unknown_field(kind: &ServedKind, field: &str) -> Failure {
    if kind.custom || kind.plural == "pods" {
        return Failure::bad_request(&format!("field label not supported: {field}"));
    }
    Failure::bad_request(&format!(
        "\"{field}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
    ))
}

fn split_terms(text: &str) -> Vec<String> {
    let mut terms = vec![String::new()];
    let mut escaped = false;
    for letter in text.chars() {
        if letter == ',' && !escaped {
            terms.push(String::new());
        } else if let Some(term) = terms.last_mut() {
            term.push(letter);
        }
        escaped = letter == '\\' && !escaped;
    }
    terms
}

fn unescape(value: &str) -> String {
    let mut out = String::new();
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        out.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    out
}

/// The value that selectors compare. An absent field is empty, `false` for flags, 0 for counters.
fn field_text(object: &Value, field: &str) -> String {
    let pointer = format!("/{}", field.replace('.', "/"));
    // Selectors use other names for these.
    let pointer = match field {
        "source" => "/source/component",
        "status.successful" => "/status/succeeded",
        _ => &pointer,
    };
    match object.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(other @ (Value::Bool(_) | Value::Number(_))) => other.to_string(),
        _ => match field {
            "spec.unschedulable" | "spec.hostNetwork" => "false".into(),
            "status.replicas" | "status.successful" => "0".into(),
            _ => String::new(),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds;

    #[test]
    fn labels_are_selected() {
        let object = json!({"metadata": {"labels": {"a": "b", "n": "5", "e": "", "x.io/y": "z"}}});
        let table = [
            ("a=b", true),
            ("a == b", true),
            ("a=c", false),
            ("a!=c", true),
            ("q!=c", true),
            ("a in (c, b)", true),
            ("a notin (b)", false),
            ("q notin (b)", true),
            ("a", true),
            ("!a", false),
            ("!q,x.io/y=z", true),
            ("n>4", true),
            ("n<5", false),
            ("e=", true),
            ("e in (,f)", true),
            ("a=b,a=c", false),
            ("", true),
        ];
        for (text, expected) in table {
            assert_eq!(LabelSelector::parse(text).unwrap().matches(&object), expected, "{text}");
        }
    }

    #[test]
    fn selector_errors_have_the_servers_words() {
        let table = [
            ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
            ("a,", "unable to parse requirement: found '', expected: identifier after ','"),
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
            ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ];
        for (text, message) in table {
            assert_eq!(LabelSelector::parse(text).unwrap_err(), Failure::bad_request(message), "{text}");
        }
        for text in ["=a", "a=b=c", "a>x", "!", "a=-b-", "a/b/c"] {
            assert_eq!(LabelSelector::parse(text).unwrap_err().code, 400, "{text}");
        }
    }

    #[test]
    fn fields_are_selected() {
        let kind = |plural: &str| kinds::built_in().into_iter().find(|kind| kind.plural == plural).unwrap();
        let secret = json!({"metadata": {"name": "a", "namespace": "n"}, "type": "Opaque"});
        let table = [("metadata.name=a", true), ("type!=Opaque", false), ("metadata.namespace==n,type=x", false)];
        for (text, expected) in table {
            assert_eq!(FieldSelector::parse(&kind("secrets"), text).unwrap().matches(&secret), expected, "{text}");
        }

        let unschedulable = FieldSelector::parse(&kind("nodes"), "spec.unschedulable=false").unwrap();
        let unknown = FieldSelector::parse(&kind("configmaps"), "data.v=1").unwrap_err();
        let unknown_of_pods = FieldSelector::parse(&kind("pods"), "spec.a=1").unwrap_err();

        assert!(unschedulable.matches(&json!({"metadata": {"name": "a"}})));
        assert_eq!(
            unknown,
            Failure::bad_request(
                "\"data.v\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
            )
        );
        assert_eq!(unknown_of_pods, Failure::bad_request("field label not supported: spec.a"));
    }
}
