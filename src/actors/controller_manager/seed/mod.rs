//! The controllers of Seeds (spec 83). References of Seeds are in [`references`](super::references).
//! ```text
//! Seeds, condition ───────────────┐
//! BackupBuckets ── backup_buckets ┼─► check.rs ─ judgement.rs ─► condition of the Seed
//! ControllerInstallations ── extensions ┘
//!
//! Seeds, shared Secrets, Namespaces ── secrets ─► Namespace of the Seed, copies in it
//! ```
//! * [`judgement`], [`backup_buckets`], [`extensions`]: what the conditions say. Pure, except for the registrations
//! * `check`: the controller of a condition, for both checks
//! * [`secrets`]: the Namespace of a Seed, and the copies of shared Secrets

pub mod backup_buckets;
mod check;
pub mod extensions;
pub mod judgement;
pub mod secrets;
#[cfg(test)]
mod tests;
