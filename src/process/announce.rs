//! What is logged at the start (spec 70 §7): version, flags, warnings about the configuration.

use crate::{
    actors::root,
    api::config::{Config, Loaded, Warning},
    cli::RunOptions,
    webhooks::registry::KEYS as WEBHOOKS,
};

#[derive(Debug, Default, PartialEq, Eq)]
struct Absent {
    controllers: Vec<&'static str>,
    webhooks: Vec<&'static str>,
    settings: Vec<&'static str>,
}

pub(super) fn start(options: &RunOptions, loaded: &Loaded) {
    let version = &options.version;
    tracing::info!(
        version = version.version,
        git_commit = version.git_commit,
        git_tree_state = version.git_tree_state,
        build_date = version.build_date,
        platform = version.platform,
        "Starting gardener-resource-manager"
    );
    for line in options.flag_lines() {
        tracing::info!("{line}");
    }
    loaded.warnings.iter().for_each(warn);
    let absent = Absent::of(&loaded.config);
    if absent != Absent::default() {
        tracing::warn!(
            controllers = absent.controllers.join(", "),
            webhooks = absent.webhooks.join(", "),
            settings = absent.settings.join(", "),
            "The configuration enables features that this build does not have"
        );
    }
}

fn warn(warning: &Warning) {
    let path = &warning.path;
    match warning.instead() {
        Some(instead) => tracing::warn!(path, instead, "{}", warning.message()),
        None => tracing::warn!(path, "{}", warning.message()),
    }
}

impl Absent {
    fn of(config: &Config) -> Self {
        let missing = |enabled: Vec<&'static str>, existing: &[&str]| {
            enabled.into_iter().filter(|name| !existing.contains(name)).collect()
        };
        let (source, target) = (&config.source, &config.target);
        let settings = [
            ("sourceClientConnection.acceptContentTypes", source.accept_content_types.is_some()),
            ("sourceClientConnection.contentType", source.content_type.is_some()),
            ("targetClientConnection.acceptContentTypes", target.accept_content_types.is_some()),
            ("targetClientConnection.contentType", target.content_type.is_some()),
            (
                "debugging.enableContentionProfiling",
                config.debugging.profiling && config.debugging.contention_profiling,
            ),
        ];
        Self {
            controllers: missing(config.enabled_controllers(), &root::controllers().collect::<Vec<_>>()),
            webhooks: missing(config.enabled_webhooks(), &WEBHOOKS),
            settings: settings.into_iter().filter_map(|(path, set)| set.then_some(path)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::config::KubernetesServiceHost;

    #[test]
    fn start_log_names_enabled_features_that_do_not_exist() {
        let mut config = Config::default();
        config.webhooks.kubernetes_service_host = Some(KubernetesServiceHost { host: String::new() });
        config.webhooks.crd_deletion_protection = true;
        config.debugging.profiling = true;
        config.debugging.contention_profiling = true;

        let absent = Absent::of(&config);

        assert!(absent.controllers.iter().all(|name| !root::controllers().any(|existing| existing == *name)));
        assert!(absent.webhooks.is_empty(), "all that can be enabled exist");
        assert_eq!(absent.settings, ["debugging.enableContentionProfiling"]);
    }
}
