use std::{
    future::Future,
    rc::Rc,
    sync::{Arc, Mutex},
    time::Duration,
};

use actix::{Addr, System};
use cluster::{
    NoObserver,
    testing::{Reply, Seen, Server, answer, json as reply, late, status},
};
use kit::{Fatal, Role, StatusRegistry};
use serde_json::json;
use tokio::time::sleep;

use super::*;
use crate::leader::Timing;

const SECOND: Duration = Duration::from_secs(1);

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    System::with_tokio_rt(runtime).block_on(test)
}

#[derive(Clone, Default)]
struct Leases(Arc<Mutex<LeaderState>>);

fn absent() -> Reply {
    let details = json!({"name": "grm", "group": "coordination.k8s.io", "kind": "leases"});
    reply(
        404,
        &json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "details": details}),
    )
}

#[derive(Default)]
struct LeaderState {
    lease: Option<Value>,
    version: u64,
    trouble: Option<fn() -> Reply>,
}

impl Leases {
    fn server(&self) -> Server {
        Server::new(self.script())
    }

    fn script(&self) -> impl FnMut(&Seen) -> Reply + Send + use<> {
        let this = self.clone();
        move |seen| {
            let mut state = this.0.lock().unwrap();
            if seen.line.contains("/events") {
                return reply(201, &json!({"metadata": {"name": "e"}}));
            }
            if let Some(trouble) = state.trouble {
                return trouble();
            }
            if seen.line.contains("watch=1") {
                return status(403, "Forbidden", "leases may not be watched");
            }
            if seen.line.starts_with("GET") {
                return state.lease.as_ref().map_or_else(absent, |lease| reply(200, lease));
            }
            let stored = state.lease.as_ref().map(|lease| lease["metadata"]["resourceVersion"].clone());
            let sent = &seen.body["metadata"]["resourceVersion"];
            if stored.unwrap_or_default() != *sent {
                return status(409, "Conflict", "changed");
            }
            state.version += 1;
            let mut lease = seen.body.clone();
            lease["metadata"]["uid"] = "u".into();
            lease["metadata"]["resourceVersion"] = state.version.to_string().into();
            state.lease = Some(lease.clone());
            reply(200, &lease)
        }
    }

    fn trouble(&self, trouble: Option<fn() -> Reply>) {
        self.0.lock().unwrap().trouble = trouble;
    }

    fn holder(&self) -> String {
        let state = self.0.lock().unwrap();
        state.lease.as_ref().map_or("", |lease| lease["spec"]["holderIdentity"].as_str().unwrap()).to_owned()
    }
}

struct Replica {
    address: Addr<LeaderActor>,
    fence: Fence,
    leadership: watch::Receiver<Leadership>,
    holder: watch::Receiver<Option<Arc<str>>>,
    cell: Cell,
    recorder: Recorder,
}

fn replica(server: &Server, identity: &str) -> Replica {
    let timing = Timing::new(15 * SECOND, 10 * SECOND, 2 * SECOND).unwrap();
    let fence = Fence::leased(timing.renew_deadline());
    let cluster = server.cluster_with(fence.clone(), Rc::new(NoObserver));
    let recorder = Recorder::new(&cluster, "leader");
    let (sender, leadership) = watch::channel(Leadership::Candidate);
    let (holder_sender, holder) = watch::channel(None);
    let cell = StatusRegistry::default().enter("leader", Role::Service);
    let setup = LeaderSetup {
        election: Election::new(identity.into(), "ns".into(), "grm".into(), timing, Instant::now()),
        namespace: "ns".into(),
        name: "grm".into(),
        cluster,
        fence: fence.clone(),
        recorder: recorder.clone(),
        cell: cell.clone(),
        leadership: sender,
        holder: holder_sender,
        lifeline: Fatal::default().indispensable("the leader election"),
    };
    Replica { address: LeaderActor::new(setup).start(), fence, leadership, holder, cell, recorder }
}

impl Replica {
    fn is(&self, leadership: Leadership) -> bool {
        *self.leadership.borrow() == leadership
    }
}

#[test]
fn leader_election_has_one_leader_and_its_fence_stays_open() {
    run(async {
        let leases = Leases::default();
        let server = leases.server();
        let (first, second) = (replica(&server, "a"), replica(&server, "b"));

        for _ in 0..100 {
            sleep(SECOND).await;
            assert!(first.is(Leadership::Leader) && first.fence.check().is_ok());
            assert!(second.is(Leadership::Candidate) && second.fence.check().is_err());
        }
        assert_eq!((first.holder.borrow().as_deref(), &*first.cell.read().line), (Some("a"), "leader"));
        let standby = (second.holder.borrow().as_deref().map(str::to_owned), second.cell.read().line);
        assert_eq!(standby, (Some("a".to_owned()), "candidate; a leads".to_owned()));

        let (watches, reads): (Vec<_>, Vec<_>) = server
            .lines()
            .into_iter()
            .filter(|line| line.starts_with("GET"))
            .partition(|line| line.contains("watch=1"));
        assert_eq!(watches.len(), 1, "a forbidden watch is not tried again soon");
        let long = Duration::from_secs(300);
        sleep(long).await;
        let watches = server.lines().into_iter().filter(|line| line.contains("watch=1")).count();
        assert_eq!(watches, 2, "rights may come later than the Pod");
        let reads = reads.len();
        assert!((20..60).contains(&reads), "only the candidate reads: {reads}");
    });
}

#[test]
fn leader_election_listeners_hear_of_changes_only() {
    run(async {
        let server = Leases::default().server();
        let mut leader = replica(&server, "a");

        leader.leadership.changed().await.unwrap();

        assert!(leader.is(Leadership::Leader));
        sleep(60 * SECOND).await;
        assert!(!leader.leadership.has_changed().unwrap());
    });
}

#[test]
fn lease_release_is_followed_by_a_takeover_soon() {
    run(async {
        let leases = Leases::default();
        let server = leases.server();
        let (first, second) = (replica(&server, "a"), replica(&server, "b"));
        sleep(5 * SECOND).await;

        assert!(first.address.send(Release).await.unwrap());
        assert_eq!(leases.holder(), "");
        assert!(first.is(Leadership::Released));
        sleep(5 * SECOND).await;

        assert!(second.is(Leadership::Leader));
        assert!(!first.address.send(Release).await.unwrap());
        assert_eq!(leases.holder(), "b");
    });
}

/// fault 31
#[test]
fn leader_election_treats_an_answer_that_is_no_lease_as_a_failed_request() {
    const NO_LEASES: [&str; 7] = [
        "[]",
        r#""x""#,
        "null",
        r#"{"spec": "x"}"#,
        r#"{"kind": "Lease", "metadata": {"resourceVersion": "7"}, "spec": "x"}"#,
        r#"{"kind": "Lease", "metadata": {}, "spec": {"holderIdentity": ""}}"#,
        r#"{"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}"#,
    ];
    run(async {
        for no_lease in NO_LEASES {
            let leases = Leases::default();
            let server = leases.server();
            let leader = replica(&server, "a");
            sleep(5 * SECOND).await;
            assert!(leader.is(Leadership::Leader));

            server.replace(move |_| answer(200, &[], no_lease.to_owned()));
            let candidate = replica(&server, "b");
            sleep(4 * SECOND).await;
            assert!(leader.is(Leadership::Leader), "its renew deadline is not over: {no_lease}");
            server.replace(leases.script());
            sleep(20 * SECOND).await;
            assert!(leader.is(Leadership::Leader) && candidate.is(Leadership::Candidate), "{no_lease}");

            server.replace(move |_| answer(200, &[], no_lease.to_owned()));
            sleep(60 * SECOND).await;
            assert!(leader.is(Leadership::Lost) && candidate.is(Leadership::Candidate), "{no_lease}");
        }
    });
}

/// fault 16
#[test]
fn leader_election_never_has_two_writers_when_a_leader_cannot_renew() {
    run(async {
        let leases = Leases::default();
        let (good, bad) = (leases.server(), leases.server());
        let first = replica(&bad, "a");
        sleep(SECOND).await;
        let second = replica(&good, "b");
        sleep(5 * SECOND).await;

        // only the first replica's requests vanish
        bad.replace(|_| late(3600, Reply::Broken));
        for _ in 0..400 {
            sleep(SECOND / 10).await;
            assert!(first.fence.check().is_err() || second.fence.check().is_err());
        }

        assert!(first.is(Leadership::Lost));
        assert!(second.is(Leadership::Leader));
        assert!(first.fence.check().unwrap_err().to_string().contains("lost"));
    });
}

#[test]
fn leader_election_term_survives_a_short_outage() {
    run(async {
        let leases = Leases::default();
        let server = leases.server();
        let leader = replica(&server, "a");
        sleep(5 * SECOND).await;

        leases.trouble(Some(|| status(500, "InternalError", "down")));
        sleep(7 * SECOND).await;
        leases.trouble(None);
        sleep(20 * SECOND).await;

        assert!(leader.is(Leadership::Leader));
        assert!(leader.fence.check().is_ok());
    });
}

/// spec 70 §12
#[test]
fn leader_election_records_begin_and_end_of_a_term_on_the_lease() {
    run(async {
        let leases = Leases::default();
        let server = leases.server();
        let leader = replica(&server, "a");
        sleep(SECOND).await;
        leader.address.send(Release).await.unwrap();

        leader.recorder.flush(Deadline::after(SECOND)).await;

        let requests = server.requests();
        let events: Vec<_> =
            requests.iter().filter(|seen| seen.line.contains("/events")).map(|seen| &seen.body).collect();
        let messages: Vec<_> = events.iter().map(|event| event["message"].as_str().unwrap()).collect();
        assert_eq!(messages, ["a became leader", "a stopped leading"]);
        assert_eq!(
            events[0]["involvedObject"],
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "namespace": "ns", "name": "grm", "uid": "u"})
        );
        assert_eq!(events[0]["reason"], "LeaderElection");
    });
}

#[test]
fn lease_release_waits_for_the_renewal_under_way() {
    run(async {
        let leases = Leases::default();
        let server = leases.server();
        let leader = replica(&server, "a");
        sleep(SECOND).await;
        let mut script = leases.script();
        server.replace(move |seen| late(1, script(seen)));
        sleep(SECOND + SECOND / 2).await; // the renewal was sent half a second ago

        assert!(leader.address.send(Release).await.unwrap());

        assert_eq!(leases.holder(), "");
    });
}
