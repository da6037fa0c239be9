//! The documents of a ManagedResource's Secrets: which object each describes, and never its content.

use std::{cell::RefCell, collections::BTreeMap};

use cluster::object::{GroupVersionKind, ObjectKey};
use serde_json::{Value, json};

use super::{Clusters, Found};
use crate::{
    actors::resource_manager::{
        bundle::{
            identity,
            normalise::{Scope, normalise_namespace},
        },
        managed_resource::scope_of,
    },
    api::kinds,
    commands::{bundles::called, output::foreign},
    producer::{
        decode::{Decoder, Limits, SecretData},
        unique,
    },
};

/// A Secret of a ManagedResource, with its documents or why they are unknown.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SecretContent {
    pub(super) name: String,
    pub(super) documents: Result<Vec<Document>, String>,
}

/// A document, or an item of a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Document {
    pub(super) data_key: String,
    /// Position within the data key, counted from 0, as in conditions.
    pub(super) number: usize,
    /// The key of the object and its display text, or why there is none.
    pub(super) object: Result<(ObjectKey, String), String>,
}

/// How the target serves the kinds, as far as it was asked.
#[derive(Default)]
struct Scopes(RefCell<BTreeMap<GroupVersionKind, Scope>>);

impl Clusters {
    pub(super) async fn contents(&self, found: &Found) -> Vec<SecretContent> {
        let scopes = Scopes::default();
        let mut contents = Vec::new();
        for name in found.secrets() {
            let at = kinds::SECRET.at(found.mr.metadata.namespace.as_str(), name);
            let documents = match self.source.get(&self.context(), &at).await {
                Ok(secret) => self.documents(&secret, &scopes).await,
                Err(error) if error.is_not_found() => Err("does not exist".to_owned()),
                Err(error) => Err(foreign(&error.to_string())),
            };
            contents.push(SecretContent { name: name.to_owned(), documents });
        }
        contents
    }

    /// Returns for each Secret whether it exists, without its data.
    pub(super) async fn existing(&self, found: &Found) -> Vec<(String, Result<bool, String>)> {
        let (metadata, mut secrets) = (self.source.metadata_only(), Vec::new());
        for name in found.secrets() {
            let at = kinds::SECRET.at(found.mr.metadata.namespace.as_str(), name);
            let exists = match metadata.get(&self.context(), &at).await {
                Ok(_) => Ok(true),
                Err(error) if error.is_not_found() => Ok(false),
                Err(error) => Err(foreign(&error.to_string())),
            };
            secrets.push((name.to_owned(), exists));
        }
        secrets
    }

    async fn documents(&self, secret: &Value, scopes: &Scopes) -> Result<Vec<Document>, String> {
        let data = unique::content(secret).map_err(|error| error.to_string())?;
        let secret = SecretData { namespace: "", name: "", data: &data };
        let mut documents = Vec::new();
        for read in Decoder::new([secret], Limits::default()) {
            documents.push(match read {
                Ok(mut document) => {
                    if let Some(kind) = GroupVersionKind::of(&document.manifest) {
                        normalise_namespace(&mut document.manifest, self.scope(&kind, scopes).await);
                    }
                    let key = identity::key_of_object(&document.manifest);
                    let display = called(&document.manifest);
                    let (data_key, number) = (document.data_key.to_string(), document.index);
                    Document { data_key, number, object: Ok((key, display)) }
                }
                Err(error) => {
                    Document { data_key: error.data_key.to_string(), number: error.index, object: Err(error.text) }
                }
            });
        }
        Ok(documents)
    }

    async fn scope(&self, kind: &GroupVersionKind, scopes: &Scopes) -> Scope {
        if let Some(known) = scopes.0.borrow().get(kind) {
            return *known;
        }
        let scope = scope_of(self.target.discovery().mapping(kind).await.ok().as_ref());
        scopes.0.borrow_mut().insert(kind.clone(), scope);
        scope
    }
}

impl Found {
    /// The names of its Secrets, each once.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        self.mr.secret_names()
    }
}

impl SecretContent {
    /// Returns true if it is known of each document which object it describes.
    pub(super) fn is_read(&self) -> bool {
        self.documents.as_ref().is_ok_and(|documents| documents.iter().all(|document| document.object.is_ok()))
    }

    pub(super) fn json(&self) -> Value {
        let documents = self.documents.as_ref().map(|all| all.iter().map(Document::json).collect::<Vec<_>>());
        json!({"name": self.name, "documents": documents.as_ref().ok(), "error": documents.as_ref().err()})
    }
}

impl Document {
    fn json(&self) -> Value {
        let object = self.object.as_ref().map(|(_, display)| display);
        json!({
            "dataKey": self.data_key, "document": self.number,
            "object": object.as_ref().ok(), "error": object.as_ref().err(),
        })
    }
}
