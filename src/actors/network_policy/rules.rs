//! What the configuration says (spec 40 §4).

use crate::api::{
    config::NetworkPolicyController,
    selector::{Labels, Selector, SelectorError},
};

/// What the configuration says, with its selectors read.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Namespaces whose Services are handled: any of these; empty is all.
    namespaces: Vec<Selector>,
    /// Namespace and pods of the ingress controller.
    pub ingress_controller: Option<(String, Selector)>,
    /// Policies only for namespaces with pods that need them (decision 2).
    pub only_for_matching_pods: bool,
    /// Everyone is listed (decision 3).
    pub explicit_world: bool,
}

impl Rules {
    /// Of settings.
    ///
    /// # Errors
    /// A selector that is none; the check of the configuration has refused it before.
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

    /// Whether Services of a namespace with these labels are handled.
    pub fn handles(&self, labels: &Labels) -> bool {
        self.namespaces.is_empty() || self.namespaces.iter().any(|selector| selector.matches(labels))
    }
}
