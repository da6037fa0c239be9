//! Fields that newer Kubernetes versions do not have (spec 84 C.10). Pure.

use cluster::object::field_mut;
use serde_json::{Value, json};

use super::version::SemanticVersion;
use crate::actors::controller_manager::fields::text;

/// Kubernetes versions before and after a maintenance.
#[derive(Debug, Clone, Copy)]
pub(super) struct VersionStep<'a> {
    pub(super) old: &'a SemanticVersion,
    pub(super) new: &'a SemanticVersion,
}

impl VersionStep<'_> {
    /// Returns true if it leads to Kubernetes 1.`minor` or higher from below. A pre-release counts as its release.
    pub(super) fn crosses(self, minor: u64) -> bool {
        self.old.line() < (1, minor) && (1, minor) <= self.new.line()
    }
}

/// The removal of a field.
struct Removal {
    /// The first Kubernetes version without it: 1.`since`.
    since: u64,
    parent: &'static str,
    field: &'static str,
    text: &'static str,
}

const BEFORE_BINDING: [Removal; 3] = [
    Removal {
        since: 33,
        parent: "/kubernetes/kubeControllerManager",
        field: "podEvictionTimeout",
        text: ".spec.kubernetes.kubeControllerManager.podEvictionTimeout is set to nil. Reason: The field was deprecated in \
               favour of `spec.kubernetes.kubeAPIServer.defaultNotReadyTolerationSeconds` and \
               `spec.kubernetes.kubeAPIServer.defaultUnreachableTolerationSeconds` and can no longer be enabled for Shoot \
               clusters using Kubernetes version 1.33+",
    },
    Removal {
        since: 33,
        parent: "/kubernetes/clusterAutoscaler",
        field: "maxEmptyBulkDelete",
        text: ".spec.kubernetes.clusterAutoscaler.maxEmptyBulkDelete is set to nil. Reason: The field was deprecated in \
               favour of `.spec.kubernetes.clusterAutoscaler.maxScaleDownParallelism` and can no longer be enabled for \
               Shoot clusters using Kubernetes version 1.33+",
    },
    Removal {
        since: 35,
        parent: "/kubernetes/kubeAPIServer",
        field: "enableAnonymousAuthentication",
        text: ".spec.kubernetes.kubeAPIServer.enableAnonymousAuthentication was removed. Reason: The field is no longer \
               supported for Shoot clusters using Kubernetes version 1.35+",
    },
];

const AFTER_BINDING: [Removal; 3] = [
    Removal {
        since: 35,
        parent: "/kubernetes/kubeScheduler",
        field: "kubeMaxPDVols",
        text: ".spec.kubernetes.kubeScheduler.kubeMaxPDVols was removed. Reason: kubeMaxPDVols is deprecated and not \
               respected by the kube-scheduler",
    },
    Removal {
        since: 35,
        parent: "/kubernetes/kubeAPIServer/watchCacheSizes",
        field: "default",
        text: ".spec.kubernetes.kubeAPIServer.watchCacheSizes.default was removed. Reason: the default size configuration \
               is deprecated and not respected by the kube-apiserver",
    },
    Removal {
        since: 35,
        parent: "",
        field: "addons",
        text: ".spec.addons was removed. Reason: addons are not supported anymore for Kubernetes versions 1.35+",
    },
];

const BINDING_MIGRATED: &str = ".spec.secretBindingName was migrated to .spec.credentialsBindingName. Reason: \
                                SecretBinding is deprecated and can no longer be used for Shoot clusters using Kubernetes \
                                version 1.34+";

/// The name of the CredentialsBinding that takes the place of the SecretBinding, or why there is none (spec 84 C.10.1).
pub type BindingMigration = Result<String, String>;

/// Changes the spec of a Shoot as its new version requires it, and adds the texts (spec 84 C.10). `migration` is the
/// result of K4, if it was tried.
pub(super) fn adapt(
    spec: &mut Value,
    step: VersionStep<'_>,
    migration: Option<&BindingMigration>,
    texts: &mut Vec<String>,
) {
    let remove_all = |spec: &mut Value, removals: &[Removal], texts: &mut Vec<String>| {
        for removal in removals.iter().filter(|removal| step.crosses(removal.since)) {
            if remove(spec, removal.parent, removal.field) {
                texts.push(removal.text.to_owned());
            }
        }
    };
    remove_all(spec, &BEFORE_BINDING, texts);
    match migration.filter(|_| secret_binding_to_migrate(spec, step).is_some()) {
        None => {}
        Some(Ok(binding)) => {
            *field_mut(spec, &["credentialsBindingName"]) = json!(binding);
            remove(spec, "", "secretBindingName");
            texts.push(BINDING_MIGRATED.to_owned());
        }
        Some(Err(error)) => {
            texts.push(format!("Failed to migrate from secretBindingName to credentialsBindingName: {error}"));
        }
    }
    remove_all(spec, &AFTER_BINDING, texts);
    if step.crosses(35) {
        replace_secret_names(spec, texts);
    }
}

/// Returns the name of the SecretBinding that must be replaced (spec 84 K4).
pub(super) fn secret_binding_to_migrate<'a>(spec: &'a Value, step: VersionStep<'_>) -> Option<&'a str> {
    let has_other = !text(spec, "/credentialsBindingName").is_empty();
    let name = text(spec, "/secretBindingName");
    (step.crosses(34) && !name.is_empty() && !has_other).then_some(name)
}

/// K8: the reference of a DNS provider by name becomes one with a kind.
fn replace_secret_names(spec: &mut Value, texts: &mut Vec<String>) {
    let providers = spec.pointer_mut("/dns/providers").and_then(Value::as_array_mut);
    for (at, provider) in providers.into_iter().flatten().enumerate() {
        let name = text(provider, "/secretName").to_owned();
        if !remove(provider, "", "secretName") {
            continue;
        }
        let has_reference = provider.get("credentialsRef").is_some_and(|reference| !reference.is_null());
        if !has_reference && !name.is_empty() {
            *field_mut(provider, &["credentialsRef"]) = json!({ "apiVersion": "v1", "kind": "Secret", "name": name });
        }
        texts.push(format!(
            ".spec.dns.providers[{at}].secretName was removed. Reason: The field is no longer supported for Shoot clusters \
             using Kubernetes version 1.35+"
        ));
    }
}

/// Removes a field. Returns true if it was there; null counts as absent.
pub(super) fn remove(value: &mut Value, parent: &str, field: &str) -> bool {
    let parent = value.pointer_mut(parent).and_then(Value::as_object_mut);
    parent.and_then(|parent| parent.remove(field)).is_some_and(|removed| !removed.is_null())
}

const DISABLED_NGINX: &str =
    ".spec.addons.nginxIngress was disabled. Reason: nginx ingress addon disallowed by landscape operator";

/// Switches the addon nginx off (spec 84 C-18).
pub(super) fn disable_nginx(spec: &mut Value, texts: &mut Vec<String>) {
    if let Some(is_enabled) =
        spec.pointer_mut("/addons/nginxIngress/enabled").filter(|value| **value == Value::Bool(true))
    {
        *is_enabled = Value::Bool(false);
        texts.push(DISABLED_NGINX.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapted(mut spec: Value, old: &str, new: &str, migration: Option<&BindingMigration>) -> (Value, Vec<String>) {
        let [old, new] = [old, new].map(|text| SemanticVersion::parse(text).unwrap());
        let mut texts = Vec::new();
        adapt(&mut spec, VersionStep { old: &old, new: &new }, migration, &mut texts);
        (spec, texts)
    }

    /// spec 84 K1 and K2, scenario 49
    #[test]
    fn fields_go_with_kubernetes_1_33() {
        let spec = json!({ "kubernetes": { "kubeControllerManager": { "podEvictionTimeout": "2m0s", "nodeCIDRMaskSize": 24 },
            "clusterAutoscaler": { "maxEmptyBulkDelete": 3 } } });

        let (changed, texts) = adapted(spec.clone(), "1.32.4", "1.33.0", None);

        let rest =
            json!({ "kubernetes": { "kubeControllerManager": { "nodeCIDRMaskSize": 24 }, "clusterAutoscaler": {} } });
        assert_eq!(
            (changed, texts),
            (rest, vec![BEFORE_BINDING[0].text.to_owned(), BEFORE_BINDING[1].text.to_owned()])
        );
        for (old, new) in [("1.33.0", "1.33.1"), ("1.32.0", "1.32.1"), ("1.31.0", "1.32.9")] {
            assert_eq!(adapted(spec.clone(), old, new, None), (spec.clone(), vec![]), "{old} {new}");
        }
        assert_eq!(adapted(spec, "1.32.4", "1.33.0-rc.1", None).1.len(), 2);
    }

    /// spec 84 K3, K5 to K8, scenario 50
    #[test]
    fn fields_go_with_kubernetes_1_35() {
        let spec = json!({ "addons": { "nginxIngress": { "enabled": true } }, "kubernetes": {
            "kubeScheduler": { "kubeMaxPDVols": "30", "profile": "balanced" },
            "kubeAPIServer": { "enableAnonymousAuthentication": false, "watchCacheSizes": { "default": 100, "resources": [] } } },
            "dns": { "providers": [{ "type": "a" }, { "secretName": "s" }, { "secretName": "s", "credentialsRef": { "name": "own" } }, null] } });

        let (changed, texts) = adapted(spec, "1.34.1", "1.35.2", None);

        let reference = json!({ "apiVersion": "v1", "kind": "Secret", "name": "s" });
        let expected = json!({ "kubernetes": { "kubeScheduler": { "profile": "balanced" },
            "kubeAPIServer": { "watchCacheSizes": { "resources": [] } } }, "dns": { "providers": [{ "type": "a" },
                { "credentialsRef": reference }, { "credentialsRef": { "name": "own" } }, null] } });
        assert_eq!(changed, expected);
        let starts = [
            ".spec.kubernetes.kubeAPIServer.enableAnonymousAuthentication was removed.",
            ".spec.kubernetes.kubeScheduler.kubeMaxPDVols was removed.",
            ".spec.kubernetes.kubeAPIServer.watchCacheSizes.default was removed.",
            ".spec.addons was removed.",
            ".spec.dns.providers[1].secretName was removed.",
            ".spec.dns.providers[2].secretName was removed.",
        ];
        assert_eq!(texts.len(), starts.len());
        assert!(texts.iter().zip(starts).all(|(text, start)| text.starts_with(start)), "{texts:?}");
    }

    /// spec 84 K4, scenarios 51 and 52
    #[test]
    fn binding_of_a_shoot_is_replaced_with_kubernetes_1_34() {
        let spec = json!({ "secretBindingName": "sb" });
        let (found, failed): (BindingMigration, BindingMigration) = (Ok("cb".into()), Err("no way".into()));

        let migrated = (json!({ "credentialsBindingName": "cb" }), vec![BINDING_MIGRATED.to_owned()]);
        assert_eq!(adapted(spec.clone(), "1.33.1", "1.34.0", Some(&found)), migrated);
        let text = "Failed to migrate from secretBindingName to credentialsBindingName: no way".to_owned();
        assert_eq!(adapted(spec.clone(), "1.33.1", "1.34.0", Some(&failed)), (spec.clone(), vec![text]));
        assert_eq!(adapted(spec.clone(), "1.33.1", "1.34.0", None), (spec.clone(), vec![]));
        assert_eq!(adapted(spec.clone(), "1.34.0", "1.34.1", Some(&found)), (spec, vec![]));
        let both = json!({ "secretBindingName": "sb", "credentialsBindingName": "own" });
        assert_eq!(adapted(both.clone(), "1.33.1", "1.34.0", Some(&found)), (both, vec![]));
    }

    /// spec 84 C-18, scenario 74
    #[test]
    fn addon_nginx_is_switched_off() {
        let mut texts = Vec::new();
        let mut spec = json!({ "addons": { "nginxIngress": { "enabled": true, "x": 1 } } });
        disable_nginx(&mut spec, &mut texts);
        assert_eq!(spec, json!({ "addons": { "nginxIngress": { "enabled": false, "x": 1 } } }));
        assert_eq!(texts, [DISABLED_NGINX]);
        for same in
            [spec, json!({}), json!({ "addons": null }), json!({ "addons": { "nginxIngress": { "enabled": "true" } } })]
        {
            let mut changed = same.clone();
            disable_nginx(&mut changed, &mut texts);
            assert_eq!((changed, texts.len()), (same, 1));
        }
    }

    #[test]
    fn spec_of_any_shape_is_adapted() {
        for spec in [json!(null), json!([]), json!({ "kubernetes": [], "dns": { "providers": {} }, "addons": null })] {
            let (_, texts) = adapted(spec, "1.30.0", "1.36.0", Some(&Ok("x".into())));
            assert_eq!(texts, [""; 0]);
        }
    }
}
