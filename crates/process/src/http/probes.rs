//! Liveness and readiness as plain functions (spec 70 §6). A check must return at once. Slow work (a request, a TLS
//! connection) is a refresh, which is awaited before the check.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::future::{BoxFuture, join_all};
use tokio::time::Instant;

/// A check; `Err` has the reason of the failure.
pub type CheckFn = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// Updates the data of a check. Awaited before the check runs; must end within a few seconds.
pub type RefreshFn = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// Returns lines for verbose answers that belong to no check.
pub type RemarksFn = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// How long a cache may be unsynced before liveness fails.
pub const CACHE_SYNC_GRACE: Duration = Duration::from_secs(180);

/// Shortest time between two log records about forgiven failures, however often probes come.
const SAID_AGAIN: Duration = Duration::from_secs(30);

/// The check that always passes.
pub const PING: &str = "ping";

/// The checks of one endpoint, by name.
#[derive(Clone, Default)]
pub struct Checks {
    checks: BTreeMap<String, CheckFn>,
    refreshes: BTreeMap<String, RefreshFn>,
    remarks: Option<RemarksFn>,
}

/// The query of a probe.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProbeQuery {
    /// Print one line per check even if all pass.
    pub verbose: bool,
    /// Checks that are not run and count as passed.
    pub exclude: Vec<String>,
    /// The prober is on this machine: with `verbose`, it may see why a check fails.
    pub local: bool,
}

/// An HTTP answer in plain text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Text.
    pub body: String,
}

/// Forgives failures for a while (spec 70 §6, "same with grace").
#[derive(Debug, Default)]
struct Grace {
    failing_since: Option<Instant>,
    said: Option<Instant>, // when a failure was last logged
}

impl Checks {
    /// Returns only the check [`PING`].
    pub fn with_ping() -> Self {
        Self::default().with(PING, Arc::new(|| Ok(())))
    }

    /// Adds a check, or replaces the check of the same name.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, check: CheckFn) -> Self {
        self.checks.insert(name.into(), check);
        self
    }

    /// Adds lines to verbose answers.
    #[must_use]
    pub fn remarking(self, remarks: RemarksFn) -> Self {
        Self { remarks: Some(remarks), ..self }
    }

    /// Awaits `refresh` before the check of that name runs.
    #[must_use]
    pub fn refreshed_by(mut self, name: impl Into<String>, refresh: RefreshFn) -> Self {
        self.refreshes.insert(name.into(), refresh);
        self
    }

    /// Runs the refreshes of a query's checks; await it before [`Checks::aggregate`].
    pub async fn refresh(&self, query: &ProbeQuery) {
        let wanted = self.refreshes.iter().filter(|(name, _)| !query.exclude.contains(name));
        join_all(wanted.map(|(_, refresh)| refresh())).await;
    }

    /// Runs the refresh of one check; await it before [`Checks::single`].
    pub async fn refresh_single(&self, name: &str) {
        if let Some(refresh) = self.refreshes.get(name) {
            refresh().await;
        }
    }

    /// Answers 200 `ok` if all checks pass, else 500 with a line each. Only local verbose probes get reasons.
    pub fn aggregate(&self, query: &ProbeQuery) -> Answer {
        let mut failed = false;
        let mut lines = String::new();
        for (name, check) in &self.checks {
            let _ = if query.exclude.contains(name) {
                writeln!(lines, "[+]{name} excluded: ok")
            } else if let Err(cause) = run(name, check) {
                failed = true;
                let reason = if query.verbose && query.local { &cause } else { "reason withheld" };
                writeln!(lines, "[-]{name} failed: {reason}")
            } else {
                writeln!(lines, "[+]{name} ok")
            };
        }

        if !failed && !query.verbose {
            return Answer { status: 200, body: "ok".to_owned() };
        }
        if let Some(remarks) = self.remarks.as_ref().filter(|_| query.verbose) {
            for remark in remarks() {
                lines.push_str(&remark);
                lines.push('\n');
            }
        }
        let unknown: BTreeSet<&String> = query.exclude.iter().filter(|name| !self.checks.contains_key(*name)).collect();
        if !unknown.is_empty() {
            let names: Vec<String> = unknown.iter().map(|name| format!("{name:?}")).collect();
            let names = names.join(",");
            let _ = writeln!(lines, "warn: some health checks cannot be excluded: no matches for {names}");
        }
        let (status, verdict) = if failed { (500, "healthz check failed\n") } else { (200, "healthz check passed\n") };
        lines.push_str(verdict);
        Answer { status, body: lines }
    }

    /// Runs one check: 200 `ok`, 500 with the reason, or 404 if there is no such check.
    pub fn single(&self, name: &str) -> Answer {
        let Some(check) = self.checks.get(name) else {
            return Answer { status: 404, body: "404 page not found\n".to_owned() };
        };
        match run(name, check) {
            Ok(()) => Answer { status: 200, body: "ok".to_owned() },
            Err(cause) => Answer { status: 500, body: format!("internal server error: {cause}") },
        }
    }
}

/// A check that panics counts as failed and does not end the probe server.
fn run(name: &str, check: &CheckFn) -> Result<(), String> {
    let result = catch_unwind(AssertUnwindSafe(|| check())).unwrap_or_else(|_| Err("the check panicked".to_owned()));
    if let Err(cause) = &result {
        tracing::debug!(check = name, error = %cause, "Health check failed");
    }
    result
}

impl Grace {
    /// Judges the result of a check at `now`. Failures pass for less than [`CACHE_SYNC_GRACE`] after the first one. A
    /// success ends the period.
    fn judge(&mut self, now: Instant, result: Result<(), String>) -> Result<(), String> {
        let Err(cause) = result else {
            self.failing_since = None;
            return Ok(());
        };
        let since = *self.failing_since.get_or_insert(now);
        if now.saturating_duration_since(since) >= CACHE_SYNC_GRACE {
            return Err(cause);
        }
        if self.says(now) {
            tracing::info!(error = %cause, "Cache sync check failed, but deadline not yet exceeded");
        }
        Ok(())
    }

    fn says(&mut self, now: Instant) -> bool {
        let is_due = self.said.is_none_or(|said| now.saturating_duration_since(said) >= SAID_AGAIN);
        if is_due {
            self.said = Some(now);
        }
        is_due
    }
}

/// Wraps `check`: its failures pass for [`CACHE_SYNC_GRACE`].
pub fn with_grace(check: CheckFn) -> CheckFn {
    let grace = Mutex::new(Grace::default());
    Arc::new(move || {
        let result = check();
        grace.lock().unwrap_or_else(PoisonError::into_inner).judge(Instant::now(), result)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(cause: &'static str) -> CheckFn {
        Arc::new(move || Err(cause.to_owned()))
    }

    fn passing() -> CheckFn {
        Arc::new(|| Ok(()))
    }

    fn query(verbose: bool, exclude: &[&str]) -> ProbeQuery {
        ProbeQuery { verbose, exclude: exclude.iter().map(|&name| name.to_owned()).collect(), local: false }
    }

    fn answer(status: u16, body: &str) -> Answer {
        Answer { status, body: body.to_owned() }
    }

    /// spec 70 §6, the table of aggregate answers
    #[test]
    fn probe_aggregates_answer_as_the_table_says() {
        let good = Checks::with_ping().with("b", passing()).with("a", passing());
        let bad = Checks::with_ping().with("b", failing("secret reason")).with("a", passing());
        let unknown = "warn: some health checks cannot be excluded: no matches for \"x\"\n";

        let table = [
            (&good, query(false, &[]), answer(200, "ok")),
            (&good, query(true, &[]), answer(200, "[+]a ok\n[+]b ok\n[+]ping ok\nhealthz check passed\n")),
            (
                &bad,
                query(false, &[]),
                answer(500, "[+]a ok\n[-]b failed: reason withheld\n[+]ping ok\nhealthz check failed\n"),
            ),
            (
                &bad,
                query(true, &[]),
                answer(500, "[+]a ok\n[-]b failed: reason withheld\n[+]ping ok\nhealthz check failed\n"),
            ),
            (&bad, query(false, &["b"]), answer(200, "ok")),
            (
                &bad,
                query(true, &["b", "a"]),
                answer(200, "[+]a excluded: ok\n[+]b excluded: ok\n[+]ping ok\nhealthz check passed\n"),
            ),
            (&good, query(false, &["x"]), answer(200, "ok")),
            (
                &good,
                query(true, &["x"]),
                answer(200, &format!("[+]a ok\n[+]b ok\n[+]ping ok\n{unknown}healthz check passed\n")),
            ),
            (
                &bad,
                query(false, &["x"]),
                answer(
                    500,
                    &format!("[+]a ok\n[-]b failed: reason withheld\n[+]ping ok\n{unknown}healthz check failed\n"),
                ),
            ),
        ];

        for (checks, query, expected) in table {
            assert_eq!(checks.aggregate(&query), expected, "{query:?}");
        }
    }

    #[test]
    fn probe_reasons_are_shown_to_a_local_prober_only() {
        let checks = Checks::default().with("a", failing("no route"));

        let local = checks.aggregate(&ProbeQuery { verbose: true, local: true, exclude: Vec::new() });

        assert_eq!(local, answer(500, "[-]a failed: no route\nhealthz check failed\n"));
    }

    /// spec 80 "better" 4
    #[test]
    fn probe_shows_remarks_to_verbose_probers() {
        let waiting = Arc::new(|| vec!["controller quota waits for its caches".to_owned()]);
        let checks = Checks::with_ping().remarking(waiting);

        assert_eq!(checks.aggregate(&query(false, &[])), answer(200, "ok"));
        let verbose = answer(200, "[+]ping ok\ncontroller quota waits for its caches\nhealthz check passed\n");
        assert_eq!(checks.aggregate(&query(true, &[])), verbose);
    }

    /// spec 70 scenario 23: the text of a single check shows the cause
    #[test]
    fn probe_of_a_single_check_answers_with_its_cause() {
        let checks = Checks::with_ping().with(
            "apiserver-healthz",
            failing("failed talking to the source cluster's kube-apiserver (status code: 503)"),
        );

        assert_eq!(checks.single("ping"), answer(200, "ok"));
        assert_eq!(
            checks.single("apiserver-healthz"),
            answer(
                500,
                "internal server error: failed talking to the source cluster's kube-apiserver (status code: 503)"
            )
        );
        assert_eq!(checks.single("other").status, 404);
    }

    #[test]
    fn probe_fails_if_its_check_panics() {
        let checks = Checks::default().with("a", Arc::new(|| panic!("broken")));

        assert_eq!(checks.single("a"), answer(500, "internal server error: the check panicked"));
    }

    /// spec 70 scenario 22
    #[test]
    fn grace_forgives_failures_for_three_minutes_since_the_first() {
        let mut grace = Grace::default();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let failure = || Err("unsynced".to_owned());

        assert_eq!(grace.judge(at(0), failure()), Ok(()));
        assert_eq!(grace.judge(at(179), failure()), Ok(()));
        assert_eq!(grace.judge(at(180), failure()), failure());
        assert_eq!(grace.judge(at(181), Ok(())), Ok(()));
        assert_eq!(grace.judge(at(182), failure()), Ok(()));
        assert_eq!(grace.judge(at(362), failure()), failure());
    }

    #[tokio::test(start_paused = true)]
    async fn grace_lets_a_check_pass_until_the_period_is_over() {
        let check = with_grace(failing("unsynced"));

        let first = check();
        tokio::time::advance(CACHE_SYNC_GRACE).await;
        let later = check();

        assert_eq!(first, Ok(()));
        assert_eq!(later, Err("unsynced".to_owned()));
    }

    /// spec 70 §6
    #[test]
    fn probes_of_an_unsynced_cache_write_a_record_each_half_minute_however_many_come() {
        let start = Instant::now();
        let mut grace = Grace::default();
        let at = |millis| start + Duration::from_millis(millis);

        let said = (0..60_001).filter(|millis| grace.says(at(*millis)));

        assert_eq!(said.collect::<Vec<_>>(), [0, 30_000, 60_000]);
    }
}
