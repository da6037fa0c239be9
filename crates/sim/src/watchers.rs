use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::mpsc::{self, Receiver, Sender};

use super::{
    fault::WatchEnd,
    storage::{Change, Scope},
};

/// Queued changes per watch; a full queue means that the watch is not read. 10,000 objects written once still fit.
const QUEUE: usize = 16_384;

#[derive(Default)]
pub(super) struct Watches {
    by_resource: BTreeMap<(Arc<str>, Arc<str>), Vec<Watcher>>,
}

struct Watcher {
    scope: Scope,
    queue: Sender<Signal>,
}

pub(super) enum Signal {
    Change(Arc<Change>),
    End(WatchEnd),
}

impl Watches {
    pub(super) fn add(&mut self, scope: Scope) -> Receiver<Signal> {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let place = (scope.group.clone(), scope.resource.clone());
        self.by_resource.entry(place).or_default().push(Watcher { scope, queue: sender });
        receiver
    }

    pub(super) fn announce(&mut self, change: &Arc<Change>) {
        let place = (change.key.group.clone(), change.key.resource.clone());
        if let Some(watchers) = self.by_resource.get_mut(&place) {
            // A full or closed queue ends the watch; queued changes are still read.
            watchers.retain(|watcher| {
                !watcher.queue.is_closed()
                    && (!watcher.scope.contains(&change.key)
                        || watcher.queue.try_send(Signal::Change(change.clone())).is_ok())
            });
        }
    }

    pub(super) fn count(&self) -> usize {
        self.by_resource.values().flatten().filter(|watcher| !watcher.queue.is_closed()).count()
    }

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
