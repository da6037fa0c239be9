//! What the reconcilers of a ManagedResource note for its page on the dashboard. No decision depends on it, and all of
//! it may be lost. It contains names, paths and error texts, never content.
//! * `writes`: what was last done to each object, and why
//! * `documents`: the Secret, data key and index of each object's manifest
//! * `deletions`: which objects are being deleted, and what they wait for

mod deletions;
mod documents;
mod writes;

use std::{
    cell::{Cell, RefCell},
    rc::Weak,
};

use tokio::time::Instant;

pub(super) use self::{
    deletions::{Deletions, PendingDeletion},
    documents::{DocumentPlace, Documents},
    writes::{LastWrites, WriteKind, WriteNote},
};
use super::health::LiveReads;

/// The notes about one ManagedResource. Shared by its reconcilers.
#[derive(Default)]
pub(super) struct BundleRecord {
    pub(super) writes: RefCell<LastWrites>,
    pub(super) documents: RefCell<Documents>,
    pub(super) deletions: RefCell<Deletions>,
    /// When the next period, or a postponed repair, is due.
    pub(super) next_check: Cell<Option<Instant>>,
    /// What the health reconciler read of objects that no watch delivers.
    pub(super) live_reads: RefCell<Weak<LiveReads>>,
}
