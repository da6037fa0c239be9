//! The Namespace of a Seed (spec 83 A.3). Pure.

use cluster::object;
use serde_json::{Value, json};

use super::roles::ROLE;
use crate::{actors::controller_manager::owner_references::controller_reference, api::kinds};

const PREFIX: &str = "seed-";

/// Value of the role label of the Namespace.
const SEED_ROLE: &str = "seed";

/// What counts of a Namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeedNamespace {
    /// uid of its controller.
    controller: Option<Box<str>>,
    is_labelled: bool,
    is_deleting: bool,
}

/// What to do with the Namespace of a Seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamespaceVerdict {
    /// Create it.
    Create,
    /// Nothing: the Seed does not control it. It may be that of an earlier Seed of the same name.
    Foreign,
    /// Set its label, and keep copies in it.
    Label,
    /// Keep copies in it.
    Serve,
    /// It is being deleted: keep the copies that exist. The server refuses new ones.
    Ending,
}

/// Returns the name of the Namespace of a Seed.
pub fn namespace_of(seed: &str) -> String {
    format!("{PREFIX}{seed}")
}

/// Returns the Seed whose Namespace has this name; `None` if it has no such name.
pub fn seed_of(namespace: &str) -> Option<&str> {
    namespace.strip_prefix(PREFIX).filter(|seed| !seed.is_empty())
}

impl SeedNamespace {
    /// Reads the metadata of a Namespace.
    pub fn of(namespace: &Value) -> Self {
        let owners = namespace.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let is_controller = |owner: &&Value| owner.get("controller").and_then(Value::as_bool) == Some(true);
        let controller = owners.into_iter().flatten().find(is_controller);
        let uid = controller.and_then(|owner| owner.get("uid")).and_then(Value::as_str);
        Self {
            controller: uid.map(Box::from),
            is_labelled: object::label(namespace, ROLE) == Some(SEED_ROLE),
            is_deleting: object::deletion_timestamp(namespace).is_some(),
        }
    }

    /// Returns true if it is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.is_deleting
    }
}

/// Judges the Namespace of the Seed with this uid.
pub fn judge_namespace(namespace: Option<&SeedNamespace>, seed_uid: &str) -> NamespaceVerdict {
    match namespace {
        None => NamespaceVerdict::Create,
        Some(namespace) if namespace.controller.as_deref() != Some(seed_uid) => NamespaceVerdict::Foreign,
        Some(namespace) if namespace.is_deleting => NamespaceVerdict::Ending,
        Some(namespace) if !namespace.is_labelled => NamespaceVerdict::Label,
        Some(_) => NamespaceVerdict::Serve,
    }
}

/// Returns the merge patch that sets the label.
pub fn label_patch() -> Value {
    json!({"metadata": {"labels": {ROLE: SEED_ROLE}}})
}

/// Returns the Namespace of a Seed, to be created.
pub fn new_namespace(seed: &str, seed_uid: &str) -> Value {
    let owner = controller_reference(&kinds::SEED, seed, seed_uid, true);
    json!({
        "apiVersion": kinds::NAMESPACE.api_version(), "kind": &*kinds::NAMESPACE.kind,
        "metadata": {"name": namespace_of(seed), "labels": {ROLE: SEED_ROLE}, "ownerReferences": [owner]},
    })
}
