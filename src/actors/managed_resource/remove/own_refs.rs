//! What a bundle holds of itself: its own ManagedResource, its own Secrets, and bundles that hold it in turn.
//!
//! All of this exists only where source and target are one cluster. Uids tell, as they are unique everywhere.

use std::collections::BTreeSet;

use cluster::Cached;

use super::{
    super::{known::CachedBundle, steps::Run},
    clean::itself,
};
use crate::api::{managed_resource::ResourceRef, object::NamespacedName};

/// Whether the clean-up of a bundle leaves an object alone and does not wait for its end.
///
/// * Its own ManagedResource: it ends when the clean-up has ended, so it would wait for itself.
/// * A Secret that it reads its manifests from, as long as it is not being deleted: without it nothing could be applied.
/// * A ManagedResource that is being deleted and waits for this one, which is being deleted too: both would wait for ever.
///
/// The error says why that cannot be told.
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

/// Whether the object is the ManagedResource of that name in the source cluster. The store may be late here: a uid does not come
/// again, and what is spared is being deleted anyway. Where it does not know that yet, the object is waited for until it does.
fn is_same(run: &Run<'_>, name: &NamespacedName, uid: &str) -> bool {
    run.controller.bundles.store().with(name, |cached| cached.uid() == uid).unwrap_or(false)
}

/// Whether a bundle that is being deleted waits, directly or by others, for the end of the bundle of this pass.
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
        let Some(Ok(mr)) = store.with(&bundle, CachedBundle::managed_resource) else { continue };
        if mr.is_deleting() && !mr.spec.keep_objects {
            let keys = mr.status.resources.iter().map(ResourceRef::key).filter(itself::is_managed_resource);
            next.extend(keys.map(|key| NamespacedName::new(key.namespace, key.name)));
        }
    }
    false
}
