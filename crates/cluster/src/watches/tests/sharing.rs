use super::*;

fn asked(sim: &Sim) -> Vec<String> {
    let requests = sim.requests();
    let infos = requests.iter().map(|request| &request.info).filter(|info| info.resource == "configmaps");
    infos.map(|info| format!("{} {}", info.verb, info.namespace)).collect()
}

fn log_of(watch: &Watch<Entry>) -> Log {
    let log = Log::default();
    let reported = log.clone();
    watch.subscribe(move |change| {
        let value = |entry: Option<&Entry>| entry.map_or("-".to_owned(), |entry| entry.value.clone());
        reported.borrow_mut().push(format!("{:?} {}→{}", change.how, value(change.old), value(change.new)));
    });
    log
}

fn options() -> WatchOptions<Entry> {
    WatchOptions::new(config_maps(), entry).labelled("ours=true")
}

#[test]
fn informer_is_shared_by_readers_with_equal_options() {
    bare(|sim, watches| async move {
        sim.put(config_map("a", "1")).unwrap();
        let (one, two) = (watches.open(options()), watches.open(options()));
        assert!(asked(&sim).is_empty(), "before the start nothing is asked");
        watches.start();
        settle().await;
        let logs = [log_of(&one), log_of(&two)];
        sim.edit("configmaps", "default", "a", |live| live["data"]["k"] = json!("2"));
        settle().await;

        for (watch, log) in [&one, &two].into_iter().zip(&logs) {
            assert_eq!(*log.borrow(), ["First -→1", "Event 1→2"]);
            assert!(watch.is_fresh() && watch.store().is_fresh());
        }
        assert_eq!(asked(&sim), ["list default", "watch default"]);
    });
}

#[test]
fn late_reader_gets_a_list_and_the_others_only_differences() {
    bare(|sim, watches| async move {
        sim.put(config_map("a", "1")).unwrap();
        let early = watches.open(options());
        watches.start();
        settle().await;
        let of_early = log_of(&early);

        let late = watches.open(options());
        let of_late = log_of(&late);
        assert!(!late.is_fresh() && early.is_fresh());
        assert_eq!(late.store().state(), StoreState::Starting);
        settle().await;

        assert_eq!(
            (of_early.borrow().as_slice(), of_late.borrow().as_slice()),
            (&["First -→1".to_owned()][..], &["First -→1".to_owned()][..])
        );
        assert!(late.is_fresh());
        assert_eq!(asked(&sim), ["list default", "watch default", "list default", "watch default"]);
        assert!(watches.synced().check().is_ok());
        sim.put(config_map("b", "1")).unwrap();
        settle().await;
        assert_eq!(late.store().len(), 2);
    });
}

#[test]
fn late_reader_of_changes_sends_no_request() {
    bare(|sim, watches| async move {
        sim.put(config_map("a", "1")).unwrap();
        let early = watches.open(options());
        watches.start();
        settle().await;

        let late = watches.open(options().from_now());
        assert!(late.is_fresh(), "it gets changes from now on");
        sim.put(config_map("b", "1")).unwrap();
        settle().await;

        assert_eq!((early.store().len(), late.store().len()), (2, 1));
        assert_eq!(asked(&sim), ["list default", "watch default"]);
    });
}

#[test]
fn late_reader_of_changes_during_a_list_gets_changes_after_it() {
    for early in [options(), options().from_now()] {
        bare(|sim, watches| async move {
            sim.put(config_map("a", "1")).unwrap();
            sim.set_faults(|request| match request.verb.as_str() {
                "list" => Fault::DelayAnswer(Duration::from_secs(5)),
                _ => Fault::None,
            });
            let early = watches.open(early);
            watches.start();
            settle().await;
            assert_eq!(asked(&sim), ["list default"]);

            let late = watches.open(options().from_now());
            settle().await;
            assert!(!late.is_fresh(), "the watch is not open yet");
            tokio::time::sleep(Duration::from_secs(10)).await;
            sim.put(config_map("b", "1")).unwrap();
            settle().await;

            assert!(early.is_fresh() && late.is_fresh());
            assert_eq!(late.store().names(), [name("b")]);
            assert_eq!(asked(&sim), ["list default", "watch default"]);
        });
    }
}

#[test]
fn informer_that_began_from_now_lists_for_a_reader_of_all() {
    bare(|sim, watches| async move {
        sim.put(config_map("a", "1")).unwrap();
        let now = watches.open(options().from_now());
        let of_now = log_of(&now);
        watches.start();
        settle().await;
        let all = watches.open(options());
        settle().await;

        assert_eq!((now.store().len(), all.store().len()), (1, 1));
        assert_eq!(*of_now.borrow(), ["Relist -→1"], "a list reports to readers that keep the object");
        assert!(now.is_fresh() && all.is_fresh());
    });
}

#[test]
fn informer_of_metadata_switches_to_whole_objects_for_a_reader() {
    bare(|sim, watches| async move {
        sim.put(config_map("a", "1")).unwrap();
        let metadata = watches.open(options().metadata());
        watches.start();
        settle().await;
        let value = |watch: &Watch<Entry>, object: &str| watch.store().with(&name(object), |it| it.value.clone());
        assert_eq!(value(&metadata, "a").as_deref(), Some(""), "metadata has no data");
        let of_metadata = log_of(&metadata);

        let whole = watches.open(options());
        settle().await;
        sim.put(config_map("b", "1")).unwrap();
        settle().await;

        assert_eq!((value(&whole, "a").as_deref(), value(&whole, "b").as_deref()), (Some("1"), Some("1")));
        assert_eq!(*of_metadata.borrow(), ["First -→", "Event -→1"]);
        assert!(!metadata.reports_bodies() && whole.reports_bodies());
        assert_eq!(sim.watch_count(), 1);
    });
}

#[test]
fn informer_ends_with_its_last_reader() {
    bare(|sim, watches| async move {
        let (one, two) = (watches.open(options()), watches.open(options()));
        watches.start();
        settle().await;

        one.stop();
        settle().await;
        assert_eq!((sim.watch_count(), one.store().state()), (1, StoreState::Off));
        sim.put(config_map("a", "1")).unwrap();
        settle().await;
        assert_eq!((one.store().len(), two.store().len()), (0, 1));
        two.stop();
        settle().await;
        assert_eq!(sim.watch_count(), 0);

        let again = watches.open(options());
        settle().await;
        assert_eq!(again.store().len(), 1);
    });
}

#[test]
fn event_handler_that_panics_is_called_again_and_does_not_affect_others() {
    bare(|sim, watches| async move {
        sim.put(config_map("a", "1")).unwrap();
        let watch = watches.open(options());
        watches.start();
        settle().await;
        let attempts = Rc::new(RefCell::new(Vec::new()));
        let reported = attempts.clone();
        watch.subscribe(move |change| {
            let value = change.new.map_or("-", |entry| &entry.value);
            reported.borrow_mut().push(format!("{}→{value}", change.old.map_or("-", |entry| &entry.value)));
            let attempts = reported.borrow().len();
            assert!(value != "once" || attempts > 2, "a defect that passes");
            assert!(value != "always", "a defect that does not");
        });
        let behind = log_of(&watch);
        let set = |value: &'static str| {
            sim.edit("configmaps", "default", "a", |live| live["data"]["k"] = json!(value));
        };

        set("once");
        settle().await;
        assert_eq!(*attempts.borrow(), ["-→1", "1→once", "1→once"], "it is called again at once");
        attempts.borrow_mut().clear();
        set("always");
        settle().await;
        assert_eq!(*attempts.borrow(), ["once→always"; 2], "and then no more");
        attempts.borrow_mut().clear();
        set("2");
        settle().await;
        assert_eq!(*attempts.borrow(), ["once→2"], "the next change starts from the state it knows");

        assert_eq!(*behind.borrow(), ["First -→1", "Event 1→once", "Event once→always", "Event always→2"]);
        assert!(watch.is_fresh());
    });
}

#[test]
fn event_handler_that_panicked_gets_the_object_after_the_next_list() {
    bare(|sim, watches| async move {
        let watch = watches.open(options());
        watches.start();
        settle().await;
        let (reported, broken) = (Rc::new(RefCell::new(Vec::new())), Rc::new(RefCell::new(true)));
        let (log, is_broken) = (reported.clone(), broken.clone());
        watch.subscribe(move |change| {
            assert!(!*is_broken.borrow(), "a defect");
            log.borrow_mut().push(change.name.name.clone());
        });
        sim.put(config_map("a", "1")).unwrap();
        settle().await;
        broken.replace(false);
        sim.compact();
        sim.break_watches(WatchEnd::Expired);
        settle().await;
        tokio::time::sleep(Duration::from_secs(5)).await;

        assert_eq!(*reported.borrow(), ["a"]);
    });
}
