use serde_json::json;

use crate::{
    api::{MERGE, version},
    expect::{equal, holds, includes},
    row::{Row, row},
};

pub(crate) fn rows() -> Vec<Row> {
    [leases(), events()].into_iter().flatten().collect()
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
        row(
            "an Event of events.k8s.io is the same object as the one of the core group",
            "facts §8",
            |api| async move {
                let body = json!({"metadata": {"name": "e"}, "eventTime": "2030-01-02T03:04:05.000006Z", "reportingController": "a.b/c",
                "reportingInstance": "i", "action": "A", "reason": "R", "type": "Warning", "note": "n",
                "regarding": {"kind": "Pod", "name": "p", "namespace": api.namespace}});
                api.create(api.at("events.k8s.io/v1", "events"), &body).await?;

                let answer = api.get(format!("{}/e", api.at("v1", "events"))).await?.code(200)?;

                let expected = json!({"kind": "Event", "apiVersion": "v1", "message": "n", "reason": "R", "reportingComponent": "a.b/c",
                "involvedObject": {"kind": "Pod", "name": "p"}, "eventTime": "2030-01-02T03:04:05.000006Z"});
                includes("event", &answer.body, &expected)
            },
        ),
        row(
            "an Event of events.k8s.io needs its times and names, and only its series may change",
            "facts §8",
            |api| async move {
                let events = api.at("events.k8s.io/v1", "events");
                let reference = json!({"kind": "Pod", "name": "p", "namespace": api.namespace});
                let body = json!({"metadata": {"name": "e"}, "reason": "R", "type": "Normal", "regarding": reference});
                api.post(&events, &body).await?.fails_with(422, "Invalid", "eventTime")?;
                let full = json!({"metadata": {"name": "f"}, "eventTime": "2030-01-02T03:04:05.000006Z", "reportingController": "a.b/c",
                "reportingInstance": "i", "action": "A", "reason": "R", "type": "Normal", "note": "n", "regarding": reference});
                api.create(&events, &full).await?;

                let answer = api.patch(format!("{events}/f"), MERGE, &json!({"note": "other"})).await?;

                answer.fails_with(422, "Invalid", "immutable")
            },
        ),
    ]
}
