//! What is logged about the configuration at the start (spec 70 §7).

use crate::{
    actors::resource_manager::controllers,
    api::config::resource_manager::{Config, Warning},
    webhooks::registry::KEYS as WEBHOOKS,
};

#[derive(Debug, Default, PartialEq, Eq)]
struct Absent {
    controllers: Vec<&'static str>,
    webhooks: Vec<&'static str>,
    settings: Vec<&'static str>,
}

pub(super) fn warn(config: &Config, warnings: &[Warning], file: Option<&str>) {
    warnings.iter().for_each(|warning| warning.log(file));
    let absent = Absent::of(config);
    if absent != Absent::default() {
        tracing::warn!(
            controllers = absent.controllers.join(", "),
            webhooks = absent.webhooks.join(", "),
            settings = absent.settings.join(", "),
            "The configuration enables features that this build does not have"
        );
    }
}

impl Absent {
    fn of(config: &Config) -> Self {
        let missing = |enabled: Vec<&'static str>, existing: &[&str]| {
            enabled.into_iter().filter(|name| !existing.contains(name)).collect()
        };
        let (source, target) = (&config.source, &config.target);
        let settings = [
            ("sourceClientConnection.acceptContentTypes", !source.accept_content_types.is_empty()),
            ("sourceClientConnection.contentType", !source.content_type.is_empty()),
            ("targetClientConnection.acceptContentTypes", !target.accept_content_types.is_empty()),
            ("targetClientConnection.contentType", !target.content_type.is_empty()),
            (
                "debugging.enableContentionProfiling",
                config.debugging.enable_profiling && config.debugging.enable_contention_profiling,
            ),
        ];
        Self {
            controllers: missing(config.enabled_controllers(), &controllers::names().collect::<Vec<_>>()),
            webhooks: missing(config.enabled_webhooks(), &WEBHOOKS),
            settings: settings.into_iter().filter_map(|(path, set)| set.then_some(path)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::config::resource_manager::KubernetesServiceHost;

    #[test]
    fn start_log_names_enabled_features_that_do_not_exist() {
        let mut config = Config::default();
        config.webhooks.kubernetes_service_host = KubernetesServiceHost { host: String::new() }.into();
        config.webhooks.crd_deletion_protection.enabled = true;
        config.debugging.enable_profiling = true;
        config.debugging.enable_contention_profiling = true;

        let absent = Absent::of(&config);

        assert!(absent.controllers.iter().all(|name| !controllers::names().any(|existing| existing == *name)));
        assert!(absent.webhooks.is_empty(), "all that can be enabled exist");
        assert_eq!(absent.settings, ["debugging.enableContentionProfiling"]);
    }
}
