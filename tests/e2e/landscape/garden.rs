//! gardener-controller-manager as gardener-operator deploys it, with the rights of spec 80 §18 and no others.

use anyhow::{Context, Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use cluster::Resource;
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};

use super::{
    DEFINITIONS, LEASES, LIMIT, Landscape, STOP_LIMIT,
    kubelet::{Pod, issue},
    logs::{parsed, sources},
    rendered::{self, of_kind},
};
use crate::{
    objects::core,
    support::{Options, eventually, request},
};

const NAME: &str = "gardener-controller-manager";
const USER: &str = "system:serviceaccount:kube-system:gardener-controller-manager";
const PROBES: u16 = 2718;
const METRICS: u16 = 2719;
const CHECKED: &str = "The rights that the configuration needs are checked";
const CLASSES: &str = "/apis/core.gardener.cloud/v1beta1/exposureclasses";
const SHOOTS: &str = "/apis/core.gardener.cloud/v1beta1/namespaces/garden/shoots";
const GUARD: &str = "gardener";
const PROTECTION: &str = "gardener.cloud/reference-protection";

/// The kinds of Gardener that controllers watch.
const KINDS: [Resource; 19] = [
    kinds::SHOOT,
    kinds::SEED,
    kinds::CLOUD_PROFILE,
    kinds::NAMESPACED_CLOUD_PROFILE,
    kinds::SECRET_BINDING,
    kinds::CREDENTIALS_BINDING,
    kinds::QUOTA,
    kinds::EXPOSURE_CLASS,
    kinds::CONTROLLER_REGISTRATION,
    kinds::CONTROLLER_DEPLOYMENT,
    kinds::WORKLOAD_IDENTITY,
    kinds::BACKUP_BUCKET,
    kinds::BACKUP_ENTRY,
    kinds::PROJECT,
    kinds::CONTROLLER_INSTALLATION,
    kinds::MANAGED_SEED,
    kinds::MANAGED_SEED_SET,
    kinds::BASTION,
    kinds::INTERNAL_SECRET,
];

/// spec 80 scenario 16, §18, §19.1
#[tokio::test]
async fn landscape_controller_manager_starts_as_gardener_operator_deploys_it_with_the_rights_of_its_table() -> Result<()>
{
    let landscape = Landscape::start(Options::default()).await?;
    define_kinds(&landscape).await?;
    let objects = rendered::read(rendered::GARDEN)?;
    landscape.apply(&generic_kubeconfig(&landscape)?).await?;
    for object in &objects {
        landscape.apply(object).await?;
    }
    grant_access(&landscape).await?;

    let mut pod = Pod::start(&landscape, of_kind(&objects, "Deployment")?).await?;
    pod.wait_ready().await?;
    ports_answer().await?;
    eventually("it leads", LIMIT, async || {
        let holder = holder(&landscape).await?;
        ensure!(!holder.is_empty(), "nobody leads");
        Ok(())
    })
    .await?;
    guards(&landscape).await.with_context(|| pod.log())?;
    protects_references(&landscape).await.with_context(|| pod.log())?;
    has_its_rights(&landscape, &pod).await?;

    let (status, took) = pod.terminate(STOP_LIMIT).await?;
    println!("stopped within {took:.2?}");
    ensure!(status.code() == Some(0), "{status}: {}", pod.log());
    let holder = holder(&landscape).await?;
    ensure!(holder.is_empty(), "the Lease is still held by {holder}");
    ensure!(!sources(&pod.log())?.is_empty(), "no logger: {}", pod.log());
    ensure!(landscape.refused(USER)?.is_empty(), "{:#?}", landscape.refused(USER)?);
    Ok(())
}

/// Installs the kinds as custom resources (spec 80 §10).
async fn define_kinds(landscape: &Landscape) -> Result<()> {
    for kind in &KINDS {
        landscape.admin.create(DEFINITIONS, &definition(kind)).await?;
    }
    for kind in &KINDS {
        let path = format!("/apis/{}/{}", kind.group, kind.version);
        eventually(&format!("{} are served", kind.plural), LIMIT, async || {
            let served = landscape.admin.get(&path).await?;
            let mut resources = served["resources"].as_array().into_iter().flatten();
            ensure!(resources.any(|resource| resource["name"] == *kind.plural), "{served}");
            Ok(())
        })
        .await?;
    }
    Ok(())
}

fn definition(kind: &Resource) -> Value {
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let version = json!({
        "name": &*kind.version, "served": true, "storage": true, "subresources": { "status": {} },
        "schema": { "openAPIV3Schema": any }
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{}.{}", kind.plural, kind.group) },
        "spec": {
            "group": &*kind.group, "scope": if kind.namespaced { "Namespaced" } else { "Cluster" }, "versions": [version],
            "names": {
                "kind": &*kind.kind, "listKind": format!("{}List", kind.kind), "plural": &*kind.plural,
                "singular": kind.kind.to_lowercase()
            }
        }
    })
}

/// Returns the Secret with the kubeconfig that names the file of the token.
fn generic_kubeconfig(landscape: &Landscape) -> Result<Value> {
    let authority = BASE64_STANDARD.encode(std::fs::read(landscape.cluster.authority())?);
    let cluster = json!({ "server": landscape.cluster.url(), "certificate-authority-data": authority });
    let user = json!({ "tokenFile": "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/token" });
    let content = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "garden",
        "clusters": [{ "name": "garden", "cluster": cluster }], "users": [{ "name": "garden", "user": user }],
        "contexts": [{ "name": "garden", "context": { "cluster": "garden", "user": "garden" } }]
    });
    Ok(json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "namespace": "garden", "name": "generic-token-kubeconfig-00000000" },
        "stringData": { "kubeconfig": content.to_string() }
    }))
}

/// Writes a token of the ServiceAccount, as the token requestor of the runtime cluster does.
async fn grant_access(landscape: &Landscape) -> Result<()> {
    let token = issue(landscape, "kube-system", NAME, 86_400).await?;
    let path = format!("{}/shoot-access-{NAME}", core("garden", "secrets"));
    let data = json!({ "data": { "token": BASE64_STANDARD.encode(token) } });
    landscape.admin.merge(&path, &data).await.map(drop)
}

/// The ports are those of the configuration, and the probes those of the Deployment.
async fn ports_answer() -> Result<()> {
    for (port, path) in [(PROBES, "/healthz"), (PROBES, "/readyz"), (METRICS, "/metrics")] {
        let answer = tokio::task::spawn_blocking(move || request(port, path, None, None)).await??;
        ensure!(answer.code == 200, "{port}{path}: {} {}", answer.code, answer.body);
    }
    Ok(())
}

/// Returns who holds the Lease; empty if nobody does.
async fn holder(landscape: &Landscape) -> Result<String> {
    let lease = landscape.admin.get(&format!("{LEASES}/kube-system/leases/{NAME}-leader-election")).await?;
    Ok(lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned())
}

/// An ExposureClass gets its finalizer, and loses it when nobody uses it.
async fn guards(landscape: &Landscape) -> Result<()> {
    let class = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "ExposureClass", "metadata": { "name": "internet" },
        "handler": "h"
    });
    landscape.admin.create(CLASSES, &class).await?;
    let path = format!("{CLASSES}/internet");
    has_finalizer(landscape, &path, GUARD).await?;
    landscape.delete(&path).await?;
    landscape.gone(&path, LIMIT).await
}

/// A Secret that a Shoot refers to is held until the Shoot is gone.
async fn protects_references(landscape: &Landscape) -> Result<()> {
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "credentials" } });
    landscape.admin.create(&core("garden", "secrets"), &secret).await?;
    let reference = json!({ "apiVersion": "v1", "kind": "Secret", "name": "credentials" });
    let shoot = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": { "name": "web" },
        "spec": { "resources": [{ "name": "credentials", "resourceRef": reference }] }
    });
    landscape.admin.create(SHOOTS, &shoot).await?;
    let (secret, shoot) = (format!("{}/credentials", core("garden", "secrets")), format!("{SHOOTS}/web"));
    has_finalizer(landscape, &secret, PROTECTION).await?;
    has_finalizer(landscape, &shoot, PROTECTION).await?;
    landscape.delete(&shoot).await?;
    landscape.gone(&shoot, LIMIT).await?;
    landscape.delete(&secret).await?;
    landscape.gone(&secret, LIMIT).await
}

async fn has_finalizer(landscape: &Landscape, path: &str, finalizer: &str) -> Result<()> {
    eventually(&format!("{path} has the finalizer {finalizer}"), LIMIT, async || {
        let found = landscape.admin.get(path).await?["metadata"]["finalizers"].take();
        ensure!(found.as_array().is_some_and(|found| found.iter().any(|it| it == finalizer)), "{found}");
        Ok(())
    })
    .await
}

/// The program finds that it has all rights, and no request of it is refused.
async fn has_its_rights(landscape: &Landscape, pod: &Pod<'_>) -> Result<()> {
    pod.logs(CHECKED, LIMIT).await?;
    let log = pod.log();
    let checked = log.lines().find(|line| line.contains(CHECKED)).context("the record of the check")?;
    let checked = parsed(checked)?;
    let (needed, granted) = (checked.get("needed").context("needed")?, checked.get("granted").context("granted")?);
    ensure!(needed == granted, "{granted} of {needed}: {log}");
    ensure!(!log.contains("lacks a right") && !log.contains("orbidden"), "{log}");
    ensure!(landscape.refused(USER)?.is_empty(), "{:#?}", landscape.refused(USER)?);
    ensure!(!landscape.cluster.audit_of(USER, 0)?.is_empty(), "the token was not used");
    Ok(())
}
