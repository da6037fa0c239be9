//! What the page of a ManagedResource on the dashboard shows, beside the row of its actor: from caches and notes,
//! without a request and without content of objects. Everything has a bound.
//! * here: conditions, Events, the next period
//! * `objects`: one row per object: health, progress, the last write, a pending deletion, other claims
//! * `secrets`: the Secrets with their documents and objects

mod objects;
mod secrets;

use std::rc::Rc;

use cluster::{EventType, RecordedEvent, object::NamespacedName};
use jiff::{SignedDuration, Timestamp};
use kit::{
    Tone,
    quote::{cut, cut_after},
};
use serde::Serialize;
use serde_json::Value;

use self::{
    objects::{ObjectRow, ObjectRows},
    secrets::SecretRow,
};
use super::{
    known::CachedManagedResource,
    record::BundleRecord,
    report::{class_of, tone},
    shared::{ActorObject, ManagedResources},
};
use crate::api::{meta::conditions::Condition, resources::managed_resource::ManagedResource};

/// Name of the field that has all this.
pub(super) const FIELD: &str = "bundle";

const MOST_CONDITIONS: usize = 50;
const MOST_EVENTS: usize = 50;
/// Longest message of a condition, in characters: own messages are shorter.
const LONGEST_MESSAGE: usize = 32 * 1024;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BundlePage<'a> {
    class: String,
    generation: i64,
    observed_generation: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    period: Option<Timestamp>,
    conditions: Vec<ConditionRow<'a>>,
    events: Vec<EventRow>,
    secrets: Vec<SecretRow>,
    objects: Vec<ObjectRow>,
    /// Number of objects that were left out.
    truncated: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConditionRow<'a> {
    r#type: String,
    status: String,
    reason: String,
    message: String,
    last_transition_time: &'a Option<Timestamp>,
    last_update_time: &'a Option<Timestamp>,
    tone: Tone,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EventRow {
    time: Timestamp,
    r#type: EventType,
    reason: String,
    message: String,
    count: u32,
}

/// Returns the page of a ManagedResource, or `None` if it is not cached.
pub(super) fn details(
    controller: &Rc<ManagedResources>,
    key: &NamespacedName,
    object: Option<&Rc<ActorObject>>,
) -> Option<Value> {
    let mr = controller.bundles.store().with(key, CachedManagedResource::managed_resource)?.ok()?;
    let nothing = Rc::default();
    let record = object.map_or(&nothing, |object| &object.record);
    let (objects, truncated) = ObjectRows::new(controller, record, key).of(&mr);
    let page = BundlePage {
        class: class_of(&mr),
        generation: mr.metadata.generation,
        observed_generation: mr.status.observed_generation,
        period: period(controller, record),
        conditions: mr.status.conditions.iter().take(MOST_CONDITIONS).map(ConditionRow::of).collect(),
        events: events(controller, &mr),
        secrets: secrets::rows(controller, record, &mr),
        objects,
        truncated,
    };
    serde_json::to_value(page).ok()
}

fn period(controller: &ManagedResources, record: &BundleRecord) -> Option<Timestamp> {
    let (now, wall) = (controller.env.clock.monotonic(), controller.env.clock.wall());
    let left = record.next_check.get()?.checked_duration_since(now)?;
    wall.checked_add(SignedDuration::try_from(left).ok()?).ok()
}

/// Returns the Events that this process recorded about a ManagedResource, the latest first.
fn events(controller: &ManagedResources, mr: &ManagedResource) -> Vec<EventRow> {
    let recorded = controller.recorder.about(&controller.reference(mr));
    recorded.into_iter().take(MOST_EVENTS).map(EventRow::of).collect()
}

impl<'a> ConditionRow<'a> {
    fn of(condition: &'a Condition) -> Self {
        Self {
            r#type: cut(&condition.kind).into_owned(),
            status: cut(condition.status.as_str()).into_owned(),
            reason: cut(&condition.reason).into_owned(),
            message: cut_after(LONGEST_MESSAGE, &condition.message).into_owned(),
            last_transition_time: &condition.last_transition_time,
            last_update_time: &condition.last_update_time,
            tone: tone(condition),
        }
    }
}

impl EventRow {
    fn of(event: RecordedEvent) -> Self {
        let RecordedEvent { event_type, reason, message, count, last } = event;
        Self { time: last, r#type: event_type, reason, message, count }
    }
}
