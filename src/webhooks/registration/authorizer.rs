//! The registration of the authorizer of node agents (spec 71 §9). It is no object of the cluster: kube-apiserver reads two
//! files at its start.

use serde_json::{Value, json};

use super::RegisteredCluster;
use crate::webhooks::authorizing::node_agent;

const NAME: &str = "node-agent-authorizer";

/// Where kube-apiserver finds the second file.
const KUBECONFIG: &str = "/etc/kubernetes/structured/authorization-kubeconfigs/node-agent-authorizer-kubeconfig.yaml";

/// Returns what kube-apiserver reads: the file for `--authorization-config`, and the kubeconfig that it names. `None`: the
/// API server of this cluster asks no authorizer. `ca_bundle` is PEM in Base64.
///
/// The host in the kubeconfig is the short name of the Service, which kube-apiserver resolves in its own namespace. The
/// kubeconfig has no credentials: the program asks nobody for any here.
pub fn authorizer(cluster: RegisteredCluster, prefix: &str, ca_bundle: &str) -> Option<[Value; 2]> {
    cluster.has_authorizer().then(|| [configuration(cluster), kubeconfig(prefix, ca_bundle)])
}

fn configuration(cluster: RegisteredCluster) -> Value {
    let node = cluster.has_kubelets().then(|| json!({ "type": "Node", "name": "node" }));
    let webhook = json!({
        "type": "Webhook",
        "name": NAME,
        "webhook": {
            // The shortest that is not replaced by the default of minutes: an answer depends on objects that change.
            "authorizedTTL": "1ns",
            "unauthorizedTTL": "1ns",
            "timeout": "10s",
            "failurePolicy": "Deny",
            "subjectAccessReviewVersion": "v1",
            "matchConditionSubjectAccessReviewVersion": "v1",
            "matchConditions": [{ "expression": format!("'{}' in request.groups", node_agent::GROUP) }],
            "connectionInfo": { "type": "KubeConfigFile", "kubeConfigFile": KUBECONFIG },
        },
    });
    let authorizers: Vec<Value> =
        node.into_iter().chain([json!({ "type": "RBAC", "name": "rbac" }), webhook]).collect();
    json!({
        "apiVersion": "apiserver.config.k8s.io/v1beta1",
        "kind": "AuthorizationConfiguration",
        "authorizers": authorizers,
    })
}

fn kubeconfig(prefix: &str, ca_bundle: &str) -> Value {
    let server = format!("https://{prefix}gardener-resource-manager{}", node_agent::PATH);
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": NAME, "cluster": { "server": server, "certificate-authority-data": ca_bundle } }],
        "users": [{ "name": NAME, "user": {} }],
        "contexts": [{ "name": NAME, "context": { "cluster": NAME, "user": NAME } }],
        "current-context": NAME,
    })
}
