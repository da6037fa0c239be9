//! What the controller would change in the target cluster (spec 10 §9 to §14, without its writes): the server is asked what it
//! would make of each update, and stores nothing (dry run).
//!
//! `request.rs`: from the command line and files to [`Request`]; `gather.rs`: reads clusters and asks the controller's own
//! functions; `change.rs`: one object before and after, without what must not be shown; `render.rs`: the text.
//!
//! Start reading at [`compare`]. It takes clients, so tests give it those of the simulator.

mod change;
mod gather;
mod render;
mod request;

pub use self::{
    change::{Action, Change},
    gather::compare,
    request::Request,
};
use cluster::ApiError;

use super::{DIFFERENT, FAILED, OK};

/// Said once: what the server refuses of one update, it will refuse of others.
const ESTIMATED: &str = "warning: the server does not say what it would make of an update";

/// Why nothing can be compared.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// A request failed.
    #[error("cannot read {what}: {source}")]
    Read {
        /// What was to be read.
        what: String,
        /// The cause.
        source: ApiError,
    },
    /// An object of the cluster is not what it should be.
    #[error("{what}: {cause}")]
    Unreadable {
        /// The object.
        what: String,
        /// What is wrong.
        cause: String,
    },
    /// The files do not make a bundle.
    #[error("{0}")]
    Input(String),
}

/// What would happen.
#[derive(Debug, Default)]
pub struct Report {
    /// One for each object, in the order in which they are shown.
    pub changes: Vec<Change>,
    /// What else should be known, one line each.
    pub remarks: Vec<String>,
    /// Objects that cannot be applied, or documents that are none.
    pub failed: bool,
}

impl Report {
    /// 2 if something cannot be applied, 1 if something differs, else 0.
    pub fn exit_code(&self) -> i32 {
        if self.failed {
            FAILED
        } else if self.changes.iter().any(|change| change.action.is_difference()) {
            DIFFERENT
        } else {
            OK
        }
    }

    /// The server does not say what it would make of an update.
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
            // Where nothing differs, the controller leaves it at that, too.
            return;
        };
        self.remarks.push(remark);
    }

    fn fail(&mut self, remark: String) {
        self.failed = true;
        self.remarks.push(format!("error: {remark}"));
    }
}
