//! Secret, then ManagedResource (spec 10 §19.7). Old Secrets are left to the garbage collector.

use std::{collections::BTreeMap, fmt};

use cluster::object::{self, NamespacedName};
use kube::{Client, api::Patch};
use serde_json::{Value, json};

use super::{
    CLASS_SEED, GARDENER_ROLE, ManagedResourceBuilder, ORIGIN_LABEL, ProducerError, ROLE_SEED_SYSTEM_COMPONENT,
    SECRET_NAME_PREFIX, SHOOT_NAMESPACE_PREFIX, SHOOT_NO_CLEANUP, SecretBuilder, extract, managed_resource,
    requests::{Requests, Selection},
};
use crate::api::kinds;

type Texts = BTreeMap<String, String>;

/// The parts of a bundle.
#[derive(Clone, Default)]
pub struct Parts {
    /// Namespace of both objects.
    pub namespace: String,
    /// Name of the ManagedResource.
    pub name: String,
    /// Labels of the ManagedResource.
    pub labels: Texts,
    /// Whether the Secret is named `managedresource-<name>` instead of `<name>`, each with a checksum.
    pub secret_name_with_prefix: bool,
    /// Class; empty for the default class.
    pub class: String,
    /// Data of the Secret, for example [`super::Registry::data`].
    pub data: BTreeMap<String, Vec<u8>>,
    /// Whether the objects stay when the ManagedResource is deleted.
    pub keep_objects: bool,
    /// Labels that each object gets.
    pub inject_labels: Texts,
    /// Whether annotations are replaced instead of merged.
    pub force_overwrite_annotations: bool,
}

impl Parts {
    /// The bundle of objects in a shoot.
    pub fn for_shoot(
        namespace: &str,
        name: &str,
        origin: &str,
        keep_objects: bool,
        labels: &Texts,
        data: BTreeMap<String, Vec<u8>>,
    ) -> Self {
        let mut parts = Self::prefixed(namespace, name, keep_objects, labels, data);
        parts.labels.insert(ORIGIN_LABEL.to_owned(), origin.to_owned());
        parts.inject_labels.insert(SHOOT_NO_CLEANUP.to_owned(), "true".to_owned());
        parts
    }

    /// The bundle of objects in a seed.
    pub fn for_seed(
        namespace: &str,
        name: &str,
        keep_objects: bool,
        labels: &Texts,
        data: BTreeMap<String, Vec<u8>>,
    ) -> Self {
        let mut parts = Self::prefixed(namespace, name, keep_objects, labels, data);
        if !namespace.starts_with(SHOOT_NAMESPACE_PREFIX) {
            parts.labels.insert(GARDENER_ROLE.to_owned(), ROLE_SEED_SYSTEM_COMPONENT.to_owned());
        }
        parts.class = CLASS_SEED.to_owned();
        parts
    }

    fn prefixed(
        namespace: &str,
        name: &str,
        keep_objects: bool,
        labels: &Texts,
        data: BTreeMap<String, Vec<u8>>,
    ) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            labels: labels.clone(),
            secret_name_with_prefix: true,
            data,
            keep_objects,
            ..Self::default()
        }
    }

    /// Returns the Secret: unique and immutable.
    pub fn secret(&self) -> SecretBuilder {
        let name = secret_name(&self.name, self.secret_name_with_prefix);
        SecretBuilder::new(&self.namespace, name).data(self.data.clone()).unique()
    }

    /// Returns the ManagedResource that names the Secret.
    pub fn managed_resource(&self) -> ManagedResourceBuilder {
        ManagedResourceBuilder::new(&self.namespace, &self.name)
            .class(&self.class)
            .labels(self.labels.clone())
            .secret_ref(self.secret().name())
            .inject_labels(self.inject_labels.clone())
            .keep_objects(self.keep_objects)
            .force_overwrite_annotations(self.force_overwrite_annotations)
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").field("namespace", &self.namespace).field("name", &self.name).finish_non_exhaustive()
    }
}

/// Creates or updates a bundle, for example [`Parts::for_seed`]. Fails if the Secret or the ManagedResource cannot be written.
pub async fn create(client: &Client, parts: &Parts) -> Result<(), ProducerError> {
    apply(client, parts, true).await
}

/// Updates a bundle. Fails like [`create`], and if the ManagedResource does not exist.
pub async fn update(client: &Client, parts: &Parts) -> Result<(), ProducerError> {
    apply(client, parts, false).await
}

/// Creates or updates a bundle of raw objects, as JSON under one data key with the name of the ManagedResource. Ignores
/// the data of `parts`, and does not force annotations.
pub async fn create_from_objects(client: &Client, parts: &Parts, objects: &[Value]) -> Result<(), ProducerError> {
    let mut data = BTreeMap::new();
    if !objects.is_empty() {
        let text: String = objects.iter().map(|object| format!("\n---\n{object}")).collect();
        data.insert(parts.name.clone(), text.into_bytes());
    }
    create(client, &Parts { data, force_overwrite_annotations: false, ..parts.clone() }).await
}

async fn apply(client: &Client, parts: &Parts, create: bool) -> Result<(), ProducerError> {
    parts.secret().reconcile(client).await.map_err(ProducerError::Secret)?;
    let managed_resource = parts.managed_resource().create_if_not_exists(create);
    managed_resource.reconcile(client).await.map_err(ProducerError::ManagedResource)?;
    Ok(())
}

fn secret_name(name: &str, with_prefix: bool) -> String {
    if with_prefix { format!("{SECRET_NAME_PREFIX}{name}") } else { name.to_owned() }
}

/// Deletes the Secret `<name>` (or `managedresource-<name>`), all Secrets that the ManagedResource names, then the
/// ManagedResource. Ignores missing objects. If a request fails, call it again to delete the rest.
pub async fn delete(
    client: &Client,
    namespace: &str,
    name: &str,
    secret_name_with_prefix: bool,
) -> Result<(), ProducerError> {
    let (requests, key) = (Requests(client), NamespacedName::new(namespace, name));
    let at = kinds::MANAGED_RESOURCE.named(&key);
    let found = requests.find(&at).await.map_err(|source| ProducerError::Get { key: key.clone(), source })?;

    let own = secret_name(name, secret_name_with_prefix);
    let named = found.iter().flat_map(managed_resource::secret_refs);
    for secret in std::iter::once(own.as_str()).chain(named.filter(|secret| *secret != own)) {
        let key = NamespacedName::new(namespace, secret);
        let deleted = requests.delete(&kinds::SECRET.named(&key)).await;
        deleted.map_err(|source| ProducerError::DeleteSecret { key, source })?;
    }
    if found.is_some() {
        requests.delete(&at).await.map_err(|source| ProducerError::Delete { key, source })?;
    }
    Ok(())
}

/// Sets whether the objects stay when the ManagedResource is deleted. Does nothing if it does not exist.
pub async fn set_keep_objects(client: &Client, namespace: &str, name: &str, keep: bool) -> Result<(), ProducerError> {
    let patch = json!({"spec": {"keepObjects": keep}});
    match Requests(client).patch(&kinds::MANAGED_RESOURCE.at(namespace, name), &Patch::Merge(&patch)).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(source) => Err(ProducerError::Update { key: NamespacedName::new(namespace, name), source }),
    }
}

/// Whether a ManagedResource of the class exists, apart from the excluded ones. `None`: of no class.
pub async fn exist(
    client: &Client,
    class: Option<&str>,
    excluded_names: &[&str],
    excluded_namespaces: &[&str],
) -> Result<bool, ProducerError> {
    let all = Selection::Labelled { namespace: None, label_selector: "" };
    let listed = Requests(client).read(all).await.map_err(ProducerError::List)?;
    Ok(listed.items.iter().any(|item| {
        item.pointer("/spec/class").and_then(Value::as_str) == class
            && !excluded_names.contains(&object::name(item))
            && !excluded_namespaces.contains(&object::namespace(item))
    }))
}

/// Returns all objects in the current Secrets of a ManagedResource. Fails if one cannot be read or decoded.
pub async fn objects(client: &Client, namespace: &str, name: &str) -> Result<Vec<Value>, ProducerError> {
    let mut objects = Vec::new();
    for secret in secrets(client, namespace, name).await? {
        let key = NamespacedName::of(&secret);
        objects.extend(extract::objects(&secret).map_err(|source| ProducerError::Extract { key, source })?);
    }
    Ok(objects)
}

/// Returns the Secrets of a ManagedResource, in the order of its references. Fails if one cannot be read.
pub async fn secrets(client: &Client, namespace: &str, name: &str) -> Result<Vec<Value>, ProducerError> {
    let requests = Requests(client);
    let key = NamespacedName::new(namespace, name);
    let found = requests.get(&kinds::MANAGED_RESOURCE.named(&key)).await;
    let found = found.map_err(|source| ProducerError::Read { key, source })?;
    let mut secrets = Vec::new();
    for secret in managed_resource::secret_refs(&found) {
        let key = NamespacedName::new(namespace, secret);
        let read = requests.get(&kinds::SECRET.named(&key)).await;
        secrets.push(read.map_err(|source| ProducerError::ReadSecret { key, source })?);
    }
    Ok(secrets)
}
