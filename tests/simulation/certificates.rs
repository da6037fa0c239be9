//! The approver of CertificateSigningRequests beside everything else (spec 32): behaviour outside of its rules.

use std::rc::Rc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gardener_resource_manager::api::config::resource_manager::{CsrApprover, Workers};
use serde_json::{Value, json};
use sim::{Fault, Seen};

use crate::{
    builder::Parts,
    objects::machine_definition,
    world::{NAMESPACE, World, config_map, seconds, world},
};

const REQUESTS: &str = "certificatesigningrequests.certificates.k8s.io";
const KUBELET: &str = "system:node:node-1";
const APPROVED: &str = "Approving kubelet server certificate CSR (all checks passed)";

/// Requested by `system:node:node-1` of `system:nodes`, for `node-1`, `node-1.local`, 10.0.0.1 and 2001:db8::1.
pub(super) fn pem() -> String {
    let v6: [u8; 16] = "2001:db8::1".parse::<std::net::Ipv6Addr>().expect("an address").octets();
    Parts::usual(KUBELET, &["system:nodes"], &["node-1", "node-1.local"], &[&[10, 0, 0, 1], &v6]).pem()
}

async fn start(world: &World) {
    start_with(world, None).await;
}

async fn start_with(world: &World, machine_namespace: Option<&str>) {
    let settings =
        CsrApprover { concurrent_syncs: Workers::new(5), machine_namespace: machine_namespace.map(str::to_owned) };
    world.config.borrow_mut().controllers.csr_approver = settings.into();
    world.start().await;
    seconds(1).await;
    world.sim.clear_requests();
}

pub(super) fn node(world: &World) {
    let addresses = [
        ("Hostname", "node-1"),
        ("InternalDNS", "node-1.local"),
        ("InternalIP", "10.0.0.1"),
        ("InternalIP", "2001:db8:0:0:0:0:0:1"),
    ];
    let addresses: Vec<Value> =
        addresses.iter().map(|(kind, address)| json!({"type": kind, "address": address})).collect();
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}});
    world.sim.put(node).expect("a Node");
    world.sim.edit("nodes", "", "node-1", |live| live["status"]["addresses"] = json!(addresses));
}

pub(super) fn request(name: &str, signer: &str, pem: &str) -> Value {
    json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
        "spec": {"request": BASE64_STANDARD.encode(pem), "signerName": signer, "username": KUBELET,
            "usages": ["digital signature", "server auth"]},
    })
}

fn ask(world: &World, name: &str) {
    world.sim.put(request(name, "kubernetes.io/kubelet-serving", &pem())).expect("a request");
    world.sim.edit(REQUESTS, "", name, |live| live["spec"]["username"] = json!(KUBELET));
}

fn conditions(world: &World, name: &str) -> Vec<(String, String)> {
    let request = world.sim.object(REQUESTS, "", name).unwrap_or_default();
    let conditions = request["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    conditions.iter().map(|condition| (text(&condition["type"]), text(&condition["message"]))).collect()
}

fn decide(world: &Rc<World>, name: &str, kind: &str) {
    world.sim.edit(REQUESTS, "", name, |live| {
        live["status"]["conditions"] =
            json!([{"type": kind, "status": "True", "reason": "ByHand", "message": "by hand"}]);
    });
}

/// spec 32 scenario 1
#[test]
fn serving_certificate_is_approved_without_a_read() {
    world(1, |world| async move {
        node(&world);
        start(&world).await;
        ask(&world, "csr");
        seconds(1).await;

        assert_eq!(conditions(&world, "csr"), [("Approved".to_owned(), APPROVED.to_owned())]);
        assert_eq!(world.asked(), ["update certificatesigningrequests/approval csr"]);
    });
}

/// spec 32, "Better than upstream" 1
#[test]
fn node_created_some_seconds_after_the_request_is_found() {
    world(1, |world| async move {
        start(&world).await;
        ask(&world, "csr");
        seconds(3).await;
        assert_eq!(conditions(&world, "csr"), []);

        node(&world);
        seconds(2).await;
        assert_eq!(conditions(&world, "csr"), [("Approved".to_owned(), APPROVED.to_owned())]);
    });
}

/// spec 32, "Better than upstream" 1 and 6; spec 80 S-13
#[test]
fn request_that_waits_for_its_node_costs_nothing_until_it_is_decided() {
    for appears in [false, true] {
        world(1, |world| async move {
            start(&world).await;
            ask(&world, "csr");
            seconds(8).await;
            assert_eq!((conditions(&world, "csr"), world.asked()), (Vec::new(), Vec::new()));

            if appears {
                node(&world);
            }
            seconds(10).await;
            let decision = conditions(&world, "csr");
            assert_eq!(decision.iter().map(|(kind, _)| kind == "Approved").collect::<Vec<_>>(), [appears]);
            let update = "update certificatesigningrequests/approval csr".to_owned();
            let confirmed = (!appears).then(|| "get nodes node-1".to_owned());
            assert_eq!(world.asked(), confirmed.into_iter().chain([update]).collect::<Vec<_>>());
        });
    }
}

/// spec 32, "Better than upstream" 6
#[test]
fn request_is_approved_when_the_machine_gets_its_label() {
    world(1, |world| async move {
        world.sim.put(machine_definition()).expect("the definition of Machines");
        seconds(1).await;
        let machine = json!({ "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine",
            "metadata": { "namespace": NAMESPACE, "name": "machine-1" } });
        world.sim.put(machine).expect("a Machine");
        node(&world);
        start_with(&world, Some(NAMESPACE)).await;
        ask(&world, "csr");
        seconds(5).await;
        assert_eq!(conditions(&world, "csr"), []);

        world.sim.edit("machines.machine.sapcloud.io", NAMESPACE, "machine-1", |live| {
            live["metadata"]["labels"] = json!({ "node": "node-1" });
        });
        seconds(1).await;
        assert_eq!(conditions(&world, "csr"), [("Approved".to_owned(), APPROVED.to_owned())]);
    });
}

/// spec 32 scenarios 7 and 16
#[test]
fn denial_is_final_even_if_the_node_appears() {
    world(1, |world| async move {
        start(&world).await;
        ask(&world, "csr");
        seconds(20).await;
        let denied = conditions(&world, "csr");
        assert_eq!(denied.len(), 1);
        assert!(denied[0].0 == "Denied" && denied[0].1.contains("could not find node object with name \"node-1\""));
        world.sim.clear_requests();

        node(&world);
        seconds(60).await;
        assert_eq!((conditions(&world, "csr"), world.asked()), (denied, Vec::new()));
    });
}

/// spec 32 scenario 15
#[test]
fn failed_read_is_no_denial_and_is_retried() {
    world(1, |world| async move {
        start(&world).await;
        world.sim.set_faults(|request| match (request.verb.as_str(), request.resource.as_str()) {
            ("get", "nodes") => Fault::FailBefore(Seen::forbidden(request)),
            _ => Fault::None,
        });
        ask(&world, "csr");
        seconds(60).await;
        assert_eq!(conditions(&world, "csr"), []);

        world.sim.clear_faults();
        seconds(120).await;
        assert_eq!(conditions(&world, "csr").len(), 1, "{:?}", world.asked());
    });
}

/// spec 32 §4, T8; spec 70 §7.1: the approver's keys do not depend on the watches of Machines and Nodes.
#[test]
fn forbidden_machines_or_nodes_leave_requests_pending() {
    for denied in ["machines", "nodes"] {
        world(1, |world| async move {
            world.sim.put(machine_definition()).expect("the definition of Machines");
            seconds(1).await;
            let machine = json!({ "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine",
                "metadata": { "namespace": NAMESPACE, "name": "machine-1", "labels": { "node": "node-1" } } });
            world.sim.put(machine).expect("a Machine");
            node(&world);
            world.sim.set_faults(move |info| match info.resource == denied {
                true => Fault::FailBefore(Seen::forbidden(info)),
                false => Fault::None,
            });
            start_with(&world, Some(NAMESPACE)).await;
            ask(&world, "csr");
            seconds(600).await;
            world.bundle("one", &[config_map("a", "v")]);
            world.applied("one").await;
            assert_eq!((conditions(&world, "csr"), world.universe.env.fatal.cause()), (Vec::new(), None));
            assert!(world.asked().iter().any(|asked| asked.contains(denied)), "it is read live");

            world.sim.clear_faults();
            seconds(1000).await;
            assert_eq!(conditions(&world, "csr"), [("Approved".to_owned(), APPROVED.to_owned())], "{denied}");
        });
    }
}

/// spec 32 §4: reading Nodes needs no right but to GET them.
#[test]
fn nodes_without_the_right_to_watch_are_read_live() {
    world(1, |world| async move {
        node(&world);
        world.sim.set_faults(|info| match (info.resource.as_str(), info.verb.as_str()) {
            ("nodes", "list" | "watch") => Fault::FailBefore(Seen::forbidden(info)),
            _ => Fault::None,
        });
        start(&world).await;
        ask(&world, "csr");
        seconds(1).await;

        assert_eq!(conditions(&world, "csr"), [("Approved".to_owned(), APPROVED.to_owned())]);
        seconds(600).await;
        assert_eq!(world.universe.env.fatal.cause(), None);
    });
}

/// spec 32 scenarios 17 and 30
#[test]
fn request_with_a_certificate_or_another_signer_is_ignored() {
    world(1, |world| async move {
        node(&world);
        for (name, signer) in [("issued", "kubernetes.io/kubelet-serving"), ("other", "example.com/signer")] {
            world.sim.put(request(name, signer, &pem())).expect("a request");
        }
        world.sim.edit(REQUESTS, "", "issued", |live| live["status"]["certificate"] = json!("Y2VydA=="));
        start(&world).await;
        // The approver does not even read it.
        world
            .sim
            .put(request("client", "kubernetes.io/kube-apiserver-client-kubelet", &pem()))
            .expect("a request of a kubelet client");
        seconds(60).await;

        assert_eq!(world.asked(), [] as [String; 0]);
    });
}

/// spec 32 §5 row 4, "Better than upstream" 7
#[test]
fn unreadable_request_is_neither_denied_nor_retried() {
    world(1, |world| async move {
        start(&world).await;
        let broken = request(
            "csr",
            "kubernetes.io/kubelet-serving",
            "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n",
        );
        world.sim.put(broken).expect("the simulator does not read it");
        seconds(600).await;

        assert_eq!((conditions(&world, "csr"), world.asked()), (Vec::new(), Vec::new()));
    });
}

/// spec 32 scenario 29
#[test]
fn manual_decision_is_not_overruled() {
    world(1, |world| async move {
        node(&world);
        start(&world).await;
        let hands = world.clone();
        let mut left = 1;
        world.sim.set_faults(move |request| {
            if request.subresource == "approval" && left > 0 {
                left -= 1;
                return Fault::FailBefore(Seen::conflict(request));
            }
            Fault::None
        });
        ask(&world, "csr");
        tokio::task::yield_now().await;
        decide(&hands, "csr", "Denied");
        seconds(60).await;

        assert_eq!(conditions(&world, "csr"), [("Denied".to_owned(), "by hand".to_owned())]);
        let writes = world.writes().len();
        assert!(writes <= 1, "{:?}", world.writes());
    });
}

/// spec 32 scenario 31
#[test]
fn thousand_old_requests_cost_nothing_at_a_start_and_in_a_day() {
    world(1, |world| async move {
        node(&world);
        for index in 0..1000 {
            let name = format!("csr-{index}");
            ask(&world, &name);
            decide(&world, &name, if index % 2 == 0 { "Approved" } else { "Denied" });
        }
        start(&world).await;
        seconds(25 * 3600).await;

        let is_watching = |request: &String| request.starts_with("watch") || request.starts_with("list");
        let asked: Vec<_> = world.asked().into_iter().filter(|request| !is_watching(request)).collect();
        assert_eq!(asked, [] as [String; 0]);
    });
}

/// spec 70 §8.4: a key without its own period is reconciled now and then. A request for another approver costs no read.
#[test]
fn ignored_request_is_reconciled_once_a_day_without_a_read() {
    world(1, |world| async move {
        start(&world).await;
        let broken = "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n";
        world.sim.put(request("csr", "kubernetes.io/kubelet-serving", broken)).expect("the simulator does not read it");
        seconds(1).await;
        let actors = |world: &World| {
            world
                .actors_of(crate::world::PROGRAM)
                .iter()
                .filter(|actor| actor.path.starts_with("csr-approver/"))
                .count()
        };
        assert_eq!(actors(&world), 1, "its resync may enqueue it");
        seconds(28 * 3600).await;
        let asked: Vec<_> = world.asked().into_iter().filter(|request| request.starts_with("get")).collect();
        assert_eq!(asked, [] as [String; 0]);

        world.sim.remove(REQUESTS, "", "csr");
        seconds(1).await;
        assert_eq!(actors(&world), 0, "no actor remains for a deleted request");
    });
}
