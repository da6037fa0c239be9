//! The number of watch streams that the program keeps open.

use std::collections::{BTreeMap, BTreeSet};

use gardener_resource_manager::api::config::resource_manager::{CsrApprover, NodeAgentAuthorizer};
use serde_json::json;
use sim::WatchEnd;

use crate::{
    health_objects::{PROGRESSING, ROLLED_OUT, condition, rolled_out, set_status, workload},
    objects::{machine_definition, with},
    world::{NAMESPACE, World, config_map, namespace, seconds, world},
};

/// The namespaces of the target in the configuration of a shoot (spec 71 §2).
const OF_TARGET: [&str; 3] = ["kube-system", "kubernetes-dashboard", "kube-node-lease"];

fn enable_all(world: &World) {
    let machine_namespace = Some(NAMESPACE.to_owned());
    let mut config = world.config.borrow_mut();
    let approver = CsrApprover { machine_namespace: machine_namespace.clone(), ..CsrApprover::default() };
    config.controllers.csr_approver = approver.into();
    let webhooks = &mut config.webhooks;
    webhooks.node_agent_authorizer = NodeAgentAuthorizer { machine_namespace, authorize_with_selectors: true }.into();
    webhooks.high_availability_config.enabled = true;
    webhooks.system_components_config.enabled = true;
    webhooks.projected_token_mount.enabled = true;
    webhooks.pod_kube_apiserver_load_balancing.enabled = true;
}

/// The open watches by resource, path and selector. When all are ended, each is reopened exactly once.
async fn streams(world: &World) -> BTreeMap<String, usize> {
    world.sim.clear_requests();
    world.sim.break_watches(WatchEnd::Close);
    seconds(10).await;
    let mut streams = BTreeMap::new();
    for request in world.requests().iter().filter(|request| request.info.verb == "watch") {
        let selection = request.info.query.split('&').filter(|part| part.contains("Selector="));
        let selection: Vec<&str> = selection.filter_map(|part| part.split('=').next()).collect();
        let stream = format!("{} {} {}", request.info.resource, request.info.namespace, selection.join(" "));
        *streams.entry(stream.trim().to_owned()).or_default() += 1;
    }
    streams
}

/// Whichever readers and versions a kind has. Managed objects, selected by their label, are another stream.
#[test]
fn kinds_are_watched_once_each() {
    world(1, |world| async move {
        enable_all(&world);
        world.sim.put(machine_definition()).expect("the definition of Machines");
        seconds(1).await;
        world.start().await;
        world
            .bundle("one", &[with(workload("Deployment", "web", 1), "/spec/replicas", json!(0)), config_map("a", "v")]);
        world.applied("one").await;
        set_status(&world, "deployments.apps", "web", rolled_out());
        seconds(10).await;
        assert_eq!(condition(&world, PROGRESSING), ROLLED_OUT);

        let streams = streams(&world).await;

        let several: Vec<_> = streams.iter().filter(|(_, count)| **count != 1).collect();
        assert!(several.is_empty(), "{several:?}");
        let all: Vec<&str> = streams.keys().map(String::as_str).collect();
        let expected = [
            "apiservices",
            "certificatesigningrequests",
            "configmaps  fieldSelector",
            "configmaps  labelSelector",
            "customresourcedefinitions",
            "deployments  labelSelector",
            "horizontalpodautoscalers",
            "machines shoot",
            "managedresources",
            "mutatingwebhookconfigurations",
            "namespaces",
            "nodes",
            "pods",
            "secrets",
            "secrets kube-system labelSelector",
            "serviceaccounts",
            "services  fieldSelector",
        ];
        assert_eq!(all, expected);
    });
}

/// spec 70 §2.3, spec 71 §2: source and target are two clusters, each with configured namespaces.
#[test]
fn kinds_watched_everywhere_are_not_watched_in_single_namespaces_of_a_shoot() {
    world(1, |world| async move {
        enable_all(&world);
        world.separate.set(true);
        world.config.borrow_mut().source.namespaces = vec![NAMESPACE.to_owned()];
        world.config.borrow_mut().target.namespaces = OF_TARGET.map(str::to_owned).to_vec();
        world.sim.put(machine_definition()).expect("the definition of Machines");
        world.sim.put(namespace(OF_TARGET[1])).expect("a namespace");
        seconds(1).await;
        world.start().await;
        let in_target = |object| with(object, "/metadata/namespace", json!(OF_TARGET[0]));
        let web = with(workload("Deployment", "web", 1), "/spec/replicas", json!(0));
        world.bundle("one", &[in_target(web), in_target(config_map("a", "v"))]);
        world.applied("one").await;
        seconds(10).await;

        let streams = streams(&world).await;

        let several: Vec<_> = streams.iter().filter(|(_, count)| **count != 1).collect();
        assert!(several.is_empty(), "{several:?}");
        let expected = [
            "apiservices",
            "certificatesigningrequests",
            "configmaps _ fieldSelector",
            "configmaps _ labelSelector",
            "customresourcedefinitions",
            "deployments _ labelSelector",
            "horizontalpodautoscalers",
            "machines shoot",
            "managedresources shoot",
            "mutatingwebhookconfigurations",
            "namespaces",
            "nodes",
            "pods",
            "secrets kube-system labelSelector",
            "secrets shoot",
            "serviceaccounts _",
            "services _ fieldSelector",
        ];
        let in_each = |stream: &str| OF_TARGET.map(|namespace| stream.replace('_', namespace));
        let expected: BTreeSet<String> = expected.into_iter().flat_map(in_each).collect();
        assert_eq!(streams.into_keys().collect::<BTreeSet<_>>(), expected);
    });
}
