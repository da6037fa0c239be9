//! A hosted instance from its first start to its last, with the rights of spec 71 §5.1.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context, Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::SignedDuration;
use serde_json::json;
use tokio::time::Instant;

use super::{
    FAILOVER_LIMIT, LIMIT, Landscape, NAME, NAMESPACE, SOURCE_USER, STOP_LIMIT, TARGET_USER,
    gardenlet::{Credentials, Gardenlet, RollOut},
    kubelet::Pod,
    logs::sources,
    rendered, scrape,
};
use crate::{
    objects::core,
    support::{Options, eventually},
};

/// What gardenlet allows for a bootstrap (spec 71 §8).
const BOOTSTRAP_LIMIT: Duration = Duration::from_secs(120);
/// The shortest periods that the configuration allows, so that all of them pass.
const SHORT_PERIODS: [(&str, &str); 3] = [
    ("syncPeriod: 12h0m0s", "syncPeriod: 15s"),
    ("syncPeriod: 1h0m0s", "syncPeriod: 15s"),
    ("syncPeriod: 1m0s", "syncPeriod: 15s"),
];
const UNUSED: &str = "unused-00000000";
const AUTHORIZER: &str = "/webhooks/auth/nodeagent";
const CONFIGURATION: &str =
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/gardener-resource-manager-shoot";

/// spec 71 scenarios 1, 2, 5, 8, 9, 12, 16, 17, 18, 19 and 25; §8 R1, R3. The periods of scenario 2 are shortened.
#[tokio::test]
async fn landscape_hosted_instance_lives_with_the_role_of_its_deployer() -> Result<()> {
    let landscape = Landscape::start(Options::default()).await?;
    let mut gardenlet = Gardenlet::new(&landscape)?;
    work_for_all_controllers(&landscape).await?;
    let bootstrap = RollOut { credentials: Credentials::Bootstrap, arguments: &[], settings: &SHORT_PERIODS };
    let deployment = gardenlet.roll_out(bootstrap).await?;

    let begin = Instant::now();
    let mut former = Pod::start(&landscape, &deployment).await?;
    eventually("bootstrapped", BOOTSTRAP_LIMIT, async || gardenlet.is_bootstrapped().await).await?;
    println!("bootstrapped after {:.2?}", begin.elapsed());
    garbage_collected(&former, 1.0).await?;
    let unused = format!("{}/{UNUSED}", core("foo", "configmaps"));
    landscape.admin.get(&unused).await.context("its namespace is out of sight")?;

    gardenlet.rotate_authority()?;
    let arguments = ["--extra-target-namespace=foo"];
    let regular = RollOut { credentials: Credentials::Token, arguments: &arguments, settings: &SHORT_PERIODS };
    let deployment = gardenlet.roll_out(regular).await?;
    let mut pod = Pod::start(&landscape, &deployment).await?;
    pod.wait_ready().await?;
    hand_over(&landscape, &mut former).await?;
    new_authority_serves(&landscape, &gardenlet, &pod).await?;
    let scraped = pod.metrics().await?;
    ensure!(scraped.contains("controller_runtime_reconcile_total"), "no metrics: {scraped}");
    landscape.gone(&unused, LIMIT).await?;
    garbage_collected(&pod, 2.0).await?;
    let secret = landscape.admin.get(&format!("{}/agent", core(NAMESPACE, "secrets"))).await?;
    ensure!(secret["data"]["token"].is_string(), "no token for another program");
    gardenlet.is_bootstrapped().await?;

    scale_to_zero(&landscape, &mut pod).await?;
    for log in [former.log(), pod.log()] {
        ensure!(!log.contains("orbidden"), "{log}");
        ensure!(sources(&log)?.iter().any(|source| source.starts_with("managed-resource")), "no logger: {log}");
    }
    only_its_own_lease(&landscape)?;
    ensure!(landscape.refused(SOURCE_USER)?.is_empty(), "{:#?}", landscape.refused(SOURCE_USER)?);
    ensure!(!landscape.cluster.audit_of(TARGET_USER, 0)?.is_empty(), "the token was not used");
    Ok(())
}

/// spec 71 scenario 19, §11: the rules of the ServiceMonitor
#[test]
fn landscape_scrape_gives_series_the_name_of_the_job_and_the_label_of_the_service() -> Result<()> {
    let (series, port) = scrape::target(&rendered::read(rendered::HOSTED)?)?;

    assert_eq!(port, 8080);
    assert_eq!((series["job"].as_str(), series["app"].as_str()), (NAME, NAME));
    Ok(())
}

/// Waits until the collector has run this often.
async fn garbage_collected(pod: &Pod<'_>, often: f64) -> Result<()> {
    eventually("the garbage collector has run", LIMIT, async || {
        let runs = runs(&pod.metrics().await?, "garbage-collector");
        ensure!(runs >= often, "{runs} runs");
        Ok(())
    })
    .await
}

/// A Machine and its Node, a token of another program, a bundle, and garbage in the namespace of an extension.
async fn work_for_all_controllers(landscape: &Landscape) -> Result<()> {
    let machine = json!({
        "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine",
        "metadata": { "namespace": NAMESPACE, "name": "m", "labels": { "node": "n" } }
    });
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n" } });
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "namespace": NAMESPACE, "name": "agent",
            "labels": {
                "resources.gardener.cloud/purpose": "token-requestor", "resources.gardener.cloud/class": "shoot"
            },
            "annotations": {
                "serviceaccount.resources.gardener.cloud/name": "agent",
                "serviceaccount.resources.gardener.cloud/namespace": "kube-system"
            }
        }
    });
    for object in [machine, node, secret] {
        landscape.apply(&object).await?;
    }
    let created =
        (kit::Clock::system_wall() - SignedDuration::from_mins(30)).strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let unused = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "immutable": true,
        "metadata": {
            "namespace": "foo", "name": UNUSED, "uid": format!("{UNUSED:0>36}"), "creationTimestamp": created,
            "labels": { "resources.gardener.cloud/garbage-collectable-reference": "true" }
        }
    });
    // The API server would set the time.
    landscape.cluster.etcd().store(&[(format!("configmaps/foo/{UNUSED}"), unused)])?;
    landscape.bundle(NAMESPACE, "before", None, "v").await
}

/// The leader stops while another Pod is ready, which reconciles within a few seconds.
async fn hand_over(landscape: &Landscape, former: &mut Pod<'_>) -> Result<()> {
    let holder = landscape.lease(NAMESPACE).await?["holderIdentity"].take();
    landscape.effect("before", "v", LIMIT).await?;
    let begin = Instant::now();
    let (status, took) = former.terminate(STOP_LIMIT).await?;
    ensure!(status.code() == Some(0), "{status}: {}", former.log());
    landscape.bundle(NAMESPACE, "after", None, "v").await?;
    landscape.effect("after", "v", FAILOVER_LIMIT).await?;
    println!("the former leader stopped within {took:.2?}, the next one reconciled after {:.2?}", begin.elapsed());
    let next = landscape.lease(NAMESPACE).await?;
    ensure!(next["holderIdentity"] != holder && next["holderIdentity"] != "", "{next}");
    Ok(())
}

/// The new Pod serves a certificate of the new authority, its registration trusts both, and it answers node agents'
/// reviews without a certificate of the client.
async fn new_authority_serves(landscape: &Landscape, gardenlet: &Gardenlet<'_>, pod: &Pod<'_>) -> Result<()> {
    let review = |user: &str, group: &str| {
        json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {
                "user": user, "groups": [group], "resourceAttributes": { "verb": "get", "resource": "nodes", "name": "n" }
            }
        })
    };
    let authority = gardenlet.authority()?.certificate();
    let agent = review("gardener.cloud:node-agent:machine:m", "gardener.cloud:node-agents");
    eventually("a node agent may read its Node", LIMIT, async || {
        let answer = pod.review(AUTHORIZER, &agent, authority).await?;
        ensure!(answer.code == 200 && answer.json()?["status"]["allowed"] == true, "{} {}", answer.code, answer.body);
        Ok(())
    })
    .await?;
    let stranger = pod.review(AUTHORIZER, &review("alice", "system:authenticated"), authority).await?;
    let opinion = &stranger.json()?["status"];
    let is_denied = opinion["denied"] == true;
    ensure!(stranger.code == 200 && opinion["allowed"] == false && !is_denied, "{}", stranger.body);

    eventually("the registration trusts both authorities", LIMIT, async || {
        let registration = landscape.admin.get(CONFIGURATION).await?;
        let bundle = registration["webhooks"][0]["clientConfig"]["caBundle"].as_str().context("a bundle")?;
        let certificates = String::from_utf8(BASE64_STANDARD.decode(bundle)?)?.matches("BEGIN").count();
        ensure!(certificates == 2, "{certificates} certificates");
        Ok(())
    })
    .await
}

async fn scale_to_zero(landscape: &Landscape, pod: &mut Pod<'_>) -> Result<()> {
    let (status, took) = pod.terminate(STOP_LIMIT).await?;
    println!("scaled to zero within {took:.2?}");
    ensure!(status.code() == Some(0), "{status}: {}", pod.log());
    let lease = landscape.lease(NAMESPACE).await?;
    ensure!(lease["holderIdentity"] == "" || lease["holderIdentity"].is_null(), "{lease}");
    Ok(())
}

/// A watch of one object is a GET with a name.
fn only_its_own_lease(landscape: &Landscape) -> Result<()> {
    let mut verbs = BTreeSet::new();
    for event in landscape.cluster.audit_of(SOURCE_USER, 0)? {
        let at = &event["objectRef"];
        if at["resource"] == "leases" {
            ensure!(at["namespace"] == NAMESPACE && at["name"] == NAME, "another Lease: {event}");
            verbs.insert(event["verb"].as_str().unwrap_or_default().to_owned());
        }
    }
    let allowed = ["create", "get", "update", "watch"].map(str::to_owned);
    ensure!(verbs.iter().all(|verb| allowed.contains(verb)), "{verbs:?}");
    ensure!(["create", "update"].iter().all(|verb| verbs.contains(*verb)), "{verbs:?}");
    Ok(())
}

fn runs(metrics: &str, controller: &str) -> f64 {
    let series = format!("controller_runtime_reconcile_total{{controller=\"{controller}\"");
    let lines = metrics.lines().filter(|line| line.starts_with(&series));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}
