//! What the controller opens in every replica, and how it starts in the leader.

use std::rc::Rc;

use cluster::{Index, Watch, WatchOptions, Watches, object::NamespacedName};
use process::controller_registration::Running;

use super::{
    controller::{self, HEALTH_NAME, Inputs, NAME, PROGRESS_NAME},
    known::{CachedManagedResource, CachedSecret},
    shared::{HealthSettings, Settings},
};
use crate::{
    actors::resource_manager::controller_context::{ControllerContext, Registration, StartControllers},
    api::{config::resource_manager::Config, kinds, resources::class::OwnClass},
};

/// ManagedResources with their health; always on.
pub const REGISTRATION: Registration = Registration { names: &[NAME, HEALTH_NAME, PROGRESS_NAME], setup };

fn setup(config: &Config, ctx: &ControllerContext) -> Option<StartControllers> {
    let settings = settings(config);
    let bundles = ctx.source.watches.open(WatchOptions::new(kinds::MANAGED_RESOURCE, CachedManagedResource::of));
    let index = bundles.index(|name, bundle| secrets_of(&name.namespace, bundle));
    let secrets = watch_secrets(&ctx.source.watches, &index);
    let definitions = ctx.target.definitions();
    Some(Box::new(move |ctx| {
        let inputs = Inputs {
            source: ctx.source.cluster.clone(),
            target: ctx.target.cluster.clone(),
            watches: ctx.target.watches.clone(),
            bundles,
            secrets,
            index,
            recorder: ctx.source.events.for_component(NAME),
            definitions: definitions.sync_requirement(),
            is_custom: Rc::new(move |resource| definitions.is_custom(resource)),
        };
        let settings = Settings { cluster_id: ctx.cluster_id().to_owned(), ..settings };
        let running = controller::start(settings, inputs, &ctx.env);
        Running::new(move |patience| async move { running.stop(patience).await })
    }))
}

/// The cluster id is filled in when it is known.
fn settings(config: &Config) -> Settings {
    let settings = &config.controllers.managed_resource;
    Settings {
        concurrent_syncs: settings.concurrent_syncs.count(),
        sync_period: settings.sync_period.get(),
        revalidate_period: settings.revalidate_period(),
        always_update: settings.always_update,
        managed_by: settings.managed_by_label_value.clone(),
        class: OwnClass::new(&config.controllers.resource_class),
        cluster_id: String::new(),
        target_is_live: config.target.disable_cached_client,
        garbage_collector: config.controllers.garbage_collector.enabled,
        health: HealthSettings {
            concurrent_syncs: config.controllers.health.concurrent_syncs.count(),
            sync_period: config.controllers.health.sync_period.get(),
        },
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
