//! SelfHostedShootExposure (spec 62 §8).

use kit::quote::cut;
use serde::{Deserialize, Serialize};

use super::{
    metadata::group_version,
    rules::{
        ExtensionKind, Nothing, Object, REQUIRED, Rules, SPEC, TYPE, TextRule, each_invalid, one_of, required,
        required_if,
    },
};
use crate::api::meta::field::{
    Errors, Opaque, Path, Shown,
    formats::dns_subdomain,
    net::{NO_ADDRESS, lenient_address},
    shapes::{List, Part, Plain, Text},
};

const ADDRESS_TYPES: [&str; 5] = ["ExternalDNS", "ExternalIP", "Hostname", "InternalDNS", "InternalIP"];

pub(super) struct SelfHostedShootExposure;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SelfHostedShootExposureSpec<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    class: Option<Text<'a>>,
    provider_config: Option<Opaque<'a>>,
    credentials_ref: Option<Part<ObjectReference<'a>>>,
    port: Plain<i32>,
    endpoints: List<Part<Endpoint<'a>>>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ObjectReference<'a> {
    #[serde(borrow)]
    api_version: Text<'a>,
    kind: Text<'a>,
    namespace: Text<'a>,
    name: Text<'a>,
    uid: Text<'a>,
    resource_version: Text<'a>,
    field_path: Text<'a>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Endpoint<'a> {
    #[serde(borrow)]
    node_name: Text<'a>,
    addresses: List<Part<Address<'a>>>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Address<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    address: Text<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct GroupVersionKind<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

impl Rules for SelfHostedShootExposure {
    type Spec<'a> = SelfHostedShootExposureSpec<'a>;
    type Status<'a> = Nothing;

    const KIND: ExtensionKind =
        ExtensionKind::new("SelfHostedShootExposure", "selfhostedshootexposures", "SelfHostedShootExposure");

    fn texts<'s>(spec: &'s SelfHostedShootExposureSpec<'_>) -> Vec<TextRule<'s>> {
        vec![TextRule::fixed(TYPE, &spec.r#type)]
    }

    fn check(object: &Object<'_, Self>, errors: &mut Errors) {
        let spec = &object.spec;
        if let Some(reference) = &spec.credentials_ref {
            check_reference(reference, &object.metadata.namespace, errors);
        }
        if !(1..=65535).contains(&*spec.port) {
            errors.invalid(&SPEC.child("port"), Shown::Json(&spec.port), "must be between 1 and 65535, inclusive");
        }
        let endpoints = SPEC.child("endpoints");
        required_if(spec.endpoints.is_empty(), &endpoints, errors);
        for (at, endpoint) in spec.endpoints.iter().enumerate() {
            let path = endpoints.at(at);
            required(&path.child("nodeName"), &endpoint.node_name, errors);
            let addresses = path.child("addresses");
            for (at, address) in endpoint.addresses.iter().enumerate() {
                check_address(&addresses.at(at), address, errors);
            }
        }
    }
}

/// Rules 2 to 6.
fn check_reference(reference: &ObjectReference<'_>, namespace: &str, errors: &mut Errors) {
    let path = SPEC.child("credentialsRef");
    let must_have = |field: &str, value: &str, what: &str, errors: &mut Errors| {
        if value.is_empty() {
            errors.required(&path.child(field), what);
        }
        !value.is_empty()
    };
    must_have("apiVersion", &reference.api_version, "must provide an apiVersion", errors);
    must_have("kind", &reference.kind, "must provide a kind", errors);
    if must_have("namespace", &reference.namespace, "must provide a namespace", errors)
        && *reference.namespace != *namespace
    {
        let shown = Shown::Text(&reference.namespace);
        errors.invalid(&path.child("namespace"), shown, "must equal metadata.namespace");
    }
    if must_have("name", &reference.name, "must provide a name", errors) {
        each_invalid(&path.child("name"), &reference.name, dns_subdomain(&reference.name), errors);
    }
    let (group, version) = group_version(&reference.api_version);
    let found = GroupVersionKind { group, version, kind: &reference.kind };
    if (found.group, found.version, found.kind) != ("", "v1", "Secret") {
        errors.unsupported(&path, Shown::Json(&found), &["/v1, Kind=Secret"]);
    }
}

/// Rules 10 to 14.
fn check_address(path: &Path<'_>, Address { r#type, address }: &Address<'_>, errors: &mut Errors) {
    let (type_path, address_path) = (path.child("type"), path.child("address"));
    required(&type_path, r#type, errors);
    if !r#type.is_empty() {
        one_of(&type_path, r#type, &ADDRESS_TYPES, errors);
    }
    if address.is_empty() {
        return errors.required(&address_path, REQUIRED);
    }
    let shown = Shown::Text(address);
    match &**r#type {
        "InternalIP" | "ExternalIP" => {
            if lenient_address(address).is_none() {
                errors.invalid(&address_path, shown, NO_ADDRESS);
            }
        }
        "Hostname" | "InternalDNS" | "ExternalDNS" => {
            each_invalid(&address_path, address, dns_subdomain(address), errors);
        }
        other => {
            let detail = format!("invalid address for unsupported address type \"{}\"", cut(other));
            errors.invalid(&address_path, shown, detail);
        }
    }
}
