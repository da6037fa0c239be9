//! Who watches what.

use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::mpsc::{self, Receiver, Sender};

use super::{
    fault::WatchEnd,
    storage::{Change, Scope},
};

/// Changes that wait for one watch. More means that it is not read: a test of 10,000 objects that writes each one once
/// still fits.
const QUEUE: usize = 16_384;

/// All open watches, by group and resource.
#[derive(Default)]
pub(super) struct Watches {
    by_resource: BTreeMap<(Arc<str>, Arc<str>), Vec<Watcher>>,
}

struct Watcher {
    scope: Scope,
    queue: Sender<Signal>,
}

/// What a watch is told.
pub(super) enum Signal {
    Change(Arc<Change>),
    End(WatchEnd),
}

impl Watches {
    /// Adds a watch, and gives what it is told.
    pub(super) fn add(&mut self, scope: Scope) -> Receiver<Signal> {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let place = (scope.group.clone(), scope.resource.clone());
        self.by_resource.entry(place).or_default().push(Watcher { scope, queue: sender });
        receiver
    }

    /// Tells a change to all watches of its resource.
    pub(super) fn announce(&mut self, change: &Arc<Change>) {
        let place = (change.key.group.clone(), change.key.resource.clone());
        if let Some(watchers) = self.by_resource.get_mut(&place) {
            // A full or closed queue ends the watch: what is queued is still read.
            watchers.retain(|watcher| {
                !watcher.queue.is_closed()
                    && (!watcher.scope.contains(&change.key)
                        || watcher.queue.try_send(Signal::Change(change.clone())).is_ok())
            });
        }
    }

    /// How many are open.
    pub(super) fn count(&self) -> usize {
        self.by_resource.values().flatten().filter(|watcher| !watcher.queue.is_closed()).count()
    }

    /// Ends all watches, or those of a group and resource.
    pub(super) fn end(&mut self, of: Option<(&str, &str)>, end: WatchEnd) {
        for ((group, resource), watchers) in &mut self.by_resource {
            if of.is_none_or(|of| of == (group, resource)) {
                for watcher in watchers.drain(..) {
                    // A full queue ends the watch anyway, when its sender is dropped.
                    let _ = watcher.queue.try_send(Signal::End(end));
                }
            }
        }
    }
}
