//! Types and reasons of the conditions of ManagedResources (spec 10 §2.5).

/// Condition type: all objects are applied. Written by the managedresource controller.
pub const RESOURCES_APPLIED: &str = "ResourcesApplied";
/// Condition type: all objects are healthy. Written by the health controller.
pub const RESOURCES_HEALTHY: &str = "ResourcesHealthy";
/// Condition type: objects are still being rolled out. Written by the health-progressing controller.
pub const RESOURCES_PROGRESSING: &str = "ResourcesProgressing";

/// Reason: everything is applied.
pub const APPLY_SUCCEEDED: &str = "ApplySucceeded";
/// Reason: an object could not be applied.
pub const APPLY_FAILED: &str = "ApplyFailed";
/// Reason: a document in a Secret is no manifest.
pub const DECODING_FAILED: &str = "DecodingFailed";
/// Reason: a change is being applied.
pub const APPLY_PROGRESSING: &str = "ApplyProgressing";
/// Reason: never written here, but understood where others wrote it (spec 10 §18, trap 14).
pub const DELETION_FAILED: &str = "DeletionFailed";
/// Reason: objects are being deleted.
pub const DELETION_PENDING: &str = "DeletionPending";
/// Reason: an object could not be released.
pub const RELEASE_FAILED: &str = "ReleaseOfOrphanedResourcesFailed";
/// Reason: the ManagedResource carries the ignore annotation.
pub const MANAGED_RESOURCE_IGNORED: &str = "ManagedResourceIgnored";
/// Reason: the health controllers have not checked yet.
pub const CHECKS_PENDING: &str = "ChecksPending";
/// Reason: a Secret could not be read.
pub const CANNOT_READ_SECRET: &str = "CannotReadSecret";
