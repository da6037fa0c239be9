//! What the server's own controllers will do, and when: an ordered list on tokio's (virtual) time.

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

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DueTask {
    /// Accept the names of a definition and serve it.
    Establish { name: String },
    /// Delete the objects of a definition, and then itself.
    EmptyDefinition { name: String },
    /// Remove a definition without objects.
    RemoveDefinition { name: String },
    /// Delete what is in a namespace, and then itself.
    EmptyNamespace { name: String },
    /// Create what each namespace gets.
    FillNamespace { name: String },
    /// Look whether an object still has an owner.
    CheckOwners { key: Key },
    /// Delete or release the dependents of an object that waits for that.
    HandleDependents { key: Key },
    /// Take the protection off a volume or claim that is being deleted.
    Unprotect { key: Key },
}

/// Duties by time; those of one time in the order in which they came.
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

    /// The next duty whose time has come.
    pub(super) fn due(&mut self) -> Option<DueTask> {
        let first = self.due_tasks.first_entry()?;
        (first.key().0 <= Instant::now()).then(|| first.remove())
    }

    fn next(&self) -> Option<Instant> {
        self.due_tasks.keys().next().map(|(at, _)| *at)
    }
}

/// Does what is due, until the simulator is gone.
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
