//! The API server is restarted again and again, with everything enabled: nothing is deleted, nothing leaks. For about a
//! second it does not serve the kinds of CustomResourceDefinitions, and its answers look like absence (facts §7).

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Result, ensure};
use http::Method;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{NAMESPACE, all_controllers};
use crate::{
    objects::{Admin, bundles, core, is_applied, managed_resource, secret},
    support::{ControlPlane, Grm, Options, eventually},
};

/// Restarts; `RESTART_ROUNDS` overrides it.
const ROUNDS: usize = 3;
const WIDGETS: usize = 10;
/// Unused definitions: the more there are, the longer the API server takes until it knows all of them.
const FILLERS: usize = 40;
const LIMIT: Duration = Duration::from_secs(90);

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const HOLD: &str = "example.org/hold";
const COLLECTABLE: &str = "resources.gardener.cloud/garbage-collectable-reference";

/// The uid of each object that must survive the round, by path.
type Lasting = BTreeMap<String, String>;

/// decision 38; spec 10 §13.1; spec 33 T5; spec 40 scenario 38; spec 42 §5.6.
#[tokio::test]
async fn api_server_restarts_delete_nothing_and_leak_nothing() -> Result<()> {
    let rounds = std::env::var("RESTART_ROUNDS").map_or(Ok(ROUNDS), |rounds| rounds.parse())?;
    let mut cluster = ControlPlane::start(Options::default()).await?;
    let admin = Admin::prepare(&cluster, NAMESPACE).await?;
    define_kinds(&admin).await?;
    let mut config = all_controllers();
    config["controllers"]["garbageCollector"]["syncPeriod"] = json!("15s");
    let mut grm = Grm::start(&cluster, config).await?;
    expose_service(&admin).await?;
    collectables(&cluster, "used", 0..1)?;
    bundle(&admin, "lasting", WIDGETS).await?;
    let lasting = eventually("the lasting objects exist", LIMIT, async || lasting(&admin).await).await?;

    for round in 0..rounds {
        let [deleted, pruned, held] = ["deleted", "pruned", "held"].map(|name| format!("{name}-{round}"));
        for name in [&deleted, &pruned, &held] {
            bundle(&admin, name, WIDGETS).await?;
        }
        for name in [&deleted, &pruned, &held] {
            eventually("the ManagedResource is applied", LIMIT, async || applied(&admin, name).await).await?;
        }
        collectables(&cluster, "unused", round..round + 1)?;
        // While the server starts, one ManagedResource is held in deletion, one is deleted, and one loses its widgets.
        let widget = format!("{}/{held}-0", widgets());
        admin.merge(&widget, &json!({ "metadata": { "finalizers": [HOLD] } })).await?;
        delete(&admin, &held).await?;
        let pruning = secret(NAMESPACE, &pruned, &[config_map(&pruned)]);
        let during = async {
            let path = format!("{}/{pruned}", core(NAMESPACE, "secrets"));
            eventually("the ManagedResource is pruned", LIMIT, async || admin.replace(&path, &pruning).await).await?;
            eventually("the ManagedResource is deleted", LIMIT, async || delete(&admin, &deleted).await).await
        };
        let port = cluster.url().rsplit(':').next().unwrap_or_default().parse::<u16>()?;
        let is_program_started_too = round % 3 == 2;
        let program = async {
            if !is_program_started_too {
                return Ok(());
            }
            grm.kill();
            eventually("the port opens", LIMIT, async || {
                // The port of the former server is closed for a moment.
                tokio::net::TcpStream::connect(("127.0.0.1", port)).await.map(drop).map_err(Into::into)
            })
            .await?;
            grm.restart().await
        };
        tokio::try_join!(cluster.restart_apiserver(), during, program)?;

        let release = json!({ "metadata": { "finalizers": null } });
        eventually("the widget is let go", LIMIT, async || admin.merge(&widget, &release).await).await?;
        for name in [&deleted, &held] {
            eventually("the ManagedResource is gone", LIMIT, async || gone(&admin, name).await).await?;
        }
        eventually("the ManagedResource is pruned", LIMIT, async || {
            ensure!(applied(&admin, &pruned).await? == 1, "{pruned} has other refs than its ConfigMap");
            Ok(())
        })
        .await?;
        let left = cluster.etcd().keys(&format!("example.org/widgets/{NAMESPACE}/"))?;
        let leaked: Vec<_> = left.iter().filter(|key| !key.contains("/lasting-")).collect();
        ensure!(leaked.is_empty(), "round {round}: these objects leaked: {leaked:?}");
        eventually("the garbage is collected", LIMIT, async || {
            let unused = cluster.etcd().keys(&format!("configmaps/{NAMESPACE}/unused-"))?;
            ensure!(unused.is_empty(), "{unused:?}");
            Ok(())
        })
        .await?;
        let now = eventually("the lasting objects exist", LIMIT, async || self::lasting(&admin).await).await?;
        ensure!(now == lasting, "round {round}: other objects than before: {now:#?}, before: {lasting:#?}");
    }
    println!("{rounds} restarts: nothing deleted, nothing leaked");
    Ok(())
}

fn widgets() -> String {
    format!("/apis/example.org/v1/namespaces/{NAMESPACE}/widgets")
}

fn istio(version: &str, plural: &str) -> String {
    format!("/apis/networking.istio.io/{version}/namespaces/{NAMESPACE}/{plural}")
}

fn definition(group: &str, version: &str, kind: &str, plural: &str) -> Value {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let version = json!({ "name": version, "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } });
    let names =
        json!({ "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase() });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": { "group": group, "scope": "Namespaced", "names": names, "versions": [version] }
    })
}

async fn define_kinds(admin: &Admin) -> Result<()> {
    let istio = "networking.istio.io";
    let used = [
        ("example.org", "v1", "Widget", "widgets"),
        ("monitoring.coreos.com", "v1", "Prometheus", "prometheuses"),
        (istio, "v1beta1", "VirtualService", "virtualservices"),
        (istio, "v1beta1", "Gateway", "gateways"),
        (istio, "v1beta1", "DestinationRule", "destinationrules"),
        (istio, "v1alpha3", "EnvoyFilter", "envoyfilters"),
    ];
    for (group, version, kind, plural) in used {
        admin.create(DEFINITIONS, &definition(group, version, kind, plural)).await?;
        let collection = format!("/apis/{group}/{version}/{plural}");
        eventually("the kind is served", LIMIT, async || admin.list(&collection).await).await?;
    }
    for index in 0..FILLERS {
        let (kind, plural) = (format!("Filler{index}"), format!("filler{index}s"));
        admin.create(DEFINITIONS, &definition("fillers.example.org", "v1", &kind, &plural)).await?;
    }
    Ok(())
}

/// A Service behind a gateway, with a rule that ends in a filter: policies and a filter depend on Istio's kinds.
async fn expose_service(admin: &Admin) -> Result<()> {
    let metadata = |name: &str| json!({ "namespace": NAMESPACE, "name": name });
    let host = format!("web.{NAMESPACE}.svc.cluster.local");
    let own = "networking.istio.io/v1beta1";
    let role = json!({ "metadata": { "labels": { "gardener.cloud/role": "istio-ingress" } } });
    admin.merge(&format!("/api/v1/namespaces/{NAMESPACE}"), &role).await?;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "namespace": NAMESPACE, "name": "gateway", "labels": { "app": "gateway" } },
        "spec": { "containers": [{ "name": "c", "image": "i" }] }
    });
    admin.create(&core(NAMESPACE, "pods"), &pod).await?;
    let mut service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata("web"),
        "spec": { "selector": { "app": "web" }, "ports": [{ "name": "https", "port": 443, "targetPort": 8443 }] }
    });
    service["metadata"]["annotations"] = json!({ "networking.istio.io/exportTo": "*" });
    admin.create(&core(NAMESPACE, "services"), &service).await?;
    let gateway = json!({
        "apiVersion": own, "kind": "Gateway", "metadata": metadata("gateway"),
        "spec": { "selector": { "app": "gateway" } }
    });
    let route = json!({ "route": [{ "destination": { "host": host, "port": { "number": 443 } } }] });
    let routes = json!({
        "apiVersion": own, "kind": "VirtualService", "metadata": metadata("web"),
        "spec": { "hosts": [host], "gateways": ["gateway"], "tcp": [route] }
    });
    let rule = json!({
        "apiVersion": own, "kind": "DestinationRule", "metadata": metadata("web"),
        "spec": { "host": host, "exportTo": ["*"] }
    });
    let prometheus = json!({
        "apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus",
        "metadata": {
            "namespace": NAMESPACE, "name": "p",
            "annotations": { "reference.resources.gardener.cloud/configmap-00000000": "used-0" }
        }
    });
    let all = [
        (istio("v1beta1", "gateways"), gateway),
        (istio("v1beta1", "virtualservices"), routes),
        (istio("v1beta1", "destinationrules"), rule),
        (format!("/apis/monitoring.coreos.com/v1/namespaces/{NAMESPACE}/prometheuses"), prometheus),
    ];
    for (collection, object) in all {
        eventually("the object is created", LIMIT, async || admin.create(&collection, &object).await).await?;
    }
    Ok(())
}

fn config_map(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "namespace": NAMESPACE, "name": name },
        "data": { "k": "v" }
    })
}

async fn bundle(admin: &Admin, name: &str, widgets: usize) -> Result<()> {
    let widget = |index: usize| {
        json!({
            "apiVersion": "example.org/v1", "kind": "Widget",
            "metadata": { "namespace": NAMESPACE, "name": format!("{name}-{index}") }, "spec": { "size": index }
        })
    };
    let objects: Vec<Value> = std::iter::once(config_map(name)).chain((0..widgets).map(widget)).collect();
    admin.create(&core(NAMESPACE, "secrets"), &secret(NAMESPACE, name, &objects)).await?;
    admin.create(&bundles(NAMESPACE), &managed_resource(NAMESPACE, name)).await.map(drop)
}

async fn applied(admin: &Admin, name: &str) -> Result<usize> {
    let bundle = admin.get(&format!("{}/{name}", bundles(NAMESPACE))).await?;
    ensure!(is_applied(&bundle), "{name}: {}", bundle["status"]["conditions"]);
    Ok(bundle["status"]["resources"].as_array().map(Vec::len).unwrap_or_default())
}

async fn delete(admin: &Admin, name: &str) -> Result<()> {
    let path = format!("{}/{name}", bundles(NAMESPACE));
    let (code, answer) = admin.send(Method::DELETE, &path, None).await?;
    ensure!(code == 200, "DELETE {path}: {code} {answer}");
    Ok(())
}

async fn gone(admin: &Admin, name: &str) -> Result<()> {
    let path = format!("{}/{name}", bundles(NAMESPACE));
    let (code, answer) = admin.send(Method::GET, &path, None).await?;
    ensure!(code == 404 && answer["details"]["name"] == name, "GET {path}: {code} {}", answer["status"]["conditions"]);
    Ok(())
}

fn collectables(cluster: &ControlPlane, name: &str, numbers: std::ops::Range<usize>) -> Result<()> {
    let created = kit::Clock::system_wall() - SignedDuration::from_mins(30);
    let created = created.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let stored = numbers.map(|number| {
        let name = format!("{name}-{number}");
        let mut object = config_map(&name);
        object["metadata"]["uid"] = json!(format!("{name:0>36}"));
        object["metadata"]["creationTimestamp"] = json!(created);
        object["metadata"]["labels"] = json!({ COLLECTABLE: "true" });
        object["immutable"] = json!(true);
        (format!("configmaps/{NAMESPACE}/{name}"), object)
    });
    cluster.etcd().store(&stored.collect::<Vec<_>>())
}

async fn lasting(admin: &Admin) -> Result<Lasting> {
    let policies = format!("/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/networkpolicies");
    let mut all = Lasting::new();
    let mut enter = async |collection: &str, least: usize, is_lasting: fn(&str) -> bool| {
        let objects = admin.list(collection).await?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let named = objects.iter().map(|it| (text(&it["metadata"]["name"]), text(&it["metadata"]["uid"])));
        let named: Vec<_> = named.filter(|(name, _)| is_lasting(name)).collect();
        ensure!(named.len() >= least, "{collection}: {named:?}");
        all.extend(named.into_iter().map(|(name, uid)| (format!("{collection}/{name}"), uid)));
        Ok(())
    };
    // Two for the Service itself, two for its gateway.
    enter(&policies, 4, |_| true).await?;
    enter(&istio("v1alpha3", "envoyfilters"), 1, |_| true).await?;
    enter(&core(NAMESPACE, "configmaps"), 2, |name| name == "used-0" || name == "lasting").await?;
    enter(&widgets(), WIDGETS, |name| name.starts_with("lasting-")).await?;
    applied(admin, "lasting").await?;
    Ok(all)
}
