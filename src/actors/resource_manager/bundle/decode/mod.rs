//! From the data of Secrets to manifests (spec 10 §9.2). [`Decoder`] yields one document at a time, [`decode`] collects
//! all. Bad input ends in a [`DecodeError`], never in a panic, an endless loop or unbounded memory ([`Limits`]). Texts
//! of errors contain positions, never content.
//!
//! `stream` finds the documents of a data key (`compression`, JSON or YAML, separators). `yaml` and `scalar` read YAML
//! in the dialect of Go's `sigs.k8s.io/yaml`; `repair` corrects what Go's parser accepts and ours refuses; `json` reads
//! JSON. `list` splits lists. `duplicates` gathers keys that a map has twice. `labels` handles labels and annotations that are no strings (§11.5). `limits` has the
//! bounds.

mod compression;
mod duplicates;
mod json;
mod labels;
mod limits;
mod list;
mod repair;
mod scalar;
mod stream;
mod yaml;

use std::{
    collections::{BTreeMap, btree_map},
    fmt,
    sync::Arc,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

pub use self::{duplicates::DuplicateKey, labels::LabelWarning, limits::Limits};
use self::{
    limits::{ERROR_COST, Meter},
    stream::DataKey,
};

/// A Secret of a ManagedResource.
#[derive(Clone, Copy)]
pub struct SecretData<'a> {
    /// Namespace.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
    /// Its data, Base64 already decoded.
    pub data: &'a BTreeMap<String, Vec<u8>>,
}

/// One manifest. Items of a list are separate manifests (spec 10 §11.3).
#[derive(Clone, PartialEq)]
pub struct ManifestDocument {
    /// The object. Its labels and annotations hold strings only (spec 10 §11.5).
    pub manifest: Value,
    /// Namespace and name of the Secret, `ns/name`.
    pub secret: Arc<str>,
    /// Data key of the Secret.
    pub data_key: Arc<str>,
    /// Zero-based position in the data key; items have the position of their list.
    pub index: usize,
    /// Position of its data key among those of all Secrets, in processing order (spec 10 §9.5).
    pub raw: usize,
    /// Dropped labels and annotations.
    pub warnings: Vec<LabelWarning>,
    /// Keys that a map has twice, if the decoder gathers them ([`Decoder::with_duplicate_keys`]).
    pub duplicate_keys: Vec<DuplicateKey>,
}

/// A part of a data key that is no manifest. The text contains positions and limits, never content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    /// Namespace and name of the Secret, `ns/name`.
    pub secret: Arc<str>,
    /// Data key of the Secret.
    pub data_key: Arc<str>,
    /// Zero-based position of the document within the data key.
    pub index: usize,
    /// What is wrong.
    pub text: String,
    /// The first line of an unreadable YAML document that has `{{`, counted from 1 within the data key: the document may
    /// be a template.
    pub template_line: Option<usize>,
}

/// The decoded manifests of a ManagedResource.
#[derive(Clone, Default)]
pub struct Decoded {
    /// The manifests, in processing order.
    pub documents: Vec<ManifestDocument>,
    /// Parts that are no manifests, in processing order.
    pub errors: Vec<DecodeError>,
    /// Dropped labels and annotations.
    pub warnings: Vec<LabelWarning>,
}

/// Decodes one document at a time: Secrets as given, data keys in byte order. Goes on after errors, except at limits.
pub struct Decoder<'a, I> {
    secrets: I,
    limits: Limits,
    meter: Meter,
    secret: Arc<str>,
    entries: btree_map::Iter<'a, String, Vec<u8>>,
    current: Option<Current<'a>>,
    items: Items,
    /// Number of data keys so far.
    data_keys: usize,
    /// How many duplicate keys of a document are gathered.
    most_duplicates: usize,
}

#[derive(Default)]
struct Items {
    data_key: Arc<str>,
    index: usize,
    left: std::iter::Enumerate<std::vec::IntoIter<Value>>,
    duplicates: Vec<DuplicateKey>,
}

struct Current<'a> {
    data_key: Arc<str>,
    documents: DataKey<'a>,
}

/// A value in a raw Secret is no Base64 text, as the API server would have written it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("data key '{0}' of the Secret is no Base64 text")]
pub struct SecretDataError(pub String);

/// Returns the decoded data of a raw Secret. Absent data is empty.
pub fn secret_data(secret: &Value) -> Result<BTreeMap<String, Vec<u8>>, SecretDataError> {
    let entries = secret.get("data").and_then(Value::as_object).into_iter().flatten();
    entries
        .map(|(key, value)| {
            let text = if value.is_null() { Some("") } else { value.as_str() }; // a null is an empty value
            let bytes = text.and_then(|text| STANDARD.decode(text).ok());
            bytes.map(|bytes| (key.clone(), bytes)).ok_or_else(|| SecretDataError(key.clone()))
        })
        .collect()
}

/// Decodes all Secrets with the default limits.
pub fn decode<'a>(secrets: impl IntoIterator<Item = SecretData<'a>>) -> Decoded {
    let mut decoded = Decoded::default();
    for item in Decoder::new(secrets, Limits::default()) {
        match item {
            Ok(mut document) => {
                decoded.warnings.append(&mut document.warnings);
                decoded.documents.push(document);
            }
            Err(error) => decoded.errors.push(error),
        }
    }
    decoded
}

impl<'a, I: Iterator<Item = SecretData<'a>>> Decoder<'a, I> {
    /// Makes a decoder for Secrets in the order of `spec.secretRefs`.
    pub fn new(secrets: impl IntoIterator<IntoIter = I>, limits: Limits) -> Self {
        Self {
            secrets: secrets.into_iter(),
            limits,
            meter: Meter::new(limits.bundle),
            secret: Arc::from(""),
            entries: btree_map::Iter::default(),
            current: None,
            items: Items::default(),
            data_keys: 0,
            most_duplicates: 0,
        }
    }

    /// Gathers the duplicate keys of each document, at most this many of one document. Without this call there are none.
    #[must_use]
    pub fn with_duplicate_keys(self, most: usize) -> Self {
        Self { most_duplicates: most, ..self }
    }

    /// Begins with so much memory spent, by decoders that share the bound of a bundle ([`Limits::bundle`]). Reads nothing
    /// if no memory is left.
    #[must_use]
    pub fn after(mut self, spent: usize) -> Self {
        self.meter.begin_with(spent);
        self
    }

    /// Returns the memory that is spent so far, for [`Decoder::after`].
    pub fn spent(&self) -> usize {
        self.meter.spent()
    }

    fn document(
        &self,
        mut manifest: Value,
        data_key: Arc<str>,
        index: usize,
        duplicate_keys: Vec<DuplicateKey>,
    ) -> ManifestDocument {
        let warnings = labels::normalise(&mut manifest);
        let raw = self.data_keys - 1;
        ManifestDocument { manifest, secret: self.secret.clone(), data_key, index, raw, warnings, duplicate_keys }
    }

    fn next_data_key(&mut self) -> Option<Current<'a>> {
        loop {
            if let Some((data_key, value)) = self.entries.next() {
                self.data_keys += 1;
                return Some(Current {
                    data_key: Arc::from(data_key.as_str()),
                    documents: DataKey::new(data_key, value, self.limits, self.most_duplicates),
                });
            }
            let SecretData { namespace, name, data } = self.secrets.next()?;
            self.secret = Arc::from(format!("{namespace}/{name}"));
            self.entries = data.iter();
        }
    }
}

impl<'a, I: Iterator<Item = SecretData<'a>>> Iterator for Decoder<'a, I> {
    type Item = Result<ManifestDocument, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((position, manifest)) = self.items.left.next() {
                let duplicates = duplicates::of_item(&mut self.items.duplicates, position);
                return Some(Ok(self.document(manifest, self.items.data_key.clone(), self.items.index, duplicates)));
            }
            if self.meter.is_exhausted() {
                return None;
            }
            let mut current = match self.current.take() {
                Some(current) => current,
                None => self.next_data_key()?,
            };
            let Some((index, result)) = current.documents.next(&mut self.meter) else { continue };

            let data_key = current.data_key.clone();
            let (duplicates, template_line) = current.documents.take_notes();
            self.current = Some(current);
            let result = result.map(list::take_apart).and_then(|taken| match taken {
                Ok(items) if items.len() > self.limits.documents => Err(self.limits.documents_text()),
                taken => Ok(taken),
            });
            return Some(match result {
                Ok(Ok(items)) => {
                    self.items = Items { data_key, index, left: items.into_iter().enumerate(), duplicates };
                    continue;
                }
                Ok(Err(manifest)) => Ok(self.document(manifest, data_key, index, duplicates)),
                Err(text) => {
                    let secret = self.secret.clone();
                    let _ = self.meter.charge(ERROR_COST); // the next call notices an exhausted meter
                    Err(DecodeError { secret, data_key, index, text, template_line })
                }
            });
        }
    }
}

impl fmt::Debug for ManifestDocument {
    /// Omits the manifest, which may be a Secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManifestDocument")
            .field("secret", &self.secret)
            .field("data_key", &self.data_key)
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for DecodeError {
    /// Its part of the condition's message (spec 10 §16, row "decoding failed").
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { secret, data_key, index, text, .. } = self;
        write!(f, "Could not decode resource at index {index} in '{data_key}' in secret '{secret}': {text}.")
    }
}

#[cfg(test)]
mod tests;
