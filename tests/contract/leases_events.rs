use serde_json::{Value, json};

use crate::{
    api::{Api, MERGE, version},
    expect::{equal, holds, includes},
    row::{Row, row},
};

pub(crate) fn rows() -> Vec<Row> {
    [leases(), events(), events_v1()].into_iter().flatten().collect()
}

fn leases() -> Vec<Row> {
    vec![
        row("times of a Lease have six decimals and come back as sent", "facts §8", |api| async move {
            let spec = json!({"holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 1,
                "acquireTime": "2030-01-02T03:04:05.000000Z", "renewTime": "2030-01-02T03:04:05.678901Z"});

            let object = api
                .create(api.at("coordination.k8s.io/v1", "leases"), &json!({"metadata": {"name": "l"}, "spec": spec}))
                .await?;

            equal("spec", &object["spec"], &spec)
        }),
        row("times of a Lease without decimals are BadRequest", "facts §8", |api| async move {
            let spec = json!({"holderIdentity": "a", "renewTime": "2030-01-02T03:04:05Z"});

            let answer = api
                .post(api.at("coordination.k8s.io/v1", "leases"), &json!({"metadata": {"name": "l"}, "spec": spec}))
                .await?;

            answer.fails_with(400, "BadRequest", "Lease in version \"v1\" cannot be handled as a Lease")
        }),
        row("of two that renew a Lease from the same version one gets a Conflict", "facts §8", |api| async move {
            let path = format!("{}/l", api.at("coordination.k8s.io/v1", "leases"));
            let body = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}});
            let mut object = api.create(api.at("coordination.k8s.io/v1", "leases"), &body).await?;

            object["spec"]["holderIdentity"] = json!("b");
            let won = api.put(&path, &object).await?.code(200)?;
            object["spec"]["holderIdentity"] = json!("c");
            let lost = api.put(&path, &object).await?;

            holds(won.version() != version(&object), "a new version", &won.body["metadata"])?;
            lost.fails_with(
                409,
                "Conflict",
                "Operation cannot be fulfilled on leases.coordination.k8s.io \"l\": the object has been modified",
            )
        }),
    ]
}

fn events() -> Vec<Row> {
    vec![
        row("an Event is about an object of its own namespace", "facts §8", |api| async move {
            let reference = json!({"kind": "Pod", "name": "p", "namespace": "other"});

            let answer = api
                .post(api.at("v1", "events"), &json!({"metadata": {"name": "e"}, "involvedObject": reference}))
                .await?;

            answer.fails_with(422, "Invalid", "does not match event.namespace")
        }),
        row("an Event about a cluster-scoped object is in the namespace default", "facts §8", |api| async move {
            let reference = json!({"kind": "Node", "name": "n"});
            let body = json!({"metadata": {"name": api.unique("e")}, "involvedObject": reference});
            api.becomes("/api/v1/namespaces/default", 200).await?;

            api.create("/api/v1/namespaces/default/events", &body).await?;
            let answer = api.post(api.at("v1", "events"), &body).await?;

            answer.fails_with(422, "Invalid", "does not match event.namespace")
        }),
        row("an Event keeps its fields, and count and lastTimestamp may change", "facts §8", |api| async move {
            let time = "2030-01-02T03:04:05Z";
            let body = json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": api.namespace},
                "reason": "R", "message": "m", "type": "Normal", "source": {"component": "c"}, "firstTimestamp": time, "lastTimestamp": time, "count": 1,
                "action": "A", "reportingComponent": "c", "reportingInstance": ""});
            api.create(api.at("v1", "events"), &body).await?;

            let patch = json!({"count": 2, "lastTimestamp": "2030-01-02T03:04:06Z", "message": "n"});
            let answer = api.patch(format!("{}/e", api.at("v1", "events")), MERGE, &patch).await?.code(200)?;

            let expected = json!({"reason": "R", "message": "n", "type": "Normal", "source": {"component": "c"},
                "firstTimestamp": time, "lastTimestamp": "2030-01-02T03:04:06Z", "count": 2,
                "action": "A", "reportingComponent": "c", "reportingInstance": ""});
            includes("event", &answer.body, &expected)
        }),
    ]
}

/// An Event that the server accepts.
fn event_v1(api: &Api, name: &str) -> Value {
    json!({"metadata": {"name": name}, "eventTime": "2030-01-02T03:04:05.000006Z", "reportingController": "a.b/c",
        "reportingInstance": "i", "action": "A", "reason": "R", "type": "Warning", "note": "n",
        "regarding": {"kind": "Pod", "name": "p", "namespace": api.namespace}})
}

fn with(mut event: Value, field: &str, value: Value) -> Value {
    event[field] = value;
    event
}

fn events_v1() -> Vec<Row> {
    vec![
        row(
            "an Event of events.k8s.io is the same object as the one of the core group",
            "facts §8",
            |api| async move {
                let core = api.at("v1", "events");
                api.create(api.at("events.k8s.io/v1", "events"), &event_v1(&api, "e")).await?;

                let answer = api.get(format!("{core}/e")).await?.code(200)?;
                let expected = json!({"kind": "Event", "apiVersion": "v1", "message": "n", "reason": "R", "reportingComponent": "a.b/c",
                "involvedObject": {"kind": "Pod", "name": "p"}, "eventTime": "2030-01-02T03:04:05.000006Z"});
                includes("event", &answer.body, &expected)?;

                api.patch(format!("{core}/e"), MERGE, &json!({"count": 2, "message": "o"})).await?.code(200)?;
                let answer = api.get(format!("{}/e", api.at("events.k8s.io/v1", "events"))).await?.code(200)?;
                includes("event", &answer.body, &json!({"deprecatedCount": 2, "note": "o", "action": "A"}))
            },
        ),
        row("an Event of events.k8s.io needs its times and names", "facts §8", |api| async move {
            let events = api.at("events.k8s.io/v1", "events");
            for field in ["eventTime", "reportingController", "reportingInstance", "action", "reason"] {
                let answer = api.post(&events, &with(event_v1(&api, "e"), field, Value::Null)).await?;
                answer.fails_with(422, "Invalid", &format!("{field}: Required value"))?;
            }
            let answer = api.post(&events, &with(event_v1(&api, "e"), "type", "Odd".into())).await?;
            answer.fails_with(
                422,
                "Invalid",
                "Event \"e\" is invalid: type: Invalid value: \"\": has invalid value: Odd",
            )
        }),
        row("an Event of events.k8s.io has texts of limited length in bytes", "facts §8", |api| async move {
            let events = api.at("events.k8s.io/v1", "events");
            for (field, name, most) in [
                ("note", "message", 1024),
                ("action", "action", 128),
                ("reason", "reason", 128),
                ("reportingInstance", "reportingInstance", 128),
            ] {
                api.create(&events, &with(event_v1(&api, &field.to_lowercase()), field, "é".repeat(most / 2).into()))
                    .await?;
                let long = format!("x{}", "é".repeat(most / 2));
                let answer = api.post(&events, &with(event_v1(&api, "e"), field, long.into())).await?;
                let text = format!("{name}: Invalid value: \"\": can have at most {most} characters");
                answer.fails_with(422, "Invalid", &text)?;
            }
            let answer =
                api.post(&events, &with(event_v1(&api, "e"), "reportingController", "x".repeat(64).into())).await?;
            answer.fails_with(422, "Invalid", "reportingController: Invalid value: ")
        }),
        row("an Event of events.k8s.io has no field of the core group", "facts §8", |api| async move {
            let events = api.at("events.k8s.io/v1", "events");
            for (field, name, value) in [
                ("deprecatedCount", "count", json!(1)),
                ("deprecatedSource", "source", json!({"component": "c"})),
                ("deprecatedFirstTimestamp", "firstTimestamp", json!("2030-01-02T03:04:05Z")),
                ("deprecatedLastTimestamp", "lastTimestamp", json!("2030-01-02T03:04:05Z")),
            ] {
                let answer = api.post(&events, &with(event_v1(&api, "e"), field, value)).await?;
                answer.fails_with(422, "Invalid", &format!("{name}: Invalid value: \"\": needs to be unset"))?;
            }
            Ok(())
        }),
        row("only the series of an Event of events.k8s.io may change", "facts §8", |api| async move {
            let events = api.at("events.k8s.io/v1", "events");
            api.create(&events, &event_v1(&api, "e")).await?;
            for (patch, name) in [
                (json!({"note": "o"}), "message"),
                (json!({"action": "o"}), "action"),
                (json!({"type": "Normal"}), "type"),
                (json!({"deprecatedCount": 2}), "count"),
                (json!({"eventTime": "2031-01-02T03:04:05.000006Z"}), "eventTime"),
            ] {
                let answer = api.patch(format!("{events}/e"), MERGE, &patch).await?;
                answer.fails_with(422, "Invalid", &format!("Event \"e\" is invalid: {name}: Invalid value: "))?;
                holds(answer.body.to_string().contains("immutable"), "an immutable field", &answer.body)?;
            }

            let series = json!({"count": 2, "lastObservedTime": "2030-01-02T03:05:05.000006Z"});
            let answer = api.patch(format!("{events}/e"), MERGE, &json!({"series": series})).await?.code(200)?;
            equal("series", &answer.body["series"], &series)?;
            let answer = api.get(format!("{}/e", api.at("v1", "events"))).await?.code(200)?;
            equal("series in the core group", &answer.body["series"], &series)
        }),
        row(
            "the series of an Event of events.k8s.io has a time and counts two or more",
            "facts §8",
            |api| async move {
                let events = api.at("events.k8s.io/v1", "events");
                let time = "2030-01-02T03:05:05.000006Z";
                for (series, code, text) in [
                    (
                        json!({"count": 1, "lastObservedTime": time}),
                        422,
                        "series.count: Invalid value: \"\": should be at least 2",
                    ),
                    (json!({"count": 2}), 422, "series.lastObservedTime: Required value"),
                    (
                        json!({"count": 2, "lastObservedTime": "2030-01-02T03:05:05Z"}),
                        400,
                        "cannot be handled as a Event",
                    ),
                ] {
                    let reason = if code == 422 { "Invalid" } else { "BadRequest" };
                    let answer = api.post(&events, &with(event_v1(&api, "e"), "series", series)).await?;
                    answer.fails_with(code, reason, text)?;
                }
                let series = json!({"count": 3, "lastObservedTime": time});
                api.create(&events, &with(event_v1(&api, "e"), "series", series)).await?;

                let patch = json!({"series": {"count": 1}});
                let answer = api.patch(format!("{events}/e"), MERGE, &patch).await?;

                answer.fails_with(422, "Invalid", "should be at least 2")
            },
        ),
        row("an Event with a time may be about an object of another namespace", "facts §8", |api| async move {
            let events = api.at("events.k8s.io/v1", "events");
            let about = |namespace: &str| json!({"kind": "Pod", "name": "p", "namespace": namespace});
            api.create(&events, &with(event_v1(&api, "e"), "regarding", about("other"))).await?;

            let answer = api.post(&events, &with(event_v1(&api, "f"), "regarding", about(""))).await?;
            answer.fails_with(422, "Invalid", "does not match event.namespace")?;

            let name = api.unique("e");
            api.becomes("/api/v1/namespaces/default", 200).await?;
            let events = "/apis/events.k8s.io/v1/namespaces/default/events";
            api.create(events, &with(event_v1(&api, &name), "regarding", about(""))).await.map(drop)
        }),
        row("an Event of events.k8s.io that is gone is not found", "facts §8", |api| async move {
            let path = format!("{}/gone", api.at("events.k8s.io/v1", "events"));

            let answer = api.patch(path, MERGE, &json!({"series": {"count": 2}})).await?;

            answer.fails_with(404, "NotFound", "events.events.k8s.io \"gone\" not found")
        }),
    ]
}
