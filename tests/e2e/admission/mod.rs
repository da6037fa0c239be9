//! The webhooks, called by a real API server with the program's own registration.

mod certificate;
mod high_availability;
mod pods;
mod validating;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use gardener_resource_manager::webhooks::registration::{Client, Deployment, Mode, RegistrationEntry, configuration};
use serde_json::{Value, json};

use crate::{
    objects::{Admin, core},
    support::{ControlPlane, Grm, Options, eventually},
};

const NAMESPACE: &str = "admission";
const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const LIMIT: Duration = Duration::from_secs(30);

const ROLE: &str = "gardener.cloud/role";
const CONSIDER: &str = "high-availability-config.resources.gardener.cloud/consider";

struct Rig {
    admin: Admin,
    grm: Grm,
    _cluster: ControlPlane,
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "namespace": NAMESPACE, "name": name },
        "spec": { "serviceAccountName": "app", "containers": [{ "name": "c", "image": "i" }] }
    })
}

fn namespace(name: &str, labels: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": labels } })
}

/// A dry run creates nothing, but calls webhooks.
fn dry(collection: &str) -> String {
    format!("{collection}?dryRun=All")
}

impl Rig {
    async fn start() -> Result<Self> {
        Self::with(json!({
            "projectedTokenMount": { "enabled": true, "expirationSeconds": 43200 },
            "highAvailabilityConfig": { "enabled": true },
            "seccompProfile": { "enabled": true },
            "vpaInPlaceUpdates": { "enabled": true },
        }))
        .await
    }

    async fn with(webhooks: Value) -> Result<Self> {
        let cluster = ControlPlane::start(Options::default()).await?;
        let admin = Admin::prepare(&cluster, "bundles").await?;
        let grm = Grm::start(&cluster, json!({ "webhooks": webhooks })).await?;
        let labels = json!({ ROLE: "shoot", CONSIDER: "true" });
        admin.create("/api/v1/namespaces", &namespace(NAMESPACE, &labels)).await?;
        Ok(Self { admin, grm, _cluster: cluster })
    }

    /// The deployed registration with another address: there is no DNS for its Service.
    fn registration(&self, enabled: &[RegistrationEntry], ca_bundle: &str) -> Value {
        let mut registration = configuration(&self.deployment(enabled, ca_bundle));
        self.address(&mut registration);
        registration
    }

    fn deployment(&self, enabled: &[RegistrationEntry], ca_bundle: &str) -> Deployment {
        Deployment {
            mode: Mode::Runtime,
            client: Client::Service,
            prefix: String::new(),
            namespace: NAMESPACE.to_owned(),
            enabled: enabled.iter().copied().collect(),
            ca_bundle: BASE64_STANDARD.encode(ca_bundle),
        }
    }

    fn address(&self, registration: &mut Value) {
        for entry in registration["webhooks"].as_array_mut().into_iter().flatten() {
            let config = &mut entry["clientConfig"];
            let path = config["service"]["path"].as_str().unwrap_or_default();
            let url = format!("https://127.0.0.1:{}{path}", self.grm.webhook_port());
            *config = json!({ "url": url, "caBundle": config["caBundle"] });
        }
    }

    /// Registers, and waits until the registration is in force: API servers learn of it a little later.
    async fn register(&self, enabled: &[RegistrationEntry], probe: Probe) -> Result<()> {
        let registration = self.registration(enabled, &self.grm.authority().pem()?);
        self.admin.create(CONFIGURATIONS, &registration).await?;
        self.in_force(probe).await
    }

    async fn in_force(&self, probe: Probe) -> Result<()> {
        let collection = dry(&probe.collection);
        eventually("the API server calls the webhooks", LIMIT, async || {
            let created = self.admin.create(&collection, &probe.object).await?;
            let found = created.pointer(probe.pointer).unwrap_or(&Value::Null);
            ensure!(*found == probe.expected, "{} is {found}", probe.pointer);
            Ok(())
        })
        .await
    }

    async fn calls(&self, entry: RegistrationEntry) -> Result<u64> {
        let text = self.grm.metrics("/metrics").await?.body;
        let of_path = format!("webhook=\"{}\"", entry.path());
        let series = text
            .lines()
            .filter(|line| line.starts_with("controller_runtime_webhook_requests_total{") && line.contains(&of_path));
        let values = series.map(|line| line.rsplit(' ').next().unwrap_or_default());
        let counts = values.map(|value| value.parse::<u64>().with_context(|| format!("the count {value:?}")));
        let counts: Vec<u64> = counts.collect::<Result<_>>()?;
        ensure!(!counts.is_empty(), "no requests of {of_path} are counted");
        Ok(counts.iter().sum())
    }
}

/// An object that shows whether the API server calls a webhook.
struct Probe {
    collection: String,
    object: Value,
    pointer: &'static str,
    expected: Value,
}
