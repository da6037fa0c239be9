//! The Secrets of a ManagedResource with their documents and objects. Names and positions, never data.

use std::collections::{BTreeMap, BTreeSet};

use cluster::object::NamespacedName;
use kit::quote::cut;
use serde::Serialize;

use super::{
    super::{record::BundleRecord, shared::ManagedResources},
    objects::shown,
};
use crate::api::resources::managed_resource::ManagedResource;

const MOST_SECRETS: usize = 500;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SecretRow {
    name: String,
    /// The Secret is known not to exist.
    missing: bool,
    documents: Vec<DocumentRow>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DocumentRow {
    key: String,
    index: u32,
    objects: Vec<String>,
}

/// Returns the Secrets in the order in which the ManagedResource names them, with the documents that were decoded last.
pub(super) fn rows(controller: &ManagedResources, record: &BundleRecord, mr: &ManagedResource) -> Vec<SecretRow> {
    let mut documents = documents(controller, record);
    let mut seen = BTreeSet::new();
    let names = mr.spec.secret_refs.iter().map(|reference| reference.name.as_str());
    let names = names.filter(|name| seen.insert(*name)).take(MOST_SECRETS);
    names
        .map(|name| SecretRow {
            name: cut(name).into_owned(),
            missing: controller.secrets.is_missing(&NamespacedName::new(&mr.metadata.namespace, name)),
            documents: documents.remove(name).unwrap_or_default(),
        })
        .collect()
}

fn documents(controller: &ManagedResources, record: &BundleRecord) -> BTreeMap<String, Vec<DocumentRow>> {
    let mut secrets = BTreeMap::<String, Vec<DocumentRow>>::new();
    for (object, secret, key, index) in record.documents.borrow().iter() {
        let documents = secrets.entry(secret.to_owned()).or_default();
        match documents.last_mut().filter(|last| last.index == index && last.key == key) {
            Some(last) => last.objects.push(shown(controller, object)),
            None => {
                documents.push(DocumentRow { key: key.to_owned(), index, objects: vec![shown(controller, object)] })
            }
        }
    }
    secrets
}
