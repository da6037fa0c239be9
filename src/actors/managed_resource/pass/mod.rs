//! One pass over a bundle: from the ManagedResource in the store to what is to be done with it (spec 10 §5.2, §7).
//!
//! * here: from its cause to what is to be done. **Start reading here**
//! * `run`: what every step of it needs, and the writes to the ManagedResource itself
//! * `read`: reads the Secrets, decodes, looks up the kinds, plans (spec 10 §9.1 to §9.6)
//! * `rest`: the look that ends a period in which nothing happened, instead of a pass
//!
//! What is to be done is in the rooms `apply` and `remove`.

pub(crate) mod read;
pub(super) mod rest;
pub(super) mod run;

use std::{collections::BTreeSet, rc::Rc};

use kit::{Causes, Failure, MAX_REFS, Outcome, Pass, Refs};
use tokio::time::Instant;

use self::{
    read::ReadError,
    run::{Run, Todo},
};
use super::{
    apply,
    known::memory::{Applied, Memory},
    remove::clean_up,
    report::{
        status,
        status_cell::{StatusCell, writer},
    },
    shared::{CHANGED, DRIFT, KIND, ManagedResources, SCALED, SECRET},
    start::claims::StartStep,
    wake::trigger::{self, Entry, Operation},
};
use crate::api::object::{NamespacedName, ObjectKey};

/// Runs a pass.
pub(super) async fn run(
    controller: &Rc<ManagedResources>,
    status: &StatusCell,
    memory: &mut Memory,
    pass: &Pass<NamespacedName>,
) -> Result<Outcome, Failure> {
    let context = controller.context(pass);
    let Some(bundle) = controller.bundle(status, &context, &pass.key).await? else {
        controller.objects.register(&pass.key, BTreeSet::new());
        controller.claims.leaves(&pass.key);
        return Ok(Outcome::Retire);
    };
    let mut run = Run { controller, status, pass, context, writer: writer(&pass.key), bundle };
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
                Entry::Delete => clean_up::delete_bundle(&mut run, memory).await,
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
    match controller.claims.step(&run.pass.key, memory) {
        StartStep::Over => {}
        StartStep::Wait(moments) => return Ok(Outcome::Wait(moments)),
        StartStep::Claim => {
            if let Some(moments) = super::start::claim(run).await? {
                return Ok(Outcome::Wait(moments));
            }
        }
    }
    let now = controller.env.clock.monotonic();
    let revision = controller.revision(&run.pass.key);
    let is_period = memory.period.is_none_or(|period| period <= now);
    let before = (memory.period, memory.damping.clone());
    let todo = todo(run, memory, now);
    if todo == Todo::Nothing {
        if memory.applied.is_none() {
            return Ok(Outcome::Again);
        }
        // Only for its period does a pass look at all objects.
        return Ok(rest::until_due(run, memory, now, revision.filter(|_| is_period)));
    }
    run.ensure_finalizer().await?;
    let bundle = match read::read(run).await {
        Ok(bundle) => bundle,
        Err(error) => {
            memory.applied = None;
            memory.announced = None;
            memory.ledger = None;
            return Err(run.secret_unreadable(error).await);
        }
    };
    let unwatched = bundle.watch_kinds(run);
    let pending = controller.autoscalers.pending().filter(|_| bundle.is_scalable());
    let wait = match pending {
        _ if !unwatched.is_empty() && !run.pass.because_of(Causes::STORE) => unwatched,
        Some(listed) => vec![listed],
        None => Vec::new(),
    };
    if !wait.is_empty() {
        // What was due is due still.
        (memory.period, memory.damping) = before;
        return Ok(Outcome::Wait(wait));
    }
    apply::apply(run, memory, bundle, todo).await
}

/// What the pass has to look at, from why it runs and what is known.
fn todo(run: &Run<'_>, memory: &mut Memory, now: Instant) -> Todo {
    let settings = &run.controller.settings;
    let wake = &run.pass.wake;
    let period_due = memory.period.is_none_or(|period| period <= now);
    let current = memory.applied.as_ref().is_some_and(|applied| run.is_unchanged(applied) && run.has_finalizer());
    // A bundle in which objects fail is tried again by its back-off; drift of its other objects is repaired meanwhile.
    let failing = !current && memory.failed.as_ref().is_some_and(|failed| run.is_unchanged(failed));
    let only_drift = wake.causes == DRIFT;
    let asked = wake.causes.meets(CHANGED.with(KIND)) || (wake.causes.meets(SECRET) && !current);
    let again = wake.causes.meets(Causes::AGAIN) || (period_due && settings.always_update);
    // Before all else: also a pass over all objects looks at what is due, and ends what was quiet.
    let mut refs = memory.take_due(now);
    if asked || (again && !only_drift) || !(current || (failing && only_drift)) {
        // One update in a period is asked for, not one in each attempt to find out what is not known (spec 10 §3.1).
        return Todo::All { forced: settings.always_update && (asked || period_due) };
    }
    let drifted = match &wake.refs {
        Refs::Named(drifted) if wake.causes.meets(DRIFT.with(SCALED)) => drifted.clone(),
        Refs::All => memory.objects.keys().map(|key| ObjectKey::clone(key)).collect(),
        Refs::Named(_) | Refs::None => BTreeSet::new(),
    };
    // With other autoscalers an object is not right any more although it is as it was.
    let looks = wake.causes.meets(SCALED);
    let drifted = drifted.into_iter().filter(|key| looks || !run.is_as_remembered(memory, key));
    let drifted: Vec<ObjectKey> = drifted.collect();
    if let Some(ledger) = &mut memory.ledger {
        ledger.applied.retain(|key, _| !drifted.contains(key));
    }
    refs.extend(drifted.into_iter().filter(|key| memory.drifted(key, now)));
    if period_due {
        let changed = memory.objects.keys().filter(|key| !run.is_as_remembered(memory, key));
        refs.extend(changed.map(|key| ObjectKey::clone(key)));
        memory.period = Some(now + rest::period(run.controller, memory));
    }
    match refs.len() {
        0 => Todo::Nothing,
        1..=MAX_REFS => Todo::Some(refs),
        _ => Todo::All { forced: settings.always_update },
    }
}

// === impl Run ===

impl Run<'_> {
    /// Whether ManagedResource and Secrets are as they were then.
    fn is_unchanged(&self, then: &Applied) -> bool {
        then.is_about(self.mr()) && self.controller.has_secrets_of(&self.pass.key, then)
    }

    /// Whether an object is known to look as it did when it was last right.
    fn is_as_remembered(&self, memory: &Memory, key: &ObjectKey) -> bool {
        memory.objects.get(key).is_some_and(|seen| self.controller.objects.are_still([(key, seen.content)]))
    }

    /// Reports a Secret that cannot be read (spec 10 §9.1) and gives the error of the pass.
    async fn secret_unreadable(&mut self, error: ReadError) -> Failure {
        let ReadError { secret, cause } = error;
        let text = cause.condition_text(&secret);
        let now = self.controller.env.clock.wall();
        if let Err(failure) = self.write_status(|status| status::secret_unreadable(status, &text, now)).await {
            return failure;
        }
        self.pass.note("a Secret cannot be read");
        Failure::new(format!("could not read secret '{secret}': {text}"))
    }
}
