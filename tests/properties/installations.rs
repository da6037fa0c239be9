//! Which extensions Seeds need: what is kept event by event equals what is computed at once from the end, in any order of
//! events; and no plan deletes what is wanted. Seed and Shoot of one cluster do not create the same, nor delete what is
//! required.

use std::{collections::BTreeMap, sync::Arc};

use cluster::object::NamespacedName;
use gardener_resource_manager::actors::controller_manager::installations::{
    assessment::{Assessment, KnownSeed, KnownShoot},
    backups::{BackupIndex, BucketFacts, EntryFacts},
    demand::DemandIndex,
    domains::Domains,
    installation::InstallationFacts,
    plan::{Act, Plan, Role, grouped},
    registration::{Catalogue, KnownRegistration, RegistrationFacts},
    seed_facts::{Domain, SeedFacts},
    shoot_needs::ShootNeeds,
    wanted::Cause,
};
use proptest::{
    collection::vec,
    option,
    prelude::*,
    sample::{select, subsequence},
};
use serde_json::{Value, json};

const TYPES: [&str; 3] = ["x", "y", "z"];
const SEEDS: [&str; 3] = ["s1", "s2", ""];
const DOMAINS: [&str; 6] = ["a.ex.com", "b.a.ex.com", "ex.com", "aex.com", "c.other.org", ""];
const DEFAULTS: [&str; 5] = ["ex.com", "a.ex.com", "com", "other.org", "ex.com"];

/// A change of one object; `None` is its deletion.
#[derive(Debug, Clone)]
enum Event {
    Shoot(usize, Option<Value>),
    Registration(usize, Option<Value>),
    Bucket(usize, Option<Value>),
    Entry(usize, Option<Value>),
}

/// What is kept event by event.
#[derive(Default)]
struct Kept {
    demand: DemandIndex,
    backups: BackupIndex,
    catalogue: Catalogue,
}

impl Kept {
    fn apply(&mut self, event: &Event) {
        match event {
            Event::Shoot(number, shoot) => {
                let name = NamespacedName::new("a", number.to_string());
                let seed = |shoot: &Value, pointer| {
                    shoot.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
                };
                let new = shoot.as_ref().map(|shoot| {
                    let seeds = [seed(shoot, "/spec/seedName"), seed(shoot, "/status/seedName")];
                    (seeds, Arc::new(ShootNeeds::of(shoot)))
                });
                self.demand.put(&name, new.as_ref().map(|(seeds, needs)| ([&*seeds[0], &*seeds[1]], needs)));
            }
            Event::Registration(number, registration) => {
                let new = registration
                    .as_ref()
                    .map(|it| KnownRegistration { version: 1, facts: Arc::new(RegistrationFacts::of(it)) });
                self.catalogue.put(&format!("r{number}"), new);
            }
            Event::Bucket(number, bucket) => {
                self.backups.put_bucket(&format!("b{number}"), bucket.as_ref().map(BucketFacts::of));
            }
            Event::Entry(number, entry) => {
                let name = NamespacedName::new("a", number.to_string());
                self.backups.put_entry(&name, entry.as_ref().map(EntryFacts::of));
            }
        }
    }

    fn assess(&self, seed: &str, facts: &SeedFacts, existing: &[(Box<str>, Arc<InstallationFacts>)]) -> Assessment {
        let domains = Ok(Domains { internal: facts.internal_domain.clone(), defaults: facts.default_domains.to_vec() });
        let existing = grouped(existing.iter().cloned());
        self.demand.with(seed, |demand| {
            let known = KnownSeed { name: seed, facts, demand, domains: &domains, own_shoot: None };
            Assessment::of_seed(known, &self.backups, &self.catalogue, &existing)
        })
    }
}

fn key(event: &Event) -> (u8, usize) {
    match event {
        Event::Shoot(number, _) => (0, *number),
        Event::Registration(number, _) => (1, *number),
        Event::Bucket(number, _) => (2, *number),
        Event::Entry(number, _) => (3, *number),
    }
}

fn shoot() -> impl Strategy<Value = Value> {
    let parts = (select(&SEEDS[..]), select(&SEEDS[..]), select(&DOMAINS[..]), any::<bool>(), any::<bool>());
    let extensions = vec((select(&TYPES[..]), any::<bool>()), 0..3);
    (parts, select(&TYPES[..]), extensions).prop_map(|((spec, status, domain, has_workers, is_own), of_type, extensions)| {
        let extensions: Vec<_> =
            extensions.iter().map(|(of_type, disabled)| json!({ "type": of_type, "disabled": disabled })).collect();
        let pool = json!({ "machine": { "image": { "name": of_type } }, "controlPlane": is_own.then(|| json!({})) });
        json!({
            "spec": {
                "seedName": spec, "provider": { "type": of_type, "workers": if has_workers { vec![pool] } else { vec![] } },
                "dns": { "domain": domain }, "extensions": extensions, "credentialsBindingName": "c",
            },
            "status": { "seedName": status },
        })
    })
}

fn registration() -> impl Strategy<Value = Value> {
    const KINDS: [&str; 7] =
        ["Extension", "Worker", "ControlPlane", "Infrastructure", "DNSRecord", "BackupBucket", "BackupEntry"];
    let resource = (select(&KINDS[..]), select(&TYPES[..]), subsequence(&["shoot", "seed"][..], 0..=2), any::<bool>());
    let policy = select(&["OnDemand", "Always", "AlwaysExceptNoShoots"][..]);
    let selector = option::of(select(&["a", "b"][..]));
    (vec(resource, 0..5), policy, selector).prop_map(|(resources, policy, selector)| {
        let resources: Vec<_> = resources
            .into_iter()
            .map(|(kind, of_type, clusters, workerless)| {
                json!({ "kind": kind, "type": of_type, "autoEnable": clusters, "workerlessSupported": workerless })
            })
            .collect();
        let selector = selector.map(|env| json!({ "matchLabels": { "env": env } }));
        json!({ "spec": { "resources": resources, "deployment": { "policy": policy, "seedSelector": selector } } })
    })
}

fn event() -> impl Strategy<Value = Event> {
    let bucket = (select(&TYPES[..]), select(&SEEDS[..]))
        .prop_map(|(of_type, seed)| json!({ "spec": { "provider": { "type": of_type }, "seedName": seed } }));
    let entry = (0..3_usize, select(&SEEDS[..]))
        .prop_map(|(bucket, seed)| json!({ "spec": { "bucketName": format!("b{bucket}"), "seedName": seed } }));
    prop_oneof![
        3 => (0..6_usize, option::of(shoot())).prop_map(|(number, it)| Event::Shoot(number, it)),
        2 => (0..5_usize, option::of(registration())).prop_map(|(number, it)| Event::Registration(number, it)),
        1 => (0..3_usize, option::of(bucket)).prop_map(|(number, it)| Event::Bucket(number, it)),
        1 => (0..3_usize, option::of(entry)).prop_map(|(number, it)| Event::Entry(number, it)),
    ]
}

fn seed() -> impl Strategy<Value = SeedFacts> {
    let defaults = subsequence(&DEFAULTS[..], 0..=5).prop_shuffle();
    (defaults, any::<bool>(), any::<bool>()).prop_map(|(defaults, has_backup, is_deleting)| {
        let defaults: Vec<_> = defaults.iter().map(|domain| json!({ "domain": domain, "type": "y" })).collect();
        let deletion = is_deleting.then_some("2026-08-21T12:00:00Z");
        SeedFacts::of(&json!({
            "metadata": { "labels": { "env": "a" }, "deletionTimestamp": deletion },
            "spec": { "provider": { "type": "x" }, "backup": has_backup.then(|| json!({ "provider": "z" })),
                "dns": { "defaults": defaults, "internal": { "type": "x", "domain": "i" } } },
        }))
    })
}

/// Returns the same event; the registration in it is in deletion if `deleted` has its number.
fn with_deletion(event: Event, deleted: &[usize]) -> Event {
    match event {
        Event::Registration(number, Some(mut registration)) if deleted.contains(&number) => {
            registration["metadata"]["deletionTimestamp"] = json!("2026-08-21T12:00:00Z");
            Event::Registration(number, Some(registration))
        }
        event => event,
    }
}

/// Returns an installation on the self-hosted Shoot `garden/h`.
fn of_own_shoot(
    number: usize,
    registration: usize,
    is_marked: bool,
    is_required: bool,
) -> (Box<str>, Arc<InstallationFacts>) {
    let labels = if is_marked { json!({ "seed-ref-name": "h" }) } else { json!({}) };
    let facts = InstallationFacts::of(&json!({
        "metadata": { "labels": labels },
        "spec": {
            "registrationRef": { "name": format!("r{registration}") }, "shootRef": { "namespace": "garden", "name": "h" },
        },
        "status": { "conditions": [{ "type": "Required", "status": if is_required { "True" } else { "False" } }] },
    }));
    (format!("i{number}").into(), Arc::new(facts))
}

/// Returns an installation of each registration on a Seed.
fn installed_everywhere(seed: &str, is_required: bool) -> Vec<(Box<str>, Arc<InstallationFacts>)> {
    let installation = |number: usize| {
        let registration = format!("r{number}");
        let facts = InstallationFacts::of(&json!({
            "spec": { "registrationRef": { "name": registration }, "seedRef": { "name": seed } },
            "status": { "conditions": [{ "type": "Required", "status": if is_required { "True" } else { "False" } }] },
        }));
        (format!("i{number}").into(), Arc::new(facts))
    };
    (0..5).map(installation).collect()
}

proptest! {
    /// spec 85 A.3, A.4, A.7, "better" 2
    #[test]
    fn installations_are_those_of_the_end_state_in_any_order_of_events(
        events in vec(event(), 0..40),
        seed in seed(),
        is_required in any::<bool>(),
    ) {
        let mut kept = Kept::default();
        let mut end = BTreeMap::new();
        for event in &events {
            kept.apply(event);
            end.insert(key(event), event.clone());
        }
        let mut at_once = Kept::default();
        end.values().rev().for_each(|event| at_once.apply(event));

        for name in ["s1", "s2"] {
            let existing = installed_everywhere(name, is_required);
            let assessment = kept.assess(name, &seed, &existing);
            prop_assert_eq!(&assessment, &at_once.assess(name, &seed, &existing), "{}", name);
            let grouped = grouped(existing);
            let plan = Plan::of(Role::Seed, &assessment.wanted, &grouped, assessment.certainty(), &kept.catalogue);
            for (registration, act) in &plan.acts {
                let is_wanted = assessment.wanted.registrations.contains_key(registration);
                let is_kept = !matches!(act, Act::Delete(_)) || !is_wanted;
                prop_assert!(is_kept, "{} is wanted and deleted", registration);
            }
            let is_unclear = !assessment.wanted.missing.is_empty();
            let deletions = plan.acts.iter().filter(|(_, act)| matches!(act, Act::Delete(_))).count();
            prop_assert!(!is_unclear || deletions == 0, "nothing is deleted on doubt");
        }
    }

    /// spec 85 A.8, B.1, DEV-18, DEV-19, trap T-1: Seed and Shoot see the same installations.
    #[test]
    fn installations_of_a_self_hosted_seed_are_created_by_one_and_kept_while_required(
        events in vec(event(), 0..40),
        deleted in subsequence((0..5_usize).collect::<Vec<_>>(), 0..=2),
        seed in seed(),
        own in shoot(),
        is_shoot_deleting in any::<bool>(),
        installed in vec((0..5_usize, any::<bool>(), any::<bool>()), 0..6),
    ) {
        let mut kept = Kept::default();
        for event in events {
            kept.apply(&with_deletion(event, &deleted));
        }
        let installation = |(number, (registration, is_marked, is_required))| {
            of_own_shoot(number, registration, is_marked, is_required)
        };
        let existing = grouped(installed.into_iter().enumerate().map(installation));
        let (name, needs) = (NamespacedName::new("garden", "h"), ShootNeeds::of(&own));
        let known = KnownShoot { name: &name, needs: &needs, is_deleting: is_shoot_deleting };
        let domains = Ok(Domains { internal: seed.internal_domain.clone(), defaults: seed.default_domains.to_vec() });
        let of_seed = kept.demand.with("s1", |demand| {
            let seed = KnownSeed { name: "s1", facts: &seed, demand, domains: &domains, own_shoot: Some(known) };
            Assessment::of_seed(seed, &kept.backups, &kept.catalogue, &existing)
        });
        let of_shoot = Assessment::of_shoot(known, &kept.backups, &kept.catalogue, &existing);
        let role = Role::SelfHostedSeed { seed: "s1", of_shoot: &of_seed.of_shoot };
        let plan_of = |role, assessment: &Assessment| {
            Plan::of(role, &assessment.wanted, &existing, assessment.certainty(), &kept.catalogue)
        };
        let (by_seed, by_shoot) = (plan_of(role, &of_seed), plan_of(Role::Shoot, &of_shoot));

        for (registration, _) in by_seed.acts.iter().filter(|(_, act)| *act == Act::Create) {
            let is_created = |(other, act): &(Box<str>, Act)| other == registration && *act == Act::Create;
            prop_assert!(!by_shoot.acts.iter().any(is_created), "both create {}", registration);
        }
        for (registration, act) in by_seed.acts.iter().chain(&by_shoot.acts) {
            let Act::Delete(name) = act else { continue };
            let facts = existing[registration].iter().find(|(other, _)| other == name).map(|(_, facts)| facts.clone());
            let facts = facts.expect("it exists");
            prop_assert!(!facts.is_required, "{} of {} is required", name, registration);
            let is_by_seed = by_seed.acts.contains(&(registration.clone(), act.clone()));
            prop_assert_eq!(is_by_seed, facts.is_marked(), "each deletes its own: {}", registration);
        }
        for (registration, act) in &by_seed.acts {
            let causes = of_shoot.wanted.registrations.get(registration);
            let is_wanted = causes.into_iter().flatten().any(|cause| *cause != Cause::RequiredInstallation);
            prop_assert!(!matches!(act, Act::Delete(_)) || !is_wanted, "its Shoot wants {}", registration);
        }
    }

    /// spec 85 A.3.2 row 10, scenario 16: the first default domain above the domain of a Shoot.
    #[test]
    fn default_domains_in_use_are_the_first_ones_of_the_shoots(
        domains in vec(select(&DOMAINS[..]), 0..6),
        defaults in subsequence(&DEFAULTS[..], 0..=5).prop_shuffle(),
    ) {
        let defaults: Vec<_> = defaults
            .iter()
            .enumerate()
            .map(|(number, domain)| Domain { domain: (*domain).into(), provider: number.to_string().into() })
            .collect();
        let first = |shoot: &&str| {
            defaults.iter().find(|default| shoot.ends_with(&format!(".{}", default.domain))).map(|it| it.provider.clone())
        };
        let mut expected: Vec<_> = domains.iter().filter_map(first).collect();
        expected.sort();
        expected.dedup();

        let mut kept = Kept::default();
        for (number, domain) in domains.iter().enumerate() {
            let shoot = json!({ "spec": { "seedName": "s1", "dns": { "domain": domain } } });
            kept.apply(&Event::Shoot(number, Some(shoot)));
        }
        let mut in_use: Vec<_> = kept.demand.with("s1", |demand| {
            demand.default_domains_in_use(&defaults).into_iter().map(|it| it.provider.clone()).collect()
        });
        in_use.sort();
        prop_assert_eq!(in_use, expected);
    }
}
