//! A cluster that is filled with bundles, for the dashboard: good and broken ones, and users who change them.
//! * `bundle.rs`: what each bundle is; `changes.rs`: what users do. Both are pure and always the same.

mod bundle;
mod changes;

use std::{collections::BTreeMap, future::pending, path::Path, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use tokio::{
    task::yield_now,
    time::{Instant, MissedTickBehavior, interval, sleep},
};

use self::{
    bundle::{Bundle, DATA_KEY, Shape},
    changes::{Change, Changes},
};
use super::{
    Missed,
    demo_object::DemoObject,
    scene::{Scene, SceneError},
    screen::{Screen, time},
};
use crate::api::resources::{condition_names, keys::IGNORE};

const AT_ONCE: usize = 100; // bundles that are stored before other tasks run
const LOOK: Duration = Duration::from_millis(500);
const PROGRESS: Duration = Duration::from_secs(5); // time between two lines about the progress
const STALLED: Duration = Duration::from_secs(60); // time without progress after which the demonstration fails

pub(super) fn prologue(screen: &Screen, log: &Path, count: usize) {
    screen.title(&format!("gardener-resource-manager: a cluster with {}", plural(count)));
    screen.say(
        "This runs the program as it runs in production, but against a Kubernetes API in the memory of this process. \
         Each request takes 1 ms, and their rate is not limited. Nothing outside of this process changes.",
    );
    screen.say(&format!("The program's log is in {}", log.display()));
}

/// Fills the cluster and waits until the program has looked at each bundle.
pub(super) async fn fill(scene: &Scene, screen: &Screen, count: usize) -> Result<(), Missed> {
    let bundles = || (0..count).map(|number| Bundle { number });
    let begin = Instant::now();
    for bundle in bundles() {
        store(scene, bundle)?;
        if bundle.number % AT_ONCE == 0 {
            yield_now().await;
        }
    }
    screen.say(&format!("The cluster has {} now ({}). The program starts.", plural(count), time(begin.elapsed())));
    scene.start()?;
    screen.detail(&format!("dashboard: {}", scene.url("/dashboard")));
    screen.detail(&format!("metrics:   {}", scene.url("/metrics")));

    let begin = Instant::now();
    reconciled(scene, screen, count).await?;
    let took = begin.elapsed();
    for bundle in bundles() {
        finish(scene, bundle).await?;
    }
    screen.say(&format!("Each bundle was reconciled within {}. What the conditions say:", time(took)));
    for (reason, bundles) in reasons(scene) {
        screen.detail(&format!("{bundles:>6}  {reason}"));
    }
    Ok(())
}

/// Changes something now and then, for ever.
pub(super) async fn live(scene: &Scene, count: usize, change_interval: Option<Duration>) {
    let Some(pause) = change_interval else { return pending().await };
    let mut ticks = interval(pause);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for change in Changes::of(count) {
        ticks.tick().await;
        // A change may fail, for example because the object is just being created again; the next one follows.
        carry_out(scene, change).await.ok();
    }
}

fn store(scene: &Scene, bundle: Bundle) -> Result<(), SceneError> {
    let before = bundle.first_of_namespace().into_iter().chain(bundle.secret());
    before.chain([bundle.managed_resource()]).try_for_each(|object| scene.put(object))
}

async fn reconciled(scene: &Scene, screen: &Screen, count: usize) -> Result<(), Missed> {
    let begin = Instant::now();
    let (mut best, mut since, mut told) = (0, begin, begin);
    loop {
        sleep(LOOK).await;
        let done = scene.managed_resources(is_reconciled).into_iter().filter(|done| *done).count();
        if done == count && scene.is_rolled_out() {
            return Ok(());
        }
        if done > best {
            (best, since) = (done, Instant::now());
        }
        if since.elapsed() >= STALLED {
            let found = format!("{done} are, and no other one within {}", time(STALLED));
            return Err(Missed::new(format!("{} are reconciled", plural(count)), found));
        }
        if told.elapsed() >= PROGRESS {
            told = Instant::now();
            screen.detail(&format!("{done} of {count} after {}", time(begin.elapsed())));
        }
    }
}

/// Returns true for a result, good or bad. A bundle without its Secret never has an observed generation.
fn is_reconciled(mr: &Value) -> bool {
    condition(mr, condition_names::RESOURCES_APPLIED).is_some_and(|applied| applied["status"] != "Progressing")
}

fn condition<'a>(mr: &'a Value, name: &str) -> Option<&'a Value> {
    mr["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == name)
}

/// Counts the bundles by what is wrong with them.
fn reasons(scene: &Scene) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for reason in scene.managed_resources(reason) {
        *counts.entry(reason).or_default() += 1;
    }
    counts
}

fn reason(mr: &Value) -> String {
    let is_being_deleted = mr["metadata"]["deletionTimestamp"].is_string();
    let text = |name, field: &str| condition(mr, name).and_then(|it| it[field].as_str()).unwrap_or_default().to_owned();
    let applied = text(condition_names::RESOURCES_APPLIED, "reason");
    if is_being_deleted {
        "being deleted".to_owned()
    } else if mr["metadata"]["annotations"][IGNORE].is_string() {
        "ignored or suspended".to_owned()
    } else if applied == condition_names::APPLY_SUCCEEDED
        && text(condition_names::RESOURCES_HEALTHY, "status") != "True"
    {
        format!("{applied}, but not healthy")
    } else {
        applied
    }
}

/// Does what makes a bundle special after it was applied.
async fn finish(scene: &Scene, bundle: Bundle) -> Result<(), Missed> {
    let namespace = bundle.namespace();
    let mr = DemoObject::managed_resource(&namespace, bundle.name());
    match bundle.shape() {
        Shape::Suspended => {
            scene.patch(mr, &json!({"metadata": {"annotations": {IGNORE: "true"}}})).await?;
        }
        Shape::Held => scene.delete(mr).await?,
        _ => {}
    }
    Ok(())
}

async fn carry_out(scene: &Scene, change: Change) -> Result<(), Missed> {
    let secret = async |bundle: Bundle, manifests: String| {
        let (namespace, name) = (bundle.namespace(), bundle.secret_name());
        let patch = json!({"data": {DATA_KEY: BASE64_STANDARD.encode(manifests)}});
        scene.patch(DemoObject::core("secrets", &namespace, &name), &patch).await.map(drop)
    };
    match change {
        Change::Edit(bundle) => {
            let (namespace, name) = (bundle.namespace(), bundle.settings());
            let patch = json!({"data": {"log-level": "debug"}});
            scene.patch(DemoObject::core("configmaps", &namespace, &name), &patch).await.map(drop)
        }
        Change::Delete(bundle) => {
            let (namespace, name) = (bundle.namespace(), bundle.settings());
            scene.delete(DemoObject::core("configmaps", &namespace, &name)).await
        }
        Change::Release(bundle, release) => secret(bundle, bundle.manifests(release)).await,
        Change::Break(bundle, release) => secret(bundle, bundle.broken_manifests(release)).await,
        Change::Restart(bundle, release) => {
            let namespace = bundle.namespace();
            let place = DemoObject::apps("deployments", &namespace, bundle.name());
            let annotations = json!({"kubectl.kubernetes.io/restartedAt": release.to_string()});
            let patch = json!({"spec": {"template": {"metadata": {"annotations": annotations}}}});
            scene.patch(place, &patch).await.map(drop)
        }
    }
}

fn plural(bundles: usize) -> String {
    if bundles == 1 { "1 bundle".to_owned() } else { format!("{bundles} bundles") }
}
