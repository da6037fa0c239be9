//! Scenarios of spec 10 about the parts of the live object that an update keeps.

use serde_json::{Value, json};

use crate::{
    objects::{annotated, object, stateful_set, with, workload},
    world::{NAMESPACE, World, config_map, seconds, world},
};

const DEPLOYMENTS: &str = "deployments.apps";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/shoot/deployments/web";
const MANAGED_BY: &str = "resources.gardener.cloud/managed-by";

fn labelled(labels: Value) -> Value {
    with(config_map("a", "v"), "/metadata/labels", labels)
}

fn labels(world: &World) -> Value {
    world.config_map("a").expect("it exists")["metadata"]["labels"].clone()
}

fn live(world: &World, resource: &str, name: &str) -> Value {
    world.sim.object(resource, NAMESPACE, name).expect("it exists")
}

/// spec 10 scenario 10.
#[test]
fn labels_of_users_stay_and_managed_labels_are_reset_and_removed() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[labelled(json!({ "a": "1" }))]);
        world.applied("one").await;
        seconds(2).await;
        world.sim.edit("configmaps", NAMESPACE, "a", |live| {
            live["metadata"]["labels"]["x"] = json!("1");
            live["metadata"]["labels"]["a"] = json!("edited");
        });
        seconds(2).await;
        assert_eq!(labels(&world), json!({ "a": "1", "x": "1", MANAGED_BY: "gardener" }));

        world.secret("one", &[labelled(json!({}))]);
        seconds(2).await;
        assert_eq!(labels(&world), json!({ "x": "1", MANAGED_BY: "gardener" }));
    });
}

/// spec 10 scenario 10, its end.
#[test]
fn label_that_a_user_changes_while_it_leaves_the_manifest_stays() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[labelled(json!({ "a": "1", "b": "1" }))]);
        world.applied("one").await;
        seconds(2).await;
        world.secret("one", &[labelled(json!({}))]);
        world.sim.edit("configmaps", NAMESPACE, "a", |live| live["metadata"]["labels"]["a"] = json!("edited"));
        seconds(200).await;

        assert_eq!(labels(&world), json!({ "a": "edited", MANAGED_BY: "gardener" }));
    });
}

/// spec 10 scenario 11.
#[test]
fn forced_labels_replace_those_of_users() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[labelled(json!({ "a": "1" }))]);
        world.applied("one").await;
        seconds(2).await;
        let add = || world.sim.edit("configmaps", NAMESPACE, "a", |live| live["metadata"]["labels"]["x"] = json!("1"));
        add();
        seconds(130).await;
        assert_eq!(labels(&world)["x"], "1", "they are not forced yet");

        world.patch_bundle("one", json!({ "spec": { "forceOverwriteLabels": true } })).await;
        seconds(2).await;
        assert_eq!(labels(&world), json!({ "a": "1", MANAGED_BY: "gardener" }));
        add();
        seconds(65).await;
        assert_eq!(labels(&world), json!({ "a": "1", MANAGED_BY: "gardener" }));
    });
}

/// spec 10 scenario 12.
#[test]
fn stale_reference_annotations_are_removed_and_other_annotations_stay() {
    let stale = "reference.resources.gardener.cloud/secret-aaaaaaaa";
    let fresh = "reference.resources.gardener.cloud/secret-bbbbbbbb";
    world(1, |world| async move {
        world.start().await;
        let manifest = with(workload("Deployment", "web"), "/metadata/annotations", json!({ fresh: "b" }));
        world.bundle("one", &[manifest]);
        world.applied("one").await;
        seconds(2).await;
        let annotations = json!({ stale: "a", "example.org/unknown": "u" });
        world.ask("PATCH", DEPLOYMENT, Some(json!({ "metadata": { "annotations": annotations } }))).await.unwrap();
        seconds(65).await;

        let annotations = live(&world, DEPLOYMENTS, "web")["metadata"]["annotations"].clone();
        assert_eq!(annotations[stale], Value::Null);
        assert_eq!((&annotations[fresh], &annotations["example.org/unknown"]), (&json!("b"), &json!("u")));
    });
}

/// spec 10 scenario 13.
#[test]
fn labels_are_injected_into_objects_their_pods_and_their_claims_but_not_into_jobs_of_cron_jobs() {
    let job = json!({ "spec": { "template": workload("Job", "j")["spec"]["template"] } });
    let cron_job =
        object("batch/v1", "CronJob", "job", json!({ "spec": { "schedule": "@daily", "jobTemplate": job } }));
    let cron_job = with(cron_job, "/spec/jobTemplate/spec/template/spec/restartPolicy", json!("Never"));
    let spec = json!({ "injectLabels": { "foo": "bar", MANAGED_BY: "me" } });
    world(1, |world| async move {
        world.start().await;
        world.bundle_with("one", &[stateful_set("db", "1Gi"), cron_job], spec);
        world.applied("one").await;

        let injected = json!({ "foo": "bar", MANAGED_BY: "gardener" });
        let set = live(&world, "statefulsets.apps", "db");
        assert_eq!(set["metadata"]["labels"], injected);
        assert_eq!(set["spec"]["volumeClaimTemplates"][0]["metadata"]["labels"], injected);
        let pods = json!({ "app": "db", "foo": "bar", MANAGED_BY: "gardener" });
        assert_eq!(set["spec"]["template"]["metadata"]["labels"], pods);
        let cron_job = live(&world, "cronjobs.batch", "job");
        assert_eq!(cron_job["metadata"]["labels"], injected);
        let template = cron_job["spec"]["jobTemplate"].to_string();
        assert!(!template.contains("foo") && !template.contains(MANAGED_BY), "{template}");
    });
}

/// spec 10 scenario 15.
#[test]
fn preserved_resources_are_cpu_and_memory_of_containers_alone() {
    let containers = json!([{ "name": "c", "image": "i", "resources": {
        "requests": { "cpu": "20m", "ephemeral-storage": "1Gi" }, "limits": { "memory": "1Gi" }
    } }]);
    let init = json!([{ "name": "init", "image": "i", "resources": { "requests": { "cpu": "10m" } } }]);
    let manifest = with(workload("Deployment", "web"), "/spec/template/spec/containers", containers);
    let manifest = with(manifest, "/spec/template/spec/initContainers", init);
    let manifest = annotated(manifest, "preserve-resources", "true");
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[manifest]);
        world.applied("one").await;
        seconds(2).await;
        let own = json!({ "requests": { "cpu": "40m", "ephemeral-storage": "2Gi" } });
        let pod = json!({
            "containers": [{ "name": "c", "image": "i", "resources": own }],
            "initContainers": [{ "name": "init", "image": "i", "resources": { "requests": { "cpu": "90m" } } }]
        });
        let patch = json!({ "spec": { "template": { "spec": pod } } });
        world.ask("PATCH", DEPLOYMENT, Some(patch)).await.unwrap();
        seconds(65).await;

        let pod = live(&world, DEPLOYMENTS, "web")["spec"]["template"]["spec"].clone();
        let resources = &pod["containers"][0]["resources"];
        assert_eq!(resources["requests"]["cpu"], "40m");
        assert_eq!(resources["requests"]["ephemeral-storage"], "1Gi");
        assert_eq!(resources["limits"], json!({ "memory": "1Gi" }));
        assert_eq!(pod["initContainers"][0]["resources"], json!({ "requests": { "cpu": "10m" } }));
    });
}

/// spec 10 scenario 16.
#[test]
fn rollout_restart_survives_all_later_reconciles() {
    let restart = json!({ "spec": { "template": { "metadata": { "annotations": {
        "kubectl.kubernetes.io/restartedAt": "2030-01-01T00:00:00Z"
    } } } } });
    let path = "/apis/apps/v1/namespaces/shoot/daemonsets/agent";
    world(1, |world| async move {
        let restarted = || {
            let template = live(&world, "daemonsets.apps", "agent")["spec"]["template"].clone();
            let at = template["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"].clone();
            (at, template["spec"]["containers"][0]["image"].clone())
        };
        world.start().await;
        world.bundle("one", &[workload("DaemonSet", "agent")]);
        world.applied("one").await;
        world.ask("PATCH", path, Some(restart)).await.unwrap();
        seconds(130).await;
        assert_eq!(restarted(), (json!("2030-01-01T00:00:00Z"), json!("i:1")));

        let image = "/spec/template/spec/containers/0/image";
        world.secret("one", &[with(workload("DaemonSet", "agent"), image, json!("i:2"))]);
        seconds(2).await;
        assert_eq!(restarted(), (json!("2030-01-01T00:00:00Z"), json!("i:2")));
    });
}

/// spec 10 scenario 17.
#[test]
fn service_keeps_its_node_port_and_address_until_it_has_none() {
    let service = |spec: Value| object("v1", "Service", "web", json!({ "spec": spec }));
    let ports = |port: u16, node_port: Option<u16>| {
        let mut port = json!({ "name": "http", "port": port, "protocol": "TCP", "targetPort": 80 });
        if let Some(node_port) = node_port {
            port["nodePort"] = json!(node_port);
        }
        json!([port])
    };
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[service(json!({ "type": "NodePort", "ports": ports(80, Some(30080)) }))]);
        world.applied("one").await;
        let address = live(&world, "services", "web")["spec"]["clusterIP"].clone();
        assert!(address.is_string(), "{address}");

        world.secret("one", &[service(json!({ "type": "NodePort", "ports": ports(8080, None) }))]);
        seconds(2).await;
        let spec = live(&world, "services", "web")["spec"].clone();
        assert_eq!(spec["ports"], ports(8080, Some(30080)));
        assert_eq!(spec["clusterIP"], address);

        world.secret("one", &[service(json!({ "type": "ExternalName", "externalName": "example.org" }))]);
        seconds(2).await;
        let spec = live(&world, "services", "web")["spec"].clone();
        assert!(world.is_applied("one"), "{:#?}", world.mr("one"));
        assert_eq!((&spec["type"], &spec["clusterIP"]), (&json!("ExternalName"), &Value::Null));
    });
}

/// spec 10 scenario 18.
#[test]
fn service_account_keeps_its_token_secrets_and_its_first_pull_secrets() {
    let account = |pull: &str, label: &str| {
        let account = object("v1", "ServiceAccount", "robot", json!({ "imagePullSecrets": [{ "name": pull }] }));
        with(account, "/metadata/labels", json!({ "l": label }))
    };
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[account("first", "1")]);
        world.applied("one").await;
        let token = json!([{ "name": "robot-token-abcde" }]);
        world.sim.edit("serviceaccounts", NAMESPACE, "robot", |live| live["secrets"] = token.clone());
        seconds(65).await;
        world.secret("one", &[account("second", "2")]);
        seconds(65).await;

        let live = live(&world, "serviceaccounts", "robot");
        assert_eq!(live["metadata"]["labels"]["l"], "2");
        assert_eq!((&live["secrets"], &live["imagePullSecrets"]), (&token, &json!([{ "name": "first" }])));
    });
}

/// spec 10 scenario 19.
#[test]
fn changed_volume_claim_template_is_not_updated() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &[stateful_set("db", "1Gi")]);
        world.applied("one").await;
        let before = live(&world, "statefulsets.apps", "db");
        world.secret("one", &[with(stateful_set("db", "2Gi"), "/spec/template/spec/containers/0/image", json!("i:2"))]);
        seconds(2).await;

        let after = live(&world, "statefulsets.apps", "db");
        assert!(world.is_applied("one"), "{:#?}", world.mr("one"));
        assert_eq!(after["spec"]["template"]["spec"]["containers"][0]["image"], "i:2");
        assert_eq!(after["spec"]["volumeClaimTemplates"], before["spec"]["volumeClaimTemplates"]);
    });
}
