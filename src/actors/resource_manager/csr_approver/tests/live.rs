//! spec 32 T3, T8 and "Better than upstream" 1: live reads confirm a denial, and a failed read is no denial.

use std::time::Duration;

use cluster::{
    Context,
    evidence::{Evidence, EvidenceSource, decide},
};
use futures::FutureExt as _;
use kit::{Deadline, Failure, Priority};

use super::{builder::Parts, *};

fn serving() -> Csr {
    let parts = Parts::usual("system:node:n1", &["system:nodes"], &["n1"], &[]);
    Csr::read(&csr(SERVING, "system:node:n1", &parts.pem())).unwrap().unwrap()
}

fn agent(username: &str) -> Csr {
    let parts = Parts::usual("gardener.cloud:node-agent:machine:m1", &[], &[], &[]);
    Csr::read(&csr(CLIENT, username, &parts.pem())).unwrap().unwrap()
}

/// Nothing is cached.
impl EvidenceSource for World {
    type Question = Lookup;
    type Answer = Fact;

    fn cached(&self, _: &Lookup) -> Option<Fact> {
        None
    }

    async fn read(&self, _: &Context, lookup: &Lookup) -> Result<Fact, Failure> {
        let fact = match lookup {
            Lookup::Node(name) => self.node(name).map(Fact::Node),
            Lookup::Machine(name) => self.machine(name).map(Fact::Machine),
            Lookup::MachinesOf(node) => self.machines_of(node).map(Fact::MachinesOf),
        };
        Ok(fact.expect("a World knows all facts"))
    }
}

fn judge_live(csr: &Csr, world: &World) -> (CsrVerdict, Vec<Lookup>) {
    world.asked.take();
    let context = Context::new(Priority::High, Deadline::after(Duration::from_secs(60)), "test");
    let judge = |evidence: &Evidence<'_, World>| judge(csr, world.machine_namespace, evidence);
    let verdict = decide(world, &context, judge, |_| true).now_or_never();
    (verdict.expect("a World answers at once").unwrap(), world.asked.take())
}

#[test]
fn live_reads_are_made_one_by_one_and_give_the_same_verdict() {
    let world = World::empty().node("n1", &[("Hostname", "n1")]).machine(MACHINES, "m1", "n1");
    for csr in [serving(), agent("system:bootstrap:a"), agent("system:node:n1"), agent("admin")] {
        let at_once = judge(&csr, world.machine_namespace, &world).unwrap();

        let (verdict, lookups) = judge_live(&csr, &world);

        assert_eq!(verdict, at_once);
        assert!((1..=2).contains(&lookups.len()), "{lookups:?}");
    }
}

/// The denials that live reads must confirm: K5 to K9, U1, U3, U3b and "does not exist".
#[test]
fn denials_are_confirmed_only_if_they_rest_on_nodes_or_machines() {
    let empty = World::empty;
    let node = || empty().node("n1", &[("Hostname", "n1")]);
    let machine = |node| empty().machine(MACHINES, "m1", node);
    let other_name = empty().node("n1", &[("Hostname", "n2")]).machine(MACHINES, "m1", "n1");
    let invalid = empty().node("n1", &[("InternalIP", "abc")]).machine(MACHINES, "m1", "n1");
    let migration = "system:serviceaccount:kube-system:gardener-node-agent";
    for (csr, world, expected) in [
        (serving(), empty(), true),
        (serving(), node(), true),
        (serving(), other_name, true),
        (serving(), invalid, true),
        (serving(), node().machine(MACHINES, "m1", "n1"), false),
        (Csr { username: "admin".to_owned(), ..serving() }, empty(), false),
        (agent("system:bootstrap:a"), empty(), true),
        (agent("system:bootstrap:a"), node().machine(MACHINES, "m1", "n1"), true),
        (agent("system:bootstrap:a"), machine(""), false),
        (agent(migration), machine(""), true),
        (agent("system:node:n1"), machine("n1"), true),
        (agent("system:node:n1"), machine("").machine(MACHINES, "m2", "n1"), true),
        (agent("admin"), machine(""), false),
        (agent("gardener.cloud:node-agent:machine:m2"), machine(""), false),
    ] {
        let verdict = judge(&csr, world.machine_namespace, &world).unwrap();

        assert_eq!(verdict.must_be_confirmed(), expected, "{verdict:?}");
    }
}

/// A missing Node, address or label may appear soon; a wrong one does not go away.
#[test]
fn denials_wait_a_short_time_for_facts_that_may_appear() {
    let node = |name| World::empty().node("n1", &[("Hostname", name)]).machine(MACHINES, "m1", "n1");
    let two = node("n1").machine(MACHINES, "m2", "n1");
    let unlabelled = World::empty().node("n1", &[("Hostname", "n1")]);
    let no_address = World::empty().node("n1", &[]).machine(MACHINES, "m1", "n1");
    for (csr, world, expected) in [
        (serving(), World::empty(), true),
        (serving(), unlabelled, true),
        (serving(), no_address, true),
        (serving(), two, false),
        (serving(), node("n2"), false),
        (serving(), node("n1"), false),
        (agent("system:bootstrap:a"), World::empty(), false),
        (agent("admin"), World::empty().machine(MACHINES, "m1", ""), false),
    ] {
        let verdict = judge(&csr, world.machine_namespace, &world).unwrap();

        let left = expected.then_some(Duration::from_secs(1));
        assert_eq!(verdict.wait(Duration::from_secs(9)), left, "{verdict:?}");
        assert_eq!(verdict.wait(Duration::from_secs(10)), None);
    }
}

/// spec 32 §5.2, §6 K5, K6, §7.1; T8
#[test]
fn failed_lookup_is_an_error_that_names_the_object() {
    let failed = "failed when checking for approval conditions: ";
    for (lookup, text) in [
        (Lookup::Node("n1".to_owned()), r#"error getting node object with name "n1": timeout"#),
        (Lookup::Machine("m1".to_owned()), r#"error getting machine object with name "m1": timeout"#),
        (Lookup::MachinesOf("n1".to_owned()), "failed to list machine objects: timeout"),
    ] {
        assert_eq!(lookup.failed(&"timeout"), format!("{failed}{text}"));
    }
}

#[test]
fn node_addresses_that_are_malformed_are_ignored() {
    for node in [
        json!({}),
        json!({"status": null}),
        json!({"status": {"addresses": "x"}}),
        json!({"status": {"addresses": [7, null, {}]}}),
    ] {
        assert_eq!(NodeAddresses::of(&node), NodeAddresses::default());
    }
    assert_eq!(Machine::of(&json!({"metadata": {"labels": {"node": 7}}})), Machine::default());
}
