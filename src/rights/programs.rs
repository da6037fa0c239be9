//! The tables of both programs. Their charts make roles of the same files.

use serde::Serialize;
use serde_json::Value;

use super::{
    NeededRight,
    table::{Place, RightsTable, Section},
};
use crate::api::config::{controller_manager, resource_manager};

const KUBE_SYSTEM: Place = Place::Namespace("kube-system");
/// The namespace of Events about objects without one.
const DEFAULT: Place = Place::Namespace("default");
const LEASE: Place = Place::Named("leaderElection.resourceNamespace");
const RESOURCE_MANAGER: RightsTable = RightsTable {
    rows: include_str!("../../deploy/charts/gardener-resource-manager/files/rights.yaml"),
    sections: &[
        of_source("source", Place::Listed("sourceClientConnection.namespaces")),
        of_source("sourceCluster", Place::Everywhere),
        of_source("sourceSystem", KUBE_SYSTEM),
        of_source("election", LEASE),
        of_target("target", Place::Listed("targetClientConnection.namespaces")),
        of_target("targetCluster", Place::Everywhere),
        of_target("targetSystem", KUBE_SYSTEM),
        of_target("targetDefault", DEFAULT),
    ],
};

const CONTROLLER_MANAGER: RightsTable = RightsTable {
    rows: include_str!("../../deploy/charts/gardener-controller-manager/files/rights.yaml"),
    sections: &[of_garden("garden", Place::Everywhere), of_garden("election", LEASE)],
};

const fn of_source(name: &'static str, place: Place) -> Section {
    Section { name, cluster: "source", place, chart_value: "global.rbac.create" }
}

const fn of_target(name: &'static str, place: Place) -> Section {
    Section { name, cluster: "target", place, chart_value: "global.rbac.target" }
}

const fn of_garden(name: &'static str, place: Place) -> Section {
    Section { name, cluster: "garden", place, chart_value: "global.controller.rbac.create" }
}

/// Returns the rights that gardener-resource-manager needs with a configuration, beside those on the objects in bundles.
pub(crate) fn of_resource_manager(config: &resource_manager::Config) -> Vec<NeededRight> {
    RESOURCE_MANAGER.rights(&value_of(config))
}

/// Returns the rights that gardener-controller-manager needs with a configuration (spec 80 §18).
pub(crate) fn of_controller_manager(config: &controller_manager::Config) -> Vec<NeededRight> {
    CONTROLLER_MANAGER.rights(&value_of(config))
}

fn value_of(config: &impl Serialize) -> Value {
    serde_json::to_value(config).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;
    use crate::rights::RightObject;

    /// Resources of kinds with a namespace, in sections whose namespaces a setting lists.
    const NAMESPACED: [&str; 25] = [
        "configmaps",
        "cronjobs",
        "daemonsets",
        "deployments",
        "destinationrules",
        "envoyfilters",
        "events",
        "gateways",
        "horizontalpodautoscalers",
        "ingresses",
        "jobs",
        "machines",
        "managedresources",
        "managedresources/status",
        "networkpolicies",
        "pods",
        "prometheuses",
        "replicasets",
        "secrets",
        "serviceaccounts",
        "serviceaccounts/token",
        "services",
        "statefulsets",
        "virtualservices",
        "leases",
    ];

    /// With all parts on, and the settings that rules depend on.
    fn everything() -> Value {
        let mut config = value_of(&resource_manager::Config::default());
        for block in ["controllers", "webhooks"] {
            for part in config[block].as_object_mut().unwrap().values_mut() {
                if let Some(part) = part.as_object_mut() {
                    part.insert("enabled".to_owned(), json!(true));
                    part.insert("machineNamespace".to_owned(), json!("machines"));
                    part.insert("deleteServiceAccounts".to_owned(), json!(true));
                    part.insert("onlyForMatchingPods".to_owned(), json!(true));
                }
            }
        }
        config["controllers"]["clusterID"] = json!("<cluster>");
        config["sourceClientConnection"]["namespaces"] = json!(["a", "b"]);
        config["targetClientConnection"]["namespaces"] = json!(["c"]);
        config["leaderElection"]["leaderElect"] = json!(true);
        config["leaderElection"]["resourceNamespace"] = json!("lease");
        config
    }

    /// The resources, and whether they are asked for in a namespace.
    fn names(rights: &[NeededRight]) -> BTreeSet<(String, bool)> {
        let name = |needed: &NeededRight| match &needed.right.object {
            RightObject::Resource { resource, .. } => resource.clone(),
            RightObject::Path(path) => path.clone(),
        };
        rights.iter().map(|needed| (name(needed), needed.right.namespace.is_some())).collect()
    }

    /// A new resource must be in one of the two lists: the check would ask for the wrong right.
    #[test]
    fn rights_of_the_resource_manager_are_asked_where_they_count() {
        let rights = RESOURCE_MANAGER.rights(&everything());

        for (resource, is_in_namespace) in names(&rights) {
            let is_known = NAMESPACED.contains(&&*resource);
            assert!(is_known || !is_in_namespace, "{resource} is asked for in a namespace; is it namespaced?");
        }
        let find = |resource: &str, verb: &str| -> Vec<Option<&str>> {
            let is_it = |needed: &&NeededRight| matches!(&needed.right.object, RightObject::Resource { resource: found, .. } if found == resource);
            let of = rights.iter().filter(is_it).filter(|needed| needed.right.verb == verb);
            of.map(|needed| needed.right.namespace.as_deref()).collect()
        };
        assert_eq!(find("managedresources", "update"), [Some("a"), Some("b")]);
        assert_eq!(find("nodes", "patch"), [None]);
        assert_eq!(find("machines", "list"), [Some("machines")]);
        assert_eq!(find("leases", "update"), [Some("lease")]);
        assert_eq!(find("serviceaccounts", "delete"), [Some("c")]);
        assert_eq!(find("etcds", "list"), [None]);
        assert_eq!(find("pods", "get"), [None, Some("c"), Some("kube-system")]);
        assert_eq!(find("events", "create"), [Some("a"), Some("b"), Some("lease"), Some("c"), Some("default")]);
    }

    /// These parts look at all namespaces, whatever `targetClientConnection.namespaces` says.
    #[test]
    fn rights_of_parts_that_look_beyond_their_namespaces_are_asked_in_all() {
        let everywhere = |part: &str, resource: &str| -> Vec<(String, bool)> {
            let mut config = value_of(&resource_manager::Config::default());
            config["targetClientConnection"]["namespaces"] = json!(["c"]);
            if let Some((block, name)) = part.split_once('.') {
                config[block][name]["enabled"] = json!(true);
            }
            let is_it = |needed: &&NeededRight| {
                let RightObject::Resource { resource: found, .. } = &needed.right.object else { return false };
                found == resource && needed.right.cluster == "target" && needed.right.namespace.is_none()
            };
            let rights = RESOURCE_MANAGER.rights(&config);
            rights.iter().filter(is_it).map(|needed| (needed.right.verb.clone(), needed.without.is_some())).collect()
        };
        let of = |verbs: &[&str], is_optional: bool| -> Vec<(String, bool)> {
            verbs.iter().map(|verb| ((*verb).to_owned(), is_optional)).collect()
        };

        for (part, resource, expected) in [
            ("", "pods", of(&["list", "watch"], true)),
            ("", "horizontalpodautoscalers", of(&["list", "watch"], true)),
            ("controllers.networkPolicy", "pods", of(&["list", "watch"], false)),
            ("webhooks.nodeAgentAuthorizer", "pods", of(&["get", "list", "watch"], false)),
            ("webhooks.nodeAgentAuthorizer", "secrets", Vec::new()),
            ("controllers.nodeCriticalComponents", "events", Vec::new()),
        ] {
            assert_eq!(everywhere(part, resource), expected, "{part} {resource}");
        }
    }

    #[test]
    fn rights_of_parts_that_are_off_are_not_needed() {
        let rights = of_resource_manager(&resource_manager::Config::default());

        let names = names(&rights);
        for always in ["managedresources", "horizontalpodautoscalers"] {
            assert!(names.contains(&(always.to_owned(), false)), "{always}: {names:?}");
        }
        for off in ["tokenreviews", "machines", "networkpolicies", "csinodes", "configmaps"] {
            assert!(names.iter().all(|(name, _)| *name != off), "{off}");
        }
    }

    /// spec 80 §18
    #[test]
    fn rights_of_the_controller_manager_are_those_of_its_table() {
        let mut config = controller_manager::Config::default();
        config.leader_election.resource_name = "lease".to_owned();
        config.leader_election.resource_namespace = "garden".to_owned();

        let rights = of_controller_manager(&config);

        let shown: BTreeSet<String> = rights
            .iter()
            .map(|needed| format!("{} {} in {:?}", needed.right.verb, needed.right.object, needed.right.namespace))
            .collect();
        for expected in [
            "delete shoots.core.gardener.cloud in None",
            "update seeds/finalizers.core.gardener.cloud in None",
            "escalate clusterroles.rbac.authorization.k8s.io in None",
            "approve signers.certificates.k8s.io \"kubernetes.io/kube-apiserver-client\" in None",
            "update leases.coordination.k8s.io \"lease\" in Some(\"garden\")",
            "get /version in None",
        ] {
            assert!(shown.contains(expected), "no {expected}: {shown:#?}");
        }
    }
}
