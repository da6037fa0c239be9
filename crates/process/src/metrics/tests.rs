use std::time::Duration;

use jiff::Timestamp;
use kit::{Priority, ReconcileResult};

use super::{
    declared::ALL,
    testing::{PROGRAM, metrics},
    *,
};

fn value(text: &str, series: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

fn render(metrics: &Metrics) -> String {
    metrics.render_at(Instant::now(), Timestamp::UNIX_EPOCH, ProcessFigures::default())
}

#[track_caller]
fn assert_series(text: &str, series: &str, expected: f64) {
    assert_eq!(value(text, series), Some(expected), "{series} in\n{text}");
}

/// spec 70 scenario 32
#[test]
fn all_series_of_a_started_controller_exist_with_zero() {
    let metrics = metrics();

    metrics.reconciler("garbage-collector", "garbage-collector", 3);

    let text = render(&metrics);
    for result in ["success", "error", "requeue", "requeue_after"] {
        let series =
            format!(r#"controller_runtime_reconcile_total{{controller="garbage-collector",result="{result}"}}"#);
        assert_series(&text, &series, 0.0);
    }
    for name in [
        "controller_runtime_reconcile_errors_total",
        "controller_runtime_terminal_reconcile_errors_total",
        "controller_runtime_reconcile_panics_total",
        "controller_runtime_reconcile_timeouts_total",
        "controller_runtime_reconcile_time_seconds_count",
        "controller_runtime_active_workers",
    ] {
        assert_series(&text, &format!(r#"{name}{{controller="garbage-collector"}}"#), 0.0);
    }
    for name in [
        "workqueue_adds_total",
        "workqueue_retries_total",
        "workqueue_queue_duration_seconds_count",
        "workqueue_work_duration_seconds_count",
        "workqueue_unfinished_work_seconds",
        "workqueue_longest_running_processor_seconds",
    ] {
        let series = format!(r#"{name}{{controller="garbage-collector",name="garbage-collector"}}"#);
        assert_series(&text, &series, 0.0);
    }
    for priority in ["high", "low"] {
        let series = format!(
            r#"workqueue_depth{{controller="garbage-collector",name="garbage-collector",priority="{priority}"}}"#
        );
        assert_series(&text, &series, 0.0);
    }
    assert_series(&text, r#"controller_runtime_max_concurrent_reconciles{controller="garbage-collector"}"#, 3.0);
}

#[test]
fn reconciliations_are_counted_by_result() {
    let metrics = metrics();
    let reconciler = metrics.reconciler("health", "health", 5);

    reconciler.started().finished(ReconcileResult::Success, Duration::from_millis(20));
    reconciler.started().finished(ReconcileResult::TerminalError, Duration::from_secs(2));
    reconciler.started().finished(ReconcileResult::RequeueAfter, Duration::from_secs(2));
    let _running = reconciler.started();
    reconciler.panicked();
    reconciler.timed_out();
    reconciler.depth(Priority::High, 7);
    reconciler.added();
    reconciler.retried();
    reconciler.waited(Duration::from_secs(1));

    let text = render(&metrics);
    assert_series(&text, r#"controller_runtime_reconcile_total{controller="health",result="success"}"#, 1.0);
    assert_series(&text, r#"controller_runtime_reconcile_total{controller="health",result="error"}"#, 1.0);
    assert_series(&text, r#"controller_runtime_reconcile_total{controller="health",result="requeue"}"#, 0.0);
    assert_series(&text, r#"controller_runtime_reconcile_total{controller="health",result="requeue_after"}"#, 1.0);
    assert_series(&text, r#"controller_runtime_reconcile_errors_total{controller="health"}"#, 1.0);
    assert_series(&text, r#"controller_runtime_terminal_reconcile_errors_total{controller="health"}"#, 1.0);
    assert_series(&text, r#"controller_runtime_reconcile_panics_total{controller="health"}"#, 1.0);
    assert_series(&text, r#"controller_runtime_reconcile_timeouts_total{controller="health"}"#, 1.0);
    assert_series(&text, r#"controller_runtime_active_workers{controller="health"}"#, 1.0);
    assert_series(&text, r#"workqueue_depth{controller="health",name="health",priority="high"}"#, 7.0);
    assert_series(&text, r#"workqueue_adds_total{controller="health",name="health"}"#, 1.0);
    assert_series(&text, r#"workqueue_retries_total{controller="health",name="health"}"#, 1.0);
    assert_series(&text, r#"workqueue_queue_duration_seconds_sum{controller="health",name="health"}"#, 1.0);
    assert_series(&text, r#"workqueue_work_duration_seconds_sum{controller="health",name="health"}"#, 4.02);
    assert_series(&text, r#"controller_runtime_reconcile_time_seconds_bucket{controller="health",le="0.025"}"#, 1.0);
    assert_series(&text, r#"controller_runtime_reconcile_time_seconds_bucket{controller="health",le="2"}"#, 3.0);
}

#[test]
fn a_controller_asked_for_again_keeps_its_counts() {
    let metrics = metrics();
    metrics.reconciler("health", "health", 5).started().finished(ReconcileResult::Requeue, Duration::ZERO);

    metrics.reconciler("health", "health", 8);

    let text = render(&metrics);
    assert_series(&text, r#"controller_runtime_reconcile_total{controller="health",result="requeue"}"#, 1.0);
    assert_series(&text, r#"controller_runtime_max_concurrent_reconciles{controller="health"}"#, 8.0);
}

#[tokio::test(start_paused = true)]
async fn running_reconciles_age_until_they_end() {
    let metrics = metrics();
    let reconciler = metrics.reconciler("health", "health", 5);
    let first = reconciler.started();
    tokio::time::advance(Duration::from_secs(4)).await;
    let second = reconciler.started();
    tokio::time::advance(Duration::from_secs(2)).await;

    let both = render(&metrics);
    first.finished(ReconcileResult::Error, Duration::from_secs(1)); // its reported duration does not matter
    let one = render(&metrics);
    drop(second);
    let none = render(&metrics);

    let unfinished = r#"workqueue_unfinished_work_seconds{controller="health",name="health"}"#;
    let longest = r#"workqueue_longest_running_processor_seconds{controller="health",name="health"}"#;
    let active = r#"controller_runtime_active_workers{controller="health"}"#;
    for (text, expected) in [(&both, [8.0, 6.0, 2.0]), (&one, [2.0, 2.0, 1.0]), (&none, [0.0, 0.0, 0.0])] {
        for (series, expected) in [unfinished, longest, active].into_iter().zip(expected) {
            assert_series(text, series, expected);
        }
    }
}

#[test]
fn requests_without_an_answer_have_the_code_error() {
    let metrics = metrics();

    metrics.finished("GET", "10.0.0.1:443", Some(404));
    metrics.finished("PUT", "10.0.0.1:443", None);

    let text = render(&metrics);
    assert_series(&text, r#"rest_client_requests_total{code="404",host="10.0.0.1:443",method="GET"}"#, 1.0);
    assert_series(&text, r#"rest_client_requests_total{code="<error>",host="10.0.0.1:443",method="PUT"}"#, 1.0);
}

#[test]
fn actors_are_counted_from_the_status_registry() {
    let status_registry = StatusRegistry::default();
    let metrics = Metrics::new(PROGRAM, &[], "v1", status_registry.clone());
    let cell = status_registry.enter("health/a/b", Role::Object);
    cell.update(Timestamp::UNIX_EPOCH, |state| state.activity = Activity::BackingOff);

    let before = render(&metrics);
    status_registry.leave("health/a/b");
    let after = render(&metrics);

    let series = r#"test_actors{activity="backing_off",role="object"}"#;
    assert_series(&before, series, 1.0);
    assert_series(&after, series, 0.0);
    assert_series(&after, r#"test_actors{activity="idle",role="watch"}"#, 0.0);
}

#[test]
fn a_new_configuration_hash_replaces_the_old_one() {
    let metrics = metrics();

    metrics.config_hash("aaa");
    metrics.config_hash("bbb");

    let text = render(&metrics);
    assert_eq!(value(&text, r#"test_config_hash{hash="aaa"}"#), None);
    assert_series(&text, r#"test_config_hash{hash="bbb"}"#, 1.0);
    assert_series(&text, r#"test_build_info{version="v1.2.3"}"#, 1.0);
}

#[test]
fn process_figures_are_read_at_each_scrape() {
    let metrics = metrics();
    let figures = ProcessFigures {
        cpu_seconds: Some(1.5),
        resident_bytes: Some(4096.0),
        virtual_bytes: Some(8192.0),
        open_fds: Some(7.0),
        max_fds: Some(1024.0),
        start_seconds: Some(1_700_000_000.25),
    };

    metrics.render_at(Instant::now(), Timestamp::UNIX_EPOCH, figures);
    let text = metrics.render_at(
        Instant::now(),
        Timestamp::UNIX_EPOCH,
        ProcessFigures { cpu_seconds: Some(2.5), max_fds: None, ..figures },
    );

    assert_series(&text, "process_cpu_seconds_total", 2.5);
    assert_series(&text, "process_resident_memory_bytes", 4096.0);
    assert_series(&text, "process_virtual_memory_bytes", 8192.0);
    assert_series(&text, "process_open_fds", 7.0);
    assert_series(&text, "process_start_time_seconds", 1_700_000_000.25);
    assert_eq!(value(&text, "process_max_fds"), None);
}

#[test]
fn metrics_show_the_values_that_were_set() {
    let source = ClusterLabel::may_be_down("source");
    let metrics =
        Metrics::new(PROGRAM, &[source, ClusterLabel::may_be_down("target")], "v1", StatusRegistry::default());

    metrics.leader("gardener-resource-manager", true);
    metrics.event_dropped();
    metrics.request_scheduler(source, 0, 40, 16);

    let text = render(&metrics);
    assert_series(&text, r#"leader_election_master_status{name="gardener-resource-manager"}"#, 1.0);
    assert_series(&text, r#"test_mailbox_overflows_total{mailbox="events"}"#, 1.0);
    assert_series(&text, r#"test_request_scheduler_writes_in_flight{cluster="source"}"#, 16.0);
    assert_series(&text, r#"test_request_scheduler_waiting{cluster="source",priority="low"}"#, 40.0);
    assert_series(&text, r#"test_request_scheduler_waiting{cluster="source",priority="high"}"#, 0.0);
    assert_series(&text, r#"test_request_scheduler_waiting{cluster="target",priority="high"}"#, 0.0);
}

#[test]
fn metrics_are_all_rendered_with_help_and_type() {
    let metrics = metrics();
    metrics.reconciler("health", "health", 1);
    metrics.request_scheduler(ClusterLabel::may_be_down("source"), 0, 0, 0);
    metrics.finished("GET", "a:443", Some(200));
    metrics.leader("a", false);
    metrics.config_hash("a");
    metrics.event_dropped();
    metrics.figure("level", "deep", 1.0);
    metrics.figure("trip", "", 1.0);
    metrics.figure("end", "", 1.0);
    metrics.figure("falls", "", 1.0);

    let text = metrics.render_at(
        Instant::now(),
        Timestamp::UNIX_EPOCH,
        ProcessFigures {
            cpu_seconds: Some(1.0),
            resident_bytes: Some(1.0),
            virtual_bytes: Some(1.0),
            open_fds: Some(1.0),
            max_fds: Some(1.0),
            start_seconds: Some(1.0),
        },
    );

    let own = PROGRAM.figures.iter().map(|figure| figure.declaration);
    for declaration in ALL.iter().copied().chain(own) {
        let (name, help) = (declaration.name.full(PROGRAM.prefix), declaration.help);
        let kind = match declaration.kind {
            declared::MetricKind::Counter => "counter",
            declared::MetricKind::Gauge => "gauge",
            declared::MetricKind::Histogram(_) => "histogram",
        };
        assert!(text.contains(&format!("# HELP {name} {help}\n")), "{name}");
        assert!(text.contains(&format!("# TYPE {name} {kind}\n")), "{name}");
    }
    let families = text.lines().filter(|line| line.starts_with("# TYPE ")).count();
    assert_eq!(families, ALL.len() + PROGRAM.figures.len());
}

#[test]
fn figure_of_a_program_counts_from_zero() {
    let metrics = metrics();
    for (added, shown) in [(0.0, 0.0), (1.0, 1.0), (2.0, 3.0), (-1.0, 3.0)] {
        metrics.figure("falls", "", added);

        assert_series(&render(&metrics), "test_falls_total", shown);
    }
}

#[test]
fn figure_of_a_program_shows_levels_trips_and_the_time_until_the_end() {
    let metrics = metrics();
    let at = |seconds: i64| {
        let now = Timestamp::from_second(seconds).unwrap();
        metrics.render_at(Instant::now(), now, ProcessFigures::default())
    };

    metrics.figure("level", "deep", 3.0);
    metrics.figure("level", "deep", 2.0);
    metrics.figure("trip", "", 4.0);
    metrics.figure("end", "", 100.0);
    metrics.figure("unknown", "", 1.0);

    assert_series(&at(0), r#"test_level{at="deep"}"#, 2.0);
    assert_series(&at(0), "test_trip_count", 1.0);
    assert_series(&at(40), "test_end", 60.0);
    assert_series(&at(160), "test_end", -60.0);
    metrics.figure("end", "", f64::NAN);
    assert_eq!(value(&at(0), "test_end"), None);
}

#[test]
fn figure_series_has_all_labels_and_can_be_removed() {
    let metrics = metrics();
    let set = |labels: &[&str], level| {
        metrics.figure_series("level", labels, level);
        value(&metrics.render(), r#"test_level{at="deep"}"#)
    };

    assert_eq!(set(&["deep"], Some(2.0)), Some(2.0));
    assert_eq!(set(&["deep", "too many"], Some(3.0)), Some(2.0));
    assert_eq!(set(&["deep"], None), None);
    assert_eq!(set(&["deep"], None), None);
}

/// spec 80 "better" 4
#[test]
fn controller_is_ready_while_its_required_caches_are() {
    let metrics = metrics();
    let reconciler = metrics.reconciler("quota", "quota", 5);

    for (is_ready, shown, waiting) in [(false, 0.0, vec!["quota"]), (true, 1.0, vec![]), (false, 0.0, vec!["quota"])] {
        reconciler.ready(is_ready);
        assert_series(&metrics.render(), r#"test_controller_ready{controller="quota"}"#, shown);
        assert_eq!(metrics.waiting_controllers(), waiting);
    }
}
