//! Wakes: why a key is enqueued (contract rule 1). A wake is state, not a message: a queue entry holds the union of all
//! wakes since the last reconcile, so no number of events can overflow it, block or get lost.

use std::collections::BTreeSet;

use super::Priority;

/// Up to this many refs are named; more become *all*: a full reconcile is as cheap then, and queue entries stay small.
pub const MAX_REFS: usize = 64;

/// A set of causes. The lower eight bits belong to the kit, the others to the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Causes(u32);

/// The objects that a wake concerns, named by `R` ([`GeneralController::Ref`](super::GeneralController::Ref)).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Refs<R = ()> {
    /// None in particular.
    #[default]
    None,
    /// These, at most [`MAX_REFS`].
    Named(BTreeSet<R>),
    /// Possibly all.
    All,
}

/// Why a key is enqueued, how urgently, and which of its objects are concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wake<R = ()> {
    /// The causes.
    pub causes: Causes,
    /// The objects concerned.
    pub refs: Refs<R>,
    /// The highest priority among the wakes.
    pub priority: Priority,
}

/// Names of the kit's own causes, by bit.
const NAMES: [&str; 7] = ["listed", "object", "timer", "again", "store", "restarted", "resync"];

impl Causes {
    /// No cause.
    pub const NONE: Self = Self(0);
    /// The key was in the first list.
    pub const LISTED: Self = Self(1);
    /// The object of the key changed.
    pub const OBJECT: Self = Self(1 << 1);
    /// A timer of the reconciler ended.
    pub const TIMER: Self = Self(1 << 2);
    /// The last reconcile failed or asked for another one.
    pub const AGAIN: Self = Self(1 << 3);
    /// A store that the reconciler waited for changed its state.
    pub const STORE: Self = Self(1 << 4);
    /// The actor was restarted after a panic: its memory is gone.
    pub const RESTARTED: Self = Self(1 << 5);
    /// The periodic resync.
    pub const RESYNC: Self = Self(1 << 6);
    /// All causes of the kit, which concern every reconciler.
    pub(super) const KIT: Self = Self(0xff);

    pub(super) const fn kit(bit: usize) -> Self {
        Self(1 << (bit & 7))
    }

    /// Every cause.
    pub const ALL: Self = Self(u32::MAX);

    /// Returns the names of the causes: the kit's, then those of `own`, the controller's names by index.
    pub fn names(self, own: &'static [&'static str]) -> impl Iterator<Item = &'static str> {
        let kit = NAMES.iter().enumerate().map(|(bit, name)| (Self::kit(bit), *name));
        let own = own.iter().zip(0..).map(|(name, index)| (Self::own(index), *name));
        kit.chain(own).filter(move |(cause, _)| self.meets(*cause)).map(|(_, name)| name)
    }

    /// Returns the controller's own cause number `index`, 0 to 23.
    pub const fn own(index: u32) -> Self {
        assert!(index < 24, "a controller has 24 causes of its own");
        Self(1 << (8 + index))
    }

    /// Returns the union.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns true if both have a cause in common.
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns true if there is no cause.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl<R: Ord> Refs<R> {
    /// One object.
    pub fn one(named: R) -> Self {
        Self::Named(BTreeSet::from([named]))
    }

    fn merge(&mut self, other: Self) {
        match (&mut *self, other) {
            (_, Self::None) | (Self::All, _) => {}
            (mine, Self::All) => *mine = Self::All,
            (mine @ Self::None, named) => *mine = named,
            (Self::Named(mine), Self::Named(more)) => {
                mine.extend(more);
                if mine.len() > MAX_REFS {
                    *self = Self::All;
                }
            }
        }
    }
}

impl<R: Ord> Wake<R> {
    /// Creates a high-priority wake.
    pub fn high(causes: Causes) -> Self {
        Self { causes, refs: Refs::None, priority: Priority::High }
    }

    /// Creates a low-priority wake.
    pub fn low(causes: Causes) -> Self {
        Self { causes, refs: Refs::None, priority: Priority::Low }
    }

    /// Adds a concerned object.
    pub fn about(mut self, named: R) -> Self {
        self.refs.merge(Refs::one(named));
        self
    }

    /// Merges another wake into this one.
    pub fn merge(&mut self, other: Self) {
        self.causes = self.causes.with(other.causes);
        self.refs.merge(other.refs);
        self.priority = self.priority.max(other.priority);
    }

    /// Returns true if there is no cause.
    pub fn is_empty(&self) -> bool {
        self.causes.is_empty()
    }

    /// Takes the wake out and leaves an empty one.
    pub fn take(&mut self) -> Self {
        std::mem::take(self)
    }
}

impl<R> Default for Wake<R> {
    fn default() -> Self {
        Self { causes: Causes::default(), refs: Refs::default(), priority: Priority::default() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn wake() -> impl Strategy<Value = Wake<usize>> {
        let refs = prop_oneof![
            Just(Refs::None),
            Just(Refs::All),
            vec(0usize..200, 1..50).prop_map(|numbers| Refs::Named(numbers.into_iter().collect())),
        ];
        (any::<u32>(), refs, any::<bool>()).prop_map(|(causes, refs, live)| Wake {
            causes: Causes(causes),
            refs,
            priority: if live { Priority::High } else { Priority::Low },
        })
    }

    #[test]
    fn wake_names_up_to_64_objects_and_more_mean_all() {
        let mut wake = Wake::high(Causes::OBJECT);
        for number in 0..MAX_REFS {
            wake = wake.about(number).about(0);
        }
        assert!(matches!(&wake.refs, Refs::Named(named) if named.len() == MAX_REFS));

        assert_eq!(wake.about(MAX_REFS).refs, Refs::All);
    }

    proptest! {
        #[test]
        fn wake_union_does_not_depend_on_order_or_repetition(wakes in vec(wake(), 1..8)) {
            let union = |wakes: &mut dyn Iterator<Item = &Wake<usize>>| {
                let mut union = Wake::default();
                wakes.for_each(|wake| union.merge(wake.clone()));
                union
            };
            let forward = union(&mut wakes.iter());

            prop_assert_eq!(&forward, &union(&mut wakes.iter().rev()));
            prop_assert_eq!(&forward, &union(&mut wakes.iter().chain(&wakes)));
            let causes = wakes.iter().fold(Causes::NONE, |all, wake| all.with(wake.causes));
            prop_assert_eq!(forward.causes, causes);
        }
    }
}
