//! What an actor shows of its object: names, marks and conditions, never content.

use std::{borrow::Cow, sync::Arc};

use jiff::Timestamp;
use serde::Serialize;

use super::quote::cut_after;

/// The object of an actor, as far as a list of objects needs it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectSummary {
    /// Kind of the object, e.g. `ManagedResource`.
    pub kind: &'static str,
    /// Its namespace; empty for an object of the cluster.
    #[serde(skip_serializing_if = "is_empty")]
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its class; empty for none.
    #[serde(skip_serializing_if = "is_empty")]
    pub class: Box<str>,
    /// Number of objects that it contains.
    #[serde(skip_serializing_if = "is_zero")]
    pub objects: u32,
    /// States beside the conditions, e.g. `ignored`, `deleting`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<&'static str>,
    /// Its conditions, in the order in which a page shows them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionSummary>,
}

/// A condition without its message.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionSummary {
    /// Its type, e.g. `ResourcesApplied`.
    #[serde(rename = "type")]
    pub kind: Arc<str>,
    /// `True`, `False`, `Unknown` or `Progressing`.
    pub status: Arc<str>,
    /// Its reason. Share equal texts: thousands of objects have the same.
    #[serde(skip_serializing_if = "is_empty")]
    pub reason: Arc<str>,
    /// Since when it has this status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Whether this is good or bad.
    pub tone: Tone,
}

/// What a condition means for its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Tone {
    /// As it should be.
    Good,
    /// Somebody has to do something.
    Bad,
    /// Not yet known, or under way.
    Pending,
    /// Neither.
    None,
}

fn is_empty(text: impl AsRef<str>) -> bool {
    text.as_ref().is_empty()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Conditions of one object that are kept. Usual objects have three.
const MOST_CONDITIONS: usize = 16;

/// Longest text that is kept, in characters. Anybody who may write the object chooses its texts.
const LONGEST_TEXT: usize = 256;

impl ObjectSummary {
    /// Cuts what is longer than usual.
    pub(super) fn bounded(mut self) -> Self {
        self.conditions.truncate(MOST_CONDITIONS);
        for condition in &mut self.conditions {
            for text in [&mut condition.kind, &mut condition.status, &mut condition.reason] {
                if let Cow::Owned(short) = cut_after(LONGEST_TEXT, text) {
                    *text = short.into();
                }
            }
        }
        if let Cow::Owned(short) = cut_after(LONGEST_TEXT, &self.class) {
            self.class = short.into();
        }
        self
    }
}
