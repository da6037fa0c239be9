//! Fields that controllers of Kubernetes set survive updates of this program (spec 10 §12.7, §12.8a).

use serde_json::{Value, json};

use crate::{
    objects::{object, with},
    world::{NAMESPACE, World, seconds, world},
};

const UID: &str = "kubernetes.io/service-account.uid";

fn of_cluster(object: Value) -> Value {
    let mut object = object;
    object["metadata"].as_object_mut().expect("it has metadata").remove("namespace");
    object
}

fn volume() -> Value {
    of_cluster(object(
        "v1",
        "PersistentVolume",
        "volume",
        json!({ "spec": {
            "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "manual", "volumeMode": "Filesystem", "hostPath": { "path": "/data", "type": "" },
            "claimRef": { "namespace": NAMESPACE, "name": "data" }
        } }),
    ))
}

fn role() -> Value {
    let rule = json!({ "clusterRoleSelectors": [{ "matchLabels": { "aggregate": "true" } }] });
    let role = object("rbac.authorization.k8s.io/v1", "ClusterRole", "role", json!({ "aggregationRule": rule }));
    of_cluster(with(role, "/rules", json!([])))
}

fn secret() -> Value {
    let annotations = json!({ "kubernetes.io/service-account.name": "robot" });
    let secret = object("v1", "Secret", "robot-token", json!({ "type": "kubernetes.io/service-account-token" }));
    with(secret, "/metadata/annotations", annotations)
}

fn service() -> Value {
    let ports = json!([{ "port": 80, "protocol": "TCP", "targetPort": 80 }]);
    object("v1", "Service", "web", json!({ "spec": { "type": "LoadBalancer", "ports": ports } }))
}

fn all(label: &str) -> Vec<Value> {
    let labelled = |object| with(object, "/metadata/labels", json!({ "l": label }));
    [volume(), role(), secret(), service()].map(labelled).into()
}

fn filled_in(world: &World) -> Vec<Value> {
    let live = |resource, namespace, name| world.sim.object(resource, namespace, name).expect("it exists");
    let (volume, role) =
        (live("persistentvolumes", "", "volume"), live("clusterroles.rbac.authorization.k8s.io", "", "role"));
    let (secret, service) = (live("secrets", NAMESPACE, "robot-token"), live("services", NAMESPACE, "web"));
    vec![
        volume["spec"]["claimRef"].clone(),
        role["rules"].clone(),
        secret["data"].clone(),
        secret["metadata"]["annotations"][UID].clone(),
        service["spec"]["loadBalancerClass"].clone(),
    ]
}

fn fill_in(world: &World) {
    world.sim.edit("persistentvolumes", "", "volume", |live| {
        live["spec"]["claimRef"] = json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": NAMESPACE,
            "name": "data", "uid": "claim", "resourceVersion": "7" });
    });
    world.sim.edit("clusterroles.rbac.authorization.k8s.io", "", "role", |live| {
        live["rules"] = json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }]);
    });
    world.sim.edit("secrets", NAMESPACE, "robot-token", |live| {
        live["data"] = json!({ "token": "dA==", "ca.crt": "Yw==", "namespace": "bg==" });
        live["metadata"]["annotations"][UID] = json!("account");
    });
    world.sim.edit("services", NAMESPACE, "web", |live| live["spec"]["loadBalancerClass"] = json!("cloud"));
}

fn writes_of_objects(world: &World) -> Vec<String> {
    let names = ["volume", "role", "robot-token", "web"];
    world.writes().into_iter().filter(|write| names.iter().any(|name| write.ends_with(&format!(" {name}")))).collect()
}

/// spec 10 §12.8a
#[test]
fn controller_fields_survive_periods_restarts_and_updates_and_are_no_drift() {
    world(1, |world| async move {
        world.start().await;
        world.bundle("one", &all("1"));
        world.applied("one").await;
        seconds(2).await;
        fill_in(&world);
        let expected = filled_in(&world);
        world.sim.clear_requests();
        seconds(130).await;
        assert_eq!(filled_in(&world), expected, "after two periods");
        world.stop().await;
        world.start().await;
        seconds(130).await;
        assert_eq!(filled_in(&world), expected, "after a restart");
        assert_eq!(writes_of_objects(&world), [""; 0]);

        world.secret("one", &all("2"));
        seconds(5).await;

        assert!(world.is_applied("one"), "{:#?}", world.mr("one"));
        let volume = world.sim.object("persistentvolumes", "", "volume").expect("it exists");
        assert_eq!(volume["metadata"]["labels"]["l"], "2", "it was updated");
        assert_eq!(writes_of_objects(&world).len(), 4);
        assert_eq!(filled_in(&world), expected, "after an update");
    });
}
