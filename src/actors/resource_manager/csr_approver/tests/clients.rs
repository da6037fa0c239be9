//! spec 32 §7.

use super::{builder::Parts, *};

const BOOTSTRAP: &str = "system:bootstrap:abcdef";
const MIGRATION: &str = "system:serviceaccount:kube-system:gardener-node-agent";
const AGENT_M1: &str = "gardener.cloud:node-agent:machine:m1";
const AGENTS: &str = "gardener.cloud:node-agents";

const APPROVED: CsrVerdict = CsrVerdict::Approved(Certificate::NodeAgent);
const NO_KUBELET: &str = r#"username "system:node:n1" is not allowed to create CSRs for a gardener-node-agent"#;

fn request(username: &str, common_name: &str, organizations: &[&str]) -> Value {
    csr(CLIENT, username, &Parts::usual(common_name, organizations, &[], &[]).pem())
}

#[track_caller]
fn is_denied(world: &World, csr: &Value, basis: Basis, reason: &str) {
    assert_eq!(world.judge(csr), denied(Certificate::NodeAgent, basis, reason));
}

/// spec 32 §7 C3, T5, scenario 18
#[test]
fn client_certificates_of_others_are_left_to_others() {
    for common_name in ["foo", "", "gardener.cloud:node-agent:machine", "xgardener.cloud:gardenadm:shoot:a"] {
        let world = World::empty();

        let verdict = world.judge(&request(BOOTSTRAP, common_name, &[AGENTS]));

        let text = format!(
            "commonName {common_name:?} is not prefixed with \"gardener.cloud:node-agent:machine:\" or \
             \"gardener.cloud:gardenadm:shoot:\""
        );
        assert_eq!(verdict, CsrVerdict::NoOpinion(text));
        assert!(world.asked.borrow().is_empty());
    }
}

/// spec 32 §7.1 U1, scenarios 19, 20, 21 and 22
#[test]
fn bootstrap_token_is_accepted_until_the_node_exists() {
    let csr = request(BOOTSTRAP, AGENT_M1, &[AGENTS]);
    let bootstrapped =
        r#"Cannot use bootstrap token since gardener-node-agent for machine "m1" is already bootstrapped"#;

    let unlabelled = World::empty().machine(MACHINES, "m1", "").node("m1", &[]);
    assert_eq!(unlabelled.judge(&csr), APPROVED);
    assert_eq!(*unlabelled.asked.borrow(), [Lookup::Machine("m1".to_owned())]);
    let labelled = World::empty().machine(MACHINES, "m1", "n1");
    assert_eq!(labelled.judge(&csr), APPROVED);
    assert_eq!(*labelled.asked.borrow(), [Lookup::Machine("m1".to_owned()), Lookup::Node("n1".to_owned())]);
    is_denied(&labelled.node("n1", &[]), &csr, Basis::Cluster, bootstrapped);
    is_denied(&World::empty().machine("others", "m1", ""), &csr, Basis::Cluster, r#"machine "m1" does not exist"#);
}

#[test]
fn machine_label_that_is_no_node_name_is_not_looked_up() {
    let world = World::empty().machine(MACHINES, "m1", "Node_1");

    assert_eq!(world.judge(&request(BOOTSTRAP, AGENT_M1, &[])), APPROVED);
    assert_eq!(*world.asked.borrow(), [Lookup::Machine("m1".to_owned())]);
}

/// spec 32 T4
#[test]
fn machine_with_an_invalid_name_does_not_exist() {
    for machine_namespace in [Some(MACHINES), None] {
        for (machine, username) in [("", BOOTSTRAP), ("a/b", BOOTSTRAP), ("..", MIGRATION), ("", "admin")] {
            let world = World { machine_namespace, ..World::empty() };
            let common_name = format!("gardener.cloud:node-agent:machine:{machine}");

            let reason = format!("machine {machine:?} does not exist");
            is_denied(&world, &request(username, &common_name, &[]), Basis::Request, &reason);
            assert!(world.asked.borrow().is_empty());
        }
    }
}

/// spec 32 §7.1 U2, scenarios 23 and 24
#[test]
fn node_agent_renews_only_its_own_certificate() {
    let agent_m2 = "gardener.cloud:node-agent:machine:m2";
    let world = World::empty().machine(MACHINES, "m1", "n1").machine(MACHINES, "m2", "");

    assert_eq!(world.judge(&request(AGENT_M1, AGENT_M1, &[AGENTS])), APPROVED);
    assert_eq!(world.judge(&request(agent_m2, agent_m2, &[AGENTS])), APPROVED);
    let mismatch = format!("username {AGENT_M1:?} and commonName {agent_m2:?} do not match");
    is_denied(&world, &request(AGENT_M1, agent_m2, &[AGENTS]), Basis::Request, &mismatch);
    assert_eq!(world.node("n1", &[]).judge(&request(AGENT_M1, AGENT_M1, &[AGENTS])), APPROVED);
}

/// spec 32 §7.1 U3b, U4, decision 6; scenario 25, and those behind it
#[test]
fn kubelet_without_a_machine_bootstraps_the_agent_of_a_machine_without_a_node() {
    let csr = request("system:node:n1", AGENT_M1, &[AGENTS]);
    let unlabelled = World::empty().machine(MACHINES, "m1", "");

    is_denied(&World::empty().machine(MACHINES, "m1", "n1"), &csr, Basis::Cluster, NO_KUBELET);
    is_denied(&World::empty().machine(MACHINES, "m1", "n2"), &csr, Basis::Cluster, NO_KUBELET);
    assert_eq!(unlabelled.judge(&csr), APPROVED);
    assert_eq!(unlabelled.clone().machine(MACHINES, "m2", "n2").machine("others", "m3", "n1").judge(&csr), APPROVED);
    is_denied(&unlabelled.clone().machine(MACHINES, "m2", "n1"), &csr, Basis::Cluster, NO_KUBELET);
    is_denied(&World { machine_namespace: None, ..unlabelled.clone() }, &csr, Basis::Request, NO_KUBELET);
    for name in ["", "N_1", &"n".repeat(64)] {
        let username = format!("system:node:{name}");
        let reason = format!("username {username:?} is not allowed to create CSRs for a gardener-node-agent");
        is_denied(&unlabelled, &request(&username, AGENT_M1, &[AGENTS]), Basis::Request, &reason);
    }
}

/// spec 32 §7.1 U4
#[test]
fn node_agent_certificates_are_denied_to_other_users() {
    let world = World::empty().machine(MACHINES, "m1", "");
    for username in
        ["admin", "", "system:node", "xsystem:bootstrap:abcdef", "system:serviceaccount:a:gardener-node-agent"]
    {
        let reason = format!("username {username:?} is not allowed to create CSRs for a gardener-node-agent");
        is_denied(&world, &request(username, AGENT_M1, &[AGENTS]), Basis::Request, &reason);
    }
}

/// spec 32 §7.1 step 3, decision 7; scenario 25, second part
#[test]
fn node_agent_certificates_require_the_node_agents_group() {
    let world = World::empty().machine(MACHINES, "m1", "");
    for organizations in [&[][..], &[AGENTS]] {
        assert_eq!(world.judge(&request(BOOTSTRAP, AGENT_M1, organizations)), APPROVED);
    }
    for organizations in
        [&["foo"][..], &[AGENTS, "foo"], &["foo", AGENTS], &[AGENTS, AGENTS], &[""], &["system:masters"]]
    {
        for username in [BOOTSTRAP, AGENT_M1, "system:node:n1"] {
            let csr = request(username, AGENT_M1, organizations);
            is_denied(&world, &csr, Basis::Request, "organization in CSR does not match node-agents group");
        }
    }
}

/// spec 32 §7.1 U3, scenario 26
#[test]
fn migration_from_a_service_account_requires_an_existing_node() {
    let csr = request(MIGRATION, AGENT_M1, &[AGENTS]);
    let without = "gardener-node-agent service account is allowed to create CSRs for machines with existing nodes only";

    assert_eq!(World::empty().machine(MACHINES, "m1", "n1").judge(&csr), APPROVED);
    is_denied(&World::empty().machine(MACHINES, "m1", ""), &csr, Basis::Cluster, without);
    assert_eq!(World { machine_namespace: None, ..World::empty() }.judge(&csr), APPROVED);
}

/// spec 32 §7.1, scenario 27
#[test]
fn machine_namespace_unset_means_the_machine_is_the_node() {
    let csr = request(BOOTSTRAP, "gardener.cloud:node-agent:machine:n9", &[AGENTS]);
    let world = World { machine_namespace: None, ..World::empty() };
    let bootstrapped =
        r#"Cannot use bootstrap token since gardener-node-agent for machine "n9" is already bootstrapped"#;

    assert_eq!(world.judge(&csr), APPROVED);
    assert_eq!(*world.asked.borrow(), [Lookup::Node("n9".to_owned())]);
    is_denied(&world.node("n9", &[]), &csr, Basis::Cluster, bootstrapped);
}

/// spec 32 §7.2, scenario 28
#[test]
fn gardenadm_gets_a_client_certificate_with_a_bootstrap_token() {
    let (common_name, shoots) = ("gardener.cloud:gardenadm:shoot:ns:name", "gardener.cloud:system:shoots");
    let world = World::empty();
    let organization = "organization in CSR does not match nodes group";
    let user = r#"username "foo" is not allowed to create CSRs for a gardenadm client"#;

    assert_eq!(world.judge(&request(BOOTSTRAP, common_name, &[shoots])), APPROVED);
    for organizations in [&["system:nodes"][..], &[], &[shoots, "system:nodes"]] {
        is_denied(&world, &request(BOOTSTRAP, common_name, organizations), Basis::Request, organization);
    }
    is_denied(&world, &request("foo", common_name, &[shoots]), Basis::Request, user);
    assert!(world.asked.borrow().is_empty(), "no Machine or Node is consulted");
}

/// A condition with a very long message could not be stored.
#[test]
fn messages_cut_long_names() {
    let common_name = format!("gardener.cloud:node-agent:machine:{}", "ä".repeat(100_000));

    let verdict = World::empty().judge(&request(BOOTSTRAP, &common_name, &[]));

    assert!(
        matches!(verdict, CsrVerdict::Denied(_, denial) if denial.reason.len() < 2000 && denial.reason.contains("ää…"))
    );
}
