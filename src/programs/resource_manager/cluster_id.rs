//! The identity of the source cluster (spec 70 §14).

use std::time::Duration;

use cluster::{ApiError, Context};
use kit::{Deadline, Priority};
use serde_json::Value;

use crate::{
    actors::resource_manager::controller_context::ControllerContext,
    api::{
        config::resource_manager::{ClusterIdSource, Config, cluster_id_source},
        kinds,
    },
};

const LIMIT: Duration = Duration::from_secs(30);

/// The cluster id cannot be determined.
#[derive(Debug, thiserror::Error)]
pub enum ClusterIdError {
    /// The ConfigMap cannot be read.
    #[error(
        "failed during bootstrapping: unable to determine cluster id: cannot determine cluster identity from configmap: {0}"
    )]
    ConfigMap(#[source] ApiError),
    /// The ConfigMap has no such key.
    #[error(
        "failed during bootstrapping: unable to determine cluster id: cannot determine cluster identity from configmap: no cluster-identity entry"
    )]
    NoEntry,
}

/// Reads it into the context. Fails if it is required and cannot be read.
pub(super) async fn determine(config: &Config, ctx: &ControllerContext) -> Result<(), ClusterIdError> {
    let cluster_id = read(&cluster_id_source(&config.controllers.cluster_id), ctx).await?;
    tracing::info!(cluster_id = %cluster_id, "Using cluster id");
    ctx.cluster_id.set(cluster_id).ok(); // a process leads at most once
    Ok(())
}

async fn read(source: &ClusterIdSource, ctx: &ControllerContext) -> Result<String, ClusterIdError> {
    let optional = match source {
        ClusterIdSource::Literal(id) => return Ok(id.clone()),
        ClusterIdSource::Required => false,
        ClusterIdSource::Optional => true,
    };
    tracing::info!("Trying to get cluster id from cluster");
    let context = Context::new(Priority::High, Deadline::after(LIMIT), "cluster-identity");
    match ctx.source.cluster.get(&context, &kinds::CONFIG_MAP.at("kube-system", "cluster-identity")).await {
        Ok(found) => match found.pointer("/data/cluster-identity").and_then(Value::as_str) {
            Some(id) => Ok(id.to_owned()),
            None if optional => Ok(String::new()),
            None => Err(ClusterIdError::NoEntry),
        },
        Err(error) if optional && error.is_not_found() => Ok(String::new()),
        Err(error) => Err(ClusterIdError::ConfigMap(error)),
    }
}
