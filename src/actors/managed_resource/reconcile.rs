//! One pass over a bundle, from the ManagedResource in the store to what is to be done with it (spec 10 §5.2, §7).
//!
//! What is to be done is in the rooms `apply` and `remove`.

use std::{collections::BTreeSet, rc::Rc};

use kit::{Causes, Failure, Outcome, Pass};

use super::{
    apply,
    known::Memory,
    pass::{self, Run, Todo},
    remove,
    report::{StatusCell, status, writer},
    shared::ManagedResources,
    start,
    wake::trigger::{self, Entry, Operation},
};
use crate::api::object::{NamespacedName, ObjectKey};

/// Runs a pass.
pub(super) async fn run(
    controller: &Rc<ManagedResources>,
    status: &StatusCell,
    memory: &mut Memory,
    pass: &Pass<NamespacedName, ObjectKey>,
) -> Result<Outcome, Failure> {
    let context = controller.context(pass);
    let Some(bundle) = controller.bundle(status, &context, &pass.key).await? else {
        controller.objects.register(&pass.key, BTreeSet::new());
        controller.claims.leaves(&pass.key);
        return Ok(Outcome::Retire);
    };
    let mut run = Run {
        controller,
        status,
        pass,
        context,
        writer: writer(&pass.key),
        bundle,
        period_due: false,
        last_period: None,
    };
    match trigger::operation(&run.bundle.mr) {
        Operation::Stop => {
            controller.claims.leaves(&pass.key);
            return Ok(Outcome::Done);
        }
        Operation::RemoveAndContinue => {
            run.remove_operation().await?;
            if status.is_doubtful() {
                return Ok(Outcome::Again);
            }
        }
        Operation::Continue => {}
    }
    if pass.because_of(Causes::RESTARTED) {
        *memory = Memory::default();
    }
    match trigger::entry(&controller.settings.class, &run.bundle.mr) {
        Entry::Apply => apply_path(&mut run, memory).await,
        other => {
            controller.claims.leaves(&pass.key);
            memory.forget_objects();
            if other != Entry::Delete {
                // A deletion can take several passes; anything else begins anew.
                memory.ledger = None;
            }
            match other {
                Entry::Ignored => {
                    let now = controller.env.clock.wall();
                    run.write_status(|status| status::ignored(status, now)).await?;
                    controller.objects.register(&pass.key, BTreeSet::new());
                    pass.note("ignored");
                    Ok(Outcome::Done)
                }
                Entry::Delete => remove::delete_bundle(&mut run, memory).await,
                Entry::NotResponsible => {
                    controller.objects.register(&pass.key, BTreeSet::new());
                    Ok(Outcome::Retire)
                }
                Entry::WaitingForCleanup | Entry::Apply => Ok(Outcome::Done),
            }
        }
    }
}

async fn apply_path(run: &mut Run<'_>, memory: &mut Memory) -> Result<Outcome, Failure> {
    let controller = run.controller;
    if let Some(moments) = start::take_part(run, memory).await? {
        return Ok(Outcome::Wait(moments));
    }
    let now = controller.env.clock.monotonic();
    let revision = controller.revision(&run.pass.key);
    let is_period = memory.period.is_none_or(|period| period <= now);
    run.period_due = is_period;
    let before = (memory.period, memory.last_period, memory.damping.clone(), memory.unscaled.clone());
    let todo = pass::todo(run, memory, now);
    run.last_period = memory.last_period;
    if todo == Todo::Nothing {
        if memory.applied.is_none() {
            return Ok(Outcome::Again);
        }
        // Only for its period does a pass look at all objects.
        return Ok(pass::until_due(run, memory, now, revision.filter(|_| is_period)));
    }
    run.ensure_finalizer().await?;
    let bundle = match pass::read(run).await {
        Ok(bundle) => bundle,
        Err(error) => {
            memory.applied = None;
            memory.announced = None;
            memory.ledger = None;
            return Err(run.secret_unreadable(error).await);
        }
    };
    let unwatched = bundle.watch_kinds(run);
    if bundle.is_scalable() {
        controller.autoscalers.find().await;
    }
    let pending = controller.autoscalers.pending().filter(|_| bundle.is_scalable());
    let wait = match pending {
        _ if !unwatched.is_empty() && !run.pass.because_of(Causes::STORE) => unwatched,
        Some(listed) => vec![listed],
        None => Vec::new(),
    };
    if !wait.is_empty() {
        // What was due is due still.
        (memory.period, memory.last_period, memory.damping, memory.unscaled) = before;
        return Ok(Outcome::Wait(wait));
    }
    apply::apply(run, memory, bundle, todo).await
}
