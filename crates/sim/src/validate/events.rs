//! Events. Those with an `eventTime` have rules of their own in both APIs. The API `events.k8s.io` has more (facts §8).

use serde_json::Value;

use super::{
    Cause,
    fields::{require, text},
    names,
};
use crate::kinds::ServedKind;

const MOST_NOTE: usize = 1024; // bytes
const MOST: usize = 128; // bytes of names
const UNSET: &str = "needs to be unset";

/// Fields of `events.k8s.io` that an update may not change, with the names that the server's texts use.
const IMMUTABLE: [(&str, &str); 13] = [
    ("regarding", "involvedObject"),
    ("reason", "reason"),
    ("note", "message"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("type", "type"),
    ("eventTime", "eventTime"),
    ("action", "action"),
    ("related", "related"),
    ("reportingController", "reportingController"),
    ("reportingInstance", "reportingInstance"),
];

pub(super) fn check(kind: &ServedKind, new: &Value, causes: &mut Vec<Cause>) {
    let [about, message, controller] = if is_core(kind) {
        ["involvedObject", "message", "reportingComponent"]
    } else {
        ["regarding", "note", "reportingController"]
    };
    let has_time = !new["eventTime"].is_null();
    let (namespace, involved) = (text(&new["metadata"], "namespace"), text(&new[about], "namespace"));
    let agrees = match (involved.is_empty(), has_time) {
        (true, false) => namespace == "default",
        (true, true) => ["default", "kube-system"].contains(&namespace),
        (false, false) => namespace == involved,
        (false, true) => true,
    };
    if !agrees {
        let text = "does not match event.namespace";
        causes.push(Cause::invalid("involvedObject.namespace", &involved.into(), text));
    }
    if !has_time {
        return;
    }
    require(new, controller, controller, causes);
    for text in names::qualified_name(text(new, controller)) {
        causes.push(Cause::invalid(controller, &text_of(new, controller), &text));
    }
    for field in ["reportingInstance", "action", "reason"] {
        require(new, field, field, causes);
        short(field, text(new, field), MOST, causes);
    }
    short("message", text(new, message), MOST_NOTE, causes);
}

pub(super) fn on_create(kind: &ServedKind, new: &Value, causes: &mut Vec<Cause>) {
    if is_core(kind) {
        return;
    }
    series(new, causes);
    require(new, "eventTime", "eventTime", causes);
    let event_type = text(new, "type");
    if !["Normal", "Warning"].contains(&event_type) {
        causes.push(Cause::invalid("type", &"".into(), &format!("has invalid value: {event_type}")));
    }
    for (field, name) in [("deprecatedFirstTimestamp", "firstTimestamp"), ("deprecatedLastTimestamp", "lastTimestamp")]
    {
        if !new[field].is_null() {
            causes.push(Cause::invalid(name, &"".into(), UNSET));
        }
    }
    if new["deprecatedCount"].as_i64().is_some_and(|count| count != 0) {
        causes.push(Cause::invalid("count", &"".into(), UNSET));
    }
    for field in ["component", "host"] {
        if !text(&new["deprecatedSource"], field).is_empty() {
            causes.push(Cause::invalid("source", &"".into(), UNSET));
        }
    }
}

pub(super) fn on_update(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    if old["series"] != new["series"] {
        series(new, causes);
    }
    for (field, name) in IMMUTABLE {
        if old[field] != new[field] {
            causes.push(Cause::invalid(name, &new[field], "field is immutable"));
        }
    }
}

fn series(new: &Value, causes: &mut Vec<Cause>) {
    let series = &new["series"];
    if series.is_null() {
        return;
    }
    if series["count"].as_i64().unwrap_or_default() < 2 {
        causes.push(Cause::invalid("series.count", &"".into(), "should be at least 2"));
    }
    require(series, "lastObservedTime", "series.lastObservedTime", causes);
}

fn short(field: &str, text: &str, most: usize, causes: &mut Vec<Cause>) {
    if text.len() > most {
        causes.push(Cause::invalid(field, &"".into(), &format!("can have at most {most} characters")));
    }
}

fn text_of(value: &Value, field: &str) -> Value {
    text(value, field).into()
}

fn is_core(kind: &ServedKind) -> bool {
    kind.group.is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::built_in;

    fn kind(group: &str) -> ServedKind {
        built_in().into_iter().find(|kind| kind.kind == "Event" && kind.group == group).unwrap()
    }

    fn causes(check: impl FnOnce(&mut Vec<Cause>)) -> Vec<String> {
        let mut causes = Vec::new();
        check(&mut causes);
        causes.into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    }

    fn full() -> Value {
        json!({"metadata": {"name": "e", "namespace": "ns"}, "eventTime": "2030-01-02T03:04:05.000006Z",
            "reportingController": "a-controller", "reportingInstance": "i", "action": "A", "reason": "R",
            "type": "Normal", "regarding": {"kind": "Pod", "name": "p", "namespace": "ns"}})
    }

    #[test]
    fn event_of_the_new_api_is_strict_at_its_creation() {
        let kind = kind("events.k8s.io");
        let mut event = full();
        assert_eq!(causes(|causes| on_create(&kind, &event, causes)), [""; 0]);
        assert_eq!(causes(|causes| check(&kind, &event, causes)), [""; 0]);

        for (field, value) in [
            ("type", json!("Odd")),
            ("series", json!({"count": 1})),
            ("deprecatedCount", json!(1)),
            ("deprecatedSource", json!({"component": "c"})),
            ("note", json!("é".repeat(513))),
            ("action", json!("x".repeat(129))),
            ("reportingInstance", json!("")),
        ] {
            event[field] = value;
        }

        assert_eq!(
            causes(|causes| {
                check(&kind, &event, causes);
                on_create(&kind, &event, causes);
            }),
            [
                "reportingInstance: Required value",
                "action: Invalid value: \"\": can have at most 128 characters",
                "message: Invalid value: \"\": can have at most 1024 characters",
                "series.count: Invalid value: \"\": should be at least 2",
                "series.lastObservedTime: Required value",
                "type: Invalid value: \"\": has invalid value: Odd",
                "count: Invalid value: \"\": needs to be unset",
                "source: Invalid value: \"\": needs to be unset",
            ]
        );
    }

    #[test]
    fn event_with_a_time_may_be_about_an_object_of_another_namespace() {
        let kind = kind("events.k8s.io");
        let mismatch = "involvedObject.namespace: Invalid value: \"\": does not match event.namespace";
        for (namespace, about, expected) in
            [("ns", "other", None), ("ns", "", Some(mismatch)), ("default", "", None), ("kube-system", "", None)]
        {
            let mut event = full();
            (event["metadata"]["namespace"], event["regarding"]["namespace"]) = (json!(namespace), json!(about));
            let found = causes(|causes| check(&kind, &event, causes));
            assert_eq!(found.first().map(String::as_str), expected, "{namespace} {about}");
        }
    }
}
