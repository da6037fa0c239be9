//! Properties of all requests: nothing panics, and one deviation from an approved request prevents the approval.

use std::net::{IpAddr, Ipv4Addr};

use proptest::{collection, prelude::*, sample::Index};

use super::{builder::Parts, *};

#[derive(Debug, Clone)]
struct Case {
    signer: String,
    username: String,
    common_name: String,
    organizations: Vec<String>,
    dns: Vec<String>,
    ips: Vec<IpAddr>,
    world: World,
}

type Change = (&'static str, fn(&mut Case));

impl Case {
    fn is_approved(&self) -> bool {
        let octets = |ip: &IpAddr| match ip {
            IpAddr::V4(ip) => ip.octets().to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        };
        let ips: Vec<_> = self.ips.iter().map(octets).collect();
        let texts = |texts: &'_ [String]| texts.to_vec();
        let (organizations, dns) = (texts(&self.organizations), texts(&self.dns));
        let parts = Parts::usual(
            &self.common_name,
            &organizations.iter().map(String::as_str).collect::<Vec<_>>(),
            &dns.iter().map(String::as_str).collect::<Vec<_>>(),
            &ips.iter().map(Vec::as_slice).collect::<Vec<_>>(),
        );
        let csr = Csr::read(&csr(&self.signer, &self.username, &parts.pem())).unwrap();
        csr.is_some_and(|csr| {
            matches!(judge(&csr, self.world.machine_namespace, &self.world), Ok(CsrVerdict::Approved(_)))
        })
    }

    fn node(&mut self) -> &mut NodeAddresses {
        self.world.nodes.values_mut().next().expect("the world has a Node")
    }

    fn labels(&mut self) -> impl Iterator<Item = &mut String> {
        self.world.machines.iter_mut().filter(|((namespace, _), _)| namespace == MACHINES).map(|(_, label)| label)
    }
}

fn serving() -> impl Strategy<Value = Case> {
    let dns = collection::btree_set("[a-z][a-z0-9.-]{0,12}", 1..4);
    let ips = collection::btree_set(any::<IpAddr>(), 1..4);
    ("[a-z]([a-z0-9-]{0,20}[a-z0-9])?", dns, ips, any::<bool>()).prop_map(|(name, dns, ips, has_machines)| {
        let types = |types: &[&'static str], n: usize| types[n % types.len()];
        let mut addresses = vec![("Unknown", "x".to_owned())];
        for (i, name) in dns.iter().enumerate() {
            addresses.push((types(&["Hostname", "InternalDNS", "ExternalDNS"], i), name.clone()));
        }
        for (i, ip) in ips.iter().enumerate() {
            addresses.push((types(&["InternalIP", "ExternalIP"], i), ip.to_string()));
        }
        let addresses: Vec<_> = addresses.iter().map(|(kind, address)| (*kind, address.as_str())).collect();
        let world =
            World::empty().node(&name, &addresses).machine(MACHINES, "m1", &name).machine(MACHINES, "m2", "a.b");
        Case {
            signer: SERVING.to_owned(),
            username: format!("system:node:{name}"),
            common_name: format!("system:node:{name}"),
            organizations: vec!["system:nodes".to_owned()],
            dns: dns.into_iter().rev().collect(),
            ips: ips.into_iter().rev().collect(),
            world: World { machine_namespace: has_machines.then_some(MACHINES), ..world },
        }
    })
}

const SERVING_CHANGES: [Change; 27] = [
    ("signer of clients", |case| case.signer = CLIENT.to_owned()),
    ("another signer", |case| case.signer.push('x')),
    ("another user", |case| case.username.push('x')),
    ("another common name", |case| case.common_name.push('x')),
    ("common name in upper case", |case| case.common_name = case.common_name.to_uppercase()),
    ("no common name", |case| case.common_name.clear()),
    ("another Node", |case| {
        case.username.push('x');
        case.common_name.push('x');
    }),
    ("no Node by prefix", |case| {
        case.username = case.username.replace("system:node:", "");
        case.common_name.clone_from(&case.username);
    }),
    ("no organization", |case| case.organizations.clear()),
    ("another organization", |case| case.organizations[0].push('x')),
    ("one more organization", |case| case.organizations.push("system:masters".to_owned())),
    ("one more before it", |case| case.organizations.insert(0, String::new())),
    ("one more DNS name", |case| case.dns.push("Surplus".to_owned())),
    ("one DNS name less", |case| drop(case.dns.pop())),
    ("another DNS name", |case| case.dns[0].push('.')),
    ("no DNS names", |case| case.dns.clear()),
    ("one more IP address", |case| case.ips.push(surplus_ip(&case.ips))),
    ("one IP address less", |case| case.ips.truncate(case.ips.len() - 1)),
    ("another IP address", |case| case.ips[0] = surplus_ip(&case.ips)),
    ("no IP addresses", |case| case.ips.clear()),
    ("neither names nor addresses", |case| {
        case.dns.clear();
        case.ips.clear();
    }),
    ("Node gone", |case| case.world.nodes.clear()),
    ("one more name of the Node", |case| case.node().dns_names.push("Surplus".to_owned())),
    ("one name of the Node less", |case| drop(case.node().dns_names.pop())),
    ("one address of the Node less", |case| drop(case.node().ip_addresses.pop())),
    ("one more address of the Node", |case| {
        let ip = surplus_ip(&case.ips).to_string();
        case.node().ip_addresses.push(ip);
    }),
    ("an invalid address of the Node", |case| case.node().ip_addresses.push("10.0.0".to_owned())),
];

const MACHINE_CHANGES: [Change; 5] = [
    ("no Machine", |case| case.world.machines.clear()),
    ("no label", |case| case.labels().for_each(String::clear)),
    ("another label", |case| case.labels().for_each(|label| label.push('x'))),
    ("two Machines", |case| {
        let label = case.labels().next().expect("the world has a Machine").clone();
        case.labels().for_each(|other| other.clone_from(&label));
    }),
    ("another namespace", |case| {
        case.world.machines = case
            .world
            .machines
            .iter()
            .map(|((_, name), label)| (("others".to_owned(), name.clone()), label.clone()))
            .collect();
    }),
];

fn surplus_ip(ips: &[IpAddr]) -> IpAddr {
    let candidates = (0..=u8::MAX).map(|last| IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)));
    candidates.into_iter().find(|ip| !ips.contains(ip)).expect("there are fewer addresses than candidates")
}

/// An approved request of a node agent. `user` is the username (empty: the common name), whether a Machine namespace is
/// configured, and the label of the Machine.
fn node_agent() -> impl Strategy<Value = Case> {
    let organizations = prop_oneof![Just(vec![]), Just(vec!["gardener.cloud:node-agents".to_owned()])];
    let user = prop_oneof![
        Just(("system:bootstrap:abc", true, "")),
        Just(("system:bootstrap:abc", true, "n1")),
        Just(("system:bootstrap:abc", false, "")),
        Just(("", true, "")),
        Just(("", true, "n1")),
        Just(("", false, "")),
        Just(("system:serviceaccount:kube-system:gardener-node-agent", true, "n1")),
        Just(("system:serviceaccount:kube-system:gardener-node-agent", false, "")),
        Just(("system:node:kubelet", true, "")),
    ];
    ("[a-z]([a-z0-9-]{0,20}[a-z0-9])?", organizations, user).prop_map(|(machine, organizations, user)| {
        let (username, has_machines, node) = user;
        let common_name = format!("gardener.cloud:node-agent:machine:{machine}");
        let world = World::empty().machine(MACHINES, &machine, node).machine(MACHINES, "a.b", "n2");
        Case {
            signer: CLIENT.to_owned(),
            username: if username.is_empty() { common_name.clone() } else { username.to_owned() },
            common_name,
            organizations,
            dns: vec![],
            ips: vec![],
            world: World { machine_namespace: has_machines.then_some(MACHINES), ..world },
        }
    })
}

const AGENT_CHANGES: [Change; 9] = [
    ("signer of servers", |case| case.signer = SERVING.to_owned()),
    ("another signer", |case| case.signer.push('x')),
    ("no user", |case| case.username.clear()),
    ("another user", |case| case.username.insert(0, 'x')),
    ("another kind of common name", |case| case.common_name.insert(0, 'x')),
    ("no Machine in the common name", |case| case.common_name = "gardener.cloud:node-agent:machine:".to_owned()),
    ("an impossible Machine", |case| case.common_name.push('/')),
    ("one more organization", |case| case.organizations.push("system:masters".to_owned())),
    ("another organization", |case| case.organizations = vec!["gardener.cloud:node-agentS".to_owned()]),
];

proptest! {
    #[test]
    fn serving_request_that_differs_in_one_thing_is_not_approved(case in serving()) {
        prop_assert!(case.is_approved());
        let machines: &[Change] = if case.world.machine_namespace.is_some() { &MACHINE_CHANGES } else { &[] };
        for (what, change) in SERVING_CHANGES.iter().chain(machines) {
            let mut changed = case.clone();
            change(&mut changed);

            prop_assert!(!changed.is_approved(), "{what}: {changed:?}");
        }
    }

    #[test]
    fn node_agent_request_that_differs_in_one_thing_is_not_approved(case in node_agent()) {
        prop_assert!(case.is_approved());
        let (has_machines, user) = (case.world.machine_namespace.is_some(), case.username.clone());
        let mut changed: Vec<(&str, Case)> = AGENT_CHANGES.iter().map(|(what, change)| {
            let mut changed = case.clone();
            change(&mut changed);
            (*what, changed)
        }).collect();
        let name = case.common_name.rsplit(':').next().unwrap_or_default().to_owned();
        let label = |label: &str| World { machine_namespace: Some(MACHINES), ..case.world.clone() }.machine(MACHINES, &name, label);
        let mut with = |what, world| changed.push((what, Case { world, ..case.clone() }));
        if has_machines {
            let others = case.world.machines.iter().filter(|((_, machine), _)| *machine != name);
            let others = others.map(|(key, label)| (key.clone(), label.clone())).collect();
            with("no Machine", World { machines: others, ..case.world.clone() });
        }
        if user.starts_with("system:bootstrap:") {
            with("Node there", if has_machines { label("n1") } else { case.world.clone() }.node("n1", &[]).node(&name, &[]));
        }
        if user.starts_with("system:serviceaccount:") {
            with("no label", label(""));
        }
        if user.starts_with("system:node:") {
            with("label", label("n1"));
            with("own label", label("kubelet"));
            with("another Machine", case.world.clone().machine(MACHINES, "a.b", "kubelet"));
            with("no Machines", World { machine_namespace: None, ..case.world.clone() });
        }
        if user == case.common_name {
            changed.push(("another agent", Case { username: format!("{user}x"), ..case.clone() }));
            changed.push(("another Machine", Case { common_name: "gardener.cloud:node-agent:machine:a.b".to_owned(), ..case.clone() }));
        }

        for (what, changed) in changed {
            prop_assert!(!changed.is_approved(), "{what}: {changed:?}");
        }
    }

    #[test]
    fn gardenadm_request_that_differs_in_one_thing_is_not_approved(shoot in "[a-z:]{0,20}", token in "[a-z0-9]{0,6}") {
        let case = Case {
            signer: CLIENT.to_owned(),
            username: format!("system:bootstrap:{token}"),
            common_name: format!("gardener.cloud:gardenadm:shoot:{shoot}"),
            organizations: vec!["gardener.cloud:system:shoots".to_owned()],
            dns: vec![],
            ips: vec![],
            world: World::empty(),
        };
        let changes: [Change; 7] = [
            ("signer of servers", |case| case.signer = SERVING.to_owned()),
            ("another signer", |case| case.signer.push('x')),
            ("another user", |case| case.username.insert(0, 'x')),
            ("another kind of common name", |case| case.common_name.insert(0, 'x')),
            ("no organization", |case| case.organizations.clear()),
            ("another organization", |case| case.organizations[0].push('x')),
            ("one more organization", |case| case.organizations.push("system:masters".to_owned())),
        ];

        prop_assert!(case.is_approved());
        for (what, change) in changes {
            let mut changed = case.clone();
            change(&mut changed);
            prop_assert!(!changed.is_approved(), "{what}: {changed:?}");
        }
    }

    #[test]
    fn parser_never_panics(bytes in collection::vec(any::<u8>(), 0..300)) {
        let _ = Request::from_der(&bytes);
        let _ = Request::from_pem(&bytes);
    }

    #[test]
    fn parser_reads_or_refuses_damaged_requests(
        damages in collection::vec((any::<Index>(), any::<u8>(), 0_u8..3), 1..6),
        in_text in any::<bool>(),
    ) {
        let parts = Parts::usual("system:node:n1", &["system:nodes"], &["n1", "n1.local"], &[&[10, 0, 0, 1]]);
        let mut bytes = if in_text { parts.pem().into_bytes() } else { parts.der() };
        for (index, octet, kind) in damages {
            let at = index.index(bytes.len());
            match kind {
                0 => bytes[at] = octet,
                1 => bytes.insert(at, octet),
                _ => drop(bytes.remove(at)),
            }
        }

        let read = if in_text { Request::from_pem(&bytes).ok() } else { Request::from_der(&bytes).ok() };

        let names = read.map_or(0, |request| request.dns_names.len() + request.ip_addresses.len());
        prop_assert!(names <= bytes.len());
    }
}
