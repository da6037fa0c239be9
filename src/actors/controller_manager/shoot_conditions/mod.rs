//! `shoot-conditions`: copies the conditions of a Seed into the Shoot that is this Seed (spec 84 A).
//!
//! `Shoot, ManagedSeed ─► Seed ─ rules.rs ─► status.conditions`
//!
//! [`rules`] is pure. This file has the watches, an actor per Shoot while there is something to do, and its write.
//! ManagedSeeds that are not served do not exist.

pub mod rules;

use std::rc::Rc;

use cluster::{
    CachedFields, Context, Index, Lock, Predicate, Watch, WatchOptions, Wrote,
    evidence::{Evidence, EvidenceSource, decide},
    object::NamespacedName,
};
use kit::{Controller, Failure, Outcome, Reconcile, Reconciler, Supervised};
use serde_json::Value;

use self::rules::{GARDEN, SeedConditions, conditions_of, conditions_patch};
use super::{
    context::{GardenContext, Registration, StartControllers, start},
    fields::text,
    shoot_record::{CachedShoot, on_shoots},
};
use crate::api::{config::controller_manager::Config, kinds};

const NAME: &str = "shoot-conditions"; // spec 80 §15

/// Registers the controller.
pub const REGISTRATION: Registration = Registration { names: &[NAME], setup };

struct CopiedConditions {
    workers: usize,
    shoots: Watch<CachedShoot>,
    /// The name of the Shoot of each ManagedSeed.
    managed_seeds: Watch<CachedFields<Box<str>>>,
    by_shoot: Index<String>,
    seeds: Watch<CachedFields<SeedConditions>>,
}

/// A fact about a Shoot of the garden namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Question {
    /// The names of the ManagedSeeds that name the Shoot.
    ManagedSeeds(String),
    /// The conditions of a Seed.
    Seed(String),
}

#[derive(Clone)]
enum Answer {
    ManagedSeeds(Vec<String>),
    Seed(Option<SeedConditions>),
}

/// What a Shoot must show.
enum Verdict {
    /// Its own conditions, and those of the Seed that it is.
    Show(Option<SeedConditions>),
    /// Nobody knows which Seed it is.
    Ambiguous,
}

fn setup(config: &Config, ctx: &GardenContext) -> Option<StartControllers> {
    let watches = &ctx.garden.watches;
    let shoot_of = |managed_seed: &Value| -> Box<str> { text(managed_seed, "/spec/shoot/name").into() };
    let options = WatchOptions::fields(kinds::MANAGED_SEED, shoot_of).within([GARDEN]).optional();
    let managed_seeds = watches.open(options);
    let by_shoot = managed_seeds.index(|_, managed_seed: &CachedFields<Box<str>>| {
        if managed_seed.fields.is_empty() { Vec::new() } else { vec![managed_seed.fields.to_string()] }
    });
    let conditions = |seed: &Value| conditions_of(seed).cloned().collect::<SeedConditions>();
    let controller = CopiedConditions {
        workers: config.controllers.shoot_conditions.concurrent_syncs.count(),
        shoots: ctx.shoots.clone(),
        managed_seeds,
        by_shoot,
        seeds: watches.open(WatchOptions::fields(kinds::SEED, conditions)),
    };
    Some(start(controller, |controller, supervised| controller.subscribe(supervised)))
}

impl CopiedConditions {
    /// A Shoot wakes when it is created. Later its Seed and its ManagedSeed count (spec 84 A.1, trap A-T2).
    fn subscribe(&self, supervised: &Supervised<Self>) {
        let by_shoot = self.by_shoot.clone();
        on_shoots(&self.shoots, supervised, move |name, old, new| {
            let is_seed = || name.namespace == GARDEN && by_shoot.contains(&name.name);
            old.is_none() && (new.conditions.is_any_foreign || is_seed())
        });
        let shoots = self.shoots.store().clone();
        self.managed_seeds.on_change(supervised, Predicate::fields_changed(), move |_, managed_seed| {
            let shoot = NamespacedName::new(GARDEN, &*managed_seed.fields);
            Some(shoot).filter(|shoot| shoots.with(shoot, |_| ()).is_some())
        });
        let (shoots, managed_seeds) = (self.shoots.store().clone(), self.managed_seeds.store().clone());
        self.seeds.on_change(supervised, Predicate::fields_changed(), move |seed, _| {
            let managed_seed = NamespacedName::new(GARDEN, seed.name.as_str());
            let shoot = managed_seeds.with(&managed_seed, |managed_seed| managed_seed.fields.clone());
            let shoot = shoot.map(|shoot| NamespacedName::new(GARDEN, &*shoot));
            shoot.filter(|shoot| shoots.with(shoot, |_| ()).is_some())
        });
    }

    async fn judged(&self, context: &Context, shoot: &NamespacedName) -> Result<Verdict, Failure> {
        // Other namespaces have no ManagedSeeds.
        if shoot.namespace != GARDEN {
            return Ok(Verdict::Show(None));
        }
        let judge = |evidence: &Evidence<'_, Self>| judge(shoot, |question| evidence.ask(&question));
        decide(self, context, judge, |_| false).await
    }
}

/// Returns what a Shoot of the garden namespace must show.
fn judge(shoot: &NamespacedName, ask: impl Fn(Question) -> Result<Answer, Question>) -> Result<Verdict, Question> {
    let question = Question::ManagedSeeds(shoot.name.clone());
    let names = match ask(question.clone())? {
        Answer::ManagedSeeds(names) => names,
        Answer::Seed(_) => return Err(question),
    };
    let seed = match names.as_slice() {
        [] => return Ok(Verdict::Show(None)),
        [name] => Question::Seed(name.clone()),
        _ => return Ok(Verdict::Ambiguous),
    };
    match ask(seed.clone())? {
        Answer::Seed(conditions) => Ok(Verdict::Show(conditions)),
        Answer::ManagedSeeds(_) => Err(seed),
    }
}

impl EvidenceSource for CopiedConditions {
    type Question = Question;
    type Answer = Answer;

    fn cached(&self, question: &Question) -> Option<Answer> {
        match question {
            Question::ManagedSeeds(shoot) => {
                let is_evidence = self.managed_seeds.is_fresh() || self.managed_seeds.absence().is_some();
                let names = || self.by_shoot.get(shoot).into_iter().map(|name| name.name).collect();
                is_evidence.then(|| Answer::ManagedSeeds(names()))
            }
            Question::Seed(name) => {
                let known = self.seeds.known(&NamespacedName::new("", name.as_str()))?;
                Some(Answer::Seed(known.map(|seed| seed.fields)))
            }
        }
    }

    async fn read(&self, context: &Context, question: &Question) -> Result<Answer, Failure> {
        match question {
            Question::ManagedSeeds(shoot) => {
                let mut names = Vec::new();
                let add = |name: &NamespacedName, managed_seed: &CachedFields<Box<str>>| {
                    if *managed_seed.fields == **shoot {
                        names.push(name.name.clone());
                    }
                };
                match self.managed_seeds.list_live(context, Some(GARDEN), None, add).await {
                    Err(error) if error.is_not_served() && self.managed_seeds.absence().is_some() => {}
                    listed => listed.map_err(|error| Failure::new(format!("cannot list managedseeds: {error}")))?,
                }
                Ok(Answer::ManagedSeeds(names))
            }
            Question::Seed(name) => {
                let live = self.seeds.read_live(context, &NamespacedName::new("", name.as_str())).await;
                let live = live.map_err(|error| Failure::new(format!("cannot get seed {name}: {error}")))?;
                Ok(Answer::Seed(live.map(|seed| seed.fields)))
            }
        }
    }
}

impl Controller for CopiedConditions {
    type Key = NamespacedName;
    type Memory = ();

    fn reconcilers(&self) -> Vec<Reconciler> {
        vec![
            Reconciler::new(NAME, self.workers)
                .about(("core.gardener.cloud", "Shoot"))
                .requires(self.shoots.sync_requirement())
                .requires(self.managed_seeds.sync_requirement())
                .requires(self.seeds.sync_requirement()),
        ]
    }

    async fn reconcile(
        self: &Rc<Self>,
        (): &mut (),
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let key = &reconcile.key;
        let Some(kept) = self.shoots.store().with(key, |shoot| shoot.fields.conditions.clone()) else {
            tracing::debug!("Object is gone, stop reconciling");
            return Ok(Outcome::Retire);
        };
        let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
        let of_seed = match self.judged(&context, key).await? {
            Verdict::Show(of_seed) => of_seed,
            Verdict::Ambiguous => {
                return Err(Failure::new(format!("found more than one ManagedSeed objects for shoot {key}")));
            }
        };
        if !kept.differ_from(of_seed.as_deref()) {
            return Ok(Outcome::Retire);
        }
        tracing::debug!("Updating shoot conditions");
        let patch = |live: &Value| conditions_patch(live, of_seed.as_deref());
        let wrote = self.shoots.patch_status(&context, key, Lock::Version, patch).await?;
        Ok(if let Wrote::Altered(_) = wrote { Outcome::Again } else { Outcome::Retire })
    }
}
