//! Node affinity: pins Pods to the zones of their Namespace (spec 51 §5).

use serde_json::{Value, json};

use super::{
    Error,
    namespace::{Tolerance, Wanted},
    text,
};
use crate::webhooks::fields::{self, WrongType};

pub(super) const ZONE_KEY: &str = "topology.kubernetes.io/zone";

const TERMS: [&str; 7] = [
    "spec",
    "template",
    "spec",
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
];

/// Bound of the bytes that the zones of all terms add: more than an API server can store, but bounded memory.
const MOST_BYTES: usize = 4 << 20;

/// Bytes that a zone takes in addition to its text.
const BESIDES: usize = 48;

/// Requires the zones in **each** term: a term of its own would be an alternative (spec 51 R1). Other keys stay (R2).
pub(super) fn pin_to_zones(object: &mut Value, wanted: &Wanted) -> Result<(), Error> {
    if wanted.zones.is_empty() || (wanted.tolerance == Tolerance::Absent && !wanted.pinned) {
        return Ok(());
    }

    let terms = fields::list_mut(object, &TERMS)?;
    if terms.is_empty() {
        terms.push(json!({}));
    }
    let (count, zones) = (terms.len(), wanted.zones.len());
    let bytes: usize = wanted.zones.iter().map(|zone| BESIDES + zone.len()).sum();
    if bytes.saturating_mul(count) > MOST_BYTES {
        let message = format!("{count} node selector terms with {zones} zones each are too many");
        return Err(Error::denied(format!("spec.template.spec.affinity: {message}")));
    }
    Ok(terms.iter_mut().try_for_each(|term| require(term, &wanted.zones))?)
}

fn require(term: &mut Value, zones: &[String]) -> Result<(), WrongType> {
    let expressions = fields::list_mut(term, &["matchExpressions"])?;
    expressions.retain(|expression| text(expression, "key") != ZONE_KEY);
    expressions.push(json!({ "key": ZONE_KEY, "operator": "In", "values": zones }));
    Ok(())
}
