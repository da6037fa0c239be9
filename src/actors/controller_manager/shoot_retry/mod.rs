//! `shoot-retry`: retries Shoots that failed because of rate limits of the infrastructure (spec 84 F).
//!
//! `Shoot ─ rules.rs ─► RateLimit ─► a timer, then gardener.cloud/operation: retry`
//!
//! [`rules`] is pure. This file has an actor per Shoot that waits for its retry. The live Shoot decides once more.

pub mod rules;

use std::{rc::Rc, time::Duration};

use cluster::{Context, Lock, Watch, Wrote, object::NamespacedName};
use kit::{Clock, Controller, Failure, Outcome, Priority, Random, Reconcile, Reconciler};

use self::rules::{is_news, retry_patch};
use super::{
    context::{GardenContext, Registration, StartControllers, start},
    shoot_record::{CachedShoot, on_shoots},
};
use crate::api::config::controller_manager::Config;

const NAME: &str = "shoot-retry"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

struct Retries {
    workers: usize,
    period: Duration,
    longest_jitter: Duration,
    clock: Clock,
    random: Random,
    shoots: Watch<CachedShoot>,
}

/// What an actor remembers.
#[derive(Debug, Default)]
struct Memory {
    /// It has looked at its Shoot.
    has_begun: bool,
}

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    let settings = config.controllers.shoot_retry;
    let controller = Retries {
        workers: settings.concurrent_syncs.count(),
        period: settings.retry_period.get(),
        longest_jitter: settings.retry_jitter_period.get(),
        clock: ctx.env.clock.clone(),
        random: ctx.env.random.clone(),
        shoots: ctx.shoots.clone(),
    };
    Some(start(controller, |controller, supervised| {
        on_shoots(&controller.shoots, supervised, |_, old, new| {
            is_news(old.and_then(|old| old.rate_limit), new.rate_limit)
        });
    }))
}

impl Retries {
    fn jitter(&self) -> Duration {
        self.longest_jitter.mul_f64(self.random.unit())
    }
}

impl Controller for Retries {
    type Key = NamespacedName;
    type Memory = Memory;

    fn reconcilers(&self) -> Vec<Reconciler> {
        let reconciler = Reconciler::new(NAME, self.workers).about(("core.gardener.cloud", "Shoot"));
        vec![reconciler.requires(self.shoots.sync_requirement())]
    }

    async fn reconcile(
        self: &Rc<Self>,
        memory: &mut Memory,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let key = &reconcile.key;
        // Only wakes of the first list have low priority. Timers come later.
        let is_start = !std::mem::replace(&mut memory.has_begun, true) && reconcile.priority() == Priority::Low;
        let limit = self.shoots.store().with(key, |shoot| shoot.fields.rate_limit).flatten();
        let Some(limit) = limit.filter(|limit| !limit.is_asked) else {
            return Ok(Outcome::Retire);
        };
        if let Some(at) = limit.retry_at(self.period, self.jitter(), self.clock.wall()) {
            tracing::debug!(requeueAfter = %at.duration_since(self.clock.wall()), "Scheduling retry for Shoot");
            reconcile.note(format!("is retried at {at}"));
            return Ok(Outcome::At(at));
        }
        // Not all overdue Shoots at once (spec 84 "better" 14).
        let jitter = self.jitter();
        if is_start && !jitter.is_zero() {
            tracing::debug!(requeueAfter = ?jitter, "Scheduling retry for Shoot");
            reconcile.note("is overdue, is retried soon");
            return Ok(Outcome::After(jitter));
        }
        tracing::info!("Retrying failed Shoot");
        let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
        let wrote = self.shoots.patch(&context, key, Lock::None, retry_patch).await?;
        Ok(if let Wrote::Altered(_) = wrote { Outcome::Again } else { Outcome::Retire })
    }
}
