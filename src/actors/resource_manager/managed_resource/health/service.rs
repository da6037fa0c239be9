//! The Events that say why a Service has no address (spec 20 §11.3).

use cluster::{ListQuery, object::GroupVersionKind};

use super::{
    memory::{HealthMemory, Quoted},
    run::HealthRun,
};
use crate::{
    actors::resource_manager::health::warnings::{Warnings, field_selector},
    api::{kinds, resources::managed_resource::ResourceRef},
};

pub(super) fn has_events(reference: &ResourceRef) -> bool {
    reference.group_version_kind() == GroupVersionKind::new("", "v1", "Service")
}

/// Returns the block of Events behind the text of the check, empty without Events or if they cannot be listed. It stays
/// as long as the Events are the same, whatever their age (spec 20, "Better than upstream" 16).
pub(super) async fn events(run: &HealthRun<'_>, memory: &mut HealthMemory, reference: &ResourceRef) -> String {
    let query = ListQuery {
        field_selector: Some(field_selector(&reference.namespace, &reference.name)),
        ..ListQuery::default()
    };
    let listed = run.controller.target.list(&run.context, &kinds::CORE_EVENT, Some(&reference.namespace), &query).await;
    let page = match listed {
        Ok(page) => page,
        Err(error) => {
            tracing::error!(service = %reference, error = %error, "cannot list the Events of a Service");
            return String::new();
        }
    };
    let warnings = Warnings::of(&page.items);
    let (service, fingerprint) = (reference.key(), warnings.fingerprint());
    let known = memory.quoted.take().filter(|quoted| quoted.service == service && quoted.fingerprint == fingerprint);
    let block = known.map_or_else(|| warnings.block(run.controller.env.clock.wall()), |quoted| quoted.block);
    memory.quoted = Some(Quoted { service, fingerprint, block: block.clone() });
    block
}
