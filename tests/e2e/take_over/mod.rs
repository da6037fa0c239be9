//! A process comes up and goes down, or its API server does, and no effect is lost or doubled.
//!
//! * `replicas.rs`: two replicas under load; the leader is stopped or killed again and again.
//! * `measure.rs`: when the next leader led and wrote, by the audit log.
//! * `api_server.rs`: the API server freezes, or is started anew.
//! * `restarts.rs`: it is started anew again and again, in the middle of deletions.
//! * `ready.rs`: how soon a process is ready.
//! * `load.rs`: a steady writer, and whether what it wrote has had its effect.
//!
//! Start reading at `replicas.rs`.

mod api_server;
mod load;
mod measure;
mod ready;
mod replicas;
mod restarts;

use serde_json::{Value, json};

const NAMESPACE: &str = "take-over";

/// Every controller, and the webhooks that belong to one.
fn all_controllers() -> Value {
    let on = json!({ "enabled": true });
    json!({
        "controllers": {
            "csrApprover": on, "garbageCollector": on, "networkPolicy": on, "istioClusterConfiguration": on,
            "nodeCriticalComponents": on, "nodeAgentReconciliationDelay": on, "tokenRequestor": on, "tokenInvalidator": on,
        },
        "webhooks": { "tokenInvalidator": on, "highAvailabilityConfig": on },
    })
}

/// [`all_controllers`], one replica at a time.
fn elected() -> Value {
    let mut config = all_controllers();
    config["leaderElection"] = json!({
        "leaderElect": true, "resourceNamespace": NAMESPACE,
        "leaseDuration": "5s", "renewDeadline": "3s", "retryPeriod": "1s",
    });
    config
}
