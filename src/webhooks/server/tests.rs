//! The server over real sockets and TLS.

mod client;
mod heads;
mod limits;
mod unread;

use std::{path::Path, process::Command, sync::Arc, time::Duration};

use client::{Answer, Client};
use process::{
    http::{
        listen::ListenAddress,
        probes::{Checks, ProbeQuery},
    },
    metrics::Registrar,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{sync::mpsc, time::Instant};

use super::{metrics::WebhookServerMetrics, *};
use crate::{
    api::config::resource_manager::{NodeAgentAuthorizer, Webhooks},
    webhooks::{
        endpoint::Mutating,
        knowledge::{LiveAnswer, Question},
        mutating::{Mutation, Mutator, Request, token_mount::SERVICE_ACCOUNTS},
        registry::{self, WebhookEntry},
        review::FailurePolicy,
        view::{Failure, Lookup, View},
    },
};

const MUTATING: &str = "/webhooks/mutating";
const DENYING: &str = "/webhooks/denying";
const PANICKING: &str = "/webhooks/panicking";
const LOOKING: &str = "/webhooks/looking";
const AUTHORIZING: &str = "/webhooks/auth/nodeagent";
const LARGE: &str = "/webhooks/large";

const REQUESTS: &str = "controller_runtime_webhook_requests_total";

struct Rig {
    server: WebhookServer,
    directory: TempDir,
    metrics: prometheus::Registry,
    status_registry: StatusRegistry,
    presence: Presence,
    questions: mpsc::Receiver<Question>,
}

struct Scripted(fn(&mut Value, &dyn View) -> Result<Mutation, Failure>);

impl Mutator for Scripted {
    fn mutate(&self, object: &mut Value, _: &Request<'_>, view: &dyn View) -> Result<Mutation, Failure> {
        (self.0)(object, view)
    }

    fn takes(&self) -> Option<(&'static str, &'static str)> {
        Some(("", "Pod"))
    }
}

fn entry(path: &'static str, mutate: fn(&mut Value, &dyn View) -> Result<Mutation, Failure>) -> WebhookEntry {
    let endpoint = Mutating { failure_policy: FailurePolicy::Fail, mutator: Arc::new(Scripted(mutate)) };
    WebhookEntry { key: "test", path, reads: Vec::new(), endpoint: Arc::new(endpoint) }
}

fn webhooks() -> Vec<WebhookEntry> {
    vec![
        entry(MUTATING, |object, _| {
            object["metadata"]["labels"] = json!({"a": "b"});
            Ok(Mutation::Done)
        }),
        entry(DENYING, |_, _| Err(Failure::Denied("no".into()))),
        entry(LARGE, |object, _| {
            object["metadata"]["labels"] = json!({"a": "b".repeat(1 << 20)});
            Ok(Mutation::Done)
        }),
        entry(PANICKING, |_, _| panic!("at the disco")),
        entry(LOOKING, |_, view| {
            let name = cluster::object::NamespacedName::new("n", "a");
            view.object(&SERVICE_ACCOUNTS, &name).map(|_| Mutation::Done)
        }),
        authorizing(),
    ]
}

fn authorizing() -> WebhookEntry {
    let webhooks = Webhooks { node_agent_authorizer: NodeAgentAuthorizer::default().into(), ..Webhooks::default() };
    registry::enabled(&webhooks).remove(0)
}

/// Writes a new pair; P-256, because generating it is fast.
fn write_pair(directory: &Path, name: &str) {
    let file = |name: &str| directory.join(name).display().to_string();
    let (new_certificate, new_key) = (file("new.crt"), file("new.key"));
    let subject = format!("/CN={name}");
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"])
        .args(["-subj", &subject, "-out", &new_certificate, "-keyout", &new_key])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    std::fs::rename(new_key, file("tls.key")).unwrap();
    std::fs::rename(new_certificate, file("tls.crt")).unwrap();
}

impl Rig {
    fn start() -> Self {
        Self::start_within(Descriptors::default().encrypted(), UNREAD)
    }

    fn start_within(bounds: Bounds, unread: UnreadLimits) -> Self {
        let directory = tempfile::tempdir().unwrap();
        write_pair(directory.path(), "first");
        let (status_registry, presence) = (StatusRegistry::default(), Presence::default());
        let metrics = prometheus::Registry::new();
        let (knowledge, questions) = Knowledge::without_service_accounts();
        let server = WebhookServer::start_within(
            ServerParts {
                listeners: ListenAddress { host: "127.0.0.1".into(), port: 0 }.listen().unwrap(),
                webhooks: webhooks(),
                certificate: read_certificate(directory.path()).unwrap(),
                certificate_directory: directory.path().to_owned(),
                metrics: WebhookServerMetrics::new(&Registrar::new(metrics.clone(), "gardener_resource_manager")),
                status_registry: status_registry.clone(),
                presence: presence.clone(),
                descriptors: Descriptors::default(),
            },
            knowledge,
            bounds,
            unread,
        )
        .unwrap();
        Self { server, directory, metrics, status_registry, presence, questions }
    }

    fn client(&self) -> Client {
        Client::new(self.server.address())
    }

    fn metric(&self, series: &str) -> String {
        let text = prometheus::TextEncoder::new().encode_to_string(&self.metrics.gather()).unwrap();
        text.lines().find_map(|line| line.strip_prefix(series)).map(str::trim).unwrap_or("absent").to_owned()
    }

    async fn stop(self) {
        let status_registry = self.status_registry.clone();
        self.server.stop(Instant::now() + Duration::from_secs(5)).await;
        assert!(status_registry.snapshot().is_empty());
    }
}

fn review(uid: &str) -> String {
    let object = json!({"kind": "Pod", "metadata": {"name": "p"}});
    let request = json!({"uid": uid, "operation": "CREATE", "namespace": "n", "object": object});
    json!({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "request": request}).to_string()
}

fn status(answer: &Answer) -> (u16, String) {
    let status = &answer.json()["response"]["status"];
    let code = status["code"].as_u64().and_then(|code| code.try_into().ok()).unwrap();
    (code, status["message"].as_str().unwrap_or_default().to_owned())
}

/// spec 50 §2.1, scenarios 1, 8 and 12: no leadership is involved
#[actix_web::test]
async fn reviews_are_answered() {
    let rig = Rig::start();
    let client = rig.client();

    let answer = client.review(&format!("{MUTATING}?timeout=10s"), "7c1f").await;

    assert_eq!((answer.status, answer.content_type.as_str()), (200, "application/json"));
    assert_eq!(answer.json()["apiVersion"], "admission.k8s.io/v1beta1");
    assert_eq!(answer.json()["response"]["uid"], "7c1f");
    assert_eq!(answer.json()["response"]["patchType"], "JSONPatch");
    for path in ["/webhooks/mutating/", "/webhooks/other", "/"] {
        let answer = client.review(path, "7c1f").await;
        assert_eq!((answer.status, answer.text().as_str()), (404, "404 page not found\n"), "{path}");
    }
    rig.stop().await;
}

/// spec 50 §2.2 rows 1, 3 and 4, scenarios 3, 4 and 5
#[actix_web::test]
async fn malformed_review_is_denied_within_an_http_200() {
    let rig = Rig::start();
    let sized = |size: usize| format!("{}{}", review("7c1f"), " ".repeat(size - review("7c1f").len()));
    let client = rig.client();
    let post = async |content_type: &str, body: String| {
        let answer = client.post(MUTATING, content_type, body).await;
        assert_eq!(answer.status, 200);
        status(&answer)
    };
    let contract = (400, "contentType=application/json; charset=utf-8, expected application/json".to_owned());
    let large = (413, "request entity is too large; limit is 7340032 bytes".to_owned());

    assert_eq!(post("", String::new()).await, (400, "request body is empty".to_owned()));
    assert_eq!(post("application/json; charset=utf-8", review("7c1f")).await, contract);
    assert_eq!(post("application/json", sized(7_340_031)).await, (200, String::new()));
    assert_eq!(post("application/json", sized(7_340_032)).await, large);
    assert_eq!(post("application/json", sized(7_900_000)).await, large);
    assert_eq!(client.review(MUTATING, "next").await.status, 200);
    rig.stop().await;
}

/// spec 50 scenario 11
#[actix_web::test]
async fn webhook_panic_costs_one_review() {
    let rig = Rig::start();
    let client = rig.client();
    assert_eq!(rig.metric("controller_runtime_webhook_panics_total"), "0");

    let answers = [client.review(PANICKING, "1").await, client.review(PANICKING, "2").await];

    for (uid, answer) in ["1", "2"].into_iter().zip(answers) {
        assert_eq!((answer.status, status(&answer)), (200, (500, "panic: at the disco [recovered]".to_owned())));
        assert_eq!(answer.json()["response"]["uid"], uid);
    }
    assert_eq!(rig.metric("controller_runtime_webhook_panics_total"), "2");
    assert_eq!(client.review(MUTATING, "3").await.status, 200);
    rig.stop().await;
}

/// spec 50 §2.8, scenario 13
#[actix_web::test]
async fn denials_are_counted_as_answers() {
    let rig = Rig::start();
    let count = |code| rig.metric(&format!("{REQUESTS}{{code=\"{code}\",webhook=\"{DENYING}\"}}"));
    assert_eq!((count(200), count(500)), ("0".to_owned(), "0".to_owned()));

    for _ in 0..3 {
        assert_eq!(status(&rig.client().review(DENYING, "u").await), (403, "no".to_owned()));
    }

    assert_eq!((count(200), count(500)), ("3".to_owned(), "0".to_owned()));
    let gauge = format!("controller_runtime_webhook_requests_in_flight{{webhook=\"{DENYING}\"}}");
    assert_eq!(rig.metric(&gauge), "0");
    let cell = rig.status_registry.snapshot().into_iter().find(|cell| cell.path == DENYING[1..]).unwrap();
    assert!(cell.line.starts_with("3 requests, 3 denied, 0 errors"), "{}", cell.line);
    rig.stop().await;
}

/// spec 61 §1.2, §1.3, "better": what is counted
#[actix_web::test]
async fn authorizer_answers_within_an_http_200_and_its_decisions_are_counted() {
    let rig = Rig::start();
    let client = rig.client();
    let review = |verb: &str, resource: &str| {
        let attributes = json!({"verb": verb, "resource": resource, "name": "n1"});
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
            "user": "gardener.cloud:node-agent:machine:n1", "groups": ["gardener.cloud:node-agents"],
            "resourceAttributes": attributes,
        }})
        .to_string()
    };
    let post = async |content_type: &str, body: String| {
        let answer = client.post(&format!("{AUTHORIZING}?timeout=10s"), content_type, body).await;
        assert_eq!((answer.status, answer.content_type.as_str()), (200, "application/json"));
        answer.json()["status"].clone()
    };
    let error = |text: &str| json!({"allowed": false, "evaluationError": text});

    assert_eq!(post("application/json", review("list", "nodes")).await, json!({"allowed": true}));
    assert_eq!(post("application/json", review("list", "services")).await, json!({"allowed": false, "denied": true}));
    let cause = "500 error getting node \"/n1\": the cache is not started, can not read objects";
    assert_eq!(post("application/json", review("get", "nodes")).await, error(cause));
    let cause = "400 contentType=text/plain, expected application/json";
    assert_eq!(post("text/plain", review("get", "nodes")).await, error(cause));
    let cause = "413 request entity is too large; limit is 7340032 bytes";
    assert_eq!(post("application/json", " ".repeat(7_340_032)).await, error(cause));

    let count = |resource: &str, decision: &str| {
        let name = "gardener_resource_manager_authorizer_decisions_total";
        let labels = format!("decision=\"{decision}\",resource=\"{resource}\",webhook=\"{AUTHORIZING}\"");
        rig.metric(&format!("{name}{{{labels}}}"))
    };
    assert_eq!([count("nodes", "allow"), count("nodes", "error")], ["1", "1"]);
    assert_eq!([count("other", "deny"), count("other", "error"), count("pods", "allow")], ["1", "2", "absent"]);
    let cell = rig.status_registry.snapshot().into_iter().find(|cell| cell.path == AUTHORIZING[1..]).unwrap();
    assert!(cell.line.starts_with("5 requests, 1 denied, 3 errors"), "{}", cell.line);
    rig.stop().await;
}

/// spec 70 §6
#[actix_web::test]
async fn readiness_probes_at_once_share_one_connection() {
    let rig = Rig::start();
    let refresh = || async {
        let checks = rig.presence.add_to(Checks::default());
        checks.refresh(&ProbeQuery::default()).await;
        checks.single("webhook-server").body
    };

    let bodies = futures::future::join_all((0..200).map(|_| refresh())).await;

    assert!(bodies.iter().all(|body| body == "ok"), "{bodies:?}");
    assert_eq!(rig.presence.tries(), 1);
    rig.stop().await;

    let unanswered = Presence::default();
    unanswered.show("127.0.0.1:1".parse().unwrap());
    let checks = unanswered.add_to(Checks::default());
    let query = ProbeQuery::default();
    futures::future::join_all((0..200).map(|_| checks.refresh(&query))).await;
    assert_eq!(unanswered.tries(), 1, "failures are shared, too");
}

/// spec 70 §6
#[actix_web::test]
async fn readiness_check_passes_when_the_server_can_be_reached() {
    let presence = Presence::default();
    let checks = presence.add_to(Checks::default());
    checks.refresh(&ProbeQuery::default()).await;
    let single = checks.single("webhook-server");
    assert_eq!(single.body, "internal server error: webhook server has not been started yet");

    let rig = Rig::start();
    let checks = rig.presence.add_to(Checks::default());
    checks.refresh(&ProbeQuery::default()).await;
    assert_eq!(checks.single("webhook-server").body, "ok");
    rig.stop().await;

    let unanswered = Presence::default();
    unanswered.show("127.0.0.1:1".parse().unwrap());
    let checks = unanswered.add_to(Checks::default());
    checks.refresh(&ProbeQuery::default()).await;
    let body = checks.single("webhook-server").body;
    assert!(body.starts_with("internal server error: webhook server is not reachable: "), "{body}");
}

/// spec 70 scenario 25
#[actix_web::test]
async fn certificate_reload_uses_a_new_pair_and_ignores_a_broken_pair() {
    let rig = Rig::start();
    let staying = rig.client();
    let first = staying.certificate_after_review(MUTATING).await;
    let renewed = async |old: &[u8]| {
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            let shown = rig.client().certificate_after_review(MUTATING).await;
            assert_eq!(staying.review(MUTATING, "open").await.status, 200);
            if shown != old {
                return shown;
            }
            assert!(Instant::now() < end, "the new certificate is not served");
        }
    };

    write_pair(rig.directory.path(), "second");
    let second = renewed(&first).await;
    std::fs::write(rig.directory.path().join("tls.key"), "broken").unwrap();
    let errors = || rig.metric("certwatcher_read_certificate_errors_total");
    let end = Instant::now() + Duration::from_secs(10);
    while errors() == "0" {
        assert_eq!(rig.client().certificate_after_review(MUTATING).await, second);
        assert!(Instant::now() < end, "the broken pair was not read");
    }
    assert_eq!(rig.client().certificate_after_review(MUTATING).await, second);
    write_pair(rig.directory.path(), "third");
    renewed(&second).await;
    let seconds = rig.metric("gardener_resource_manager_serving_certificate_expiration_timestamp_seconds");
    let left = seconds.parse::<i64>().unwrap() - kit::Clock::system_wall().as_second();
    assert!((47 * 3600..=48 * 3600).contains(&left), "{seconds}");

    rig.stop().await;
}
