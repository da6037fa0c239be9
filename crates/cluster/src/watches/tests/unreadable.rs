use std::cell::Cell;

use super::*;
use crate::testing::{self, Server, pieces};

fn reads_but_bad(object: &Value) -> Option<Entry> {
    entry(object).filter(|entry| entry.value != "bad")
}

#[test]
fn unreadable_object_is_left_out_and_is_no_evidence() {
    bare(|sim, watches| async move {
        for (object, value) in [("a", "1"), ("b", "bad"), ("c", "1")] {
            sim.put(config_map(object, value)).unwrap();
        }
        let watch = watches.open(WatchOptions::new(config_maps(), reads_but_bad));
        let gone = Rc::new(Cell::new(0));
        let count = gone.clone();
        watch.subscribe(move |change| count.set(count.get() + usize::from(change.new.is_none())));
        watches.start();
        settle().await;
        let known = |object: &str| watch.store().with(&name(object), |it| it.value.clone());
        assert_eq!((watch.store().len(), watch.store().state()), (2, StoreState::Synced));
        assert!(watch.store().is_unreadable(&name("b")) && !watch.is_fresh_for(&name("b")));
        assert!(watch.is_fresh_for(&name("a")) && watch.is_fresh_for(&name("d")));
        assert!(!watch.is_fresh(), "not all that is there is known");

        sim.edit("configmaps", "default", "a", |live| live["data"]["k"] = json!("bad"));
        settle().await;
        assert_eq!(known("a").as_deref(), Some("1"), "as it was known last");
        assert!(!watch.is_fresh_for(&name("a")));
        sim.compact();
        sim.break_watches(WatchEnd::Expired);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!((gone.get(), known("a").as_deref()), (0, Some("1")), "it is not gone");

        sim.edit("configmaps", "default", "a", |live| live["data"]["k"] = json!("2"));
        sim.remove("configmaps", "default", "b");
        settle().await;
        assert_eq!(known("a").as_deref(), Some("2"));
        assert!(watch.is_fresh());
    });
}

/// A server whose watches from version 5 bring this, and whose second list has version 6.
fn server(broken: &'static str) -> Server {
    let lists = Cell::new(0);
    Server::new(move |seen| {
        if !seen.line.contains("watch=1") {
            lists.set(lists.get() + 1);
            let version = if lists.get() == 1 { "5" } else { "6" };
            return testing::json(
                200,
                &json!({"kind": "ConfigMapList", "metadata": {"resourceVersion": version}, "items": []}),
            );
        }
        if seen.line.contains("resourceVersion=5") {
            pieces(vec![Ok(broken.to_owned())])
        } else {
            testing::late(3600, pieces(vec![]))
        }
    })
}

/// Opening a watch whose next event cannot be read is no contact with the server.
#[test]
fn unreadable_event_is_skipped_by_a_list() {
    for broken in [
        "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":}}\n",
        "{\"type\":\"MODIFIED\",\"obj",
        "{\"type\":\"HUH\",\"object\":{}}\n",
    ] {
        universe(1, |universe: Universe| async move {
            let server = server(broken);
            let watches = Watches::new(&server.cluster(), &universe.env);
            let watch = watches.open(WatchOptions::new(config_maps(), entry));
            let fresh = Rc::new(RefCell::new(Vec::new()));
            let (seen, watched) = (fresh.clone(), watch.clone());
            let _listening = watch.signal().listen(move || seen.borrow_mut().push(watched.is_fresh()));
            watches.start();
            tokio::time::sleep(Duration::from_secs(20)).await;
            watches.stop();

            let lines = server.lines();
            let lists = lines.iter().filter(|line| !line.contains("watch=1")).count();
            let at_broken = lines.iter().filter(|line| line.contains("resourceVersion=5")).count();
            assert_eq!((lists, at_broken), (2, 2), "{broken}: {lines:#?}");
            assert_eq!(*fresh.borrow(), [true, false, true, false], "{broken}: not fresh until it is listed");
        });
    }
}
