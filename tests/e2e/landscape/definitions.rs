//! The definition of ManagedResources is older or newer than the program (spec 71 §14, trap 16).

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};

use super::{
    DEFINITIONS, LIMIT, Landscape, NAMESPACE, STOP_LIMIT, condition,
    gardenlet::{Credentials, Gardenlet, RollOut},
    kubelet::Pod,
};
use crate::{
    objects::bundles,
    support::{Options, eventually},
};

const DEFINITION: &str = "managedresources.resources.gardener.cloud";

/// spec 71 §14, trap 16: a definition that does not know the checksum yet drops it from each status that is written. That
/// must not make the program write for ever. Fields of a newer definition are kept.
#[tokio::test]
async fn landscape_older_and_newer_definitions_cause_no_needless_write_and_lose_no_field() -> Result<()> {
    let landscape = Landscape::start(Options::default()).await?;
    edit(&landscape, |schema| {
        let status = schema.pointer_mut("/properties/status/properties").and_then(Value::as_object_mut);
        status.and_then(|fields| fields.remove("secretsDataChecksum")).map(drop).context("the checksum")
    })
    .await?;
    let mut gardenlet = Gardenlet::new(&landscape)?;
    let roll_out = RollOut { credentials: Credentials::Bootstrap, arguments: &[], settings: &[] };
    let deployment = gardenlet.roll_out(roll_out).await?;
    let mut pod = Pod::start(&landscape, &deployment).await?;
    pod.wait_ready().await?;
    eventually("bootstrapped", LIMIT, async || gardenlet.is_bootstrapped().await).await?;
    landscape.bundle(NAMESPACE, "old", None, "v").await?;
    let at_rest = healthy(&landscape, "old").await?;
    // Another bundle goes through all stages meanwhile.
    landscape.bundle(NAMESPACE, "other", None, "v").await?;
    healthy(&landscape, "other").await?;
    ensure!(healthy(&landscape, "old").await? == at_rest, "it is written again and again");

    // While it is replaced, the API server goes on to serve open watches without the new fields.
    pod.terminate(STOP_LIMIT).await?;
    edit(&landscape, |schema| {
        for part in ["spec", "status"] {
            let fields = schema.pointer_mut(&format!("/properties/{part}/properties")).and_then(Value::as_object_mut);
            fields.context("fields")?.insert("future".to_owned(), json!({ "type": "string" }));
        }
        Ok(())
    })
    .await?;
    let path = format!("{}/old", bundles(NAMESPACE));
    eventually("the field is served", LIMIT, async || {
        landscape.admin.merge(&path, &json!({ "spec": { "future": "wanted" } })).await?;
        let status = json!({ "status": { "future": "found" } });
        let written = landscape.admin.merge(&format!("{path}/status"), &status).await?;
        ensure!(written["spec"]["future"] == "wanted" && written["status"]["future"] == "found", "{written}");
        Ok(())
    })
    .await?;
    let mut pod = Pod::start(&landscape, &deployment).await?;
    pod.wait_ready().await?;
    landscape.bundle(NAMESPACE, "old", None, "w").await?;
    landscape.effect("old", "w", LIMIT).await?;
    healthy(&landscape, "old").await?;
    let bundle = landscape.admin.get(&path).await?;
    ensure!(bundle["spec"]["future"] == "wanted" && bundle["status"]["future"] == "found", "{bundle}");
    pod.ensure_alive().await
}

/// Replaces the schema of the definition.
async fn edit(landscape: &Landscape, change: impl Fn(&mut Value) -> Result<()>) -> Result<()> {
    let path = format!("{DEFINITIONS}/{DEFINITION}");
    eventually("the definition is replaced", LIMIT, async || {
        let mut definition = landscape.admin.get(&path).await?;
        change(definition.pointer_mut("/spec/versions/0/schema/openAPIV3Schema").context("a schema")?)?;
        let (code, answer) = landscape.admin.send(Method::PUT, &path, Some(&definition)).await?;
        ensure!(code == 200, "{code} {answer}");
        Ok(())
    })
    .await
}

/// Waits until all conditions are right. Returns the version of the object.
async fn healthy(landscape: &Landscape, name: &str) -> Result<Value> {
    eventually(&format!("{name} is healthy"), LIMIT, async || {
        let mut bundle = landscape.admin.get(&format!("{}/{name}", bundles(NAMESPACE))).await?;
        for (kind, status) in
            [("ResourcesApplied", "True"), ("ResourcesHealthy", "True"), ("ResourcesProgressing", "False")]
        {
            let found = condition(&bundle, kind).with_context(|| format!("no {kind}"))?;
            ensure!(found.0 == status, "{kind}: {found:?}");
        }
        ensure!(bundle["status"]["observedGeneration"] == bundle["metadata"]["generation"], "{}", bundle["status"]);
        Ok(bundle["metadata"]["resourceVersion"].take())
    })
    .await
}
