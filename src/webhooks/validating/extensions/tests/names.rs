//! Spec 62 §5, §6, §2.8: DNSRecords and Networks.

use super::*;

const NO_IP: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

fn record<const N: usize>(changes: [(&str, Value); N]) -> Vec<String> {
    created(&spec_with("DNSRecord", changes))
}

fn network<const N: usize>(changes: [(&str, Value); N]) -> Vec<String> {
    created(&spec_with("Network", changes))
}

/// spec 62 scenarios 7, 8, 12; spec 62 §5 rule 5, §2.8
#[test]
fn dns_record_name_is_a_domain() {
    let segments = "should be a domain with at least two segments separated by dots";
    let label = "x".repeat(64);
    for (kind, name, shown, wrong) in [
        ("A", "*.api.example.com", "", ""),
        ("A", "*.*.example.com", "*.example.com", SUBDOMAIN),
        ("A", "_acme-challenge.example.com", "_acme-challenge.example.com", SUBDOMAIN),
        ("TXT", "_acme-challenge.a.example.org", "", ""),
        ("TXT", "*.example.com", "*.example.com", SUBDOMAIN),
        ("TXT", "a._b.example.com", "a._b.example.com", SUBDOMAIN),
        ("A", "example.", "example", segments),
        ("A", "a.example.org.", "", ""),
        ("A", &format!("a.{label}.org"), &label, "must be no more than 63 characters"),
    ] {
        let errors = record([("/recordType", json!(kind)), ("/name", json!(name))]);
        let expected: Vec<String> = (!wrong.is_empty())
            .then(|| format!("spec.name: Invalid value: \"{shown}\": {wrong}"))
            .into_iter()
            .collect();
        assert_eq!(errors.iter().filter(|error| error.starts_with("spec.name")).cloned().collect::<Vec<_>>(), expected);
    }
    assert_eq!(record([("/name", json!(""))]), ["spec.name: Required value"]);
}

/// spec 62 scenarios 9, 10, 11; spec 62 §5, all rows
#[test]
fn dns_record_values_fit_its_type() {
    assert!(record([("/values", json!(["2001:db8::1", "::ffff:10.0.0.1"]))]).is_empty(), "of either family");
    assert!(record([("/recordType", json!("AAAA"))]).is_empty());
    for wrong in ["010.0.0.1", "fe80::1%eth0", "10.0.0.1/32", "a.example.org", ""] {
        assert_eq!(
            record([("/values", json!([wrong]))]),
            [format!("spec.values[0]: Invalid value: \"{wrong}\": {NO_IP}")]
        );
    }
    let cname = |values: Value| record([("/recordType", json!("CNAME")), ("/values", values)]);
    assert_eq!(
        cname(json!(["a.example.org", "b.example.org"])),
        ["spec.values: Invalid value: [\"a.example.org\",\"b.example.org\"]: CNAME records must have a single value"]
    );
    assert_eq!(cname(json!(["*.a.b"])), [format!("spec.values[0]: Invalid value: \"*.a.b\": {SUBDOMAIN}")]);
    assert_eq!(cname(json!([""])), ["spec.values[0]: Required value"]);
    assert!(record([("/recordType", json!("TXT")), ("/values", json!(["", "any thing"]))]).is_empty());
    assert_eq!(
        record([("/recordType", json!("a")), ("/values", json!(["?"]))]),
        ["spec.recordType: Unsupported value: \"a\": supported values: \"A\", \"AAAA\", \"CNAME\", \"TXT\""]
    );
    for ttl in [-1_i64, 2_147_483_648] {
        let error = format!("spec.ttl: Invalid value: {ttl}: must be between 0 and 2147483647, inclusive");
        assert_eq!(record([("/ttl", json!(ttl))]), [error]);
    }
    assert_eq!(
        record([("/region", json!("")), ("/zone", json!("")), ("/values", json!([])), ("/ttl", json!(0))]),
        [
            "spec.region: Invalid value: \"\": field cannot be empty if specified".to_owned(),
            "spec.zone: Invalid value: \"\": field cannot be empty if specified".to_owned(),
            required(["spec.values"]).remove(0),
        ]
    );
    assert_eq!(
        record([("/type", json!("")), ("/secretRef", json!({}))]),
        required(["spec.type", "spec.secretRef.name"])
    );
}

/// spec 62 scenarios 13, 14, 15; spec 62 §6, all rows
#[test]
fn networks_are_of_their_family_and_do_not_overlap() {
    let families = |families: Value| ("/ipFamilies", families);
    let broken = [("/podCIDR", json!("x")), ("/serviceCIDR", json!("x"))];
    let [pods, services] = broken.clone();
    assert_eq!(
        network([families(json!(["IPv4", "IPv4"])), pods.clone(), services.clone()]),
        ["spec.ipFamilies[1]: Duplicate value: \"IPv4\""]
    );
    assert_eq!(
        network([families(json!(["ipv4"])), pods.clone(), services.clone()]),
        ["spec.ipFamilies[0]: Unsupported value: \"ipv4\": supported values: \"IPv4\", \"IPv6\""]
    );
    let invalid = |field: &str| format!("spec.{field}: Invalid value: \"x\": invalid CIDR address: x");
    assert_eq!(network([pods, services]), [invalid("podCIDR"), invalid("serviceCIDR")]);
    let overlap = "spec.serviceCIDR: Invalid value: \"100.64.1.0/24\": must not overlap with \"spec.podCIDR\" (\"100.64.0.0/16\")";
    let cidrs = |pods: &str, services: &str| [("/podCIDR", json!(pods)), ("/serviceCIDR", json!(services))];
    assert_eq!(network(cidrs("100.64.0.0/16", "100.64.1.0/24")), [overlap]);
    let [pods, services] = cidrs("2001:db8::/32", "2001:db8:1::/48");
    assert!(network([families(json!(["IPv6"])), pods.clone(), services.clone()]).is_empty(), "single-stack IPv6 may");
    assert_eq!(
        network([families(json!(["IPv4", "IPv6"])), pods.clone(), services.clone()]).len(),
        1,
        "families are not checked"
    );
    assert_eq!(
        network([pods, services]),
        [
            "spec.podCIDR: Invalid value: \"2001:db8::\": must be a valid IPv4 address",
            "spec.serviceCIDR: Invalid value: \"2001:db8:1::\": must be a valid IPv4 address",
            "spec.serviceCIDR: Invalid value: \"2001:db8:1::/48\": must not overlap with \"spec.podCIDR\" (\"2001:db8::/32\")",
        ]
    );
    assert_eq!(
        network([families(json!(["IPv6"])), ("/podCIDR", json!("10.1.2.3/8")), ("/serviceCIDR", json!("::/64"))]),
        ["spec.podCIDR: Invalid value: \"10.0.0.0\": must be a valid IPv6 address"]
    );
    assert_eq!(
        created(&with(good("Network"), [("/spec", json!({}))])),
        required(["spec.type", "spec.podCIDR", "spec.serviceCIDR"])
    );
}

/// spec 62 scenario 16; spec 62 §6, update rule 1
#[test]
fn network_may_become_dual_stack_and_single_stack_again() {
    let of = |families: Value| spec_with("Network", [("/ipFamilies", families)]);
    let (four, both) = (of(json!(["IPv4"])), of(json!(["IPv4", "IPv6"])));
    assert!(updated(&both, &four).is_empty() && updated(&four, &both).is_empty());
    let (six, reversed, none) = (of(json!(["IPv6"])), of(json!(["IPv6", "IPv4"])), of(json!(null)));
    let change = |old: &str, new: &str| {
        format!(
            "spec.ipFamilies: Forbidden: unsupported IP family update: oldIPFamilies=[{old}], newIPFamilies=[{new}]"
        )
    };
    assert_eq!(updated(&reversed, &both), [change("IPv4 IPv6", "IPv6 IPv4")]);
    assert_eq!(updated(&six, &four)[0], change("IPv4", "IPv6"));
    assert_eq!(updated(&four, &none), [change("", "IPv4")]);
    assert!(updated(&of(json!([])), &none).is_empty());
}
