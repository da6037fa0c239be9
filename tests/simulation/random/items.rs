//! The items of ManagedResources: objects of several kinds, some of them in pairs.

use serde_json::{Value, json};

use crate::{
    objects::{definition, widget},
    world::{NAMESPACE, config_map, namespace},
};

const EXTRA: &str = "extra";
pub(super) const VALUE: &str = "example.org/value";

/// One object, or two that always go together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Item {
    ConfigMap(u8),
    Secret,
    Service,
    Deployment,
    Widget,
    ClusterRole,
    /// With a ConfigMap in it.
    Namespace,
    /// One of three kinds that the ManagedResources declare to be equivalent; a ManagedResource holds one of them.
    Twin(u8),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    Plain,
    /// Given up, but another one may hold it: annotation `mode: Ignore`.
    Released,
    /// Created, but never updated.
    CreatedOnce,
    /// Updated, and never deleted.
    Kept,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Want {
    pub(super) value: String,
    pub(super) form: Form,
}

/// The path of an object: resource as for kubectl, namespace, name.
pub(super) type ObjectPath = (&'static str, &'static str, &'static str);

pub(super) const TWINS: [Item; 3] = [Item::Twin(0), Item::Twin(1), Item::Twin(2)];

pub(super) const ITEMS: [Item; 13] = [
    Item::ConfigMap(0),
    Item::ConfigMap(1),
    Item::ConfigMap(2),
    Item::ConfigMap(3),
    Item::Secret,
    Item::Service,
    Item::Deployment,
    Item::Widget,
    Item::ClusterRole,
    Item::Namespace,
    Item::Twin(0),
    Item::Twin(1),
    Item::Twin(2),
];

pub(super) fn equivalences() -> Value {
    let kinds: Vec<_> =
        ["ConfigMap", "Secret", "Service"].iter().map(|kind| json!({ "group": "", "kind": kind })).collect();
    json!([kinds])
}

impl Item {
    pub(super) fn places(self) -> &'static [ObjectPath] {
        match self {
            Self::ConfigMap(0) => &[("configmaps", NAMESPACE, "c0")],
            Self::ConfigMap(1) => &[("configmaps", NAMESPACE, "c1")],
            Self::ConfigMap(2) => &[("configmaps", NAMESPACE, "c2")],
            Self::ConfigMap(_) => &[("configmaps", NAMESPACE, "c3")],
            Self::Secret => &[("secrets", NAMESPACE, "managed")],
            Self::Service => &[("services", NAMESPACE, "frontend")],
            Self::Deployment => {
                &[("deployments.apps", NAMESPACE, "web"), ("horizontalpodautoscalers.autoscaling", NAMESPACE, "web")]
            }
            Self::Widget => &[
                ("customresourcedefinitions.apiextensions.k8s.io", "", "widgets.example.org"),
                ("widgets.example.org", NAMESPACE, "kept"),
            ],
            Self::ClusterRole => &[("clusterroles.rbac.authorization.k8s.io", "", "reader")],
            Self::Namespace => &[("namespaces", "", EXTRA), ("configmaps", EXTRA, "inner")],
            Self::Twin(0) => &[("configmaps", NAMESPACE, "twin")],
            Self::Twin(1) => &[("secrets", NAMESPACE, "twin")],
            Self::Twin(_) => &[("services", NAMESPACE, "twin")],
        }
    }

    /// The path of its last object, if that is of the core group and has a namespace.
    pub(super) fn core_path(self) -> Option<String> {
        let (resource, namespace, name) = self.places()[self.places().len() - 1];
        let is_core = !resource.contains('.') && !namespace.is_empty();
        is_core.then(|| format!("/api/v1/namespaces/{namespace}/{resource}/{name}"))
    }

    pub(super) fn at(resource: &str, group: &str, namespace: &str, name: &str) -> Option<Self> {
        let is_at = |place: &ObjectPath| {
            let (plain, of_group) = place.0.split_once('.').unwrap_or((place.0, ""));
            (plain, of_group, place.1, place.2) == (resource, group, namespace, name)
        };
        ITEMS.into_iter().find(|item| item.places().iter().any(is_at))
    }

    pub(super) fn manifests(self, want: &Want) -> Vec<Value> {
        let mut manifests = self.bare(&want.value);
        for manifest in &mut manifests {
            let annotations = &mut manifest["metadata"]["annotations"];
            annotations[VALUE] = json!(want.value);
            match want.form {
                Form::Plain => {}
                Form::Released => annotations["resources.gardener.cloud/mode"] = json!("Ignore"),
                Form::CreatedOnce => annotations["resources.gardener.cloud/ignore"] = json!("true"),
                Form::Kept => annotations["resources.gardener.cloud/keep-object"] = json!("true"),
            }
        }
        manifests
    }

    fn bare(self, value: &str) -> Vec<Value> {
        let name = self.places()[0].2;
        let object = |api_version: &str, kind: &str, fields: Value| {
            let mut object = fields;
            (object["apiVersion"], object["kind"]) = (json!(api_version), json!(kind));
            object["metadata"] = json!({ "namespace": NAMESPACE, "name": name });
            object
        };
        match self {
            Self::ConfigMap(_) | Self::Twin(0) => vec![config_map(name, value)],
            Self::Secret | Self::Twin(1) => {
                vec![object("v1", "Secret", json!({ "type": "Opaque", "data": { "k": "djE=" } }))]
            }
            Self::Service | Self::Twin(_) => {
                let spec = json!({ "selector": { "a": "b" }, "ports": [{ "port": 80 }] });
                vec![object("v1", "Service", json!({ "spec": spec }))]
            }
            Self::Deployment => {
                let template = json!({
                    "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "c", "image": "i" }] }
                });
                let selector = json!({ "matchLabels": { "a": "b" } });
                let target = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": name });
                let spec = json!({ "replicas": 1, "selector": selector, "template": template });
                let scaling = json!({ "minReplicas": 1, "maxReplicas": 5, "scaleTargetRef": target });
                // Both versions are served, and only one of them is watched.
                let version =
                    if value.ends_with(['1', '3', '5', '7', '9']) { "autoscaling/v1" } else { "autoscaling/v2" };
                vec![
                    object("apps/v1", "Deployment", json!({ "spec": spec })),
                    object(version, "HorizontalPodAutoscaler", json!({ "spec": scaling })),
                ]
            }
            Self::Widget => vec![definition(), widget(1)],
            Self::ClusterRole => {
                let rules = json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }]);
                let mut role = object("rbac.authorization.k8s.io/v1", "ClusterRole", json!({ "rules": rules }));
                role["metadata"] = json!({ "name": name });
                vec![role]
            }
            Self::Namespace => {
                let mut inner = config_map("inner", value);
                inner["metadata"]["namespace"] = json!(EXTRA);
                vec![namespace(EXTRA), inner]
            }
        }
    }
}
