//! Event handlers that wake actors: a predicate selects the changes, a function maps objects to keys.

use std::collections::BTreeSet;

use kit::{Causes, GeneralController, Supervised, Wake};

use super::{Change, How, Watch};
use crate::{Cached, CachedFields, object::NamespacedName};

/// Returns true if the old and the new object differ in what matters.
type Comparison<R> = dyn Fn(&R, &R) -> bool;

/// Selects the changes that wake keys. Default: each change except own writes, with the cause [`Causes::OBJECT`].
pub struct Predicate<R> {
    differs: Box<Comparison<R>>,
    ignored: Vec<fn(&Change<'_, R>) -> bool>,
    includes_own_writes: bool,
    causes: Causes,
}

impl<T: PartialEq> Predicate<CachedFields<T>> {
    /// Selects changes of the cached fields, and objects that come or go.
    pub fn fields_changed() -> Self {
        Self::differing(|old, new| old.fields != new.fields)
    }
}

impl<R> Predicate<R> {
    /// Selects changes for which `differs(old, new)` returns true, and objects that come or go.
    pub fn differing(differs: impl Fn(&R, &R) -> bool + 'static) -> Self {
        let differs = Box::new(differs);
        Self { differs, ignored: Vec::new(), includes_own_writes: false, causes: Causes::OBJECT }
    }

    /// Selects each change, also if only the version differs.
    pub fn any_change() -> Self {
        Self::differing(|_, _| true)
    }

    /// Ignores the first list: for objects whose keys are all woken for another reason at the start.
    #[must_use]
    pub fn ignoring_first_list(self) -> Self {
        self.ignoring(|change| change.how == How::First)
    }

    /// Ignores objects that the cache lacked before.
    #[must_use]
    pub fn ignoring_creation(self) -> Self {
        self.ignoring(|change| change.old.is_none())
    }

    /// Ignores objects that are gone or no longer selected.
    #[must_use]
    pub fn ignoring_deletion(self) -> Self {
        self.ignoring(|change| change.new.is_none())
    }

    /// Selects the writes of this process, too.
    #[must_use]
    pub fn including_own_writes(self) -> Self {
        Self { includes_own_writes: true, ..self }
    }

    /// Sets the causes of the wakes.
    #[must_use]
    pub fn because(self, causes: Causes) -> Self {
        Self { causes, ..self }
    }

    fn ignoring(mut self, is_ignored: fn(&Change<'_, R>) -> bool) -> Self {
        self.ignored.push(is_ignored);
        self
    }

    fn selects(&self, change: &Change<'_, R>) -> bool {
        let is_own = matches!(change.how, How::Own { .. });
        let is_different = match (change.old, change.new) {
            (Some(old), Some(new)) => (self.differs)(old, new),
            (old, new) => old.is_some() || new.is_some(),
        };
        is_different
            && (self.includes_own_writes || !is_own)
            && !self.ignored.iter().any(|is_ignored| is_ignored(change))
    }

    /// Returns the wake for a change, or `None` if it is not selected. First lists have low priority.
    pub(super) fn wake<Ref: Ord>(&self, change: &Change<'_, R>) -> Option<Wake<Ref>> {
        let is_first = change.how == How::First;
        self.selects(change).then(|| if is_first { Wake::low(self.causes) } else { Wake::high(self.causes) })
    }
}

impl<R: Cached> Watch<R> {
    /// Adds an event handler that wakes keys of a controller. `keys` returns the keys that an object concerns. For each
    /// change that the predicate selects, it is called with the old and with the new object, so that a key that the
    /// object no longer concerns is woken, too. Objects of the first list wake with low priority, others with high.
    pub fn on_change<C: GeneralController, K: IntoIterator<Item = C::Key>>(
        &self,
        supervised: &Supervised<C>,
        predicate: Predicate<R>,
        keys: impl Fn(&NamespacedName, &R) -> K + 'static,
    ) {
        let waker = supervised.weak();
        self.subscribe(move |change| {
            let Some(wake) = predicate.wake(change) else { return };
            let objects = [change.old, change.new].into_iter().flatten();
            let concerned: BTreeSet<C::Key> = objects.flat_map(|object| keys(change.name, object)).collect();
            concerned.iter().for_each(|key| waker.wake(key, wake.clone()));
        });
    }
}
