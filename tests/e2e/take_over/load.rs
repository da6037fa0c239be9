//! A steady writer, and a check that everything it wrote has taken effect.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::{
    sync::oneshot,
    time::{MissedTickBehavior, interval},
};

use super::NAMESPACE;
use crate::objects::{Admin, bundles, core, is_applied, managed_resource, secret};

/// Interval between the writer's steps; it waits for nothing.
const PACE: Duration = Duration::from_millis(50);
/// Number of ManagedResources, and of Services. From then on they are changed in turn.
const NAMES: usize = 20;
const CONFIG_MAPS: usize = 3;
const PORT: usize = 8443;
const ALIAS_PORTS: usize = 10_000;

const ALIAS: &str = "networking.resources.gardener.cloud/from-probes-allowed-ports";
const ACCOUNT: &str = "serviceaccount.resources.gardener.cloud";
const POLICIES: &str = "/apis/networking.k8s.io/v1/namespaces/take-over/networkpolicies";

pub(super) struct Load {
    prefix: &'static str,
    /// Steps done; also the value that the last step wrote.
    step: usize,
    bundles: BTreeMap<String, Vec<usize>>,
    services: BTreeMap<String, Vec<usize>>,
    tokens: BTreeSet<String>,
}

impl Load {
    pub(super) fn new(prefix: &'static str) -> Self {
        Self { prefix, step: 0, bundles: BTreeMap::new(), services: BTreeMap::new(), tokens: BTreeSet::new() }
    }

    pub(super) async fn write_until(&mut self, admin: &Admin, mut stop: oneshot::Receiver<()>) -> Result<()> {
        let mut pace = interval(PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                // Also when the sender is dropped.
                _ = &mut stop => return Ok(()),
                _ = pace.tick() => self.write(admin).await?,
            }
        }
    }

    pub(super) async fn write(&mut self, admin: &Admin) -> Result<()> {
        let (step, turn) = (self.step, self.step / 3);
        self.step += 1;
        match step % 3 {
            0 => self.write_bundle(admin, &self.name(turn % NAMES), step).await,
            1 => self.write_service(admin, &self.name(turn % NAMES), step).await,
            _ => self.write_token(admin, &self.name(turn)).await,
        }
    }

    pub(super) fn due(&self) -> BTreeMap<String, usize> {
        let due = |(bundle, values): (&String, &Vec<usize>)| {
            (0..CONFIG_MAPS).map(|index| (format!("{bundle}-{index}"), values.len())).collect::<Vec<_>>()
        };
        self.bundles.iter().flat_map(due).collect()
    }

    pub(super) fn tokens(&self) -> usize {
        self.tokens.len()
    }

    pub(super) fn steps(&self) -> usize {
        self.step
    }

    /// Fails unless all ManagedResources, Services and Secrets have taken effect in their last versions, and no others.
    pub(super) async fn complete(&self, admin: &Admin) -> Result<()> {
        let config_maps: BTreeMap<String, String> = self.config_maps();
        let found = self.named(admin, &core(NAMESPACE, "configmaps")).await?;
        let found = found.iter().map(|(name, object)| (name.clone(), text(&object["data"]["k"]))).collect();
        same("ConfigMaps", &found, &config_maps)?;

        let found = self.named(admin, POLICIES).await?.into_keys().map(|name| (name, String::new())).collect();
        same("NetworkPolicies", &found, &self.policies())?;

        let secrets = self.named(admin, &core(NAMESPACE, "secrets")).await?;
        let has_token = |(name, secret): (&String, &Value)| {
            let renewal = &secret["metadata"]["annotations"][format!("{ACCOUNT}/token-renew-timestamp")];
            let complete = secret["data"]["token"].is_string() && renewal.is_string();
            complete.then(|| (name.clone(), String::new()))
        };
        let tokens = self.tokens.iter().map(|name| (name.clone(), String::new())).collect();
        same("tokens", &secrets.iter().filter_map(has_token).collect(), &tokens)?;
        let accounts = self.named(admin, &core(NAMESPACE, "serviceaccounts")).await?;
        same("ServiceAccounts", &accounts.into_keys().map(|name| (name, String::new())).collect(), &tokens)?;

        for (name, bundle) in self.named(admin, &bundles(NAMESPACE)).await? {
            let refs = bundle["status"]["resources"].as_array().map(Vec::len).unwrap_or_default();
            let conditions = &bundle["status"]["conditions"];
            ensure!(is_applied(&bundle) && refs == CONFIG_MAPS, "{name} has {refs} refs: {conditions}");
            let states = [("ResourcesHealthy", "True"), ("ResourcesProgressing", "False")];
            for (kind, status) in states {
                let mut conditions = conditions.as_array().into_iter().flatten();
                let found = conditions.any(|condition| condition["type"] == kind && condition["status"] == status);
                ensure!(found, "{name} is not {kind}={status}");
            }
        }
        Ok(())
    }

    /// The version of each object: the written ones and their results.
    pub(super) async fn versions(&self, admin: &Admin) -> Result<BTreeMap<String, String>> {
        let mut versions = BTreeMap::new();
        let plurals = ["configmaps", "secrets", "services", "serviceaccounts"];
        let collections = plurals.map(|plural| core(NAMESPACE, plural));
        for collection in collections.iter().cloned().chain([bundles(NAMESPACE), POLICIES.to_owned()]) {
            for (name, object) in self.named(admin, &collection).await? {
                versions.insert(format!("{collection}/{name}"), text(&object["metadata"]["resourceVersion"]));
            }
        }
        Ok(versions)
    }

    fn name(&self, index: usize) -> String {
        format!("{}-{index}", self.prefix)
    }

    async fn write_bundle(&mut self, admin: &Admin, name: &str, value: usize) -> Result<()> {
        let metadata = |index: usize| json!({ "namespace": NAMESPACE, "name": format!("{name}-{index}") });
        let config_map = |index| {
            let data = json!({ "k": value.to_string() });
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(index), "data": data })
        };
        let bundle = format!("bundle-{name}");
        let secret = secret(NAMESPACE, &bundle, &(0..CONFIG_MAPS).map(config_map).collect::<Vec<_>>());
        let secrets = core(NAMESPACE, "secrets");
        // Before the request is sent: the program may see the object before we have the answer.
        let values = self.bundles.entry(name.to_owned()).or_default();
        values.push(value);
        if values.len() > 1 {
            return admin.replace(&format!("{secrets}/{bundle}"), &secret).await.map(drop);
        }
        admin.create(&secrets, &secret).await?;
        admin.create(&bundles(NAMESPACE), &managed_resource(NAMESPACE, &bundle)).await.map(drop)
    }

    async fn write_service(&mut self, admin: &Admin, name: &str, value: usize) -> Result<()> {
        let allowed = json!([{ "protocol": "TCP", "port": ALIAS_PORTS + value }]).to_string();
        let (services, annotations) = (core(NAMESPACE, "services"), json!({ ALIAS: allowed }));
        let values = self.services.entry(name.to_owned()).or_default();
        values.push(value);
        if values.len() > 1 {
            let patch = json!({ "metadata": { "annotations": annotations } });
            return admin.merge(&format!("{services}/{name}"), &patch).await.map(drop);
        }
        let service = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": { "namespace": NAMESPACE, "name": name, "annotations": annotations },
            "spec": { "selector": { "app": name }, "ports": [{ "port": 443, "targetPort": PORT }] }
        });
        admin.create(&services, &service).await.map(drop)
    }

    async fn write_token(&mut self, admin: &Admin, name: &str) -> Result<()> {
        self.tokens.insert(name.to_owned());
        let purpose = json!({
            "resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot"
        });
        let account = json!({ format!("{ACCOUNT}/name"): name, format!("{ACCOUNT}/namespace"): NAMESPACE });
        let metadata = json!({ "namespace": NAMESPACE, "name": name, "labels": purpose, "annotations": account });
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata });
        admin.create(&core(NAMESPACE, "secrets"), &secret).await.map(drop)
    }

    fn config_maps(&self) -> BTreeMap<String, String> {
        let of_bundle = |(bundle, values): (&String, &Vec<usize>)| {
            let value = values.last().map(ToString::to_string).unwrap_or_default();
            (0..CONFIG_MAPS).map(|index| (format!("{bundle}-{index}"), value.clone())).collect::<Vec<_>>()
        };
        self.bundles.iter().flat_map(of_bundle).collect()
    }

    fn policies(&self) -> BTreeMap<String, String> {
        let of_service = |(service, values): (&String, &Vec<usize>)| {
            let alias = ALIAS_PORTS + values.last().copied().unwrap_or_default();
            let ids = [format!("{service}-tcp-{PORT}"), format!("{service}-tcp-{alias}-via-probes")];
            let both = |id: &String| [format!("ingress-to-{id}"), format!("egress-to-{id}")];
            ids.iter().flat_map(both).map(|name| (name, String::new())).collect::<Vec<_>>()
        };
        self.services.iter().flat_map(of_service).collect()
    }

    async fn named(&self, admin: &Admin, collection: &str) -> Result<BTreeMap<String, Value>> {
        let ours = [self.prefix, "bundle", "ingress-to", "egress-to"].map(|start| format!("{start}-"));
        let infix = format!("{}-", self.prefix);
        let objects = admin.list(collection).await?;
        let objects = objects.into_iter().map(|object| (text(&object["metadata"]["name"]), object));
        Ok(objects
            .filter(|(name, _)| name.contains(&infix) && ours.iter().any(|start| name.starts_with(start)))
            .collect())
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn same(what: &str, found: &BTreeMap<String, String>, expected: &BTreeMap<String, String>) -> Result<()> {
    let missing: Vec<_> = expected.iter().filter(|(name, value)| found.get(*name) != Some(*value)).collect();
    let surplus: Vec<_> = found.keys().filter(|name| !expected.contains_key(*name)).collect();
    ensure!(missing.is_empty() && surplus.is_empty(), "{what} without effect: {missing:?}, surplus: {surplus:?}");
    Ok(())
}
