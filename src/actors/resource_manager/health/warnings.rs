//! The Events that say why a Service has no address, or is not deleted (spec 20 §11.3, spec 10 §13.6).

use jiff::Timestamp;
use kit::hash_of;
use serde_json::Value;

use crate::api::meta::age::age;

const QUOTED: usize = 5;

pub(crate) fn field_selector(namespace: &str, service: &str) -> String {
    format!(
        "involvedObject.apiVersion=v1,involvedObject.kind=Service,involvedObject.name={service},\
         involvedObject.namespace={namespace},type=Warning"
    )
}

/// The Events that are quoted: the youngest ones, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Warnings {
    events: Vec<Warning>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Warning {
    source: String,
    message: String,
    count: i64,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    time: Option<Timestamp>,
}

impl Warnings {
    pub(crate) fn of<'a>(events: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut events: Vec<Warning> = events.into_iter().map(Warning::of).collect();
        events.sort_by_key(|event| event.last);
        events.drain(..events.len().saturating_sub(QUOTED));
        Self { events }
    }

    pub(crate) fn block(&self, now: Timestamp) -> String {
        if self.events.is_empty() {
            return String::new();
        }
        let lines: String = self.events.iter().map(|event| event.line(now)).collect();
        format!("\n\n-> Events:{lines}")
    }

    /// Changes with the Events, not with their age: a message is not written anew because time goes by.
    pub(crate) fn fingerprint(&self) -> u64 {
        hash_of(&self.events)
    }
}

impl Warning {
    fn of(event: &Value) -> Self {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let time = |field: &str| event.get(field).and_then(Value::as_str).and_then(|text| text.parse().ok());
        let component = text(event.get("source").and_then(|source| source.get("component")));
        let source = if component.is_empty() { text(event.get("reportingComponent")) } else { component };
        Self {
            source,
            message: text(event.get("message")),
            count: event.get("count").and_then(Value::as_i64).unwrap_or_default(),
            first: time("firstTimestamp"),
            last: time("lastTimestamp"),
            time: time("eventTime"),
        }
    }

    fn line(&self, now: Timestamp) -> String {
        let interval = if self.count > 1 {
            format!("{} ago (x{} over {})", age(self.last, now), self.count, age(self.first, now))
        } else {
            format!("{} ago", age(self.first.or(self.time), now))
        };
        format!("\n* {} reported {interval}: {}", self.source, self.message)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn now() -> Timestamp {
        "2026-01-01T12:00:00Z".parse().unwrap()
    }

    fn event(message: &str, last: &str) -> Value {
        json!({"source": {"component": "service-controller"}, "message": message, "count": 6,
            "firstTimestamp": "2026-01-01T11:51:00Z", "lastTimestamp": last})
    }

    /// spec 20 scenario 17, spec 10 scenario 9.
    #[test]
    fn events_quoted_are_the_five_youngest_oldest_first() {
        let events: Vec<Value> =
            (0..7).map(|n| event(&format!("quota {n}"), &format!("2026-01-01T11:5{}:00Z", (n * 3) % 7))).collect();

        let block = Warnings::of(&events).block(now());

        let messages: Vec<&str> =
            block.lines().filter_map(|line| line.rsplit_once(": ")).map(|(_, text)| text).collect();
        assert_eq!(messages, ["quota 3", "quota 1", "quota 6", "quota 4", "quota 2"]);
        assert!(block.starts_with("\n\n-> Events:\n* "), "{block}");
    }

    #[test]
    fn events_quoted_say_how_often_and_since_when() {
        let single = |fields: Value| {
            let mut event = json!({"reportingComponent": "cloud", "message": "m"});
            event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            event
        };
        for (event, line) in [
            (
                event("quota for load balancers exceeded", "2026-01-01T11:56:48Z"),
                "* service-controller reported 3m12s ago (x6 over 9m): quota for load balancers exceeded",
            ),
            (single(json!({"firstTimestamp": "2026-01-01T11:59:00Z"})), "* cloud reported 60s ago: m"),
            (
                single(
                    json!({"count": 1, "firstTimestamp": "2026-01-01T11:50:00Z", "lastTimestamp": "2026-01-01T11:59:00Z"}),
                ),
                "* cloud reported 10m ago: m",
            ),
            (single(json!({"eventTime": "2026-01-01T11:58:00.123456Z"})), "* cloud reported 119s ago: m"),
            (single(json!({"firstTimestamp": null})), "* cloud reported <unknown> ago: m"),
            (single(json!({"count": 2})), "* cloud reported <unknown> ago (x2 over <unknown>): m"),
        ] {
            assert_eq!(Warnings::of([&event]).block(now()), format!("\n\n-> Events:\n{line}"));
        }
    }

    #[test]
    fn events_selector_asks_for_warnings_about_the_service_only() {
        let selector = "involvedObject.apiVersion=v1,involvedObject.kind=Service,involvedObject.name=lb,\
                        involvedObject.namespace=garden,type=Warning";

        assert_eq!(field_selector("garden", "lb"), selector);
    }

    #[test]
    fn events_block_is_empty_without_events() {
        assert_eq!(Warnings::of([]).block(now()), "");
    }

    #[test]
    fn events_without_a_time_come_first() {
        let events = [event("b", "2026-01-01T11:00:00Z"), json!({"message": "a"})];

        let block = Warnings::of(&events).block(now());

        assert!(block.find(": a").unwrap() < block.find(": b").unwrap());
    }

    #[test]
    fn events_fingerprint_changes_with_the_events_and_not_with_time() {
        let one = Warnings::of([&event("a", "2026-01-01T11:00:00Z")]);
        let other = Warnings::of([&event("a", "2026-01-01T11:30:00Z")]);

        assert_eq!(one.fingerprint(), one.clone().fingerprint());
        assert_ne!(one.fingerprint(), other.fingerprint());
    }
}
