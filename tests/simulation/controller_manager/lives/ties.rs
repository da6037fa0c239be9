//! Who refers to what, as the objects of the simulator say: the rules of spec 81 §3 and G, from the referrers to what
//! they use.

use std::collections::BTreeSet;

use cluster::{Resource, object};
use gardener_resource_manager::api::kinds;
use serde_json::Value;

use super::common::{Common, has_finalizer, is_deleting, list, text};
use crate::controller_manager::{bindings, garden::resource, guards::finalizer_of, references::PROTECTION};

/// Kind as for kubectl, namespace and name of an object.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Place {
    pub(super) resource: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// A referrer by which an object keeps a finalizer.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Tie {
    pub(super) target: Place,
    pub(super) finalizer: &'static str,
    pub(super) referrer: Place,
    pub(super) uid: String,
    /// Plural names of the kinds whose lists show it.
    pub(super) shown_by: Vec<&'static str>,
}

/// The kinds of objects that references protect.
pub(super) const REFERENCED: [&Resource; 3] = [&kinds::SECRET, &kinds::CONFIG_MAP, &kinds::WORKLOAD_IDENTITY];
/// The kinds that references of ControllerDeployments protect (spec 81 F).
const OF_DEPLOYMENTS: [&Resource; 2] = [&kinds::SECRET, &kinds::CONFIG_MAP];
/// The kinds of credentials.
pub(super) const CREDENTIALS: [&Resource; 3] = [&kinds::SECRET, &kinds::INTERNAL_SECRET, &kinds::WORKLOAD_IDENTITY];

impl Place {
    pub(super) fn new(kind: &Resource, namespace: &str, name: &str) -> Self {
        Self { resource: resource(kind), namespace: namespace.into(), name: name.into() }
    }

    pub(super) fn of(kind: &Resource, object: &Value) -> Self {
        Self::new(kind, object::namespace(object), object::name(object))
    }
}

/// Collects the ties of one referrer.
struct Ties<'a> {
    all: &'a mut BTreeSet<Tie>,
    kind: &'a Resource,
    plural: &'static str,
    object: &'a Value,
}

impl Ties<'_> {
    fn to(&mut self, kind: &Resource, namespace: &str, name: &str, finalizer: &'static str) {
        self.shown_also_by(&[], kind, (namespace, name), finalizer);
    }

    fn shown_also_by(
        &mut self,
        others: &[&'static str],
        kind: &Resource,
        (namespace, name): (&str, &str),
        finalizer: &'static str,
    ) {
        if name.is_empty() {
            return;
        }
        self.all.insert(Tie {
            target: Place::new(kind, namespace, name),
            finalizer,
            referrer: Place::of(self.kind, self.object),
            uid: object::uid(self.object).to_owned(),
            shown_by: [&[self.plural][..], others].concat(),
        });
    }

    fn guard(&mut self, kind: &Resource, namespace: &str, name: &str) {
        self.to(kind, namespace, name, finalizer_of(kind));
    }

    /// References of a list of named resources to objects of these kinds.
    fn references(&mut self, namespace: &str, pointer: &str, kinds: &[&'static Resource]) {
        let object = self.object;
        for resource in list(object, pointer) {
            let field = |field: &str| text(resource, &format!("/resourceRef/{field}"));
            let is_meant =
                |kind: &&&Resource| kind.api_version() == field("apiVersion") && *kind.kind == *field("kind");
            if let Some(kind) = kinds.iter().find(is_meant) {
                self.to(kind, namespace, field("name"), PROTECTION);
            }
        }
    }
}

/// Returns all ties of the garden.
pub(super) fn ties(common: &Common) -> BTreeSet<Tie> {
    let mut all = BTreeSet::new();
    let shoots = common.all(&kinds::SHOOT);
    for object in &shoots {
        of_shoot(Ties { all: &mut all, kind: &kinds::SHOOT, plural: "shoots", object });
    }
    for object in &common.all(&kinds::NAMESPACED_CLOUD_PROFILE) {
        let kind = &kinds::NAMESPACED_CLOUD_PROFILE;
        let mut ties = Ties { all: &mut all, kind, plural: "namespacedcloudprofiles", object };
        ties.guard(&kinds::CLOUD_PROFILE, "", text(object, "/spec/parent/name"));
    }
    for object in &common.all(&kinds::CONTROLLER_REGISTRATION) {
        let kind = &kinds::CONTROLLER_REGISTRATION;
        let mut ties = Ties { all: &mut all, kind, plural: "controllerregistrations", object };
        for reference in list(object, "/spec/deployment/deploymentRefs") {
            ties.guard(&kinds::CONTROLLER_DEPLOYMENT, "", text(reference, "/name"));
        }
    }
    for object in &common.all(&kinds::CONTROLLER_DEPLOYMENT) {
        let kind = &kinds::CONTROLLER_DEPLOYMENT;
        if !is_deleting(object) || has_finalizer(object, finalizer_of(kind)) {
            let mut ties = Ties { all: &mut all, kind, plural: "controllerdeployments", object };
            ties.references("garden", "/resources", &OF_DEPLOYMENTS);
        }
    }
    for object in &common.all(&kinds::SEED) {
        if is_in_use(object) {
            let kind = &kinds::SEED;
            Ties { all: &mut all, kind, plural: "seeds", object }.references("garden", "/spec/resources", &REFERENCED);
        }
    }
    for (kind, finalizer, _, field) in bindings::KINDS {
        for object in &common.all(kind) {
            let plural = if *kind == kinds::SECRET_BINDING { "secretbindings" } else { "credentialsbindings" };
            of_binding(Ties { all: &mut all, kind, plural, object }, finalizer, field, &shoots);
        }
    }
    all
}

/// Returns true if a Seed or a Shoot is not being deleted, or gardenlet is not done with it.
pub(super) fn is_in_use(object: &Value) -> bool {
    !is_deleting(object) || has_finalizer(object, "gardener")
}

fn of_shoot(mut ties: Ties<'_>) {
    let shoot = ties.object;
    let own = object::namespace(shoot);
    ties.guard(&kinds::CLOUD_PROFILE, "", text(shoot, "/spec/cloudProfileName"));
    let profile = text(shoot, "/spec/cloudProfile/name");
    match text(shoot, "/spec/cloudProfile/kind") {
        "NamespacedCloudProfile" => ties.guard(&kinds::NAMESPACED_CLOUD_PROFILE, own, profile),
        "" | "CloudProfile" => ties.guard(&kinds::CLOUD_PROFILE, "", profile),
        _ => {}
    }
    ties.guard(&kinds::EXPOSURE_CLASS, "", text(shoot, "/spec/exposureClassName"));
    ties.guard(&kinds::SECRET_BINDING, own, text(shoot, "/spec/secretBindingName"));
    ties.guard(&kinds::CREDENTIALS_BINDING, own, text(shoot, "/spec/credentialsBindingName"));
    if is_in_use(shoot) {
        ties.references(own, "/spec/resources", &REFERENCED);
    }
}

fn of_binding(mut ties: Ties<'_>, finalizer: &'static str, field: &str, shoots: &[Value]) {
    let binding = ties.object;
    let own = object::namespace(binding);
    let or_own = |namespace: &'_ str| if namespace.is_empty() { own.to_owned() } else { namespace.to_owned() };
    for quota in list(binding, "/quotas") {
        ties.guard(&kinds::QUOTA, &or_own(text(quota, "/namespace")), text(quota, "/name"));
    }
    let is_used_by = |shoot: &Value| {
        object::namespace(shoot) == own && text(shoot, &format!("/spec/{field}")) == object::name(binding)
    };
    let is_used = shoots.iter().any(is_used_by);
    let counts = !is_deleting(binding) || (has_finalizer(binding, "gardener") && is_used);
    if !counts {
        return;
    }
    let Some((kind, namespace, name)) = credentials_of(binding) else { return };
    let by_shoots: &[&'static str] = if is_deleting(binding) { &["shoots"] } else { &[] };
    ties.shown_also_by(by_shoots, kind, (&or_own(namespace), name), finalizer);
}

/// Returns kind, namespace and name of what a binding refers to; an empty namespace is that of the binding.
pub(super) fn credentials_of(binding: &Value) -> Option<(&'static Resource, &str, &str)> {
    if !binding["secretRef"].is_null() {
        let field = |field: &str| text(binding, &format!("/secretRef/{field}"));
        return Some((CREDENTIALS[0], field("namespace"), field("name")));
    }
    let field = |field: &str| text(binding, &format!("/credentialsRef/{field}"));
    let is_meant = |kind: &&Resource| kind.api_version() == field("apiVersion") && *kind.kind == *field("kind");
    let kind = CREDENTIALS.into_iter().find(is_meant)?;
    Some((kind, field("namespace"), field("name")))
}

/// Returns the finalizers that ties keep on objects of a kind.
pub(super) fn finalizers_of(kind: &Resource) -> Vec<&'static str> {
    let mut finalizers = Vec::new();
    if REFERENCED.contains(&kind) {
        finalizers.push(PROTECTION);
    }
    for (binding, finalizer, ..) in bindings::KINDS {
        let may_have =
            if *binding == kinds::SECRET_BINDING { *kind == kinds::SECRET } else { CREDENTIALS.contains(&kind) };
        if may_have {
            finalizers.push(finalizer);
        }
    }
    finalizers
}
