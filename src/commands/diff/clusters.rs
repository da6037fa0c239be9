//! Reads of the clusters that are compared.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
    time::Duration,
};

use cluster::{
    Cluster, Context, Located, Resource,
    object::{NamespacedName, ObjectKey},
};
use kit::{Deadline, Priority};
use serde_json::Value;

use super::DiffError;
use crate::api::{kinds, resources::managed_resource::ManagedResource};

const TIME: Duration = Duration::from_secs(300);

pub(super) struct Clusters {
    pub(super) source: Cluster,
    pub(super) target: Cluster,
    pub(super) owners: Owners,
}

/// The objects of other ManagedResources by their status; `None` if one does not exist.
#[derive(Default)]
pub(super) struct Owners(pub(super) RefCell<BTreeMap<NamespacedName, Option<Rc<BTreeSet<ObjectKey>>>>>);

pub(super) fn context() -> Context {
    Context::new(Priority::High, Deadline::after(TIME), "diff")
}

impl Clusters {
    /// Returns the object, or `None` if it does not exist or its kind is not served.
    pub(super) async fn find(
        &self,
        cluster: &Cluster,
        resource: &Resource,
        key: &NamespacedName,
    ) -> Result<Option<Value>, DiffError> {
        let (kind, name) = (resource.group_version_kind(), (key.namespace.as_str(), key.name.as_str()));
        match cluster.locate(&context(), &kind, name, 0).await {
            Ok(Located::At(_, object)) => Ok(Some(object)),
            Ok(Located::Nowhere(_)) => Ok(None),
            Err(source) => Err(DiffError::Read { what: format!("{} {key}", resource.kind), source }),
        }
    }

    pub(super) async fn managed_resource(&self, key: &NamespacedName) -> Result<Option<ManagedResource>, DiffError> {
        let live = self.find(&self.source, &kinds::MANAGED_RESOURCE, key).await?;
        live.map(|live| ManagedResource::from_value(&live))
            .transpose()
            .map_err(|error| DiffError::Unreadable { what: format!("ManagedResource {key}"), cause: error.to_string() })
    }

    pub(super) async fn secret(&self, bundle: &NamespacedName, name: &str) -> Result<Value, DiffError> {
        let key = NamespacedName::new(&bundle.namespace, name);
        let found = self.find(&self.source, &kinds::SECRET, &key).await?;
        found.ok_or_else(|| {
            DiffError::Input(format!(
                "{bundle} names Secret {name:?}, which does not exist — create it, or give its file"
            ))
        })
    }
}
