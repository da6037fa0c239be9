use std::{rc::Rc, time::Duration};

use cluster::{AnswerRoom, Cluster, ClusterEnv, ClusterOptions, Fence, NoObserver};
use kit::Env;
use sim::{ClientOptions, Process, Sim, SimOptions};
use tokio::time::Instant;

use super::{Answers, Knowledge};
use crate::{
    api::resources::side::Side,
    webhooks::view::{Lookup, View},
};

pub(in crate::webhooks) fn simulator(env: &Env) -> Sim {
    let options = SimOptions::new(env.clock.clone(), env.random.clone());
    Sim::new(SimOptions { latency: Duration::from_millis(1), ..options })
}

pub(in crate::webhooks) fn cluster_of(sim: &Sim, env: &Env, side: Side, namespaces: &[&str]) -> Cluster {
    let client = sim.client_of(ClientOptions {
        user: "grm".into(),
        groups: vec!["system:masters".into()],
        user_agent: "test".into(),
        process: Process::new(),
    });
    let namespaces = namespaces.iter().map(ToString::to_string).collect();
    let options = ClusterOptions { label: side.label(), host: "sim:443".into(), qps: -1.0, burst: 0, namespaces };
    let cluster_env = ClusterEnv {
        clock: env.clock.clone(),
        random: env.random.clone(),
        fence: Fence::open(),
        room: AnswerRoom::default(),
    };
    Cluster::new(client, options, cluster_env, Rc::new(NoObserver))
}

pub(in crate::webhooks) fn requests(sim: &Sim) -> Vec<String> {
    let infos = sim.requests().into_iter().map(|request| request.info).filter(|info| info.verb != "watch");
    infos.map(|info| format!("{} {}", info.verb, info.resource)).collect()
}

impl Knowledge {
    /// Runs an attempt with its live reads until it has a result, all within `time`.
    pub(in crate::webhooks) async fn attempt<T>(
        &self,
        time: Duration,
        attempt: impl Fn(&dyn View) -> Result<T, Lookup>,
    ) -> T {
        let mut answers = Answers::default();
        let deadline = Instant::now() + time;
        loop {
            let lookup = match attempt(&self.sight(&answers)) {
                Ok(answer) => return answer,
                Err(lookup) => lookup,
            };
            let known = self.look(lookup.clone(), deadline).await;
            assert!(answers.add(lookup, known), "asked again");
        }
    }
}
