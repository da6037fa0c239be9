//! Secrets, renewal times and ServiceAccounts of the token requestor come and go. Finally each Secret has a good token.

use std::sync::{Arc, Mutex, PoisonError};

use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use gardener_resource_manager::api::config::resource_manager::{TokenRequestor, Workers};
use jiff::Timestamp;
use serde_json::{Value, json};
use sim::{RequestInfo, Sim};
use tokio::time::Instant;

use crate::world::{NAMESPACE, World};

const SA: &str = "serviceaccount.resources.gardener.cloud/";
/// Secrets `x0` to `x2`, each with a ServiceAccount of the same name.
const NUMBERS: u8 = 3;

#[derive(Clone)]
pub(super) struct Accesses {
    random: Arc<Mutex<fastrand::Rng>>,
    sim: Sim,
    /// A time of the server's clock, which does not jump with the program's clock.
    begin: (Timestamp, Instant),
}

impl Accesses {
    pub(super) fn new(world: &World, seed: u64) -> Self {
        let settings =
            TokenRequestor { concurrent_syncs: Workers::new(2), delete_service_accounts: false, any_class: false };
        world.config.borrow_mut().controllers.token_requestor = settings.into();
        let random = Arc::new(Mutex::new(fastrand::Rng::with_seed(seed ^ 0x5eed_0004)));
        let begin = (world.universe.env.clock.wall(), Instant::now());
        Self { random, sim: world.sim.clone(), begin }
    }

    pub(super) fn act(&self) -> String {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let name = format!("x{}", random.u8(0..NUMBERS));
        if !self.has(&name) {
            let annotations = json!({ format!("{SA}name"): name, format!("{SA}namespace"): NAMESPACE });
            let labels = json!({ "resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot" });
            let metadata =
                json!({ "namespace": NAMESPACE, "name": name, "annotations": annotations, "labels": labels });
            self.sim.put(json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata })).expect("a Secret");
            return format!("Secret {name} wants a token");
        }
        match random.u8(0..4) {
            0 => {
                self.sim.remove("secrets", NAMESPACE, &name);
                format!("Secret {name} goes")
            }
            1 if self.sim.object("serviceaccounts", NAMESPACE, &name).is_some() => {
                self.sim.remove("serviceaccounts", NAMESPACE, &name);
                format!("ServiceAccount {name} is deleted")
            }
            2 => {
                self.sim.edit("secrets", NAMESPACE, &name, |live| live["data"] = json!({}));
                format!("Secret {name} loses its token")
            }
            _ => {
                self.sim.edit("secrets", NAMESPACE, &name, |live| {
                    if let Some(annotations) = live["metadata"]["annotations"].as_object_mut() {
                        annotations.remove(&format!("{SA}token-renew-timestamp"));
                    }
                });
                format!("Secret {name} is due for renewal")
            }
        }
    }

    pub(super) fn is_renewal(info: &RequestInfo) -> bool {
        let is_one = |name: &str| name.starts_with('x');
        let is_token = info.resource == "serviceaccounts" && info.subresource == "token";
        is_one(&info.name) && (is_token || info.resource == "secrets")
    }

    pub(super) fn wrong(&self) -> Vec<String> {
        let now = self.begin.0 + self.begin.1.elapsed();
        let names = (0..NUMBERS).map(|number| format!("x{number}")).filter(|name| self.has(name));
        names.filter(|name| !self.is_good(name, now).unwrap_or_default()).collect()
    }

    fn is_good(&self, name: &str, now: Timestamp) -> Option<bool> {
        let secret = self.sim.object("secrets", NAMESPACE, name)?;
        let account = self.sim.object("serviceaccounts", NAMESPACE, name)?;
        let token = String::from_utf8(BASE64_STANDARD.decode(secret["data"]["token"].as_str()?).ok()?).ok()?;
        let claims = BASE64_URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
        let claims: Value = serde_json::from_slice(&claims).ok()?;
        let is_of_account = claims["kubernetes.io"]["serviceaccount"]["uid"] == account["metadata"]["uid"];
        Some(is_of_account && claims["exp"].as_i64()? > now.as_second())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.sim.object("secrets", NAMESPACE, name).is_some()
    }
}
