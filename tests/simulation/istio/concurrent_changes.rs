use std::time::Duration;

use serde_json::json;
use sim::{Fault, Seen};

use super::{DEFAULT, FILTERS, HTTP2, RULES, begin, has, https, namespace, role, rule, service, start};
use crate::world::{seconds, world};

/// spec 42 §5.5: a change between our read and our patch is drift, too.
#[test]
fn filter_edited_while_it_is_patched_is_restored() {
    world(1, |world| async move {
        begin(&world).await;
        service(&world, Some("*"), https());
        rule(&world, json!({}));
        has(&world, &[("istio-ingress", &[DEFAULT])]).await;
        // Only the answer reports it.
        world.sim.set_faults(|info| match (&*info.verb, &*info.resource) {
            ("watch", "envoyfilters") => Fault::Hang,
            ("patch", "envoyfilters") => Fault::Delay(Duration::from_secs(2)),
            _ => Fault::None,
        });
        world.stop().await;
        start(&world).await;
        service(&world, Some("*"), json!([{ "name": "grpc-main", "port": 443 }]));
        seconds(1).await;
        let name = "team-a-cluster-configuration";
        world.sim.edit(FILTERS, "istio-ingress", name, |live| live["spec"]["priority"] = json!(7));
        seconds(10).await;
        has(&world, &[("istio-ingress", &[HTTP2])]).await;
        let filter = world.sim.object(FILTERS, "istio-ingress", name).expect("it exists");
        assert!(filter["spec"].get("priority").is_none(), "{filter:#}");
    });
}

/// spec 42 §5.6: an object that a finalizer holds is not gone.
#[test]
fn filter_whose_deletion_is_pending_is_deleted_once() {
    world(1, |world| async move {
        begin(&world).await;
        service(&world, Some("*"), https());
        rule(&world, json!({}));
        has(&world, &[("istio-ingress", &[DEFAULT])]).await;
        let name = "team-a-cluster-configuration";
        world.sim.edit(FILTERS, "istio-ingress", name, |live| live["metadata"]["finalizers"] = json!(["x.io/held"]));
        seconds(5).await;
        world.sim.clear_requests();
        world.sim.remove(RULES, "team-a", "web");
        seconds(60).await;
        assert_eq!(world.writes(), [format!("delete envoyfilters {name}")]);
        rule(&world, json!({}));
        seconds(5).await;
        let path = format!("/apis/networking.istio.io/v1alpha3/namespaces/istio-ingress/envoyfilters/{name}");
        world.ask("PATCH", &path, Some(json!({ "metadata": { "finalizers": null } }))).await.expect("it is patched");
        world
            .eventually("it exists again", || {
                let filter = world.sim.object(FILTERS, "istio-ingress", name);
                filter.is_some_and(|filter| filter["metadata"].get("deletionTimestamp").is_none())
            })
            .await;
    });
}

/// spec 42 I-T13: all are processed, and errors are reported.
#[test]
fn filter_that_changes_concurrently_hides_no_error_of_others() {
    world(1, |world| async move {
        begin(&world).await;
        namespace(&world, "second", role());
        service(&world, Some("*"), https());
        rule(&world, json!({}));
        has(&world, &[("istio-ingress", &[DEFAULT]), ("second", &[DEFAULT])]).await;
        world.sim.set_faults(|info| match (&*info.verb, &*info.resource, &*info.namespace) {
            ("patch", "envoyfilters", "istio-ingress") => Fault::FailBefore(Seen::unavailable()),
            ("delete", "envoyfilters", "second") => Fault::FailBefore(Seen::conflict(info)),
            _ => Fault::None,
        });
        service(&world, Some("istio-ingress"), json!([{ "name": "grpc-main", "port": 443 }]));
        seconds(10).await;
        let actors = world.universe.env.status_registry.snapshot();
        let actor = actors.into_iter().find(|actor| actor.path == "istio-cluster-configuration/team-a");
        let (_, error) = actor.and_then(|actor| actor.last_error).expect("it exists");
        assert!(error.contains("failed to create/update EnvoyFilter istio-ingress/"), "{error}");
        world.sim.clear_faults();
        has(&world, &[("istio-ingress", &[HTTP2])]).await;
    });
}
