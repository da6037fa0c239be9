//! What a pass will do (spec 10 §9.4, §9.6): manifests and old references in, a [`Plan`] out.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::{
    identity::{self, Equivalences, OldIndex},
    inject,
    normalise::{self, Scope},
};
use crate::api::{
    keys,
    managed_resource::ResourceRef,
    object::{GroupVersionKind, ObjectKey, truthy},
};

/// What a plan is made from.
pub struct Input<'a> {
    /// The decoded manifests in processing order.
    pub documents: Vec<Value>,
    /// `status.resources`.
    pub old: &'a [ResourceRef],
    /// Predefined and additional equivalences.
    pub equivalences: &'a Equivalences,
    /// Labels that every object gets, see [`inject::labels_to_inject`].
    pub labels: &'a BTreeMap<String, String>,
    /// Whether something about the manifests is not known: a document does not decode (decision 9), or discovery cannot
    /// tell the scope of a kind (spec 10 §9.3). Then nothing is removed, because it may be wanted. A document without
    /// type or name, and a list that cannot be taken apart, count the same.
    pub incomplete: bool,
    /// Scope of a kind in the target cluster. Unknown is normal: the CRD may be part of the same bundle.
    pub scope: &'a dyn Fn(&GroupVersionKind) -> Scope,
}

/// What a pass will do.
#[derive(Debug, Default)]
pub struct Plan {
    /// The objects to apply, in processing order; [`super::order::ranks`] brings them in the order of application.
    pub objects: Vec<PlannedObject>,
    /// What the status lists at the end, sorted by key string (spec 10 §9.6): references to the objects, and those
    /// that would be [`Plan::removed`] if all documents were objects, since their objects are still there (decision
    /// 9). Objects with an [`PlannedObject::error`] have none: nothing could ever be found under it.
    pub references: Vec<ResourceRef>,
    /// Those of the references whose object no old reference named: they join the status before anything is applied
    /// (spec 10 §9.7). Sorted by key string.
    pub added: Vec<ResourceRef>,
    /// Old references nothing in the bundle asks for any more; sorted by key string. They are to be deleted.
    pub removed: Vec<ResourceRef>,
    /// Old references nothing seems to ask for, though that is not certain ([`Input::incomplete`]); sorted by key string. They
    /// are among [`Plan::references`].
    pub kept: Vec<ResourceRef>,
    /// Old references whose manifest is in Ignore mode now; sorted by key string. They are to be released (spec 10
    /// §14).
    pub released: Vec<ResourceRef>,
    /// Keys that several manifests have, each once, sorted. They are applied one after the other; for a warning.
    pub duplicates: Vec<ObjectKey>,
}

/// One object to apply.
pub struct PlannedObject {
    /// The manifest, with its namespace normalised, **before** labels are injected: the creation needs it so
    /// (spec 10 §12). [`super::merge`] injects.
    pub manifest: Value,
    /// Position in [`Input::documents`]: the checksum covers the data keys of the documents that are applied (§9.5).
    pub document: usize,
    /// Index key (spec 10 §10.1).
    pub key: ObjectKey,
    /// What the status will say.
    pub reference: ResourceRef,
    /// The old reference's labels and annotations, if there is one: what we applied before.
    pub old: Option<Old>,
    /// Whether the manifest says that the object is created but never updated.
    pub ignored: bool,
    /// Why it cannot be applied, whatever the cluster says. It fails in its turn.
    pub error: Option<ManifestError>,
}

/// Labels and annotations as they were last applied.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Old {
    /// Labels, with those injected.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the manifest.
    pub annotations: BTreeMap<String, String>,
}

/// A manifest that no cluster would take.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ManifestError {
    /// No `metadata.name` (spec 10 §11.3).
    #[error("resource name may not be empty")]
    NoName,
    /// No `apiVersion` or no `kind`.
    #[error("resource {0} may not be empty")]
    NoType(&'static str),
    /// A list of a built-in API that cannot be taken apart (spec 10 §11.3).
    #[error("object type \"{group}/{version}, Kind={kind}\" is unsupported")]
    List {
        /// Empty for the core group.
        group: String,
        /// Version.
        version: String,
        /// A kind that ends in `List`.
        kind: String,
    },
}

/// Plans a pass.
///
/// Guarantees: an object that the bundle wants is never in [`Plan::removed`], under whatever group the API server has it,
/// and one in Ignore mode is there as little. Of kinds that only the bundle declares to be equivalent, which are two objects,
/// the one that is not wanted is removed if the wanted one is listed by its own key (spec 10 §10.3).
pub fn plan(input: Input<'_>) -> Plan {
    let Input { documents, old, equivalences, labels, incomplete, scope } = input;
    let old_key = |reference: &ResourceRef| {
        normalise::scope_normalised_key(reference.key(), scope(&reference.group_version_kind()))
    };
    let mut index = OldIndex::new(old.iter().map(|reference| (old_key(reference), reference)));

    let mut plan = Plan::default();
    let mut seen = BTreeSet::new();
    let mut released = BTreeMap::new();
    for (document, mut manifest) in documents.into_iter().enumerate() {
        let gvk = identity::gvk_of(&manifest);
        let scope = scope(&gvk);
        normalise::normalise_namespace(&mut manifest, scope);
        let key = identity::key_of_object(&manifest);
        let mut hit = index.find(&key, equivalences);
        if scope == Scope::Unknown {
            hit = hit.or(index.find_despite_namespace(&key, equivalences));
        }

        let annotations = inject::string_map(&manifest, "annotations");
        if is_given_away(&annotations) {
            released.extend(hit.map(|reference| (key, reference.clone())));
            continue;
        }
        if !seen.insert(key.clone()) {
            plan.duplicates.push(key.clone());
        }
        plan.objects.push(planned(manifest, document, key, hit, annotations, labels));
    }

    plan.duplicates.sort_by_cached_key(ObjectKey::to_string);
    plan.duplicates.dedup();
    let valid = || plan.objects.iter().filter(|object| object.error.is_none());
    let references = valid().map(|object| object.reference.clone()).collect();
    let added = valid().filter(|object| object.old.is_none()).map(|object| object.reference.clone()).collect();
    (plan.references, plan.added) = (references, added);
    let is_applied =
        |key: &ObjectKey| seen.contains(key) || equivalences.of_key(key).any(|other| seen.contains(&other));
    let is_released =
        |(key, reference): &(ObjectKey, ResourceRef)| !is_applied(key) && !is_applied(&old_key(reference));
    plan.released = released.into_iter().filter(is_released).map(|(_, reference)| reference).collect();
    let not_found = index.not_found().into_iter().cloned();
    // What a manifest without a name, say, was meant to describe is not known: it may be an old object.
    if incomplete || plan.objects.iter().any(|object| object.error.is_some()) {
        plan.kept.extend(not_found);
        plan.references.extend(plan.kept.iter().cloned());
    } else {
        plan.removed.extend(not_found)
    }
    sort_references(&mut plan.references);
    sort_references(&mut plan.added);
    sort_references(&mut plan.removed);
    sort_references(&mut plan.kept);
    sort_references(&mut plan.released);
    plan
}

/// The objects that manifests name in Ignore mode: their bundle gives them away (spec 10 §9.4).
pub fn given_away(documents: Vec<Value>, scope: &dyn Fn(&GroupVersionKind) -> Scope) -> BTreeSet<ObjectKey> {
    let given = documents.into_iter().filter(|manifest| is_given_away(&inject::string_map(manifest, "annotations")));
    given
        .map(|mut manifest| {
            let scope = scope(&identity::gvk_of(&manifest));
            normalise::normalise_namespace(&mut manifest, scope);
            identity::key_of_object(&manifest)
        })
        .collect()
}

fn is_given_away(annotations: &BTreeMap<String, String>) -> bool {
    annotations.get(keys::MODE).is_some_and(|mode| mode == keys::MODE_IGNORE)
}

/// Sorts by key string, in byte order (spec 10 §9.6); references with equal keys keep their order.
pub fn sort_references(references: &mut [ResourceRef]) {
    references.sort_by_cached_key(|reference| reference.key().to_string());
}

fn planned(
    manifest: Value,
    document: usize,
    key: ObjectKey,
    hit: Option<&ResourceRef>,
    annotations: BTreeMap<String, String>,
    inject_labels: &BTreeMap<String, String>,
) -> PlannedObject {
    let text = |field| manifest.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut labels = inject::string_map(&manifest, "labels");
    labels.extend(inject_labels.clone());
    let ignored = truthy(annotations.get(keys::IGNORE).map(String::as_str));
    let reference = ResourceRef {
        api_version: text("apiVersion"),
        kind: text("kind"),
        namespace: crate::api::object::namespace(&manifest).to_owned(),
        name: key.name.clone(),
        labels,
        annotations,
        ..ResourceRef::default()
    };
    PlannedObject {
        document,
        old: hit.map(|old| Old { labels: old.labels.clone(), annotations: old.annotations.clone() }),
        ignored,
        error: check(&reference),
        manifest,
        key,
        reference,
    }
}

fn check(reference: &ResourceRef) -> Option<ManifestError> {
    let gvk = reference.group_version_kind();
    if reference.api_version.is_empty() {
        Some(ManifestError::NoType("apiVersion"))
    } else if gvk.kind.is_empty() {
        Some(ManifestError::NoType("kind"))
    } else if identity::is_list(&gvk) {
        Some(ManifestError::List { group: gvk.group, version: gvk.version, kind: gvk.kind })
    } else if reference.name.is_empty() {
        Some(ManifestError::NoName)
    } else {
        None
    }
}

impl fmt::Debug for PlannedObject {
    /// Without the manifest: it may be a Secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlannedObject")
            .field("key", &self.key)
            .field("document", &self.document)
            .field("ignored", &self.ignored)
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
