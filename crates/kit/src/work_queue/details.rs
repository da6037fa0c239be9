//! What the queue knows of one actor, for who looks at it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
};

use super::{Shared, WorkQueue};
use crate::{
    ActorDetails, Causes, GeneralController, PastReconcile, PendingReconcile, PendingState, ReconcileResult,
    SyncRequirement,
    queue_entry::{Phase, QueueEntry, ReconcilerEntry, TimerKind},
};

/// What is known while the queue is borrowed. The controller's code is called later.
struct Sketch<C: GeneralController> {
    details: ActorDetails,
    controller: Rc<C>,
    key: C::Key,
    object: Option<Rc<C::Object>>,
    /// Reconcilers that wait for caches, with these.
    unready: Vec<(&'static str, Vec<SyncRequirement>)>,
}

/// Describes the actor at `path`; `None` if there is none. A panic of the controller's description is logged, and the
/// rest is returned.
pub(crate) fn describe<C: GeneralController>(queue: &Shared<C>, path: &str) -> Option<ActorDetails> {
    let sketch = queue.borrow().sketch(path)?;
    let Sketch { mut details, controller, key, object, unready } = sketch;
    for (reconciler, caches) in unready {
        let caches: Vec<_> = caches.iter().map(SyncRequirement::complaint).collect();
        add(
            &mut details.waits_for,
            format!("{reconciler} waits for caches that are not synced: {}", caches.join(", ")),
        );
    }
    match catch_unwind(AssertUnwindSafe(|| controller.details(&key, object.as_ref()))) {
        Ok(own) => details.own.extend(own),
        Err(_) => tracing::error!(controller = controller.name(), %key, "the description of an object panicked"),
    }
    Some(details)
}

impl<C: GeneralController> WorkQueue<C> {
    fn sketch(&self, path: &str) -> Option<Sketch<C>> {
        let (key, entry) = self.entries.iter().find(|(_, entry)| entry.cell.path() == path)?;
        let mut details = ActorDetails { reconciles: self.past(entry), ..ActorDetails::default() };
        let mut unready = Vec::new();
        for (number, state) in entry.reconcilers.iter().enumerate() {
            let queue = &self.reconcilers[number];
            let name = queue.spec.name;
            details.pending.extend(self.pending(name, state));
            match state.phase {
                Phase::Unready => {
                    let unmet = queue.spec.requires.iter().filter(|requirement| !(requirement.ready)());
                    unready.push((name, unmet.cloned().collect()));
                }
                Phase::Queued => {
                    let (in_use, permits) = queue.limiter.in_use();
                    let before = queue.limiter.position(key).unwrap_or_default();
                    let text = format!(
                        "{name} waits for a permit: {in_use} of {permits} are in use, {before} keys are before it"
                    );
                    add(&mut details.waits_for, text);
                }
                Phase::Idle if !state.listening.is_empty() => {
                    add(&mut details.waits_for, format!("{name} waits for a change that its last reconcile asked for"));
                }
                Phase::Idle | Phase::Granted | Phase::Running | Phase::Quarantined => {}
            }
        }
        let object = entry.actor.as_ref().and_then(|actor| actor.object());
        Some(Sketch { details, controller: self.controller.clone(), key: key.clone(), object, unready })
    }

    fn past<A>(&self, entry: &QueueEntry<A, C::Ref>) -> Vec<PastReconcile> {
        let mut last_error = entry.cell.read().last_error;
        let past = entry.history.past().map(|past| {
            let is_error = matches!(past.result, ReconcileResult::Error | ReconcileResult::TerminalError);
            PastReconcile {
                reconciler: self.reconcilers.get(past.reconciler).map_or("", |queue| queue.spec.name),
                ended: past.ended,
                ms: past.ms,
                result: past.result,
                causes: self.spans.names(past.causes).collect(),
                // The cell's error may be older than what is remembered: only the newest failure can have it.
                error: is_error.then(|| last_error.take().map(|(_, text)| text)).flatten(),
            }
        });
        past.collect()
    }

    fn pending(&self, reconciler: &'static str, state: &ReconcilerEntry<C::Ref>) -> Vec<PendingReconcile> {
        let due = state.timer.as_ref().and_then(|timer| self.wall_time(timer.due));
        let woken = state.pending.causes.with(state.retained.causes);
        let (what, due) = match (state.phase, state.timer.as_ref().map(|timer| timer.kind)) {
            (Phase::Running, _) => (PendingState::Running, None),
            (Phase::Queued | Phase::Granted, _) => (PendingState::Queued, None),
            (Phase::Unready, _) => (PendingState::Caches, None),
            (Phase::Quarantined, _) => (PendingState::Quarantined, due),
            (Phase::Idle, Some(TimerKind::BackOff)) => (PendingState::BackingOff, due),
            (Phase::Idle, Some(TimerKind::Until(time))) => (PendingState::Timer, Some(time)),
            (Phase::Idle, Some(TimerKind::After | TimerKind::Idle | TimerKind::Quarantine)) => {
                (PendingState::Timer, due)
            }
            (Phase::Idle, None) if !state.listening.is_empty() => (PendingState::Waiting, None),
            (Phase::Idle, None) => return Vec::new(),
        };
        let pending = |causes: Causes, priority, state, due| PendingReconcile {
            reconciler,
            causes: self.spans.names(causes).collect(),
            priority,
            state,
            due,
        };
        match &state.running {
            Some(running) => {
                let now = pending(running.wake.causes, running.wake.priority, what, due);
                let next = (!state.pending.is_empty())
                    .then(|| pending(state.pending.causes, state.pending.priority, PendingState::Next, None));
                [now].into_iter().chain(next).collect()
            }
            None => vec![pending(woken, state.priority(), what, due)],
        }
    }
}

fn add(text: &mut Option<String>, more: String) {
    match text {
        Some(text) => {
            text.push_str("; ");
            text.push_str(&more);
        }
        None => *text = Some(more),
    }
}
