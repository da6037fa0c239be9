//! The webhooks, called by a real API server.

use std::time::Duration;

use anyhow::{Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use gardener_resource_manager::webhooks::registration::{Client, Deployment, Entry, Mode, configuration};
use serde_json::{Value, json};

use crate::{
    objects::{Admin, core},
    support::{ControlPlane, Grm, Options, eventually},
};

const NAMESPACE: &str = "admission";
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const LIMIT: Duration = Duration::from_secs(30);

/// The object that is deployed with the program, but for the address: there is no DNS for its Service.
fn registration(grm: &Grm) -> Result<Value> {
    let enabled = [Entry::ProjectedTokenMount, Entry::HighAvailabilityConfig, Entry::SeccompProfile];
    let mut registration = configuration(&Deployment {
        mode: Mode::Runtime,
        client: Client::Service,
        prefix: String::new(),
        namespace: NAMESPACE.to_owned(),
        enabled: enabled.into(),
        ca_bundle: BASE64_STANDARD.encode(std::fs::read(grm.folder().join("tls/tls.crt"))?),
    });
    for entry in registration["webhooks"].as_array_mut().into_iter().flatten() {
        let config = &mut entry["clientConfig"];
        let path = config["service"]["path"].as_str().unwrap_or_default();
        let url = format!("https://127.0.0.1:{}{path}", grm.webhook_port());
        *config = json!({ "url": url, "caBundle": config["caBundle"] });
    }
    Ok(registration)
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "namespace": NAMESPACE, "name": name },
        "spec": { "serviceAccountName": "app", "containers": [{ "name": "c", "image": "i" }] }
    })
}

/// spec 50 scenario 1; spec 50 §3
#[tokio::test]
async fn what_is_created_through_the_api_server_comes_out_mutated() -> Result<()> {
    let cluster = ControlPlane::start(Options::default()).await?;
    let admin = Admin::prepare(&cluster, "bundles").await?;
    let config = json!({ "webhooks": {
        "projectedTokenMount": { "enabled": true, "expirationSeconds": 43200 },
        "highAvailabilityConfig": { "enabled": true },
        "seccompProfile": { "enabled": true },
    } });
    let grm = Grm::start(&cluster, config).await?;
    let considered = "high-availability-config.resources.gardener.cloud/consider";
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": NAMESPACE, "labels": { "gardener.cloud/role": "shoot", considered: "true" } }
    });
    admin.create("/api/v1/namespaces", &namespace).await?;
    admin.create(CONFIGURATIONS, &registration(&grm)?).await?;
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "namespace": NAMESPACE, "name": "app" },
        "automountServiceAccountToken": false
    });
    admin.create(&core(NAMESPACE, "serviceaccounts"), &account).await?;
    let mut attempt = 0;
    eventually("the API server calls the webhooks", LIMIT, async || {
        attempt += 1;
        let probe = admin.create(&core(NAMESPACE, "pods"), &pod(&format!("probe-{attempt}"))).await?;
        ensure!(probe["spec"]["securityContext"]["seccompProfile"].is_object(), "not yet");
        Ok(())
    })
    .await?;

    let pod = admin.create(&core(NAMESPACE, "pods"), &pod("app")).await?;
    let labels = json!({ "app": "app" });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "namespace": NAMESPACE, "name": "app",
            "labels": { "high-availability-config.resources.gardener.cloud/type": "server" }
        },
        "spec": {
            "replicas": 1, "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "c", "image": "i" }] }
            }
        }
    });
    let deployment = admin.create(&format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments"), &deployment).await?;

    let spec = &pod["spec"];
    ensure!(spec["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault", "{spec}");
    ensure!(spec["volumes"][0]["name"] == "kube-api-access-gardener", "{spec}");
    let token = &spec["volumes"][0]["projected"]["sources"][0]["serviceAccountToken"];
    ensure!(token["expirationSeconds"] == 43200, "{spec}");
    ensure!(deployment["spec"]["replicas"] == 2, "{deployment}");
    Ok(())
}
