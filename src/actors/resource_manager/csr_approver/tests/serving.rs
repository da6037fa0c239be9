//! spec 32 §6.

use serde_json::Value;

use super::{builder::Parts, *};

#[derive(Debug, Clone)]
struct Case {
    username: &'static str,
    common_name: &'static str,
    organizations: &'static [&'static str],
    dns: &'static [&'static str],
    ips: &'static [&'static [u8]],
    world: World,
}

impl Case {
    fn approved() -> Self {
        let addresses = [("Hostname", "n1"), ("InternalIP", "10.0.0.1")];
        Self {
            username: "system:node:n1",
            common_name: "system:node:n1",
            organizations: &["system:nodes"],
            dns: &["n1"],
            ips: &[&[10, 0, 0, 1]],
            world: World::empty().node("n1", &addresses).machine(MACHINES, "m1", "n1"),
        }
    }

    fn on(addresses: &[(&str, &str)]) -> Self {
        let case = Self::approved();
        Self { world: case.world.node("n1", addresses), ..case }
    }

    fn with_machines(machines: &[(&str, &str, &str)]) -> Self {
        let mut world = Self::approved().world;
        world.machines.clear();
        let world = machines.iter().fold(world, |world, (namespace, name, node)| world.machine(namespace, name, node));
        Self { world, ..Self::approved() }
    }

    fn csr(&self) -> Value {
        let parts = Parts::usual(self.common_name, self.organizations, self.dns, self.ips);
        csr(SERVING, self.username, &parts.pem())
    }

    fn verdict(&self) -> CsrVerdict {
        self.world.judge(&self.csr())
    }

    #[track_caller]
    fn is_denied(&self, basis: Basis, reason: &str) {
        assert_eq!(self.verdict(), denied(Certificate::KubeletServing, basis, reason));
    }
}

const IPV6: &[u8] = &[0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const MAPPED: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 1];
const LINK_LOCAL: &[u8] = &[0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

const APPROVED: CsrVerdict = CsrVerdict::Approved(Certificate::KubeletServing);
const NO_DNS_MATCH: &str =
    "DNS names in CSR do not match addresses of type 'Hostname' or 'InternalDNS' or 'ExternalDNS' in node object";
const NO_IP_MATCH: &str =
    "IP addresses in CSR do not match addresses of type 'InternalIP' or 'ExternalIP' in node object";

/// spec 32 §6, scenario 1
#[test]
fn serving_request_that_matches_its_node_is_approved() {
    let case = Case::approved();

    assert_eq!(case.verdict(), APPROVED);
    assert_eq!(*case.world.asked.borrow(), [Lookup::Node("n1".to_owned()), Lookup::MachinesOf("n1".to_owned())]);
}

/// spec 32 §6, scenario 2, T1, T2
#[test]
fn node_addresses_of_all_five_types_count_in_any_order_and_notation() {
    let addresses = [
        ("InternalIP", "2001:db8:0:0:0:0:0:1"),
        ("ExternalIP", "192.0.2.1"),
        ("ExternalDNS", "n1.example.com"),
        ("Hostname", "n1"),
        ("InternalDNS", "n1.local"),
        ("Hostname", "n1"),
        ("Podname", "of no interest"),
    ];
    let dns = &["n1.local", "n1", "n1.example.com", "n1.local"];
    let case = Case { dns, ips: &[&[192, 0, 2, 1], IPV6, IPV6], ..Case::on(&addresses) };

    assert_eq!(case.verdict(), APPROVED);
}

/// spec 32 §6 K1 to K4, scenarios 3, 4, 5 and 6; T4
#[test]
fn serving_request_is_checked_before_any_lookup() {
    let organization = "organization in CSR does not match nodes group";
    let common_name = "common name in CSR does not match username";
    for (case, reason) in [
        (Case { username: "admin", ..Case::approved() }, r#"username "admin" is not prefixed with "system:node:""#),
        (Case { username: "", ..Case::approved() }, r#"username "" is not prefixed with "system:node:""#),
        (Case { dns: &[], ips: &[], ..Case::approved() }, "no DNS names or IP addresses in the SANs found"),
        (Case { common_name: "system:node:n2", ..Case::approved() }, common_name),
        (Case { common_name: "system:node:N1", ..Case::approved() }, common_name),
        (Case { organizations: &[], ..Case::approved() }, organization),
        (Case { organizations: &["foo"], ..Case::approved() }, organization),
        (Case { organizations: &["system:nodes", "foo"], ..Case::approved() }, organization),
        (Case { organizations: &["system:nodes", "system:nodes"], ..Case::approved() }, organization),
        (
            Case { username: "system:node:", common_name: "system:node:", ..Case::approved() },
            r#"could not find node object with name """#,
        ),
        (
            Case { username: "system:node:../n1", common_name: "system:node:../n1", ..Case::approved() },
            r#"could not find node object with name "../n1""#,
        ),
    ] {
        case.is_denied(Basis::Request, reason);
        assert!(case.world.asked.borrow().is_empty(), "{reason}");
    }
}

/// spec 32 §6 K5, scenario 7
#[test]
fn serving_request_without_its_node_is_denied() {
    let mut case = Case::approved();
    case.world.nodes.clear();

    case.is_denied(Basis::NotYet, r#"could not find node object with name "n1""#);
}

/// spec 32 §6 K6, scenarios 8, 9 and 10; T7
#[test]
fn machine_of_the_node_must_exist_exactly_once() {
    let found = |count| {
        format!(r#"Expected exactly one machine in namespace "shoot--machines" for node "n1" but found {count}"#)
    };
    for (machines, basis, count) in [
        (&[][..], Basis::NotYet, 0),
        (&[("others", "m1", "n1")], Basis::NotYet, 0),
        (&[(MACHINES, "m1", ""), (MACHINES, "m2", "n2")], Basis::NotYet, 0),
        (&[(MACHINES, "m1", "n1"), (MACHINES, "m2", "n1")], Basis::Cluster, 2),
    ] {
        Case::with_machines(machines).is_denied(basis, &found(count));
    }
    let others = [(MACHINES, "m1", "n1"), (MACHINES, "m2", "n2"), ("others", "m1", "n1")];
    assert_eq!(Case::with_machines(&others).verdict(), APPROVED);
}

/// spec 32 §6 K6, scenario 11
#[test]
fn machine_namespace_unset_means_no_machine_is_looked_up() {
    let mut case = Case::with_machines(&[]);
    case.world.machine_namespace = None;

    assert_eq!(case.verdict(), APPROVED);
    assert_eq!(*case.world.asked.borrow(), [Lookup::Node("n1".to_owned())]);
}

/// spec 32 §6 K6
#[test]
fn node_name_too_long_for_a_label_has_no_machine() {
    let (username, node) = (format!("system:node:{}", "n".repeat(64)), "n".repeat(64));
    let world = World::empty().node(&node, &[("Hostname", "n1")]);
    let parts = Parts::usual(&username, &["system:nodes"], &["n1"], &[]);

    let verdict = world.judge(&csr(SERVING, &username, &parts.pem()));

    assert!(matches!(verdict, CsrVerdict::Denied(_, denial) if denial.reason.ends_with("but found 0")));
    assert_eq!(*world.asked.borrow(), [Lookup::Node(node)], "an API server refuses such a selector");
}

/// spec 32 §6 K8, scenario 12, "Better than upstream" 8
#[test]
fn dns_names_must_be_those_of_the_node() {
    let ip = ("InternalIP", "10.0.0.1");
    for (case, basis, values) in [
        (Case { dns: &["n1", "other"], ..Case::approved() }, Basis::NotYet, r#"not in node object: "other""#),
        (Case { dns: &[], ..Case::approved() }, Basis::Cluster, r#"not in CSR: "n1""#),
        (Case { dns: &["N1"], ..Case::approved() }, Basis::Cluster, r#"not in CSR: "n1"; not in node object: "N1""#),
        (Case { dns: &["n1."], ..Case::approved() }, Basis::Cluster, r#"not in CSR: "n1"; not in node object: "n1.""#),
        (Case::on(&[ip]), Basis::NotYet, r#"not in node object: "n1""#),
        (
            Case::on(&[ip, ("Hostname", "n1"), ("InternalDNS", "n1.local"), ("ExternalDNS", "a.b")]),
            Basis::Cluster,
            r#"not in CSR: "a.b", "n1.local""#,
        ),
    ] {
        case.is_denied(basis, &format!("{NO_DNS_MATCH}; {values}"));
    }
}

/// spec 32 §6 K9, scenario 13, "Better than upstream" 8
#[test]
fn ip_addresses_must_be_those_of_the_node() {
    let name = ("Hostname", "n1");
    for (case, basis, values) in [
        (
            Case::on(&[name, ("InternalIP", "10.0.0.1"), ("ExternalIP", "192.0.2.1")]),
            Basis::Cluster,
            r#"not in CSR: "192.0.2.1""#,
        ),
        (
            Case { ips: &[&[10, 0, 0, 1], &[10, 0, 0, 2]], ..Case::approved() },
            Basis::NotYet,
            r#"not in node object: "10.0.0.2""#,
        ),
        (
            Case { ips: &[MAPPED], ..Case::approved() },
            Basis::Cluster,
            r#"not in CSR: "10.0.0.1"; not in node object: "::ffff:10.0.0.1""#,
        ),
        (
            Case { ips: &[LINK_LOCAL], ..Case::on(&[name, ("InternalIP", "fe80::1%eth0")]) },
            Basis::Cluster,
            r#"not in CSR: "fe80::1%eth0"; not in node object: "fe80::1""#,
        ),
    ] {
        case.is_denied(basis, &format!("{NO_IP_MATCH}; {values}"));
    }
}

/// spec 32 §6 K7, scenario 14
#[test]
fn node_with_an_invalid_address_gets_no_certificate() {
    for address in ["abc", "", "10.0.0", "010.0.0.1", "10.0.0.1%eth0", "fe80::1%", "10.0.0.1/24", " 10.0.0.1"] {
        let case = Case { dns: &["other"], ..Case::on(&[("Hostname", "n1"), ("InternalIP", address)]) };

        let CsrVerdict::Denied(_, denial) = case.verdict() else { panic!("{address}: {:?}", case.verdict()) };

        let text = format!("IP address {address:?} in node.Status.Addresses is invalid: ");
        assert!(denial.reason.starts_with(&text), "before K8: {}", denial.reason);
        assert_eq!(denial.basis, Basis::Cluster);
    }
}

/// "Better than upstream" 8: additive, but bounded.
#[test]
fn surplus_names_are_counted_and_a_few_are_shown() {
    let names: Vec<String> = (0..1000).map(|i| format!("{i:03}{}", "x".repeat(1000))).collect();
    let parts = Parts::usual(
        "system:node:n1",
        &["system:nodes"],
        &names.iter().map(String::as_str).collect::<Vec<_>>(),
        &[&[10, 0, 0, 1]],
    );

    let CsrVerdict::Denied(_, denial) = Case::approved().world.judge(&csr(SERVING, "system:node:n1", &parts.pem()))
    else {
        panic!("expected a denial")
    };

    assert!(denial.reason.ends_with("and 995 more"), "{}", denial.reason);
    assert!(denial.reason.len() < 4000);
}
