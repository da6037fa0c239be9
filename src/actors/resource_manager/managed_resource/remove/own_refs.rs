//! Refs of a ManagedResource to itself, to its own Secrets, and to ManagedResources that have a ref to it in turn. All
//! of this exists only where source and target are one cluster. Uids tell, as they are unique everywhere.

use std::collections::BTreeSet;

use cluster::{Cached, object::NamespacedName};

use super::{
    super::{known::CachedManagedResource, steps::Run},
    clean::itself,
};
use crate::api::resources::managed_resource::ResourceRef;

/// Returns true if pruning leaves an object alone and does not wait for its end. The error says why this is unknown.
/// * Its own ManagedResource: it ends when pruning has ended, so it would wait for itself.
/// * A Secret that the ManagedResource reads its manifests from, as long as the ManagedResource is not being deleted:
///   without the Secret nothing could be applied.
/// * A ManagedResource in deletion that waits for this one, which is in deletion too: both would wait for ever.
pub(super) async fn is_spared(run: &Run<'_>, reference: &ResourceRef, uid: &str) -> Result<bool, String> {
    let (key, mr) = (reference.key(), run.mr());
    let name = NamespacedName::new(&key.namespace, &key.name);
    if itself::is_managed_resource(&key) {
        let is_own = uid == mr.metadata.uid;
        return Ok(is_own || (mr.is_deleting() && is_same(run, &name, uid) && waits_for(run, name)));
    }
    let may_be_own = !mr.is_deleting() && itself::is_named_secret(mr, &run.reconcile.key, &key);
    if !may_be_own {
        return Ok(false);
    }
    let is_own = run.controller.secrets.is(&run.context, &name, uid).await;
    is_own.map_err(|error| format!("whether the bundle reads its manifests from it cannot be told: {error}"))
}

/// Returns true if the object is the ManagedResource of that name in the source cluster. The cache may be late here: a
/// uid never comes again, and a spared object is being deleted anyway. If the cache does not know the deletion yet,
/// pruning waits for the object until it does.
fn is_same(run: &Run<'_>, name: &NamespacedName, uid: &str) -> bool {
    run.controller.bundles.store().with(name, |cached| cached.uid() == uid).unwrap_or(false)
}

/// Returns true if a ManagedResource in deletion waits, directly or through others, for the reconciled one.
fn waits_for(run: &Run<'_>, bundle: NamespacedName) -> bool {
    let store = run.controller.bundles.store();
    let mut seen = BTreeSet::new();
    let mut next = vec![bundle];
    while let Some(bundle) = next.pop() {
        if bundle == run.reconcile.key {
            return true;
        }
        if !seen.insert(bundle.clone()) {
            continue;
        }
        let Some(Ok(mr)) = store.with(&bundle, CachedManagedResource::managed_resource) else { continue };
        if mr.is_deleting() && !mr.spec.keep_objects {
            let keys = mr.status.resources.iter().map(ResourceRef::key).filter(itself::is_managed_resource);
            next.extend(keys.map(|key| NamespacedName::new(key.namespace, key.name)));
        }
    }
    false
}
