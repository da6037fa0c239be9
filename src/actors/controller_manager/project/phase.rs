//! The phase of a Project (spec 82 A.9). Pure.

use std::fmt;

use serde_json::{Value, json};

use super::cached::Project;

/// Phase of a Project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It was not reconciled yet.
    Pending,
    /// It has all that it must have.
    Ready,
    /// The last reconcile failed.
    Failed,
    /// It is being deleted.
    Terminating,
}

impl Phase {
    fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Ready => "Ready",
            Self::Failed => "Failed",
            Self::Terminating => "Terminating",
        }
    }

    /// Returns true if a Project is in this phase, and its present generation was observed.
    pub fn is_observed_of(self, project: &Project) -> bool {
        self.is_shown(project, project.generation)
    }

    fn is_shown(self, project: &Project, generation: i64) -> bool {
        *project.phase == *self.as_str() && project.observed_generation == generation
    }

    /// Returns the merge patch for `/status` that shows this phase of the Project with this uid at a generation; `None` if
    /// it is shown, or if the Project is another instance. No other field of the status is written: other controllers
    /// write theirs at the same time.
    pub fn patch(self, project: &Project, uid: &str, generation: i64) -> Option<Value> {
        let is_due = *project.uid == *uid && !self.is_shown(project, generation);
        is_due.then(|| json!({"status": {"phase": self.as_str(), "observedGeneration": generation}}))
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
