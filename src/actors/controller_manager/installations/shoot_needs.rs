//! What a Shoot needs by itself, as far as its own spec says it (spec 85 A.3.2). Pure. What depends on its Seed or on
//! registrations is added where it is asked.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    pair::{ExtensionKind, PairId, UNMANAGED},
    seed_facts::{content_hash, extension_types},
    spec_hash::spec_hash,
};
use crate::actors::controller_manager::{
    fields::{list, text},
    gardenlet_lifecycle::marks::is_self_hosted,
};

/// No DNS name is longer. Longer domains of Shoots belong to no default domain.
const LONGEST_DOMAIN: usize = 253;

/// Pairs of one Shoot that count, and types that it may disable. A garden has fewer registrations; only a server without
/// Gardener's validation accepts a Shoot with so many.
pub const MOST_NEEDS: usize = 1000;

/// What a Shoot needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShootNeeds {
    /// The pairs of rows 1 (for a self-hosted Shoot) and 3 to 8, and the enabled types of row 11, each once.
    pub pairs: Box<[PairId]>,
    /// The extension types that it disables.
    pub disabled_extensions: Box<[Box<str>]>,
    /// There are more needs or disabled types than [`MOST_NEEDS`]: those that are left out are not known (DEV-23).
    pub is_incomplete: bool,
    /// It has no workers.
    pub is_workerless: bool,
    /// The domain that may belong to a default domain (row 10); `None` if it cannot.
    pub domain: Option<Box<str>>,
    /// What counts of a self-hosted Shoot; `None` for others.
    pub own_cluster: Option<Box<OwnCluster>>,
}

/// What counts of a self-hosted Shoot as the cluster of its installations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnCluster {
    /// The hash of its `spec`.
    pub spec_hash: Box<str>,
    /// A hash of `spec`, labels and annotations.
    pub content: u64,
}

impl ShootNeeds {
    /// Reads a Shoot of any shape.
    pub fn of(shoot: &Value) -> Self {
        let is_self_hosted = is_self_hosted(shoot);
        let is_workerless = pools(shoot).next().is_none();
        let (extensions, disabled_extensions) = extension_types(shoot);
        let mut needs = FirstNeeds::default();
        if !is_workerless {
            needs.extend(of_provider(text(shoot, "/spec/provider/type")));
            let network = Some(text(shoot, "/spec/networking/type")).filter(|network| !network.is_empty());
            needs.extend(network.map(|network| ExtensionKind::Network.of_type(network)));
        }
        if is_self_hosted {
            needs.extend(backup(shoot));
        }
        needs.extend(dns_providers(shoot));
        needs.extend(of_pools(shoot));
        needs.extend(extensions.iter().map(|it| ExtensionKind::Extension.of_type(it)));
        let is_incomplete = needs.is_cut || disabled_extensions.len() > MOST_NEEDS;
        let own_cluster = || Box::new(OwnCluster { spec_hash: spec_hash(shoot), content: content_hash(shoot) });
        Self {
            pairs: needs.pairs.into_iter().collect(),
            disabled_extensions: disabled_extensions.into_iter().take(MOST_NEEDS).collect(),
            is_incomplete,
            is_workerless,
            domain: external_domain(shoot, is_self_hosted),
            own_cluster: is_self_hosted.then(own_cluster),
        }
    }

    /// Returns true if it runs its own control plane.
    pub fn is_self_hosted(&self) -> bool {
        self.own_cluster.is_some()
    }
}

/// Returns the pairs that the provider of a cluster serves.
pub(super) fn of_provider(provider: &str) -> impl Iterator<Item = PairId> + use<'_> {
    let kinds = [ExtensionKind::ControlPlane, ExtensionKind::Infrastructure, ExtensionKind::Worker];
    kinds.into_iter().map(move |kind| kind.of_type(provider))
}

/// The first needs of a Shoot, each once.
#[derive(Default)]
struct FirstNeeds {
    pairs: BTreeSet<PairId>,
    is_cut: bool,
}

impl Extend<PairId> for FirstNeeds {
    fn extend<T: IntoIterator<Item = PairId>>(&mut self, pairs: T) {
        for pair in pairs {
            if self.pairs.len() < MOST_NEEDS {
                self.pairs.insert(pair);
            } else {
                self.is_cut |= !self.pairs.contains(&pair);
            }
        }
    }
}

fn pools(shoot: &Value) -> impl Iterator<Item = &Value> {
    list(shoot, "/spec/provider/workers")
}

fn present<'a>(object: &'a Value, pointer: &str) -> Option<&'a Value> {
    object.pointer(pointer).filter(|value| !value.is_null())
}

/// Row 1, for a self-hosted Shoot. A Shoot that is self-hosted by its label alone has no pool with a control plane.
fn backup(shoot: &Value) -> Vec<PairId> {
    let control_plane = pools(shoot).find_map(|pool| present(pool, "/controlPlane"));
    let Some(backup) = control_plane.and_then(|it| present(it, "/backup")) else { return Vec::new() };
    let provider = text(backup, "/provider");
    vec![ExtensionKind::BackupBucket.of_type(provider), ExtensionKind::BackupEntry.of_type(provider)]
}

/// Rows 5 to 7.
fn of_pools(shoot: &Value) -> Vec<PairId> {
    let mut pairs = Vec::new();
    for pool in pools(shoot) {
        let image = present(pool, "/machine/image");
        pairs.extend(image.map(|image| ExtensionKind::OperatingSystemConfig.of_type(text(image, "/name"))));
        let runtimes = list(pool, "/cri/containerRuntimes");
        pairs.extend(runtimes.map(|runtime| ExtensionKind::ContainerRuntime.of_type(text(runtime, "/type"))));
    }
    if pools(shoot).any(|pool| present(pool, "/controlPlane/exposure/extension").is_some()) {
        let first = pools(shoot).find_map(|pool| present(pool, "/controlPlane"));
        let exposure = first.map(|it| text(it, "/exposure/extension/type")).filter(|it| !it.is_empty());
        let exposure = exposure.unwrap_or(text(shoot, "/spec/provider/type"));
        pairs.push(ExtensionKind::SelfHostedShootExposure.of_type(exposure));
    }
    pairs
}

/// Row 8.
fn dns_providers(shoot: &Value) -> impl Iterator<Item = PairId> + use<'_> {
    let primary = list(shoot, "/spec/dns/providers").filter(|it| it.get("primary") == Some(&Value::Bool(true)));
    let types = primary.map(|provider| text(provider, "/type")).filter(|it| !it.is_empty() && *it != UNMANAGED);
    types.map(|provider| ExtensionKind::DnsRecord.of_type(provider))
}

/// Returns the domain for row 10, rules 1 and 2.
fn external_domain(shoot: &Value, is_self_hosted: bool) -> Option<Box<str>> {
    let bindings = ["/spec/credentialsBindingName", "/spec/secretBindingName"];
    let is_managed = bindings.iter().any(|binding| !text(shoot, binding).is_empty());
    let domain = Some(text(shoot, "/spec/dns/domain")).filter(|domain| !domain.is_empty());
    let domain = domain.filter(|domain| domain.len() <= LONGEST_DOMAIN);
    domain.filter(|_| !is_self_hosted || is_managed).map(Box::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// spec 85 DEV-23
    #[test]
    fn needs_of_a_shoot_have_a_bound_and_say_so() {
        let of = |extensions: usize, is_disabled: bool| {
            let extension = |number: usize| json!({ "type": number.to_string(), "disabled": is_disabled });
            let extensions: Vec<_> = (0..extensions).map(extension).collect();
            let provider = json!({ "type": "p", "workers": [{}] });
            ShootNeeds::of(&json!({ "spec": { "extensions": extensions, "provider": provider } }))
        };

        assert!(!of(MOST_NEEDS - 3, false).is_incomplete && !of(MOST_NEEDS, true).is_incomplete);
        let many = of(2 * MOST_NEEDS, false);
        assert!(many.is_incomplete && many.pairs.len() == MOST_NEEDS);
        assert!(many.pairs.contains(&ExtensionKind::Worker.of_type("p")), "extensions come last");
        let disabling = of(2 * MOST_NEEDS, true);
        assert!(disabling.is_incomplete && disabling.disabled_extensions.len() == MOST_NEEDS);
    }
}
