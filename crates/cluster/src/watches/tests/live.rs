use kit::{Deadline, Priority};

use super::{super::live::MOMENT, *};
use crate::{ApiError, Context};

fn context() -> Context {
    Context::new(Priority::High, Deadline::after(Duration::from_secs(60)), "test")
}

async fn listed(watch: &Watch<Entry>, namespace: Option<&str>, labels: Option<&str>) -> Result<Vec<String>, ApiError> {
    let mut names = Vec::new();
    watch.list_live(&context(), namespace, labels, |name, _| names.push(name.name.clone())).await.map(|()| names)
}

#[test]
fn live_list_has_all_pages_of_the_selected_objects() {
    scene(
        Start::List,
        |sim| {
            for number in 0..600 {
                let mut object = config_map(&format!("c{number:03}"), "1");
                object["metadata"]["labels"]["even"] = json!((number % 2 == 0).to_string());
                sim.put(object).unwrap();
            }
            sim.put(
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": "z"}}),
            )
            .unwrap();
        },
        |scene| async move {
            scene.sim.clear_requests();

            assert_eq!(listed(&scene.watch, None, None).await.unwrap().len(), 600);
            assert!(scene.sim.counts()["list"] > 1);
            assert_eq!(listed(&scene.watch, None, Some("even=true")).await.unwrap().len(), 300);
            assert_eq!(listed(&scene.watch, Some("elsewhere"), None).await.unwrap(), [""; 0]);
        },
    );
}

#[test]
fn live_read_finds_what_the_cache_lacks_and_proves_absence() {
    scene(
        Start::List,
        |_| {},
        |scene| async move {
            scene.sim.break_watches(WatchEnd::Hang);
            scene.sim.put(config_map("a", "1")).unwrap();
            settle().await;
            assert!(matches!(scene.watch.known(&name("a")), Some(None)), "the cache lags");

            let found = scene.watch.read_live(&context(), &name("a")).await.unwrap();
            assert_eq!(found.map(|entry| entry.value).as_deref(), Some("1"));
            assert!(scene.watch.read_live(&context(), &name("b")).await.unwrap().is_none());

            scene.sim.set_faults(|request| Fault::FailBefore(Seen::forbidden(request)));
            assert!(scene.watch.read_live(&context(), &name("b")).await.is_err(), "a failed read is no absence");
            assert!(listed(&scene.watch, None, None).await.is_err());
        },
    );
}

#[test]
fn live_read_of_an_unreadable_object_is_an_error() {
    bare(|sim, watches| async move {
        sim.put(config_map("a", "bad")).unwrap();
        let unless_bad = |object: &Value| entry(object).filter(|entry| entry.value != "bad");
        let watch = watches.open(WatchOptions::new(config_maps(), unless_bad));
        watches.start();
        watches.listed().await;

        assert!(watch.known(&name("a")).is_none(), "the cache proves nothing");
        let error = watch.read_live(&context(), &name("a")).await.unwrap_err();
        assert!(error.to_string().contains("default/a is unreadable"), "{error}");
        assert!(listed(&watch, None, None).await.is_err());
    });
}

#[test]
fn live_reads_of_a_metadata_watch_transfer_metadata_only() {
    bare(|sim, watches| async move {
        sim.put(config_map("a", "1")).unwrap();
        let watch = watches.open(WatchOptions::new(config_maps(), entry).metadata());

        let found = watch.read_live(&context(), &name("a")).await.unwrap();
        assert_eq!(found.map(|entry| entry.value).as_deref(), Some(""));
        assert_eq!(listed(&watch, None, None).await.unwrap(), ["a"]);
    });
}

#[test]
fn end_of_an_object_is_seen_for_a_moment_unless_a_selector_may_hide_it() {
    bare(|sim, watches| async move {
        for object in ["a", "b"] {
            sim.put(config_map(object, "1")).unwrap();
        }
        let all = watches.open(WatchOptions::new(config_maps(), entry));
        let selected = watches.open(WatchOptions::new(config_maps(), entry).labelled("ours=true"));
        watches.start();
        settle().await;
        assert!(!all.saw_end_of(&name("a")));

        sim.remove("configmaps", "default", "a");
        settle().await;
        assert!(all.saw_end_of(&name("a")));
        assert!(!all.saw_end_of(&name("b")) && !all.saw_end_of(&name("never")));
        assert!(!selected.saw_end_of(&name("a")), "it may only have left the selection");

        tokio::time::sleep(MOMENT + Duration::from_secs(1)).await;
        assert!(!all.saw_end_of(&name("a")), "it may have come back");

        sim.remove("configmaps", "default", "b");
        sim.put(config_map("b", "2")).unwrap();
        settle().await;
        assert!(!all.saw_end_of(&name("b")), "it came back");
    });
}
