//! The configuration of the controller (spec 40 §4).

use crate::api::{
    config::resource_manager::NetworkPolicyController,
    meta::selector::{Labels, Selector, SelectorError},
};

/// The configuration with parsed selectors.
#[derive(Debug, Clone)]
pub struct Rules {
    /// A Service is handled if one of these selects its namespace; empty means all.
    namespaces: Vec<Selector>,
    /// Namespace and pods of the ingress controller.
    pub ingress_controller: Option<(String, Selector)>,
    /// Writes policies only for namespaces with pods that need them (decision 2).
    pub only_for_matching_pods: bool,
    /// Lists "everyone" explicitly (decision 3).
    pub explicit_world: bool,
}

impl Rules {
    /// Parses the settings. Fails for an invalid selector, which the validation of the configuration refuses before.
    pub fn new(settings: &NetworkPolicyController) -> Result<Self, SelectorError> {
        let controller = settings.ingress_controller_selector.as_ref();
        let controller = controller.map(|it| Ok((it.namespace.clone(), Selector::new(&it.pod_selector)?)));
        Ok(Self {
            namespaces: settings.namespace_selectors.iter().map(Selector::new).collect::<Result<_, _>>()?,
            ingress_controller: controller.transpose()?,
            only_for_matching_pods: settings.only_for_matching_pods,
            explicit_world: settings.explicit_from_world_peers,
        })
    }

    /// Returns true if Services in a namespace with these labels are handled.
    pub fn handles(&self, labels: &Labels) -> bool {
        self.namespaces.is_empty() || self.namespaces.iter().any(|selector| selector.matches(labels))
    }
}
