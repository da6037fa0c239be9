//! Releases objects whose manifests are in Ignore mode now: they stay, without our marks (spec 10 §14).

use cluster::Located;
use futures::{StreamExt, stream};
use kit::Causes;

use super::{
    super::{record::WriteKind, steps::Run},
    clean,
};
use crate::api::resources::managed_resource::ResourceRef;

const SIDE_BY_SIDE: usize = 16;

/// Releases objects. Returns the items of the message for failures, sorted by display strings.
pub(crate) async fn release(run: &Run<'_>, references: &[ResourceRef]) -> Vec<String> {
    let mut named: Vec<(String, &ResourceRef)> =
        references.iter().map(|reference| (reference.to_string(), reference)).collect();
    named.sort_by(|(a, _), (b, _)| a.cmp(b));
    let asked = run.controller.target.discovery().asked();
    let results: Vec<Result<(), String>> = stream::iter(named)
        .map(|(display, reference)| release_one(run, display, reference, asked))
        .buffered(SIDE_BY_SIDE)
        .collect()
        .await;
    results.into_iter().filter_map(Result::err).collect()
}

async fn release_one(run: &Run<'_>, display: String, reference: &ResourceRef, asked: u64) -> Result<(), String> {
    let target = &run.controller.target;
    let (key, kind) = (reference.key(), reference.group_version_kind());
    let name = (key.namespace.as_str(), reference.name.as_str());
    let (at, live) = match target.locate(&run.context, &kind, name, asked).await {
        Ok(Located::At(at, live)) => (at, live),
        Ok(Located::Nowhere(_)) => return Ok(()),
        Err(error) => return Err(clean::orphan_not_read(&display, &error.to_string())),
    };
    let Some(patch) = clean::release_patch(&live, &run.origin().to_string()) else {
        return Ok(()); // another ManagedResource has taken over
    };
    match target.merge_patch(&run.context, &at, None, &patch).await {
        Ok(_) => {
            tracing::info!(object = %reference, "an object was released");
            run.note_write(&key, WriteKind::Released, Causes::NONE);
            Ok(())
        }
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(clean::orphan_not_patched(&display, &error.to_string())),
    }
}
