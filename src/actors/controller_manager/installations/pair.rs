//! What an extension is needed for, and what a ControllerRegistration serves: a kind and a type (spec 85 §1). Pure.

use std::fmt;

use serde_json::Value;

use crate::actors::controller_manager::fields::text;

/// A DNS provider that nobody has to serve.
pub(super) const UNMANAGED: &str = "unmanaged";

/// A kind of extension resources that may be required.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExtensionKind {
    /// Buckets of backups.
    BackupBucket,
    /// Backups in buckets.
    BackupEntry,
    /// Container runtimes of worker pools.
    ContainerRuntime,
    /// Control planes.
    ControlPlane,
    /// DNS records.
    DnsRecord,
    /// Extensions of any type.
    Extension,
    /// Infrastructure of clusters.
    Infrastructure,
    /// Networks of clusters.
    Network,
    /// Operating systems of worker pools.
    OperatingSystemConfig,
    /// Exposure of self-hosted control planes.
    SelfHostedShootExposure,
    /// Worker pools.
    Worker,
}

/// A kind with a type, e.g. `Infrastructure/gcp`. The comparison is exact.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PairId {
    /// The kind.
    pub kind: ExtensionKind,
    /// The type.
    pub extension_type: Box<str>,
}

impl ExtensionKind {
    /// All kinds, by name.
    pub const ALL: [Self; 11] = [
        Self::BackupBucket,
        Self::BackupEntry,
        Self::ContainerRuntime,
        Self::ControlPlane,
        Self::DnsRecord,
        Self::Extension,
        Self::Infrastructure,
        Self::Network,
        Self::OperatingSystemConfig,
        Self::SelfHostedShootExposure,
        Self::Worker,
    ];

    /// Returns its name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BackupBucket => "BackupBucket",
            Self::BackupEntry => "BackupEntry",
            Self::ContainerRuntime => "ContainerRuntime",
            Self::ControlPlane => "ControlPlane",
            Self::DnsRecord => "DNSRecord",
            Self::Extension => "Extension",
            Self::Infrastructure => "Infrastructure",
            Self::Network => "Network",
            Self::OperatingSystemConfig => "OperatingSystemConfig",
            Self::SelfHostedShootExposure => "SelfHostedShootExposure",
            Self::Worker => "Worker",
        }
    }

    /// Returns the pair of this kind with a type.
    pub fn of_type(self, extension_type: &str) -> PairId {
        PairId { kind: self, extension_type: extension_type.into() }
    }
}

impl PairId {
    /// Reads an entry of `spec.resources` of a registration; `None` for kinds that are never required.
    pub(super) fn of_resource(resource: &Value) -> Option<Self> {
        let name = text(resource, "/kind");
        let kind = ExtensionKind::ALL.into_iter().find(|kind| kind.as_str() == name)?;
        Some(kind.of_type(text(resource, "/type")))
    }
}

impl fmt::Display for PairId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.as_str(), self.extension_type)
    }
}
