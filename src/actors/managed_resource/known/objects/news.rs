//! What a change of a watched object means for those who hold it.

use std::rc::Rc;

use cluster::{Change, How};

use super::ObjectRecord;
use crate::{
    actors::health::Judgement,
    api::object::{NamespacedName, ObjectKey},
};

/// Told of drift: the bundle, the object that is no longer as it was, and what happened to it.
pub type DriftListener = Rc<dyn Fn(&NamespacedName, &ObjectKey, Drift)>;

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drift {
    /// It is there and looks different.
    Changed,
    /// It is not there any more.
    Gone,
}

/// Told of what may change the health of a bundle: the bundle, the object or none in particular, and what became known.
pub type HealthListener = Rc<dyn Fn(&NamespacedName, Option<&ObjectKey>, News)>;

/// What became known of an object, or of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// It is judged differently now, or its kind's watch came or went.
    Judged {
        /// Its health, or whether it exists.
        health: bool,
        /// Its roll-out.
        rollout: bool,
    },
    /// A pass found it gone.
    Gone,
}

/// Whether anything is known now that was not known before, but for the version.
pub(super) fn is_news(change: &Change<'_, ObjectRecord>) -> bool {
    match (change.old, change.new) {
        (Some(old), Some(new)) => !old.same_content(new) || old.judgement != new.judgement,
        (Some(_), None) | (None, Some(_)) | (None, None) => true,
    }
}

/// Whether a change concerns the holders of the object, and who made it if it was this process. A change that leaves
/// the content as it was (a status, say) concerns nobody.
pub(super) fn drifted<'a>(change: &Change<'a, ObjectRecord>) -> Option<Option<&'a str>> {
    let writer = match change.how {
        How::First | How::Lost => return None,
        How::Event | How::Relist => None,
        How::Own { writer } => Some(writer),
    };
    match (change.old, change.new) {
        (Some(old), Some(new)) if old.same_content(new) => None,
        // What a read or write of this process brought for the first time is no drift.
        (None, Some(_)) if writer.is_some() => None,
        _ => Some(writer),
    }
}

/// What of a change concerns the health of the holders, whoever made it.
pub(super) fn judged_differently(change: &Change<'_, ObjectRecord>) -> Option<News> {
    if change.how == How::First {
        return None;
    }
    let fine = Judgement::default();
    let old = change.old.and_then(|record| record.judgement.as_deref()).unwrap_or(&fine);
    let new = change.new.and_then(|record| record.judgement.as_deref()).unwrap_or(&fine);
    let health = change.old.is_some() != change.new.is_some() || old.health != new.health;
    let rollout = old.rollout != new.rollout || old.pods != new.pods;
    (health || rollout).then_some(News::Judged { health, rollout })
}
