//! Requests for certificates of gardenlets and gardenadm (spec 81 B): one deviation from an approved request prevents the
//! approval, and nothing panics.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gardener_resource_manager::actors::controller_manager::csr::{
    request::{GardenletRequest, SIGNER},
    requirements::{Certificate, GARDENADM, Recognized, SEED, SHOOT, recognize},
    review::{is_allowed, review},
    token,
};
use proptest::{collection, prelude::*, sample::select};
use serde_json::{Value, json};

use crate::builder::{DNS, IP, Parts, alternative_names, extension_request};

const EMAIL: u8 = 0x81;
const DIRECTORY: u8 = 0xA4;
const URI: u8 = 0x86;
const REGISTERED: u8 = 0x88;
const SEEDS: &str = "gardener.cloud:system:seeds";
const SHOOTS: &str = "gardener.cloud:system:shoots";
const USAGES: [&str; 3] = ["key encipherment", "digital signature", "client auth"];
const OF_GARDENLET: &str =
    "A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1.Gardenlet resource ";

/// Everything on which an approval depends.
#[derive(Debug, Clone)]
struct Case {
    signer: String,
    username: String,
    /// `spec.uid` and `spec.extra`.
    uid: String,
    extra: Value,
    groups: Vec<String>,
    usages: Vec<String>,
    organizations: Vec<String>,
    common_name: String,
    /// Type and value of each alternative name.
    names: Vec<(u8, Vec<u8>)>,
    /// Changes the PEM text of the request.
    damage: fn(String) -> String,
    /// What the request has already.
    status: Value,
    /// Id and description of the only bootstrap token; `None` if there is none.
    token: Option<(String, String)>,
    /// The `spec` of the only review that has a good answer.
    rights: Value,
    /// That answer.
    answer: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    Approved,
    Denied,
    /// Nothing is decided, now or ever.
    None,
}

type Change = (&'static str, fn(&mut Case, &str));

/// Changes that matter for each request. Each gets a text of letters.
const OF_ALL: [Change; 34] = [
    // B.2 rule 2
    ("denied", |case, _| case.status = json!({ "conditions": [{ "type": "Denied", "status": "True" }] })),
    ("approved", |case, _| case.status = json!({ "conditions": [{ "type": "Failed" }, { "type": "Approved" }] })),
    ("certificate", |case, text| case.status = json!({ "certificate": text })),
    // B.2 rule 3
    ("signer", |case, text| case.signer.push_str(text)),
    ("begin of the signer", |case, text| case.signer.insert_str(0, text)),
    ("no signer", |case, _| case.signer.clear()),
    ("signer of kubelets", |case, _| case.signer.push_str("-kubelet")),
    // B.2 rule 4
    ("no request", |case, _| case.damage = |_| String::new()),
    ("label of the block", |case, _| case.damage = |pem| pem.replace("CERTIFICATE REQUEST", "CERTIFICATE")),
    ("half a request", |case, _| case.damage = |pem| pem.get(..pem.len() / 2).unwrap_or_default().to_owned()),
    ("no PKCS#10", |case, _| {
        case.damage = |_| "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n".to_owned();
    }),
    // B.3 no. 1
    ("organization", |case, text| case.organizations[0].push_str(text)),
    ("another organization", |case, text| case.organizations.push(text.to_owned())),
    ("another organization first", |case, text| case.organizations.insert(0, text.to_owned())),
    ("its organization again", |case, _| case.organizations.push(case.organizations[0].clone())),
    ("no organization", |case, _| case.organizations.clear()),
    ("organization of the other kind", |case, _| {
        let other = if case.organizations == [SEEDS] { SHOOTS } else { SEEDS };
        case.organizations = vec![other.to_owned()];
    }),
    // B.3 no. 2 and 3
    ("prefix", |case, text| case.common_name.insert_str(0, text)),
    ("a letter of the prefix less", |case, text| {
        case.common_name.remove(text.len());
    }),
    ("prefix in capitals", |case, _| case.common_name = case.common_name.replacen("gardener", "Gardener", 1)),
    ("nothing after the prefix", |case, _| {
        let prefix = [SEED, SHOOT, GARDENADM].into_iter().find(|prefix| case.common_name.starts_with(prefix));
        case.common_name.truncate(prefix.map_or(0, str::len));
    }),
    // B.3 no. 4
    ("DNS name", |case, text| case.names.push((DNS, text.into()))),
    ("address", |case, _| case.names.push((IP, vec![10, 0, 0, 1]))),
    ("e-mail address", |case, text| case.names.push((EMAIL, text.into()))),
    ("URI", |case, text| case.names.push((URI, text.into()))),
    ("directory name", |case, _| case.names.push((DIRECTORY, vec![0x30, 0]))),
    ("registered id", |case, _| case.names.push((REGISTERED, vec![0x2A]))),
    // B.3 no. 5
    ("usage more", |case, text| case.usages.push(text.to_owned())),
    ("usage less", |case, text| drop(case.usages.remove(text.len() % USAGES.len()))),
    ("other usage", |case, text| case.usages[text.len() % USAGES.len()].push_str(text)),
    // B.5
    ("not allowed", |case, _| case.answer = json!({ "status": { "allowed": false } })),
    ("no answer", |case, _| case.answer = json!({ "status": {} })),
    ("odd answer", |case, _| case.answer = json!({ "status": { "allowed": "true" } })),
    ("rights of another user", |case, text| case.rights["user"] = json!(text)),
];

/// Changes of the user: who asks is not who has the rights.
const OF_USER: [Change; 5] = [
    ("uid", |case, text| case.uid.push_str(text)),
    ("extra", |case, text| case.extra = json!({ "k": [text, "more"] })),
    ("no extra", |case, _| case.extra = Value::Null),
    ("group more", |case, text| case.groups.push(text.to_owned())),
    ("begin of the user", |case, text| case.username.insert_str(0, text)),
];

/// Changes that matter for the request of a Shoot.
const OF_SHOOT: [Change; 19] = [
    // B.3 no. 3
    ("third part", |case, text| case.common_name.push_str(&format!(":{text}"))),
    ("no name", |case, _| {
        let end = case.common_name.rfind(':').unwrap_or_default();
        case.common_name.truncate(end + 1);
    }),
    ("one part", |case, _| {
        let end = case.common_name.rfind(':').unwrap_or_default();
        case.common_name.truncate(end);
    }),
    ("no namespace", |case, text| case.common_name = format!("{SHOOT}:{text}")),
    // B.4 no. 1
    ("no bootstrap user", |case, text| case.username = text.to_owned()),
    ("user of a seed", |case, text| case.username = format!("{SEED}{text}")),
    ("no groups", |case, _| case.groups.clear()),
    ("other group", |case, text| case.groups[0].push_str(text)),
    // B.4 no. 2
    ("other token", |case, text| case.username.push_str(text)),
    ("no id of a token", |case, _| case.username = "system:bootstrap:".to_owned()),
    ("no token", |case, _| case.token = None),
    // B.4 no. 3
    ("description", |case, text| change_description(case, |known| format!("{text}{known}"))),
    ("no description", |case, _| change_description(case, |_| String::new())),
    ("ManagedSeed", |case, _| {
        let of_seed = "seedmanagement.gardener.cloud/v1alpha1.ManagedSeed resource";
        change_description(case, |known| format!("{of_seed} {}", known.rsplit(' ').next().unwrap_or_default()));
    }),
    ("ordinary gardenlet", |case, _| {
        let mut parts = case.common_name.rsplit(':').map(str::to_owned);
        let (name, namespace) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        change_description(case, |_| format!("{OF_GARDENLET}{namespace}/{name}."));
    }),
    // B.4 no. 4
    ("name", |case, text| case.common_name.push_str(text)),
    ("namespace", |case, text| {
        let end = case.common_name.rfind(':').unwrap_or_default();
        case.common_name.insert_str(end, text);
    }),
    ("namespace of the token", |case, text| change_description(case, |known| known.replace('/', &format!("{text}/")))),
    ("name of the token", |case, text| change_description(case, |known| known.replace('/', &format!("/{text}")))),
];

/// Changes that matter for the request of a Seed's gardenlet that renews its certificate (B.5).
const OF_RENEWAL: [Change; 2] =
    [("name", |case, text| case.common_name.push_str(text)), ("user", |case, text| case.username.push_str(text))];

fn change_description(case: &mut Case, change: impl FnOnce(&str) -> String) {
    if let Some((_, description)) = &mut case.token {
        *description = change(description);
    }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

impl Case {
    /// A request that is approved.
    fn new(organization: &str, common_name: String, username: String, description: String) -> Self {
        let case = Self {
            signer: SIGNER.to_owned(),
            username,
            uid: "u".to_owned(),
            extra: json!({ "k": ["v"] }),
            groups: texts(&["system:bootstrappers", "system:authenticated"]),
            usages: texts(&USAGES),
            organizations: texts(&[organization]),
            common_name,
            names: Vec::new(),
            damage: |pem| pem,
            status: json!({}),
            token: Some(("abcdef".to_owned(), description)),
            rights: Value::Null,
            answer: json!({ "status": { "allowed": true } }),
        };
        let subresource = if organization == SEEDS { "seedclient" } else { "shootclient" };
        let attributes = json!({
            "group": "certificates.k8s.io", "resource": "certificatesigningrequests", "verb": "create",
            "subresource": subresource,
        });
        let rights = json!({
            "user": case.username, "uid": case.uid, "groups": case.groups, "extra": case.extra,
            "resourceAttributes": attributes,
        });
        Self { rights, ..case }
    }

    fn csr(&self) -> Value {
        let organizations: Vec<&str> = self.organizations.iter().map(String::as_str).collect();
        let mut parts = Parts::usual(&self.common_name, &organizations, &[], &[]);
        if !self.names.is_empty() {
            let names: Vec<(u8, &[u8])> = self.names.iter().map(|(kind, name)| (*kind, name.as_slice())).collect();
            parts.attributes = extension_request(&[alternative_names(&names)]);
        }
        json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": { "name": "csr" },
            "spec": {
                "request": BASE64_STANDARD.encode((self.damage)(parts.pem())), "signerName": self.signer,
                "usages": self.usages, "username": self.username, "groups": self.groups, "uid": self.uid,
                "extra": self.extra,
            },
            "status": self.status,
        })
    }

    fn decision(&self) -> Decision {
        let Ok(Some(request)) = GardenletRequest::read(&self.csr()) else { return Decision::None };
        let Recognized::Certificate(certificate) = recognize(&request) else { return Decision::None };
        if certificate == Certificate::Shoot && !self.has_token(&request) {
            return Decision::Denied;
        }
        let asked = review(&request, certificate);
        if asked["spec"] == self.rights && is_allowed(&self.answer) { Decision::Approved } else { Decision::None }
    }

    fn has_token(&self, request: &GardenletRequest) -> bool {
        let Ok(id) = token::id_of(request) else { return false };
        let found = self.token.as_ref().filter(|(known, _)| known == id);
        found.is_some_and(|(_, description)| token::check(description, &request.certificate.common_name).is_ok())
    }

    fn changed(&self, change: &Change, text: &str) -> Self {
        let mut changed = self.clone();
        (change.1)(&mut changed, text);
        changed
    }
}

fn name() -> impl Strategy<Value = String> {
    "[a-z]([a-z0-9-]{0,20}[a-z0-9])?"
}

fn of_seed() -> impl Strategy<Value = Case> {
    (name(), any::<bool>()).prop_map(|(name, is_renewal)| {
        let common_name = format!("{SEED}{name}");
        let username = if is_renewal { common_name.clone() } else { "system:bootstrap:abcdef".to_owned() };
        Case::new(SEEDS, common_name, username, String::new())
    })
}

fn of_shoot() -> impl Strategy<Value = Case> {
    (name(), name(), select(vec![SHOOT, GARDENADM]), any::<bool>()).prop_map(
        |(namespace, name, prefix, is_gardenlet)| {
            let description = match is_gardenlet {
                false => format!("Used for connecting the self-hosted Shoot {namespace}/{name} via x"),
                true => format!("{OF_GARDENLET}{namespace}/self-hosted-shoot-{name}."),
            };
            let user = "system:bootstrap:abcdef".to_owned();
            Case::new(SHOOTS, format!("{prefix}{namespace}:{name}"), user, description)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, ..ProptestConfig::default() })]

    /// spec 81 B.2 to B.5
    #[test]
    fn gardenlet_request_that_differs_in_one_field_is_never_approved(
        seed in of_seed(), shoot in of_shoot(), text in "[a-z]{1,8}",
    ) {
        let is_renewal = seed.username == seed.common_name;
        let of_seed = if is_renewal { &OF_RENEWAL[..] } else { &[] };
        for (case, own) in [(&seed, of_seed), (&shoot, &OF_SHOOT[..])] {
            prop_assert_eq!(case.decision(), Decision::Approved, "{:?}", case);
            for change in OF_ALL.iter().chain(&OF_USER).chain(own) {
                let changed = case.changed(change, &text);
                prop_assert_ne!(changed.decision(), Decision::Approved, "{}: {:?}", change.0, changed);
            }
        }
    }

    /// spec 81 B.3 no. 5
    #[test]
    fn gardenlet_request_is_approved_whatever_the_order_of_its_usages(
        seed in of_seed(), order in Just(USAGES.to_vec()).prop_shuffle(), again in 0..3_usize,
    ) {
        let mut usages = texts(&order);
        usages.push(usages[again].clone());

        prop_assert_eq!(Case { usages, ..seed }.decision(), Decision::Approved);
    }

    /// spec 81 B.4, trap B-T1
    #[test]
    fn gardenlet_request_of_any_shape_is_denied_only_in_the_name_of_a_shoot(
        organizations in collection::vec(select(vec![SEEDS, SHOOTS, "system:nodes", ""]), 0..3),
        common_name in "(gardener.cloud:system:(seed|shoot):)?[a-z:/]{0,8}", username in "(system:bootstrap:)?[a-z]{0,4}",
        description in "(Used for connecting the self-hosted Shoot )?[a-z/ ]{0,8}",
    ) {
        let case = Case { organizations: texts(&organizations), ..Case::new(SEEDS, common_name, username, description) };

        if case.decision() == Decision::Denied {
            prop_assert_eq!(organizations, [SHOOTS], "only requests for Shoots may be denied");
        }
    }
}
