use super::{writes::written, *};
use crate::{DeleteOptions, Lock, Propagation, Wrote, testing::ctx};

#[test]
fn status_patch_decides_on_the_cached_object_and_is_bound_to_its_incarnation() {
    written(|scene| async move {
        let decide = |entry: &Entry| (entry.value == "1").then(|| json!({"status": {"phase": "x"}}));
        let none = scene.watch.patch_status_cached(&ctx(), &name("a"), Lock::Uid, |_| None).await.unwrap();
        assert!(matches!(none, Wrote::Unchanged(entry) if entry.value == "1"));
        assert_eq!(scene.verbs(), Vec::<String>::new());

        drop(scene.watch.patch_status_cached(&ctx(), &name("a"), Lock::Uid, decide).await);

        let requests = scene.sim.requests();
        let patch = requests.iter().find(|request| request.info.verb == "patch").unwrap();
        assert_eq!(patch.info.subresource, "status");
    });
}

#[test]
fn deletion_of_a_cached_object_may_have_options() {
    written(|scene| async move {
        scene.edit(|live| live["metadata"]["finalizers"] = json!(["a.b/theirs"]));
        settle().await;
        let options = DeleteOptions { propagation: Some(Propagation::Foreground), ..DeleteOptions::default() };
        let options = DeleteOptions { grace_period_seconds: Some(60), ..options };

        let kept = scene.watch.delete_cached_if_with(&ctx(), &name("a"), &options, |_| false).await.unwrap();
        let deleted = scene.watch.delete_cached_if_with(&ctx(), &name("a"), &options, |_| true).await.unwrap();

        assert!(matches!((kept, deleted), (Wrote::Unchanged(_), Wrote::Deleting(_))));
        let finalizers = scene.stored().unwrap()["metadata"]["finalizers"].clone();
        assert_eq!(finalizers, json!(["a.b/theirs", "foregroundDeletion"]));
        assert_eq!(scene.verbs(), ["delete"]);
    });
}
