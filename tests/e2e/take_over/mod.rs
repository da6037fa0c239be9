//! Processes or their API server start and stop, and no effect is lost or doubled. Start reading at `replicas.rs`.

mod api_server;
mod load;
mod measure;
mod ready;
mod replicas;
mod restarts;

use serde_json::{Value, json};

const NAMESPACE: &str = "take-over";

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

fn elected() -> Value {
    let mut config = all_controllers();
    config["leaderElection"] = json!({
        "leaderElect": true, "resourceNamespace": NAMESPACE,
        "leaseDuration": "5s", "renewDeadline": "3s", "retryPeriod": "1s",
    });
    config
}
