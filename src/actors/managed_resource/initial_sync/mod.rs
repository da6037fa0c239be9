//! The start over many bundles: claim, then sweep (architecture §6).
//!
//! Reading ten thousand objects one by one would take minutes and hide everything else. So each listed bundle first
//! decodes and leaves its *claims*: which objects it wants, and how. When all have, or after five seconds, each claimed
//! kind is listed once; each object is compared with its claim, and only the verdict is kept.
//!
//! * here: how it begins and ends, and the part of each bundle: its claims
//! * `sweep`: the course of the start, the lists and the comparison
//!
//! Its state, who is to claim, what is claimed, and what was found, is in `known/claims.rs`.

mod compare;

use std::{panic::AssertUnwindSafe, rc::Rc};

use futures::FutureExt;
use kit::{Failure, Moment};

use super::{
    apply::{self, Scene},
    known::{Applied, InitialSyncStep, Memory, WantedBy, WantedObject},
    report::status,
    shared::ManagedResources,
    steps::{self, Bundle, Run, Todo},
};
use crate::{
    api::{object::GroupVersionKind, origin::Origin},
    bundle::hpa,
};

/// Runs the start over many bundles. They wait for its end, however it ends.
pub(super) async fn run(controller: Rc<ManagedResources>) {
    if AssertUnwindSafe(controller.clone().run_initial_sync()).catch_unwind().await.is_err() {
        tracing::error!("the initial sync panicked; ManagedResources read their objects one by one");
    }
    controller.initial_sync.end();
    controller.secrets.drop_preloaded();
}

/// What the pass of a bundle does for the start. Gives the moments to wait for; `None` means that the pass goes on by itself.
pub(super) async fn take_part(run: &Run<'_>, memory: &mut Memory) -> Result<Option<Vec<Moment>>, Failure> {
    match run.controller.initial_sync.step(&run.reconcile.key, memory) {
        InitialSyncStep::Over => Ok(None),
        InitialSyncStep::Wait(moments) => Ok(Some(moments)),
        InitialSyncStep::Collect => wanted_object(run).await,
    }
}

/// Leaves the claims of a bundle. `None` means that the pass goes on by itself.
async fn wanted_object(run: &Run<'_>) -> Result<Option<Vec<Moment>>, Failure> {
    let initial_sync = &run.controller.initial_sync;
    let Ok(bundle) = steps::read(run).await else {
        initial_sync.has_nothing_wanted(&run.reconcile.key);
        return Ok(None);
    };
    // The watches begin before the lists, so that no change gets lost in between.
    drop(bundle.watch_kinds(run));
    if bundle.is_scalable() {
        run.controller.autoscalers.find().await;
    }
    let unknown_scaling = run.controller.autoscalers.error().is_some();
    let wanted_by = Rc::new(wanted_by(run, &bundle));
    let everything = Todo::All { forced: false };
    let scene = Scene::new(run, &bundle, false, &everything);
    let (applied, wanted) = (applied(run, &bundle), bundle.plan.objects.len());
    let Some(moment) = initial_sync.begin_bundle(&run.reconcile.key, wanted, applied) else { return Ok(None) };
    for object in &bundle.plan.objects {
        let kind = GroupVersionKind::of(&object.manifest).unwrap_or_default();
        let (Some(resource), None, false) = (bundle.resource(&kind), &object.error, object.ignored) else { continue };
        if unknown_scaling && hpa::is_scalable(&object.key.group_kind()) {
            // How many replicas are right cannot be told: the bundle looks itself.
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
    Ok(Some(vec![moment]))
}

fn wanted_by(run: &Run<'_>, bundle: &Bundle) -> WantedBy {
    let mr = run.mr();
    WantedBy {
        bundle: run.reconcile.key.clone(),
        origin: Origin::new(run.controller.settings.cluster_id.clone(), run.reconcile.key.clone()).to_string(),
        labels: bundle.labels.clone(),
        equivalences: bundle.equivalences.clone(),
        force_overwrite_labels: mr.spec.force_overwrite_labels,
        force_overwrite_annotations: mr.spec.force_overwrite_annotations,
        trusted: apply::is_applied(run, bundle),
    }
}

/// What the bundle is if the sweep finds all its objects settled: applied, with nothing left to report.
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
