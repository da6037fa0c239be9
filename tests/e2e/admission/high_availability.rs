//! Which writes the API server sends to the high-availability webhook. It may send an update twice (stale cache).

use anyhow::{Result, ensure};
use gardener_resource_manager::webhooks::{
    mutating::high_availability::TYPE,
    registration::RegistrationEntry::{HighAvailabilityConfig, VpaInPlaceUpdates},
};
use serde_json::{Value, json};

use super::{CONFIGURATIONS, CONSIDER, LIMIT, NAMESPACE, Probe, ROLE, Rig, dry, namespace};
use crate::support::eventually;

const SKIP: &str = "high-availability-config.resources.gardener.cloud/skip";

const KINDS: [Kind; 4] = [
    DEPLOYMENTS,
    Kind { kind: "StatefulSet", plural: "statefulsets", ..DEPLOYMENTS },
    AUTOSCALERS_V1,
    Kind { api_version: "autoscaling/v2", ..AUTOSCALERS_V1 },
];
const DEPLOYMENTS: Kind =
    Kind { api_version: "apps/v1", kind: "Deployment", plural: "deployments", replicas: "/spec/replicas" };
const AUTOSCALERS_V1: Kind = Kind {
    api_version: "autoscaling/v1",
    kind: "HorizontalPodAutoscaler",
    plural: "horizontalpodautoscalers",
    replicas: "/spec/minReplicas",
};

struct Kind {
    api_version: &'static str,
    kind: &'static str,
    plural: &'static str,
    replicas: &'static str,
}

/// spec 51 scenario 37
#[tokio::test]
async fn autoscaler_is_sent_in_the_version_that_the_webhook_knows() -> Result<()> {
    let rig = Rig::start().await?;
    let mut registration = rig.registration(&[HighAvailabilityConfig], &rig.grm.authority().pem()?);
    // Excludes the object unless it is sent in this version.
    registration["webhooks"][0]["matchConditions"] = json!([{
        "name": "autoscalers-in-v2",
        "expression": "object.kind != 'HorizontalPodAutoscaler' || object.apiVersion == 'autoscaling/v2'",
    }]);
    rig.admin.create(CONFIGURATIONS, &registration).await?;
    rig.in_force(probe()).await?;
    let calls = rig.calls(HighAvailabilityConfig).await?;
    let autoscalers = AUTOSCALERS_V1.collection(NAMESPACE);

    let created = rig.admin.create(&autoscalers, &AUTOSCALERS_V1.object(NAMESPACE, "app", &json!({}))).await?;
    let lowered = json!({ "spec": { "minReplicas": 1, "maxReplicas": 1 } });
    let updated = rig.admin.merge(&format!("{autoscalers}/app"), &lowered).await?;

    for answer in [created, updated] {
        ensure!(answer["apiVersion"] == "autoscaling/v1", "{answer}");
        ensure!(answer["spec"]["minReplicas"] == 2 && answer["spec"]["maxReplicas"] == 2, "{answer}");
    }
    ensure!(rig.calls(HighAvailabilityConfig).await? > calls);
    Ok(())
}

/// spec 51 scenario 38, §8; spec 50 §1: the next UPDATE of the object, even an empty one, sets the replicas again.
#[tokio::test]
async fn subresource_writes_are_not_sent() -> Result<()> {
    let rig = Rig::start().await?;
    rig.register(&[HighAvailabilityConfig], probe()).await?;
    for kind in &KINDS[..2] {
        let collection = kind.collection(NAMESPACE);
        rig.admin.create(&collection, &kind.object(NAMESPACE, "app", &json!({}))).await?;
        let object = format!("{collection}/app");
        let calls = rig.calls(HighAvailabilityConfig).await?;

        rig.admin.merge(&format!("{object}/scale"), &json!({ "spec": { "replicas": 5 } })).await?;
        rig.admin.merge(&format!("{object}/status"), &json!({ "status": { "observedGeneration": 7 } })).await?;

        let scaled = rig.admin.get(&object).await?;
        ensure!(scaled["spec"]["replicas"] == 5 && scaled["status"]["observedGeneration"] == 7, "{scaled}");
        ensure!(rig.calls(HighAvailabilityConfig).await? == calls, "{}", kind.plural);
        let updated = rig.admin.merge(&object, &json!({})).await?;
        ensure!(updated["spec"]["replicas"] == 2, "{updated}");
        ensure!(rig.calls(HighAvailabilityConfig).await? > calls, "{}", kind.plural);
    }
    Ok(())
}

/// spec 51 scenario 39; spec 50 §3.3, §3.4
#[tokio::test]
async fn objects_excluded_by_selectors_are_not_sent() -> Result<()> {
    let rig = Rig::start().await?;
    rig.register(&[HighAvailabilityConfig], probe()).await?;
    let namespaces = [
        ("not-considered", json!({ ROLE: "shoot" })),
        ("considered-false", json!({ ROLE: "shoot", CONSIDER: "false" })),
        ("of-no-role", json!({ CONSIDER: "true" })),
    ];
    for (name, labels) in &namespaces {
        rig.admin.create("/api/v1/namespaces", &namespace(name, labels)).await?;
    }
    let mut left_out: Vec<_> = namespaces.into_iter().map(|(name, _)| (name, "app", json!({}))).collect();
    for (name, value) in [("skipped", "true"), ("skipped-false", "false"), ("skipped-empty", "")] {
        left_out.push((NAMESPACE, name, json!({ SKIP: value })));
    }

    for kind in &KINDS {
        let calls = rig.calls(HighAvailabilityConfig).await?;
        for (namespace, name, labels) in &left_out {
            // Autoscalers are created in both versions, which are the same objects.
            let object = kind.object(namespace, &format!("{name}-{}", kind.api_version.replace('/', "-")), labels);
            let created = rig.admin.create(&kind.collection(namespace), &object).await?;
            ensure!(created.pointer(kind.replicas) == Some(&json!(1)), "{created}");
        }
        ensure!(rig.calls(HighAvailabilityConfig).await? == calls, "{} {}", kind.api_version, kind.plural);

        let created =
            rig.admin.create(&dry(&kind.collection(NAMESPACE)), &kind.object(NAMESPACE, "app", &json!({}))).await?;
        ensure!(created.pointer(kind.replicas) == Some(&json!(2)), "{created}");
        ensure!(rig.calls(HighAvailabilityConfig).await? == calls + 1, "{} {}", kind.api_version, kind.plural);
    }
    Ok(())
}

/// spec 50 scenario 43, §3.4: the old object is still selected. After that update neither object is.
#[tokio::test]
async fn skip_label_does_not_exclude_the_update_that_adds_it() -> Result<()> {
    let rig = Rig::start().await?;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    rig.admin.create(definitions, &vertical_autoscalers()).await?;
    rig.register(&[HighAvailabilityConfig, VpaInPlaceUpdates], probe()).await?;
    let collection = format!("/apis/autoscaling.k8s.io/v1/namespaces/{NAMESPACE}/verticalpodautoscalers");
    eventually("VerticalPodAutoscalers are served", LIMIT, async || rig.admin.list(&collection).await.map(drop))
        .await?;
    let off = json!({ "updatePolicy": { "updateMode": "Off" } });
    let vertical = json!({
        "apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
        "metadata": { "namespace": NAMESPACE, "name": "app" }, "spec": off
    });
    rig.admin.create(&collection, &vertical).await?;
    let object = format!("{collection}/app");
    let auto = json!({ "updatePolicy": { "updateMode": "Auto" } });
    let skip = json!({ "labels": { "vpa-in-place-updates.resources.gardener.cloud/skip": "" } });

    let first = rig.admin.merge(&object, &json!({ "metadata": skip, "spec": auto })).await?;
    let second = rig.admin.merge(&object, &json!({ "spec": auto })).await?;

    ensure!(first["spec"]["updatePolicy"]["updateMode"] == "InPlaceOrRecreate", "{first}");
    ensure!(second["spec"]["updatePolicy"]["updateMode"] == "Auto", "{second}");
    Ok(())
}

fn probe() -> Probe {
    Probe {
        collection: DEPLOYMENTS.collection(NAMESPACE),
        object: DEPLOYMENTS.object(NAMESPACE, "probe", &json!({})),
        pointer: DEPLOYMENTS.replicas,
        expected: json!(2),
    }
}

fn vertical_autoscalers() -> Value {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "verticalpodautoscalers.autoscaling.k8s.io",
            "annotations": { "api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/63797" }
        },
        "spec": {
            "group": "autoscaling.k8s.io", "scope": "Namespaced",
            "names": {
                "plural": "verticalpodautoscalers", "singular": "verticalpodautoscaler",
                "kind": "VerticalPodAutoscaler", "listKind": "VerticalPodAutoscalerList"
            },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }]
        }
    })
}

impl Kind {
    fn collection(&self, namespace: &str) -> String {
        format!("/apis/{}/namespaces/{namespace}/{}", self.api_version, self.plural)
    }

    fn object(&self, namespace: &str, name: &str, labels: &Value) -> Value {
        let pods = json!({ "app": name });
        let spec = if self.kind == AUTOSCALERS_V1.kind {
            let target = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "absent" });
            json!({ "scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 1 })
        } else {
            let containers = json!([{ "name": "c", "image": "i" }]);
            let template = json!({ "metadata": { "labels": pods }, "spec": { "containers": containers } });
            json!({ "replicas": 1, "selector": { "matchLabels": pods }, "template": template })
        };
        let mut labels = labels.clone();
        labels[TYPE] = json!("server");
        let metadata = json!({ "namespace": namespace, "name": name, "labels": labels });
        json!({ "apiVersion": self.api_version, "kind": self.kind, "metadata": metadata, "spec": spec })
    }
}
