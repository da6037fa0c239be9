//! `shoot-hibernation`: hibernates clusters and wakes them up at the times of their schedules (spec 84 B).
//! ```text
//! Shoot ─ schedules.rs ─► entries ─ decision.rs ─► what is due, a timer ─► spec.hibernation.enabled; in the next reconcile
//!                                                                  an Event, and status.lastHibernationTriggerTime
//! ```
//! One actor per Shoot with schedules. It acts when a time has come, when the schedules change, and when a failure ends. A
//! time counts as executed when the status says so. So whatever fails or ends in between is done again, until the deadline.
//! * [`schedules`], [`decision`]: pure
//! * `shoots`: the cache of Shoots, and the writes

pub mod decision;
pub mod schedules;
mod shoots;

#[cfg(test)]
mod tests;

use std::{rc::Rc, time::Duration};

use cluster::{Context, object::NamespacedName};
use jiff::{SignedDuration, Timestamp};
use kit::{Clock, Controller, Failure, Outcome, Reconcile, Reconciler, duration::GoDuration};

use self::{
    decision::{Plan, Verdict},
    schedules::Operation,
    shoots::{Executed, Shoots, Trigger},
};
use super::context::{GardenContext, Registration, StartControllers, start};
use crate::api::config::controller_manager::Config;

const NAME: &str = "shoot-hibernation"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

/// Longest back-off after errors, unless the deadline is short (spec 80 §16 S-2 allows 1000 s).
const LONGEST_BACK_OFF: Duration = Duration::from_secs(300);

/// So many attempts have time before the deadline.
const ATTEMPTS_BEFORE_DEADLINE: u32 = 4;

struct Hibernations {
    workers: usize,
    longest_back_off: Duration,
    deadline: SignedDuration,
    clock: Clock,
    shoots: Shoots,
}

/// What an actor remembers.
#[derive(Debug, Default)]
struct Memory {
    /// The revision of the schedules whose mistakes are in the log.
    told: Option<u64>,
    /// The time whose refusal was recorded as an Event.
    refused: Option<Timestamp>,
    /// What a reconcile has set, until the status says so. Without this memory, the Shoot is read before that.
    executed: Option<Executed>,
}

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    let settings = config.controllers.shoot_hibernation;
    let deadline = settings.trigger_deadline_duration.get();
    let of_deadline = (deadline / ATTEMPTS_BEFORE_DEADLINE).max(Duration::from_secs(1));
    let controller = Hibernations {
        workers: settings.concurrent_syncs.count(),
        longest_back_off: LONGEST_BACK_OFF.min(of_deadline),
        deadline: SignedDuration::try_from(deadline).unwrap_or(SignedDuration::MAX),
        clock: ctx.env.clock.clone(),
        shoots: Shoots::open(ctx, &config.gardener_version),
    };
    Some(start(controller, |controller, supervised| controller.shoots.subscribe(supervised)))
}

impl Controller for Hibernations {
    type Key = NamespacedName;
    type Memory = Memory;

    fn reconcilers(&self) -> Vec<Reconciler> {
        let reconciler = Reconciler::new(NAME, self.workers).about(("core.gardener.cloud", "Shoot"));
        vec![reconciler.max_back_off(self.longest_back_off).requires(self.shoots.requirement())]
    }

    async fn reconcile(
        self: &Rc<Self>,
        memory: &mut Memory,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let Some(cached) = self.shoots.get(&reconcile.key) else {
            tracing::debug!("Object is gone, stop reconciling");
            return Ok(Outcome::Retire);
        };
        if let Some(executed) = &mut memory.executed {
            self.shoots.announce(&reconcile.key, &cached, executed);
        }
        let now = self.clock.wall();
        // After a step of the clock, the same time comes again.
        memory.executed.take_if(|executed| executed.is_ahead_of(now));
        let plan = match cached.shoot.judge(self.deadline, now) {
            Verdict::Deleting => {
                tracing::info!("Shoot is currently being deleted, stopping reconciliation");
                return Ok(Outcome::Retire);
            }
            Verdict::NoSchedules => {
                tracing::info!("Hibernation schedules have been removed from shoot, stopping reconciliation");
                return Ok(Outcome::Retire);
            }
            Verdict::Invalid(revision, error) => {
                if memory.told.replace(revision) != Some(revision) {
                    tracing::error!(%error, "Invalid hibernation schedules, stopping reconciliation");
                }
                reconcile.note("invalid schedules");
                reconcile.detail(vec![("Mistake".to_owned(), error.to_string())]);
                return Ok(Outcome::Done);
            }
            Verdict::Plan(plan) => plan,
        };
        warn_of_dead_entries(&plan, memory);
        if plan.is_failed {
            tracing::info!("Shoot is in Failed state, requeuing shoot hibernation");
        }
        let mut triggered = cached.shoot.triggered;
        if let Some(due) = plan.due {
            let context = Context::new(reconcile.priority(), reconcile.deadline, reconcile.key.to_string());
            let trigger = Trigger { due, deadline: self.deadline, now };
            let unfinished = if memory.executed.as_ref().is_some_and(|executed| executed.is(&cached, due)) {
                self.shoots.enter_trigger_time(&context, &reconcile.key, trigger).await?
            } else {
                self.shoots.execute(&context, &reconcile.key, &cached, trigger, memory).await?
            };
            if let Some(outcome) = unfinished {
                return Ok(outcome);
            }
            memory.executed = None;
            tracing::info!(enabled = due.entry.operation.enabled(), "Successfully set hibernation.enabled");
            triggered = Some(now);
        }
        reconcile.note(line(&plan));
        let triggered = triggered.map(|time| ("Last executed".to_owned(), time.to_string()));
        reconcile.detail(triggered.into_iter().collect());
        let Some(timer) = plan.timer() else { return Ok(Outcome::Done) };
        let left = Duration::try_from(timer.duration_since(self.clock.wall())).unwrap_or_default();
        tracing::info!(requeueAfter = %GoDuration::from(left), "Requeuing shoot hibernation");
        Ok(Outcome::At(timer))
    }
}

fn warn_of_dead_entries(plan: &Plan<'_>, memory: &mut Memory) {
    if let Some((count, first)) = plan.dead
        && memory.told.replace(plan.revision) != Some(plan.revision)
    {
        tracing::warn!(%first, count, "Hibernation schedules without a time within five years are ignored");
    }
}

/// Returns the line of the dashboard: `wakes up at 2026-05-18T05:00:00Z, schedule 0`.
fn line(plan: &Plan<'_>) -> String {
    let failed = if plan.is_failed { "is failed, " } else { "" };
    let Some((time, entry)) = plan.next else { return format!("{failed}has no time within five years") };
    let verb = match (entry.operation, plan.is_failed) {
        (_, true) => "looked at again",
        (Operation::Hibernate, false) => "hibernates",
        (Operation::WakeUp, false) => "wakes up",
    };
    format!("{failed}{verb} at {time}, schedule {}", entry.schedule)
}
