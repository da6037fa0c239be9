use std::{future::pending, path::Path, time::Duration};

use futures::{FutureExt as _, try_join};
use kit::ActorState;
use process::PATIENCE;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    Missed, Seen, Step, beyond_bundles,
    demo_object::DemoObject,
    examples::{self, BROKEN, MONITORING, NAMESPACE, WEBAPP},
    scene::{Scene, rests},
    screen::time,
    stage::Stage,
};
use crate::api::resources::condition_names::{APPLY_SUCCEEDED, DECODING_FAILED, DELETION_PENDING};

pub(super) const STORY: [Step<Stage>; 14] = [
    Step { title: "The program starts", play: |stage| start(stage).boxed_local() },
    Step { title: "Two bundles are applied", play: |stage| apply(stage).boxed_local() },
    Step { title: "An object is edited by hand", play: |stage| edit(stage).boxed_local() },
    Step { title: "An object is deleted by hand", play: |stage| delete(stage).boxed_local() },
    Step { title: "A manifest does not decode", play: |stage| mistake(stage).boxed_local() },
    Step { title: "An object leaves its bundle", play: |stage| prune(stage).boxed_local() },
    Step { title: "A token is requested", play: |stage| beyond_bundles::token(stage).boxed_local() },
    Step { title: "A Service gets its policies", play: |stage| beyond_bundles::policies(stage).boxed_local() },
    Step { title: "A certificate is approved", play: |stage| beyond_bundles::certificate(stage).boxed_local() },
    Step { title: "A webhook changes a Pod", play: |stage| beyond_bundles::webhook(stage).boxed_local() },
    Step { title: "An actor panics", play: |stage| panic(stage).boxed_local() },
    Step { title: "The program starts again", play: |stage| restart(stage).boxed_local() },
    Step { title: "A bundle is deleted", play: |stage| leave(stage).boxed_local() },
    Step { title: "Garbage is collected", play: |stage| beyond_bundles::garbage(stage).boxed_local() },
];

const SETTINGS: DemoObject<'static> = DemoObject::core("configmaps", "webshop", "webapp-settings");
const SERVICE: DemoObject<'static> = DemoObject::core("services", "webshop", "webapp");
const RECEIVERS: DemoObject<'static> = DemoObject::core("configmaps", NAMESPACE, "alert-receivers");
const MORNING: DemoObject<'static> = DemoObject::core("configmaps", NAMESPACE, "colour-of-morning");
const NOON: DemoObject<'static> = DemoObject::core("configmaps", NAMESPACE, "colour-of-noon");
const EVENING: DemoObject<'static> = DemoObject::core("configmaps", NAMESPACE, "colour-of-evening");
const ROLE: DemoObject<'static> =
    DemoObject { api_version: "rbac.authorization.k8s.io/v1", resource: "roles", namespace: "webshop", name: "webapp" };
const ALERT: DemoObject<'static> = DemoObject {
    api_version: "monitoring.example.com/v1",
    resource: "alertrules",
    namespace: NAMESPACE,
    name: "webapp-is-down",
};

pub(super) fn prologue(stage: &Stage, log: &Path) {
    let screen = &stage.screen;
    screen.title("gardener-resource-manager: a demonstration");
    screen.say(
        "This runs the program as it runs in production, but against a Kubernetes API in the memory of this process. \
         Each request takes 1 ms. Nothing outside of this process changes.",
    );
    screen.say(&format!("The program's log is in {}", log.display()));
}

pub(super) fn epilogue(stage: &Stage) {
    stage.screen.say("With --keep it stays up after the last step, so that you can look at the dashboard.");
}

async fn start(Stage { scene, screen }: &Stage) -> Result<Seen, Missed> {
    screen.say("The cluster serves ManagedResources, but has none yet. The program opens its watches.");
    let (begin, mark) = (Instant::now(), scene.mark());
    scene.start()?;
    scene.ready().await?;
    let took = begin.elapsed();
    scene.until_idle().await?;
    screen.detail(&format!("dashboard: {}", scene.url("/dashboard")));
    screen.detail(&format!("metrics:   {}", scene.url("/metrics")));
    let (actors, requests) = (scene.actor_count(), scene.journal(mark).counts());
    screen.detail(&requests);
    Ok(Seen { what: format!("ready, {actors} actors"), took })
}

async fn apply(Stage { scene, screen }: &Stage) -> Result<Seen, Missed> {
    screen.say("A ManagedResource names Secrets. The Secrets hold its bundle: the manifests of its objects.");
    screen.say("These two are those of config/examples. Each ManagedResource gets an actor of its own.");
    screen.command("kubectl create secret generic example-webapp --from-file=config/examples/webapp");
    screen.command("kubectl create secret generic example-monitoring --from-file=config/examples/monitoring");
    screen.command("kubectl apply -f config/examples/managedresources.yaml   # broken comes later");
    let mark = scene.mark();
    let bundle = async |example: &examples::Example| {
        scene.apply(example).await?;
        let begin = Instant::now();
        scene.reports(example.name, APPLY_SUCCEEDED).await?;
        Ok::<_, Missed>(begin.elapsed())
    };
    let (webapp, monitoring) = try_join!(bundle(&WEBAPP), bundle(&MONITORING))?;
    scene.until_idle().await?;
    let journal = scene.journal(mark);
    let mut objects = 0;
    for (example, took) in [(WEBAPP, webapp), (MONITORING, monitoring)] {
        let created = scene.creations(&journal, example.name);
        objects += created.len();
        screen.say(&format!("Bundle {} was applied in {}, in this order:", example.name, time(took)));
        screen.detail(&created.join(" → "));
    }
    screen.say(
        "The order follows the kinds, not the files: the alert rule precedes its definition in the files, and waits until \
         the API server serves its kind. The program asks for the served kinds at most once a second.",
    );
    screen.detail(&journal.counts());
    let what = format!("{objects} objects applied, {} requests", journal.len());
    Ok(Seen { what, took: webapp.max(monitoring) })
}

async fn edit(Stage { scene, screen }: &Stage) -> Result<Seen, Missed> {
    screen.say("Somebody changes a setting. The bundle says log-level: info.");
    screen.command("kubectl -n webshop patch configmap webapp-settings -p '{\"data\":{\"log-level\":\"debug\"}}'");
    let mark = scene.mark();
    let took = repaired(scene, SETTINGS, "/data/log-level", "debug").await?;
    scene.until_idle().await?;
    screen.detail(&scene.journal(mark).counts());
    Ok(Seen { what: "log-level is info again".to_owned(), took })
}

/// Edits a field by hand, waits until it has its old value, and returns the time.
async fn repaired(scene: &Scene, place: DemoObject<'_>, field: &str, value: &str) -> Result<Duration, Missed> {
    let before = scene.text(place, field);
    let patch = field
        .split('/')
        .skip(1)
        .collect::<Vec<_>>()
        .into_iter()
        .rfold(json!(value), |inner, name| json!({ name: inner }));
    let edited = scene.patch(place, &patch).await?;
    let begin = Instant::now();
    let expected = format!("{field} of {}/{} is {before:?} again", place.resource, place.name);
    scene
        .wait(&expected, || {
            let (now, version) = (scene.text(place, field), scene.text(place, "/metadata/resourceVersion"));
            let done = now == before && edited["metadata"]["resourceVersion"] != version.as_str();
            if done { Ok(()) } else { Err(format!("{now:?}")) }
        })
        .await?;
    Ok(begin.elapsed())
}

async fn delete(Stage { scene, screen }: &Stage) -> Result<Seen, Missed> {
    screen.say("Somebody deletes the Service of the application.");
    screen.command("kubectl -n webshop delete service webapp");
    let mark = scene.mark();
    let took = scene.replaced(SERVICE).await?;
    scene.until_idle().await?;
    screen.detail(&scene.journal(mark).counts());
    Ok(Seen { what: "the Service is there again".to_owned(), took })
}

async fn mistake(Stage { scene, screen }: &Stage) -> Result<Seen, Missed> {
    screen.say("A third bundle has three ConfigMaps: the colours of morning, noon and evening. All is well.");
    let bundle = BROKEN.name;
    scene.create(DemoObject::secret(BROKEN.secret), &examples::colours(examples::before_the_mistake())).await?;
    scene.create(DemoObject::bundle(bundle), &BROKEN.managed_resource()).await?;
    scene.reports(bundle, APPLY_SUCCEEDED).await?;
    scene.until_idle().await?;

    screen.say("Then somebody paints the evening red, and slips in the indentation of noon. They save both.");
    screen.command(
        "kubectl create secret generic example-broken --from-file=config/examples/broken --dry-run=client -o yaml | \
         kubectl apply -f -",
    );
    let (mark, secret) = (scene.mark(), DemoObject::secret(BROKEN.secret));
    scene.patch(secret, &BROKEN.secret()).await?;
    let begin = Instant::now();
    let condition = scene.reports(bundle, DECODING_FAILED).await?;
    let took = begin.elapsed();
    screen.say("The condition of the ManagedResource says which document it is:");
    screen.detail("type: ResourcesApplied");
    screen.detail(&format!("status: {}", condition.status));
    screen.detail(&format!("reason: {}", condition.reason));
    screen.detail(&format!("message: {}", condition.message));

    scene.until_idle().await?;
    let colours = || [MORNING, NOON, EVENING].map(|place| scene.text(place, "/data/colour"));
    let (found, deleted) = (colours(), scene.journal(mark).deleted());
    if found != ["grey", "white", "red"] || !deleted.is_empty() {
        let found = format!("colours {found:?}; deleted: {deleted:?}");
        return Err(Missed::new("the evening is red, the noon is still there, nothing was deleted", found));
    }
    screen.say("What decodes is applied: the evening is red.");
    screen.say("Nothing is deleted: noon is in no document that decodes, but it is still there.");

    screen.say("The file is mended.");
    scene.patch(secret, &examples::colours(examples::mended())).await?;
    let condition = scene.reports(bundle, APPLY_SUCCEEDED).await?;
    screen.detail(&format!("{}: {}", condition.reason, condition.message));
    scene.until_idle().await?;
    Ok(Seen { what: "reported; the rest applied, nothing deleted".to_owned(), took })
}

async fn prune(Stage { scene, screen }: &Stage) -> Result<Seen, Missed> {
    screen.say("The evening is removed from the file. All documents decode now, so the object is pruned.");
    let mark = scene.mark();
    scene.patch(DemoObject::secret(BROKEN.secret), &examples::colours(examples::without_the_evening())).await?;
    let begin = Instant::now();
    scene
        .wait("configmaps/colour-of-evening is gone", || match scene.object(EVENING) {
            None => Ok(()),
            Some(_) => Err(format!("it is there; {:?}", scene.condition(BROKEN.name))),
        })
        .await?;
    let took = begin.elapsed();
    scene.reports(BROKEN.name, APPLY_SUCCEEDED).await?;
    scene.until_idle().await?;
    let journal = scene.journal(mark);
    screen.detail(&journal.writes().join(" → "));
    let deleted: Vec<_> = journal.deleted().into_iter().map(|(_, name)| name).collect();
    match deleted.as_slice() {
        [only] => Ok(Seen { what: format!("{only} deleted, nothing else"), took }),
        more => Err(Missed::new("one object is deleted", format!("deleted: {more:?}"))),
    }
}

async fn panic(Stage { scene, screen }: &Stage) -> Result<Seen, Missed> {
    screen.say(
        "The demonstration itself now throws a panic: its observer of requests, which the program calls during a \
         reconcile, panics once, when the actor of monitoring has repaired an object.",
    );
    screen.command("kubectl patch configmap alert-receivers -p '{\"data\":{\"receivers.yaml\":\"none\"}}'");
    let before = scene.actor(MONITORING.name).map_or(0, |actor| actor.finished);
    let begin = Instant::now();
    scene.sabotage();
    scene.patch(RECEIVERS, &json!({"data": {"receivers.yaml": "none"}})).await?;
    let panicked = scene
        .wait("the status registry shows the panic of monitoring", || match scene.actor(MONITORING.name) {
            Some(actor) if last_error(&actor).contains("panicked") => Ok(actor),
            other => Err(format!("{other:?}")),
        })
        .await?;
    screen.say("The supervisor caught it. The status registry (dashboard) shows the actor:");
    screen.detail(&format!("{}   last error: {}", panicked.path, last_error(&panicked)));
    scene.nonzero_series("controller_runtime_reconcile_panics_total").iter().for_each(|series| screen.detail(series));
    screen.say("The other ManagedResources go on.");
    screen.command("kubectl -n webshop delete role webapp");
    let others = scene.replaced(ROLE).await?;
    screen.detail(&format!("it exists again after {}", time(others)));

    let recovered = scene
        .wait("the actor of monitoring has reconciled again", || match scene.actor(MONITORING.name) {
            Some(actor) if actor.finished >= before + 2 && rests(&actor) => Ok(actor),
            other => Err(format!("{other:?}")),
        })
        .await?;
    let took = begin.elapsed();
    screen.say(&format!(
        "It reconciles again after a short back-off, reads everything anew and goes on: {}. To be sure, the alert rule is \
         edited, too.",
        recovered.line
    ));
    let again = repaired(scene, ALERT, "/spec/severity", "warning").await?;
    screen.detail(&format!("severity is critical again after {}", time(again)));
    scene.until_idle().await?;
    Ok(Seen { what: "shown, others went on, the bundle recovered".to_owned(), took })
}

fn last_error(actor: &ActorState) -> &str {
    actor.last_error.as_ref().map_or("", |(_, text)| text)
}

async fn restart(Stage { scene, screen }: &Stage) -> Result<Seen, Missed> {
    screen.say("The program stops and starts again. Nothing has changed meanwhile, and it remembers nothing.");
    scene.stop(PATIENCE).await;
    let (begin, mark) = (Instant::now(), scene.mark());
    scene.start()?;
    scene.ready().await?;
    scene.until_idle().await?;
    let took = begin.elapsed();
    let journal = scene.journal(mark);
    screen.say("It lists each kind once and compares. Nothing differs, so it writes nothing.");
    screen.say(
        "A create is the question whether the scraper's token is still valid: a TokenReview, which stores nothing.",
    );
    screen.detail(&journal.counts());
    screen.detail(&format!("dashboard: {}", scene.url("/dashboard")));
    let writes = journal.writes();
    if writes.is_empty() {
        Ok(Seen { what: format!("{} requests, no write", journal.len()), took })
    } else {
        Err(Missed::new("no write is sent", writes.join(", ")))
    }
}

async fn leave(Stage { scene, screen }: &Stage) -> Result<Seen, Missed> {
    screen.say("The ManagedResource webapp is deleted. Its finalizer keeps it until its objects are gone.");
    screen.command("kubectl delete managedresource webapp");
    let (mark, bundle) = (scene.mark(), DemoObject::bundle(WEBAPP.name));
    scene.delete(bundle).await?;
    let begin = Instant::now();
    let pending = scene
        .wait("ManagedResource webapp says what it waits for", || match scene.condition(WEBAPP.name) {
            Some(condition) if condition.reason == DELETION_PENDING && condition.message.contains("webshop") => {
                Ok(condition.message)
            }
            other => Err(format!("{other:?}")),
        })
        .await?;
    screen.say(&format!("After {} its condition names the remaining objects:", time(begin.elapsed())));
    screen.detail(&pending);
    screen.say("A Namespace takes time: the control plane finishes its deletion after 5 s, here as in a real cluster.");
    scene
        .wait("ManagedResource webapp is gone", || match scene.object(bundle) {
            None => Ok(()),
            Some(_) => Err(format!("it is there; {:?}", scene.condition(WEBAPP.name))),
        })
        .await?;
    let took = begin.elapsed();
    let left: Vec<_> = [SETTINGS, SERVICE, ROLE].into_iter().filter(|place| scene.object(*place).is_some()).collect();
    scene.until_idle().await?;
    let journal = scene.journal(mark);
    let deleted = journal.deleted();
    let names: Vec<_> = deleted.iter().map(|(_, name)| name.as_str()).collect();
    screen.say("The objects were deleted first, in reverse order; then the finalizer was removed:");
    screen.detail(&names.join(" → "));
    let released = journal.last_change_of(WEBAPP.name);
    let in_order = deleted.last().map(|(number, _)| *number) < released;
    if left.is_empty() && in_order && !deleted.is_empty() {
        Ok(Seen { what: format!("{} objects deleted, then the ManagedResource", deleted.len()), took })
    } else {
        let found = format!("deleted: {deleted:?}, released by request {released:?}, left: {left:?}");
        Err(Missed::new("the objects are deleted before the finalizer is removed", found))
    }
}

/// Applies the deleted bundle again, and changes something now and then, for ever.
pub(super) async fn live(Stage { scene, .. }: &Stage, change_interval: Option<Duration>) {
    // An action may fail, for example because the object does not exist again yet; the loop goes on.
    scene.delete(DemoObject::secret(WEBAPP.secret)).await.ok();
    scene.apply(&WEBAPP).await.ok();
    let Some(pause) = change_interval else { return pending().await };
    for act in 0_usize.. {
        sleep(pause).await;
        something(scene, act).await.ok();
    }
}

async fn something(scene: &Scene, act: usize) -> Result<(), Missed> {
    let colours = DemoObject::secret(BROKEN.secret);
    match act % 6 {
        0 => scene.patch(SETTINGS, &json!({"data": {"log-level": "debug"}})).await.map(drop),
        1 => scene.delete(SERVICE).await,
        2 => scene.patch(colours, &BROKEN.secret()).await.map(drop),
        3 => scene.patch(ALERT, &json!({"spec": {"severity": "warning"}})).await.map(drop),
        4 => scene.patch(colours, &examples::colours(examples::mended())).await.map(drop),
        _ => scene.patch(NOON, &json!({"data": {"colour": "black"}})).await.map(drop),
    }
}
