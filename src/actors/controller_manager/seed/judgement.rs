//! What a check says about a Seed, and the condition that follows (spec 83 §5). Pure.

use std::time::Duration;

use jiff::Timestamp;
use kit::quote::cut_within;

use crate::api::meta::conditions::{Condition, ConditionStatus, threshold};

/// Most bytes of a text of another program in a message (spec 83 "better" 7).
pub(super) const LONGEST_TEXT: usize = 1024;

/// Most bytes of a message (spec 83 "better" 7). It ends in `…` if it was cut.
const LONGEST_MESSAGE: usize = 16 * 1024;

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Judgement {
    /// The status that a bad result has in the end; `None` after a good result.
    problem: Option<ConditionStatus>,
    reason: &'static str,
    message: String,
}

impl Judgement {
    /// A good result.
    pub(super) fn good(reason: &'static str, message: &str) -> Self {
        Self { problem: None, reason, message: message.to_owned() }
    }

    /// A bad result. Its message is a text, followed by the entries.
    pub(super) fn bad(
        target: ConditionStatus,
        reason: &'static str,
        text: &str,
        entries: impl Iterator<Item = String>,
    ) -> Self {
        let mut message = text.to_owned();
        for entry in entries {
            message.push_str(&entry);
            if message.len() > LONGEST_MESSAGE {
                break;
            }
        }
        Self { problem: Some(target), reason, message: cut_within(LONGEST_MESSAGE, &message).into_owned() }
    }

    /// Returns the condition of this type after the check. `known` is the stored one, if any.
    pub fn condition(&self, kind: &str, known: Option<&Condition>, delay: Duration, now: Timestamp) -> Condition {
        let known = known.cloned().unwrap_or_else(|| Condition::new(kind, now));
        let status = match &self.problem {
            None => ConditionStatus::True,
            Some(target) => threshold::status_after_problem(&known, target.clone(), delay, now),
        };
        known.updated(status, self.reason, &self.message, now)
    }
}
