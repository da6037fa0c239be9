//! Network (spec 62 §6).

use std::net::IpAddr;

use kit::quote::cut;
use serde::Deserialize;

use super::rules::{ExtensionKind, Nothing, Object, Rules, SPEC, TYPE, immutable_text, one_of, required};
use crate::api::meta::field::{
    Errors, Opaque, Shown,
    net::Network as Cidr,
    shapes::{List, Text},
};

const IPV4: &str = "IPv4";
const IPV6: &str = "IPv6";

pub(super) struct Network;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct NetworkSpec<'a> {
    #[serde(borrow)]
    r#type: Text<'a>,
    class: Option<Text<'a>>,
    provider_config: Option<Opaque<'a>>,
    #[serde(rename = "podCIDR")]
    pod_cidr: Text<'a>,
    #[serde(rename = "serviceCIDR")]
    service_cidr: Text<'a>,
    ip_families: List<Text<'a>>,
}

impl Rules for Network {
    type Spec<'a> = NetworkSpec<'a>;
    type Status<'a> = Nothing;

    const KIND: ExtensionKind = ExtensionKind::new("Network", "networks", "network");

    fn check(object: &Object<'_, Self>, errors: &mut Errors) {
        required(&TYPE, &object.spec.r#type, errors);
        if has_good_families(&object.spec, errors) {
            check_networks(&object.spec, errors);
        }
    }

    fn check_update<'a>(new: &Object<'a, Self>, old: &Object<'a, Self>, errors: &mut Errors) {
        let (new, old) = (&new.spec, &old.spec);
        let families =
            |spec: &NetworkSpec<'_>| spec.ip_families.iter().map(|family| family.to_string()).collect::<Vec<_>>();
        let (now, before) = (families(new), families(old));
        let (one, both) = (vec![IPV4.to_owned()], vec![IPV4.to_owned(), IPV6.to_owned()]);
        let may_change = before == one && now == both || before == both && now == one;
        if now != before && !may_change {
            let (before, now) = (before.join(" "), now.join(" "));
            let (before, now) = (cut(&before), cut(&now));
            let detail = format!("unsupported IP family update: oldIPFamilies=[{before}], newIPFamilies=[{now}]");
            errors.forbidden(&SPEC.child("ipFamilies"), detail);
        }
        immutable_text(&TYPE, &new.r#type, &old.r#type, errors);
        immutable_text(&SPEC.child("podCIDR"), &new.pod_cidr, &old.pod_cidr, errors);
        immutable_text(&SPEC.child("serviceCIDR"), &new.service_cidr, &old.service_cidr, errors);
    }
}

/// Rules 2 to 4: an error here hides those of the networks.
fn has_good_families(spec: &NetworkSpec<'_>, errors: &mut Errors) -> bool {
    let field = SPEC.child("ipFamilies");
    let before = errors.len();
    let mut seen = std::collections::BTreeSet::new();
    for (at, family) in spec.ip_families.iter().enumerate() {
        one_of(&field.at(at), family, &[IPV4, IPV6], errors);
        if !seen.insert(family) {
            errors.duplicate(&field.at(at), Shown::Json(family));
        }
    }
    errors.len() == before
}

/// Rules 5 to 9.
fn check_networks(spec: &NetworkSpec<'_>, errors: &mut Errors) {
    let (pods, services) = (SPEC.child("podCIDR"), SPEC.child("serviceCIDR"));
    required(&pods, &spec.pod_cidr, errors);
    required(&services, &spec.service_cidr, errors);

    let mut networks = [(&pods, &spec.pod_cidr, None), (&services, &spec.service_cidr, None)];
    for (field, text, network) in &mut networks {
        *network = Cidr::parse(text);
        if network.is_none() && !text.is_empty() {
            errors.invalid(field, Shown::Text(text), format_args!("invalid CIDR address: {}", cut(text)));
        }
    }
    if spec.ip_families.len() < 2 {
        let primary = spec.ip_families.first().map_or(IPV4, |family| family);
        for (field, _, network) in &networks {
            let Some(address) = network.map(Cidr::address) else { continue };
            let family = if matches!(address, IpAddr::V4(_)) { IPV4 } else { IPV6 };
            if family != primary {
                let detail = format!("must be a valid {primary} address");
                errors.invalid(field, Shown::Text(&address.to_string()), detail);
            }
        }
    }
    let only_ipv6 = spec.ip_families.len() == 1 && *spec.ip_families[0] == *IPV6;
    if let [(_, _, Some(pods)), (field, text, Some(services))] = networks
        && !only_ipv6
        && pods.overlaps(services)
    {
        let detail = format!("must not overlap with \"spec.podCIDR\" (\"{}\")", cut(&spec.pod_cidr));
        errors.invalid(field, Shown::Text(text), detail);
    }
}
