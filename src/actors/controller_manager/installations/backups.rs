//! BackupBuckets and BackupEntries (spec 85 A.3 K1, K2). Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use cluster::object::NamespacedName;
use serde_json::Value;

use super::{
    demand::{Sourced, Sources},
    pair::ExtensionKind,
    required::{Reason, Required},
};
use crate::actors::controller_manager::fields::text;

/// A cluster on which extensions are installed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExtensionCluster {
    /// A Seed.
    Seed(Box<str>),
    /// A self-hosted Shoot.
    Shoot(NamespacedName),
}

/// To which clusters an object belongs: by `spec.seedName` and by `spec.shootRef`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupOwners {
    /// The Seed.
    pub seed: Option<Box<str>>,
    /// The self-hosted Shoot.
    pub shoot: Option<NamespacedName>,
}

/// What counts of a BackupBucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketFacts {
    /// To which clusters it belongs.
    pub owners: BackupOwners,
    /// `spec.provider.type`.
    pub provider: Box<str>,
}

/// What counts of a BackupEntry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryFacts {
    /// To which clusters it belongs.
    pub owners: BackupOwners,
    /// `spec.bucketName`.
    pub bucket: Box<str>,
}

/// All BackupBuckets, and the BackupEntries of each cluster by their bucket.
#[derive(Debug, Default)]
pub struct BackupIndex {
    buckets: BTreeMap<Box<str>, BucketFacts>,
    by_owner: BTreeMap<ExtensionCluster, Sourced<Box<str>>>,
    entries: BTreeMap<Rc<NamespacedName>, EntryFacts>,
    entries_by_owner: BTreeMap<ExtensionCluster, Sourced<Box<str>>>,
    /// The clusters of the entries in each bucket.
    entry_owners: BTreeMap<Box<str>, BTreeMap<ExtensionCluster, usize>>,
}

/// A BackupEntry whose bucket is not known: names of bucket and entry.
pub type LostEntry = (Box<str>, NamespacedName);

impl BackupOwners {
    fn of(object: &Value) -> Self {
        let name = |pointer| Some(text(object, pointer)).filter(|name| !name.is_empty());
        let shoot = name("/spec/shootRef/name").zip(name("/spec/shootRef/namespace"));
        Self {
            seed: name("/spec/seedName").map(Box::from),
            shoot: shoot.map(|(name, namespace)| NamespacedName::new(namespace, name)),
        }
    }

    /// Returns the clusters.
    pub fn clusters(&self) -> impl Iterator<Item = ExtensionCluster> + use<> {
        let seed = self.seed.clone().map(ExtensionCluster::Seed);
        seed.into_iter().chain(self.shoot.clone().map(ExtensionCluster::Shoot))
    }
}

impl BucketFacts {
    /// Reads a BackupBucket of any shape.
    pub fn of(bucket: &Value) -> Self {
        Self { owners: BackupOwners::of(bucket), provider: text(bucket, "/spec/provider/type").into() }
    }
}

impl EntryFacts {
    /// Reads a BackupEntry of any shape.
    pub fn of(entry: &Value) -> Self {
        Self { owners: BackupOwners::of(entry), bucket: text(entry, "/spec/bucketName").into() }
    }
}

impl BackupIndex {
    /// Puts a bucket in, or takes it out.
    pub fn put_bucket(&mut self, name: &str, new: Option<BucketFacts>) {
        let source = Rc::new(NamespacedName::new("", name));
        if let Some(old) = self.buckets.remove(name) {
            change(&mut self.by_owner, &old.owners, &Box::from(name), &source, false);
        }
        if let Some(new) = new {
            change(&mut self.by_owner, &new.owners, &Box::from(name), &source, true);
            self.buckets.insert(name.into(), new);
        }
    }

    /// Puts an entry in, or takes it out.
    pub fn put_entry(&mut self, name: &NamespacedName, new: Option<EntryFacts>) {
        if let Some((source, old)) = self.entries.remove_entry(name) {
            change(&mut self.entries_by_owner, &old.owners, &old.bucket, &source, false);
            self.count_owners(&old, false);
        }
        if let Some(new) = new {
            let source = Rc::new(name.clone());
            change(&mut self.entries_by_owner, &new.owners, &new.bucket, &source, true);
            self.count_owners(&new, true);
            self.entries.insert(source, new);
        }
    }

    fn count_owners(&mut self, entry: &EntryFacts, is_added: bool) {
        let owners = self.entry_owners.entry(entry.bucket.clone()).or_default();
        for cluster in entry.owners.clusters() {
            let count = owners.entry(cluster).or_default();
            *count = if is_added { *count + 1 } else { count.saturating_sub(1) };
        }
        owners.retain(|_, count| *count > 0);
        if owners.is_empty() {
            self.entry_owners.remove(&entry.bucket);
        }
    }

    /// Returns the clusters of the entries in a bucket: they need what serves the bucket, too.
    pub fn clusters_of_entries(&self, bucket: &str) -> BTreeSet<ExtensionCluster> {
        self.entry_owners.get(bucket).into_iter().flat_map(|owners| owners.keys().cloned()).collect()
    }

    /// Adds what the buckets (K1) and entries (K2) of a cluster need. The bucket of an entry of a Seed may belong to
    /// any cluster, because the Shoot may be moving (trap T-5); that of a self-hosted Shoot belongs to this Shoot (B.1).
    /// Returns the first entry of each bucket that is not known.
    pub fn add_required(&self, cluster: &ExtensionCluster, required: &mut Required) -> Vec<LostEntry> {
        for (bucket, sources) in self.by_owner.get(cluster).into_iter().flat_map(Sourced::iter) {
            if let Some(facts) = self.buckets.get(bucket) {
                required.add(ExtensionKind::BackupBucket.of_type(&facts.provider), Reason::buckets(sources));
            }
        }
        let is_theirs = |facts: &&BucketFacts| match cluster {
            ExtensionCluster::Seed(_) => true,
            ExtensionCluster::Shoot(shoot) => facts.owners.shoot.as_ref() == Some(shoot),
        };
        let mut lost = Vec::new();
        for (bucket, entries) in self.entries_by_owner.get(cluster).into_iter().flat_map(Sourced::iter) {
            match self.buckets.get(bucket).filter(is_theirs) {
                Some(facts) => {
                    required.add(ExtensionKind::BackupEntry.of_type(&facts.provider), Reason::entries(entries));
                }
                None => lost.extend(first(entries).map(|entry| (bucket.clone(), entry))),
            }
        }
        lost
    }
}

fn first(sources: &Sources) -> Option<NamespacedName> {
    sources.first().map(|name| (**name).clone())
}

fn change<Need: Ord + Clone>(
    by_owner: &mut BTreeMap<ExtensionCluster, Sourced<Need>>,
    owners: &BackupOwners,
    need: &Need,
    source: &Rc<NamespacedName>,
    is_added: bool,
) {
    for cluster in owners.clusters() {
        let of_cluster = by_owner.entry(cluster.clone()).or_default();
        of_cluster.set(need, source, is_added);
        if of_cluster.is_empty() {
            by_owner.remove(&cluster);
        }
    }
}
