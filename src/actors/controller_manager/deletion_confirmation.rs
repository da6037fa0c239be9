//! The confirmation without which no Shoot and no Project is deleted (spec 80 §10 A7).

use std::collections::VecDeque;

use cluster::{
    ApiError, Cached, Context, Lock, Watch,
    object::{self, NamespacedName},
};
use jiff::Timestamp;
use serde_json::{Value, json};

/// The annotations of the full confirmation (spec 80 §16.1). The first one is enough for API servers.
pub(super) const CONFIRMED: &str = "confirmation.gardener.cloud/deletion";
const CONFIRMED_AT: &str = "gardener.cloud/timestamp";

/// More attempts than this are not remembered: an older confirmation was replaced by one of them.
const MOST_ATTEMPTS: usize = 16;

/// The times of the confirmations that a controller wrote, or may have written, as long as no deletion followed. Of an attempt
/// whose answer was lost nobody knows which one the object has.
#[derive(Debug, Default)]
pub(super) struct OpenConfirmation(VecDeque<Timestamp>);

/// Returns the merge patch that confirms a deletion.
pub(super) fn confirmation(now: Timestamp) -> Value {
    json!({ "metadata": { "annotations": { CONFIRMED: "true", CONFIRMED_AT: now.to_string() } } })
}

/// Returns the merge patch that removes a confirmation of one of these times; `None` if an object has another one or none.
fn withdrawal(object: &Value, confirmed: &VecDeque<Timestamp>) -> Option<Value> {
    let known = object::annotation(object, CONFIRMED_AT)?;
    let is_own = confirmed.iter().any(|time| time.to_string() == known);
    is_own.then(|| json!({ "metadata": { "annotations": { CONFIRMED: null, CONFIRMED_AT: null } } }))
}

impl OpenConfirmation {
    /// Remembers that the confirmation of this time is written. Call it before the write: its answer may be lost.
    pub(super) fn written(&mut self, at: Timestamp) {
        if self.0.len() == MOST_ATTEMPTS {
            self.0.pop_front();
        }
        self.0.push_back(at);
    }

    /// Removes the confirmation from an object that must not be deleted any more, so that nobody deletes it by mistake.
    /// Fails if the API server does; it is tried again then.
    pub(super) async fn withdraw<R: Cached>(
        &mut self,
        watch: &Watch<R>,
        context: &Context,
        key: &NamespacedName,
    ) -> Result<(), ApiError> {
        if !self.0.is_empty() {
            watch.patch(context, key, Lock::Version, |live| withdrawal(live, &self.0)).await?;
            self.0.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec 80 §16.1; spec 82 D.6; spec 84 L-9
    #[test]
    fn confirmation_has_its_time_in_nanoseconds_without_trailing_zeros() {
        let annotations = |time: &str| confirmation(time.parse().unwrap())["metadata"]["annotations"].clone();

        for time in ["2026-08-21T12:00:00Z", "2026-08-21T12:00:00.25Z", "2026-08-21T12:00:00.000000001Z"] {
            let expected = json!({ "confirmation.gardener.cloud/deletion": "true", "gardener.cloud/timestamp": time });
            assert_eq!(annotations(time), expected);
        }
    }

    #[test]
    fn confirmation_of_any_attempt_is_withdrawn() {
        let time = |second: i64| Timestamp::from_second(second).unwrap();
        let mut open = OpenConfirmation::default();
        for second in 0..20 {
            open.written(time(second));
        }

        let is_withdrawn = |confirmed: Value| withdrawal(&confirmed, &open.0).is_some();
        assert!(is_withdrawn(confirmation(time(19))) && is_withdrawn(confirmation(time(4))));
        assert!(
            !is_withdrawn(confirmation(time(3))) && !is_withdrawn(confirmation(time(20))) && !is_withdrawn(json!({}))
        );
    }
}
