//! Nodes, Machines and certificate requests come and go. Each decision must have been right shortly before it was made.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gardener_resource_manager::{
    actors::resource_manager::csr_approver::{
        csr::Csr,
        facts::{Facts, Lookup, Machine, NodeAddresses},
        judge::{CsrVerdict, judge},
    },
    api::config::resource_manager::{CsrApprover, Workers},
};
use serde_json::{Value, json};
use sim::{RequestInfo, Sim};
use tokio::time::Instant;

use crate::{
    builder::Parts,
    world::{NAMESPACE, World},
};

const REQUESTS: &str = "certificatesigningrequests.certificates.k8s.io";
const MACHINES: &str = "machines.machine.sapcloud.io";
/// Nodes `n0` to `n2`, Machines `m0` to `m2`.
const NUMBERS: u8 = 3;

/// The facts of a decision may be this old: a reconcile may take a minute, and a watch counts as fresh for 150 s.
const LAG: Duration = Duration::from_secs(220);
const SHORT_LAG: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub(super) struct Registrar {
    observed: Arc<Mutex<Observed>>,
    sim: Sim,
    machines: bool,
    /// Whether requests and events are undisturbed.
    calm: bool,
    /// Whether events get lost: the program's cache may then be arbitrarily old.
    lossy: bool,
}

#[derive(Default)]
struct Observed {
    states: Vec<(Instant, CsrState)>,
    requests: BTreeMap<String, Asked>,
    broken: Option<Instant>,
}

#[derive(Clone, Default)]
struct CsrState {
    nodes: BTreeMap<String, NodeAddresses>,
    machines: BTreeMap<String, String>,
}

struct Asked {
    csr: Csr,
    decided: Option<(Instant, Instant)>,
    checked: bool,
}

impl Facts for CsrState {
    fn node(&self, name: &str) -> Result<Option<NodeAddresses>, Lookup> {
        Ok(self.nodes.get(name).cloned())
    }

    fn machine(&self, name: &str) -> Result<Option<Machine>, Lookup> {
        Ok(self.machines.get(name).map(|node| Machine { node: node.clone() }))
    }

    fn machines_of(&self, node: &str) -> Result<usize, Lookup> {
        Ok(self.machines.values().filter(|of| *of == node).count())
    }
}

impl Registrar {
    pub(super) fn new(world: &World, machines: bool, calm: bool, lossy: bool) -> Self {
        let machine_namespace = machines.then(|| NAMESPACE.to_owned());
        let approver = CsrApprover { concurrent_syncs: Workers::new(2), machine_namespace };
        world.config.borrow_mut().controllers.csr_approver = approver.into();
        if machines {
            world.sim.put(definition()).expect("the definition of Machines");
        }
        let this = Self { observed: Arc::default(), sim: world.sim.clone(), machines, calm, lossy };
        this.observed().states.push((Instant::now(), CsrState::default()));
        this
    }

    fn observed(&self) -> MutexGuard<'_, Observed> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn see(&self, info: &RequestInfo) {
        if info.subresource == "approval"
            && let Some(asked) = self.observed().requests.get_mut(&info.name)
        {
            let now = Instant::now();
            asked.decided = Some((asked.decided.map_or(now, |(first, _)| first), now));
        }
    }

    pub(super) fn watches_broke(&self) {
        self.observed().broken = Some(Instant::now());
    }

    pub(super) fn act(&self, random: &mut fastrand::Rng, step: usize) -> String {
        let number = random.u8(0..NUMBERS);
        match random.u8(0..10) {
            0..=2 => self.change_node(number, random),
            3..=5 if self.machines => self.change_machine(number, random),
            _ => {
                let name = format!("csr-{step}-{}", self.observed().requests.len());
                self.ask(&name, number, random)
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut CsrState)) {
        let mut observed = self.observed();
        let mut state = observed.states.last().map(|(_, state)| state.clone()).unwrap_or_default();
        change(&mut state);
        observed.states.push((Instant::now(), state));
    }

    fn change_node(&self, number: u8, random: &mut fastrand::Rng) -> String {
        let name = format!("n{number}");
        if self.sim.object("nodes", "", &name).is_some() && random.bool() {
            self.sim.remove("nodes", "", &name);
            self.change(|state| drop(state.nodes.remove(&name)));
            return format!("Node {name} goes");
        }
        let mut addresses = vec![json!({ "type": "Hostname", "address": name })];
        if random.u8(0..4) > 0 {
            addresses.push(json!({ "type": "InternalIP", "address": format!("10.0.0.{number}") }));
        }
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": name }, "status": { "addresses": addresses }
        });
        let stored = self.sim.put(node).expect("a Node");
        self.change(|state| drop(state.nodes.insert(name.clone(), NodeAddresses::of(&stored))));
        format!("Node {name} has {} addresses", addresses.len())
    }

    fn change_machine(&self, number: u8, random: &mut fastrand::Rng) -> String {
        let name = format!("m{number}");
        if self.sim.object(MACHINES, NAMESPACE, &name).is_some() && random.u8(0..3) == 0 {
            self.sim.remove(MACHINES, NAMESPACE, &name);
            self.change(|state| drop(state.machines.remove(&name)));
            return format!("Machine {name} goes");
        }
        let node = if random.u8(0..3) == 0 { String::new() } else { format!("n{number}") };
        let labels = if node.is_empty() { json!({}) } else { json!({ "node": node }) };
        let metadata = json!({ "namespace": NAMESPACE, "name": name, "labels": labels });
        let machine = json!({ "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine", "metadata": metadata });
        self.sim.put(machine).expect("a Machine");
        self.change(|state| drop(state.machines.insert(name.clone(), node.clone())));
        format!("Machine {name} is of Node {node:?}")
    }

    fn ask(&self, name: &str, number: u8, random: &mut fastrand::Rng) -> String {
        let serving = "kubernetes.io/kubelet-serving";
        let client = "kubernetes.io/kube-apiserver-client";
        let (kubelet, agent) =
            (format!("system:node:n{number}"), format!("gardener.cloud:node-agent:machine:m{number}"));
        let for_kubelet = |address: u8| {
            let host = format!("n{number}");
            Parts::usual(&kubelet, &["system:nodes"], &[&host], &[&[10, 0, 0, address]])
        };
        let for_agent = Parts::usual(&agent, &["gardener.cloud:node-agents"], &[], &[]);
        let (signer, user, parts, usage) = match random.u8(0..8) {
            0..=2 => (serving, kubelet.clone(), for_kubelet(number), "server auth"),
            3 => (serving, kubelet.clone(), for_kubelet(number + 1), "server auth"),
            4 => (client, "system:bootstrap:abcdef".to_owned(), for_agent, "client auth"),
            5 => (client, agent.clone(), for_agent, "client auth"),
            6 => (client, format!("system:node:n{}", (number + 1) % NUMBERS), for_agent, "client auth"),
            // Other approvers decide about requests of kubelet clients.
            _ => ("kubernetes.io/kube-apiserver-client-kubelet", kubelet.clone(), for_kubelet(number), "client auth"),
        };
        let request = json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": { "name": name },
            "spec": {
                "request": BASE64_STANDARD.encode(parts.pem()), "signerName": signer, "username": user,
                "usages": ["digital signature", usage],
            },
        });
        if let Some(csr) = Csr::read(&request).expect("a readable request") {
            self.observed().requests.insert(name.to_owned(), Asked { csr, decided: None, checked: false });
        }
        self.sim.put(request).expect("a request");
        // The server sets the fields of the sender.
        self.sim.edit(REQUESTS, "", name, |live| live["spec"]["username"] = json!(user));
        format!("{user} asks for {name} from {signer}")
    }

    pub(super) fn violations(&self) -> Vec<String> {
        let mut observed = self.observed();
        let Observed { states, requests, broken } = &mut *observed;
        let mut violations = Vec::new();
        for (name, asked) in requests.iter_mut().filter(|(_, asked)| !asked.checked) {
            let Some(approved) = self.decision(name) else { continue };
            asked.checked = true;
            let Some((first, last)) = asked.decided else {
                violations.push(format!("{name} was decided by an unseen request"));
                continue;
            };
            let is_quiet = self.calm && broken.is_none_or(|broken| first - broken > LAG);
            let lag = if is_quiet { SHORT_LAG } else { LAG };
            let ends = states.iter().skip(1).map(|(since, _)| Some(*since)).chain([None]);
            let mut counted = states
                .iter()
                .zip(ends)
                .filter(|((since, _), end)| *since <= last && (self.lossy || end.is_none_or(|end| end + lag >= first)));
            if !counted.any(|((_, state), _)| self.verdict(&asked.csr, state) == Some(approved)) {
                violations.push(format!("{name} was wrongly decided, approved: {approved}"));
            }
        }
        violations
    }

    pub(super) fn undecided(&self) -> Vec<String> {
        let observed = self.observed();
        let Some((_, state)) = observed.states.last() else { return Vec::new() };
        let open = observed
            .requests
            .iter()
            .filter(|(name, asked)| self.decision(name).is_none() && self.verdict(&asked.csr, state).is_some());
        open.map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn is_open(&self, name: &str) -> bool {
        self.observed().requests.contains_key(name) && self.decision(name).is_none()
    }

    fn decision(&self, name: &str) -> Option<bool> {
        let conditions = |csr: &Value| csr["status"]["conditions"].clone();
        let conditions = self.sim.look_at(REQUESTS, "", name, conditions)?;
        let mut kinds = conditions.as_array()?.iter().map(|condition| condition["type"] == "Approved");
        kinds.next()
    }

    /// Whether a request should be approved; `None` if the decision is not ours.
    fn verdict(&self, csr: &Csr, state: &CsrState) -> Option<bool> {
        match judge(csr, self.machines.then_some(NAMESPACE), state).expect("everything is known") {
            CsrVerdict::Approved(_) => Some(true),
            CsrVerdict::Denied(..) => Some(false),
            CsrVerdict::NoOpinion(_) => None,
        }
    }
}

fn definition() -> Value {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": MACHINES },
        "spec": {
            "group": "machine.sapcloud.io", "scope": "Namespaced",
            "names": { "plural": "machines", "singular": "machine", "kind": "Machine", "listKind": "MachineList" },
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}
