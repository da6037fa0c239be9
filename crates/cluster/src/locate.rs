use serde_json::Value;

use super::{ApiError, Cluster, Context, ObjectRef, ProvedAbsent, Resource, Serving};
use crate::object::GroupVersionKind;

/// Where an object is.
#[derive(Debug, Clone, PartialEq)]
pub enum Located {
    /// The object and its address.
    At(ObjectRef, Value),
    /// It does not exist.
    Nowhere(Nowhere),
}

/// Why an object is known not to exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Nowhere {
    /// The API server does not find it.
    NotFound,
    /// Its kind is not served.
    Kind(ProvedAbsent),
}

impl Cluster {
    /// Reads an object, live, in the version of `kind`, else in another served version (spec 10 §13.1). `namespace`
    /// counts if the kind is namespaced. The proof of an unserved kind is younger than `asked`
    /// ([`Discovery::asked`](super::Discovery::asked)). Fails unless the object is read or its absence proved; a
    /// proxy's 404 proves nothing.
    pub async fn locate(
        &self,
        ctx: &Context,
        kind: &GroupVersionKind,
        (namespace, name): (&str, &str),
        asked: u64,
    ) -> Result<Located, ApiError> {
        let mut resource = match self.discovery().known(kind) {
            Some(resource) => resource,
            None => match self.discovery().look_up(kind, asked).await? {
                Serving::Served(resource) => resource,
                Serving::Absent(proof) => return Ok(Located::Nowhere(Nowhere::Kind(proof))),
            },
        };
        loop {
            let at = resource.at(if resource.namespaced { namespace } else { "" }, name);
            let error = match self.get(ctx, &at).await {
                Ok(live) => return Ok(Located::At(at, live)),
                Err(error) if error.is_not_found() => return Ok(Located::Nowhere(Nowhere::NotFound)),
                Err(error) => error,
            };
            if !error.is_not_served() {
                return Err(error);
            }
            // Known kinds may be out of date.
            match self.discovery().look_up(kind, asked).await? {
                Serving::Absent(proof) => return Ok(Located::Nowhere(Nowhere::Kind(proof))),
                Serving::Served(other) if is_other(&resource, &other) => resource = other,
                Serving::Served(_) => return Err(error),
            }
        }
    }
}

/// Returns true if another path is worth a try. Each is tried once: a version's answers are fixed within a question.
fn is_other(tried: &Resource, other: &Resource) -> bool {
    (&tried.version, &tried.plural, tried.namespaced) != (&other.version, &other.plural, other.namespaced)
}
