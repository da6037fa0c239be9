//! The entries of the registration: spec 50 §1, §3.3, §3.4.

use serde::Serialize;

use super::Mode;
use crate::{
    api::{
        meta::selector::Selector,
        resources::keys::{PURPOSE, PURPOSE_TOKEN_INVALIDATOR},
    },
    webhooks::mutating::{
        endpoint_slice_hints, high_availability, load_balancing, scheduler_name, seccomp, service_host,
        system_components, token_invalidator, token_mount, topology_spread, vpa_in_place,
    },
};

/// Namespaces of a shoot that Gardener manages.
const SYSTEM_NAMESPACES: [&str; 2] = ["kube-system", "kubernetes-dashboard"];

const NAME: &str = "kubernetes.io/metadata.name";
const ROLE: &str = "gardener.cloud/role";
const PURPOSE_OF_NAMESPACE: &str = "gardener.cloud/purpose";
const MANAGED_BY: (&str, &str) = ("resources.gardener.cloud/managed-by", "gardener");
const INJECT: &str = "apiserver-proxy.networking.gardener.cloud/inject";

const V1: &[&str] = &["v1"];
pub(super) const WRITES: &[&str] = &["CREATE", "UPDATE"];
const PODS: [Rule<'static>; 1] = [Rule { groups: &[""], versions: V1, resources: &["pods"], operations: &["CREATE"] }];
const WORKLOADS: [Rule<'static>; 2] = [
    Rule { groups: &["apps"], versions: V1, resources: &["deployments", "statefulsets"], operations: WRITES },
    Rule { groups: &["autoscaling"], versions: &["v2"], resources: &["horizontalpodautoscalers"], operations: WRITES },
];
const SLICES: [Rule<'static>; 1] =
    [Rule { groups: &["discovery.k8s.io"], versions: V1, resources: &["endpointslices"], operations: WRITES }];
const AUTOSCALERS: [Rule<'static>; 1] = [Rule {
    groups: &["autoscaling.k8s.io"],
    versions: V1,
    resources: &["verticalpodautoscalers"],
    operations: WRITES,
}];
const SECRETS: [Rule<'static>; 1] = [Rule { groups: &[""], versions: V1, resources: &["secrets"], operations: WRITES }];

/// An entry. API servers call the entries in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RegistrationEntry {
    /// `projected-token-mount`
    ProjectedTokenMount,
    /// `high-availability-config`
    HighAvailabilityConfig,
    /// `pod-scheduler-name`
    PodSchedulerName,
    /// `seccomp-profile`
    SeccompProfile,
    /// `kubernetes-service-host`
    KubernetesServiceHost,
    /// `pod-kube-apiserver-load-balancing`
    LoadBalancing,
    /// `pod-virtual-garden-kube-apiserver-load-balancing`, with the same path
    LoadBalancingOfVirtualGarden,
    /// `system-components-config`
    SystemComponentsConfig,
    /// `endpoint-slice-hints`
    EndpointSliceHints,
    /// `pod-topology-spread-constraints`
    PodTopologySpreadConstraints,
    /// `vpa-in-place-updates`
    VpaInPlaceUpdates,
    /// `token-invalidator`
    TokenInvalidator,
}

#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) name: &'a str,
    pub(super) path: &'static str,
    pub(super) rules: &'a [Rule<'a>],
    pub(super) match_policy: &'static str,
    pub(super) failure_policy: &'static str,
    pub(super) timeout_seconds: u32,
    /// Whether to write `reinvocationPolicy: Never`, although it is the default.
    pub(super) never_reinvoked: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct Rule<'a> {
    #[serde(rename = "apiGroups")]
    pub(super) groups: &'a [&'a str],
    #[serde(rename = "apiVersions")]
    pub(super) versions: &'a [&'a str],
    pub(super) resources: &'a [&'a str],
    pub(super) operations: &'a [&'a str],
}

impl RegistrationEntry {
    /// All entries, in order.
    pub const ALL: [Self; 12] = [
        Self::ProjectedTokenMount,
        Self::HighAvailabilityConfig,
        Self::PodSchedulerName,
        Self::SeccompProfile,
        Self::KubernetesServiceHost,
        Self::LoadBalancing,
        Self::LoadBalancingOfVirtualGarden,
        Self::SystemComponentsConfig,
        Self::EndpointSliceHints,
        Self::PodTopologySpreadConstraints,
        Self::VpaInPlaceUpdates,
        Self::TokenInvalidator,
    ];

    /// Returns the name of the entry, which users see when a request is denied.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the path of the webhook.
    pub fn path(self) -> &'static str {
        self.row().path
    }

    /// Spec 50 §1; spec 31 §5.1.
    #[rustfmt::skip]
    pub(super) fn row(self) -> Row<'static> {
        match self {
            Self::ProjectedTokenMount => Row::pods("projected-token-mount.resources.gardener.cloud", token_mount::PATH),
            Self::HighAvailabilityConfig => Row {
                rules: &WORKLOADS, match_policy: "Equivalent",
                ..Row::pods("high-availability-config.resources.gardener.cloud", high_availability::PATH)
            },
            Self::PodSchedulerName => Row {
                failure_policy: "Ignore",
                ..Row::pods("pod-scheduler-name.resources.gardener.cloud", scheduler_name::PATH)
            },
            Self::SeccompProfile => Row::pods("seccomp-profile.resources.gardener.cloud", seccomp::PATH),
            Self::KubernetesServiceHost => Row {
                failure_policy: "Ignore", timeout_seconds: 2, never_reinvoked: true,
                ..Row::pods("kubernetes-service-host.resources.gardener.cloud", service_host::PATH)
            },
            Self::LoadBalancing => {
                Row::pods("pod-kube-apiserver-load-balancing.resources.gardener.cloud", load_balancing::PATH)
            }
            Self::LoadBalancingOfVirtualGarden => {
                Row::pods("pod-virtual-garden-kube-apiserver-load-balancing.resources.gardener.cloud", load_balancing::PATH)
            }
            Self::SystemComponentsConfig => {
                Row::pods("system-components-config.resources.gardener.cloud", system_components::PATH)
            }
            Self::EndpointSliceHints => Row {
                rules: &SLICES, match_policy: "Equivalent",
                ..Row::pods("endpoint-slice-hints.resources.gardener.cloud", endpoint_slice_hints::PATH)
            },
            Self::PodTopologySpreadConstraints => {
                Row::pods("pod-topology-spread-constraints.resources.gardener.cloud", topology_spread::PATH)
            }
            Self::VpaInPlaceUpdates => Row {
                rules: &AUTOSCALERS, match_policy: "Equivalent", never_reinvoked: true,
                ..Row::pods("vpa-in-place-updates.resources.gardener.cloud", vpa_in_place::PATH)
            },
            Self::TokenInvalidator => Row {
                rules: &SECRETS, never_reinvoked: true,
                ..Row::pods("token-invalidator.resources.gardener.cloud", token_invalidator::PATH)
            },
        }
    }

    /// Returns the namespace selector (spec 50 §3.4; spec 31 §5.1).
    pub(super) fn namespaces(self, mode: Mode) -> Selector {
        let base = base(mode);
        match self {
            Self::ProjectedTokenMount
            | Self::SeccompProfile
            | Self::EndpointSliceHints
            | Self::PodTopologySpreadConstraints
            | Self::VpaInPlaceUpdates => base,
            Self::HighAvailabilityConfig => {
                base.label("high-availability-config.resources.gardener.cloud/consider", "true")
            }
            Self::PodSchedulerName => Selector::default(),
            Self::KubernetesServiceHost => Selector::default().not_in(INJECT, &["disable"]),
            Self::LoadBalancing => Selector::default().label(ROLE, "shoot"),
            Self::LoadBalancingOfVirtualGarden => Selector::default().label(NAME, "garden"),
            Self::SystemComponentsConfig => match mode {
                Mode::Runtime | Mode::Plain => {
                    base.label("system-components-config.resources.gardener.cloud/consider", "true")
                }
                Mode::Shoot => base,
            },
            Self::TokenInvalidator => match mode {
                Mode::Runtime => Selector::default().not_in(PURPOSE_OF_NAMESPACE, &SYSTEM_NAMESPACES),
                Mode::Shoot => Selector::default().one_of(PURPOSE_OF_NAMESPACE, &SYSTEM_NAMESPACES),
                Mode::Plain => base,
            },
        }
    }

    /// Returns the object selector (spec 50 §3.4). It excludes the program itself (label `app`), which has to start.
    pub(super) fn objects(self, mode: Mode, app: &str) -> Selector {
        let all = Selector::default();
        let managed = || match mode {
            Mode::Runtime | Mode::Plain => Selector::default(),
            Mode::Shoot => Selector::default().label(MANAGED_BY.0, MANAGED_BY.1),
        };
        match self {
            Self::ProjectedTokenMount => {
                not_static(all.absent("projected-token-mount.resources.gardener.cloud/skip").not_in("app", &[app]))
            }
            Self::HighAvailabilityConfig => managed().absent("high-availability-config.resources.gardener.cloud/skip"),
            Self::PodSchedulerName | Self::LoadBalancing => not_static(all),
            Self::SeccompProfile => {
                not_static(all.absent("seccompprofile.resources.gardener.cloud/skip").not_in("app", &[app]))
            }
            Self::KubernetesServiceHost => not_static(all.not_in(INJECT, &["disable"])),
            // The instance for the runtime cluster has no prefix and runs in the namespace that this entry selects.
            Self::LoadBalancingOfVirtualGarden => not_static(all.not_in("app", &["gardener-resource-manager"])),
            Self::SystemComponentsConfig => {
                not_static(managed().absent("system-components-config.resources.gardener.cloud/skip"))
            }
            Self::EndpointSliceHints => all.label("endpoint-slice-hints.resources.gardener.cloud/consider", "true"),
            Self::PodTopologySpreadConstraints => not_static(
                managed().not_in("app", &[app]).absent("topology-spread-constraints.resources.gardener.cloud/skip"),
            ),
            Self::VpaInPlaceUpdates => all.absent("vpa-in-place-updates.resources.gardener.cloud/skip"),
            // Without this selector all Secrets would be sent (spec 31 T1).
            Self::TokenInvalidator => all.label(PURPOSE, PURPOSE_TOKEN_INVALIDATOR),
        }
    }
}

/// The namespaces that Gardener manages (spec 50 §3.3). Without Gardener: all but the one without whose Pods nothing can
/// be repaired.
fn base(mode: Mode) -> Selector {
    match mode {
        Mode::Runtime => Selector::default().exists(ROLE).not_in(NAME, &SYSTEM_NAMESPACES),
        Mode::Shoot => Selector::default().one_of(NAME, &SYSTEM_NAMESPACES),
        Mode::Plain => Selector::default().not_in(NAME, &SYSTEM_NAMESPACES[..1]),
    }
}

/// Excludes static Pods: they only mirror what a kubelet runs (spec 50 trap T9).
fn not_static(selector: Selector) -> Selector {
    selector.not_in("static-pod", &["true"])
}

impl<'a> Row<'a> {
    /// The usual policies, for new Pods.
    pub(super) fn pods(name: &'a str, path: &'static str) -> Self {
        Self {
            name,
            path,
            rules: &PODS,
            match_policy: "Exact",
            failure_policy: "Fail",
            timeout_seconds: 10,
            never_reinvoked: false,
        }
    }
}
