mod watching;

use std::{ffi::OsString, time::Duration};

use serde_json::{Value, json};
use sim::{Fault, Seen, WatchEnd};
use tokio::time::sleep;

use super::*;
use crate::{
    cli::{Cli, Command, GetOptions, Tool},
    commands::{
        DIFFERENT, OK,
        get::{GetError, get},
    },
};

const HEAD: &str = "NAME   CLASS       APPLIED   HEALTHY   PROGRESSING   OBJECTS   AGE    PROBLEM\n";
const MESSAGE: &str = "The Deployment \"ns/web\" is unhealthy: too few Pods are available";

struct Ran {
    result: Result<i32, GetError>,
    out: String,
    remarks: String,
}

fn options(line: &str) -> GetOptions {
    let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    match Cli::parse_from(&arguments, &|_| None) {
        Ok(Command::Tool(Tool::Get(options))) => options,
        other => panic!("{line}: {other:?}"),
    }
}

async fn run(cluster: &(Sim, Clock), line: &str) -> Ran {
    run_on(cluster, line, None).await
}

async fn run_on((sim, clock): &(Sim, Clock), line: &str, columns: Option<usize>) -> Ran {
    let (out, remarks) = (Printed::default(), Printed::default());
    sim.clear_requests();
    let result = {
        let (out, remarks) = (&mut out.clone(), &mut remarks.clone());
        let look = Look { is_terminal: columns.is_some(), colours: columns.is_some(), columns };
        let mut screen = Screen::new(out, remarks, look);
        get(sim.client(), (clock.clone(), Random::seeded(1)), &options(line), &mut screen).await
    };
    reads_only(sim);
    Ran { result, out: out.take(), remarks: remarks.take() }
}

fn reads_only(sim: &Sim) {
    for request in sim.requests() {
        let info = request.info;
        assert!(["get", "list", "watch"].contains(&info.verb.as_str()), "{}", info.verb);
        assert_eq!(info.resource, "managedresources", "it reads nothing else, Secrets least of all");
    }
}

fn well(namespace: &str, name: &str) -> Value {
    let condition = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "reason": "R", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"})
    };
    json!({
        "apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
        "metadata": {"namespace": namespace, "name": name, "creationTimestamp": "2025-12-29T20:00:00Z",
            "generation": 1, "labels": {"name": name}},
        "spec": {"secretRefs": [{"name": "s"}]},
        "status": {
            "observedGeneration": 1,
            "conditions": [condition("ResourcesApplied", "True"), condition("ResourcesHealthy", "True"),
                condition("ResourcesProgressing", "False")],
            "resources": [{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "ns", "name": name}],
        },
    })
}

fn unhealthy(object: &mut Value) {
    object["status"]["conditions"][1]["status"] = "False".into();
    object["status"]["conditions"][1]["reason"] = "DeploymentUnhealthy".into();
    object["status"]["conditions"][1]["message"] = MESSAGE.into();
}

fn healthy(object: &mut Value) {
    object["status"]["conditions"][1]["status"] = "True".into();
}

/// `ns/a` is unhealthy, `ns/b` healthy, `other/c` not applied yet.
fn three() -> (Sim, Clock) {
    let cluster = cluster_and_clock();
    let (mut a, mut c) = (well("ns", "a"), well("other", "c"));
    unhealthy(&mut a);
    c["metadata"]["generation"] = 2.into();
    c["spec"]["class"] = "seed".into();
    for object in [a, well("ns", "b"), c] {
        cluster.0.put(object).unwrap();
    }
    cluster
}

#[tokio::test(start_paused = true)]
async fn get_prints_a_row_for_each_with_its_first_problem() {
    let cluster = three();

    let of_namespace = run(&cluster, "get -n ns").await;
    let of_all = run(&cluster, "get -A --no-headers").await;

    let expected = format!(
        "{HEAD}a      resources   True      False     False         1         2d4h   DeploymentUnhealthy: {MESSAGE}\n\
         b      resources   True      True      False         1         2d4h\n"
    );
    assert_eq!((of_namespace.result.unwrap(), of_namespace.out), (OK, expected));
    let expected = format!(
        "ns      a   resources   True    False   False    1   2d4h   DeploymentUnhealthy: {MESSAGE}\n\
         ns      b   resources   True    True    False    1   2d4h\n\
         other   c   seed        True*   True*   False*   1   2d4h   generation 2 is not applied yet, this is of generation 1\n"
    );
    assert_eq!((of_all.result.unwrap(), of_all.out), (OK, expected));
}

#[tokio::test(start_paused = true)]
async fn get_prints_colours_and_cut_lines_on_a_terminal() {
    let cluster = three();

    let table = run_on(&cluster, "get -n ns a --no-headers", Some(80)).await.out;
    let wide = run_on(&cluster, "get -n ns a --no-headers -o wide", Some(80)).await.out;

    let (red, green) = ("\x1b[31mFalse\x1b[0m", "\x1b[32mFalse\x1b[0m");
    let before = format!("a   resources   \x1b[32mTrue\x1b[0m   {red}   {green}   1   2d4h   ");
    assert_eq!(table, format!("{before}DeploymentUnhealthy: The Depl…\n"));
    assert_eq!(wide, format!("{before}DeploymentUnhealthy: {MESSAGE}\n"));
}

#[tokio::test(start_paused = true)]
async fn get_lets_no_control_characters_of_tenants_through_to_a_terminal() {
    let cluster = three();
    cluster.0.edit(MANAGED_RESOURCE, "ns", "b", |mr| {
        mr["metadata"]["annotations"] = json!({"note": "a\u{1b}[8mb\u{1b}[0m\u{1b}]0;t\u{7}\u{202e}"});
    });

    for output in
        ["jsonpath={.metadata.annotations.note}", "custom-columns=N:.metadata.annotations.note", "json", "yaml"]
    {
        let line = format!("get -n ns b -o {output}");

        let terminal = run_on(&cluster, &line, Some(80)).await.out;
        let pipe = run(&cluster, &line).await.out;

        assert!(!terminal.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{output}: {terminal:?}");
        assert_eq!(pipe.contains("\u{1b}[8mb"), output.starts_with("jsonpath"), "{output}: {pipe:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn get_unhealthy_leaves_out_healthy_ones() {
    let cluster = three();

    let bad = run(&cluster, "get -A --unhealthy -o name").await;
    cluster.0.edit(MANAGED_RESOURCE, "ns", "a", healthy);
    let none = run(&cluster, "get -n ns --unhealthy").await;
    let names = run(&cluster, "get -n ns --unhealthy a b").await;
    let name = run(&cluster, "get -n ns --unhealthy b nowhere").await;
    let nowhere = run(&cluster, "get -n ns --unhealthy nowhere").await;
    let nothing = run(&cluster, "get").await;

    let group = "managedresource.resources.gardener.cloud";
    assert_eq!(bad.out, format!("{group}/a\n{group}/c\n"));
    assert_eq!((none.result.unwrap(), none.out.as_str()), (OK, ""));
    let missing = "error: there is no ManagedResource ns/nowhere — check name and namespace; get -A lists all\n";
    let all = "all 2 ManagedResources found in namespace ns are applied, healthy and rolled out\n";
    let one = "the one ManagedResource found in namespace ns is applied, healthy and rolled out\n";
    assert_eq!(none.remarks, all);
    assert_eq!((names.result.unwrap(), names.out.as_str(), names.remarks.as_str()), (OK, "", all));
    assert_eq!((name.result.unwrap(), name.remarks), (DIFFERENT, format!("{missing}{one}")));
    assert_eq!((nowhere.result.unwrap(), nowhere.remarks.as_str()), (DIFFERENT, missing));
    assert_eq!(nothing.remarks, "no ManagedResources found in namespace default\n");
}

#[tokio::test(start_paused = true)]
async fn get_of_a_missing_name_is_exit_code_1_and_names_its_namespace() {
    let cluster = three();

    let ran = run(&cluster, "get -n ns b nowhere a --no-headers").await;
    let watched = run(&cluster, "get -n ns nowhere -w").await;
    let elsewhere = run(&cluster, "get -n ns other/c a --no-headers").await;
    let several = run(&cluster, "get -n ns other/c a -w").await;

    let text = "error: there is no ManagedResource ns/nowhere — check name and namespace; get -A lists all\n";
    let names: Vec<_> = ran.out.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!((ran.result.unwrap(), names.as_slice(), ran.remarks.as_str()), (DIFFERENT, ["b", "a"].as_slice(), text));
    assert_eq!((watched.result.unwrap(), watched.out.as_str(), watched.remarks.as_str()), (DIFFERENT, "", text));
    let names: Vec<_> = elsewhere.out.lines().map(|line| line.split_whitespace().take(2).collect::<Vec<_>>()).collect();
    assert_eq!(names, [["other", "c"], ["ns", "a"]]);
    assert!(several.result.unwrap_err().to_string().starts_with("a watch of names is in one namespace"));
}

#[tokio::test(start_paused = true)]
async fn get_prints_whole_objects_for_programs() {
    let cluster = three();
    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();

    let list = parse(&run(&cluster, "get -n ns -o json").await.out);
    let one = parse(&run(&cluster, "get -n ns b -o json").await.out);
    let yaml = run(&cluster, "get -n ns b -o yaml").await.out;
    let empty = parse(&run(&cluster, "get -o json").await.out);

    assert_eq!((&list["kind"], &list["items"][0]["metadata"]["name"]), (&json!("List"), &json!("a")));
    assert_eq!(list["items"][1], one);
    assert_eq!((&one["kind"], &one["metadata"]["name"]), (&json!("ManagedResource"), &json!("b")));
    assert_eq!(serde_saphyr::from_str::<Value>(&yaml).unwrap(), one);
    assert_eq!(empty["items"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn get_selector_is_passed_to_the_server() {
    let cluster = three();

    let one = run(&cluster, "get -A -l name=c -o name").await;
    let nonsense = run(&cluster, "get -A -l a=b=c").await;

    assert_eq!(one.out, "managedresource.resources.gardener.cloud/c\n");
    let error = nonsense.result.unwrap_err().to_string();
    assert!(error.starts_with("cannot read the ManagedResources: unable to parse requirement"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn get_reads_pages_and_begins_anew_when_the_list_expires() {
    let cluster = cluster_and_clock();
    for number in 0..600 {
        cluster.0.put(well("ns", &format!("m{number:03}"))).unwrap();
    }
    let mut expired = 0;
    cluster.0.set_faults(move |info| {
        let continued = info.query.contains("continue=");
        expired += u32::from(continued);
        let gone = Seen::status(410, "Expired", "too old");
        if continued && expired < 3 { Fault::FailBefore(gone) } else { Fault::None }
    });

    let ran = run(&cluster, "get -n ns").await;

    assert_eq!((ran.result.unwrap(), ran.out.lines().count()), (OK, 601));
    assert_eq!(cluster.0.requests().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn get_marks_ignored_and_shared_objects() {
    let cluster = three();
    cluster.0.edit(MANAGED_RESOURCE, "ns", "b", |object| {
        object["metadata"]["annotations"]["resources.gardener.cloud/ignore"] = "true".into();
        object["status"]["resources"][0]["name"] = "a".into();
    });

    let table = run(&cluster, "get -n ns --no-headers").await.out;
    let unhealthy = run(&cluster, "get -n ns --unhealthy --no-headers").await.out;
    cluster.0.edit(MANAGED_RESOURCE, "ns", "a", healthy);
    let well = run(&cluster, "get -n ns --unhealthy").await.remarks;
    let sorted = run(&cluster, "get -A --sort-by PROBLEM --no-headers").await.out;

    let rows: Vec<_> = table.lines().collect();
    assert!(rows[0].ends_with(&format!("2d4h   DeploymentUnhealthy: {MESSAGE}; shares 1 object with ns/b")), "{table}");
    assert!(rows[1].ends_with("2d4h   ignored; shares 1 object with ns/a"), "{table}");
    assert_eq!(unhealthy.lines().count(), 1, "{unhealthy}");
    let text = "all 2 ManagedResources found in namespace ns are applied, healthy and rolled out, or ignored (1)\n";
    assert_eq!(well, text);
    let problem =
        |line: &str| line.split_once("2d4h").map(|(_, problem)| problem.trim().to_owned()).unwrap_or_default();
    let problems: Vec<_> = sorted.lines().map(problem).collect();
    let mut in_order = problems.clone();
    in_order.sort_by_key(|problem| (problem.is_empty(), problem.clone()));
    assert_eq!(problems, in_order);
    assert!(problems.contains(&"shares 1 object with ns/b".to_owned()), "{sorted}");
}

#[tokio::test(start_paused = true)]
async fn get_prints_templates_and_columns() {
    let cluster = three();

    let names = run(&cluster, "get -A -o jsonpath={.items[*].metadata.name}").await;
    let one = run(&cluster, "get other/c -o jsonpath={.spec.class}{'\\n'}").await;
    let columns = run(&cluster, "get -A -o custom-columns=NAME:.metadata.name,CLASS:.spec.class --sort-by NAME").await;
    let none = run(&cluster, "get -o custom-columns=NAME:.metadata.name").await;
    let empty = run(&cluster, "get -o jsonpath={.kind}{.items}").await;

    assert_eq!((names.result.unwrap(), names.out.as_str()), (OK, "a b c"));
    assert_eq!(one.out, "seed\n");
    assert_eq!(columns.out, "NAME   CLASS\na      <none>\nb      <none>\nc      seed\n");
    assert_eq!((none.out.as_str(), none.remarks.as_str()), ("", "no ManagedResources found in namespace default\n"));
    assert_eq!(empty.out, "List[]");
}

#[tokio::test(start_paused = true)]
async fn get_sorts_tables_names_and_objects() {
    let cluster = three();
    for (namespace, name, order) in [("ns", "a", 10), ("ns", "b", 9), ("other", "c", 100)] {
        cluster.0.edit(MANAGED_RESOURCE, namespace, name, |object| {
            object["metadata"]["labels"]["order"] = order.to_string().into();
            object["metadata"]["creationTimestamp"] =
                format!("2025-12-{order:02}T00:00:00Z").replace("100", "11").into();
        });
    }
    let names = async |line: &str| {
        let out = run(&cluster, line).await.out;
        out.split_whitespace().map(|it| it.trim_start_matches(|letter| letter != '/').to_owned()).collect::<String>()
    };

    assert_eq!(names("get -A -o name --sort-by AGE").await, "/c/a/b");
    assert_eq!(names("get -A -o name --sort-by .metadata.labels.order").await, "/a/c/b");
    let table = run(&cluster, "get -A --sort-by class --no-headers").await.out;
    let rows: Vec<_> = table.lines().map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(rows, ["a", "b", "c"], "the class resources comes before seed");
    let json: Value = serde_json::from_str(&run(&cluster, "get -A -o json --sort-by .spec.class").await.out).unwrap();
    let order: Vec<_> = json["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]).collect();
    assert_eq!(order, ["c", "a", "b"], "what has no class is last");
}
