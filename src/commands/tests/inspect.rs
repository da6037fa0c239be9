use std::{collections::BTreeMap, ffi::OsString};

use serde_json::{Value, json};
use sim::{Fault, Seen};

use super::*;
use crate::{
    cli::{Cli, Command, RequestTimeout, Tool},
    commands::{
        DIFFERENT, OK,
        inspect::{Clusters, InspectError, describe::describe, events::events, trace::trace},
    },
    producer::{Registry, SecretBuilder},
};

const SECRET_VALUE: &str = "sesame";
const UID: &str = "11111111-1111-1111-1111-111111111111";

fn clusters((sim, clock): &(Sim, Clock)) -> Clusters {
    Clusters::new(sim.client(), None, (clock.clone(), Random::seeded(1)), RequestTimeout::default())
}

async fn run(cluster: &(Sim, Clock), line: &str) -> Result<Said, InspectError> {
    let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    let tool = match Cli::parse_from(&arguments, &|_| None) {
        Ok(Command::Tool(tool)) => tool,
        other => panic!("{line}: {other:?}"),
    };
    cluster.0.clear_requests();
    let clusters = clusters(cluster);
    let said = match &tool {
        Tool::Describe(options) => describe(&clusters, options, false).await,
        Tool::Events(options) => events(&clusters, options, false).await,
        Tool::Trace(options) => trace(&clusters, options, false).await,
        other => panic!("{other:?}"),
    };
    for request in cluster.0.requests() {
        assert!(["get", "list"].contains(&request.info.verb.as_str()), "{}", request.info.verb);
    }
    said
}

fn manifest(kind: &str, name: &str) -> String {
    let api_version = if kind == "Deployment" { "apps/v1" } else { "v1" };
    format!("apiVersion: {api_version}\nkind: {kind}\nmetadata: {{namespace: ns, name: {name}}}\n")
}

fn event(name: &str, about: &str, reason: &str, last: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"namespace": "ns", "name": name}, "type": "Warning",
        "involvedObject": {"apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
            "namespace": "ns", "name": about, "uid": UID},
        "reason": reason, "message": format!("message of {name}"), "count": 2, "lastTimestamp": last,
    })
}

/// ManagedResource `ns/web` has a Pod that failed, a Secret, a ConfigMap that is gone, and a Secret that does not exist.
fn web() -> (Sim, Clock) {
    let cluster = cluster_and_clock();
    let mut registry = Registry::default();
    let secret = format!("{}stringData: {{password: {SECRET_VALUE}}}\n", manifest("Secret", "login"));
    let documents = [manifest("Pod", "p"), secret.clone(), manifest("ConfigMap", "gone"), manifest("ConfigMap", "new")];
    registry.add_serialized("all", documents.join("---\n"));
    let data: BTreeMap<String, Vec<u8>> = registry.data();
    cluster.0.put(SecretBuilder::new("ns", "bundle").data(data).build()).unwrap();
    let reference = |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "namespace": "ns", "name": name});
    let condition = |kind: &str, status: &str, message: &str| {
        json!({"type": kind, "status": status, "reason": "R", "message": message,
            "lastTransitionTime": "2025-12-31T23:55:00Z", "lastUpdateTime": "2025-12-31T23:55:00Z"})
    };
    let errors = "Could not apply: 2 errors occurred: [error during a: x, y, error during b: z]";
    let origin = json!({"resources.gardener.cloud/origin": "ns/web"});
    let objects = [
        json!({
            "apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
            "metadata": {"namespace": "ns", "name": "web", "uid": UID, "creationTimestamp": "2025-12-31T20:00:00Z",
                "generation": 2, "annotations": {"resources.gardener.cloud/ignore": "true"}},
            "spec": {"class": "seed", "secretRefs": [{"name": "bundle"}, {"name": "nowhere"}]},
            "status": {
                "observedGeneration": 1,
                "conditions": [condition("ResourcesApplied", "False", errors)],
                "resources": [reference("ConfigMap", "gone"), reference("ConfigMap", "old"), reference("Pod", "p"),
                    reference("Secret", "login")],
            },
        }),
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "ns", "name": "p", "annotations": origin},
            "spec": {"containers": [{"name": "c", "image": "i"}]}, "status": {"phase": "Failed"},
        }),
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "ns", "name": "login"},
            "stringData": {"password": SECRET_VALUE},
        }),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "ns", "name": "old"}}),
        event("b", "web", "Later", "2025-12-31T23:59:00Z"),
        event("a", "web", "Earlier", "2025-12-31T23:58:00Z"),
        event("c", "other", "Other", "2025-12-31T23:57:00Z"),
    ];
    for object in objects {
        cluster.0.put(object).unwrap();
    }
    cluster
}

fn words(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn has(text: &str, line: &str) {
    assert!(words(text).iter().any(|it| it == line), "{line:?} is not in\n{text}");
}

#[tokio::test(start_paused = true)]
async fn describe_shows_conditions_events_and_live_objects() {
    let cluster = web();

    let said = run(&cluster, "describe ns/web").await.unwrap();

    assert_eq!((said.code, said.remarks.as_slice()), (OK, [].as_slice()));
    for line in [
        "Class: seed",
        "Age: 4h",
        "Generation: 2, observed is 1",
        "Ignored: yes, by the annotation resources.gardener.cloud/ignore",
        "Deleting: no",
        "Secrets: bundle",
        "nowhere (does not exist)",
        "ResourcesApplied False 5m R",
        "error during a: x, y",
        "error during b: z",
        "Objects (4):",
        "v1/ConfigMap/ns/gone missing",
        "v1/ConfigMap/ns/old present",
        "v1/Secret/ns/login present",
    ] {
        has(&said.out, line);
    }
    let pod = words(&said.out).into_iter().find(|line| line.contains("/Pod/")).unwrap();
    assert!(pod.starts_with("v1/Pod/ns/p unhealthy pod is in invalid phase \"Failed\""), "{pod}");
    let (earlier, later) = (said.out.find("Earlier").unwrap(), said.out.find("Later").unwrap());
    assert!(earlier < later && !said.out.contains("Other"), "{}", said.out);
}

#[tokio::test(start_paused = true)]
async fn describe_tree_puts_objects_below_their_documents() {
    let cluster = web();

    let said = run(&cluster, "describe web -n ns --tree").await.unwrap();

    let lines = words(&said.out);
    let tree =
        lines.iter().skip_while(|line| *line != "ManagedResource ns/web").map(String::as_str).collect::<Vec<_>>();
    assert_eq!(tree[1], "├── Secret bundle", "{}", said.out);
    assert!(tree[2].starts_with("│ ├── ") && tree[2].contains("document 0 v1/Pod/ns/p unhealthy"), "{}", said.out);
    assert!(tree[3].ends_with("document 1 v1/Secret/ns/login present"), "{}", said.out);
    assert!(tree[4].ends_with("document 2 v1/ConfigMap/ns/gone missing"), "{}", said.out);
    assert!(tree[5].ends_with("document 3 v1/ConfigMap/ns/new not in the status"), "{}", said.out);
    assert_eq!(
        tree[6..],
        [
            "├── Secret nowhere",
            "│ └── does not exist",
            "└── in no document that can be read",
            "└── v1/ConfigMap/ns/old present"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn describe_tree_shows_each_secret_once_and_each_document() {
    let cluster = web();
    let again = manifest("Pod", "p");
    let data = json!({"a": again, "b": again});
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "ns", "name": "twice"}, "stringData": data,
    });
    cluster.0.put(secret).unwrap();
    let twice = vec![json!({"name": "twice"}); 100];
    cluster.0.edit(MANAGED_RESOURCE, "ns", "web", |object| object["spec"]["secretRefs"] = twice.into());

    let said = run(&cluster, "describe web -n ns --tree").await.unwrap();

    let lines = words(&said.out);
    let count = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
    assert_eq!(count("Secret twice"), 1, "{}", said.out);
    assert_eq!(count("document 0 v1/Pod/ns/p unhealthy"), 2, "{}", said.out);
    assert_eq!(count("in no document"), 1, "{}", said.out);
    assert_eq!(count("that can be read"), 0, "{}", said.out);
}

#[tokio::test(start_paused = true)]
async fn inspection_never_prints_values_of_secrets() {
    let cluster = web();

    for line in
        ["describe ns/web", "describe ns/web --tree", "describe ns/web --tree -o json", "trace Secret/login -n ns"]
    {
        let said = run(&cluster, line).await.unwrap();

        assert_eq!(said.code, OK, "{line}");
        let base64 = "c2VzYW1l";
        assert!(!said.out.contains(SECRET_VALUE) && !said.out.contains(base64), "{line}: {}", said.out);
    }
}

#[tokio::test(start_paused = true)]
async fn describe_prints_json_for_programs() {
    let cluster = web();

    let said = run(&cluster, "describe ns/web --tree -o json").await.unwrap();

    let read: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (&read["class"], &read["ignored"], &read["deletionTimestamp"]),
        (&json!("seed"), &json!(true), &Value::Null)
    );
    assert_eq!(read["secrets"][1], json!({"name": "nowhere", "exists": false, "error": null}));
    assert_eq!((&read["objects"][0]["exists"], &read["objects"][2]["state"]), (&json!(false), &json!("unhealthy")));
    assert_eq!(read["conditions"][0]["type"], "ResourcesApplied");
    assert_eq!(read["events"][1]["reason"], "Later");
    assert_eq!(read["tree"][0]["documents"][1]["object"], "v1/Secret/ns/login");
    assert_eq!(read["tree"][1]["error"], "does not exist");
}

#[tokio::test(start_paused = true)]
async fn describe_of_a_missing_name_is_exit_code_1() {
    let said = run(&web(), "describe nowhere").await.unwrap();

    assert_eq!((said.code, said.out.as_str()), (DIFFERENT, ""));
    let text = "error: there is no ManagedResource default/nowhere — check name and namespace; get -A lists all";
    assert_eq!(said.remarks, [text]);
}

#[tokio::test(start_paused = true)]
async fn describe_shows_objects_that_cannot_be_read_as_unknown() {
    let cluster = web();
    cluster.0.set_faults(|info| match info.resource.as_str() {
        "pods" => Fault::FailBefore(Seen::status(403, "Forbidden", "pods are forbidden")),
        "events" => Fault::FailBefore(Seen::status(403, "Forbidden", "events are forbidden")),
        _ => Fault::None,
    });

    let said = run(&cluster, "describe ns/web").await.unwrap();

    assert_eq!((said.code, said.remarks), (OK, vec!["warning: the state of 1 of 4 objects is unknown".to_owned()]));
    has(&said.out, "v1/Pod/ns/p unknown pods are forbidden");
    has(&said.out, "unknown: cannot read the Events: events are forbidden");
    let json = run(&cluster, "describe ns/web -o json").await.unwrap();
    assert_eq!(json.remarks[1..], ["warning: cannot read the Events: events are forbidden"]);
}

#[tokio::test(start_paused = true)]
async fn describe_reads_on_after_an_object_that_is_not_answered() {
    let cluster = web();
    let references: Vec<Value> = (0..30)
        .map(|number| json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "ns", "name": format!("c{number}")}))
        .collect();
    cluster.0.edit(MANAGED_RESOURCE, "ns", "web", |object| object["status"]["resources"] = references.clone().into());
    cluster.0.set_faults(|info| if info.name == "c0" { Fault::Hang } else { Fault::None });
    let one = run(&cluster, "describe ns/web").await.unwrap();
    cluster.0.set_faults(|info| if info.resource == "configmaps" { Fault::Hang } else { Fault::None });
    let start = tokio::time::Instant::now();

    let all = run(&cluster, "describe ns/web").await.unwrap();

    assert_eq!(one.remarks, ["warning: the state of 1 of 30 objects is unknown"]);
    has(&one.out, "v1/ConfigMap/ns/c29 missing");
    assert_eq!(all.remarks, ["warning: the state of 30 of 30 objects is unknown"]);
    assert!(start.elapsed().as_secs() <= 30, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn events_are_listed_the_oldest_first() {
    let cluster = web();

    let of_one = run(&cluster, "events ns/web").await.unwrap();
    let of_namespace = run(&cluster, "events -n ns").await.unwrap();
    let of_all = run(&cluster, "events -A -o json").await.unwrap();
    let none = run(&cluster, "events").await.unwrap();

    assert_eq!(
        words(&of_one.out),
        ["LAST TYPE REASON COUNT MESSAGE", "2m Warning Earlier 2 message of a", "60s Warning Later 2 message of b"]
    );
    assert_eq!(
        words(&of_namespace.out)[..2],
        ["NAME LAST TYPE REASON COUNT MESSAGE", "other 3m Warning Other 2 message of c"]
    );
    let all: Value = serde_json::from_str(&of_all.out).unwrap();
    assert_eq!((all.as_array().map(Vec::len), &all[0]["name"]), (Some(3), &json!("other")));
    assert_eq!(none.remarks, ["no Events found about ManagedResources in namespace default"]);
}

#[tokio::test(start_paused = true)]
async fn events_of_one_second_are_in_the_order_of_their_writes() {
    let cluster = web();
    for (name, reason) in [("z", "First"), ("y", "Second"), ("x", "Third")] {
        cluster.0.put(event(name, "web", reason, "2025-12-31T23:59:40Z")).unwrap();
    }

    let text = run(&cluster, "events ns/web").await.unwrap().out;

    let reasons: Vec<_> = text.lines().skip(3).filter_map(|line| line.split_whitespace().nth(2)).collect();
    assert_eq!(reasons, ["First", "Second", "Third"], "{text}");
}

#[tokio::test(start_paused = true)]
async fn event_of_another_client_cannot_flood_the_list() {
    let cluster = web();
    let mut flood = event("f", "web", &"r".repeat(100_000), "2025-12-31T23:59:30Z");
    flood["message"] = "m".repeat(100_000).into();
    cluster.0.put(flood).unwrap();

    let text = run(&cluster, "events ns/web").await.unwrap().out;
    let json = run(&cluster, "events ns/web -o json").await.unwrap().out;

    assert_eq!(text.lines().count(), 4);
    assert!(text.len() < 5000 && json.len() < 5000, "{} {}", text.len(), json.len());
}

#[tokio::test(start_paused = true)]
async fn trace_finds_managed_resource_secret_and_document() {
    let cluster = web();

    let by_origin = run(&cluster, "trace pod/p -n ns").await.unwrap();
    let by_status = run(&cluster, "trace ConfigMap/gone -n ns").await.unwrap();
    let json = run(&cluster, "trace Secret/login -n ns -o json").await.unwrap();

    let document = words(&by_origin.out).pop().unwrap();
    assert_eq!(
        words(&by_origin.out)[..4],
        ["Object: Pod ns/p", "Origin: ns/web", "ManagedResource: ns/web", "Secret: ns/bundle"],
    );
    assert!(words(&by_origin.out)[4].starts_with("Document: 0 of data.yaml"), "{document}");
    assert_eq!(words(&by_status.out)[..2], ["Object: ConfigMap ns/gone (does not exist)", "Origin: none"]);
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["managedResources"][0]["documents"][0]["document"], 1);
    assert_eq!(json["managedResources"][0]["errors"], json!(["nowhere: does not exist"]));
}

#[tokio::test(start_paused = true)]
async fn trace_of_a_foreign_object_or_kind_fails() {
    let cluster = web();

    let foreign = run(&cluster, "trace ConfigMap/foreign -n ns").await.unwrap();
    let kind = run(&cluster, "trace Nothing.example.com/x").await.unwrap_err();
    let nowhere = run(&cluster, "trace cm/foreign").await.unwrap();
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "w-1", "uid": UID, "controller": true});
    let metadata = json!({"namespace": "ns", "name": "w-1-a", "ownerReferences": [owner]});
    cluster.0.put(json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})).unwrap();
    let owned = run(&cluster, "trace pod/w-1-a -n ns").await.unwrap();

    assert_eq!(owned.remarks, ["error: no ManagedResource has Pod ns/w-1-a; ReplicaSet.apps/w-1 owns it — trace that"]);
    let text =
        "error: no ManagedResource has ConfigMap default/foreign, and it does not exist — -n names another namespace";
    assert_eq!(nowhere.remarks, [text]);
    assert_eq!((foreign.code, foreign.out.as_str()), (DIFFERENT, ""));
    assert_eq!(foreign.remarks, ["error: no ManagedResource has ConfigMap ns/foreign, and it does not exist"]);
    assert!(kind.to_string().starts_with("the target cluster serves no kind Nothing.example.com — "), "{kind}");
}

#[tokio::test(start_paused = true)]
async fn inspection_names_the_command_that_installs_a_missing_definition() {
    let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let sim = Sim::new(SimOptions::new(clock.clone(), Random::seeded(1)));

    let error = run(&(sim, clock), "describe web").await.unwrap_err();

    let text = error.to_string();
    assert!(text.ends_with("install their definition: kubectl apply -f deploy/crd-managedresources.yaml"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn request_that_is_not_answered_ends_at_its_time_limit() {
    let cluster = web();
    cluster.0.set_faults(|_| Fault::Hang);
    let start = tokio::time::Instant::now();

    let error = run(&cluster, "events -n ns").await.unwrap_err();

    assert_eq!(error.to_string(), "cannot read the Events: the API server did not answer in time");
    assert_eq!(start.elapsed().as_secs(), 15);
}

#[tokio::test(start_paused = true)]
async fn describe_shows_no_events_of_strangers() {
    let cluster = web();
    for (number, (field, value)) in
        [("uid", "another"), ("apiVersion", "example.com/v1"), ("apiVersion", ""), ("kind", "Pod")]
            .into_iter()
            .cycle()
            .take(40)
            .enumerate()
    {
        let mut stranger = event(&format!("s{number}"), "web", "Stranger", "2025-12-31T23:59:59Z");
        stranger["involvedObject"][field] = value.into();
        cluster.0.put(stranger).unwrap();
    }

    let described = run(&cluster, "describe ns/web").await.unwrap().out;
    let listed = run(&cluster, "events ns/web").await.unwrap().out;

    assert!(!described.contains("Stranger") && described.contains("Earlier"), "{described}");
    assert_eq!(listed.matches("Stranger").count(), 10, "earlier ones of the same name are listed: {listed}");
}

/// spec 10 §10.3
#[tokio::test(start_paused = true)]
async fn describe_tree_finds_objects_of_equivalent_kinds() {
    let cluster = web();
    let data = json!({"a": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {namespace: ns, name: d}\n"});
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "ns", "name": "one"}, "stringData": data,
    });
    cluster.0.put(secret).unwrap();
    cluster.0.edit(MANAGED_RESOURCE, "ns", "web", |object| {
        object["spec"]["secretRefs"] = json!([{"name": "one"}]);
        let reference =
            json!({"apiVersion": "extensions/v1beta1", "kind": "Deployment", "namespace": "ns", "name": "d"});
        object["status"]["resources"] = json!([reference]);
    });

    let said = run(&cluster, "describe ns/web --tree").await.unwrap();

    let tree = words(&said.out);
    let line = tree.iter().find(|line| line.contains("document 0")).unwrap();
    assert!(line.contains("extensions/v1beta1/Deployment/ns/d"), "{}", said.out);
    assert!(!said.out.contains("in no document") && !said.out.contains("not in the status"), "{}", said.out);
}

#[tokio::test(start_paused = true)]
async fn inspection_prints_yaml_and_templates_too() {
    let cluster = web();

    let yaml = run(&cluster, "events ns/web -o yaml").await.unwrap().out;
    let template =
        run(&cluster, "describe ns/web -o jsonpath={.objects[?(@.state==\"missing\")].name}").await.unwrap().out;

    let events: Value = serde_saphyr::from_str(&yaml).unwrap();
    assert_eq!(events[1]["reason"], "Later");
    assert_eq!(template, "gone");
}
