//! The Secrets that a node agent may read (spec 61 §5.6).

use super::*;

const BASE: &str = "gardener-valitail gardener-opentelemetry-collector shoot-access-kube-controller-manager \
                    shoot-access-kube-scheduler shoot-access-cluster-admin";

fn only(names: &str) -> String {
    let names = if names.is_empty() { BASE.to_owned() } else { format!("{BASE} {names}") };
    format!("deny: gardener-node-agent can only access secrets [{names}] in \"kube-system\" namespace")
}

/// spec 61 §5.6, machine mode; scenarios 23, 24 and 25
#[test]
fn machine_mode_allows_the_secrets_of_the_machine() {
    let (of_n1, of_n2) = (only("gna-pool1 everywhere only-h1"), only("gna-pool2 elsewhere"));
    let of_all = only("gna-pool1 everywhere only-h1 s2");
    check(
        &hosted(),
        &view(),
        &[
            ("m1", "get secrets kube-system/gna-pool1", "allow"),
            ("m1", "watch secrets kube-system/everywhere", "allow"),
            ("m1", "list secrets kube-system/only-h1", "allow"),
            ("m1", "get secrets default/gna-pool1", &of_n1),
            ("m1", "get secrets kube-system/s2", &of_n1),
            ("m1", "get secrets kube-system/gna-pool2", &of_n1),
            ("m1", "list secrets kube-system/", &of_n1),
            ("m1", "list secrets", &of_n1),
            ("m2", "get secrets kube-system/elsewhere", "allow"),
            ("m2", "get secrets kube-system/everywhere", &of_n2),
            ("fresh", "get secrets kube-system/s2", "allow"),
            ("fresh", "get secrets kube-system/elsewhere", &of_all),
            ("nowhere", "get secrets kube-system/s2", "allow"),
            ("poolless", "get secrets kube-system/gna-missing", "allow"),
            ("poolless", "get secrets kube-system/x", &only("gna-missing")),
            ("none", "get secrets kube-system/x", "deny: machine \"none\" not found"),
        ],
    );
    for name in BASE.split(' ') {
        assert_eq!(ask(&hosted(), &view(), "m1", &format!("get secrets kube-system/{name}")), "allow", "{name}");
        assert_eq!(ask(&hosted(), &view(), "m1", &format!("get secrets default/{name}")), of_n1, "{name}");
    }
    let on_h2 = view().object(&NODES, "n1", node("", "h2"));
    assert_eq!(ask(&hosted(), &on_h2, "m1", "get secrets kube-system/s2"), "allow");
}

/// spec 61 §5.6; scenario 24: a label that the store lacks grants nothing
#[test]
fn missing_label_is_read_live_before_it_grants_anything() {
    let of_n1 = only("gna-pool1 everywhere only-h1");
    let labelled = view().by_now(&MACHINES, "shoot--a--b/fresh", machine("n1", "gna-pool1"));
    assert_eq!(ask(&hosted(), &labelled, "fresh", "get secrets kube-system/s2"), of_n1);
    assert_eq!(ask(&hosted(), &labelled, "fresh", "get secrets kube-system/only-h1"), "allow");

    let named = || view().object(&NODES, "n1", node("gna-pool1", "")).by_now(&NODES, "n1", node("gna-pool1", "h1"));
    assert_eq!(ask(&hosted(), &named(), "m1", "get secrets kube-system/s2"), of_n1);
    assert_eq!(ask(&without_machines(), &named(), "n1", "get secrets kube-system/s2"), of_n1);

    let gone = view().by_now(&MACHINES, "shoot--a--b/fresh", machine("", ""));
    assert_eq!(ask(&hosted(), &gone, "fresh", "get secrets kube-system/s2"), only(""));
}

/// spec 61 §5.6, decision 33: an agent may remove the label of its Node; then it gets the files of no host
#[test]
fn node_without_a_host_name_gets_the_secrets_of_no_host() {
    let nameless = view().object(&NODES, "n1", node("gna-pool1", ""));
    let of_no_host = only("gna-pool1 everywhere");
    for (settings, machine) in [(hosted(), "m1"), (without_machines(), "n1")] {
        for name in ["s2", "only-h1"] {
            let reported = ask(&settings, &nameless, machine, &format!("get secrets kube-system/{name}"));
            assert_eq!(reported, of_no_host, "{machine} {name}");
        }
        assert_eq!(ask(&settings, &nameless, machine, "get secrets kube-system/everywhere"), "allow", "{machine}");
    }
}

/// spec 61 §11.1; scenario 28
#[test]
fn empty_name_is_never_allowed() {
    for request in ["list secrets kube-system/", "watch secrets kube-system/", "list secrets"] {
        assert_eq!(ask(&hosted(), &view(), "bare", request), only(""), "{request}");
        assert_eq!(ask(&hosted(), &view(), "m1", request), only("gna-pool1 everywhere only-h1"), "{request}");
        assert_eq!(ask(&without_machines(), &view(), "n2", request), only(""), "{request}");
    }
}

/// spec 61 §5.6, §8; scenario 29
#[test]
fn broken_config_is_an_error_that_names_only_the_secret() {
    let view = view().object(&SECRETS, "kube-system/gna-broken", osc("hush: ["));

    for name in ["gna-broken", "gardener-valitail", "x"] {
        let reported = ask(&hosted(), &view, "broken", &format!("get secrets kube-system/{name}"));
        let expected = "error: 500 error reading secretRef names from OSC secret \"gna-broken\": \
                        unable to decode OSC from secret \"gna-broken\": ";
        assert!(reported.starts_with(expected), "{reported}");
        assert!(!reported.contains("hush"), "{reported}");
    }
    let away = view.failing("Secret kube-system/gna-broken", Failure::Denied("away".into()));
    let reported = ask(&hosted(), &away, "broken", "get secrets kube-system/x");
    assert_eq!(reported, "error: 500 error getting OSC secret \"gna-broken\": away");
}

/// spec 61 §5.6, node mode, §11.9; scenarios 26 and 27
#[test]
fn node_mode_allows_the_secrets_of_the_node() {
    let unlabelled = OscSecret::of(&json!({}), false);
    let view = || {
        view()
            .object(&SECRETS, "kube-system/any", unlabelled.clone())
            .object(&SECRETS, "default/other", osc(""))
            .object(&NODES, "greedy", node("any", "h1"))
            .object(&NODES, "absent", node("missing", "h1"))
    };
    let all = only("gna-pool1 everywhere only-h1 s2 gna-pool2 elsewhere");
    check(
        &without_machines(),
        &view(),
        &[
            ("n1", "get secrets kube-system/gna-pool1", "allow"),
            ("n1", "get secrets kube-system/only-h1", "allow"),
            ("n1", "get secrets kube-system/s2", &only("gna-pool1 everywhere only-h1")),
            ("n2", "get secrets kube-system/gna-pool1", &only("")),
            ("n2", "get secrets kube-system/gardener-valitail", "allow"),
            ("greedy", "get secrets kube-system/any", &only("")),
            ("absent", "get secrets kube-system/missing", &only("")),
            ("newcomer", "get secrets kube-system/gna-pool1", "allow"),
            ("newcomer", "get secrets kube-system/gna-pool2", "allow"),
            ("newcomer", "get secrets kube-system/s2", "allow"),
            ("newcomer", "get secrets kube-system/any", &all),
            ("newcomer", "get secrets kube-system/other", &all),
            ("newcomer", "get secrets default/gna-pool1", &all),
            ("newcomer", "list secrets kube-system/", &all),
        ],
    );
    let away = Failure::Denied("away".into());
    let listing = "error: 500 error listing operating system config secrets: away";
    let reported =
        ask(&without_machines(), &view().failing("all Secrets", away.clone()), "newcomer", "get secrets kube-system/x");
    assert_eq!(reported, listing);
    let reported = ask(&without_machines(), &view().failing("Node n1", away), "n1", "get secrets kube-system/x");
    assert_eq!(reported, "error: 500 error getting node \"n1\": away");
}
