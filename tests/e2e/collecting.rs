//! The garbage collector works on many objects, while a client starts to refer to objects that it is about to delete.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::{
    objects::Admin,
    support::{ControlPlane, Grm, Options, User, eventually},
};

/// Collectable objects; `COLLECTABLE_OBJECTS` overrides it.
const OBJECTS: usize = 2_000;
const NAMESPACES: usize = 4;
const REFERENCES: usize = 50;
const LIMIT: Duration = Duration::from_secs(120);

const PACE: Duration = Duration::from_millis(50);
/// Spreads the references over the remaining objects.
const STRIDE: usize = 7919;
const DEPLOYMENT: usize = 0;

struct Deletion {
    at: Timestamp,
    /// When the collector last listed the Deployments of the namespace before that.
    looked: Option<Timestamp>,
}

struct Collectable {
    key: String,
    namespace: String,
    plural: &'static str,
    name: String,
    is_used: bool,
}

/// spec 33 §4.1-§4.3, T8 and T9: exactly the unreferenced objects are deleted, even if a reference is made meanwhile.
#[tokio::test]
async fn garbage_collection_keeps_objects_that_are_referred_to_during_the_run() -> Result<()> {
    let objects = std::env::var("COLLECTABLE_OBJECTS").map_or(Ok(OBJECTS), |objects| objects.parse())?;
    let cluster = ControlPlane::start(Options::default()).await?;
    let admin = Admin::prepare(&cluster, &namespace(0)).await?;
    for index in 1..NAMESPACES {
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace(index) } });
        admin.create("/api/v1/namespaces", &namespace).await?;
    }
    let heap: Vec<Collectable> = (0..objects).map(Collectable::new).collect();
    cluster.etcd().store(&heap.iter().map(Collectable::stored).collect::<Vec<_>>())?;
    refer_to_those_in_use(&admin, &heap).await?;
    let unused: Vec<&Collectable> = heap.iter().filter(|object| !object.is_used).collect();

    let mark = cluster.audit_mark();
    let grm = Grm::start(&cluster, json!({ "controllers": { "garbageCollector": { "enabled": true } } })).await?;
    eventually("the collector deletes", LIMIT, async || {
        ensure!(!deletions(&cluster, mark)?.is_empty(), "the collector has deleted nothing");
        Ok(())
    })
    .await?;
    let late = refer_while_it_deletes(&cluster, &admin, &grm, &unused).await?;

    let mut left = cluster.etcd().keys("configmaps/gc-")?;
    left.append(&mut cluster.etcd().keys("secrets/gc-")?);
    let lost = heap.iter().filter(|object| object.is_used && !left.contains(&object.key)).count();
    let forgotten = unused.iter().filter(|object| left.contains(&object.key) && !late.contains(&object.key)).count();
    let gone: BTreeSet<&String> = late.difference(&left).collect();
    let deletions = deletions(&cluster, mark)?;
    let references = references(&cluster, mark)?;
    let (mut early, mut longest) = (0, SignedDuration::ZERO);
    for key in &gone {
        let made = *references.get(*key).with_context(|| format!("no reference to {key} on record"))?;
        let deletion = deletions.get(*key).with_context(|| format!("no deletion of {key} on record"))?;
        let before = deletion.at.duration_since(made);
        early += usize::from(before.is_positive());
        longest = longest.max(before);
        ensure!(
            deletion.looked.is_some_and(|looked| looked < made),
            "{key} was deleted although a list came after {made}"
        );
    }
    eprintln!(
        "{objects} objects, {} in use; {} references made during the run, {} of them too late; {early} of these were made \
         before the deletion was asked for, at most {longest:#}",
        heap.len() - unused.len(),
        late.len(),
        gone.len(),
    );
    ensure!(lost == 0, "{lost} objects are gone although they were referred to from the beginning");
    ensure!(forgotten == 0, "{forgotten} objects exist although nothing refers to them");
    ensure!(!late.is_empty(), "no reference was made during the run");
    Ok(())
}

async fn refer_to_those_in_use(admin: &Admin, heap: &[Collectable]) -> Result<()> {
    for index in 0..NAMESPACES {
        let namespace = namespace(index);
        let used: Vec<&Collectable> =
            heap.iter().filter(|object| object.is_used && object.namespace == namespace).collect();
        for (number, objects) in used.chunks(REFERENCES).enumerate() {
            let (collection, holder) = holder(number, &namespace, &format!("holder-{number}"), objects);
            admin.create(&collection, &holder).await?;
        }
    }
    Ok(())
}

/// Makes references to objects that still exist, until the run is over. Returns the keys of these objects.
async fn refer_while_it_deletes(
    cluster: &ControlPlane,
    admin: &Admin,
    grm: &Grm,
    unused: &[&Collectable],
) -> Result<BTreeSet<String>> {
    let mut late = BTreeSet::new();
    let mut pace = interval(PACE);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let limit = Instant::now() + LIMIT;
    while !has_ended(grm).await? {
        ensure!(Instant::now() < limit, "the run takes longer than {LIMIT:?}");
        pace.tick().await;
        let left = cluster.etcd().keys("configmaps/gc-")?;
        // From the middle of the remaining objects, so that the collector still reaches it.
        let present: Vec<&&Collectable> =
            unused.iter().filter(|object| left.contains(&object.key) && !late.contains(&object.key)).collect();
        let Some(object) = present.get(present.len() / 2 + late.len() * STRIDE % present.len().div_ceil(2).max(1))
        else {
            continue;
        };
        let name = format!("late-{}", object.name);
        let (collection, holder) = holder(DEPLOYMENT, &object.namespace, &name, &[*object]);
        admin.create(&collection, &holder).await?;
        late.insert(object.key.clone());
    }
    Ok(late)
}

async fn has_ended(grm: &Grm) -> Result<bool> {
    let metrics = grm.metrics("/metrics").await?.body;
    let figure =
        metrics.lines().find_map(|line| line.strip_prefix("gardener_resource_manager_garbage{state=\"deleted\"} "));
    Ok(figure.is_some_and(|figure| figure != "0"))
}

fn holder(number: usize, namespace: &str, name: &str, objects: &[&Collectable]) -> (String, Value) {
    let kind = |object: &Collectable| object.plural.trim_end_matches('s').to_owned();
    // What follows the dash need not be a hash (spec 33 §2).
    let annotations: BTreeMap<String, &String> = objects
        .iter()
        .map(|object| (format!("reference.resources.gardener.cloud/{}-{}", kind(object), object.name), &object.name))
        .collect();
    let pod = json!({ "containers": [{ "name": "c", "image": "i" }] });
    let template = json!({ "metadata": { "labels": { "a": "b" } }, "spec": pod });
    let once = json!({ "template": { "spec": { "restartPolicy": "Never", "containers": pod["containers"] } } });
    let workload = json!({ "selector": { "matchLabels": { "a": "b" } }, "template": template });
    let (version, kind, plural, spec) = match number % 7 {
        DEPLOYMENT => ("apps/v1", "Deployment", "deployments", workload),
        1 => ("apps/v1", "StatefulSet", "statefulsets", workload),
        2 => ("apps/v1", "DaemonSet", "daemonsets", workload),
        3 => ("batch/v1", "Job", "jobs", once),
        4 => ("batch/v1", "CronJob", "cronjobs", json!({ "schedule": "0 0 1 1 *", "jobTemplate": { "spec": once } })),
        5 => ("v1", "Pod", "pods", pod),
        // Of a class without a controller.
        _ => {
            let spec = json!({ "class": "none", "secretRefs": [{ "name": "none" }] });
            ("resources.gardener.cloud/v1alpha1", "ManagedResource", "managedresources", spec)
        }
    };
    let metadata = json!({ "namespace": namespace, "name": name, "annotations": annotations });
    let object = json!({ "apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec });
    let root = if version == "v1" { "/api" } else { "/apis" };
    (format!("{root}/{version}/namespaces/{namespace}/{plural}"), object)
}

fn deletions(cluster: &ControlPlane, mark: u64) -> Result<BTreeMap<String, Deletion>> {
    let (mut deletions, mut looks) = (BTreeMap::new(), BTreeMap::<String, Timestamp>::new());
    for event in cluster.audit(User::Grm, mark)? {
        let received: Timestamp = event["requestReceivedTimestamp"].as_str().unwrap_or_default().parse()?;
        let (of, text) = (&event["objectRef"], |value: &Value| value.as_str().unwrap_or_default().to_owned());
        match text(&event["verb"]).as_str() {
            "list" if of["resource"] == "deployments" => {
                looks.insert(text(&of["namespace"]), received);
            }
            "delete" => {
                let key = format!("{}/{}/{}", text(&of["resource"]), text(&of["namespace"]), text(&of["name"]));
                let looked = looks.get(&text(&of["namespace"])).copied();
                deletions.insert(key, Deletion { at: received, looked });
            }
            _ => {}
        }
    }
    Ok(deletions)
}

fn references(cluster: &ControlPlane, mark: u64) -> Result<BTreeMap<String, Timestamp>> {
    let mut made = BTreeMap::new();
    for event in cluster.audit(User::Admin, mark)? {
        let of = &event["objectRef"];
        let (name, namespace) = (of["name"].as_str().unwrap_or_default(), of["namespace"].as_str().unwrap_or_default());
        if let (Some(name), true) = (name.strip_prefix("late-"), event["verb"] == "create") {
            let plural = if name.starts_with('c') { "configmaps" } else { "secrets" };
            let answered = event["stageTimestamp"].as_str().unwrap_or_default().parse()?;
            made.insert(format!("{plural}/{namespace}/{name}"), answered);
        }
    }
    Ok(made)
}

fn namespace(index: usize) -> String {
    format!("gc-{}", index % NAMESPACES)
}

impl Collectable {
    /// Half of them are ConfigMaps, half are in use, in all combinations and namespaces.
    fn new(index: usize) -> Self {
        let namespace = namespace(index);
        let (plural, letter) = [("configmaps", 'c'), ("secrets", 's')][index / NAMESPACES % 2];
        let name = format!("{letter}{index:06}");
        let key = format!("{plural}/{namespace}/{name}");
        Self { key, namespace, plural, name, is_used: (index / NAMESPACES / 2).is_multiple_of(2) }
    }

    fn stored(&self) -> (String, Value) {
        let created =
            (kit::Clock::system_wall() - SignedDuration::from_mins(30)).strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let (kind, value) = match self.plural {
            "secrets" => ("Secret", BASE64_STANDARD.encode("v")),
            _ => ("ConfigMap", "v".to_owned()),
        };
        let metadata = json!({
            "namespace": self.namespace, "name": self.name, "uid": format!("{:0>36}", self.name), "creationTimestamp": created,
            "labels": { "resources.gardener.cloud/garbage-collectable-reference": "true" },
        });
        let object = json!({ "apiVersion": "v1", "kind": kind, "metadata": metadata, "data": { "k": value }, "immutable": true });
        (self.key.clone(), object)
    }
}
