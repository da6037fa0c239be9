//! The plan of a reconcile (spec 10 §9.4, §9.6): manifests and old references in, a [`Plan`] out.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use cluster::object::{GroupVersionKind, ObjectKey, truthy};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::{
    identity::{self, Equivalences, OldIndex},
    inject,
    normalise::{self, Scope},
};
use crate::api::resources::{keys, managed_resource::ResourceRef};

/// Input of a plan.
pub struct Input<'a> {
    /// The decoded manifests in processing order.
    pub documents: Vec<Value>,
    /// `status.resources`.
    pub old: &'a [ResourceRef],
    /// Predefined and additional equivalences.
    pub equivalences: &'a Equivalences,
    /// Labels that every object gets, see [`inject::labels_to_inject`].
    pub labels: &'a BTreeMap<String, String>,
    /// Whether part of the manifests is unknown: a document does not decode (decision 9), or discovery does not tell
    /// the scope of a kind (spec 10 §9.3). Then nothing is pruned, because it may be wanted. A document without type or
    /// name, and a list that cannot be split, have the same effect.
    pub incomplete: bool,
    /// Scope of a kind in the target cluster. Unknown is normal: the CRD may be among the manifests.
    pub scope: &'a dyn Fn(&GroupVersionKind) -> Scope,
}

/// What a reconcile will do.
#[derive(Debug, Default)]
pub struct Plan {
    /// The objects to apply, in processing order; [`super::order::ranks`] sorts them for the application.
    pub objects: Vec<PlannedObject>,
    /// What the status lists at the end, sorted by key string (spec 10 §9.6): references to the objects, and
    /// [`Plan::kept`], whose objects still exist (decision 9). Objects with an [`PlannedObject::error`] have no
    /// reference: nothing could ever be found under it.
    pub references: Vec<ResourceRef>,
    /// New references, sorted by key string. They join the status before anything is applied (spec 10 §9.7).
    pub added: Vec<ResourceRef>,
    /// Old references to prune: no manifest asks for their objects. Sorted by key string.
    pub removed: Vec<ResourceRef>,
    /// Old references that perhaps no manifest asks for ([`Input::incomplete`]), sorted; also in [`Plan::references`].
    pub kept: Vec<ResourceRef>,
    /// Old references to release: their manifest is in Ignore mode now (spec 10 §14). Sorted by key string. While part
    /// of the manifests is unknown, references to declared equivalents of such a manifest are released with it.
    pub released: Vec<ResourceRef>,
    /// Keys of several manifests, unique and sorted, for a warning. These manifests are applied one after the other.
    pub duplicates: Vec<ObjectKey>,
}

/// An object to apply.
pub struct PlannedObject {
    /// The manifest with its namespace, **before** label injection, which [`super::merge`] does (spec 10 §12).
    pub manifest: Value,
    /// Index in [`Input::documents`]: the checksum covers the data keys of the applied documents (§9.5).
    pub document: usize,
    /// Index key (spec 10 §10.1).
    pub key: ObjectKey,
    /// Its reference for the status.
    pub reference: ResourceRef,
    /// Labels and annotations of the old reference, if there is one: what was applied before.
    pub old: Option<Old>,
    /// Whether the manifest says that the object is created but never updated.
    pub ignored: bool,
    /// Why no cluster would accept it. It fails when its turn comes.
    pub error: Option<ManifestError>,
}

/// Labels and annotations as they were last applied.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Old {
    /// Labels, including injected ones.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the manifest.
    pub annotations: BTreeMap<String, String>,
}

/// A manifest that no cluster would accept.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ManifestError {
    /// No `metadata.name` (spec 10 §11.3).
    #[error("resource name may not be empty")]
    NoName,
    /// No `apiVersion` or no `kind`.
    #[error("resource {0} may not be empty")]
    NoType(&'static str),
    /// A list of a built-in API that cannot be split (spec 10 §11.3).
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

/// Plans a reconcile. A wanted object is never in [`Plan::removed`], under any group in which the API server has it,
/// and neither is an object in Ignore mode. Kinds that only `spec.equivalences` declares equivalent are two objects if
/// the wanted one is listed by its own key; then the other is removed (spec 10 §10.3). Example: `g.io/A x` and `h.io/A
/// x` are declared equivalent, both are listed, and only `h.io/A x` has a manifest: `g.io/A x` is removed.
pub fn plan(input: Input<'_>) -> Plan {
    let Input { documents, old, equivalences, labels, incomplete, scope } = input;
    let old_key = |reference: &ResourceRef| {
        normalise::scope_normalised_key(reference.key(), scope(&reference.group_version_kind()))
    };
    let mut index = OldIndex::new(old.iter().map(|reference| (old_key(reference), reference)));

    let mut plan = Plan::default();
    let mut seen = BTreeSet::new();
    let (mut released, mut given_away) = (BTreeMap::new(), Vec::new());
    for (document, mut manifest) in documents.into_iter().enumerate() {
        let gvk = identity::gvk_of(&manifest);
        let scope = scope(&gvk);
        normalise::normalise_namespace(&mut manifest, scope);
        let key = identity::key_of_object(&manifest);
        let hit = find(&mut index, &key, scope, equivalences);

        let annotations = inject::string_map(&manifest, "annotations");
        if is_given_away(&annotations) {
            released.extend(hit.map(|reference| (key.clone(), reference.clone())));
            given_away.push((key, scope));
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
    let not_found = index.not_found();
    // A manifest with an error, e.g. without a name, may mean one of the old objects.
    if incomplete || plan.objects.iter().any(|object| object.error.is_some()) {
        // The next plan finds more: references that joined lead to declared equivalents, those of manifests in Ignore
        // mode hide none any more. Whatever it would find is settled now, so that plans of the same manifests agree.
        let listed = plan.references.iter().chain(not_found.iter().copied());
        let mut next = OldIndex::new(listed.map(|reference| (old_key(reference), reference)));
        for object in &plan.objects {
            find(&mut next, &object.key, scope(&identity::gvk_of(&object.manifest)), equivalences);
        }
        let keys_not_found = |index: &OldIndex<'_>| index.not_found().into_iter().map(old_key).collect::<BTreeSet<_>>();
        let unwanted = keys_not_found(&next);
        for (key, scope) in &given_away {
            find(&mut next, key, *scope, equivalences);
        }
        let kept = keys_not_found(&next);
        for reference in not_found {
            let key = old_key(reference);
            if kept.contains(&key) {
                plan.kept.push(reference.clone());
            } else if unwanted.contains(&key) && !is_applied(&key) {
                plan.released.push(reference.clone());
            }
        }
        plan.references.extend(plan.kept.iter().cloned());
    } else {
        plan.removed.extend(not_found.into_iter().cloned());
    }
    for list in [&mut plan.references, &mut plan.added, &mut plan.removed, &mut plan.kept, &mut plan.released] {
        sort_references(list);
    }
    plan
}

/// Returns the old reference of a manifest's object.
fn find<'a>(
    index: &mut OldIndex<'a>,
    key: &ObjectKey,
    scope: Scope,
    equivalences: &Equivalences,
) -> Option<&'a ResourceRef> {
    let hit = index.find(key, equivalences);
    match scope {
        Scope::Unknown => hit.or(index.find_despite_namespace(key, equivalences)),
        _ => hit,
    }
}

/// The objects that manifests in Ignore mode name: their ManagedResource gives them up (spec 10 §9.4).
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
        namespace: cluster::object::namespace(&manifest).to_owned(),
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
    /// Omits the manifest, which may be a Secret.
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
