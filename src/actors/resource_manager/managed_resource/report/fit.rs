//! Pure. Decides what to leave out of a status that is too large to be stored (spec 10 §9.7, decision 36). The merge
//! compares with the labels and annotations of refs. Without them, entries that left a manifest stay in the object. The
//! refs themselves are left out last: pruning needs them.

use super::message::bounded;
use crate::api::{
    meta::conditions::{self, Condition},
    resources::{
        condition_names::{APPLY_PROGRESSING, APPLY_SUCCEEDED, RESOURCES_APPLIED},
        managed_resource::{ManagedResourceStatus, ResourceRef},
    },
};

/// Labels or annotations of one ref that take more bytes than this are left out first.
const LARGE: usize = 1024;

pub(super) const STATUS_TOO_LARGE: &str = "StatusTooLarge";

const NOTE: &str = " The status is too large to be stored (";

/// A status to write, shrunk until it fits.
pub(super) struct Draft<'a> {
    stored: &'a ManagedResourceStatus,
    status: ManagedResourceStatus,
    /// What has not been left out yet.
    stages: &'static [Stage],
    /// Number of refs without their annotations, and without their labels.
    left_out: [usize; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    LargeAnnotations,
    LargeLabels,
    LabelsAndAnnotations,
    /// The stored refs stay as they are.
    References,
}

const STAGES: [Stage; 4] =
    [Stage::LargeAnnotations, Stage::LargeLabels, Stage::LabelsAndAnnotations, Stage::References];

/// Returns true if `stored` is `reference`, or what was left of it when the status was too large.
pub(super) fn stands_for(stored: &ResourceRef, reference: &ResourceRef) -> bool {
    let bare = |reference: &ResourceRef| ResourceRef {
        labels: Default::default(),
        annotations: Default::default(),
        ..reference.clone()
    };
    stored == reference
        || (stored.labels.is_empty() || stored.labels == reference.labels)
            && (stored.annotations.is_empty() || stored.annotations == reference.annotations)
            && bare(stored) == bare(reference)
}

pub(super) fn without_note(message: &str) -> &str {
    message.split_once(NOTE).map_or(message, |(message, _)| message)
}

fn size_of(map: &std::collections::BTreeMap<String, String>) -> usize {
    if map.is_empty() { 0 } else { serde_json::to_vec(map).map_or(0, |text| text.len()) }
}

impl<'a> Draft<'a> {
    pub(super) fn new(status: ManagedResourceStatus, stored: &'a ManagedResourceStatus) -> Self {
        let mut draft = Self { stored, status, stages: &STAGES, left_out: [0, 0] };
        if draft.status.resources != stored.resources
            && let Some(applied) = draft.applied()
        {
            applied.message = without_note(&applied.message).to_owned();
        }
        draft
    }

    pub(super) fn status(&self) -> &ManagedResourceStatus {
        &self.status
    }

    /// Leaves out more, because an object of `size` bytes was refused with the text `refused`. Returns false if nothing
    /// more can be left out. Saves an eighth at once, because each attempt is expensive. Depends on the whole status
    /// alone, so that the same status always has the same result.
    pub(super) fn shrink(&mut self, size: usize, refused: &str) -> bool {
        while let [stage, later @ ..] = self.stages {
            let done = match stage {
                Stage::LargeAnnotations => self.shrink_maps(size / 8, LARGE, 0),
                Stage::LargeLabels => self.shrink_maps(size / 8, LARGE, 1),
                Stage::LabelsAndAnnotations => self.shrink_maps(usize::MAX, 0, 0) | self.shrink_maps(usize::MAX, 0, 1),
                Stage::References => {
                    let is_other = self.status.resources != self.stored.resources;
                    self.status.resources.clone_from(&self.stored.resources);
                    is_other
                }
            };
            if done {
                self.say(refused, *stage == Stage::References);
                return true;
            }
            self.stages = later;
        }
        false
    }

    /// Empties the largest maps above `limit` bytes until `wanted` bytes are saved. `which`: 0 annotations, 1 labels.
    fn shrink_maps(&mut self, wanted: usize, limit: usize, which: usize) -> bool {
        let maps = self.status.resources.iter_mut().map(|reference| match which {
            0 => &mut reference.annotations,
            _ => &mut reference.labels,
        });
        let mut large: Vec<_> = maps.map(|map| (size_of(map), map)).filter(|(size, _)| *size > limit).collect();
        large.sort_by_key(|(size, _)| std::cmp::Reverse(*size));
        let (mut saved, mut taken) = (0, 0);
        for (size, map) in large {
            if saved >= wanted {
                break;
            }
            map.clear();
            saved += size;
            taken += 1;
        }
        self.left_out[which] += taken;
        taken > 0
    }

    fn applied(&mut self) -> Option<&mut Condition> {
        self.status.conditions.iter_mut().find(|condition| condition.kind == RESOURCES_APPLIED)
    }

    fn say(&mut self, refused: &str, lacks_references: bool) {
        let [annotations, labels] = self.left_out;
        let what = if lacks_references {
            "the references of the present set".to_owned()
        } else {
            let count = |what, count| format!("the {what} of {count} references");
            let parts = [("annotations", annotations), ("labels", labels)];
            let parts: Vec<String> =
                parts.into_iter().filter(|(_, number)| *number > 0).map(|(what, number)| count(what, number)).collect();
            parts.join(" and ")
        };
        let stored = conditions::find(&self.stored.conditions, RESOURCES_APPLIED).cloned();
        let Some(applied) = self.applied() else { return };
        applied.message =
            format!("{}{NOTE}{}): it leaves out {what}.", without_note(&applied.message), bounded(refused));
        if lacks_references && matches!(applied.reason.as_str(), APPLY_SUCCEEDED | APPLY_PROGRESSING) {
            applied.reason = STATUS_TOO_LARGE.to_owned();
        }
        // Keep the stored condition if only its times differ.
        if let Some(stored) = stored
            && (&stored.status, &stored.reason, &stored.message, &stored.codes)
                == (&applied.status, &applied.reason, &applied.message, &applied.codes)
        {
            *applied = stored;
        }
    }
}

#[cfg(test)]
mod tests;
