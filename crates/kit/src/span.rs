//! The span of a reconcile: the fields of its log records and of its trace (spec 70 §10).

use std::fmt;

use tracing::{Span, error_span};

use super::{Causes, Random, Reconciler};

/// Makes the spans of a controller's reconciles. Span numbers come from a separate generator, so that tracing does not
/// change the environment's random sequence in tests.
pub(super) struct Spans {
    random: Random,
    causes: &'static [&'static str],
}

struct Trigger {
    causes: Causes,
    own: &'static [&'static str],
}

impl Spans {
    pub(super) fn new(causes: &'static [&'static str]) -> Self {
        Self { random: Random::from_entropy(), causes }
    }

    /// Returns the names of causes.
    pub(super) fn names(&self, causes: Causes) -> impl Iterator<Item = &'static str> {
        causes.names(self.causes)
    }

    /// Returns the span of a reconcile. `path` is the actor's path in the status registry: the controller, then the key
    /// (a name or `namespace/name`). The span's level is error, so that errors have its fields at any log level.
    pub(super) fn reconcile(&self, reconciler: &Reconciler, path: &str, causes: Causes) -> Span {
        let key = path.split_once('/').map_or(path, |(_, key)| key);
        let (namespace, name) = key.rsplit_once('/').unwrap_or(("", key));
        let (group, kind) = reconciler.about;
        error_span!(
            "reconcile",
            controller = reconciler.name,
            controllerGroup = group,
            controllerKind = kind,
            namespace,
            name,
            reconcileID = self.random.uuid(),
            trigger = %Trigger { causes, own: self.causes },
        )
    }
}

impl fmt::Display for Trigger {
    /// `object+timer`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for name in self.causes.names(self.own) {
            write!(f, "{separator}{name}")?;
            separator = "+";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_named_in_order() {
        let table = [
            (Causes::NONE, ""),
            (Causes::OBJECT, "object"),
            (Causes::RESYNC.with(Causes::LISTED), "listed+resync"),
            (Causes::TIMER.with(Causes::own(1)), "timer+drift"),
            (Causes::own(5), ""),
        ];

        for (causes, expected) in table {
            assert_eq!(Trigger { causes, own: &["secret", "drift"] }.to_string(), expected);
        }
    }
}
