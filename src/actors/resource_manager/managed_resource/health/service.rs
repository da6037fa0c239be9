//! The Events that say why a Service has no address (spec 20 §11.3).

use cluster::object::GroupVersionKind;

use super::{
    memory::{HealthMemory, Quoted},
    run::HealthRun,
};
use crate::api::resources::managed_resource::ResourceRef;

pub(super) fn has_events(reference: &ResourceRef) -> bool {
    reference.group_version_kind() == GroupVersionKind::new("", "v1", "Service")
}

/// Returns the block of Events behind the text of the check, empty without Events or if they cannot be listed. It stays
/// as long as the Events are the same, whatever their age (spec 20, "Better than upstream" 16).
pub(super) async fn events(run: &HealthRun<'_>, memory: &mut HealthMemory, reference: &ResourceRef) -> String {
    let service = reference.key();
    let warnings = match run.controller.warnings_of(&run.context, &service).await {
        Ok(warnings) => warnings,
        Err(error) => {
            tracing::error!(service = %reference, error = %error, "cannot list the Events of a Service");
            return String::new();
        }
    };
    let fingerprint = warnings.fingerprint();
    let known = memory.quoted.take().filter(|quoted| quoted.service == service && quoted.fingerprint == fingerprint);
    let block = known.map_or_else(|| warnings.block(run.controller.env.clock.wall()), |quoted| quoted.block);
    memory.quoted = Some(Quoted { service, fingerprint, block: block.clone() });
    block
}
