//! The Namespace that a ManagedResource is in, if the ManagedResource owns it (spec 10 §13.7, decision 41): it cannot
//! end before the ManagedResource does, so it is deleted last and not waited for.

use cluster::{
    ApiError, Located,
    object::{self, GroupVersionKind},
};

use super::{
    super::{record::PendingDeletion, steps::Run},
    clean::{self, itself},
    deletion::{Pruned, delete, left_alone},
};
use crate::api::{
    kinds,
    resources::{
        keys::{self, ORIGIN},
        managed_resource::ResourceRef,
    },
};

const CONFLICTS: usize = 3;

pub(super) struct Held {
    /// Deleted first, and waited for.
    pub(super) others: Vec<ResourceRef>,
    pub(super) own: Option<ResourceRef>,
    pub(super) unconfirmed: Option<String>,
}

pub(super) async fn sort(run: &Run<'_>, references: &[ResourceRef]) -> Held {
    let may_be_own = |reference: &ResourceRef| itself::is_namespace_of(&run.reconcile.key, &reference.key());
    let mut held = Held { others: references.to_vec(), own: None, unconfirmed: None };
    let Some(own) = references.iter().find(|reference| may_be_own(reference)) else { return held };
    match is_in_target(run).await {
        Ok(false) => return held,
        Ok(true) => {
            held.own = Some(own.clone());
            let why = PendingDeletion::because("it is deleted last: the ManagedResource is in it");
            run.record.deletions.borrow_mut().note(own.key(), why);
        }
        Err(error) => {
            let text = format!("whether the ManagedResource is in it cannot be told: {error}");
            run.record.deletions.borrow_mut().note(own.key(), PendingDeletion::because(&text));
            held.unconfirmed = Some(clean::still_pending(&own.to_string(), Some(&text), ""));
        }
    }
    held.others.retain(|reference| !may_be_own(reference));
    held
}

/// Returns true if source and target are one cluster: the target has this very ManagedResource.
async fn is_in_target(run: &Run<'_>) -> Result<bool, ApiError> {
    let (key, target) = (&run.reconcile.key, &run.controller.target);
    let kind = GroupVersionKind::new(keys::GROUP, keys::VERSION, keys::KIND);
    let asked = target.discovery().asked();
    match target.locate(&run.context, &kind, (&key.namespace, &key.name), asked).await? {
        Located::At(_, live) => Ok(object::uid(&live) == run.mr().metadata.uid),
        Located::Nowhere(_) => Ok(false),
    }
}

pub(super) async fn delete_last(run: &Run<'_>, reference: &ResourceRef) -> Option<String> {
    let mut attempt = 0;
    let error = loop {
        attempt += 1;
        match try_delete(run, reference).await {
            Ok(unconfirmed) => break unconfirmed?,
            Err(error) if error.is_not_found() => return None,
            Err(error) if error.is_conflict() && attempt < CONFLICTS => {}
            Err(error) => break error.to_string(),
        }
    };
    Some(clean::still_pending(&reference.to_string(), Some(&error), ""))
}

async fn try_delete(run: &Run<'_>, reference: &ResourceRef) -> Result<Option<String>, ApiError> {
    let controller = run.controller;
    let asked = controller.env.clock.monotonic();
    let at = kinds::NAMESPACE.at("", &reference.name);
    let live = controller.target.get(&run.context, &at).await?;
    let (uid, origin) = (object::uid(&live), object::annotation(&live, ORIGIN));
    let stays = clean::exclusion_of_object(&live, controller.settings.garbage_collector).is_some();
    if stays || object::deletion_timestamp(&live).is_some() {
        return Ok(None);
    }
    match left_alone(run, reference, uid, origin).await {
        Some(Pruned::Pending(still_there)) => return Ok(still_there.error),
        Some(Pruned::Done) => return Ok(None),
        None => {}
    }
    // An unreadable grace time holds up nothing: the deletion was accepted.
    delete(run, reference, &at, uid, object::resource_version(&live), asked).await.map(|_| None)
}
