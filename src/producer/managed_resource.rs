//! The ManagedResource of a bundle (spec 10 §19.6).

use std::collections::BTreeMap;

use cluster::{ApiError, object::field_mut};
use kube::Client;
use serde_json::{Value, json};

use super::{
    ReconcileError, references,
    requests::{ObjectKind, Requests},
    secret::set_texts,
};
use crate::api::{
    keys,
    managed_resource::{ManagedResourceSpec, SecretRef},
    object::GroupKind,
};

/// Builds a ManagedResource, and brings it into a cluster.
///
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

    /// Who applies it; an empty class is absent.
    #[must_use]
    pub fn class(mut self, class: impl Into<String>) -> Self {
        self.spec.class = Some(class.into()).filter(|class| !class.is_empty());
        self
    }

    /// Further labels.
    #[must_use]
    pub fn labels(mut self, labels: BTreeMap<String, String>) -> Self {
        self.labels.extend(labels);
        self
    }

    /// Its annotations; replaces what was set before. Those that refer to its Secrets are added.
    #[must_use]
    pub fn annotations(mut self, annotations: BTreeMap<String, String>) -> Self {
        self.annotations = annotations;
        self
    }

    /// One more Secret with manifests.
    #[must_use]
    pub fn secret_ref(mut self, name: impl Into<String>) -> Self {
        self.spec.secret_refs.push(SecretRef { name: name.into() });
        self
    }

    /// Labels that each of its objects gets.
    #[must_use]
    pub fn inject_labels(mut self, labels: BTreeMap<String, String>) -> Self {
        self.spec.inject_labels = labels;
        self
    }

    /// Whether labels of its objects are replaced instead of merged.
    #[must_use]
    pub fn force_overwrite_labels(mut self, force: bool) -> Self {
        self.spec.force_overwrite_labels = force;
        self
    }

    /// Whether annotations of its objects are replaced instead of merged.
    #[must_use]
    pub fn force_overwrite_annotations(mut self, force: bool) -> Self {
        self.spec.force_overwrite_annotations = force;
        self
    }

    /// Whether its objects stay when it goes.
    #[must_use]
    pub fn keep_objects(mut self, keep: bool) -> Self {
        self.spec.keep_objects = keep;
        self
    }

    /// Whether the PersistentVolumeClaims of a StatefulSet go with it.
    #[must_use]
    pub fn delete_persistent_volume_claims(mut self, delete: bool) -> Self {
        self.spec.delete_persistent_volume_claims = delete;
        self
    }

    /// Further sets of groups and kinds that stand for the same objects.
    #[must_use]
    pub fn equivalences(mut self, equivalences: Vec<Vec<GroupKind>>) -> Self {
        self.spec.equivalences = equivalences;
        self
    }

    /// Whether [`Self::reconcile`] creates what is not there; it does by default.
    #[must_use]
    pub fn create_if_not_exists(mut self, create: bool) -> Self {
        self.create_if_not_exists = create;
        self
    }

    /// The ManagedResource as a raw object.
    pub fn build(&self) -> Value {
        let mut object = json!({
            "apiVersion": keys::API_VERSION,
            "kind": keys::KIND,
            "metadata": {"namespace": self.namespace, "name": self.name},
        });
        self.fill(&mut object);
        object
    }

    /// Creates the ManagedResource, or updates the one there is: labels and annotations key by key, the whole spec,
    /// references to Secrets. Before that, the Secrets it names so far are marked for the garbage collector, so that none
    /// is lost. Nothing is sent if nothing differs. Returns it as the server has it.
    ///
    /// # Errors
    /// Those of the requests; *not found* if it may not be created; a conflict if somebody changed it meanwhile.
    pub async fn reconcile(&self, client: &Client) -> Result<Value, ReconcileError> {
        let requests = Requests(client);
        let live = match requests.get(ObjectKind::ManagedResource, &self.namespace, &self.name).await {
            Ok(live) => live,
            Err(error) if error.is_not_found() && self.create_if_not_exists => {
                return Ok(requests.create(ObjectKind::ManagedResource, &self.namespace, &self.build()).await?);
            }
            Err(error) => return Err(error.into()),
        };
        for secret in secret_refs(&live) {
            let marked = requests.mark_garbage_collectable(&self.namespace, secret).await;
            marked.map_err(ReconcileError::MarkingSecrets)?;
        }
        let mut wanted = live.clone();
        self.fill(&mut wanted);
        if wanted == live {
            return Ok(live);
        }
        Ok(requests.replace(ObjectKind::ManagedResource, &self.namespace, &self.name, &wanted).await?)
    }

    /// Deletes the ManagedResource, and nothing else. One that does not exist is deleted already.
    ///
    /// # Errors
    /// That of the request.
    pub async fn delete(&self, client: &Client) -> Result<(), ApiError> {
        Requests(client).delete(ObjectKind::ManagedResource, &self.namespace, &self.name).await
    }

    fn fill(&self, object: &mut Value) {
        let mut labels = texts(&object["metadata"]["labels"]);
        labels.extend(self.labels.clone());
        set_texts(field_mut(object, &["metadata"]), "labels", &labels);

        let mut annotations = texts(&object["metadata"]["annotations"]);
        annotations.extend(self.annotations.clone());
        references::refresh(&mut annotations, &self.spec.secret_refs);
        set_texts(field_mut(object, &["metadata"]), "annotations", &annotations);

        // A struct of texts, lists and booleans has a JSON form.
        *field_mut(object, &["spec"]) = serde_json::to_value(&self.spec).unwrap_or_default();
    }
}

/// The names in `spec.secretRefs` of a raw ManagedResource, without empty ones.
pub(super) fn secret_refs(object: &Value) -> impl Iterator<Item = &str> {
    let refs = object.pointer("/spec/secretRefs").and_then(Value::as_array).into_iter().flatten();
    refs.filter_map(|reference| reference["name"].as_str()).filter(|name| !name.is_empty())
}

fn texts(map: &Value) -> BTreeMap<String, String> {
    let entries = map.as_object().into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
