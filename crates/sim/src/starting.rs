//! A kube-apiserver that has just opened its port (facts §7): what it does not serve yet, and what it answers.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    kinds::ServedKind,
    request::{Request, Target},
    state::{Answer, ApiState},
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
}

impl ApiState {
    fn part_of_start(&self) -> Part {
        self.starting.as_ref().map_or(Part::Ready, Starting::part)
    }

    pub(super) fn while_starting(&self, request: &Request) -> Option<Result<Answer, Failure>> {
        let part = self.part_of_start();
        if part == Part::Ready {
            return None;
        }
        let refusal = match (part, &request.target) {
            (_, Target::Health) => {
                let mut answer = Answer::json(500, &b"[+]ping ok\n[-]poststarthook failed: reason withheld\n"[..]);
                answer.content_type = "text/plain; charset=utf-8".into();
                return Some(Ok(answer));
            }
            (Part::Installing, Target::Group(group)) if !self.registry.is_built_in(group) => Failure::starting(),
            (Part::Installing, Target::GroupVersion { group, .. }) if !self.registry.is_built_in(group) => {
                Failure::starting()
            }
            (Part::Installing, Target::Resource) if !self.registry.is_built_in(&request.info.group) => {
                Failure::starting()
            }
            (Part::Installing, Target::Unknown) => Failure::starting(),
            (Part::Discovering, Target::GroupVersion { group, .. }) if !self.registry.is_built_in(group) => {
                Failure::page_not_found()
            }
            _ => return None,
        };
        Some(Err(refusal))
    }

    pub(super) fn is_listed(&self, kind: &ServedKind, aggregated: bool) -> bool {
        match self.part_of_start() {
            // The plain list is made of registered APIServices; at first only its own group is registered.
            Part::Installing if !aggregated => kind.group.is_empty() || kind.group == "apiregistration.k8s.io",
            Part::Installing | Part::Discovering => !kind.custom,
            Part::Unready | Part::Ready => true,
        }
    }
}
