//! Where the dashboard's data come from.

use std::sync::Arc;

use jiff::Timestamp;
use kit::StatusRegistry;
use serde::Serialize;
use tokio::time::Instant;

use crate::figures::{Figures, FiguresFn, Now};

/// Whether this process leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Leadership {
    /// It holds the lease and runs its controllers.
    Leading,
    /// Another process holds the lease.
    Standby,
    /// There is no leader election; controllers run.
    Unneeded,
}

/// The process in the dashboard's header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessInfo {
    /// Name of the program.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Host or pod name.
    pub host: String,
    /// Start time.
    pub started: Timestamp,
}

/// Returns the current leadership; must return at once.
pub type LeadershipFn = Arc<dyn Fn() -> Leadership + Send + Sync>;

/// Returns the identity of the lease's holder, if it is known; must return at once.
pub type LeaderFn = Arc<dyn Fn() -> Option<Arc<str>> + Send + Sync>;

/// Returns the wall time.
pub type NowFn = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The sources of the dashboard. All of them return at once, and none asks an actor.
#[derive(Clone)]
pub(super) struct Shown {
    pub(super) status_registry: StatusRegistry,
    pub(super) process: ProcessInfo,
    pub(super) leadership: LeadershipFn,
    pub(super) leader: LeaderFn,
    pub(super) figures: FiguresFn,
    pub(super) config: Arc<str>,
    pub(super) now: NowFn,
}

/// The process, with what changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct ShownProcess {
    #[serde(flatten)]
    info: ProcessInfo,
    leadership: Leadership,
    #[serde(skip_serializing_if = "Option::is_none")]
    leader: Option<Arc<str>>,
}

impl Shown {
    pub(super) fn process(&self) -> ShownProcess {
        ShownProcess { info: self.process.clone(), leadership: (self.leadership)(), leader: (self.leader)() }
    }

    pub(super) fn now(&self) -> Timestamp {
        (self.now)()
    }

    pub(super) fn figures(&self, now: Instant) -> Figures {
        (self.figures)(Now { monotonic: now, wall: self.now() })
    }
}

#[cfg(test)]
pub(super) fn shown(status_registry: &StatusRegistry) -> Shown {
    let process = ProcessInfo {
        name: "grm".to_owned(),
        version: "v1".to_owned(),
        host: "pod-0".to_owned(),
        started: Timestamp::UNIX_EPOCH,
    };
    Shown {
        status_registry: status_registry.clone(),
        process,
        leadership: Arc::new(|| Leadership::Standby),
        leader: Arc::new(|| Some("pod-1_x".into())),
        figures: Arc::new(|_| crate::figures::Figures { views: &["actors"], ..Default::default() }),
        config: "kind: Config\n".into(),
        now: Arc::new(|| Timestamp::UNIX_EPOCH),
    }
}
