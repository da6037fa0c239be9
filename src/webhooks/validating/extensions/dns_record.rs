//! DNSRecord (spec 62 §5, §2.8).

use serde::Deserialize;

use super::rules::{
    ExtensionKind, Nothing, Object, Rules, SECRET_NAME, SPEC, SecretReference, TYPE, TextRule, immutable,
    immutable_text, one_of, required_if,
};
use crate::api::meta::field::{
    Errors, Opaque, Path, Shown,
    formats::{dns_label, dns_subdomain},
    net::{NO_ADDRESS, address},
    shapes::{List, Part, Text},
};

const TYPES: [&str; 4] = ["A", "AAAA", "CNAME", "TXT"];

pub(super) struct DnsRecord;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct DnsRecordSpec<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    class: Option<Text<'a>>,
    provider_config: Option<Opaque<'a>>,
    secret_ref: Part<SecretReference<'a>>,
    region: Option<Text<'a>>,
    zone: Option<Text<'a>>,
    name: Text<'a>,
    record_type: Text<'a>,
    values: List<Text<'a>>,
    ttl: Option<i64>,
}

impl Rules for DnsRecord {
    type Spec<'a> = DnsRecordSpec<'a>;
    type Status<'a> = Nothing;

    const KIND: ExtensionKind = ExtensionKind::new("DNSRecord", "dnsrecords", "dns record");

    fn texts<'s>(spec: &'s DnsRecordSpec<'_>) -> Vec<TextRule<'s>> {
        vec![TextRule::fixed(TYPE, &spec.r#type), TextRule::required(SECRET_NAME, &spec.secret_ref.name)]
    }

    fn check(object: &Object<'_, Self>, errors: &mut Errors) {
        let spec = &object.spec;
        for (field, value) in [("region", &spec.region), ("zone", &spec.zone)] {
            if value.as_ref().is_some_and(|value| value.is_empty()) {
                errors.invalid(&SPEC.child(field), Shown::Text(""), "field cannot be empty if specified");
            }
        }
        let record_type = &*spec.record_type;
        let prefix = if record_type == "TXT" { "_" } else { "*." };
        check_domain(&SPEC.child("name"), spec.name.strip_prefix(prefix).unwrap_or(&spec.name), errors);
        one_of(&SPEC.child("recordType"), &spec.record_type, &TYPES, errors);
        check_values(spec, errors);
        if let Some(ttl) = spec.ttl.filter(|ttl| !(0..=i64::from(i32::MAX)).contains(ttl)) {
            let detail = "must be between 0 and 2147483647, inclusive";
            errors.invalid(&SPEC.child("ttl"), Shown::Json(&ttl), detail);
        }
    }

    fn check_update<'a>(new: &Object<'a, Self>, old: &Object<'a, Self>, errors: &mut Errors) {
        immutable_text(&SPEC.child("name"), &new.spec.name, &old.spec.name, errors);
        immutable(&SPEC.child("recordType"), &new.spec.record_type, &old.spec.record_type, errors);
    }
}

/// Rules 7 to 11. An address may be of either family, whatever the type of the record says.
fn check_values(spec: &DnsRecordSpec<'_>, errors: &mut Errors) {
    let values = SPEC.child("values");
    required_if(spec.values.is_empty(), &values, errors);
    if *spec.record_type == *"CNAME" && spec.values.len() > 1 {
        errors.invalid(&values, Shown::Json(&spec.values), "CNAME records must have a single value");
    }
    for (at, value) in spec.values.iter().enumerate() {
        match &*spec.record_type {
            "A" | "AAAA" if address(value).is_none() => {
                errors.invalid(&values.at(at), Shown::Text(value), NO_ADDRESS);
            }
            "CNAME" => check_domain(&values.at(at), value, errors),
            _ => {}
        }
    }
}

/// Spec 62 §2.8: a name of at least two labels.
fn check_domain(field: &Path<'_>, value: &str, errors: &mut Errors) {
    if value.is_empty() {
        return errors.required(field, "");
    }
    let value = value.strip_suffix('.').unwrap_or(value);
    let wrong = dns_subdomain(value);
    if !wrong.is_empty() {
        return errors.invalid(field, Shown::Text(value), wrong.join(","));
    }
    if !value.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        return errors.invalid(field, Shown::Text(value), detail);
    }
    let labels = value.split('.').map(|label| (label, dns_label(label)));
    if let Some((label, wrong)) = labels.into_iter().find(|(_, wrong)| !wrong.is_empty()) {
        errors.invalid(field, Shown::Text(label), wrong.join(","));
    }
}
