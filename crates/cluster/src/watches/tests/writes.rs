use std::sync::{
    Arc as Shared,
    atomic::{AtomicUsize, Ordering},
};

use kit::Deadline;
use sim::EventFault;

use super::*;
use crate::{ApiError, Lock, Propagation, Wrote, testing::ctx};

const FINALIZER: &str = "a.b/ours";

/// An object `a` with value 1 in a watch that has seen it. The simulator's record of requests is empty.
pub(super) fn written<F: Future>(test: impl FnOnce(Rc<Scene>) -> F + 'static) {
    let prepare = |sim: &Sim| {
        sim.put(config_map("a", "1")).unwrap();
    };
    scene(Start::List, prepare, |scene| async move {
        scene.reported();
        scene.sim.clear_requests();
        test(scene).await;
    });
}

fn value_of(object: &Value) -> &str {
    object["data"]["k"].as_str().unwrap_or_default()
}

/// Wants a value in a whole object.
fn wants(value: &'static str) -> impl Fn(&Value) -> Option<Value> {
    move |object| (value_of(object) != value).then(|| json!({"data": {"k": value}}))
}

impl Scene {
    pub(super) fn verbs(&self) -> Vec<String> {
        let verbs = self.sim.requests().into_iter().map(|request| request.info.verb);
        verbs.filter(|verb| verb != "watch" && verb != "list").collect()
    }

    pub(super) fn stored(&self) -> Option<Value> {
        self.sim.object("configmaps", "default", "a")
    }

    pub(super) fn edit(&self, change: impl FnOnce(&mut Value)) {
        assert!(self.sim.edit("configmaps", "default", "a", change));
    }

    /// Another client changes the server right before each of the first `times` requests of that verb.
    fn before_each(&self, verb: &'static str, times: usize, change: impl Fn(&Sim, usize) + Send + 'static) {
        let (sim, mut done) = (self.sim.clone(), 0);
        self.sim.set_faults(move |request| {
            if request.verb == verb && done < times {
                done += 1;
                change(&sim, done);
            }
            Fault::None
        });
    }

    /// Another client writes a field that the handlers do not look at.
    fn foreign_before_each(&self, verb: &'static str, times: usize) {
        self.before_each(verb, times, |sim, round| {
            sim.edit("configmaps", "default", "a", |live| live["data"]["other"] = round.to_string().into());
        });
    }
}

#[test]
fn write_enters_its_answer_as_an_own_change_and_its_event_wakes_nobody() {
    written(|scene| async move {
        let wrote = scene.watch.patch(&ctx(), &name("a"), Lock::Version, wants("2")).await.unwrap();

        assert!(matches!(&wrote, Wrote::Updated(object) if value_of(object) == "2"), "{wrote:?}");
        assert_eq!(scene.reported(), ["own a 1→2"]);
        settle().await;
        assert!(scene.reported().is_empty());
        assert_eq!(scene.verbs(), ["get", "patch"]);
    });
}

#[test]
fn write_sends_nothing_when_nothing_differs() {
    written(|scene| async move {
        let (watch, a) = (&scene.watch, name("a"));
        let live = scene.stored().unwrap();

        let none = watch.patch(&ctx(), &a, Lock::Version, |_| None).await;
        let same = watch.patch(&ctx(), &live, Lock::None, |_| Some(json!({"data": {"k": "1", "gone": null}}))).await;
        let cached =
            watch.patch_cached(&ctx(), &a, Lock::Version, |entry| (entry.value != "1").then(|| json!({}))).await;
        let ensured = watch.ensure(&ctx(), &a, Lock::Version, |object| object["data"]["k"] = "1".into()).await;
        let kept = watch.delete_if(&ctx(), &live, None, |_| false).await;
        let finalizer = watch.set_finalizer(&ctx(), &live, FINALIZER, false).await;

        for wrote in [none, same, ensured, kept, finalizer] {
            assert_eq!(wrote, Ok(Wrote::Unchanged(live.clone())));
        }
        assert!(matches!(cached, Ok(Wrote::Unchanged(entry)) if entry.value == "1"));
        assert_eq!(scene.verbs(), ["get"; 2]);
        assert!(scene.reported().is_empty());
    });
}

/// spec 80 §16 S-6
#[test]
fn write_conflict_reads_live_and_decides_again() {
    written(|scene| async move {
        scene.foreign_before_each("patch", 1);
        let seen = RefCell::new(Vec::new());
        let decide = |object: &Value| {
            seen.borrow_mut().push(object["data"].clone());
            wants("2")(object)
        };

        let wrote = scene.watch.patch(&ctx(), &name("a"), Lock::Version, decide).await.unwrap();

        assert_eq!(wrote.into_object().unwrap()["data"], json!({"k": "2", "other": "1"}));
        let answer = json!({"k": "2", "other": "1"});
        assert_eq!(seen.into_inner(), [json!({"k": "1"}), json!({"k": "1", "other": "1"}), answer]);
        assert_eq!(scene.verbs(), ["get", "patch", "get", "patch"]);
        settle().await;
        assert_eq!(scene.reported(), ["event a 1→1", "own a 1→2"], "the foreign change is not swallowed");
    });
}

/// spec 80 §16 S-6
#[test]
fn write_returns_the_fifth_conflict_in_a_row() {
    written(|scene| async move {
        scene.foreign_before_each("patch", usize::MAX);

        let error = scene.watch.patch(&ctx(), &name("a"), Lock::Version, wants("2")).await.unwrap_err();

        assert!(error.is_conflict());
        assert_eq!(scene.verbs(), ["get", "patch"].repeat(5));
        scene.sim.clear_requests();
        let change = |object: &mut Value| object["data"]["k"] = "2".into();
        let error = scene.watch.ensure(&ctx(), &name("a"), Lock::Version, change).await.unwrap_err();
        assert!(error.is_conflict());
        assert_eq!(scene.verbs(), ["get", "patch"].repeat(5));
        assert_eq!(scene.value("a").as_deref(), Some("1"));
    });
}

#[test]
fn write_without_a_lock_reports_a_foreign_change_between_read_and_patch() {
    written(|scene| async move {
        scene.foreign_before_each("patch", 1);

        let wrote = scene.watch.patch(&ctx(), &name("a"), Lock::None, wants("2")).await.unwrap();

        assert_eq!(wrote.into_object().unwrap()["data"], json!({"k": "2", "other": "1"}));
        settle().await;
        let reported = scene.reported();
        assert_eq!(reported.last().map(String::as_str), Some("event a 1→2"), "{reported:?}");
        assert_eq!(scene.verbs(), ["get", "patch"]);
    });
}

#[test]
fn write_on_an_object_that_the_store_does_not_know_yet_reports_its_foreign_part() {
    written(|scene| async move {
        scene.sim.set_event_faults(|_| EventFault::Drop);
        scene.edit(|live| live["data"]["other"] = "1".into());
        let live = scene.stored().unwrap();

        scene.watch.patch(&ctx(), &live, Lock::Version, wants("2")).await.unwrap();

        settle().await;
        assert_eq!(scene.reported(), ["event a 1→2"]);
        assert_eq!(scene.verbs(), ["patch"]);
    });
}

#[test]
fn write_that_the_server_alters_is_reported_once_and_then_left_to_the_back_off() {
    written(|scene| async move {
        let (sim, count) = (&scene.sim, Shared::new(AtomicUsize::new(0)));
        sim.set_mutation(move |_, object| {
            object["data"]["k"] = format!("x{}", count.fetch_add(1, Ordering::Relaxed)).into();
        });
        for expected in ["event a 1→x0", "own a x0→x1", "own a x1→x2"] {
            let wrote = scene.watch.patch(&ctx(), &name("a"), Lock::Version, wants("2")).await.unwrap();

            assert!(wrote.is_altered(), "{wrote:?}");
            settle().await;
            assert_eq!(scene.reported(), [expected]);
        }

        sim.set_mutation(|_, _| {});
        let wrote = scene.watch.patch(&ctx(), &name("a"), Lock::Version, wants("2")).await.unwrap();

        assert!(matches!(wrote, Wrote::Updated(_)), "{wrote:?}");
        assert_eq!(scene.reported(), ["own a x2→2"]);
    });
}

/// spec 80 §16 S-1
#[test]
fn write_to_an_object_that_is_gone_says_so_and_the_store_forgets_it() {
    written(|scene| async move {
        let (live, watch) = (scene.stored().unwrap(), &scene.watch);
        scene.before_each("patch", 1, |sim, _| drop(sim.remove("configmaps", "default", "a")));

        assert_eq!(watch.patch(&ctx(), &live, Lock::Version, wants("2")).await, Ok(Wrote::Gone));
        assert_eq!(scene.value("a"), None);
        assert_eq!(scene.reported(), ["event a 1→-"]);
        assert_eq!(watch.patch(&ctx(), &name("a"), Lock::None, wants("2")).await, Ok(Wrote::Gone));
        assert_eq!(watch.set_finalizer(&ctx(), &live, FINALIZER, true).await, Ok(Wrote::Gone));
        assert_eq!(watch.delete(&ctx(), &live, None).await, Ok(Wrote::Gone));
        settle().await;

        assert!(scene.reported().is_empty());
        assert_eq!(scene.verbs(), ["patch", "get", "patch", "delete"]);
    });
}

#[test]
fn write_leaves_a_recreated_object_alone() {
    written(|scene| async move {
        let (live, watch) = (scene.stored().unwrap(), &scene.watch);
        scene.sim.remove("configmaps", "default", "a");
        scene.sim.put(config_map("a", "1")).unwrap();
        let other = scene.stored();

        assert_eq!(watch.patch(&ctx(), &live, Lock::Version, wants("2")).await, Ok(Wrote::Gone));
        assert_eq!(watch.patch(&ctx(), &live, Lock::Uid, wants("2")).await, Ok(Wrote::Gone));
        assert_eq!(watch.set_finalizer(&ctx(), &live, FINALIZER, true).await, Ok(Wrote::Gone));
        assert_eq!(watch.delete(&ctx(), &live, None).await, Ok(Wrote::Gone));
        assert_eq!(watch.delete_if(&ctx(), &live, None, |_| true).await, Ok(Wrote::Gone));
        settle().await;

        assert_eq!(scene.stored(), other);
        assert_eq!(watch.store().get(&name("a")).unwrap().uid(), object::uid(&other.unwrap()));
        assert!(scene.reported().iter().all(|line| line.starts_with("event")));
    });
}

#[test]
fn write_on_the_cached_object_needs_no_read_and_decides_again_on_a_live_one() {
    written(|scene| async move {
        let decide = |entry: &Entry| (entry.value != "2").then(|| json!({"data": {"k": "2"}}));

        let wrote = scene.watch.patch_cached(&ctx(), &name("a"), Lock::Version, decide).await.unwrap();

        assert!(matches!(wrote, Wrote::Updated(entry) if entry.value == "2"));
        assert_eq!((scene.verbs(), scene.reported()), (vec!["patch".to_owned()], vec!["own a 1→2".to_owned()]));
        scene.sim.clear_requests();
        scene.before_each("patch", 1, |sim, _| {
            sim.edit("configmaps", "default", "a", |live| live["data"]["k"] = "3".into());
        });

        let decide = |entry: &Entry| (entry.value == "2").then(|| json!({"data": {"k": "4"}}));
        let wrote = scene.watch.patch_cached(&ctx(), &name("a"), Lock::Version, decide).await.unwrap();

        assert!(matches!(wrote, Wrote::Unchanged(entry) if entry.value == "3"));
        assert_eq!(scene.verbs(), ["patch", "get"]);
    });
}

/// spec 80 §16 S-4, S-5
#[test]
fn finalizer_comes_last_and_goes_without_a_change_of_the_others() {
    written(|scene| async move {
        let names = |wrote: Wrote| wrote.into_object().unwrap()["metadata"]["finalizers"].clone();
        let set = async |finalizer, held| {
            scene.watch.set_finalizer(&ctx(), &name("a"), finalizer, held).await.map(names).unwrap()
        };

        assert_eq!(set("a.b/c", true).await, json!(["a.b/c"]));
        assert_eq!(set(FINALIZER, true).await, json!(["a.b/c", FINALIZER]));
        assert_eq!(set("a.b/c", false).await, json!([FINALIZER]));
        assert_eq!(set(FINALIZER, false).await, Value::Null);
        assert_eq!(scene.verbs(), ["get", "patch"].repeat(4));
        assert_eq!(scene.reported(), ["own a 1→1"; 4]);
    });
}

/// spec 80 §16 S-6
#[test]
fn finalizer_of_another_writer_survives_a_conflict() {
    written(|scene| async move {
        let live = scene.stored().unwrap();
        scene.edit(|live| live["metadata"]["finalizers"] = json!(["a.b/c"]));

        let wrote = scene.watch.set_finalizer(&ctx(), &live, FINALIZER, true).await.unwrap();

        assert_eq!(wrote.into_object().unwrap()["metadata"]["finalizers"], json!(["a.b/c", FINALIZER]));
        assert_eq!(scene.verbs(), ["patch", "get", "patch"]);
    });
}

/// spec 80 §16 S-7
#[test]
fn finalizer_is_not_added_in_deletion_and_the_last_one_ends_the_object() {
    written(|scene| async move {
        let (watch, a) = (&scene.watch, name("a"));
        watch.set_finalizer(&ctx(), &a, FINALIZER, true).await.unwrap();
        let pending = watch.delete(&ctx(), &a, Some(Propagation::Background)).await.unwrap();
        assert!(matches!(pending, Wrote::Deleting(_)), "{pending:?}");
        scene.sim.clear_requests();
        scene.reported();

        let added = watch.set_finalizer(&ctx(), &a, "a.b/c", true).await.unwrap();
        assert!(matches!(added, Wrote::Deleting(_)), "{added:?}");
        assert!(matches!(watch.delete_if(&ctx(), &a, None, |_| true).await.unwrap(), Wrote::Deleting(_)));
        assert_eq!(scene.verbs(), ["get"; 2]);
        assert_eq!(watch.set_finalizer(&ctx(), &a, FINALIZER, false).await, Ok(Wrote::Gone));
        settle().await;

        assert_eq!((scene.stored(), scene.value("a")), (None, None));
        assert_eq!(scene.reported(), ["own a 1→-"]);
    });
}

/// spec 80 §16 S-18
#[test]
fn deletion_is_bound_to_what_was_decided_on() {
    written(|scene| async move {
        let watch = &scene.watch;
        let is_due = |entry: &Entry| entry.value == "1";
        scene.before_each("delete", 1, |sim, _| {
            sim.edit("configmaps", "default", "a", |live| live["data"]["k"] = "2".into());
        });

        let kept = watch.delete_cached_if(&ctx(), &name("a"), None, is_due).await.unwrap();

        assert!(matches!(kept, Wrote::Unchanged(entry) if entry.value == "2"));
        assert_eq!(scene.verbs(), ["delete", "get"]);
        settle().await;
        assert_eq!(scene.reported(), ["event a 1→2"]);
        let live = scene.stored().unwrap();
        scene.edit(|live| live["data"]["k"] = "3".into());
        scene.sim.clear_requests();

        let gone = watch.delete(&ctx(), &live, None).await;

        assert_eq!((gone, scene.stored()), (Ok(Wrote::Gone), None), "the uid decides, not the version");
        settle().await;
        assert_eq!((scene.verbs(), scene.value("a")), (vec!["delete".to_owned()], None));
    });
}

#[test]
fn created_object_is_an_own_change_and_a_taken_name_is_an_error() {
    written(|scene| async move {
        let created = scene.watch.create(&ctx(), &config_map("b", "1")).await.unwrap();

        assert_eq!(value_of(&created), "1");
        settle().await;
        assert_eq!(scene.reported(), ["own b -→1"]);
        let error = scene.watch.create(&ctx(), &config_map("b", "2")).await.unwrap_err();
        assert!(error.is_already_exists());

        let mut unselected = config_map("c", "1");
        unselected["metadata"]["labels"] = json!({});
        scene.watch.create(&ctx(), &unselected).await.unwrap();
        settle().await;
        assert_eq!(scene.value("c"), None, "the watch does not select it");
    });
}

#[test]
fn ensured_object_is_created_without_a_read_and_adopted_if_the_watch_does_not_select_it() {
    written(|scene| async move {
        let wanted = |object: &mut Value| {
            object["metadata"]["labels"] = json!({"ours": "true"});
            object["data"]["k"] = "2".into();
        };
        let mut foreign = config_map("c", "1");
        foreign["metadata"]["labels"] = json!({});
        scene.sim.put(foreign).unwrap();

        let created = scene.watch.ensure(&ctx(), &name("b"), Lock::None, wanted).await.unwrap();
        let adopted = scene.watch.ensure(&ctx(), &name("c"), Lock::None, wanted).await.unwrap();

        assert!(matches!(&created, Wrote::Created(object) if value_of(object) == "2"), "{created:?}");
        assert!(matches!(&adopted, Wrote::Updated(object) if value_of(object) == "2"), "{adopted:?}");
        assert_eq!(scene.verbs(), ["create", "create", "get", "patch"]);
        settle().await;
        assert_eq!((scene.value("b"), scene.value("c")), (Some("2".into()), Some("2".into())));
        assert_eq!(scene.reported(), ["own b -→2", "own c -→2"]);
        scene.sim.clear_requests();
        scene.sim.put(config_map("d", "1")).unwrap();
        settle().await;
        scene.before_each("patch", 1, |sim, _| drop(sim.remove("configmaps", "default", "d")));

        let again = scene.watch.ensure(&ctx(), &name("d"), Lock::Version, wanted).await.unwrap();

        assert!(matches!(again, Wrote::Created(_)), "{again:?}");
    });
}

#[test]
fn ensured_object_of_cluster_scope_has_no_namespace_and_a_missing_namespace_is_an_error() {
    bare(|sim, watches| async move {
        let role = Resource::new("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", false);
        let unknown = Resource::new("g.io", "v1", "Thing", "things", true);
        let [roles, maps, things] =
            [role, config_maps(), unknown].map(|kind| watches.open(WatchOptions::new(kind, entry).optional()));
        let ensure = async |watch: &Watch<Entry>, namespace: &str| {
            let name = NamespacedName::new(namespace, "a");
            watch.ensure(&ctx(), &name, Lock::Version, |_| {}).await
        };

        let created = ensure(&roles, "ns").await.unwrap().into_object().unwrap();

        assert_eq!((created["kind"].as_str(), object::namespace(&created)), (Some("ClusterRole"), ""));
        assert!(ensure(&maps, "missing").await.unwrap_err().is_not_found());
        assert!(ensure(&things, "default").await.unwrap_err().is_not_served());
        assert!(sim.object("clusterroles.rbac.authorization.k8s.io", "", "a").is_some());
    });
}

#[test]
fn write_attempts_share_one_deadline() {
    written(|scene| async move {
        scene.sim.set_faults(|_| Fault::Delay(Duration::from_secs(7)));
        let context = ctx().until(Deadline::after(Duration::from_secs(10)));

        let error = scene.watch.patch(&context, &name("a"), Lock::Version, wants("2")).await.unwrap_err();

        assert_eq!(error, ApiError::Timeout);
        assert_eq!(scene.verbs(), ["get", "patch"]);
    });
}

#[test]
fn metadata_watch_reads_and_writes_only_metadata() {
    bare(|sim, watches| async move {
        let mut secret = config_map("a", "1");
        (secret["kind"], secret["data"]) = ("Secret".into(), json!({"k": "c2VjcmV0"}));
        sim.put(secret).unwrap();
        let secrets = Resource::new("", "v1", "Secret", "secrets", true);
        let watch = watches.open(WatchOptions::new(secrets, entry).metadata());
        watches.start();
        settle().await;
        let decide = |object: &Value| {
            assert!(object.get("data").is_none());
            (object::label(object, "l") != Some("1")).then(|| json!({"metadata": {"labels": {"l": "1"}}}))
        };

        let patched = watch.patch(&ctx(), &name("a"), Lock::Version, decide).await.unwrap();
        let held = watch.set_finalizer(&ctx(), &name("a"), FINALIZER, true).await.unwrap();
        let deleting = watch.delete(&ctx(), &name("a"), None).await.unwrap();

        for wrote in [patched, held, deleting] {
            let object = wrote.into_object().unwrap();
            assert_eq!((&object["kind"], object.get("data")), (&json!("PartialObjectMetadata"), None));
        }
        let stored = sim.object("secrets", "default", "a").unwrap();
        assert_eq!(stored["metadata"]["labels"], json!({"ours": "true", "l": "1"}));
        assert_eq!(stored["data"], json!({"k": "c2VjcmV0"}));
        assert_eq!(watch.set_finalizer(&ctx(), &name("a"), FINALIZER, false).await, Ok(Wrote::Gone));
    });
}

#[test]
fn status_write_changes_the_status_and_reports_what_the_server_ignores() {
    bare(|sim, watches| async move {
        sim.put(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})).unwrap();
        let watch = watches.open(WatchOptions::new(Resource::new("", "v1", "Node", "nodes", false), entry));
        watches.start();
        settle().await;
        let node = NamespacedName::new("", "n");
        let phase =
            |object: &Value| (object["status"]["phase"] != "Running").then(|| json!({"status": {"phase": "Running"}}));
        let spec = |object: &Value| {
            (object["spec"]["unschedulable"] != true).then(|| json!({"spec": {"unschedulable": true}}))
        };

        let wrote = watch.patch_status(&ctx(), &node, Lock::Version, phase).await.unwrap();
        let ignored = watch.patch_status(&ctx(), &node, Lock::Version, spec).await.unwrap();

        assert!(matches!(wrote, Wrote::Updated(_)), "{wrote:?}");
        assert!(ignored.is_altered(), "{ignored:?}");
        assert_eq!(sim.object("nodes", "", "n").unwrap()["status"]["phase"], "Running");
    });
}

#[test]
fn write_of_another_form_enters_its_answer_as_an_own_change() {
    written(|scene| async move {
        let (cluster, live) = (scene.watch.informer.cluster.clone(), scene.stored().unwrap());
        let mut after = live.clone();
        after["data"]["k"] = "2".into();
        let (context, at) = (ctx(), config_maps().named(&name("a")));

        scene.watch.enter_answer_of(&context, cluster.replace(&context, &at, None, &after)).await.unwrap();

        settle().await;
        assert_eq!(scene.reported(), ["own a 1→2"]);
    });
}
