//! The actors of both controllers of installations: one per Seed, and one per self-hosted Shoot.

use std::{cell::RefCell, collections::BTreeSet, rc::Rc};

use cluster::{Cached as _, Context, object::NamespacedName};
use futures::{StreamExt as _, stream};
use kit::{Controller, Failure, Outcome, Reconcile, Reconciler};
use tokio::time::Instant;

use super::{
    assessment::{Assessment, KnownSeed, KnownShoot},
    backups::{ExtensionCluster, LostEntry},
    content::{ClusterReference, Owner},
    explanation::ExplainedInstallation,
    patience::{PAUSE, Patience},
    plan::{Act, Certainty, Existing, Plan, Remark, Role},
    seed_facts::SeedFacts,
    shoot_needs::ShootNeeds,
    stores::Stores,
    writes::{Effect, Repairs, Writer},
};
use crate::actors::{controller_manager::seed::secrets::roles::GARDEN, shared::texts::together};

/// Name of the controller of Seeds (spec 80 §15).
pub(super) const SEEDS: &str = "controllerinstallation-seed";
/// Name of the controller of self-hosted Shoots (spec 80 §15).
pub(super) const SHOOTS: &str = "controllerinstallation-shoot";

/// Writes of one reconcile at the same time (spec 80 §16 S-19).
const SIDE_BY_SIDE: usize = 16;

/// Installations that the dashboard shows for one cluster.
const SHOWN: usize = 100;

/// Whose installations a controller keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clusters {
    /// Those of Seeds.
    Seeds,
    /// Those of self-hosted Shoots.
    Shoots,
}

/// A controller of installations.
pub(super) struct InstallationController {
    pub(super) clusters: Clusters,
    pub(super) workers: usize,
    pub(super) stores: Rc<Stores>,
}

/// What an actor remembers.
#[derive(Debug, Default)]
pub(super) struct Memory {
    told: Told,
    repairs: RefCell<Repairs>,
    patience: Patience,
}

/// What was told.
#[derive(Debug, Default)]
struct Told {
    remarks: BTreeSet<(Box<str>, Remark)>,
    lost: BTreeSet<LostEntry>,
}

/// A cluster as the caches know it.
struct Looked {
    cluster: ExtensionCluster,
    /// The cluster by which its installations are found.
    installed_on: ExtensionCluster,
    owner: Owner,
    /// It is a self-hosted Seed whose Shoot is not known.
    is_orphaned: bool,
    is_deleting: bool,
    /// Nothing may refer to it yet: it could go before its finalizer comes, and leave its installations behind.
    is_without_finalizer: bool,
    assessment: Assessment,
    existing: Existing,
}

impl Looked {
    fn role(&self) -> Role<'_> {
        match &self.owner {
            Owner::Seed(_) if self.is_orphaned => Role::OrphanedSeed,
            Owner::Seed(_) => Role::Seed,
            Owner::Shoot(_) => Role::Shoot,
            Owner::SelfHostedSeed { seed, .. } => {
                Role::SelfHostedSeed { seed: &seed.name.name, of_shoot: &self.assessment.of_shoot }
            }
        }
    }
}

impl InstallationController {
    /// Returns a function that returns the keys of all clusters.
    pub(super) fn all_clusters(&self) -> impl Fn() -> Vec<NamespacedName> + use<> {
        let (clusters, seeds) = (self.clusters, self.stores.seeds.store().clone());
        let self_hosted = self.stores.self_hosted.clone();
        move || match clusters {
            Clusters::Seeds => seeds.names(),
            Clusters::Shoots => self_hosted.get(&()),
        }
    }

    fn seed_reference(&self, name: &NamespacedName, facts: &SeedFacts, version: u64) -> ClusterReference {
        let cluster = ExtensionCluster::Seed(name.name.as_str().into());
        ClusterReference {
            name: name.clone(),
            version,
            content_version: self.stores.content_version(&cluster),
            spec_hash: facts.spec_hash.clone(),
        }
    }

    fn shoot_reference(&self, name: &NamespacedName, needs: &ShootNeeds, version: u64) -> ClusterReference {
        let cluster = ExtensionCluster::Shoot(name.clone());
        ClusterReference {
            name: name.clone(),
            version,
            content_version: self.stores.content_version(&cluster),
            spec_hash: needs.own_cluster.as_ref().map(|it| it.spec_hash.clone()).unwrap_or_default(),
        }
    }

    /// Looks at a cluster; `None` if it is gone.
    fn look(&self, key: &NamespacedName) -> Option<Looked> {
        match self.clusters {
            Clusters::Seeds => self.look_at_seed(key),
            Clusters::Shoots => self.look_at_shoot(key),
        }
    }

    fn look_at_seed(&self, key: &NamespacedName) -> Option<Looked> {
        let seed = self.stores.seeds.store().get(key)?;
        let facts: &SeedFacts = &seed.fields;
        let cluster = ExtensionCluster::Seed(key.name.as_str().into());
        let reference = self.seed_reference(key, facts, seed.version());
        let own_name = NamespacedName::new(GARDEN, key.name.as_str());
        let own = facts.is_self_hosted.then(|| self.stores.own_shoot(&own_name)).flatten();
        if facts.is_self_hosted && own.is_none() {
            return Some(Looked {
                installed_on: cluster.clone(),
                existing: self.stores.installations_of(&cluster),
                cluster,
                owner: Owner::Seed(reference),
                is_orphaned: true,
                is_deleting: facts.is_deleting,
                is_without_finalizer: false,
                assessment: Assessment::of_orphaned_seed(),
            });
        }
        let installed_on = match &own {
            Some(_) => ExtensionCluster::Shoot(own_name.clone()),
            None => cluster.clone(),
        };
        let existing = self.stores.installations_of(&installed_on);
        let domains = self.stores.domains(&key.name, facts);
        let own_shoot = own.as_ref().map(|(needs, _, is_deleting)| KnownShoot {
            name: &own_name,
            needs,
            is_deleting: *is_deleting,
        });
        let assessment = {
            let (backups, catalogue) = (self.stores.backups.borrow(), self.stores.catalogue());
            self.stores.demand.borrow().with(&key.name, |demand| {
                let seed = KnownSeed { name: &key.name, facts, demand, domains: &domains, own_shoot };
                Assessment::of_seed(seed, &backups, &catalogue, &existing)
            })
        };
        let owner = match &own {
            Some((needs, version, _)) => {
                let shoot = self.shoot_reference(&own_name, needs, *version);
                Owner::SelfHostedSeed { seed: reference, shoot }
            }
            None => Owner::Seed(reference),
        };
        Some(Looked {
            cluster,
            installed_on,
            owner,
            is_orphaned: false,
            is_deleting: facts.is_deleting,
            is_without_finalizer: !facts.is_held && !facts.is_deleting,
            assessment,
            existing,
        })
    }

    fn look_at_shoot(&self, key: &NamespacedName) -> Option<Looked> {
        let (needs, version, is_deleting) = self.stores.own_shoot(key)?;
        let cluster = ExtensionCluster::Shoot(key.clone());
        let existing = self.stores.installations_of(&cluster);
        let assessment = {
            let shoot = KnownShoot { name: key, needs: &needs, is_deleting };
            Assessment::of_shoot(shoot, &self.stores.backups.borrow(), &self.stores.catalogue(), &existing)
        };
        let is_held = self.stores.shoots.store().with(key, |it| it.fields.is_held_for_installations) == Some(true);
        let owner = Owner::Shoot(self.shoot_reference(key, &needs, version));
        Some(Looked {
            installed_on: cluster.clone(),
            cluster,
            owner,
            is_orphaned: false,
            is_deleting,
            is_without_finalizer: needs.is_self_hosted() && !is_held && !is_deleting,
            assessment,
            existing,
        })
    }

    /// The Shoot of a self-hosted Seed is not known (A.8 step 1, DEV-7). Returns `None` if the Seed must be cleaned up.
    async fn orphaned(
        &self,
        context: &Context,
        key: &NamespacedName,
        is_deleting: bool,
    ) -> Result<Option<Outcome>, Failure> {
        let shoot = NamespacedName::new(GARDEN, key.name.as_str());
        let failed = |cause: String| format!("failed getting Shoot for self-hosted seed: {cause}");
        let live = self.stores.shoots.read_live(context, &shoot).await;
        let live = live.map_err(|error| Failure::new(failed(error.to_string())))?;
        if live.is_some() {
            return Ok(Some(Outcome::Again)); // the cache lags
        }
        if !is_deleting {
            let text = failed(format!("shoots.core.gardener.cloud \"{}\" not found", shoot.name));
            return Err(Failure::terminal(text)); // the Shoot wakes the Seed
        }
        Ok(None)
    }

    /// A Seed that became self-hosted keeps its old installations (A.8).
    fn warn_of_former_installations(&self, cluster: &ExtensionCluster) {
        let existing = self.stores.installations_of(cluster);
        let former = existing.values().flatten().filter(|(_, facts)| facts.shoot.is_none()).map(|(name, _)| &**name);
        let former: Vec<&str> = former.collect();
        if !former.is_empty() {
            tracing::warn!(names = ?former, "ControllerInstallations without shootRef belong to no self-hosted Shoot");
        }
    }

    fn plan(&self, looked: &Looked) -> Plan {
        let assessment = &looked.assessment;
        let certainty = if self.stores.are_fresh() { assessment.certainty() } else { Certainty::Incomplete };
        Plan::of(looked.role(), &assessment.wanted, &looked.existing, certainty, &self.stores.catalogue())
    }

    /// Makes the installations of a cluster as they must be.
    async fn keep(
        &self,
        memory: &mut Memory,
        context: &Context,
        reconcile: &Reconcile<NamespacedName>,
        looked: &Looked,
    ) -> Result<Outcome, Failure> {
        let assessment = &looked.assessment;
        let (is_fresh, plan) = (self.stores.are_fresh(), self.plan(looked));
        memory.told.tell(assessment, &plan, &looked.existing);
        self.show(reconcile, looked);
        let (deletions, others): (Vec<_>, Vec<_>) =
            plan.acts.iter().partition(|(_, act)| matches!(act, Act::Delete(_)));
        memory.repairs.borrow_mut().take_due(Instant::now()); // what still differs is noted again
        let mut effects = self.write(context, looked, memory, others).await;
        effects.extend(self.delete(context, &reconcile.key, memory, &deletions).await);
        memory.patience.end_reconcile();
        let is_postponed = effects.iter().any(|effect| matches!(effect, Ok(Effect::Postponed)));
        let is_unsettled = effects.iter().any(|effect| matches!(effect, Ok(Effect::Unsettled)));
        let pause = memory.repairs.borrow().next_in(Instant::now()).filter(|_| is_postponed);
        let pause = pause.into_iter().chain(is_unsettled.then_some(PAUSE)).min();
        let is_overtaken = effects.iter().any(|effect| matches!(effect, Ok(Effect::Overtaken)));
        let mut failed: Vec<String> = effects.into_iter().filter_map(Result::err).collect();
        failed.sort();
        let unmendable: Vec<String> = plan
            .errors
            .iter()
            .cloned()
            .chain(assessment.wanted.error())
            .chain(assessment.domain_error.clone())
            .chain(assessment.incomplete.clone())
            .collect();
        match (&*failed, &*unmendable) {
            ([], []) if is_overtaken || !is_fresh => Ok(Outcome::Again),
            ([], []) => Ok(pause.map_or(Outcome::Done, Outcome::After)),
            ([], texts) if !(is_overtaken || is_postponed || is_unsettled) && is_fresh => {
                Err(Failure::terminal(texts.join("; ")))
            }
            (failed, texts) => {
                let failed = (!failed.is_empty()).then(|| together(failed, "; "));
                let all: Vec<String> = failed.into_iter().chain(texts.iter().cloned()).collect();
                Err(Failure::new(all.join("; ")))
            }
        }
    }

    async fn write(
        &self,
        context: &Context,
        looked: &Looked,
        memory: &Memory,
        acts: Vec<&(Box<str>, Act)>,
    ) -> Vec<Result<Effect, String>> {
        let writer = Writer {
            stores: &self.stores,
            context,
            cluster: &looked.cluster,
            installed_on: &looked.installed_on,
            is_deleting: looked.is_deleting,
            role: looked.role(),
            owner: &looked.owner,
            existing: &looked.existing,
            repairs: &memory.repairs,
            patience: &memory.patience,
        };
        let written = acts.into_iter().map(|(registration, act)| writer.write(registration, act));
        stream::iter(written).buffer_unordered(SIDE_BY_SIDE).collect().await
    }

    /// Deletes what is still not wanted: the writes before may have taken minutes (A.7).
    async fn delete(
        &self,
        context: &Context,
        key: &NamespacedName,
        memory: &Memory,
        planned: &[&(Box<str>, Act)],
    ) -> Vec<Result<Effect, String>> {
        let mut effects = Vec::new();
        for planned in planned.chunks(SIDE_BY_SIDE) {
            let Some(looked) = self.look(key) else {
                effects.push(Ok(Effect::Overtaken));
                break;
            };
            let plan = self.plan(&looked);
            let (still_planned, withdrawn): (Vec<_>, Vec<_>) =
                planned.iter().copied().partition(|act| plan.acts.contains(*act));
            effects.extend(withdrawn.iter().map(|_| Ok(Effect::Overtaken)));
            effects.extend(self.write(context, &looked, memory, still_planned).await);
        }
        effects
    }

    /// Shows each installation on the dashboard, and why it is there.
    fn show(&self, reconcile: &Reconcile<NamespacedName>, looked: &Looked) {
        let all = ExplainedInstallation::of(&looked.assessment, &looked.existing, &self.stores.catalogue());
        let missing = looked.assessment.wanted.missing.len();
        let count: usize = looked.existing.values().map(Vec::len).sum();
        reconcile.note(match missing {
            0 => format!("{count} installations"),
            missing => format!("{count} installations, {missing} needs without ControllerRegistration"),
        });
        let mut lines: Vec<(String, String)> =
            all.iter().take(SHOWN).map(|it| (it.registration.to_string(), it.text())).collect();
        let more = all.len().saturating_sub(SHOWN);
        if more > 0 {
            lines.push(("More".to_owned(), format!("{more} ControllerRegistrations")));
        }
        for pair in looked.assessment.wanted.missing.iter().take(SHOWN) {
            let reasons: Vec<_> = looked.assessment.required.reasons(pair).iter().map(ToString::to_string).collect();
            lines.push((pair.to_string(), format!("no ControllerRegistration; {}", reasons.join("; "))));
        }
        reconcile.detail(lines);
    }
}

impl Told {
    /// Logs what was not told yet.
    fn tell(&mut self, assessment: &Assessment, plan: &Plan, existing: &Existing) {
        let lost: BTreeSet<LostEntry> = assessment.lost.iter().cloned().collect();
        for (bucket, entry) in lost.difference(&self.lost) {
            tracing::error!(
                backupBucketName = &**bucket,
                backupEntry = %entry,
                "Couldn't find referenced BackupBucket for BackupEntry"
            );
        }
        self.lost = lost;
        for (registration, remark) in plan.remarks.difference(&self.remarks) {
            let name = &**registration;
            match remark {
                Remark::InDeletion => tracing::info!(
                    controllerRegistrationName = name,
                    "Not creating or updating ControllerInstallation for ControllerRegistration because it is in deletion"
                ),
                Remark::LeftToShoot => tracing::info!(
                    controllerRegistrationName = name,
                    "Skipping ControllerInstallation creation because the shoot reconciler will create it"
                ),
                Remark::ManagedByShoot => tracing::info!(
                    controllerRegistrationName = name,
                    "Skipping ControllerInstallation for ControllerRegistration because it is already managed by the shoot \
                     reconciler"
                ),
                Remark::Duplicates => {
                    let names: Vec<&str> = existing.get(name).into_iter().flatten().map(|(name, _)| &**name).collect();
                    tracing::warn!(
                        controllerRegistrationName = name,
                        ?names,
                        "Found more than one ControllerInstallation for ControllerRegistration"
                    );
                }
            }
        }
        self.remarks.clone_from(&plan.remarks);
    }
}

impl Controller for InstallationController {
    type Key = NamespacedName;
    type Memory = Memory;

    fn reconcilers(&self) -> Vec<Reconciler> {
        let (name, kind) = match self.clusters {
            Clusters::Seeds => (SEEDS, "Seed"),
            Clusters::Shoots => (SHOOTS, "Shoot"),
        };
        let reconciler = Reconciler::new(name, self.workers).about(("core.gardener.cloud", kind));
        vec![self.stores.requirements().into_iter().fold(reconciler, Reconciler::requires)]
    }

    async fn reconcile(
        self: &Rc<Self>,
        memory: &mut Memory,
        reconcile: &Reconcile<NamespacedName>,
    ) -> Result<Outcome, Failure> {
        let key = &reconcile.key;
        let Some(mut looked) = self.look(key) else {
            tracing::debug!("Object is gone, stop reconciling");
            return Ok(Outcome::Retire);
        };
        let context = Context::new(reconcile.priority(), reconcile.deadline, key.to_string());
        if looked.is_orphaned {
            if let Some(outcome) = self.orphaned(&context, key, looked.is_deleting).await? {
                return Ok(outcome);
            }
            match self.look(key) {
                Some(again) if again.is_orphaned && again.is_deleting => looked = again,
                Some(_) | None => return Ok(Outcome::Again),
            }
        }
        match &looked.owner {
            Owner::Seed(_) => {}
            Owner::SelfHostedSeed { .. } => self.warn_of_former_installations(&looked.cluster),
            Owner::Shoot(_) => {
                let is_self_hosted = self.stores.own_shoot(key).is_some_and(|(needs, ..)| needs.is_self_hosted());
                if !is_self_hosted && looked.existing.is_empty() {
                    return Ok(Outcome::Retire);
                }
            }
        }
        if looked.is_without_finalizer {
            reconcile.note("waits for its finalizer");
            return Ok(Outcome::Done); // the finalizer wakes it
        }
        self.keep(memory, &context, reconcile, &looked).await
    }
}
