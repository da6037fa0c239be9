//! `diff`: shows what the controller would change in the target cluster (spec 10 §9 to §14, without its writes). The
//! server computes the result of each update in a dry run.
//! ```text
//! request.rs: which bundles ─► gather.rs, owners.rs: one Report for each ─► print.rs, render.rs
//! ```
//! `clusters.rs` reads the clusters. Reports are printed one after the other: those of a large cluster would not fit into
//! memory. Start reading at [`compare`]: clients are passed in, so tests use those of the simulator.

mod change;
mod clusters;
mod gather;
mod owners;
mod print;
mod render;
mod request;

use cluster::{ApiError, object::NamespacedName};
use serde_json::{Value, json};

pub(super) use self::print::Printer;
pub use self::{
    change::{Action, Change},
    gather::compare,
    request::Request,
};
use super::{DIFFERENT, FAILED, OK, connect::is_unreachable};
use crate::jsonpath::TooMuch;

/// Reported once: what the server refuses for one update, it refuses for all.
const ESTIMATED: &str = "warning: the server does not say what it would make of an update";

/// Why nothing can be compared.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// A request failed.
    #[error("cannot read {what}: {source}")]
    Read {
        /// What should have been read.
        what: String,
        /// The cause.
        source: ApiError,
    },
    /// An object of the cluster is malformed.
    #[error("{what}: {cause}")]
    Unreadable {
        /// The object.
        what: String,
        /// Why.
        cause: String,
    },
    /// The files are not a bundle.
    #[error("{0}")]
    Input(String),
    /// The result cannot be printed.
    #[error(transparent)]
    Report(#[from] TooMuch),
}

/// The result of `diff` for one ManagedResource.
#[derive(Debug, Default)]
pub struct Report {
    /// The ManagedResource.
    pub bundle: NamespacedName,
    /// One change for each object, in the order in which they are shown.
    pub changes: Vec<Change>,
    /// Further remarks, one line each.
    pub remarks: Vec<String>,
    /// Whether something cannot be applied or decoded.
    pub failed: bool,
}

impl DiffError {
    /// Whether the other bundles could not be compared either.
    fn is_lost(&self) -> bool {
        match self {
            Self::Read { source, .. } => is_unreachable(source),
            Self::Report(_) => true,
            Self::Unreadable { .. } | Self::Input(_) => false,
        }
    }
}

impl Report {
    /// Returns 2 if something cannot be applied, else 1 if something differs, else 0.
    pub fn exit_code(&self) -> i32 {
        if self.failed {
            FAILED
        } else if self.changes.iter().any(|change| change.action.is_difference()) {
            DIFFERENT
        } else {
            OK
        }
    }

    fn json(&self) -> Value {
        json!({
            "namespace": self.bundle.namespace, "name": self.bundle.name,
            "changes": self.changes.iter().map(Change::json).collect::<Vec<_>>(),
            "remarks": self.remarks, "failed": self.failed,
        })
    }

    fn only_expected(&mut self, change: &Change, error: &ApiError) {
        let remark = if !error.is_invalid() {
            if self.remarks.iter().any(|remark| remark.starts_with(ESTIMATED)) {
                return;
            }
            format!(
                "{ESTIMATED} ({error}): fields that only the cluster has are taken for defaults, and admission is left out"
            )
        } else if change.action.is_difference() {
            format!("warning: {}: the server would refuse the update: {error}", change.object)
        } else {
            return; // without a difference, the controller does not send the update either
        };
        self.remarks.push(remark);
    }

    fn fail(&mut self, remark: String) {
        self.failed = true;
        self.remarks.push(format!("error: {remark}"));
    }
}
