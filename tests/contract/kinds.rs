//! Differences between kinds in `generation`, PUT and DELETE. Stores rely on the first column (architecture §5):
//! `generation` cannot stand for the content of a kind if it is absent or does not cover all of the content.

use anyhow::Result;
use serde_json::{Value, json};

use crate::{
    api::{Api, MERGE, root},
    bodies::{deployment, pod_template},
    expect::{equal, holds},
    row::{Row, row},
};

#[derive(Clone)]
struct Kind {
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    scope: Scope,
    generation: Generation,
    put_without_version: WithoutVersion,
    put_missing: Missing,
    delete: Deleted,
    content: fn(&Api) -> Value,
    /// A merge patch of the content (not of labels, annotations, status).
    change: fn() -> Value,
    status: Option<fn() -> Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Namespaced,
    Cluster,
}

/// What raises `metadata.generation`, which starts at 1 where it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Generation {
    Absent,
    /// Always 1.
    Constant,
    Content,
    ContentAndAnnotations,
    ContentAndLabels,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WithoutVersion {
    Written,
    /// 422: must be specified for an update.
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    Created,
    NotFound,
}

/// The answer to a DELETE with policy Background of a fresh object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deleted {
    /// A Status: gone.
    Status,
    /// The object without deletionTimestamp: gone.
    Object,
    /// The object with deletionTimestamp and without finalizers, although it is gone.
    Dying,
    /// The object with deletionTimestamp: it still exists.
    Pending,
}

use Deleted::{Dying, Object, Pending, Status};
use Generation::{Absent, Constant, Content, ContentAndAnnotations, ContentAndLabels};
use Missing::{Created, NotFound};
use Scope::{Cluster, Namespaced};
use WithoutVersion::{Refused, Written};

type Line = (
    &'static str,
    &'static str,
    &'static str,
    Scope,
    Generation,
    WithoutVersion,
    Missing,
    Deleted,
    fn(&Api) -> Value,
    fn() -> Value,
);

const OBSERVED: Option<fn() -> Value> = Some(|| json!({"status": {"observedGeneration": 1}}));

#[rustfmt::skip]
fn table() -> Vec<Kind> {
    let lines: Vec<Line> = vec![
        ("v1", "ConfigMap", "configmaps", Namespaced, Absent, Written, NotFound, Status, |_| json!({"data": {"v": "1"}}), || json!({"data": {"v": "2"}})),
        ("v1", "Secret", "secrets", Namespaced, Absent, Written, NotFound, Status, |_| json!({"data": {"v": "YQ=="}}), || json!({"data": {"v": "Yg=="}})),
        ("v1", "Service", "services", Namespaced, Absent, Written, Created, Object, |_| json!({"spec": {"ports": [{"port": 80}]}}), || json!({"spec": {"sessionAffinity": "ClientIP"}})),
        ("v1", "ServiceAccount", "serviceaccounts", Namespaced, Absent, Written, NotFound, Object, |_| json!({}), || json!({"automountServiceAccountToken": false})),
        ("v1", "Namespace", "namespaces", Cluster, Absent, Written, NotFound, Pending, |_| json!({}), || json!({"metadata": {"ownerReferences": []}})),
        ("v1", "Node", "nodes", Cluster, Absent, Written, NotFound, Status, |_| json!({}), || json!({"spec": {"unschedulable": true}})),
        ("v1", "Pod", "pods", Namespaced, Content, Written, NotFound, Dying, |_| json!({"spec": {"containers": [{"name": "c", "image": "i"}]}}), || json!({"spec": {"activeDeadlineSeconds": 9}})),
        ("v1", "ReplicationController", "replicationcontrollers", Namespaced, Content, Written, NotFound, Status, |_| json!({"spec": {"selector": {"a": "b"}, "template": pod_template()}}), || json!({"spec": {"replicas": 2}})),
        ("v1", "PersistentVolumeClaim", "persistentvolumeclaims", Namespaced, Absent, Written, NotFound, Pending, |_| json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}), || json!({"metadata": {"finalizers": ["a.b/c", "kubernetes.io/pvc-protection"]}})),
        ("v1", "PersistentVolume", "persistentvolumes", Cluster, Absent, Written, NotFound, Pending, |_| json!({"spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}}), || json!({"spec": {"capacity": {"storage": "2Gi"}}})),
        ("v1", "Endpoints", "endpoints", Namespaced, Absent, Written, Created, Status, |_| json!({}), || json!({"subsets": [{"addresses": [{"ip": "1.2.3.4"}]}]})),
        ("v1", "Event", "events", Namespaced, Absent, Written, Created, Status, |api| json!({"involvedObject": {"kind": "Pod", "name": "p", "namespace": api.namespace}}), || json!({"count": 2})),
        ("v1", "LimitRange", "limitranges", Namespaced, Absent, Written, Created, Status, |_| json!({"spec": {"limits": []}}), || json!({"spec": {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}})),
        ("v1", "ResourceQuota", "resourcequotas", Namespaced, Absent, Written, NotFound, Object, |_| json!({"spec": {"hard": {"pods": "1"}}}), || json!({"spec": {"hard": {"pods": "2"}}})),
        ("apps/v1", "Deployment", "deployments", Namespaced, ContentAndAnnotations, Written, NotFound, Status, |_| json!({"spec": deployment("")["spec"]}), || json!({"spec": {"replicas": 2}})),
        ("apps/v1", "StatefulSet", "statefulsets", Namespaced, Content, Written, NotFound, Status, |_| json!({"spec": {"serviceName": "s", "selector": {"matchLabels": {"a": "b"}}, "template": pod_template()}}), || json!({"spec": {"replicas": 2}})),
        ("apps/v1", "DaemonSet", "daemonsets", Namespaced, Content, Written, NotFound, Status, |_| json!({"spec": deployment("")["spec"]}), || json!({"spec": {"minReadySeconds": 2}})),
        ("apps/v1", "ReplicaSet", "replicasets", Namespaced, Content, Written, NotFound, Status, |_| json!({"spec": deployment("")["spec"]}), || json!({"spec": {"replicas": 2}})),
        ("batch/v1", "Job", "jobs", Namespaced, Content, Written, NotFound, Status, |_| json!({"spec": {"suspend": true, "template": job_pod()}}), || json!({"spec": {"parallelism": 2}})),
        ("batch/v1", "CronJob", "cronjobs", Namespaced, Content, Written, NotFound, Status, |_| json!({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": job_pod()}}}}), || json!({"spec": {"suspend": true}})),
        ("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", Namespaced, Absent, Written, NotFound, Status, |_| json!({"spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}}), || json!({"spec": {"maxReplicas": 4}})),
        ("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", Namespaced, Content, Refused, NotFound, Status, |_| json!({"spec": {"minAvailable": 1}}), || json!({"spec": {"minAvailable": 2}})),
        ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", Namespaced, Content, Written, NotFound, Status, |_| json!({"spec": {"podSelector": {}}}), || json!({"spec": {"policyTypes": ["Egress"]}})),
        ("networking.k8s.io/v1", "Ingress", "ingresses", Namespaced, Content, Written, NotFound, Status, |_| json!({"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}}), || json!({"spec": {"defaultBackend": {"service": {"name": "t"}}}})),
        ("networking.k8s.io/v1", "IngressClass", "ingressclasses", Cluster, Content, Written, NotFound, Status, |_| json!({"spec": {"controller": "a.b/c"}}), || json!({"spec": {"parameters": {"kind": "X", "name": "x", "scope": "Cluster"}}})),
        ("discovery.k8s.io/v1", "EndpointSlice", "endpointslices", Namespaced, ContentAndLabels, Written, NotFound, Status, |_| json!({"addressType": "IPv4", "endpoints": []}), || json!({"endpoints": [{"addresses": ["1.2.3.4"]}]})),
        ("coordination.k8s.io/v1", "Lease", "leases", Namespaced, Absent, Refused, Created, Status, |_| json!({"spec": {"holderIdentity": "a"}}), || json!({"spec": {"holderIdentity": "b"}})),
        ("rbac.authorization.k8s.io/v1", "Role", "roles", Namespaced, Absent, Written, Created, Status, |_| json!({"rules": []}), || json!({"rules": [rule()]})),
        ("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", Namespaced, Absent, Written, Created, Status, |_| json!({"roleRef": view()}), || json!({"subjects": [{"kind": "User", "name": "u"}]})),
        ("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", Cluster, Absent, Written, Created, Status, |_| json!({"rules": []}), || json!({"rules": [rule()]})),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", Cluster, Absent, Written, Created, Status, |_| json!({"roleRef": view()}), || json!({"subjects": [{"kind": "User", "name": "u"}]})),
        ("storage.k8s.io/v1", "StorageClass", "storageclasses", Cluster, Absent, Written, NotFound, Object, |_| json!({"provisioner": "a.b/c"}), || json!({"allowVolumeExpansion": true})),
        ("storage.k8s.io/v1", "CSINode", "csinodes", Cluster, Absent, Refused, NotFound, Object, |_| json!({"spec": {"drivers": []}}), || json!({"spec": {"drivers": [{"name": "d", "nodeID": "n"}]}})),
        ("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", Cluster, Constant, Written, NotFound, Status, |_| json!({"value": 1}), || json!({"description": "x"})),
        ("certificates.k8s.io/v1", "CertificateSigningRequest", "certificatesigningrequests", Cluster, Absent, Written, NotFound, Status, |_| json!({"spec": {"request": crate::reviews::SIGNING_REQUEST, "signerName": "a.b/c", "usages": ["client auth"]}}), || json!({})),
        ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", Cluster, Content, Refused, NotFound, Status, |_| json!({"webhooks": []}), || json!({"webhooks": [webhook()]})),
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", Cluster, Content, Refused, NotFound, Status, |_| json!({"webhooks": []}), || json!({"webhooks": [webhook()]})),
        ("apiregistration.k8s.io/v1", "APIService", "apiservices", Cluster, Absent, Refused, NotFound, Status, api_service, || json!({"spec": {"versionPriority": 9}})),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", Cluster, Content, Refused, NotFound, Pending, |api| json!({"spec": crate::bodies::definition(&group(api), "things", "Thing")["spec"]}), || json!({"spec": {"names": {"categories": ["c"]}}})),
    ];
    let kinds = lines.into_iter().map(|(version, kind, plural, scope, generation, put_without_version, put_missing, delete, content, change)| {
        let status = ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "PodDisruptionBudget"].contains(&kind).then_some(OBSERVED).flatten();
        Kind { version, kind, plural, scope, generation, put_without_version, put_missing, delete, content, change, status }
    });
    kinds.collect()
}

pub(crate) fn rows() -> Vec<Row> {
    table().into_iter().flat_map(rows_of).chain(custom()).collect()
}

fn rows_of(kind: Kind) -> [Row; 4] {
    let name = kind.kind;
    let [first, second, third, fourth] = std::array::from_fn(|_| kind.clone());
    let generation = match kind.generation {
        Absent => "has no generation",
        Constant => "keeps generation 1 for ever",
        Content => "has a generation that its content raises, labels and annotations not",
        ContentAndAnnotations => "has a generation that content and annotations raise, labels not",
        ContentAndLabels => "has a generation that content and labels raise, annotations not",
    };
    let without = match kind.put_without_version {
        Written => "is written by a PUT without a version",
        Refused => "refuses a PUT without a version",
    };
    let missing = match kind.put_missing {
        Created => "is created by a PUT of a missing one",
        NotFound => "is not created by a PUT of a missing one",
    };
    let delete = match kind.delete {
        Status => "is gone after DELETE, and a Status says so",
        Object => "is gone after DELETE, and the object without deletionTimestamp says so",
        Dying => "is gone after DELETE, but the object with deletionTimestamp is the answer",
        Pending => "is answered with its deletionTimestamp on DELETE, and stays for a while",
    };
    let by_generation =
        row(format!("{name} {generation}"), "facts §4", move |api| check_generation(api, first.clone()));
    // The oldest supported version counts no generations of Pods, the newest counts those of HorizontalPodAutoscalers.
    let by_generation = match name {
        "Pod" => by_generation.not_for_the_oldest(),
        "HorizontalPodAutoscaler" => by_generation.not_for_the_newest(),
        _ => by_generation,
    };
    [
        by_generation,
        row(format!("{name} {without}"), "facts §4", move |api| check_without_version(api, second.clone())),
        row(format!("{name} {missing}"), "facts §4", move |api| check_missing(api, third.clone())),
        row(format!("{name} {delete}"), "facts §6", move |api| check_delete(api, fourth.clone())),
    ]
}

fn custom() -> Vec<Row> {
    vec![
        row(
            "a custom kind with /status has a generation that all but metadata and status raises",
            "facts §4",
            |api| async move {
                let path = define(&api, json!({"status": {}})).await?;
                let patches = [
                    (
                        json!({"metadata": {"labels": {"l": "1"}, "annotations": {"a": "1"}, "finalizers": ["a.b/c"]}}),
                        1,
                    ),
                    (json!({"status": {"s": 1}}), 1),
                    (json!({"spec": {"a": 2}}), 2),
                    (json!({"other": 1}), 3),
                ];
                generations(&api, &path, &patches).await?;
                let answer =
                    api.patch(format!("{path}/status"), MERGE, &json!({"status": {"s": 2}})).await?.code(200)?;
                equal("after /status", &answer.body["metadata"]["generation"], &json!(3))
            },
        ),
        row("a custom kind without /status has a generation that status raises too", "facts §4", |api| async move {
            let path = define(&api, json!({})).await?;
            let patches = [
                (json!({"metadata": {"labels": {"l": "1"}}}), 1),
                (json!({"spec": {"a": 2}}), 2),
                (json!({"status": {"s": 1}}), 3),
            ];
            generations(&api, &path, &patches).await
        }),
        row("a custom kind refuses a PUT without a version", "facts §4", |api| async move {
            let path = define(&api, json!({})).await?;
            let version = format!("{}/v1", group(&api));
            let body = json!({"apiVersion": version, "kind": "Thing", "metadata": {"name": "x"}, "spec": {"a": 2}});

            let answer = api.put(&path, &body).await?;

            let text = "metadata.resourceVersion: Invalid value: 0: must be specified for an update";
            answer.fails(422, "Invalid", &format!("things.{} \"x\" is invalid: {text}", group(&api)))
        })
        .not_for_the_oldest(),
        row("a missing custom object is not created by a PUT", "facts §4", |api| async move {
            let path = define(&api, json!({})).await?.replace("/x", "/y");
            let version = format!("{}/v1", group(&api));
            let body =
                json!({"apiVersion": version, "kind": "Thing", "metadata": {"name": "y", "resourceVersion": "1"}});

            api.put(path, &body).await?.fails(404, "NotFound", &format!("things.{} \"y\" not found", group(&api)))
        }),
        row("a custom object is gone after DELETE, and a Status says so", "facts §6", |api| async move {
            let path = define(&api, json!({})).await?;

            let answer = api.delete(&path).await?.code(200)?;

            equal("kind", &answer.body["kind"], &json!("Status"))
        }),
    ]
}

async fn check_generation(api: Api, kind: Kind) -> Result<()> {
    let created = api.create(kind.collection(&api), &kind.manifest(&api)).await?;
    let start = match kind.generation {
        Absent => json!(null),
        Constant | Content | ContentAndAnnotations | ContentAndLabels => json!(1),
    };
    equal("generation after the create", &created["metadata"]["generation"], &start)?;
    let by_labels = i64::from(kind.generation == ContentAndLabels);
    let by_annotations = i64::from(kind.generation == ContentAndAnnotations);
    let by_content = i64::from(!matches!(kind.generation, Absent | Constant));
    let mut expected = 1;
    let patches = [
        ("labels", json!({"metadata": {"labels": {"l": "1"}}}), by_labels),
        ("annotations", json!({"metadata": {"annotations": {"a": "1"}}}), by_annotations),
        ("content", (kind.change)(), by_content),
    ];
    for (what, patch, step) in patches {
        let answer = api.patch(kind.path(&api), MERGE, &patch).await?.code(200)?;
        expected += step;
        let expected = if kind.generation == Absent { json!(null) } else { json!(expected) };
        equal(&format!("generation after {what}"), &answer.body["metadata"]["generation"], &expected)?;
    }
    if let Some(status) = kind.status {
        let answer = api.patch(format!("{}/status", kind.path(&api)), MERGE, &status()).await?.code(200)?;
        equal("generation after /status", &answer.body["metadata"]["generation"], &json!(expected))?;
    }
    Ok(())
}

async fn check_without_version(api: Api, kind: Kind) -> Result<()> {
    let mut object = api.create(kind.collection(&api), &kind.manifest(&api)).await?;
    object["metadata"]["resourceVersion"] = json!(null);
    object["metadata"]["labels"] = json!({"l": "1"});
    if kind.kind == "Job" {
        // Its generated labels must stay.
        object["metadata"]["labels"] = object["spec"]["template"]["metadata"]["labels"].clone();
    }

    let answer = api.put(kind.path(&api), &object).await?;

    match kind.put_without_version {
        Written => answer.code(200).map(|_| ()),
        Refused => answer
            .fails_with(422, "Invalid", "metadata.resourceVersion: Invalid value: ")
            .and_then(|()| answer.fails_with(422, "Invalid", ": must be specified for an update")),
    }
}

async fn check_missing(api: Api, kind: Kind) -> Result<()> {
    let answer = api.put(kind.path(&api), &kind.manifest(&api)).await?;

    match kind.put_missing {
        Created => answer.code(201).map(|_| ()),
        NotFound => answer.fails_with(404, "NotFound", "not found"),
    }
}

async fn check_delete(api: Api, kind: Kind) -> Result<()> {
    api.create(kind.collection(&api), &kind.manifest(&api)).await?;

    let answer = api.delete_with(kind.path(&api), &json!({"propagationPolicy": "Background"})).await?.code(200)?;

    let deleting = answer.body["metadata"]["deletionTimestamp"].is_string();
    let expected = if kind.delete == Status { "Status" } else { kind.kind };
    equal("kind of the answer", &answer.body["kind"], &json!(expected))?;
    holds(deleting == matches!(kind.delete, Pending | Dying), "deletionTimestamp", &answer.body)?;
    let code = if kind.delete == Pending { 200 } else { 404 };
    if kind.kind != "CustomResourceDefinition" {
        // The API server itself removes an empty definition a moment later.
        api.get(kind.path(&api)).await?.code(code)?;
    }
    Ok(())
}

impl Kind {
    fn collection(&self, api: &Api) -> String {
        match self.scope {
            Namespaced => api.at(self.version, self.plural),
            Cluster => format!("{}/{}", root(self.version), self.plural),
        }
    }

    fn name(&self, api: &Api) -> String {
        match self.kind {
            "CustomResourceDefinition" => format!("things.{}", group(api)),
            "APIService" => format!("v1.{}", group(api)),
            _ if self.scope == Cluster => api.unique("x"),
            _ => "x".to_owned(),
        }
    }

    fn path(&self, api: &Api) -> String {
        format!("{}/{}", self.collection(api), self.name(api))
    }

    fn manifest(&self, api: &Api) -> Value {
        let mut object = (self.content)(api);
        object["apiVersion"] = json!(self.version);
        object["kind"] = json!(self.kind);
        object["metadata"] = json!({"name": self.name(api)});
        object
    }
}

fn group(api: &Api) -> String {
    format!("{}.example.org", api.namespace)
}

fn job_pod() -> Value {
    json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}})
}

fn rule() -> Value {
    json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]})
}

fn view() -> Value {
    json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"})
}

fn webhook() -> Value {
    json!({"name": "a.b.c", "clientConfig": {"url": "https://localhost/x"}, "sideEffects": "None", "admissionReviewVersions": ["v1"]})
}

/// Its service does not exist, so the group is not served.
fn api_service(api: &Api) -> Value {
    json!({"spec": {"group": group(api), "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
        "insecureSkipTLSVerify": true, "service": {"namespace": "none", "name": "none"}}})
}

async fn define(api: &Api, subresources: Value) -> Result<String> {
    let mut kind = crate::bodies::definition(&group(api), "things", "Thing");
    kind["spec"]["versions"][0]["subresources"] = subresources;
    api.define(&kind).await?;
    let version = format!("{}/v1", group(api));
    let things = api.at(&version, "things");
    api.create(&things, &json!({"apiVersion": version, "kind": "Thing", "metadata": {"name": "x"}, "spec": {"a": 1}}))
        .await?;
    Ok(format!("{things}/x"))
}

async fn generations(api: &Api, path: &str, patches: &[(Value, i64)]) -> Result<()> {
    for (patch, expected) in patches {
        let answer = api.patch(path, MERGE, patch).await?.code(200)?;
        equal(&format!("generation after {patch}"), &answer.body["metadata"]["generation"], &json!(expected))?;
    }
    Ok(())
}
