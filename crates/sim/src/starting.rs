//! A kube-apiserver that has just opened its port (facts §7): what it does not serve yet, and what it answers.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    kinds::ServedKind,
    registry::Registry,
    request::{Request, Target},
    status::Failure,
};

/// How long the parts of a start take. Measured: 0.1 to 1.8 s, some 10 ms, and 1 to 6 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Start {
    /// Lists of groups lack the groups of definitions; their paths answer 503.
    pub installing: Duration,
    /// Custom objects are served, but the documents of their versions answer 404.
    pub discovering: Duration,
    /// Everything is served, but the probes still fail.
    pub unready: Duration,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Starting {
    begun: Instant,
    start: Start,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Installing,
    Discovering,
    Unready,
    Ready,
}

impl Default for Start {
    fn default() -> Self {
        Self {
            installing: Duration::from_millis(1500),
            discovering: Duration::from_millis(10),
            unready: Duration::from_secs(2),
        }
    }
}

impl Starting {
    pub(super) fn now(start: Start) -> Self {
        Self { begun: Instant::now(), start }
    }

    fn part(&self) -> Part {
        let Start { installing, discovering, unready } = self.start;
        match self.begun.elapsed() {
            since if since < installing => Part::Installing,
            since if since < installing + discovering => Part::Discovering,
            since if since < installing + discovering + unready => Part::Unready,
            _ => Part::Ready,
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        self.part() == Part::Ready
    }

    /// The refusal of a request that a ready server would answer. Probes are not judged here.
    pub(super) fn refusal(&self, request: &Request, registry: &Registry) -> Option<Failure> {
        match (self.part(), &request.target) {
            (Part::Installing, Target::Group(group)) if !registry.is_built_in(group) => Some(Failure::starting()),
            (Part::Installing, Target::GroupVersion { group, .. }) if !registry.is_built_in(group) => {
                Some(Failure::starting())
            }
            (Part::Installing, Target::Resource) if !registry.is_built_in(&request.info.group) => {
                Some(Failure::starting())
            }
            (Part::Installing, Target::Unknown) => Some(Failure::starting()),
            (Part::Discovering, Target::GroupVersion { group, .. }) if !registry.is_built_in(group) => {
                Some(Failure::page_not_found())
            }
            _ => None,
        }
    }

    pub(super) fn is_listed(&self, kind: &ServedKind, aggregated: bool) -> bool {
        match self.part() {
            // The plain list is made of registered APIServices; at first only its own group is registered.
            Part::Installing if !aggregated => kind.group.is_empty() || kind.group == "apiregistration.k8s.io",
            Part::Installing | Part::Discovering => !kind.custom,
            Part::Unready | Part::Ready => true,
        }
    }
}
