//! Limits of the operating system for the process (spec 70 §11.1).

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::http::descriptors::Descriptors;

/// Prevents core dumps: after an abort, no copy of the memory, which holds Secrets, reaches a disk.
pub(crate) fn forbid_core_dumps() {
    // Lowering is always allowed. If a sandbox refuses it, nothing is worse than before.
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }).ok();
}

/// Raises the limit of open files to the hard limit. Warns if it is too low for all connections.
pub(super) fn raise() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
        if let Err(error) = raised {
            tracing::warn!(%error, "Cannot raise the limit of file descriptors");
        }
    }
    let descriptors = descriptors();
    if !descriptors.is_enough() {
        let limit = getrlimit(Resource::Nofile).current;
        tracing::warn!(
            limit,
            wanted = Descriptors::ENOUGH,
            "Few file descriptors: the servers take fewer connections; raise the hard limit of open files"
        );
    }
}

pub(super) fn descriptors() -> Descriptors {
    getrlimit(Resource::Nofile).current.map_or_else(Descriptors::default, Descriptors::limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// spec 70 §11.1
    #[test]
    fn limits_of_descriptors_are_raised_to_what_the_system_allows() {
        let before = getrlimit(Resource::Nofile);
        let low = before.maximum.unwrap_or(u64::MAX).min(1000);
        setrlimit(Resource::Nofile, Rlimit { current: Some(low), maximum: before.maximum }).unwrap();

        raise();

        let after = getrlimit(Resource::Nofile);
        assert_eq!((after.current, after.maximum), (before.maximum, before.maximum));
    }

    #[test]
    fn limits_forbid_core_dumps() {
        forbid_core_dumps();

        let limit = getrlimit(Resource::Core);
        assert_eq!((limit.current, limit.maximum), (Some(0), Some(0)));
    }
}
