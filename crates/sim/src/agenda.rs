use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use super::{Shared, storage::Key};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DueTask {
    /// Accept the names of a definition and serve it.
    Establish { name: String },
    /// Delete a definition's objects, then the definition.
    EmptyDefinition { name: String },
    /// Remove a definition that has no objects left.
    RemoveDefinition { name: String },
    /// Delete a namespace's contents, then the namespace.
    EmptyNamespace { name: String },
    /// Create the default objects of a namespace.
    FillNamespace { name: String },
    /// Check whether an object still has an owner.
    CheckOwners { key: Key },
    /// Delete or release the dependents of an object that waits for them.
    HandleDependents { key: Key },
    /// Remove the protection finalizer from a volume or claim that is being deleted.
    Unprotect { key: Key },
}

/// Tasks by time; tasks for the same time run in the order of arrival.
#[derive(Debug)]
pub(super) struct Agenda {
    due_tasks: BTreeMap<(Instant, u64), DueTask>,
    count: u64,
    changed: Arc<Notify>,
}

impl Agenda {
    pub(super) fn new(changed: Arc<Notify>) -> Self {
        Self { due_tasks: BTreeMap::new(), count: 0, changed }
    }

    pub(super) fn add(&mut self, after: Duration, due_task: DueTask) {
        self.count += 1;
        self.due_tasks.insert((Instant::now() + after, self.count), due_task);
        self.changed.notify_one();
    }

    pub(super) fn due(&mut self) -> Option<DueTask> {
        let first = self.due_tasks.first_entry()?;
        (first.key().0 <= Instant::now()).then(|| first.remove())
    }

    fn next(&self) -> Option<Instant> {
        self.due_tasks.keys().next().map(|(at, _)| *at)
    }
}

pub(super) async fn drive(shared: Weak<Shared>, changed: Arc<Notify>) {
    loop {
        let next = {
            let Some(shared) = shared.upgrade() else { return };
            let mut state = shared.state();
            while let Some(due_task) = state.agenda.due() {
                state.perform(due_task);
            }
            state.agenda.next()
        };
        match next {
            None => changed.notified().await,
            Some(at) => tokio::select! {
                biased;
                () = changed.notified() => {}
                () = sleep_until(at) => {}
            },
        }
    }
}
