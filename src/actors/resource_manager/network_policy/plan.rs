//! Computes the wanted policies of a Service (spec 40 §6 steps 2 to 6), for the controller and the command `policies`.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    rc::Rc,
};

use cluster::object::{self, NamespacedName};
use futures::FutureExt as _;
use serde_json::Value;

use super::{
    desired::{self, Desired, IngressController, Route, Union, View},
    exposure::{Gateway, VirtualService},
    failing::Failing,
    port::Backend,
    rules::Rules,
    service::Service,
    turns::{AT_ONCE, Turns},
};
use crate::api::meta::selector::{Labels, Selector, labels_in};

/// Largest number of port and namespace combinations of a Service; each gives two policies.
const MOST_PIECES: usize = 25_000;

/// The cached fields of a Namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Its labels.
    pub labels: Labels,
    /// It is terminating: nothing can be created in it.
    pub is_terminating: bool,
}

/// The state of a cluster.
pub trait Surroundings {
    /// A Service.
    fn service(&self, name: &NamespacedName) -> Option<Service>;
    /// A namespace.
    fn namespace(&self, name: &str) -> Option<Namespace>;
    /// Calls `look` with at most `most` namespaces in the order of names, from the first one after `name` on.
    fn namespaces_after(&self, name: &str, most: usize, look: &mut dyn FnMut(&str, &Namespace));
    /// Returns true if a pod with this client label exists or is about to. Called with `onlyForMatchingPods` only.
    fn has_client(&self, namespace: &str, key: &str) -> bool;
    /// The ports of a Service that Ingresses name. Called with an ingress controller only.
    fn backends(&self, service: &NamespacedName) -> Vec<Backend>;
    /// The VirtualServices that route to a Service, in order.
    fn routes_to(&self, service: &NamespacedName) -> Vec<NamespacedName>;
    /// A VirtualService.
    fn virtual_service(&self, name: &NamespacedName) -> Option<VirtualService>;
    /// A Gateway, or `None` if it does not exist.
    fn gateway(&self, name: &NamespacedName) -> Option<Gateway>;
    /// The namespaces with pods that have these labels, or `None` while they are unknown.
    fn namespaces_of_pods(&self, labels: &Selector) -> Option<Vec<Box<str>>>;
}

/// The policies that a Service should have, and the gaps in it.
#[derive(Debug, Default)]
pub struct Plan {
    /// Its policies.
    pub desired: Desired,
    /// The sources that are unreadable.
    pub failing: Failing,
    /// Something is not known yet, but will be soon.
    pub is_incomplete: bool,
    /// Why the Service should have no policies.
    pub none_because: Option<&'static str>,
}

/// Why there is no plan. The policies of the Service stay as they are.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPlan {
    /// The Service's namespace is unknown, so it is unknown whether the Service is handled.
    #[error("failed fetching service namespace {0}: not found")]
    NoNamespace(String),
    /// The Service would have more policies than memory allows.
    #[error(
        "the Service has more than {MOST_PIECES} combinations of ports and client namespaces; its policies stay as they are"
    )]
    TooMany,
}

/// Computes the plan without pauses. Fails if there is no plan.
pub fn plan(name: &NamespacedName, rules: &Rules, around: &dyn Surroundings) -> Result<Plan, NoPlan> {
    let at_once = plan_in_turns(name, rules, around, &mut Turns::at_once()).now_or_never();
    at_once.expect("the plan awaits only pauses, and there are none")
}

/// Computes the plan in turns: the work grows with ports, client namespaces and gateways. Fails if there is no plan.
pub async fn plan_in_turns(
    name: &NamespacedName,
    rules: &Rules,
    around: &dyn Surroundings,
    turns: &mut Turns,
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
    let clients = clients(name, &service, around, turns).await;
    let mut plan = Plan { failing: Failing::of(name, &service, &clients), ..Plan::default() };
    let routes = routes(name, &service, around, &mut plan, turns).await;
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
    plan.desired = union.end(turns).await;
    Ok(plan)
}

fn is_open(around: &dyn Surroundings, namespace: &str) -> bool {
    around.namespace(namespace).is_some_and(|namespace| !namespace.is_terminating)
}

async fn clients(
    name: &NamespacedName,
    service: &Service,
    around: &dyn Surroundings,
    turns: &mut Turns,
) -> Vec<String> {
    let mut clients = Vec::new();
    let (mut last, mut seen) = (String::new(), AT_ONCE);
    while service.selects_namespaces() && seen == AT_ONCE {
        let after = mem::take(&mut last);
        seen = 0;
        around.namespaces_after(&after, AT_ONCE, &mut |client, namespace| {
            seen += 1;
            if seen == AT_ONCE {
                client.clone_into(&mut last);
            }
            if client != name.namespace && !namespace.is_terminating && service.selects(&namespace.labels) {
                clients.push(client.to_owned());
            }
        });
        turns.pieces(seen).await;
    }
    clients
}

/// Returns the routes of VirtualServices in the Service's namespace (spec 40 §7.10).
async fn routes(
    name: &NamespacedName,
    service: &Service,
    around: &dyn Surroundings,
    plan: &mut Plan,
    turns: &mut Turns,
) -> Vec<Route> {
    let mut routes = BTreeSet::new();
    // Most Gateways share a few selectors.
    let mut places: BTreeMap<Selector, Option<Vec<String>>> = BTreeMap::new();
    // VirtualServices of all namespaces may route to the Service; only those in its namespace count.
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
    /// Reads a Namespace.
    pub fn of(namespace: &Value) -> Self {
        Self {
            labels: labels_in(&namespace["metadata"]["labels"]),
            is_terminating: object::deletion_timestamp(namespace).is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use serde_json::json;

    use super::*;
    use crate::{
        actors::resource_manager::network_policy::{snapshot::Snapshot, turns},
        api::config::resource_manager::NetworkPolicyController,
    };

    fn rules() -> Rules {
        let settings = NetworkPolicyController::default();
        Rules::new(&settings).expect("no selectors to parse")
    }

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
        let (name, cluster, rules) = (NamespacedName::new("shop", "cart"), cluster(1_000, 2), rules());
        let (mut turns, mut pauses) = (Turns::with_pauses(), 0);
        let plan = turns::run(plan_in_turns(&name, &rules, &cluster, &mut turns), || pauses += 1);
        assert_eq!(plan.expect("a plan").desired.policies.len(), 2 * 2 * 1_001);
        // One piece per namespace, one per pair of policies, and one per policy when they are merged.
        assert!(pauses >= (1_000 + 2_002 + 2 * 2_002) / 64, "{pauses}");
    }

    struct Noting(Snapshot, RefCell<Vec<NamespacedName>>);

    impl Surroundings for Noting {
        fn service(&self, name: &NamespacedName) -> Option<Service> {
            self.0.service(name)
        }

        fn namespace(&self, name: &str) -> Option<Namespace> {
            self.0.namespace(name)
        }

        fn namespaces_after(&self, name: &str, most: usize, look: &mut dyn FnMut(&str, &Namespace)) {
            self.0.namespaces_after(name, most, look);
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

    /// spec 40 §7.10: routes from other namespaces cost the Service nothing
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

    /// spec 40 §12: nothing is written or deleted for a Service with too many policies for the memory
    #[test]
    fn plan_of_too_many_policies_is_none() {
        let name = NamespacedName::new("shop", "cart");
        assert!(plan(&name, &rules(), &cluster(99, 250)).is_ok());
        assert_eq!(plan(&name, &rules(), &cluster(100, 250)).expect_err("too many"), NoPlan::TooMany);
    }
}
