//! The origin of an object: the ManagedResource that owns it, and its cluster (spec 10 §3.2).

use std::{fmt, str::FromStr};

use cluster::object::NamespacedName;

/// Owner of an object, as in the annotation [`super::keys::ORIGIN`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Origin {
    /// Identity of the source cluster; empty if not configured.
    pub cluster_id: String,
    /// The ManagedResource.
    pub key: NamespacedName,
}

/// The annotation's value names no ManagedResource.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unexpected origin format: \"{0}\"")]
pub struct OriginError(pub String);

impl Origin {
    /// The origin of a ManagedResource. A cluster id with a `:` makes a value that cannot be parsed.
    pub fn new(cluster_id: impl Into<String>, key: NamespacedName) -> Self {
        Self { cluster_id: cluster_id.into(), key }
    }
}

impl fmt::Display for Origin {
    /// `<namespace>/<name>`, or `<cluster id>:<namespace>/<name>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.cluster_id.is_empty() {
            write!(f, "{}:", self.cluster_id)?;
        }
        write!(f, "{}/{}", self.key.namespace, self.key.name)
    }
}

impl FromStr for Origin {
    type Err = OriginError;

    fn from_str(value: &str) -> Result<Self, OriginError> {
        let unexpected = || OriginError(value.to_owned());

        let (cluster_id, key) = value.split_once(':').unwrap_or(("", value));
        let (namespace, name) = key.split_once('/').ok_or_else(unexpected)?;
        if key.contains(':') || name.contains('/') {
            return Err(unexpected());
        }
        Ok(Self::new(cluster_id, NamespacedName::new(namespace, name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_survives_being_written_and_read() {
        for (cluster_id, text) in [("", "ns/name"), ("garden-1", "garden-1:ns/name")] {
            let origin = Origin::new(cluster_id, NamespacedName::new("ns", "name"));

            assert_eq!(origin.to_string(), text);
            assert_eq!(text.parse(), Ok(origin));
        }
    }

    #[test]
    fn origin_errors_name_the_value() {
        for value in ["", "name", "a:b:c/d", "a:b", "a/b/c", "id:a/b/c", "a:b/c:d"] {
            let error = value.parse::<Origin>().expect_err(value);

            assert_eq!(error.to_string(), format!("unexpected origin format: \"{value}\""));
        }
    }
}
