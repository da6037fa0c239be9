//! The version of an API server.

use std::{fmt, ops::RangeInclusive};

use kit::Deadline;
use serde_json::Value;

use super::{ApiError, Cluster, transport::Call};

/// Major and minor number of a version of Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KubernetesVersion {
    major: u64,
    minor: u64,
}

impl KubernetesVersion {
    /// The versions that the programs support (docs/compatibility.md).
    pub const SUPPORTED: RangeInclusive<Self> = Self::new(1, 32)..=Self::new(1, 37);

    /// Returns the version with these numbers.
    #[must_use]
    pub const fn new(major: u64, minor: u64) -> Self {
        Self { major, minor }
    }

    /// Reads a `gitVersion`, e.g. `v1.32.0-gke.1`. All letters `v` and everything from the first `-`, `+` or `~` on are left
    /// out (spec 80 trap 8). Returns `None` if the rest is no list of numbers.
    #[must_use]
    pub fn parse(git_version: &str) -> Option<Self> {
        let numbers = git_version.split(['-', '+', '~']).next()?.replace('v', "");
        let mut parts = numbers.split('.').map(|part| part.parse::<u64>().ok());
        let version = Self { major: parts.next()??, minor: parts.next().unwrap_or(Some(0))? };
        parts.all(|part| part.is_some()).then_some(version)
    }
}

/// For example `1.32`.
impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl Cluster {
    /// Returns `gitVersion` of `GET /version`, e.g. `v1.32.0`; empty if the answer has none. It passes by the request
    /// scheduler.
    pub async fn git_version(&self, deadline: Deadline) -> Result<String, ApiError> {
        let answer = self.transport().perform_at_once(&Call::read("/version".into()), deadline).await?.json()?;
        Ok(answer.get("gitVersion").and_then(Value::as_str).unwrap_or_default().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubernetes_version_is_read_without_the_suffixes_of_vendors() {
        for text in ["v1.32.0", "1.32.0", "v1.32.0-rc.1+abc", "v1.32.0-gke.1", "v1.32.3~x", "1.32"] {
            assert_eq!(KubernetesVersion::parse(text), Some(KubernetesVersion::new(1, 32)), "{text}");
        }
        assert_eq!(KubernetesVersion::parse("2"), Some(KubernetesVersion::new(2, 0)));
        for text in ["", "v", "-1.32", "latest", "1.x.0", "1.32.x", "1..2", "99999999999999999999.1"] {
            assert_eq!(KubernetesVersion::parse(text), None, "{text}");
        }
    }
}
