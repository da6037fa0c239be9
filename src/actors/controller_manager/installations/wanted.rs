//! The registrations that a cluster wants (spec 85 A.4). Pure.

use std::collections::{BTreeMap, BTreeSet};

use kit::quote::cut;

use super::{
    pair::PairId,
    registration::{Catalogue, Policy},
    required::Required,
};
use crate::api::meta::selector::Labels;

/// Missing pairs that an error names.
const NAMED: usize = 50;

/// What beside required pairs makes a registration wanted.
#[derive(Debug, Default)]
pub struct Circumstances<'a> {
    /// The policy `Always` counts.
    pub always: bool,
    /// The policy `AlwaysExceptNoShoots` counts.
    pub always_except_no_shoots: bool,
    /// The registrations of installations that gardenlet requires.
    pub required_installations: BTreeSet<Box<str>>,
    /// The labels for seed selectors; `None` if they do not count.
    pub seed_labels: Option<&'a Labels>,
}

/// Why a registration is wanted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// It serves this pair.
    Pair(PairId),
    /// By its policy.
    Policy,
    /// gardenlet requires its installation.
    RequiredInstallation,
}

/// The wanted registrations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// By name, with the causes.
    pub registrations: BTreeMap<Box<str>, BTreeSet<Cause>>,
    /// Pairs that no registration serves.
    pub missing: BTreeSet<PairId>,
    /// Registrations whose selector is unusable: neither installed nor uninstalled.
    pub undecided: BTreeMap<Box<str>, Undecided>,
}

/// A registration whose selector is unusable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecided {
    /// It would be wanted.
    pub is_wanted: bool,
    /// The text about the selector.
    pub error: Box<str>,
}

impl Wanted {
    /// Maps required pairs and circumstances to registrations.
    pub fn of(required: &Required, circumstances: &Circumstances<'_>, catalogue: &Catalogue) -> Self {
        let mut wanted = Self::default();
        for (name, registration) in catalogue.all().filter(|(_, registration)| !registration.facts.is_deleting) {
            let is_wanted = match registration.facts.policy {
                Policy::OnDemand => false,
                Policy::Always => circumstances.always,
                Policy::AlwaysExceptNoShoots => circumstances.always_except_no_shoots,
            };
            if is_wanted {
                wanted.add(name, Cause::Policy);
            }
        }
        for pair in required.pairs() {
            let mut serving = catalogue.serving(pair).peekable();
            if serving.peek().is_none() {
                wanted.missing.insert(pair.clone());
            }
            serving.for_each(|name| wanted.add(name, Cause::Pair(pair.clone())));
        }
        for name in &circumstances.required_installations {
            wanted.add(name, Cause::RequiredInstallation);
        }
        if let Some(labels) = circumstances.seed_labels {
            wanted.select(labels, catalogue);
        }
        wanted
    }

    /// Applies the seed selectors: the last rule, which beats all others (rule 6). An unusable selector counts for
    /// registrations that are installed without being wanted, too.
    fn select(&mut self, labels: &Labels, catalogue: &Catalogue) {
        for (name, registration) in catalogue.all() {
            match registration.facts.selects(labels) {
                Ok(true) => {}
                Ok(false) => {
                    self.registrations.remove(name);
                }
                Err(error) => {
                    let is_wanted = self.registrations.remove(name).is_some();
                    self.undecided.insert(name.into(), Undecided { is_wanted, error: error.into() });
                }
            }
        }
    }

    fn add(&mut self, name: &str, cause: Cause) {
        self.registrations.entry(name.into()).or_default().insert(cause);
    }

    /// Returns the error about missing pairs; `None` if there are none.
    pub fn error(&self) -> Option<String> {
        let text = |pair: &PairId| {
            let pair = pair.to_string();
            format!(
                "need to install an extension controller for \"{}\" but no appropriate ControllerRegistration found",
                cut(&pair)
            )
        };
        let texts: Vec<_> = self.missing.iter().take(NAMED).map(text).collect();
        let more = self.missing.len().saturating_sub(NAMED);
        let more = (more > 0).then(|| format!("and {more} more"));
        let texts: Vec<_> = texts.into_iter().chain(more).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }
}
