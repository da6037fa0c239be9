//! Opens the clusters of a program, with their watches and Events.

use std::{cell::OnceCell, rc::Rc};

use cluster::{
    Cluster, ClusterEnv, ClusterLabel, ClusterOptions, Definitions, DiscoveryView, Recorder, RequestObserver, Synced,
    Watches, kubeconfig::ContextOfFile,
};
use kit::Env;
use tokio::task::JoinHandle;

use crate::settings::RateLimit;

/// One cluster of a program, with what is cached of it. Cheap to clone.
#[derive(Clone)]
pub struct ClusterHandle {
    /// Requests.
    pub cluster: Cluster,
    /// What is cached of it: watches that controllers open during setup, and later.
    pub watches: Watches,
    /// Events about its objects. A controller writes them under its own name: [`Recorder::for_component`].
    pub events: Recorder,
    pub(super) context: Option<ContextOfFile>,
    definitions: Rc<OnceCell<Definitions>>,
}

/// How a cluster is reached.
#[derive(Clone)]
pub struct ClusterParts {
    /// Its name.
    pub label: ClusterLabel,
    /// The client; only its service is used.
    pub client: kube::Client,
    /// `host:port` of the API server, for metrics and the log.
    pub host: String,
    /// The context of a kubeconfig that the client comes from, for the log; `None` in a Pod.
    pub context: Option<ContextOfFile>,
    /// Token bucket per resource type; `None` is unlimited.
    pub rate_limit: Option<RateLimit>,
    /// The namespaces this process may read; empty for all (spec 70 §8.4).
    pub namespaces: Vec<String>,
}

/// Opens clusters, and keeps them for the process.
pub struct Clusters {
    env: Env,
    cluster_env: ClusterEnv,
    component: &'static str,
    /// The host that Events of `events.k8s.io/v1` name; `None`: Events are core/v1.
    events_v1_host: Option<Rc<str>>,
    observer: Rc<dyn RequestObserver>,
    pub(super) opened: Vec<Opened>,
    pub(super) tasks: Vec<JoinHandle<()>>,
}

/// An open cluster under one label. Several labels may share a cluster.
#[derive(Clone)]
pub(super) struct Opened {
    pub(super) handle: ClusterHandle,
    /// Index of the cluster that it shares; `None`: it is one of its own.
    pub(super) shares: Option<usize>,
}

/// What other threads may read of a cluster.
pub(super) struct ClusterView {
    pub(super) name: &'static str,
    /// As [`Opened::shares`].
    pub(super) shares: Option<usize>,
    pub(super) host: String,
    /// As [`RequestScheduler::rate`](cluster::RequestScheduler::rate).
    pub(super) rate: Option<(f64, f64)>,
    pub(super) discovery: DiscoveryView,
}

/// The API of Events. Both have the same store in the API server, but deployers grant rights for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventApi {
    /// `v1`; the action is optional.
    CoreV1,
    /// `events.k8s.io/v1`; each Event has an action.
    EventsV1,
}

impl Clusters {
    /// Opens nothing yet. `component` is the source of Events that no controller names; they are core/v1.
    pub fn new(env: &Env, cluster_env: ClusterEnv, component: &'static str, observer: Rc<dyn RequestObserver>) -> Self {
        Self {
            env: env.clone(),
            cluster_env,
            component,
            events_v1_host: None,
            observer,
            opened: Vec::new(),
            tasks: Vec::new(),
        }
    }

    /// Sets the API of the Events in clusters that are opened later. `host` is the name of this host.
    pub fn with_events(self, api: EventApi, host: &str) -> Self {
        let events_v1_host = match api {
            EventApi::CoreV1 => None,
            EventApi::EventsV1 => Some(host.into()),
        };
        Self { events_v1_host, ..self }
    }

    /// Opens a cluster: its discovery and its recorder of Events run from now on.
    pub fn open(&mut self, parts: ClusterParts) -> ClusterHandle {
        let ClusterParts { label, client, host, context, rate_limit, namespaces } = parts;
        let (qps, burst) = rate_limit.map_or((-1.0, 0), |limit| (limit.qps as f32, limit.burst));
        let cluster = self.connect(client, ClusterOptions { label, host, qps, burst, namespaces });
        let label = label.as_str();
        let discovery = cluster.discovery().clone().run();
        self.tasks.push(self.env.fatal.spawn(format!("the discovery of the {label} cluster"), discovery));
        let events = Recorder::new(&cluster, self.component);
        let events = match &self.events_v1_host {
            Some(host) => events.in_events_v1(host.clone()),
            None => events,
        };
        let watches = Watches::new(&cluster, &self.env);
        let handle = ClusterHandle { cluster, watches, events, context, definitions: Rc::default() };
        let recorder = handle.events.clone().run();
        self.tasks.push(self.env.fatal.spawn(format!("the recorder of Events of the {label} cluster"), recorder));
        self.opened.push(Opened { handle: handle.clone(), shares: None });
        handle
    }

    /// Opens a cluster that is already open under another label. Streams, requests and Events are shared.
    pub fn share(&mut self, other: &ClusterHandle, label: ClusterLabel, namespaces: Vec<String>) -> ClusterHandle {
        let cluster = other.cluster.labelled(label, namespaces);
        let watches = other.watches.labelled(&cluster);
        let (events, context) = (other.events.clone(), other.context.clone());
        let handle = ClusterHandle { cluster, watches, events, context, definitions: Rc::default() };
        let shares = self.opened.iter().position(|opened| Rc::ptr_eq(&opened.handle.definitions, &other.definitions));
        self.opened.push(Opened { handle: handle.clone(), shares });
        handle
    }

    /// Returns the first cluster.
    pub(super) fn first(&self) -> &ClusterHandle {
        &self.opened.first().expect("every program opens at least one cluster").handle
    }

    /// Returns the first cluster for the leader election, with a client of its own if there is one.
    pub(super) fn for_election(&self, client: Option<kube::Client>) -> Cluster {
        let first = &self.first().cluster;
        client.map_or_else(|| first.clone(), |client| self.connect(client, first.options().clone()))
    }

    /// The sync states of their caches, in the order in which they were opened.
    pub(super) fn synced(&self) -> impl Iterator<Item = Synced> {
        self.opened.iter().map(|opened| opened.handle.watches.synced())
    }

    /// Each cluster with the sync state of all its labels.
    pub(super) fn apart(&self) -> impl Iterator<Item = (&ClusterHandle, Synced)> {
        self.opened.iter().enumerate().filter(|(_, opened)| opened.shares.is_none()).map(|(index, opened)| {
            let labels = self.opened.iter().filter(|other| other.shares == Some(index));
            let synced =
                labels.fold(opened.handle.watches.synced(), |synced, other| synced.and(other.handle.watches.synced()));
            (&opened.handle, synced)
        })
    }

    /// Each cluster with its index among the opened ones.
    pub(super) fn apart_by_index(&self) -> Vec<(usize, Cluster)> {
        let apart = self.opened.iter().enumerate().filter(|(_, opened)| opened.shares.is_none());
        apart.map(|(index, opened)| (index, opened.handle.cluster.clone())).collect()
    }

    /// What other threads may read of each label's cluster, in the order in which they were opened.
    pub(super) fn views(&self) -> Vec<ClusterView> {
        let views = self.opened.iter().map(|opened| {
            let cluster = &opened.handle.cluster;
            ClusterView {
                name: cluster.options().label.as_str(),
                shares: opened.shares,
                host: cluster.options().host.clone(),
                rate: cluster.request_scheduler().rate(),
                discovery: cluster.discovery().view(),
            }
        });
        views.collect()
    }

    fn connect(&self, client: kube::Client, options: ClusterOptions) -> Cluster {
        Cluster::new(client, options, self.cluster_env.clone(), self.observer.clone())
    }
}

impl ClusterHandle {
    /// Returns its CustomResourceDefinitions and APIServices, watched from the first call on.
    pub fn definitions(&self) -> Definitions {
        self.definitions.get_or_init(|| Definitions::open(&self.watches)).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cluster::{AnswerRoom, Fence, NoObserver, Reference};
    use kit::{Deadline, testing::universe};
    use serde_json::json;
    use sim::{Sim, SimOptions};

    use super::*;

    /// spec 80 S-11
    #[test]
    fn clusters_record_events_in_the_api_of_their_program() {
        for (api, path) in [
            (EventApi::CoreV1, "/api/v1/namespaces/ns/events"),
            (EventApi::EventsV1, "/apis/events.k8s.io/v1/namespaces/ns/events"),
        ] {
            universe(1, |universe| async move {
                let env = &universe.env;
                let sim = Sim::new(SimOptions::new(env.clock.clone(), env.random.clone()));
                sim.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})).unwrap();
                let cluster_env = ClusterEnv {
                    clock: env.clock.clone(),
                    random: env.random.clone(),
                    fence: Fence::open(),
                    room: AnswerRoom::default(),
                };
                let mut clusters =
                    Clusters::new(env, cluster_env, "program", Rc::new(NoObserver)).with_events(api, "host-1");
                let handle = clusters.open(ClusterParts {
                    label: ClusterLabel::may_be_down("garden"),
                    client: sim.client(),
                    host: "sim".into(),
                    context: None,
                    rate_limit: None,
                    namespaces: Vec::new(),
                });
                let reference = Reference { namespace: "ns".into(), name: "a".into(), ..Reference::default() };

                handle.events.for_component("quota-controller").normal(&reference, "Reason", "m");
                handle.events.flush(Deadline::after(Duration::from_secs(10))).await;

                let posted: Vec<_> =
                    sim.requests().into_iter().filter(|request| request.info.verb == "create").collect();
                assert_eq!(posted.iter().map(|request| request.info.path.as_str()).collect::<Vec<_>>(), [path]);
                let instance = if api == EventApi::CoreV1 { "" } else { "quota-controller-host-1" };
                assert_eq!(sim.objects("events")[0]["reportingInstance"], instance);
                clusters.tasks.iter().for_each(JoinHandle::abort);
            });
        }
    }
}
