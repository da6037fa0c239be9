//! An actor as JSON.

use std::{borrow::Cow, sync::Arc};

use jiff::Timestamp;
use kit::{Activity, ActorState, ObjectSummary, Role, quote::cut_after};
use serde::Serialize;

/// Longest text of a row in the stream, in characters.
const SHORT: usize = 200;

/// Fields with an empty value are left out.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row<'a> {
    path: &'a str,
    role: Role,
    activity: Activity,
    #[serde(skip_serializing_if = "Option::is_none")]
    current: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "is_zero")]
    mailbox: u64,
    #[serde(skip_serializing_if = "is_zero")]
    mailbox_high: u64,
    #[serde(skip_serializing_if = "is_zero")]
    restarts: u64,
    #[serde(skip_serializing_if = "is_zero")]
    finished: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<(Timestamp, Cow<'a, str>)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_timer: Option<Timestamp>,
    #[serde(skip_serializing_if = "str::is_empty")]
    line: Cow<'a, str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    details: &'a [(String, String)],
    #[serde(skip_serializing_if = "Option::is_none")]
    heard: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'a Arc<ObjectSummary>>,
}

impl<'a> Row<'a> {
    /// For the stream: long texts are cut, further lines are left out.
    pub(super) fn short(actor: &'a ActorState) -> Self {
        Self { details: &[], ..Self::of(actor, |text| cut_after(SHORT, text)) }
    }

    /// With everything that the actor shows.
    pub(super) fn whole(actor: &'a ActorState) -> Self {
        Self::of(actor, Cow::Borrowed)
    }

    /// As `whole`, without further lines.
    pub(super) fn without_details(actor: &'a ActorState) -> Self {
        Self { details: &[], ..Self::whole(actor) }
    }

    fn of(actor: &'a ActorState, text: impl Fn(&'a str) -> Cow<'a, str>) -> Self {
        Self {
            path: &actor.path,
            role: actor.role,
            activity: actor.activity,
            current: actor.current.as_deref().map(&text),
            mailbox: actor.mailbox.into(),
            mailbox_high: actor.mailbox_high.into(),
            restarts: actor.restarts.into(),
            finished: actor.finished,
            last_error: actor.last_error.as_ref().map(|(time, error)| (*time, text(error))),
            problem: actor.problem.as_deref().map(&text),
            next_timer: actor.next_timer,
            line: text(&actor.line),
            details: &actor.details,
            heard: actor.heard,
            changed: actor.changed,
            object: actor.object.as_ref(),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use kit::{ConditionSummary, StatusRegistry, Tone};
    use serde_json::json;

    use super::*;

    #[test]
    fn row_has_no_empty_fields_and_its_texts_are_cut() {
        let cell = StatusRegistry::default().enter("a/b", Role::Object);
        assert_eq!(
            serde_json::to_value(Row::whole(&cell.read())).unwrap(),
            json!({"path": "a/b", "role": "object", "activity": "starting"})
        );
        let condition = ConditionSummary {
            kind: "ResourcesApplied".into(),
            status: "False".into(),
            reason: "ApplyFailed".into(),
            since: Some(Timestamp::UNIX_EPOCH),
            tone: Tone::Bad,
        };
        let object = ObjectSummary {
            kind: "ManagedResource",
            namespace: "ns".into(),
            name: "b".into(),
            class: "".into(),
            objects: 3,
            marks: vec!["ignored"],
            conditions: vec![condition],
        };
        cell.update(Timestamp::UNIX_EPOCH, |state| {
            state.activity = Activity::Failing;
            state.finished = 7;
            state.line = "ü".repeat(201);
            state.last_error = Some((Timestamp::UNIX_EPOCH, "line\nbreak".to_owned()));
            state.details = vec![("label".to_owned(), "text".to_owned())];
            state.object = Some(object.into());
        });
        let state = cell.read();

        let short = serde_json::to_value(Row::short(&state)).unwrap();

        let time = "1970-01-01T00:00:00Z";
        let expected = json!({
            "path": "a/b", "role": "object", "activity": "failing", "finished": 7, "line": "ü".repeat(200) + "…",
            "lastError": [time, "line\nbreak"], "changed": time,
            "object": {
                "kind": "ManagedResource", "namespace": "ns", "name": "b", "objects": 3, "marks": ["ignored"],
                "conditions": [{"type": "ResourcesApplied", "status": "False", "reason": "ApplyFailed", "since": time, "tone": "bad"}],
            },
        });
        assert_eq!(short, expected);
        let whole = serde_json::to_value(Row::whole(&state)).unwrap();
        assert_eq!((whole["details"][0][1].as_str(), whole["line"].as_str()), (Some("text"), Some(&*state.line)));
    }
}
