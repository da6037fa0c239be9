//! Both instances of a self-hosted shoot while its first node is bootstrapped, and the loss of the definition.

use std::time::Duration;

use anyhow::{Result, ensure};
use gardener_resource_manager::api::resources::crd;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    DEFINITIONS, LIMIT, Landscape, NAME, STOP_LIMIT,
    kubelet::Pod,
    rendered::{self, of_kind},
};
use crate::{
    objects::core,
    support::{Authority, Options, eventually, request},
};

const DEFINITION: &str = "managedresources.resources.gardener.cloud";
/// From the return of the definition to the first effect. Kinds that are not served are looked for once in ten seconds.
const RETURN_LIMIT: Duration = Duration::from_secs(60);

/// spec 71 scenarios 3, 10, 11 and 21; §4: each instance has its own class, Lease and ports. The definition is deleted
/// and comes back while they run.
#[tokio::test]
async fn landscape_self_hosted_instances_share_a_cluster_and_survive_the_loss_of_their_definition() -> Result<()> {
    let landscape = Landscape::start(Options::default()).await?;
    let authority = Authority::create(landscape.cluster.folder(), "ca")?;
    let mut runtime = start(&landscape, &authority, rendered::SELF_HOSTED_RUNTIME).await?;
    let mut target = start(&landscape, &authority, rendered::SELF_HOSTED_TARGET).await?;
    runtime.wait_ready().await?;
    target.wait_ready().await?;

    for (namespace, name, class) in [("garden", "of-seed", Some("seed")), ("kube-system", "of-shoot", None)] {
        landscape.bundle(namespace, name, class, "v").await?;
        // In the namespace of the other one.
        let other = if namespace == "garden" { "kube-system" } else { "garden" };
        landscape.bundle(other, &format!("{name}-too"), class, "v").await?;
    }
    for name in ["of-seed", "of-seed-too", "of-shoot"] {
        landscape.effect(name, "v", LIMIT).await?;
    }
    each_keeps_to_its_class(&landscape).await?;
    ports_answer(&landscape, &authority).await?;

    // No ManagedResource is left when a deployer deletes the definition.
    for (namespace, name) in
        [("garden", "of-seed"), ("kube-system", "of-seed-too"), ("kube-system", "of-shoot"), ("garden", "of-shoot-too")]
    {
        landscape.delete(&format!("{}/{name}", crate::objects::bundles(namespace))).await?;
    }
    let path = format!("{DEFINITIONS}/{DEFINITION}");
    landscape.delete(&path).await?;
    landscape.gone(&path, LIMIT).await?;
    for (pod, ports) in [(&mut runtime, (9418, 11_587)), (&mut target, (8083, 19_250))] {
        pod.logs("the API server does not serve resources.gardener.cloud/v1alpha1, Kind=ManagedResource", LIMIT)
            .await?;
        pod.ensure_alive().await?;
        review(ports.1, &authority).await?;
    }
    let (status, took) = runtime.terminate(STOP_LIMIT).await?;
    println!("stopped within {took:.2?} without the definition");
    ensure!(status.code() == Some(0), "{status}: {}", runtime.log());

    landscape.admin.create(DEFINITIONS, &serde_saphyr::from_str::<Value>(crd::MANAGED_RESOURCES)?).await?;
    let begin = Instant::now();
    eventually("ManagedResources are served", LIMIT, async || {
        landscape.bundle("kube-system", "of-shoot", None, "w").await
    })
    .await?;
    landscape.effect("of-shoot", "w", RETURN_LIMIT).await?;
    println!("applied {:.2?} after the definition came back", begin.elapsed());
    target.ensure_alive().await
}

async fn start<'a>(landscape: &'a Landscape, authority: &Authority, text: &str) -> Result<Pod<'a>> {
    let objects = rendered::read(text)?;
    let deployment = of_kind(&objects, "Deployment")?;
    let [certificate, key] = authority.serving_pair()?;
    let metadata =
        json!({ "namespace": deployment["metadata"]["namespace"], "name": format!("{NAME}-server-00000000") });
    landscape
        .apply(&json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": metadata,
            "stringData": { "tls.crt": certificate, "tls.key": key }
        }))
        .await?;
    for object in &objects {
        landscape.apply(object).await?;
    }
    Pod::start(landscape, deployment).await
}

/// Each user wrote only ManagedResources of its class, and holds its own Lease.
async fn each_keeps_to_its_class(landscape: &Landscape) -> Result<()> {
    let mut holders = Vec::new();
    for (namespace, own) in [("garden", "of-seed"), ("kube-system", "of-shoot")] {
        let user = format!("system:serviceaccount:{namespace}:{NAME}");
        for event in landscape.cluster.audit_of(&user, 0)? {
            let (at, verb) = (&event["objectRef"], event["verb"].as_str().unwrap_or_default());
            let is_write = !["get", "list", "watch"].contains(&verb);
            let name = at["name"].as_str().unwrap_or_default();
            let is_foreign = ["managedresources", "configmaps"].contains(&at["resource"].as_str().unwrap_or_default())
                && !name.starts_with(own);
            ensure!(!(is_write && is_foreign), "{user} wrote what is of the other class: {event}");
            ensure!(at["resource"] != "leases" || at["namespace"] == namespace, "another Lease: {event}");
        }
        ensure!(landscape.refused(&user)?.is_empty(), "{:#?}", landscape.refused(&user)?);
        holders.push(landscape.lease(namespace).await?["holderIdentity"].as_str().unwrap_or_default().to_owned());
    }
    ensure!(holders[0] != holders[1] && holders.iter().all(|holder| !holder.is_empty()), "{holders:?}");
    // Its own source is namespace `kube-system` only.
    let beyond = landscape.admin.get(&format!("{}/of-shoot-too", crate::objects::bundles("garden"))).await?;
    ensure!(beyond["status"].is_null(), "{beyond}");
    Ok(())
}

/// The ports of spec 71 §1.
async fn ports_answer(landscape: &Landscape, authority: &Authority) -> Result<()> {
    for (health, metrics, webhooks) in [(9418, 9417, 11_587), (8083, 8082, 19_250)] {
        for (port, path) in [(health, "/healthz"), (health, "/readyz"), (metrics, "/metrics")] {
            let answer = tokio::task::spawn_blocking(move || request(port, path, None, None)).await??;
            ensure!(answer.code == 200, "{port}{path}: {} {}", answer.code, answer.body);
        }
        review(webhooks, authority).await?;
    }
    // They were started with this name of the API server.
    landscape.admin.list(&core("garden", "secrets")).await.map(drop)
}

/// A webhook answers.
async fn review(port: u16, authority: &Authority) -> Result<()> {
    let body = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "kind": { "group": "", "version": "v1", "kind": "Pod" }, "operation": "CREATE",
            "resource": { "group": "", "version": "v1", "resource": "pods" }, "namespace": "garden",
            "object": { "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" }, "spec": { "containers": [] } }
        }
    });
    let authority = authority.certificate().to_owned();
    let path = "/webhooks/pod-kube-apiserver-load-balancing";
    let answer =
        tokio::task::spawn_blocking(move || request(port, path, Some(&body.to_string()), Some(&authority))).await??;
    ensure!(answer.code == 200 && answer.json()?["response"]["uid"] == "u", "{} {}", answer.code, answer.body);
    Ok(())
}
