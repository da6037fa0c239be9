//! Deployments. Their status does not show Pods of an earlier ReplicaSet that still end: those are counted.

use serde_json::Value;

use crate::actors::resource_manager::health::{
    fields::{Trouble, generation_observed, required},
    pods::Quota,
};

pub(super) fn check(object: &Value) -> Result<Quota, Trouble> {
    generation_observed(object)?;
    let progressing = required(object, "Progressing")?;
    if progressing.status()? != "True" || progressing.reason()? != "NewReplicaSetAvailable" {
        return Err(Trouble::Bad(progressing.message()?.to_owned()));
    }
    Quota::of(object)
}
