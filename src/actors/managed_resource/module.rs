//! The module: what the controller opens in every replica, and how it starts in the leader.

use std::rc::Rc;

use cluster::{Index, Resource, Want, Watch, Watches};

use super::{
    controller::{self, HEALTH_NAME, Inputs, NAME, PROGRESS_NAME},
    known::{BundleRecord, SecretRecord},
    shared::{HealthSettings, Settings},
};
use crate::{
    actors::{
        ground::Ground,
        module::{Lead, Module, Running},
    },
    api::{class::OwnClass, config::Config, object::NamespacedName},
};

/// ManagedResources with their health; always on.
pub const MODULE: Module = Module { names: &[NAME, HEALTH_NAME, PROGRESS_NAME], install };

fn install(config: &Config, ground: &Ground) -> Option<Lead> {
    let settings = settings(config);
    let bundles = ground.source.watches.open(Want::new(managed_resources(), BundleRecord::of));
    let index = bundles.index(|name, bundle| secrets_of(&name.namespace, bundle));
    let secrets = watch_secrets(&ground.source.watches, &index);
    let definitions = ground.target.definitions();
    Some(Box::new(move |ground| {
        let inputs = Inputs {
            source: ground.source.cluster.clone(),
            target: ground.target.cluster.clone(),
            watches: ground.target.watches.clone(),
            bundles,
            secrets,
            index,
            recorder: ground.source.events.for_component(NAME),
            definitions: definitions.need(),
            is_custom: Rc::new(move |resource| definitions.is_custom(resource)),
        };
        let settings = Settings { cluster_id: ground.cluster_id().to_owned(), ..settings };
        let running = controller::start(settings, inputs, &ground.env);
        Running::new(move |patience| async move { running.stop(patience).await })
    }))
}

/// The cluster id is filled in when it is known.
fn settings(config: &Config) -> Settings {
    let settings = &config.controllers.managed_resource;
    Settings {
        concurrent_syncs: settings.concurrent_syncs,
        sync_period: settings.sync_period,
        revalidate_period: settings.revalidate_period,
        always_update: settings.always_update,
        managed_by: settings.managed_by_label_value.clone(),
        class: OwnClass::new(&config.resource_class),
        cluster_id: String::new(),
        target_is_live: config.target.cache_disabled,
        garbage_collector: config.controllers.garbage_collector.is_some(),
        health: HealthSettings {
            concurrent_syncs: config.controllers.health.concurrent_syncs,
            sync_period: config.controllers.health.sync_period,
        },
    }
}

fn managed_resources() -> Resource {
    Resource::new("resources.gardener.cloud", "v1alpha1", "ManagedResource", "managedresources", true)
}

/// The Secrets that a ManagedResource references.
fn secrets_of(namespace: &str, bundle: &BundleRecord) -> Vec<NamespacedName> {
    let references = &bundle.head().mr.spec.secret_refs;
    references.iter().map(|reference| NamespacedName::new(namespace, &reference.name)).collect()
}

/// Versions only, and only of Secrets that a bundle references.
fn watch_secrets(watches: &Watches, index: &Index<NamespacedName>) -> Watch<SecretRecord> {
    let (resource, index) = (Resource::new("", "v1", "Secret", "secrets", true), index.clone());
    let want = Want::new(resource, SecretRecord::of).metadata().from_now();
    watches.open(want.keeping(move |secret| index.contains(secret)))
}
