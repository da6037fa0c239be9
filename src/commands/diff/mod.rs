//! `diff`: shows what the controller would change in the target cluster (spec 10 §9 to §14, without its writes). The
//! server computes the result of each update in a dry run. Start reading at [`compare`]: clients are passed in, so
//! tests use those of the simulator.

mod change;
mod gather;
mod render;
mod request;

use cluster::ApiError;

pub use self::{
    change::{Action, Change},
    gather::compare,
    request::Request,
};
use super::{DIFFERENT, FAILED, OK};

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
}

/// The result of `diff`.
#[derive(Debug, Default)]
pub struct Report {
    /// One change for each object, in the order in which they are shown.
    pub changes: Vec<Change>,
    /// Further remarks, one line each.
    pub remarks: Vec<String>,
    /// Whether something cannot be applied or decoded.
    pub failed: bool,
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
