//! Tests of the pure rules.

mod events;
mod namespaces;
mod quotas;
mod roles;

use serde_json::{Value, json};

use super::{cached::Project, namespace::ProjectId};

const DEV: ProjectId<'static> = ProjectId { name: "dev", uid: "u1" };

fn project(spec: Value) -> Project {
    let metadata = json!({"name": "dev", "uid": "u1", "generation": 3, "resourceVersion": "7"});
    Project::of(&json!({"metadata": metadata, "spec": spec}))
}
