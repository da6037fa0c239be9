//! What operators see of gardenlets: rows of the dashboard, and a metric.

use std::rc::Rc;

use cluster::object::NamespacedName;
use jiff::Timestamp;
use kit::{Observers, Reconcile};

use super::{GardenletKey, heartbeat::Reported};
use crate::actors::{
    controller_manager::{figures::GARDENLETS_BY_STATE, rows::Lines},
    shared::state_counts::StateCounts,
};

/// How a gardenlet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GardenletState {
    /// It renews its Lease.
    Alive,
    /// Its Lease is too old.
    Silent,
    /// As `Silent`, and its client certificate has expired.
    Expired,
    /// It has not reported yet.
    Unreported,
}

/// The gardenlets by their state.
pub(super) struct View {
    seeds: StateCounts,
    shoots: StateCounts,
}

impl GardenletState {
    const ALL: [Self; 4] = [Self::Alive, Self::Silent, Self::Expired, Self::Unreported];

    /// Returns the state of a gardenlet whose Lease is too old.
    pub(super) fn of_silent(reported: &Reported, now: Timestamp) -> Self {
        if reported.has_expired_certificate(now) { Self::Expired } else { Self::Silent }
    }

    /// Returns its label in metrics.
    fn label(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Silent => "silent",
            Self::Expired => "expired",
            Self::Unreported => "unreported",
        }
    }

    fn line(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Silent => "silent",
            Self::Expired => "silent, and its client certificate has expired",
            Self::Unreported => "has not reported yet",
        }
    }
}

impl View {
    pub(super) fn new(observers: &Rc<dyn Observers>) -> Self {
        let of = |kind| {
            let states = GardenletState::ALL.map(GardenletState::label);
            StateCounts::labelled(observers, GARDENLETS_BY_STATE, &[kind], states)
        };
        Self { seeds: of("Seed"), shoots: of("Shoot") }
    }

    /// Shows the counts from now on.
    pub(super) fn show(&self) {
        self.seeds.show();
        self.shoots.show();
    }

    /// Shows the state of a gardenlet. `renewed`: when it renewed its Lease, as known at this look.
    pub(super) fn look(
        &self,
        reconcile: &Reconcile<GardenletKey>,
        state: GardenletState,
        reported: &Reported,
        renewed: Option<Timestamp>,
    ) {
        let (counts, name) = self.of(&reconcile.key);
        counts.enter(name, Some(state.label()));
        reconcile.note(state.line());
        reconcile.detail(lines(state, reported, renewed));
    }

    /// Forgets a gardenlet whose object is gone.
    pub(super) fn forget(&self, key: &GardenletKey) {
        let (counts, name) = self.of(key);
        counts.enter(name, None);
    }

    fn of<'k>(&self, key: &'k GardenletKey) -> (&StateCounts, &'k NamespacedName) {
        match key {
            GardenletKey::Seed(name) => (&self.seeds, name),
            GardenletKey::Shoot(name) => (&self.shoots, name),
        }
    }
}

/// A gardenlet that is alive is not looked at again and again, so times would soon be out of date: it shows none.
fn lines(state: GardenletState, reported: &Reported, renewed: Option<Timestamp>) -> Lines {
    match state {
        GardenletState::Alive | GardenletState::Unreported => Lines::new(),
        GardenletState::Silent | GardenletState::Expired => {
            let since = reported.ready.as_ref().and_then(|ready| ready.last_transition_time);
            let times = [
                ("Lease renewed", Some(renewed.map_or_else(|| "never".to_owned(), |renewed| renewed.to_string()))),
                ("GardenletReady is Unknown since", since.map(|since| since.to_string())),
                ("Client certificate expires", reported.certificate_expiration.map(|expires| expires.to_string())),
            ];
            times.into_iter().filter_map(|(label, time)| Some((label.to_owned(), time?))).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reported() -> Reported {
        Reported::of(&json!({ "status": {
            "clientCertificateExpirationTimestamp": "2026-08-21T11:00:00Z",
            "conditions": [{ "type": "GardenletReady", "status": "Unknown", "lastTransitionTime": "2026-08-21T10:00:00Z" }],
        } }))
    }

    #[test]
    fn gardenlet_that_is_silent_may_need_a_new_certificate() {
        let at = |time: &str| GardenletState::of_silent(&reported(), time.parse().unwrap());

        assert_eq!(at("2026-08-21T10:59:59Z"), GardenletState::Silent);
        assert_eq!(at("2026-08-21T12:00:00Z"), GardenletState::Expired);
    }

    #[test]
    fn gardenlet_shows_its_times_only_if_it_is_silent() {
        let labels = |state| -> Vec<String> {
            let renewed = "2026-08-21T09:00:00Z".parse().ok();
            lines(state, &reported(), renewed).into_iter().map(|(label, _)| label).collect()
        };

        assert_eq!(labels(GardenletState::Alive), Vec::<String>::new());
        let silent = ["Lease renewed", "GardenletReady is Unknown since", "Client certificate expires"];
        assert_eq!(labels(GardenletState::Expired), silent);
    }
}
