//! Rolls out Deployments, because the in-memory cluster has neither kube-controller-manager nor kubelets: Pods run, and
//! the status says so. An image with the tag [`MISSING_TAG`] cannot be pulled.

use std::time::Duration;

use cluster::object::field_mut;
use serde_json::{Value, json};
use sim::Sim;
use tokio::time::sleep;

/// The tag of an image that cannot be pulled.
pub(super) const MISSING_TAG: &str = "missing";

const DEPLOYMENTS: &str = "deployments.apps";
const TICK: Duration = Duration::from_millis(100);
const UNDER_WAY: &str = "ReplicaSetUpdated";

/// The next step of a roll-out.
#[derive(Debug, Clone, PartialEq)]
struct RolloutStep {
    namespace: String,
    name: String,
    status: Value,
    pods: Vec<Value>,
}

/// Takes a step of each roll-out now and then, for ever.
pub(super) async fn roll_out(sim: Sim) {
    let mut seen = 0;
    loop {
        let revision = sim.revision();
        if revision != seen {
            steps(&sim).for_each(|step| take(&sim, step));
        }
        seen = revision;
        sleep(TICK).await;
    }
}

/// Whether all Deployments are rolled out, or have failed for good.
pub(super) fn are_done(sim: &Sim) -> bool {
    steps(sim).next().is_none()
}

fn steps(sim: &Sim) -> impl Iterator<Item = RolloutStep> {
    sim.look_at_all(DEPLOYMENTS, next_step).into_iter().flatten()
}

fn take(sim: &Sim, step: RolloutStep) {
    let RolloutStep { namespace, name, status, pods } = step;
    for pod in pods {
        // A Pod without a place to run is the failure of a roll-out, not of the demonstration.
        sim.put(pod).ok();
    }
    sim.edit(DEPLOYMENTS, &namespace, &name, |deployment| *field_mut(deployment, &["status"]) = status);
}

fn next_step(deployment: &Value) -> Option<RolloutStep> {
    let (metadata, status) = (&deployment["metadata"], &deployment["status"]);
    let is_observed = status["observedGeneration"] == metadata["generation"];
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let is_under_way = conditions.any(|condition| condition["reason"] == UNDER_WAY);
    if metadata["deletionTimestamp"].is_string() || (is_observed && !is_under_way) {
        return None;
    }
    let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
    let (namespace, name) = (text("namespace"), text("name"));
    let replicas = deployment["spec"]["replicas"].as_u64().unwrap_or(1);
    let available = status["availableReplicas"].as_u64().unwrap_or_default();
    let (pods, status) = if !is_observed {
        let progress = ("True", UNDER_WAY, format!("ReplicaSet \"{name}\" is progressing."));
        (Vec::new(), new_status(deployment, available, 0, progress))
    } else if is_missing(deployment) {
        let text = format!("ReplicaSet \"{name}\" has timed out progressing.");
        (Vec::new(), new_status(deployment, 0, 0, ("False", "ProgressDeadlineExceeded", text)))
    } else {
        let pods = (0..replicas).map(|number| pod(deployment, &namespace, &format!("{name}-{number}"))).collect();
        let text = format!("ReplicaSet \"{name}\" has successfully progressed.");
        (pods, new_status(deployment, replicas, replicas, ("True", "NewReplicaSetAvailable", text)))
    };
    Some(RolloutStep { namespace, name, status, pods })
}

fn is_missing(deployment: &Value) -> bool {
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array();
    let mut images = containers.into_iter().flatten().filter_map(|container| container["image"].as_str());
    images.any(|image| image.rsplit(':').next() == Some(MISSING_TAG))
}

fn new_status(deployment: &Value, available: u64, updated: u64, progress: (&str, &str, String)) -> Value {
    let (is_available, why, text) = if available > 0 || deployment["spec"]["replicas"] == 0 {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    json!({
        "observedGeneration": deployment["metadata"]["generation"],
        "replicas": available.max(updated), "updatedReplicas": updated,
        "readyReplicas": available, "availableReplicas": available,
        "conditions": [
            {"type": "Available", "status": is_available, "reason": why, "message": text},
            {"type": "Progressing", "status": progress.0, "reason": progress.1, "message": progress.2},
        ],
    })
}

fn pod(deployment: &Value, namespace: &str, name: &str) -> Value {
    let (template, owner) = (&deployment["spec"]["template"], &deployment["metadata"]);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": namespace, "labels": template["metadata"]["labels"],
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": owner["name"], "uid": owner["uid"],
                "controller": true,
            }],
        },
        "spec": template["spec"],
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(tag: &str) -> Value {
        json!({
            "metadata": {"name": "web", "namespace": "n", "uid": "u", "generation": 3},
            "spec": {"replicas": 2, "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": format!("example.com/web:{tag}")}]},
            }},
        })
    }

    /// Takes all steps. Returns the number of steps and of Pods, and the last status.
    fn rolled_out(mut deployment: Value) -> (usize, usize, Value) {
        let (mut steps, mut pods) = (0, 0);
        while let Some(step) = next_step(&deployment) {
            deployment["status"] = step.status;
            steps += 1;
            pods += step.pods.len();
        }
        (steps, pods, deployment["status"].take())
    }

    #[test]
    fn rollout_ends_with_pods_and_an_available_deployment() {
        let (steps, pods, status) = rolled_out(deployment("1.0.0"));

        assert_eq!((steps, pods), (2, 2));
        assert_eq!((&status["observedGeneration"], &status["availableReplicas"]), (&json!(3), &json!(2)));
        assert_eq!(status["conditions"][0]["status"], "True");
        assert_eq!(status["conditions"][1]["reason"], "NewReplicaSetAvailable");
    }

    #[test]
    fn rollout_of_a_missing_image_fails_for_good() {
        let (steps, pods, status) = rolled_out(deployment(MISSING_TAG));

        assert_eq!((steps, pods), (2, 0));
        assert_eq!(status["conditions"][0]["status"], "False");
        assert_eq!(status["conditions"][1]["reason"], "ProgressDeadlineExceeded");
    }

    #[test]
    fn rollout_keeps_the_old_pods_available_meanwhile() {
        let mut deployment = deployment("1.0.0");
        deployment["status"] = rolled_out(deployment.clone()).2;
        deployment["metadata"]["generation"] = 4.into();

        let step = next_step(&deployment).unwrap();

        assert_eq!((&step.status["availableReplicas"], &step.status["updatedReplicas"]), (&json!(2), &json!(0)));
        assert!(next_step(&deployment.clone()).is_some());
        deployment["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        assert_eq!(next_step(&deployment), None);
    }
}
