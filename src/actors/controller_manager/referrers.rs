//! Who refers to an object: the rules of guards, reference protection and bindings in one table, for questions about one
//! object. Pure. Controllers ask the same rules, each for its own kinds. Beside them, what belongs to a Seed.

use cluster::{
    Resource,
    object::{self, NamespacedName},
};
use serde_json::Value;

use super::{
    bastion::rules::Bastion,
    bindings::{
        binding::{Binding, BindingKind},
        credentials::{CredentialsKind, CredentialsRef},
    },
    cloud_profile, controller_deployment, credentials_binding, exposure_class,
    fields::text,
    guards::GuardDefinition,
    installations, namespaced_cloud_profile, quota,
    references::{
        extraction::ShootReferences,
        object::{PROTECTION, ReferencedKind, ReferencedObject},
        referrer::{REFERRER_KINDS, Referrer, ReferrerKind},
    },
    secret_binding,
    seed::{backup_buckets, extensions},
};
use crate::api::kinds;

/// The guards of all kinds.
pub(super) static GUARDS: [&GuardDefinition; 7] = [
    &cloud_profile::GUARD,
    &namespaced_cloud_profile::GUARD,
    &controller_deployment::GUARD,
    &secret_binding::GUARD,
    &credentials_binding::GUARD,
    &quota::GUARD,
    &exposure_class::GUARD,
];

static SEED: Resource = kinds::SEED;

/// A kind whose objects belong to Seeds.
struct OfSeed {
    kind: Resource,
    /// Returns the names of the Seeds to which an object belongs; empty names are none.
    seeds: fn(&Value) -> Vec<String>,
    /// The finalizer that they keep on the Seed.
    finalizer: Option<&'static str>,
}

/// ControllerInstallations keep a Seed (spec 85 D). The others show who would lose it.
static OF_SEEDS: [OfSeed; 6] = [
    OfSeed {
        kind: kinds::SHOOT,
        seeds: |shoot| ["/spec/seedName", "/status/seedName"].map(|field| text(shoot, field).to_owned()).into(),
        finalizer: None,
    },
    OfSeed {
        kind: kinds::BACKUP_BUCKET,
        seeds: |bucket| vec![(backup_buckets::CHECK.seed)(bucket).to_owned()],
        finalizer: None,
    },
    OfSeed {
        kind: kinds::BACKUP_ENTRY,
        seeds: |entry| vec![text(entry, "/spec/seedName").to_owned()],
        finalizer: None,
    },
    OfSeed {
        kind: kinds::CONTROLLER_INSTALLATION,
        seeds: |installation| vec![(extensions::CHECK.seed)(installation).to_owned()],
        finalizer: Some(installations::FINALIZER),
    },
    OfSeed { kind: kinds::BASTION, seeds: |bastion| Bastion::of(bastion).seed.into_iter().collect(), finalizer: None },
    OfSeed { kind: kinds::MANAGED_SEED, seeds: of_managed_seed, finalizer: None },
];

/// A ManagedSeed is that of the Seed with its name.
fn of_managed_seed(managed_seed: &Value) -> Vec<String> {
    let is_meant = object::namespace(managed_seed) == "garden";
    is_meant.then(|| object::name(managed_seed).to_owned()).into_iter().collect()
}

/// A list whose objects may refer to one object.
pub struct ReferrerList {
    /// The kind to list.
    pub kind: &'static Resource,
    /// The namespace to list; `None` for all, and for kinds without namespaces.
    pub namespace: Option<String>,
    /// The finalizer that the referrers keep on the object; `None` if they keep none.
    pub finalizer: Option<&'static str>,
    rule: Rule,
}

/// Returns whether an object refers to the one in question, and if it does, whether it counts for the finalizer.
type Rule = Box<dyn Fn(&Value) -> Option<bool>>;

/// How an object uses another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// It refers to it.
    InUse,
    /// It refers to it, counts, and is being deleted.
    InDeletion,
    /// It refers to it, is being deleted, and does not count any more.
    Finished,
}

/// Returns the kinds whose referrers are known, each once.
pub fn kinds() -> Vec<&'static Resource> {
    let all = GUARDS.iter().map(|guard| &guard.kind);
    let all = all.chain(ReferencedKind::ALL.map(ReferencedKind::resource));
    let all = all.chain(CredentialsKind::ALL.map(CredentialsKind::resource)).chain([&SEED]);
    let mut kinds: Vec<&Resource> = Vec::new();
    for kind in all {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

/// Returns what to list for the referrers of an object; nothing for other kinds than [`kinds`].
pub fn lists(kind: &Resource, object: &NamespacedName) -> Vec<ReferrerList> {
    let mut lists = guards(kind, object);
    if let Some(kind) = ReferencedKind::ALL.into_iter().find(|known| known.resource() == kind) {
        lists.extend(references(&ReferencedObject { kind, name: object.clone() }));
    }
    if let Some(kind) = CredentialsKind::ALL.into_iter().find(|known| known.resource() == kind) {
        lists.extend(bindings(&CredentialsRef { kind, name: object.clone() }));
    }
    if *kind == SEED {
        lists.extend(OF_SEEDS.iter().map(|of_seed| {
            let name = object.name.clone();
            let refers = move |other: &Value| (of_seed.seeds)(other).contains(&name).then_some(true);
            ReferrerList { kind: &of_seed.kind, namespace: None, finalizer: of_seed.finalizer, rule: Box::new(refers) }
        }));
    }
    lists
}

/// Each referrer counts as long as it exists (spec 81 §3.1 G-4).
fn guards(kind: &Resource, object: &NamespacedName) -> Vec<ReferrerList> {
    let of_guard = |guard: &'static GuardDefinition| {
        guard.users.iter().map(move |user| {
            let target = object.clone();
            let refers = move |other: &Value| (user.targets)(other).contains(&target).then_some(true);
            ReferrerList {
                kind: &user.kind,
                namespace: user.scope.namespace(object).filter(|namespace| !namespace.is_empty()),
                finalizer: Some(guard.finalizer),
                rule: Box::new(refers),
            }
        })
    };
    GUARDS.into_iter().filter(|guard| guard.kind == *kind).flat_map(of_guard).collect()
}

/// A referrer counts while it is in use (spec 81 §3.2 G-10).
fn references(object: &ReferencedObject) -> Vec<ReferrerList> {
    let referring = REFERRER_KINDS.iter().filter(|kind| kind.refers_into(&object.name.namespace));
    let list = |kind: &'static ReferrerKind| {
        let target = object.clone();
        let refers = move |other: &Value| {
            let referrer = Referrer::of(kind, other, ShootReferences { audit_policies: true });
            referrer.references.contains(&target).then_some(referrer.state.is_in_use)
        };
        ReferrerList {
            kind: &kind.kind,
            namespace: kind.list_scope(&object.name.namespace),
            finalizer: Some(PROTECTION),
            rule: Box::new(refers),
        }
    };
    referring.map(list).collect()
}

/// A binding counts until it is released (spec 81 G.5).
fn bindings(credentials: &CredentialsRef) -> Vec<ReferrerList> {
    let list = |kind: BindingKind| {
        let target = credentials.clone();
        let refers = move |other: &Value| {
            let binding = Binding::of(kind, other);
            (binding.credentials.as_ref() == Ok(&target)).then(|| binding.exists())
        };
        let finalizer = Some(kind.finalizer());
        ReferrerList { kind: kind.resource(), namespace: None, finalizer, rule: Box::new(refers) }
    };
    BindingKind::ALL.into_iter().filter(|kind| kind.may_have(credentials.kind)).map(list).collect()
}

impl ReferrerList {
    /// Returns how a listed object uses the object in question; `None` if it does not refer to it.
    pub fn judge(&self, listed: &Value) -> Option<Use> {
        let counts = (self.rule)(listed)?;
        Some(match (counts, object::deletion_timestamp(listed).is_some()) {
            (true, false) => Use::InUse,
            (true, true) => Use::InDeletion,
            (false, _) => Use::Finished,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;
    use crate::actors::controller_manager::controllers;

    fn shown(lists: &[ReferrerList]) -> Vec<String> {
        let list = |list: &ReferrerList| {
            let (namespace, finalizer) = (list.namespace.as_deref().unwrap_or("*"), list.finalizer.unwrap_or("-"));
            format!("{} {namespace} {finalizer}", list.kind.kind)
        };
        lists.iter().map(list).collect()
    }

    fn of(kind: &Resource, namespace: &str) -> Vec<ReferrerList> {
        lists(kind, &NamespacedName::new(namespace, "o"))
    }

    /// spec 81 §3.1, §3.2, G.1
    #[test]
    fn referrers_of_a_kind_are_listed_where_they_can_be() {
        const REFERENCE: &str = "gardener.cloud/reference-protection";
        let bindings =
            ["SecretBinding * gardener.cloud/secretbinding", "CredentialsBinding * gardener.cloud/credentialsbinding"];
        let in_garden = |kinds: &[&str]| kinds.iter().map(|kind| format!("{kind} {REFERENCE}")).collect::<Vec<_>>();
        let of_garden = in_garden(&["ControllerDeployment *", "Seed *", "Shoot garden"]);
        let of_project = in_garden(&["Shoot garden-dev"]);
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let cases = [
            (&kinds::SECRET, "garden", [of_garden.clone(), texts(&bindings)].concat()),
            (&kinds::SECRET, "garden-dev", [of_project.clone(), texts(&bindings)].concat()),
            (&kinds::CONFIG_MAP, "garden-dev", of_project.clone()),
            (&kinds::WORKLOAD_IDENTITY, "garden-dev", [of_project, texts(&bindings[1..])].concat()),
            (&kinds::INTERNAL_SECRET, "garden-dev", texts(&bindings[1..])),
            (&kinds::CLOUD_PROFILE, "", texts(&["NamespacedCloudProfile * gardener", "Shoot * gardener"])),
            (&kinds::NAMESPACED_CLOUD_PROFILE, "a", texts(&["Shoot a gardener"])),
            (&kinds::SECRET_BINDING, "a", texts(&["Shoot a gardener"])),
            (&kinds::CREDENTIALS_BINDING, "a", texts(&["Shoot a gardener"])),
            (&kinds::QUOTA, "a", texts(&["SecretBinding * gardener", "CredentialsBinding * gardener"])),
            (&kinds::EXPOSURE_CLASS, "", texts(&["Shoot * gardener"])),
            (
                &kinds::CONTROLLER_DEPLOYMENT,
                "",
                texts(&["ControllerRegistration * core.gardener.cloud/controllerdeployment"]),
            ),
        ];

        for (kind, namespace, expected) in cases {
            assert_eq!(shown(&of(kind, namespace)), expected, "{kind} {namespace}");
        }
        assert!(of(&kinds::POD, "a").is_empty());
    }

    #[test]
    fn referrers_are_known_of_each_kind_that_a_controller_keeps() {
        let kinds = kinds();

        assert_eq!(kinds.len(), kinds.iter().collect::<BTreeSet<_>>().len());
        for kind in &kinds {
            assert!(!of(kind, "garden").is_empty(), "{kind}");
        }
        let controllers: BTreeSet<&str> = controllers::names().collect();
        assert!(GUARDS.iter().all(|guard| controllers.contains(guard.controller)));
        let guards = controllers.iter().filter(|name| GUARDS.iter().any(|guard| guard.controller == **name)).count();
        assert_eq!(guards, GUARDS.len());
    }

    /// spec 81 §3.1 G-4, §3.2 G-10, G.5
    #[test]
    fn referrer_in_deletion_counts_as_its_controllers_count_it() {
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "name": "o" });
        let shoot = json!({ "spec": { "resources": [{ "name": "n", "resourceRef": secret }] } });
        let binding = json!({ "secretRef": { "name": "o" } });
        let profile = json!({ "spec": { "cloudProfileName": "o" } });
        let judged = |kind: &Resource, referring: &Resource, fields: &Value, finalizers: Option<&[&str]>| {
            let mut referrer = fields.clone();
            referrer["metadata"] = json!({ "namespace": "a", "name": "r", "finalizers": finalizers });
            if finalizers.is_some() {
                referrer["metadata"]["deletionTimestamp"] = json!("2030-01-01T00:00:00Z");
            }
            let namespace = if kind.namespaced { "a" } else { "" };
            let lists = lists(kind, &NamespacedName::new(namespace, "o"));
            lists.iter().find(|list| list.kind == referring).and_then(|list| list.judge(&referrer))
        };
        let gardener: &[&str] = &["gardener"];
        let cases = [
            (&kinds::SECRET, &kinds::SHOOT, &shoot, None, Use::InUse),
            (&kinds::SECRET, &kinds::SHOOT, &shoot, Some(gardener), Use::InDeletion),
            (&kinds::SECRET, &kinds::SHOOT, &shoot, Some(&["x"][..]), Use::Finished),
            (&kinds::SECRET, &kinds::SECRET_BINDING, &binding, None, Use::InUse),
            (&kinds::SECRET, &kinds::SECRET_BINDING, &binding, Some(gardener), Use::InDeletion),
            (&kinds::SECRET, &kinds::SECRET_BINDING, &binding, Some(&[]), Use::Finished),
            (&kinds::CLOUD_PROFILE, &kinds::SHOOT, &profile, Some(&[]), Use::InDeletion),
        ];

        for (kind, referring, fields, finalizers, expected) in cases {
            assert_eq!(judged(kind, referring, fields, finalizers), Some(expected), "{referring} {finalizers:?}");
        }
        assert_eq!(judged(&kinds::SECRET, &kinds::SHOOT, &profile, None), None);
    }

    #[test]
    fn seed_shows_what_belongs_to_it() {
        let spec = json!({ "spec": { "seedName": "o" } });
        let cases = [
            (&kinds::SHOOT, spec.clone()),
            (&kinds::SHOOT, json!({ "spec": { "seedName": "x" }, "status": { "seedName": "o" } })),
            (&kinds::BACKUP_BUCKET, spec.clone()),
            (&kinds::BACKUP_ENTRY, spec.clone()),
            (&kinds::CONTROLLER_INSTALLATION, json!({ "spec": { "seedRef": { "name": "o" } } })),
            (&kinds::BASTION, spec),
            (&kinds::MANAGED_SEED, json!({ "metadata": { "namespace": "garden", "name": "o" } })),
        ];
        let lists = of(&kinds::SEED, "");

        for (kind, object) in cases {
            let list = lists.iter().find(|list| list.kind == kind).expect("the kind is listed");
            assert_eq!(list.judge(&object), Some(Use::InUse), "{kind} {object}");
            assert_eq!(list.judge(&json!({})), None, "{kind}");
            let keeps = kind == &kinds::CONTROLLER_INSTALLATION;
            assert_eq!(list.finalizer, keeps.then_some("core.gardener.cloud/controllerregistration"), "{kind}");
        }
    }
}
