//! The decisions of spec 61, from the review to its answer, on a scripted cluster.

mod secrets;
#[cfg(feature = "sim")]
mod simulated;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::*;
use crate::webhooks::{
    endpoint::testing::{answer, authorizing, reported},
    testing::TestView,
    view::Lookup,
};

const PREFIX: &str = "gardener.cloud:node-agent:machine:";
const GROUP: &str = "gardener.cloud:node-agents";
const MACHINE_NAMESPACE: &str = "shoot--a--b";
fn hosted() -> NodeAgents {
    NodeAgents(NodeAgentAuthorizer {
        machine_namespace: Some(MACHINE_NAMESPACE.to_owned()),
        authorize_with_selectors: false,
    })
}

fn with_selectors() -> NodeAgents {
    NodeAgents(NodeAgentAuthorizer { authorize_with_selectors: true, ..hosted().0 })
}

fn without_machines() -> NodeAgents {
    NodeAgents(NodeAgentAuthorizer { machine_namespace: None, authorize_with_selectors: false })
}

fn machine(node: &str, secret_name: &str) -> Machine {
    Machine { node: node.into(), secret_name: secret_name.into() }
}

fn node(secret_name: &str, host_name: &str) -> Node {
    Node { secret_name: secret_name.into(), host_name: host_name.into() }
}

fn osc(yaml: &str) -> OscSecret {
    OscSecret::of(&json!({"data": {"osc.yaml": BASE64_STANDARD.encode(yaml)}}), true)
}

/// `m1` runs on `n1`, `m2` on `n2`; `fresh` has no node yet, `bare` no pool.
fn view() -> TestView {
    let osc_1 = osc("spec: {files: [
        {content: {secretRef: {name: everywhere}}},
        {hostName: h1, content: {secretRef: {name: only-h1}}},
        {hostName: h2, content: {secretRef: {name: s2}}},
        {content: {secretRef: {name: ''}}}]}");
    TestView::new()
        .object(&MACHINES, "shoot--a--b/m1", machine("n1", "gna-pool1"))
        .object(&MACHINES, "shoot--a--b/m2", machine("n2", "gna-pool2"))
        .object(&MACHINES, "shoot--a--b/fresh", machine("", "gna-pool1"))
        .object(&MACHINES, "shoot--a--b/bare", machine("n1", ""))
        .object(&MACHINES, "shoot--a--b/nowhere", machine("gone", "gna-pool1"))
        .object(&MACHINES, "shoot--a--b/broken", machine("n1", "gna-broken"))
        .object(&MACHINES, "shoot--a--b/poolless", machine("n1", "gna-missing"))
        .object(&NODES, "n1", node("gna-pool1", "h1"))
        .object(&NODES, "n2", node("", "h2"))
        .object(&PODS, "a/p1", "n1".into())
        .object(&PODS, "a/p", "n2".into())
        .object(&PODS, "a/unbound", "".into())
        .object(&CSRS, "own", format!("{PREFIX}m1").into())
        .object(&CSRS, "foreign", format!("{PREFIX}m2").into())
        .object(&SECRETS, "kube-system/gna-pool1", osc_1)
        .object(&SECRETS, "kube-system/gna-pool2", osc("spec: {files: [{content: {secretRef: {name: elsewhere}}}]}"))
}

fn attributes(request: &str) -> Value {
    let mut words = request.split(' ');
    let [verb, resource, object] = [words.next(), words.next(), words.next()].map(Option::unwrap_or_default);
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let (resource, group) = resource.split_once('.').unwrap_or((
        resource,
        match resource {
            "leases" => "coordination.k8s.io",
            "certificatesigningrequests" => "certificates.k8s.io",
            _ => "",
        },
    ));
    let (namespace, name) = object.split_once('/').unwrap_or(("", object));
    json!({
        "verb": verb, "group": group, "version": "v1", "resource": resource, "subresource": subresource,
        "namespace": namespace, "name": name,
    })
}

fn review(user: &str, groups: &[&str], spec: &Value) -> Value {
    let mut spec = spec.clone();
    (spec["user"], spec["groups"]) = (json!(user), json!(groups));
    json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {}, "spec": spec})
}

fn ask(settings: &NodeAgents, view: &TestView, machine: &str, request: &str) -> String {
    ask_selecting(settings, view, machine, request, &Value::Null)
}

fn ask_selecting(settings: &NodeAgents, view: &TestView, machine: &str, request: &str, selector: &Value) -> String {
    let mut attributes = attributes(request);
    attributes["fieldSelector"] = selector.clone();
    let review = review(&format!("{PREFIX}{machine}"), &[GROUP], &json!({"resourceAttributes": attributes}));
    reported(&answer(&authorizing(settings.clone()), view, &review))
}

fn check(settings: &NodeAgents, view: &TestView, table: &[(&str, &str, &str)]) {
    for (machine, request, expected) in table {
        assert_eq!(ask(settings, view, machine, request), *expected, "{machine}: {request}");
    }
}

/// spec 61 §3, §11.2; scenarios 1, 2 and 3
#[test]
fn users_other_than_node_agents_get_no_opinion() {
    let table: [(&str, &[&str], &str); 7] = [
        ("system:node:n1", &[GROUP], "no opinion"),
        ("", &[GROUP], "no opinion"),
        (&format!("{PREFIX}m1"), &[], "no opinion"),
        (&format!("{PREFIX}m1"), &["system:nodes"], "no opinion"),
        (PREFIX, &[GROUP], "deny"),
        (&PREFIX[..PREFIX.len() - 1], &[GROUP], "no opinion"),
        (&format!("{PREFIX}m1"), &["system:authenticated", GROUP], "allow"),
    ];

    for (user, groups, expected) in table {
        let review = review(user, groups, &json!({"resourceAttributes": attributes("list nodes")}));
        assert_eq!(reported(&answer(&authorizing(hosted()), &view(), &review)), expected, "{user} {groups:?}");
    }
}

/// spec 61 §2 rules 3 and 4, §5; scenario 4
#[test]
fn requests_for_other_resources_are_denied_without_a_reason() {
    let user = format!("{PREFIX}m1");
    let of = |spec: Value| reported(&answer(&authorizing(hosted()), &view(), &review(&user, &[GROUP], &spec)));

    assert_eq!(of(json!({"nonResourceAttributes": {"path": "/healthz", "verb": "get"}})), "deny");
    assert_eq!(of(json!({"resourceAttributes": {}})), "deny");
    assert_eq!(of(json!({"resourceAttributes": {}, "nonResourceAttributes": {}})), "deny");
    assert_eq!(of(json!({})), "no opinion");
    for request in [
        "get configmaps kube-system/x",
        "get daemonsets.apps kube-system/x",
        "get nodes.metrics.k8s.io n1",
        "get leases. kube-system/x",
        "get secrets.coordination.k8s.io kube-system/x",
        "get * x",
    ] {
        assert_eq!(ask(&hosted(), &view(), "m1", request), "deny", "{request}");
    }
}

const TABLE: [(&str, &str, &str); 7] = [
    ("certificatesigningrequests", "", "get create"),
    ("events", "", "create patch"),
    ("events.events.k8s.io", "", "create patch"),
    ("leases", "", "get list watch create update"),
    ("nodes", "status", "get list watch patch update"),
    ("pods", "", "get list watch delete"),
    ("secrets", "", "get list watch"),
];

/// spec 61 §5, §11.3, §11.5; scenarios 8 and 9
#[test]
fn subresources_and_verbs_outside_the_table_are_denied_before_anything_is_read() {
    for (resource, subresources, verbs) in TABLE {
        let (view, (name, group)) = (view(), resource.split_once('.').unwrap_or((resource, "")));
        let group = if group.is_empty() { String::new() } else { format!(".{group}") };
        let only_verbs = format!("deny: only the following verbs are allowed for this resource type: [{verbs}]");
        let only_subresources =
            format!("deny: only the following subresources are allowed for this resource type: [{subresources}]");

        for verb in ["deletecollection", "", "*", "GET", "approve"] {
            assert_eq!(ask(&hosted(), &view, "m1", &format!("{verb} {resource}")), only_verbs, "{resource}");
        }
        for subresource in ["approval", "proxy", "exec"] {
            let review = review(&format!("{PREFIX}m1"), &[GROUP], &{
                let mut attributes = attributes(&format!("deletecollection {name}{group}"));
                attributes["subresource"] = json!(subresource);
                json!({"resourceAttributes": attributes})
            });
            assert_eq!(reported(&answer(&authorizing(hosted()), &view, &review)), only_subresources, "{resource}");
        }
        assert_eq!(view.reads(), Vec::<String>::new(), "{resource}");
    }
}

/// spec 61 §5.1; scenarios 5, 6 and 7
#[test]
fn signing_requests_are_readable_only_by_their_agent() {
    let view = view();
    assert_eq!(ask(&hosted(), &view, "m1", "create certificatesigningrequests"), "allow");
    assert_eq!(view.reads(), Vec::<String>::new());
    check(
        &hosted(),
        &view,
        &[
            ("m1", "get certificatesigningrequests own", "allow"),
            (
                "m1",
                "get certificatesigningrequests foreign",
                "deny: gardener-node-agent is only allowed to read or request CSRs for its own user \
             \"gardener.cloud:node-agent:machine:m1\"",
            ),
            ("m1", "get certificatesigningrequests missing", "deny: CSR \"missing\" not found"),
        ],
    );
    let view = view.failing("CertificateSigningRequest own", Failure::Denied("away".into()));
    let failed = ask(&hosted(), &view, "m1", "get certificatesigningrequests own");
    assert_eq!(failed, "error: 500 error getting CSR \"own\": away");
}

/// spec 61 §5.2, §11.6
#[test]
fn events_may_be_written_in_any_namespace() {
    for request in
        ["create events any/e", "patch events any/e", "create events.events.k8s.io any/e", "patch events.events.k8s.io"]
    {
        assert_eq!(ask(&hosted(), &TestView::new(), "m1", request), "allow", "{request}");
    }
}

/// spec 61 §5.3; scenarios 10, 11, 12, 13 and 14
#[test]
fn leases_of_the_node_and_of_its_pool_are_allowed() {
    let of_n1 = "deny: this gardener-node-agent can only access leases [gardener-node-agent-n1 gna-pool1] in \"kube-system\" namespace";
    let of_n2 =
        "deny: this gardener-node-agent can only access leases [gardener-node-agent-n2] in \"kube-system\" namespace";
    check(
        &hosted(),
        &view(),
        &[
            ("m1", "update leases kube-system/gardener-node-agent-n1", "allow"),
            ("m1", "watch leases kube-system/gardener-node-agent-n1", "allow"),
            ("m1", "get leases kube-system/gna-pool1", "allow"),
            ("m1", "create leases kube-system/", "allow"),
            ("m1", "create leases kube-system/any", "allow"),
            ("m1", "create leases default/", of_n1),
            ("m1", "update leases kube-system/gardener-node-agent-n2", of_n1),
            ("m1", "get leases default/gardener-node-agent-n1", of_n1),
            ("m2", "update leases kube-system/gardener-node-agent-n1", of_n2),
            ("m2", "get leases kube-system/gna-pool2", of_n2),
            // A list without a name, which must not match the empty name of a missing pool (§11.1).
            ("m2", "list leases kube-system/", of_n2),
            ("fresh", "create leases kube-system/", "deny: no node for \"fresh\" found"),
            ("nowhere", "create leases kube-system/", "deny: no node for \"nowhere\" found"),
            ("unknown", "create leases kube-system/", "deny: machine \"unknown\" not found"),
        ],
    );
}

/// spec 61 §5.3, decision 33
#[test]
fn lease_of_a_pool_needs_the_secret_of_that_pool() {
    let of_n1 =
        "deny: this gardener-node-agent can only access leases [gardener-node-agent-n1] in \"kube-system\" namespace";
    let labelled = |name: &str| view().object(&NODES, "n1", node(name, "h1"));
    let unlabelled = OscSecret::of(&json!({}), false);
    let plain = labelled("any").object(&SECRETS, "kube-system/any", unlabelled);
    let elsewhere = labelled("other").object(&SECRETS, "default/other", osc(""));
    let broken = labelled("broken").object(&SECRETS, "kube-system/broken", osc("hush: ["));

    for (settings, machine) in [(hosted(), "m1"), (without_machines(), "n1")] {
        for verb in ["get", "list", "watch", "update"] {
            let ask = |view: &TestView, name: &str| {
                ask(&settings, view, machine, &format!("{verb} leases kube-system/{name}"))
            };
            assert_eq!(ask(&labelled("kube-controller-manager"), "kube-controller-manager"), of_n1, "{verb}");
            assert_eq!(ask(&plain, "any"), of_n1, "{verb}");
            assert_eq!(ask(&elsewhere, "other"), of_n1, "{verb}");
            assert_eq!(ask(&labelled("gna-pool2"), "gna-pool2"), "allow", "another pool's, as specified: {verb}");
            assert_eq!(ask(&broken, "broken"), "allow", "what the Secret holds does not matter: {verb}");
            assert_eq!(ask(&labelled("gna-pool1"), "gna-pool2"), of_n1.replace("n1]", "n1 gna-pool1]"), "{verb}");
        }
    }

    let away = view().failing("Secret kube-system/gna-pool1", Failure::Denied("away".into()));
    assert_eq!(ask(&hosted(), &away, "m1", "update leases kube-system/gardener-node-agent-n1"), "allow");
    assert_eq!(ask(&hosted(), &away, "m1", "create leases kube-system/"), "allow");
    assert_eq!(
        ask(&hosted(), &away, "m1", "update leases kube-system/gna-pool1"),
        "error: 500 error getting OSC secret \"gna-pool1\": away"
    );
}

/// spec 61 §4; scenario 15: a denial that names the Machine counts as an error; real failures are errors
#[test]
fn machine_or_node_that_cannot_be_read_is_an_error() {
    let away = Failure::Denied("away".into());
    let of_machine = view().failing("Machine shoot--a--b/m1", away.clone());
    let of_node = view().failing("Node n1", away);
    for request in ["get nodes n1", "get leases kube-system/x", "get pods a/p1", "list pods"] {
        assert_eq!(ask(&hosted(), &view(), "none", request), "deny: machine \"none\" not found", "{request}");
        assert_eq!(
            ask(&hosted(), &of_machine, "m1", request),
            "error: 500 error getting machine \"m1\": away",
            "{request}"
        );
        assert_eq!(ask(&hosted(), &of_node, "m1", request), "error: 500 error getting node \"/n1\": away", "{request}");
    }
    assert_eq!(
        ask(&hosted(), &of_machine, "m1", "get secrets kube-system/x"),
        "error: 500 error getting machine \"m1\": away"
    );
    assert_eq!(
        ask(&hosted(), &of_node, "m1", "get secrets kube-system/x"),
        "error: 500 error getting node \"n1\": away"
    );
}

/// spec 61 §5.4, decision 15; scenarios 16 and 17
#[test]
fn nodes_may_all_be_listed_but_only_the_own_node_changed() {
    let only_n1 = "deny: this gardener-node-agent can only access node \"n1\"";
    let empty = TestView::new();
    for request in ["list nodes", "watch nodes", "list nodes/status", "watch nodes n2"] {
        assert_eq!(ask(&hosted(), &empty, "m1", request), "allow", "{request}");
    }
    assert_eq!(empty.reads(), Vec::<String>::new());
    check(
        &hosted(),
        &view(),
        &[
            ("m1", "get nodes n1", "allow"),
            ("m1", "update nodes n1", "allow"),
            ("m1", "patch nodes/status n1", "allow"),
            ("m1", "patch nodes/status n2", only_n1),
            ("m1", "get nodes n2", only_n1),
            ("m1", "get nodes", only_n1),
            (
                "m1",
                "patch nodes/proxy n1",
                "deny: only the following subresources are allowed for this resource type: [status]",
            ),
            ("fresh", "get nodes n1", "deny: no node for \"fresh\" found"),
        ],
    );
}

/// spec 61, "better": its label may be new
#[test]
fn machine_without_a_node_is_read_live_before_a_denial() {
    let view = view();

    ask(&hosted(), &view, "fresh", "get nodes n1");

    assert_eq!(view.reads(), ["Machine shoot--a--b/fresh", "Machine shoot--a--b/fresh live"]);
}

/// spec 61 §5.5; scenarios 18 and 21
#[test]
fn pods_of_the_own_node_are_allowed() {
    check(
        &hosted(),
        &view(),
        &[
            ("m1", "list pods", "allow"),
            ("m1", "watch pods a/", "allow"),
            ("m1", "get pods a/p1", "allow"),
            ("m1", "delete pods a/p1", "allow"),
            ("m1", "delete pods a/p", "deny: pod \"a/p\" does not belong to node \"n1\""),
            ("m1", "delete pods a/unbound", "deny: pod \"a/unbound\" does not belong to node \"n1\""),
            ("m1", "get pods b/p1", "deny: pod \"b/p1\" not found"),
            ("m1", "delete pods", "deny: pod \"/\" not found"),
            ("fresh", "list pods", "deny: no node for \"fresh\" found"),
        ],
    );
    let view = view().failing("Pod a/p1", Failure::Denied("away".into()));
    assert_eq!(ask(&hosted(), &view, "m1", "get pods a/p1"), "error: 500 error getting pod \"a/p1\": away");
}

/// spec 61 §2, §5.5, §11.4; scenarios 19, 20 and 22
#[test]
fn pods_are_listed_only_by_node_with_selector_authorization() {
    let required = |operator: &str, values: &[&str]| {
        let other = json!({"key": "status.phase", "operator": "NotIn", "values": ["Failed"]});
        json!({"requirements": [other, {"key": "spec.nodeName", "operator": operator, "values": values}]})
    };
    let none = "deny: can only list/watch pods with spec.nodeName=n1 field selector";
    let table = [
        (required("In", &["n1"]), "list pods", "allow"),
        (required("In", &["n2"]), "list pods", none),
        (required("NotIn", &["n1"]), "list pods", none),
        (
            required("In", &["n1", "n2"]),
            "list pods",
            "error: 500 error parsing field selector: fieldSelectors do not yet support multiple values",
        ),
        (json!({"rawSelector": "spec.nodeName=n1,status.phase!=Failed"}), "list pods", "allow"),
        (json!({"rawSelector": "spec.nodeName!=n1"}), "watch pods", none),
        (
            json!({"rawSelector": "spec.nodeName=n1,x"}),
            "list pods a/p1",
            "error: 500 error parsing field selector: invalid selector: 'spec.nodeName=n1,x'; can't understand 'x'",
        ),
        (Value::Null, "watch pods", none),
        (Value::Null, "list pods a/p1", "allow"),
        (Value::Null, "list pods a/p", "deny: pod \"a/p\" does not belong to node \"n1\""),
    ];

    for (selector, request, expected) in table {
        assert_eq!(
            ask_selecting(&with_selectors(), &view(), "m1", request, &selector),
            expected,
            "{request} {selector}"
        );
        if request.starts_with("list pods") {
            assert_eq!(ask_selecting(&hosted(), &view(), "m1", request, &selector), "allow", "{request} {selector}");
        }
    }
}

/// spec 61 §4, §11.8
#[test]
fn node_mode_takes_the_node_name_from_the_user() {
    check(
        &without_machines(),
        &view(),
        &[
            ("n1", "get nodes n1", "allow"),
            ("n2", "get nodes n1", "deny: this gardener-node-agent can only access node \"n2\""),
            ("m1", "get nodes n1", "deny: no node for \"m1\" found"),
            ("n1", "update leases kube-system/gna-pool1", "allow"),
            ("n1", "get pods a/p1", "allow"),
        ],
    );
    assert!(without_machines().reads().iter().all(|read| !matches!(read, Reads::ObjectsOf(..))));
}

/// Users and clients choose names. An impossible name is not looked up, and a very long name is cut.
#[test]
fn impossible_name_is_denied_without_a_read_and_cut() {
    let (view, long) = (view(), "x".repeat(254));
    for (settings, request) in [(hosted(), "get secrets kube-system/x"), (without_machines(), "get nodes n1")] {
        assert_eq!(ask(&settings, &view, &long, request), format!("deny: machine \"{long}\" not found"));
    }
    for request in ["get certificatesigningrequests X", "get pods a/X", "delete pods X/a", "get secrets kube-system/X"]
    {
        for name in [long.clone(), "é".repeat(100_000)] {
            let reported = ask(&without_machines(), &view, "n1", &request.replace('X', &name));
            assert!(reported.starts_with("deny: ") && reported.len() < 2_000, "{request}: {} bytes", reported.len());
        }
    }
    assert!(view.reads().iter().all(|read| read.len() < 100), "{:?}", view.reads());
    let selector = json!({"rawSelector": format!("spec.nodeName=n1,{}", "é".repeat(100_000))});
    let reported = ask_selecting(&with_selectors(), &view, "m1", "list pods", &selector);
    assert!(
        reported.starts_with("error: 500 error parsing field selector") && reported.len() < 2_000,
        "{}",
        reported.len()
    );
}

/// spec 61, "better": one live read before anything is refused
#[test]
fn request_for_a_live_read_is_passed_on() {
    let lookup = Lookup::missing(&PODS, cluster::object::NamespacedName::new("a", "p1"));
    let view = view().failing("Pod a/p1", Failure::ReadLive(lookup.clone()));
    let review = review(&format!("{PREFIX}m1"), &[GROUP], &json!({"resourceAttributes": attributes("get pods a/p1")}));

    assert_eq!(crate::webhooks::endpoint::testing::ask(&authorizing(hosted()), &view, &review), Err(lookup));
}

/// spec 61, "better": only the needed fields are kept
#[test]
fn cached_fields_of_each_object_are_a_few_strings() {
    const SECRET_NAME: &str = "worker.gardener.cloud/gardener-node-agent-secret-name";
    let labels = json!({SECRET_NAME: "gna", "kubernetes.io/hostname": "h", "other": "x"});
    let of_machine = json!({
        "metadata": {"labels": {"node": "n"}}, "spec": {"nodeTemplate": {"metadata": {"labels": labels}}},
    });

    assert_eq!((NODES.fields)(&json!({"metadata": {"labels": labels}})), node("gna", "h"));
    assert_eq!((NODES.fields)(&json!({})), Node::default());
    assert_eq!((MACHINES.fields)(&of_machine), machine("n", "gna"));
    assert_eq!((MACHINES.fields)(&json!({"spec": {}})), Machine::default());
    assert_eq!(&*(PODS.fields)(&json!({"spec": {"nodeName": "n"}})), "n");
    assert_eq!(&*(CSRS.fields)(&json!({"spec": {"username": "u"}})), "u");
    let pool = json!({"metadata": {"labels": {"worker.gardener.cloud/pool": ""}}});
    assert_eq!(((SECRETS.fields)(&pool).of_pool, (SECRETS.fields)(&json!({})).of_pool), (true, false));
}
