//! One life: users of all controllers, two replicas, and what disturbs them.

use std::{
    collections::BTreeSet,
    rc::Rc,
    sync::{Arc, Mutex},
    time::Duration,
};

use cluster::Resource;
use gardener_resource_manager::api::{config::controller_manager::SeedCheck, kinds};
use serde_json::json;
use sim::{Fault, RequestInfo, Seen, Start, WatchEnd};
use tokio::time::Instant;

use super::{
    certificates::Certificates,
    check,
    common::{Common, lock, one_of, parse},
    projects::Projects,
    replicas::{Replica, USERS},
    seed_conditions::SeedConditions,
    seeds::Seeds,
    small::Small,
    users::{self, Step},
    watchman::Watchman,
};
use crate::{
    controller_manager::garden::Garden,
    random::{
        disturbances::{Weather, calm, disturb, expire, rest},
        runner::Diary,
    },
};

const STEPS: usize = 12;

/// Requests of all kinds that a failure shows. All writes are shown.
const LAST_REQUESTS: usize = 50;

/// Kinds that some gardens serve later.
const LATE: [&Resource; 3] = [&kinds::INTERNAL_SECRET, &kinds::BACKUP_BUCKET, &kinds::EXPOSURE_CLASS];

/// How many changes a server lags behind.
const LAG: u64 = 20;

/// Longest pause of a replica that ended.
const PAUSE: u64 = 40;

/// After the disturbances, back-offs of up to 1000 s end, and so do periods of ten minutes.
const QUIET: Duration = Duration::from_secs(1200);

pub(super) struct Life {
    garden: Rc<Garden>,
    pub(super) common: Common,
    pub(super) watchman: Watchman,
    pub(super) seeds: Seeds,
    pub(super) conditions: SeedConditions,
    pub(super) certificates: Certificates,
    pub(super) small: Small,
    pub(super) projects: Projects,
    replicas: [Replica; 2],
    /// Users whose requests do not reach the server.
    cut_off: Arc<Mutex<Vec<&'static str>>>,
    /// Users with the paths that they listed since they started.
    listed: Arc<Mutex<BTreeSet<(String, String)>>>,
    random: fastrand::Rng,
    diary: Diary,
}

fn weather(seed: u64) -> Weather {
    let one_in = match seed % 4 {
        0 => Weather::CALM,
        1 => 20,
        _ => 50,
    };
    Weather { program: "gcm", one_in, lossy: seed % 6 == 1, forbidden: one_of_kinds(seed) }
}

fn one_of_kinds(seed: u64) -> &'static str {
    one_of(&mut fastrand::Rng::with_seed(seed), &["shoots", "secrets", "seeds", "projects"])
}

pub(super) async fn live(garden: Rc<Garden>, seed: u64, diary: Diary) {
    let weather = weather(seed);
    configure(&garden, seed);
    let begin = parse(&garden.time(0)).expect("a time");
    let common = Common::new(&garden.sim, begin, weather.is_calm());
    let mut life = Life {
        watchman: Watchman::new(&common),
        seeds: Seeds::new(&garden, &common),
        conditions: SeedConditions::new(&common),
        certificates: Certificates::new(&garden, &common),
        small: Small::new(&garden, &common),
        projects: Projects::new(&common),
        replicas: USERS.map(Replica::new),
        cut_off: Arc::default(),
        listed: Arc::default(),
        random: fastrand::Rng::with_seed(seed),
        garden,
        common,
        diary,
    };
    let late = seed % 5 == 2;
    if late {
        LATE.into_iter().for_each(|kind| life.garden.withdraw(kind));
    }
    let see = life.see();
    let (seen, fate) = (see.clone(), life.fate(weather));
    disturb(&life.common.sim, weather, seed, move |info| {
        seen(info);
        fate(info)
    });
    for step in 0..STEPS {
        if late && step == STEPS / 2 {
            life.note("all kinds are served");
            LATE.into_iter().for_each(|kind| life.garden.serve(kind));
        }
        life.revive().await;
        life.act().await;
        life.pass(rest).await;
    }
    life.note("all disturbances end");
    calm(&life.common.sim, weather, see);
    life.end_disturbances().await;
    tokio::time::sleep(QUIET).await;
    life.revive().await;
    life.check_violations();
    check::end(&life).await;
    life.check_violations();
    for replica in &mut life.replicas {
        replica.stop(Duration::from_secs(4), Duration::ZERO).await;
    }
}

fn configure(garden: &Garden, seed: u64) {
    let mut config = garden.config.borrow_mut();
    // Without an election both replicas believe to lead.
    config.leader_election.leader_elect = !seed.is_multiple_of(3);
    let threshold = |check: &mut SeedCheck, kind: &str| {
        let threshold = json!([{ "type": kind, "duration": "1m" }]);
        check.condition_thresholds = serde_json::from_value(threshold).expect("thresholds of a configuration");
    };
    if seed.is_multiple_of(2) {
        threshold(&mut config.controllers.seed_backup_buckets_check, "BackupBucketsReady");
        threshold(&mut config.controllers.seed_extensions_check, "ExtensionsReady");
    }
}

/// Returns all writes of the program, and its last requests.
pub(super) fn trace(common: &Common) -> Vec<String> {
    let requests = common.sim.requests().into_iter().filter(|request| request.info.user.starts_with("gcm"));
    let counts = |request: &sim::Recorded| request.info.resource != "leases" && request.info.verb != "watch";
    let requests: Vec<_> = requests.filter(counts).collect();
    let last = requests.len().saturating_sub(LAST_REQUESTS);
    let is_write = |request: &sim::Recorded| !["get", "list"].contains(&request.info.verb.as_str());
    let shown = requests.into_iter().enumerate().filter(|(index, request)| *index >= last || is_write(request));
    let line = |(_, request): (usize, sim::Recorded)| {
        let info = request.info;
        format!("{} {} {} {} {:?}", info.number, info.user, info.verb, info.path, request.code)
    };
    shown.map(line).collect()
}

impl Life {
    fn note(&self, text: impl std::fmt::Display) {
        self.diary.note(text);
    }

    /// Returns what sees all requests of the program.
    fn see(&self) -> impl Fn(&RequestInfo) + Clone + Send + use<> {
        let (watchman, small, projects) = (self.watchman.clone(), self.small.clone(), self.projects.clone());
        move |info: &RequestInfo| {
            watchman.see(info);
            small.see(info);
            projects.see(info, &watchman);
        }
    }

    /// Returns the fault of a request: it does not reach the server, or an old state of the server answers it.
    fn fate(&self, weather: Weather) -> impl Fn(&RequestInfo) -> Option<Fault> + Send + use<> {
        let (cut_off, listed, sim) = (self.cut_off.clone(), self.listed.clone(), self.common.sim.clone());
        move |info: &RequestInfo| {
            if lock(&cut_off).contains(&info.user.as_str()) {
                return Some(Fault::FailBefore(Seen::Disconnect));
            }
            // The first list of all namespaces fills a cache. Only live lists, which come later, may not be old.
            let is_first = info.verb == "list"
                && info.namespace.is_empty()
                && lock(&listed).insert((info.user.clone(), info.path.clone()));
            let is_old = is_first && !weather.is_calm() && info.number.is_multiple_of(3);
            is_old.then(|| Fault::ReadAsOf(sim.revision().saturating_sub(LAG)))
        }
    }

    fn look(&self) {
        self.watchman.look();
        self.small.look();
        self.projects.look();
    }

    fn check_violations(&self) {
        self.look();
        let violations = [
            self.watchman.violations(),
            self.seeds.violations(),
            self.conditions.violations(),
            self.certificates.violations(),
            self.small.violations(),
            self.projects.violations(),
        ];
        assert_eq!(violations.concat(), [""; 0], "{:#?}", trace(&self.common));
    }

    async fn revive(&mut self) {
        for replica in &mut self.replicas {
            let pause = Duration::from_secs(self.random.u64(0..PAUSE));
            if let Some(text) = replica.revive(&self.garden, pause).await {
                lock(&self.listed).retain(|(user, _)| user != replica.user);
                self.diary.note(text);
                self.watchman.disturbed();
            }
        }
    }

    /// Lets time pass. A replica that ended starts again after its pause.
    async fn pass(&mut self, time: impl Fn(&mut fastrand::Rng) -> Duration) {
        let end = Instant::now() + time(&mut self.random);
        while Instant::now() < end {
            tokio::time::sleep_until(end.min(Instant::now() + Duration::from_secs(5))).await;
            self.revive().await;
            self.check_violations();
        }
    }

    async fn act(&mut self) {
        if self.random.u8(0..4) == 0 {
            self.disturb().await;
        }
        for _ in 0..self.random.u8(2..9) {
            self.watchman.before_hands();
            let random = &mut self.random;
            let step = match random.u8(0..20) {
                0..=8 => users::act(&self.common, random),
                9..=12 => self.seeds.act(random),
                13 | 14 => self.conditions.act(random),
                15 => self.certificates.act(random),
                16 | 17 => self.small.act(random),
                _ => self.projects.act(random),
            };
            self.carry_out(step).await;
            if self.random.bool() {
                tokio::time::sleep(Duration::from_millis(one_of(&mut self.random, &[1, 3, 20, 300]))).await;
            }
        }
        self.check_violations();
    }

    async fn carry_out(&self, step: Step) {
        self.note(&step.text);
        self.look();
        if let Some((kind, namespace, name)) = step.deletion
            && self.common.find(&kind, &namespace, &name).is_some()
        {
            self.garden.delete_if_found(&kind, &namespace, &name).await;
        }
        self.look();
    }

    /// Disturbs the program as a whole.
    async fn disturb(&mut self) {
        self.watchman.disturbed();
        let number = self.random.usize(0..2);
        let pause = Duration::from_secs(self.random.u64(0..PAUSE));
        let user = USERS[number];
        match self.random.u8(0..12) {
            0 | 1 => {
                self.note(format!("{user} is killed"));
                self.replicas[number].crash(pause).await;
            }
            2 => {
                self.note(format!("{user} is stopped"));
                self.replicas[number].stop(Duration::from_secs(4), pause).await;
            }
            3 => {
                self.note("both replicas are killed");
                for replica in &mut self.replicas {
                    replica.crash(pause).await;
                }
            }
            4 | 5 => {
                let seconds = self.random.i64(-40_000..40_000);
                self.note(format!("the clock jumps by {seconds} s"));
                self.garden.jump(seconds);
                self.common.jump(seconds);
            }
            6 => {
                self.note("the history is lost");
                expire(&self.common.sim);
            }
            7 => {
                // A silent watch counts as fresh for 150 s.
                let end = one_of(&mut self.random, &[WatchEnd::Disconnect, WatchEnd::Close, WatchEnd::Hang]);
                let end = if self.common.calm && end == WatchEnd::Hang { WatchEnd::Expired } else { end };
                self.note(format!("all watches end: {end:?}"));
                self.common.sim.break_watches(end);
            }
            8 => {
                self.note(format!("{user} is cut off for {pause:?}"));
                *lock(&self.cut_off) = vec![user];
                tokio::time::sleep(pause).await;
                lock(&self.cut_off).clear();
            }
            9 => {
                self.note(format!("the API server is away for {pause:?}, and starts"));
                *lock(&self.cut_off) = USERS.to_vec();
                self.common.sim.break_watches(WatchEnd::Disconnect);
                tokio::time::sleep(pause).await;
                lock(&self.cut_off).clear();
                self.common.sim.restart(Start::default());
            }
            10 => {
                self.note("somebody else takes the Lease");
                let renewed = self.common.time(0);
                let lease = "gardener-controller-manager-leader-election";
                self.common.sim.edit("leases.coordination.k8s.io", "garden", lease, |lease| {
                    lease["spec"]["holderIdentity"] = json!("somebody");
                    lease["spec"]["renewTime"] = json!(renewed);
                });
            }
            _ => {
                self.note("the Lease is removed");
                self.common.remove(&kinds::LEASE, "garden", "gardener-controller-manager-leader-election");
            }
        }
        self.watchman.disturbed();
    }

    async fn end_disturbances(&mut self) {
        lock(&self.cut_off).clear();
        self.certificates.allow(true);
        expire(&self.common.sim);
        for _ in 0..60 {
            self.revive().await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert!(self.replicas.iter().all(Replica::is_running), "both replicas run");
    }
}
