//! Observation of a webhook: metrics (spec 50 §2.8), its entry in the status registry, the log.

use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    time::Duration,
};

use kit::{Activity, Cell, Clock, Role, StatusRegistry, quote::cut};
use process::figures::Now;
use tokio::time::Instant;

use super::metrics::{WebhookMetrics, WebhookServerMetrics};
use crate::webhooks::{
    authorizing::{Asked, Authorized, Decision, Ruling},
    endpoint::Account,
    review::{Judged, ReviewVerdict},
    validating::{Validated, deletion::LOGGER},
};

pub(super) struct Statistics {
    metrics: WebhookMetrics,
    cell: Cell,
    in_flight: AtomicUsize,
    requests: AtomicU64,
    denied: AtomicU64,
    errors: AtomicU64,
    microseconds: AtomicU64,
}

/// A request that is being answered. If it is dropped before `end`, its client has gone.
pub(super) struct Answering<'a> {
    statistics: &'a Statistics,
    begun: Instant,
}

impl Statistics {
    pub(super) fn new(path: &'static str, metrics: &WebhookServerMetrics, status_registry: &StatusRegistry) -> Self {
        let cell = status_registry.enter(path.trim_start_matches('/'), Role::Service);
        let statistics = Self {
            metrics: metrics.webhook(path),
            cell,
            in_flight: AtomicUsize::new(0),
            requests: AtomicU64::new(0),
            denied: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            microseconds: AtomicU64::new(0),
        };
        statistics.show(None);
        statistics
    }

    pub(super) fn place(&self) -> &str {
        self.cell.path()
    }

    pub(super) fn begin(&self, begun: Instant) -> Answering<'_> {
        self.metrics.in_flight(1);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        Answering { statistics: self, begun }
    }

    pub(super) fn answered(&self, account: &Account) {
        match account {
            Account::Admission(judged, validated) => {
                if let Some(validated) = validated {
                    self.validated(judged, validated);
                }
                self.judged(judged, validated.is_some());
            }
            Account::Authorization(authorized) => self.authorized(authorized),
        }
    }

    /// Logs no content of the object except its name. The enclosing span has webhook and UID.
    fn judged(&self, judged: &Judged, is_validated: bool) {
        let (operation, namespace, name, verdict) = match judged {
            Judged::Reviewed { operation, namespace, name, verdict } => {
                (&*cut(operation), &*cut(namespace), &*cut(name), verdict)
            }
            Judged::Refused(refusal) => {
                self.failed(&refusal.message);
                tracing::info!(code = refusal.code, "Request is not a review");
                return;
            }
        };
        let (code, message) = verdict.reported();
        if let Some(cause) = verdict.cause() {
            self.metrics.failed(cause);
        }
        match verdict {
            ReviewVerdict::Allowed | ReviewVerdict::Patched(_) | ReviewVerdict::Unexpected(_) => {
                let patched = matches!(verdict, ReviewVerdict::Patched(_));
                tracing::debug!(operation, namespace, name, patched, "Review allowed");
            }
            ReviewVerdict::Denied(_) | ReviewVerdict::Status(_) => {
                self.denied.fetch_add(1, Ordering::Relaxed);
                tracing::info!(operation, namespace, name, code, detail = message, "Review denied");
            }
            ReviewVerdict::Invalid { status: _, errors } => {
                self.denied.fetch_add(1, Ordering::Relaxed);
                tracing::info!(operation, namespace, name, code, errors, "Review denied");
                // The text may quote the object (spec 62 trap 8).
                tracing::debug!(operation, namespace, name, code, detail = &*cut(message), "Object is invalid");
            }
            ReviewVerdict::Errored { code: 400, .. } if is_validated => {
                // The text names keys that users chose (spec 62 trap 8).
                self.failed("an object cannot be decoded");
                tracing::info!(operation, namespace, name, code, "Review not decided");
                tracing::debug!(operation, namespace, name, code, detail = &*cut(message), "Object cannot be decoded");
            }
            ReviewVerdict::ReadFailed { .. } | ReviewVerdict::Errored { .. } => {
                self.failed(message);
                tracing::info!(operation, namespace, name, code, detail = message, "Review not decided");
            }
            ReviewVerdict::Panicked(_) => {
                // The text may quote the object.
                self.metrics.panicked();
                self.failed("panicked");
                tracing::error!(operation, namespace, name, "A webhook panicked");
            }
        }
    }

    /// Spec 60 §2.5, and denials by resource.
    fn validated(&self, judged: &Judged, validated: &Validated) {
        let Validated { resource, is_denied, deletion } = validated;
        if *is_denied {
            self.metrics.denied(resource);
        }
        let (Some(deletion), Judged::Reviewed { namespace, .. }) = (deletion, judged) else { return };
        let operation = if deletion.is_collection { "DELETECOLLECTION" } else { "DELETE" };
        let namespace = &*cut(namespace);
        tracing::info!(logger = LOGGER, resource, operation, namespace, "Handling request");
        let (namespace, object) = (&*cut(&deletion.object.namespace), &*cut(&deletion.object.name));
        macro_rules! log {
            ($message:literal) => {
                tracing::info!(logger = LOGGER, resource, operation, namespace, object, $message)
            };
        }
        match deletion.is_confirmed {
            Some(true) => log!("Deletion is confirmed - allowing deletion"),
            Some(false) => log!("Deletion is not confirmed - preventing deletion"),
            None => {}
        }
    }

    /// Spec 61 §8: logs who wanted what and what was missing, never an object's content.
    fn authorized(&self, authorized: &Authorized) {
        let Authorized { logger, topic, asked, ruling } = authorized;
        let decision = ruling.outcome();
        self.metrics.decided(topic, decision);
        let Asked { user, verb, namespace, group, resource, subresource, name, path } = asked;
        macro_rules! log {
            ($level:ident, $message:expr $(, $field:ident)*) => {
                tracing::$level!(
                    logger, user, verb, namespace, group, resource, subresource, name, path $(, $field)*, "{}", $message
                )
            };
        }
        log!(debug, "Responding to request");
        let reason = match ruling {
            Ruling::Decided(Decision::Allow | Decision::NoOpinion) => "",
            Ruling::Decided(Decision::Deny(reason)) => {
                self.denied.fetch_add(1, Ordering::Relaxed);
                log!(info, "Denied", reason);
                reason
            }
            Ruling::Failed { code: 500, message: error } => {
                self.failed(error);
                log!(error, "Error when consulting authorizer for opinion", error);
                error
            }
            Ruling::Failed { code, message } => {
                self.failed(message);
                tracing::info!(logger, code, "Request is not a review");
                message
            }
            Ruling::Panicked(_) => {
                // The text may quote an object.
                self.metrics.panicked();
                self.failed("panicked");
                log!(error, "A webhook panicked");
                "panicked"
            }
        };
        let reason = &*cut(reason);
        tracing::debug!(logger, decision, reason, "Wrote response");
    }

    fn failed(&self, message: &str) {
        self.errors.fetch_add(1, Ordering::Relaxed);
        self.show(Some(message));
    }

    fn show(&self, error: Option<&str>) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let in_flight = self.in_flight.load(Ordering::Relaxed);
        let requests = read(&self.requests);
        let mean = Duration::from_micros(read(&self.microseconds).checked_div(requests).unwrap_or_default());
        let line = format!(
            "{requests} requests, {} denied, {} errors, {:.1} ms on average",
            read(&self.denied),
            read(&self.errors),
            mean.as_secs_f64() * 1000.0
        );
        let now = Clock::system_wall();
        self.cell.update(now, |cell| {
            cell.activity = if in_flight == 0 { Activity::Idle } else { Activity::Running };
            cell.mailbox = u32::try_from(in_flight).unwrap_or(u32::MAX);
            cell.finished = requests;
            cell.line = line;
            if let Some(error) = error {
                cell.last_error = Some((now, cut(error).into_owned()));
            }
        });
    }
}

impl Answering<'_> {
    pub(super) fn end(self, status: u16) {
        let now = Now::of_system();
        let time = now.monotonic.saturating_duration_since(self.begun);
        let statistics = self.statistics;
        statistics.metrics.answered(status, now, time);
        statistics.requests.fetch_add(1, Ordering::Relaxed);
        let microseconds = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        statistics.microseconds.fetch_add(microseconds, Ordering::Relaxed);
    }
}

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.statistics.metrics.in_flight(-1);
        self.statistics.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.statistics.show(None);
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use cluster::{Cause, Status, object::NamespacedName};
    use serde_json::{Value, json};
    use tracing::Level;

    use super::*;
    use crate::webhooks::{
        authorizing::{Action, Attributes, PathAction, ResourceAction},
        validating::deletion::Deletion,
    };

    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(action: Action<'_>, ruling: Ruling) -> Vec<Value> {
        let attributes = Attributes { user: "agent".into(), groups: Vec::new(), action };
        let asked = Asked::of(&attributes);
        logged_of(&Account::Authorization(Authorized { logger: "l", topic: "other", asked, ruling }), Level::DEBUG)
    }

    fn logged_of(account: &Account, level: Level) -> Vec<Value> {
        let status_registry = StatusRegistry::default();
        let statistics =
            Statistics::new("/webhooks/x", &crate::webhooks::server::metrics::unregistered(), &status_registry);
        let captured = Captured::default();
        let stream = captured.clone();
        let subscriber =
            tracing_subscriber::fmt().json().with_max_level(level).with_writer(move || stream.clone()).finish();
        tracing::subscriber::with_default(subscriber, || {
            statistics.answered(account);
        });
        let text = String::from_utf8(captured.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["fields"].take()).collect()
    }

    /// spec 61 §8
    #[test]
    fn authorizer_log_says_who_wanted_what_and_why_it_was_denied() {
        let long = "n".repeat(100_000);
        let action = ResourceAction {
            verb: "get".into(),
            group: "g.io".into(),
            resource: "things".into(),
            subresource: "status".into(),
            namespace: "ns".into(),
            name: (&*long).into(),
            ..ResourceAction::default()
        };
        let asked = json!({
            "logger": "l", "user": "agent", "verb": "get", "namespace": "ns", "group": "g.io", "resource": "things",
            "subresource": "status", "name": format!("{}…", "n".repeat(512)), "path": "",
        });
        let with = |message: &str, more: Value| {
            let mut all = asked.clone();
            all["message"] = message.into();
            all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            all
        };
        let wrote = |decision: &str, reason: &str| json!({"logger": "l", "message": "Wrote response", "decision": decision, "reason": reason});

        let denied = logged(Action::Resource(action.clone()), Ruling::Decided(Decision::Deny("why".into())));
        let expected =
            [with("Responding to request", json!({})), with("Denied", json!({"reason": "why"})), wrote("deny", "why")];
        assert_eq!(denied, expected);
        let allowed = logged(Action::Resource(action), Ruling::Decided(Decision::Allow));
        assert_eq!(allowed, [with("Responding to request", json!({})), wrote("allow", "")]);
    }

    /// spec 62 §11 trap 8
    #[test]
    fn review_log_cuts_user_texts_and_has_keys_at_level_debug_only() {
        let verdict = ReviewVerdict::Errored { code: 400, message: "couldn't decode the Worker: spec.s3cret".into() };
        let long = "n".repeat(100_000);
        let judged = Judged::Reviewed { operation: long.clone(), namespace: long.clone(), name: long, verdict };
        let validated = Validated { resource: "workers", is_denied: false, deletion: None };
        let account = Account::Admission(judged, Some(validated));

        let [info] = &logged_of(&account, Level::INFO)[..] else { panic!("one record") };
        assert_eq!(
            (&info["message"], &info["code"], info.get("detail")),
            (&json!("Review not decided"), &json!(400), None)
        );
        for field in ["operation", "namespace", "name"] {
            assert_eq!(info[field], format!("{}…", "n".repeat(512)), "{field}");
        }
        let debug = logged_of(&account, Level::DEBUG);
        assert_eq!(debug[1]["detail"], "couldn't decode the Worker: spec.s3cret");
    }

    /// spec 62 §2.2: errors that do not fit into the answer are counted too
    #[test]
    fn review_log_has_the_number_of_errors_of_an_invalid_object() {
        let causes = vec![Cause::default(); 101];
        let status =
            Status { code: 422, reason: "Invalid".into(), message: "s3cret".into(), causes, ..Status::default() };
        let judged = Judged::Reviewed {
            operation: "CREATE".into(),
            namespace: "ns".into(),
            name: "w".into(),
            verdict: ReviewVerdict::Invalid { status: Box::new(status), errors: 107 },
        };
        let validated = Validated { resource: "workers", is_denied: true, deletion: None };

        let logged = logged_of(&Account::Admission(judged, Some(validated)), Level::INFO);

        assert_eq!(logged.len(), 1);
        assert_eq!((&logged[0]["message"], &logged[0]["errors"]), (&json!("Review denied"), &json!(107)));
    }

    /// spec 60 §2.5
    #[test]
    fn deletion_log_lines_say_what_is_deleted_and_where() {
        let verdict = ReviewVerdict::Denied("why".into());
        let judged =
            Judged::Reviewed { operation: "DELETE".into(), namespace: String::new(), name: String::new(), verdict };
        let object = NamespacedName::new("shoot", "unconfirmed");
        for (is_collection, operation) in [(true, "DELETECOLLECTION"), (false, "DELETE")] {
            for (is_confirmed, text) in [
                (Some(true), "Deletion is confirmed - allowing deletion"),
                (Some(false), "Deletion is not confirmed - preventing deletion"),
            ] {
                let deletion = Some(Deletion { is_collection, object: object.clone(), is_confirmed });
                let validated = Validated { resource: "workers", is_denied: true, deletion };

                let logged = logged_of(&Account::Admission(judged.clone(), Some(validated)), Level::INFO);

                let about = |message: &str, namespace: &str| {
                    json!({"message": message, "logger": LOGGER,
                    "resource": "workers", "operation": operation, "namespace": namespace})
                };
                let mut decided = about(text, "shoot");
                decided["object"] = json!("unconfirmed");
                assert!(logged.contains(&about("Handling request", "")) && logged.contains(&decided), "{logged:?}");
            }
        }
    }

    /// spec 61 §8
    #[test]
    fn authorizer_log_names_a_denied_path() {
        let action = PathAction { verb: "get".into(), path: "/metrics".into() };

        let denied = logged(Action::Path(action), Ruling::Decided(Decision::Deny(String::new())));

        assert_eq!(denied[1]["message"], "Denied");
        assert_eq!((&denied[1]["verb"], &denied[1]["path"]), (&json!("get"), &json!("/metrics")));
    }
}
