use base64::{Engine, prelude::BASE64_STANDARD};
use cluster::{ApiError, Status};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{
    access::{Access, FINALIZER, Rules, Task},
    account,
    kubeconfig::Kubeconfig,
    mask,
    order::Order,
    renewal,
};
use crate::api::resources::keys::{
    CLASS, PURPOSE, SERVICE_ACCOUNT_LABELS, SERVICE_ACCOUNT_SKIP_DELETION, TOKEN_EXPIRATION_DURATION,
};

const NOW: &str = "2026-08-21T18:55:00.9Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn after(text: &str) -> SignedDuration {
    text.parse().unwrap()
}

/// spec 30 §5.5, scenarios 9, 10 and 12; T10
#[test]
fn token_renewal_after_80_percent_of_a_lifetime_of_at_most_a_day() {
    let table = [
        ("10m", 0.0, "8m"),
        ("10m", 1.0, "8m 24s"),
        ("1h", 0.0, "48m"),
        ("12h", 0.0, "9h 36m"),
        ("12h", 1.0, "10h 4m 48s"),
        ("100h", 0.0, "19h 12m"),
        ("100h", 1.0, "20h 9m 36s"),
        ("0s", 0.5, "1m"),
        ("-5h", 0.5, "1m"),
    ];
    for (granted, random, expected) in table {
        assert_eq!(renewal::period(now(), now() + after(granted), random), after(expected), "{granted} {random}");
    }
}

/// spec 30 §2.2
#[test]
fn renewal_time_is_cut_to_whole_seconds() {
    assert_eq!(renewal::text(now()), "2026-08-21T18:55:00Z");
}

#[test]
fn token_is_checked_before_its_renewal_if_it_expires_before() {
    let at = |text: &str| now() + after(text);
    let table = [
        (at("1h"), None, at("1h")),
        (at("1h"), Some(at("2h")), at("1h")),
        (at("5h"), Some(at("2h")), at("2h")),
        (at("5h"), Some(at("-2h")), at("10m")),
        (at("5m"), Some(at("-2h")), at("5m")),
    ];
    for (renewal, expires, expected) in table {
        assert_eq!(renewal::next_idle_check(now(), renewal, expires), expected, "{renewal} {expires:?}");
    }
}

/// fault 17; spec 30 §5.5
#[test]
fn renewal_time_after_the_expiry_does_not_count() {
    let at = |text: &str| now() + after(text);
    let table = [
        (at("10h"), None, at("10h")),
        (at("10h"), Some(("0s", "12h")), at("10h")),
        (at("12h"), Some(("0s", "12h")), at("12h")),
        (at("13h"), Some(("0s", "12h")), at("9h 36m")),
        (at("300h"), Some(("0s", "100h")), at("19h 12m")),
        (at("1h"), Some(("-14h", "-2h")), at("-4h 24m")),
        (at("1h"), Some(("3h", "-2h")), at("-2h")),
    ];
    for (written, life, expected) in table {
        let life = life.map(|(issued, expires)| (at(issued), at(expires)));
        assert_eq!(renewal::within_life(written, life), expected, "{written} {life:?}");
    }
    let never = Some((Timestamp::MAX, Timestamp::MIN));
    assert_eq!(renewal::within_life(now(), never), Timestamp::MIN);
}

/// fault 17
#[test]
fn monotonic_clock_limits_the_life_of_a_token_if_the_wall_clock_is_wrong() {
    let at = |text: &str| now() + after(text);
    let table = [
        ("10h", None, 36_000),
        ("10h", Some(("0s", "12h")), 36_000),
        ("19h", Some(("24h", "36h")), 36_288),
        ("-1h", None, 0),
    ];
    for (renewal, life, expected) in table {
        let life = life.map(|(issued, expires)| (at(issued), at(expires)));
        assert_eq!(renewal::at_most(now(), at(renewal), life).as_secs(), expected, "{renewal} {life:?}");
    }
}

/// spec 30 T9
#[test]
fn rejected_tokens_cause_pauses_of_up_to_an_hour() {
    let minutes: Vec<u64> = (0..8).map(|tries| renewal::pause(tries).as_secs() / 60).collect();

    assert_eq!(minutes, [1, 2, 4, 8, 16, 32, 60, 60]);
}

fn annotated(key: &str, text: &str) -> Order {
    Order::of(&json!({ "metadata": { "annotations": { key: text } } }))
}

/// spec 30 §5.3
#[test]
fn lifetime_is_a_go_duration_in_whole_seconds() {
    let table = [
        ("6h", Ok(21_600)),
        ("1h30m", Ok(5400)),
        ("1.9s", Ok(1)),
        ("-1.9s", Ok(-1)),
        ("0", Ok(0)),
        ("abc", Err("time: invalid duration \"abc\"")),
        ("", Err("time: invalid duration \"\"")),
        ("1d", Err("time: unknown unit \"d\" in duration \"1d\"")),
        ("3", Err("time: missing unit in duration \"3\"")),
    ];
    for (text, expected) in table {
        let seconds = annotated(TOKEN_EXPIRATION_DURATION, text).seconds().map_err(|error| error.to_string());
        assert_eq!(seconds, expected.map_err(str::to_owned), "{text}");
    }
    assert_eq!(Order::of(&json!({})).seconds(), Ok(43_200));
}

/// spec 30 §5.2 rule 2
#[test]
fn account_labels_are_a_json_object_of_strings() {
    for (text, expected) in [("", "{}"), ("null", "{}"), ("{}", "{}"), (r#"{"a":"b","c":null}"#, r#"{"a":"b","c":""}"#)]
    {
        let labels = annotated(SERVICE_ACCOUNT_LABELS, text).labels().unwrap();
        assert_eq!(json!(labels).to_string(), expected, "{text}");
    }
    for text in ["[]", "{", r#"{"a":1}"#, r#""a""#, "{\"a\":\"b\"} x"] {
        assert!(annotated(SERVICE_ACCOUNT_LABELS, text).labels().is_err(), "{text}");
    }
}

/// spec 30 §5.2 rule 3
#[test]
fn account_that_is_right_is_not_updated() {
    let labels = annotated(SERVICE_ACCOUNT_LABELS, r#"{"a":"b"}"#).labels().unwrap();
    let good = json!({ "metadata": { "labels": {"a": "b"}, "annotations": {"c": "d"} }, "automountServiceAccountToken": false });
    let bare = json!({ "metadata": { "labels": {} }, "automountServiceAccountToken": false });

    assert_eq!(account::updated(&good, &labels), None);
    assert_eq!(account::updated(&bare, &Default::default()), None);
    assert_eq!(account::updated(&json!({ "metadata": {} }), &labels).unwrap()["metadata"]["labels"], json!({"a": "b"}));
    assert_eq!(account::updated(&good, &Default::default()).unwrap()["metadata"], json!({ "annotations": {"c": "d"} }));
}

fn task(labels: &Value, held: bool, going: bool, skip: &str, rules: Rules) -> Task {
    let mut metadata = json!({ "labels": labels, "annotations": { SERVICE_ACCOUNT_SKIP_DELETION: skip } });
    if held {
        metadata["finalizers"] = json!(["a", FINALIZER]);
    }
    if going {
        metadata["deletionTimestamp"] = json!(NOW);
    }
    Access::of(&json!({ "metadata": metadata })).map_or(Task::None, |access| access.task(rules))
}

/// spec 30 §2.1, §9
#[test]
fn task_of_a_secret_follows_labels_finalizer_and_deletion() {
    let off = Rules { any_class: false, deletes: false };
    let on = Rules { deletes: true, ..off };
    let ours = json!({ PURPOSE: "token-requestor", CLASS: "shoot" });
    let foreign = json!({ PURPOSE: "token-requestor", CLASS: "garden" });
    let classless = json!({ PURPOSE: "token-requestor" });
    let other = json!({ CLASS: "shoot" });
    let (foreign_other, bare) = (json!({ CLASS: "garden" }), json!({}));
    let (keep, release) = (|finalizer| Task::Keep { finalizer }, |account| Task::Release { account });
    let table = [
        (&ours, false, false, "", off, keep(None)),
        (&ours, false, true, "", off, keep(None)),
        (&ours, true, false, "", off, keep(None)),
        (&ours, true, true, "", off, release(false)),
        (&foreign, true, true, "", off, release(false)),
        (&foreign, true, false, "", off, Task::None),
        (&foreign, false, true, "", off, Task::None),
        (&classless, true, true, "", off, release(false)),
        (&classless, true, false, "", off, Task::None),
        (&classless, false, false, "", off, Task::None),
        (&classless, false, false, "", Rules { any_class: true, ..off }, keep(None)),
        (&other, true, true, "", off, release(false)),
        (&ours, false, false, "", on, keep(Some(true))),
        (&ours, true, false, "", on, keep(None)),
        (&ours, true, false, "true", on, keep(Some(false))),
        (&ours, false, false, "true", on, keep(None)),
        (&ours, false, true, "", on, Task::None),
        (&ours, true, true, "", on, release(true)),
        (&ours, true, true, "true", on, release(false)),
        (&ours, true, true, "True", on, release(true)),
        (&other, true, false, "", on, release(true)),
        (&other, true, false, "true", on, release(false)),
        (&bare, true, false, "", on, release(true)),
        (&bare, true, true, "", on, release(true)),
        (&foreign_other, true, false, "", on, release(true)),
        (&classless, true, false, "", on, release(false)),
        (&foreign, true, false, "", on, release(false)),
        (&foreign, true, true, "", on, release(false)),
        (&foreign, false, false, "", on, Task::None),
    ];
    for (labels, held, going, skip, rules, expected) in table {
        assert_eq!(task(labels, held, going, skip, rules), expected, "{labels} {held} {going} {skip:?} {rules:?}");
    }
}

/// spec 30 §6 rules 1 and 6
#[test]
fn kubeconfig_is_written_like_go_writes_it() {
    let text = r#"{"users": [{"name": "u", "user": {"username": "yes", "unknown": 1, "exec": {"command": "0x1"}}}],
        "preferences": {}, "current-context": "c", "contexts": [{"name": "c", "context": {"user": "u", "cluster": "k"}}],
        "extensions": [{"name": "e", "extension": {"a": [null, 1]}}], "unknown": true, "clusters": null}"#;
    let mut kubeconfig = Kubeconfig::read(text.as_bytes()).unwrap();
    kubeconfig.set_token("1e3").unwrap();
    let written = kubeconfig.write().unwrap();

    let keys: Vec<&str> =
        written.lines().filter(|line| line.starts_with(|c: char| c.is_alphabetic() || c == '"')).collect();
    assert!(keys.is_sorted(), "{written}");
    let expected = json!({
        "apiVersion": "v1", "kind": "Config", "clusters": null, "current-context": "c",
        "contexts": [{"context": {"cluster": "k", "user": "u"}, "name": "c"}],
        "extensions": [{"extension": {"a": [null, 1]}, "name": "e"}],
        "users": [{"name": "u", "user": {"exec": {"args": null, "command": "0x1", "env": null, "provideClusterInfo": false},
            "token": "1e3", "username": "yes"}}],
    });
    assert_eq!(serde_saphyr::from_str::<Value>(&written).unwrap(), expected, "{written}");
    for ambiguous in ["yes", "0x1", "1e3"] {
        assert!(
            written.contains(&format!("\"{ambiguous}\"")) || written.contains(&format!("'{ambiguous}'")),
            "{written}"
        );
    }
}

/// spec 30 §6 rules 1 and 6
#[test]
fn kubeconfig_keeps_known_fields_and_omits_empty_ones() {
    let extensions = json!([{"name": "e", "extension": {"unknown": [null, {}]}}]);
    let table = [
        ("cluster", json!(null), json!({"server": ""})),
        (
            "cluster",
            json!({"server": "s", "insecure-skip-tls-verify": true, "disable-compression": false, "proxy-url": "",
                "tls-server-name": null, "certificate-authority": "f", "extensions": extensions, "x": 1}),
            json!({"server": "s", "insecure-skip-tls-verify": true, "certificate-authority": "f",
                "extensions": extensions}),
        ),
        (
            "user",
            json!({"tokenFile": "f", "as": "a", "as-uid": "u", "as-groups": ["g"], "as-user-extra": {"k": ["v"], "n": null},
                "username": "", "client-certificate-data": "d", "auth-provider": {}, "extensions": []}),
            json!({"tokenFile": "f", "as": "a", "as-uid": "u", "as-groups": ["g"], "as-user-extra": {"k": ["v"]},
                "client-certificate-data": "d", "auth-provider": {"name": "", "config": null}}),
        ),
        (
            "user",
            json!({"exec": {"args": [], "env": [{"name": "n"}], "apiVersion": "v", "provideClusterInfo": true},
                "auth-provider": {"name": "p", "config": {"a": "b"}, "x": 1}, "as-groups": [], "as-user-extra": {}}),
            json!({"exec": {"command": "", "args": [], "env": [{"name": "n", "value": ""}], "apiVersion": "v",
                "provideClusterInfo": true}, "auth-provider": {"name": "p", "config": {"a": "b"}}}),
        ),
        ("context", json!({"namespace": "n"}), json!({"cluster": "", "user": "", "namespace": "n"})),
    ];
    for (part, given, expected) in table {
        let list = format!("{part}s");
        let text = json!({&list: [{part: given}], "preferences": {"colors": true}}).to_string();
        let written = Kubeconfig::read(text.as_bytes()).unwrap().write().unwrap();
        let mut whole = json!({"apiVersion": "v1", "kind": "Config", "clusters": null, "users": null, "contexts": null,
            "current-context": "", "preferences": {"colors": true}});
        whole[list] = json!([{"name": "", part: expected}]);
        assert_eq!(serde_saphyr::from_str::<Value>(&written).unwrap(), whole, "{text}");
    }

    let wrong = [
        json!([]),
        json!({"clusters": {}}),
        json!({"clusters": [null]}),
        json!({"users": [{"user": {"token": 5}}]}),
        json!({"users": [{"user": {"as-user-extra": {"k": "v"}}}]}),
        json!({"users": [{"user": {"exec": {"provideClusterInfo": "true"}}}]}),
        json!({"contexts": [{"name": 1}]}),
        json!({"current-context": {}}),
        json!({"kind": "Secret"}),
        json!({"apiVersion": 1}),
    ];
    for document in wrong {
        Kubeconfig::read(document.to_string().as_bytes()).unwrap_err();
    }
}

/// A text may quote a token in any form and may be cut.
#[test]
fn mask_removes_all_useful_parts_of_a_token() {
    let token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJlLXNpZ25hdHVyZQ";
    let table = [
        (format!("[invalid bearer token, {token}]"), "[invalid bearer token, (left out)]"),
        (format!("\"{token}\" and {token}"), "\"(left out)\" and (left out)"),
        (format!("data.token: {}", BASE64_STANDARD.encode(token)), "data.token: (left out)"),
        (format!("it begins with {}", &token[..40]), "it begins with (left out)"),
        (format!("it ends with {}", &token[30..]), "it ends with (left out)"),
        ("no review today: ünable".to_owned(), "no review today: ünable"),
        (String::new(), ""),
    ];
    for (text, expected) in table {
        assert_eq!(mask::without(&text, token), expected, "{text}");
    }
    assert_eq!(mask::without("hunter2 is no token", "hunter2"), "(left out) is no token");
    assert_eq!(mask::without("it is empty", ""), "it is empty");

    let status = Status { code: 403, message: format!("denied: {token}"), ..Status::default() };
    let masked = mask::masked(ApiError::Status(status.into()), token);
    assert_eq!((masked.code(), masked.to_string().as_str()), (Some(403), "denied: (left out)"));
    assert_eq!(mask::masked(ApiError::Timeout, token), ApiError::Timeout);
}

#[test]
fn kubeconfig_errors_show_no_content() {
    for text in
        ["users: [{name: u, user: {token: hunter2", "users: hunter2", "hunter2", "users: [{user: {token: [hunter2]}}]"]
    {
        let error = Kubeconfig::read(text.as_bytes()).unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}
