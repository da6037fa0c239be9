use anyhow::Result;
use serde_json::{Value, json};

use crate::{
    api::{Api, MERGE},
    bodies::{deployment, pod, pod_template},
    expect::{absent, equal, holds, includes},
    row::{Row, row},
};

pub(crate) fn rows() -> Vec<Row> {
    [workloads(), services(), others()].into_iter().flatten().collect()
}

fn template_defaults() -> Value {
    json!({"metadata": {"labels": {"a": "b"}}, "spec": {
        "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
        "securityContext": {}, "schedulerName": "default-scheduler",
        "containers": [{"name": "c", "image": "i", "resources": {}, "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File", "imagePullPolicy": "Always"}]}})
}

async fn becomes(api: &Api, path: String, body: Value, expected: Value) -> Result<()> {
    let object = api.create(path, &body).await?;
    equal("spec with defaults", &object["spec"], &expected)
}

fn workloads() -> Vec<Row> {
    vec![
        row(
            "a Deployment gets replicas, strategy, limits and the defaults of its template",
            "facts §9",
            |api| async move {
                let expected = json!({"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
                "selector": {"matchLabels": {"a": "b"}}, "template": template_defaults()});
                becomes(&api, api.at("apps/v1", "deployments"), deployment("d"), expected).await
            },
        )
        .not_for_the_oldest(),
        row("a StatefulSet gets its defaults", "facts §9", |api| async move {
            let mut body = deployment("s");
            body["kind"] = json!("StatefulSet");
            body["spec"]["serviceName"] = json!("s");
            let expected = json!({"replicas": 1, "revisionHistoryLimit": 10, "podManagementPolicy": "OrderedReady",
                "serviceName": "s", "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
                "selector": {"matchLabels": {"a": "b"}}, "template": template_defaults()});
            becomes(&api, api.at("apps/v1", "statefulsets"), body, expected).await
        })
        .not_for_the_oldest()
        .not_for_the_newest(),
        row("a DaemonSet gets its defaults, and an annotation", "facts §9", |api| async move {
            let mut body = deployment("d");
            body["kind"] = json!("DaemonSet");

            let object = api.create(api.at("apps/v1", "daemonsets"), &body).await?;

            let expected = json!({"revisionHistoryLimit": 10,
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
                "selector": {"matchLabels": {"a": "b"}}, "template": template_defaults()});
            equal("spec with defaults", &object["spec"], &expected)?;
            let annotation = json!({"deprecated.daemonset.template.generation": "1"});
            equal("annotations", &object["metadata"]["annotations"], &annotation)
        })
        .not_for_the_oldest(),
        row("a Job gets a selector and labels from its uid", "facts §9", |api| async move {
            let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
            let body = json!({"metadata": {"name": "j"}, "spec": {"suspend": true, "template": template}});

            let object = api.create(api.at("batch/v1", "jobs"), &body).await?;

            let uid = &object["metadata"]["uid"];
            let labels = json!({"controller-uid": uid, "batch.kubernetes.io/controller-uid": uid,
                "job-name": "j", "batch.kubernetes.io/job-name": "j"});
            equal("labels of the template", &object["spec"]["template"]["metadata"]["labels"], &labels)?;
            includes(
                "spec",
                &object["spec"],
                &json!({"parallelism": 1, "completions": 1, "backoffLimit": 6,
                "completionMode": "NonIndexed", "manualSelector": false, "podReplacementPolicy": "TerminatingOrFailed",
                "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}}),
            )
        }),
        row("the image pull policy depends on the tag", "facts §9", |api| async move {
            let mut template = pod_template();
            template["spec"]["containers"] =
                json!([{"name": "a", "image": "i:1"}, {"name": "b", "image": "i:latest"}, {"name": "c", "image": "i"}]);
            let mut body = deployment("d");
            body["spec"]["template"] = template;

            let object = api.create(api.at("apps/v1", "deployments"), &body).await?;

            let containers = &object["spec"]["template"]["spec"]["containers"];
            let got: Vec<_> = (0..3).map(|index| containers[index]["imagePullPolicy"].clone()).collect();
            equal("imagePullPolicy", &json!(got), &json!(["IfNotPresent", "Always", "Always"]))
        }),
        row("quantities are rewritten in their shortest form", "facts §9", |api| async move {
            let mut body = deployment("d");
            body["spec"]["template"]["spec"]["containers"][0]["resources"] =
                json!({"requests": {"cpu": "1000m", "memory": "1024Mi"}});

            let object = api.create(api.at("apps/v1", "deployments"), &body).await?;

            let requests = &object["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"];
            equal("requests", requests, &json!({"cpu": "1", "memory": "1Gi"}))
        }),
        row("a Pod is Pending and gets two tolerations", "facts §9", |api| async move {
            let object = api.create(api.at("v1", "pods"), &pod("p", "")).await?;

            equal("phase", &object["status"]["phase"], &json!("Pending"))?;
            let tolerations = ["not-ready", "unreachable"].map(|condition| {
                let key = format!("node.kubernetes.io/{condition}");
                json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
            });
            equal("tolerations", &object["spec"]["tolerations"], &json!(tolerations))
        }),
    ]
}

fn services() -> Vec<Row> {
    vec![
        row("a Service gets an IP and its defaults", "facts §9", |api| async move {
            let body = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});

            let object = api.create(api.at("v1", "services"), &body).await?;

            let address = &object["spec"]["clusterIP"];
            holds(address.as_str().is_some_and(|text| text.starts_with("10.0.")), "an IP of 10.0.0.0/16", address)?;
            let expected = json!({"type": "ClusterIP", "clusterIP": address, "clusterIPs": [address], "ipFamilies": ["IPv4"],
                "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
                "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}]});
            equal("spec", &object["spec"], &expected)?;
            equal("status", &object["status"], &json!({"loadBalancer": {}}))
        }),
        row("a headless Service keeps None", "facts §9", |api| async move {
            let body = json!({"metadata": {"name": "s"}, "spec": {"clusterIP": "None", "ports": [{"port": 80}]}});

            let object = api.create(api.at("v1", "services"), &body).await?;

            includes("spec", &object["spec"], &json!({"clusterIP": "None", "clusterIPs": ["None"]}))
        }),
        row("a NodePort Service gets a node port, and loses it as ClusterIP", "facts §9", |api| async move {
            let body = json!({"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
            let object = api.create(api.at("v1", "services"), &body).await?;
            let port = &object["spec"]["ports"][0]["nodePort"];
            holds(port.as_u64().is_some_and(|port| (30_000..32_768).contains(&port)), "a node port", &object["spec"])?;
            equal("externalTrafficPolicy", &object["spec"]["externalTrafficPolicy"], &json!("Cluster"))?;

            let path = format!("{}/s", api.at("v1", "services"));
            let changed = api.patch(path, MERGE, &json!({"spec": {"type": "ClusterIP"}})).await?.code(200)?;

            absent(&changed.body, "/spec/ports/0/nodePort")?;
            absent(&changed.body, "/spec/externalTrafficPolicy")
        }),
        row("an ExternalName Service has no IP fields", "facts §9", |api| async move {
            let body = json!({"metadata": {"name": "s"}, "spec": {"type": "ExternalName", "externalName": "a.b"}});
            let expected = json!({"type": "ExternalName", "externalName": "a.b", "sessionAffinity": "None"});
            becomes(&api, api.at("v1", "services"), body, expected).await
        }),
        row("a PUT of a Service without IPs and node ports keeps the live ones", "facts §4", |api| async move {
            let path = format!("{}/s", api.at("v1", "services"));
            let body = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
            let created = api.create(api.at("v1", "services"), &body).await?;

            let replaced = api.put(&path, &body).await?.code(200)?;

            equal("spec", &replaced.body["spec"], &created["spec"])
        }),
    ]
}

fn others() -> Vec<Row> {
    vec![
        row("a Secret is Opaque, and stringData wins over data and is not returned", "facts §9", |api| async move {
            let body = json!({"metadata": {"name": "s"}, "data": {"a": "YQ==", "b": "Yg=="}, "stringData": {"a": "x"}});

            let object = api.create(api.at("v1", "secrets"), &body).await?;

            equal("type", &object["type"], &json!("Opaque"))?;
            equal("data", &object["data"], &json!({"a": "eA==", "b": "Yg=="}))?;
            absent(&object, "/stringData")
        }),
        row("a PersistentVolumeClaim gets its finalizer and is Pending", "facts §9", |api| async move {
            let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});

            let path = api.at("v1", "persistentvolumeclaims");
            let object = api.create(path, &json!({"metadata": {"name": "p"}, "spec": spec})).await?;

            equal("finalizers", &object["metadata"]["finalizers"], &json!(["kubernetes.io/pvc-protection"]))?;
            equal("volumeMode", &object["spec"]["volumeMode"], &json!("Filesystem"))?;
            equal("status", &object["status"], &json!({"phase": "Pending"}))
        }),
        row("a NetworkPolicy gets its policy types and protocols", "facts §9", |api| async move {
            let body =
                json!({"metadata": {"name": "n"}, "spec": {"podSelector": {}, "egress": [{"ports": [{"port": 53}]}]}});
            let expected = json!({"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "egress": [{"ports": [{"port": 53, "protocol": "TCP"}]}]});
            becomes(&api, api.at("networking.k8s.io/v1", "networkpolicies"), body, expected).await
        }),
        row("a HorizontalPodAutoscaler gets minReplicas and a CPU metric", "facts §9", |api| async move {
            let body = json!({"metadata": {"name": "h"}, "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}});

            let object = api.create(api.at("autoscaling/v2", "horizontalpodautoscalers"), &body).await?;

            let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}});
            includes("spec", &object["spec"], &json!({"minReplicas": 1, "metrics": [metric]}))
        }),
        row(
            "a HorizontalPodAutoscaler read as autoscaling/v1 carries other metrics in annotations",
            "architecture §5",
            |api| async move {
                let metric = json!({"type": "Resource", "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 50}}});
                let body = json!({"metadata": {"name": "h"}, "spec": {"maxReplicas": 3, "metrics": [metric], "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}});
                api.create(api.at("autoscaling/v2", "horizontalpodautoscalers"), &body).await?;

                let answer =
                    api.get(format!("{}/h", api.at("autoscaling/v1", "horizontalpodautoscalers"))).await?.code(200)?;

                equal("apiVersion", &answer.body["apiVersion"], &json!("autoscaling/v1"))?;
                let annotation = &answer.body["metadata"]["annotations"]["autoscaling.alpha.kubernetes.io/metrics"];
                holds(
                    annotation.as_str().is_some_and(|text| text.contains("memory")),
                    "metrics in an annotation",
                    &answer.body["metadata"],
                )
            },
        ),
        row("subjects of a RoleBinding get the API group for users and groups", "facts §9", |api| async move {
            let rbac = "rbac.authorization.k8s.io";
            let body = json!({"metadata": {"name": "b"}, "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "r"},
                "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]});

            let object = api.create(api.at("rbac.authorization.k8s.io/v1", "rolebindings"), &body).await?;

            let expected = json!([{"kind": "User", "name": "u", "apiGroup": rbac}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]);
            equal("subjects", &object["subjects"], &expected)
        }),
        row(
            "ServiceAccounts, Roles, PodDisruptionBudgets, Ingresses and Leases get nothing in their spec",
            "facts §9",
            |api| async move {
                let budget = json!({"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}});
                let ingress = json!({"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}});
                becomes(
                    &api,
                    api.at("policy/v1", "poddisruptionbudgets"),
                    json!({"metadata": {"name": "p"}, "spec": budget}),
                    budget.clone(),
                )
                .await?;
                becomes(
                    &api,
                    api.at("networking.k8s.io/v1", "ingresses"),
                    json!({"metadata": {"name": "i"}, "spec": ingress}),
                    ingress.clone(),
                )
                .await?;
                let lease = json!({"holderIdentity": "a"});
                becomes(
                    &api,
                    api.at("coordination.k8s.io/v1", "leases"),
                    json!({"metadata": {"name": "l"}, "spec": lease}),
                    lease.clone(),
                )
                .await
            },
        ),
    ]
}
