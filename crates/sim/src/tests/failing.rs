use super::*;

/// Fault 8: the outcome of a failed request is not always "not done".
#[test]
fn a_failed_request_may_have_been_carried_out() {
    run(async {
        let bench = Bench::new();
        bench.sim.set_faults(|info| match info.number {
            1 => Fault::FailBefore(Seen::timeout()),
            2 => Fault::FailAfterCommit(Seen::Disconnect),
            _ => Fault::None,
        });

        let before = bench.post(MAPS, config_map("a")).await;
        let is_stored = bench.sim.object("configmaps", "default", "a").is_some();
        let after = bench.send("POST", MAPS, &[], config_map("b").to_string().into_bytes()).await;

        assert_eq!(before.code, 504);
        assert!(!is_stored);
        assert!(after.is_err());
        assert!(bench.sim.object("configmaps", "default", "b").is_some());
        let codes: Vec<_> = bench.sim.requests().iter().map(|recorded| recorded.code).collect();
        assert_eq!(codes, [Some(504), Some(0)]);
        assert_eq!(bench.sim.counts()["create"], 2);
    });
}

/// Fault 1: a crashed program receives nothing more, and its next run starts with new clients.
#[test]
fn a_crash_silences_all_clients_of_the_process() {
    run(async {
        let sim = Sim::new(options());
        let process = Process::new();
        let client = |process: &Process| {
            let groups = Vec::new();
            let options =
                ClientOptions { user: "u".into(), groups, user_agent: "a/1".into(), process: process.clone() };
            Bench { sim: sim.clone(), client: sim.client_of(options) }
        };
        let (first, second) = (client(&process), client(&process));
        let mut watch = second.watch(&format!("{MAPS}?watch=1")).await;
        sim.set_faults(|info| if info.verb == "create" { Fault::CrashClientAfterCommit } else { Fault::None });

        let silent = Duration::from_secs(60);
        let write = tokio::time::timeout(silent, first.post(MAPS, config_map("a"))).await;
        let read = tokio::time::timeout(silent, second.get(MAPS)).await;

        process.crashed().await;
        assert!(write.is_err() && read.is_err());
        assert!(watch.next().await.is_none());
        assert!(client(&Process::new()).get(&format!("{MAPS}/a")).await.code == 200);
    });
}

/// Fault 3: an API server that lags behind.
#[test]
fn reads_can_be_stale() {
    run(async {
        let bench = Bench::new();
        bench.config_map("a");
        let then = bench.sim.revision();
        bench.sim.remove("configmaps", "default", "a");
        bench.sim.set_faults(move |info| if info.is_read() { Fault::ReadAsOf(then) } else { Fault::None });

        let stale = bench.get(&format!("{MAPS}/a")).await;
        let list = bench.get(MAPS).await.json();
        bench.sim.clear_faults();

        assert_eq!(stale.code, 200);
        assert_eq!(list["items"].as_array().unwrap().len(), 1);
        assert_eq!(list["metadata"]["resourceVersion"], then.to_string());
        assert_eq!(bench.get(&format!("{MAPS}/a")).await.code, 404);
    });
}

/// Fault 4: lost, doubled and overtaking events.
#[test]
fn events_can_be_lost_doubled_and_overtaken() {
    run(async {
        let bench = Bench::new();
        bench.sim.set_event_faults(|info| match info.name.as_str() {
            "lost" => EventFault::Drop,
            "doubled" => EventFault::Duplicate,
            "late" => EventFault::Swap,
            _ => EventFault::Deliver,
        });
        let mut watch = bench.watch(&format!("{MAPS}?watch=1&resourceVersion={}", bench.sim.revision())).await;

        for name in ["lost", "doubled", "late", "next"] {
            bench.config_map(name);
        }

        for expected in ["ADDED doubled", "ADDED doubled", "ADDED next", "ADDED late", "nothing"] {
            assert_eq!(watch.brief().await, expected);
        }
    });
}

/// Faults 5 and 6: the ways in which a watch ends, or stays silent.
#[test]
fn watches_break_in_each_way() {
    run(async {
        let bench = Bench::new();
        bench.config_map("a");
        let path = format!("{MAPS}?watch=1");
        bench.sim.set_faults(|_| Fault::BreakWatch { after_events: 1, end: WatchEnd::Disconnect });

        let mut planned = bench.watch(&path).await;
        bench.sim.clear_faults();
        let mut silent = bench.watch(&path).await;
        silent.next().await;
        bench.sim.break_watches(WatchEnd::Hang);
        bench.config_map("b");
        let mut expired = bench.watch(&format!("{path}&resourceVersion={}", bench.sim.revision())).await;
        bench.sim.break_watches(WatchEnd::Expired);

        assert_eq!(planned.brief().await, "ADDED a");
        assert!(planned.lines.next().await.unwrap().is_err());
        assert!(silent.next().await.is_none());
        assert_eq!(expired.next().await.unwrap()["object"]["code"], 410);
    });
}

#[test]
fn ten_thousand_objects_are_no_problem() {
    run(async {
        let bench = Bench::new();
        for number in 0..10_000 {
            bench.config_map(&format!("m{number}"));
        }
        let mut token = String::new();
        let mut listed = 0;
        loop {
            let page = bench.get(&format!("{MAPS}?limit=500&continue={token}")).await.json();
            listed += page["items"].as_array().unwrap().len();
            bench.merge(&format!("{MAPS}/m{listed}"), json!({"data": {"a": listed.to_string()}})).await;
            match page["metadata"]["continue"].as_str() {
                Some(next) => token = next.into(),
                None => break,
            }
        }

        assert_eq!(listed, 10_000);
    });
}

/// facts §7.1: what a starting server does not serve yet, and what it answers
#[test]
fn a_server_that_starts_denies_what_definitions_define() {
    run(async {
        let bench = Bench::new();
        bench.sim.put(thing_definition()).unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let paths =
            ["/apis/g.io", "/apis/g.io/v1", "/apis/g.io/v1/things", "/apis/none.io/v1", "/apis/apps/v1", "/readyz"];
        let codes = async || {
            let mut codes = Vec::new();
            for path in paths {
                codes.push(bench.get(path).await.code);
            }
            let groups = bench.get("/apis").await.text;
            (codes, groups.contains("g.io\""))
        };
        let (part, parts) = (Duration::from_secs(10), Duration::from_secs(1));
        let after = (vec![200, 200, 200, 404, 200, 200], true);
        assert_eq!(codes().await, after);

        bench.sim.restart(Start { installing: part, discovering: part, unready: part });
        tokio::time::sleep(parts).await;
        assert_eq!(codes().await, (vec![503, 503, 503, 503, 200, 500], false));
        tokio::time::sleep(part).await;
        assert_eq!(codes().await, (vec![200, 404, 200, 404, 200, 500], false));
        tokio::time::sleep(part).await;
        assert_eq!(codes().await, (vec![200, 200, 200, 404, 200, 500], true));
        tokio::time::sleep(part).await;
        assert_eq!(codes().await, after);
    });
}

fn thing_definition() -> Value {
    let schema = json!({"type": "object"});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.g.io"},
        "spec": {
            "group": "g.io", "scope": "Namespaced", "versions": [version],
            "names": {"kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing"},
        },
    })
}
