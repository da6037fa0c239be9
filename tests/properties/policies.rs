//! A small evaluator of NetworkPolicies shows that the policies of a Service allow exactly what its annotations say.

use cluster::object::NamespacedName;
use gardener_resource_manager::{
    actors::resource_manager::network_policy::{
        desired::{View, desired},
        plan::{Plan, plan},
        policy::{Found, Policy},
        rules::Rules,
        service::Service,
        snapshot::Snapshot,
    },
    api::config::resource_manager::{IngressControllerSelector, NetworkPolicyController},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use proptest::prelude::*;
use serde_json::{Value, json};

const P: &str = "networking.resources.gardener.cloud/";
const NAMESPACES: [&str; 3] = ["home", "near", "far"];

#[derive(Debug, Clone)]
struct Case {
    ports: Vec<Value>,
    selects_blue: bool,
    alias: Option<&'static str>,
    has_probe: bool,
    world: Option<Value>,
    blue: [bool; 3],
    /// Numbers of the Service's ports that an Ingress names, and that a VirtualService routes to.
    exposed: [Vec<u16>; 2],
}

#[derive(Debug, Clone)]
struct Pod {
    namespace: &'static str,
    labels: Value,
}

fn case() -> impl Strategy<Value = Case> {
    let ports = prop::sample::subsequence(vec![json!(8080), json!("web"), json!(53)], 0..=3).prop_shuffle();
    let world = prop_oneof![
        Just(None),
        Just(Some(json!([]))),
        Just(Some(json!([{ "port": 8080, "protocol": "TCP" }]))),
        Just(Some(json!([{ "port": "web" }, { "port": 7, "endPort": 60 }]))),
    ];
    let alias = prop::sample::select(vec![None, Some("all"), Some("")]);
    let numbers = || prop::sample::subsequence(vec![1, 2, 3, 4], 0..=4);
    let exposed = (numbers(), numbers()).prop_map(|(ingress, route)| [ingress, route]);
    (ports, any::<bool>(), alias, any::<bool>(), world, any::<[bool; 3]>(), exposed).prop_map(
        |(ports, selects_blue, alias, has_probe, world, blue, exposed)| Case {
            ports,
            selects_blue,
            alias,
            has_probe,
            world,
            blue,
            exposed,
        },
    )
}

impl Case {
    fn service(&self) -> Service {
        Service::of(&self.object())
    }

    fn object(&self) -> Value {
        let mut annotations = json!({});
        let mut annotate = |key: &str, value: String| annotations[format!("{P}{key}")] = json!(value);
        if self.selects_blue {
            annotate("namespace-selectors", json!([{ "matchLabels": { "team": "blue" } }]).to_string());
        }
        if let Some(alias) = self.alias {
            annotate("pod-label-selector-namespace-alias", alias.to_owned());
        }
        if self.has_probe {
            annotate("from-probe-allowed-ports", json!([{ "port": 9090 }]).to_string());
        }
        if let Some(world) = &self.world {
            annotate("from-world-to-ports", world.to_string());
        }
        let number = |index: usize| u16::try_from(index).expect("few ports") + 1;
        let port = |(index, target): (usize, &Value)| json!({ "port": number(index), "targetPort": target });
        let ports: Vec<Value> = self.ports.iter().enumerate().map(port).collect();
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": { "namespace": "home", "name": "s", "annotations": annotations },
            "spec": { "selector": { "app": "s" }, "ports": ports },
        })
    }

    /// The whole cluster: the ingress controller is in `near`, the gateway of Istio has its pods in `far`.
    fn planned(&self) -> Vec<Policy> {
        self.plan_of(&self.object()).desired.policies
    }

    fn plan_of(&self, service: &Value) -> Plan {
        let [ingress, route] = &self.exposed;
        let path = |port: &u16| json!({ "backend": { "service": { "name": "s", "port": { "number": port } } } });
        let paths: Vec<Value> = ingress.iter().map(path).collect();
        let host = "s.home.svc.cluster.local";
        let to = |port: &u16| json!({ "route": [{ "destination": { "host": host, "port": { "number": port } } }] });
        let routes: Vec<Value> = route.iter().map(to).collect();
        let mut snapshot = Snapshot::default();
        let object = |api: &str, kind: &str, namespace: &str, name: &str, labels: Value, spec: Value| {
            let metadata = json!({ "namespace": namespace, "name": name, "labels": labels });
            json!({ "apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec })
        };
        for (name, is_blue) in NAMESPACES.iter().zip(self.blue) {
            let labels = if is_blue { json!({ "team": "blue" }) } else { json!({}) };
            snapshot.add(&object("v1", "Namespace", "", name, labels, json!({})));
        }
        let istio = "networking.istio.io/v1beta1";
        let spec = json!({ "rules": [{ "http": { "paths": paths } }] });
        snapshot.add(&object("networking.k8s.io/v1", "Ingress", "home", "i", json!({}), spec));
        let spec = json!({ "gateways": ["near/g"], "http": routes });
        snapshot.add(&object(istio, "VirtualService", "home", "v", json!({}), spec));
        snapshot.add(&object(istio, "Gateway", "near", "g", json!({}), json!({ "selector": { "app": "gateway" } })));
        snapshot.add(&object("v1", "Pod", "far", "p", json!({ "app": "gateway", "other": "x" }), json!({})));
        snapshot.add(service);
        let pod_selector = LabelSelector {
            match_labels: Some([("app".to_owned(), "edge".to_owned())].into()),
            match_expressions: None,
        };
        let edge = IngressControllerSelector { namespace: "near".to_owned(), pod_selector };
        let rules = Rules::new(&NetworkPolicyController {
            ingress_controller_selector: Some(edge),
            ..NetworkPolicyController::default()
        });
        let plan = plan(&NamespacedName::new("home", "s"), &rules.expect("selectors of the API"), &snapshot);
        plan.expect("the namespace exists")
    }

    fn has_number(&self, numbers: &[u16], target: &Value) -> bool {
        let index = self.ports.iter().position(|port| port == target);
        let number = index.and_then(|index| u16::try_from(index + 1).ok());
        number.is_some_and(|number| numbers.contains(&number))
    }

    fn clients(&self) -> Vec<String> {
        let others = NAMESPACES.iter().zip(self.blue).skip(1);
        others.filter(|(_, is_blue)| *is_blue && self.selects_blue).map(|(name, _)| (*name).to_owned()).collect()
    }

    fn policies(&self, clients: Vec<String>) -> Vec<Policy> {
        let (name, service) = (NamespacedName::new("home", "s"), self.service());
        let view = View {
            name: &name,
            service: &service,
            clients,
            has_client: &|_, _| true,
            backends: Vec::new(),
            ingress_controller: None,
            routes: Vec::new(),
            explicit_world: true,
        };
        desired(&view).policies
    }

    /// Returns the label that a client in this namespace needs for a port, or `None` if it may not reach the port.
    fn label(&self, namespace: &str, port: &Value) -> Option<String> {
        let text = port.as_str().map_or_else(|| port.to_string(), str::to_owned);
        let base = match port {
            port if self.ports.contains(port) => format!("s-tcp-{text}"),
            port if self.has_probe && *port == json!(9090) => "probe".to_owned(),
            _ => return None,
        };
        match namespace {
            "home" => Some(base),
            other if !self.clients().iter().any(|client| client == other) => None,
            _ => Some(format!("{}-{base}", self.alias.unwrap_or("home"))),
        }
    }

    fn is_open_to_the_world(&self, port: &Value) -> bool {
        let Some(world) = self.world.as_ref().and_then(Value::as_array) else { return false };
        world.is_empty() || world.iter().any(|open| covers(open, port))
    }
}

fn covers(open: &Value, port: &Value) -> bool {
    match (open["endPort"].as_u64(), open["port"].as_u64(), port.as_u64()) {
        (Some(end), Some(first), Some(port)) => (first..=end).contains(&port),
        _ => open.get("port").is_none_or(|open| open == port),
    }
}

fn selects(selector: &Value, labels: &Value) -> bool {
    let wanted = selector["matchLabels"].as_object().into_iter().flatten();
    wanted.into_iter().all(|(key, value)| labels[key] == *value)
}

/// Whether the policies alone let a pod's traffic in one direction through.
fn lets(policies: &[Policy], kind: &str, pod: &Pod, other: &Pod, port: &Value) -> bool {
    let (rules, peers) = if kind == "Ingress" { ("ingress", "from") } else { ("egress", "to") };
    policies.iter().filter(|policy| policy.name.namespace == pod.namespace).any(|policy| {
        let spec = policy.spec();
        let is_about = spec["policyTypes"] == json!([kind]) && selects(&spec["podSelector"], &pod.labels);
        is_about
            && spec[rules].as_array().into_iter().flatten().any(|rule| {
                let is_port = rule["ports"].as_array().is_none_or(|ports| ports.iter().any(|open| covers(open, port)));
                let is_peer = |peer: &Value| match (&peer["namespaceSelector"], &peer["podSelector"]) {
                    (Value::Null, Value::Null) => false, // an address; pods are selected by labels
                    (Value::Null, pods) => other.namespace == policy.name.namespace && selects(pods, &other.labels),
                    (namespaces, pods) => {
                        let labels = json!({ "kubernetes.io/metadata.name": other.namespace });
                        selects(namespaces, &labels) && selects(pods, &other.labels)
                    }
                };
                is_port && rule[peers].as_array().is_none_or(|peers| peers.iter().any(is_peer))
            })
    })
}

proptest! {
    /// spec 40 §7.2, §7.3, §7.5: exactly what the annotations say is reachable.
    #[test]
    fn policies_allow_exactly_the_described_connections(case in case()) {
        let policies = case.policies(case.clients());
        let server = Pod { namespace: "home", labels: json!({ "app": "s" }) };
        let ports = [json!(8080), json!("web"), json!(53), json!(9090), json!(7)];
        let bases = ["s-tcp-8080", "s-tcp-web", "s-tcp-53", "probe"];
        let keys: Vec<String> =
            bases.iter().flat_map(|base| ["", "home-", "all-", "-"].map(|infix| format!("{infix}{base}"))).collect();
        for namespace in NAMESPACES {
            for (key, value) in keys.iter().flat_map(|key| [(key, "allowed"), (key, "denied")]) {
                let client = Pod { namespace, labels: json!({ format!("{P}to-{key}"): value }) };
                for port in &ports {
                    let is_client = value == "allowed" && case.label(namespace, port).as_ref() == Some(key);
                    let out = lets(&policies, "Egress", &client, &server, port);
                    let into = lets(&policies, "Ingress", &server, &client, port);
                    prop_assert_eq!(out, is_client, "{} {}={} to {}", namespace, key, value, port);
                    prop_assert_eq!(into, is_client || case.is_open_to_the_world(port), "{} {}={} to {}", namespace, key, value, port);
                    prop_assert!(!lets(&policies, "Ingress", &client, &server, port), "clients are no servers");
                }
            }
        }
    }

    /// spec 40 §7.9, §7.10: ingress controller and gateways reach exactly what is exposed to them.
    #[test]
    fn policies_let_outside_traffic_reach_exactly_what_is_exposed(case in case()) {
        let policies = case.planned();
        let server = Pod { namespace: "home", labels: json!({ "app": "s" }) };
        let [ingress, route] = &case.exposed;
        for namespace in NAMESPACES {
            for (app, place, numbers) in [("edge", "near", ingress), ("gateway", "far", route), ("other", "", ingress)] {
                let client = Pod { namespace, labels: json!({ "app": app }) };
                for port in [json!(8080), json!("web"), json!(53), json!(9090), json!(7)] {
                    let is_client = namespace == place && case.has_number(numbers, &port);
                    let out = lets(&policies, "Egress", &client, &server, &port);
                    let into = lets(&policies, "Ingress", &server, &client, &port);
                    prop_assert_eq!(out, is_client, "{} in {} to {}", app, namespace, &port);
                    let is_open = is_client || case.is_open_to_the_world(&port);
                    prop_assert_eq!(into, is_open, "{} in {} to {}", app, namespace, &port);
                }
            }
        }
    }

    /// spec 40 §8.4: policies of an unreadable source are kept, but no policies of other sources.
    #[test]
    fn policies_of_exactly_the_broken_annotation_are_kept(case in case()) {
        let sources = ["namespace-selectors", "from-probe-allowed-ports", "from-world-to-ports"];
        let good = case.object();
        let annotate = |service: &Value, key: &str, value: Value| {
            let mut service = service.clone();
            if service["metadata"]["annotations"].get(format!("{P}{key}")).is_some() {
                service["metadata"]["annotations"][format!("{P}{key}")] = value;
            }
            service
        };
        let names = |plan: &Plan| plan.desired.policies.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
        for (broken, gone) in sources.iter().flat_map(|broken| sources.map(|gone| (*broken, gone))) {
            let without = if broken == gone { good.clone() } else { annotate(&good, gone, Value::Null) };
            let wanted = names(&case.plan_of(&without));
            let plan = case.plan_of(&annotate(&without, broken, json!("[")));
            for policy in case.plan_of(&good).desired.policies {
                let found = Found::of(&policy.created()).expect("it has the labels");
                let is_kept = plan.failing.keeps(&policy.name, &found, &|namespace| NAMESPACES.contains(&namespace));
                if !names(&plan).contains(&policy.name) {
                    prop_assert_eq!(is_kept, wanted.contains(&policy.name), "{} without {}: {}", broken, gone, &policy.name);
                }
            }
        }
    }

    #[test]
    fn policies_do_not_depend_on_the_order_of_their_sources(case in case()) {
        let mut other = case.clone();
        other.ports.reverse();
        let mut clients = case.clients();
        clients.reverse();
        prop_assert_eq!(case.policies(case.clients()), other.policies(clients));
    }
}
