//! Deploys a hosted instance as gardenlet does (spec 71 §3, §6.4, §8).

use anyhow::{Context, Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use gardener_resource_manager::webhooks::registration::{
    Circumstances, Deployment, RegisteredCluster, RegistrationEntry, configuration,
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Landscape, NAME, NAMESPACE, condition, kubelet::issue, rendered};
use crate::{
    objects::{bundles, core, managed_resource, secret},
    support::Authority,
};

pub(super) const ACCESS: &str = "shoot-access-gardener-resource-manager";
pub(super) const CORE: &str = "shoot-core-gardener-resource-manager";
pub(super) const BINDING: &str = "gardener.cloud:target:resource-manager";
const RENEW: &str = "serviceaccount.resources.gardener.cloud/token-renew-timestamp";
const BOOTSTRAP: &str = "shoot-access-gardener-resource-manager-bootstrap";

/// How an instance reaches its target cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Credentials {
    /// A certificate in the kubeconfig, for the first minutes.
    Bootstrap,
    /// A token in a file beside the kubeconfig.
    Token,
}

pub(super) struct Gardenlet<'a> {
    landscape: &'a Landscape,
    /// Authorities of the serving certificate: the present one is the last.
    authorities: Vec<Authority>,
    roll_outs: u32,
}

/// What a roll-out is to change.
#[derive(Debug, Clone, Copy)]
pub(super) struct RollOut<'a> {
    pub(super) credentials: Credentials,
    /// Arguments that an extension adds.
    pub(super) arguments: &'a [&'a str],
    /// Texts of the rendered objects and what replaces them.
    pub(super) settings: &'a [(&'a str, &'a str)],
}

impl<'a> Gardenlet<'a> {
    pub(super) fn new(landscape: &'a Landscape) -> Result<Self> {
        let mut gardenlet = Self { landscape, authorities: Vec::new(), roll_outs: 0 };
        gardenlet.rotate_authority()?;
        Ok(gardenlet)
    }

    pub(super) fn with_authority(landscape: &'a Landscape, authority: Authority) -> Self {
        Self { landscape, authorities: vec![authority], roll_outs: 0 }
    }

    pub(super) fn rotate_authority(&mut self) -> Result<()> {
        let name = format!("ca-{}", self.authorities.len());
        self.authorities.push(Authority::create(self.landscape.cluster.folder(), &name)?);
        Ok(())
    }

    /// The authority of the instances that are rolled out from now on.
    pub(super) fn authority(&self) -> Result<&Authority> {
        self.authorities.last().context("an authority")
    }

    /// Deploys everything in the order of spec 71 §4. Returns the Deployment.
    pub(super) async fn roll_out(&mut self, roll_out: RollOut<'_>) -> Result<Value> {
        let (deployment, objects) = self.render(roll_out)?;
        for object in &objects {
            self.landscape.apply(object).await?;
        }
        Ok(deployment)
    }

    /// Returns the Deployment, and all objects that the API server serves, the Deployment included.
    pub(super) fn render(&mut self, roll_out: RollOut<'_>) -> Result<(Value, Vec<Value>)> {
        self.roll_outs += 1;
        let suffix = format!("{:08x}", self.roll_outs);
        let text =
            roll_out.settings.iter().fold(rendered::HOSTED.to_owned(), |text, (from, to)| text.replace(from, to));
        ensure!(
            roll_out.settings.iter().all(|(from, _)| rendered::HOSTED.contains(from)),
            "a setting that nothing has"
        );
        let mut objects = rendered::on_free_ports(&text, &suffix)?;
        // No operator of Prometheus serves these here.
        objects.retain(|object| object["kind"] != "ServiceMonitor");
        let deployment = rendered::of_kind_mut(&mut objects, "Deployment")?;
        let pod = &mut deployment["spec"]["template"]["spec"];
        let arguments = pod["containers"][0]["args"].as_array_mut().context("arguments")?;
        arguments.extend(roll_out.arguments.iter().map(|argument| json!(argument)));
        let mut secrets = vec![self.server(&suffix)?, self.generic_kubeconfig(&suffix)];
        if roll_out.credentials == Credentials::Bootstrap {
            secrets.push(self.bootstrap_kubeconfig()?);
            replace_named(&mut pod["volumes"], |_| {
                json!({
                    "name": "kubeconfig-bootstrap", "secret": { "secretName": BOOTSTRAP, "defaultMode": 420 }
                })
            })?;
            replace_named(
                &mut pod["containers"][0]["volumeMounts"],
                |mount| json!({ "name": "kubeconfig-bootstrap", "mountPath": mount["mountPath"], "readOnly": true }),
            )?;
        }
        let deployment = deployment.clone();
        secrets.extend(objects);
        secrets.extend(self.shoot_core(&suffix)?);
        Ok((deployment, secrets))
    }

    /// spec 71 §8: the condition that gardenlet waits for within two minutes.
    pub(super) async fn is_bootstrapped(&self) -> Result<()> {
        let access = self.landscape.admin.get(&access()).await?;
        let renewed = access["metadata"]["annotations"][RENEW].as_str().context("no renew timestamp")?;
        ensure!(
            renewed.parse::<Timestamp>()? > kit::Clock::system_wall(),
            "the token should have been renewed at {renewed}"
        );
        ensure!(access["data"]["token"].as_str().is_some_and(|token| !token.is_empty()), "no token");
        self.is_healthy().await
    }

    pub(super) async fn is_healthy(&self) -> Result<()> {
        let bundle = self.landscape.admin.get(&format!("{}/{CORE}", bundles(NAMESPACE))).await?;
        for kind in ["ResourcesApplied", "ResourcesHealthy"] {
            let found = condition(&bundle, kind).with_context(|| format!("no condition {kind}"))?;
            ensure!(found.0 == "True", "{kind}: {found:?}");
        }
        let (observed, generation) = (&bundle["status"]["observedGeneration"], &bundle["metadata"]["generation"]);
        ensure!(observed == generation, "generation {generation}, observed {observed}");
        Ok(())
    }

    /// Writes the token of a new ServiceAccount in the target, as the program's own token requestor would.
    pub(super) async fn grant_access(&self) -> Result<()> {
        let metadata = json!({ "namespace": "kube-system", "name": NAME });
        self.landscape.apply(&json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata })).await?;
        let token = issue(self.landscape, "kube-system", NAME, 86_400).await?;
        self.write_token(&token).await
    }

    pub(super) async fn write_token(&self, token: &str) -> Result<()> {
        let renewal = kit::Clock::system_wall() + jiff::SignedDuration::from_hours(19);
        let patch = json!({
            "metadata": { "annotations": { RENEW: renewal.strftime("%Y-%m-%dT%H:%M:%SZ").to_string() } },
            "data": { "token": BASE64_STANDARD.encode(token) }
        });
        self.landscape.admin.merge(&access(), &patch).await.map(drop)
    }

    pub(super) async fn token(&self) -> Result<String> {
        let access = self.landscape.admin.get(&access()).await?;
        let token = BASE64_STANDARD.decode(access["data"]["token"].as_str().context("a token")?)?;
        Ok(String::from_utf8(token)?)
    }

    /// The kubeconfig that names the file of the token.
    pub(super) fn kubeconfig_of_a_token(&self) -> Value {
        self.kubeconfig(&json!({ "tokenFile": "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/token" }))
    }

    fn server(&self, suffix: &str) -> Result<Value> {
        let [certificate, key] = self.authority()?.serving_pair()?;
        let data = json!({ "tls.crt": certificate, "tls.key": key });
        Ok(secret_of(&format!("{NAME}-server-{suffix}"), &data))
    }

    fn generic_kubeconfig(&self, suffix: &str) -> Value {
        let data = json!({ "kubeconfig": self.kubeconfig_of_a_token().to_string() });
        secret_of(&format!("generic-token-kubeconfig-{suffix}"), &data)
    }

    fn bootstrap_kubeconfig(&self) -> Result<Value> {
        let subject = "/O=system:masters/CN=gardener.cloud:system:gardener-resource-manager";
        let [certificate, key] = self.landscape.cluster.client_authority().client_pair(subject)?;
        let user = json!({
            "client-certificate-data": BASE64_STANDARD.encode(certificate),
            "client-key-data": BASE64_STANDARD.encode(key)
        });
        Ok(secret_of(BOOTSTRAP, &json!({ "kubeconfig": self.kubeconfig(&user).to_string() })))
    }

    fn kubeconfig(&self, user: &Value) -> Value {
        let authority = std::fs::read(self.landscape.cluster.authority()).unwrap_or_default();
        let cluster = json!({
            "server": self.landscape.cluster.url(), "certificate-authority-data": BASE64_STANDARD.encode(authority)
        });
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": NAMESPACE,
            "clusters": [{ "name": NAMESPACE, "cluster": cluster }],
            "users": [{ "name": NAMESPACE, "user": user }],
            "contexts": [{ "name": NAMESPACE, "context": { "cluster": NAMESPACE, "user": NAMESPACE } }]
        })
    }

    /// The ManagedResource with the program's own registration and its own rights.
    fn shoot_core(&self, suffix: &str) -> Result<[Value; 2]> {
        let place = RegisteredCluster::HostedShoot;
        let bundle = self.authorities.iter().map(Authority::pem).collect::<Result<Vec<_>>>()?.concat();
        let circumstances = Circumstances { bin_packing: true, match_label_keys_off: true, ..Circumstances::default() };
        let mut enabled = place.entries(&circumstances);
        // Gardener does not deploy it.
        enabled.remove(&RegistrationEntry::TokenInvalidator);
        let registration = configuration(&Deployment {
            mode: place.mode(),
            client: place.client(),
            prefix: String::new(),
            namespace: NAMESPACE.to_owned(),
            enabled,
            ca_bundle: BASE64_STANDARD.encode(bundle),
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": { "name": BINDING, "annotations": { "resources.gardener.cloud/keep-object": "true" } },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
            "subjects": [{ "kind": "ServiceAccount", "name": NAME, "namespace": "kube-system" }]
        });
        let content = format!("managedresource-{CORE}-{suffix}");
        let mut manifests = secret(NAMESPACE, &content, &[binding, registration]);
        manifests["immutable"] = json!(true);
        manifests["metadata"]["labels"] = json!({ "resources.gardener.cloud/garbage-collectable-reference": "true" });
        let mut bundle = managed_resource(NAMESPACE, CORE);
        bundle["metadata"]["labels"] = json!({ "origin": "gardener" });
        bundle["spec"] = json!({
            "secretRefs": [{ "name": content }], "keepObjects": false,
            "injectLabels": { "shoot.gardener.cloud/no-cleanup": "true" }
        });
        Ok([manifests, bundle])
    }
}

pub(super) fn access() -> String {
    format!("{}/{ACCESS}", core(NAMESPACE, "secrets"))
}

fn secret_of(name: &str, data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": NAMESPACE, "name": name }, "stringData": data
    })
}

/// Replaces the entry of the generic kubeconfig.
fn replace_named(list: &mut Value, new: impl FnOnce(&Value) -> Value) -> Result<()> {
    let entries = list.as_array_mut().context("a list")?;
    let entry = entries.iter_mut().find(|entry| entry["name"] == "kubeconfig").context("the kubeconfig")?;
    *entry = new(entry);
    Ok(())
}
