//! `shoot-maintenance`: version updates, rotations of credentials, operations and tasks in the time window of a Shoot
//! (spec 84 C).
//! ```text
//! Shoot, CloudProfile, time, settings ─ plan.rs ─► MaintenancePlan ─ run.rs ─► dry run, status, PUT, status, Events
//!       window.rs ─► now? and when next?
//! ```
//! One actor per Shoot. It sleeps until its window opens, and reads the Shoot live before it maintains it.
//! * [`plan`]: the central function; everything that it uses is pure:
//!   * [`window`]: when a maintenance may begin
//!   * [`version`], `constraint`: version texts, and constraints on them; [`target`]: to which version an update leads
//!   * [`profile`]: what is read of a CloudProfile; `fitting`: which image versions fit a worker pool
//!   * `images`, `kubernetes`: updates of images and of Kubernetes; `update`: what they have in common
//!   * `rotation`: credentials whose rotation is due; [`operation`]: annotations with operations and tasks
//!   * [`changes`], `binding`: what newer Kubernetes versions require; `gates`, `gates_table`: what they do not support
//!   * [`report`]: texts and Events
//! * [`preview`]: what a maintenance would do, for the command `maintenance`
//! * `stores`: what is cached; `run`: the writes of one maintenance; `end`: its end in the status; `migration`: the requests
//!   of `binding`; `view`: rows of the dashboard
//! * this file: registration, event handler, and when a Shoot is maintained

mod binding;
pub mod changes;
mod constraint;
mod end;
mod fitting;
mod gates;
mod gates_table;
mod images;
mod kubernetes;
mod migration;
pub mod operation;
pub mod plan;
pub mod preview;
pub mod profile;
pub mod report;
mod rotation;
mod run;
mod stores;
pub mod target;
#[cfg(test)]
mod tests;
pub mod update;
pub mod version;
mod view;
pub mod window;

use std::{rc::Rc, time::Duration};

use cluster::{Cluster, Context, Recorder, object::NamespacedName};
use jiff::Timestamp;
use kit::{Clock, Controller, Failure, Observers, Outcome, Priority, Random, Reconcile, Reconciler};

use self::{
    end::{LastEnd, PendingEnd},
    operation::RestartSettings,
    plan::MaintenanceSettings,
    run::MaintenanceEnd,
    stores::{MaintenanceTrigger, Stores},
};
use super::{
    context::{GardenContext, Registration, StartControllers, start},
    figures::MAINTENANCES,
};
use crate::api::config::controller_manager::{Config, DISABLE_NGINX_INGRESS_IN_SHOOT};

const NAME: &str = "shoot-maintenance"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

/// Longest back-off after errors: the shortest window of the API is open for 15 minutes (spec 84 C.3; spec 80 §16 S-2 allows
/// 1000 s).
const LONGEST_BACK_OFF: Duration = Duration::from_secs(300);

/// The ends of maintenances, as labels of the metric.
const ENDS: [&str; 5] = ["succeeded", "partly_failed", "unchanged", "refused", "failed"];

struct ShootMaintenance {
    workers: usize,
    settings: MaintenanceSettings,
    clock: Clock,
    random: Random,
    observers: Rc<dyn Observers>,
    events: Recorder,
    cluster: Cluster,
    stores: Stores,
}

/// What an actor remembers.
#[derive(Debug, Default)]
struct Memory {
    /// The first look is over, or its time is set.
    has_begun: bool,
    /// The end of the last maintenance, until the status shows it. If this memory is lost, the next maintenance writes it.
    pending_end: Option<PendingEnd>,
}

impl MaintenanceSettings {
    /// Reads the settings of the configuration.
    pub fn of(config: &Config) -> Self {
        let settings = &config.controllers.shoot_maintenance;
        Self {
            restarts: RestartSettings {
                control_plane: settings.enable_shoot_control_plane_restarter,
                core_addons: settings.enable_shoot_core_addon_restarter,
            },
            disables_nginx: config.feature_gates.is_enabled(DISABLE_NGINX_INGRESS_IN_SHOOT),
        }
    }
}

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    let controller = ShootMaintenance {
        workers: config.controllers.shoot_maintenance.concurrent_syncs.count(),
        settings: MaintenanceSettings::of(config),
        clock: ctx.env.clock.clone(),
        random: ctx.env.random.clone(),
        observers: ctx.env.observers.clone(),
        events: ctx.garden.events.for_component(format!("{NAME}-controller")),
        cluster: ctx.garden.watches.cluster().clone(),
        stores: Stores::open(ctx),
    };
    Some(start(controller, |controller, supervised| {
        for end in ENDS {
            controller.observers.figure(MAINTENANCES, end, 0.0);
        }
        controller.stores.shoots.on_change(supervised, Stores::changes(), |name, _| [name.clone()]);
    }))
}

impl ShootMaintenance {
    /// Maintains a Shoot that is due by its cache. Returns `None` if it sleeps until its next maintenance then.
    async fn maintain_due(
        &self,
        context: &Context,
        key: &NamespacedName,
        cached: &MaintenanceTrigger,
        memory: &mut Memory,
        now: Timestamp,
    ) -> Result<Option<Outcome>, Failure> {
        // A Shoot that cannot be maintained costs no request.
        self.stores.profile_of(context, cached).await?;
        let live = self.stores.shoots.read_object(context, key).await;
        let live = live.map_err(|error| Failure::new(format!("error retrieving object from store: {error}")))?;
        let Some(live) = live else { return Ok(Some(Outcome::Retire)) };
        let trigger = MaintenanceTrigger::of(&live);
        if trigger.is_deleting {
            return Ok(Some(Outcome::Retire));
        }
        if !trigger.is_due(now) {
            return Ok(None);
        }
        tracing::info!("Maintaining Shoot");
        let profile = self.stores.profile_of(context, &trigger).await?;
        let end = self.maintain(context, &live, &profile, memory, now).await;
        let label = match end {
            Ok(MaintenanceEnd::Finished(label)) => label,
            Ok(MaintenanceEnd::Refused) => "refused",
            Ok(MaintenanceEnd::Conflict) => {
                tracing::debug!("the Shoot was changed meanwhile; deciding anew");
                return Ok(Some(Outcome::Again));
            }
            Ok(MaintenanceEnd::Gone) => return Ok(Some(Outcome::Retire)),
            Err(error) => {
                self.observers.figure(MAINTENANCES, "failed", 1.0);
                return Err(error);
            }
        };
        self.observers.figure(MAINTENANCES, label, 1.0);
        tracing::info!("Shoot maintenance completed");
        Ok(None)
    }
}

impl Controller for ShootMaintenance {
    type Key = NamespacedName;
    type Memory = Memory;

    fn reconcilers(&self) -> Vec<Reconciler> {
        let reconciler = Reconciler::new(NAME, self.workers).about(("core.gardener.cloud", "Shoot"));
        let reconciler = reconciler.max_back_off(LONGEST_BACK_OFF);
        vec![self.stores.requirements().into_iter().fold(reconciler, Reconciler::requires)]
    }

    async fn reconcile(
        self: &Rc<Self>,
        memory: &mut Memory,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let key = &reconcile.key;
        // Only wakes of the first list have low priority. Timers come later.
        let is_start = !std::mem::replace(&mut memory.has_begun, true) && reconcile.priority() == Priority::Low;
        let Some(trigger) = self.stores.shoots.store().with(key, |shoot| shoot.fields.clone()) else {
            tracing::debug!("Object is gone, stop reconciling");
            return Ok(Outcome::Retire);
        };
        if trigger.is_deleting {
            tracing::debug!("Skipping Shoot because it is marked for deletion");
            return Ok(Outcome::Retire);
        }
        let now = self.clock.wall();
        if is_start && trigger.is_due(now) && !trigger.is_asked {
            let delay = trigger.window.start_delay(now, self.random.unit());
            view::show_start(reconcile, now + delay);
            return Ok(Outcome::At(now + delay));
        }
        let until_next = trigger.window.until_next(now, self.random.unit());
        let next = now.checked_add(until_next).unwrap_or(Timestamp::MAX);
        let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
        let is_due = match self.write_last_end(&context, key, memory).await? {
            LastEnd::Settled => trigger.is_due(now),
            LastEnd::Written => trigger.is_asked, // the maintenance of this window was the last one
            LastEnd::Unknown(until) if !trigger.is_due(now) => return Ok(Outcome::At(until)),
            LastEnd::Unknown(_) => true,
        };
        if is_due {
            if let Some(outcome) = self.maintain_due(&context, key, &trigger, memory, now).await? {
                return Ok(outcome);
            }
        } else {
            tracing::debug!("Skipping Shoot because it doesn't need to be maintained now");
        }
        tracing::debug!(duration = %until_next, nextMaintenance = %next, "Scheduled next maintenance for Shoot");
        view::show_next(reconcile, &trigger, next);
        Ok(Outcome::At(next))
    }
}
