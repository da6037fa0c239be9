use anyhow::{Result, ensure};
use gardener_resource_manager::webhooks::registration::RegistrationEntry;
use serde_json::json;

use super::{NAMESPACE, Probe, Rig, core, pod};

/// spec 50 scenario 1, §3
#[tokio::test]
async fn pods_created_through_the_api_server_are_mutated() -> Result<()> {
    let rig = Rig::start().await?;
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "namespace": NAMESPACE, "name": "app" },
        "automountServiceAccountToken": false
    });
    rig.admin.create(&core(NAMESPACE, "serviceaccounts"), &account).await?;
    let pods = core(NAMESPACE, "pods");
    let pointer = "/spec/securityContext/seccompProfile/type";
    let probe = Probe { collection: pods.clone(), object: pod("probe"), pointer, expected: json!("RuntimeDefault") };
    rig.register(
        &[
            RegistrationEntry::ProjectedTokenMount,
            RegistrationEntry::HighAvailabilityConfig,
            RegistrationEntry::SeccompProfile,
        ],
        probe,
    )
    .await?;

    let pod = rig.admin.create(&pods, &pod("app")).await?;
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
    let deployment =
        rig.admin.create(&format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments"), &deployment).await?;

    let spec = &pod["spec"];
    ensure!(spec["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault", "{spec}");
    ensure!(spec["volumes"][0]["name"] == "kube-api-access-gardener", "{spec}");
    let token = &spec["volumes"][0]["projected"]["sources"][0]["serviceAccountToken"];
    ensure!(token["expirationSeconds"] == 43200, "{spec}");
    ensure!(deployment["spec"]["replicas"] == 2, "{deployment}");
    Ok(())
}
