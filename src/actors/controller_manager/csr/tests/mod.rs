//! The tables of spec 81 B. Properties of all requests are in `tests/properties/gardenlet_certificates.rs`.

mod tables;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::{
    request::{GardenletRequest, SIGNER},
    requirements::{Certificate, Recognized, recognize},
    review::{Decision, decided, is_allowed, review},
    token,
};
use crate::actors::resource_manager::csr_approver::tests::builder::{Parts, alternative_names, extension_request};

const EMAIL: u8 = 0x81;
const URI: u8 = 0x86;
const SEEDS: &str = "gardener.cloud:system:seeds";
const SHOOTS: &str = "gardener.cloud:system:shoots";
const TOKEN_USER: &str = "system:bootstrap:abcdef";

/// Everything on which a decision depends.
#[derive(Debug, Clone)]
struct Case {
    signer: String,
    username: String,
    groups: Vec<String>,
    usages: Vec<String>,
    organizations: Vec<String>,
    common_name: String,
    /// Type and value of each alternative name.
    names: Vec<(u8, Vec<u8>)>,
    /// What the request has already.
    status: Value,
    /// The description of the token.
    description: String,
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// A request for a Seed that is approved if its user may.
fn seed() -> Case {
    Case {
        signer: SIGNER.to_owned(),
        username: TOKEN_USER.to_owned(),
        groups: texts(&["system:bootstrappers", "system:authenticated"]),
        usages: texts(&["key encipherment", "digital signature", "client auth"]),
        organizations: texts(&[SEEDS]),
        common_name: "gardener.cloud:system:seed:x".to_owned(),
        names: Vec::new(),
        status: json!({}),
        description: String::new(),
    }
}

/// A request for a self-hosted Shoot that is approved if its user may.
fn shoot(prefix: &str) -> Case {
    Case {
        organizations: texts(&[SHOOTS]),
        common_name: format!("{prefix}ns:s"),
        description: "Used for connecting the self-hosted Shoot ns/s via x".to_owned(),
        ..seed()
    }
}

impl Case {
    fn csr(&self) -> Value {
        let organizations: Vec<&str> = self.organizations.iter().map(String::as_str).collect();
        let mut parts = Parts::usual(&self.common_name, &organizations, &[], &[]);
        if !self.names.is_empty() {
            let names: Vec<(u8, &[u8])> = self.names.iter().map(|(kind, name)| (*kind, name.as_slice())).collect();
            parts.attributes = extension_request(&[alternative_names(&names)]);
        }
        json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": { "name": "csr", "resourceVersion": "7" },
            "spec": {
                "request": BASE64_STANDARD.encode(parts.pem()), "signerName": self.signer, "usages": self.usages,
                "username": self.username, "groups": self.groups, "uid": "u", "extra": { "k": ["v"] },
            },
            "status": self.status,
        })
    }

    fn read(&self) -> Option<GardenletRequest> {
        GardenletRequest::read(&self.csr()).unwrap()
    }

    fn recognized(&self) -> Option<Recognized> {
        self.read().map(|request| recognize(&request))
    }

    /// The decision, if the user may have what it asks for; `None` if nothing is decided.
    fn decision(&self) -> Option<Decision> {
        let request = self.read()?;
        let checked = match recognize(&request) {
            Recognized::Nothing(_) => return None,
            Recognized::Certificate(Certificate::Seed) => Ok(()),
            Recognized::Certificate(Certificate::Shoot) => {
                token::id_of(&request).and_then(|_| token::check(&self.description, &self.common_name))
            }
        };
        Some(checked.map_or_else(Decision::Deny, |()| Decision::Approve))
    }
}
