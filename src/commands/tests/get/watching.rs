use std::io::{self, Write};

use super::*;

async fn while_watching(
    (sim, clock): &(Sim, Clock),
    line: &str,
    script: impl AsyncFnOnce(&Printed, &Printed),
) -> Result<i32, GetError> {
    let (out, remarks) = (Printed::default(), Printed::default());
    let (mut to_out, mut to_remarks) = (out.clone(), remarks.clone());
    let options = options(line);
    let mut screen = Screen::new(&mut to_out, &mut to_remarks, Look::default());
    let watch = get(sim.client(), (clock.clone(), Random::seeded(1)), &options, &mut screen);
    let script = async {
        long_enough().await;
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

async fn long_enough() {
    sleep(Duration::from_secs(61)).await;
}

#[tokio::test(start_paused = true)]
async fn watch_prints_a_row_again_when_it_changes() {
    let cluster = three();
    let sim = &cluster.0;

    let ended = while_watching(&cluster, "get -n ns -w --no-headers", async |out, remarks| {
        let first = out.take();
        sim.edit(MANAGED_RESOURCE, "ns", "a", |object| object["metadata"]["annotations"]["x"] = "y".into());
        sim.edit(MANAGED_RESOURCE, "other", "c", unhealthy);
        long_enough().await;
        let nothing_new = out.take();
        sim.edit(MANAGED_RESOURCE, "ns", "a", healthy);
        long_enough().await;
        let recovered = out.take();
        sim.put(well("ns", "new")).unwrap();
        sim.remove(MANAGED_RESOURCE, "ns", "b");
        long_enough().await;

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
async fn watch_of_unhealthy_shows_a_recovery() {
    let cluster = three();
    let sim = &cluster.0;

    let ended = while_watching(&cluster, "get -n ns -w --unhealthy", async |out, _| {
        let first = out.take();
        sim.edit(MANAGED_RESOURCE, "ns", "a", healthy);
        sim.edit(MANAGED_RESOURCE, "ns", "b", |object| object["status"]["resources"] = json!([]));
        long_enough().await;
        let recovered = out.take();
        sim.remove(MANAGED_RESOURCE, "ns", "a");
        sim.edit(MANAGED_RESOURCE, "ns", "b", unhealthy);
        long_enough().await;
        let broken = out.take();

        let names = |text: &str| text.lines().map(|line| line[..1].to_owned()).collect::<Vec<_>>();
        assert_eq!(names(&first), ["N", "a"]);
        assert_eq!(recovered, "a      resources   True      True      False         1         2d4h\n");
        assert_eq!(names(&broken), ["b"], "{broken}");
    });

    assert_eq!(ended.await.unwrap(), OK);
}

#[tokio::test(start_paused = true)]
async fn watch_that_is_lost_is_opened_again_and_prints_only_what_was_missed() {
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
async fn watch_reports_no_deletion_of_objects_that_only_an_expired_list_had() {
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
        long_enough().await;

        assert_eq!((first.lines().count(), &first[..4]), (599, "m001"));
        assert_eq!(out.take(), "");
    });

    assert_eq!(ended.await.unwrap(), OK);
}

#[tokio::test(start_paused = true)]
async fn watch_backs_off_from_a_server_that_always_fails() {
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

/// Its events are printed soon, but it is not asked as fast as it answers.
#[tokio::test(start_paused = true)]
async fn watch_backs_off_from_a_server_that_ends_each_watch_after_an_event() {
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
async fn watch_ends_when_it_is_forbidden() {
    let cluster = three();
    let sim = &cluster.0;

    let ended = while_watching(&cluster, "get -n ns -w", async |_, _| {
        sim.set_faults(|info| Fault::FailBefore(Seen::forbidden(info)));
        sim.break_watches(WatchEnd::Close);
        long_enough().await;
        panic!("it goes on");
    });

    let error = ended.await.unwrap_err().to_string();
    assert!(error.starts_with("cannot read the ManagedResources of namespace ns: managedresources"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn watch_of_names_ignores_all_others() {
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
            long_enough().await;

            assert_eq!(out.take().replace("managedresource.resources.gardener.cloud", ""), expected, "{line}");
        });

        assert_eq!(ended.await.unwrap(), OK);
    }
}

#[tokio::test(start_paused = true)]
async fn watch_of_whole_objects_prints_each_version() {
    let cluster = three();
    let sim = &cluster.0;

    let ended = while_watching(&cluster, "get -n ns b -w -o yaml", async |out, _| {
        sim.edit(MANAGED_RESOURCE, "ns", "b", |object| object["metadata"]["annotations"]["x"] = "y".into());
        long_enough().await;
        sim.remove(MANAGED_RESOURCE, "ns", "b");
        long_enough().await;

        let text = out.take();
        assert_eq!(text.split("---\n").filter(|document| document.contains("  name: b\n")).count(), 2, "{text}");
    });

    assert_eq!(ended.await.unwrap(), OK);
}

#[tokio::test(start_paused = true)]
async fn watch_ends_with_a_closed_pipe() {
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
    let (mut out, mut remarks) = (Closed, Vec::new());
    let mut screen = Screen::new(&mut out, &mut remarks, Look::default());

    let ended = get(sim.client(), (clock, Random::seeded(1)), &options("get -A -w"), &mut screen).await;

    assert!(matches!(ended, Err(GetError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe));
}

#[tokio::test(start_paused = true)]
async fn watch_only_prints_changes_alone() {
    for (line, first, expected) in [
        ("get -n ns --watch-only --no-headers", "", "a   resources   True   True   False   1   2d4h\n"),
        ("get -n ns --watch-only -o name", "", "managedresource.resources.gardener.cloud/a\n"),
        ("get -n ns --watch-only -o jsonpath={.metadata.name};", "", "a;"),
        (
            "get -n ns --watch-only -o custom-columns=N:.metadata.name,H:.status.conditions[1].status",
            "N   H\n",
            "a   True\n",
        ),
    ] {
        let cluster = three();
        let sim = &cluster.0;

        let ended = while_watching(&cluster, line, async |out, remarks| {
            assert_eq!(out.take(), first, "{line}");
            sim.edit(MANAGED_RESOURCE, "ns", "a", healthy);
            long_enough().await;
            assert_eq!(out.take(), expected, "{line}");
            assert_eq!(remarks.take(), "", "{line}");
        });

        assert_eq!(ended.await.unwrap(), OK);
    }
}
