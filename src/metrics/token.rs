use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use prometheus::{GaugeVec, Registry};

use super::{NO_LABELS, declared};

pub(super) struct Families {
    states: GaugeVec,
    expiry: GaugeVec,
    /// When the first token expires, in seconds since 1970.
    expires: Mutex<Option<f64>>,
}

impl Families {
    pub(super) fn new(registry: &Registry) -> Self {
        let (states, expiry) = (&declared::TOKENS, &declared::TOKEN_EXPIRY);
        Self { states: states.float_gauges(registry), expiry: expiry.float_gauges(registry), expires: Mutex::default() }
    }

    pub(super) fn count(&self, state: &str, count: f64) {
        self.states.with_label_values(&[state]).set(count);
    }

    pub(super) fn expires(&self, time: f64) {
        *self.expires.lock().unwrap_or_else(PoisonError::into_inner) = Some(time).filter(|time| time.is_finite());
    }

    pub(super) fn refresh(&self, now: Timestamp) {
        self.expiry.reset();
        if let Some(expires) = *self.expires.lock().unwrap_or_else(PoisonError::into_inner) {
            self.expiry.with_label_values(&NO_LABELS).set((expires - now.as_duration().as_secs_f64()).round());
        }
    }
}
