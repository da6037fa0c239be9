//! The ManagedResource of a bundle (spec 10 §19.6).

use std::collections::BTreeMap;

use cluster::{
    ApiError, ObjectRef,
    object::{GroupKind, field_mut},
};
use kube::Client;
use serde_json::{Value, json};

use super::{ReconcileError, references, requests::Requests, secret::set_texts};
use crate::api::{
    kinds,
    resources::{
        keys,
        managed_resource::{ManagedResourceSpec, SecretRef},
    },
};

/// Builds a ManagedResource, and writes it to a cluster.
/// ```
/// use gardener_resource_manager::producer::ManagedResourceBuilder;
///
/// let managed_resource = ManagedResourceBuilder::new("garden", "settings")
///     .class("seed")
///     .secret_ref("managedresource-demo-0a1b2c3d")
///     .keep_objects(true)
///     .build();
///
/// assert_eq!(managed_resource["spec"]["secretRefs"][0]["name"], "managedresource-demo-0a1b2c3d");
/// ```
#[derive(Debug, Clone)]
pub struct ManagedResourceBuilder {
    namespace: String,
    name: String,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    spec: ManagedResourceSpec,
    create_if_not_exists: bool,
}

impl ManagedResourceBuilder {
    /// A ManagedResource without Secrets.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            spec: ManagedResourceSpec::default(),
            create_if_not_exists: true,
        }
    }

    /// Sets the class; an empty class is left out.
    #[must_use]
    pub fn class(mut self, class: impl Into<String>) -> Self {
        self.spec.class = Some(class.into()).filter(|class| !class.is_empty());
        self
    }

    /// Adds labels.
    #[must_use]
    pub fn labels(mut self, labels: BTreeMap<String, String>) -> Self {
        self.labels.extend(labels);
        self
    }

    /// Replaces the annotations. The annotations that refer to its Secrets are added.
    #[must_use]
    pub fn annotations(mut self, annotations: BTreeMap<String, String>) -> Self {
        self.annotations = annotations;
        self
    }

    /// Adds a Secret with manifests.
    #[must_use]
    pub fn secret_ref(mut self, name: impl Into<String>) -> Self {
        self.spec.secret_refs.push(SecretRef { name: name.into() });
        self
    }

    /// Sets labels that each object gets.
    #[must_use]
    pub fn inject_labels(mut self, labels: BTreeMap<String, String>) -> Self {
        self.spec.inject_labels = labels;
        self
    }

    /// Whether labels of objects are replaced instead of merged.
    #[must_use]
    pub fn force_overwrite_labels(mut self, force: bool) -> Self {
        self.spec.force_overwrite_labels = force;
        self
    }

    /// Whether annotations of objects are replaced instead of merged.
    #[must_use]
    pub fn force_overwrite_annotations(mut self, force: bool) -> Self {
        self.spec.force_overwrite_annotations = force;
        self
    }

    /// Whether the objects stay when the ManagedResource is deleted.
    #[must_use]
    pub fn keep_objects(mut self, keep: bool) -> Self {
        self.spec.keep_objects = keep;
        self
    }

    /// Whether PersistentVolumeClaims are deleted with their StatefulSet.
    #[must_use]
    pub fn delete_persistent_volume_claims(mut self, delete: bool) -> Self {
        self.spec.delete_persistent_volume_claims = delete;
        self
    }

    /// Sets further lists of groups and kinds that are the same objects.
    #[must_use]
    pub fn equivalences(mut self, equivalences: Vec<Vec<GroupKind>>) -> Self {
        self.spec.equivalences = equivalences;
        self
    }

    /// Whether [`Self::reconcile`] creates a missing ManagedResource (the default).
    #[must_use]
    pub fn create_if_not_exists(mut self, create: bool) -> Self {
        self.create_if_not_exists = create;
        self
    }

    /// Returns the ManagedResource as a raw object.
    pub fn build(&self) -> Value {
        let mut object = json!({
            "apiVersion": keys::API_VERSION,
            "kind": keys::KIND,
            "metadata": {"namespace": self.namespace, "name": self.name},
        });
        self.fill(&mut object);
        object
    }

    /// Creates the ManagedResource, or updates the existing one: labels and annotations key by key, the whole spec.
    /// Before, it marks the previous Secrets for the garbage collector, so that none is lost. Sends nothing if nothing
    /// differs. Fails with *not found* if it may not create, and with a conflict if the object changed meanwhile.
    pub async fn reconcile(&self, client: &Client) -> Result<Value, ReconcileError> {
        let (requests, at) = (Requests(client), self.at());
        let live = match requests.get(&at).await {
            Ok(live) => live,
            Err(error) if error.is_not_found() && self.create_if_not_exists => {
                return Ok(requests.create(&at, &self.build()).await?);
            }
            Err(error) => return Err(error.into()),
        };
        for secret in secret_refs(&live) {
            let marked = requests.mark_garbage_collectable(&self.namespace, secret).await;
            marked.map_err(ReconcileError::MarkingSecrets)?;
        }
        Ok(requests.update(&at, live, |object| self.fill(object)).await?)
    }

    /// Deletes only the ManagedResource; succeeds if it does not exist. Fails if the request fails.
    pub async fn delete(&self, client: &Client) -> Result<(), ApiError> {
        Requests(client).delete(&self.at()).await
    }

    fn at(&self) -> ObjectRef {
        kinds::MANAGED_RESOURCE.at(self.namespace.as_str(), self.name.as_str())
    }

    fn fill(&self, object: &mut Value) {
        let mut labels = texts(&object["metadata"]["labels"]);
        labels.extend(self.labels.clone());
        set_texts(field_mut(object, &["metadata"]), "labels", &labels);

        let mut annotations = texts(&object["metadata"]["annotations"]);
        annotations.extend(self.annotations.clone());
        references::refresh(&mut annotations, &self.spec.secret_refs);
        set_texts(field_mut(object, &["metadata"]), "annotations", &annotations);

        *field_mut(object, &["spec"]) = serde_json::to_value(&self.spec).unwrap_or_default();
    }
}

pub(super) fn secret_refs(object: &Value) -> impl Iterator<Item = &str> {
    let refs = object.pointer("/spec/secretRefs").and_then(Value::as_array).into_iter().flatten();
    refs.filter_map(|reference| reference["name"].as_str()).filter(|name| !name.is_empty())
}

fn texts(map: &Value) -> BTreeMap<String, String> {
    let entries = map.as_object().into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
