use std::rc::Rc;

use kit::{Clock, Random};
use sim::{Sim, SimOptions};

use super::*;
use crate::{
    AnswerRoom, ClusterEnv, ClusterLabel, ClusterOptions, Fence, NoObserver, Resource,
    testing::{config_maps, ctx},
};

struct Scene {
    sim: Sim,
    cluster: Cluster,
}

impl Scene {
    fn new() -> Self {
        let clock = || Clock::starting_at("2030-01-01T00:00:00Z".parse().unwrap());
        let sim = Sim::new(SimOptions::new(clock(), Random::seeded(1)));
        let options = ClusterOptions {
            label: ClusterLabel::may_be_down("target"),
            host: "sim".into(),
            qps: -1.0,
            burst: 0,
            namespaces: Vec::new(),
        };
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
}

fn config_map(mut metadata: Value) -> Value {
    (metadata["name"], metadata["namespace"]) = ("a".into(), "ns".into());
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": "1"}})
}

fn at() -> ObjectRef {
    config_maps().at("ns", "a")
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

#[test]
fn patch_carries_the_lock_that_it_is_bound_to() {
    let patch = || json!({"metadata": {"labels": null}});
    let table = [
        (Lock::Version, json!({"metadata": {"labels": null, "resourceVersion": "7"}})),
        (Lock::Uid, json!({"metadata": {"labels": null, "uid": "u"}})),
        (Lock::None, json!({"metadata": {"labels": null}})),
    ];
    for (lock, expected) in table {
        assert_eq!(bound(patch(), lock, ("u", "7"), &at()), Ok(expected));
    }
    assert_eq!(bound(json!({}), Lock::Uid, ("u", "7"), &at()), Ok(json!({"metadata": {"uid": "u"}})));
}

#[tokio::test(start_paused = true)]
async fn write_without_uid_or_version_to_bind_to_is_rejected_unsent() {
    let scene = Scene::new();
    scene.put(json!({"finalizers": ["a.b/c"]}));
    let cluster = &scene.cluster;
    let versioned = config_map(json!({"resourceVersion": "7"}));

    let refused = [
        bound(json!({}), Lock::Version, ("u", ""), &at()).map(drop),
        bound(json!({}), Lock::Uid, ("", "7"), &at()).map(drop),
        bound(json!({"metadata": null}), Lock::Version, ("u", "7"), &at()).map(drop),
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
