//! Processes on the simulated API server, on virtual time.

use std::{
    future::Future,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use cluster::NoObserver;
use kit::{
    Census, Env, Fatal,
    testing::{self, Universe, universe},
};
use serde_json::{Value, json};
use sim::{ClientOptions, Fault, Seen, Sim, SimOptions};
use tokio::time::{Instant, sleep};

use super::*;
use crate::{
    actors::root::PATIENCE,
    api::{
        config::{Config, HighAvailabilityConfig, LeaderElection, NodeAgentAuthorizer},
        crd,
    },
    dashboard::probes::ProbeQuery,
    webhooks::{
        endpoint::{Body, Received},
        knowledge::Answers,
        registry,
        view::View as _,
    },
};

const NAMESPACE: &str = "shoot";
const MANAGED_RESOURCES: &str = "managedresources.resources.gardener.cloud";
const LEASES: &str = "leases.coordination.k8s.io";
const LEASE_DURATION: Duration = Duration::from_secs(15);
const LIMIT: Duration = Duration::from_secs(60);

/// A simulated cluster.
struct World {
    sim: Sim,
    env: Env,
}

/// A process in it, with a user of its own name.
struct Replica {
    process: Process,
    vitals: Vitals,
    life: sim::Process,
}

fn world<F: Future<Output = ()>>(test: impl FnOnce(World) -> F) {
    universe(1, |Universe { env }| async move {
        let options = SimOptions::new(env.clock.clone(), env.random.clone());
        let sim = Sim::new(SimOptions { latency: Duration::from_millis(1), ..options });
        let definition: Value = serde_saphyr::from_str(crd::MANAGED_RESOURCES).unwrap();
        sim.put(definition).unwrap();
        sim.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})).unwrap();
        sleep(Duration::from_secs(1)).await;
        sim.clear_requests();
        test(World { sim, env }).await;
        testing::settle().await;
    });
}

fn elected() -> Config {
    let election = LeaderElection {
        lease_duration: LEASE_DURATION,
        renew_deadline: Duration::from_secs(10),
        retry_period: Duration::from_secs(2),
        resource_lock: "leases".into(),
        resource_namespace: NAMESPACE.into(),
        resource_name: "grm".into(),
    };
    Config { leader_election: Some(election), ..Config::default() }
}

// === impl World ===

impl World {
    fn start(&self, user: &str, config: Config) -> Replica {
        self.start_in(user, config, self.env.clone())
    }

    /// One of several processes: with a census of its own.
    fn start_beside(&self, user: &str, config: Config) -> Replica {
        self.start_in(user, config, Env { census: Census::default(), fatal: Fatal::default(), ..self.env.clone() })
    }

    fn start_in(&self, user: &str, config: Config, env: Env) -> Replica {
        let life = sim::Process::new();
        let client = self.sim.client_of(ClientOptions {
            user: user.into(),
            groups: vec!["system:masters".into()],
            user_agent: "gardener-resource-manager/test".into(),
            process: life.clone(),
        });
        let vitals = Vitals::default();
        let parts = ProcessParts {
            source: Link { client, host: "simulator:443".into() },
            target: None,
            election: None,
            identity: identity(user, &env),
            config,
            env,
            requests: Rc::new(NoObserver),
            vitals: vitals.clone(),
        };
        Replica { process: Process::start(parts).unwrap(), vitals, life }
    }

    fn bundle(&self, name: &str, value: &str) {
        let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": value},
            "metadata": {"name": name, "namespace": NAMESPACE}});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE},
            "data": {"object.yaml": BASE64_STANDARD.encode(manifest.to_string())}});
        let mr = json!({"apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
            "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"secretRefs": [{"name": name}]}});
        self.sim.put(secret).unwrap();
        self.sim.put(mr).unwrap();
    }

    fn is_applied(&self, name: &str) -> bool {
        let mr = self.sim.object(MANAGED_RESOURCES, NAMESPACE, name).unwrap_or_default();
        let mut conditions = mr["status"]["conditions"].as_array().into_iter().flatten();
        conditions.any(|condition| condition["type"] == "ResourcesApplied" && condition["status"] == "True")
    }

    async fn applied(&self, name: &str) {
        testing::eventually(&format!("{name} is applied"), LIMIT, || self.is_applied(name)).await;
    }

    fn origin(&self, name: &str) -> Option<String> {
        let object = self.sim.object("configmaps", NAMESPACE, name)?;
        Some(object["metadata"]["annotations"]["resources.gardener.cloud/origin"].as_str()?.to_owned())
    }

    /// The user in whose name the lease is held; empty if it is free.
    fn holder(&self) -> Option<String> {
        let lease = self.sim.object(LEASES, NAMESPACE, "grm")?;
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
        Some(holder.split('_').next().unwrap_or_default().to_owned())
    }

    async fn held_by(&self, user: &str) {
        testing::eventually(&format!("{user} leads"), LIMIT, || self.holder().as_deref() == Some(user)).await;
    }

    /// Writes of a user so far, without Leases and Events.
    fn writes(&self, user: &str) -> usize {
        let requests = self.sim.requests().into_iter().map(|request| request.info);
        let work = requests.filter(|info| {
            info.user == user
                && !matches!(info.verb.as_str(), "get" | "list" | "watch")
                && !matches!(info.resource.as_str(), "leases" | "events")
        });
        work.count()
    }

    fn probes(&self) -> usize {
        self.sim.requests().iter().filter(|request| request.info.path == "/healthz").count()
    }

    fn put_cluster_identity(&self, data: Value) {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": {"name": "cluster-identity", "namespace": "kube-system"}});
        self.sim.put(object).unwrap();
    }

    fn delay_creations(&self, delay: Duration) {
        self.sim.set_faults(move |info| match (info.verb.as_str(), info.resource.as_str()) {
            ("create", "configmaps") => Fault::Delay(delay),
            _ => Fault::None,
        });
    }
}

// === leader election ===

/// spec 70 scenario 24
#[test]
fn the_second_replica_works_when_the_first_has_crashed() {
    world(|world| async move {
        let mut first = world.start_beside("first", elected());
        world.held_by("first").await;
        let second = world.start_beside("second", elected());
        world.bundle("one", "v");
        world.applied("one").await;
        assert_eq!(world.writes("second"), 0);

        first.life.crash();
        let crashed = Instant::now();
        world.bundle("two", "v");
        world.applied("two").await;

        assert!(crashed.elapsed() < LEASE_DURATION + Duration::from_secs(6), "{:?}", crashed.elapsed());
        assert_eq!(world.holder().as_deref(), Some("second"));
        assert_eq!(first.process.ended().await.to_string(), "leader election lost");
        assert!(!first.process.stop(Duration::ZERO).await.released);
        let stopped = second.process.stop(PATIENCE).await;
        assert_eq!(stopped, Stopped { finished: true, released: true });
    });
}

/// spec 70 scenario 28, contract rule 9
#[test]
fn a_lease_that_was_taken_over_ends_the_process_and_its_writes() {
    world(|world| async move {
        let mut replica = world.start("first", elected());
        world.bundle("one", "v");
        world.applied("one").await;

        world.sim.edit(LEASES, NAMESPACE, "grm", |lease| lease["spec"]["holderIdentity"] = json!("other_1"));
        let error = replica.process.ended().await;
        let writes = world.writes("first");
        world.bundle("two", "v");
        sleep(Duration::from_secs(30)).await;

        assert_eq!(error.to_string(), "leader election lost");
        assert_eq!(world.writes("first"), writes);
        replica.process.stop(Duration::ZERO).await;
        assert_eq!(world.holder().as_deref(), Some("other"));
    });
}

#[test]
fn settings_that_do_not_fit_together_are_refused_at_the_start() {
    type Change = fn(&mut LeaderElection);
    let cases: [(Change, &str); 3] = [
        (|it| it.retry_period = Duration::from_secs(9), "renewDeadline must be greater than retryPeriod*JitterFactor"),
        (|it| it.resource_lock = "configmaps".into(), "configmaps lock is removed, migrate to leases"),
        (|it| it.resource_lock = "x".into(), "Invalid lock-type x"),
    ];
    world(|world| async move {
        for (change, text) in cases {
            let mut config = elected();
            config.leader_election.as_mut().into_iter().for_each(change);
            let parts = ProcessParts {
                source: Link { client: world.sim.client(), host: String::new() },
                target: None,
                election: None,
                identity: String::new(),
                config,
                env: world.env.clone(),
                requests: Rc::new(NoObserver),
                vitals: Vitals::default(),
            };

            assert_eq!(Process::start(parts).err().map(|error| error.to_string()).as_deref(), Some(text));
        }
    });
}

// === what the process cannot do without ===

/// spec 70 §7: a controller that fails takes the process down.
#[test]
fn a_controller_that_has_lost_its_supervisor_ends_the_process_and_frees_the_lease() {
    world(|world| async move {
        let mut replica = world.start("first", elected());
        world.bundle("one", "v");
        world.applied("one").await;

        world.env.fatal.end("the supervisor of the controller managedresource panicked");
        let error = replica.process.ended().await;
        replica.process.stop(Duration::ZERO).await;

        assert_eq!(error.to_string(), "the supervisor of the controller managedresource panicked");
        assert_eq!(world.holder().as_deref(), Some(""));
    });
}

/// spec 70 §7.1.
#[test]
fn a_kind_that_cannot_be_listed_in_time_ends_the_process() {
    for (resource, name) in [("managedresources", "source/managedresources"), ("secrets", "source/secrets")] {
        world(|world| async move {
            world.bundle("one", "v");
            world.sim.set_faults(move |info| match info.verb.as_str() {
                "list" | "watch" if info.resource == resource => Fault::FailBefore(Seen::forbidden(info)),
                _ => Fault::None,
            });
            let config = Config { cache_sync_timeout: Duration::from_secs(30), ..elected() };
            let mut replica = world.start("first", config);
            world.held_by("first").await;
            let led = Instant::now();
            let error = replica.process.ended().await.to_string();

            let took = led.elapsed();
            assert!((Duration::from_secs(29)..Duration::from_secs(33)).contains(&took), "{took:?}");
            let text = format!("failed to wait for managedresource caches to sync {name}: ");
            assert!(error.starts_with(&text) && error.contains("forbidden"), "{error}");
            assert_eq!(world.is_applied("one"), resource == "secrets", "no pass begins before its keys are known");
            replica.process.stop(Duration::ZERO).await;
        });
    }
}

/// spec 70 §7 step 8c, §7.1
#[test]
fn without_election_the_controllers_start_when_the_stores_are_there_however_long_it_takes() {
    world(|world| async move {
        world.bundle("one", "v");
        world.sim.set_faults(|info| match (info.verb.as_str(), info.resource.as_str()) {
            ("list", "managedresources") => Fault::FailBefore(Seen::forbidden(info)),
            _ => Fault::None,
        });
        let mut replica =
            world.start("first", Config { cache_sync_timeout: Duration::from_secs(30), ..Config::default() });
        let ended = tokio::time::timeout(Duration::from_secs(600), replica.process.ended()).await;
        assert!(ended.is_err(), "{ended:?}");
        world.sim.clear_faults();

        testing::eventually("it is applied", Duration::from_secs(300), || world.is_applied("one")).await;
        replica.process.stop(PATIENCE).await;
    });
}

// === cluster identity ===

/// spec 70 §14, scenarios 29 and 30
#[test]
fn the_cluster_identity_is_resolved_before_controllers_start() {
    const UNKNOWN: &str = "failed during bootstrapping: unable to determine cluster id: \
                           cannot determine cluster identity from configmap: ";
    let found = || Some(json!({"cluster-identity": "garden-1"}));
    let cases = [
        ("", None, Ok("shoot/one")),
        ("mine", found(), Ok("mine:shoot/one")),
        ("<cluster>", found(), Ok("garden-1:shoot/one")),
        ("<cluster>", Some(json!({})), Err("no cluster-identity entry")),
        ("<cluster>", None, Err("configmaps \"cluster-identity\" not found")),
        ("<default>", found(), Ok("garden-1:shoot/one")),
        ("<default>", Some(json!({"cluster-identity": ""})), Ok("shoot/one")),
        ("<default>", Some(json!({})), Ok("shoot/one")),
        ("<default>", None, Ok("shoot/one")),
    ];
    for (configured, data, expected) in cases {
        world(|world| async move {
            data.into_iter().for_each(|data| world.put_cluster_identity(data));
            world.bundle("one", "v");
            let mut config = Config { cluster_id: configured.into(), ..Config::default() };
            config.source.namespaces = vec![NAMESPACE.into()];

            let mut replica = world.start("grm", config);

            match expected {
                Ok(origin) => {
                    world.applied("one").await;
                    assert_eq!(world.origin("one").as_deref(), Some(origin), "{configured}");
                }
                Err(cause) => {
                    let error = replica.process.ended().await.to_string();
                    assert_eq!(error, format!("{UNKNOWN}{cause}"), "{configured}");
                }
            }
            replica.process.stop(PATIENCE).await;
        });
    }
}

// === shutdown ===

/// spec 70 scenario 27
#[test]
fn a_pass_of_two_seconds_ends_and_the_lease_is_released() {
    world(|world| async move {
        let replica = world.start("first", elected());
        world.held_by("first").await;
        world.delay_creations(Duration::from_secs(2));
        world.bundle("one", "v");
        sleep(Duration::from_millis(500)).await;

        let begin = Instant::now();
        let stopped = replica.process.stop(PATIENCE).await;

        assert_eq!(stopped, Stopped { finished: true, released: true });
        assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
        assert!(world.origin("one").is_some());
        assert_eq!(world.holder().as_deref(), Some(""));
    });
}

/// spec 70 scenario 27: what was sent may still take effect, so the lease is left to expire
#[test]
fn a_pass_of_sixty_seconds_is_cut_off_and_the_lease_is_kept() {
    world(|world| async move {
        let replica = world.start("first", elected());
        world.held_by("first").await;
        world.delay_creations(Duration::from_secs(60));
        world.bundle("one", "v");
        sleep(Duration::from_millis(500)).await;

        let begin = Instant::now();
        let stopped = replica.process.stop(PATIENCE).await;

        assert_eq!(stopped, Stopped { finished: false, released: false });
        assert!(begin.elapsed() >= PATIENCE && begin.elapsed() <= GRACE_PERIOD, "{:?}", begin.elapsed());
        assert_eq!(world.holder().as_deref(), Some("first"));
        let requests = world.sim.requests().len();
        sleep(LIMIT).await;
        assert_eq!(world.sim.requests().len(), requests);
    });
}

#[test]
fn events_of_the_election_are_written_at_the_end() {
    world(|world| async move {
        let replica = world.start("first", elected());
        world.held_by("first").await;

        replica.process.stop(PATIENCE).await;

        let mut messages: Vec<_> =
            world.sim.objects("events").into_iter().map(|event| event["message"].clone()).collect();
        messages.sort_by_key(ToString::to_string);
        let texts: Vec<_> = messages.iter().filter_map(|message| message.as_str()?.split_once(' ')).collect();
        assert_eq!(texts.iter().map(|(_, text)| *text).collect::<Vec<_>>(), ["became leader", "stopped leading"]);
    });
}

// === an API server that cannot be reached; probes ===

/// spec 70 scenario 22
#[test]
fn without_an_api_server_the_process_waits_and_says_so() {
    world(|world| async move {
        let away = Arc::new(AtomicBool::new(true));
        let faults = away.clone();
        world.sim.set_faults(move |_| match faults.load(Ordering::Relaxed) {
            true => Fault::FailBefore(Seen::Disconnect),
            false => Fault::None,
        });
        world.bundle("one", "v");
        let replica = world.start("grm", Config::default());
        let (liveness, readiness) = (replica.vitals.liveness(), replica.vitals.readiness());
        let query = ProbeQuery { exclude: vec!["apiserver-healthz".into()], ..ProbeQuery::default() };
        let codes = || (liveness.aggregate(&query).status, readiness.aggregate(&query).status);
        assert_eq!(codes(), (200, 500));

        sleep(Duration::from_secs(179)).await;
        assert_eq!(codes(), (200, 500));
        sleep(Duration::from_secs(1)).await;
        assert_eq!(codes(), (500, 500));

        away.store(false, Ordering::Relaxed);
        world.applied("one").await;
        assert_eq!(codes(), (200, 200));
        replica.process.stop(PATIENCE).await;
        assert_eq!(readiness.aggregate(&query).status, 500);
    });
}

/// spec 70 trap 10
#[test]
fn an_api_server_that_goes_away_later_leaves_the_process_ready() {
    world(|world| async move {
        let replica = world.start("grm", Config::default());
        let readiness = replica.vitals.readiness();
        let query = ProbeQuery::default();
        testing::eventually("it is ready", LIMIT, || readiness.aggregate(&query).status == 200).await;

        world.sim.set_faults(|_| Fault::FailBefore(Seen::Disconnect));
        world.sim.break_watches(sim::WatchEnd::Disconnect);
        sleep(Duration::from_secs(600)).await;

        assert_eq!(readiness.aggregate(&query).status, 200);
        replica.process.stop(PATIENCE).await;
    });
}

/// spec 70 scenario 23; many probes share a request, and at rest there is none
#[test]
fn the_api_server_is_asked_when_somebody_asks() {
    world(|world| async move {
        let replica = world.start("grm", Config::default());
        let liveness = replica.vitals.liveness();
        let ask = async || {
            liveness.refresh_single("apiserver-healthz").await;
            liveness.single("apiserver-healthz")
        };
        sleep(Duration::from_secs(60)).await;
        assert_eq!(world.probes(), 0);

        assert_eq!(ask().await.body, "ok");
        futures::future::join(ask(), ask()).await;
        assert_eq!(world.probes(), 1);

        sleep(Duration::from_secs(1)).await;
        world.sim.set_faults(|info| match info.path.as_str() {
            "/healthz" => Fault::FailBefore(Seen::unavailable()),
            _ => Fault::None,
        });
        let text = "internal server error: failed talking to the source cluster's kube-apiserver (status code: 503)";
        assert_eq!((ask().await.status, ask().await.body.as_str()), (500, text));
        assert_eq!(world.probes(), 2);

        sleep(Duration::from_secs(1)).await;
        world.sim.set_faults(|_| Fault::Hang);
        let begin = Instant::now();
        assert_eq!(ask().await.status, 500);
        assert_eq!(begin.elapsed(), Duration::from_secs(3));
        replica.process.stop(PATIENCE).await;
    });
}

// === webhooks ===

/// spec 50 scenario 12, "better" 2
#[test]
fn a_replica_that_does_not_lead_knows_what_webhooks_read_before_it_is_ready() {
    world(|world| async move {
        let mut config = elected();
        config.webhooks.high_availability_config = Some(HighAvailabilityConfig {
            default_not_ready_toleration_seconds: None,
            default_unreachable_toleration_seconds: None,
        });
        let first = world.start_beside("first", config.clone());
        world.held_by("first").await;
        world.sim.set_faults(|info| match info.resource.as_str() {
            "nodes" => Fault::FailBefore(Seen::Disconnect),
            _ => Fault::None,
        });
        let second = world.start_beside("second", config);
        let readiness = second.vitals.readiness();
        let query = ProbeQuery::default();
        sleep(LIMIT).await;
        assert_eq!(readiness.aggregate(&query).status, 500);

        world.sim.set_faults(|_| Fault::None);
        testing::eventually("it is ready", LIMIT, || readiness.aggregate(&query).status == 200).await;

        let (knowledge, answers) = (second.process.knowledge(), Answers::default());
        assert_eq!(knowledge.sight(&answers).has_one_node(), Ok(false));
        assert_eq!(world.holder().as_deref(), Some("first"));
        second.process.stop(PATIENCE).await;
        assert_eq!(knowledge.sight(&answers).has_one_node(), Ok(false), "reviews are answered to the end");
        first.process.stop(PATIENCE).await;
    });
}

/// spec 61 scenario 32: from the moment it is ready, without a single read
#[test]
fn a_replica_that_does_not_lead_authorizes() {
    world(|world| async move {
        let mut config = elected();
        config.webhooks.node_agent_authorizer =
            Some(NodeAgentAuthorizer { machine_namespace: None, authorize_with_selectors: false });
        world.sim.put(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})).unwrap();
        let first = world.start_beside("first", config.clone());
        world.held_by("first").await;
        let second = world.start_beside("second", config.clone());
        let (readiness, query) = (second.vitals.readiness(), ProbeQuery::default());
        testing::eventually("it is ready", LIMIT, || readiness.aggregate(&query).status == 200).await;
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
            "user": "gardener.cloud:node-agent:machine:n1", "groups": ["gardener.cloud:node-agents"],
            "resourceAttributes": {"verb": "get", "resource": "nodes", "name": "n1"},
        }});
        let body = Body::Whole(review.to_string().into());
        let received = Received { body, content_type: "application/json".to_owned() };
        let served = registry::enabled(&config.webhooks);

        let answers = Answers::default();
        let answer = served[0].endpoint.answer(&received, &second.process.knowledge().sight(&answers)).unwrap();

        let answer: Value = serde_json::from_slice(&answer.reply.body).unwrap();
        assert_eq!(answer["status"], json!({"allowed": true}));
        assert_eq!(world.holder().as_deref(), Some("first"));
        second.process.stop(PATIENCE).await;
        first.process.stop(PATIENCE).await;
    });
}
