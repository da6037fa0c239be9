//! What is done with the installations of a cluster (spec 85 A.5 to A.8, B.1). Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{installation::InstallationFacts, registration::Catalogue, wanted::Wanted};

/// Installations by registration; those of one registration in the order of A.5: the first one is used.
pub type Existing = BTreeMap<Box<str>, Vec<(Box<str>, Arc<InstallationFacts>)>>;

/// Whose installations they are.
#[derive(Debug, Clone, Copy)]
pub enum Role<'a> {
    /// Those of a Seed.
    Seed,
    /// Those of a self-hosted Shoot, as its Seed sees them (A.8).
    SelfHostedSeed {
        /// The Seed.
        seed: &'a str,
        /// The registrations that serve what the Shoot needs.
        of_shoot: &'a BTreeSet<Box<str>>,
    },
    /// Those of a self-hosted Shoot.
    Shoot,
    /// Those of a Seed in deletion whose self-hosted Shoot is gone (DEV-7).
    OrphanedSeed,
}

/// How much is known of what is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// All.
    Complete,
    /// There are pairs that no registration serves.
    MissingRegistrations,
    /// A cache is not fresh, or the domains of a Seed are not known: nothing is deleted on doubt.
    Incomplete,
}

/// What is done with one registration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Create an installation.
    Create,
    /// Make this installation as it must be.
    Update(Box<str>),
    /// Remove the mark: from now on it belongs to the Shoot.
    HandOver(Box<str>),
    /// Set `spec.seedRef`.
    Join(Box<str>),
    /// Clear `spec.seedRef`.
    Part(Box<str>),
    /// Delete it.
    Delete(Box<str>),
}

/// What is told about a registration, once per change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remark {
    /// It is in deletion: its installation stays as it is.
    InDeletion,
    /// The controller of self-hosted Shoots will create its installation.
    LeftToShoot,
    /// The controller of self-hosted Shoots manages its installation.
    ManagedByShoot,
    /// It has more than one installation.
    Duplicates,
}

/// All that is done.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// By registration, in the order of writes: deletions are last.
    pub acts: Vec<(Box<str>, Act)>,
    /// What is told.
    pub remarks: BTreeSet<(Box<str>, Remark)>,
    /// What cannot be done before somebody changes something.
    pub errors: Vec<String>,
}

/// Groups installations by registration, the one to be used first: not in deletion, the oldest, the first by name.
pub fn grouped(installations: impl IntoIterator<Item = (Box<str>, Arc<InstallationFacts>)>) -> Existing {
    let mut existing = Existing::new();
    for (name, facts) in installations {
        existing.entry(facts.registration.clone()).or_default().push((name, facts));
    }
    for installations in existing.values_mut() {
        installations.sort_by(|(name, facts), (other_name, other)| {
            let order = |facts: &InstallationFacts| (facts.is_deleting, facts.created.is_none(), facts.created);
            order(facts).cmp(&order(other)).then_with(|| name.cmp(other_name))
        });
    }
    existing
}

impl Plan {
    /// Decides on all registrations that are wanted or installed.
    pub fn of(
        role: Role<'_>,
        wanted: &Wanted,
        existing: &Existing,
        certainty: Certainty,
        catalogue: &Catalogue,
    ) -> Self {
        let mut plan = Self::default();
        for (name, undecided) in &wanted.undecided {
            if undecided.is_wanted || existing.contains_key(name) {
                plan.errors.push(format!("ControllerRegistration \"{name}\": {}", undecided.error));
            }
        }
        for name in wanted.registrations.keys() {
            let installations = existing.get(name).map_or(&[][..], Vec::as_slice);
            match catalogue.get(name) {
                // Its installations are told of below.
                None if !installations.is_empty() => {}
                None => plan.errors.push(format!("ControllerRegistration with name {name} not found")),
                Some(registration) if registration.facts.is_deleting => {
                    plan.remark(name, Remark::InDeletion);
                }
                Some(_) => plan.deploy(role, name, installations),
            }
        }
        for (name, installations) in existing {
            let Some(registration) = catalogue.get(name) else {
                plan.errors.push(format!("ControllerRegistration \"{name}\" does not exist"));
                continue;
            };
            if wanted.registrations.contains_key(name) || wanted.undecided.contains_key(name) {
                continue;
            }
            // A registration in deletion is known with all its pairs: no missing one can want it (DEV-3).
            let may_delete = match certainty {
                Certainty::Complete => true,
                Certainty::MissingRegistrations => registration.facts.is_deleting,
                Certainty::Incomplete => false,
            };
            for (installation, facts) in installations.iter().filter(|(_, facts)| !facts.is_deleting) {
                if let Some(act) = undeploy(role, name, installation, facts, may_delete) {
                    plan.acts.push((name.clone(), act));
                }
            }
        }
        plan.acts.sort_by_key(|(_, act)| matches!(act, Act::Delete(_)));
        plan
    }

    fn deploy(&mut self, role: Role<'_>, name: &str, installations: &[(Box<str>, Arc<InstallationFacts>)]) {
        if installations.len() > 1 {
            self.remark(name, Remark::Duplicates);
        }
        let Some((installation, facts)) = installations.first() else {
            match role {
                Role::SelfHostedSeed { of_shoot, .. } if of_shoot.contains(name) => {
                    self.remark(name, Remark::LeftToShoot);
                }
                Role::SelfHostedSeed { .. } | Role::Seed | Role::Shoot => self.act(name, Act::Create),
                Role::OrphanedSeed => {}
            }
            return;
        };
        if facts.is_deleting {
            self.errors.push(format!(
                "cannot deploy new ControllerInstallation for \"{name}\" because the deletion of the old \
                 ControllerInstallation is still pending"
            ));
            return;
        }
        match role {
            Role::Seed if facts.is_owned_by_shoot() => self.remark(name, Remark::ManagedByShoot), // DEV-17
            Role::Seed | Role::Shoot => self.act(name, Act::Update(installation.clone())),
            Role::SelfHostedSeed { of_shoot, .. } if facts.is_marked() => {
                let is_of_shoot = of_shoot.contains(name);
                let installation = installation.clone();
                self.act(name, if is_of_shoot { Act::HandOver(installation) } else { Act::Update(installation) });
            }
            Role::SelfHostedSeed { .. } => {
                self.remark(name, Remark::ManagedByShoot);
                if facts.seed.is_none() {
                    self.act(name, Act::Join(installation.clone()));
                }
            }
            Role::OrphanedSeed => {}
        }
    }

    fn act(&mut self, name: &str, act: Act) {
        self.acts.push((name.into(), act));
    }

    fn remark(&mut self, name: &str, remark: Remark) {
        self.remarks.insert((name.into(), remark));
    }
}

/// Returns true if a role still has to make an installation as it must be: it may have passed to the Shoot since the plan
/// (A.8 step 7, DEV-17).
pub fn may_update(role: Role<'_>, facts: &InstallationFacts) -> bool {
    match role {
        Role::Seed => !facts.is_owned_by_shoot(),
        Role::SelfHostedSeed { of_shoot, .. } => facts.is_marked() && !of_shoot.contains(&facts.registration),
        Role::Shoot => true,
        Role::OrphanedSeed => false,
    }
}

/// Returns what is done with an installation that is not wanted.
pub fn undeploy(
    role: Role<'_>,
    registration: &str,
    installation: &str,
    facts: &InstallationFacts,
    may_delete: bool,
) -> Option<Act> {
    let delete = || may_delete.then(|| Act::Delete(installation.into()));
    let part = || may_delete.then(|| Act::Part(installation.into()));
    match role {
        Role::Seed | Role::OrphanedSeed if facts.is_owned_by_shoot() => part(),
        Role::Seed | Role::OrphanedSeed => delete(),
        Role::SelfHostedSeed { of_shoot, .. } if facts.is_marked() && of_shoot.contains(registration) => {
            Some(Act::HandOver(installation.into()))
        }
        // The Shoot adopts what gardenlet requires; perhaps it has not been able to (DEV-19).
        Role::SelfHostedSeed { .. } if facts.is_marked() && facts.is_required => None,
        Role::SelfHostedSeed { .. } if facts.is_marked() => delete(),
        Role::SelfHostedSeed { seed, .. } if facts.seed.as_deref() == Some(seed) => part(),
        Role::SelfHostedSeed { .. } => None,
        Role::Shoot if facts.is_marked() => None,
        Role::Shoot => delete(),
    }
}
