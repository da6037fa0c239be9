//! Number of replicas (spec 51 §4).

use kit::quote::quoted;
use serde_json::Value;

use super::{
    Error,
    namespace::{Tolerance, Wanted},
};
use crate::{
    api::meta::integer,
    webhooks::fields::{self, WrongType},
};

/// Label of a workload or an autoscaler: `controller`, or `server`, like any other value. Without it replicas stay.
pub const TYPE: &str = "high-availability-config.resources.gardener.cloud/type";
/// Annotation of a workload or an autoscaler: overrides the number of replicas. Read only together with [`TYPE`].
pub const REPLICAS: &str = "high-availability-config.resources.gardener.cloud/replicas";

const CONTROLLER: &str = "controller";

pub(super) const COUNT: [&str; 2] = ["spec", "replicas"];
const MIN_REPLICAS: [&str; 2] = ["spec", "minReplicas"];
const MAX_REPLICAS: [&str; 2] = ["spec", "maxReplicas"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scaling {
    /// "C"; absent is 0.
    current: i64,
    /// "R"; `None`: stays.
    computed: Option<i64>,
}

/// Raises `minReplicas` of a HorizontalPodAutoscaler to the computed number, never lowers it (spec 51 §4.2), and raises
/// `maxReplicas` where needed to keep it valid ("better" 10).
pub(super) fn of_autoscaler(object: &mut Value, wanted: &Wanted) -> Result<(), Error> {
    let scaling = Scaling::of(object, &MIN_REPLICAS, wanted)?;
    let Some(computed) = scaling.computed else { return Ok(()) };

    let min = scaling.current.max(computed);
    set(object, &MIN_REPLICAS, min)?;
    if fields::integer(object, &MAX_REPLICAS)?.unwrap_or_default() < min {
        set(object, &MAX_REPLICAS, min)?;
    }
    Ok(())
}

impl Scaling {
    pub(super) fn of_workload(object: &Value, wanted: &Wanted) -> Result<Self, Error> {
        Self::of(object, &COUNT, wanted)
    }

    /// Spec 51 §4.0, row by row.
    fn of(object: &Value, count: &[&str], wanted: &Wanted) -> Result<Self, Error> {
        let current = fields::integer(object, count)?.unwrap_or_default();
        let component = fields::text(object, &["metadata", "labels", TYPE])?.unwrap_or_default();
        if current == 0 || component.is_empty() {
            // Hibernated, or not ours.
            return Ok(Self { current, computed: None });
        }
        let annotation = fields::text(object, &["metadata", "annotations", REPLICAS])?.unwrap_or_default();
        let computed = match (annotation, component, wanted.tolerance) {
            ("", CONTROLLER, Tolerance::Empty) => 1,
            ("", ..) => 2,
            (annotation, ..) => parse(annotation)?,
        };
        Ok(Self { current, computed: Some(computed) })
    }

    /// Whether a workload without an autoscaler would be scaled down.
    pub(super) fn lowers(&self) -> bool {
        self.computed.is_some_and(|computed| computed < self.current)
    }

    /// Spec 51 §4.1.
    pub(super) fn apply(&self, object: &mut Value, is_scaled: bool) -> Result<(), WrongType> {
        match self.computed {
            Some(computed) if !is_scaled || self.current < computed => set(object, &COUNT, computed),
            Some(_) | None => Ok(()),
        }
    }
}

fn set(object: &mut Value, [above, field]: &[&str; 2], value: i64) -> Result<(), WrongType> {
    fields::map_mut(object, &[above])?.insert((*field).to_owned(), value.into());
    Ok(())
}

/// Parses a 32-bit integer. 0 and less are taken literally: the API server judges them (spec 51 §4.0).
fn parse(text: &str) -> Result<i64, Error> {
    let number = integer::parse(text)
        .map_err(|cause| Error::denied(format!("strconv.Atoi: parsing {}: {cause}", quoted(text))))?;
    if i32::try_from(number).is_err() {
        return Err(Error::denied(format!("annotation {REPLICAS}: {number} is out of the range of 32-bit integers")));
    }
    Ok(number)
}
