//! What the Shoots of each Seed need, kept up to date Shoot by Shoot (spec 85 A.3, "better" 2). Pure.
//!
//! A change of a Shoot costs what this Shoot needs, not what all Shoots of its Seed need. Each need knows the Shoots that
//! have it, so that operators can be told.

use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    sync::Arc,
};

use cluster::object::NamespacedName;

use super::{pair::PairId, seed_facts::Domain, shoot_needs::ShootNeeds};

/// Shoots that are looked at for examples: all of them may disable an extension.
const LOOKED_AT: usize = 64;

/// Objects that need something, by name.
pub type Sources = BTreeSet<Rc<NamespacedName>>;

/// What is needed, with the objects that need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sourced<K>(BTreeMap<K, Sources>);

/// What the Shoots of one Seed need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShootDemand {
    /// All Shoots: by `spec.seedName` or by `status.seedName`.
    pub shoots: Sources,
    /// Those that do not run their own control plane.
    pub hosted: Sources,
    /// Shoots with too many needs to know them all (DEV-23).
    pub incomplete: Sources,
    /// Pairs that Shoots need by themselves.
    pub pairs: Sourced<PairId>,
    /// The Shoots with workers, and without.
    pub with_workers: EnabledShoots,
    /// The Shoots without workers.
    pub workerless: EnabledShoots,
    /// The parent domains of the domains of Shoots: `b.c` and `c` for `a.b.c`.
    pub parent_domains: Sourced<Box<str>>,
}

/// Shoots, and what they disable of the extensions that are enabled by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnabledShoots {
    shoots: Sources,
    disabled: Sourced<Box<str>>,
}

/// What the Shoots of all Seeds need.
#[derive(Debug, Default)]
pub struct DemandIndex {
    seeds: BTreeMap<Box<str>, ShootDemand>,
    /// What is counted of each Shoot.
    counted: BTreeMap<Rc<NamespacedName>, CountedShoot>,
}

#[derive(Debug)]
struct CountedShoot {
    seeds: BTreeSet<Box<str>>,
    needs: Arc<ShootNeeds>,
}

impl<K> Default for Sourced<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Ord + Clone> Sourced<K> {
    /// Adds (`is_added`) or removes a source of a need.
    pub fn set(&mut self, need: &K, source: &Rc<NamespacedName>, is_added: bool) {
        if is_added {
            self.0.entry(need.clone()).or_default().insert(source.clone());
        } else if let Some(sources) = self.0.get_mut(need) {
            sources.remove(source);
            if sources.is_empty() {
                self.0.remove(need);
            }
        }
    }

    /// Returns the needs with their sources.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &Sources)> {
        self.0.iter()
    }

    /// Returns true if nothing is needed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of sources of a need.
    pub fn count<Q: Ord + ?Sized>(&self, need: &Q) -> usize
    where
        K: std::borrow::Borrow<Q>,
    {
        self.0.get(need).map_or(0, BTreeSet::len)
    }

    /// Returns the sources of a need.
    pub fn sources<Q: Ord + ?Sized>(&self, need: &Q) -> Option<&Sources>
    where
        K: std::borrow::Borrow<Q>,
    {
        self.0.get(need)
    }
}

impl EnabledShoots {
    /// Returns the number of Shoots that do not disable an extension type, and some of these Shoots.
    pub fn enabled(&self, extension_type: &str) -> (usize, impl Iterator<Item = &Rc<NamespacedName>>) {
        let disabled = self.disabled.sources(extension_type);
        let count = self.shoots.len() - disabled.map_or(0, BTreeSet::len);
        let is_enabled = move |shoot: &&Rc<NamespacedName>| !disabled.is_some_and(|it| it.contains(*shoot));
        (count, self.shoots.iter().take(LOOKED_AT).filter(is_enabled))
    }
}

impl ShootDemand {
    /// Adds or removes a Shoot.
    pub fn set(&mut self, shoot: &Rc<NamespacedName>, needs: &ShootNeeds, is_added: bool) {
        set(&mut self.shoots, shoot, is_added);
        if !needs.is_self_hosted() {
            set(&mut self.hosted, shoot, is_added);
        }
        if needs.is_incomplete {
            set(&mut self.incomplete, shoot, is_added);
        }
        needs.pairs.iter().for_each(|pair| self.pairs.set(pair, shoot, is_added));
        let alike = if needs.is_workerless { &mut self.workerless } else { &mut self.with_workers };
        set(&mut alike.shoots, shoot, is_added);
        for extension_type in &needs.disabled_extensions {
            alike.disabled.set(extension_type, shoot, is_added);
        }
        for parent in needs.domain.iter().flat_map(|domain| parents(domain)) {
            self.parent_domains.set(&Box::from(parent), shoot, is_added);
        }
    }

    /// Returns the default domains to which any Shoot belongs. A Shoot belongs to the first one of the list that is a
    /// parent of its domain (A.3.2 row 10, rule 3).
    pub fn default_domains_in_use<'d>(&self, defaults: &'d [Domain]) -> Vec<&'d Domain> {
        let mut in_use = Vec::new();
        for (place, domain) in defaults.iter().enumerate() {
            let earlier: BTreeSet<&str> = defaults.iter().take(place).map(|earlier| &*earlier.domain).collect();
            if earlier.contains(&*domain.domain) || parents(&domain.domain).any(|parent| earlier.contains(parent)) {
                continue; // all its Shoots belong to an earlier one
            }
            // The outermost earlier domains below this one: no Shoot belongs to two of them.
            let is_outermost = |below: &&&str| !parents(below).any(|parent| earlier.contains(parent));
            let below = earlier.iter().filter(|earlier| parents(earlier).any(|parent| parent == &*domain.domain));
            let taken: usize = below.filter(is_outermost).map(|below| self.parent_domains.count(*below)).sum();
            if self.parent_domains.count(&*domain.domain) > taken {
                in_use.push(domain);
            }
        }
        in_use
    }
}

fn set(sources: &mut Sources, source: &Rc<NamespacedName>, is_added: bool) {
    if is_added {
        sources.insert(source.clone());
    } else {
        sources.remove(source);
    }
}

/// Returns what follows each dot of a domain.
fn parents(domain: &str) -> impl Iterator<Item = &str> {
    domain.match_indices('.').filter_map(|(dot, _)| domain.get(dot + 1..))
}

impl DemandIndex {
    /// Counts a Shoot for its Seeds, or no longer. The result does not depend on earlier calls for other Shoots. Costs
    /// nothing if the Shoot needs the same as before: most events of Shoots are of their status.
    pub fn put(&mut self, shoot: &NamespacedName, new: Option<([&str; 2], &Arc<ShootNeeds>)>) {
        let seeds_of = |seeds: [&str; 2]| -> BTreeSet<Box<str>> {
            seeds.into_iter().filter(|seed| !seed.is_empty()).map(Box::from).collect()
        };
        let new = new.map(|(seeds, needs)| (seeds_of(seeds), needs)).filter(|(seeds, _)| !seeds.is_empty());
        if let (Some(old), Some((seeds, needs))) = (self.counted.get(shoot), &new)
            && old.seeds == *seeds
            && old.needs == **needs
        {
            return;
        }
        if let Some((name, old)) = self.counted.remove_entry(shoot) {
            for seed in &old.seeds {
                if let Some(demand) = self.seeds.get_mut(seed) {
                    demand.set(&name, &old.needs, false);
                    if demand.shoots.is_empty() {
                        self.seeds.remove(seed);
                    }
                }
            }
        }
        let Some((seeds, needs)) = new else { return };
        let name = Rc::new(shoot.clone());
        for seed in &seeds {
            self.seeds.entry(seed.clone()).or_default().set(&name, needs, true);
        }
        self.counted.insert(name, CountedShoot { seeds, needs: needs.clone() });
    }

    /// Calls `look` with what the Shoots of a Seed need.
    pub fn with<T>(&self, seed: &str, look: impl FnOnce(&ShootDemand) -> T) -> T {
        match self.seeds.get(seed) {
            Some(demand) => look(demand),
            None => look(&ShootDemand::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn needs(extension_type: &str) -> Arc<ShootNeeds> {
        Arc::new(ShootNeeds::of(&json!({ "spec": { "extensions": [{ "type": extension_type }] } })))
    }

    /// spec 85 "better" 2
    #[test]
    fn demand_is_not_counted_again_for_a_shoot_that_needs_the_same() {
        let shoot = NamespacedName::new("a", "b");
        let mut index = DemandIndex::default();
        let source = |index: &DemandIndex, seed: &str| index.with(seed, |demand| demand.shoots.first().cloned());
        index.put(&shoot, Some((["s1", ""], &needs("x"))));
        let before = source(&index, "s1").unwrap();

        index.put(&shoot, Some((["s1", "s1"], &needs("x"))));
        assert!(Rc::ptr_eq(&before, &source(&index, "s1").unwrap()));
        index.put(&shoot, Some((["s1", "s2"], &needs("x"))));
        assert!(source(&index, "s2").is_some());
        index.put(&shoot, Some((["s2", "s2"], &needs("y"))));
        assert!(source(&index, "s1").is_none());
        index.put(&shoot, Some((["", ""], &needs("y"))));
        assert!(source(&index, "s2").is_none());
    }
}
