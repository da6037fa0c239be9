//! Warnings of objects that belong to another ManagedResource (spec 10 §3.2, decision 11).

use std::{collections::BTreeSet, rc::Rc};

use cluster::object::{self, NamespacedName, ObjectKey};
use serde_json::Value;

use super::{DiffError, Report, clusters::Clusters};
use crate::{
    actors::resource_manager::{bundle::identity::Equivalences, managed_resource::clean},
    api::resources::{keys, managed_resource::ResourceRef, origin::Origin},
};

/// Owners that are remembered. Beyond, all are read again.
const REMEMBERED: usize = 256;
/// Objects of one bundle with a warning of their own.
const NAMED: usize = 10;

/// The objects of one bundle that others claim.
#[derive(Default)]
pub(super) struct Claimed {
    warnings: usize,
}

impl Clusters {
    /// Warns if the live object has the origin of another ManagedResource that still wants it, or of another cluster.
    pub(super) async fn warn_of_owner(
        &self,
        (display, key, live): (&str, &ObjectKey, &Value),
        (own, equivalences): (&Origin, &Equivalences),
        claimed: &mut Claimed,
        report: &mut Report,
    ) {
        let Some(annotation) = object::annotation(live, keys::ORIGIN) else { return };
        let text = match clean::other_owner(Some(annotation), own) {
            Some(owner) => match self.objects_of(&owner).await {
                Ok(Some(objects)) => {
                    let mut same = equivalences.of_key(key).chain([key.clone()]);
                    if !same.any(|key| objects.contains(&key)) {
                        return;
                    }
                    format!(
                        "{display} belongs to ManagedResource {owner} too: the last writer wins — remove it from one"
                    )
                }
                Ok(None) => return,
                Err(error) => {
                    format!("{display} has the origin {owner}; whether it still belongs to it is unknown: {error}")
                }
            },
            None => match annotation.parse::<Origin>() {
                Ok(origin) if origin.cluster_id != own.cluster_id => {
                    format!("{display} has the origin {annotation:?}, of another cluster — is --cluster-id right?")
                }
                Ok(_) | Err(_) => return,
            },
        };
        claimed.warnings += 1;
        if claimed.warnings <= NAMED {
            report.remarks.push(format!("warning: {text}"));
        }
    }

    async fn objects_of(&self, owner: &NamespacedName) -> Result<Option<Rc<BTreeSet<ObjectKey>>>, DiffError> {
        if let Some(known) = self.owners.0.borrow().get(owner) {
            return Ok(known.clone());
        }
        let mr = self.managed_resource(owner).await?;
        let objects = mr.map(|mr| Rc::new(mr.status.resources.iter().map(ResourceRef::key).collect::<BTreeSet<_>>()));
        let mut known = self.owners.0.borrow_mut();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(owner.clone(), objects.clone());
        Ok(objects)
    }
}

impl Claimed {
    /// Says how many objects have no warning of their own.
    pub(super) fn end(self, report: &mut Report) {
        let more = self.warnings.saturating_sub(NAMED);
        if more > 0 {
            report.remarks.push(format!("warning: {more} more objects belong to others"));
        }
    }
}
