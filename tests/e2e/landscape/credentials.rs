//! Credentials of a hosted instance that are rejected, withdrawn or replaced while it runs (spec 71 §8).

use std::time::Duration;

use anyhow::{Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use kube::{
    Client, Config,
    client::Body,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    LIMIT, Landscape, NAME, NAMESPACE, STOP_LIMIT,
    gardenlet::{BINDING, CORE, Credentials, Gardenlet, RollOut},
    kubelet::Pod,
};
use crate::{
    objects::{bundles, core},
    support::{Options, eventually},
};

const REGULAR: RollOut<'static> = RollOut { credentials: Credentials::Token, arguments: &[], settings: &[] };
/// spec 71 scenario 4: a new token is used within a minute.
const TOKEN_LIMIT: Duration = Duration::from_secs(60);
/// The log of a start with the other kubeconfig.
const MOVED: &str = "\"server\":\"localhost:";
const BUNDLE: &str = "probe";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/// spec 71 scenarios 4, 6, 7 and 20; §8 R2, R4: a running instance survives the loss of its token and of its rights.
#[tokio::test]
async fn landscape_lost_token_and_lost_rights_are_reported_verbatim_and_end_without_a_restart() -> Result<()> {
    let landscape = Landscape::start(Options::default()).await?;
    let mut gardenlet = Gardenlet::new(&landscape)?;
    let mut pod = start_with_access(&landscape, &mut gardenlet).await?;
    let account = format!("{}/{NAME}", core("kube-system", "serviceaccounts"));

    let token = gardenlet.token().await?;
    landscape.delete(&account).await?;
    rejected(&landscape, &token).await?;
    reported(&landscape, ": Unauthorized").await?;
    pod.ensure_alive().await?;
    gardenlet.grant_access().await?;
    pod.refresh().await?;
    let begin = Instant::now();
    applied(&landscape, "token").await?;
    println!("a new token is used after {:.2?}", begin.elapsed());
    ensure!(begin.elapsed() < TOKEN_LIMIT, "used after {:?}", begin.elapsed());

    landscape.delete(&format!("{BINDINGS}/{BINDING}")).await?;
    let forbidden = "forbidden: User \"system:serviceaccount:kube-system:gardener-resource-manager\" cannot";
    reported(&landscape, forbidden).await?;
    pod.ensure_alive().await?;
    landscape.apply(&binding()).await?;
    let begin = Instant::now();
    applied(&landscape, "rights").await?;
    println!("new rights are used after {:.2?}", begin.elapsed());

    // gardenlet destroys the instance: first its ManagedResource, for which it has two minutes.
    let path = format!("{}/{CORE}", bundles(NAMESPACE));
    landscape.delete(&path).await?;
    landscape.gone(&path, Duration::from_secs(120)).await?;
    landscape.admin.get(&format!("{BINDINGS}/{BINDING}")).await?;
    let (status, _) = pod.terminate(STOP_LIMIT).await?;
    ensure!(status.code() == Some(0), "{status}: {}", pod.log());
    Ok(())
}

/// spec 71 §8 R4; spec 70 §8.1, §10: the process lives with a token that is rejected from the start, says why, and takes
/// the next one. A kubeconfig is read once: a new one changes nothing until the next start.
#[tokio::test]
async fn landscape_start_with_a_rejected_token_waits_alive_and_a_new_kubeconfig_waits_for_the_next_start() -> Result<()>
{
    let landscape = Landscape::start(Options::default()).await?;
    let mut gardenlet = Gardenlet::new(&landscape)?;
    let deployment = gardenlet.roll_out(REGULAR).await?;
    landscape.apply(&binding()).await?;
    let missing = Pod::start(&landscape, &deployment).await.err().map(|error| format!("{error:#}"));
    ensure!(missing.as_ref().is_some_and(|error| error.contains("has no key token")), "{missing:?}");
    gardenlet.write_token("expired").await?;

    let mut pod = Pod::start(&landscape, &deployment).await?;
    pod.logs("The cluster cannot be used", LIMIT).await?;
    pod.ensure_alive().await?;
    let unready = pod.probe("/readyz").await?;
    ensure!(unready.code == 500 && unready.body.contains("[-]target-informer-sync"), "{}", unready.body);
    // The controllers of a Pod that is not ready yet work: gardenlet reads the condition, and hands out credentials.
    reported(&landscape, ": Unauthorized").await?;
    let record = pod.log().lines().find(|line| line.contains("The cluster cannot be used")).map(str::to_owned);
    let record: Value = serde_json::from_str(&record.unwrap_or_default())?;
    let is_rejected = record["error"].as_str().is_some_and(|error| error.contains("Unauthorized"));
    ensure!(record["cluster"] == "target" && is_rejected, "{record}");
    gardenlet.grant_access().await?;
    pod.refresh().await?;
    let begin = Instant::now();
    pod.wait_ready().await?;
    applied(&landscape, "token").await?;
    println!("a token after the start is used after {:.2?}", begin.elapsed());
    ensure!(begin.elapsed() < TOKEN_LIMIT, "used after {:?}", begin.elapsed());
    pod.logs("The cluster can be used again", LIMIT).await?;

    let moved = gardenlet.kubeconfig_of_a_token().to_string().replace("https://127.0.0.1:", "https://localhost:");
    let path = format!("{}/generic-token-kubeconfig-00000001", core(NAMESPACE, "secrets"));
    landscape.admin.merge(&path, &json!({ "data": { "kubeconfig": BASE64_STANDARD.encode(&moved) } })).await?;
    pod.refresh().await?;
    applied(&landscape, "replaced").await?;
    ensure!(!pod.log().contains(MOVED), "{}", pod.log());
    pod.terminate(STOP_LIMIT).await?;
    let mut next = Pod::start(&landscape, &deployment).await?;
    next.wait_ready().await?;
    ensure!(next.log().contains(MOVED), "{}", next.log());
    applied(&landscape, "restarted").await
}

async fn start_with_access<'a>(landscape: &'a Landscape, gardenlet: &mut Gardenlet<'_>) -> Result<Pod<'a>> {
    let deployment = gardenlet.roll_out(REGULAR).await?;
    landscape.apply(&binding()).await?;
    gardenlet.grant_access().await?;
    let mut pod = Pod::start(landscape, &deployment).await?;
    pod.wait_ready().await?;
    applied(landscape, "started").await?;
    Ok(pod)
}

/// Changes the bundle, and waits until the change has taken effect.
async fn applied(landscape: &Landscape, value: &str) -> Result<()> {
    landscape.bundle(NAMESPACE, BUNDLE, None, value).await?;
    landscape.effect(BUNDLE, value, TOKEN_LIMIT).await
}

/// Changes the bundle, and waits until its condition has this text.
async fn reported(landscape: &Landscape, text: &str) -> Result<()> {
    landscape.bundle(NAMESPACE, BUNDLE, None, text).await?;
    eventually("the condition says why", LIMIT, async || {
        let found = landscape.bundle_condition(NAMESPACE, BUNDLE, "ResourcesApplied").await?;
        ensure!(found.0 == "False" && found.2.contains(text), "{found:?}");
        Ok(())
    })
    .await
}

/// Waits until the API server has forgotten that it knew the token.
async fn rejected(landscape: &Landscape, token: &str) -> Result<()> {
    let text = landscape.cluster.kubeconfig_with(&landscape.cluster.url(), token);
    let kubeconfig = Kubeconfig::from_yaml(&text)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    eventually("the token is rejected", LIMIT, async || {
        let request = http::Request::get("/api/v1/namespaces/kube-system").body(Body::empty())?;
        let code = client.send(request).await?.status();
        ensure!(code == 401, "{code}");
        Ok(())
    })
    .await
}

fn binding() -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": BINDING },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "kind": "ServiceAccount", "name": NAME, "namespace": "kube-system" }]
    })
}
