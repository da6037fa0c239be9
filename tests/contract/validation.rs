use serde_json::{Value, json};

use crate::{
    api::{MERGE, root},
    bodies::{config_map, deployment, failure},
    expect::includes,
    row::{Row, row},
};

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";

pub(crate) fn rows() -> Vec<Row> {
    [objects(), sizes(), services(), immutable()].into_iter().flatten().collect()
}

fn objects() -> Vec<Row> {
    vec![
        row("several findings are listed in brackets, each is a cause", "facts §1", |api| async move {
            let body = json!({"metadata": {"name": "e"}, "spec": {}});

            let answer = api.post(api.at("apps/v1", "deployments"), &body).await?;

            let findings = "spec.selector: Required value, spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`, spec.template.spec.containers: Required value";
            answer.fails(422, "Invalid", &format!("Deployment.apps \"e\" is invalid: [{findings}]"))?;
            let causes = json!([
                {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.selector"},
                {"reason": "FieldValueInvalid", "message": "Invalid value: null: `selector` does not match template `labels`", "field": "spec.template.metadata.labels"},
                {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.template.spec.containers"},
            ]);
            includes(
                "details",
                &answer.body["details"],
                &json!({"name": "e", "group": "apps", "kind": "Deployment", "causes": causes}),
            )
        }).not_for_the_oldest(),
        row("a finalizer without a slash is Invalid", "facts §1", |api| async move {
            let answer = api.post(api.maps(), &config_map("f", json!({"finalizers": ["bad"]}))).await?;

            let text = "Invalid value: \"bad\": name is neither a standard finalizer name nor is it fully qualified";
            answer.fails(422, "Invalid", &format!("ConfigMap \"f\" is invalid: metadata.finalizers[0]: {text}"))
        }),
        row("the standard finalizer names need no slash", "facts §1", |api| async move {
            for (name, finalizer) in [("a", "kubernetes"), ("b", "orphan"), ("c", "foregroundDeletion")] {
                api.create_map(name, json!({"finalizers": [finalizer]})).await?;
            }
            Ok(())
        }),
        row("an owner reference without uid is Invalid", "facts §1", |api| async move {
            let owner = json!({"apiVersion": "v1", "kind": "X", "name": "x"});

            let answer = api.post(api.maps(), &config_map("o", json!({"ownerReferences": [owner]}))).await?;

            answer.fails_with(422, "Invalid", "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty")
        }).not_for_the_oldest().not_for_the_newest(),
        row("a name in upper case is Invalid", "facts §1", |api| async move {
            let answer = api.post(api.maps(), &config_map("A", json!({}))).await?;

            let message = format!("ConfigMap \"A\" is invalid: metadata.name: Invalid value: \"A\": {SUBDOMAIN}");
            answer.fails_with(422, "Invalid", &message)
        }),
        row("the name of a Service has no dots", "facts §1", |api| async move {
            let body = json!({"metadata": {"name": "a.b"}, "spec": {"ports": [{"port": 80}]}});

            let answer = api.post(api.at("v1", "services"), &body).await?;

            answer.fails_with(422, "Invalid", "must not contain dots")
        }).not_for_the_oldest(),
        row("RBAC names may have colons and upper case, but no slash", "facts §1", |api| async move {
            let path = format!("{}/clusterroles", root("rbac.authorization.k8s.io/v1"));
            api.create(&path, &json!({"metadata": {"name": format!("{}:A.b:c", api.namespace)}})).await?;

            let answer = api.post(&path, &json!({"metadata": {"name": "a/b"}})).await?;

            answer.fails_with(422, "Invalid", "may not contain '/'")
        }),
        row("a Secret of type kubernetes.io/tls needs its keys", "facts §1", |api| async move {
            let body = json!({"metadata": {"name": "s"}, "type": "kubernetes.io/tls", "data": {}});

            let answer = api.post(api.at("v1", "secrets"), &body).await?;

            let message = "Secret \"s\" is invalid: [data[tls.crt]: Required value, data[tls.key]: Required value]";
            answer.fails(422, "Invalid", message)
        }),
        row("a negative replica count is Invalid", "facts §0", |api| async move {
            let mut body = deployment("d");
            body["spec"]["replicas"] = json!(-1);

            let answer = api.post(api.at("apps/v1", "deployments"), &body).await?;

            let text = "Invalid value: -1: must be greater than or equal to 0";
            let message = format!("Deployment.apps \"d\" is invalid: spec.replicas: {text}");
            let cause = json!({"reason": "FieldValueInvalid", "message": text, "field": "spec.replicas"});
            let details = json!({"name": "d", "group": "apps", "kind": "Deployment", "causes": [cause]});
            answer.is_status(&failure(422, "Invalid", &message, details))
        }),
    ]
}

fn service(name: &str, spec: &[(&str, Value)]) -> Value {
    let mut body =
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}});
    for (key, value) in spec {
        body["spec"][*key] = value.clone();
    }
    body
}

fn sizes() -> Vec<Row> {
    vec![
        row("a body of more than 3 MiB is RequestEntityTooLarge", "facts §10", |api| async move {
            let mut body = config_map("a", json!({}));
            body["data"]["v"] = json!("x".repeat(3_200_000));

            let answer = api.post(api.maps(), &body).await?;

            answer.fails_with(413, "RequestEntityTooLarge", "limit is 3145728")
        }),
        row("a ConfigMap or Secret of more than 1 MiB is Invalid", "facts §10", |api| async move {
            let mut map = config_map("a", json!({}));
            map["data"]["v"] = json!("x".repeat(1_048_577));
            let secret = json!({"metadata": {"name": "s"}, "stringData": {"v": "x".repeat(1_048_577)}});

            let text = "Too long: may not be more than 1048576 bytes";
            api.post(api.maps(), &map).await?.fails_with(422, "Invalid", text)?;
            api.post(api.at("v1", "secrets"), &secret).await?.fails_with(422, "Invalid", text)
        }),
        row("annotations of more than 256 KiB in sum are Invalid", "facts §1", |api| async move {
            let annotations = json!({"a": "x".repeat(200_000), "b": "x".repeat(70_000)});

            let answer = api.post(api.maps(), &config_map("a", json!({"annotations": annotations}))).await?;

            answer.fails_with(422, "Invalid", "metadata.annotations: Too long: may not be more than 262144 bytes")
        }),
    ]
}

fn services() -> Vec<Row> {
    vec![
        row(
            "a second POST of a Service with a fixed node port is Invalid, not AlreadyExists",
            "architecture §5",
            |api| async move {
                // From the range that the server does not allocate from by itself.
                let port = 30_007;
                let body =
                    service("s", &[("type", json!("NodePort")), ("ports", json!([{"port": 80, "nodePort": port}]))]);
                api.create(api.at("v1", "services"), &body).await?;

                let answer = api.post(api.at("v1", "services"), &body).await?;

                let text = format!("spec.ports[0].nodePort: Invalid value: {port}: provided port is already allocated");
                answer.fails(422, "Invalid", &format!("Service \"s\" is invalid: {text}"))
            },
        ),
        row(
            "a second POST of a Service with a fixed IP is Invalid, not AlreadyExists",
            "architecture §5",
            |api| async move {
                let body = service("s", &[("clusterIP", json!("10.0.77.7"))]);
                api.create(api.at("v1", "services"), &body).await?;

                let answer = api.post(api.at("v1", "services"), &body).await?;

                let text = "spec.clusterIPs: Invalid value: [\"10.0.77.7\"]: failed to allocate IP 10.0.77.7: provided IP is already allocated";
                answer.fails(422, "Invalid", &format!("Service \"s\" is invalid: {text}"))
            },
        ).not_for_the_oldest(),
        row("a second POST of a Service without fixed values is AlreadyExists", "architecture §5", |api| async move {
            let body = service("s", &[]);
            api.create(api.at("v1", "services"), &body).await?;

            let answer = api.post(api.at("v1", "services"), &body).await?;

            answer.fails(409, "AlreadyExists", "services \"s\" already exists")
        }),
        row("a Service IP outside of the range is Invalid", "facts §4", |api| async move {
            let answer = api.post(api.at("v1", "services"), &service("s", &[("clusterIP", json!("10.9.9.9"))])).await?;

            answer.fails_with(422, "Invalid", "the provided network does not match the current range")
        }).not_for_the_oldest(),
        row("the IP of a Service may not change", "facts §4", |api| async move {
            let path = format!("{}/s", api.at("v1", "services"));
            api.create(api.at("v1", "services"), &service("s", &[])).await?;

            let answer =
                api.patch(&path, MERGE, &json!({"spec": {"clusterIP": "10.0.7.7", "clusterIPs": null}})).await?;

            answer.fails_with(422, "Invalid", "may not change once set")
        }),
    ]
}

fn immutable() -> Vec<Row> {
    vec![
        row("an immutable ConfigMap keeps its data", "facts §4", |api| async move {
            let path = format!("{}/a", api.maps());
            api.create_map("a", json!({})).await?;
            api.patch(&path, MERGE, &json!({"immutable": true})).await?.code(200)?;

            let answer = api.patch(&path, MERGE, &json!({"data": {"v": "2"}})).await?;

            let text = "Forbidden: field is immutable when `immutable` is set";
            let cause = json!({"reason": "FieldValueForbidden", "message": text, "field": "data"});
            let details = json!({"name": "a", "kind": "ConfigMap", "causes": [cause]});
            answer.is_status(&failure(422, "Invalid", &format!("ConfigMap \"a\" is invalid: data: {text}"), details))
        }),
        row("immutable cannot be taken back", "facts §4", |api| async move {
            let path = format!("{}/a", api.maps());
            api.create_map("a", json!({})).await?;
            api.patch(&path, MERGE, &json!({"immutable": true})).await?.code(200)?;

            let answer = api.patch(&path, MERGE, &json!({"immutable": null})).await?;

            answer.fails(
                422,
                "Invalid",
                "ConfigMap \"a\" is invalid: immutable: Forbidden: field is immutable when `immutable` is set",
            )
        }),
        row("the metadata of an immutable ConfigMap may change", "facts §4", |api| async move {
            let path = format!("{}/a", api.maps());
            api.create_map("a", json!({})).await?;
            api.patch(&path, MERGE, &json!({"immutable": true})).await?.code(200)?;

            api.patch(&path, MERGE, &json!({"metadata": {"labels": {"l": "1"}}})).await?.code(200)?;
            Ok(())
        }),
        row("an immutable Secret keeps its data", "facts §4", |api| async move {
            let path = format!("{}/s", api.at("v1", "secrets"));
            let body = json!({"metadata": {"name": "s"}, "immutable": true, "data": {"a": "YQ=="}});
            api.create(api.at("v1", "secrets"), &body).await?;

            let answer = api.patch(&path, MERGE, &json!({"data": {"a": "Yg=="}})).await?;

            answer.fails(
                422,
                "Invalid",
                "Secret \"s\" is invalid: data: Forbidden: field is immutable when `immutable` is set",
            )
        }),
        row("the type of a Secret is immutable", "facts §4", |api| async move {
            api.create(api.at("v1", "secrets"), &json!({"metadata": {"name": "s"}})).await?;

            let answer = api.patch(format!("{}/s", api.at("v1", "secrets")), MERGE, &json!({"type": "a/b"})).await?;

            answer.fails(422, "Invalid", "Secret \"s\" is invalid: type: Invalid value: \"a/b\": field is immutable")
        }),
        row("the role of a RoleBinding is immutable", "facts §4", |api| async move {
            let rbac = "rbac.authorization.k8s.io/v1";
            let role =
                |name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name});
            let body = json!({"metadata": {"name": "b"}, "roleRef": role("view")});
            api.create(api.at(rbac, "rolebindings"), &body).await?;

            let path = format!("{}/b", api.at(rbac, "rolebindings"));
            let answer = api.patch(path, MERGE, &json!({"roleRef": role("edit")})).await?;

            answer.fails_with(
                422,
                "Invalid",
                "RoleBinding.rbac.authorization.k8s.io \"b\" is invalid: roleRef: Invalid value: ",
            )?;
            answer.fails_with(422, "Invalid", ": cannot change roleRef")
        })
        .not_for_the_newest(),
        row("the selector of a Deployment is immutable", "facts §4", |api| async move {
            api.create(api.at("apps/v1", "deployments"), &deployment("d")).await?;
            let patch = json!({"spec": {"selector": {"matchLabels": {"a": null, "q": "1"}}, "template": {"metadata": {"labels": {"q": "1"}}}}});

            let answer = api.patch(format!("{}/d", api.at("apps/v1", "deployments")), MERGE, &patch).await?;

            let text = "Invalid value: {\"matchLabels\":{\"q\":\"1\"}}: field is immutable";
            answer.fails(422, "Invalid", &format!("Deployment.apps \"d\" is invalid: spec.selector: {text}"))
        }).not_for_the_oldest(),
        row("a StatefulSet may change a few fields only", "facts §4", |api| async move {
            let mut body = deployment("s");
            body["kind"] = json!("StatefulSet");
            body["spec"]["serviceName"] = json!("s");
            api.create(api.at("apps/v1", "statefulsets"), &body).await?;

            let path = format!("{}/s", api.at("apps/v1", "statefulsets"));
            let answer = api.patch(path, MERGE, &json!({"spec": {"serviceName": "o"}})).await?;

            let text = "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
            answer.fails(422, "Invalid", &format!("StatefulSet.apps \"s\" is invalid: {text}"))
        }).not_for_the_oldest().not_for_the_newest(),
        row("the template of a Job is immutable", "facts §4", |api| async move {
            let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
            let body = json!({"metadata": {"name": "j"}, "spec": {"template": template}});
            api.create(api.at("batch/v1", "jobs"), &body).await?;

            let patch = json!({"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}});
            let answer = api.patch(format!("{}/j", api.at("batch/v1", "jobs")), MERGE, &patch).await?;

            answer.fails_with(422, "Invalid", "Job.batch \"j\" is invalid: spec.template: Invalid value: ")?;
            answer.fails_with(422, "Invalid", ": field is immutable")
        }),
        row("the spec of a PersistentVolumeClaim is immutable", "facts §4", |api| async move {
            let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
            api.create(api.at("v1", "persistentvolumeclaims"), &json!({"metadata": {"name": "p"}, "spec": spec}))
                .await?;

            let path = format!("{}/p", api.at("v1", "persistentvolumeclaims"));
            let answer = api.patch(path, MERGE, &json!({"spec": {"accessModes": ["ReadWriteMany"]}})).await?;

            let text = "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
            answer.fails_with(422, "Invalid", &format!("PersistentVolumeClaim \"p\" is invalid: {text}"))
        }),
    ]
}
