//! One reconcile, from the cached ManagedResource to what `apply` and `remove` do with it (spec 10 §5.2, §7).

use std::{collections::BTreeSet, rc::Rc, time::Duration};

use cluster::object::{NamespacedName, ObjectKey};
use futures::future::join_all;
use kit::{Causes, Failure, Outcome, Reconcile, Signal};
use tokio::time::timeout;

use super::{
    apply, initial_sync,
    known::Memory,
    remove,
    report::status,
    shared::{ActorObject, ManagedResources},
    steps::{self, Run, Todo},
    wake::trigger::{self, Operation, ReconcilePath},
};

/// How long a reconcile keeps its decoded manifests while watches start. Longer waits give up its permit, and begin anew.
const STARTING: Duration = Duration::from_millis(200);

pub(super) async fn run(
    controller: &Rc<ManagedResources>,
    object: &ActorObject,
    memory: &mut Memory,
    reconcile: &Reconcile<NamespacedName, ObjectKey>,
) -> Result<Outcome, Failure> {
    let context = controller.context(reconcile);
    let ActorObject { status, record } = object;
    status.announce_unanswered(controller, &reconcile.key);
    let Some(bundle) = controller.bundle(status, &context, &reconcile.key).await? else {
        controller.objects.register(&reconcile.key, BTreeSet::new());
        controller.initial_sync.leaves(&reconcile.key);
        return Ok(Outcome::Retire);
    };
    let mut run = Run { controller, status, record, reconcile, context, bundle, period_due: false, last_period: None };
    match trigger::operation(&run.bundle.mr) {
        Operation::Stop => {
            controller.initial_sync.leaves(&reconcile.key);
            return Ok(Outcome::Done);
        }
        Operation::RemoveAndContinue => {
            run.remove_operation().await?;
            if status.is_unconfirmed_now() {
                return Ok(Outcome::Again);
            }
        }
        Operation::Continue => {}
    }
    if reconcile.because_of(Causes::RESTARTED) {
        *memory = Memory::default();
    }
    match trigger::entry(&controller.settings.class, &run.bundle.mr) {
        ReconcilePath::Apply => apply_path(&mut run, memory).await,
        other => {
            controller.initial_sync.leaves(&reconcile.key);
            memory.forget_objects();
            record.next_check.set(None);
            if other != ReconcilePath::Delete {
                // A deletion can take several reconciles. Everything else starts over.
                memory.progress = None;
            }
            match other {
                ReconcilePath::Ignored => {
                    run.write_status(status::ignored).await?;
                    controller.objects.register(&reconcile.key, BTreeSet::new());
                    reconcile.note("ignored");
                    Ok(Outcome::Done)
                }
                ReconcilePath::Delete => remove::delete_bundle(&mut run, memory).await,
                ReconcilePath::NotResponsible => {
                    controller.objects.register(&reconcile.key, BTreeSet::new());
                    Ok(Outcome::Retire)
                }
                ReconcilePath::WaitingForCleanup | ReconcilePath::Apply => Ok(Outcome::Done),
            }
        }
    }
}

async fn apply_path(run: &mut Run<'_>, memory: &mut Memory) -> Result<Outcome, Failure> {
    let controller = run.controller;
    if let Some(moment) = initial_sync::take_part(run, memory).await {
        return Ok(Outcome::Wait(vec![moment]));
    }
    let now = controller.env.clock.monotonic();
    let revision = controller.revision(&run.reconcile.key);
    let is_period = memory.period.is_none_or(|period| period <= now);
    run.period_due = is_period;
    let before = (memory.period, memory.last_period, memory.drift_backoff.clone(), memory.unscaled.clone());
    let todo = steps::todo(run, memory, now);
    run.last_period = memory.last_period;
    if todo == Todo::Nothing {
        if memory.applied.is_none() {
            return Ok(Outcome::Again);
        }
        // A reconcile checks all objects only for its period.
        return Ok(steps::until_due(run, memory, now, revision.filter(|_| is_period)));
    }
    run.ensure_finalizer().await?;
    let bundle = match steps::read(run).await {
        Ok(bundle) => bundle,
        Err(error) => {
            memory.applied = None;
            memory.announced = None;
            memory.progress = None;
            return Err(run.secret_unreadable(error).await);
        }
    };
    let mut unwatched = bundle.watch_kinds(run);
    if bundle.is_scalable() {
        controller.autoscalers.find().await;
    }
    if run.reconcile.because_of(Causes::STORE) {
        unwatched.clear();
    }
    loop {
        let wait = match controller.autoscalers.pending() {
            _ if !unwatched.is_empty() => std::mem::take(&mut unwatched),
            Some(listed) if bundle.is_scalable() => vec![listed],
            Some(_) | None => break,
        };
        if timeout(STARTING, join_all(wait.iter().map(Signal::raised_after))).await.is_err() {
            // Everything that was due is still due.
            (memory.period, memory.last_period, memory.drift_backoff, memory.unscaled) = before;
            return Ok(Outcome::Wait(wait));
        }
    }
    apply::apply(run, memory, bundle, todo).await
}
