//! The pairs that a cluster needs, each with the reasons (spec 85 A.3). Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    rc::Rc,
};

use cluster::object::NamespacedName;
use kit::quote::cut;

use super::{
    demand::{ShootDemand, Sources},
    domains::Domains,
    pair::{ExtensionKind, PairId, UNMANAGED},
    registration::{AutoEnabledFor, Catalogue},
    seed_facts::SeedFacts,
    shoot_needs::{ShootNeeds, of_provider},
};

/// Objects of one kind that are named in a reason.
const NAMED: usize = 3;

/// Pairs with the reasons why they are needed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Required(BTreeMap<PairId, Vec<Reason>>);

/// Why a pair is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// By a field of the Seed.
    Seed(&'static str),
    /// By a field of the Seed, as long as it has Shoots.
    SeedForShoots(&'static str),
    /// By the Shoot whose cluster it is.
    OwnShoot,
    /// By objects of a kind: `Shoot`, `BackupBucket`, `BackupEntry`.
    Objects {
        /// The kind.
        kind: &'static str,
        /// Their number.
        count: usize,
        /// The first names.
        first: Vec<NamespacedName>,
    },
}

impl Required {
    /// Adds a reason for a pair.
    pub fn add(&mut self, pair: PairId, reason: Reason) {
        self.0.entry(pair).or_default().push(reason);
    }

    /// Adds all pairs of others.
    pub fn extend(&mut self, others: Self) {
        for (pair, reasons) in others.0 {
            self.0.entry(pair).or_default().extend(reasons);
        }
    }

    /// Keeps only pairs for which `keep` returns true.
    pub fn retain(&mut self, keep: impl Fn(&PairId) -> bool) {
        self.0.retain(|pair, _| keep(pair));
    }

    /// Returns true if a pair is needed.
    pub fn contains(&self, pair: &PairId) -> bool {
        self.0.contains_key(pair)
    }

    /// Returns the pairs.
    pub fn pairs(&self) -> impl Iterator<Item = &PairId> {
        self.0.keys()
    }

    /// Returns the reasons for a pair; none if it is not needed.
    pub fn reasons(&self, pair: &PairId) -> &[Reason] {
        self.0.get(pair).map_or(&[], Vec::as_slice)
    }

    /// K4: what a Seed needs itself; nothing while it is being deleted.
    pub fn of_seed(seed: &SeedFacts, catalogue: &Catalogue) -> Self {
        let mut required = Self::default();
        if seed.is_deleting {
            return required;
        }
        if let Some(provider) = &seed.dns_provider {
            required.add(ExtensionKind::DnsRecord.of_type(provider), Reason::Seed("spec.dns.provider"));
        }
        let disabled: BTreeSet<&str> = seed.disabled_extensions.iter().map(|it| &**it).collect();
        let enabled = catalogue.auto_enabled().filter(|entry| entry.clusters == AutoEnabledFor::Seeds);
        let enabled = enabled.map(|entry| &*entry.extension_type).filter(|it| !disabled.contains(it));
        for extension_type in seed.extensions.iter().map(|it| &**it).chain(enabled).collect::<BTreeSet<_>>() {
            required.add(ExtensionKind::Extension.of_type(extension_type), Reason::Seed("spec.extensions"));
        }
        for pair in of_provider(&seed.provider) {
            required.add(pair, Reason::Seed("spec.provider.type"));
        }
        required
    }

    /// K3: what the Shoots of a Seed need.
    pub fn of_shoots(seed: &SeedFacts, demand: &ShootDemand, domains: &Domains, catalogue: &Catalogue) -> Self {
        let mut required = Self::default();
        if demand.shoots.is_empty() {
            return required;
        }
        if let Some(backup) = seed.backup.as_ref().filter(|_| !demand.hosted.is_empty()) {
            for kind in [ExtensionKind::BackupBucket, ExtensionKind::BackupEntry] {
                required.add(kind.of_type(backup), Reason::SeedForShoots("spec.backup.provider"));
            }
        }
        let control_plane = ExtensionKind::ControlPlane.of_type(&seed.provider);
        required.add(control_plane, Reason::SeedForShoots("spec.provider.type"));
        for (pair, shoots) in demand.pairs.iter() {
            required.add(pair.clone(), Reason::shoots(shoots));
        }
        if let Some(internal) = domains.internal.as_ref().filter(|internal| &*internal.provider != UNMANAGED) {
            let reason = Reason::SeedForShoots("internal domain");
            required.add(ExtensionKind::DnsRecord.of_type(&internal.provider), reason);
        }
        for domain in demand.default_domains_in_use(&domains.defaults) {
            if !domain.provider.is_empty() && &*domain.provider != UNMANAGED {
                let reason = Reason::SeedForShoots("default domain");
                required.add(ExtensionKind::DnsRecord.of_type(&domain.provider), reason);
            }
        }
        for entry in catalogue.auto_enabled() {
            let with_workers = demand.with_workers.enabled(&entry.extension_type);
            let workerless = demand.workerless.enabled(&entry.extension_type);
            let (count, first) = match entry.clusters {
                AutoEnabledFor::Seeds => continue,
                AutoEnabledFor::ShootsWithWorkers => (with_workers.0, named(with_workers.1)),
                AutoEnabledFor::AllShoots => (with_workers.0 + workerless.0, named(with_workers.1.chain(workerless.1))),
            };
            if count > 0 {
                let reason = Reason::Objects { kind: "Shoot", count, first };
                required.add(ExtensionKind::Extension.of_type(&entry.extension_type), reason);
            }
        }
        required
    }

    /// What a self-hosted Shoot needs for itself: A.3.2 without Seed and domains.
    pub fn of_own_shoot(needs: &ShootNeeds, catalogue: &Catalogue) -> Self {
        let mut pairs: BTreeSet<PairId> = needs.pairs.iter().cloned().collect();
        for entry in catalogue.auto_enabled() {
            let concerns = match entry.clusters {
                AutoEnabledFor::Seeds => false,
                AutoEnabledFor::ShootsWithWorkers => !needs.is_workerless,
                AutoEnabledFor::AllShoots => true,
            };
            if concerns && !needs.disabled_extensions.contains(&entry.extension_type) {
                pairs.insert(ExtensionKind::Extension.of_type(&entry.extension_type));
            }
        }
        Self(pairs.into_iter().map(|pair| (pair, vec![Reason::OwnShoot])).collect())
    }
}

impl Reason {
    /// Shoots need it.
    pub fn shoots(sources: &Sources) -> Self {
        Self::objects("Shoot", sources)
    }

    /// BackupBuckets need it.
    pub fn buckets(sources: &Sources) -> Self {
        Self::objects("BackupBucket", sources)
    }

    /// BackupEntries need it.
    pub fn entries(sources: &Sources) -> Self {
        Self::objects("BackupEntry", sources)
    }

    fn objects(kind: &'static str, sources: &Sources) -> Self {
        Self::Objects { kind, count: sources.len(), first: named(sources.iter()) }
    }
}

fn named<'n>(names: impl Iterator<Item = &'n Rc<NamespacedName>>) -> Vec<NamespacedName> {
    names.take(NAMED).map(|name| (**name).clone()).collect()
}

impl fmt::Display for Reason {
    /// `Seed spec.backup.provider`, `5 Shoots: a/b, a/c, a/d, …`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seed(field) => write!(f, "Seed {field}"),
            Self::SeedForShoots(field) => write!(f, "Seed {field}, for its Shoots"),
            Self::OwnShoot => f.write_str("the Shoot itself"),
            Self::Objects { kind, count, first } => {
                match (*count, *kind) {
                    (1, kind) => write!(f, "{kind}")?,
                    (count, "BackupEntry") => write!(f, "{count} BackupEntries")?,
                    (count, kind) => write!(f, "{count} {kind}s")?,
                }
                let names: Vec<_> = first.iter().map(|name| cut(&name.to_string()).into_owned()).collect();
                match &*names {
                    [] => return Ok(()),
                    [name] if *count == 1 => return write!(f, " {name}"),
                    names => write!(f, ": {}", names.join(", "))?,
                }
                if *count > first.len() { f.write_str(", …") } else { Ok(()) }
            }
        }
    }
}
