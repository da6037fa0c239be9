//! Rates from totals.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use tokio::time::Instant;

use super::Figures;

/// A rate is the mean over this time.
const WINDOW: Duration = Duration::from_secs(10);

/// Remembers the totals of the last figures.
#[derive(Debug, Default)]
pub(crate) struct Rates(VecDeque<Sample>);

#[derive(Debug)]
struct Sample {
    at: Instant,
    totals: HashMap<String, u64>,
}

impl Rates {
    /// Sets the rates of figures that were computed at `now`. They are 0 without earlier figures.
    pub(crate) fn set(&mut self, figures: &mut Figures, now: Instant) {
        // The oldest sample is the youngest that is as old as the window.
        while self.0.get(1).is_some_and(|second| now.saturating_duration_since(second.at) >= WINDOW) {
            self.0.pop_front();
        }
        let mut totals = HashMap::new();
        let before = self.0.front();
        let mut rate = |name: String, total: u64| {
            let rate = before.map_or(0.0, |before| {
                let seconds = now.saturating_duration_since(before.at).as_secs_f64();
                let more = total.saturating_sub(before.totals.get(&name).copied().unwrap_or_default());
                if seconds > 0.0 { more as f64 / seconds } else { 0.0 }
            });
            totals.insert(name, total);
            (rate * 100.0).round() / 100.0 // so that figures at rest stay equal
        };
        for cluster in &mut figures.clusters {
            for request in &mut cluster.requests {
                request.per_second = rate(format!("{} {} {}", cluster.name, request.verb, request.code), request.total);
            }
        }
        for webhook in &mut figures.served.webhooks {
            webhook.per_second = rate(webhook.path.clone(), webhook.total);
        }
        self.0.push_back(Sample { at: now, totals });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::{ServedWebhooks, WebhookFigures};

    fn figures(total: u64) -> Figures {
        let webhook = WebhookFigures { path: "/w".to_owned(), per_second: 0.0, total, errors: 0, p50: None, p99: None };
        Figures { served: ServedWebhooks { webhooks: vec![webhook], certificate: None }, ..Figures::default() }
    }

    #[test]
    fn rates_are_means_over_the_last_ten_seconds() {
        let (mut rates, start) = (Rates::default(), Instant::now());
        let mut rate = |second: u64, total: u64| {
            let mut figures = figures(total);
            rates.set(&mut figures, start + Duration::from_secs(second));
            figures.served.webhooks[0].per_second
        };

        assert_eq!(rate(0, 1000), 0.0, "there is nothing to compare with");
        assert_eq!(rate(2, 1010), 5.0);
        assert_eq!(rate(4, 1010), 2.5);
        assert_eq!(rate(10, 1010), 1.0);
        assert_eq!(rate(12, 1010), 0.0, "from the second figures on");
        assert_eq!(rate(14, 1001), 0.0, "a smaller total is no rate");
        assert!(rates.0.len() <= 6);
    }
}
