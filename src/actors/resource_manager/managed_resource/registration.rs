//! What the controller opens in every replica, and how it starts in the leader.

use cluster::{Index, Watch, WatchOptions, Watches, object::NamespacedName};
use process::controller_registration::Running;

use super::{
    controller::{self, HEALTH_NAME, NAME, PROGRESS_NAME, Sources},
    known::{CachedManagedResource, CachedSecret},
    shared::Settings,
};
use crate::{
    actors::resource_manager::controller_context::{ControllerContext, Registration, StartControllers},
    api::{
        config::resource_manager::Config,
        kinds,
        resources::{class::OwnClass, crd},
    },
};

/// ManagedResources with their health; always on.
pub const REGISTRATION: Registration = Registration { names: &[NAME, HEALTH_NAME, PROGRESS_NAME], setup };

fn setup(config: &Config, ctx: &ControllerContext) -> Option<StartControllers> {
    let settings = settings(config);
    let options = WatchOptions::new(kinds::MANAGED_RESOURCE, CachedManagedResource::of);
    let bundles = ctx.source.watches.open(options.installed_by(crd::INSTALL_MANAGED_RESOURCES));
    let index = bundles.index(|name, bundle| secrets_of(&name.namespace, bundle));
    let secrets = watch_secrets(&ctx.source.watches, &index);
    let sources = Sources { bundles, secrets, index, definitions: ctx.target.definitions() };
    Some(Box::new(move |ctx| {
        let settings = Settings { cluster_id: ctx.cluster_id().to_owned(), ..settings };
        let running = controller::start(settings, sources, ctx);
        Running::new(move |patience| async move { running.stop(patience).await })
    }))
}

/// The cluster id is filled in when it is known.
fn settings(config: &Config) -> Settings {
    let controllers = &config.controllers;
    Settings {
        apply: controllers.managed_resource.clone(),
        health: controllers.health,
        class: OwnClass::new(&controllers.resource_class),
        cluster_id: String::new(),
        target_is_live: config.target.disable_cached_client,
        metric_per_bundle: config.server.metrics.per_managed_resource,
        garbage_collector: controllers.garbage_collector.enabled,
    }
}

fn secrets_of(namespace: &str, bundle: &CachedManagedResource) -> Vec<NamespacedName> {
    let references = &bundle.summary().mr.spec.secret_refs;
    references.iter().map(|reference| NamespacedName::new(namespace, &reference.name)).collect()
}

/// Versions only, and only of Secrets that a ManagedResource references.
fn watch_secrets(watches: &Watches, index: &Index<NamespacedName>) -> Watch<CachedSecret> {
    let index = index.clone();
    let options = WatchOptions::new(kinds::SECRET, CachedSecret::of).metadata().from_now();
    watches.open(options.keeping(move |secret| index.contains(secret)))
}
