//! The steps about the other controllers and about webhooks.

use std::{net::Ipv4Addr, time::Duration};

use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use cluster::object::field_mut;
use kit::Clock;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    Missed, Seen,
    admission::{self, NewPod},
    certificates::kubelet_request,
    demo_object::DemoObject,
    examples::MONITORING,
    scene::Scene,
    screen::time,
    stage::Stage,
};
use crate::{
    api::resources::keys::{
        CLASS, CLASS_SHOOT, GARBAGE_COLLECTABLE, GARBAGE_COLLECTABLE_VALUE, PURPOSE, PURPOSE_TOKEN_REQUESTOR,
        SERVICE_ACCOUNT_NAME, SERVICE_ACCOUNT_NAMESPACE, TOKEN_EXPIRATION_DURATION, TOKEN_RENEW_TIMESTAMP,
    },
    producer::references::{ReferenceKind, annotation_key},
    webhooks::mutating::{seccomp, service_host},
};

/// A namespace whose label `gardener.cloud/role` is that of a shoot.
const SHOOT: &str = "shoot--demo--shop";
const ACCESS: DemoObject<'static> = DemoObject::core("secrets", SHOOT, "shoot-access-scraper");
const ETCD: DemoObject<'static> = DemoObject::core("services", SHOOT, "etcd-client");
const POD: DemoObject<'static> = DemoObject::core("pods", SHOOT, "scraper-0");
const NODE: &str = "worker-1";
const NODE_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 11);
const FOREIGN_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 99);
const OLD_SETTINGS: DemoObject<'static> = DemoObject::secret("settings-0b7e55aa");
const USED_SETTINGS: DemoObject<'static> = DemoObject::secret("settings-5befeaee");
const NEW_SETTINGS: DemoObject<'static> = DemoObject::secret("settings-c1d2e3f4");
/// Longest time until the collector runs again.
const COLLECTION: Duration = Duration::from_secs(18);

const POLICIES: &str = "networkpolicies.networking.k8s.io";
const REQUESTS: &str = "certificatesigningrequests";

pub(super) async fn token(Stage { scene, screen }: &Stage) -> Result<Seen, Missed> {
    screen.say("A scraper needs a token of the target cluster. It has a Secret that says for which ServiceAccount:");
    screen.command(&format!("kubectl -n {SHOOT} apply -f shoot-access-scraper.yaml"));
    screen.detail(&format!("{SERVICE_ACCOUNT_NAME}: scraper"));
    screen.detail(&format!("{TOKEN_EXPIRATION_DURATION}: 1h"));
    scene.put(json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": SHOOT, "labels": {"gardener.cloud/role": "shoot", "kubernetes.io/metadata.name": SHOOT}},
    }))?;
    scene.create(ACCESS, &access_secret()).await?;
    let begin = Instant::now();
    let first = scene.wait("the Secret has a token", || current_token(scene).ok_or("it has none".to_owned())).await?;
    let took = begin.elapsed();
    screen.say(&format!(
        "After {} it has a token. The ServiceAccount was created, too. Claims of the token:",
        time(took)
    ));
    screen.detail(&format!("sub: {}   aud: {}", first.claims["sub"], first.claims["aud"]));
    screen.detail(&format!("renewed from {} on", first.renewal));

    screen.say("It is renewed after some 80 % of its life. To see it now, somebody sets that time to the past.");
    let past = "2020-01-01T00:00:00Z";
    screen.command(&format!("kubectl annotate --overwrite secret {} {TOKEN_RENEW_TIMESTAMP}={past}", ACCESS.name));
    let begin = Instant::now();
    scene.patch(ACCESS, &json!({"metadata": {"annotations": {TOKEN_RENEW_TIMESTAMP: past}}})).await?;
    let second = scene.wait("the Secret has another token", || match current_token(scene) {
        Some(token) if token.claims["jti"] != first.claims["jti"] => Ok(token),
        Some(_) => Err("it has the old one".to_owned()),
        None => Err("it has none".to_owned()),
    });
    let second = second.await?;
    screen.detail(&format!("another token after {}, renewed from {} on", time(begin.elapsed()), second.renewal));
    scene.until_idle().await?;
    Ok(Seen { what: "requested, and renewed".to_owned(), took })
}

fn access_secret() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": ACCESS.name, "namespace": ACCESS.namespace,
            "labels": {PURPOSE: PURPOSE_TOKEN_REQUESTOR, CLASS: CLASS_SHOOT},
            "annotations": {
                SERVICE_ACCOUNT_NAME: "scraper", SERVICE_ACCOUNT_NAMESPACE: SHOOT, TOKEN_EXPIRATION_DURATION: "1h",
            },
        },
    })
}

struct CurrentToken {
    claims: Value,
    renewal: String,
}

fn current_token(scene: &Scene) -> Option<CurrentToken> {
    let secret = scene.object(ACCESS)?;
    let token = BASE64_STANDARD.decode(secret["data"]["token"].as_str()?).ok()?;
    let claims = BASE64_URL_SAFE_NO_PAD.decode(token.split(|byte| *byte == b'.').nth(1)?).ok()?;
    let renewal = secret["metadata"]["annotations"][TOKEN_RENEW_TIMESTAMP].as_str()?.to_owned();
    Some(CurrentToken { claims: serde_json::from_slice(&claims).ok()?, renewal })
}

pub(super) async fn policies(Stage { scene, screen }: &Stage) -> Result<Seen, Missed> {
    screen.say("Gardener forbids all traffic in its namespaces. The program opens a Service for those who need it:");
    screen.command(&format!("kubectl -n {SHOOT} apply -f etcd-client.yaml"));
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": ETCD.name, "namespace": ETCD.namespace},
        "spec": {"selector": {"app": "etcd"}, "ports": [{"name": "client", "port": 2379, "targetPort": 2379}]},
    });
    scene.create(ETCD, &service).await?;
    let begin = Instant::now();
    let found = scene.wait("the Service has two NetworkPolicies", || match policy_names(scene) {
        names if names.len() == 2 => Ok(names),
        names => Err(format!("{names:?}")),
    });
    let names = found.await?;
    let took = begin.elapsed();
    names.iter().for_each(|name| screen.detail(name));
    screen.say("Pods with this label may connect. (The command `policies` explains the policies of a Service.)");
    screen.detail("networking.resources.gardener.cloud/to-etcd-client-tcp-2379: allowed");

    screen.say("A policy is deleted by hand. The Service still needs it.");
    screen.command(&format!("kubectl -n {SHOOT} delete networkpolicy {}", names[0]));
    let policy = DemoObject { api_version: "networking.k8s.io/v1", resource: "networkpolicies", ..ETCD };
    let again = scene.replaced(DemoObject { name: &names[0], ..policy }).await?;
    screen.detail(&format!("it exists again after {}", time(again)));
    scene.until_idle().await?;
    Ok(Seen { what: format!("{} policies for the Service", names.len()), took })
}

fn policy_names(scene: &Scene) -> Vec<String> {
    let of_service = |policy: &Value| {
        let label = &policy["metadata"]["labels"]["networking.resources.gardener.cloud/service-name"];
        (label == ETCD.name).then(|| policy["metadata"]["name"].as_str().unwrap_or_default().to_owned())
    };
    scene.look_at_all(POLICIES, of_service).into_iter().flatten().collect()
}

pub(super) async fn certificate(Stage { scene, screen }: &Stage) -> Result<Seen, Missed> {
    screen.say(&format!("The kubelet of Node {NODE} ({NODE_ADDRESS}) asks for its serving certificate."));
    scene.put(json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE},
        "status": {"addresses": [
            {"type": "Hostname", "address": NODE}, {"type": "InternalIP", "address": NODE_ADDRESS.to_string()},
        ]},
    }))?;
    let begin = Instant::now();
    let good = decision(scene, "kubelet-serving-1", NODE_ADDRESS).await?;
    let took = begin.elapsed();
    screen.detail(&good);
    screen.say(&format!("It asks for a certificate with an address that is not its own, {FOREIGN_ADDRESS}."));
    let bad = decision(scene, "kubelet-serving-2", FOREIGN_ADDRESS).await?;
    screen.detail(&bad);
    scene.until_idle().await?;
    match (good.starts_with("Approved"), bad.starts_with("Denied")) {
        (true, true) => Ok(Seen { what: "approved; the wrong address denied".to_owned(), took }),
        _ => Err(Missed::new("the first is approved, the second denied", format!("{good}; {bad}"))),
    }
}

/// Asks as the kubelet, and returns the decision.
async fn decision(scene: &Scene, name: &str, address: Ipv4Addr) -> Result<String, Missed> {
    let pem = kubelet_request(NODE, &[address]).map_err(|error| Missed::new("a request is made", error.to_string()))?;
    let place = DemoObject { api_version: "certificates.k8s.io/v1", resource: REQUESTS, namespace: "", name };
    let request = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
        "spec": {
            "request": BASE64_STANDARD.encode(pem), "signerName": "kubernetes.io/kubelet-serving",
            "usages": ["digital signature", "server auth"],
        },
    });
    scene.create_as(&format!("system:node:{NODE}"), place, &request).await?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let expected = format!("{name} is decided");
    let decided = scene.wait(&expected, || match scene.object(place) {
        Some(found) if found["status"]["conditions"][0].is_object() => Ok(found["status"]["conditions"][0].clone()),
        other => Err(format!("{:?}", other.map(|found| found["status"].clone()))),
    });
    let condition = decided.await?;
    Ok(format!("{}: {}", text(&condition["type"]), text(&condition["message"])))
}

pub(super) async fn webhook(Stage { scene, screen }: &Stage) -> Result<Seen, Missed> {
    screen.say(
        "A Pod is created. First, an API server asks the webhooks over TLS. (The in-memory one cannot do that: the \
         demonstration sends the AdmissionReviews for it.)",
    );
    screen.command(&format!("kubectl -n {SHOOT} run scraper-0 --image=registry.example.com/demo/scraper:1.0.0"));
    let client = scene.webhook_client()?;
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": POD.name, "namespace": POD.namespace},
        "spec": {"containers": [{"name": "scraper", "image": "registry.example.com/demo/scraper:1.0.0"}]},
    });
    let about = NewPod { namespace: POD.namespace, name: POD.name, user: "operator" };
    let begin = Instant::now();
    for path in [seccomp::PATH, service_host::PATH] {
        let mutated = admission::mutate(&client, path, about, &pod).await?;
        screen.say(&format!("{} answers:", scene.webhook_url(path)));
        mutated.changes.iter().for_each(|change| screen.detail(change));
        pod = mutated.object;
    }
    let took = begin.elapsed();
    scene.create(POD, &pod).await?;
    let profile = scene.text(POD, "/spec/securityContext/seccompProfile/type");
    let host = scene.text(POD, "/spec/containers/0/env/0/name");
    scene.until_idle().await?;
    if profile == "RuntimeDefault" && host == "KUBERNETES_SERVICE_HOST" {
        Ok(Seen { what: "the Pod has a seccomp profile and an API host".to_owned(), took })
    } else {
        let found = format!("profile {profile:?}, variable {host:?}");
        Err(Missed::new("the stored Pod has a seccomp profile and KUBERNETES_SERVICE_HOST", found))
    }
}

pub(super) async fn garbage(Stage { scene, screen }: &Stage) -> Result<Seen, Missed> {
    screen.say("Immutable Secrets get a new name with each content. Three of them exist:");
    screen.detail(&format!("{}   an hour old, nothing refers to it", OLD_SETTINGS.name));
    screen.detail(&format!("{}   an hour old, ManagedResource {} refers to it", USED_SETTINGS.name, MONITORING.name));
    screen.detail(&format!("{}   new; it has 10 minutes until something must refer to it", NEW_SETTINGS.name));
    let reference = annotation_key(ReferenceKind::Secret, USED_SETTINGS.name);
    let annotations = json!({"metadata": {"annotations": {reference: USED_SETTINGS.name}}});
    scene.patch(DemoObject::bundle(MONITORING.name), &annotations).await?;
    for (secret, is_old) in [(OLD_SETTINGS, true), (USED_SETTINGS, true), (NEW_SETTINGS, false)] {
        scene.put(collectable(secret, is_old))?;
    }
    screen.say("The collector runs every 15 s here, and every 12 h in production.");
    let begin = Instant::now();
    let collected = scene.wait_for(COLLECTION, "the old Secret is collected", || match scene.object(OLD_SETTINGS) {
        None => Ok(()),
        Some(_) => Err("it exists".to_owned()),
    });
    collected.await?;
    let took = begin.elapsed();
    scene.until_idle().await?;
    scene.nonzero_series("gardener_resource_manager_garbage{").iter().for_each(|series| screen.detail(series));
    let left: Vec<_> = [USED_SETTINGS, NEW_SETTINGS].iter().filter(|secret| scene.object(**secret).is_some()).collect();
    match left.len() {
        2 => Ok(Seen { what: "one Secret collected, two kept".to_owned(), took }),
        _ => Err(Missed::new("the other Secrets stay", format!("left: {left:?}"))),
    }
}

fn collectable(secret: DemoObject<'_>, is_old: bool) -> Value {
    let mut metadata = json!({
        "name": secret.name, "namespace": secret.namespace,
        "labels": {GARBAGE_COLLECTABLE: GARBAGE_COLLECTABLE_VALUE},
    });
    if is_old {
        let an_hour_ago = Clock::system_wall() - jiff::SignedDuration::from_hours(1);
        let text = an_hour_ago.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        *field_mut(&mut metadata, &["creationTimestamp"]) = text.into();
    }
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "immutable": true, "data": {"k": "eA=="}})
}
