//! The metrics that only the controllers of this program have.

use process::{
    declarations,
    metrics::{
        Declaration, Figure,
        FigureKind::{Counter, Gauge},
        MetricKind,
        MetricName::Own,
    },
};

#[rustfmt::skip]
declarations! {
    HELD = MetricKind::Gauge, Own("held_deletions"), ["controller", "kind"], "objects",
        "Objects in deletion that keep the finalizer of a controller: others refer to them, or the release fails. Of Shoots, Seeds and ControllerDeployments only those that their own controllers have released.";
    HELD_OLDEST = MetricKind::Gauge, Own("held_deletion_oldest_timestamp_seconds"), ["controller", "kind"], "seconds",
        "When the first of these deletions began, in seconds since 1970. Absent while there is none.";
    MISSING = MetricKind::Gauge, Own("referrers_with_missing_objects"), ["controller"], "objects",
        "Shoots, Seeds, ControllerDeployments and bindings that refer to an object that does not exist, is being deleted without protection, or has an unsupported kind.";
    REQUESTS = MetricKind::Counter, Own("certificate_requests_total"), ["decision"], "CertificateSigningRequests",
        "CertificateSigningRequests for client certificates by decision: approved, denied, ignored (not of a gardenlet), unreadable. The last two count again when the request changes, or after a restart.";
    GARDENLETS = MetricKind::Gauge, Own("gardenlets"), ["kind", "state"], "gardenlets",
        "Gardenlets of Seeds and of self-hosted Shoots by state: alive, silent (the Lease is too old), expired (silent, and the client certificate has expired), unreported (the object has no condition yet).";
    SEED_CONDITIONS = MetricKind::Gauge, Own("seed_conditions"), ["condition", "status"], "Seeds",
        "Seeds by the status of the conditions that the program sets.";
    SEED_SECRETS = MetricKind::Gauge, Own("seed_secrets"), ["state"], "Seeds",
        "Seeds by the state of their Namespace and of the copies of shared Secrets in it: copied, undone (another client changes copies again and again), failing, ending (the Namespace is being deleted).";
    EVENTS = MetricKind::Counter, Own("deleted_events_total"), [], "Events",
        "Events that were deleted because their lifetime was over. Exists if controllers.event is configured.";
    BASTIONS = MetricKind::Counter, Own("deleted_bastions_total"), ["reason"], "Bastions",
        "Bastions that were deleted, by reason: expired, too_old, shoot_gone, shoot_deleting, shoot_moved.";
    PROJECTS = MetricKind::Gauge, Own("projects_failing"), ["step"], "Projects",
        "Projects whose last reconciliation failed, by the step that failed: namespace, quota, rbac, stale_roles, release.";
    SHOOT_MAINTENANCES = MetricKind::Counter, Own("maintenance_total"), ["result"], "maintenances",
        "Maintenances of Shoots by result: succeeded (something was changed), partly_failed (parts could not be changed), unchanged (nothing was to be changed), refused (the API server refused the new Shoot), failed (it is tried again).";
}

/// Objects in deletion, by controller and kind.
pub(super) const HELD_DELETIONS: &str = "held_deletions";
/// When the first of them began.
pub(super) const HELD_DELETION_OLDEST: &str = "held_deletion_oldest";
/// Referrers by controller.
pub(super) const REFERRERS_WITH_MISSING_OBJECTS: &str = "referrers_with_missing_objects";
/// Requests by decision.
pub(super) const CERTIFICATE_REQUESTS: &str = "certificate_requests";
/// Gardenlets by kind and state.
pub(super) const GARDENLETS_BY_STATE: &str = "gardenlets";
/// Seeds by condition and status.
pub(super) const SEEDS_BY_CONDITION: &str = "seed_conditions";
/// Seeds by the state of their copies.
pub(super) const SEEDS_BY_COPIES: &str = "seed_secrets";
/// Deleted Events.
pub(super) const DELETED_EVENTS: &str = "deleted_events";
/// Deleted Bastions by reason.
pub(super) const DELETED_BASTIONS: &str = "deleted_bastions";
/// Projects by the step that failed.
pub(super) const PROJECTS_FAILING: &str = "projects_failing";
/// Maintenances of Shoots by result.
pub(super) const MAINTENANCES: &str = "maintenances";

/// The metrics by the names that controllers use.
pub const FIGURES: &[Figure] = &[
    Figure { name: HELD_DELETIONS, kind: Gauge, declaration: &HELD },
    Figure { name: HELD_DELETION_OLDEST, kind: Gauge, declaration: &HELD_OLDEST },
    Figure { name: REFERRERS_WITH_MISSING_OBJECTS, kind: Gauge, declaration: &MISSING },
    Figure { name: CERTIFICATE_REQUESTS, kind: Counter, declaration: &REQUESTS },
    Figure { name: GARDENLETS_BY_STATE, kind: Gauge, declaration: &GARDENLETS },
    Figure { name: SEEDS_BY_CONDITION, kind: Gauge, declaration: &SEED_CONDITIONS },
    Figure { name: SEEDS_BY_COPIES, kind: Gauge, declaration: &SEED_SECRETS },
    Figure { name: DELETED_EVENTS, kind: Counter, declaration: &EVENTS },
    Figure { name: DELETED_BASTIONS, kind: Counter, declaration: &BASTIONS },
    Figure { name: PROJECTS_FAILING, kind: Gauge, declaration: &PROJECTS },
    Figure { name: MAINTENANCES, kind: Counter, declaration: &SHOOT_MAINTENANCES },
];

/// Their declarations.
pub fn declared() -> &'static [&'static Declaration] {
    ALL
}
