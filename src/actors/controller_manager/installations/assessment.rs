//! What a cluster needs and wants: from what is known of it to the registrations (spec 85 A.3, A.4, A.8, B.1). Pure.

use std::collections::BTreeSet;

use cluster::object::NamespacedName;

use super::{
    backups::{BackupIndex, ExtensionCluster, LostEntry},
    demand::ShootDemand,
    domains::Domains,
    installation::InstallationFacts,
    plan::{Certainty, Existing},
    registration::{Catalogue, Policy},
    required::Required,
    seed_facts::SeedFacts,
    shoot_needs::{MOST_NEEDS, ShootNeeds},
    wanted::{Circumstances, Wanted},
};

/// What is known of a Seed.
#[derive(Debug, Clone, Copy)]
pub struct KnownSeed<'a> {
    /// Its name.
    pub name: &'a str,
    /// The Seed.
    pub facts: &'a SeedFacts,
    /// What its Shoots need.
    pub demand: &'a ShootDemand,
    /// Its domains. `Err`: why they are not known.
    pub domains: &'a Result<Domains, String>,
    /// The Shoot whose cluster it is (A.8).
    pub own_shoot: Option<KnownShoot<'a>>,
}

/// What is known of a self-hosted Shoot.
#[derive(Debug, Clone, Copy)]
pub struct KnownShoot<'a> {
    /// Its name.
    pub name: &'a NamespacedName,
    /// What it needs.
    pub needs: &'a ShootNeeds,
    /// It is being deleted.
    pub is_deleting: bool,
}

/// Whose needs were assessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AssessedCluster {
    /// Those of a Seed.
    Seed,
    /// Those of a Seed that is a self-hosted Shoot.
    SelfHostedSeed,
    /// Those of a self-hosted Shoot.
    Shoot,
}

/// What a cluster needs and wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assessment {
    /// Whose needs they are.
    pub cluster: AssessedCluster,
    /// The pairs, with their reasons.
    pub required: Required,
    /// The registrations, with their causes.
    pub wanted: Wanted,
    /// The registrations that the Shoot of a self-hosted Seed installs: by what it needs, and by their policy.
    pub of_shoot: BTreeSet<Box<str>>,
    /// BackupEntries whose bucket is not known.
    pub lost: Vec<LostEntry>,
    /// Why the domains of a Seed are not known.
    pub domain_error: Option<String>,
    /// The text about a Shoot with too many needs to know them all (DEV-23).
    pub incomplete: Option<String>,
}

impl Assessment {
    /// Assesses a Seed. `existing`: its installations.
    pub fn of_seed(seed: KnownSeed<'_>, backups: &BackupIndex, catalogue: &Catalogue, existing: &Existing) -> Self {
        let mut required = Required::default();
        let lost = backups.add_required(&ExtensionCluster::Seed(seed.name.into()), &mut required);
        let has_shoots = !seed.demand.shoots.is_empty();
        let domain_error = seed.domains.as_ref().err().filter(|_| has_shoots).cloned();
        let unknown = Domains::default();
        let domains = seed.domains.as_ref().unwrap_or(&unknown);
        let of_shoots = Required::of_shoots(seed.facts, seed.demand, domains, catalogue);
        let of_seed = Required::of_seed(seed.facts, catalogue);
        let mut of_shoot = BTreeSet::new();
        if let Some(shoot) = seed.own_shoot.filter(|shoot| shoot.needs.is_self_hosted()) {
            let mut own = Required::of_own_shoot(shoot.needs, catalogue);
            backups.add_required(&ExtensionCluster::Shoot(shoot.name.clone()), &mut own);
            required.retain(|pair| !own.contains(pair) || of_shoots.contains(pair) || of_seed.contains(pair));
            of_shoot = own.pairs().flat_map(|pair| catalogue.serving(pair)).map(Box::from).collect();
            if !shoot.is_deleting {
                of_shoot.extend(by_policy(catalogue).map(Box::from)); // DEV-18
            }
        }
        required.extend(of_shoots);
        required.extend(of_seed);
        let is_alone = seed.own_shoot.is_none();
        let circumstances = Circumstances {
            always: is_alone && !seed.facts.is_deleting,
            always_except_no_shoots: is_alone && has_shoots,
            required_installations: if is_alone { required_installations(existing, |_| true) } else { BTreeSet::new() },
            seed_labels: Some(&seed.facts.labels),
        };
        let wanted = Wanted::of(&required, &circumstances, catalogue);
        let own = seed.own_shoot.filter(|shoot| shoot.needs.is_incomplete).map(|shoot| shoot.name);
        let incomplete = seed.demand.incomplete.first().map(|name| &**name).or(own).map(incomplete);
        let cluster = if is_alone { AssessedCluster::Seed } else { AssessedCluster::SelfHostedSeed };
        Self { cluster, required, wanted, of_shoot, lost, domain_error, incomplete }
    }

    /// Assesses a self-hosted Shoot (part B). A Shoot that is not self-hosted any more needs nothing, and adopts nothing.
    pub fn of_shoot(shoot: KnownShoot<'_>, backups: &BackupIndex, catalogue: &Catalogue, existing: &Existing) -> Self {
        let (mut required, mut lost) = (Required::default(), Vec::new());
        let is_alive = shoot.needs.is_self_hosted() && !shoot.is_deleting;
        if shoot.needs.is_self_hosted() {
            lost = backups.add_required(&ExtensionCluster::Shoot(shoot.name.clone()), &mut required);
        }
        if is_alive {
            required.extend(Required::of_own_shoot(shoot.needs, catalogue));
        }
        let may_own = |facts: &InstallationFacts| shoot.needs.is_self_hosted() || !facts.is_marked();
        let circumstances = Circumstances {
            always: is_alive,
            always_except_no_shoots: is_alive, // DEV-9
            required_installations: required_installations(existing, may_own),
            seed_labels: None,
        };
        let wanted = Wanted::of(&required, &circumstances, catalogue);
        let incomplete = (is_alive && shoot.needs.is_incomplete).then(|| incomplete(shoot.name));
        let (cluster, of_shoot) = (AssessedCluster::Shoot, BTreeSet::new());
        Self { cluster, required, wanted, of_shoot, lost, domain_error: None, incomplete }
    }

    /// Assesses a Seed in deletion whose self-hosted Shoot is gone: it needs nothing (DEV-7).
    pub fn of_orphaned_seed() -> Self {
        Self {
            cluster: AssessedCluster::Seed,
            required: Required::default(),
            wanted: Wanted::default(),
            of_shoot: BTreeSet::new(),
            lost: Vec::new(),
            domain_error: None,
            incomplete: None,
        }
    }

    /// Returns how much is known, if all caches are fresh.
    pub fn certainty(&self) -> Certainty {
        if self.domain_error.is_some() || self.incomplete.is_some() {
            Certainty::Incomplete
        } else if self.wanted.missing.is_empty() {
            Certainty::Complete
        } else {
            Certainty::MissingRegistrations
        }
    }
}

fn incomplete(shoot: &NamespacedName) -> String {
    format!("Shoot \"{shoot}\" needs or disables more than {MOST_NEEDS} extensions, and the others are not known")
}

/// Returns the registrations that every living self-hosted Shoot wants.
fn by_policy(catalogue: &Catalogue) -> impl Iterator<Item = &str> {
    let wanted = catalogue.all().filter(|(_, it)| !it.facts.is_deleting && it.facts.policy != Policy::OnDemand);
    wanted.map(|(name, _)| name)
}

/// Returns the registrations of installations that gardenlet requires (A.4 rule 5), as far as `counts` returns true.
fn required_installations(existing: &Existing, counts: impl Fn(&InstallationFacts) -> bool) -> BTreeSet<Box<str>> {
    let required = existing.iter().filter(|(_, all)| all.iter().any(|(_, it)| it.is_required && counts(it)));
    required.map(|(name, _)| name.clone()).collect()
}
