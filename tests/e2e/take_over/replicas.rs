//! The leader ends, the other replica takes over.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result, ensure};
use kit::Clock;
use tokio::sync::oneshot;

use super::{
    NAMESPACE, elected,
    load::Load,
    measure::{between, is_write, take_over, term, term_after},
};
use crate::{
    objects::Admin,
    support::{ControlPlane, Grm, Options, User, eventually},
};

/// Take-overs of each kind; `TAKE_OVER_ROUNDS` overrides it.
const ROUNDS: usize = 2;
const LEASE_DURATION: Duration = Duration::from_secs(5);
/// From the release of the Lease to the first effect of the next leader.
const AFTER_RELEASE: Duration = Duration::from_secs(1);
const AFTER_KILL: Duration = LEASE_DURATION.saturating_add(Duration::from_secs(2));
/// Token requests in flight at once: tokens that the leader may have requested without having stored them.
const TOKENS_UNDER_WAY: usize = 5;
const LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Stopped,
    Killed,
}

struct Replicas<'a> {
    cluster: &'a ControlPlane,
    admin: &'a Admin,
    leader: Grm,
    standby: Grm,
    late: Vec<String>,
}

/// spec 70 §12, §13 and scenarios 24, 27; spec 71 scenario 8; faults rows 1, 2, 16 and 28.
#[tokio::test]
async fn leader_election_take_over_under_load_loses_and_doubles_no_effect() -> Result<()> {
    let rounds = std::env::var("TAKE_OVER_ROUNDS").map_or(Ok(ROUNDS), |rounds| rounds.parse())?;
    let cluster = ControlPlane::start(Options::default()).await?;
    let admin = Admin::prepare(&cluster, NAMESPACE).await?;
    let mut replicas = Replicas::start(&cluster, &admin).await?;
    let mut resting = Load::new("rest");
    for _ in 0..15 {
        resting.write(&admin).await?;
    }
    eventually("the objects that will not change are complete", LIMIT, async || resting.complete(&admin).await).await?;
    let (versions, mark) = (resting.versions(&admin).await?, cluster.audit_mark());

    let mut load = Load::new("busy");
    let (stop, stopped) = oneshot::channel();
    let take_overs = async {
        for _ in 0..rounds {
            for end in [End::Stopped, End::Killed] {
                replicas.take_over(end).await?;
            }
        }
        drop(stop);
        Ok(())
    };
    tokio::try_join!(load.write_until(&admin, stopped), take_overs)?;

    eventually("everything has taken effect", LIMIT, async || load.complete(&admin).await).await?;
    ensure!(resting.versions(&admin).await? == versions, "unchanged objects were written");
    ensure_none_is_doubled(&cluster, mark, &load, rounds)?;
    // Last, so that the times of all of them are printed.
    ensure!(replicas.late.is_empty(), "{:#?}", replicas.late);
    Ok(())
}

/// Each change is written at most once. A token is requested twice only if the leader was killed before it stored it.
fn ensure_none_is_doubled(cluster: &ControlPlane, mark: u64, load: &Load, kills: usize) -> Result<()> {
    let (mut config_maps, mut tokens) = (BTreeMap::<String, usize>::new(), 0);
    for event in cluster.audit(User::Grm, mark)?.iter().filter(|event| is_write(event)) {
        let at = &event["objectRef"];
        if at["resource"] == "configmaps" {
            *config_maps.entry(at["name"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
        }
        tokens += usize::from(at["subresource"] == "token");
    }
    let due = load.due();
    let doubled: Vec<_> = config_maps.iter().filter(|(name, writes)| due.get(*name) < Some(*writes)).collect();
    let writes: usize = config_maps.values().sum();
    println!(
        "{} steps: {writes} writes of ConfigMaps where {} were due, {tokens} tokens where {} were due",
        load.steps(),
        due.values().sum::<usize>(),
        load.tokens(),
    );
    ensure!(doubled.is_empty(), "written more often than changed: {doubled:?}, due: {due:?}");
    let allowed = load.tokens() + kills * TOKENS_UNDER_WAY;
    ensure!(tokens <= allowed, "{tokens} tokens were asked for, {allowed} are the most that were due");
    Ok(())
}

impl<'a> Replicas<'a> {
    async fn start(cluster: &'a ControlPlane, admin: &'a Admin) -> Result<Self> {
        let leader = Grm::start(cluster, elected()).await?;
        eventually("the first replica leads", LIMIT, async || term(admin).await).await?;
        let standby = Grm::start(cluster, elected()).await?;
        Ok(Self { cluster, admin, leader, standby, late: Vec::new() })
    }

    async fn take_over(&mut self, end: End) -> Result<()> {
        let (former, mark) = (term(self.admin).await?, self.cluster.audit_mark());
        let gone = Clock::system_wall();
        match end {
            End::Killed => self.leader.kill(),
            End::Stopped => {
                let status = self.leader.terminate(LIMIT).await?;
                ensure!(status.success(), "the leader ended with {status}:\n{}", self.leader.log());
            }
        }
        let next = eventually("the other replica leads", LIMIT, async || term_after(self.admin, &former).await).await?;
        let seen = eventually("its first write", LIMIT, async || take_over(self.cluster, mark, &next)).await?;

        let (from, limit) = match end {
            End::Killed => (gone, AFTER_KILL),
            End::Stopped => (seen.given_up.context("the Lease was not given up")?, AFTER_RELEASE),
        };
        let (lease, effect) = (between(from, seen.acquired), between(from, seen.first_effect));
        let whole = between(gone, seen.first_effect);
        println!("{end:?}: Lease after {lease:.3?}, first effect after {effect:.3?}, {whole:.3?} after the signal");
        if effect > limit {
            self.late.push(format!("{end:?}: the first effect came after {effect:?}, {limit:?} are allowed"));
        }
        if end == End::Stopped {
            ensure!(seen.stray.is_empty(), "written without a Lease: {:?}", seen.stray);
        }
        self.replace_leader().await.context("start another replica")
    }

    async fn replace_leader(&mut self) -> Result<()> {
        let another = Grm::start(self.cluster, elected()).await?;
        self.leader = std::mem::replace(&mut self.standby, another);
        Ok(())
    }
}
