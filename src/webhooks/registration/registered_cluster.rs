//! The entries of each of Gardener's deployments (spec 50 §3.5), and of a cluster without Gardener.

use std::collections::BTreeSet;

use super::{Client, Mode, RegistrationEntry};

/// A deployment of the program: by Gardener, or in a cluster of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegisteredCluster {
    /// In a seed, for the seed itself.
    SeedRuntime,
    /// In the runtime cluster of a garden, for itself.
    GardenRuntime,
    /// In namespace `garden` of a self-hosted shoot.
    SelfHostedRuntime,
    /// In a seed, for one of its shoots.
    HostedShoot,
    /// In namespace `kube-system` of a self-hosted shoot.
    SelfHostedShoot,
    /// In a seed, for a shoot without workers.
    WorkerlessShoot,
    /// In the runtime cluster of a garden, for the virtual garden.
    VirtualGarden,
    /// In a cluster without Gardener, for itself (spec 71 §12.2).
    Plain,
}

/// Settings that also decide which entries exist. By default all are off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Circumstances {
    /// Feature gate `DefaultSeccompProfile`; runtime clusters only.
    pub default_seccomp_profile: bool,
    /// The runtime cluster of the garden is a self-hosted shoot.
    pub garden_is_self_hosted: bool,
    /// The control plane node of the self-hosted shoot is being bootstrapped (also spec 71 §1).
    pub bootstrapping: bool,
    /// The scheduling profile of the shoot is not `balanced`.
    pub bin_packing: bool,
    /// Topology-aware routing is on, and Kubernetes is older than 1.32.
    pub topology_aware_routing: bool,
    /// Feature gate `MatchLabelKeysInPodTopologySpread` of the shoot is off.
    pub match_label_keys_off: bool,
}

impl RegisteredCluster {
    /// All deployments: name in commands, value, description.
    pub const NAMED: [(&str, Self, &str); 8] = [
        ("seed", Self::SeedRuntime, "A seed, for itself"),
        ("garden", Self::GardenRuntime, "The runtime cluster of a garden, for itself"),
        ("self-hosted-runtime", Self::SelfHostedRuntime, "Namespace garden of a self-hosted shoot"),
        ("shoot", Self::HostedShoot, "A seed, for one of its shoots"),
        ("self-hosted-shoot", Self::SelfHostedShoot, "Namespace kube-system of a self-hosted shoot"),
        ("workerless-shoot", Self::WorkerlessShoot, "A seed, for a shoot without workers"),
        ("virtual-garden", Self::VirtualGarden, "The runtime cluster of a garden, for the virtual garden"),
        ("cluster", Self::Plain, "A cluster without Gardener, for itself"),
    ];

    /// Returns the role of the managed cluster.
    pub fn mode(self) -> Mode {
        match self {
            Self::SeedRuntime | Self::GardenRuntime | Self::SelfHostedRuntime => Mode::Runtime,
            Self::HostedShoot | Self::SelfHostedShoot | Self::WorkerlessShoot | Self::VirtualGarden => Mode::Shoot,
            Self::Plain => Mode::Plain,
        }
    }

    /// Returns how the API server reaches the program (spec 50 §3.2).
    pub fn client(self) -> Client {
        match self {
            Self::SeedRuntime | Self::GardenRuntime | Self::SelfHostedRuntime | Self::SelfHostedShoot | Self::Plain => {
                Client::Service
            }
            Self::HostedShoot | Self::WorkerlessShoot | Self::VirtualGarden => Client::Url,
        }
    }

    /// Tells whether its API server asks the authorizer of node agents (spec 71 §9). The one of a workerless shoot does,
    /// although the webhook is off there: no request matches.
    pub fn has_authorizer(self) -> bool {
        matches!(self, Self::HostedShoot | Self::SelfHostedShoot | Self::WorkerlessShoot)
    }

    /// Tells whether its API server authorizes kubelets by their nodes.
    pub(super) fn has_kubelets(self) -> bool {
        self != Self::WorkerlessShoot
    }

    /// Returns the entries of its registration. A cluster without Gardener can have each of them.
    pub fn entries(self, circumstances: &Circumstances) -> BTreeSet<RegistrationEntry> {
        RegistrationEntry::ALL.into_iter().filter(|entry| self.has(*entry, circumstances)).collect()
    }

    fn has(self, entry: RegistrationEntry, now: &Circumstances) -> bool {
        if self == Self::Plain {
            return entry != RegistrationEntry::LoadBalancingOfVirtualGarden;
        }
        let (seed, garden) = (self == Self::SeedRuntime, self == Self::GardenRuntime);
        let (own_runtime, hosted) = (self == Self::SelfHostedRuntime, self == Self::HostedShoot);
        let runtime = seed || garden || own_runtime;
        let own_shoot = self == Self::SelfHostedShoot;
        let shoot = hosted || own_shoot;
        match entry {
            // Pods without a static token need a projected one (spec 31 T12).
            RegistrationEntry::ProjectedTokenMount | RegistrationEntry::TokenInvalidator => runtime || shoot,
            RegistrationEntry::HighAvailabilityConfig => {
                seed || garden || hosted || ((own_runtime || own_shoot) && !now.bootstrapping)
            }
            RegistrationEntry::PodSchedulerName => shoot && now.bin_packing,
            RegistrationEntry::SeccompProfile => runtime && now.default_seccomp_profile,
            RegistrationEntry::KubernetesServiceHost => hosted,
            RegistrationEntry::LoadBalancing => runtime,
            RegistrationEntry::LoadBalancingOfVirtualGarden => garden,
            RegistrationEntry::SystemComponentsConfig => shoot || own_runtime || (garden && now.garden_is_self_hosted),
            RegistrationEntry::EndpointSliceHints => (seed || garden) && now.topology_aware_routing,
            RegistrationEntry::PodTopologySpreadConstraints => shoot && now.match_label_keys_off,
            RegistrationEntry::VpaInPlaceUpdates => seed || garden || hosted,
        }
    }
}
