//! What API servers do with requests that a deployed registration or authorizer selects, while nobody answers them.

use anyhow::{Result, ensure};
use gardener_resource_manager::webhooks::registration::{
    Circumstances, Deployment, RegisteredCluster, RegistrationEntry, configuration,
};
use http::{Method, Request};
use kube::client::Body;
use serde_json::{Value, json};

use super::{
    LIMIT, Landscape, NAME, NAMESPACE,
    gardenlet::{Credentials, Gardenlet, RollOut},
    kubelet::Pod,
    rendered::{self, of_kind},
};
use crate::{
    objects::core,
    support::{Authority, Options, User, eventually, folder, free_port},
};

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const AUTHORIZER: &str = "/webhooks/auth/nodeagent";
const INJECT: &str = "apiserver-proxy.networking.gardener.cloud/inject";

/// spec 71 scenarios 13, 14 and 15; §14, trap 4: the instance itself, static Pods and Pods that opted out are created
/// although each webhook fails.
#[tokio::test]
async fn landscape_webhooks_that_nobody_answers_block_neither_the_instance_nor_static_pods() -> Result<()> {
    let landscape = Landscape::start(Options::default()).await?;
    // As gardenlet labels it.
    let role = json!({ "metadata": { "labels": { "gardener.cloud/role": "garden" } } });
    landscape.admin.merge("/api/v1/namespaces/garden", &role).await?;
    let objects = rendered::read(rendered::SELF_HOSTED_RUNTIME)?;
    let own = of_kind(&objects, "Deployment")?["spec"]["template"]["metadata"]["labels"].clone();
    let circumstances = Circumstances { default_seccomp_profile: true, bin_packing: true, ..Circumstances::default() };
    for place in
        [RegisteredCluster::SeedRuntime, RegisteredCluster::GardenRuntime, RegisteredCluster::SelfHostedRuntime]
    {
        let registered = register(&landscape, place, &circumstances, |_| true).await?;
        blocked(&landscape, "garden", &json!({ "app": "other" })).await?;
        created(&landscape, "garden", &own).await?;
        landscape.delete(&registered).await?;
        allowed_again(&landscape, "garden").await?;
    }

    for place in [RegisteredCluster::HostedShoot, RegisteredCluster::SelfHostedShoot] {
        let registered = register(&landscape, place, &circumstances, |_| true).await?;
        let managed = "resources.gardener.cloud/managed-by";
        blocked(&landscape, "kube-system", &json!({ managed: "gardener" })).await?;
        created(&landscape, "kube-system", &json!({ managed: "gardener", "static-pod": "true" })).await?;
        landscape.delete(&registered).await?;
        allowed_again(&landscape, "kube-system").await?;
    }

    let is_service_host = |entry: RegistrationEntry| entry == RegistrationEntry::KubernetesServiceHost;
    register(&landscape, RegisteredCluster::HostedShoot, &circumstances, is_service_host).await?;
    blocked(&landscape, "foo", &json!({})).await?;
    created(&landscape, "foo", &json!({ INJECT: "disable" })).await
}

/// spec 71 scenario 26, §9: the API server of a workerless shoot asks although the webhook is off.
#[tokio::test]
async fn landscape_authorizer_of_a_workerless_shoot_denies_node_agents_and_nobody_else() -> Result<()> {
    let (files, port) = (folder("authorizer-")?, free_port()?);
    let authority = Authority::create(files.path(), "ca")?;
    let kubeconfig = files.path().join("kubeconfig");
    let cluster = json!({
        "server": format!("https://localhost:{port}{AUTHORIZER}"), "certificate-authority": authority.certificate()
    });
    let content = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [{ "name": "c", "cluster": cluster }],
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }], "users": [{ "name": "u", "user": {} }]
    });
    std::fs::write(&kubeconfig, content.to_string())?;
    let webhook = json!({
        "authorizedTTL": "1ns", "unauthorizedTTL": "1ns", "timeout": "10s", "failurePolicy": "Deny",
        "subjectAccessReviewVersion": "v1", "matchConditionSubjectAccessReviewVersion": "v1",
        "matchConditions": [{ "expression": "'gardener.cloud:node-agents' in request.groups" }],
        "connectionInfo": { "type": "KubeConfigFile", "kubeConfigFile": kubeconfig }
    });
    let authorization = json!({
        "apiVersion": "apiserver.config.k8s.io/v1beta1", "kind": "AuthorizationConfiguration",
        "authorizers": [
            { "type": "RBAC", "name": "rbac" }, { "type": "Webhook", "name": "node-agent-authorizer", "webhook": webhook }
        ]
    });
    let options = Options { authorization_config: Some(authorization.to_string()), ..Options::default() };
    let landscape = Landscape::start(options).await?;
    let mut gardenlet = Gardenlet::with_authority(&landscape, authority);
    let webhooks = format!("port: {port}");
    let settings =
        [("authorizeWithSelectors: true\n        enabled: true", "enabled: false"), ("port: 10250", webhooks.as_str())];
    let roll_out = RollOut { credentials: Credentials::Bootstrap, arguments: &[], settings: &settings };
    let deployment = gardenlet.roll_out(roll_out).await?;
    let mut pod = Pod::start(&landscape, &deployment).await?;
    pod.wait_ready().await?;

    let review = json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {} });
    let answer = pod.review(AUTHORIZER, &review, gardenlet.authority()?.certificate()).await?;
    ensure!(answer.code == 404, "{} {}", answer.code, answer.body);
    let denied = get_as(&landscape, "gardener.cloud:node-agent:machine:m", "gardener.cloud:node-agents").await?;
    let admitted = get_as(&landscape, "someone", "system:masters").await?;
    // The API server answers so if an authorizer fails whose failure denies.
    ensure!((denied, admitted) == (500, 200), "a node agent gets {denied}, an administrator {admitted}");
    Ok(())
}

/// Sends a request in the name of a user. Returns the status.
async fn get_as(landscape: &Landscape, user: &str, group: &str) -> Result<u16> {
    let client = landscape.cluster.client(User::Admin).await?;
    let request = Request::get("/api/v1/nodes").header("impersonate-user", user).header("impersonate-group", group);
    Ok(client.send(request.body(Body::empty())?).await?.status().as_u16())
}

/// Registers webhooks of a place at an address where nobody listens, all with the policy `Fail`. Returns the path of the
/// object.
async fn register(
    landscape: &Landscape,
    place: RegisteredCluster,
    circumstances: &Circumstances,
    is_wanted: impl Fn(RegistrationEntry) -> bool,
) -> Result<String> {
    let namespace = if place.mode() == RegisteredCluster::HostedShoot.mode() { NAMESPACE } else { "garden" };
    let mut registration = configuration(&Deployment {
        mode: place.mode(),
        client: place.client(),
        prefix: String::new(),
        namespace: namespace.to_owned(),
        enabled: place.entries(circumstances).into_iter().filter(|entry| is_wanted(*entry)).collect(),
        ca_bundle: String::new(),
    });
    let nobody = format!("https://127.0.0.1:{}", free_port()?);
    let entries = registration["webhooks"].as_array_mut().into_iter().flatten();
    for entry in entries {
        entry["clientConfig"] = json!({ "url": nobody });
        // A failure that is ignored would not be seen.
        entry["failurePolicy"] = json!("Fail");
    }
    landscape.admin.create(CONFIGURATIONS, &registration).await?;
    let name = registration["metadata"]["name"].as_str().unwrap_or_default();
    Ok(format!("{CONFIGURATIONS}/{name}"))
}

/// Asks for a Pod with these labels, which is not stored.
async fn ask(landscape: &Landscape, namespace: &str, labels: &Value) -> Result<(u16, Value)> {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "namespace": namespace, "name": NAME, "labels": labels },
        "spec": { "containers": [{ "name": "c", "image": "i" }] }
    });
    landscape.admin.send(Method::POST, &format!("{}?dryRun=All", core(namespace, "pods")), Some(&pod)).await
}

async fn blocked(landscape: &Landscape, namespace: &str, labels: &Value) -> Result<()> {
    eventually("the registration is in force", LIMIT, async || {
        let (code, answer) = ask(landscape, namespace, labels).await?;
        let is_blocked = answer["message"].as_str().is_some_and(|text| text.contains("failed calling webhook"));
        ensure!(code == 500 && is_blocked, "{code} {answer}");
        Ok(())
    })
    .await
}

async fn created(landscape: &Landscape, namespace: &str, labels: &Value) -> Result<()> {
    let (code, answer) = ask(landscape, namespace, labels).await?;
    ensure!(code == 201, "{namespace} {labels}: {code} {answer}");
    Ok(())
}

async fn allowed_again(landscape: &Landscape, namespace: &str) -> Result<()> {
    let labels = json!({ "resources.gardener.cloud/managed-by": "gardener" });
    eventually("the registration is gone", LIMIT, async || created(landscape, namespace, &labels).await).await
}
