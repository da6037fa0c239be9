//! Certificates of gardenlets. None is approved that must not be, and none is denied without a reason.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gardener_resource_manager::api::kinds;
use serde_json::{Value, json};

use super::{
    common::{Common, list, lock, one_of},
    users::Step,
};
use crate::{builder::Parts, controller_manager::garden::Garden};

const SIGNER: &str = "kubernetes.io/kube-apiserver-client";
const USER: &str = "system:bootstrap:abcdef";
const TOKEN: &str = "bootstrap-token-abcdef";
const SEEDS: &str = "gardener.cloud:system:seeds";
const SHOOTS: &str = "gardener.cloud:system:shoots";

#[derive(Clone)]
pub(super) struct Certificates {
    common: Common,
    /// Users may ask for certificates.
    allows: Arc<AtomicBool>,
    observed: Arc<Mutex<Observed>>,
}

#[derive(Default)]
struct Observed {
    asked: BTreeMap<String, Asked>,
    /// Whether the bootstrap token is that of the Shoot.
    is_token_right: bool,
}

/// What may become of a request.
struct Asked {
    depends_on_token: bool,
    may_be_approved: bool,
    may_be_denied: bool,
}

impl Certificates {
    pub(super) fn new(garden: &Garden, common: &Common) -> Self {
        let allows = Arc::new(AtomicBool::new(true));
        let switch = allows.clone();
        garden.sim.set_reviewer(move |spec| {
            let subresource = &spec["resourceAttributes"]["subresource"];
            let is_own = spec["user"].as_str().is_some_and(|user| user.starts_with("gcm"));
            let is_client = subresource == "seedclient" || subresource == "shootclient";
            (is_own || (is_client && switch.load(Ordering::Relaxed)), "no RBAC policy matched".to_owned())
        });
        Self { common: common.clone(), allows, observed: Arc::default() }
    }

    pub(super) fn act(&self, random: &mut fastrand::Rng) -> Step {
        match random.u8(0..8) {
            0 => {
                let allows = !self.allows.load(Ordering::Relaxed);
                self.allow(allows);
                Step::new(format!("users may ask for certificates: {allows}"))
            }
            1 | 2 => self.change_token(random),
            3 => {
                let name = lock(&self.observed).asked.keys().next().cloned().unwrap_or_default();
                lock(&self.observed).asked.remove(&name);
                self.common.remove(&kinds::CERTIFICATE_SIGNING_REQUEST, "", &name);
                Step::new(format!("{name} goes"))
            }
            _ => self.ask(random),
        }
    }

    pub(super) fn allow(&self, allows: bool) {
        self.allows.store(allows, Ordering::Relaxed);
    }

    fn change_token(&self, random: &mut fastrand::Rng) -> Step {
        let descriptions = [
            Some("Used for connecting the self-hosted Shoot ns/s via x"),
            Some("Used for connecting the self-hosted Shoot ns/other via x"),
            Some("something else"),
            None,
        ];
        let description = one_of(random, &descriptions);
        match description {
            Some(description) => {
                let data = json!({ "data": { "description": BASE64_STANDARD.encode(description) } });
                self.common.set(&kinds::SECRET, "kube-system", TOKEN, data);
            }
            None => drop(self.common.remove(&kinds::SECRET, "kube-system", TOKEN)),
        }
        let mut observed = lock(&self.observed);
        observed.is_token_right = description == descriptions[0];
        let is_right = observed.is_token_right;
        for asked in observed.asked.values_mut().filter(|asked| asked.depends_on_token) {
            asked.may_be_approved |= is_right;
            asked.may_be_denied |= !is_right;
        }
        Step::new(format!("the bootstrap token: {description:?}"))
    }

    fn ask(&self, random: &mut fastrand::Rng) -> Step {
        let seed = ("gardener.cloud:system:seed:x", SEEDS);
        let shoot = ("gardener.cloud:system:shoot:ns:s", SHOOTS);
        let mut observed = lock(&self.observed);
        let by_token = (observed.is_token_right, !observed.is_token_right);
        let ((common_name, organization), signer, user, (may_be_approved, may_be_denied)) = match random.u8(0..9) {
            0..=2 => (seed, SIGNER, USER, (true, false)),
            3 | 4 => (shoot, SIGNER, USER, by_token),
            5 => (shoot, SIGNER, "admin", (false, true)),
            6 => (seed, "example.com/foo", USER, (false, false)),
            7 => (seed, SIGNER, "gardener.cloud:system:seed:y", (false, false)),
            _ => (("gardener.cloud:system:seed:x", SHOOTS), SIGNER, USER, (false, false)),
        };
        let depends_on_token = organization == SHOOTS && common_name == shoot.0 && user == USER;
        let number = observed.asked.len() + random.usize(0..1_000_000);
        let name = format!("csr-{number}");
        let pem = Parts::usual(common_name, &[organization], &[], &[]).pem();
        let request = json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": { "name": name },
            "spec": {
                "request": BASE64_STANDARD.encode(pem), "signerName": signer, "username": user,
                "groups": ["system:bootstrappers", "system:authenticated"],
                "usages": ["key encipherment", "digital signature", "client auth"],
            },
        });
        self.common.sim.put(request).expect("a request");
        let set_sender = |live: &mut Value| {
            live["spec"]["username"] = json!(user);
            live["spec"]["groups"] = json!(["system:bootstrappers", "system:authenticated"]);
        };
        self.common.sim.edit("certificatesigningrequests.certificates.k8s.io", "", &name, set_sender);
        observed.asked.insert(name.clone(), Asked { depends_on_token, may_be_approved, may_be_denied });
        Step::new(format!("{user} asks {signer} for {name}: {common_name} of {organization}"))
    }

    fn decision(&self, name: &str) -> Option<bool> {
        let live = self.common.find(&kinds::CERTIFICATE_SIGNING_REQUEST, "", name)?;
        list(&live, "/status/conditions").map(|condition| condition["type"] == "Approved").next()
    }

    pub(super) fn violations(&self) -> Vec<String> {
        let observed = lock(&self.observed);
        let wrong = |(name, asked): (&String, &Asked)| match self.decision(name)? {
            true if !asked.may_be_approved => Some(format!("{name} must not be approved")),
            false if !asked.may_be_denied => Some(format!("{name} must not be denied")),
            _ => None,
        };
        observed.asked.iter().filter_map(wrong).collect()
    }

    /// Returns which requests are not decided. Users may ask for certificates now.
    pub(super) fn wrong(&self) -> Vec<String> {
        let observed = lock(&self.observed);
        let is_due = |asked: &Asked| asked.may_be_approved || asked.may_be_denied;
        let open = observed.asked.iter().filter(|(name, asked)| is_due(asked) && self.decision(name).is_none());
        open.map(|(name, _)| format!("{name} is not decided")).collect()
    }
}
