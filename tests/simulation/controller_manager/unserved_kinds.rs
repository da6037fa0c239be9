//! Kinds that are not served: controllers that need them wait, references do without them (spec 80 §9).

use std::time::Duration;

use cluster::Resource;
use gardener_resource_manager::api::kinds;
use serde_json::json;

use super::{
    garden::{Garden, garden, object},
    guards::is_guarded,
    references::{held, is_held, put_object, refer, referrer, to},
};

/// How long a kind that is served again may go unnoticed, and a little longer.
const NOTICED: Duration = Duration::from_secs(75);

fn withdraw(garden: &Garden, kinds: &[&Resource]) {
    kinds.iter().for_each(|kind| garden.withdraw(kind));
}

/// spec 80 §9, "better" 1 and 4: only the controllers that need Shoots wait, and the metric names them.
#[test]
fn references_work_while_shoots_are_not_served() {
    garden(|garden| async move {
        withdraw(&garden, &[&kinds::SHOOT]);
        put_object(&garden, &kinds::SECRET, "garden", "x");
        put_object(&garden, &kinds::SECRET, "a", "y");
        garden.put(referrer(&kinds::SEED, "", "r", &[to(&kinds::SECRET, "x")]));
        for (kind, namespace) in [(&kinds::QUOTA, "a"), (&kinds::EXPOSURE_CLASS, "")] {
            garden.put(object(kind, namespace, "o", json!({})));
        }
        garden.start().await;
        tokio::time::sleep(NOTICED).await;

        assert!(is_held(&garden, &kinds::SECRET, "garden", "x") && is_guarded(&garden, &kinds::QUOTA));
        assert!(!is_guarded(&garden, &kinds::EXPOSURE_CLASS));
        let waiting = [
            "bastion",
            "cloudprofile",
            "controllerinstallation-seed",
            "controllerinstallation-shoot",
            "controllerregistration-cluster-finalizer-shoot",
            "credentialsbinding",
            "exposureclass",
            "gardenlet-lifecycle",
            "managedseedset",
            "namespacedcloudprofile",
            "project-resourcequota",
            "secretbinding",
            "shoot-conditions",
            "shoot-hibernation",
            "shoot-maintenance",
            "shoot-migration",
            "shoot-quota",
            "shoot-retry",
            "shoot-statuslabel",
            "shootstate-finalizer",
        ];
        assert_eq!(garden.metrics.waiting_controllers(), waiting);
        let text = garden.metrics.render();
        for (controller, ready) in [("exposureclass", 0), ("shoot-reference", 1), ("reference-protection", 1)] {
            let line = format!("gardener_controller_manager_controller_ready{{controller=\"{controller}\"}} {ready}\n");
            assert!(text.contains(&line), "{text}");
        }
        refer(&garden, &kinds::SEED, "", "r", &[]);
        tokio::time::sleep(NOTICED).await;
        assert!(!is_held(&garden, &kinds::SECRET, "garden", "x"), "Shoots that cannot exist do not hold it");

        garden.serve(&kinds::SHOOT);
        tokio::time::sleep(Duration::from_secs(1)).await;
        garden.put(referrer(&kinds::SHOOT, "a", "s", &[to(&kinds::SECRET, "y")]));
        tokio::time::sleep(NOTICED).await;

        assert!(is_guarded(&garden, &kinds::EXPOSURE_CLASS));
        held(&garden, &kinds::SECRET, "a", "y").await;
        held(&garden, &kinds::SHOOT, "a", "s").await;
        assert_eq!(garden.metrics.waiting_controllers(), Vec::<String>::new());
    });
}

/// spec 81 §3.2 G-12: a kind that the server does not serve has no objects and no referrers.
#[test]
fn references_work_without_workload_identities_and_seeds() {
    garden(|garden| async move {
        withdraw(&garden, &[&kinds::WORKLOAD_IDENTITY, &kinds::SEED]);
        put_object(&garden, &kinds::SECRET, "garden", "x");
        garden.put(referrer(&kinds::SHOOT, "garden", "r", &[to(&kinds::SECRET, "x")]));
        garden.start().await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(is_held(&garden, &kinds::SECRET, "garden", "x"));

        garden.delete(&kinds::SHOOT, "garden", "r").await;

        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(!is_held(&garden, &kinds::SECRET, "garden", "x"));
    });
}

/// spec 80 §9: a kind that is not served is looked for every 60 s.
#[test]
fn references_find_kinds_that_are_served_later() {
    garden(|garden| async move {
        let later = [&kinds::WORKLOAD_IDENTITY, &kinds::SEED, &kinds::CONTROLLER_DEPLOYMENT];
        withdraw(&garden, &later);
        put_object(&garden, &kinds::SECRET, "garden", "x");
        garden.start().await;
        tokio::time::sleep(Duration::from_secs(3600)).await;

        later.iter().for_each(|kind| garden.serve(kind));
        tokio::time::sleep(Duration::from_secs(1)).await;
        put_object(&garden, &kinds::WORKLOAD_IDENTITY, "garden", "w");
        let references = [to(&kinds::SECRET, "x"), to(&kinds::WORKLOAD_IDENTITY, "w")];
        garden.put(referrer(&kinds::SEED, "", "r", &references));
        tokio::time::sleep(NOTICED).await;

        assert!(is_held(&garden, &kinds::SECRET, "garden", "x"));
        assert!(is_held(&garden, &kinds::WORKLOAD_IDENTITY, "garden", "w"));
        assert!(is_held(&garden, &kinds::SEED, "", "r"));
    });
}

/// spec 80 §16 S-13: what discovery said a while ago releases nothing.
#[test]
fn object_keeps_its_protection_for_a_seed_whose_kind_is_served_unnoticed() {
    garden(|garden| async move {
        withdraw(&garden, &[&kinds::SEED]);
        put_object(&garden, &kinds::SECRET, "garden", "x");
        garden.put(referrer(&kinds::SHOOT, "garden", "s", &[to(&kinds::SECRET, "x")]));
        garden.settled().await;
        garden.serve(&kinds::SEED);
        tokio::time::sleep(Duration::from_secs(1)).await;
        garden.put(referrer(&kinds::SEED, "", "r", &[to(&kinds::SECRET, "x")]));
        garden.sim.clear_requests();

        refer(&garden, &kinds::SHOOT, "garden", "s", &[]);
        tokio::time::sleep(NOTICED * 2).await;

        assert!(is_held(&garden, &kinds::SECRET, "garden", "x") && is_held(&garden, &kinds::SEED, "", "r"));
        assert!(!garden.asked().contains(&"patch secrets x".to_owned()), "{:?}", garden.asked());
    });
}

/// spec 80 scenario 20
#[test]
fn only_the_controller_of_bastions_waits_while_they_are_not_served() {
    garden(|garden| async move {
        withdraw(&garden, &[&kinds::BASTION]);
        garden.put(object(&kinds::EXPOSURE_CLASS, "", "o", json!({})));
        garden.start().await;
        tokio::time::sleep(NOTICED).await;

        assert!(is_guarded(&garden, &kinds::EXPOSURE_CLASS));
        assert_eq!(garden.metrics.waiting_controllers(), ["bastion"]);
        garden.serve(&kinds::BASTION);
        tokio::time::sleep(NOTICED).await;
        assert_eq!(garden.metrics.waiting_controllers(), Vec::<String>::new());
    });
}
