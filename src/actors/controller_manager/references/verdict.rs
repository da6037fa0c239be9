//! Who gets the finalizer, and who loses it (spec 81 §3.2 G-10 to G-14). Pure.

use super::object::ObjectState;

/// What counts of a referrer of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::actors::controller_manager) struct ReferrerState {
    /// It is not being deleted, or its own controllers have not finished.
    pub is_in_use: bool,
    /// It has the finalizer.
    pub is_held: bool,
    /// It is being deleted.
    pub is_deleting: bool,
}

/// What to do with a referenced object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectVerdict {
    /// Add the finalizer.
    Protect,
    /// It is being deleted without the finalizer, so it cannot get it.
    TooLate,
    /// Nothing: the finalizer stays, or is not needed.
    Keep,
    /// Remove the finalizer, after a live check.
    Release,
    /// Remove the finalizer when the last referrer is gone.
    ReleaseLast,
}

/// What to do with a referrer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReferrerVerdict {
    /// Add the finalizer.
    Hold,
    /// Remove the finalizer.
    Release,
    /// Remove the finalizer when its objects are released.
    Wait,
    /// Nothing.
    Keep,
}

/// An object as one of its referrers sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SeenObject {
    /// The object; `None` if it does not exist.
    pub state: Option<ObjectState>,
    /// Another referrer in use refers to it.
    pub has_other_referrer: bool,
}

impl SeenObject {
    /// Returns true if a referrer that is not in use waits for its release.
    pub(super) fn blocks_release(&self) -> bool {
        !self.has_other_referrer && self.state.is_some_and(|state| state.is_held && !state.is_deleting)
    }
}

/// Judges an object by all its referrers.
pub(super) fn judge_object(object: ObjectState, referrers: &[ReferrerState]) -> ObjectVerdict {
    let is_referenced = referrers.iter().any(|referrer| referrer.is_in_use);
    match (is_referenced, object) {
        (true, ObjectState { is_held: true, .. }) | (false, ObjectState { is_held: false, .. }) => ObjectVerdict::Keep,
        (true, ObjectState { is_deleting: false, .. }) => ObjectVerdict::Protect,
        (true, ObjectState { is_deleting: true, .. }) => ObjectVerdict::TooLate,
        // It vanishes with its finalizer, and then the API server may refuse all writes of its referrers.
        (false, ObjectState { is_deleting: true, .. }) if !referrers.is_empty() => ObjectVerdict::ReleaseLast,
        (false, _) => ObjectVerdict::Release,
    }
}

/// Judges a referrer by its objects.
pub(super) fn judge_referrer(referrer: ReferrerState, objects: &[SeenObject]) -> ReferrerVerdict {
    if referrer.is_in_use {
        let has_object = objects.iter().any(|object| object.state.is_some_and(|state| !state.is_lost()));
        return match (has_object, referrer.is_held) {
            (true, false) if !referrer.is_deleting => ReferrerVerdict::Hold,
            (false, true) => ReferrerVerdict::Release,
            (true | false, _) => ReferrerVerdict::Keep,
        };
    }
    match referrer.is_held {
        false => ReferrerVerdict::Keep,
        true if objects.iter().any(|object| object.blocks_release()) => ReferrerVerdict::Wait,
        true => ReferrerVerdict::Release,
    }
}
