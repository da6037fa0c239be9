//! The initial sync of many ManagedResources: collect, then compare (architecture §6); `known/initial_sync.rs` has its
//! state. Reading ten thousand objects one by one would take minutes and hide everything else. So each listed
//! ManagedResource first decodes its manifests and submits its *wanted objects*. When all have submitted, or after five
//! seconds, each wanted kind is listed once. Each object is compared with what is wanted, and only the verdict is kept.
//! * here: how it begins and ends, and how each ManagedResource submits its wanted objects
//! * `compare`: the course of the initial sync, the lists and the comparison

mod compare;

use std::{panic::AssertUnwindSafe, rc::Rc};

use cluster::object::GroupVersionKind;
use futures::FutureExt;
use kit::Moment;

use super::{
    apply::{self, Scene},
    known::{Applied, InitialSyncStep, Memory, WantedBy, WantedObject},
    report::status,
    shared::ManagedResources,
    steps::{self, Bundle, Run, Todo},
};
use crate::actors::resource_manager::bundle::hpa;

/// Runs the initial sync. ManagedResources wait for its end, however it ends.
pub(super) async fn run(controller: Rc<ManagedResources>) {
    if AssertUnwindSafe(controller.clone().run_initial_sync()).catch_unwind().await.is_err() {
        tracing::error!("the initial sync panicked; ManagedResources read their objects one by one");
    }
    controller.initial_sync.end();
    controller.secrets.drop_preloaded();
}

/// Runs a reconcile's part in the initial sync. Returns the moment to wait for, or `None` if the reconcile goes on.
pub(super) async fn take_part(run: &Run<'_>, memory: &mut Memory) -> Option<Moment> {
    match run.controller.initial_sync.step(&run.reconcile.key, memory) {
        InitialSyncStep::Over => None,
        InitialSyncStep::Wait(moment) => Some(moment),
        InitialSyncStep::Collect => submit_wanted_objects(run).await,
    }
}

/// Submits the wanted objects of a ManagedResource. Returns `None` if the reconcile goes on by itself.
async fn submit_wanted_objects(run: &Run<'_>) -> Option<Moment> {
    let initial_sync = &run.controller.initial_sync;
    let Ok(bundle) = steps::read(run).await else {
        initial_sync.has_nothing_wanted(&run.reconcile.key);
        return None;
    };
    // The watches begin before the lists, so that no change is lost in between.
    drop(bundle.watch_kinds(run));
    if bundle.is_scalable() {
        run.controller.autoscalers.find().await;
    }
    let unknown_scaling = run.controller.autoscalers.error().is_some();
    let wanted_by = Rc::new(WantedBy {
        bundle: run.reconcile.key.clone(),
        merging: bundle.merging.clone(),
        equivalences: bundle.equivalences.clone(),
        trusted: apply::is_applied(run, &bundle),
    });
    let everything = Todo::All { forced: false };
    let scene = Scene::new(run, &bundle, false, &everything);
    let (applied, wanted) = (applied(run, &bundle), bundle.plan.objects.len());
    let moment = initial_sync.expect_results(&run.reconcile.key, wanted, applied)?;
    for object in &bundle.plan.objects {
        let kind = GroupVersionKind::of(&object.manifest).unwrap_or_default();
        let (Some(resource), None, false) = (bundle.resource(&kind), &object.error, object.ignored) else { continue };
        if unknown_scaling && hpa::is_scalable(&object.key.group_kind()) {
            // The right number of replicas is unknown: the reconcile reads the object itself.
            continue;
        }
        let Ok(wanted) = serde_json::to_vec(&(&object.manifest, &object.old)) else { continue };
        let wanted_object = WantedObject {
            wanted_by: wanted_by.clone(),
            key: run.controller.objects.shared(&object.key),
            manifest_hash: scene.intent(object),
            wanted: wanted.into(),
        };
        if !initial_sync.add(kind, resource, wanted_object) {
            break;
        }
    }
    initial_sync.has_nothing_wanted(&run.reconcile.key);
    Some(moment)
}

/// Returns the state if the comparison finds all objects up to date, or `None` if something would still be left to do.
fn applied(run: &Run<'_>, bundle: &Bundle) -> Option<Applied> {
    let mr = run.mr();
    let reported = status::is_reported_applied(&mr.status);
    let complete = reported
        && apply::is_applied(run, bundle)
        && !status::is_changed(&mr.status, &bundle.plan.references, &bundle.checksum)
        && bundle.errors.is_empty()
        && bundle.uncertain.is_none()
        && bundle.plan.removed.is_empty()
        && bundle.plan.released.is_empty()
        && run.has_finalizer();
    complete.then(|| Applied::of(mr, &bundle.secrets))
}
