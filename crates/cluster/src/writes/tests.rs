use std::{cell::Cell, rc::Rc, time::Duration};

use kit::{Clock, Deadline, Random};
use sim::{Fault, Sim, SimOptions};

use super::*;
use crate::{
    AnswerRoom, ClusterEnv, ClusterOptions, Fence, NoObserver, Resource, Side,
    testing::{Server, config_maps, ctx, json as reply},
};

struct Scene {
    sim: Sim,
    cluster: Cluster,
}

impl Scene {
    fn new() -> Self {
        let clock = || Clock::starting_at("2030-01-01T00:00:00Z".parse().unwrap());
        let sim = Sim::new(SimOptions::new(clock(), Random::seeded(1)));
        let options =
            ClusterOptions { side: Side::Target, host: "sim".into(), qps: -1.0, burst: 0, namespaces: Vec::new() };
        let env =
            ClusterEnv { clock: clock(), random: Random::seeded(1), fence: Fence::open(), room: AnswerRoom::default() };
        let cluster = Cluster::new(sim.client(), options, env, Rc::new(NoObserver));
        sim.put(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}})).unwrap();
        Self { sim, cluster }
    }

    fn put(&self, metadata: Value) -> Value {
        self.sim.put(config_map(metadata)).unwrap()
    }

    fn stored(&self) -> Option<Value> {
        self.sim.object("configmaps", "ns", "a")
    }

    fn verbs(&self) -> Vec<String> {
        self.sim.requests().into_iter().map(|request| request.info.verb).collect()
    }

    /// Another client changes the server with `change` right before each of the first `times` requests of that verb.
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
}

fn config_map(mut metadata: Value) -> Value {
    (metadata["name"], metadata["namespace"]) = ("a".into(), "ns".into());
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": "1"}})
}

fn at() -> ObjectRef {
    config_maps().at("ns", "a")
}

fn set(value: &str) -> impl Fn(&mut Value) {
    move |object| object["data"]["v"] = value.into()
}

#[tokio::test(start_paused = true)]
async fn find_returns_none_for_a_missing_object_and_an_error_for_an_unserved_kind() {
    let scene = Scene::new();
    let unknown = Resource::new("g.io", "v1", "Thing", "things", true).at("ns", "a");

    assert_eq!(scene.cluster.find(&ctx(), &at()).await, Ok(None));
    assert_eq!(scene.cluster.find(&ctx(), &config_maps().at("missing", "a")).await, Ok(None));
    assert!(scene.cluster.find(&ctx(), &unknown).await.unwrap_err().is_not_served());

    let stored = scene.put(json!({}));
    assert_eq!(scene.cluster.find(&ctx(), &at()).await, Ok(Some(stored)));
}

#[tokio::test(start_paused = true)]
async fn missing_object_is_created_with_kind_name_and_namespace() {
    let scene = Scene::new();

    let wrote = scene.cluster.create_or_update(&ctx(), &at(), set("1")).await.unwrap();

    assert!(matches!(&wrote, Wrote::Created(object) if object["data"] == json!({"v": "1"})), "{wrote:?}");
    assert_eq!(scene.verbs(), ["get", "create"]);
    assert_eq!(scene.stored().unwrap()["data"], json!({"v": "1"}));
}

#[tokio::test(start_paused = true)]
async fn cluster_scoped_object_is_created_without_a_namespace() {
    let not_found = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
        "details": {"name": "a", "group": "rbac.authorization.k8s.io", "kind": "clusterroles"},
    });
    let server =
        Server::new(
            move |seen| {
                if seen.line.starts_with("GET") { reply(404, &not_found) } else { reply(201, &seen.body) }
            },
        );
    let role = Resource::new("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", false).at("ns", "a");

    server.cluster().create_or_update(&ctx(), &role, |_| {}).await.unwrap();

    assert_eq!(
        server.requests()[1].body,
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "a"}})
    );
}

#[tokio::test(start_paused = true)]
async fn update_sends_only_the_difference_with_the_version_that_was_read() {
    let server = Server::new(|seen| {
        let mut object = config_map(json!({"labels": {"l": "1"}, "resourceVersion": "7"}));
        if seen.line.starts_with("PATCH") {
            object["data"]["v"] = "2".into();
        }
        reply(200, &object)
    });

    let wrote = server.cluster().create_or_update(&ctx(), &at(), set("2")).await.unwrap();

    assert!(matches!(&wrote, Wrote::Updated(object) if object["data"]["v"] == "2"), "{wrote:?}");
    assert_eq!(server.requests()[1].body, json!({"metadata": {"resourceVersion": "7"}, "data": {"v": "2"}}));
}

#[tokio::test(start_paused = true)]
async fn update_sends_nothing_without_a_difference() {
    let scene = Scene::new();
    let stored = scene.put(json!({}));

    let wrote = scene.cluster.create_or_update(&ctx(), &at(), set("1")).await.unwrap();

    assert_eq!(wrote, Wrote::Unchanged(stored));
    assert_eq!(scene.verbs(), ["get"]);
}

#[tokio::test(start_paused = true)]
async fn conflict_makes_the_change_run_on_the_newer_object() {
    let scene = Scene::new();
    scene.put(json!({}));
    scene.before_each("patch", 1, |sim, _| {
        sim.edit("configmaps", "ns", "a", |object| object["data"]["other"] = "1".into());
    });

    let wrote = scene.cluster.create_or_update(&ctx(), &at(), set("2")).await.unwrap();

    assert_eq!(wrote.object()["data"], json!({"v": "2", "other": "1"}));
    assert_eq!(scene.verbs(), ["get", "patch", "get", "patch"]);
}

#[tokio::test(start_paused = true)]
async fn create_or_update_reads_again_when_the_object_comes_or_goes_in_between() {
    let scene = Scene::new();
    scene.before_each("create", 1, |sim, _| {
        sim.put(config_map(json!({}))).unwrap();
    });

    let wrote = scene.cluster.create_or_update(&ctx(), &at(), set("2")).await.unwrap();

    assert!(matches!(wrote, Wrote::Updated(_)), "{wrote:?}");
    assert_eq!(scene.verbs(), ["get", "create", "get", "patch"]);
    scene.sim.clear_requests();
    scene.before_each("patch", 1, |sim, _| {
        sim.remove("configmaps", "ns", "a");
    });

    let wrote = scene.cluster.create_or_update(&ctx(), &at(), set("3")).await.unwrap();

    assert!(matches!(wrote, Wrote::Created(_)), "{wrote:?}");
    assert_eq!(scene.verbs(), ["get", "patch", "get", "create"]);
}

#[tokio::test(start_paused = true)]
async fn conflict_is_returned_when_every_race_is_lost() {
    let scene = Scene::new();
    scene.put(json!({}));
    scene.before_each("patch", usize::MAX, |sim, round| {
        sim.edit("configmaps", "ns", "a", |object| object["data"]["other"] = round.to_string().into());
    });
    let asked = Cell::new(0);

    let change = |object: &mut Value| {
        asked.set(asked.get() + 1);
        set("2")(object);
    };
    let error = scene.cluster.create_or_update(&ctx(), &at(), change).await.unwrap_err();

    assert!(error.is_conflict());
    assert_eq!((asked.get(), scene.verbs().len()), (5, 10));
}

#[tokio::test(start_paused = true)]
async fn create_or_update_attempts_share_one_deadline() {
    let scene = Scene::new();
    scene.put(json!({}));
    scene.sim.set_faults(|_| Fault::Delay(Duration::from_secs(7)));
    let context = ctx().until(Deadline::after(Duration::from_secs(10)));

    let error = scene.cluster.create_or_update(&context, &at(), set("2")).await.unwrap_err();

    assert_eq!(error, ApiError::Timeout);
    assert_eq!(scene.verbs(), ["get", "patch"]);
}

#[tokio::test(start_paused = true)]
async fn object_in_deletion_is_reported_and_left_alone() {
    let scene = Scene::new();
    scene.put(json!({"finalizers": ["a.b/c"]}));
    scene.cluster.delete(&ctx(), &at(), &DeleteOptions::default()).await.unwrap();
    let before = scene.stored();
    scene.sim.clear_requests();

    let wrote = scene.cluster.create_or_update(&ctx(), &at(), set("2")).await.unwrap();

    assert!(matches!(wrote, Wrote::Deleting(_)), "{wrote:?}");
    assert!(!wrote.is_change());
    assert_eq!((scene.verbs(), scene.stored()), (vec!["get".to_owned()], before));
}

#[tokio::test(start_paused = true)]
async fn missing_namespace_and_unserved_kind_are_errors_at_once() {
    let scene = Scene::new();
    let unknown = Resource::new("g.io", "v1", "Thing", "things", true).at("ns", "a");

    let homeless = scene.cluster.create_or_update(&ctx(), &config_maps().at("missing", "a"), set("1")).await;
    assert!(homeless.unwrap_err().is_not_found());
    assert!(scene.cluster.create_or_update(&ctx(), &unknown, |_| {}).await.unwrap_err().is_not_served());

    assert_eq!(scene.verbs(), ["get", "create", "get"]);
}

#[tokio::test(start_paused = true)]
async fn patch_carries_its_lock_and_is_not_sent_without_a_difference() {
    let before = config_map(json!({"uid": "u", "resourceVersion": "7", "labels": {"l": "1"}}));
    let after = config_map(json!({"uid": "u", "resourceVersion": "7"}));
    let table = [
        (Lock::Version, json!({"metadata": {"labels": null, "resourceVersion": "7"}})),
        (Lock::Uid, json!({"metadata": {"labels": null, "uid": "u"}})),
        (Lock::None, json!({"metadata": {"labels": null}})),
    ];
    for (lock, expected) in table {
        let server = Server::new(|_| reply(200, &json!({"metadata": {"name": "a"}})));

        server.cluster().patch_to(&ctx(), &at(), &before, &after, lock).await.unwrap();
        let same = server.cluster().patch_to(&ctx(), &at(), &after, &after, lock).await;

        assert_eq!(same, Ok(Wrote::Unchanged(after.clone())));
        let bodies: Vec<Value> = server.requests().into_iter().map(|seen| seen.body).collect();
        assert_eq!(bodies, [expected]);
    }
}

#[tokio::test(start_paused = true)]
async fn lock_violation_is_a_conflict() {
    let scene = Scene::new();
    let former = scene.put(json!({}));
    let mut after = former.clone();
    after["data"]["v"] = "2".into();
    scene.sim.edit("configmaps", "ns", "a", |object| object["data"]["other"] = "1".into());
    let patch = async |lock| scene.cluster.patch_to(&ctx(), &at(), &former, &after, lock).await;

    assert!(patch(Lock::Version).await.unwrap_err().is_conflict());
    assert_eq!(patch(Lock::Uid).await.unwrap().object()["data"], json!({"v": "2", "other": "1"}));

    scene.sim.remove("configmaps", "ns", "a");
    scene.put(json!({}));
    for lock in [Lock::Version, Lock::Uid] {
        assert!(patch(lock).await.unwrap_err().is_conflict(), "{lock:?}");
    }
    assert_eq!(patch(Lock::None).await.unwrap().object()["data"], json!({"v": "2"}));
    scene.sim.remove("configmaps", "ns", "a");
    assert!(patch(Lock::None).await.unwrap_err().is_not_found());
}

#[tokio::test(start_paused = true)]
async fn write_without_uid_or_version_to_bind_to_is_rejected_unsent() {
    let scene = Scene::new();
    scene.put(json!({"finalizers": ["a.b/c"]}));
    let (bare, cluster) = (config_map(json!({})), &scene.cluster);
    let mut after = bare.clone();
    after["data"]["v"] = "2".into();
    let versioned = config_map(json!({"resourceVersion": "7"}));
    let without_metadata = json!({"data": {}});

    let refused = [
        cluster.patch_to(&ctx(), &at(), &bare, &after, Lock::Version).await.map(drop),
        cluster.patch_to(&ctx(), &at(), &bare, &after, Lock::Uid).await.map(drop),
        cluster.patch_to(&ctx(), &at(), &versioned, &without_metadata, Lock::Version).await.map(drop),
        cluster.delete_seen(&ctx(), &at(), "", None, None).await.map(drop),
        cluster.delete_seen(&ctx(), &at(), "u", Some(""), None).await.map(drop),
        cluster.set_finalizer(&ctx(), &at(), &versioned, "a.b/d", true).await.map(drop),
    ];

    for result in refused {
        assert!(matches!(result, Err(ApiError::BadRequest(_))), "{result:?}");
    }
    assert!(scene.verbs().is_empty());
}

#[tokio::test(start_paused = true)]
async fn delete_seen_deletes_only_the_incarnation_that_was_read() {
    let scene = Scene::new();
    let former = scene.put(json!({}));
    let (uid, version) = (object::uid(&former), object::resource_version(&former));
    scene.sim.edit("configmaps", "ns", "a", |object| object["data"]["v"] = "2".into());

    let stale = scene.cluster.delete_seen(&ctx(), &at(), uid, Some(version), None).await.unwrap_err();
    assert!(stale.is_conflict());
    assert_eq!(scene.cluster.delete_seen(&ctx(), &at(), uid, None, None).await, Ok(Deleted::Gone));
    assert_eq!(scene.cluster.delete_seen(&ctx(), &at(), uid, None, None).await, Ok(Deleted::Gone));

    scene.put(json!({}));
    assert!(scene.cluster.delete_seen(&ctx(), &at(), uid, None, None).await.unwrap_err().is_conflict());
    assert!(scene.stored().is_some());
    assert_eq!(scene.verbs(), ["delete"; 4]);
}

#[tokio::test(start_paused = true)]
async fn deletion_that_waits_is_pending_and_fails_for_an_unserved_kind() {
    let scene = Scene::new();
    let stored = scene.put(json!({"finalizers": ["a.b/c"]}));
    let unknown = Resource::new("g.io", "v1", "Thing", "things", true).at("ns", "a");

    let deleted = scene.cluster.delete_seen(&ctx(), &at(), object::uid(&stored), None, None).await.unwrap();

    assert!(matches!(&deleted, Deleted::Pending(object) if object::deletion_timestamp(object).is_some()));
    assert!(scene.cluster.delete_seen(&ctx(), &unknown, "u", None, None).await.unwrap_err().is_not_served());
}

#[tokio::test(start_paused = true)]
async fn finalizer_comes_and_goes_and_the_others_keep_their_order() {
    let scene = Scene::new();
    let stored = scene.put(json!({"finalizers": ["a.b/c", "a.b/d"]}));
    let set = async |live, name, held| scene.cluster.set_finalizer(&ctx(), &at(), live, name, held).await.unwrap();
    let names = |object: &Value| object["metadata"]["finalizers"].clone();

    let with = set(&stored, "a.b/e", true).await;
    assert_eq!(names(&with), json!(["a.b/c", "a.b/d", "a.b/e"]));
    let without = set(&with, "a.b/c", false).await;
    assert_eq!(names(&without), json!(["a.b/d", "a.b/e"]));
    assert_eq!(scene.verbs(), ["patch"; 2]);

    assert_eq!(set(&without, "a.b/e", true).await, without);
    assert_eq!(set(&without, "a.b/x", false).await, without);
    assert_eq!(scene.verbs(), ["patch"; 2]);
}

#[tokio::test(start_paused = true)]
async fn finalizer_is_not_added_to_a_later_state_or_another_incarnation() {
    let scene = Scene::new();
    let former = scene.put(json!({}));
    let add = async || scene.cluster.set_finalizer(&ctx(), &at(), &former, "a.b/c", true).await.unwrap_err();

    scene.sim.edit("configmaps", "ns", "a", |object| object["metadata"]["finalizers"] = json!(["a.b/d"]));
    assert!(add().await.is_conflict());
    assert_eq!(scene.stored().unwrap()["metadata"]["finalizers"], json!(["a.b/d"]));

    scene.sim.remove("configmaps", "ns", "a");
    assert!(add().await.is_not_found());
    scene.put(json!({}));
    assert!(add().await.is_conflict());
    assert_eq!(scene.stored().unwrap()["metadata"].get("finalizers"), None);
}

#[tokio::test(start_paused = true)]
async fn finalizer_that_is_the_last_one_ends_a_deletion() {
    let scene = Scene::new();
    scene.put(json!({"finalizers": ["a.b/c"]}));
    let Deleted::Pending(live) = scene.cluster.delete(&ctx(), &at(), &DeleteOptions::default()).await.unwrap() else {
        panic!("a finalizer holds it");
    };

    let refused = scene.cluster.set_finalizer(&ctx(), &at(), &live, "a.b/d", true).await.unwrap_err();
    assert!(refused.is_invalid());
    let last = scene.cluster.set_finalizer(&ctx(), &at(), &live, "a.b/c", false).await.unwrap();

    assert_eq!(object::finalizers(&last).count(), 0);
    assert_eq!(scene.stored(), None);
}
