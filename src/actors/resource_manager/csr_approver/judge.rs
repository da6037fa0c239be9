//! Which user gets which certificate: the tables of spec 32 §6 and §7.

use std::{
    collections::BTreeSet,
    fmt::{self, Display, Formatter},
    time::Duration,
};

use kit::quote::{quoted, shown};

use super::{
    csr::{Csr, KUBELET, Signer},
    facts::{Facts, Lookup, NodeAddresses, NodeIp, can_be_a_label, can_be_a_name},
};
use crate::actors::shared::certificate_request::Request;

const KUBELETS: &str = "system:nodes";
const BOOTSTRAP: &str = "system:bootstrap:";
/// Username prefix of node agents; the name of the Machine follows.
const NODE_AGENT: &str = "gardener.cloud:node-agent:machine:";
const NODE_AGENTS: &str = "gardener.cloud:node-agents";
const GARDENADM: &str = "gardener.cloud:gardenadm:shoot:";
const SHOOTS: &str = "gardener.cloud:system:shoots";
/// The user of node agents that have no certificate yet.
const MIGRATION: &str = "system:serviceaccount:kube-system:gardener-node-agent";

/// How long a denial may be delayed. Kubelets report their addresses every 10 s.
const GRACE: Duration = Duration::from_secs(10);

const SHOWN_VALUES: usize = 5;

/// The decision on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CsrVerdict {
    /// All checks passed.
    Approved(Certificate),
    /// A check failed.
    Denied(Certificate, Denial),
    /// Another controller has to decide; nothing is written. The text is the reason, for a debug log.
    NoOpinion(String),
}

/// The kind of a certificate; it selects the wording of the condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certificate {
    /// A server certificate of a kubelet.
    KubeletServing,
    /// A client certificate of a node agent, or of gardenadm.
    NodeAgent,
}

/// Why a request is denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The text in parentheses in the condition.
    pub reason: String,
    /// The facts on which the denial rests.
    pub basis: Basis,
}

/// The facts on which a denial rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The request and its user alone. No change in a cluster affects it.
    Request,
    /// The state or the absence of a Node or Machine.
    Cluster,
    /// The absence of a Node, of one of its addresses, or of the label of its Machine: it may appear soon.
    NotYet,
}

/// Ends the checks early: by a denial, or by a fact to look up first.
enum Stop {
    Denied(Denial),
    Lookup(Lookup),
}

impl CsrVerdict {
    /// Returns true for denials that live reads must confirm: they are final (spec 32 T3, "Better than upstream" 1).
    pub fn must_be_confirmed(&self) -> bool {
        matches!(self, Self::Denied(_, Denial { basis: Basis::Cluster | Basis::NotYet, .. }))
    }

    /// Returns how long a denial of a request of this age may still wait for a missing fact that may appear soon; `None`
    /// if it may not (spec 32, "Better than upstream" 1).
    pub fn wait(&self, age: Duration) -> Option<Duration> {
        let may_appear = matches!(self, Self::Denied(_, Denial { basis: Basis::NotYet, .. }));
        GRACE.checked_sub(age).filter(|left| may_appear && !left.is_zero())
    }
}

impl Display for CsrVerdict {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Approved(_) => f.write_str("approved"),
            Self::Denied(_, denial) => write!(f, "denied: {}", denial.reason),
            Self::NoOpinion(why) => write!(f, "left to others: {why}"),
        }
    }
}

impl From<Lookup> for Stop {
    fn from(lookup: Lookup) -> Self {
        Self::Lookup(lookup)
    }
}

/// Judges a request, or returns the fact to look up first. Without a `machine_namespace` no Machine is looked up.
pub fn judge(csr: &Csr, machine_namespace: Option<&str>, facts: &dyn Facts) -> Result<CsrVerdict, Lookup> {
    let (certificate, checked) = match csr.signer {
        Signer::KubeletServing => (Certificate::KubeletServing, kubelet_serving(csr, machine_namespace, facts)),
        Signer::KubeApiserverClient => {
            let common_name = &csr.request.common_name;
            let checked = if let Some(machine) = common_name.strip_prefix(NODE_AGENT) {
                node_agent(csr, machine, machine_namespace, facts)
            } else if common_name.starts_with(GARDENADM) {
                gardenadm(csr)
            } else {
                return Ok(CsrVerdict::NoOpinion(format!(
                    "commonName {} is not prefixed with {NODE_AGENT:?} or {GARDENADM:?}",
                    shown(common_name)
                )));
            };
            (Certificate::NodeAgent, checked)
        }
    };
    match checked {
        Ok(()) => Ok(CsrVerdict::Approved(certificate)),
        Err(Stop::Denied(denial)) => Ok(CsrVerdict::Denied(certificate, denial)),
        Err(Stop::Lookup(lookup)) => Err(lookup),
    }
}

/// spec 32 §6.
fn kubelet_serving(csr: &Csr, machine_namespace: Option<&str>, facts: &dyn Facts) -> Result<(), Stop> {
    let Csr { username, request, .. } = csr;
    let Some(node) = username.strip_prefix(KUBELET) else {
        return denied(format!("username {} is not prefixed with {KUBELET:?}", shown(username)));
    };
    if request.dns_names.is_empty() && request.ip_addresses.is_empty() {
        return denied("no DNS names or IP addresses in the SANs found");
    }
    if request.common_name != *username {
        return denied("common name in CSR does not match username");
    }
    if request.organizations != [KUBELETS] {
        return denied("organization in CSR does not match nodes group");
    }

    let no_node = || format!("could not find node object with name {}", shown(node));
    if !can_be_a_name(node) {
        return denied(no_node());
    }
    let Some(addresses) = facts.node(node)? else { return denied_for(Basis::NotYet, no_node()) };
    if let Some(namespace) = machine_namespace {
        let count = if can_be_a_label(node) { facts.machines_of(node)? } else { 0 };
        if count != 1 {
            let basis = if count == 0 { Basis::NotYet } else { Basis::Cluster };
            let (namespace, node) = (quoted(namespace), quoted(node));
            return denied_for(
                basis,
                format!("Expected exactly one machine in namespace {namespace} for node {node} but found {count}"),
            );
        }
    }
    names_match(request, &addresses)
}

/// spec 32 §6 K7 to K9.
fn names_match(request: &Request, addresses: &NodeAddresses) -> Result<(), Stop> {
    let mut node_ips = Vec::new();
    for text in &addresses.ip_addresses {
        match NodeIp::parse(text) {
            Ok(ip) => node_ips.push((text, ip)),
            Err(cause) => {
                let reason = format!("IP address {} in node.Status.Addresses is invalid: {cause}", shown(text));
                return denied_for(Basis::Cluster, reason);
            }
        }
    }

    let asked: BTreeSet<_> = request.dns_names.iter().collect();
    let there: BTreeSet<_> = addresses.dns_names.iter().collect();
    let missing: Vec<_> = there.difference(&asked).collect();
    let surplus: Vec<_> = asked.difference(&there).collect();
    same(
        "DNS names in CSR do not match addresses of type 'Hostname' or 'InternalDNS' or 'ExternalDNS' in node object",
        &missing,
        &surplus,
    )?;

    let asked: BTreeSet<_> = request.ip_addresses.iter().copied().collect();
    let there: BTreeSet<_> = node_ips.iter().filter(|(_, ip)| !ip.has_zone).map(|(_, ip)| ip.address).collect();
    let missing: BTreeSet<_> =
        node_ips.iter().filter(|(_, ip)| ip.has_zone || !asked.contains(&ip.address)).map(|(text, _)| text).collect();
    same(
        "IP addresses in CSR do not match addresses of type 'InternalIP' or 'ExternalIP' in node object",
        &Vec::from_iter(missing),
        &asked.difference(&there).collect::<Vec<_>>(),
    )
}

fn same(mismatch: &str, missing: &[impl Display], surplus: &[impl Display]) -> Result<(), Stop> {
    let basis = match (missing, surplus) {
        ([], []) => return Ok(()),
        ([], _) => Basis::NotYet,
        (_, _) => Basis::Cluster,
    };
    let mut reason = mismatch.to_owned();
    for (what, values) in [("not in CSR", listed(missing)), ("not in node object", listed(surplus))] {
        if !values.is_empty() {
            reason.push_str(&format!("; {what}: {values}"));
        }
    }
    denied_for(basis, reason)
}

/// spec 32 §7.1, `machine` being the name in the common name.
fn node_agent(csr: &Csr, machine: &str, machine_namespace: Option<&str>, facts: &dyn Facts) -> Result<(), Stop> {
    let no_machine = || format!("machine {} does not exist", shown(machine));
    if !can_be_a_name(machine) {
        return denied(no_machine());
    }
    let node = match machine_namespace {
        Some(_) => match facts.machine(machine)? {
            Some(record) => record.node,
            None => return denied_for(Basis::Cluster, no_machine()),
        },
        None => machine.to_owned(),
    };

    may_ask(csr, machine, &node, machine_namespace, facts)?;
    // Decision 7: a certificate for another group is not for a node agent.
    match csr.request.organizations.as_slice() {
        [] => Ok(()),
        [only] if only == NODE_AGENTS => Ok(()),
        _ => denied("organization in CSR does not match node-agents group"),
    }
}

/// spec 32 §7.1 step 2: may this user ask for this Machine? `node` is the Node of the Machine, or empty.
fn may_ask(
    csr: &Csr,
    machine: &str,
    node: &str,
    machine_namespace: Option<&str>,
    facts: &dyn Facts,
) -> Result<(), Stop> {
    let Csr { username, request, .. } = csr;
    let not_allowed =
        || format!("username {} is not allowed to create CSRs for a gardener-node-agent", shown(username));

    if username.starts_with(BOOTSTRAP) {
        // A label may hold a value that is not a valid Node name.
        if can_be_a_name(node) && facts.node(node)?.is_some() {
            let machine = shown(machine);
            let reason = format!(
                "Cannot use bootstrap token since gardener-node-agent for machine {machine} is already bootstrapped"
            );
            return denied_for(Basis::Cluster, reason);
        }
        return Ok(());
    }
    if username.starts_with(NODE_AGENT) {
        let common_name = &request.common_name;
        if username != common_name {
            let (username, common_name) = (shown(username), shown(common_name));
            return denied(format!("username {username} and commonName {common_name} do not match"));
        }
        return Ok(());
    }
    if username == MIGRATION {
        if node.is_empty() {
            let reason =
                "gardener-node-agent service account is allowed to create CSRs for machines with existing nodes only";
            return denied_for(Basis::Cluster, reason);
        }
        return Ok(());
    }
    if let Some(kubelet) = username.strip_prefix(KUBELET) {
        // Decision 6. The check needs a name that is a valid label value.
        if machine_namespace.is_none() || !can_be_a_label(kubelet) {
            return denied(not_allowed());
        }
        if !node.is_empty() || facts.machines_of(kubelet)? > 0 {
            return denied_for(Basis::Cluster, not_allowed());
        }
        return Ok(());
    }
    denied(not_allowed())
}

/// spec 32 §7.2.
fn gardenadm(csr: &Csr) -> Result<(), Stop> {
    if !csr.username.starts_with(BOOTSTRAP) {
        let username = shown(&csr.username);
        return denied(format!("username {username} is not allowed to create CSRs for a gardenadm client"));
    }
    if csr.request.organizations != [SHOOTS] {
        return denied("organization in CSR does not match nodes group");
    }
    Ok(())
}

fn denied(reason: impl Into<String>) -> Result<(), Stop> {
    denied_for(Basis::Request, reason)
}

fn denied_for(basis: Basis, reason: impl Into<String>) -> Result<(), Stop> {
    Err(Stop::Denied(Denial { reason: reason.into(), basis }))
}

fn listed(values: &[impl Display]) -> String {
    let mut texts: Vec<_> = values.iter().take(SHOWN_VALUES).map(|value| shown(&value.to_string())).collect();
    if values.len() > SHOWN_VALUES {
        texts.push(format!("and {} more", values.len() - SHOWN_VALUES));
    }
    texts.join(", ")
}
