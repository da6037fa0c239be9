//! Metrics of the webhook server.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use process::{
    declarations,
    figures::{CertificateFigures, Latency, Now, ServedWebhooks, WebhookFigures},
    metrics::{
        DECADES, Declaration, MetricKind,
        MetricName::{Common, Own},
        NO_LABELS, Registrar,
    },
};
use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec};
use rustls::sign::CertifiedKey;

use super::pair::{CertificateError, expiration};

#[rustfmt::skip]
declarations! {
    WEBHOOK_REQUESTS = MetricKind::Counter, Common("controller_runtime_webhook_requests_total"), ["webhook", "code"], "requests",
        "Answered webhook requests by path and HTTP status.";
    WEBHOOK_IN_FLIGHT = MetricKind::Gauge, Common("controller_runtime_webhook_requests_in_flight"), ["webhook"], "requests",
        "Webhook requests that are being answered now.";
    WEBHOOK_SECONDS = MetricKind::Histogram(&DECADES), Common("controller_runtime_webhook_latency_seconds"), ["webhook"], "seconds",
        "Duration of a webhook request.";
    WEBHOOK_PANICS = MetricKind::Counter, Common("controller_runtime_webhook_panics_total"), [], "requests",
        "Webhook requests whose handler panicked.";

    CERTIFICATE_READS = MetricKind::Counter, Common("certwatcher_read_certificate_total"), [], "reads",
        "How often the webhook server's certificate was read.";
    CERTIFICATE_ERRORS = MetricKind::Counter, Common("certwatcher_read_certificate_errors_total"), [], "reads",
        "How often reading the webhook server's certificate failed.";
    CERTIFICATE_EXPIRATION = MetricKind::Gauge, Own("serving_certificate_expiration_timestamp_seconds"), [], "seconds",
        "When the webhook server's certificate expires, in seconds since 1970; 0 if that is unreadable.";

    WEBHOOK_FAILURES = MetricKind::Counter, Own("webhook_failures_total"), ["webhook", "cause"], "reviews",
        "Reviews that were not allowed, by cause: denied (by a rule), status (of the target, e.g. an object that does not exist), invalid (an object that breaks rules), namespace, autoscalers, nodes (could not be read for high availability), undecodable (the object), internal, panic.";
    WEBHOOK_DENIALS = MetricKind::Counter, Own("webhook_denials_total"), ["webhook", "resource"], "reviews",
        "Requests that a validating webhook denied, by resource: deletions without a confirmation, objects that break rules.";
    AUTHORIZER_DECISIONS = MetricKind::Counter, Own("authorizer_decisions_total"), ["webhook", "resource", "decision"], "reviews",
        "Reviews of an authorizer by resource (a resource that it decides on, or other) and decision: allow, deny, no_opinion, error.";
}

/// Causes of reviews that were not allowed.
pub const FAILURE_CAUSES: [&str; 9] =
    ["denied", "status", "invalid", "namespace", "autoscalers", "nodes", "undecodable", "internal", "panic"];

/// Those of them that are decisions.
const DENIALS: [&str; 3] = ["denied", "status", "invalid"];

/// Subjects of requests to an authorizer.
pub const DECIDED_RESOURCES: [&str; 7] =
    ["certificatesigningrequests", "events", "leases", "nodes", "pods", "secrets", "other"];

/// Decisions of an authorizer.
pub const DECISIONS: [&str; 4] = ["allow", "deny", "no_opinion", "error"];

/// The series of one webhook. Clones share them.
#[derive(Clone)]
pub struct WebhookMetrics {
    path: Arc<str>,
    ok: IntCounter,
    in_flight: IntGauge,
    seconds: Histogram,
    latency: Arc<Latency>,
    server: WebhookServerMetrics,
}

/// The latency of a webhook's path.
type PathLatency = (Arc<str>, Arc<Latency>);

/// All metrics of the server. Clones share the same values.
#[derive(Clone)]
pub struct WebhookServerMetrics {
    certificate_reads: IntCounter,
    certificate_errors: IntCounter,
    certificate_expiration: IntGauge,
    requests: IntCounterVec,
    in_flight: IntGaugeVec,
    seconds: HistogramVec,
    panics: IntCounter,
    failures: IntCounterVec,
    decisions: IntCounterVec,
    denials: IntCounterVec,
    /// Path and latency of each webhook.
    shown: Arc<Mutex<Vec<PathLatency>>>,
}

impl WebhookServerMetrics {
    /// Registers them.
    pub fn new(registrar: &Registrar) -> Self {
        Self {
            certificate_reads: CERTIFICATE_READS.counters(registrar).with_label_values(&NO_LABELS),
            certificate_errors: CERTIFICATE_ERRORS.counters(registrar).with_label_values(&NO_LABELS),
            certificate_expiration: CERTIFICATE_EXPIRATION.gauges(registrar).with_label_values(&NO_LABELS),
            requests: WEBHOOK_REQUESTS.counters(registrar),
            in_flight: WEBHOOK_IN_FLIGHT.gauges(registrar),
            seconds: WEBHOOK_SECONDS.histograms(registrar),
            panics: WEBHOOK_PANICS.counters(registrar).with_label_values(&NO_LABELS),
            failures: WEBHOOK_FAILURES.counters(registrar),
            decisions: AUTHORIZER_DECISIONS.counters(registrar),
            denials: WEBHOOK_DENIALS.counters(registrar),
            shown: Arc::default(),
        }
    }

    /// Counts a read of the serving certificate, and shows its end if it was read.
    pub fn certificate_read(&self, pair: &Result<CertifiedKey, CertificateError>) {
        self.certificate_reads.inc();
        match pair {
            Ok(pair) => self.certificate_expiration.set(expiration(pair).map_or(0, Timestamp::as_second)),
            Err(_) => self.certificate_errors.inc(),
        }
    }

    /// Returns the handle of the webhook at a path, e.g. `/webhooks/x`; creates its series for codes 200 and 500.
    pub fn webhook(&self, path: &str) -> WebhookMetrics {
        self.requests.with_label_values(&[path, "500"]);
        for cause in FAILURE_CAUSES {
            self.failures.with_label_values(&[path, cause]);
        }
        let (path, latency): (Arc<str>, _) = (path.into(), Arc::<Latency>::default());
        self.shown().push((path.clone(), latency.clone()));
        WebhookMetrics {
            ok: self.requests.with_label_values(&[&*path, "200"]),
            in_flight: self.in_flight.with_label_values(&[&*path]),
            seconds: self.seconds.with_label_values(&[&*path]),
            path,
            latency,
            server: self.clone(),
        }
    }

    /// Returns the figures of the webhooks and of the serving certificate. The rates are 0.
    pub fn figures(&self, now: Now) -> ServedWebhooks {
        let expiration = Some(self.certificate_expiration.get()).filter(|seconds| *seconds != 0);
        let not_after = expiration.and_then(|seconds| Timestamp::from_second(seconds).ok());
        ServedWebhooks {
            webhooks: self.shown().iter().map(|(path, latency)| self.webhook_figures(path, latency, now)).collect(),
            certificate: not_after.map(|not_after| CertificateFigures { not_after }),
        }
    }

    fn webhook_figures(&self, path: &str, latency: &Latency, now: Now) -> WebhookFigures {
        let total = self.seconds.with_label_values(&[path]).get_sample_count();
        let good = self.requests.with_label_values(&[path, "200"]).get();
        let failed = FAILURE_CAUSES.iter().filter(|cause| !DENIALS.contains(cause));
        let failed: u64 = failed.map(|cause| self.failures.with_label_values(&[path, cause]).get()).sum();
        let quantiles = latency.quantiles(now, [0.5, 0.99]);
        WebhookFigures {
            path: path.to_owned(),
            per_second: 0.0,
            total,
            errors: total.saturating_sub(good) + failed,
            p50: quantiles.map(|[p50, _]| p50),
            p99: quantiles.map(|[_, p99]| p99),
        }
    }

    fn shown(&self) -> MutexGuard<'_, Vec<(Arc<str>, Arc<Latency>)>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WebhookMetrics {
    /// A request was answered `now` with the HTTP status `code`, after `duration`.
    pub fn answered(&self, code: u16, now: Now, duration: Duration) {
        match code {
            200 => self.ok.inc(),
            code => self.server.requests.with_label_values(&[&*self.path, code.to_string().as_str()]).inc(),
        }
        self.seconds.observe(duration.as_secs_f64());
        self.latency.add(now, duration);
    }

    /// A request came (`1`) or was answered (`-1`).
    pub fn in_flight(&self, change: i64) {
        self.in_flight.add(change);
    }

    /// A review was not allowed for this cause, one of [`FAILURE_CAUSES`].
    pub fn failed(&self, cause: &str) {
        self.server.failures.with_label_values(&[&*self.path, cause]).inc();
    }

    /// An authorizer made a decision, one of [`DECISIONS`], about one of [`DECIDED_RESOURCES`].
    pub fn decided(&self, resource: &str, decision: &str) {
        self.server.decisions.with_label_values(&[&*self.path, resource, decision]).inc();
    }

    /// A validating webhook denied a request about this resource.
    pub fn denied(&self, resource: &str) {
        self.server.denials.with_label_values(&[&*self.path, resource]).inc();
    }

    /// The handler panicked. Also count the answer.
    pub fn panicked(&self) {
        self.server.panics.inc();
    }
}

impl std::fmt::Debug for WebhookMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("WebhookMetrics").field(&self.path).finish()
    }
}

impl std::fmt::Debug for WebhookServerMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookServerMetrics")
    }
}

/// Their declarations.
pub fn declared() -> &'static [&'static Declaration] {
    ALL
}

/// Metrics of tests, which nobody scrapes.
#[cfg(test)]
pub(crate) fn unregistered() -> WebhookServerMetrics {
    WebhookServerMetrics::new(&Registrar::new(prometheus::Registry::new(), "test"))
}

#[cfg(test)]
mod tests {
    use prometheus::{Registry, TextEncoder};

    use super::*;

    fn metrics() -> (Registry, WebhookServerMetrics) {
        let registry = Registry::new();
        (registry.clone(), WebhookServerMetrics::new(&Registrar::new(registry, "test")))
    }

    fn render(registry: &Registry) -> String {
        TextEncoder::new().encode_to_string(&registry.gather()).unwrap()
    }

    #[track_caller]
    fn assert_series(text: &str, series: &str, expected: f64) {
        let value = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok());
        assert_eq!(value, Some(expected), "{series} in\n{text}");
    }

    /// spec 70 §9.2: both codes exist before the first request
    #[test]
    fn webhook_metrics_exist_with_zero_before_the_first_request() {
        let (registry, metrics) = metrics();
        let webhook = metrics.webhook("/webhooks/seccomp-profile");

        let before = render(&registry);
        webhook.answered(200, Now::of_system(), Duration::from_millis(1));
        webhook.answered(413, Now::of_system(), Duration::from_millis(1));
        webhook.in_flight(2);
        webhook.panicked();
        webhook.failed("namespace");
        let after = render(&registry);

        let code = |code| {
            format!(r#"controller_runtime_webhook_requests_total{{code="{code}",webhook="/webhooks/seccomp-profile"}}"#)
        };
        assert_series(&before, &code(200), 0.0);
        assert_series(&before, &code(500), 0.0);
        assert_series(&before, "controller_runtime_webhook_panics_total", 0.0);
        assert_series(&after, &code(200), 1.0);
        assert_series(&after, &code(413), 1.0);
        assert_series(&after, "controller_runtime_webhook_panics_total", 1.0);
        let failures =
            |cause| format!(r#"test_webhook_failures_total{{cause="{cause}",webhook="/webhooks/seccomp-profile"}}"#);
        for cause in FAILURE_CAUSES {
            assert_series(&before, &failures(cause), 0.0);
        }
        assert_series(&after, &failures("namespace"), 1.0);
        assert_series(
            &after,
            r#"controller_runtime_webhook_requests_in_flight{webhook="/webhooks/seccomp-profile"}"#,
            2.0,
        );
    }

    /// spec 50 §2.8
    #[test]
    fn webhook_latency_is_counted_by_powers_of_ten() {
        let (registry, metrics) = metrics();
        metrics.webhook("/webhooks/seccomp-profile").answered(200, Now::of_system(), Duration::from_millis(2));

        let text = render(&registry);

        let buckets = text.lines().filter_map(|line| {
            let rest = line.strip_prefix("controller_runtime_webhook_latency_seconds_bucket{")?;
            let (_, bound) = rest.split_once("le=\"")?;
            let (bound, count) = bound.split_once('"')?;
            Some((bound.parse::<f64>().ok()?, count.rsplit(' ').next()?.parse::<u64>().ok()?))
        });
        let buckets: Vec<_> = buckets.collect();
        let bounds = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, f64::INFINITY];
        let expected: Vec<_> = bounds.into_iter().map(|bound| (bound, u64::from(bound >= 2e-3))).collect();
        assert_eq!(buckets, expected, "in\n{text}");
    }

    #[test]
    fn webhook_figures_count_what_was_not_decided_as_errors() {
        let (_, metrics) = metrics();
        let webhook = metrics.webhook("/webhooks/a");
        let now = Now::of_system();
        let empty = &metrics.figures(now).webhooks[0];
        assert_eq!((empty.path.as_str(), empty.total, empty.errors, empty.p50), ("/webhooks/a", 0, 0, None));
        for (code, cause) in [(200, ""), (200, "denied"), (200, "undecodable"), (429, ""), (500, "")] {
            webhook.answered(code, Now::of_system(), Duration::from_millis(10));
            FAILURE_CAUSES.iter().filter(|known| **known == cause).for_each(|cause| webhook.failed(cause));
        }

        let figures = metrics.figures(now);

        let shown = &figures.webhooks[0];
        assert_eq!((shown.total, shown.errors, figures.certificate), (5, 3, None));
        let median = shown.p50.unwrap();
        assert!((0.010..0.015).contains(&median), "{median}");
    }

    #[test]
    fn webhook_metrics_are_all_rendered_with_help_and_type() {
        let (registry, metrics) = metrics();
        metrics.certificate_read(&Err(CertificateError::File { path: "tls.crt".into(), cause: "missing".into() }));
        metrics.webhook("/webhooks/a").denied("workers");
        for _ in 0..2 {
            metrics.webhook("/webhooks/a").decided("pods", "deny");
        }

        let text = render(&registry);

        for declaration in ALL {
            let name = declaration.name.full("test");
            assert!(text.contains(&format!("# HELP {name} {}\n", declaration.help)), "{name}");
        }
        assert_series(&text, "certwatcher_read_certificate_total", 1.0);
        assert_series(&text, "certwatcher_read_certificate_errors_total", 1.0);
        let decisions = r#"test_authorizer_decisions_total{decision="deny",resource="pods",webhook="/webhooks/a"}"#;
        assert_series(&text, decisions, 2.0);
    }
}
