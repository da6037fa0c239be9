//! Fetches the discovery documents: two aggregated ones, or one per group and version from older servers.

use std::time::Duration;

use futures::{StreamExt as _, stream};
use http::{
    HeaderValue,
    header::{ETAG, IF_NONE_MATCH},
};
use kit::Deadline;

use super::{
    super::{
        ApiError, ApiName,
        transport::{Answer, Call, Transport},
    },
    documents::{GroupVersions, Served, Version, aggregated, legacy_groups, legacy_resources},
};
use crate::object::api_version;

/// `Accept` of an aggregated document; older servers answer with the plain one.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
const ROOTS: [&str; 2] = ["/api", "/apis"];
const LIMIT: Duration = Duration::from_secs(30);
pub(super) const SIDE_BY_SIDE: usize = 8;

/// The last aggregated document of each root with its entity tag, for which the server answers 304.
#[derive(Default)]
pub(super) struct Cached([Option<(HeaderValue, Served)>; 2]);

pub(super) async fn fetch(transport: &Transport, cached: &mut Cached) -> Result<Served, ApiError> {
    let mut all = Served::default();
    for (root, cached) in ROOTS.into_iter().zip(&mut cached.0) {
        all.0.extend(fetch_root(transport, root, cached).await?.0);
    }
    Ok(all)
}

async fn fetch_root(
    transport: &Transport,
    root: &str,
    cached: &mut Option<(HeaderValue, Served)>,
) -> Result<Served, ApiError> {
    let mut call = Call::read(root.to_owned()).accepting(AGGREGATED);
    if let Some((tag, _)) = cached {
        call.headers.insert(IF_NONE_MATCH, tag.clone());
    }
    let answer = match (get(transport, &call).await, &cached) {
        (Err(error), Some((_, served))) if error.code() == Some(304) => return Ok(served.clone()),
        (Err(error), _) if matches!(error.code(), Some(404 | 406)) => get(transport, &Call::read(root.into())).await?,
        (answer, _) => answer?,
    };
    let document = answer.json()?;
    if document["kind"] != "APIGroupDiscoveryList" {
        *cached = None;
        return fetch_legacy(transport, root, legacy_groups(&document)?).await;
    }
    let served = aggregated(&document)?;
    *cached = answer.headers.get(ETAG).map(|tag| (tag.clone(), served.clone()));
    Ok(served)
}

async fn fetch_legacy(transport: &Transport, root: &str, groups: Vec<GroupVersions>) -> Result<Served, ApiError> {
    let flat = groups.iter().flat_map(|(group, versions)| versions.iter().map(move |version| (group, version)));
    let fetches = flat
        .map(|(group, version)| async move { (group.clone(), fetch_version(transport, root, group, version).await) });
    let mut served = Served::default();
    let mut fetches = stream::iter(fetches.collect::<Vec<_>>()).buffered(SIDE_BY_SIDE);
    while let Some((group, version)) = fetches.next().await {
        served.0.entry(group).or_default().extend(version);
    }
    Ok(served)
}

/// Returns `None` if the version has gone meanwhile; a stale version if its request fails.
async fn fetch_version(transport: &Transport, root: &str, group: &ApiName, version: &ApiName) -> Option<Version> {
    let api_version = api_version(group, version);
    let call = Call::read(format!("{root}/{api_version}"));
    let result = get(transport, &call).await.and_then(|answer| legacy_resources(group, version, &answer.json()?));
    match result {
        Err(error) if error.code() == Some(404) => None,
        Err(error) => {
            let stale = Some(format!("{api_version}: {error}"));
            Some(Version { name: version.clone(), resources: Vec::new(), stale })
        }
        Ok(version) => Some(version),
    }
}

/// Bypasses the request scheduler: such requests are few, and everything waits for them.
pub(super) async fn get(transport: &Transport, call: &Call) -> Result<Answer, ApiError> {
    transport.perform_at_once(call, Deadline::after(LIMIT)).await
}
