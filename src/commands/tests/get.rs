//! get, from its flags to its text, against the simulator.

use std::{
    cell::RefCell,
    ffi::OsString,
    io::{self, Write},
    rc::Rc,
    time::Duration,
};

use serde_json::{Value, json};
use sim::{Fault, Seen, WatchEnd};
use tokio::time::sleep;

use super::*;
use crate::{
    cli::{Cli, Command, GetOptions, Tool},
    commands::{
        DIFFERENT, OK,
        get::{GetError, Screen, get},
    },
};

const HEAD: &str = "NAME   CLASS       APPLIED   HEALTHY   PROGRESSING   OBJECTS   AGE    PROBLEM\n";
/// A problem with all it has to say.
const MESSAGE: &str = "The Deployment \"ns/web\" is unhealthy: too few Pods are available";

/// What was printed; clones share it.
#[derive(Clone, Default)]
struct Printed(Rc<RefCell<Vec<u8>>>);

/// A finished run.
struct Ran {
    result: Result<i32, GetError>,
    out: String,
    remarks: String,
}

impl Printed {
    /// What was printed since the last time.
    fn take(&self) -> String {
        String::from_utf8(self.0.take()).unwrap()
    }
}

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// As the shell would give it.
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

/// On a terminal of so many columns, or on none.
async fn run_on((sim, clock): &(Sim, Clock), line: &str, columns: Option<usize>) -> Ran {
    let (out, remarks) = (Printed::default(), Printed::default());
    sim.clear_requests();
    let result = {
        let (out, remarks) = (&mut out.clone(), &mut remarks.clone());
        let screen = Screen { out, remarks, colours: columns.is_some(), columns };
        get(sim.client(), (clock.clone(), Random::seeded(1)), &options(line), screen).await
    };
    reads_only(sim);
    Ran { result, out: out.take(), remarks: remarks.take() }
}

/// Runs the script while the command watches. It must not end before.
async fn while_watching(
    (sim, clock): &(Sim, Clock),
    line: &str,
    script: impl AsyncFnOnce(&Printed, &Printed),
) -> Result<i32, GetError> {
    let (out, remarks) = (Printed::default(), Printed::default());
    let (mut to_out, mut to_remarks) = (out.clone(), remarks.clone());
    let options = options(line);
    let screen = Screen { out: &mut to_out, remarks: &mut to_remarks, colours: false, columns: None };
    let watch = get(sim.client(), (clock.clone(), Random::seeded(1)), &options, screen);
    let script = async {
        settled().await;
        script(&out, &remarks).await;
    };
    let ended = tokio::select! {
        biased;
        ended = watch => ended,
        () = script => Ok(OK),
    };
    reads_only(sim);
    ended
}

fn reads_only(sim: &Sim) {
    for request in sim.requests() {
        let info = request.info;
        assert!(["get", "list", "watch"].contains(&info.verb.as_str()), "{}", info.verb);
        assert_eq!(info.resource, "managedresources", "it reads nothing else, Secrets least of all");
    }
}

/// Longer than any back-off.
async fn settled() {
    sleep(Duration::from_secs(61)).await;
}

/// A ManagedResource that is well.
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
            "resources": [{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "ns", "name": "c"}],
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

/// `ns/a` is unhealthy, `ns/b` well, `other/c` not applied yet.
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
async fn a_table_has_a_row_for_each_and_the_first_problem() {
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
async fn a_terminal_gets_colours_and_no_line_that_is_too_long_unless_it_is_wide() {
    let cluster = three();

    let table = run_on(&cluster, "get -n ns a --no-headers", Some(80)).await.out;
    let wide = run_on(&cluster, "get -n ns a --no-headers -o wide", Some(80)).await.out;

    let (red, green) = ("\x1b[31mFalse\x1b[0m", "\x1b[32mFalse\x1b[0m");
    let before = format!("a   resources   \x1b[32mTrue\x1b[0m   {red}   {green}   1   2d4h   ");
    assert_eq!(table, format!("{before}DeploymentUnhealthy: The Depl…\n"));
    assert_eq!(wide, format!("{before}DeploymentUnhealthy: {MESSAGE}\n"));
}

#[tokio::test(start_paused = true)]
async fn what_is_well_can_be_left_out() {
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
    let missing = "error: managedresources.resources.gardener.cloud \"nowhere\" not found\n";
    let all = "all 2 ManagedResources found in namespace ns are applied, healthy and rolled out\n";
    let one = "the one ManagedResource found in namespace ns is applied, healthy and rolled out\n";
    assert_eq!(none.remarks, all);
    assert_eq!((names.result.unwrap(), names.out.as_str(), names.remarks.as_str()), (OK, "", all));
    assert_eq!((name.result.unwrap(), name.remarks), (DIFFERENT, format!("{missing}{one}")));
    assert_eq!((nowhere.result.unwrap(), nowhere.remarks.as_str()), (DIFFERENT, missing));
    assert_eq!(nothing.remarks, "no ManagedResources found in namespace default\n");
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_exist_is_exit_code_1_with_the_text_of_the_server() {
    let cluster = three();

    let ran = run(&cluster, "get -n ns b nowhere a --no-headers").await;
    let watched = run(&cluster, "get -n ns nowhere -w").await;
    let malformed = run(&cluster, "get -n ns a/b").await;

    let text = "error: managedresources.resources.gardener.cloud \"nowhere\" not found\n";
    let names: Vec<_> = ran.out.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!((ran.result.unwrap(), names.as_slice(), ran.remarks.as_str()), (DIFFERENT, ["b", "a"].as_slice(), text));
    assert_eq!((watched.result.unwrap(), watched.out.as_str(), watched.remarks.as_str()), (DIFFERENT, "", text));
    assert_eq!(
        malformed.result.unwrap_err().to_string(),
        "cannot read ManagedResource ns/a/b: invalid resource name \"a/b\""
    );
}

#[tokio::test(start_paused = true)]
async fn programs_get_whole_objects() {
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
async fn a_selector_is_the_servers_to_understand() {
    let cluster = three();

    let one = run(&cluster, "get -A -l name=c -o name").await;
    let nonsense = run(&cluster, "get -A -l a=b=c").await;

    assert_eq!(one.out, "managedresource.resources.gardener.cloud/c\n");
    let error = nonsense.result.unwrap_err().to_string();
    assert!(error.starts_with("cannot read the ManagedResources: unable to parse requirement"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn lists_come_in_pages_and_begin_anew_when_they_grew_too_old() {
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
async fn a_watch_prints_a_row_again_when_it_says_something_else() {
    let cluster = three();
    let sim = &cluster.0;

    let ended = while_watching(&cluster, "get -n ns -w --no-headers", async |out, remarks| {
        let first = out.take();
        sim.edit(MANAGED_RESOURCE, "ns", "a", |object| object["metadata"]["annotations"]["x"] = "y".into());
        sim.edit(MANAGED_RESOURCE, "other", "c", unhealthy);
        settled().await;
        let nothing_new = out.take();
        sim.edit(MANAGED_RESOURCE, "ns", "a", healthy);
        settled().await;
        let recovered = out.take();
        sim.put(well("ns", "new")).unwrap();
        sim.remove(MANAGED_RESOURCE, "ns", "b");
        settled().await;

        assert_eq!(first.lines().count(), 2, "{first}");
        assert_eq!(nothing_new, "");
        assert_eq!(recovered, "a   resources   True   True    False   1   2d4h\n");
        assert_eq!(
            out.take(),
            "new   resources   True   True    False   1   2d4h\n\
             b     resources   True   True    False   1   2d4h   deleted\n"
        );
        assert_eq!(remarks.take(), "");
    });

    assert_eq!(ended.await.unwrap(), OK);
}

#[tokio::test(start_paused = true)]
async fn a_watch_for_the_unhealthy_shows_who_recovers() {
    let cluster = three();
    let sim = &cluster.0;

    let ended = while_watching(&cluster, "get -n ns -w --unhealthy", async |out, _| {
        let first = out.take();
        sim.edit(MANAGED_RESOURCE, "ns", "a", healthy);
        sim.edit(MANAGED_RESOURCE, "ns", "b", |object| object["status"]["resources"] = json!([]));
        settled().await;
        let recovered = out.take();
        sim.remove(MANAGED_RESOURCE, "ns", "a");
        sim.edit(MANAGED_RESOURCE, "ns", "b", unhealthy);
        settled().await;
        let broken = out.take();

        let names = |text: &str| text.lines().map(|line| line[..1].to_owned()).collect::<Vec<_>>();
        assert_eq!(names(&first), ["N", "a"]);
        assert_eq!(recovered, "a      resources   True      True      False         1         2d4h\n");
        assert_eq!(names(&broken), ["b"], "{broken}");
    });

    assert_eq!(ended.await.unwrap(), OK);
}

#[tokio::test(start_paused = true)]
async fn a_lost_watch_is_taken_up_again_and_says_only_what_was_missed() {
    for end in [WatchEnd::Close, WatchEnd::Disconnect, WatchEnd::Expired, WatchEnd::Hang] {
        let cluster = three();
        let sim = &cluster.0;

        let ended = while_watching(&cluster, "get -n ns -w --no-headers", async |out, remarks| {
            out.take();
            sim.break_watches(end);
            sim.edit(MANAGED_RESOURCE, "ns", "b", unhealthy);
            sim.remove(MANAGED_RESOURCE, "ns", "a");
            if end == WatchEnd::Expired {
                sim.compact();
            }
            sleep(Duration::from_secs(300)).await;
            let rows = out.take();

            let mut rows: Vec<_> = rows.lines().map(|row| (&row[..1], row.ends_with("   deleted"))).collect();
            rows.sort_unstable();
            assert_eq!(rows, [("a", true), ("b", false)], "{end:?}");
            let warned = remarks.take().starts_with("warning: the watch broke and is opened again: ");
            assert_eq!(warned, end == WatchEnd::Disconnect, "{end:?}");
        });

        assert_eq!(ended.await.unwrap(), OK, "{end:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_only_a_list_that_was_begun_anew_had_is_not_reported_as_deleted() {
    let cluster = cluster_and_clock();
    let sim = &cluster.0;
    for number in 0..600 {
        sim.put(well("ns", &format!("m{number:03}"))).unwrap();
    }
    let before = sim.revision();
    sim.remove(MANAGED_RESOURCE, "ns", "m000");
    let mut lists = 0;
    sim.set_faults(move |info| {
        lists += 1;
        match lists {
            1 => Fault::ReadAsOf(before),
            2 => {
                assert!(info.query.contains("continue="), "{}", info.query);
                Fault::FailBefore(Seen::status(410, "Expired", "too old"))
            }
            _ => Fault::None,
        }
    });

    let ended = while_watching(&cluster, "get -n ns -w --no-headers", async |out, _| {
        let first = out.take();
        sim.break_watches(WatchEnd::Expired);
        sim.compact();
        settled().await;

        assert_eq!((first.lines().count(), &first[..4]), (599, "m001"));
        assert_eq!(out.take(), "");
    });

    assert_eq!(ended.await.unwrap(), OK);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_always_fails_is_asked_less_and_less() {
    let cluster = three();
    let sim = &cluster.0;
    sim.set_faults(|info| match info.verb.as_str() {
        "watch" => Fault::FailBefore(Seen::unavailable()),
        _ => Fault::None,
    });

    let ended = while_watching(&cluster, "get -n ns -w", async |_, remarks| {
        sleep(Duration::from_secs(540)).await;

        let count = remarks.take().lines().count();
        assert!((10..35).contains(&count), "{count} warnings in 10 minutes");
    });

    assert_eq!(ended.await.unwrap(), OK);
}

/// What it has to tell is not held back for long, but it is not asked as fast as it answers.
#[tokio::test(start_paused = true)]
async fn a_server_that_ends_each_watch_after_an_event_is_not_asked_as_fast_as_it_answers() {
    for (end, expected) in [(WatchEnd::Close, 30..=76), (WatchEnd::Expired, 3..=10)] {
        let cluster = three();
        let sim = &cluster.0;
        sim.set_faults(move |_| Fault::BreakWatch { after_events: 1, end });

        let ended = while_watching(&cluster, "get -n ns -w -o name", async |_, _| {
            sim.clear_requests();
            for number in 0..600 {
                sim.edit(MANAGED_RESOURCE, "ns", "b", |object| object["spec"]["class"] = number.to_string().into());
                sleep(Duration::from_millis(100)).await;
            }

            let watches = sim.requests().iter().filter(|request| request.info.verb == "watch").count();
            assert!(expected.contains(&watches), "{watches} watches in a minute, {end:?}");
        });

        assert_eq!(ended.await.unwrap(), OK);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_it_is_forbidden() {
    let cluster = three();
    let sim = &cluster.0;

    let ended = while_watching(&cluster, "get -n ns -w", async |_, _| {
        sim.set_faults(|info| Fault::FailBefore(Seen::forbidden(info)));
        sim.break_watches(WatchEnd::Close);
        settled().await;
        panic!("it goes on");
    });

    let error = ended.await.unwrap_err().to_string();
    assert!(error.starts_with("cannot read the ManagedResources of namespace ns: managedresources"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_some_passes_over_all_others() {
    let cluster = three();
    let sim = &cluster.0;
    sim.put(well("ns", "d")).unwrap();

    for (line, expected) in [("get -n ns b -w -o name", "/b\n/b\n"), ("get -n ns b d -w -o name", "/b\n/d\n/b\n/d\n")] {
        let ended = while_watching(&cluster, line, async |out, _| {
            for name in ["a", "b", "d"] {
                sim.edit(MANAGED_RESOURCE, "ns", name, |object| {
                    object["spec"]["class"] = line.len().to_string().into()
                });
            }
            settled().await;

            assert_eq!(out.take().replace("managedresource.resources.gardener.cloud", ""), expected, "{line}");
        });

        assert_eq!(ended.await.unwrap(), OK);
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_whole_objects_prints_each_version() {
    let cluster = three();
    let sim = &cluster.0;

    let ended = while_watching(&cluster, "get -n ns b -w -o yaml", async |out, _| {
        sim.edit(MANAGED_RESOURCE, "ns", "b", |object| object["metadata"]["annotations"]["x"] = "y".into());
        settled().await;
        sim.remove(MANAGED_RESOURCE, "ns", "b");
        settled().await;

        let text = out.take();
        assert_eq!(text.split("---\n").filter(|document| document.contains("  name: b\n")).count(), 2, "{text}");
    });

    assert_eq!(ended.await.unwrap(), OK);
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_gone_ends_the_command() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (sim, clock) = three();
    let screen = Screen { out: &mut Closed, remarks: &mut Vec::new(), colours: false, columns: None };

    let ended = get(sim.client(), (clock, Random::seeded(1)), &options("get -A -w"), screen).await;

    assert!(matches!(ended, Err(GetError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe));
}
