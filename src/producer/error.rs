//! Errors of a producer's requests. The texts are those of spec 10 §19.6 and §19.7.

use cluster::{ApiError, object::NamespacedName};

use super::extract::ExtractError;

/// A ManagedResource could not be created or updated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReconcileError {
    /// The request about the ManagedResource itself failed.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// An old Secret could not be marked for the garbage collector. The ManagedResource did not change.
    #[error("marking old secrets as garbage collectable: {0}")]
    MarkingSecrets(ApiError),
}

/// A convenience function failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProducerError {
    /// The Secret could not be written. The ManagedResource did not change.
    #[error("could not create or update secret of managed resources: {0}")]
    Secret(ApiError),
    /// The ManagedResource could not be written. Its Secret was written.
    #[error("could not create or update managed resource: {0}")]
    ManagedResource(ReconcileError),
    /// The ManagedResource could not be read before its deletion.
    #[error("could not get managed resource '{key}': {source}")]
    Get {
        /// The ManagedResource.
        key: NamespacedName,
        /// The cause.
        source: ApiError,
    },
    /// A Secret could not be deleted. The ManagedResource is still there.
    #[error("could not delete secret '{key}' of managed resource: {source}")]
    DeleteSecret {
        /// The Secret.
        key: NamespacedName,
        /// The cause.
        source: ApiError,
    },
    /// The ManagedResource could not be deleted. Its Secrets are gone.
    #[error("could not delete managed resource '{key}': {source}")]
    Delete {
        /// The ManagedResource.
        key: NamespacedName,
        /// The cause.
        source: ApiError,
    },
    /// The ManagedResource could not be patched.
    #[error("could not update managed resource '{key}': {source}")]
    Update {
        /// The ManagedResource.
        key: NamespacedName,
        /// The cause.
        source: ApiError,
    },
    /// The ManagedResources could not be listed.
    #[error("could not list managed resources: {0}")]
    List(ApiError),
    /// The ManagedResource could not be read.
    #[error("could not get ManagedResource \"{key}\": {source}")]
    Read {
        /// The ManagedResource.
        key: NamespacedName,
        /// The cause.
        source: ApiError,
    },
    /// One of its Secrets could not be read.
    #[error("could not get secret \"{key}\": {source}")]
    ReadSecret {
        /// The Secret.
        key: NamespacedName,
        /// The cause.
        source: ApiError,
    },
    /// A document of a Secret is not a manifest.
    #[error("could not extract objects from secret \"{key}\": {source}")]
    Extract {
        /// The Secret.
        key: NamespacedName,
        /// The cause.
        source: ExtractError,
    },
}
