//! Life in a landscape of Gardener (spec 71): the built binaries start from the objects that Gardener's deployers render,
//! with exactly their rights, and what happens to such instances happens to them. The API server's audit log is the judge.
//! * `objects/`: the objects as deployers render them. `rendered.rs` reads them, `gardenlet.rs` deploys an instance.
//! * `kubelet.rs`: starts the container of a Deployment in a root folder of its own (`container.sh`), with volumes from
//!   the API server.
//! * `garden.rs`: gardener-controller-manager, by spec 80.
//! * `hosted.rs`, `credentials.rs`, `self_hosted.rs`, `callers.rs`: the scenarios of spec 71. Start at `hosted.rs`.
//! * `logs.rs`, `scrape.rs`: the rules of Gardener's log parser and ServiceMonitor, evaluated.
//! * `swap.rs`: Lease and status of another implementation. `definitions.rs`: other versions of the kind.
//!
//! Scenarios 22, 23 and 24 are shown in `tests/charts`, 27 in `tests/image`.

mod callers;
mod credentials;
mod definitions;
mod garden;
mod gardenlet;
mod hosted;
mod kubelet;
mod logs;
mod rendered;
mod scrape;
mod self_hosted;
mod swap;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};

use self::rendered::path;
use crate::{
    objects::{Admin, bundles, core},
    support::{ControlPlane, Options, eventually},
};

const NAMESPACE: &str = "shoot--local--web";
const NAME: &str = "gardener-resource-manager";
/// The user of a hosted instance in its source cluster.
const SOURCE_USER: &str = "system:serviceaccount:shoot--local--web:gardener-resource-manager";
/// The user of a hosted instance in its target cluster.
const TARGET_USER: &str = "system:serviceaccount:kube-system:gardener-resource-manager";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const LIMIT: Duration = Duration::from_secs(60);
/// spec 71 §4 allows 5 s, and a busy machine gets another.
const STOP_LIMIT: Duration = Duration::from_secs(6);
/// "Within a few seconds."
const FAILOVER_LIMIT: Duration = Duration::from_secs(5);

/// A cluster that is a seed and the shoot's own at once: the users tell the two apart.
struct Landscape {
    cluster: ControlPlane,
    admin: Admin,
}

impl Landscape {
    async fn start(options: Options) -> Result<Self> {
        let cluster = ControlPlane::start(options).await?;
        let admin = Admin::prepare(&cluster, NAMESPACE).await?;
        let landscape = Self { cluster, admin };
        for namespace in ["garden", "foo"] {
            landscape
                .apply(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } }))
                .await?;
        }
        // As the controllers of Kubernetes do it.
        let authority = std::fs::read_to_string(landscape.cluster.authority())?;
        for namespace in [NAMESPACE, "garden", "kube-system"] {
            let metadata = json!({ "namespace": namespace, "name": "kube-root-ca.crt" });
            let data = json!({ "ca.crt": authority });
            let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data });
            landscape.apply(&object).await?;
        }
        landscape.define_machines().await?;
        Ok(landscape)
    }

    async fn define_machines(&self) -> Result<()> {
        let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": "machines.machine.sapcloud.io" },
            "spec": {
                "group": "machine.sapcloud.io", "scope": "Namespaced",
                "names": { "kind": "Machine", "listKind": "MachineList", "plural": "machines", "singular": "machine" },
                "versions": [{
                    "name": "v1alpha1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema }
                }]
            }
        });
        self.admin.create(DEFINITIONS, &definition).await?;
        let machines = "/apis/machine.sapcloud.io/v1alpha1/machines";
        eventually("Machines are served", LIMIT, async || self.admin.list(machines).await.map(drop)).await
    }

    /// Creates the object or merges it into the live one, as deployers do.
    async fn apply(&self, object: &Value) -> Result<()> {
        let (collection, path) = path(object)?;
        let (code, answer) = self.admin.send(Method::POST, &collection, Some(object)).await?;
        if code == 409 {
            return self.admin.merge(&path, object).await.map(drop);
        }
        ensure!(code == 201, "POST {collection}: {code} {answer}");
        Ok(())
    }

    async fn delete(&self, path: &str) -> Result<()> {
        let (code, answer) = self.admin.send(Method::DELETE, path, None).await?;
        ensure!(code == 200, "DELETE {path}: {code} {answer}");
        Ok(())
    }

    /// Waits until nothing is served at `path`.
    async fn gone(&self, path: &str, limit: Duration) -> Result<()> {
        eventually(&format!("{path} is gone"), limit, async || {
            let (code, answer) = self.admin.send(Method::GET, path, None).await?;
            ensure!(code == 404, "{code} {answer}");
            Ok(())
        })
        .await
    }

    /// Writes a ManagedResource of one ConfigMap `kube-system/<name>` with this value.
    async fn bundle(&self, namespace: &str, name: &str, class: Option<&str>, value: &str) -> Result<()> {
        let manifest = config_map(name, value);
        self.apply(&crate::objects::secret(namespace, name, &[manifest])).await?;
        let mut bundle = crate::objects::managed_resource(namespace, name);
        bundle["spec"]["class"] = json!(class);
        self.apply(&bundle).await
    }

    /// Waits until the ConfigMap of such a ManagedResource has this value.
    async fn effect(&self, name: &str, value: &str, limit: Duration) -> Result<()> {
        let path = format!("{}/{name}", core("kube-system", "configmaps"));
        eventually(&format!("{name} is applied"), limit, async || {
            let found = self.admin.get(&path).await?;
            ensure!(found["data"]["k"] == value, "{}", found["data"]);
            Ok(())
        })
        .await
    }

    async fn lease(&self, namespace: &str) -> Result<Value> {
        Ok(self.admin.get(&lease(namespace)).await?["spec"].take())
    }

    async fn bundle_condition(&self, namespace: &str, name: &str, kind: &str) -> Result<(String, String, String)> {
        let bundle = self.admin.get(&format!("{}/{name}", bundles(namespace))).await?;
        condition(&bundle, kind).with_context(|| format!("{name} has no condition {kind}: {}", bundle["status"]))
    }

    /// The requests of a user that were refused, without patches of Events, which may be (spec 71 §14, trap 3).
    fn refused(&self, user: &str) -> Result<Vec<String>> {
        let refused = self.cluster.audit_of(user, 0)?.into_iter().filter(|event| {
            let is_event_patch = event["verb"] == "patch" && event["objectRef"]["resource"] == "events";
            event["responseStatus"]["code"] == 403 && !is_event_patch
        });
        Ok(refused.map(|event| format!("{} {}", event["verb"], event["requestURI"])).collect())
    }
}

fn lease(namespace: &str) -> String {
    format!("{LEASES}/{namespace}/leases/{NAME}")
}

fn config_map(name: &str, value: &str) -> Value {
    let metadata = json!({ "namespace": "kube-system", "name": name });
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": { "k": value } })
}

/// Returns status, reason and message of a condition.
fn condition(bundle: &Value, kind: &str) -> Option<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let conditions = bundle["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == kind)?;
    Some((text(&found["status"]), text(&found["reason"]), text(&found["message"])))
}
