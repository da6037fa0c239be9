//! The module: what the controller opens in every replica, and how it starts in the leader.

use std::rc::Rc;

use cluster::{Cluster, Resource, Router, RouterOptions, Start};

use super::{
    controller::{self, HEALTH_NAME, HealthSettings, Inputs, NAME, PROGRESS_NAME, Settings},
    known::{
        secrets::{SecretIndex, SecretRecord},
        snapshot::BundleRecord,
    },
};
use crate::{
    actors::{
        ground::{Ground, Place},
        module::{Lead, Module, Running},
    },
    api::{class::OwnClass, config::Config, object::NamespacedName},
};

/// ManagedResources with their health; always on.
pub const MODULE: Module = Module { names: &[NAME, HEALTH_NAME, PROGRESS_NAME], install };

fn install(config: &Config, ground: &Ground) -> Option<Lead> {
    let settings = settings(config);
    let index = SecretIndex::default();
    let bundles = watch_bundles(&ground.source);
    let secrets = watch_secrets(&ground.source, &index);
    let definitions = ground.target.definitions();
    let following = index.clone();
    bundles.subscribe(move |change| {
        let references = change.new.map_or(&[][..], |record| &record.head().mr.spec.secret_refs);
        let namespace = &change.name.namespace;
        let secrets = references.iter().map(|reference| NamespacedName::new(namespace, &reference.name));
        following.set(change.name, secrets.collect());
    });
    Some(Box::new(move |ground| {
        let inputs = Inputs {
            source: ground.source.cluster.clone(),
            target: ground.target.cluster.clone(),
            bundles,
            secrets,
            index,
            recorder: ground.source.events.for_component(NAME),
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
        always_update: settings.always_update,
        managed_by: settings.managed_by_label_value.clone(),
        class: OwnClass::new(&config.resource_class),
        cluster_id: String::new(),
        garbage_collector: config.controllers.garbage_collector.is_some(),
        health: HealthSettings {
            concurrent_syncs: config.controllers.health.concurrent_syncs,
            sync_period: config.controllers.health.sync_period,
        },
    }
}

// === watches ===

fn scopes(cluster: &Cluster) -> Vec<Option<String>> {
    match cluster.options().namespaces.as_slice() {
        [] => vec![None],
        namespaces => namespaces.iter().cloned().map(Some).collect(),
    }
}

fn watch_bundles(source: &Place) -> Router<BundleRecord> {
    source.open(RouterOptions {
        name: "source/managedresources".to_owned(),
        resource: Resource::new("resources.gardener.cloud", "v1alpha1", "ManagedResource", "managedresources", true),
        scopes: scopes(&source.cluster),
        label_selector: None,
        metadata_only: false,
        start: Start::List,
        record: Box::new(BundleRecord::of),
        keep: Box::new(|_| true),
    })
}

/// Versions only, and only of Secrets that a bundle references.
fn watch_secrets(source: &Place, index: &SecretIndex) -> Router<SecretRecord> {
    let index = index.clone();
    source.open(RouterOptions {
        name: "source/secrets".to_owned(),
        resource: Resource::new("", "v1", "Secret", "secrets", true),
        scopes: scopes(&source.cluster),
        label_selector: None,
        metadata_only: true,
        start: Start::Now,
        record: Box::new(SecretRecord::of),
        keep: Box::new(move |secret| index.contains(secret)),
    })
}
