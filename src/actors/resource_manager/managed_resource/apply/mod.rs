//! The apply path (spec 10 §9.7 to §9.10, §11): announce, prune, release, apply rank by rank, report.
//! [`bundle`](crate::actors::resource_manager::bundle) decides what is sent: `order`, `merge`, `up_to_date`.
//! * here: the set: in which order, how many at once, and what is reported
//! * `attention`: whether an object is checked now, and what a check means for the next
//! * `left`: what the last attempts for an object say of fields that only the live object has
//! * `apply_object`: one object: read, create, merge, update (spec 10 §11.3, §11.7); `object_error`: why it failed

mod apply_object;
mod attention;
mod left;
mod object_error;

use std::{collections::BTreeSet, time::Duration};

pub(crate) use apply_object::OWN_MANAGER;
pub(super) use apply_object::Scene;
use cluster::object::ObjectKey;
use futures::{StreamExt, stream::FuturesUnordered};
use kit::{Causes, Failure, Outcome};
pub(super) use object_error::ObjectError;
use tokio::time::Instant;

use self::{
    apply_object::Forced,
    attention::{Attention, Check},
};
use super::{
    known::{Applied, Fingerprint, Memory},
    record::WriteKind,
    remove,
    report::{message, status},
    shared::KIND,
    steps::{self, Bundle, Run, Todo},
};
use crate::{
    actors::resource_manager::bundle::{order, plan::PlannedObject},
    api::resources::managed_resource::{ManagedResourceStatus, ResourceRef},
};

/// The first objects of a rank are applied one by one, in the order of spec 10 §11.1, so that the usual mistakes show
/// as upstream shows them: nothing after the first failed object is touched.
const SLOW_START: usize = 4;

/// Number of objects that are applied side by side after that. More only slow down the API server (measured).
const SIDE_BY_SIDE: usize = 16;

/// An object that has failed for longer than this no longer holds up the others.
const PATIENCE: Duration = Duration::from_secs(1);

enum Progress {
    Complete,
    Unfinished,
    Failed(Vec<(ObjectKey, ObjectError)>),
}

pub(super) async fn apply(
    run: &mut Run<'_>,
    memory: &mut Memory,
    bundle: Bundle,
    todo: Todo,
) -> Result<Outcome, Failure> {
    let began = run.controller.elapsed();
    let trusted = is_applied(run, &bundle);
    // Announce another set first: without the announcement, what a failed attempt leaves behind is unknown.
    let todo = if is_news(run, memory, &bundle) { todo.widened() } else { todo };
    if let Todo::All { .. } = todo {
        announce(run, memory, &bundle).await?;
        if let Some(outcome) = prune(run, memory, &bundle).await? {
            return Ok(outcome);
        }
        release_orphans(run, memory, &bundle).await?;
        remember(run, &bundle).await?;
    }
    if let Some(failure) = autoscaler_failure(run, &bundle) {
        return Err(report(run, memory, &bundle, failure).await);
    }
    match apply_objects(run, memory, &bundle, &todo, trusted).await {
        Progress::Unfinished => Ok(Outcome::Continue),
        Progress::Failed(errors) => {
            if errors.iter().any(|(_, error)| error.is_no_match()) {
                run.controller.awaits_kind(&run.reconcile.key, KIND);
            }
            Err(report(run, memory, &bundle, text_of(errors)).await)
        }
        Progress::Complete => {
            // Objects that were due and not sent: they are only ever created, or were left to their other owner.
            let was_due = |key: &ObjectKey, sent| todo.concerns(key) && run.is_due_again(key, sent, began);
            memory.are_sent(was_due, began);
            finish(run, memory, bundle, &todo).await
        }
    }
}

/// Returns true if the status says that exactly this set was applied in this generation, and that no other set was
/// attempted since. Then a field that is in an object and in no manifest was not left behind by another manifest
/// (spec 10 §11.3, architecture §6, "Up to date").
pub(super) fn is_applied(run: &Run<'_>, bundle: &Bundle) -> bool {
    let mr = run.mr();
    mr.status.secrets_data_checksum.as_deref() == Some(bundle.checksum.as_str())
        && mr.status.observed_generation == mr.metadata.generation
        && status::is_last_attempt_applied(&mr.status)
}

/// Returns true if this set is neither the status's nor announced already.
fn is_news(run: &Run<'_>, memory: &Memory, bundle: &Bundle) -> bool {
    let announced = memory.announced.as_ref().is_some_and(|(generation, checksum)| {
        *generation == run.mr().metadata.generation && *checksum == bundle.checksum
    });
    !announced && status::is_changed(&run.mr().status, &bundle.plan.references, &bundle.checksum)
}

/// Announces a new set in the status before anything is touched, once per generation and checksum (spec 10 §9.7). The
/// new refs join the old in the same write, unless old objects must be gone before anything is created.
async fn announce(run: &mut Run<'_>, memory: &mut Memory, bundle: &Bundle) -> Result<(), Failure> {
    if !is_news(run, memory, bundle) {
        return Ok(());
    }
    bundle.log_warnings();
    let added: &[ResourceRef] = if bundle.plan.removed.is_empty() { &bundle.plan.added } else { &[] };
    run.write_status(|status, now| status::change_detected(status, added, now)).await?;
    memory.announced = Some((run.mr().metadata.generation, bundle.checksum.clone()));
    Ok(())
}

/// Makes sure that every object is known by its ref before it is created. Otherwise an object that was created just
/// before a crash, and whose manifest is gone after it, would never be pruned (spec 10 §9.7, DEV).
async fn remember(run: &mut Run<'_>, bundle: &Bundle) -> Result<(), Failure> {
    if includes(&run.mr().status.resources, &bundle.plan.added) {
        return Ok(());
    }
    run.write_status(|status, _| status::remembered(status, &bundle.plan.added)).await
}

fn includes(known: &[ResourceRef], references: &[ResourceRef]) -> bool {
    let known: BTreeSet<ObjectKey> = known.iter().map(ResourceRef::key).collect();
    references.iter().all(|reference| known.contains(&reference.key()))
}

/// Prunes: deletes objects that left the manifests (spec 10 §9.8). Returns an outcome if it is not done yet.
async fn prune(run: &mut Run<'_>, memory: &mut Memory, bundle: &Bundle) -> Result<Option<Outcome>, Failure> {
    let removed: BTreeSet<ObjectKey> = bundle.plan.removed.iter().map(ResourceRef::key).collect();
    run.record.deletions.borrow_mut().keep(|object| removed.contains(object));
    if bundle.plan.removed.is_empty() {
        return Ok(None);
    }
    let Some(pending) = remove::prune(run, memory, &bundle.plan.removed).await else {
        return Ok(Some(Outcome::Continue));
    };
    if pending.is_empty() {
        return Ok(None);
    }
    remove::report_pending(run, &pending).await.map(Some)
}

async fn release_orphans(run: &mut Run<'_>, memory: &mut Memory, bundle: &Bundle) -> Result<(), Failure> {
    if bundle.plan.released.is_empty() {
        return Ok(());
    }
    for reference in &bundle.plan.released {
        memory.forget(&reference.key());
    }
    let errors = remove::release(run, &bundle.plan.released).await;
    if errors.is_empty() {
        return Ok(());
    }
    let text = message::aggregate(status::RELEASE_PREFIX, &errors);
    run.write_status(|status, now| status::release_failed(status, &text, now)).await?;
    Err(Failure::new(format!("could not release all orphaned resources: {text}")))
}

/// Returns the error if it is unknown which objects are scaled, and there are scalable objects (spec 10 §11.2).
fn autoscaler_failure(run: &Run<'_>, bundle: &Bundle) -> Option<String> {
    let error = run.controller.autoscalers.error().filter(|_| bundle.is_scalable())?;
    Some(format!("failed to compute all HPA target ref object keys: failed to list all HPAs: {error}"))
}

async fn report(run: &mut Run<'_>, memory: &mut Memory, bundle: &Bundle, text: String) -> Failure {
    memory.applied = None;
    memory.progress = None;
    memory.failed = None;
    let created: Vec<ResourceRef> = bundle
        .plan
        .objects
        .iter()
        // An object with an old ref is known by it, even under another group or kind.
        .filter(|object| object.old.is_none() && memory.objects.contains_key(&object.key))
        .map(|object| object.reference.clone())
        .collect();
    let gone = run.controller.health_registry.take_absent(&run.reconcile.key);
    let change = |status: &ManagedResourceStatus, now| {
        status::apply_failed(&status::found_gone(status, &gone, now), &text, &created, now)
    };
    if let Err(failure) = run.write_status(change).await {
        // The absence was not reported.
        gone.iter().for_each(|object| run.controller.health_registry.note_absence(&run.reconcile.key, object));
        return failure;
    }
    memory.failed = Some(Applied::of(run.mr(), &bundle.secrets));
    run.reconcile.note(format!("{} objects, apply failed", bundle.plan.objects.len()));
    Failure::new(format!("could not apply all new resources: {text}"))
}

/// Returns a single error as it is, several sorted by object, so that the text is stable.
fn text_of(mut errors: Vec<(ObjectKey, ObjectError)>) -> String {
    errors.sort_by(|(a, _), (b, _)| a.cmp(b));
    match errors.as_slice() {
        [(_, error)] => error.to_string(),
        errors => {
            let list: Vec<String> = errors.iter().map(|(_, error)| error.to_string()).collect();
            format!("{} errors occurred: [{}]", list.len(), list.join(", "))
        }
    }
}

/// Writes the final status (spec 10 §9.10). Returns when the next reconcile is due.
async fn finish(run: &mut Run<'_>, memory: &mut Memory, bundle: Bundle, todo: &Todo) -> Result<Outcome, Failure> {
    let controller = run.controller;
    let now = controller.env.clock.monotonic();
    memory.progress = None;
    if let Todo::All { .. } = todo {
        let generation = run.mr().metadata.generation;
        let left = bundle
            .uncertain
            .as_deref()
            .map(|unconfirmed| remove::left_unconfirmed(run, &bundle.plan.kept, unconfirmed));
        let set = status::AppliedSet {
            refs: bundle.plan.references.clone(),
            checksum: bundle.checksum.clone(),
            generation,
            errors: &bundle.errors,
            left: &left.unwrap_or_default(),
        };
        run.write_status(|status, now| status::finished(status, set, now)).await?;
        let keys: BTreeSet<&ObjectKey> = bundle.plan.objects.iter().map(|object| &object.key).collect();
        memory.keep_objects(|key| keys.contains(key));
        // Pruned objects have no owner any more.
        let held = keys.into_iter().cloned().chain(run.mr().status.resources.iter().map(ResourceRef::key)).collect();
        controller.objects.register(&run.reconcile.key, held);
        // With an unknown kind, objects that should be pruned still exist. With a kind that is served only since the
        // reconcile began, the refs of its objects may have a wrong namespace.
        let complete = bundle.uncertain.is_none() && bundle.all_kinds_known();
        memory.applied = complete.then(|| Applied::of(run.mr(), &bundle.secrets).into());
        memory.failed = None;
        // Refs that the status has no room for still differ, and were announced.
        let differs = status::is_changed(&run.mr().status, &bundle.plan.references, &bundle.checksum);
        memory.announced = differs.then(|| (generation, bundle.checksum.clone()));
        memory.failing.clear();
        memory.absent.clear();
        memory.updates.forget(now, repetition(run));
        if complete || memory.period.is_none_or(|period| period <= now) {
            memory.period = Some(now + steps::period(controller, memory));
        }
    }
    let count = bundle.plan.objects.len();
    run.reconcile.note(match bundle.errors.len() {
        0 => format!("{count} objects, applied"),
        errors => format!("{count} objects, applied; {errors} documents do not decode"),
    });
    if memory.applied.is_none() {
        // Some objects were repaired and others still fail, or not everything is known: the back-off goes on.
        return Ok(Outcome::Again);
    }
    // This reconcile did not check the objects that it did not apply, and events of the others are still to come.
    Ok(steps::until_due(run, memory, now, None))
}

/// An update that changes the same paths again within this time is a repetition. A forced update comes each period.
fn repetition(run: &Run<'_>) -> Duration {
    run.controller.settings.apply.sync_period.get() * 2
}

async fn apply_objects(run: &Run<'_>, memory: &mut Memory, bundle: &Bundle, todo: &Todo, trusted: bool) -> Progress {
    let now = run.controller.env.clock.monotonic();
    let scene = Scene::new(run, bundle, trusted, todo);
    let mut failed = Vec::new();
    let candidates: Vec<&PlannedObject> =
        bundle.plan.objects.iter().filter(|object| todo.concerns(&object.key)).collect();
    for rank in order::ranks(candidates, |object| &object.key) {
        let (goes_on, unfinished) = apply_rank(&scene, memory, rank, &mut failed, now).await;
        if unfinished {
            return Progress::Unfinished;
        }
        if !goes_on {
            break;
        }
    }
    if failed.is_empty() { Progress::Complete } else { Progress::Failed(failed) }
}

/// Applies the objects of one rank. Returns whether the next rank may follow, and whether the time is up.
async fn apply_rank(
    scene: &Scene<'_>,
    memory: &mut Memory,
    rank: Vec<&PlannedObject>,
    failed: &mut Vec<(ObjectKey, ObjectError)>,
    now: Instant,
) -> (bool, bool) {
    let mut waiting = rank.into_iter().peekable();
    let mut running = FuturesUnordered::new();
    let (mut held_up, mut applied) = (false, 0);
    let mut in_work = BTreeSet::new();
    let clock = &scene.run.controller.env.clock;
    let repetition = repetition(scene.run);
    loop {
        let width = if applied < SLOW_START { 1 } else { SIDE_BY_SIDE };
        while running.len() < width && !held_up && !scene.run.should_yield(now) {
            // Two manifests of one object are applied one after the other.
            let Some(object) = waiting.next_if(|object| !in_work.contains(&object.key)) else { break };
            let manifest = scene.intent(object);
            let has_failed = memory.progress.as_ref().and_then(|progress| progress.failed.get(&object.key));
            if let Some((_, error)) = has_failed.filter(|(failed, _)| *failed == manifest) {
                failed.push((object.key.clone(), error.clone()));
                continue;
            }
            let done =
                memory.progress.as_ref().is_some_and(|progress| progress.applied.get(&object.key) == Some(&manifest));
            let known = memory.objects.get(&object.key).copied();
            let attempted = memory.failing.get(&object.key).and_then(|failing| failing.manifest);
            let forced = scene.forced(object, known.as_ref(), done);
            let look = match scene.attention(object, manifest, memory, done, now) {
                Attention::UpToDate if forced != Forced::No => Check::default(),
                Attention::UpToDate | Attention::Postponed => continue,
                Attention::Check(look) => look,
            };
            in_work.insert(object.key.clone());
            let absent = memory.absent.contains(&object.key);
            let again = look.again;
            let (begun, asked) = (clock.monotonic(), scene.run.controller.elapsed());
            let last_changed = memory.updates.last(&object.key, manifest, begun, repetition);
            let task =
                apply_object::Task { manifest, fingerprint: known, attempted, absent, forced, again, last_changed };
            running.push(async move {
                let result = apply_object::apply(scene, object, task).await;
                (object, manifest, look, (begun, asked), result)
            });
        }
        let Some((object, manifest, look, (begun, asked), result)) = running.next().await else { break };
        in_work.remove(&object.key);
        applied += 1;
        scene.learn(memory, &object.key, manifest, look, &result);
        match result {
            Ok(done) => {
                scene.run.record.writes.borrow_mut().is_right(&object.key);
                memory.failing.remove(&object.key);
                memory.progress.get_or_insert_default().has_applied(&object.key, manifest);
                memory.absent.remove(&object.key);
                if let Some(changed) = done.changed {
                    memory.updates.note(&object.key, manifest, changed, clock.monotonic());
                }
                // An object left to its other owner keeps its old fingerprint: the next period checks it.
                if let Some(cached) = done.cached {
                    let key = scene.run.controller.objects.shared(&object.key);
                    let before = memory.objects.get(&key).map(|seen| seen.sent).filter(|_| !done.sent);
                    let sent = before.unwrap_or(asked);
                    memory.remember(key, Fingerprint { manifest, content: cached.content(), sent });
                }
            }
            Err(error) => {
                scene.run.note_write(&object.key, WriteKind::failed(&error.to_string()), Causes::NONE);
                let since = memory.has_failed(&object.key, manifest, begun);
                held_up |= clock.monotonic().saturating_duration_since(since) < PATIENCE;
                let progress = memory.progress.get_or_insert_default();
                progress.failed.insert(object.key.clone(), (manifest, error.clone()));
                failed.push((object.key.clone(), error));
            }
        }
    }
    let unfinished = !held_up && waiting.peek().is_some();
    (!held_up, unfinished)
}

impl Scene<'_> {
    /// Returns whether the object is sent if it does not differ. `done`: an earlier time slice has applied it.
    fn forced(&self, object: &PlannedObject, known: Option<&Fingerprint>, done: bool) -> Forced {
        let now = self.run.controller.elapsed();
        if object.ignored {
            Forced::No
        } else if self.todo.is_forced() && !done {
            Forced::AlwaysUpdate
        } else if known.is_some_and(|known| self.run.is_due_again(&object.key, known.sent, now)) {
            Forced::Revalidation
        } else {
            Forced::No
        }
    }
}
