//! Our program in the place of another implementation: its Lease is taken over and given back, its status is continued.

use anyhow::{Context, Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::{
    FAILOVER_LIMIT, LEASES, LIMIT, Landscape, NAME, NAMESPACE, SOURCE_USER, STOP_LIMIT,
    gardenlet::{BINDING, Credentials, Gardenlet, RollOut},
    kubelet::Pod,
    lease, rendered,
    rendered::{of_kind, path},
};
use crate::{
    objects::{bundles, core},
    support::{Authority, Options, eventually},
};

/// A Pod's name and a UUID, as client-go makes it.
const OTHER: &str = "gardener-resource-manager-6f9c7b7d5-x2k4q_1c0f7a7e-5d43-4b0f-9d0e-1d9b6a3f2c11";
const BUNDLE: &str = "continued";
/// Of the other implementation's last write.
const THEN: &str = "2026-01-02T03:04:05Z";

/// spec 70 §12; spec 71 §14, trap 2: a Lease as client-go writes it is respected, taken over when it is released or
/// expires, and given back in a state that client-go takes.
#[tokio::test]
async fn landscape_lease_of_another_implementation_is_taken_over_and_given_back() -> Result<()> {
    let landscape = Landscape::start(Options::default()).await?;
    let mut gardenlet = Gardenlet::new(&landscape)?;
    let roll_out = RollOut { credentials: Credentials::Token, arguments: &[], settings: &[] };
    let deployment = gardenlet.roll_out(roll_out).await?;
    gardenlet.grant_access().await?;
    let subject = json!({ "kind": "ServiceAccount", "name": NAME, "namespace": "kube-system" });
    landscape
        .apply(&json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": BINDING },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
            "subjects": [subject]
        }))
        .await?;
    let metadata = json!({ "namespace": NAMESPACE, "name": NAME });
    let object = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": held(OTHER, 15, 4)
    });
    landscape.admin.create(&format!("{LEASES}/{NAMESPACE}/leases"), &object).await?;

    let mut pod = Pod::start(&landscape, &deployment).await?;
    pod.wait_ready().await?;
    landscape.bundle(NAMESPACE, "probe", None, "released").await?;
    // It has read the Lease, and another renewal comes.
    eventually("it has read the Lease", LIMIT, async || {
        let events = landscape.cluster.audit_of(SOURCE_USER, 0)?;
        let mut of_leases = events.iter().filter(|event| event["objectRef"]["resource"] == "leases");
        ensure!(of_leases.any(|event| event["verb"] == "get"), "no read");
        Ok(())
    })
    .await?;
    landscape.admin.merge(&lease(NAMESPACE), &json!({ "spec": held(OTHER, 15, 4) })).await?;
    ensure!(writes(&landscape, SOURCE_USER)?.is_empty(), "{:#?}", writes(&landscape, SOURCE_USER)?);

    landscape.admin.merge(&lease(NAMESPACE), &json!({ "spec": held("", 1, 4) })).await?;
    let begin = Instant::now();
    landscape.effect("probe", "released", FAILOVER_LIMIT).await?;
    println!("reconciled {:.2?} after the release", begin.elapsed());
    let ours = landscape.lease(NAMESPACE).await?;
    ensure!(ours["leaseTransitions"] == 5 && ours["leaseDurationSeconds"] == 15, "{ours}");
    let (status, _) = pod.terminate(STOP_LIMIT).await?;
    ensure!(status.code() == Some(0), "{status}: {}", pod.log());
    // client-go takes a Lease without a holder at once.
    let given_back = landscape.lease(NAMESPACE).await?;
    let is_free = given_back["holderIdentity"] == "" && given_back["leaseDurationSeconds"] == 1;
    ensure!(is_free && given_back["leaseTransitions"] == 5, "{given_back}");

    // The other implementation takes it and crashes.
    landscape.admin.merge(&lease(NAMESPACE), &json!({ "spec": held(OTHER, 2, 6) })).await?;
    let mut next = Pod::start(&landscape, &deployment).await?;
    landscape.bundle(NAMESPACE, "probe", None, "expired").await?;
    next.wait_ready().await?;
    landscape.effect("probe", "expired", LIMIT).await?;
    ensure!(landscape.lease(NAMESPACE).await?["leaseTransitions"] == 7, "{}", landscape.lease(NAMESPACE).await?);
    ensure!(landscape.refused(SOURCE_USER)?.is_empty(), "{:#?}", landscape.refused(SOURCE_USER)?);
    Ok(())
}

/// spec 10 §9.5, §9.7; spec 70 scenario 35: objects and status as the original leaves them cause no write and no deletion,
/// and what leaves the bundle later is deleted, because the references are known.
#[tokio::test]
async fn landscape_status_of_the_original_is_continued_without_a_write() -> Result<()> {
    let landscape = Landscape::start(Options::default()).await?;
    let manifests = manifests();
    applied_by_the_original(&landscape, &manifests).await?;
    let before = versions(&landscape, &manifests).await?;
    let objects = rendered::on_free_ports(rendered::SELF_HOSTED_RUNTIME, "00000000")?;
    let [certificate, key] = Authority::create(landscape.cluster.folder(), "ca")?.serving_pair()?;
    let metadata = json!({ "namespace": "garden", "name": format!("{NAME}-server-00000000") });
    let pair = json!({ "tls.crt": certificate, "tls.key": key });
    landscape.apply(&json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": pair })).await?;
    for object in &objects {
        landscape.apply(object).await?;
    }

    let mut pod = Pod::start(&landscape, of_kind(&objects, "Deployment")?).await?;
    pod.wait_ready().await?;
    let user = format!("system:serviceaccount:garden:{NAME}");
    eventually("it has read the Secret and the Deployment", LIMIT, async || {
        let events = landscape.cluster.audit_of(&user, 0)?;
        let has_read = |kind: &str, namespace: &str| {
            let mut found = events.iter().map(|event| &event["objectRef"]);
            found.any(|at| at["resource"] == kind && (at["namespace"] == namespace || at["namespace"].is_null()))
        };
        ensure!(has_read("secrets", "garden") && has_read("deployments", "foo"), "{}", pod.log());
        Ok(())
    })
    .await?;
    // Another bundle comes and goes through all stages: what the first one causes has happened by then.
    landscape.bundle("garden", "probe", Some("seed"), "v").await?;
    landscape.effect("probe", "v", LIMIT).await?;
    eventually("the probe is healthy", LIMIT, async || {
        let found = landscape.bundle_condition("garden", "probe", "ResourcesHealthy").await?;
        ensure!(found.0 == "True", "{found:?}");
        Ok(())
    })
    .await?;

    let of_ours =
        |write: &String| write.ends_with("/probe") || write.contains(" leases ") || write.contains(" events ");
    let writes: Vec<_> = writes(&landscape, &user)?.into_iter().filter(|write| !of_ours(write)).collect();
    ensure!(writes.is_empty(), "{writes:#?}: {}", pod.log());
    ensure!(versions(&landscape, &manifests).await? == before, "something was written");

    // The last manifest leaves the bundle.
    landscape.apply(&content(&manifests[..manifests.len() - 1])).await?;
    let (_, last) = path(manifests.last().context("a manifest")?)?;
    landscape.gone(&last, LIMIT).await.with_context(|| pod.log())
}

fn held(holder: &str, seconds: u64, transitions: u64) -> Value {
    let now = kit::Clock::system_wall().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string();
    json!({
        "holderIdentity": holder, "leaseDurationSeconds": seconds, "leaseTransitions": transitions,
        "acquireTime": now, "renewTime": now
    })
}

/// The writes of a user, without questions to the API server that store nothing.
fn writes(landscape: &Landscape, user: &str) -> Result<Vec<String>> {
    let writes = landscape.cluster.audit_of(user, 0)?.into_iter().filter(|event| {
        let is_read = ["get", "list", "watch"].contains(&event["verb"].as_str().unwrap_or_default());
        let is_question = event["objectRef"]["resource"].as_str().is_some_and(|it| it.ends_with("reviews"));
        !is_read && !is_question
    });
    let shown = |event: Value| {
        let at = |field: &str| event["objectRef"][field].as_str().unwrap_or_default().to_owned();
        format!("{} {} {}/{}", event["verb"], at("resource"), at("namespace"), at("name"))
    };
    Ok(writes.map(shown).collect())
}

/// In the order of the references: by group, kind, namespace and name.
fn manifests() -> Vec<Value> {
    let named = |name: &str| json!({ "namespace": "foo", "name": name });
    let labels = json!({ "app": "web" });
    vec![
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": named("web"), "data": { "k": "v" } }),
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": named("web"), "type": "Opaque", "data": { "k": "dg==" } }),
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "namespace": "foo", "name": "web", "labels": labels },
            "spec": { "selector": labels, "ports": [{ "name": "http", "port": 80 }] }
        }),
        json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": named("web") }),
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "namespace": "foo", "name": "web", "annotations": { "team": "a" } },
            "spec": {
                "replicas": 0, "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": { "containers": [{ "name": "c", "image": "i", "resources": { "requests": { "cpu": "1000m" } } }] }
                }
            }
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": named("web"),
            "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }]
        }),
    ]
}

fn text(manifests: &[Value]) -> String {
    manifests.iter().map(|manifest| format!("---\n{manifest}\n")).collect()
}

fn content(manifests: &[Value]) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": "garden", "name": BUNDLE },
        "data": { "objects.yaml": BASE64_STANDARD.encode(text(manifests)) }
    })
}

/// Writes the bundle, its objects and its status as the Go implementation leaves them, under the name of its field manager.
async fn applied_by_the_original(landscape: &Landscape, manifests: &[Value]) -> Result<()> {
    const MANAGED_BY: &str = "resources.gardener.cloud/managed-by";
    let text = text(manifests);
    landscape.apply(&content(manifests)).await?;
    let mut references = Vec::new();
    for manifest in manifests {
        let mut object = manifest.clone();
        let metadata = object["metadata"].as_object_mut().context("metadata")?;
        let labels = metadata.entry("labels").or_insert_with(|| json!({}));
        labels.as_object_mut().context("labels")?.insert(MANAGED_BY.to_owned(), json!("gardener"));
        let mut reference = json!({
            "apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "namespace": "foo", "name": "web",
            "labels": labels
        });
        if let Some(annotations) = metadata.get("annotations") {
            reference["annotations"] = annotations.clone();
        }
        references.push(reference);
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        let annotations = annotations.as_object_mut().context("annotations")?;
        let description = "DO NOT EDIT - This resource is managed by gardener-resource-manager.\n\
            Any modifications are discarded and the resource is returned to the original state.";
        annotations.insert("resources.gardener.cloud/description".to_owned(), json!(description));
        annotations.insert("resources.gardener.cloud/origin".to_owned(), json!(format!("garden/{BUNDLE}")));
        if let Some(template) = object.pointer_mut("/spec/template/metadata/labels").and_then(Value::as_object_mut) {
            template.insert(MANAGED_BY.to_owned(), json!("gardener"));
        }
        let (collection, path) = path(&object)?;
        landscape.admin.create(&format!("{collection}?fieldManager={NAME}"), &object).await?;
        if object["kind"] == "Deployment" {
            let available = written("Available", "True", "MinimumReplicasAvailable", "m");
            let progressing = written("Progressing", "True", "NewReplicaSetAvailable", "m");
            let status = json!({ "status": { "observedGeneration": 1, "conditions": [available, progressing] } });
            landscape.admin.merge(&format!("{path}/status"), &status).await?;
        }
    }
    let bundle = json!({
        "apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
        "metadata": {
            "namespace": "garden", "name": BUNDLE, "finalizers": ["resources.gardener.cloud/gardener-resource-manager-seed"]
        },
        "spec": { "class": "seed", "secretRefs": [{ "name": BUNDLE }], "keepObjects": false }
    });
    landscape.admin.create(&format!("{}?fieldManager={NAME}", bundles("garden")), &bundle).await?;
    // Each manifest contributes the whole value of its key.
    let checksum: String =
        Sha256::digest(text.repeat(manifests.len())).iter().map(|byte| format!("{byte:02x}")).collect();
    let status = json!({ "status": {
        "conditions": [
            written("ResourcesHealthy", "True", "ResourcesHealthy", "All resources are healthy."),
            written("ResourcesProgressing", "False", "ResourcesRolledOut", "All resources have been fully rolled out."),
            written("ResourcesApplied", "True", "ApplySucceeded", "All resources are applied.")
        ],
        "observedGeneration": 1, "resources": references, "secretsDataChecksum": checksum
    } });
    let path = format!("{}/{BUNDLE}/status?fieldManager={NAME}", bundles("garden"));
    landscape.admin.merge(&path, &status).await.map(drop)
}

/// A condition of a time before our program.
fn written(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": THEN, "lastUpdateTime": THEN
    })
}

/// The resource versions of the bundle, its Secret and its objects.
async fn versions(landscape: &Landscape, manifests: &[Value]) -> Result<Vec<Value>> {
    let mut paths = vec![format!("{}/{BUNDLE}", bundles("garden")), format!("{}/{BUNDLE}", core("garden", "secrets"))];
    for manifest in manifests {
        paths.push(path(manifest)?.1);
    }
    let mut versions = Vec::new();
    for path in paths {
        versions.push(landscape.admin.get(&path).await?["metadata"]["resourceVersion"].take());
    }
    Ok(versions)
}
