//! The tables of spec 32, and properties of all requests.

pub(crate) mod builder;
mod clients;
mod conditions;
mod live;
mod properties;
mod requests;
mod serving;

use std::{cell::RefCell, collections::BTreeMap};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{condition::*, csr::*, facts::*, judge::*};
use crate::actors::shared::certificate_request::{Request, Unreadable};

const SERVING: &str = "kubernetes.io/kubelet-serving";
const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const MACHINES: &str = "shoot--machines";

#[derive(Debug, Clone)]
struct World {
    machine_namespace: Option<&'static str>,
    nodes: BTreeMap<String, NodeAddresses>,
    machines: BTreeMap<(String, String), String>,
    asked: RefCell<Vec<Lookup>>,
}

impl World {
    fn empty() -> Self {
        let (nodes, machines, asked) = Default::default();
        Self { machine_namespace: Some(MACHINES), nodes, machines, asked }
    }

    fn node(mut self, name: &str, addresses: &[(&str, &str)]) -> Self {
        let addresses: Vec<_> =
            addresses.iter().map(|(kind, address)| json!({"type": kind, "address": address})).collect();
        self.nodes.insert(name.to_owned(), NodeAddresses::of(&json!({"status": {"addresses": addresses}})));
        self
    }

    fn machine(mut self, namespace: &str, name: &str, node: &str) -> Self {
        let labels = if node.is_empty() { json!({}) } else { json!({"node": node}) };
        let machine = Machine::of(&json!({"metadata": {"name": name, "labels": labels}}));
        self.machines.insert((namespace.to_owned(), name.to_owned()), machine.node);
        self
    }

    fn judge(&self, csr: &Value) -> CsrVerdict {
        let csr = Csr::read(csr).unwrap().expect("the request needs a judgement");
        judge(&csr, self.machine_namespace, self).unwrap()
    }
}

impl Facts for World {
    fn node(&self, name: &str) -> Result<Option<NodeAddresses>, Lookup> {
        self.asked.borrow_mut().push(Lookup::Node(name.to_owned()));
        Ok(self.nodes.get(name).cloned())
    }

    fn machine(&self, name: &str) -> Result<Option<Machine>, Lookup> {
        self.asked.borrow_mut().push(Lookup::Machine(name.to_owned()));
        let namespace = self.machine_namespace.expect("Machines are asked for in their namespace only").to_owned();
        Ok(self.machines.get(&(namespace, name.to_owned())).map(|node| Machine { node: node.clone() }))
    }

    fn machines_of(&self, node: &str) -> Result<usize, Lookup> {
        self.asked.borrow_mut().push(Lookup::MachinesOf(node.to_owned()));
        let namespace = self.machine_namespace.expect("Machines are asked for in their namespace only");
        Ok(self.machines.iter().filter(|((of, _), label)| of == namespace && *label == node).count())
    }
}

fn csr(signer: &str, username: &str, pem: &str) -> Value {
    json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": "csr-1", "resourceVersion": "7"},
        "spec": {"signerName": signer, "username": username, "request": STANDARD.encode(pem), "usages": ["client auth"]},
        "status": {},
    })
}

fn denied(certificate: Certificate, basis: Basis, reason: &str) -> CsrVerdict {
    CsrVerdict::Denied(certificate, Denial { reason: reason.to_owned(), basis })
}
