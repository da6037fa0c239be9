//! The Secret of a bundle (spec 10 §19.5).

use std::{collections::BTreeMap, fmt};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use cluster::{ApiError, object};
use kube::Client;
use serde_json::{Map, Value, json};

use super::{requests::Requests, unique};
use crate::api::{
    kinds,
    resources::keys::{GARBAGE_COLLECTABLE, GARBAGE_COLLECTABLE_VALUE},
};

/// Builds a Secret, and writes it to a cluster.
/// ```
/// use std::collections::BTreeMap;
///
/// use gardener_resource_manager::producer::SecretBuilder;
///
/// let data = BTreeMap::from([("key".to_owned(), b"data".to_vec())]);
/// let secret = SecretBuilder::new("garden", "settings").data(data).unique();
///
/// assert_eq!(secret.name(), "settings-c8549d3f");
/// assert_eq!(secret.build()["immutable"], true);
/// ```
#[derive(Clone)]
pub struct SecretBuilder {
    namespace: String,
    name: String,
    data: BTreeMap<String, Vec<u8>>,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    unique: bool,
    create_if_not_exists: bool,
}

impl SecretBuilder {
    /// A Secret without data.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            data: BTreeMap::new(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            unique: false,
            create_if_not_exists: true,
        }
    }

    /// Replaces the data.
    #[must_use]
    pub fn data(mut self, data: BTreeMap<String, Vec<u8>>) -> Self {
        self.data = data;
        self
    }

    /// Replaces the labels. A unique Secret keeps the label for the garbage collector.
    #[must_use]
    pub fn labels(mut self, labels: BTreeMap<String, String>) -> Self {
        self.labels = labels;
        self
    }

    /// Replaces the annotations.
    #[must_use]
    pub fn annotations(mut self, annotations: BTreeMap<String, String>) -> Self {
        self.annotations = annotations;
        self
    }

    /// Makes the Secret immutable, with a checksum of its data in its name (spec 10 §19.2).
    #[must_use]
    pub fn unique(mut self) -> Self {
        self.unique = true;
        self
    }

    /// Whether [`Self::reconcile`] creates a missing Secret (the default). Unique Secrets are always created.
    #[must_use]
    pub fn create_if_not_exists(mut self, create: bool) -> Self {
        self.create_if_not_exists = create;
        self
    }

    /// Returns the name in the cluster, for `spec.secretRefs`.
    pub fn name(&self) -> String {
        if self.unique { unique::name(&self.name, &unique::checksum(self.data.values())) } else { self.name.clone() }
    }

    /// Returns the Secret as a raw object.
    pub fn build(&self) -> Value {
        let mut secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"namespace": self.namespace, "name": self.name()},
        });
        self.fill(&mut secret);
        secret
    }

    /// Creates the Secret, or replaces labels, annotations and data if they differ. *Not found* if it may not create.
    pub async fn reconcile(&self, client: &Client) -> Result<Value, ApiError> {
        let (requests, at) = (Requests(client), kinds::SECRET.at(self.namespace.as_str(), self.name()));
        match requests.get(&at).await {
            Ok(live) => requests.update(&at, live, |secret| self.fill(secret)).await,
            Err(error) if error.is_not_found() && (self.unique || self.create_if_not_exists) => {
                requests.create(&at, &self.build()).await
            }
            Err(error) => Err(error),
        }
    }

    fn fill(&self, secret: &mut Value) {
        let mut labels = self.labels.clone();
        if self.unique {
            labels.insert(GARBAGE_COLLECTABLE.to_owned(), GARBAGE_COLLECTABLE_VALUE.to_owned());
        }
        set_texts(object::field_mut(secret, &["metadata"]), "labels", &labels);
        set_texts(object::field_mut(secret, &["metadata"]), "annotations", &self.annotations);
        let data = self.data.iter().map(|(key, value)| (key.clone(), STANDARD.encode(value))).collect();
        set_texts(secret, "data", &data);
        *object::field_mut(secret, &["type"]) = "Opaque".into();
        if let Some(fields) = secret.as_object_mut() {
            if self.unique {
                fields.insert("immutable".to_owned(), true.into());
            } else {
                fields.remove("immutable");
            }
        }
    }
}

impl fmt::Debug for SecretBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretBuilder")
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .field("unique", &self.unique)
            .finish_non_exhaustive()
    }
}

pub(super) fn set_texts(holder: &mut Value, field: &str, texts: &BTreeMap<String, String>) {
    let Some(fields) = holder.as_object_mut() else { return };
    if texts.is_empty() {
        fields.remove(field);
    } else {
        let texts: Map<String, Value> = texts.iter().map(|(key, text)| (key.clone(), text.as_str().into())).collect();
        fields.insert(field.to_owned(), Value::Object(texts));
    }
}
