//! Every installation of a cluster, and why it is there: for the dashboard and for the command `extensions`. Pure.

use std::collections::BTreeMap;

use kit::quote::cut;

use super::{
    assessment::{AssessedCluster, Assessment},
    installation::InstallationFacts,
    pair::PairId,
    plan::Existing,
    registration::{Catalogue, Policy},
    wanted::Cause,
};

/// Why an extension is installed, or is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallationReason {
    /// What it serves, or `policy`, or `condition`.
    pub needs: String,
    /// Who needs that.
    pub by: String,
}

/// The state of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstallationState {
    /// It is wanted and exists.
    Installed,
    /// It is wanted and does not exist.
    Missing,
    /// It exists and is being deleted.
    Ending,
    /// It exists and is not wanted.
    Unneeded,
    /// It exists and belongs to the self-hosted Shoot, which decides whether it is needed.
    OfShoot,
    /// It exists and belongs to the Seed of this self-hosted Shoot.
    OfSeed,
    /// It is wanted and does not exist: the self-hosted Shoot creates it.
    LeftToShoot,
    /// The selector of its registration is unusable: it is neither installed nor uninstalled.
    Undecided,
    /// It exists, and its registration does not.
    Unregistered,
}

/// A registration that is wanted or installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedInstallation {
    /// Name of the registration.
    pub registration: Box<str>,
    /// Names of its installations.
    pub installations: Vec<Box<str>>,
    /// The state of the first installation.
    pub state: InstallationState,
    /// Why it is wanted; nothing if it is not.
    pub reasons: Vec<InstallationReason>,
}

impl InstallationState {
    /// Returns it as operators read it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::Missing => "not installed",
            Self::Ending => "in deletion",
            Self::Unneeded => "not needed",
            Self::Unregistered => "no registration",
            Self::OfShoot => "of the Shoot",
            Self::OfSeed => "of the Seed",
            Self::LeftToShoot => "left to the Shoot",
            Self::Undecided => "undecided",
        }
    }
}

impl ExplainedInstallation {
    /// Explains all installations of a cluster, and those that it lacks, by registration.
    pub fn of(assessment: &Assessment, existing: &Existing, catalogue: &Catalogue) -> Vec<Self> {
        let mut explained = BTreeMap::new();
        let wanted = &assessment.wanted;
        let undecided = wanted.undecided.iter().filter(|(_, it)| it.is_wanted).map(|(name, _)| name);
        for name in wanted.registrations.keys().chain(existing.keys()).chain(undecided) {
            let installations = existing.get(name).map_or(&[][..], Vec::as_slice);
            let state = if catalogue.get(name).is_none() {
                InstallationState::Unregistered
            } else {
                state(assessment, name, installations.first().map(|(_, facts)| &**facts))
            };
            let explanation = Self {
                registration: name.clone(),
                installations: installations.iter().map(|(name, _)| name.clone()).collect(),
                state,
                reasons: reasons(assessment, name, catalogue),
            };
            explained.insert(name, explanation);
        }
        explained.into_values().collect()
    }

    /// Returns its reasons as one text.
    pub fn text(&self) -> String {
        let reasons: Vec<_> = self.reasons.iter().map(|reason| format!("{}: {}", reason.needs, reason.by)).collect();
        match &*reasons {
            [] => self.state.as_str().to_owned(),
            reasons if self.state == InstallationState::Installed => reasons.join("; "),
            reasons => format!("{} ({})", self.state.as_str(), reasons.join("; ")),
        }
    }
}

/// Returns the state of a registration that exists; `installation` is its first one.
fn state(assessment: &Assessment, name: &str, installation: Option<&InstallationFacts>) -> InstallationState {
    let is_wanted = assessment.wanted.registrations.contains_key(name);
    let Some(facts) = installation else {
        return if !is_wanted {
            InstallationState::Undecided
        } else if assessment.of_shoot.contains(name) {
            InstallationState::LeftToShoot
        } else {
            InstallationState::Missing
        };
    };
    match assessment.cluster {
        _ if facts.is_deleting => InstallationState::Ending,
        _ if is_wanted => InstallationState::Installed,
        AssessedCluster::Seed | AssessedCluster::SelfHostedSeed if facts.is_owned_by_shoot() => {
            InstallationState::OfShoot
        }
        AssessedCluster::Shoot if facts.is_marked() => InstallationState::OfSeed,
        _ if assessment.wanted.undecided.contains_key(name) => InstallationState::Undecided,
        AssessedCluster::Seed | AssessedCluster::SelfHostedSeed | AssessedCluster::Shoot => InstallationState::Unneeded,
    }
}

/// Pairs with the same reasons are told together.
fn reasons(assessment: &Assessment, registration: &str, catalogue: &Catalogue) -> Vec<InstallationReason> {
    let mut pairs: Vec<(String, Vec<&PairId>)> = Vec::new();
    let mut others = Vec::new();
    for cause in assessment.wanted.registrations.get(registration).into_iter().flatten() {
        match cause {
            Cause::Pair(pair) => {
                let by: Vec<_> = assessment.required.reasons(pair).iter().map(ToString::to_string).collect();
                let by = by.join("; ");
                match pairs.iter_mut().find(|(other, _)| *other == by) {
                    Some((_, of_reason)) => of_reason.push(pair),
                    None => pairs.push((by, vec![pair])),
                }
            }
            Cause::Policy => {
                let policy = match catalogue.get(registration).map(|it| it.facts.policy) {
                    Some(Policy::Always) => "Always",
                    Some(Policy::AlwaysExceptNoShoots) => "AlwaysExceptNoShoots",
                    Some(Policy::OnDemand) | None => "OnDemand",
                };
                others.push(InstallationReason { needs: "policy".to_owned(), by: policy.to_owned() });
            }
            Cause::RequiredInstallation => {
                others
                    .push(InstallationReason { needs: "condition".to_owned(), by: "gardenlet requires it".to_owned() });
            }
        }
    }
    let names = |pairs: Vec<&PairId>| {
        let names: Vec<_> = pairs.iter().map(|pair| cut(&pair.to_string()).into_owned()).collect();
        names.join(", ")
    };
    let pairs = pairs.into_iter().map(|(by, pairs)| InstallationReason { needs: names(pairs), by });
    pairs.chain(others).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cluster::object::NamespacedName;
    use serde_json::{Value, json};

    use super::*;
    use crate::actors::controller_manager::installations::{
        assessment::{KnownSeed, KnownShoot},
        backups::BackupIndex,
        demand::ShootDemand,
        domains::Domains,
        plan::grouped,
        registration::{KnownRegistration, RegistrationFacts},
        seed_facts::SeedFacts,
        shoot_needs::ShootNeeds,
    };

    fn catalogue() -> Catalogue {
        let mut catalogue = Catalogue::default();
        let odd = json!({ "matchExpressions": [{ "key": "a", "operator": "Odd" }] });
        let mut put = |name: &str, pairs: &[(&str, &str)], selector: &Value| {
            let resources: Vec<_> =
                pairs.iter().map(|(kind, of_type)| json!({ "kind": kind, "type": of_type })).collect();
            let deployment = json!({ "seedSelector": selector });
            let registration = json!({ "spec": { "resources": resources, "deployment": deployment } });
            let facts = Arc::new(RegistrationFacts::of(&registration));
            catalogue.put(name, Some(KnownRegistration { version: 1, facts }));
        };
        put("rh", &[("ControlPlane", "h"), ("Infrastructure", "h"), ("Worker", "h")], &Value::Null);
        put("rs", &[("ControlPlane", "s"), ("Infrastructure", "s"), ("Worker", "s")], &Value::Null);
        put("re", &[("Extension", "e"), ("Extension", "f")], &Value::Null);
        put("rn", &[], &Value::Null);
        put("ru", &[], &odd);
        put("rw", &[("Extension", "w")], &odd);
        catalogue
    }

    fn existing() -> Existing {
        let installation = |name: &str, is_marked: bool| {
            let labels = if is_marked { json!({ "seed-ref-name": "h" }) } else { json!({}) };
            let shoot = json!({ "namespace": "garden", "name": "h" });
            let facts = InstallationFacts::of(&json!({
                "metadata": { "labels": labels }, "spec": { "registrationRef": { "name": name }, "shootRef": shoot },
            }));
            (name.into(), Arc::new(facts))
        };
        grouped([("rh", false), ("rs", true), ("rn", true), ("ru", true)].map(|(name, it)| installation(name, it)))
    }

    fn states(assessment: &Assessment) -> Vec<String> {
        let explained = ExplainedInstallation::of(assessment, &existing(), &catalogue());
        explained.iter().map(|it| format!("{}: {}", it.registration, it.state.as_str())).collect()
    }

    /// spec 85 A.8: nobody must delete by hand what the other half of the cluster needs.
    #[test]
    fn installations_of_a_self_hosted_seed_are_told_from_those_of_its_shoot() {
        let (catalogue, backups, existing, name) =
            (catalogue(), BackupIndex::default(), existing(), NamespacedName::new("garden", "h"));
        let needs = ShootNeeds::of(&json!({ "spec": {
            "provider": { "type": "h", "workers": [{ "controlPlane": {} }] }, "extensions": [{ "type": "e" }],
        } }));
        let shoot = KnownShoot { name: &name, needs: &needs, is_deleting: false };
        let facts = SeedFacts::of(&json!({ "spec": {
            "provider": { "type": "s" }, "extensions": [{ "type": "f" }, { "type": "w" }],
        } }));
        let (demand, domains) = (ShootDemand::default(), Ok(Domains::default()));
        let seed = KnownSeed { name: "h", facts: &facts, demand: &demand, domains: &domains, own_shoot: Some(shoot) };

        let of_seed = Assessment::of_seed(seed, &backups, &catalogue, &existing);
        let expected = [
            "re: left to the Shoot",
            "rh: of the Shoot",
            "rn: not needed",
            "rs: installed",
            "ru: undecided",
            "rw: undecided",
        ];
        assert_eq!(states(&of_seed), expected);
        let of_shoot = Assessment::of_shoot(shoot, &backups, &catalogue, &existing);
        let expected = ["re: not installed", "rh: installed", "rn: of the Seed", "rs: of the Seed", "ru: of the Seed"];
        assert_eq!(states(&of_shoot), expected);
    }
}
