//! Roll-outs: kills of the program during a roll-out, and the manager of the fields it wrote.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::{
    objects::{Admin, bundles, core, is_applied, managed_resource, objects, secret},
    support::{ControlPlane, Grm, Options, eventually},
};

const NAMESPACE: &str = "roll-out";
const BUNDLES: usize = 20;
const OBJECTS: usize = 10;
const KILLS: usize = 10;
const LIMIT: Duration = Duration::from_secs(60);

type Content = BTreeMap<String, String>;

/// faults rows 1 and 2: a crash between any two writes loses and leaks nothing.
#[tokio::test]
async fn crash_ten_times_during_a_roll_out_ends_in_the_same_state() -> Result<()> {
    let cluster = ControlPlane::start(Options::default()).await?;
    let admin = Admin::prepare(&cluster, NAMESPACE).await?;
    for index in 0..BUNDLES {
        let name = format!("bundle-{index}");
        admin.create(&core(NAMESPACE, "secrets"), &secret(NAMESPACE, &name, &manifests(index, 0))).await?;
        admin.create(&bundles(NAMESPACE), &managed_resource(NAMESPACE, &name)).await?;
    }
    let config = json!({ "controllers": { "managedResource": { "concurrentSyncs": 5 } } });
    let mut grm = Grm::start(&cluster, config).await?;

    for kill in 1..=KILLS {
        for index in 0..BUNDLES {
            let name = format!("bundle-{index}");
            let path = format!("{}/{name}", core(NAMESPACE, "secrets"));
            admin.replace(&path, &secret(NAMESPACE, &name, &manifests(index, kill))).await?;
        }
        // The roll-out is under way as soon as one object shows it. Later kills come a little later each.
        eventually("the roll-out has begun", LIMIT, async || {
            let content = content(&admin).await?;
            let changed = content.values().filter(|value| **value == kill.to_string()).count();
            ensure!(changed > kill * BUNDLES / 2, "{changed} objects are changed");
            Ok(())
        })
        .await?;
        grm.restart().await?;

        eventually(&format!("the state after kill {kill}"), LIMIT, async || {
            let (content, expected) = (content(&admin).await?, expected(kill));
            ensure!(content == expected, "{} of {} objects are right", right(&content, &expected), expected.len());
            applied(&admin).await
        })
        .await?;
    }
    Ok(())
}

/// spec 70 scenario 35: the manager of the fields names the program.
#[tokio::test]
async fn managed_fields_name_the_program_as_manager() -> Result<()> {
    const OF_ONE: &str = "managers";
    let cluster = ControlPlane::start(Options::default()).await?;
    let admin = Admin::prepare(&cluster, OF_ONE).await?;
    admin.create(&core(OF_ONE, "secrets"), &secret(OF_ONE, "bundle", &objects(OF_ONE, "a", "1"))).await?;
    admin.create(&bundles(OF_ONE), &managed_resource(OF_ONE, "bundle")).await?;

    let grm = Grm::start(&cluster, json!({})).await?;
    eventually("the ManagedResource is applied", LIMIT, async || {
        ensure!(
            is_applied(&admin.get(&format!("{}/bundle", bundles(OF_ONE))).await?),
            "the ManagedResource is not applied"
        );
        Ok(())
    })
    .await?;

    // Created by the program alone.
    for kind in ["configmaps", "secrets", "services"] {
        let object = admin.get(&format!("{}/a", core(OF_ONE, kind))).await?;
        ensure!(managers(&object) == [("gardener-resource-manager", "")], "{kind}: {:?}", managers(&object));
    }
    // Created by another client: the program added its finalizer, and wrote the status.
    let bundle = admin.get(&format!("{}/bundle", bundles(OF_ONE))).await?;
    for part in ["", "status"] {
        let expected = ("gardener-resource-manager", part);
        ensure!(managers(&bundle).contains(&expected), "no {expected:?} among {:?}", managers(&bundle));
    }
    drop(grm);
    Ok(())
}

fn managers(object: &Value) -> Vec<(&str, &str)> {
    let entries = object["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    entries
        .iter()
        .map(|entry| (entry["manager"].as_str().unwrap_or_default(), entry["subresource"].as_str().unwrap_or_default()))
        .collect()
}

fn manifests(bundle: usize, step: usize) -> Vec<Value> {
    let kept = (0..OBJECTS).filter(|object| *object != step % OBJECTS);
    kept.flat_map(|object| objects(NAMESPACE, &name(bundle, object), &step.to_string())).collect()
}

fn name(bundle: usize, object: usize) -> String {
    format!("b{bundle}-o{object}")
}

fn expected(step: usize) -> Content {
    let mut expected = Content::new();
    for bundle in 0..BUNDLES {
        for object in (0..OBJECTS).filter(|object| *object != step % OBJECTS) {
            for kind in ["configmaps", "secrets", "services"] {
                expected.insert(format!("{kind}/{}", name(bundle, object)), step.to_string());
            }
        }
    }
    expected
}

async fn content(admin: &Admin) -> Result<Content> {
    let mut content = Content::new();
    for (kind, pointer) in
        [("configmaps", "/data/k"), ("secrets", "/data/k"), ("services", "/metadata/annotations/value")]
    {
        for object in admin.list(&core(NAMESPACE, kind)).await? {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let value = object.pointer(pointer).and_then(|value| value.as_str()).unwrap_or_default();
            if name.starts_with('b') && !name.starts_with("bundle-") {
                content.insert(format!("{kind}/{name}"), decoded(kind, value));
            }
        }
    }
    Ok(content)
}

fn decoded(kind: &str, value: &str) -> String {
    use base64::{Engine, prelude::BASE64_STANDARD};
    if kind != "secrets" {
        return value.to_owned();
    }
    BASE64_STANDARD.decode(value).ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

fn right(content: &Content, expected: &Content) -> usize {
    expected.iter().filter(|(name, value)| content.get(*name) == Some(*value)).count()
}

async fn applied(admin: &Admin) -> Result<()> {
    for bundle in admin.list(&bundles(NAMESPACE)).await? {
        let refs = bundle["status"]["resources"].as_array().map(Vec::len).unwrap_or_default();
        let (name, conditions) = (&bundle["metadata"]["name"], &bundle["status"]["conditions"]);
        ensure!(is_applied(&bundle) && refs == (OBJECTS - 1) * 3, "{name} has {refs} refs: {conditions}");
    }
    Ok(())
}
