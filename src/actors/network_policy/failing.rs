//! Sources of policies that cannot be read at present: an annotation that is broken, a Gateway that is not there. What they
//! stood for stays ("Better than upstream" 5).

use cluster::object::NamespacedName;

use super::service::Service;

/// What of a Service cannot be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failing {
    clients: bool,
    aliases: Vec<Box<str>>,
    world: bool,
    gateways: bool,
    /// What is wrong, for people.
    pub texts: Vec<String>,
}

const FROM_ISTIO: &str = "-from-istio";
const FROM_INGRESS_CONTROLLER: &str = "-from-ingress-controller";

// === impl Failing ===

impl Failing {
    /// By the annotations of a Service.
    pub fn of(service: &Service) -> Self {
        Self {
            clients: service.clients.is_err(),
            aliases: service
                .aliases
                .iter()
                .filter(|(_, ports)| ports.is_err())
                .map(|(alias, _)| alias.clone())
                .collect(),
            world: matches!(service.world, Some(Err(_))),
            gateways: false,
            texts: service.faults().map(ToString::to_string).collect(),
        }
    }

    /// A Gateway of a VirtualService cannot be used.
    pub fn gateway(&mut self, gateway: &NamespacedName, virtual_service: &str, what: &str) {
        self.gateways = true;
        self.texts.push(format!("gateway {gateway} of VirtualService {virtual_service} {what}"));
    }

    /// It is not known where the pods of Gateways are.
    pub fn gateways_unknown(&mut self) {
        self.gateways = true;
    }

    /// Whether one of the Service's policies, which are `all`, may come from what cannot be read.
    pub fn keeps(&self, policy: &NamespacedName, service: &NamespacedName, all: &[NamespacedName]) -> bool {
        let is_home = policy.namespace == service.namespace;
        let is_istio = |policy: &NamespacedName| policy.name.contains(FROM_ISTIO);
        let is_client = |policy: &NamespacedName| !is_istio(policy) && !policy.name.ends_with(FROM_INGRESS_CONTROLLER);
        // The way in names the namespace in which the way out stands.
        let belongs_to = |is_one: &dyn Fn(&NamespacedName) -> bool| {
            let mut others = all.iter().filter(|other| other.namespace != service.namespace && is_one(other));
            is_home && others.any(|other| policy.name.ends_with(&format!("-from-{}", other.namespace)))
        };
        (self.world && is_home && policy.name == super::desired::world_name(&service.name))
            || self.aliases.iter().any(|alias| policy.name.contains(&format!("-via-{alias}")))
            || (self.clients && ((!is_home && is_client(policy)) || belongs_to(&is_client)))
            || (self.gateways && (is_istio(policy) || belongs_to(&is_istio)))
    }
}
