//! The controller of a condition of Seeds: an actor per Seed judges the objects of one kind that belong to the Seed. A
//! reconcile that changes nothing sends no request. A condition that another client writes, too, is repaired after ever
//! longer pauses.

use std::{collections::BTreeMap, rc::Rc, time::Duration};

use cluster::{
    CachedFields, Context, Index, Lock, Predicate, Resource, Watch, WatchOptions, Wrote, object, object::NamespacedName,
};
use kit::{Clock, Controller, Failure, Outcome, Reconcile, Reconciler, Supervised, hash_of, quote::cut};
use serde_json::Value;
use tokio::time::Instant;

use super::judgement::Judgement;
use crate::{
    actors::{
        controller_manager::{
            context::{GardenContext, StartControllers},
            figures::SEEDS_BY_CONDITION,
            guards::named,
            rows::Lines,
        },
        shared::{
            drift_backoff::{DriftBackoff, LONGEST_PAUSE},
            state_counts::StateCounts,
        },
    },
    api::{
        config::controller_manager::SeedCheck,
        kinds,
        meta::conditions::{Condition, ConditionStatus, find_in, status_patch, threshold},
    },
};

/// The list of conditions in the status of a Seed.
const CONDITIONS: &str = "conditions";

/// The statuses of a condition in metrics.
const STATUSES: [&str; 4] = ["True", "False", "Progressing", "Unknown"];

/// A threshold is over strictly after its end.
const AFTER_THRESHOLD: Duration = Duration::from_millis(1);

/// What counts of an object.
pub(super) trait Facts: Clone + PartialEq + Send + Sync + 'static {}
impl<F: Clone + PartialEq + Send + Sync + 'static> Facts for F {}

/// What checks differ in. `F` is what counts of an object.
pub struct CheckDefinition<F: 'static> {
    /// Name of the controller (spec 80 §15).
    pub controller: &'static str,
    /// Type of the condition.
    pub condition: &'static str,
    /// The kind of the objects.
    pub kind: Resource,
    /// Returns the name of the Seed to which an object belongs; empty if it belongs to none.
    pub seed: fn(&Value) -> &str,
    /// Returns what counts of an object.
    pub facts: fn(&Value) -> F,
    /// Judges all objects of a Seed, by name.
    pub judge: fn(&BTreeMap<String, F>) -> Judgement,
}

/// What is kept of a Seed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seed {
    uid: Box<str>,
    /// The condition of the check.
    condition: Option<Condition>,
}

/// What is kept of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SeedObject<F> {
    seed: Box<str>,
    facts: F,
}

/// What an actor remembers.
#[derive(Default)]
struct Memory {
    /// uid of the Seed that was checked last.
    uid: Option<Box<str>>,
    /// The condition, which another client may write, too.
    repairs: DriftBackoff<()>,
}

struct CheckController<F: Facts> {
    definition: &'static CheckDefinition<F>,
    workers: usize,
    period: Duration,
    threshold: Duration,
    clock: Clock,
    seeds: Watch<CachedFields<Seed>>,
    objects: Watch<CachedFields<SeedObject<F>>>,
    by_seed: Index<String>,
    counts: StateCounts,
}

/// Opens the watches of a check. The returned function starts its controller.
pub(super) fn setup<F: Facts>(
    definition: &'static CheckDefinition<F>,
    settings: &SeedCheck,
    ctx: &GardenContext,
) -> StartControllers {
    let seed = move |seed: &Value| Seed {
        uid: object::uid(seed).into(),
        condition: find_in(seed, CONDITIONS, definition.condition),
    };
    let of_seed =
        move |object: &Value| SeedObject { seed: (definition.seed)(object).into(), facts: (definition.facts)(object) };
    let objects = ctx.garden.watches.open(WatchOptions::fields(definition.kind.clone(), of_seed));
    let controller = CheckController {
        definition,
        workers: settings.concurrent_syncs.count(),
        period: settings.sync_period.get(),
        threshold: settings.threshold(definition.condition),
        clock: ctx.env.clock.clone(),
        seeds: ctx.garden.watches.open(WatchOptions::fields(kinds::SEED, seed)),
        by_seed: objects.index(|_, object| vec![object.fields.seed.to_string()]),
        objects,
        counts: StateCounts::labelled(&ctx.env.observers, SEEDS_BY_CONDITION, &[definition.condition], STATUSES),
    };
    Box::new(move |ctx| {
        let supervised = Supervised::start(Rc::new(controller), &ctx.env);
        supervised.controller().subscribe(&supervised);
        supervised.into()
    })
}

impl<F: Facts> CheckController<F> {
    /// A Seed that has neither the condition nor an object is never looked at: it does not get the condition.
    fn subscribe(&self, supervised: &Supervised<Self>) {
        self.counts.show();
        self.objects.on_change(supervised, Predicate::fields_changed(), |_, object| named("", &object.fields.seed));
        let by_seed = self.by_seed.clone();
        self.seeds.on_change(supervised, Predicate::fields_changed(), move |name, seed| {
            let is_checked = seed.fields.condition.is_some() || by_seed.contains(&name.name);
            Some(name.clone()).filter(|_| is_checked)
        });
    }

    fn objects_of(&self, seed: &str) -> BTreeMap<String, F> {
        let facts = |name: NamespacedName| {
            let facts = self.objects.store().with(&name, |object| object.fields.facts.clone())?;
            Some((name.name, facts))
        };
        self.by_seed.get(&seed.to_owned()).into_iter().filter_map(facts).collect()
    }

    /// Writes the condition that follows from the Seed as the server has it: a stale cache never begins a threshold anew.
    async fn write(
        &self,
        context: &Context,
        key: &NamespacedName,
        seed: &Seed,
        judgement: &Judgement,
    ) -> Result<Wrote, Failure> {
        let (kind, now) = (self.definition.condition, self.clock.wall());
        let patch = |live: &Value| {
            let known = find_in(live, CONDITIONS, kind);
            let condition = judgement.condition(kind, known.as_ref(), self.threshold, now);
            status_patch(live, CONDITIONS, &[condition]).filter(|_| object::uid(live) == &*seed.uid)
        };
        let wrote = self.seeds.patch_status(context, key, Lock::Version, patch).await?;
        if let Wrote::Updated(seed) = &wrote {
            let status = find_in(seed, CONDITIONS, kind).unwrap_or_else(|| Condition::new(kind, now)).status;
            tracing::info!(condition_type = kind, condition_status = %status, "Successfully patched condition");
        }
        Ok(wrote)
    }
}

impl<F: Facts> Controller for CheckController<F> {
    type Key = NamespacedName;
    type Memory = Memory;

    fn name(&self) -> &'static str {
        self.definition.controller
    }

    fn reconcilers(&self) -> Vec<Reconciler> {
        let reconciler = Reconciler::new(self.definition.controller, self.workers)
            .about(("core.gardener.cloud", "Seed"))
            .deadline(self.period)
            .max_back_off(self.period)
            .requires(self.seeds.sync_requirement())
            .requires(self.objects.sync_requirement());
        vec![reconciler]
    }

    async fn reconcile(
        self: &Rc<Self>,
        memory: &mut Memory,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let key = &reconcile.key;
        let Some(seed) = self.seeds.store().with(key, |seed| seed.fields.clone()) else {
            tracing::debug!("Object is gone, stop reconciling");
            self.counts.enter(key, None);
            return Ok(Outcome::Retire);
        };
        if !self.objects.is_fresh() {
            return Ok(Outcome::Again); // objects may have come or gone
        }
        let objects = self.objects_of(&key.name);
        let is_checked = memory.uid.as_ref() == Some(&seed.uid) || !objects.is_empty() || seed.condition.is_some();
        if !is_checked {
            self.counts.enter(key, None);
            return Ok(Outcome::Retire); // for all that is known, only an earlier Seed of this name had objects
        }
        memory.uid = Some(seed.uid.clone());
        memory.repairs.take_due(Instant::now()); // if the condition still differs, that is noted again
        let judgement = (self.definition.judge)(&objects);
        let now = self.clock.wall();
        let condition = judgement.condition(self.definition.condition, seed.condition.as_ref(), self.threshold, now);
        self.counts.enter(key, Some(label(&condition.status)));
        reconcile.note(format!("{} {}", condition.kind, condition.status));
        reconcile.detail(lines(&condition, &self.definition.kind.kind, objects.len()));
        let intent = hash_of(&(&*seed.uid, &judgement));
        let is_different = seed.condition.as_ref() != Some(&condition);
        if is_different && memory.repairs.may_repair(&(), intent, Instant::now()) {
            let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
            match self.write(&context, key, &seed, &judgement).await? {
                Wrote::Updated(_) | Wrote::Created(_) => {
                    memory.repairs.repaired(&(), intent, Instant::now(), LONGEST_PAUSE);
                }
                Wrote::Unchanged(_) | Wrote::Deleting(_) => {}
                Wrote::Altered(_) => return Ok(Outcome::Again),
                Wrote::Gone => {
                    self.counts.enter(key, None);
                    return Ok(Outcome::Retire);
                }
            }
        }
        let threshold = threshold::progressing_for(&condition, self.threshold, now);
        let threshold = threshold.map(|left| left + AFTER_THRESHOLD);
        let next = threshold.into_iter().chain(memory.repairs.next_in(Instant::now())).min();
        Ok(Outcome::After(next.map_or(self.period, |next| self.period.min(next))))
    }
}

/// Returns the label of a status in metrics, which is one of [`STATUSES`].
fn label(status: &ConditionStatus) -> &'static str {
    match status {
        ConditionStatus::True => "True",
        ConditionStatus::False => "False",
        ConditionStatus::Progressing => "Progressing",
        ConditionStatus::Unknown | ConditionStatus::Other(_) => "Unknown",
    }
}

fn lines(condition: &Condition, kind: &str, objects: usize) -> Lines {
    let line = |label: &str, text: String| (label.to_owned(), text);
    vec![
        line(&format!("{kind}s"), objects.to_string()),
        line("Reason", condition.reason.clone()),
        line("Message", cut(&condition.message).into_owned()),
    ]
}
