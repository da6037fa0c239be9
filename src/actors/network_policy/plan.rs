//! What a Service should have, given what is around it (spec 40 §6 steps 2 to 6): the same for the controller, which knows a
//! cluster by its watches, and for the command `policies`, which knows objects it was given.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    rc::Rc,
};

use cluster::object::{self, NamespacedName};
use futures::FutureExt as _;
use serde_json::Value;

use super::{
    desired::{self, Backend, Desired, IngressController, Route, Union, View},
    exposure::{Gateway, VirtualService},
    failing::Failing,
    rules::Rules,
    service::Service,
    turns::Turns,
};
use crate::api::selector::{Labels, Selector};

/// Combinations of a port and a namespace that a Service may have at most: twice as many policies.
const MOST_PIECES: usize = 25_000;

/// What is kept of a Namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Its labels.
    pub labels: Labels,
    /// It is being deleted: nothing can be created in it.
    pub is_terminating: bool,
}

/// What is known of a cluster.
pub trait Surroundings {
    /// A Service.
    fn service(&self, name: &NamespacedName) -> Option<Service>;
    /// A namespace.
    fn namespace(&self, name: &str) -> Option<Namespace>;
    /// The names of all namespaces, in order.
    fn namespaces(&self) -> Vec<String>;
    /// Whether there is, or is about to be, a pod with this client label; asked with `onlyForMatchingPods` only.
    fn has_client(&self, namespace: &str, key: &str) -> bool;
    /// Ports of a Service that Ingresses name; asked with an ingress controller only.
    fn backends(&self, service: &NamespacedName) -> Vec<Backend>;
    /// VirtualServices that route to a Service, in order.
    fn routes_to(&self, service: &NamespacedName) -> Vec<NamespacedName>;
    /// What is kept of a VirtualService.
    fn virtual_service(&self, name: &NamespacedName) -> Option<VirtualService>;
    /// What is kept of a Gateway; `None` if there is none of this name.
    fn gateway(&self, name: &NamespacedName) -> Option<Gateway>;
    /// Namespaces in which pods have these labels; `None` while that is not known.
    fn namespaces_of_pods(&self, labels: &Selector) -> Option<Vec<Box<str>>>;
}

/// What a Service should have, and what of it is not known.
#[derive(Debug, Default)]
pub struct Plan {
    /// Its policies.
    pub desired: Desired,
    /// What cannot be read.
    pub failing: Failing,
    /// Something is not known yet, but will be soon.
    pub is_incomplete: bool,
    /// Why it should have none at all.
    pub none_because: Option<&'static str>,
}

/// Why it cannot be said what a Service should have. Its policies stay as they are.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPlan {
    /// Its namespace is not known: whether it is handled is not known then.
    #[error("failed fetching service namespace {0}: not found")]
    NoNamespace(String),
    /// It would have more policies than there is memory for.
    #[error(
        "the Service has more than {MOST_PIECES} combinations of ports and client namespaces; its policies stay as they are"
    )]
    TooMany,
}

/// What a Service should have, computed at once.
///
/// # Errors
/// If that cannot be said.
pub fn plan(name: &NamespacedName, rules: &Rules, around: &dyn Surroundings) -> Result<Plan, NoPlan> {
    let at_once = plan_in_turns(name, rules, around, || std::future::ready(()));
    at_once.now_or_never().expect("the plan awaits only its pauses, which return at once")
}

/// The same with pauses: it takes as long as the Service has ports, client namespaces and gateways.
///
/// # Errors
/// If that cannot be said.
pub async fn plan_in_turns<F: Future<Output = ()>>(
    name: &NamespacedName,
    rules: &Rules,
    around: &dyn Surroundings,
    pause: impl Fn() -> F,
) -> Result<Plan, NoPlan> {
    let none = |none_because| Ok(Plan { none_because: Some(none_because), ..Plan::default() });
    let Some(service) = around.service(name) else { return none("it does not exist") };
    if service.is_terminating {
        return none("it is being deleted");
    }
    if service.selector.is_empty() {
        return none("it has no selector, so it selects no pods");
    }
    let home = around.namespace(&name.namespace);
    let labels = home.as_ref().map(|home| home.labels.clone()).unwrap_or_default();
    if !rules.handles(&labels) {
        return none("none of controllers.networkPolicy.namespaceSelectors selects its namespace");
    }
    match home {
        None => return Err(NoPlan::NoNamespace(name.namespace.clone())),
        Some(home) if home.is_terminating => return none("its namespace is being deleted"),
        Some(_) => {}
    }
    let mut turns = Turns::new(pause);
    let clients = clients(name, &service, around, &mut turns).await;
    let mut plan = Plan { failing: Failing::of(name, &service, &clients), ..Plan::default() };
    let routes = routes(name, &service, around, &mut plan, &mut turns).await;
    plan.failing.round_off();
    let has_client = |namespace: &str, key: &str| !rules.only_for_matching_pods || around.has_client(namespace, key);
    let controller = rules.ingress_controller.as_ref();
    let view = View {
        name,
        service: &service,
        clients,
        has_client: &has_client,
        backends: controller.map(|_| around.backends(name)).unwrap_or_default(),
        ingress_controller: controller.map(|(namespace, pods)| IngressController {
            namespace,
            pods,
            is_there: is_open(around, namespace),
        }),
        routes,
        explicit_world: rules.explicit_world,
    };
    let mut union = Union::default();
    for (number, piece) in desired::pieces(&view).enumerate() {
        if number == MOST_PIECES {
            return Err(NoPlan::TooMany);
        }
        union.add(piece);
        turns.piece().await;
    }
    plan.desired = union.end(&mut turns).await;
    Ok(plan)
}

fn is_open(around: &dyn Surroundings, namespace: &str) -> bool {
    around.namespace(namespace).is_some_and(|namespace| !namespace.is_terminating)
}

async fn clients<F: Future<Output = ()>, P: Fn() -> F>(
    name: &NamespacedName,
    service: &Service,
    around: &dyn Surroundings,
    turns: &mut Turns<P>,
) -> Vec<String> {
    let mut clients = Vec::new();
    if service.selects_namespaces() {
        for client in around.namespaces().into_iter().filter(|client| *client != name.namespace) {
            let namespace = around.namespace(&client).filter(|namespace| !namespace.is_terminating);
            if namespace.is_some_and(|namespace| service.selects(&namespace.labels)) {
                clients.push(client);
            }
            turns.piece().await;
        }
    }
    clients
}

/// Routes of VirtualServices in the Service's own namespace (spec 40 §7.10).
async fn routes<F: Future<Output = ()>, P: Fn() -> F>(
    name: &NamespacedName,
    service: &Service,
    around: &dyn Surroundings,
    plan: &mut Plan,
    turns: &mut Turns<P>,
) -> Vec<Route> {
    let mut routes = BTreeSet::new();
    // Nearly all Gateways name the same few pods.
    let mut places: BTreeMap<Selector, Option<Vec<String>>> = BTreeMap::new();
    // Any namespace may route to the Service; only its own counts.
    for by in around.routes_to(name).into_iter().filter(|by| by.namespace == name.namespace) {
        let Some(virtual_service) = around.virtual_service(&by) else { continue };
        turns.piece().await;
        let to_it = virtual_service.destinations.iter().filter(|(to, _)| to == name);
        let ports: Rc<[u16]> = to_it.filter_map(|(_, port)| *port).collect();
        if ports.is_empty() {
            continue;
        }
        let (mut selectors, mut is_failing) = (BTreeSet::new(), false);
        for gateway in &virtual_service.gateways {
            let problem = match around.gateway(gateway) {
                Some(Gateway { pods: Ok(selector) }) => {
                    selectors.insert(selector);
                    None
                }
                Some(Gateway { pods: Err(problem) }) => Some(problem),
                None => Some("does not exist".into()),
            };
            if let Some(problem) = problem {
                plan.failing.gateway(gateway, &by.name, &problem);
                is_failing = true;
            }
            turns.piece().await;
        }
        for selector in selectors {
            let open = |namespaces: Vec<Box<str>>| {
                let open = namespaces.iter().filter(|namespace| is_open(around, namespace));
                open.map(ToString::to_string).collect()
            };
            let namespaces =
                places.entry(selector.clone()).or_insert_with(|| around.namespaces_of_pods(&selector).map(open));
            match namespaces {
                Some(namespaces) => {
                    let route = Route { ports: ports.clone(), gateway: selector, namespaces: namespaces.clone() };
                    routes.insert(route);
                }
                None => {
                    plan.is_incomplete = true;
                    is_failing = true;
                }
            }
            turns.piece().await;
        }
        if is_failing {
            let targets = service.targets();
            plan.failing.behind_gateways(ports.iter().filter_map(|number| targets.of(&Backend::Number(*number))));
        }
    }
    routes.into_iter().collect()
}

impl Namespace {
    /// What is kept of a Namespace.
    pub fn of(namespace: &Value) -> Self {
        let labels = namespace.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
        Self {
            labels: labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect(),
            is_terminating: object::deletion_timestamp(namespace).is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use serde_json::json;

    use super::*;
    use crate::{actors::network_policy::snapshot::Snapshot, api::config::NetworkPolicyController};

    fn rules() -> Rules {
        let settings = NetworkPolicyController {
            concurrent_syncs: 1,
            namespace_selectors: Vec::new(),
            ingress_controller_selector: None,
            only_for_matching_pods: false,
            explicit_from_world_peers: true,
        };
        Rules::new(&settings).expect("no selectors to parse")
    }

    /// The Service `shop/cart`, open to all namespaces with all these ports.
    fn cluster(namespaces: usize, ports: usize) -> Snapshot {
        let prefix = "networking.resources.gardener.cloud/";
        let ports: Vec<Value> = (1..=ports).map(|number| json!({ "port": number })).collect();
        let mut snapshot = Snapshot::default();
        let names = (0..namespaces).map(|number| format!("n{number}"));
        for name in names.chain(["shop".to_owned()]) {
            snapshot.add(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } }));
        }
        let annotations = json!({
            format!("{prefix}namespace-selectors"): "[{}]",
            format!("{prefix}from-all-allowed-ports"): json!(ports).to_string(),
        });
        let metadata = json!({ "namespace": "shop", "name": "cart", "annotations": annotations });
        let spec = json!({ "selector": { "app": "cart" } });
        snapshot.add(&json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec }));
        snapshot
    }

    /// spec 40 §12
    #[test]
    fn plan_of_many_namespaces_pauses_after_few() {
        let (name, cluster, pauses) = (NamespacedName::new("shop", "cart"), cluster(1_000, 2), Cell::new(0));
        let rules = rules();
        let pause = || {
            pauses.set(pauses.get() + 1);
            std::future::ready(())
        };
        let plan = plan_in_turns(&name, &rules, &cluster, pause).now_or_never().expect("pauses return at once");
        assert_eq!(plan.expect("a plan").desired.policies.len(), 2 * 2 * 1_001);
        // Each namespace is asked, then a pair of policies is made for each of its ports, and these are put together.
        assert!(pauses.get() >= (1_000 + 2_002 + 2 * 2_002) / 64, "{}", pauses.get());
    }

    /// Notes which VirtualServices are looked at.
    struct Noting(Snapshot, RefCell<Vec<NamespacedName>>);

    impl Surroundings for Noting {
        fn service(&self, name: &NamespacedName) -> Option<Service> {
            self.0.service(name)
        }

        fn namespace(&self, name: &str) -> Option<Namespace> {
            self.0.namespace(name)
        }

        fn namespaces(&self) -> Vec<String> {
            self.0.namespaces()
        }

        fn has_client(&self, namespace: &str, key: &str) -> bool {
            self.0.has_client(namespace, key)
        }

        fn backends(&self, service: &NamespacedName) -> Vec<Backend> {
            self.0.backends(service)
        }

        fn routes_to(&self, service: &NamespacedName) -> Vec<NamespacedName> {
            self.0.routes_to(service)
        }

        fn virtual_service(&self, name: &NamespacedName) -> Option<VirtualService> {
            self.1.borrow_mut().push(name.clone());
            self.0.virtual_service(name)
        }

        fn gateway(&self, name: &NamespacedName) -> Option<Gateway> {
            self.0.gateway(name)
        }

        fn namespaces_of_pods(&self, labels: &Selector) -> Option<Vec<Box<str>>> {
            self.0.namespaces_of_pods(labels)
        }
    }

    /// spec 40 §7.10: whoever routes to a Service from elsewhere costs it nothing
    #[test]
    fn plan_reads_virtual_services_of_its_own_namespace_only() {
        let mut snapshot = cluster(3, 1);
        for namespace in ["shop", "n0", "n1"] {
            let destination = json!({ "host": "cart.shop.svc.cluster.local", "port": { "number": 1 } });
            let spec = json!({ "gateways": ["gw"], "http": [{ "route": [{ "destination": destination }] }] });
            let metadata = json!({ "namespace": namespace, "name": "routes" });
            let (version, kind) = ("networking.istio.io/v1beta1", "VirtualService");
            snapshot.add(&json!({ "apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec }));
        }
        let (noting, name) = (Noting(snapshot, RefCell::default()), NamespacedName::new("shop", "cart"));
        assert_eq!(noting.0.routes_to(&name).len(), 3);
        plan(&name, &rules(), &noting).expect("a plan");
        assert_eq!(noting.1.take(), [NamespacedName::new("shop", "routes")]);
    }

    /// spec 40 §12: nothing is written or deleted for a Service for which there is no memory
    #[test]
    fn plan_of_too_many_policies_is_none() {
        let name = NamespacedName::new("shop", "cart");
        assert!(plan(&name, &rules(), &cluster(99, 250)).is_ok());
        assert_eq!(plan(&name, &rules(), &cluster(100, 250)).expect_err("too many"), NoPlan::TooMany);
    }
}
