//! The bundles of the filled cluster. Pure: the number of a bundle decides everything about it.

use std::collections::BTreeMap;

use cluster::object::field_mut;
use serde_json::{Value, json};

use crate::{
    api::resources::keys::IGNORE,
    demo::rollouts::MISSING_TAG,
    producer::{ManagedResourceBuilder, SecretBuilder, yaml},
};

/// After so many bundles the shapes repeat.
pub(super) const CYCLE: usize = 100;
/// The data key of each bundle's Secret.
pub(super) const DATA_KEY: &str = "objects.yaml";
/// The ConfigMap that both rivals of a namespace claim.
pub(super) const CLAIMED_BY_TWO: &str = "shared-settings";

/// Namespaces whose Services get NetworkPolicies.
const SHOOTS: usize = 4;

const FOREIGN_FINALIZER: &str = "example.com/archive";

const COMPONENTS: [&str; 25] = [
    "alertmanager",
    "api-gateway",
    "audit-log",
    "autoscaler",
    "backup",
    "blackbox-exporter",
    "cert-manager",
    "cluster-identity",
    "coredns",
    "csi-driver",
    "dashboard",
    "dependency-watchdog",
    "dns-records",
    "ingress",
    "kube-proxy",
    "kube-state-metrics",
    "log-shipper",
    "machine-controller",
    "metrics-server",
    "network-policies",
    "node-exporter",
    "node-problem-detector",
    "prometheus",
    "storage-classes",
    "vpn",
];

/// A bundle: a ManagedResource and its Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bundle {
    pub(super) number: usize,
}

/// What is special about a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Sound,
    /// Its second document does not decode.
    Undecodable,
    /// The API server refuses one of its objects.
    Refused,
    /// The image of its Deployment cannot be pulled.
    Unhealthy,
    /// Another bundle claims the same object.
    Rival,
    /// Its Secret does not exist.
    WithoutSecret,
    /// It has been ignored from the beginning.
    Ignored,
    /// It is suspended after it was applied.
    Suspended,
    /// It is deleted after it was applied, but one of its objects has a foreign finalizer.
    Held,
}

impl Bundle {
    pub(super) fn shape(self) -> Shape {
        match self.number % CYCLE {
            3 => Shape::Undecodable,
            13 => Shape::Ignored,
            23 => Shape::Refused,
            33 => Shape::Suspended,
            43 => Shape::Unhealthy,
            53 => Shape::Held,
            63 | 64 => Shape::Rival,
            83 => Shape::WithoutSecret,
            _ => Shape::Sound,
        }
    }

    /// Whether it has a Deployment.
    pub(super) fn is_application(self) -> bool {
        self.number.is_multiple_of(10) || self.shape() == Shape::Unhealthy
    }

    pub(super) fn namespace(self) -> String {
        format!("shoot--demo--{:04}", self.number / COMPONENTS.len())
    }

    /// The Namespace, from its first bundle. In some of them, Services get NetworkPolicies.
    pub(super) fn first_of_namespace(self) -> Option<Value> {
        if !self.number.is_multiple_of(COMPONENTS.len()) {
            return None;
        }
        let name = self.namespace();
        let mut labels = json!({"kubernetes.io/metadata.name": name});
        if self.number / COMPONENTS.len() < SHOOTS {
            *field_mut(&mut labels, &["gardener.cloud/role"]) = "shoot".into();
        }
        Some(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}))
    }

    /// The name of its ManagedResource, and of its Deployment if it has one.
    pub(super) fn name(self) -> &'static str {
        COMPONENTS[self.number % COMPONENTS.len()]
    }

    pub(super) fn secret_name(self) -> String {
        format!("managedresource-{}", self.name())
    }

    /// The name of the ConfigMap that each bundle has.
    pub(super) fn settings(self) -> String {
        format!("{}-settings", self.name())
    }

    pub(super) fn managed_resource(self) -> Value {
        let ignored = (self.shape() == Shape::Ignored).then(|| (IGNORE.to_owned(), "true".to_owned()));
        let builder = ManagedResourceBuilder::new(self.namespace(), self.name()).secret_ref(self.secret_name());
        builder.annotations(ignored.into_iter().collect()).build()
    }

    pub(super) fn secret(self) -> Option<Value> {
        if self.shape() == Shape::WithoutSecret {
            return None;
        }
        let data = BTreeMap::from([(DATA_KEY.to_owned(), self.manifests(1).into_bytes())]);
        Some(SecretBuilder::new(self.namespace(), self.secret_name()).data(data).build())
    }

    /// The manifests of a release. Releases differ in the settings.
    pub(super) fn manifests(self, release: usize) -> String {
        let mut objects = vec![self.settings_object(release)];
        if self.is_application() {
            objects.extend(self.application());
        } else if self.number % 10 < 5 {
            objects.extend(self.access());
        }
        match self.shape() {
            Shape::Undecodable => return self.broken_manifests(release),
            Shape::Refused => objects.push(self.config_map("refused", &json!({"not a valid key": "x"}))),
            Shape::Rival => objects.push(self.config_map(CLAIMED_BY_TWO, &json!({"owner": self.name()}))),
            Shape::Held => {
                let mut held = self.config_map("held", &json!({"archived": "false"}));
                *field_mut(&mut held, &["metadata", "finalizers"]) = json!([FOREIGN_FINALIZER]);
                objects.push(held);
            }
            _ => {}
        }
        yaml::stream(&objects)
    }

    /// The settings, and a document that does not decode.
    pub(super) fn broken_manifests(self, release: usize) -> String {
        let settings = self.settings_object(release);
        format!(
            "{}---\nkind: ConfigMap\nmetadata:\n  name: broken\n data:\n  colour: white\n",
            yaml::document(&settings)
        )
    }

    fn metadata(self, name: &str) -> Value {
        json!({"name": name, "namespace": self.namespace(), "labels": {"app": self.name()}})
    }

    fn config_map(self, name: &str, data: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": self.metadata(name), "data": data})
    }

    fn settings_object(self, release: usize) -> Value {
        self.config_map(&self.settings(), &json!({"log-level": "info", "release": release.to_string()}))
    }

    fn access(self) -> [Value; 3] {
        let name = self.name();
        let access = "rbac.authorization.k8s.io";
        let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "watch"]});
        [
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": self.metadata(name)}),
            json!({
                "apiVersion": format!("{access}/v1"), "kind": "Role", "metadata": self.metadata(name), "rules": [rule],
            }),
            json!({
                "apiVersion": format!("{access}/v1"), "kind": "RoleBinding", "metadata": self.metadata(name),
                "roleRef": {"apiGroup": access, "kind": "Role", "name": name},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": self.namespace()}],
            }),
        ]
    }

    fn application(self) -> [Value; 2] {
        let name = self.name();
        let labels = json!({"app": name});
        let tag = if self.shape() == Shape::Unhealthy { MISSING_TAG } else { "1.0.0" };
        let container = json!({
            "name": name, "image": format!("registry.example.com/demo/{name}:{tag}"),
            "ports": [{"name": "http", "containerPort": 8080}],
        });
        [
            json!({
                "apiVersion": "v1", "kind": "Service", "metadata": self.metadata(name),
                "spec": {"selector": labels, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]},
            }),
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": self.metadata(name),
                "spec": {
                    "replicas": 1, "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
                },
            }),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::producer::decode::{self, SecretData};

    fn bundles(count: usize) -> impl Iterator<Item = Bundle> {
        (0..count).map(|number| Bundle { number })
    }

    #[test]
    fn bundle_has_a_problem_about_once_in_20() {
        let is_broken = |bundle: &Bundle| {
            use Shape::{Refused, Rival, Undecodable, Unhealthy, WithoutSecret};
            matches!(bundle.shape(), Undecodable | Refused | Unhealthy | Rival | WithoutSecret)
        };

        assert_eq!(bundles(CYCLE).filter(is_broken).count(), 6);
    }

    #[test]
    fn bundles_have_names_of_their_own_and_rivals_share_a_namespace() {
        let names: BTreeSet<_> = bundles(10_000).map(|bundle| (bundle.namespace(), bundle.name())).collect();
        let rivals = |cycle: usize| [63, 64].map(|place| Bundle { number: cycle * CYCLE + place }.namespace());

        assert_eq!(names.len(), 10_000);
        assert!((0..100).map(rivals).all(|[one, other]| one == other));
    }

    #[test]
    fn bundle_decodes_unless_it_is_broken() {
        for bundle in bundles(CYCLE).filter(|bundle| bundle.shape() != Shape::WithoutSecret) {
            for (text, errors) in [
                (bundle.manifests(1), usize::from(bundle.shape() == Shape::Undecodable)),
                (bundle.broken_manifests(2), 1),
            ] {
                let data = BTreeMap::from([(DATA_KEY.to_owned(), text.into_bytes())]);

                let decoded = decode::decode([SecretData { namespace: "", name: "", data: &data }]);

                assert_eq!(decoded.errors.len(), errors, "{bundle:?}");
            }
        }
    }

    #[test]
    fn bundle_of_a_release_is_always_the_same() {
        let bundle = Bundle { number: 40 };

        assert_eq!(bundle.manifests(7), bundle.manifests(7));
        assert_ne!(bundle.manifests(7), bundle.manifests(8));
    }
}
