use super::*;
use crate::webhooks::testing::{TestView, changes, failure, leaves};

const LABEL: &str = "token-invalidator.resources.gardener.cloud/consider";

fn secret(labels: &str, data: &str) -> String {
    format!("{{type: kubernetes.io/service-account-token, metadata: {{labels: {labels}}}, data: {data}}}")
}

fn considered(data: &str) -> String {
    secret(&format!("{{{LABEL}: 'true', other: x}}"), data)
}

fn becomes(before: &str, after: &str) {
    let view = TestView::new();
    changes(&TokenInvalidator, &view, &format!("{before}\n---\n{after}"));
    assert!(view.reads().is_empty());
}

/// spec 31 §5.2 row 4, scenarios 4, 5, 6 and 24
#[test]
fn token_of_a_considered_secret_is_made_invalid() {
    for data in [
        "{token: dmFsaWQ=, ca.crt: Y2E=}",
        "{token: '', ca.crt: Y2E=}",
        "{token: null, ca.crt: Y2E=}",
        "{ca.crt: Y2E=}",
        "{token: AAA=, ca.crt: Y2E=}",
    ] {
        becomes(&considered(data), &considered("{token: AAAA, ca.crt: Y2E=}"));
    }
    becomes(&considered("{}"), &considered("{token: AAAA}"));
    leaves(&TokenInvalidator, &TestView::new(), &considered("{token: AAAA, ca.crt: Y2E=}"));
}

/// spec 31 §2, scenario 20
#[test]
fn consider_label_counts_with_any_value() {
    for value in ["''", "'false'", "x"] {
        let labels = format!("{{{LABEL}: {value}}}");
        becomes(&secret(&labels, "{token: dmFsaWQ=}"), &secret(&labels, "{token: AAAA}"));
    }
}

/// spec 31 §5.2 row 3, T8, scenario 19
#[test]
fn secret_without_data_stays() {
    leaves(&TokenInvalidator, &TestView::new(), &considered("null"));
    leaves(&TokenInvalidator, &TestView::new(), &format!("metadata: {{labels: {{{LABEL}: 'true'}}}}"));
    leaves(&TokenInvalidator, &TestView::new(), "{}");
}

/// spec 31 §5.2 row 5, scenarios 7, 9 and 21
#[test]
fn token_that_is_invalid_is_removed_from_any_other_secret() {
    becomes(&secret("{}", "{token: AAAA, ca.crt: Y2E=}"), &secret("{}", "{ca.crt: Y2E=}"));
    becomes(&secret("null", "{token: AAAA}"), &secret("null", "{}"));
}

/// spec 31 §5.2 row 6, scenario 22
#[test]
fn token_that_is_valid_stays_in_any_other_secret() {
    for data in ["{token: dmFsaWQ=}", "{token: AAAAAA==}", "{token: AAA=}", "{token: ''}", "{ca.crt: AAAA}", "{}"] {
        leaves(
            &TokenInvalidator,
            &TestView::new(),
            &secret("{resources.gardener.cloud/purpose: token-invalidator}", data),
        );
    }
}

/// spec 31 §5.2 row 2, scenario 23
#[test]
fn wrong_type_is_an_error_without_the_content() {
    for (object, message) in [
        ("data: [hidden]", "data: expected a map, found a list"),
        ("data: {token: [hidden]}", "data.token: expected a string, found a list"),
        ("data: {token: 'hidden!'}", "data.token: expected Base64"),
        ("metadata: {labels: {a: 1}}", "metadata.labels.a: expected a string, found a number"),
        ("metadata: hidden", "metadata: expected a map, found a string"),
    ] {
        let expected = Failure::Errored { code: 400, message: message.to_owned() };
        assert_eq!(failure(&TokenInvalidator, &TestView::new(), object), expected, "{object}");
    }
}
