//! The check at the start against a simulated API server, in virtual time.

use std::{
    io,
    rc::Rc,
    sync::{Arc, Mutex},
    time::Duration,
};

use cluster::{AnswerRoom, Cluster, ClusterEnv, ClusterOptions, Fence, NoObserver};
use kit::{Clock, Random};
use serde_json::Value;
use sim::{Fault, Seen, Sim, SimOptions};
use tokio::time::{Instant, timeout};

use super::*;
use crate::api::{config::resource_manager, resources::side::Side};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Longer than all pauses of a check together.
const LONG: Duration = Duration::from_secs(86_400);

/// Runs the check of the source cluster with the default configuration to its end, and returns what it logs as values.
async fn logged(sim: &Sim) -> Vec<Value> {
    let (records, has_ended) = logged_within(sim, LONG).await;
    assert!(has_ended, "{records:#?}");
    records
}

/// Also returns whether the check has ended within the limit.
async fn logged_within(sim: &Sim, limit: Duration) -> (Vec<Value>, bool) {
    let (log, clock) = (Log::default(), Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap()));
    let stream = log.clone();
    let subscriber = tracing_subscriber::fmt().json().flatten_event(true).with_writer(move || stream.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let fence = Fence::open();
    fence.shut("a standby writes nothing");
    let env = ClusterEnv { clock, random: Random::seeded(1), fence, room: AnswerRoom::default() };
    let options = ClusterOptions {
        label: Side::Source.label(),
        host: "sim".to_owned(),
        qps: 100.0,
        burst: 100,
        namespaces: Vec::new(),
    };
    let cluster = Cluster::new(sim.client(), options, env, Rc::new(NoObserver));

    let needed = programs::of_resource_manager(&resource_manager::Config::default());
    let has_ended = timeout(limit, at_start::check(&cluster, &needed)).await.is_ok();

    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    (text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), has_ended)
}

fn simulated() -> Sim {
    let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    Sim::new(SimOptions::new(clock, Random::seeded(1)))
}

fn messages(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["message"].as_str().unwrap_or_default()).collect()
}

/// Who may do everything is asked once for each place: all namespaces, and that of the Lease.
#[tokio::test(start_paused = true)]
async fn rights_of_an_administrator_take_few_reviews() {
    let sim = simulated();
    sim.set_reviewer(|_| (true, String::new()));

    let records = logged(&sim).await;

    assert_eq!(messages(&records), ["The rights that the configuration needs are checked"]);
    assert_eq!(records[0]["needed"], records[0]["granted"]);
    assert!(sim.requests().len() <= 2, "{}", sim.requests().len());
}

#[tokio::test(start_paused = true)]
async fn rights_that_are_missing_are_logged_with_their_remedy() {
    let sim = simulated();
    sim.set_reviewer(|spec| {
        let of = |field: &str| spec["resourceAttributes"][field].as_str().unwrap_or_default().to_owned();
        let is_missing = match (&*of("resource"), &*of("verb")) {
            ("*", _) | ("secrets", "list" | "watch") | ("events", "patch") => true,
            _ => of("subresource") == "status" && of("verb") == "patch",
        };
        (!is_missing, String::new())
    });

    let records = logged(&sim).await;

    let [optional, secrets, status, done] =
        ["events", "secrets", "managedresources/status.resources.gardener.cloud", "checked"].map(|word| {
            let has = |record: &&Value| record["resource"] == word || record["message"].to_string().contains(word);
            records.iter().find(has).unwrap_or_else(|| panic!("no {word}: {records:#?}"))
        });
    assert_eq!(records.len(), 4, "{records:#?}");
    assert_eq!((&secrets["level"], &secrets["verbs"]), (&"WARN".into(), &"list, watch".into()));
    assert_eq!((&secrets["cluster"], &secrets["needed_by"]), (&"source".into(), &"the program".into()));
    let remedy =
        "grant it with a ClusterRole of the source cluster; the chart does so with the value global.rbac.create";
    assert_eq!(secrets["remedy"], remedy);
    assert_eq!((&status["level"], &status["verbs"]), (&"WARN".into(), &"patch".into()));
    assert_eq!((&optional["level"], &optional["verbs"]), (&"INFO".into(), &"patch".into()));
    assert_eq!(optional["without"], "Repetitions of an Event are not recorded");
    let number = |field: &str| done[field].as_u64().unwrap();
    assert_eq!(number("needed") - number("granted"), 4);
}

/// While the API server is away, a few questions are asked, further and further apart. Each right is asked for once.
#[tokio::test(start_paused = true)]
async fn rights_are_checked_when_the_api_server_comes_back() {
    let sim = simulated();
    sim.set_reviewer(|spec| (spec["resourceAttributes"]["resource"] != "*", String::new()));
    let (begin, away) = (Instant::now(), Duration::from_secs(600));
    sim.set_faults(move |_| match begin.elapsed() < away {
        true => Fault::FailBefore(Seen::Disconnect),
        false => Fault::None,
    });

    let records = logged(&sim).await;

    assert_eq!(messages(&records), ["The rights that the configuration needs are checked"]);
    assert!(begin.elapsed() < away + Duration::from_secs(130), "{:?}", begin.elapsed());
    let needed = records[0]["needed"].as_u64().unwrap() as usize;
    let asked = sim.requests().len();
    assert!((needed..needed + 60).contains(&asked), "{asked} requests for {needed} rights");
}

#[tokio::test(start_paused = true)]
async fn rights_are_checked_although_the_version_cannot_be_read() {
    let sim = simulated();
    sim.set_reviewer(|_| (true, String::new()));
    sim.set_faults(|info| match info.path.as_str() {
        "/version" => Fault::FailBefore(Seen::internal_error("broken")),
        _ => Fault::None,
    });

    let (records, has_ended) = logged_within(&sim, Duration::from_secs(1)).await;

    assert_eq!(messages(&records), ["The rights that the configuration needs are checked"]);
    assert!(!has_ended, "the version is asked for again");
}

#[tokio::test(start_paused = true)]
async fn version_is_checked_although_no_right_can_be_asked_for() {
    let sim = simulated();
    sim.set_faults(|info| match info.path.as_str() {
        "/version" => Fault::FailBefore(Seen::body(r#"{"gitVersion": "v1.20.0"}"#)),
        _ => Fault::FailBefore(Seen::internal_error("broken")),
    });

    let (records, has_ended) = logged_within(&sim, Duration::from_secs(1)).await;

    let text = "The version of Kubernetes is not supported: the program supports Kubernetes 1.32 to 1.37";
    assert_eq!(messages(&records), [text]);
    assert!(!has_ended, "the rights are asked for again");
}

#[tokio::test(start_paused = true)]
async fn rights_that_nobody_may_ask_for_are_one_line() {
    let sim = simulated();
    sim.set_faults(|info| Fault::FailBefore(Seen::forbidden(info)));

    let records = logged(&sim).await;

    let mut found = messages(&records);
    found.sort_unstable();
    let expected = [
        "It is not known which rights are missing: the API server answers no SelfSubjectAccessReview",
        "The version of Kubernetes is not known",
    ];
    assert_eq!(found, expected);
    let is_explained = |record: &Value| record["error"].as_str().is_some_and(|error| error.contains("forbidden"));
    assert!(records.iter().all(is_explained), "{records:#?}");
    assert_eq!(sim.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn rights_without_a_decision_of_the_api_server_are_not_called_missing() {
    let sim = simulated();
    sim.set_faults(|info| match info.resource.as_str() {
        "selfsubjectaccessreviews" => {
            Fault::FailBefore(Seen::body(r#"{"kind": "SelfSubjectAccessReview", "status": {}}"#))
        }
        _ => Fault::None,
    });

    let records = logged(&sim).await;

    let expected = [
        "It is not known whether the process has some rights: the API server answers without a decision",
        "The rights that the configuration needs are checked",
    ];
    assert_eq!(messages(&records), expected);
    assert_eq!((&records[0]["undecided"], &records[1]["granted"]), (&records[1]["needed"], &0.into()));
}
