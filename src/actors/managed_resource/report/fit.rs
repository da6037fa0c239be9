//! What is left out of a status that is too large to be stored (spec 10 §9.7, decision 36). Pure.
//!
//! Labels and annotations of refs are what a merge compares with, and can be done without: what left a manifest then stays in its
//! object. The refs themselves cannot: without them nobody knows what is to be deleted. So they come last.

use super::status::bounded;
use crate::api::{
    conditions::{self, APPLY_PROGRESSING, APPLY_SUCCEEDED, Condition, RESOURCES_APPLIED},
    managed_resource::{ManagedResourceStatus, ResourceRef},
};

/// Labels or annotations of one ref that take more bytes than this are left out first.
const LARGE: usize = 1024;

/// Reason of `ResourcesApplied` if not even the refs can be stored.
const STATUS_TOO_LARGE: &str = "StatusTooLarge";

/// How what is said of a status that is not whole begins.
const NOTE: &str = " The status is too large to be stored (";

/// A status on its way into the database: as much of it as fits.
pub(super) struct Draft<'a> {
    stored: &'a ManagedResourceStatus,
    status: ManagedResourceStatus,
    stage: Stage,
    /// Refs without their annotations, without their labels.
    left_out: [usize; 2],
}

/// What may be left out, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    LargeAnnotations,
    LargeLabels,
    /// The small ones too.
    LabelsAndAnnotations,
    /// The stored refs stay as they are.
    References,
    Nothing,
}

/// Whether a stored ref is what is left of a ref of the same manifest when the status was too large.
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

/// A message without what it says of a status that is not whole.
pub(super) fn without_note(message: &str) -> &str {
    message.split_once(NOTE).map_or(message, |(message, _)| message)
}

fn size_of(map: &std::collections::BTreeMap<String, String>) -> usize {
    if map.is_empty() { 0 } else { serde_json::to_vec(map).map_or(0, |text| text.len()) }
}

impl<'a> Draft<'a> {
    /// The whole status, in place of the one that is stored.
    pub(super) fn new(status: ManagedResourceStatus, stored: &'a ManagedResourceStatus) -> Self {
        let mut draft = Self { stored, status, stage: Stage::LargeAnnotations, left_out: [0, 0] };
        if draft.status.resources != stored.resources
            && let Some(applied) = draft.applied()
        {
            applied.message = without_note(&applied.message).to_owned();
        }
        draft
    }

    /// The status as it is to be written.
    pub(super) fn status(&self) -> &ManagedResourceStatus {
        &self.status
    }

    /// Leaves something out, as the object of `size` bytes is too large; `refused` says who says so. False if nothing is left
    /// that could be left out.
    ///
    /// An eighth goes at once: a write of this size is not cheap. The steps depend on the whole status alone, so the same status
    /// always ends as the same.
    pub(super) fn shrink(&mut self, size: usize, refused: &str) -> bool {
        loop {
            let done = match self.stage {
                Stage::LargeAnnotations => self.shrink_maps(size / 8, LARGE, 0),
                Stage::LargeLabels => self.shrink_maps(size / 8, LARGE, 1),
                Stage::LabelsAndAnnotations => self.shrink_maps(usize::MAX, 0, 0) | self.shrink_maps(usize::MAX, 0, 1),
                Stage::References => {
                    let is_other = self.status.resources != self.stored.resources;
                    self.status.resources.clone_from(&self.stored.resources);
                    is_other
                }
                Stage::Nothing => return false,
            };
            if done {
                self.say(refused);
                return true;
            }
            self.stage = match self.stage {
                Stage::LargeAnnotations => Stage::LargeLabels,
                Stage::LargeLabels => Stage::LabelsAndAnnotations,
                Stage::LabelsAndAnnotations => Stage::References,
                Stage::References | Stage::Nothing => Stage::Nothing,
            };
        }
    }

    /// Takes out maps above `limit` bytes, the largest first, until so many bytes are saved. `which`: 0 for annotations, 1 for
    /// labels. Whether there was one.
    fn shrink_maps(&mut self, wanted: usize, limit: usize, which: usize) -> bool {
        let map = |reference: &mut ResourceRef| match which {
            0 => std::mem::take(&mut reference.annotations),
            _ => std::mem::take(&mut reference.labels),
        };
        let size =
            |reference: &ResourceRef| size_of(if which == 0 { &reference.annotations } else { &reference.labels });
        let sizes = self.status.resources.iter().map(size).enumerate();
        let mut large: Vec<(usize, usize)> = sizes.filter(|(_, size)| *size > limit).collect();
        large.sort_by_key(|(index, size)| (std::cmp::Reverse(*size), *index));
        let (mut saved, mut taken) = (0, 0);
        for (index, size) in large {
            if saved >= wanted {
                break;
            }
            map(&mut self.status.resources[index]);
            saved += size;
            taken += 1;
        }
        self.left_out[which] += taken;
        taken > 0
    }

    fn applied(&mut self) -> Option<&mut Condition> {
        self.status.conditions.iter_mut().find(|condition| condition.kind == RESOURCES_APPLIED)
    }

    /// Says in `ResourcesApplied` what is left out, and why.
    fn say(&mut self, refused: &str) {
        let [annotations, labels] = self.left_out;
        let lacks_references = self.stage == Stage::References;
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
        // Only its times may differ from what is written already.
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
