use super::*;
use crate::Index;

fn values(watch: &Watch<Entry>) -> Index<String> {
    watch.index(|_, entry| entry.value.split(',').map(str::to_owned).collect())
}

fn names(index: &Index<String>, key: &str) -> Vec<String> {
    index.get(&key.to_owned()).into_iter().map(|name| name.name).collect()
}

#[test]
fn index_follows_the_store_and_is_never_behind_an_event_handler() {
    let prepare = |sim: &Sim| {
        sim.put(config_map("a", "x,y")).unwrap();
    };
    scene(Start::List, prepare, |scene| async move {
        let index = values(&scene.watch);
        assert_eq!((names(&index, "x"), names(&index, "y")), (vec!["a".to_owned()], vec!["a".to_owned()]));
        let (seen, looked) = (Rc::new(RefCell::new(Vec::new())), index.clone());
        let reported = seen.clone();
        scene.watch.subscribe(move |_| reported.borrow_mut().push(names(&looked, "y").join(" ")));
        seen.borrow_mut().clear();

        scene.sim.put(config_map("b", "y")).unwrap();
        scene.sim.edit("configmaps", "default", "a", |live| live["data"]["k"] = json!("x"));
        scene.sim.remove("configmaps", "default", "b");
        settle().await;

        assert_eq!(*seen.borrow(), ["a b", "b", ""]);
        assert_eq!(index.keys(), ["x"]);
        assert!(index.contains(&"x".to_owned()) && !index.contains(&"y".to_owned()));
    });
}

#[test]
fn index_follows_own_writes_and_forgotten_objects() {
    scene(
        Start::List,
        |_| {},
        |scene| async move {
            let index = values(&scene.watch);
            let created = scene.sim.put(config_map("a", "x")).unwrap();
            scene.watch.wrote(&created, "writer", Instant::now());
            assert_eq!(names(&index, "x"), ["a"]);

            scene.watch.deleted(&name("a"), version_of(&created), "writer");

            assert!(index.keys().is_empty());
        },
    );
}

#[test]
fn index_leaves_out_an_object_whose_keys_panic() {
    scene(
        Start::List,
        |_| {},
        |scene| async move {
            let index = scene.watch.index(|_, entry| {
                assert_ne!(entry.value, "bad");
                vec![entry.value.clone()]
            });
            scene.sim.put(config_map("a", "bad")).unwrap();
            scene.sim.put(config_map("b", "x")).unwrap();
            settle().await;

            assert_eq!((scene.value("a"), scene.value("b").as_deref()), (None, Some("x")));
            assert!(scene.watch.store().is_unreadable(&name("a")));
            assert_eq!(index.keys(), ["x"]);
        },
    );
}
